"""The benchmark of scores: models that provably look at the planted words alone, explanations, judgements, the command."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from eraser_hub.experiments.candidates import CANDIDATES, PADDING, true
from eraser_hub.experiments.planted_models import LOGIT, PlantedModel
from eraser_hub.experiments.score_benchmark import (
    FAST,
    BenchmarkSettings,
    _deciding,
    benchmark,
    benchmark_tables,
    clusters_of,
    planted_rows,
    shares,
    verdict,
)
from eraser_hub.explain.instances import instance_of_eraser
from eraser_hub.samples.plant import KINDS, LABELS

TINY = replace(FAST, kinds=("word", "conjunction"), size=4, soft_draws=2, perturbations=3, n_resamples=200)
SURE = 1 / (1 + np.exp(-LOGIT))
TEXTS = {
    kind: [instance_of_eraser(row, LABELS) for row in planted_rows(kind, BenchmarkSettings(size=12))] for kind in KINDS
}


@pytest.mark.parametrize("kind", KINDS)
def test_models_are_right_and_know_nothing_without_a_deciding_word(kind):
    model = PlantedModel(kind)
    for one in TEXTS[kind]:
        p = model.predict_proba([one.tokens])[0]
        assert p[LABELS.index(one.label)] == pytest.approx(SURE)
        for place in np.flatnonzero(_deciding(one)):
            masked = [model.mask_token if at == place else token for at, token in enumerate(one.tokens)]
            assert model.predict_proba([masked])[0].tolist() == [0.5, 0.5]


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.sampled_from(list(KINDS)), st.integers(0, 11), st.integers(0, 10_000), st.floats(0, 1))
def test_models_look_at_the_planted_words_alone(kind, number, seed, share):
    """Whatever else is masked, p stays: any set of other words but full stops, by which a last sentence is known."""
    one, model = TEXTS[kind][number], PlantedModel(kind)
    gone = (np.random.default_rng(seed).random(len(one.tokens)) < share) & ~_deciding(one)
    gone &= np.array([token != "." for token in one.tokens])
    masked = [model.mask_token if away else token for away, token in zip(gone, one.tokens, strict=True)]
    assert model.predict_proba([masked]).tolist() == model.predict_proba([one.tokens]).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_explanations_are_what_they_are_called(kind):
    for one in TEXTS[kind]:
        deciding, random = _deciding(one), np.random.default_rng(1)
        count = int(deciding.sum())

        def top(name, size, deciding=deciding, random=random, label=one.label):
            scores = (CANDIDATES.get(name) or true)(deciding, label, random)
            return set(np.argsort(-scores)[:size].tolist())

        right = set(np.flatnonzero(deciding).tolist())
        assert top("true", count) == right
        assert not top("wrong_order", PADDING * count) & right and top("wrong_order", (PADDING + 1) * count) >= right
        assert top("longer", (PADDING + 1) * count) >= right
        assert not top("leaking", count) & right
        middle = len(deciding) / 2
        assert all((place < middle) == (one.label == "POS") for place in top("leaking", count))


def test_texts_of_one_filler_are_one_cluster():
    rows = planted_rows("conjunction", BenchmarkSettings(size=12))
    assert np.bincount(clusters_of(rows)).tolist() == [4, 4, 4]


def test_shares_and_verdicts():
    clusters = np.array([0, 0, 1, 1, 2])
    best, other = np.array([1.0, 0.5, 1.0, np.nan, np.nan]), np.array([0.0, 0.5, 2.0, 0.0, 0.0])
    assert shares(best, other, True, clusters).tolist() == pytest.approx([0.75, 0.0, np.nan], nan_ok=True)
    assert shares(best, other, False, clusters).tolist() == pytest.approx([0.25, 1.0, np.nan], nan_ok=True)
    judgements = [([0.6, 0.9], "better"), ([0.1, 0.4], "worse"), ([0.4, 0.7], "tie")]
    assert [verdict({"auc": 0.5, "auc_ci": ends}) for ends, _ in judgements] == [word for _, word in judgements]
    assert verdict({"auc": None, "auc_ci": None}) == "undefined"


@pytest.mark.slow
def test_the_judgement_of_every_score():
    result = benchmark(TINY)
    assert result == benchmark(TINY)
    assert result["kinds"] == {"word": {"texts": 4, "clusters": 2}, "conjunction": {"texts": 4, "clusters": 1}}
    scores = {one["name"]: one for one in result["scores"]}
    assert len(scores) >= 10
    assert scores["token_macro_f1"]["explanations"]["random"]["auc"] == 1.0  # the truth itself knows the truth
    for one in scores.values():
        assert set(one["verdicts"]) == set(CANDIDATES) and set(one["kinds"]) == {"word", "conjunction"}
        if one["auc"] is not None:
            parts = [part["auc"] for part in one["explanations"].values() if part["auc"] is not None]
            assert min(parts) - 1e-12 <= one["auc"] <= max(parts) + 1e-12 and 0 <= one["auc"] <= 1
    for form in ("text", "markdown", "latex", "csv"):
        assert "comprehensiveness" in benchmark_tables(result).written(form)


@pytest.mark.slow
def test_the_command_prints_json(monkeypatch):
    import typer

    from eraser_hub.commands.benchmark_scores import benchmark_scores
    from eraser_hub.experiments import score_benchmark

    monkeypatch.setattr(score_benchmark, "FAST", replace(TINY, kinds=("word",)))
    app = typer.Typer()
    app.command()(benchmark_scores)
    result = CliRunner().invoke(app, ["--fast", "--format", "json", "--seed", "3"])
    content = json.loads(result.stdout)
    assert {"name", "verdicts", "auc"} <= content["scores"][0].keys() and "|seed:3|" in content["signature"]
