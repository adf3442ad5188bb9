"""A report's files: scores, verdicts and gold in the page are those of score and compare; nothing is half-written."""

from __future__ import annotations

import base64
import gzip
import html
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import eraser_hub
from eraser_hub.reports import texts
from eraser_hub.reports.findings import describe_findings

from ..refusals import refused

PREDICTIONS = Path(__file__).resolve().parents[2] / "samples" / "predictions" / "eraser"
OURS, THEIRS = PREDICTIONS / "movies.val.jsonl", PREDICTIONS / "movies.val.baseline.jsonl"
MOVIES = {"config": "movies", "split": "val", "resamples": 200}


def run(*arguments, **more):
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "120"}
    command = [sys.executable, "-m", "eraser_hub", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False, **more)


def read(path):
    return path.read_text(encoding="utf-8")


def find(pattern, text):
    """The first group of a pattern's first match."""
    match = re.search(pattern, text, re.DOTALL)
    assert match is not None, pattern
    return match[1]


def unpack(packed):
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def read_cells(page, table):
    """(heads, first cells) -> (number, small print) of a table of the page."""
    text = find(rf'(<table id="{table}".*?</table>)', page)
    heads = [
        html.unescape(re.sub("<.*?>", "", head)).strip("\xa0↑↓")
        for head in re.findall(r'<th scope="col".*?</th>', text)
    ]
    cells = {}
    for row in re.findall(r"<tr.*?</tr>", text, re.DOTALL)[1:]:
        name = html.unescape(re.sub("<.*?>", "", find(r'(<th scope="row".*?</th>)', row)))
        for head, cell in zip(heads[1:], re.findall(r"<td.*?>(.*?)</td>", row, re.DOTALL), strict=True):
            number, _, small = cell.partition("<small>")
            cells[name, head] = (html.unescape(number).strip(), small.removesuffix("</small>"))
    return cells


def test_the_page_has_the_scores_and_verdicts_of_score_and_compare(hub, tmp_path):
    systems = {"ours": OURS, "near & far": THEIRS}
    settings = {"dataset": hub / "eraser", **MOVIES, "minimum_effect": 0.36}
    made = eraser_hub.report(predictions=systems, baseline={"random": THEIRS}, out=tmp_path, **settings)
    compared = eraser_hub.compare(systems, **settings)
    page = read(made.page)
    order = [page.index(f'id="{name}"') for name in ("findings", "scores", "curves", "texts", "provenance")]
    assert order == sorted(order)
    first = re.sub("<.*?>", "", find(r'<ul class="findings">\s*<li>(.*?)</li>', page))
    assert html.unescape(first) == describe_findings(compared)[0]
    scores, differences = read_cells(page, "score-table"), read_cells(page, "difference-table")
    assert scores["near & far", "Token F1 (macro)"] == ("0.412", "[0.369, 0.454]")
    assert (scores["chance", "Token F1 (macro)"][0], scores["chance", "IOU F1 (macro)"][0]) == ("0.119", "")
    assert scores["random (baseline)", "Token F1 (macro)"][0] == "0.412"
    keys = compared["comparisons"][0]["keys"]
    for key, label in (("token_macro_f1", "Token F1 (macro)"), ("iou_macro_f1", "IOU F1 (macro)")):
        number, small = differences["ours − near & far", label]
        assert number.startswith("★") == (keys[key]["verdict"] == "better") and small.endswith(keys[key]["verdict"])
        assert float(number.strip("★ +")) == round(keys[key]["difference"], 3)
    assert differences["ours − near & far", "Comprehensiveness (AOPC)"][1].endswith("not tested"), "of two models"
    block = unpack(find(r'id="block">([^<]*)<', page))
    assert len(block["rows"]) == 24 and all(len(row["systems"]) == 2 for row in block["rows"])


def test_several_runs_of_a_system_are_told_as_mean_and_spread(hub, tmp_path):
    third = tmp_path / "third.jsonl"
    third.write_text(read(THEIRS), encoding="utf-8")
    (tmp_path / "same.jsonl").write_text(read(THEIRS), encoding="utf-8")
    systems = [f"ours={OURS},{THEIRS}", f"theirs={third}", f"same={tmp_path / 'same.jsonl'}"]
    made = eraser_hub.report(hub / "eraser", systems, out=tmp_path / "out", cluster_by="none", **MOVIES)
    values = [0.7563175262, 0.4122834776]  # token macro F1 of the two files
    score = json.loads(read(made.score_files[0]))
    assert score["token_macro_f1"] == pytest.approx(np.mean(values), abs=1e-4)
    assert score["token_macro_f1_spread"] == pytest.approx(np.std(values, ddof=1), abs=1e-4)
    page = read(made.page)
    assert read_cells(page, "score-table")["ours", "Token F1 (macro)"] == ("0.584", "±0.243")
    assert read_cells(page, "score-table")["theirs, same", "Token F1 (macro)"][0] == "0.412", "equal ones share a line"
    assert "|cluster:none|clusters:24|" in page


