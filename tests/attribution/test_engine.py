"""Predictions of a model in memory: their format, exact ends, hostile inputs and outputs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.attribution import Instance, build_settings, explain_instances, explain_texts, open_model
from eraser_hub.attribution.erasure import draw_shifted_rationale, select_top

from ..refusals import refused
from .conftest import CountingModel, instance


def explained(instances, model=None, method="occlusion", **more):
    opened = open_model(model or CountingModel(), label_names=("NEG", "POS"))
    return list(explain_instances(opened, instances, build_settings(method=method, **more)))


DOCUMENT = "the good film with a bad scene and a fine plot"


@pytest.mark.parametrize(
    ("documents", "kd", "expected"),
    [
        ((), 0.5, []),
        ((tuple(DOCUMENT.split()),), 2 / 11, [[(1, 2), (9, 10)]]),
        ((("the", "film"), ("good", "fine", "plot")), 0.4, [[], [(0, 2)]]),
        ((("film", "good"), ("fine", "film")), 0.5, [[(1, 2)], [(0, 1)]]),
        ((("good", "fine", "warm"),), 0.01, [[(0, 1)]]),  # the first of equal scores
    ],
)
def test_hard_rationales_are_the_top_tokens_merged_in_each_document(documents, kd, expected):
    names = tuple(map(str, range(len(documents))))
    (found,) = explained([Instance("x", (), names, documents)], method="occlusion", kd=kd)
    assert [one["docid"] for one in found["rationales"]] == list(names)
    assert [len(one["soft_rationale_predictions"]) for one in found["rationales"]] == list(map(len, documents))
    spans = [one["hard_rationale_predictions"] for one in found["rationales"]]
    assert [[(span["start_token"], span["end_token"]) for span in one] for one in spans] == expected


@pytest.mark.parametrize("kind", ["tokens", "spans"])
def test_random_rationales_are_drawn_by_seed(kind):
    one = instance(DOCUMENT)
    ((first,), (again,), (other,)) = (
        explained([one], random_draws=5, random_kind=kind, kd=0.3, seed=seed) for seed in (1, 1, 2)
    )
    assert first == again and len(first["random_rationales"]) == 5
    assert first["random_rationales"] != other["random_rationales"]


def test_fidelity_curves_end_at_nothing_and_begin_at_the_rationale():
    rates = (0.0, 0.5, 1.0)
    (found,) = explained([instance(DOCUMENT)], fidelity_trials=2, fidelity_rates=rates, kd=0.4)
    points = found["occluded_scores"]
    assert [(one["occlusion_rate"], one["trial"]) for one in points] == [(r, t) for r in rates for t in (0, 1)]
    for side, end in (("sufficiency", "null_classification_scores"), ("comprehensiveness", "classification_scores")):
        name = f"{side}_classification_scores"
        assert points[0][name] == found[name] and points[-1][name] == found[end]


class Broken(CountingModel):
    def __init__(self, change) -> None:
        super().__init__()
        self.change = change

    def predict_proba(self, token_lists):
        return self.change(super().predict_proba(token_lists))


@pytest.mark.parametrize(
    ("change", "mentions"),
    [
        (lambda p: np.where(p > 0.9, np.nan, p), ("NaN", "1 of 2")),
        (lambda p: p[:, :1], ("2 labels", "1")),
        (lambda p: p * 2, ("sum", "2")),
        (lambda p: p * [[3, -1]], ("non-negative", "-0.")),
        (lambda p: [[0.5, 0.5], [1.0]] * len(p), ("list",)),
    ],
)
def test_a_broken_model_is_told_in_clear_words(change, mentions):
    documents = [instance("the film", "calm"), instance("good fine warm bright", "loud")]
    with refused("Broken", *mentions, instance="loud"):
        explained(documents, Broken(change))


@pytest.mark.parametrize("change", ["lists", "float16", "objects", "tensor", "tensor that carries a gradient"])
def test_outputs_of_many_kinds_are_taken(change):
    def changed(p):
        if change.startswith("tensor"):
            return pytest.importorskip("torch").tensor(p, requires_grad="carries" in change)
        return {"lists": p.tolist(), "float16": p.astype(np.float16), "objects": p.astype(object)}[change]

    documents = [instance("the film", "calm"), instance("good fine warm bright", "loud")]
    for one, other in zip(explained(documents, Broken(changed)), explained(documents), strict=True):
        assert one["classification_scores"] == pytest.approx(
            other["classification_scores"], abs=float(np.finfo(np.float16).eps)
        )


def test_out_of_memory_with_a_single_input_and_other_errors():
    def fail(words):
        raise RuntimeError(words)

    with refused("window", instance="big"):
        explained([instance(DOCUMENT, "big")], Broken(lambda p: fail("CUDA out of memory. Tried to allocate 2 GiB")))
    with pytest.raises(RuntimeError, match="bug in the model"):
        explained([instance(DOCUMENT)], Broken(lambda p: fail("bug in the model")))


def test_no_mask_token():
    with refused("`erase` pad", "`erase` remove"):
        explained([instance(DOCUMENT)], erase="pad")


@pytest.mark.parametrize(
    ("names", "given", "dataset", "mentions"),
    [
        ((), (), (), ("CountingModel", "labels")),
        (("a", "b", "c"), (), ("NEG", "POS"), ("2", "(NEG, POS)", "3", "(a, b, c)")),
        (("no", "yes"), (), ("NEG", "POS"), ("NEG, POS", "no, yes", "labels")),
        (("NEG", "NEG"), (), ("NEG", "POS"), ("NEG, NEG",)),
        (("negative", "positive"), ("POS", "NEG"), ("NEG", "POS"), ("negative, positive", "POS, NEG")),
        ("NP", (), ("NEG", "POS"), ("CountingModel.label_names", "'NP'")),
    ],
)
def test_wrong_labels(names, given, dataset, mentions):
    model = CountingModel()
    model.label_names = names
    with refused(*mentions):
        open_model(model, label_names=dataset, labels=given)


@pytest.mark.parametrize(
    ("names", "dataset", "given", "order"),
    [
        (("0", "1"), ("NEG", "POS"), ("POS", "NEG"), [1, 0]),
        (("LABEL_0", "LABEL_1"), ("LABEL_0", "LABEL_1"), ("LABEL_1", "LABEL_0"), [1, 0]),
        (("neg", "pos"), ("NEG", "POS"), ("NEG", "POS"), [0, 1]),
        (("LABEL_0", "LABEL_1"), ("NEG", "POS"), (), [0, 1]),
    ],
)
def test_labels_stated_by_hand_and_generic_ones(names, dataset, given, order):
    model = CountingModel()
    model.label_names = names
    opened = open_model(model, label_names=dataset, labels=given)
    assert opened.order.tolist() == order
    assert given or "NAME(labels=[A,B])" in opened.notes.messages[0]


def test_tokens_to_flip_counts_the_evidence_documents_tokens_alone():
    two = Instance("x", (), ("a", "b"), (("good", "film"), ("fine", "bad", "plot")), "POS", None, (1,))
    (found,) = explained([two], measures=["tokens-to-flip"])
    # good in the first document stands outside the gold evidence
    assert found["classification"] == "POS" and 1 <= found["tokens_to_flip"] <= 3
    everywhere = Instance("x", (), ("a", "b"), (("good",) * 9, ("fine",) * 2), "POS", None, (1,))
    (never,) = explained([everywhere], measures=["tokens-to-flip"])
    assert never["tokens_to_flip"] == 2


@pytest.mark.parametrize("limit", ["MAX_WAITING", "MAX_FLAGS"])
def test_inputs_that_do_not_fit_together_give_the_same(monkeypatch, limit):
    documents = [instance(DOCUMENT, "a"), instance(DOCUMENT[::-1], "b")]
    whole = explained(documents, method="lime(samples=60)")
    monkeypatch.setattr(f"eraser_hub.attribution.engine.{limit}", 25)
    assert explained(documents, method="lime(samples=60)") == whole


def test_a_sentence_is_erased_whole_by_occlusion_and_in_each_bin() -> None:
    text = "a warm\ngood good good\nbad the"
    (prediction,) = explain_texts(CountingModel(), [text], units="sentences", kd=0.1, bins=(0.5,))
    (rationale,) = prediction["rationales"]
    assert rationale["hard_rationale_predictions"] == [{"start_token": 2, "end_token": 5}]
    model, sizes = CountingModel(), (2, 3, 2)
    texts = (text, "good good good bad the", "a warm bad the", "a warm good good good")
    full, *kept = model.predict_proba([one.split() for one in texts])[:, 1]
    effects = np.repeat([(full - p) / size for p, size in zip(kept, sizes, strict=True)], sizes)
    assert rationale["soft_rationale_predictions"] == pytest.approx(effects, abs=1e-8)
    assert rationale["soft_sentence_predictions"] == pytest.approx([full - p for p in kept], abs=1e-8)
    # four of seven tokens: the best sentence has three, so the next one goes too
    ((in_bin),) = prediction["thresholded_scores"]
    name = "sufficiency_classification_scores"
    assert in_bin[name]["POS"] == pytest.approx(model.predict_proba([texts[0].split()[:5]])[0, 1])
    (mean,) = explain_texts(CountingModel(), [text], units="sentences", scores=[[0, 1, 1, 1, 1, 0, 3]], bins=())
    assert mean["rationales"][0]["soft_sentence_predictions"] == [0.5, 1, 1.5]
    with refused("sentences", argument="units"):
        explain_texts(CountingModel(), [["a", "b"]], units="sentences")


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=4), st.integers(0, 1000), st.data())
def test_shifted_spans_stay_in_their_document_and_keep_their_size(lengths, seed, data):
    bounds = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    chosen = np.array(
        sorted(data.draw(st.sets(st.integers(0, max(bounds[-1] - 1, 0)), max_size=bounds[-1]))), dtype=int
    )
    moved = draw_shifted_rationale(np.random.default_rng(seed), chosen, bounds)
    for start, end in pairwise(bounds):
        inside = (chosen >= start) & (chosen < end)
        assert inside.sum() == ((moved >= start) & (moved < end)).sum()
    assert len(set(moved.tolist())) == len(chosen)


@pytest.mark.parametrize(
    ("rate", "expected"),
    [(0.0, []), (0.01, [2, 3, 4]), (0.5, [2, 3, 4]), (0.51, [0, 1, 2, 3, 4]), (1.0, [0, 1, 2, 3, 4, 5])],
)
def test_as_few_units_as_hold_the_share(rate, expected):
    found = select_top(np.array([0.2, 0.9, 0.2]), rate, bounds=np.array([0, 2, 5, 6]))
    assert found.tolist() == expected
