"""Rows of printed tables, from data to score: beside the print, and going on where a run was stopped."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from eraser_hub import build, reproduce
from eraser_hub.experiments.rows import FAST, TABLES
from eraser_hub.reports.board_lines import read_score_file

from ..command_line import invoke
from ..needs import needs
from ..planted import plant
from ..refusals import refused

pytestmark = needs("torch")


@pytest.fixture(autouse=True, scope="module")
def _late_imports() -> None:
    global measured
    from eraser_hub.experiments import table_runs as measured


TINY = ("embedding_size=6", "hidden_size=6", "learning_rate=0.02")
CONFIG = "planted_word"


@pytest.fixture(scope="module")
def hub(tmp_path_factory) -> Path:
    """A small planted corpus, and one that has a test split alone."""
    folder = tmp_path_factory.mktemp("planted")
    plant(folder / "whole" / CONFIG, {"train": 24, "val": 12, "test": 16})
    build("own", folder / "whole", out=folder / "hub")
    plant(folder / "part" / CONFIG, {"test": 4})
    build("own", folder / "part", out=folder / "untrained")
    return folder


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Sizes that take seconds."""
    models = ("lei", "lei-unsupervised", "lehman", "glove-lstm", "bilstm")
    train_options = {model: {"epochs": 1.0, "hyper": TINY} for model in models}
    monkeypatch.setattr(measured, "FAST", replace(FAST, train_options=train_options, sample=8))


@pytest.fixture
def only(monkeypatch):
    """Leaves a table these rows alone."""

    def leave(table, *models):
        rows = tuple(row for row in TABLES[table].rows if row.model in models)
        monkeypatch.setitem(TABLES, table, replace(TABLES[table], rows=rows))

    return leave


def run(hub, table, **more):
    return reproduce(table, **{"dataset": hub / "hub" / CONFIG, "config": CONFIG, "fast": True, **more})


def test_printed_figures_stand_where_the_papers_have_them():
    table = TABLES["eraser-3"]
    lei, unsupervised, lehman, _ = table.rows
    assert table.get_printed(lei, "movies") == {"macro_f1": "0.914", "iou_macro_f1": "0.124", "token_macro_f1": "0.285"}
    assert table.get_printed(lehman, "movies")["macro_f1"] == "0.750"  # ACL 2020; .738 in the first version
    assert table.get_printed(unsupervised, "movies")["token_macro_f1"] == "0.322"  # the first version alone
    assert table.get_printed(lei, CONFIG) == {}
    cell = table.make_cell(lehman, "movies", "macro_f1", (0.7004, 0.65, 0.75))
    assert str(cell) == "0.700 [0.650, 0.750] (0.750, -0.050)"
    soft = {row.system: TABLES["eraser-4"].get_printed(row, "movies") for row in TABLES["eraser-4"].rows}
    assert soft["BERT + LSTM - Attention"]["auprc"] == "0.467" and soft["GloVe + LSTM - Attention"] == {}
    (people,) = TABLES["eraser-2"].rows
    assert TABLES["eraser-2"].get_printed(people, "movies")["f1"] == "0.799 ± 0.138"


def test_rows_run_and_those_that_cannot_say_why(hub, tmp_path, only):
    only("eraser-3", "lehman", "bert-to-bert")
    tables = run(hub, "eraser-3", out=tmp_path / "out")
    (table,) = tables.tables
    assert table.columns == ("macro_f1", "iou_macro_f1", "token_macro_f1")
    rows = {left[0]: cells for left, cells in table.rows}
    lehman = rows["Lehman et al. (2019)"]
    assert 0 <= lehman["macro_f1"].low <= lehman["macro_f1"].value <= lehman["macro_f1"].high <= 1
    assert rows["Bert-To-Bert"]["macro_f1"].value is None
    assert any(note.startswith("Bert-To-Bert: ") and "encoder" in note for note in table.notes)
    assert any(note.startswith("`fast`, lehman: epochs 1.0, embedding_size=6") for note in table.notes)
    assert any(note.startswith("scored:8/16 ") for note in table.notes)
    line = read_score_file(tmp_path / "out" / "lehman-et-al-2019.scores.json")
    assert line.system == "Lehman et al. (2019)" and line.dataset == CONFIG and line.split == "test"
    predictions = (tmp_path / "out" / "lehman-et-al-2019.predictions.jsonl").read_text().splitlines()
    labels = [json.loads(one)["annotation_id"] for one in predictions]
    assert len(labels) == 8  # a sample, half of each label: the split may be sorted
    for format in ("text", "markdown", "latex", "json", "csv"):
        assert "Lehman" in tables.written(format)


def test_prints_of_another_split_have_a_table_of_their_own(hub, tmp_path, only):
    only("eraser-3", "lehman")
    beside = run(hub, "eraser-3", out=tmp_path / "test", seeds=2)
    (table,) = beside.tables
    ((_, cells),) = table.rows
    assert re.fullmatch(r"\d\.\d{3} ± \d\.\d{3}", cells["macro_f1"].value)
    assert "means of 2 seeds, ± their standard deviation" in table.notes
    assert {path.name for path in (tmp_path / "test").iterdir() if path.is_dir()} == {"seed-1", "seed-2"}
    apart = run(hub, "eraser-3", split="val", out=tmp_path / "val")
    table, printed = apart.tables
    assert all(cell.printed is None for _, cells in table.rows for cell in cells.values())
    (reason,) = printed.notes
    assert reason.startswith("scored on validation (") and "printed of test (" in reason


