"""Rankings: the golden cases, scikit-learn as a second opinion, all orders of few tokens, and rankings of sentences."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from eraser_hub.metrics import ranking
from eraser_hub.metrics.errors import DataError
from eraser_hub.metrics.ranking import (
    AgreementSettings,
    expect_rankings,
    measure_rankings,
    rank_documents,
)
from eraser_hub.metrics.spans import Ranked, Rationales, Spans

pytestmark = pytest.mark.unit


def flat(documents: list[tuple[list[float], list[bool]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    scores = np.concatenate([np.array(each, dtype=float) for each, _ in documents])
    truth = np.concatenate([np.array(each, dtype=bool) for _, each in documents])
    return scores, truth, np.append(0, np.cumsum([len(each) for each, _ in documents]))


def test_golden_cases(golden: Path) -> None:
    """Expected values: golden/small/soft_rationales.json (the reference scorer's output); null stands for NaN."""
    for case in json.loads((golden / "small" / "soft_rationales.json").read_text())["cases"]:
        documents = [(each["scores"], each["truth"]) for each in case["documents"]]
        table = rank_documents(*flat(documents))
        for key, values in zip(ranking.RANKING_KEYS, table, strict=True):
            known = values[~np.isnan(values)]
            expected = case["expected"][key]
            assert (known.size == 0) if expected is None else known.mean() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("positives", "size"), [(0, 3), (1, 4), (2, 5), (3, 3)])
def test_expected_values_are_means_over_all_orders(positives: int, size: int) -> None:
    scores = np.arange(size, dtype=float)
    orders = [np.isin(np.arange(size), chosen) for chosen in itertools.combinations(range(size), positives)]
    tables = np.concatenate([rank_documents(scores, truth, np.array([0, size])) for truth in orders], axis=1)
    expected = expect_rankings(np.array([positives]), np.array([size]))[:, 0]
    np.testing.assert_allclose(expected, tables.mean(axis=1), atol=1e-12)


def make_match() -> Rationales:
    """Return 3 instances: documents of 4 sentences, of one, and of 4 whose evidence has no sentence offsets."""
    match = Rationales(3, np.arange(3))
    match.tokens, match.sentences, match.evidence = np.full(3, 8), np.array([4, 1, 4]), np.ones(3, dtype=bool)
    match.truth = Spans(np.array([0, 0, 1, 2]), np.array([0, 1, 0, 0]), np.array([2, 3, 2, 2]))
    match.group, match.group_owner = np.arange(4), np.array([0, 0, 1, 2])
    match.truth_sentences = Spans(match.truth.key, np.array([0, 0, 0, -1]), np.array([1, 2, 1, -1]))
    values = np.array([0.9, 0.2, 0.6, 0.1, 0.7, 0.9, 0.1, 0.1, 0.1])
    match.sentence_soft = Ranked(np.array([0, 1, 2]), np.array([0, 4, 5, 9]), values)
    return match


def test_sentences_leave_out_what_cannot_be_judged() -> None:
    """A document of one sentence counts in rankings alone; one without sentence offsets not at all."""
    columns = measure_rankings(make_match())
    counts = {name: columns[f"sentence.{name}"].tolist() for name in ("truth", "predicted", "hits", "keys")}
    assert counts == {"truth": [2, 0, 0], "predicted": [2, 0, 0], "hits": [1, 0, 0], "keys": [1, 0, 0]}
    assert columns["sentence_auprc.count"].tolist() == [1, 1, 0]
    assert columns["sentence_average_precision.count"].tolist() == [1, 0, 0]
    assert [columns[f"sentence.{name}"].sum() for name in ("documents", "single", "unknown")] == [1, 1, 1]
    assert "auprc.sum" not in columns
    inclusive = measure_rankings(make_match(), sentence_threshold=0.9)
    assert inclusive["sentence.predicted"].tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("policy", "total", "count"), [("reference", 0.5, 1), ("skip", 0, 0), ("zero", 0, 1), ("one", 1, 1)]
)
def test_policies_of_documents_without_evidence(policy: str, total: float, count: int) -> None:
    match = Rationales(1, np.array([0]), np.array([2]))
    match.soft = Ranked(np.array([0]), np.array([0, 2]), np.array([0.5, 0.1]))
    for columns, start in ((measure_rankings(match, policy, chance=True), start) for start in ("", "chance.")):
        assert columns[f"{start}auprc.sum"].tolist() == [total] and columns[f"{start}auprc.count"].tolist() == [count]


@pytest.mark.parametrize("size", [9, 300, 5000])
def test_parts_are_the_whole(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(size)
    documents = [(random.random(n).round(2).tolist(), (random.random(n) < 0.2).tolist()) for n in (size, 1, 7, size)]
    alone = np.concatenate([rank_documents(*flat([each])) for each in documents], axis=1)
    np.testing.assert_allclose(rank_documents(*flat(documents)), alone, atol=1e-12)
    match = make_match()
    match.soft = Ranked(np.array([2, 0, 1]), np.array([0, 8, 16, 24]), random.random(24))
    whole = measure_rankings(match, chance=True)
    monkeypatch.setattr(ranking, "TOKENS_AT_ONCE", 9)
    for name, column in measure_rankings(match, chance=True).items():
        np.testing.assert_array_equal(column, whole[name], err_msg=name)


@pytest.mark.parametrize(
    ("settings", "argument", "words"),
    [
        ({"iou_threshold": 0.0}, "iou_threshold", r"expected a number in \(0, 1\], found 0.0"),
        ({"iou_thresholds": [0.5, 1.5]}, "iou_thresholds", "found 1.5"),
        ({"auprc_policy": "half"}, "auprc_policy", "expected one of reference, skip, zero, one, found 'half'"),
        ({"unmarked": "drop"}, "unmarked", "expected one of score, skip, found 'drop'"),
    ],
)
def test_wrong_settings(settings: dict, argument: str, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        AgreementSettings(**settings)
    assert caught.value.argument == argument
