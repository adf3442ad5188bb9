"""The results board in headless Chromium: sort, filter, and nothing in the console."""

from __future__ import annotations

import json

import pytest

from eraser_hub.reports.board import board_lines, write_board
from eraser_hub.reports.board_lines import BoardLine

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"


@pytest.fixture(scope="module")
def board(browser, tmp_path_factory):
    """A board with the published rows, one scored line, and one with hostile names; its data beside the open page."""
    out = tmp_path_factory.mktemp("board")
    scored = [
        BoardLine(
            "ours", "movies", "test", "scored", "scored here", "sig|1", {"auprc": 0.123456}, {"auprc": (0.1, 0.2)}
        ),
        BoardLine(
            HOSTILE, "movies", "test", "scored", "scored here", HOSTILE, {"auprc": 0.9, "comprehensiveness": -0.5}
        ),
    ]
    page, data = write_board(out, board_lines(scored))
    browser.get_log("browser")
    return browser, page.as_uri(), json.loads(data.read_text())


@pytest.fixture
def opened(board):
    browser, uri, data = board
    browser.get(uri)
    assert browser.execute_script("return document.documentElement.dataset.ready") == "yes"
    yield browser, data
    assert browser.get_log("browser") == [], "the console stays empty"
    assert browser.title == "Results board", "no text of a name was run"


def column(browser, key):
    return browser.execute_script(
        "return [...document.querySelectorAll('#board tbody tr:not([hidden])')]"
        ".map(r => r.querySelector(`[data-key='${arguments[0]}']`).firstChild?.textContent ?? '')",
        key,
    )


def click(browser, key):
    browser.execute_script("document.querySelector(`th[data-key='${arguments[0]}'] button`).click()", key)


def test_neutral_order_first_and_what_is_shown_is_the_data(opened):
    browser, data = opened
    assert browser.find_elements("css selector", "th[aria-sort]") == []
    assert column(browser, "system") == [row["system"] for row in data["rows"]]
    expected = ["" if (v := row["scores"].get("auprc")) is None else f"{v:.3f}" for row in data["rows"]]
    assert column(browser, "auprc") == expected


@pytest.mark.parametrize("key", ["auprc", "comprehensiveness", "comprehensiveness_aopc", "macro_f1", "map"])
def test_sort_by_any_metric_missing_ones_last(opened, key):
    browser, data = opened
    for direction, reverse in (("descending", True), ("ascending", False)):
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


@pytest.mark.parametrize("key", ["system", "dataset", "source"])
def test_sort_by_words(opened, key):
    browser, data = opened
    click(browser, key)
    (head,) = browser.find_elements("css selector", "th[aria-sort]")
    assert head.get_attribute("aria-sort") == "ascending"
    shown = browser.execute_script(
        "return [...document.querySelectorAll('#board tbody tr')].map(r => { const c = r.querySelector(`[data-key='${arguments[0]}']`);"
        "return c.dataset.value ?? c.textContent })",
        key,
    )
    assert sorted(shown) == sorted(row[key] for row in data["rows"])
    assert shown[0] == min(shown, key=str.lower) or not shown[0][0].isalnum()


def test_filters(opened):
    browser, data = opened
    browser.execute_script(
        "const s = document.getElementById('dataset'); s.value = 'movies'; s.dispatchEvent(new Event('change'))"
    )
    assert set(column(browser, "dataset")) == {"movies"}
    hidden = browser.find_element("css selector", "th[data-key='map']")
    assert not hidden.is_displayed(), "a column that no shown line fills is folded away"
    browser.execute_script(
        "const s = document.getElementById('kind'); s.value = 'scored'; s.dispatchEvent(new Event('change'))"
    )
    assert len(column(browser, "system")) == 2
    find = browser.find_element("id", "find")
    find.send_keys("OURS")
    assert column(browser, "system") == ["ours"]
    assert browser.find_element("id", "found").text == f"1 of {len(data['rows'])} lines"
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
