"""The explorer's Space: its values are the modules', its page takes every interaction, and wrong input is a message."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eraser_hub.publishing.explorer import DATA, MODULES, PAGE, PICTURE
from eraser_hub.publishing.explorer_space import EXPLORER, build_explorer, build_spaces, make_explorer_files
from eraser_hub.records.errors import DataError
from tools.browser import VIEWS, running_apps, view_as, wait_for

from ..refusals import refused

gradio = pytest.importorskip("gradio", reason="skipped: gradio is not installed")
PLACE = {"dataset": "samples", "config": "movies", "split": "validation", "id": "posR_090.txt"}
ON_MARKS = ("token_macro_f1", "iou_macro_f1", "sentence_macro_f1", "comprehensiveness", "sufficiency")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return build_explorer(tmp_path_factory.mktemp("hub"))


@pytest.fixture(scope="module")
def page(folder):
    """The app of the package, which computes with the modules of the built Space."""
    from eraser_hub.publishing.explorer import app, explorer_scores

    explorer_scores.load_module.cache_clear()
    built = folder / "explorer_scores.py"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explorer_scores, "__file__", str(built))
        yield app
    explorer_scores.load_module.cache_clear()


@pytest.fixture(scope="module")
def modules(folder):
    """The modules, loaded as a user loads them."""
    import evaluate

    return {name: evaluate.load(str(folder / "metrics" / f"{name}.py")) for name in MODULES}


# -- the folder -------------------------------------------------------------------------------------------------------


def test_the_folder_holds_page_data_and_the_closure_of_the_modules(folder):
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names == set(make_explorer_files())
    assert f"({PICTURE})" in (folder / "README.md").read_text(encoding="utf-8")
    assert {*PAGE, *DATA, PICTURE, "README.md", "requirements.txt", "metrics/catalogue.json"} <= names
    assert {f"metrics/{name}.py" for name in (*MODULES, "tokens", "app_rows", "schema_record")} <= names
    assert not any("eraser_hub" in line for line in (folder / "app.py").read_text().splitlines() if "import" in line)


def test_another_folder_of_that_name_is_not_replaced(tmp_path):
    (tmp_path / EXPLORER).mkdir()
    (tmp_path / EXPLORER / "mine.txt").write_text("x")
    with refused("file-exists", "build metrics", "explorer.js"):
        build_explorer(tmp_path)


def test_build_metrics_builds_it_with_the_others_or_alone(tmp_path):
    assert build_spaces(tmp_path, [EXPLORER]) == [tmp_path / EXPLORER]
    assert [path.name for path in build_spaces(tmp_path, ["perturbation_map"])] == ["perturbation_map"]
    assert build_spaces(tmp_path)[-1] == tmp_path / EXPLORER
    with pytest.raises(DataError, match="no metric 'nothing'"):
        build_spaces(tmp_path, ["nothing", EXPLORER])


def test_it_is_published_as_the_others(folder, tmp_path):
    from eraser_hub.publishing.options import PublishArguments
    from eraser_hub.publishing.publish import publish

    build_explorer(tmp_path)
    said: list[str] = []
    what = PublishArguments("org", tmp_path, metrics=[EXPLORER], dry_run=True)
    assert publish(what, say=said.append) == []
    assert said[0].startswith(f"space org/{EXPLORER}: ") and any("metrics/tokens.py" in line for line in said)
    (tmp_path / EXPLORER / "explorer.js").write_text("alert(1)")
    with refused("file-changed", "not as `eraser-hub build metrics` wrote it"):
        publish(what, say=said.append)


@pytest.mark.slow
def test_its_files_import_without_the_package(folder):
    """As in a Space, which has no eraser_hub."""
    code = (
        "import sys; sys.modules['eraser_hub'] = None; sys.path.insert(0, '.')\n"
        "import app, json; answer = app.score({**json.loads(sys.argv[1]), 'marks': [1], 'soft': None})\n"
        "print(json.dumps(answer['values']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(PLACE)], cwd=folder, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["token_macro_f1"] == 0.0


@pytest.mark.slow
def test_the_data_are_what_the_samples_give():
    """Of the model the probabilities are compared: weights differ in their last digits between libraries."""
    from eraser_hub.publishing.explorer.explorer_model import WordCountModel, read_models
    from tools.explorer import FOLDER, make_data

    made = make_data()
    assert (FOLDER / "samples.json").read_text(encoding="utf-8") == made["samples.json"]
    kept, fresh = read_models(FOLDER)["movies"], WordCountModel(json.loads(made["model.json"])["movies"])
    assert (kept.labels, kept.texts) == (fresh.labels, fresh.texts) == (["NEG", "POS"], 27)
    for row in json.loads(made["samples.json"])["corpora"]["movies"]["splits"]["validation"]:
        tokens = row["documents"][0]["text"].split()
        assert kept.predict(tokens) == pytest.approx(fresh.predict(tokens), abs=1e-3)
        answer = kept.predict(tokens)
        assert max(answer, key=lambda label: answer[label]) == row["classification"]


# -- the values -------------------------------------------------------------------------------------------------------


CONFIGS = ["movies", "fever", "multirc", "esnli", "cose", "boolq", "evidence_inference"]


def expect_equal(page, modules, place, marks, soft):
    """Compare the page's scores of marks and soft scores with the module's, made from the row by other code."""
    from eraser_hub.publishing.explorer.explorer_data import read_row

    row = read_row(*(place[key] for key in ("dataset", "config", "split", "id")))
    tokens = [(one["docid"], at) for one in row["documents"] for at in range(len(one["text"].split()))]
    result = page.score(place | {"marks": marks, "soft": soft})
    rationales = []
    for docid in (one["docid"] for one in row["documents"]):
        spans = [{"start_token": at, "end_token": at + 1} for name, at in (tokens[m] for m in marks) if name == docid]
        rationales.append({"docid": docid, "hard_rationale_predictions": spans})
        if soft:
            scores = [score for (name, _), score in zip(tokens, soft, strict=True) if name == docid]
            rationales[-1]["soft_rationale_predictions"] = scores
    instance = {"annotation_id": row["annotation_id"], "rationales": rationales}
    expected = modules["eraser_agreement"].compute(predictions=[instance], references=[row])
    # adjacent tokens are one span to the page, so scores of spans are compared in the browser's test
    for key in ("token_macro_f1", "sentence_macro_f1", "auprc"):
        assert result["values"].get(key) == expected.get(key), (place, key, marks)
    assert f'data-value="{expected["token_macro_f1"]!r}"' in result["agreement"]


@pytest.mark.parametrize("config", CONFIGS)
def test_values_are_the_modules_to_the_last_digit(page, modules, config):
    """On the gold evidence, a sample system's marks, no marks, and all tokens, of the first text of each corpus."""
    place = PLACE | {"config": config, "id": page.list_split(PLACE | {"config": config})["ids"][0]}
    text = page.open_instance(place)
    size = sum(len(one["text"].split()) for one in text["documents"])
    expect_equal(page, modules, place, text["gold"], None)
    expect_equal(page, modules, place, [], None)
    expect_equal(page, modules, place, list(range(size)), None)
    for system in text["systems"].values():
        expect_equal(page, modules, place, system["marks"], system["soft"])


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS)
def test_values_of_every_sample_text_are_the_modules(page, modules, config):
    """Every second gold token with every fifth token, and the systems' own, of all texts of all splits."""
    for split in ("validation", "test", "train"):
        for identity in page.list_split(PLACE | {"config": config, "split": split})["ids"]:
            place = PLACE | {"config": config, "split": split, "id": identity}
            text = page.open_instance(place)
            size = sum(len(one["text"].split()) for one in text["documents"])
            expect_equal(page, modules, place, sorted({*text["gold"][::2], *range(0, size, 5)}), None)
            for system in text["systems"].values():
                expect_equal(page, modules, place, system["marks"], system["soft"])


