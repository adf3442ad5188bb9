"""Notes on the distances and entropies that predictions hold."""

from __future__ import annotations

import pytest

from eraser_hub.reports.catalogue import metric
from eraser_hub.reports.sections import describe_distances
from eraser_hub.scoring.scores import Scores

pytestmark = pytest.mark.unit


def test_distances_and_entropies_are_explained_where_there_are_any():
    far = Scores("ours", scores={"distance_whole": 1.0, "entropy_whole": 0.1})
    plain = Scores("theirs", scores={"entropy_whole": 0.1})
    distance, entropy = describe_distances([far, plain])
    assert distance.startswith("Distance from training texts") and entropy.startswith("Predictive entropy")
    assert describe_distances([plain]) == [entropy] and describe_distances([Scores("none")]) == []
    assert metric("distance_sufficiency").label == "Distance from training texts, rationale alone"
