"""The Spaces' apps: in a headless Chromium, and their parts without one."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eraser_hub.publishing.screenshots import (
    headless_browser,
    missing_programs,
    open_page,
    running_apps,
    submit,
    text_of,
    wait_for,
)
from eraser_hub.publishing.spaces import build_metrics, metric_names, metrics_folder

ROOT = Path(__file__).resolve().parents[2]
gradio = pytest.importorskip("gradio", reason="skipped: gradio is not installed")


@pytest.fixture(scope="module")
def app():
    spec = importlib.util.spec_from_file_location("metric_app", metrics_folder() / "app.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["metric_app"] = module
    spec.loader.exec_module(module)
    return module


# -- parts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", metric_names())
def test_each_metric_has_an_example_that_scores_and_is_drawn(app, name):
    import evaluate

    predictions, references, options, draw = app.EXAMPLES[name]
    metric = evaluate.load(str(metrics_folder() / f"{name}.py"))
    given = {key: value for key, value in (("predictions", predictions), ("references", references)) if value}
    scores = metric.compute(**given, **options)
    assert app.table(scores)
    drawn = app.drawn(draw, predictions or [], references or [])
    assert len(drawn) > 2 and not any(text.startswith("not drawn") for text, _ in drawn)


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("[1, 2", list, "predictions: no JSON"),
        ("3", list, "expected a list of rows, found int"),
        ("[1]", dict, "expected an object, found list"),
        ("[" * 100_000, list, "predictions: "),
        ('{"a": 1}\n{"a": ', list, "no JSON"),
        ("x" * 5_000_001, list, "5000001 characters"),
    ],
    ids=["cut", "number", "list", "deep", "cut line", "long"],
)
def test_a_malformed_box_says_what_is_wrong(app, text, kind, words):
    with pytest.raises(app.Malformed, match=words):
        app.parsed(text, "predictions", kind)


def test_a_box_takes_json_json_lines_one_row_or_nothing(app):
    assert app.parsed('[{"a": 1}]', "x", list) == [{"a": 1}]
    assert app.parsed('{"a": 1}\n\n{"a": 2}\n', "x", list) == [{"a": 1}, {"a": 2}]
    assert app.parsed('{"a": 1}', "x", list) == [{"a": 1}]
    lines = [{"a": "one\u2028two\x85three"}, {"a": 2}]  # line ends to Unicode, not to JSON lines
    text = "\r\n".join(json.dumps(row, ensure_ascii=False) for row in lines)
    assert app.parsed(text, "x", list) == lines
    assert app.parsed("  ", "x", list) is None


def test_huge_offsets_are_not_drawn_one_by_one(app):
    rows = [
        {
            "annotation_id": "a",
            "rationales": [{"docid": "d", "hard_rationale_predictions": [{"start_token": 0, "end_token": 10**12}]}],
        }
    ]
    drawn = app.drawn(app.draw_instances, rows, [])
    assert sum(len(text) for text, _ in drawn) < 20_000
    sets = app.drawn(app.draw_sets, [{"id": 1, "rationale": [[10**12]]}], [])
    assert sum(len(text) for text, _ in sets) < 20_000


def test_what_cannot_be_drawn_is_said(app):
    assert app.drawn(app.draw_pairs, [], [{"id": 1, "rel_ids": [2]}])[-1][0].startswith("not drawn: KeyError")
    many = [{"annotation_id": str(at), "rationales": [{"docid": "d"}]} for at in range(9)]
    assert app.drawn(app.draw_instances, many, [])[-1][0].startswith("… further rows")


def test_the_module_is_found_beside_the_app(app, tmp_path, metric_source):
    (folder,) = build_metrics(tmp_path, source=metric_source)
    assert app.module_path(folder) == folder / "toy_overlap.py"
    with pytest.raises(SystemExit, match="expected the name of one metric"):
        app.module_path(folder, "other")
    with pytest.raises(SystemExit, match="there are: none"):
        app.module_path(tmp_path)


# -- in the browser ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    pytest.importorskip("selenium", reason="skipped: selenium is not installed")
    if missing := missing_programs():
        pytest.skip(f"skipped: no {' and no '.join(missing)}")
    with headless_browser() as driver:
        yield driver


@pytest.fixture(scope="module")
def addresses(browser, tmp_path_factory):
    """Name -> address: all Spaces, built and started at once."""
    folders = build_metrics(tmp_path_factory.mktemp("spaces"))
    with running_apps(folders) as urls:
        yield dict(zip((folder.name for folder in folders), urls, strict=True))


def paste(browser, box: str, text: str) -> None:
    """Replace what a box holds, as a paste does."""
    editor = browser.find_element("css selector", f"#{box} .cm-content")
    browser.execute_script(
        "arguments[0].focus(); document.execCommand('selectAll'); document.execCommand('insertText', false, arguments[1]);",
        editor,
        text,
    )


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("name", metric_names())
def test_the_page_scores_draws_and_refuses(browser, app, addresses, name):
    predictions, references, _, _ = app.EXAMPLES[name]
    url = addresses[name]
    open_page(browser, url)
    assert name in browser.title or name in browser.find_element("tag name", "body").text
    submit(browser)
    scores = wait_for(
        browser, lambda page: len(text_of(page, "scores").splitlines()) > 4 and text_of(page, "scores"), "scores"
    )
    tokens = wait_for(browser, lambda page: text_of(page, "tokens").replace("tokens", "").strip(), "tokens")
    assert any(character.isdigit() for character in scores)
    assert text_of(browser, "message") == ""

    box = "predictions" if predictions else "references"
    rows = predictions or references
    paste(browser, box, json.dumps(rows)[:-2])  # cut short
    said = submitted(browser, message, "the message")
    assert f"{box}: no JSON" in said and "Traceback" not in said

    broken = [{**rows[0], key: "no such value"} for key in list(rows[0])[-1:]]
    paste(browser, box, json.dumps(broken))
    said = submitted(browser, lambda page: "no JSON" not in message(page) and message(page), "the metric's message")
    assert "Traceback" not in said and 'File "' not in said

    browser.find_element("id", "example").click()
    wait_for(browser, lambda page: "no such value" not in text_of(page, box), "the example")
    submitted(browser, lambda page: not message(page) and text_of(page, "tokens").strip(), "scores again")
    assert tokens


def submitted(browser, condition, what: str):
    """Press Submit until the page shows what is meant: the editor tells the page of a paste a moment later."""

    def press(page):
        submit(page)
        for _ in range(10):
            if value := condition(page):
                return value
            time.sleep(0.05)
        return None

    return wait_for(browser, press, what)


def message(page) -> str:
    """What the page's message box holds."""
    return "".join(box.get_attribute("value") for box in page.find_elements("css selector", "#message textarea"))


@pytest.mark.parametrize("name", metric_names())
def test_each_card_shows_a_small_picture(name):
    picture = metrics_folder() / "cards" / f"{name}.png"
    card = Path(metrics_folder() / "cards" / f"{name}.md").read_text(encoding="utf-8")
    assert f"({name}.png)" in card
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size < 100_000


@pytest.mark.parametrize("app", ["metrics/app.py", "reports/templates/board_app.py"])
def test_an_app_without_gradio_says_what_to_install(app):
    code = f"import runpy, sys; sys.modules['gradio'] = None; runpy.run_path({str(ROOT / app)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, "this page needs gradio: pip install -r requirements.txt\n")