def test_the_small_model_answers_erased_texts(page, modules):
    """p(whole) - p(without), by hand from model.json; AOPC is the mean over five lengths."""
    import math

    from eraser_hub.publishing.explorer.explorer_data import read_row

    model = json.loads((Path(page.HERE) / "model.json").read_text())["movies"]
    tokens = read_row("samples", "movies", "validation", PLACE["id"])["documents"][0]["text"].split()

    def p(kept):
        logit = sum(model["intercepts"]) + sum(model["weights"].get(tokens[at].lower(), [0, 0])[1] for at in kept)
        return 1 / (1 + math.exp(-logit))

    everything = set(range(len(tokens)))
    system = page.open_instance(PLACE)["systems"][page.OWN_WEIGHTS]
    values = page.score(PLACE | system)["values"]
    marks = set(system["marks"])
    assert values["comprehensiveness"] == pytest.approx(p(everything) - p(everything - marks), abs=1e-12)
    assert values["sufficiency"] == pytest.approx(p(everything) - p(marks), abs=1e-12)
    order = sorted(everything, key=lambda at: (-system["soft"][at], at))
    drops = [
        p(everything) - p(everything - set(order[: math.ceil(share * len(tokens))]))
        for share in (0.01, 0.05, 0.1, 0.2, 0.5)
    ]
    assert values["comprehensiveness_aopc"] == pytest.approx(sum(drops) / 5, abs=1e-12)
    assert values["comprehensiveness"] > 0.3 > values["sufficiency"], "the first text that the page shows is telling"


