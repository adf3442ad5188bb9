"""Folds of the training split: texts that share documents lie in one fold, and what is missing is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from eraser_hub.systems.folds import cluster_texts, make_folds
from eraser_hub.systems.train_config import TrainConfig
from eraser_hub.systems.training import train_model
from tests.attribution.conftest import instance, write_hub


def test_a_cluster_is_in_one_fold() -> None:
    """12 clusters of 3 texts; without them texts of a cluster fall apart."""
    clusters = np.repeat(np.arange(12), 3)
    labels = np.array(["a", "b"] * 18)
    folds = make_folds(labels, 1, clusters)
    assert len(folds) == 5 and sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(36))
    assert all(not {*clusters[train]} & {*clusters[test]} for train, test in folds)
    assert any({*clusters[train]} & {*clusters[test]} for train, test in make_folds(labels, 1))
    for one, other in zip(folds, make_folds(labels, 1, clusters), strict=True):
        assert all(np.array_equal(*pair) for pair in zip(one, other, strict=True))


@pytest.mark.parametrize(
    ("labels", "clusters", "count"),
    [
        ("aabb", [0, 0, 0, 0], 0),  # one cluster: nothing is left to test on
        ("aabb", [0, 0, 1, 1], 0),  # each cluster has one label: no fold could train
        ("aabbab", [0, 0, 1, 1, 2, 2], 3),
        ("aaab", [0, 1, 2, 3], 0),  # one label alone has two texts
    ],
)
def test_folds_that_could_not_train_are_left_out(labels: str, clusters: Sequence[int], count: int) -> None:
    folds = make_folds(np.array(list(labels)), 1, np.array(clusters))
    assert len(folds) == count
    assert all(len({*np.array(list(labels))[train]}) == 2 for train, _ in folds)


def test_texts_share_documents_by_id_or_by_tokens() -> None:
    one, other, third = instance("a b", "one"), instance("a b", "other"), instance("c", "third")
    same = replace(third, names=one.names)
    assert one.names != other.names
    assert cluster_texts([one, other, third], by_name=True) is None
    assert cluster_texts([one, other, same], by_name=True).tolist() == [0, 1, 0]  # type: ignore[union-attr]
    assert cluster_texts([one, other, same], by_name=False).tolist() == [0, 0, 1]  # type: ignore[union-attr]


def as_row(number: int, text: str, label: int, place: int | None, query: str = "q") -> dict[str, Any]:
    """A row of one text, named by its words, of which one may be marked."""
    evidence = {"docid": text, "text": "", "start_token": place, "end_token": (place or 0) + 1}
    return {
        "annotation_id": str(number),
        "classification": label,
        "query": query,
        "documents": [{"docid": text, "text": text}],
        "evidences": [[evidence]] if place is not None else [],
    }


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 texts with two questions each, whose answers the text does not tell; a label that only test has."""
    pairs = [(n, query) for n in range(20) for query in ("one", "two")]
    train = [as_row(at, f"w{n} text", n * 7 % 20 // 10, 0, query) for at, (n, query) in enumerate(pairs)]
    splits = {"train": train, "test": [as_row(99, "w1 text", 2, 1)]}
    return write_hub(tmp_path_factory.mktemp("folds") / "hub", "pairs", splits, ["yes", "no", "perhaps"])


def accuracies(lines: Sequence[str]) -> list[float]:
    return [float(line.split()[2].rstrip(",")) for line in lines if "the mean of 5 folds" in line]


def test_train_groups_its_folds_by_documents(hub: Path, tmp_path: Path) -> None:
    """By instances the twin of a text is in the training folds, and its word tells the answer."""
    config = TrainConfig(dataset=str(hub), config="pairs", model="logistic-regression", eval_split="", query=False)
    found = {}
    for folds in ("documents", "instances"):
        said: list[str] = []
        list(train_model(replace(config, folds=folds), tmp_path / folds, said.append))  # type: ignore[arg-type]
        found[folds] = max(accuracies(said))
        assert any("perhaps (1 of 3)" in line for line in said)
        clustered = "folds: 40 instances in 20 clusters that share documents; no cluster is in two folds"
        assert (clustered in said) == (folds == "documents")
    assert found["documents"] <= 0.5 < 0.9 <= found["instances"]


def test_rationales_are_counted_over_the_evaluated_instances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    splits = {
        split: [as_row(n, f"w{n} {('good', 'bad')[n % 2]} {split}", n % 2, (None, 1)[n % 4 // 2]) for n in range(20)]
        for split in ("train", "test")
    }
    hub = write_hub(tmp_path / "hub", "half", splits, ["yes", "no"])
    config = TrainConfig(dataset=str(hub), config="half", model="logistic-regression", eval_split="test", limit=8)
    seen: list[str] = []
    monkeypatch.setattr("eraser_hub.systems.training.cluster_texts", lambda *_: seen.append("clusters"))
    said: list[str] = []
    list(train_model(config, tmp_path / "model", said.append))
    (line,) = [line for line in said if "are marked" in line]
    marked, _, total = line.removeprefix("eval-rationale: ").split()[:3]
    assert total == "8" and 0 < int(marked) < 8 and seen == ["clusters"]
