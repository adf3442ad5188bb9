"""The results board in headless Chromium: sort, filter, and nothing in the console."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from eraser_hub.reports.board_lines import BoardLine
from eraser_hub.reports.board_page import collect_board_lines, write_board
from tools.browser import wait_for

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"


@pytest.fixture(scope="module")
def board(browser, tmp_path_factory):
    """A board with the published rows, one scored line, and one with hostile names; its data beside the open page."""
    out = tmp_path_factory.mktemp("board")
    scored = [
        BoardLine(
            "ours",
            "movies",
            "test",
            "scored",
            "scored here",
            "sig|1",
            {"auprc": 0.123456, "token_macro_p": 0.5, "comprehensiveness_entropy": 0.5},
            {"auprc": (0.1, 0.2)},
        ),
        BoardLine(
            HOSTILE,
            "movies",
            "test",
            "scored",
            "scored here",
            HOSTILE,
            {"auprc": 0.9, "comprehensiveness": -0.5, "comprehensiveness_entropy": 0.1},
        ),
    ]
    page, data, *_ = write_board(out, collect_board_lines(scored))
    browser.get_log("browser")
    return browser, page.as_uri(), json.loads(data.read_text())


@pytest.fixture
def opened(board):
    """The page with the lines of all datasets."""
    browser, uri, data = board
    browser.get(uri)
    choose(browser, "dataset", "")
    assert browser.execute_script("return document.documentElement.dataset.ready") == "yes"
    yield browser, data
    assert browser.get_log("browser") == [], "the console stays empty"
    assert browser.title == "Results board", "no text of a name was run"


def column(browser, key):
    """The texts of a column's shown cells, without what is folded in them."""
    return browser.execute_script(
        "return [...document.querySelectorAll('#board tbody tr:not([hidden])')].map(r => {"
        "const c = r.querySelector(`[data-key='${arguments[0]}']`).cloneNode(true);"
        "c.querySelectorAll('small, details').forEach(e => e.remove()); return c.textContent })",
        key,
    )


def heads(browser):
    return browser.execute_script(
        "return [...document.querySelectorAll('#board thead th:not([hidden])')].map(th => th.dataset.key)"
    )


def choose(browser, name, value):
    browser.execute_script(
        "const s = document.getElementById(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('change'))",
        name,
        value,
    )


def click(browser, key):
    browser.execute_script("document.querySelector(`th[data-key='${arguments[0]}'] button`).click()", key)


def test_neutral_order_first_and_what_is_shown_is_the_data(opened):
    browser, data = opened
    assert browser.find_elements("css selector", "th[aria-sort]") == []
    assert column(browser, "system") == [row["system"] for row in data["rows"]]
    expected = ["" if (v := row["scores"].get("auprc")) is None else f"{v:.3f}" for row in data["rows"]]
    assert column(browser, "auprc") == expected
    assert HOSTILE in column(browser, "system") and browser.execute_script("return document.images.length") == 0


@pytest.mark.parametrize("key", ["auprc", "sufficiency", "comprehensiveness_aopc", "macro_f1", "map"])
def test_sort_by_any_metric_the_best_first_missing_ones_last(opened, key):
    browser, data = opened
    orders = (("descending", True), ("ascending", False))
    for direction, reverse in reversed(orders) if key == "sufficiency" else orders:
        click(browser, key)
        shown = [float(text) for text in column(browser, key) if text]
        assert shown == sorted(shown, reverse=reverse) and len(shown) == sum(
            key in row["scores"] for row in data["rows"]
        )
        texts = column(browser, key)
        assert all(texts[: len(shown)]) and not any(texts[len(shown) :])
        (head,) = browser.find_elements("css selector", "th[aria-sort]")
        assert (head.get_attribute("data-key"), head.get_attribute("aria-sort")) == (key, direction)
    click(browser, key)
    assert column(browser, "system") == [row["system"] for row in data["rows"]], "a third click: the neutral order"
    click(browser, "system")
    (head,) = browser.find_elements("css selector", "th[aria-sort]")
    assert head.get_attribute("aria-sort") == "ascending", "words begin with the first"


