"""The report in headless Chromium: first screen, documents side by side, filters, orders, links, saving, print."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import xml.etree.ElementTree as ET
from itertools import combinations
from urllib.parse import quote

import pytest

from eraser_hub.reports.catalogue import format_number
from eraser_hub.reports.documents import index_documents, unpack
from eraser_hub.reports.marked_instances import MarkedDocument, MarkedInstance, mark_instance
from eraser_hub.reports.page import ReportContent, write_report
from eraser_hub.reports.report_page import make_report
from eraser_hub.scoring.runs import parse_systems
from eraser_hub.scoring.scored_split import read_split
from eraser_hub.scoring.settings import ScoreSettings
from tools.browser import VIEWS, view_as

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HOSTILE = "</script><img src=x onerror=\"document.title='run'\"><script>document.title='run'</script><!--"
NAMES = ("ours", "LR, occlusion", "near & far", "fourth", "fifth", "sixth")
DRAWN = "return document.querySelector('#documents .text') !== null && document.documentElement.dataset.ready === 'yes'"


@pytest.fixture(scope="module")
def written(hub, samples, tmp_path_factory):
    """A report of six systems: the two samples, and copies that drop each second, third .. span."""
    folder, out = samples / "predictions" / "eraser", tmp_path_factory.mktemp("explorer")
    files = [folder / "movies.val.jsonl", folder / "movies.val.baseline.jsonl"]
    lines = [json.loads(line) for line in files[1].read_text("utf-8").splitlines()]
    for step in (2, 3, 4, 5):
        files.append(out / f"copy{step}.jsonl")
        rows = []
        for line in lines:
            rationales = [
                one | {"hard_rationale_predictions": one["hard_rationale_predictions"][::step]}
                for one in line["rationales"]
            ]
            rows.append(json.dumps(line | {"rationales": rationales}) + "\n")
        files[-1].write_text("".join(rows), "utf-8")
    systems = parse_systems([f"{name}={path}" for name, path in zip(NAMES, files, strict=True)])
    settings = ScoreSettings(n_resamples=2000)
    return make_report(
        hub / "eraser",
        config="movies",
        split="val",
        systems=systems,
        baselines=systems[1:2],
        out=out,
        settings=settings,
    )


def wait(browser, script, *arguments):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 20, poll_frequency=0.02).until(
        lambda driver: driver.execute_script(script, *arguments)
    )


def press(browser, key):
    browser.execute_script(
        "document.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], bubbles: true}))", key
    )


def choose(browser, name, value):
    browser.execute_script(
        "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
        "e.dispatchEvent(new Event('change')); e.dispatchEvent(new Event('input'))",
        name,
        value,
    )


def shown_id(browser):
    return browser.find_element("id", "name").text


def listed(browser):
    return browser.execute_script(
        "return [...document.querySelectorAll('#list li')].map(li => [li.querySelector('.name').textContent,"
        "li.querySelector('.sign').textContent, li.querySelector('.value')?.textContent])"
    )


def heads(browser):
    """The systems side by side over the first document."""
    return browser.execute_script(
        "return [...document.querySelectorAll('#documents .document:first-child .column > .facts > b:first-of-type')]"
        ".map(b => b.textContent)"
    )


def find(pattern, page):
    """The first group of a pattern's first match in a page."""
    match = re.search(pattern, page.read_text("utf-8"))
    assert match is not None, pattern
    return match[1]


def open_report(browser, written, state=""):
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(written.page.as_uri() + state)
    wait(browser, DRAWN)


@pytest.fixture
def opened(browser, written):
    open_report(browser, written)
    yield browser
    assert browser.get_log("browser") == [], "the console stays empty"


@pytest.fixture(scope="module")
def index(written):
    return json.loads(find(r'id="index">(.*?)</script>', written.page))


@pytest.fixture(scope="module")
def values(written):
    return unpack(find(r'id="values">([^<]*)<', written.page))


