"""Rows of printed tables, from data to score: beside the print, and going on where a run was stopped."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import pytest

from eraser_hub import build
from eraser_hub.attribution.method import METHODS
from eraser_hub.experiments import reproduce as module
from eraser_hub.experiments.reproduce import load_tables, read_print, reproduce
from eraser_hub.records.registry import make_settings
from eraser_hub.reports.board_page import read_score_file
from eraser_hub.systems import training
from eraser_hub.systems.system import SYSTEMS

from ..command_line import invoke
from ..needs import needs
from ..planted import plant
from ..refusals import refused

pytestmark = needs("torch")

TINY = {"epochs": 1.0, "embedding_size": 6, "hidden_size": 6, "learning_rate": 0.02}
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


@pytest.fixture
def only(monkeypatch):
    """Leave a table these models' rows alone, with sizes that take seconds."""

    def leave(table, *models):
        content = copy.deepcopy(load_tables())
        content["sample"] = 8
        for model in ("lei", "lei-unsupervised", "lehman", "glove-lstm", "bilstm"):
            content["models"][model]["fast"] = TINY
        spec = content["tables"][table]
        spec["rows"] = [row for row in spec["rows"] if row["model"] in models]
        monkeypatch.setattr(module, "load_tables", lambda: content)

    return leave


def run(hub, table, **more):
    return reproduce(table, **{"dataset": hub / "hub" / CONFIG, "config": CONFIG, "fast": True, **more})


def rows_of(table):
    return {left[0]: cells for left, cells in table.rows}


def test_printed_figures_stand_where_the_papers_have_them():
    tables = load_tables()["tables"]
    columns, (lei, _, lehman, _), source, _ = read_print(tables["eraser-3"], "movies")
    assert columns == ("macro_f1", "iou_macro_f1", "token_macro_f1")
    assert lei == {"macro_f1": "0.914", "iou_macro_f1": "0.124", "token_macro_f1": "0.285"}
    assert lehman["macro_f1"] == "0.750"  # ACL 2020; .738 in the first version
    assert source == "ERASER (ACL 2020), Table 3, ERASER v1 (2019), Table 3"
    assert read_print(tables["eraser-3"], "cose")[0][0] == "accuracy"
    assert read_print(tables["eraser-2"], "movies")[1][0]["f1"] == "0.799 ± 0.138"


def test_fast_rows_are_calls_that_systems_and_methods_take():
    from eraser_hub.systems.finetuning import FineTuning  # imports torch

    content = load_tables()
    for name, model in content["models"].items():
        kind = FineTuning if name == "encoder" else SYSTEMS.find(name)
        make_settings(kind, model["fast"], name, "model")
    for row in (row for table in content["tables"].values() for row in table["rows"]):
        METHODS.make(row.get("fast") or row.get("method") or "occlusion")


def test_rows_run_and_those_that_cannot_say_why(hub, tmp_path, only, caplog):
    only("eraser-3", "lehman", "bert-to-bert")
    tables = run(hub, "eraser-3", out=tmp_path / "out")
    (table,) = tables.tables
    rows = rows_of(table)
    lehman = rows["Lehman et al. (2019)"]
    assert 0 <= lehman["macro_f1"].low <= lehman["macro_f1"].value <= lehman["macro_f1"].high <= 1
    assert rows["Bert-To-Bert"]["macro_f1"].value is None
    (reason,) = [note for note in table.notes if "Bert-To-Bert" in note or "bert-to-bert" in note]
    assert reason.startswith("Bert-To-Bert: not run: `encoder`: ")
    assert len(set(table.notes)) == len(table.notes) and not {*table.notes} & {*caplog.messages}
    assert any(note.startswith("`fast`: lehman(epochs=1.0, embedding_size=6") for note in table.notes)
    assert "scored:8/16 annotations" in table.notes
    line = read_score_file(tmp_path / "out" / "lehman-et-al-2019.scores.json")
    assert line.system == "Lehman et al. (2019)" and line.dataset == CONFIG and line.split == "test"
    predictions = (tmp_path / "out" / "lehman-et-al-2019.predictions.jsonl").read_text().splitlines()
    assert len({json.loads(one)["annotation_id"] for one in predictions}) == 8
    assert all("Lehman" in tables.written(form) for form in ("text", "markdown", "latex", "json", "csv"))


def test_prints_of_another_split_have_a_table_of_their_own(hub, tmp_path, only, monkeypatch):
    only("eraser-3", "lehman")
    (table,) = run(hub, "eraser-3", out=tmp_path / "test", seeds=2).tables
    ((_, cells),) = table.rows
    assert re.fullmatch(r"\d\.\d{3} ± \d\.\d{3}", cells["macro_f1"].value)
    assert "means of 2 seeds, ± their standard deviation" in table.notes
    assert {path.name for path in (tmp_path / "test").iterdir() if path.is_dir()} == {"seed-1", "seed-2"}
    assert len(run(hub, "eraser-3", split="val", out=tmp_path / "val").tables) == 1, "nothing is printed of this corpus"
    monkeypatch.setattr(module, "read_print", lambda spec, config: read_print(spec, "movies"))
    table, printed = run(hub, "eraser-3", split="val", out=tmp_path / "val").tables
    assert all(cell.printed is None for _, cells in table.rows for cell in cells.values())
    assert rows_of(printed)["Lehman et al. (2019)"]["macro_f1"].value == "0.750"
    (reason,) = printed.notes
    assert reason.startswith("scored on validation (") and "printed of test (" in reason


