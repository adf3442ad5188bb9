"""The report in headless Chromium: it shows what the score files hold; stepping, filters, keys; text is text."""

from __future__ import annotations

import json
import shutil

import pytest

from eraser_hub.reports.documents import index_documents
from eraser_hub.reports.marked_instances import mark_instance
from eraser_hub.reports.page import ReportContent, write_report
from eraser_hub.reports.report_page import make_report
from eraser_hub.scoring.runs import parse_systems
from eraser_hub.scoring.scored_split import read_split
from eraser_hub.scoring.settings import ScoreSettings

pytestmark = pytest.mark.browser
HOSTILE = "</script><img src=x onerror=\"document.title='run'\"><script>document.title='run'</script><!--"


@pytest.fixture(scope="module")
def written(hub, samples, tmp_path_factory):
    out = tmp_path_factory.mktemp("report")
    predictions = samples / "predictions" / "eraser"
    systems = parse_systems(
        [f"ours={predictions / 'movies.val.jsonl'}", f"base={predictions / 'movies.val.baseline.jsonl'}"]
    )
    settings = ScoreSettings(n_resamples=50)
    part = {"config": "movies", "split": "val"}
    drawn = parse_systems([f"chance={predictions / 'movies.val.baseline.jsonl'}"])
    return make_report(hub / "eraser", **part, systems=systems, out=out, baselines=drawn, settings=settings)


@pytest.fixture
def opened(browser, written):
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(written.page.as_uri())
    wait(browser, "return document.querySelector('#documents .text') !== null")
    yield browser
    assert browser.get_log("browser") == [], "the console stays empty"


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
    assert {"ours", "base"} == {system for system, *_ in cells}
    assert all(content["signature"] for content in files.values())


def test_sections_are_there_and_missing_ones_say_why(opened):
    titles = [h.text for h in opened.find_elements("css selector", "h2")]
    assert titles == [
        "Documents",
        "Scores",
        "Paired comparison",
        "Erasure curves (AOPC)",
        "Fidelity curves",
        "Per-instance scores",
        "By class",
        "Provenance and notes",
    ]
    assert opened.find_elements("css selector", "#aopc_comprehensiveness svg")
    said = "return [...document.querySelectorAll(arguments[0])].map(node => node.textContent)"
    assert any("random" in words for words in opened.execute_script(said, "#aopc_sufficiency svg text"))
    assert any("occluded_scores" in words for words in opened.execute_script(said, ".why"))


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


def test_filters_and_order(opened, hub, written):
    table = read_split(hub / "eraser", "movies", "validation")
    press(opened, "2")
    choose(opened, "verdict", "wrong")
    assert {sign for _, sign, _ in listed(opened)} == {"✗"}
    choose(opened, "verdict", "")
    choose(opened, "label", "0")
    negatives = [row["annotation_id"] for row in table.rows if table.labels.names[row["classification"]] == "NEG"]
    assert opened.find_element("id", "found").text == f"{len(negatives)} of {len(table.rows)}"
    choose(opened, "label", "")
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


def heads(browser):
    """The systems side by side over the first document."""
    return browser.execute_script(
        "return [...document.querySelectorAll('#documents .document:first-child .column > .facts > b:first-of-type')]"
        ".map(b => b.textContent)"
    )


def test_systems_by_number_and_marks_by_letter(opened):
    assert heads(opened) == ["ours", "base"]
    press(opened, "2")
    wait(opened, "return document.querySelectorAll('#documents .column').length === 1")
    assert heads(opened) == ["base"]
    shifted = "document.dispatchEvent(new KeyboardEvent('keydown', {key: '!', code: 'Digit1', shiftKey: true}))"
    opened.execute_script(shifted)
    wait(opened, "return document.querySelectorAll('#documents .column').length === 2")
    assert heads(opened) == ["base", "ours"]
    press(opened, "g")
    assert "nogold" in opened.find_element("id", "view").get_attribute("class")
    press(opened, "g")
    assert "nogold" not in opened.find_element("id", "view").get_attribute("class")


def test_a_link_opens_its_instance(opened, written, hub):
    identity = read_split(hub / "eraser", "movies", "validation").rows[5]["annotation_id"]
    opened.get("about:blank")
    opened.get(f"{written.page.as_uri()}#doc={identity}")
    wait(opened, "return document.getElementById('name').textContent === arguments[0]", identity)


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
    from eraser_hub.reports.marked_instances import MarkedDocument, MarkedInstance

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


def test_tables_fit_into_the_page(opened):
    wide = opened.execute_script(
        "return [...document.querySelectorAll('main .scroll')].filter(d => d.scrollWidth > d.clientWidth + 1).length"
    )
    crossing = opened.execute_script(
        "return [...document.querySelectorAll('main th')].filter(th => th.scrollWidth > th.clientWidth + 1).length"
    )
    assert (wide, crossing) == (0, 0)


def test_a_figure_alone_has_the_size_of_its_neighbours(opened):
    """MAP's histogram stands alone in a section, and filled the page's whole width."""
    alone = opened.execute_script(
        "const all = [...document.querySelectorAll('.figures')].find(d => d.children.length > 1);"
        "const before = all.children[0].getBoundingClientRect().width;"
        "while (all.children.length > 1) all.lastElementChild.remove();"
        "return [before, all.children[0].getBoundingClientRect().width]"
    )
    assert alone[0] == alone[1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_page_shows_all_without_sideways_scrolling(opened, scheme):
    from tools.browser import view_as

    try:
        view_as(opened, 390, scheme)
        assert opened.execute_script("return document.documentElement.scrollWidth") == 390
        wide = "return [...document.querySelectorAll('.scroll')].filter(d => d.scrollWidth > d.clientWidth + 1).length"
        assert opened.execute_script(wide) == 0
        figures = "return [...document.querySelectorAll('figure svg')].map(s => s.getBoundingClientRect().right)"
        assert max(opened.execute_script(figures)) <= 390
        colours = (
            "return [getComputedStyle(document.querySelector('figure svg text')).fill,"
            " getComputedStyle(document.body).color]"
        )
        text, ink = opened.execute_script(colours)
        assert text == ink == {"light": "rgb(28, 28, 28)", "dark": "rgb(233, 233, 231)"}[scheme]
    finally:
        view_as(opened)


def test_documents_are_one_key_away(opened):
    opened.execute_script("window.scrollTo(0, 0)")
    assert [link.text for link in opened.find_elements("css selector", "nav a")][:2] == ["Findings", "Documents"]
    press(opened, "d")
    wait(opened, "return document.getElementById('documents-section').getBoundingClientRect().top < innerHeight")
    assert opened.switch_to.active_element.get_attribute("id") == "list"
