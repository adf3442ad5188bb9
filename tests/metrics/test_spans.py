"""Span counts: the golden cases, plain sets as a second opinion, and matchings against scipy's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.agreement_scores import precision_recall_f1
from eraser_hub.metrics.spans import (
    Spans,
    count_spans,
    cover_groups,
    find_overlapping_pairs,
    match_pairs,
    unique_spans,
)
from eraser_hub.metrics.statistics_builder import divide

from ..refusals import refused

pytestmark = pytest.mark.unit

span = st.tuples(st.integers(0, 3), st.integers(0, 12), st.integers(0, 6)).map(lambda s: (s[0], s[1], s[1] + s[2]))
spans = st.lists(span, max_size=12)
KEYS = 4


def flat(rows: list[tuple[int, int, int]]) -> Spans:
    return Spans(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)


def prf(counts: tuple[np.ndarray, np.ndarray, np.ndarray]) -> dict[str, dict[str, float]]:
    p, r, f = precision_recall_f1(*counts)
    used = (counts[0] > 0) | (counts[1] > 0)
    micro = precision_recall_f1(*(column.sum() for column in counts))
    macro = [float(divide(column[used].sum(), used.sum())) for column in (p, r, f)]
    names = ("p", "r", "f1")
    return {
        "instance_micro": dict(zip(names, map(float, micro), strict=True)),
        "instance_macro": dict(zip(names, macro, strict=True)),
    }


def test_golden_cases(golden: Path) -> None:
    """Expected values: golden/small/hard_rationales.json (the reference scorer's output), every key."""
    cases: list[dict[str, Any]] = json.loads((golden / "small" / "hard_rationales.json").read_text())["cases"]
    for case in cases:
        keys: dict[tuple[str, str], int] = {}
        truth, predicted = (
            flat([(keys.setdefault((name, doc), len(keys)), a, b) for name, doc, a, b in case[side]])
            for side in ("truth", "predicted")
        )
        counts = count_spans(truth, predicted, len(keys), case["iou_thresholds"])
        expected = case["expected"]
        for part, own in (("rationale_prf", counts.exact), ("token_prf", counts.token)):
            found = prf(own)
            for kind in found:
                assert found[kind] == pytest.approx(expected[part][kind], abs=1e-9)
        n_truth, n_predicted, _ = counts.exact
        for (threshold, hits, _), scores in zip(counts.iou, expected["iou_scores"], strict=True):
            assert threshold == scores["threshold"]
            p, r, f = precision_recall_f1(n_truth.sum(), n_predicted.sum(), hits.sum())
            assert {"p": p, "r": r, "f1": f} == pytest.approx(scores["micro"], abs=1e-9)
            p = divide(divide(hits, n_predicted).sum(), (n_predicted > 0).sum())
            r = divide(divide(hits, n_truth).sum(), (n_truth > 0).sum())
            assert {"p": p, "r": r, "f1": divide(2 * p * r, p + r)} == pytest.approx(scores["macro"], abs=1e-9)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(spans, spans, st.sampled_from([0.1, 0.25, 0.5, 1.0]))
def test_plain_sets_agree(truth: list, predicted: list, threshold: float) -> None:
    counts = count_spans(flat(truth), flat(predicted), KEYS, [threshold])
    for key in range(KEYS):
        t, p = ({(a, b) for k, a, b in rows if k == key} for rows in (truth, predicted))
        assert [int(column[key]) for column in counts.exact] == [len(t), len(p), len(t & p)]
        tokens, others = ({i for a, b in rows for i in range(a, b)} for rows in (t, p))
        assert [int(column[key]) for column in counts.token] == [len(tokens), len(others), len(tokens & others)]
        hits = 0
        for a, b in p:
            best = 0.0
            for c, d in t:
                union = len(set(range(a, b)) | set(range(c, d)))
                best = max(best, len(set(range(a, b)) & set(range(c, d))) / union if union else 0.0)
            hits += best >= threshold
        assert counts.iou[0][1][key] == hits


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=40, unique=True))
def test_matching_is_largest_and_one_to_one(edges: list[tuple[int, int]]) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    graph = pytest.importorskip("scipy.sparse.csgraph")
    edges = sorted(edges)
    p, t = np.array([e[0] for e in edges], dtype=int), np.array([e[1] for e in edges], dtype=int)
    chosen = match_pairs(p, t)
    assert len(set(p[chosen])) == len(chosen) == len(set(t[chosen]))
    matrix = sparse.csr_matrix((np.ones(len(p)), (p, t)), shape=(8, 8))
    assert len(chosen) == (graph.maximum_bipartite_matching(matrix) >= 0).sum()