def test_erasing_nothing_and_everything_are_the_ends(page):
    size = len(page.open_instance(PLACE)["documents"][0]["text"].split())
    nothing = page.score(PLACE | {"marks": [], "soft": None})["values"]
    everything = page.score(PLACE | {"marks": list(range(size)), "soft": None})["values"]
    assert nothing["comprehensiveness"] == 0.0 and everything["sufficiency"] == 0.0
    assert nothing["sufficiency"] == everything["comprehensiveness"]


def test_quotes_annotators_and_pairs_are_the_modules(page, modules):
    text = page.open_instance(PLACE)
    words = text["documents"][0]["text"].split()
    said = [" ".join(words[3:6]), " ".join(words[7:9]).upper(), "words that nobody wrote"]
    result = page.quotes(PLACE | {"quotes": [*said, " "]})
    expected = modules["quote_faithfulness"].compute(
        predictions=[{"id": "a", "quotes": said}], references=[{"id": "a", "text": text["documents"][0]["text"]}]
    )
    assert result["values"] == {key: expected[key] for key in ("in_text", "invented", "coverage")}
    assert [(one["status"], one["place"]) for one in result["quotes"]] == [
        ("exact", [3, 6]),
        ("normalised", [7, 9]),
        ("not_found", None),
    ]
    marks = [[0, 1, 2], [1, 2, 9]]
    rows = [[int(at in one) for at in range(len(words))] for one in marks]
    expected = modules["annotator_agreement"].compute(references=[{"annotation_id": "a", "annotators": rows}])
    result = page.annotators(PLACE | {"marks": marks})
    assert result["values"] == {key: expected[key] for key in ("krippendorff_alpha", "pairwise_kappa", "cohen_kappa")}
    assert "(observed − by chance) / (1 − by chance): (0." in result["html"]
    # two of three tokens shared, the last on the first place: prefixes 0/1, 1/2, 2/3
    result = page.pair({"pair": 0, "ranked": [[3, 7, 9], [3, 7, 9]]})
    assert result["values"] == {"map": pytest.approx((0 + 1 / 2 + 2 / 3) / 3)}


def test_wrong_input_is_a_message(page):
    assert page.list_split(PLACE | {"config": "nothing"}) == {"error": "the samples have no nothing, validation"}
    assert "no instance 'x'" in page.open_instance(PLACE | {"id": "x"})["error"]
    assert page.list_split(PLACE | {"dataset": "org/nothing"})["error"].startswith("gold: org/nothing, movies")
    for request in ({}, {"pair": 99, "ranked": [[], []]}, {"pair": 0, "ranked": [[99], []]}):
        assert set(page.pair(request)) == {"error"}
    assert set(page.annotators(PLACE | {"marks": 3})) == {"error"}
    assert "Error" in page.score(PLACE | {"marks": [1], "soft": [0.5]})["error"], "a score for each token"
    assert page.annotators(PLACE | {"marks": [[], []]})["values"]["pairwise_kappa"] is None, "undefined"