def test_the_first_screen_needs_no_script_and_no_scrolling(browser, written):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(written.page.as_uri())
        findings = browser.find_elements("css selector", ".findings > li")
        assert 1 <= len([one for one in findings if one.is_displayed()]) <= 3
        assert findings[0].location["y"] + findings[0].size["height"] < 400
        assert len(browser.find_elements("css selector", ".panel svg.forest")) == 6
        assert browser.find_element("css selector", ".example .text").is_displayed()
        assert browser.find_element("css selector", "#scores").is_displayed()
        assert not browser.find_element("id", "browser").is_displayed()
        grey = browser.find_elements("css selector", "main .quiet, main .why, main .signature")
        assert all(one.location["y"] > findings[0].location["y"] for one in grey if one.is_displayed())
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_up_to_four_systems_stand_side_by_side(opened):
    boxes = opened.find_elements("css selector", "#systems input")
    assert len(boxes) == 6 and heads(opened) == list(NAMES[:2])
    for box in boxes[2:5]:
        box.click()
    wait(opened, "return document.querySelectorAll('#documents .document:first-child .column').length === 4")
    assert heads(opened) == list(NAMES[1:5]), "a fifth takes the place of the first"
    tops = opened.execute_script(
        "return [...document.querySelectorAll('#documents .column')].map(c => c.getBoundingClientRect().top)"
    )
    assert len(set(tops)) < 4
    gold = "return [...document.querySelectorAll('#documents .column')].map(c => c.querySelectorAll('.m.gold').length)"
    assert len(set(opened.execute_script(gold))) == 1, "the same gold in each"
    folded = opened.find_elements("css selector", "#documents .fold")
    folded[0].click()
    left = opened.find_elements("css selector", "#documents .fold")
    assert len(left) <= len(folded) - 2, "folded lines open in all columns"


def test_orders(opened, index, values):
    def order_of(numbers, reverse=True, size=lambda one: one):
        known = [at for at in range(len(numbers)) if numbers[at] is not None]
        return sorted(known, key=lambda at: (-size(numbers[at]) if reverse else size(numbers[at]), at))

    def shown():
        return [name for name, _, _ in listed(opened)]

    ids = index["ids"]
    choose(opened, "score", "auprc")
    one, two = values[0]["auprc"], values[1]["auprc"]
    differences = [a - b for a, b in zip(one, two, strict=True)]
    confidence = index["confidence"][0]
    for order, wanted in (
        ("disagreement", order_of(index["disagreement"])),
        ("difference", order_of(differences, size=abs)),
        ("unsure", order_of(confidence, reverse=False)),
        ("sure", order_of(confidence)),
        ("up", order_of(one, reverse=False)),
        ("down", order_of(one)),
    ):
        choose(opened, "order", order)
        places = shown()
        assert places == [ids[at] for at in wanted][: len(places)], order
        assert shown_id(opened) == places[0], "a new order begins at its first"
    choose(opened, "order", "suspect")
    f1 = values[0]["token_macro_f1"]
    right = [at for at in order_of(f1, reverse=False) if index["predicted"][0][at] == index["gold"][at]]
    places = shown()
    assert places == [ids[at] for at in right][: len(places)]


def test_a_bin_of_a_histogram_leads_to_its_documents(opened, index, values):
    link = opened.execute_script(
        "const section = document.getElementById('distribution-section'); section.open = true;"
        "const links = [...section.querySelectorAll('#distribution_auprc a')];"
        "const link = links.find(a => a.getAttribute('href').includes('low=0.4&'));"
        "link.scrollIntoView({block: 'center'}); return link"
    )
    link.click()
    wait(opened, "return document.getElementById('score').value === 'auprc'")
    wanted = sum(0.4 <= one < 0.45 for one in values[0]["auprc"])
    assert opened.find_element("id", "found").text == f"{wanted} of {len(index['ids'])}"
    assert opened.switch_to.active_element.get_attribute("id") == "list"