@settings(max_examples=100, derandomize=True, deadline=None)
@given(spans, spans, st.sampled_from([0.1, 0.5]))
def test_matched_variant_never_exceeds_either_side(truth: list, predicted: list, threshold: float) -> None:
    counts = count_spans(flat(truth), flat(predicted), KEYS, [threshold])
    _, hits, matched = counts.iou[0]
    assert (matched <= np.minimum(counts.exact[0], counts.exact[1])).all()
    assert (matched <= hits).all()


def test_two_halves_hit_one_truth_span_twice() -> None:
    counts = count_spans(flat([(0, 0, 10)]), flat([(0, 0, 5), (0, 5, 10)]), 1, [0.5])
    _, hits, matched = counts.iou[0]
    assert hits.tolist() == [2] and matched.tolist() == [1]


def test_long_truth_span_before_short_ones_is_found() -> None:
    truth = unique_spans(flat([(0, 0, 100), (0, 10, 11), (0, 20, 21)]))
    pairs = find_overlapping_pairs(truth, unique_spans(flat([(0, 90, 100)])))
    assert pairs[1].tolist() == [0] and pairs[2].tolist() == [0.1]


def test_any_group_of_several_documents() -> None:
    truth = flat([(0, 0, 2), (1, 4, 6), (0, 0, 4)])
    whole, best = cover_groups(np.array([0, 0, 1]), np.array([0, 1, 2]), truth, flat([(0, 0, 2), (1, 4, 6)]), 3)
    assert str(whole.tolist()) == "[1.0, 0.0, nan]" and str(best.tolist()) == "[1.0, 0.5, nan]"
    whole, best = cover_groups(np.array([0, 0, 1]), np.array([0, 0, 1]), truth, flat([(0, 0, 2)]), 2)
    assert whole.tolist()[0] == 0 and best.tolist()[0] == 0.5


def test_offsets_too_far_for_the_arrays_are_refused() -> None:
    with refused("range", f"{2**61}"):
        count_spans(flat([(3, 0, 2**61)]), flat([(0, 0, 1)]), 4, [0.5])


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), span), max_size=12), spans, st.integers(1, 20))
def test_group_coverage_is_that_of_sets(truth: list, predicted: list, at_once: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eraser_hub.metrics.spans.COPIES_AT_ONCE", at_once)
        groups = np.array([g for g, _ in truth], dtype=int)
        whole, best = cover_groups(groups, np.arange(5), flat([s for _, s in truth]), flat(predicted), 5)
    places = {(key, token) for key, start, end in predicted for token in range(start, end)}
    for group in range(5):
        own = {(key, token) for g, (key, start, end) in truth if g == group for token in range(start, end)}
        recall = len(own & places) / len(own) if own else np.nan
        assert best[group] == pytest.approx(recall, abs=1e-12, nan_ok=True)
        assert whole[group] == pytest.approx(float(own <= places) if own else np.nan, nan_ok=True)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(spans, spans, st.integers(1, 5))
def test_pairs_in_many_rounds_are_those_of_one(truth: list, predicted: list, at_once: int) -> None:
    sides = unique_spans(flat(truth)), unique_spans(flat(predicted))
    whole = find_overlapping_pairs(*sides)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eraser_hub.metrics.spans.PAIRS_AT_ONCE", at_once)
        rounds = find_overlapping_pairs(*sides)
    for one, other in zip(whole, rounds, strict=True):
        assert one.tolist() == other.tolist()