@pytest.mark.parametrize("other", ["LIME [k 5]", "lime_(k_5)", "LIME/(k 5)", "日" * 90])
def test_names_that_are_one_as_a_file_get_a_score_file_each(hub, tmp_path, other):
    files = eraser_hub.report(
        hub / "eraser", [f"LIME (k 5)={OURS}", f"{other}={THEIRS}"], out=tmp_path, **MOVIES
    ).score_files
    scores = [json.loads(read(path)) for path in files]
    assert [(one["system"], round(one["token_macro_f1"], 3)) for one in scores] == [
        ("LIME (k 5)", 0.756),
        (other, 0.412),
    ]
    assert len({path.name.casefold() for path in files}) == 2


def test_systems_with_different_fields_are_compared_in_what_they_share(hub, tmp_path):
    rows = [json.loads(line) for line in read(THEIRS).splitlines()]
    for row in rows:
        for rationale in row["rationales"]:
            rationale.pop("soft_rationale_predictions")
    (tmp_path / "hard.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    made = eraser_hub.report(hub / "eraser", [OURS, tmp_path / "hard.jsonl"], out=tmp_path / "out", **MOVIES)
    page = read(made.page)
    assert "movies.val</b> agrees with people&#39;s rationales more closely" in page
    assert read_cells(page, "score-table")["movies.val", "Average precision"][0] == "0.956"
    assert read_cells(page, "score-table")["hard", "Average precision"] == ("", "")
    assert "not compared, movies.val alone has them: " in page


def test_systems_that_share_no_score_are_shown_and_not_compared(hub, tmp_path):
    files = [tmp_path / "hard.jsonl", tmp_path / "soft.jsonl"]
    for file in files:
        kept = {"annotation_id", "rationales", "docid", f"{file.stem}_rationale_predictions"}
        text = f"[{','.join(read(OURS).splitlines())}]"
        rows = json.loads(text, object_hook=lambda one, kept=kept: {key: one[key] for key in kept & one.keys()} or one)
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert "share no score" in read(eraser_hub.report(hub / "eraser", files, out=tmp_path / "out", **MOVIES).page)


def test_rationales_of_people_are_shown_and_not_compared(hub, tmp_path):
    systems = {name: tmp_path / f"{name}.jsonl" for name in ("people", "a", "b", "c", "d")}
    for file in systems.values():
        file.write_text(read(THEIRS), encoding="utf-8")
    (tmp_path / "people.jsonl.run.json").write_text(json.dumps({"signature": "explain|rationales:human|kd:1"}))
    page = read(eraser_hub.report(hub / "eraser", systems, out=tmp_path / "out", **MOVIES).page)
    scores = read_cells(page, "score-table")
    assert scores["people", "Token F1 (macro)"] == ("", "") and scores["people", "Macro F1"][0] == "0.750"
    assert '<select id="pairs"><option value="">any system</option><option>a</option>' in page
    assert "it has no agreement with them" in page and '<b class="system">people</b>' not in page


@pytest.mark.parametrize(
    ("form", "spans", "words"),
    [
        ("evidence", [[0, 1, 3, 1], [0, 2, 3, 0], [0, 2, 3, 2], [0, 4, 5, 2]], "gold evidence"),
        ("majority", [[0, 2, 3, 0]], "gold: more than half of the annotators"),
        ("union", [[0, 1, 3, 0], [0, 4, 5, 0]], "gold: any annotator"),
    ],
)
def test_texts_show_the_chosen_gold(tmp_path, form, spans, words):
    marks = {"Ana": [0, 0, 1, 0, 0], "Boris": [0, 1, 1, 0, 0], "Chai": [0, 0, 1, 0, 1]}
    tokens = ["a", "very", "good", "film", "indeed"]
    rows = [{"id": "one", "tokens": tokens, "who": who, "marked": mask, "label": "x"} for who, mask in marks.items()]
    columns = {"tokens": "tokens", "mask": "marked", "label": "label", "id": "id", "annotator": "who"}
    eraser_hub.import_corpus({"test": rows}, "posts", out=tmp_path / "corpora", **columns)
    eraser_hub.build("own", source=tmp_path / "corpora", out=tmp_path / "hub")
    answer = {"id": "one", "rationale": [0, 0, 1, 0, 0], "label": "x"}
    (tmp_path / "p.jsonl").write_text(json.dumps(answer) + "\n", encoding="utf-8")
    made = eraser_hub.report(
        tmp_path / "hub/posts", tmp_path / "p.jsonl", config="posts", gold=form, out=tmp_path / "out"
    )
    page = read(made.page)
    (row,) = unpack(find(r'id="block">([^<]*)<', page))["rows"]
    assert sorted(row["gold"]) == spans and words in page


def test_pairs_are_shown_side_by_side(samples, tmp_path):
    eraser_hub.build("bilingual_perturbation", source=samples / "bilingual_perturbation", out=tmp_path)
    predictions = samples / "predictions/bilingual_perturbation/senti_ch.jsonl"
    made = eraser_hub.report(tmp_path / "bilingual_perturbation", predictions, config="senti_ch", out=tmp_path / "out")
    page = read(made.page)
    block = unpack(find(r'id="block">([^<]*)<', page))
    first = block["rows"][0]
    assert "32 pairs of 64 records" in page and first["lang"] == "zh" and first["systems"][0]["tops"][0]
    sides = [block["docs"][place]["id"].partition(" · ")[0] for place in first["docs"]]
    assert sides == ["original", "perturbed"]


def test_texts_after_the_first_block_stand_beside_the_page(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "BLOCK", 10)
    made = eraser_hub.report(hub / "eraser", [OURS, THEIRS], out=tmp_path, **MOVIES)
    index = json.loads(find(r'id="index">(.*?)</script>', read(made.page)))
    beside = [unpack(packed) for packed in re.findall(r'addBlock\(\d,"(.*?)"\)', read(tmp_path / "texts.js"))]
    assert len(index["ids"]) == 24 and [len(block["rows"]) for block in beside] == [10, 4]
    spread = [abs(a - b) for a, b in zip(*(one["token_macro_f1"] for one in index["values"]), strict=True)]
    assert spread == sorted(spread, reverse=True), "those first on which systems differ most"


def test_a_report_replaces_the_files_of_the_one_before(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "BLOCK", 20)
    eraser_hub.report(hub / "eraser", {"first": OURS, "日 x": THEIRS}, out=tmp_path, **MOVIES)
    (tmp_path / "own.scores.json").write_bytes((tmp_path / "first.scores.json").read_bytes())
    monkeypatch.undo()
    made = eraser_hub.report(hub / "eraser", {"second": OURS}, out=tmp_path, **MOVIES)
    kept = {*made.score_files, made.page, tmp_path / "own.scores.json"}
    assert {*tmp_path.iterdir()} == kept, "a file that the page does not name is another's"


def test_a_name_is_marked_where_it_stands_and_nowhere_else(hub, tmp_path):
    page = read(eraser_hub.report(hub / "eraser", {"is": OURS, "a": THEIRS}, out=tmp_path, **MOVIES).page)
    findings = find(r'<ul class="findings">(.*?)</ul>', page)
    assert re.sub("<svg.*?</svg>", "", findings).count('<b class="system">is</b>') == findings.count("<li>") - 1


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--config", "nothing"], 2, "found 'nothing'"),
        (["--config", "movies", "--split", "nothing"], 2, "eraser/movies: "),
        (["--config", "movies", "--predictions", "none.jsonl"], 1, "none.jsonl: "),
        (["--config", "movies", "--split", "val", "--predictions", "broken.jsonl"], 1, "broken.jsonl:1: "),
    ],
)
def test_what_report_refuses(hub, tmp_path, arguments, status, words):
    (tmp_path / "broken.jsonl").write_text("{")
    done = run("report", "--dataset", hub / "eraser", "--out", tmp_path / "out", *arguments, cwd=tmp_path)
    assert done.returncode == status and words in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists(), "nothing half-written"


