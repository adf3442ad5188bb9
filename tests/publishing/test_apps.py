"""The Spaces' apps: in a headless Chromium, and their parts without one."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from eraser_hub.publishing.spaces import build_metrics, get_metrics_folder, list_metric_names
from eraser_hub.records.errors import DataError
from tools.browser import VIEWS, open_page, running_apps, submit, text_of, view_as, wait_for

ROOT = Path(__file__).resolve().parents[2]
gradio = pytest.importorskip("gradio", reason="skipped: gradio is not installed")


@pytest.fixture(scope="module")
def app():
    from eraser_hub.metrics import app

    return app


@pytest.fixture(scope="module")
def rows_of():
    from eraser_hub.metrics import app_rows

    return app_rows


@pytest.fixture(scope="module")
def rendering():
    from eraser_hub.metrics import app_scores

    return app_scores


# -- parts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list_metric_names())
def test_each_metric_has_an_example_that_scores(app, rendering, name, tmp_path):
    """Its headline scores are the module's, say what they reward and miss, and differ from each other."""
    import evaluate

    from eraser_hub.metrics.score_explanations import explain_scores

    example = app.read_example(Path(app.__file__).parent, name)
    metric: Any = evaluate.load(str(*build_metrics(tmp_path, [name])))
    given = {key: value for key, value in example._asdict().items() if key in ("predictions", "references") and value}
    scores = metric.compute(**given, **example.options)
    table = rendering.render_table(scores)
    assert all(f"<td>{key}</td>" in table for key, value in scores.items() if isinstance(value, int | float))
    headline = explain_scores(name, scores, ranges=metric.RANGES)
    assert [shown.value for shown in headline] == [scores[shown.key] for shown in headline]
    values = [round(shown.value, 2) for shown in headline]
    assert values and len(set(values)) == len(values) and not {0.0, 1.0} & set(values)
    assert all(shown.rewards and shown.misses for shown in headline)


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
def test_a_malformed_box_says_what_is_wrong(rows_of, text, kind, words):
    with pytest.raises(rows_of.Malformed, match=words):
        rows_of.parse_box(text, "predictions", kind)


def test_a_box_takes_json_json_lines_one_row_or_nothing(rows_of):
    assert rows_of.parse_box('[{"a": 1}]', "x", list) == [{"a": 1}]
    assert rows_of.parse_box('{"a": 1}\n\n{"a": 2}\n', "x", list) == [{"a": 1}, {"a": 2}]
    assert rows_of.parse_box('{"a": 1}', "x", list) == [{"a": 1}]
    lines = [{"a": "one\u2028two\x85three"}, {"a": 2}]  # line ends to Unicode, not to JSON lines
    text = "\r\n".join(json.dumps(row, ensure_ascii=False) for row in lines)
    assert rows_of.parse_box(text, "x", list) == lines
    assert rows_of.parse_box("  ", "x", list) is None


def test_scores_are_a_table_with_intervals_where_there_are_any(rendering):
    assert rendering.render_table({"<b>": 1, "sufficiency": 0.5, "signature": "x"}) == (
        '<table><tr><th scope="col">score</th><th scope="col">key</th><th scope="col">value</th></tr>'
        '<tr><th scope="row">&lt;b&gt; </th><td>&lt;b&gt;</td><td>1</td></tr>'
        '<tr><th scope="row">Sufficiency ↓</th><td>sufficiency</td><td>0.5</td></tr></table>'
    )
    both = rendering.render_table({"a": 0.5, "a_ci": (0.25, 0.75), "b": float("nan")})
    assert "interval" in both and "<td>0.25 – 0.75</td>" in both and "<td>nan</td><td></td>" in both


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.jsonl", b"\xff\xfe", "no UTF-8"),
        ("a.jsonl", b'{"id": 1}\n\n{"id": ', "a.jsonl, line 3: no JSON"),
        ("a.jsonl", b" \n", "a.jsonl: expected rows, found an empty file"),
        ("a.jsonl", b'[{"id": 1}]', "expected a row a line, found a list"),
        ("a.json", b"3", "a.json: expected a list of rows, found int"),
        ("a.parquet", b"PAR1 and nothing", "cannot read a.parquet"),
    ],
)
def test_a_file_that_cannot_be_read_says_why_and_leaves_the_box(app, tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    box, kept, message = app.upload("predictions", str(path))
    assert "value" not in box and kept is None
    assert "predictions: " in message["value"] and words in message["value"]


def test_a_small_file_fills_its_box_and_a_large_one_is_scored_as_a_file(app, tmp_path):
    rows = [{"id": at, "rationale": [[at]]} for at in range(3)]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    box, kept, message = app.upload("predictions", str(path))
    assert [json.loads(line) for line in box["value"].split("\n")] == rows and kept is None
    assert message == {"value": "", "visible": False, "__type__": "update"}
    path.write_text("\n".join(json.dumps(row | {"note": "x" * 50_000}) for row in rows))
    box, kept, _ = app.upload("predictions", str(path))
    assert (box["value"], kept) == ("", str(path)) and box["placeholder"].startswith("a.jsonl: 3 rows, 0.2 MB, scored")
    assert [row["id"] for row in app.collect_rows("predictions", "", kept)] == [0, 1, 2]
    assert app.collect_rows("predictions", '[{"id": 9}]', kept) == [{"id": 9}], "a paste replaces the file"
    assert app.collect_rows("predictions", " ", None) is None


def test_a_small_parquet_file_of_many_rows_is_scored_whole(app, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [str(at) for at in range(3_000)], "note": ["x" * 50] * 3_000}), path)
    assert path.stat().st_size < app.MOST_BYTES_IN_BOX
    box, kept, _ = app.upload("predictions", str(path))
    assert (box["value"], kept) == ("", str(path)) and box["placeholder"].startswith("a.parquet: 3,000 rows")
    assert len(app.collect_rows("predictions", "", kept)) == 3_000


