"""Chance of agreement scores, against every random rationale there is; annotations without gold."""

from __future__ import annotations

import warnings
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest

from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.rankings import expect_rankings, rank_documents

Pairs = list[tuple[int, int]]


def text(sentences: list[int]) -> str:
    return "\n".join(" ".join("w" for _ in range(size)) for size in sentences)


def row(name: str, sentences: list[int], gold: Pairs) -> dict[str, Any]:
    group = [
        {"docid": name, "text": "", "start_token": a, "end_token": b, "start_sentence": -1, "end_sentence": -1}
        for a, b in gold
    ]
    documents = [{"docid": name, "text": text(sentences)}]
    return {"annotation_id": name, "classification": "x", "documents": documents, "evidences": [group] if group else []}


def answer(name: str, spans: Pairs) -> dict[str, Any]:
    hard = [{"start_token": a, "end_token": b} for a, b in spans]
    return {"annotation_id": name, "rationales": [{"docid": name, "hard_rationale_predictions": hard}]}


def compute(predictions: list[dict[str, Any]], references: list[dict[str, Any]], **settings: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = EraserAgreement().compute(predictions=predictions, references=references, **settings)
    assert found is not None
    return found


def runs(tokens: tuple[int, ...]) -> Pairs:
    return [(token, token + 1) for token in tokens]


def test_token_scores_of_chance_are_the_mean_over_all_rationales_of_the_size():
    references = [row("a", [4, 3], [(1, 3)]), row("b", [6], [(0, 1), (4, 6)])]
    predictions = [answer("a", [(0, 2)]), answer("b", [(2, 6)])]
    chance = compute(predictions, references, chance=True)["chance"]
    drawn = [
        compute([answer("a", runs(one)), answer("b", runs(other))], references)
        for one in combinations(range(7), 2)
        for other in combinations(range(6), 4)
    ]
    keys = [f"token_{kind}_{part}" for kind in ("micro", "macro") for part in ("p", "r", "f1")]
    for key in keys:
        assert chance[key] == pytest.approx(np.mean([one[key] for one in drawn]), abs=1e-12), key


@pytest.mark.parametrize(("size", "positive"), [(1, 1), (2, 1), (5, 2), (6, 3), (6, 6), (4, 0)])
def test_rankings_of_chance_are_the_mean_over_all_orders(size: int, positive: int):
    truth = np.arange(size) < positive
    drawn = [rank_documents(np.array(order, float), truth, np.array([0, size])) for order in permutations(range(size))]
    found = expect_rankings(np.array([positive]), np.array([size]))
    for key in found._fields:
        expected = np.mean([getattr(one, key)[0] for one in drawn])
        assert getattr(found, key)[0] == pytest.approx(expected, abs=1e-12, nan_ok=True), key


def test_rankings_of_chance_equal_a_simulation():
    """Prevalence is the precision before a positive: the trapezoid lies between it and average precision."""
    random = np.random.default_rng(7)
    truth = np.arange(200) < 30
    drawn = rank_documents(random.random(200 * 4000), np.tile(truth, 4000), np.arange(4001) * 200)
    found = expect_rankings(np.array([30]), np.array([200]))
    assert drawn.auprc.mean() == pytest.approx(found.auprc[0], abs=0.002)
    assert drawn.average_precision.mean() == pytest.approx(found.average_precision[0], abs=0.002)
    assert found.auprc[0] == pytest.approx((0.15 + found.average_precision[0]) / 2)


# ------------------------------------------------------------------------------------------------------ unmarked rows
MARKED = [row("a", [6], [(1, 3)]), row("b", [5], [(0, 2)])]
UNMARKED = [row("c", [4], []), row("d", [4], [(2, 2)])]
SCORES = [0.1, 0.9, 0.8, 0.2, 0.3, 0.1]
PREDICTIONS = [
    {
        **(one := answer(name, [(1, 2)])),
        "rationales": [{**one["rationales"][0], "soft_rationale_predictions": SCORES[:size]}],
    }
    for name, size in (("a", 6), ("b", 5), ("c", 4), ("d", 4))
]


def test_one_switch_governs_f1_iou_and_auprc():
    rows = MARKED + UNMARKED
    alone = compute(PREDICTIONS[:2], MARKED)
    scored, skipped = compute(PREDICTIONS, rows), compute(PREDICTIONS, rows, unmarked="skip")
    keys = [key for key in alone if key != "signature"]
    assert "marked" not in alone and "gold" not in alone
    for key in keys:
        assert scored["marked"][key] == skipped["marked"][key] == skipped[key] == alone[key], key
        assert scored["all"][key] == skipped["all"][key] == scored[key], key
    assert scored["token_macro_f1"] == alone["token_macro_f1"] / 2
    assert scored["iou_micro_f1"] != alone["iou_micro_f1"] and scored["auprc"] == (2 * alone["auprc"] + 1) / 4
    assert scored["gold"] == skipped["gold"] == {"marked_rows": 2, "unmarked_rows": 2, "density": (2 / 6 + 2 / 5) / 2}
    counts = "marked_rows:2|unmarked_rows:2"
    assert f"|n:4|iou:0.5|auprc_no_positives:reference|unmarked:score|{counts}|" in scored["signature"]
    assert f"|n:2|iou:0.5|auprc_no_positives:reference|unmarked:skip|{counts}|" in skipped["signature"]


def test_intervals_and_single_instances_are_those_of_the_rows_that_count():
    found = compute(
        PREDICTIONS,
        MARKED + UNMARKED,
        unmarked="skip",
        per_instance=True,
        n_resamples=50,
        by="annotation_id",
    )
    alone = compute(PREDICTIONS[:2], MARKED, per_instance=True, n_resamples=50, by="annotation_id")
    for key in ("per_instance", "by", "token_macro_f1_ci"):
        assert found[key] == alone[key]


def test_chance_is_that_of_the_rows_that_count():
    rows = MARKED + UNMARKED
    alone = compute(PREDICTIONS[:2], MARKED, chance=True)
    skipped, scored = (compute(PREDICTIONS, rows, chance=True, unmarked=one) for one in ("skip", "score"))
    assert skipped["chance"] == pytest.approx(alone["chance"])
    # both documents without gold count 0.5 whatever the ranking
    assert scored["chance"]["auprc"] == pytest.approx(alone["chance"]["auprc"] / 2 + 0.25)
    assert scored["chance"]["token_macro_f1"] == pytest.approx(alone["chance"]["token_macro_f1"] / 2)


def test_without_gold_nothing_is_skipped_silently():
    with pytest.raises(ValueError, match="nothing to score: expected a gold rationale"):
        compute(PREDICTIONS[2:], UNMARKED, unmarked="skip")
    assert compute(PREDICTIONS[2:], UNMARKED)["auprc"] == 0.5  # the papers' scorer
    with pytest.warns(UserWarning, match="agreement leaves out 2 of 4 annotations without gold rationale"):
        EraserAgreement().compute(predictions=PREDICTIONS, references=MARKED + UNMARKED, unmarked="skip")
    with pytest.raises(ValueError, match="expected one of score, skip, found 'drop'"):
        compute(PREDICTIONS, MARKED + UNMARKED, unmarked="drop")
