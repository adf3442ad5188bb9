"""The Spaces' pages in a headless Chromium, started as the Hub starts them."""

from __future__ import annotations

import json

import pytest

from eraser_hub.publishing.spaces import build_metrics, get_metrics_folder, list_metric_names
from tools.browser import VIEWS, open_page, running_apps, submit, text_of, view_as, wait_for

pytest.importorskip("gradio", reason="skipped: gradio is not installed")
pytestmark = [pytest.mark.browser, pytest.mark.slow]
EXAMPLES = {
    name: json.loads((get_metrics_folder() / "cards" / f"{name}.json").read_text("utf-8"))
    for name in list_metric_names()
}


@pytest.fixture(scope="module")
def addresses(browser, tmp_path_factory):
    """Name -> address: all Spaces, built and started at once."""
    folders = build_metrics(tmp_path_factory.mktemp("spaces"))
    with running_apps(folders) as urls:
        yield dict(zip((folder.name for folder in folders), urls, strict=True))


def paste(browser, box: str, text: str) -> None:
    """Replace what a box holds, as a paste does."""
    browser.execute_script(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', {bubbles: true}));",
        browser.find_element("css selector", f"#{box} textarea"),
        text,
    )


def press(browser, words: str) -> None:
    """Score what the boxes hold, and wait for these words below the button."""
    submit(browser)
    wait_for(browser, lambda page: words in text_of(page, "scores"), words)


@pytest.mark.parametrize("name", list_metric_names())
def test_the_page_scores_its_example_and_says_what_is_wrong(browser, addresses, name):
    open_page(browser, addresses[name])
    shown = text_of(browser, "scores")
    example = EXAMPLES[name]
    assert all(
        key in shown and rewards in shown and misses in shown for key, (rewards, misses) in example["headline"].items()
    )
    box = "predictions" if example["predictions"] else "references"
    rows = [json.dumps(row) for row in example[box]]
    paste(browser, box, "\n".join([*rows, '{"cut": ']))
    press(browser, f"{box}, line {len(rows) + 1}: ")
    paste(browser, box, '{"nothing": 1}')
    press(browser, "expected ")
    assert "Traceback" not in text_of(browser, "scores")
    paste(browser, box, "\n".join(rows))
    press(browser, shown.split("\n")[-1])


def test_a_file_fills_its_box(browser, addresses, tmp_path):
    (tmp_path / "p.jsonl").write_text('{"id": "review_7", "quotes": ["is a delight"]}\n')
    open_page(browser, addresses["eraser_agreement"])
    browser.find_elements("css selector", "input[type=file]")[0].send_keys(str(tmp_path / "p.jsonl"))
    box = browser.find_element("css selector", "#predictions textarea")
    wait_for(browser, lambda _: "is a delight" in box.get_attribute("value"), "the file's rows")
    press(browser, "0.444")


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_the_page_is_accessible(browser, serious_findings, addresses, width, scheme):
    view_as(browser, width, scheme)
    open_page(browser, addresses["eraser_agreement"])
    assert serious_findings(browser) == []
    view_as(browser)
