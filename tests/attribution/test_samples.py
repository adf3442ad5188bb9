"""Pairs of the bundled samples end to end: built, trained on, explained, and scored by the metric modules."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
import eraser_hub
from eraser_hub.attribution.dataset import open_split
from eraser_hub.conversion import get_dataset

from ..refusals import refused


@pytest.fixture(scope="module")
def built(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built dataset, and a model beside it."""
    out, name = tmp_path_factory.mktemp("samples_hub"), "bilingual_perturbation"
    get_dataset(name).build(["senti_ch"], source=samples / name, out=out)
    of = {"config": "senti_ch", "split": "test", "eval_split": ""}
    eraser_hub.train(out / name, "logistic-regression(features=characters)", out=out / "model", **of)
    return out / name


def explained(built: Path, out: Path, **options) -> list[dict]:
    options = {"config": "senti_ch", "split": "test", "out": out, **options}
    (report,) = eraser_hub.explain(built.parent / "model", built, **options)
    assert report.signature.endswith(f"eraser-hub:{eraser_hub.__version__}")
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def test_the_rationales_of_pairs_are_erased_as_they_are(built, tmp_path, spaces):
    import evaluate

    human, again = tmp_path / "human.jsonl", tmp_path / "again.jsonl"
    rows = explained(built, human, paper="carton2020")
    references = list(open_split(str(built), "senti_ch", "test").rows)
    for row, gold in zip(rows, references, strict=True):
        assert row["rationale"] == [sorted({at for one in sets for at in one}) for sets in gold["rationale_ids"]]
        assert "rationale_tokens" not in row and "kd" not in row
    sets = evaluate.load(str(spaces / "rationale_set_agreement"))
    scores = sets.compute(predictions=rows, references=references)
    assert scores["token_f1"] == 1.0 and {"accuracy_rationale", "accuracy_no_rationale"} <= set(scores)  # Acc_r, Acc_nr
    assert explained(built, again, paper="carton2020", rationales=human) == rows
    human.write_text(json.dumps({**rows[0], "rationale": [[99]]}) + "\n")
    with refused("14", "99", file="human.jsonl", line=1, instance="1"):
        explained(built, again, rationales=human, limit=1, force=True)


def test_chinese_pairs_give_a_map_above_chance(built, tmp_path, spaces):
    import evaluate

    references = list(open_split(built, "senti_ch", "test").rows)
    scores = {}
    for method in ("coefficients", "random"):
        rows = explained(built, tmp_path / f"{method}.jsonl", method=method)
        sets = evaluate.load(str(spaces / "rationale_set_agreement"), keep_in_memory=True)
        agreement = sets.compute(predictions=rows, references=references)
        assert {"token_f1", "iou_f1", "sufficiency", "comprehensiveness", "new_p"} <= set(agreement)
        for row, gold in zip(rows, references, strict=True):
            ranked = row["ranked_tokens"][0]
            assert len(ranked) == len(gold["tokens"][0]) and row["kd"] == [0.276]
            assert row["rationale_tokens"][0] == ranked[: math.ceil(0.276 * len(ranked))]
        metric = evaluate.load(str(spaces / "perturbation_map"), keep_in_memory=True)
        scores[method] = metric.compute(predictions=rows, references=references)["map"]
    assert scores["coefficients"] > scores["random"] + 0.1