@pytest.mark.parametrize(
    ("link", "key"),
    [
        ("#aopc_sufficiency a[href*='systems=LR']", "sufficiency_aopc"),
        (".panel svg a", "token_macro_f1"),
    ],
)
def test_a_mark_of_a_figure_leads_to_its_systems_documents(opened, values, link, key):
    opened.execute_script(
        "document.getElementById('aopc-section').open = true;"
        "const links = [...document.querySelectorAll(arguments[0])].filter(a => a.getAttribute('href').includes('LR'));"
        "links[0].dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))",
        link,
    )
    wait(opened, "return document.getElementById('score').value === arguments[0]", key)
    wait(opened, "return document.querySelectorAll('#documents .document:first-child .column').length === 1")
    assert heads(opened) == [NAMES[1]] and "order=down" in opened.execute_script("return location.hash")
    shown = [float(value) for _, _, value in listed(opened)]
    assert shown == sorted(shown, reverse=True) and shown[0] == round(max(values[1][key]), 3)


def test_a_score_opens_its_definition(opened):
    from selenium.webdriver.common.keys import Keys

    button = opened.find_element("css selector", "#scores button.about")
    button.click()
    shown = opened.find_element("css selector", "[popover]:popover-open")
    assert "higher is better" in shown.text and "from 0 to" in shown.text and "ours: " in shown.text
    opened.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not shown.is_displayed()


def cells_of(browser):
    return browser.execute_script(
        "return [...document.querySelectorAll('#differences td')].map(td => [td.dataset.system, td.dataset.key,"
        " td.firstChild?.textContent.trim() ?? '', td.querySelector('small')?.textContent ?? ''])"
    )


def test_the_matrix_of_differences_for_every_baseline(opened, written):
    packed = unpack(find(r'id="comparison">([^<]*)<', written.page))
    pairs = dict(zip(combinations(packed["names"], 2), packed["tests"], strict=True))
    turned = {"better": "worse", "worse": "better"}
    for place, against in enumerate(packed["names"]):
        choose(opened, "baseline", str(place))
        cells = cells_of(opened)
        assert len(cells) == 5 * packed["headline"]
        for name, key, text, small in cells:
            at, back = packed["keys"].index(key), (name, against) not in pairs
            test = pairs[(against, name) if back else (name, against)][at]
            word = packed["verdicts"][test[5]]
            word = turned.get(word, word) if back else word
            assert small.endswith(word) and text.startswith("★") == (word == "better")
            assert float(text.strip("★ +")) == float(format_number(-test[0] if back else test[0]))
    choose(opened, "group", "faithfulness")
    assert {key for _, key, _, _ in cells_of(opened)} == {
        key
        for key, group in list(zip(packed["keys"], packed["groups"], strict=True))[packed["headline"] :]
        if group == "faithfulness"
    }
    assert not any("★" in text for _, _, text, _ in cells_of(opened)), "exploratory scores have no star"


def test_the_address_holds_the_whole_state(opened, browser, written, index):
    press(opened, "2")
    choose(opened, "order", "up")
    choose(opened, "label", "1")
    choose(opened, "score", "auprc")
    choose(opened, "low", "0.1")
    before = opened.find_element("id", "place").text
    press(opened, "j")
    wait(opened, "return document.getElementById('place').textContent !== arguments[0]", before)
    opened.find_element("id", "share").click()
    address = opened.find_element("id", "address").get_attribute("value")
    name, names = shown_id(opened), [one for one, _, _ in listed(opened)]
    state = address.partition("#")[2]
    assert f"doc={name}" in state and f"systems={quote('LR, occlusion')}" in state
    assert {"order=up", "label=POS", "score=auprc", "low=0.1"} <= set(state.split("&"))
    browser.get("about:blank")
    browser.get(address)
    wait(browser, DRAWN)
    wait(browser, "return document.getElementById('name').textContent === arguments[0]", name)
    assert [one for one, _, _ in listed(browser)] == names and heads(browser) == ["LR, occlusion"]
    browser.find_element("id", "reset").click()
    assert browser.find_element("id", "found").text == f"{len(index['ids'])} of {len(index['ids'])}"
    wait(browser, "return !location.hash.includes('label=')")


