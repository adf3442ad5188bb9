"""Explanations of planted texts: each has its defining property in what is scored, hard rationale and ranking."""

from __future__ import annotations

import numpy as np
import pytest

from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.adapters.plain import PlainModel
from eraser_hub.attribution.erasure import make_generator, rank_tokens, select_top
from eraser_hub.experiments.explanations import CANDIDATES, NOISE, PADDING, TRUE, TRUE_WIDE, make_explanations
from eraser_hub.experiments.planted_models import PlantedModel
from eraser_hub.experiments.plantings import KINDS, make_planted_texts
from eraser_hub.experiments.score_judgement import explain_candidates, make_settings, make_share
from eraser_hub.samples.plant import LABELS

SIZE = 30
TEXTS = {kind: make_planted_texts(kind, "test", SIZE, 7) for kind in KINDS}


def marked(prediction):
    """The tokens of a prediction's hard rationale, by document: what scores of erasure erase."""
    found = set()
    start = 0
    for document in prediction["rationales"]:
        for span in document["hard_rationale_predictions"]:
            found |= set(range(start + span["start_token"], start + span["end_token"]))
        start += len(document["soft_rationale_predictions"])
    return found


def soft_scores(prediction):
    parts = [document["soft_rationale_predictions"] for document in prediction["rationales"]]
    return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])


def ranking(prediction):
    return rank_tokens(soft_scores(prediction), "first").tolist()


@pytest.fixture(scope="module", params=list(KINDS))
def scored(request):
    """Each text with the predictions that are scored, by explanation."""
    adapter = PlainModel(PlantedModel(request.param))
    align_labels(adapter, LABELS)
    settings = make_settings(1, 2, 2)
    return [(one, explain_candidates(adapter, one, settings)) for one in TEXTS[request.param]]


def test_the_true_one_marks_the_evidence_and_ranks_it_by_importance(scored):
    for one, found in scored:
        evidence = set(np.flatnonzero(one.supporting).tolist())
        assert marked(found[TRUE]) == evidence
        order = ranking(found[TRUE])
        assert (np.diff(one.importance[order[: len(evidence)]]) <= 0).all()
        assert order == ranking(found[TRUE_WIDE])
        if (one.importance < 0).any():
            assert one.importance[order[-1]] < 0


def test_each_is_scored_at_its_partners_length_but_the_longer_one(scored):
    for _, found in scored:
        for name, partner in CANDIDATES.items():
            if name in found and name != "longer":
                assert len(marked(found[name])) == len(marked(found[partner]))


def test_wider_ones_hold_all_evidence(scored):
    """The longer one, the one of the wrong order and its partner: 5 times as many tokens, all evidence among them."""
    for one, found in scored:
        evidence = set(np.flatnonzero(one.supporting).tolist())
        wide = min(len(one.importance), (1 + PADDING) * len(evidence))
        for name in ("longer", "wrong_order", TRUE_WIDE):
            assert len(marked(found[name])) == wide and marked(found[name]) >= evidence
        assert marked(found["wrong_order"]) == marked(found[TRUE_WIDE]) == marked(found["longer"])


def test_the_wrong_order_ranks_the_evidence_last_in_its_length(scored):
    for one, found in scored:
        evidence = set(np.flatnonzero(one.supporting).tolist())
        wide = len(marked(found["wrong_order"]))
        assert set(ranking(found["wrong_order"])[wide - len(evidence) : wide]) == evidence


def test_distractors_alone_are_marked(scored):
    for one, found in scored:
        assert marked(found["distractor"]) <= set(np.flatnonzero(one.distractors).tolist())


def test_an_incomplete_one_lacks_the_most_important_word_and_holds_the_others(scored):
    for one, found in scored:
        evidence = set(np.flatnonzero(one.supporting).tolist())
        if len(evidence) == 1:
            assert "incomplete" not in found
            continue
        (missing,) = evidence - marked(found["incomplete"])
        assert one.importance[missing] == one.importance.max()
        (other,) = marked(found["incomplete"]) - evidence
        assert one.importance[other] == 0


def test_a_leaking_one_holds_no_evidence_and_reveals_the_label(scored):
    for one, found in scored:
        chosen = marked(found["leaking"])
        assert not chosen & set(np.flatnonzero(one.deciding).tolist())
        middle = len(one.importance) / 2
        assert all((place < middle) == (one.instance.label == "POS") for place in chosen)


def test_a_random_one_finds_the_evidence_by_chance(scored):
    """As often as any other tokens: neither more often nor, as one that avoids it, less often."""
    hits = [len(marked(found["random"]) & set(np.flatnonzero(one.supporting).tolist())) for one, found in scored]
    expected = [one.supporting.sum() ** 2 / len(one.importance) for one, _ in scored]
    assert sum(hits) <= sum(expected) + 4 * np.sqrt(sum(expected))
    one, found = scored[0]
    settings = make_settings(1, 2, 2)
    again = make_explanations(one, make_generator(settings.seed, one.instance.id, "explanations"))["random"]
    assert marked(found["random"]) == set(rank_tokens(again.scores, "first")[: again.budget].tolist())
    draws, places = 1500, np.zeros(len(one.importance))
    for seed in range(draws):
        explanation = make_explanations(one, np.random.default_rng(seed))["random"]
        places[rank_tokens(explanation.scores, "first")[: explanation.budget]] += 1
    share = one.supporting.sum() / len(places)
    assert (np.abs(places / draws - share) < 5 * np.sqrt(share * (1 - share) / draws)).all()


def test_a_longer_one_ranks_what_it_marks_by_chance_alone(scored):
    """Its scores are equal but for what breaks ties, so that its length is its only fault."""
    first = 0
    for one, found in scored:
        scores, chosen = soft_scores(found["longer"]), sorted(marked(found["longer"]))
        rest = np.setdiff1d(np.arange(len(scores)), chosen)
        assert scores[chosen].max() <= scores[chosen].min() * (1 + 1.01 * NOISE)
        assert not len(rest) or scores[rest].max() <= scores[chosen].min() * 1.01 * NOISE
        first += int(one.supporting[ranking(found["longer"])[0]])
    share = 1 / (1 + PADDING)
    assert abs(first / SIZE - share) < 4 * np.sqrt(share * (1 - share) / SIZE)


def test_scales_are_equal(scored):
    for _, found in scored:
        truth = np.sort(soft_scores(found[TRUE]))
        for name, prediction in found.items():
            assert np.abs(soft_scores(prediction)).sum() == pytest.approx(1)
            if name != "longer":
                assert np.sort(soft_scores(prediction)).tolist() == truth.tolist()


@pytest.mark.parametrize("tokens", range(1, 60))
def test_a_share_gives_its_budget_exactly(tokens):
    for budget in range(1, tokens + 1):
        assert len(select_top(np.arange(tokens, dtype=float), make_share(budget, tokens))) == budget


def test_explanations_of_a_seed_are_the_same():
    one = TEXTS["graded"][0]
    first, second = (make_explanations(one, np.random.default_rng(3)) for _ in range(2))
    assert all((first[name].scores == second[name].scores).all() for name in first)
