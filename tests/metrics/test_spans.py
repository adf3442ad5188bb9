"""Scores of spans: the golden cases, plain sets as a second opinion, matchings against scipy's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.spans import NO_SPANS, Rationales, Spans, match_spans, measure_spans, prf_scores, span_scores
from eraser_hub.metrics.statistics import Statistics

pytestmark = pytest.mark.unit

Row = tuple[int, int, int]


def flat(rows: list[Row]) -> Spans:
    return Spans(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)


def make_match(truth: list[Row], predicted: list[Row], owner: list[int], groups: list[int] | None = None) -> Rationales:
    """Return a match of documents of 20 tokens; each truth span is a group, where they are not given."""
    n = max(owner, default=-1) + 1
    group = np.arange(len(truth)) if groups is None else np.array(groups, dtype=int)
    group_owner = np.zeros(group.max(initial=-1) + 1, dtype=int)
    for number, (key, _, _) in zip(group, truth, strict=True):
        group_owner[number] = owner[key]
    match = Rationales(n, np.array(owner, dtype=int))
    match.tokens, match.sentences = np.full(len(owner), 20), np.full(len(owner), 4)
    match.evidence = np.isin(np.arange(len(owner)), [key for key, _, _ in truth])
    match.truth, match.predicted = flat(truth), flat(sorted(predicted))
    match.group, match.group_owner = group, group_owner
    match.truth_sentences = Spans(match.truth.key, *np.full((2, len(truth)), -1))
    return match


def score(match: Rationales, thresholds: list[float]) -> dict[str, float]:
    columns = measure_spans(match, thresholds)
    scores = span_scores(thresholds, thresholds[0]) | prf_scores("sentence", "span_sentence", np.nan)
    return {key: float(value) for key, value in Statistics([""] * match.n, columns, scores).values().items()}


def test_golden_cases(golden: Path) -> None:
    """Expected values: golden/small/hard_rationales.json (the reference scorer's output), but for empty predictions."""
    compared = 0
    for case in json.loads((golden / "small" / "hard_rationales.json").read_text())["cases"]:
        if any(start == end for _, _, start, end in case["predicted"]):
            continue  # refused by `rows`
        keys: dict[tuple[str, str], int] = {}
        truth, predicted = (
            [(keys.setdefault((name, doc), len(keys)), a, b) for name, doc, a, b in case[side]]
            for side in ("truth", "predicted")
        )
        names = list(dict.fromkeys(name for name, _ in keys))
        match = make_match(truth, list(dict.fromkeys(predicted)), [names.index(name) for name, _ in keys])
        found, expected = score(match, case["iou_thresholds"]), case["expected"]
        tables = {
            f"{key}_{kind}_{{}}": expected[f"{part}_prf"][f"instance_{kind}"]
            for part, key in (("rationale", "exact"), ("token", "token"))
            for kind in ("micro", "macro")
        }
        for scores in expected["iou_scores"]:
            end = "" if scores["threshold"] == case["iou_thresholds"][0] else f"@{scores['threshold']}"
            tables |= {f"iou_{kind}_{{}}{end}": scores[kind] for kind in ("micro", "macro")}
        for key, values in tables.items():
            assert {part: found[key.format(part)] for part in values} == pytest.approx(values, abs=1e-9), key
        compared += 1
    assert compared == 128


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=40, unique=True))
def test_matching_is_largest(edges: list[tuple[int, int]]) -> None:
    sparse, graph = pytest.importorskip("scipy.sparse"), pytest.importorskip("scipy.sparse.csgraph")
    p, t = np.array(sorted(edges), dtype=int).reshape(-1, 2).T
    matched = match_spans(p, t)
    assert len(set(matched.tolist())) == matched.size
    matrix = sparse.csr_matrix((np.ones(p.size), (p, t)), shape=(8, 8))
    assert matched.size == (graph.maximum_bipartite_matching(matrix) >= 0).sum()


def test_two_halves_hit_one_truth_span_twice() -> None:
    match = make_match([(0, 0, 10)], [(0, 0, 5), (0, 5, 10)], [0])
    scores, columns = score(match, [0.5]), measure_spans(match, [0.5], chance=True)
    assert scores["iou_micro_r"] == scores["iou_macro_r"] == 2 and scores["iou_matched_r"] == 1
    assert columns["chance.token.hits"].tolist() == [10 * 10 / 20]
    assert span_scores([0.5], 0.5)["iou_micro_r"].high is None, "no span has more than 1 where none is hit twice"
    once = measure_spans(make_match([(0, 0, 10)], [(0, 0, 5)], [0]), [0.5])
    assert span_scores([0.5], 0.5, once)["iou_micro_r"].high == 1


@pytest.mark.parametrize(
    ("predicted", "whole", "best"),
    [([(0, 0, 2), (1, 4, 6)], 1.0, 1.0), ([(0, 0, 3)], 0.0, 0.75), ([], 0.0, 0.0)],
)
def test_groups_are_alternatives_over_documents(predicted: list[Row], whole: float, best: float) -> None:
    match = make_match([(0, 0, 2), (1, 4, 6), (0, 0, 4), (0, 3, 3)], predicted, [0, 0], groups=[0, 0, 1, 2])
    scores = score(match, [0.5])
    assert scores["any_group_coverage"] == whole and scores["best_group_recall"] == best


def test_sentences_that_spans_touch() -> None:
    """Documents of one sentence and annotations without sentence offsets are left out, and counted."""
    match = make_match([(0, 0, 2), (1, 0, 2), (2, 0, 2)], [(0, 4, 11), (1, 0, 2)], [0, 1, 2, 2])
    match.sentences = np.array([4, 1, 4, 4])
    match.truth_sentences = flat([(0, 0, 2), (1, 0, 1), (2, -1, -1)])
    match.predicted_sentences = flat([(0, 1, 4), (1, 0, 1)])
    columns = measure_spans(match, [0.5])
    scores = score(match, [0.5])
    assert [scores[f"sentence_micro_{part}"] for part in ("p", "r", "f1")] == pytest.approx([1 / 3, 1 / 2, 2 / 5])
    counts = {part: columns[f"span_sentence.{part}"].tolist() for part in ("documents", "single", "unknown")}
    assert counts == {"documents": [1, 0, 0], "single": [0, 1, 0], "unknown": [0, 0, 1]}


def test_nothing_to_count() -> None:
    match = make_match([], [], [0])
    match.predicted, match.truth_sentences = None, NO_SPANS
    scores = score(match, [0.5])
    assert {scores[key] for key in ("token_micro_f1", "token_macro_f1", "iou_macro_f1")} == {0.0}
    assert np.isnan([scores[key] for key in ("any_group_coverage", "sentence_micro_f1", "sentence_macro_p")]).all()
