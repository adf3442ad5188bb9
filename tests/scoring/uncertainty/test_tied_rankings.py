"""AUPRC by trapezoids rewards equal scores: it is said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.rankings import rank_documents
from eraser_hub.scoring.score import score

from ...metrics.eraser_rows import random_case
from ..small_corpora import written

pytestmark = pytest.mark.unit

EQUAL = "many tokens have equal scores"


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(st.booleans(), min_size=2, max_size=30).filter(lambda one: len(set(one)) == 2), st.randoms())
def test_without_equal_scores_auprc_is_at_most_average_precision(truth, random):
    scores = np.array(random.sample(range(len(truth)), len(truth)), dtype=np.float64)
    ranked = rank_documents(scores, np.array(truth), np.array([0, len(truth)]))
    assert ranked.auprc[0] <= ranked.average_precision[0] + 1e-12


def make_files(folder, change):
    """Predictions for a small corpus with changed soft scores."""
    predictions, references = random_case(5, n=30)
    for row in predictions:
        for rationale in row["rationales"]:
            scores = rationale.get("soft_rationale_predictions")
            rationale["soft_rationale_predictions"] = scores and change(scores)
    folder.mkdir()
    return written(folder, predictions, references)


def test_a_ranking_of_equal_scores_is_noted(tmp_path):
    source, equal, *_ = make_files(tmp_path / "equal", lambda scores: [0.0] * len(scores))
    scored = score(source, equal)
    assert scored.scores["auprc"] > scored.scores["average_precision"] + 0.2
    (note,) = [line for line in scored.notes if line.startswith(EQUAL)]
    assert "compare by that" in note
    source, apart, *_ = make_files(tmp_path / "apart", lambda scores: np.argsort(scores).astype(float).tolist())
    assert not [line for line in score(source, apart).notes if line.startswith(EQUAL)]
