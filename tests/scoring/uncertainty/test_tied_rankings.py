"""AUPRC by trapezoids rewards equal scores: it is said, and average precision stands for it in comparisons."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.rankings import rank_documents
from eraser_hub.scoring.comparison import Inference, compare_files
from eraser_hub.scoring.runs import System
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


def test_average_precision_is_tested_where_a_system_has_equal_scores(tmp_path):
    source, equal, *_ = make_files(tmp_path / "equal", lambda scores: [0.0] * len(scores))
    _, apart, *_ = make_files(tmp_path / "apart", lambda scores: np.argsort(scores).astype(float).tolist())
    systems = [System("equal", (equal,)), System("apart", (apart,))]
    result = compare_files(source, systems, None, Inference(n_resamples=100))
    assert "average_precision" in result["family"] and "auprc" not in result["family"]
    (note,) = [line for line in result["notes"] if line.startswith(EQUAL)]
    assert "equal +" in note and "apart" not in note
    chosen = compare_files(source, systems, None, Inference(n_resamples=100, primary=("auprc",)))
    assert chosen["family"] == ["auprc"] and not [line for line in chosen["notes"] if line.startswith(EQUAL)]


def test_the_order_of_a_systems_runs_is_nothing(tmp_path):
    source, equal, *_ = make_files(tmp_path / "equal", lambda scores: [0.0] * len(scores))
    _, apart, *_ = make_files(tmp_path / "apart", lambda scores: np.argsort(scores).astype(float).tolist())
    _, other, *_ = make_files(tmp_path / "other", lambda scores: np.argsort(scores)[::-1].astype(float).tolist())
    families = []
    for runs in ((equal, apart), (apart, equal)):
        systems = [System("several", runs), System("one", (other,))]
        families.append(compare_files(source, systems, None, Inference(n_resamples=100))["family"])
    assert families[0] == families[1] and "average_precision" in families[0] and "auprc" not in families[0]