@pytest.mark.parametrize(
    "state", ["#systems=nobody&order=sideways&label=none&score=nope&low=x", "#doc=%E0%A4%A", "#scores"]
)
def test_an_address_of_something_else_shows_the_page(browser, written, state, index):
    open_report(browser, written, state)
    assert browser.find_element("id", "found").text.endswith(f"of {len(index['ids'])}")
    assert browser.get_log("browser") == []


def saved(browser, selector):
    """What a button saves: [name, text], or of a picture its first bytes."""
    return browser.execute_async_script(
        "const done = arguments[1], make = URL.createObjectURL; let blob;"
        "URL.createObjectURL = (one) => { blob = one; return 'about:blank#'; };"
        "HTMLAnchorElement.prototype.click = async function () {"
        "  const name = this.download; URL.createObjectURL = make; delete HTMLAnchorElement.prototype.click;"
        "  const bytes = new Uint8Array(await blob.arrayBuffer());"
        "  const picture = blob.type === 'image/png';"
        "  done([name, picture ? [...bytes.slice(0, 8), bytes.length] : new TextDecoder().decode(bytes)]); };"
        "document.querySelector(arguments[0]).dispatchEvent(new MouseEvent('click', {bubbles: true}))",
        selector,
    )


def test_a_table_is_saved_as_csv_latex_and_markdown(opened):
    bar = "#comparison-section .saving button"
    name, text = saved(opened, f"{bar}:nth-child(1)")
    rows = list(csv.reader(io.StringIO(text)))
    assert name == "differences.csv" and len(rows) == 6 and len({len(row) for row in rows}) == 1
    assert rows[0][0] == "system" and rows[0][2].endswith(", small print")
    assert [row[0] for row in rows[1:]] == [name for name in NAMES if name != "sixth"]
    stars = sum(text.startswith("★") for _, _, text, _ in cells_of(opened))
    name, text = saved(opened, f"{bar}:nth-child(2)")
    assert name == "differences.tex" and text.count(r"\textbf") == text.count("$^{*}$") == stars > 0
    assert r"near \& far" in text and text.count(r"\\") == 6 and "★" not in text
    name, text = saved(opened, f"{bar}:nth-child(3)")
    lines = text.splitlines()
    assert name == "differences.md" and len(lines) == 7 and len({line.count("|") for line in lines}) == 1
    assert text.count("**") == 2 * stars


def test_a_figure_is_saved_as_svg_and_png(opened):
    for figure in (".panel", "#distribution_auprc"):
        name, text = saved(opened, f"{figure} .saving button:nth-child(1)")
        assert name.endswith(".svg") and ET.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
        name, data = saved(opened, f"{figure} .saving button:nth-child(2)")
        assert name.endswith(".png") and data[:8] == [137, 80, 78, 71, 13, 10, 26, 10] and data[8] > 3000

    try:  # from a dark page, to be read on paper
        view_as(opened, 1280, "dark")
        root = ET.fromstring(saved(opened, ".panel .saving button:nth-child(1)")[1])
        assert (root.get("color"), root.get("fill")) == ("#1c1c1c", "currentColor")
        left, top, width, height = map(float, root.get("viewBox").split())
        assert left < 0 and top < 0 and (width, height) == (float(root.get("width")), float(root.get("height")))
    finally:
        view_as(opened)


def test_the_example_leads_to_its_text(opened):
    link = opened.find_element("css selector", ".example a")
    name = link.text
    link.click()
    wait(opened, "return document.getElementById('name').textContent === arguments[0]", name)
    shown = [one.text for one in opened.find_elements("css selector", ".example .facts b:first-of-type")]
    assert heads(opened) == shown and len(shown) == 2