def test_text_of_a_dataset_is_never_markup(page, monkeypatch):
    data = importlib.import_module("eraser_hub.publishing.explorer.explorer_data")
    hostile = "<img src=x onerror=alert(1)> </script> ${1} {{2}}"
    samples = json.loads(json.dumps(data.read_samples()))
    samples["pairs"][0]["tokens"][0][0] = hostile
    monkeypatch.setattr(page, "read_samples", lambda: samples)
    (block,) = page.build_page().blocks.values()
    assert "<img" not in block.js_on_load and "</script>" not in block.js_on_load
    answer = page.quotes(PLACE | {"quotes": [hostile]})
    assert "<img" not in answer["html"] and answer["quotes"][0]["status"] == "not_found"


def test_a_dataset_beside_it_is_explored(page, tmp_path, monkeypatch, hub):
    data = importlib.import_module("eraser_hub.publishing.explorer.explorer_data")
    monkeypatch.setattr(data, "HERE", hub / EXPLORER)
    data.load_rows.cache_clear()
    place = {**PLACE, "dataset": "eraser"}
    assert page.list_split(place) == {"ids": page.list_split(PLACE)["ids"], "total": 24}
    request = {"marks": [3, 4, 5], "soft": None}
    assert page.open_instance(place)["label"] == "POS"
    assert page.score(place | request)["values"] == page.score(PLACE | request)["values"]
    assert page.open_instance(place)["systems"].keys() == {page.OWN_WEIGHTS}, "no sample system for other data"


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """The sample corpus movies, built."""
    from eraser_hub import samples
    from eraser_hub.conversion import HUB_DATASETS

    out = tmp_path_factory.mktemp("built")
    HUB_DATASETS["eraser"].build(["movies"], out=out, source=samples.path("eraser"))
    return out


# -- in the browser ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def address(browser, folder):
    with running_apps([folder]) as (url,):
        yield url
    view_as(browser)


def open_explorer(browser, address, link="", content="[data-scored] [data-key]"):
    browser.get("about:blank")
    browser.get(f"{address}#{link}")
    wait_for(browser, lambda page: page.find_elements("css selector", content), content)
    settle(browser)


def settle(browser):
    """Wait until no answer is awaited, and none came for 0.3 s."""
    before = None
    for _ in range(200):
        script = "const page = document.querySelector('[data-scored]'); return [page.dataset.scored, page.ariaBusy]"
        now = browser.execute_script(script)
        if now == before and now[1] == "false":
            return
        before = now
        time.sleep(0.3)


def values(browser):
    """The exact values that the page shows."""
    script = (
        "return [...document.querySelectorAll('[data-key]')].filter((item) => item.checkVisibility())"
        ".map((item) => [item.dataset.key, item.dataset.value])"
    )
    return {key: float(value) for key, value in browser.execute_script(script)}


def marked(browser):
    script = "return [...document.querySelectorAll('.text [aria-selected=true]')].map(e => Number(e.dataset.at))"
    return browser.execute_script(script)


def pick(browser, selector, value):
    from selenium.webdriver.support.ui import Select

    Select(browser.find_element("css selector", selector)).select_by_value(value)
    settle(browser)


def press(browser, selector):
    browser.find_element("css selector", selector).click()
    settle(browser)


def text_shown(browser, selector):
    return browser.find_element("css selector", selector).text


@pytest.mark.browser
@pytest.mark.slow
def test_marks_by_mouse_keys_and_touch_move_all_scores(browser, address, page):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    open_explorer(browser, address)
    press(browser, "[data-do=clear]")
    assert marked(browser) == [] and values(browser)["comprehensiveness"] == 0.0

    def token(at):
        return browser.find_element("id", f"token-{at}")

    def equal():
        expected = page.score(PLACE | {"marks": marked(browser), "soft": None})["values"]
        shown = values(browser)
        assert {key: shown[key] for key in ON_MARKS} == {key: expected[key] for key in ON_MARKS}

    token(5).click()
    settle(browser)
    assert marked(browser) == [5]
    equal()
    ActionChains(browser).click_and_hold(token(20)).move_to_element(token(22)).release().perform()
    settle(browser)
    assert marked(browser) == [5, 20, 21, 22]
    equal()
    token(5).click()
    settle(browser)
    assert marked(browser) == [20, 21, 22]
    keys = ActionChains(browser).send_keys(Keys.ARROW_RIGHT, Keys.SPACE)
    keys.key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT).key_up(Keys.SHIFT).perform()
    settle(browser)
    assert marked(browser) == [6, 7, 8, 20, 21, 22]
    equal()
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", token(30))
    box = browser.execute_script("const r = arguments[0].getBoundingClientRect(); return [r.x + 4, r.y + 8]", token(30))
    touch = {"type": "touchStart", "touchPoints": [{"x": box[0], "y": box[1]}]}
    browser.execute_cdp_cmd("Input.dispatchTouchEvent", touch)
    browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    settle(browser)
    assert marked(browser) == [6, 7, 8, 20, 21, 22, 30]
    equal()


