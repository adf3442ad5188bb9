"""Folders of runs: one at a time, the same settings; several trainings of a model, and their explanations."""

from __future__ import annotations

import json

import pytest

import eraser_hub
from eraser_hub.records.errors import BusyError
from eraser_hub.records.predictions import read_signature
from eraser_hub.systems.folder import lock_run_folder

from ..refusals import refused


def test_another_run_or_another_folder_is_refused(tmp_path):
    out, settings = tmp_path / "out", {"seed": 1, "split": "test"}
    with lock_run_folder(out, "bench", settings), refused(type=BusyError), lock_run_folder(out, "bench", settings):
        pass
    with lock_run_folder(out, "bench", settings):
        (out / "file").write_text("ours")
    for other, words in (({**settings, "seed": 2}, "seed was 1, now 2"), ({"seed": 1}, "split was 'test', now None")):
        with refused(words, file=out, argument="out"), lock_run_folder(out, "bench", other):
            pass
    with refused("`reproduce`", file=out, argument="out"), lock_run_folder(out, "reproduce", settings):
        pass
    (out / "bench.json").write_text("{")
    with refused(file="bench.json"), lock_run_folder(out, "bench", settings):
        pass


@pytest.fixture
def train(samples, tmp_path, monkeypatch):
    eraser_hub.build("eraser", samples / "eraser", config="movies", out=tmp_path / "hub")
    monkeypatch.chdir(tmp_path)
    common = {"dataset": "hub/eraser", "config": "movies", "model": "logistic-regression"}
    return lambda **more: eraser_hub.train(**{**common, "seeds": 2, "out": "models", **more})


def test_trainings_explanations_and_their_comparison(train, tmp_path):
    said = train(seed=4).lines
    assert [line for line in said if "trained on" in line] == [
        f"models/seed-{seed}: logistic-regression trained on the full text of train" for seed in (4, 5)
    ]
    how = {"config": "movies", "split": "val", "method": ("random", "occlusion"), "out": "p.jsonl"}
    reports = eraser_hub.explain("models", "hub/eraser", **how)
    names = [f"p.{method}.seed-{seed}.jsonl" for seed in (4, 5) for method in ("random", "occlusion")]
    assert [report.out.name for report in reports] == names
    records = [json.loads((tmp_path / f"{name}.run.json").read_text()) for name in names]
    assert [f"|seed:{seed}|" in record["signature"] for record, seed in zip(records, (1, 1, 2, 2), strict=True)]
    assert len({record["model"]["digest"] for record in records}) == 2
    reports = eraser_hub.explain("models", "hub/eraser", **{**how, "method": "random(draws=2)", "out": "d.jsonl"})
    assert [f"|seed:{seed}|" in read_signature(report.out) for seed, report in enumerate(reports, 1)] == [True] * 4
    where = {"dataset": "hub/eraser", "config": "movies", "split": "val", "resamples": 10}
    result = eraser_hub.compare("ours=p.occlusion.jsonl", "chance=p.random.jsonl", **where)
    assert result["runs"] == {"ours": 2, "chance": 2}
    assert "ours and chance explain the same trainings: their runs are paired" in result["notes"]
    with refused():
        (tmp_path / "p.random.seed-5.jsonl").write_text("not ours")
        (tmp_path / "p.random.seed-5.jsonl.run.json").unlink()
        eraser_hub.explain("models", "hub/eraser", **how)