def test_a_dataset_first_then_the_scores_that_its_lines_have(board):
    browser, uri, data = board
    browser.get(uri)
    rows = [row for row in data["rows"] if row["group"] == "movies"]
    assert browser.find_element("id", "dataset").get_attribute("value") == "movies", "the lines scored here"
    assert column(browser, "system") == [row["system"] for row in rows]
    shown = heads(browser)
    assert shown[0] == "system" and "group" not in shown
    filled = [sum(key in row["scores"] for row in rows) for key in shown[1:]]
    families = [next(c["family"] for c in data["columns"] if c["key"] == key) for key in shown[1:]]
    places = [(family, -count) for family, count in zip(families, filled, strict=True)]
    assert all(filled) and places == sorted(places)


def test_precision_and_recall_are_folded_and_counted(opened):
    browser, data = opened
    parts = {column["key"] for column in data["columns"] if column["part"]}
    assert parts == {"token_macro_p"} and not parts & set(heads(browser))
    counted = browser.find_element("id", "found").text
    assert f"{len(data['columns']) - 1} of {len(data['columns'])} scores" in counted
    browser.find_element("id", "parts").click()
    assert parts <= set(heads(browser))


def test_an_interval_is_read_by_pointer_and_by_keyboard(opened):
    browser, _ = opened
    browser.find_element("id", "find").send_keys("ours")
    button = browser.find_element("css selector", "#board tbody tr:not([hidden]) td[data-key=auprc] button")
    small = button.find_element("tag name", "small")
    assert button.get_property("innerText").split() == ["0.123", "[0.100,", "0.200]"]
    assert small.value_of_css_property("opacity") == "0"
    browser.execute_script("arguments[0].focus()", button)
    assert small.value_of_css_property("opacity") == "1"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_window_scrolls_the_table_and_not_the_page(opened, scheme):
    from tools.browser import view_as

    browser, _ = opened
    choose(browser, "dataset", "movies")
    try:
        view_as(browser, 390, scheme)
        assert browser.execute_script("return document.documentElement.scrollWidth") == 390
        assert browser.execute_script("return document.querySelector('#board tbody th').offsetWidth") < 200
        paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(23, 24, 26)"}[scheme]
        ends = browser.execute_script(
            "return [...document.querySelectorAll('#board thead th:not([hidden])')].slice(0, 4)"
            ".map(head => [head.dataset.family !== undefined, head.getBoundingClientRect().right])"
        )
        assert [is_score for is_score, _ in ends] == [False, True, True, True]
        width = browser.execute_script("return document.getElementById('board-scroll').getBoundingClientRect().right")
        assert ends[-1][1] <= width <= 390, "the system and the first three scores"
    finally:
        view_as(browser)


def test_filters(opened):
    browser, data = opened
    choose(browser, "dataset", "movies")
    assert set(column(browser, "group")) == {"movies"}
    hidden = browser.find_element("css selector", "th[data-key='map']")
    assert not hidden.is_displayed(), "a column that no shown line fills is folded away"
    choose(browser, "kind", "self-reported")
    assert len(column(browser, "system")) == 2
    find = browser.find_element("id", "find")
    find.send_keys("OURS")
    assert column(browser, "system") == ["ours"]
    assert browser.find_element("id", "found").text == (
        f"1 of {len(data['rows'])} lines, 2 of 3 scores · Group movies · Status self-reported · Split test"
    )
    browser.find_element("id", "tab-faithfulness").click()
    assert not browser.find_element("css selector", "th[data-key='auprc']").is_displayed()


def test_a_published_line_says_its_source(opened):
    browser, _ = opened
    summary = next(
        s for s in browser.find_elements("css selector", "#board summary") if s.text == "ERASER v1 (2019), Table 4"
    )
    browser.execute_script("arguments[0].click()", summary)
    words = browser.execute_script("return arguments[0].parentNode.querySelector('p').textContent", summary)
    assert "single threshold k_d" in words


def tab(browser):
    (chosen,) = browser.find_elements("css selector", "[role=tab][aria-selected=true]")
    return chosen.text


