"""Several trainings of a model, and their explanations."""

from __future__ import annotations

import json

import pytest

import eraser_hub

from ..refusals import refused


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
    where = {"dataset": "hub/eraser", "config": "movies", "split": "val", "resamples": 10}
    result = eraser_hub.compare("ours=p.occlusion.jsonl", "chance=p.random.jsonl", **where)
    assert result["runs"] == {"ours": 2, "chance": 2}
    assert "ours and chance explain the same trainings: their runs are paired" in result["notes"]
    with refused():
        (tmp_path / "p.random.seed-5.jsonl").write_text("not ours")
        (tmp_path / "p.random.seed-5.jsonl.run.json").unlink()
        eraser_hub.explain("models", "hub/eraser", **how)


def test_the_same_command_goes_on(train, tmp_path):
    train(seeds=2)
    before = {seed: (tmp_path / f"models/seed-{seed}/model.json").stat().st_mtime_ns for seed in (1, 2)}
    train(seeds=3)
    assert (tmp_path / "models" / "seed-3" / "model.json").is_file()
    assert before == {seed: (tmp_path / f"models/seed-{seed}/model.json").stat().st_mtime_ns for seed in (1, 2)}
    with refused("features", argument="out"):
        train(model="logistic-regression(features=characters)")


def test_seeds_that_cannot_be(train):
    with refused("4294967296", argument="seeds"):
        train(seed=2**32 - 1)
    with refused(argument="seeds"):
        train(seeds=0)
    train(seeds=1, out="model")
    with refused(argument="out"):
        train(out="model")