def test_print_cuts_no_column(opened):
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert opened.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        shown = "return getComputedStyle(document.querySelector(arguments[0])).display"
        for selector in ("nav", "#browser .controls", ".saving"):
            assert opened.execute_script(shown, selector) == "none"
        pages = opened.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"]
        assert len(pages) > 10_000
        assert opened.execute_script("return document.getElementById('class-section').open"), "all is unfolded"
        assert opened.execute_script(shown, ".fold") != "none", "what is left out of a text is said"
        tops = "return [...document.querySelectorAll('#aopc-section figure')].map(f => f.getBoundingClientRect().top)"
        assert len(set(opened.execute_script(tops))) == 1, "two figures in a row"
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_large_table_has_one_column_on_a_telephone(opened, browser):
    shown = (
        "const rows = [...document.getElementById('differences').rows];"
        "return [...new Set(rows.map(row => [...row.cells].filter(cell => cell.checkVisibility()).length))]"
    )
    menu = "#comparison-section .picker select"
    assert not opened.find_elements("css selector", menu)
    try:
        view_as(opened, 390, "light")
        choose(opened, "group", "agreement")
        wait(opened, f"return document.querySelector('{menu}') !== null")
        assert opened.execute_script(shown) == [2]
        heads_of = (
            "return [...document.querySelector('#differences thead').rows[0].cells]"
            ".filter(cell => cell.checkVisibility()).map(cell => cell.innerText)"
        )
        second = opened.execute_script(f"return document.querySelector('{menu}').options[1].text")
        opened.execute_script(
            f"const s = document.querySelector('{menu}'); s.value = '1'; s.dispatchEvent(new Event('change'))"
        )
        assert opened.execute_script(heads_of) == ["system", second]
        assert opened.execute_script("return document.documentElement.scrollWidth") == 390
    finally:
        view_as(opened)
    wait(opened, f"return document.querySelector('{menu}') === null")


def test_a_telephone_shows_two_panels_until_all_are_wanted(opened):
    shown = "return [...document.querySelectorAll('.panel')].filter(panel => panel.checkVisibility()).length"
    assert opened.execute_script(shown) == 6
    try:
        view_as(opened, 390, "light")
        assert opened.execute_script(shown) == 2
        opened.find_element("id", "all-panels").click()
        assert opened.execute_script(shown) == 6
        opened.find_element("id", "all-panels").click()
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        assert opened.execute_script(shown) == 6
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        view_as(opened)


def test_focus_is_visible(opened):
    from selenium.webdriver.common.keys import Keys

    opened.execute_script("document.getElementById('find').focus()")
    opened.switch_to.active_element.send_keys(Keys.TAB)
    style = "const s = getComputedStyle(document.activeElement); return [s.outlineStyle, s.outlineWidth]"
    assert opened.execute_script(style) == ["solid", "2px"]


def test_texts_from_right_to_left(browser, row, instance, tmp_path):
    row["documents"][1] = {"docid": "d2", "text": "فيلم رائع جدا"}
    row["evidences"][1][1].update(start_token=0, end_token=1)
    instance["rationales"][1] = {"docid": "d2"}
    marked = [mark_instance(row, instance, label_names=("NEG", "POS"))] * 2
    content = ReportContent("t", "", [], index_documents([marked], ["a", "b"]), [{}, {}])
    write_report(tmp_path / "index.html", content)
    browser.get((tmp_path / "index.html").as_uri())
    wait(browser, DRAWN)
    directions = browser.execute_script(
        "return [...document.querySelectorAll('#documents .document')].map(d => [...d.querySelectorAll('.text p')]"
        ".map(p => getComputedStyle(p).direction))"
    )
    assert set(directions[0]) == {"ltr"} and directions[1] == ["rtl", "rtl"]
    # a name of another script does not turn the words beside it around
    isolated = "return [...document.querySelectorAll('#documents bdi')].map(one => one.textContent)"
    assert set(browser.execute_script(isolated)) == {"d1", "d2", "POS"}


