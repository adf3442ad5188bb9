"""Report and board by axe-core: no serious finding, in both widths and themes; a planted one is found."""

from __future__ import annotations

import pytest

from eraser_hub.reports.board_lines import read_score_file
from eraser_hub.reports.board_page import collect_board_lines, write_board
from eraser_hub.reports.report_page import make_report
from eraser_hub.scoring.runs import parse_systems
from eraser_hub.scoring.settings import ScoreSettings
from tools.browser import VIEWS, view_as, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def pages(browser, hub, samples, tmp_path_factory):
    """Name -> address: a report of two systems, and a board that has their scores; the window is put back after."""
    out, predictions = tmp_path_factory.mktemp("pages"), samples / "predictions" / "eraser"
    systems = parse_systems(
        [f"ours={predictions / 'movies.val.jsonl'}", f"base={predictions / 'movies.val.baseline.jsonl'}"]
    )
    report = make_report(
        hub / "eraser", config="movies", split="val", systems=systems, out=out, settings=ScoreSettings(n_resamples=20)
    )
    board, *_ = write_board(out / "board", collect_board_lines(map(read_score_file, report.score_files)))
    yield {"report": report.page.as_uri(), "board": board.as_uri()}
    view_as(browser)


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
@pytest.mark.parametrize("name", ["report", "board"])
def test_a_page_has_no_serious_finding(browser, pages, serious_findings, name, width, scheme):
    view_as(browser, width, scheme)
    browser.get(pages[name])
    wait_for(
        browser,
        lambda page: page.find_elements("css selector", "#documents .text, html[data-ready] #board"),
        "its content",
    )
    if name == "board":
        browser.find_element("css selector", "#board tr:not([hidden]) summary").click()
        browser.execute_script("document.querySelector('#board td:not([hidden]) button').focus()")
    else:
        browser.execute_script("document.querySelectorAll('main details').forEach(one => { one.open = true; })")
        browser.find_element("css selector", "#scores button.about").click()
    assert serious_findings(browser) == []


def test_a_planted_fault_is_found(browser, pages, serious_findings):
    browser.get(pages["board"])
    browser.execute_script(
        "document.querySelector('h1').style.color = document.documentElement.lang = '';"
        "const style = document.querySelector('main > p').style; style.color = '#777'; style.background = '#999';"
        "document.getElementById('find').closest('label').replaceWith(document.getElementById('find'))"
    )
    assert {finding.split(":")[0] for finding in serious_findings(browser)} == {
        "color-contrast",
        "html-has-lang",
        "label",
    }
