"""Baselines: texts that share documents lie in one fold, and Carton's models are chosen by the validation split."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from eraser_hub import explain, train
from eraser_hub.papers.presets import load_preset
from tests.attribution.conftest import write_hub

from ..needs import late, needs
from ..refusals import refused

pytestmark = needs("sklearn", "skops", "torch", "transformers")
baselines = late("eraser_hub.systems.baselines")


def test_a_cluster_is_in_one_fold():
    """12 clusters of 3 texts; without them texts of a cluster fall apart."""
    clusters, labels = np.repeat(np.arange(12), 3), np.array(["a", "b"] * 18)
    folds = baselines.make_folds(labels, 1, clusters)
    assert len(folds) == 5 and sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(36))
    assert all(not {*clusters[train]} & {*clusters[test]} for train, test in folds)
    assert any({*clusters[train]} & {*clusters[test]} for train, test in baselines.make_folds(labels, 1))


@pytest.mark.parametrize(
    ("labels", "clusters", "count"),
    [
        ("aabb", [0, 0, 1, 1], 0),  # each cluster has one label: no fold could train
        ("aabbab", [0, 0, 1, 1, 2, 2], 3),
        ("aaab", [0, 1, 2, 3], 0),  # one label alone has two texts
    ],
)
def test_folds_that_could_not_train_are_left_out(labels, clusters, count):
    folds = baselines.make_folds(np.array(list(labels)), 1, np.array(clusters))
    assert len(folds) == count and all(len({*np.array(list(labels))[train]}) == 2 for train, _ in folds)


def make_row(number: int, text: str, label: int, place: int | None, query: str = "q") -> dict[str, Any]:
    """A row of one text, named by its words, of which one may be marked."""
    evidence = {"docid": text, "text": "", "start_token": place, "end_token": (place or 0) + 1}
    return {
        "annotation_id": str(number),
        "classification": label,
        "query": query,
        "documents": [{"docid": text, "text": text}],
        "evidences": [[evidence]] if place is not None else [],
    }


def test_train_groups_its_folds_by_documents(tmp_path, caplog):
    """20 texts, two questions each, whose answers the text does not tell; by instances the twin's word tells them."""
    pairs = [(n, query) for n in range(20) for query in ("one", "two")]
    rows = [make_row(at, f"w{n} text", n * 7 % 20 // 10, 0, query) for at, (n, query) in enumerate(pairs)]
    splits = {"train": rows, "test": [make_row(99, "w1 text", 2, 1)]}
    hub, found = write_hub(tmp_path / "hub", "pairs", splits, ["yes", "no", "perhaps"]), {}
    for folds in ("documents", "instances"):
        caplog.clear()
        call = f"logistic-regression(folds={folds}, query=False)"
        train(hub, call, config="pairs", eval_split="", out=tmp_path / folds)
        lines = caplog.messages
        (scanned,) = [line for line in lines if line.startswith("C, its accuracy over 5 folds: ")]
        found[folds] = max(float(pair.split()[1]) for pair in scanned.partition(": ")[2].split(", "))
        assert any("perhaps (1 of 3)" in line for line in lines)
        clustered = "folds: 40 instances in 20 clusters that share documents; no cluster is in two folds"
        assert (clustered in lines) == (folds == "documents")
    assert found["documents"] <= 0.5 < 0.9 <= found["instances"]


def test_what_was_not_evaluated_and_why_is_said(tmp_path, caplog):
    """Rationales are counted over the evaluated instances; without `eval_split` the existing splits are named."""
    splits = {
        split: [make_row(n, f"w{n} {('good', 'bad')[n % 2]} {split}", n % 2, (None, 1)[n % 4 // 2]) for n in range(20)]
        for split in ("train", "test")
    }
    hub = write_hub(tmp_path / "hub", "half", splits, ["yes", "no"])
    where = {"config": "half", "out": tmp_path / "m", "limit": 8}
    train(hub, "logistic-regression", **where, eval_split="test")
    (line,) = [line for line in caplog.messages if "are marked" in line]
    marked, _, total = line.removeprefix("eval-rationale: ").split()[:3]
    assert total == "8" and 0 < int(marked) < 8
    caplog.clear()
    assert len(train(hub, "logistic-regression", **where).lines) == 1
    (line,) = [line for line in caplog.messages if line.startswith("not evaluated")]
    assert "train, test" in line and "`eval_split`" in line
    with refused("train, test", "'val'", argument="eval_split"):
        train(hub, "logistic-regression", **where, eval_split="val")


def test_carton_s_model_is_the_first_of_the_best_on_validation(hub, tokenizer, tmp_path, caplog):
    tokenizer.save_pretrained(tmp_path / "pieces")
    call = f"logistic-regression(tokenizer={tmp_path / 'pieces'})"
    options = {"config": "movies", "paper": "carton2020", "out": tmp_path / "m"}
    with refused("carton2020", argument="eval_split"):
        train(hub, call, **options, eval_split="")
    assert len(train(hub, call, **options).lines) == 3
    facts = json.loads((tmp_path / "m" / "model.json").read_text())
    (scanned,) = [line for line in caplog.messages if line.startswith("C, its accuracy on the validation split: ")]
    shares = [float(pair.split()[1]) for pair in scanned.partition(": ")[2].split(", ")]
    assert len(shares) == 7 and facts["size"] == load_preset("carton2020").training["C"][shares.index(max(shares))]
    assert (facts["features"], facts["longest"], facts["settings"]["tokenizer"]) == ("sub-words", 512, "pieces")
    explain(tmp_path / "m", hub, config="movies", split="val", limit=2, paper="carton2020", out=tmp_path / "p.jsonl")
    assert len((tmp_path / "p.jsonl").read_text().splitlines()) == 2