def test_scores_are_those_of_the_score_files(opened, written):
    files = {content["system"]: content for content in (json.loads(path.read_text()) for path in written.score_files)}
    cells = opened.execute_script(
        "return [...document.querySelectorAll('#scores-section td[data-key]')]"
        ".map(td => [td.dataset.system, td.dataset.key, td.firstChild.textContent.trim(),"
        " td.querySelector('small')?.textContent])"
    )
    assert len(cells) > 40
    for system, key, text, small in cells:
        assert text == f"{files[system][key]:.3f}".replace("-0.000", "0.000"), (system, key)
        if small:
            low, high = files[system][f"{key}_ci"]
            interval, *chance = small.split(" · ")
            assert interval == f"[{low:.3f}, {high:.3f}]".replace("-0.000", "0.000")
            assert [one.split()[0] for one in chance] in ([], ["chance"])
    assert set(NAMES) == {system for system, *_ in cells}
    assert all(content["signature"] for content in files.values())


def test_curves_are_drawn_and_a_missing_one_says_why(opened):
    assert opened.find_elements("css selector", "#aopc_comprehensiveness svg")
    said = opened.execute_script("return [...document.querySelectorAll('.why')].map(node => node.textContent)")
    assert any("occluded_scores" in words for words in said)


def test_step_through_documents(opened, hub):
    ids = [row["annotation_id"] for row in read_split(hub / "eraser", "movies", "validation").rows]
    assert shown_id(opened) == ids[0]
    opened.find_element("id", "next").click()
    wait(opened, "return document.getElementById('name').textContent === arguments[0]", ids[1])
    for key, place in (("j", 2), ("ArrowRight", 3), ("k", 2), ("ArrowLeft", 1)):
        press(opened, key)
        wait(opened, "return document.getElementById('name').textContent === arguments[0]", ids[place])
    opened.find_element("id", "previous").click()
    opened.find_element("id", "previous").click()  # there is none before the first
    wait(opened, "return document.getElementById('name').textContent === arguments[0]", ids[0])
    assert opened.find_element("id", "place").text == f"1 / {len(ids)}"


def test_marks_are_those_of_the_row(opened, hub, samples):
    table = read_split(hub / "eraser", "movies", "validation")
    row = table.rows[0]
    text = (samples / "predictions" / "eraser" / "movies.val.jsonl").read_text()
    output = next(i for i in map(json.loads, text.splitlines()) if i["annotation_id"] == row["annotation_id"])
    marked = mark_instance(row, output, label_names=table.labels.names).documents[0]
    if not opened.find_element("id", "unfold").is_selected():
        press(opened, "u")
    wait(opened, "return document.querySelector('#documents .fold') === null")
    tokens = [token for sentence in marked.sentences for token in sentence]
    words = opened.execute_script(
        "return [...document.querySelectorAll('#view .column:first-child .text p')].flatMap(p => {"
        "const c = p.cloneNode(true);"
        "c.querySelectorAll('.m').forEach(m => m.remove()); return c.textContent.split(' ') })"
    )
    assert words == tokens
    for css, mask in ((".g", [bool(g) for g in marked.groups_at()]), (".h", marked.predicted_at())):
        shown = opened.execute_script(
            "return [...document.querySelectorAll('#documents .column:first-child .text span')]"
            ".filter(s => s.matches(arguments[0]))"
            ".map(s => s.textContent.trim()).join(' ').split(/\\s+/)",
            css,
        )
        assert " ".join(shown).split() == [token for token, on in zip(tokens, mask, strict=True) if on]
    press(opened, "u")


