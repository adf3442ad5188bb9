"""The results board in headless Chromium: sort, filter, links, both themes, and nothing in the console."""

from __future__ import annotations

import json

import pytest

from eraser_hub.reports.board import board
from tools.browser import VIEWS, view_as

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A board with the printed rows, a score file, and one with hostile names."""
    out = tmp_path_factory.mktemp("board")
    facts = {"config": "movies", "signature": "eraser_agreement|split:test|n:9", "token_macro_p": 0.5}
    scores = {
        "ours": {"auprc": 0.1, "auprc_ci": [0.05, 0.2]},
        HOSTILE: {"auprc": 0.9, "sufficiency": 0.1},
        "b": {"map": 1},
    }
    for number, (system, values) in enumerate(scores.items()):
        content = {"system": system, **facts, **values}
        (out / f"{number}.scores.json").write_text(json.dumps(content), "utf-8")
    return board(str(out), out=out / "board").files[0].as_uri()


@pytest.fixture
def opened(browser, page):
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(page)
    yield browser
    assert browser.get_log("browser") == [] and browser.title == "Results board", "no text of a name was run"


def systems(browser):
    """The systems that are shown, in order, and the shown keys of the first table."""
    return browser.execute_script(
        "const seen = e => e.checkVisibility(); return ["
        "[...document.querySelectorAll('tbody th')].filter(seen).map(e => e.firstChild.textContent),"
        "[...document.querySelectorAll('section:not([hidden]) table')[0].tHead.rows[0].cells].filter(seen)"
        ".map(e => e.dataset.key)]"
    )


def set_control(browser, name, value):
    browser.execute_script(
        "const e = document.getElementById(arguments[0]);"
        "e[e.type === 'checkbox' ? 'checked' : 'value'] = arguments[1]; e.dispatchEvent(new Event('input'))",
        name,
        value,
    )


def click(browser, key):
    browser.execute_script("document.querySelector(`th[data-key='${arguments[0]}'] button`).click()", key)


def test_sort_filter_and_links(opened, page):
    rows, keys = systems(opened)
    assert rows[:3] == [HOSTILE, "b", "ours"] and len(rows) == 90, "in the order of names"
    assert {"system", "auprc", "map"} <= set(keys) and "token_macro_p" not in keys
    set_control(opened, "group", "movies, test")
    click(opened, "auprc")
    assert systems(opened)[0] == [HOSTILE, "ours", "b"], "the best first, rows without a number last"
    click(opened, "auprc")
    assert systems(opened)[0] == ["ours", HOSTILE, "b"]
    set_control(opened, "all", True)
    assert "token_macro_p" in systems(opened)[1]
    set_control(opened, "find", "OURS")
    assert systems(opened)[0] == ["ours"] and opened.find_element("id", "found").text == "1 of 90 rows"
    set_control(opened, "find", "")
    link, shown = opened.current_url, systems(opened)
    assert link == f"{page}#group=movies%2C+test&all=1&sort=auprc%3Aascending"
    opened.get("about:blank")
    opened.get(link)
    assert systems(opened) == shown and opened.current_url == link
    opened.execute_script("location.hash = '#find=Table+6'")
    opened.execute_async_script("setTimeout(arguments[0], 50)")
    assert len(systems(opened)[0]) == 24, "a source"
    assert opened.execute_script("return document.images.length") == 0


@pytest.mark.parametrize("place", ["#group=nowhere&sort=y:up", "#group=%E0%A4%A&sort=%", "#constructor=1&=&&"])
def test_an_address_that_says_nothing_known_opens_the_page_as_usual(opened, page, place):
    opened.get("about:blank")
    opened.get(page + place)
    assert len(systems(opened)[0]) == 90


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_every_view_is_accessible_and_scrolls_the_table_alone(opened, serious_findings, width, scheme):
    try:
        view_as(opened, width, scheme)
        opened.execute_script("document.querySelector('details').open = true")
        set_control(opened, "all", True)
        assert opened.execute_script("return document.documentElement.scrollWidth") == width
        assert serious_findings(opened) == []
    finally:
        view_as(opened)
