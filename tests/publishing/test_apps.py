"""The Spaces' apps: in a headless Chromium, and their parts without one."""

from __future__ import annotations

import colorsys
import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eraser_hub.publishing.spaces import build_metrics, get_metrics_folder, list_metric_names
from eraser_hub.records.errors import DataError
from tools.browser import VIEWS, open_page, running_apps, submit, text_of, view_as, wait_for

ROOT = Path(__file__).resolve().parents[2]
gradio = pytest.importorskip("gradio", reason="skipped: gradio is not installed")


@pytest.fixture(scope="module")
def app():
    spec = importlib.util.spec_from_file_location("metric_app", get_metrics_folder() / "app.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["metric_app"] = module
    spec.loader.exec_module(module)
    return module


# -- parts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list_metric_names())
def test_each_metric_has_an_example_that_scores_and_is_drawn(app, name, tmp_path):
    import evaluate

    predictions, references, options, draw = app.read_example(Path(app.__file__).parent, name)
    metric = evaluate.load(str(*build_metrics(tmp_path, [name])))
    given = {key: value for key, value in (("predictions", predictions), ("references", references)) if value}
    scores = metric.compute(**given, **options)
    assert all(
        f">{key}</th>" in app.render_table(scores) for key, value in scores.items() if isinstance(value, int | float)
    )
    drawn = app.draw_rows(draw, predictions or [], references or [])
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
        app.parse_box(text, "predictions", kind)


def test_a_box_takes_json_json_lines_one_row_or_nothing(app):
    assert app.parse_box('[{"a": 1}]', "x", list) == [{"a": 1}]
    assert app.parse_box('{"a": 1}\n\n{"a": 2}\n', "x", list) == [{"a": 1}, {"a": 2}]
    assert app.parse_box('{"a": 1}', "x", list) == [{"a": 1}]
    lines = [{"a": "one\u2028two\x85three"}, {"a": 2}]  # line ends to Unicode, not to JSON lines
    text = "\r\n".join(json.dumps(row, ensure_ascii=False) for row in lines)
    assert app.parse_box(text, "x", list) == lines
    assert app.parse_box("  ", "x", list) is None


def test_huge_offsets_are_not_drawn_one_by_one(app):
    rows = [
        {
            "annotation_id": "a",
            "rationales": [{"docid": "d", "hard_rationale_predictions": [{"start_token": 0, "end_token": 10**12}]}],
        }
    ]
    drawn = app.draw_rows(app.draw_instances, rows, [])
    assert sum(len(text) for text, _ in drawn) < 20_000
    sets = app.draw_rows(app.draw_sets, [{"id": 1, "rationale": [[10**12]]}], [])
    assert sum(len(text) for text, _ in sets) < 20_000


def test_what_cannot_be_drawn_is_said(app):
    assert app.draw_rows(app.draw_pairs, [], [{"id": 1, "rel_ids": [2]}])[-1][0].startswith("not drawn: KeyError")
    many = [{"annotation_id": str(at), "rationales": [{"docid": "d"}]} for at in range(9)]
    assert app.draw_rows(app.draw_instances, many, [])[-1][0].startswith("… further rows")


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb`` by WCAG."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_token_can_be_read_on_its_ground_in_both_themes(app):
    """Ground and ink are the mark's own, whatever the theme; the ink is lightest on the shade of probability 1."""
    ink = luminance("#" + 2 * app.INK[1:])
    grounds = {ground for colours in app.COLOURS.values() for ground in colours.values()}
    channels = (round(255 * part) for part in colorsys.hls_to_rgb(123 / 360, 0.68, 0.38))
    shade = "#" + "".join(f"{channel:02x}" for channel in channels)
    assert "hsl(123 38% 68%)" in app.render_segments([("p", 1.0)], {})
    for ground in {*grounds, shade}:
        assert (luminance(ground) + 0.05) / (ink + 0.05) >= 4.5, ground


def test_scores_are_a_table_with_intervals_where_there_are_any(app):
    assert app.render_table({"<b>": 1, "signature": "x"}) == (
        '<table><tr><th scope="col">score</th><th scope="col">value</th></tr>'
        '<tr><th scope="row">&lt;b&gt;</th><td>1</td></tr></table>'
    )
    both = app.render_table({"a": 0.5, "a_ci": (0.25, 0.75), "b": float("nan")})
    assert "interval" in both and "<td>0.25 – 0.75</td>" in both and "<td>nan</td><td></td>" in both


def test_tokens_are_text_and_labels_have_lines_of_their_own(app):
    hostile = "<img src=x onerror=alert(1)>"
    drawn = app.render_segments(
        [(hostile, None), (hostile, "both"), (" .\n", None)], {"both": app.GREEN, "predicted": app.AMBER}
    )
    assert "<img" not in drawn and drawn.count("&lt;img") == 2 and "<br>" in drawn
    assert drawn.count("solid") == 2 and drawn.count("dashed") == 1


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.jsonl", b"\xff\xfe", "no UTF-8"),
        ("a.json", b" " * 5_000_001, "5000001 bytes, at most"),
        ("a.parquet", b"PAR1 and nothing", "cannot read a.parquet"),
    ],
)
def test_a_file_that_cannot_be_read_says_why_and_leaves_the_box(app, tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    box, message = app.upload("predictions", str(path))
    assert "value" not in box and "predictions: " in message["value"] and words in message["value"]


def test_parquet_that_json_cannot_hold_or_that_unpacks_too_large_is_refused(app, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [b"\x00"]}), path)
    with pytest.raises(app.Malformed, match=r"cannot read a\.parquet: Object of type bytes"):
        app.read_file(str(path), "references")
    pq.write_table(pa.table({"id": ["x" * 6_000_000]}), path, compression="zstd")
    with pytest.raises(app.Malformed, match="at most 5000000"):
        app.read_file(str(path), "references")
    pq.write_table(pa.table({"id": ["1", "2"]}), path)
    assert app.parse_box(app.read_file(str(path), "references"), "references", list) == [{"id": "1"}, {"id": "2"}]