def test_filters_and_order(opened, hub, index):
    table = read_split(hub / "eraser", "movies", "validation")
    press(opened, "2")
    choose(opened, "verdict", "wrong")
    assert {sign for _, sign, _ in listed(opened)} == {"✗"}
    choose(opened, "verdict", "")
    choose(opened, "label", "0")
    negatives = [row["annotation_id"] for row in table.rows if table.labels.names[row["classification"]] == "NEG"]
    assert opened.find_element("id", "found").text == f"{len(negatives)} of {len(table.rows)}"
    choose(opened, "label", "")
    longest = sorted(index["lengths"])[5]
    choose(opened, "longest", str(longest))
    names = [name for name, _, _ in listed(opened)]
    assert names == [one for one, size in zip(index["ids"], index["lengths"], strict=True) if size <= longest]
    choose(opened, "longest", "")
    choose(opened, "score", "auprc")
    choose(opened, "order", "up")
    values = [float(value) for _, _, value in listed(opened)]
    assert values == sorted(values) and len(values) > 10
    choose(opened, "low", str(values[3] + 0.0006))
    assert all(float(value) >= values[3] for _, _, value in listed(opened))
    choose(opened, "high", "-5")
    assert shown_id(opened) == "nothing matches the filter"
    press(opened, "j")
    press(opened, "k")
    choose(opened, "low", "")
    choose(opened, "high", "")
    opened.find_element("id", "find").send_keys(table.rows[2]["annotation_id"].upper())
    wait(opened, "return document.getElementById('name').textContent === arguments[0]", table.rows[2]["annotation_id"])


def test_keys_do_not_fire_while_typing(opened):
    before = shown_id(opened)
    opened.find_element("id", "find").send_keys("jjj")
    assert opened.find_element("id", "find").get_attribute("value") == "jjj"
    opened.find_element("id", "find").clear()
    choose(opened, "find", "")
    assert shown_id(opened) == before


def test_systems_by_number_and_marks_by_letter(opened):
    assert heads(opened) == list(NAMES[:2])
    press(opened, "2")
    wait(opened, "return document.querySelectorAll('#documents .column').length === 1")
    assert heads(opened) == [NAMES[1]]
    shifted = "document.dispatchEvent(new KeyboardEvent('keydown', {key: '!', code: 'Digit1', shiftKey: true}))"
    opened.execute_script(shifted)
    wait(opened, "return document.querySelectorAll('#documents .column').length === 2")
    assert heads(opened) == [NAMES[1], NAMES[0]]
    for key, name in (("g", "nogold"), ("p", "nopred"), ("s", "nosoft")):
        for wanted in (True, False):
            press(opened, key)
            assert (name in opened.find_element("id", "view").get_attribute("class").split()) == wanted


def test_it_opens_from_disk_without_a_network(opened, written, tmp_path):
    text = written.page.read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    moved = shutil.copy(written.page, tmp_path / "elsewhere.html")
    opened.get(f"file://{moved}")
    wait(opened, "return document.querySelector('#documents .text') !== null")
    assert opened.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_hostile_text_is_shown_and_never_run(browser, row, instance, tmp_path):
    docid = HOSTILE.replace(" ", "\u00a0")
    row["documents"][1] = {"docid": docid, "text": f"{HOSTILE} \u202eevil \x1b[31m \ud800 __proto__ &lt;b&gt;"}
    row["evidences"][1][1].update(docid=docid, start_token=0, end_token=3)
    instance["rationales"][1] = {"docid": docid}
    row["annotation_id"] = instance["annotation_id"] = row["query"] = HOSTILE
    instance["classification"] = "__proto__"
    instance["classification_scores"] = {"__proto__": 0.75, HOSTILE: 0.25}
    instance["quotes"] = [{"text": HOSTILE, "status": "not_found"}]
    path = tmp_path / "index.html"
    browsed = index_documents([[mark_instance(row, instance, label_names=(HOSTILE, "__proto__"))]], [HOSTILE])
    write_report(path, ReportContent(HOSTILE, HOSTILE, [], browsed, [{HOSTILE: [0.5]}], HOSTILE, [HOSTILE]))
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(path.as_uri())
    wait(browser, "return document.querySelectorAll('#documents .text').length === 2")
    assert browser.title == HOSTILE
    assert shown_id(browser).split() == HOSTILE.split()
    assert (
        browser.execute_script("return document.images.length + document.querySelectorAll('main script').length") == 0
    )
    text = browser.execute_script("return document.querySelectorAll('#documents .text')[1].textContent")
    quote = browser.execute_script("return document.querySelector('#documents .quotes li').textContent")
    assert quote.startswith("not found ") and "onerror=" in quote
    assert "onerror=" in text and "<U+202E>evil" in text and "␛[31m" in text and "&lt;b&gt;" in text
    assert browser.get_log("browser") == []