@pytest.mark.browser
@pytest.mark.slow
def test_brushing_leaves_the_system_as_it_is(browser, address, page):
    open_explorer(browser, address)
    name, system = next((name, one) for name, one in page.open_instance(PLACE)["systems"].items() if one["soft"])
    place, other = next((place, 0.1 if score > 0.5 else 0.9) for place, score in enumerate(system["soft"]))
    pick(browser, "#system", "gold")
    pick(browser, "#system", name)
    shown = values(browser)
    browser.get("about:blank")
    open_explorer(browser, address, f"system={name}")
    press(browser, "[data-tool=brush]")
    browser.execute_script("document.querySelector('#strength').value = arguments[0]", other)
    browser.find_element("id", f"token-{place}").click()
    settle(browser)
    pick(browser, "#system", name)
    assert values(browser) == shown


def test_ids_of_a_split_are_read_once(page, monkeypatch):
    from eraser_hub.publishing.explorer import explorer_data

    class Rows(list):
        reads = 0

        def __iter__(self):
            Rows.reads += 1
            return super().__iter__()

    texts = [{"annotation_id": f"{at}", "classification": "A", "documents": [{"text": "a"}]} for at in range(600)]
    rows = Rows(texts)
    monkeypatch.setattr(explorer_data, "load_rows", lambda *_: rows)
    of = ("org/data", "config", "split")
    assert explorer_data.list_instances(*of) == {"ids": [f"{at}" for at in range(500)], "total": 600}
    assert [explorer_data.read_row(*of, f"{at}")["annotation_id"] for at in (3, 599)] == ["3", "599"]
    assert Rows.reads == 1


@pytest.mark.browser
@pytest.mark.slow
def test_systems_brush_curves_and_deep_links(browser, address, page):
    open_explorer(browser, address)
    text = page.open_instance(PLACE)
    for name, system in text["systems"].items():
        pick(browser, "#system", name)
        assert marked(browser) == system["marks"]
        expected = page.score(PLACE | system)["values"]
        assert {key: value for key, value in values(browser).items() if key in expected} == expected
        assert len(browser.find_elements("css selector", "#curves polyline")) == 2
    pick(browser, "#system", "gold")
    assert marked(browser) == text["gold"] and values(browser)["token_macro_f1"] == 1.0
    assert "precision 10 / 10, recall 10 / 10: 2 × 1.00 × 1.00 / (1.00 + 1.00) = 1.00" in text_shown(
        browser, "#agreement"
    )
    press(browser, "[data-do=clear]")
    assert not browser.find_elements("css selector", "#curves polyline")
    press(browser, "[data-tool=brush]")
    browser.find_element("id", "token-4").click()
    settle(browser)
    soft = [0.0] * len(text["documents"][0]["text"].split())
    soft[4] = 0.9
    expected = page.score(PLACE | {"marks": [], "soft": soft})["values"]
    assert values(browser)["auprc"] == expected["auprc"]
    assert values(browser)["comprehensiveness_aopc"] == expected["comprehensiveness_aopc"]
    link = browser.current_url
    shown = values(browser)
    browser.get("about:blank")
    open_explorer(browser, address, link.partition("#")[2])
    assert values(browser) == shown
    open_explorer(browser, address, "config=fever&split=test&marks=0-2")
    assert marked(browser) == [0, 1, 2] and "No small model answers" in text_shown(browser, "#answers")
    open_explorer(browser, address, "config=%3Cscript%3E&id=nothing&marks=9-1.x.1e9&soft=a_b~-1_2&pair=-4&ranked=99~x")
    assert values(browser) and marked(browser) == [], "a link with nonsense shows the first text"
    assert not browser.find_element("id", "error").is_displayed()


