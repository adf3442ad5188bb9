"""Headline scores in words, where the rows have gaps: a formula comes out, or the words stand alone."""

from __future__ import annotations

from eraser_hub.metrics.annotator_agreement import AnnotatorAgreement
from eraser_hub.metrics.score_explanations import explain_scores

KAPPA = "(observed − by chance) / (1 − by chance)"
PAIR = [[1, 0, 0, 1], [1, 0, 1, 1]]


def explain(*annotators: list, scores: dict | None = None) -> dict[str, str]:
    rows = [{"id": str(at), "annotators": marks} for at, marks in enumerate(annotators)]
    scores = scores or AnnotatorAgreement().compute(references=rows)
    return {one.key: one.formula for one in explain_scores("annotator_agreement", scores, (), rows)}


def test_an_annotator_who_did_not_read_a_text_does_not_count():
    found = explain([*PAIR, None])
    assert found == explain(PAIR)
    # observed 3 / 4; 5 of 8 marked: by chance 2 / 4 * 3 / 4 + 2 / 4 * 1 / 4
    assert found["pairwise_kappa"] == f"{KAPPA}: (0.75 − 0.50) / (1 − 0.50) = 0.50"


def test_a_token_without_a_mark_does_not_count():
    scores = AnnotatorAgreement().compute(references=[{"id": "0", "annotators": PAIR}])
    found = explain([[1, 0, 0, 1, None], [1, 0, 1, 1, 0]], scores=scores)
    assert found["krippendorff_alpha"] == explain(PAIR)["krippendorff_alpha"] and " = " in found["krippendorff_alpha"]
    assert found["pairwise_kappa"] == f"{KAPPA}, mean over pairs of annotators"


def test_numbers_that_do_not_give_the_score_are_left_out():
    row = {
        "classification": "A",
        "classification_scores": {"A": 0.9},
        "comprehensiveness_classification_scores": {"A": 0.3},
    }
    for value, numbers in ((0.6, ": 0.90 − 0.30 = 0.60"), (0.5, "")):
        (one,) = explain_scores("eraser_faithfulness", {"comprehensiveness": value}, [row])
        assert one.formula == f"p(whole text) − p(without it){numbers}"