def test_ten_thousand_instances_open_at_once(browser, tmp_path):
    """All of them are listed and the last can be reached."""
    words = tuple(tuple(f"w{i}" for i in range(10)) for _ in range(3))
    many = (
        [MarkedInstance(f"i{k}", "", "POS", (MarkedDocument(f"d{k}", words, ((k % 20, k % 20 + 5, 0),)),))]
        for k in range(10_000)
    )
    write_report(tmp_path / "index.html", ReportContent("t", "", [], index_documents(many, []), []))
    browser.get((tmp_path / "index.html").as_uri())
    wait(browser, "return document.querySelector('#documents .text') !== null")
    assert browser.find_element("id", "found").text == "10000 of 10000"
    assert browser.execute_script("return document.querySelectorAll('#list li').length") < 100
    browser.execute_script("document.getElementById('list').focus()")
    press(browser, "End")
    wait(browser, "return document.getElementById('name').textContent === 'i9999'")
    assert browser.get_log("browser") == []


def test_gold_alone_offers_nothing_of_a_prediction(browser, hub, tmp_path):
    """Without predictions the page has no marks, filters or legend of theirs; class tables stay inside the page."""
    written = make_report(hub / "eraser", config="movies", split="val", systems=[], out=tmp_path)
    browser.get(written.page.as_uri())
    wait(browser, "return document.querySelector('#documents .text') !== null")
    browser.find_element("css selector", ".filters summary").click()
    for name in ("systems", "verdict", "score", "order", "show-pred", "show-soft"):
        assert not browser.find_element("id", name).is_displayed(), name
    assert browser.find_element("id", "show-gold").is_displayed() and browser.find_element("id", "label").is_displayed()
    assert "predicted rationale" not in browser.find_element("css selector", ".legend").text


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_nothing_scrolls_sideways(opened, width, scheme):
    try:
        view_as(opened, width, scheme)
        for box in opened.find_elements("css selector", "#systems input")[2:4]:
            opened.execute_script("arguments[0].click()", box)
        wait(opened, "return document.querySelectorAll('#documents .document:first-child .column').length === 4")
        opened.execute_script("document.querySelectorAll('main details').forEach(one => { one.open = true; })")
        assert opened.execute_script("return document.documentElement.scrollWidth") == width
        figures = "return [...document.querySelectorAll('figure svg')].map(s => s.getBoundingClientRect().right)"
        assert max(opened.execute_script(figures)) <= width
        colours = (
            "return [getComputedStyle(document.querySelector('figure svg text')).fill,"
            " getComputedStyle(document.body).color]"
        )
        text, ink = opened.execute_script(colours)
        assert text == ink == {"light": "rgb(28, 28, 28)", "dark": "rgb(233, 233, 231)"}[scheme]
    finally:
        view_as(opened)


def test_documents_are_one_key_away_and_sections_one_link(opened):
    opened.execute_script("window.scrollTo(0, 0)")
    press(opened, "d")
    wait(opened, "return document.getElementById('documents-section').getBoundingClientRect().top < innerHeight")
    assert opened.switch_to.active_element.get_attribute("id") == "list"
    opened.find_element("css selector", 'nav a[href="#class-section"]').click()
    assert opened.find_element("id", "class-section").get_attribute("open") is not None
    press(opened, "u")  # a long text scrolls in its own place, and the next begins at its top
    opened.execute_script("document.getElementById('documents').style.maxHeight = '100px'")
    wait(opened, "const d = document.getElementById('documents'); d.scrollTop = 50; return d.scrollTop === 50")
    press(opened, "j")
    wait(opened, "return document.getElementById('documents').scrollTop === 0")
    press(opened, "u")