def test_a_full_disk_leaves_nothing_and_little_memory_is_enough(hub, tmp_path):
    """Files of more than a few bytes cannot be written: as on a full disk, the system's error comes without a name."""
    report = ("report", "--dataset", hub / "eraser", "--config", "movies", "--split", "val", "--predictions", OURS)
    full = (*report, "--figures", tmp_path / "figures", "--out", tmp_path / "full")
    done = run(*full, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    assert done.returncode == 1 and done.stderr.startswith(f"{tmp_path / 'full' / 'index.html'}: "), done.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    bytes_of_memory = 1_500_000_000
    done = run(
        *report,
        "--out",
        tmp_path / "small",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (bytes_of_memory, bytes_of_memory)),
    )
    assert done.returncode == 0, done.stderr


def test_figures_need_matplotlib_and_a_page_without_them_says_so(hub, tmp_path, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    made = eraser_hub.report(hub / "eraser", OURS, out=tmp_path / "page", **MOVIES)
    assert "matplotlib is not installed" in read(made.page) and caplog.text.count("matplotlib") == 1
    with refused("figures need matplotlib"):
        eraser_hub.report(hub / "eraser", OURS, out=tmp_path / "none", figures=tmp_path / "figures", **MOVIES)
    assert not (tmp_path / "none").exists()