def test_a_run_goes_on_where_it_stopped(hub, tmp_path, only, monkeypatch, caplog):
    only("eraser-4", "glove-lstm")
    real, calls = measured.explain_runs, []

    def stopping(job, runs, **how):
        calls.append(runs[0][0].method)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(job, runs, **how)

    monkeypatch.setattr(measured, "explain_runs", stopping)
    with pytest.raises(KeyboardInterrupt):
        run(hub, "eraser-4", out=tmp_path / "out")
    monkeypatch.setattr(measured, "explain_runs", real)
    weights = tmp_path / "out" / "models" / "glove-lstm" / "weights.safetensors"
    before = weights.stat().st_mtime_ns
    caplog.set_level("INFO", "eraser_hub")
    caplog.clear()
    (table,) = run(hub, "eraser-4", out=tmp_path / "out").tables
    assert weights.stat().st_mtime_ns == before and "glove-lstm: trained before" in caplog.text
    assert all(cells["auprc"].value is not None for _, cells in table.rows)
    random = dict(zip((left[0] for left, _ in table.rows), (cells for _, cells in table.rows), strict=True))
    assert random["GloVe + LSTM - Random"]["auprc"].low is None  # a mean of draws
    assert any(note.startswith("random ") and " 2 draws" in note for note in table.notes)
    assert len(list((tmp_path / "out").glob("glove-lstm-random.predictions.draw-*.jsonl"))) == 2
    assert read_score_file(tmp_path / "out" / "glove-lstm-random.draw-01.scores.json").scores["auprc"] is not None
    monkeypatch.setattr("eraser_hub.systems.run_folder.train_model", None)  # all is done: nothing is trained again
    (again,) = run(hub, "eraser-4", out=tmp_path / "out").tables
    assert again.rows == table.rows


def test_another_run_or_another_folder_is_refused(hub, tmp_path, only):
    only("eraser-3")
    out = tmp_path / "out"
    run(hub, "eraser-3", out=out)
    with refused("seed was 1, now 2", file=out, argument="out"):
        run(hub, "eraser-3", seed=2, out=out)
    (out / "reproduce.json").write_text("{")
    with refused(file="reproduce.json"):
        run(hub, "eraser-3", out=out)
    (out / "reproduce.json").unlink()
    (out / "thesis.txt").write_text("mine")
    with refused("`reproduce`", file=out, argument="out"):
        run(hub, "eraser-3", out=out)
    with refused("table", "eraser-2, eraser-3", "'eraser-5'"):
        run(hub, "eraser-5", out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_without_a_train_split_each_row_says_so(hub, tmp_path, only):
    only("eraser-3", "lehman")
    (table,) = run(hub, "eraser-3", dataset=hub / "untrained" / CONFIG, out=tmp_path / "out").tables
    (note,) = [note for note in table.notes if "not run" in note]
    assert note.startswith("Lehman et al. (2019): ") and " test;" in note and "'train'" in note


@pytest.mark.slow
def test_three_regimes(hub, tmp_path, only):
    only("carton2020-3", "logistic-regression")
    (table,) = run(hub, "carton2020-3", out=tmp_path / "out").tables
    ((left, cells),) = table.rows
    assert left == ("Logistic regression",) and list(cells) == list(TABLES["carton2020-3"].columns)
    # one word decides, and nothing else stands in a rationale
    assert cells["train_eval_rationale"].value == cells["eval_rationale"].value == 1.0
    files = sorted((tmp_path / "out").glob("*.scores.json"))
    regimes = ("eval rationale", "no rationale", "train eval rationale")
    assert sorted(read_score_file(path).system for path in files) == [f"Logistic regression, {one}" for one in regimes]
    assert any("Figure 6" in note for note in table.notes)
    assert any(note.startswith("Logistic regression: ") and "encoder" in note for note in table.notes)


@pytest.mark.slow
def test_human_rationales_under_models(hub, tmp_path, only):
    only("carton2020-figure-2", "logistic-regression", "encoder")
    (table,) = run(hub, "carton2020-figure-2", out=tmp_path / "out").tables
    (_, cells), (_, missing) = table.rows
    assert cells["sufficiency"].value > 0.9  # 1 minus a small difference
    assert (
        0 <= cells["comprehensiveness"].low <= cells["comprehensiveness"].value <= cells["comprehensiveness"].high <= 1
    )
    assert missing["accuracy"].value is None
    assert any(note.startswith("RoBERTa: ") and "encoder" in note for note in table.notes)


def test_annotators_of_the_release(samples, tmp_path):
    build("eraser", samples / "eraser", config="movies", out=tmp_path / "hub")
    dataset = tmp_path / "hub" / "eraser"
    (table,) = reproduce("eraser-2", dataset=dataset, source=samples / "eraser", out=tmp_path / "out").tables
    ((_, cells),) = table.rows
    assert (
        cells["documents"].printed == "96" and cells["f1"].printed == "0.799 ± 0.138" and "±" in str(cells["f1"].value)
    )
    (table,) = reproduce("eraser-2", dataset=dataset, config="movies", out=tmp_path / "other").tables
    assert any("human_performance*.jsonl" in note for note in table.notes)


def test_the_command_prints_the_table(hub, tmp_path, only):
    only("eraser-3", "bert-to-bert")
    options = ["--config", CONFIG, "--dataset", hub / "hub" / CONFIG, "--fast", "--out", tmp_path / "o"]
    result = invoke(["reproduce", "--table", "eraser-3", *options, "--format", "json"])
    assert result.exit_code == 1  # no row could run
    rows = json.loads(result.stdout)["tables"]["eraser-3"]["rows"]
    assert rows[0]["system"] == "Bert-To-Bert" and rows[0]["macro_f1"]["value"] is None