def test_the_module_is_found_beside_the_app(app, tmp_path, metric_source):
    (folder,) = build_metrics(tmp_path, source=metric_source)
    assert app.find_module(folder) == folder / "toy_overlap.py"
    with pytest.raises(SystemExit, match="expected the name of one metric"):
        app.find_module(folder, "other")
    with pytest.raises(SystemExit, match="there are: none"):
        app.find_module(tmp_path)


# -- in the browser ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def addresses(browser, tmp_path_factory):
    """Name -> address: all Spaces, built and started at once."""
    folders = build_metrics(tmp_path_factory.mktemp("spaces"))
    with running_apps(folders) as urls:
        yield dict(zip((folder.name for folder in folders), urls, strict=True))


def paste(browser, box: str, text: str) -> None:
    """Replace what a box holds, as a paste does."""
    browser.execute_script(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', {bubbles: true}));",
        browser.find_element("css selector", f"#{box} textarea"),
        text,
    )


def held(browser, box: str) -> str:
    """What a box holds."""
    return "".join(area.get_attribute("value") for area in browser.find_elements("css selector", f"#{box} textarea"))


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("name", list_metric_names())
def test_the_page_scores_its_example_draws_and_refuses(browser, app, addresses, name):
    predictions, references, _, _ = app.read_example(Path(app.__file__).parent, name)
    url = addresses[name]
    open_page(browser, url)
    assert name in browser.title or name in browser.find_element("tag name", "body").text
    assert held(browser, "message") == ""

    box = "predictions" if predictions else "references"
    rows = predictions or references
    paste(browser, box, json.dumps(rows)[:-2])  # cut short
    said = submitted(browser, lambda page: held(page, "message"), "the message")
    assert f"{box}: no JSON" in said and "Traceback" not in said

    broken = [{**rows[0], key: "no such value"} for key in list(rows[0])[-1:]]
    paste(browser, box, json.dumps(broken))
    said = submitted(
        browser, lambda page: "no JSON" not in held(page, "message") and held(page, "message"), "the metric's message"
    )
    assert "Traceback" not in said and 'File "' not in said

    browser.find_element("id", "example").click()
    wait_for(browser, lambda page: "no such value" not in held(page, box), "the example")
    submitted(browser, lambda page: not held(page, "message") and text_of(page, "tokens").strip(), "scores again")


@pytest.mark.browser
@pytest.mark.slow
def test_files_fill_the_boxes_and_a_box_stays_small(browser, app, addresses, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    predictions, references, _, _ = app.read_example(Path(app.__file__).parent, "eraser_agreement")
    renamed = [{**row, "annotation_id": "uploaded"} for row in predictions]
    files = {"predictions": tmp_path / "p.jsonl", "references": tmp_path / "r.parquet"}
    files["predictions"].write_text("\n".join(map(json.dumps, renamed)))
    pq.write_table(
        pa.Table.from_pylist([{**row, "annotation_id": "uploaded"} for row in references]), files["references"]
    )
    open_page(browser, addresses["eraser_agreement"])
    inputs = browser.find_elements("css selector", "input[data-testid$='-upload-button']")
    for (box, path), entry in zip(files.items(), inputs, strict=True):
        entry.send_keys(str(path))
        wait_for(browser, lambda page, box=box: "uploaded" in held(page, box), "the file's rows")
    submitted(browser, lambda page: "uploaded" in text_of(page, "tokens"), "the scores of the files")
    paste(browser, "predictions", json.dumps(renamed * 100))
    assert browser.execute_script("return document.querySelector('#predictions').offsetHeight") < 400


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("name", list_metric_names())
def test_a_space_has_no_serious_finding(browser, addresses, serious_findings, name):
    try:
        for width, scheme in (VIEWS[0], VIEWS[-1]):  # wide and light, narrow and dark
            view_as(browser, width, scheme)
            open_page(browser, addresses[name])
            assert serious_findings(browser) == []
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        view_as(browser)


@pytest.mark.browser
@pytest.mark.slow
def test_a_page_without_scores_gives_no_picture(browser, monkeypatch):
    """A spinner was once taken for the page."""
    monkeypatch.setattr("tools.browser.WAITING_SECONDS", 0.3)
    with pytest.raises(DataError, match="did not show the example's scores"):
        open_page(browser, "data:text/html,<div id=scores></div><div id=tokens>spinning</div>")


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


@pytest.mark.parametrize("name", list_metric_names())
def test_each_card_shows_a_small_picture(name):
    picture = get_metrics_folder() / "cards" / f"{name}.png"
    card = Path(get_metrics_folder() / "cards" / f"{name}.md").read_text(encoding="utf-8")
    assert f"({name}.png)" in card
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size < 100_000


@pytest.mark.slow
@pytest.mark.parametrize("app", ["metrics/app.py", "eraser_hub/reports/templates/board_app.py"])
def test_an_app_without_gradio_says_what_to_install(app):
    code = f"import runpy, sys; sys.modules['gradio'] = None; runpy.run_path({str(ROOT / app)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stderr) == (1, "this page needs gradio: pip install -r requirements.txt\n")
