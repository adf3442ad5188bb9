"""The report in headless Chromium: texts side by side, filter, order, keys, links, tables, themes, print."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

import eraser_hub
from eraser_hub.reports import texts
from tools.browser import VIEWS, view_as, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HOSTILE = "</script><img src=x onerror=\"document.title='run'\"><script>document.title='run'</script><!--"
NAMES = ("ours", "LR, occlusion", "near & far", "fourth", "fifth")
READY = "return document.documentElement.dataset.ready === 'yes'"
HEADS = "return [...document.querySelectorAll('.column > .facts .system')].map(one => one.textContent)"


@pytest.fixture(scope="module")
def page(hub, samples, tmp_path_factory):
    """A report of five systems: the two samples, and copies that drop each second, third .. span; 10 texts a block."""
    folder, out = samples / "predictions" / "eraser", tmp_path_factory.mktemp("report")
    files = [folder / "movies.val.jsonl", folder / "movies.val.baseline.jsonl"]
    lines = [json.loads(line) for line in files[1].read_text("utf-8").splitlines()]
    for step in (2, 3, 4):
        for line in lines:
            for rationale in line["rationales"]:
                rationale["hard_rationale_predictions"] = rationale["hard_rationale_predictions"][::step]
        files.append(out / f"copy{step}.jsonl")
        files[-1].write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    systems = dict(zip(NAMES, files, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "BLOCK", 10)
        made = eraser_hub.report(hub / "eraser", systems, config="movies", split="val", resamples=200, out=out / "page")
    return made.page


@pytest.fixture
def opened(browser, page):
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(page.as_uri())
    wait(browser, READY)
    yield browser
    view_as(browser)
    assert browser.get_log("browser") == [], "the console stays empty"


def wait(browser, script, *arguments):
    return wait_for(browser, lambda driver: driver.execute_script(script, *arguments), script)


def choose(browser, name, value):
    script = (
        "const node = document.getElementById(arguments[0]); node.value = arguments[1];"
        "node.dispatchEvent(new Event(arguments[2]))"
    )
    browser.execute_script(script, name, value, "input" if name == "find" else "change")


def press(browser, key):
    browser.execute_script(
        "document.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], bubbles: true}))", key
    )


def wait_place(browser, words):
    wait(browser, "return document.getElementById('found').textContent === arguments[0]", words)
    wait(browser, "return document.querySelector('#text .text') !== null")


def test_findings_tables_and_figures_need_no_script(browser, page):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(page.as_uri())
        findings = browser.find_elements("css selector", ".findings > li")
        assert findings and findings[0].location["y"] + findings[0].size["height"] < 400
        assert browser.find_element("id", "score-table").is_displayed()
        assert len(browser.find_elements("css selector", "#scores ~ .figures svg")) >= 6
        assert not browser.find_element("id", "view").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_texts_stand_side_by_side_with_their_legend(opened):
    assert len(opened.execute_script(HEADS)) == 2, "those that differ most on the first text"
    boxes = opened.find_elements("css selector", "#systems input")
    for box in boxes:
        if not box.is_selected():
            box.click()
    wait(opened, "return document.querySelectorAll('.column').length === 5")
    gold = "return [...document.querySelectorAll('.column')].map(c => c.querySelectorAll('.m.gold').length)"
    assert len(set(opened.execute_script(gold))) == 1, "the same gold in each"
    assert opened.find_element("css selector", "#view .legend .h").text == "predicted"
    for place in range(2, 25):
        if opened.find_elements("css selector", ".fold"):
            break
        press(opened, "j")
        wait_place(opened, f"{place} of 24")
    assert opened.find_elements("css selector", ".fold"), "lines far from a mark are folded"
    press(opened, "u")
    wait(opened, "return document.querySelectorAll('.fold').length === 0")


def test_filter_order_keys_and_address(opened, browser):
    wait_place(opened, "1 of 24")
    choose(opened, "filter", "gold:1")
    wait_place(opened, "1 of 12")
    choose(opened, "order", "up:auprc")
    first = opened.find_element("id", "name").text
    press(opened, "j")
    wait_place(opened, "2 of 12")
    press(opened, "k")
    wait_place(opened, "1 of 12")
    assert opened.find_element("id", "name").text == first
    choose(opened, "find", "no such id")
    wait(opened, "return document.getElementById('found').textContent === 'no text passes the filter'")
    address = opened.execute_script("return location.href")
    assert f"#text={first}&system=" in address
    browser.get("about:blank")
    browser.get(address.partition("&")[0] + f"&system={quote(NAMES[1], safe='')}")
    wait(browser, READY)
    wait(browser, "return document.getElementById('name').textContent === arguments[0]", first)
    assert browser.execute_script(HEADS) == [NAMES[1]], "texts after the first block come from the file beside the page"


@pytest.mark.parametrize("state", ["#text=none&system=nobody", "#text=%E0%A4%A", "#scores"])
def test_an_address_of_something_else_shows_the_page(opened, page, state):
    opened.get("about:blank")
    opened.get(page.as_uri() + state)
    wait(opened, READY)
    wait_place(opened, "1 of 24")


def test_tables_are_sorted_and_pairs_are_filtered(opened):
    column = "return [...document.querySelectorAll('#score-table tbody tr')].map(row => row.cells[1].dataset.value)"
    head = opened.find_elements("css selector", "#score-table thead button")[1]
    for reverse in (True, False):
        head.click()
        values = [float(value) for value in opened.execute_script(column)]
        assert values[:5] == sorted(values[:5], reverse=reverse) and len(values) == 6, "chance stays below"
    shown = "return [...document.querySelectorAll('#difference-table tbody tr')].filter(row => !row.hidden).length"
    assert opened.execute_script(shown) == 4, "of many pairs those of one system"
    choose(opened, "pairs", "")
    assert opened.execute_script(shown) == 10


def test_hostile_text_is_text(browser, tmp_path):
    bounds = {"start_token": 0, "end_token": 1, "start_sentence": 0, "end_sentence": 1}
    gold = [[{"docid": "d\u202e", "text": HOSTILE.split()[0], **bounds}]]
    row = {"annotation_id": HOSTILE, "query": HOSTILE, "classification": HOSTILE, "evidences": gold, "query_type": None}
    (tmp_path / "raw/docs").mkdir(parents=True)
    (tmp_path / "raw/docs/d\u202e").write_text(f"{HOSTILE} b\nفيلم رائع", "utf-8")
    (tmp_path / "raw/test.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    corpus = {"name": "bad", "labels": [HOSTILE, "other"]}
    (tmp_path / "raw/corpus.yaml").write_text(json.dumps(corpus), "utf-8")
    eraser_hub.build("own", source=tmp_path / "raw", out=tmp_path / "hub")
    answer = {"id": HOSTILE, "label": HOSTILE, "rationale": [[0, 1]], "text": f"{HOSTILE} b\nفيلم رائع"}
    answer["probabilities"] = {HOSTILE: 1.0, "other": 0.0}
    (tmp_path / "p.jsonl").write_text(json.dumps(answer) + "\n", "utf-8")
    place = {"config": "bad", "out": tmp_path / "page", "title": HOSTILE}
    made = eraser_hub.report(tmp_path / "hub/bad", {"a<b>": tmp_path / "p.jsonl"}, **place)
    browser.get(made.page.as_uri())
    wait(browser, READY)
    assert browser.title == HOSTILE and browser.find_element("id", "name").text == HOSTILE
    assert (
        not browser.find_elements("css selector", "main img") and len(browser.find_elements("tag name", "script")) == 3
    )
    choose(browser, "whole", "")
    directions = "return [...document.querySelectorAll('.text p')].map(p => getComputedStyle(p).direction)"
    assert browser.execute_script(directions) == ["ltr", "rtl"]
    assert "\u202e" not in browser.find_element("css selector", ".document h4").text


def test_the_page_runs_no_script_but_its_own(opened):
    opened.execute_script(
        "const own = document.createElement('script'); own.textContent = 'document.title = `run`';"
        "document.body.append(own); const far = new Image(); far.src = 'http://127.0.0.1:9/x.png';"
        "document.body.append(far);"
    )
    assert opened.title != "run"
    assert all("Content Security Policy" in entry["message"] for entry in opened.get_log("browser"))


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_no_serious_finding_in_any_view(opened, page, serious_findings, width, scheme):
    view_as(opened, width, scheme)
    opened.get(page.as_uri())
    wait(opened, READY)
    opened.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert serious_findings(opened) == []
    assert opened.execute_script("return document.documentElement.scrollWidth") == width
    tops = "return new Set([...document.querySelectorAll('.column')].map(c => c.getBoundingClientRect().top)).size"
    assert opened.execute_script(tops) == (2 if width < 600 else 1), "a phone has one column below the other"


def test_a_planted_fault_is_found(browser, page, serious_findings):
    browser.get(page.as_uri())
    browser.execute_script(
        "document.documentElement.lang = ''; const style = document.querySelector('.subtitle').style;"
        "style.color = '#777'; style.background = '#999';"
    )
    assert {finding.split(":")[0] for finding in serious_findings(browser)} == {"color-contrast", "html-has-lang"}


def test_print_unfolds_all_and_cuts_no_column(opened):
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert len(opened.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"]) > 10_000
        assert opened.execute_script("return [...document.querySelectorAll('details')].every(one => one.open)")
        for selector in ("nav", ".controls"):
            assert (
                opened.execute_script("return getComputedStyle(document.querySelector(arguments[0])).display", selector)
                == "none"
            )
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
