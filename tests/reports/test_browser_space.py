"""The board's Space, started as a Space starts it, in headless Chromium: its page, and a submission that is scored."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from eraser_hub.reports.board import collect_board_lines
from eraser_hub.reports.space import write_space
from tools.browser import VIEWS, running_apps, view_as

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
    with running_apps([folder]) as (address,):
        yield address


def wait(browser, script):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 60, poll_frequency=0.1).until(lambda driver: driver.execute_script(script))


def click(browser, text):
    # gradio keeps hidden twins of its tabs, to measure them
    next(b for b in browser.find_elements("css selector", "button") if b.is_displayed() and b.text == text).click()


def open_board(browser, space):
    browser.get(space)
    wait(browser, "return document.documentElement.dataset.ready === 'yes'")


def open_submit(browser):
    browser.find_element("css selector", "#submit a").click()
    wait(browser, "return document.querySelector('#predictions input[type=file]') !== null")


def test_the_page_and_a_submission(browser, space):
    open_board(browser, space)
    assert "ERASER v1 (2019), Table 4" in browser.find_element("id", "board").text
    open_submit(browser)
    upload = browser.find_element("css selector", "#predictions input[type=file]")
    upload.send_keys(str(PREDICTIONS / "movies.val.jsonl"))
    wait(browser, "return document.querySelector('#predictions').innerText.includes('KB')")
    click(browser, "Score")
    wait(browser, "return document.querySelector('#scores')?.innerText.includes('exact_micro_f1')")
    line = wait(browser, "return document.querySelector('#line')?.innerText")
    assert "your system (this file)" in line and "AUPRC" in line
    signature = "return [...document.querySelectorAll('textarea')].some(t => t.value.includes('eraser_agreement|'))"
    assert wait(browser, signature)
    browser.find_element("link text", "Back to the board").click()
    wait(browser, "return document.documentElement.dataset.ready === 'yes'")
    assert browser.current_url.rstrip("/") == space.rstrip("/")


def test_an_error_is_shown_in_words(browser, space, tmp_path):
    (tmp_path / "p.jsonl").write_text('{"auprc": 0.9999}\n')
    open_board(browser, space)
    open_submit(browser)
    browser.find_element("css selector", "#predictions input[type=file]").send_keys(str(tmp_path / "p.jsonl"))
    wait(browser, "return document.querySelector('#predictions').innerText.includes('18')")
    click(browser, "Score")
    assert "annotation_id" in wait(browser, "return document.querySelector('[data-testid=toast-body]')?.innerText")


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_neither_page_has_a_serious_finding(browser, space, serious_findings, width, scheme):
    try:
        view_as(browser, width, scheme)
        open_board(browser, space)
        assert serious_findings(browser) == []
        open_submit(browser)
        wait(browser, "return document.querySelector('#predictions')?.checkVisibility()")
        # gradio names its upload box otherwise than it labels it, and takes no other name
        others = [
            f
            for f in serious_findings(browser)
            if not f.startswith('label-content-name-mismatch: <button class="upload')
        ]
        assert others == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        view_as(browser)
