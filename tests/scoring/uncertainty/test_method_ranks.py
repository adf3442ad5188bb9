"""Ranks of methods within each model, by hand."""

from __future__ import annotations

import json

import pytest

from eraser_hub.reports.bench.findings import describe_findings
from eraser_hub.scoring.scores import Comparison, Scores
from eraser_hub.scoring.uncertainty.method_ranks import rank_methods


@pytest.fixture
def make(tmp_path):
    """Make the scores of a system, whose file records its model and method."""

    def build(name, model, method, **scores):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("{}")
        record = {"model": {"digest": model}, "signature": f"explain|method:{method}|version:3"}
        (tmp_path / f"{name}.jsonl.run.json").write_text(json.dumps(record))
        return Scores(name=name, scores=scores, files=[path])

    return build


@pytest.fixture
def systems(make):
    """Two models and three methods; the second is surer, so all its differences are larger."""
    rows = {
        "a lime": ("a", "lime", 0.10, 0.30, 0.8),
        "a random": ("a", "random", 0.02, 0.40, 0.8),
        "a occlusion": ("a", "occlusion", 0.20, 0.30, 0.8),
        "b lime": ("b", "lime", 0.70, 0.60, 0.9),
        "b random": ("b", "random", 0.30, 0.80, 0.9),
        "b occlusion": ("b", "occlusion", 0.60, 0.70, 0.9),
    }
    keys = ("comprehensiveness_aopc", "sufficiency_aopc", "macro_f1")
    return {name: make(name, *row[:2], **dict(zip(keys, row[2:], strict=True))) for name, row in rows.items()}


def test_methods_are_ranked_within_each_model(systems):
    ranked = rank_methods(systems)
    assert ranked["models"]["b"] == {"lime": "b lime", "random": "b random", "occlusion": "b occlusion"}
    assert list(ranked["scores"]) == ["comprehensiveness_aopc", "sufficiency_aopc"]  # no method moves macro F1
    up, down = ranked["scores"].values()
    assert up["ranks"] == {"lime": [2, 1], "random": [3, 3], "occlusion": [1, 2]}
    assert up["mean"] == {"lime": 1.5, "random": 3, "occlusion": 1.5}
    # rank sums 3, 6, 3 about 4: S = 6, W = 12 * 6 / (4 * 24)
    assert up["kendall_w"] == pytest.approx(0.75)
    assert down["ranks"] == {"lime": [1.5, 1], "random": [3, 3], "occlusion": [1.5, 2]}  # lower is better; a tie


def test_models_are_named_by_what_their_systems_share(systems):
    assert list(rank_methods(systems)["models"]) == ["a", "b"]
    other = {name.replace("b lime", "the other one"): one for name, one in systems.items()}
    assert list(rank_methods(other)["models"]) == ["a", "model of the other one"]


def test_one_model_or_one_method_or_a_method_twice_has_no_ranks(systems, make):
    assert rank_methods({name: one for name, one in systems.items() if name.startswith("a")}) == {}
    assert rank_methods({name: one for name, one in systems.items() if name.endswith("lime")}) == {}
    again = make("a lime again", "a", "lime", comprehensiveness_aopc=0.1, sufficiency_aopc=0.1)
    assert rank_methods(systems | {"again": again}) == {}
    alone = make("a people", "a", "", comprehensiveness_aopc=0.1)
    assert list(rank_methods(systems | {"people": alone})["scores"]) == ["comprehensiveness_aopc", "sufficiency_aopc"]


def test_tables_and_findings_show_ranks(systems):
    result = {"comparisons": [], "family": [], "method_ranks": rank_methods(systems)}
    text = Comparison(result).table().written("text")
    assert "Ranks of methods within each model" in text and "0.75" in text
    models = {name: name[0] for name in systems}
    assert describe_findings(result, models=models)[-1] == (
        "Best mean rank of 3 methods within each model: lime and occlusion by Comprehensiveness (AOPC) (1.5, Kendall's "
        "W 0.75); lime by Sufficiency (AOPC) (1.2, Kendall's W 0.93)."
    )