@pytest.mark.browser
@pytest.mark.slow
def test_quotes_annotators_and_changed_texts(browser, address, page):
    open_explorer(browser, address)
    press(browser, "#tab-quotes")
    box = browser.find_element("id", "quotes")
    assert values(browser)["invented"] == pytest.approx(1 / 3)
    box.clear()
    box.send_keys("the third film\na masterpiece of its kind")
    wait_for(browser, lambda page: values(page).get("invented") == 0.5, "half of the quotes invented")
    assert [line.text.split()[-1] for line in browser.find_elements("css selector", "#statuses li")] == [
        "exact",
        "invented",
    ]
    press(browser, "#tab-annotators")
    press(browser, "[data-do=swap]")
    assert values(browser) == dict.fromkeys(("krippendorff_alpha", "pairwise_kappa", "cohen_kappa"), 1.0)
    press(browser, "[data-person='1']")
    browser.find_element("id", "token-0").click()
    settle(browser)
    gold = page.open_instance(PLACE)["gold"]
    expected = page.annotators(PLACE | {"marks": [gold, [0, *gold]]})["values"]
    assert values(browser) == expected
    press(browser, "#tab-pair")
    press(browser, "[data-do=unrank]")
    assert values(browser) == {"map": 0.0}
    for side, word in ((0, 3), (0, 7), (1, 3), (1, 7)):
        press(browser, f"#pair-{side} [data-word='{word}']")
    assert values(browser) == page.pair({"pair": 0, "ranked": [[3, 7], [3, 7]]})["values"]
    press(browser, "#pair-1 [data-word='7']")
    pick(browser, "#pair", "2")
    assert "battery" in text_shown(browser, "#pair-0")


@pytest.mark.browser
@pytest.mark.slow
def test_the_tour_has_six_steps_and_a_wrong_dataset_is_said(browser, address):
    from selenium.webdriver.common.keys import Keys

    open_explorer(browser, address)
    press(browser, "[data-do=tour]")
    titles = []
    for number in range(1, 7):
        assert text_shown(browser, "#tour-step") == f"Step {number} of 6"
        titles.append(text_shown(browser, "#tour-title"))
        if number == 4:
            assert values(browser)["sufficiency"] == 0.0
        press(browser, "#tour [data-do=next]")
    assert len(set(titles)) == 6 and not browser.find_element("id", "tour").is_displayed()
    page = (Path(__file__).resolve().parents[2] / "docs" / "explorer.md").read_text(encoding="utf-8")
    assert all(title in page for title in titles), "docs/explorer.md has the tour's steps"
    box = browser.find_element("id", "dataset")
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys("org/nothing\n")
    said = wait_for(browser, lambda page: text_shown(page, "#error"), "the message")
    assert said.startswith("gold: org/nothing, movies, validation: ") and "Traceback" not in said


@pytest.mark.browser
@pytest.mark.slow
def test_real_movies_are_explored_by_name(browser, corpora, tmp_path):
    """A folder `eraser` beside the Space stands for the Hub's dataset."""
    from eraser_hub.conversion import HUB_DATASETS

    HUB_DATASETS["eraser"].build(["movies"], out=tmp_path, source=corpora)
    with running_apps([build_explorer(tmp_path)]) as (url,):
        open_explorer(browser, url, "dataset=eraser&config=movies&split=validation")
        assert values(browser)["token_macro_f1"] > 0 or marked(browser)
        pick(browser, "#system", "gold")
        assert values(browser)["token_macro_f1"] == 1.0
        assert len(browser.find_elements("css selector", "#instance option")) == 200


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_no_view_has_a_serious_finding_or_scrolls_sideways(browser, address, serious_findings, width, scheme):
    try:
        view_as(browser, width, scheme)
        for link in ("view=marks", "view=quotes", "view=annotators", "view=pair", "tour=1"):
            open_explorer(browser, address, link)
            assert serious_findings(browser) == [], link
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width, link
    finally:
        view_as(browser)
