"""The board's Space, started as a Space starts it, in headless Chromium: the table, and a submission that is scored."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from eraser_hub.reports.board import collect_board_lines
from eraser_hub.reports.space import write_space
from tools.browser import VIEWS, view_as

pytestmark = [pytest.mark.browser, pytest.mark.slow]
PREDICTIONS = Path(__file__).resolve().parents[2] / "samples" / "predictions" / "eraser"


@pytest.fixture(scope="module")
def space(hub, tmp_path_factory):
    pytest.importorskip("gradio", reason="skipped: no gradio")
    from eraser_hub.publishing.spaces import build_metrics

    folder = tmp_path_factory.mktemp("hub") / "results_board"
    write_space(folder, collect_board_lines())
    shutil.copytree(hub / "eraser", folder.parent / "eraser")
    build_metrics(folder.parent, ["eraser_agreement", "eraser_faithfulness"])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folders = {"HF_HOME": str(folder / "home"), "GRADIO_TEMP_DIR": str(folder / "uploads")}
    alone = {"GRADIO_SERVER_PORT": str(port), "GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_OFFLINE": "1"}
    environment = {**os.environ, **alone, **folders}
    process = subprocess.Popen([sys.executable, "app.py"], cwd=folder, env=environment, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}/"
    try:
        for _ in range(240):
            assert process.poll() is None, "the app ended"
            try:
                urllib.request.urlopen(address, timeout=2).close()
                break
            except OSError:
                time.sleep(0.25)
        yield address
    finally:
        process.terminate()
        process.wait(10)


def wait(browser, script):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 60, poll_frequency=0.1).until(lambda driver: driver.execute_script(script))


def click(browser, text):
    # gradio keeps hidden twins of its tabs, to measure them
    next(b for b in browser.find_elements("css selector", "button") if b.is_displayed() and b.text == text).click()


def test_the_table_and_a_submission(browser, space):
    browser.get(space)
    wait(browser, "return document.querySelector('#board')?.innerText.includes('ERASER v1 (2019), Table 4')")
    click(browser, "Submit")
    wait(browser, "return document.querySelector('#predictions input[type=file]') !== null")
    upload = browser.find_element("css selector", "#predictions input[type=file]")
    upload.send_keys(str(PREDICTIONS / "movies.val.jsonl"))
    wait(browser, "return document.querySelector('#predictions').innerText.includes('KB')")
    click(browser, "Score")
    wait(browser, "return document.querySelector('#scores')?.innerText.includes('exact_micro_f1')")
    line = wait(browser, "return document.querySelector('#line')?.innerText")
    assert "your system (this file)" in line and "AUPRC" in line
    signature = "return [...document.querySelectorAll('textarea')].some(t => t.value.includes('eraser_agreement|'))"
    assert wait(browser, signature)


@pytest.mark.parametrize(("width", "scheme"), [VIEWS[0], VIEWS[-1]])
def test_neither_tab_has_a_serious_finding(browser, space, serious_findings, width, scheme):
    try:
        view_as(browser, width, scheme)
        browser.get(space)
        wait(browser, "return document.querySelector('#board')?.innerText.includes('Table 4')")
        assert serious_findings(browser) == []
        click(browser, "Submit")
        wait(browser, "return document.querySelector('#predictions')?.checkVisibility()")
        # gradio names its upload box otherwise than it labels it, and takes no other name
        others = [
            f
            for f in serious_findings(browser)
            if not f.startswith('label-content-name-mismatch: <button class="upload')
        ]
        assert others == []
    finally:
        view_as(browser)


def test_board_json_is_what_the_app_shows(space, tmp_path):
    (tmp_path / "x").mkdir()
    files = write_space(tmp_path / "x", collect_board_lines())
    data = json.loads(next(path for path in files if path.name == "board.json").read_text())
    assert len(data["rows"]) == len(collect_board_lines())