def test_a_run_goes_on_where_it_stopped(hub, tmp_path, only, monkeypatch, caplog):
    only("eraser-4", "glove-lstm")
    real, calls = module.explain, []

    def stopping(*arguments, **how):
        calls.append(how["method"])
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments, **how)

    monkeypatch.setattr(module, "explain", stopping)
    with pytest.raises(KeyboardInterrupt):
        run(hub, "eraser-4", out=tmp_path)
    monkeypatch.setattr(module, "explain", real)
    monkeypatch.setattr(training, "train_model", None)  # the model is there
    caplog.set_level("INFO", "eraser_hub")
    (table,) = run(hub, "eraser-4", out=tmp_path).tables
    assert "glove-lstm: trained before" in caplog.text
    rows = rows_of(table)
    assert all(cells["auprc"].value is not None for cells in rows.values())
    assert rows["GloVe + LSTM - Lime"]["auprc"].low is not None
    assert rows["GloVe + LSTM - Random"]["auprc"].low is None  # a mean of draws
    assert any(note.startswith("random ") and " 2 draws" in note for note in table.notes)
    assert len(list(tmp_path.glob("glove-lstm-random.predictions.draw-*.jsonl"))) == 2
    assert read_score_file(tmp_path / "glove-lstm-random.draw-01.scores.json").scores["auprc"] is not None
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.jsonl")}
    (again,) = run(hub, "eraser-4", out=tmp_path).tables
    assert again.rows == table.rows and before == {path: path.stat().st_mtime_ns for path in before}


def test_without_a_train_split_each_row_says_so(hub, tmp_path, only):
    only("eraser-3", "lehman")
    made = run(hub, "eraser-3", dataset=hub / "untrained" / CONFIG, out=tmp_path / "out")
    (note,) = [note for note in made.tables[0].notes if "not run" in note]
    assert note.startswith("Lehman et al. (2019): ") and "one of test" in note and "'train'" in note
    assert made.failed


def test_what_cannot_be_is_refused(tmp_path):
    with refused("eraser-2, eraser-3", "'eraser-5'", argument="table"):
        reproduce("eraser-5", out=tmp_path / "new")
    with refused(argument="seeds"):
        reproduce("eraser-3", seeds=0, out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_three_regimes(hub, tmp_path, only):
    only("carton2020-3", "logistic-regression")
    (table,) = run(hub, "carton2020-3", out=tmp_path).tables
    ((left, cells),) = table.rows
    assert left == ("Logistic regression",) and list(cells) == list(module.REGIMES)
    # one word decides, and nothing else stands in a rationale
    assert cells["train_eval_rationale"].value == cells["eval_rationale"].value == 1.0
    regimes = ("eval rationale", "no rationale", "train eval rationale")
    systems = sorted(read_score_file(path).system for path in tmp_path.glob("*.scores.json"))
    assert systems == [f"Logistic regression, {one}" for one in regimes]
    assert any("Figure 6" in note for note in table.notes)
    assert any(note.startswith("Logistic regression: ") and "encoder" in note for note in table.notes)


@pytest.mark.slow
def test_human_rationales_under_models(hub, tmp_path, only):
    only("carton2020-figure-2", "logistic-regression", "encoder")
    (table,) = run(hub, "carton2020-figure-2", out=tmp_path).tables
    (_, cells), (_, missing) = table.rows
    assert cells["sufficiency"].value > 0.9  # 1 minus a small difference
    comprehensiveness = cells["comprehensiveness"]
    assert 0 <= comprehensiveness.low <= comprehensiveness.value <= comprehensiveness.high <= 1
    assert missing["accuracy"].value is None
    assert any(note.startswith("RoBERTa: ") and "encoder" in note for note in table.notes)


def test_annotators_of_the_release(samples, tmp_path):
    build("eraser", samples / "eraser", config="movies", out=tmp_path / "hub")
    dataset = tmp_path / "hub" / "eraser"
    (table,) = reproduce("eraser-2", dataset=dataset, source=samples / "eraser", out=tmp_path / "out").tables
    ((_, cells),) = table.rows
    assert cells["documents"].printed == "96" and cells["f1"].printed == "0.799 ± 0.138"
    assert "±" in str(cells["f1"].value)
    (table,) = reproduce("eraser-2", dataset=dataset, config="movies", out=tmp_path / "other").tables
    assert any("human_performance*.jsonl" in note for note in table.notes)


def test_the_command_prints_the_table(hub, tmp_path, only):
    only("eraser-3", "bert-to-bert")
    options = ["--config", CONFIG, "--dataset", hub / "hub" / CONFIG, "--fast", "--out", tmp_path / "o"]
    result = invoke(["reproduce", "--table", "eraser-3", *options, "--format", "json"])
    assert result.exit_code == 1 and not (tmp_path / "o").exists()  # no row could run
    rows = json.loads(result.stdout)["tables"]["eraser-3"]["rows"]
    assert rows[0]["system"] == "Bert-To-Bert" and rows[0]["macro_f1"]["value"] is None
    assert "not run" not in result.stderr, "it stands below the table"
