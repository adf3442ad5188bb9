"""The results board in headless Chromium: sort, filter, and nothing in the console."""

from __future__ import annotations

import json

import pytest

from eraser_hub.reports.board import collect_board_lines, write_board
from eraser_hub.reports.board_lines import BoardLine

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
            better=("auprc",),
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
    page, data = write_board(out, collect_board_lines(scored))
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


@pytest.mark.parametrize("key", ["system", "group"])
def test_sort_by_words(opened, key):
    browser, data = opened
    click(browser, key)
    (head,) = browser.find_elements("css selector", "th[aria-sort]")
    assert head.get_attribute("aria-sort") == "ascending"
    shown = browser.execute_script(
        "return [...document.querySelectorAll('#board tbody tr')].map(r => {"
        " const c = r.querySelector(`[data-key='${arguments[0]}']`); return c.dataset.value ?? c.textContent })",
        key,
    )
    assert sorted(shown) == sorted(row[key] for row in data["rows"])
    assert shown[0] == min(shown, key=str.lower) or not shown[0][0].isalnum()


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


def test_a_star_means_better_and_stays_whatever_is_shown(opened):
    browser, _ = opened

    def starred():
        cells = "document.querySelectorAll('#board tr:not([hidden]) .better')"
        return browser.execute_script(f"return [...{cells}].map(c => c.dataset.key)")

    assert starred() == ["auprc"], "not the largest figures, and no published line"
    browser.find_element("id", "find").send_keys("ours")
    assert starred() == ["auprc"]


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
    try:
        view_as(browser, 390, scheme)
        assert browser.execute_script("return document.documentElement.scrollWidth") == 390
        assert browser.execute_script("return document.querySelector('#board tbody th').offsetWidth") < 200
        paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(23, 24, 26)"}[scheme]
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
        f"1 of {len(data['rows'])} lines, 2 of 3 scores · Status self-reported · Split test"
    )
    browser.find_element("css selector", ".family[value=agreement]").click()
    assert not browser.find_element("css selector", "th[data-key='auprc']").is_displayed()


def test_a_published_line_says_its_source(opened):
    browser, _ = opened
    summary = next(
        s for s in browser.find_elements("css selector", "#board summary") if s.text == "ERASER v1 (2019), Table 4"
    )
    browser.execute_script("arguments[0].click()", summary)
    words = browser.execute_script("return arguments[0].parentNode.querySelector('p').textContent", summary)
    assert "single threshold k_d" in words


def test_hostile_names_are_shown(opened):
    browser, _ = opened
    assert HOSTILE in column(browser, "system")
    assert browser.execute_script("return document.images.length") == 0