def test_the_table_shows_although_its_script_does_not_run(board, tmp_path):
    """The page's policy blocks a script that is not its own; the table waits for it, and not for ever."""
    browser, uri, _ = board
    text = Path(unquote(urlsplit(uri).path)).read_text("utf-8").replace('"use strict"', '"use strict" + 1')
    (tmp_path / "page.html").write_text(text, "utf-8")
    browser.get((tmp_path / "page.html").as_uri())
    shown = "return document.querySelector('#board tbody th').checkVisibility()"
    assert browser.execute_script("return document.documentElement.dataset.ready") is None
    wait_for(browser, lambda page: page.execute_script(shown), "the table")
    browser.get_log("browser")  # of the blocked script


def test_tabs_choose_a_family_by_pointer_and_by_keyboard(opened):
    from selenium.webdriver.common.keys import Keys

    browser, data = opened
    families = {column["key"]: column["family"] for column in data["columns"]}
    labels = [one.text for one in browser.find_elements("css selector", "[role=tab]")]
    assert labels == ["agreement", "faithfulness", "task", "all"] and tab(browser) == "all"
    browser.find_element("id", "tab-performance").click()
    assert {families[key] for key in heads(browser) if key in families} == {"performance"}
    browser.switch_to.active_element.send_keys(Keys.ARROW_LEFT)
    assert tab(browser) == "faithfulness" and browser.switch_to.active_element.text == "faithfulness"
    assert {families[key] for key in heads(browser) if key in families} == {"faithfulness"}
    browser.switch_to.active_element.send_keys(Keys.END)
    assert tab(browser) == "all" and {families[key] for key in heads(browser) if key in families} == set(
        families.values()
    )


def test_the_address_holds_what_is_shown(board):
    browser, uri, _ = board
    browser.get(uri)
    assert browser.current_url == uri, "nothing is chosen yet"
    choose(browser, "dataset", "cose")
    browser.find_element("id", "tab-agreement").click()
    click(browser, "auprc")
    browser.find_element("id", "find").send_keys("A & B=")
    browser.find_element("id", "find").clear()
    browser.find_element("id", "parts").click()
    link = browser.current_url
    assert link == f"{uri}#group=cose&parts=1&family=agreement&sort=auprc:descending"
    shown, columns = column(browser, "system"), heads(browser)
    browser.get("about:blank")
    browser.get(link)
    assert (column(browser, "system"), heads(browser), browser.current_url) == (shown, columns, link)
    assert tab(browser) == "agreement" and browser.find_element("id", "parts").is_selected()
    browser.execute_script("location.hash = '#family=faithfulness'")
    assert (
        browser.execute_async_script(
            "const done = arguments[0]; setTimeout(() => done(document.getElementById('dataset').value), 50)"
        )
        == "movies"
    )
    assert tab(browser) == "faithfulness"


@pytest.mark.parametrize("place", ["#group=nowhere&family=x&sort=y:up", "#group=%E0%A4%A&sort=%", "#constructor=1&=&&"])
def test_an_address_that_says_nothing_known_opens_the_page_as_usual(board, place):
    browser, uri, data = board
    browser.get("about:blank")
    browser.get(uri + place)
    assert column(browser, "system") == [row["system"] for row in data["rows"] if row["group"] == "movies"]
    assert tab(browser) == "all" and browser.get_log("browser") == []


def test_paper_has_every_line_and_score_of_the_open_group(opened):
    browser, data = opened
    rows = [row for row in data["rows"] if row["group"] == "movies"]
    choose(browser, "dataset", "movies")
    choose(browser, "kind", "self-reported")
    browser.find_element("id", "find").send_keys("nobody")
    browser.find_element("id", "tab-agreement").click()
    before = browser.current_url
    try:
        browser.execute_script("dispatchEvent(new Event('beforeprint'))")
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": 760, "height": 1000, "deviceScaleFactor": 1, "mobile": False},
        )
        assert column(browser, "system") == [row["system"] for row in rows]
        keys = {key for row in rows for key in row["scores"]}
        assert keys <= set(heads(browser)) and "token_macro_p" in keys
        cut = (
            "const board = document.getElementById('board-scroll');"
            "return [document.documentElement.scrollWidth <= innerWidth, board.scrollHeight <= board.clientHeight + 1,"
            " [...document.querySelectorAll('#board td[data-value]:not([hidden])')].every(cell =>"
            " cell.offsetLeft + cell.offsetWidth <= innerWidth)]"
        )
        assert browser.execute_script(cut) == [True, True, True]
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert column(browser, "system") == [] and browser.current_url == before