def test_a_file_that_takes_too_long_is_given_up(rows_of, tmp_path, monkeypatch):
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.setattr(rows_of, "READING_SECONDS", -1)
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n')
    pq.write_table(pa.table({"id": ["1"]}), tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.parquet"):
        with pytest.raises(rows_of.Malformed, match=rf"references: {name}: not read within -1 s; use the module"):
            rows_of.read_file(str(tmp_path / name), "references")


def test_parquet_is_a_table_and_one_that_unpacks_too_large_is_refused(rows_of, tmp_path, monkeypatch):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": ["1", "2"]}), path)
    table = rows_of.read_file(str(path), "references")
    assert rows_of.list_rows(table) == [{"id": "1"}, {"id": "2"}]
    monkeypatch.setattr(rows_of, "MOST_UNPACKED_BYTES", 10)
    with pytest.raises(rows_of.Malformed, match="bytes unpacked, at most 10 here"):
        rows_of.read_file(str(path), "references")


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_a_file_of_too_many_bytes_is_refused(rows_of, tmp_path, monkeypatch, name):
    monkeypatch.setattr(rows_of, "MOST_JSON_BYTES", 10)
    (tmp_path / name).write_text('{"id": 12}')
    assert rows_of.read_file(str(tmp_path / name), "references") == [{"id": 12}]
    (tmp_path / name).write_text('{"id": 123}')
    with pytest.raises(rows_of.Malformed, match=rf"references: {name}: expected at most 10 bytes, found 11; use the"):
        rows_of.read_file(str(tmp_path / name), "references")


def test_gold_comes_by_the_name_of_a_dataset(rows_of, tmp_path, monkeypatch):
    """A folder beside the Space's, else the Space's own namespace on the Hub, which is not asked here."""
    import datasets

    asked = []
    monkeypatch.setattr(datasets, "load_dataset", lambda *given, **named: asked.append((*given, named["split"])))
    monkeypatch.setattr(rows_of, "__file__", str(tmp_path / "hub" / "eraser_agreement" / "app_rows.py"))
    rows_of.load_gold(" org/eraser", "movies ", "val")
    rows_of.load_gold("eraser", "", "test")
    monkeypatch.setenv("SPACE_ID", "someone/eraser_agreement")
    rows_of.load_gold("eraser", "movies", "test")
    (tmp_path / "hub" / "eraser").mkdir(parents=True)
    (tmp_path / "hub" / "eraser" / "README.md").write_text("x")
    rows_of.load_gold("eraser", "movies", "test")
    assert asked == [
        ("org/eraser", "movies", "validation"),
        ("eraser", None, "test"),
        ("someone/eraser", "movies", "test"),
        (str(tmp_path / "hub" / "eraser"), "movies", "test"),
    ]
    with pytest.raises(rows_of.Malformed, match="gold: expected the name of a dataset and a split"):
        rows_of.load_gold("", "movies", "test")


def test_a_dataset_that_is_not_there_is_one_line(rows_of, tmp_path):
    with pytest.raises(rows_of.Malformed, match=r"^gold: org/nothing, movies, test: [^\n]+$"):
        rows_of.load_gold("org/nothing", "movies", "test")


def test_code_to_copy_is_python_and_names_the_namespace(app, monkeypatch):
    import ast

    monkeypatch.setenv("SPACE_ID", "someone/eraser_agreement")
    for name in list_metric_names():
        python, command = app.make_code(name, app.read_example(Path(app.__file__).parent, name))
        ast.parse(python)
        assert f'evaluate.load("someone/{name}")' in python
        assert ("load_dataset" in python) == bool(command), name


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
def test_the_page_scores_its_example_and_refuses(browser, app, addresses, name):
    predictions, references = app.read_example(Path(app.__file__).parent, name)[:2]
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
    submitted(browser, lambda page: not held(page, "message") and text_of(page, "scores").strip(), "scores again")


@pytest.mark.browser
@pytest.mark.slow
def test_files_fill_the_boxes_and_a_box_stays_small(browser, app, addresses, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    predictions, references = app.read_example(Path(app.__file__).parent, "eraser_agreement")[:2]
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
    submitted(
        browser, lambda page: not held(page, "message") and text_of(page, "scores").strip(), "scores of the files"
    )
    paste(browser, "predictions", json.dumps(renamed * 100))
    assert browser.execute_script("return document.querySelector('#predictions').offsetHeight") < 400


def type_in(browser, box: str, text: str) -> None:
    """Replace the text of a one-line box."""
    browser.execute_script(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', {bubbles: true}));",
        browser.find_element("css selector", f"#{box} :is(input, textarea)"),
        text,
    )


def shows(browser, scores) -> bool:
    """Return True if the headline has values, and all are those of the scores."""
    items = browser.find_elements("css selector", "#scores [data-key]")
    shown = {item.get_attribute("data-key"): item.get_attribute("data-value") for item in items}
    return bool(shown) and shown == {key: repr(scores.get(key)) for key in shown}  # a NaN is equal to another


def predict_instance(row, labels):
    """Mark the first tokens of a row; the classifier prefers the first label on its whole text alone."""
    document, erased = row["documents"][0], {labels[0]: 0.25, labels[1]: 0.75}
    marks = [{"start_token": 0, "end_token": min(9, len(document["text"].split()))}]
    return {
        "annotation_id": row["annotation_id"],
        "rationales": [{"docid": document["docid"], "hard_rationale_predictions": marks}],
        "classification": labels[0],
        "classification_scores": {labels[0]: 0.75, labels[1]: 0.25},
        "comprehensiveness_classification_scores": erased,
        "sufficiency_classification_scores": erased,
    }


def predict_quotes(row, labels):
    document = row["documents"][0]
    quote = {"text": " ".join(document["text"].split()[:3]), "status": "exact", "docid": document["docid"]}
    quotes = [quote | {"start_token": 0, "end_token": 3}, {"text": "a masterpiece", "status": "not_found"}]
    return {"annotation_id": row["annotation_id"], "classification": labels[0], "quotes": quotes}


def predict_pair(row, labels):
    return {"id": row["id"], "rationale_tokens": [tokens[: len(row["id"])] for tokens in row["tokens"]]}


def predict_set(row, labels):
    return {"id": row["id"], "rationale": [list(range(len(tokens) // 2)) for tokens in row["tokens"]]}


MOVIES = ("eraser", "movies", "validation")
# metric -> a real split whose rows are its references, and the prediction of a row
REAL = {
    "eraser_agreement": (*MOVIES, predict_instance),
    "eraser_faithfulness": (*MOVIES, predict_instance),
    "quote_faithfulness": (*MOVIES, predict_quotes),
    "perturbation_map": ("bilingual_perturbation", "senti_en", "test", predict_pair),
    "rationale_set_agreement": ("bilingual_perturbation", "senti_ch", "test", predict_set),
}
NO_GOLD = {
    "annotator_agreement": "no corpus here has rows of annotators",
    "normalized_fidelity": "it has no references",
}


@pytest.fixture(scope="module")
def real_addresses(browser, corpora, tmp_path_factory):
    """Return the folder of real datasets, and name -> address of the Spaces beside them."""
    from eraser_hub.conversion import HUB_DATASETS

    hub = tmp_path_factory.mktemp("hub")
    HUB_DATASETS["eraser"].build(["movies"], out=hub, source=corpora)
    HUB_DATASETS["bilingual_perturbation"].build(["senti_ch", "senti_en"], out=hub, source=corpora)
    folders = build_metrics(hub, [*REAL])
    with running_apps(folders) as urls:
        yield hub, dict(zip(REAL, urls, strict=True))


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("name", list_metric_names())
def test_a_real_split_comes_by_its_name_and_a_bad_name_is_said(request, browser, name):
    import datasets
    import evaluate

    if name in NO_GOLD:
        pytest.skip(f"skipped: {NO_GOLD[name]}")
    hub, addresses = request.getfixturevalue("real_addresses")
    dataset, config, split, predict = REAL[name]
    gold = datasets.load_dataset(str(hub / dataset), config, split=split)
    labels = gold.features["classification" if dataset == "eraser" else "label"].names
    predictions = [predict(row, labels) for row in gold]
    module = evaluate.load(str(hub / name))
    expected = module.compute(predictions=predictions, references=gold)
    open_page(browser, addresses[name])
    paste(browser, "predictions", json.dumps(predictions))
    paste(browser, "options", "{}")
    for box, value in zip(("dataset", "config", "split"), (dataset, config, split), strict=True):
        type_in(browser, f"gold_{box}", value)
    browser.find_elements("css selector", "#source input[type=radio]")[1].click()
    submitted(browser, lambda page: shows(page, expected), f"the scores of the real split, {expected}")
    assert held(browser, "message") == ""
    type_in(browser, "gold_config", "no_such_config")
    said = submitted(browser, lambda page: held(page, "message"), "the message")
    assert f"gold: {dataset}, no_such_config, {split}" in said and "Traceback" not in said


def copy_rows(rows, count, size):
    """Return copies of rows, each with an id of its own of ``size`` characters where it has one."""
    return [
        row
        | {key: f"{row[key]}-{at}".ljust(size, "x") for key in ("annotation_id", "id") if key in row}
        | ({"rel_ids": [f"{one}-{at}".ljust(size, "x") for one in row["rel_ids"]]} if row.get("rel_ids") else {})
        for at in range(count)
        for row in rows
    ]


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("name", list_metric_names())
def test_a_file_of_30_mb_is_scored(browser, app, addresses, tmp_path, monkeypatch, name):
    """The example in many copies. Its box stays empty, so that the browser does not have to hold it."""
    import evaluate

    monkeypatch.setattr("tools.browser.WAITING_SECONDS", 240)
    example = app.read_example(Path(app.__file__).parent, name)
    sides = {key: rows for key in ("predictions", "references") if (rows := getattr(example, key))}
    has_ids = all("annotation_id" in row or "id" in row for rows in sides.values() for row in rows)
    count = 4_000 if has_ids else 220_000
    size = 31_000_000 // count // min(map(len, sides.values())) if has_ids else 0
    copies = {box: copy_rows(rows, count, size) for box, rows in sides.items()}
    expected = evaluate.load(str(*build_metrics(tmp_path, [name]))).compute(**copies, **example.options)
    open_page(browser, addresses[name])
    inputs = browser.find_elements("css selector", "input[data-testid$='-upload-button']")
    for box, entry in zip(("predictions", "references"), inputs, strict=True):
        if box in copies:
            path = tmp_path / f"{box}.jsonl"
            path.write_text("".join(f"{json.dumps(row)}\n" for row in copies[box]), encoding="utf-8")
            assert path.stat().st_size > 30_000_000
            entry.send_keys(str(path))
            placeholder, rows = f"return document.querySelector('#{box} textarea').placeholder", len(copies[box])
            wait_for(
                browser,
                lambda page, ask=placeholder, rows=rows: f"{rows:,} rows" in page.execute_script(ask),
                "its size",
            )
            assert held(browser, box) == ""
    submit(browser)
    wait_for(browser, lambda page: shows(page, expected), "the scores of the file")
    assert held(browser, "message") == ""


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
        open_page(browser, "data:text/html,<div id=scores></div>")


def submitted(browser, condition, what: str):
    """Press Submit until the page shows what is meant: the editor tells the page of a paste a moment later."""
    spinning = "return [...document.querySelectorAll('[data-testid=status-tracker]')].some(e => e.innerText.trim())"

    def press(page):
        submit(page)
        time.sleep(0.3)
        wait_for(page, lambda page: not page.execute_script(spinning), "an answer")
        return condition(page)

    return wait_for(browser, press, what)


@pytest.mark.parametrize("name", list_metric_names())
def test_each_card_shows_a_small_picture(name):
    picture = get_metrics_folder() / "cards" / f"{name}.png"
    card = Path(get_metrics_folder() / "cards" / f"{name}.md").read_text(encoding="utf-8")
    assert f"({name}.png)" in card
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size < 100_000


@pytest.mark.slow
def test_an_app_without_gradio_says_what_to_install():
    code = f"import runpy, sys; sys.modules['gradio'] = None; runpy.run_path({str(ROOT / 'metrics/app.py')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stderr) == (1, "this page needs gradio: pip install -r requirements.txt\n")
