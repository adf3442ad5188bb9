"""The papers' own settings, against what their authors' code gives (tests/golden/presets)."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from eraser_hub.attribution import Instance, build_settings, explain_instances, explain_texts, open_model
from eraser_hub.attribution.engine import Engine
from eraser_hub.attribution.erasure import draw_occluded_rationale, select_top
from eraser_hub.attribution.methods import lime
from eraser_hub.attribution.methods._captum import Embedded
from eraser_hub.attribution.methods.integrated_gradients import IntegratedGradients
from eraser_hub.attribution.models.inputs import Notes
from eraser_hub.metrics.fidelity import normalized_fidelity
from eraser_hub.papers.presets import load_preset

from ..needs import needs
from ..refusals import refused
from .conftest import CountingModel

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "presets"
ERASER, WANG, CARTON = (
    json.loads((GOLDEN / f"{name}.json").read_text("utf-8")) for name in ("eraser_saliency", "wang2022", "carton2020")
)
EXACT = {"rel": 0, "abs": 1e-9}
CAPTUM = {"rel": 1e-6, "abs": 1e-6}  # its step sizes are of float32
FIELDS = [f"{side}classification_scores" for side in ("", "sufficiency_", "comprehensiveness_", "null_")]


class WordModel:
    """softmax(bias + sum of word weights)."""

    label_names = ("0", "1")

    def __init__(self, facts) -> None:
        self.weights, self.bias = facts["word_weights"], np.asarray(facts["bias"])

    def predict_proba(self, token_lists):
        none = np.zeros(len(self.bias))
        logits = np.stack([self.bias + sum((np.asarray(self.weights[t]) for t in one), none) for one in token_lists])
        exp = np.exp(logits - logits.max(axis=1, keepdims=True))
        return exp / exp.sum(axis=1, keepdims=True)


# --- eraser ------------------------------------------------------------------------------------------------------


def open_case(case):
    """The golden file's tiny classifier, p = softmax(linear . sum_t a_t embedding_t + bias) in float64, and its text.

    Separators (w1) and the query are always kept.
    """
    import torch

    from eraser_hub.attribution.models.labels import align_labels
    from eraser_hub.systems import networks, readings
    from eraser_hub.systems.embedders import WordEmbedder
    from eraser_hub.systems.network_model import NetworkModel
    from eraser_hub.systems.training import make_system

    facts = {
        name: torch.tensor(value, dtype=torch.float64)
        for name, value in ERASER["models"][case["model"]].items()
        if name != "kind"
    }

    class GoldenNetwork(networks.TokenNetwork):
        attends = True

        def logits(self, vectors, batch):
            return (vectors * self.attention(vectors, batch)[..., None]).sum(dim=1) @ facts["linear"].T + facts["bias"]

        def attention(self, vectors, batch):
            if case["model"] == "mean":
                return batch.visible.double() / batch.visible.sum(dim=1, keepdim=True).clamp(min=1)
            return self.weights(vectors, batch.visible)

    embedder = WordEmbedder(readings.Vocabulary([f"w{number}" for number in range(2, 64)], False), 4).double()
    apart = case["token_ids"][-1] != 1
    network = GoldenNetwork(embedder, make_system("glove-lstm", {}), networks.Shape(len(facts["bias"]), apart))
    network.weights = networks.AdditiveAttention(4).double()
    with torch.no_grad():
        embedder.table.weight.copy_(torch.cat([facts["embedding"][:1], facts["embedding"][:1], facts["embedding"][1:]]))
        for ours, name in (("query", "q"), ("of_query", "W"), ("of_states", "U"), ("vector", "v")):
            if name in facts:
                getattr(network.weights, ours).copy_(facts[name].view(getattr(network.weights, ours).shape))
    documents, query = [[]], []
    for number, always in zip(case["token_ids"], case["always_keep"], strict=True):
        if number == 1:
            documents.append([])
        else:
            (query if always else documents[-1]).append(f"w{number}")
    documents = tuple(tuple(one) for one in documents if one)
    names = tuple(map(str, range(len(documents))))
    model = NetworkModel(network, tuple(map(str, range(len(facts["bias"])))), uses_query=bool(query), device="cpu")
    align_labels(model, ())
    return model, Instance("case", tuple(query), names, documents)


@pytest.mark.parametrize("case", ERASER["cases"])
@needs("torch", "transformers", "captum")
def test_eraser_s_simple_gradient_and_attention(case):
    model, one = open_case(case)
    places = np.flatnonzero(~np.asarray(case["always_keep"], dtype=bool))
    methods = [name for name in ("simple_gradient", "attention") if name in case["expected"]]
    for method, kd in product(methods, ERASER["kd"]):
        settings, expected = build_settings("eraser", method=method.replace("_", "-"), kd=kd), case["expected"][method]
        assert list(settings.bins) == expected["aopc"]["thresholds"]
        (found,) = explain_instances(model, [one], settings)
        full, label = found["classification_scores"], str(case["expected"]["predicted"])
        assert list(full.values()) == pytest.approx(case["expected"]["probabilities"], **EXACT)
        assert found["classification"] == label
        scores = [score for part in found["rationales"] for score in part["soft_rationale_predictions"]]
        assert scores == pytest.approx(np.asarray(expected["scores"])[places].tolist(), **EXACT)
        if expected["tie_at_a_cut"]:  # theirs is numpy's unstable sort
            continue
        assert places[select_top(np.asarray(scores), kd, "last")].tolist() == expected[str(kd)]["hard_rationale"]
        for measure in ("sufficiency", "comprehensiveness"):
            key = f"{measure}_classification_scores"
            assert full[label] - found[key][label] == pytest.approx(expected[str(kd)][measure], **EXACT)
            points = [full[label] - point[key][label] for point in found["thresholded_scores"]]
            assert points == pytest.approx(expected["aopc"][measure], **EXACT)


def test_the_last_of_equal_scores_wins():
    for case in ERASER["ties"]:
        hard = select_top(np.asarray(case["scores"]), case["kd"], load_preset("eraser").choices.ties)
        assert hard.tolist() == case["expected"]["hard_rationale"]


@pytest.mark.parametrize("case", ERASER["lime"]["cases"])
@needs("torch", "transformers", "sklearn")
def test_eraser_s_lime(case, monkeypatch):
    """Their samples' probabilities, the number of features, and scores out of the weights of their fit."""
    expected, whole = case["expected"], ERASER["cases"][case["case"]]
    model, one = open_case(whole)
    flat = np.cumsum(np.asarray(whole["always_keep"]) == 0) - 1  # the golden file counts separators too
    kept = np.ones((len(case["dropped"]), one.bounds[-1]), dtype=bool)
    for flags, places in zip(kept, case["dropped"], strict=True):
        flags[flat[places]] = False
    (p,) = Engine(model, [model.read(one)]).proba([(0, kept)])
    np.testing.assert_allclose(p, expected["probabilities_of_dropped"], rtol=0, atol=1e-9)
    weights, fitted = np.zeros(one.bounds[-1]), []
    for place, weight in case["weights"]:
        weights[flat[place]] = max(weight, 0)
    monkeypatch.setattr(lime, "fit_weights", lambda present, values, number: fitted.append(number) or weights)
    settings = build_settings("eraser", kd=case["kd"])
    assert "method:lime(samples=1000,tokens=0)|" in settings.signature()
    (found,) = explain_instances(model, [one], settings)
    scores = [score for part in found["rationales"] for score in part["soft_rationale_predictions"]]
    theirs = [score for score, always in zip(expected["scores"], whole["always_keep"], strict=False) if not always]
    assert fitted == [expected["num_features"]] and scores == pytest.approx(theirs, **EXACT)


@pytest.mark.parametrize("number", [2, 6, 9])
def test_lime_selects_features_as_the_package_does(number):
    lime_base = pytest.importorskip("lime.lime_base")
    random = np.random.default_rng(number)
    present = (random.random((200, 15)) < 0.6).astype(np.float32)
    present[0] = 1
    values = present @ random.normal(size=15) + random.normal(size=200) / 10
    distances = 100 * (1 - np.sqrt(present.mean(axis=1, dtype=np.float64)))
    package = lime_base.LimeBase(lambda d: np.sqrt(np.exp(-(d**2) / 25**2)), random_state=0)
    _, weights, _, _ = package.explain_instance_with_data(present, values[:, None], distances, 0, number)
    expected = np.zeros(15)
    for feature, weight in weights:
        expected[feature] = max(weight, 0)
    # the package solves in float32
    assert lime.fit_weights(present, values, number).tolist() == pytest.approx(expected.tolist(), abs=1e-4)


# --- wang2022 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", WANG["cases"])
def test_wang_s_rationales_and_what_is_left(case):
    settings = build_settings("wang2022", config=f"{case['task']}_{case['language']}", scores="instances")
    assert list(settings.kd_of_sequences or (settings.kd,)) == case["ratios"]
    instances, words = [], []
    for record in case["records"]:
        orders = [[place for place, _ in ranking] for ranking in record["ranking"]]
        words.append([[word for _, word in ranking] for ranking in record["ranking"]])
        documents = tuple(tuple(dict(map(tuple, one))[at] for at in range(len(one))) for one in record["ranking"])
        scores = tuple(tuple(float(len(order) - order.index(at)) for at in range(len(order))) for order in orders)
        names = tuple(f"sequence_{at}" for at in range(len(documents)))
        instances.append(Instance(str(record["id"]), (), names, documents, scores=scores))
    rows = explain_instances(open_model(WordModel(WANG["model"])), instances, settings.for_pairs(), "perturbation")
    names = {"pred_proba": "p_full", "rationale_pred_proba": "p_rationale", "non_rationale_pred_proba": "p_rest"}
    for record, found, ranked in zip(case["records"], rows, words, strict=True):
        expected = record["expected"]
        assert found["pred_label"] == expected["pred_label"]
        assert found["rationale"] == [sorted(part) for part in expected["rationale"]]
        assert found["ranked_tokens"] == ranked and found["kd"] == case["ratios"]
        kept = [tokens[: len(part)] for tokens, part in zip(ranked, expected["rationale"], strict=True)]
        assert found["rationale_tokens"] == kept
        for ours, theirs in names.items():
            assert found[ours] == pytest.approx(expected[theirs], **EXACT)


def test_a_word_is_one_feature_of_wang_s_lime():
    model, settings = CountingModel(), {"paper": "wang2022", "method": "lime(samples=200)", "bins": ()}
    (one,) = explain_texts(model, ["good the good film the good"], **settings)
    scores = one["rationales"][0]["soft_rationale_predictions"]
    assert scores[0] == scores[2] == scores[5] and scores[1] == scores[4]
    # in attribution a word goes wherever it occurs; the rationale alone is erased token by token
    assert not any(0 < tokens.count("good") < 3 for tokens in model.asked[:-3])


@pytest.mark.parametrize("case", WANG["reading_comprehension"]["cases"])
@needs("torch", "transformers", "captum")
def test_wang_s_reading_comprehension(case):
    import torch

    from eraser_hub.attribution.models.question_answering import compute_question_attention

    facts = WANG["reading_comprehension"]["model"]
    weights = {name: torch.tensor(value, dtype=torch.float64) for name, value in facts.items()}
    ids, base = (torch.tensor(case[name]) for name in ("token_ids", "baseline_ids"))
    position = weights["position"][: len(ids)]

    def output(embedded):
        e = embedded + position
        h = torch.tanh(e @ weights["A"] + e.mean(dim=1, keepdim=True) @ weights["B"])
        return ((h @ weights["ws"])[:, case["expected"]["start"]] + (h @ weights["we"])[:, case["expected"]["end"]]) / 2

    vectors, from_pads = weights["embedding"][ids][None], weights["embedding"][base][None]
    choices = load_preset("wang2022").choices
    inputs = Embedded(output, vectors, (), from_pads, torch.nn.Identity(), 7, choices, Notes(), "theirs")
    scores = IntegratedGradients(steps=case["steps"]).attribute(inputs)[0].numpy()
    e = vectors[0] + position
    heads = [torch.softmax((e @ q) @ (e @ k).T, dim=-1) for q, k in zip(weights["Q"], weights["K"], strict=True)]
    passage = np.zeros(len(ids), dtype=bool)
    passage[slice(*case["context_positions"])] = True
    matrix = torch.stack(heads).mean(dim=0).numpy()
    attention = compute_question_attention(matrix, slice(*case["question_positions"]), passage)
    total, integrated = scores[passage].sum(), case["expected"]["integrated_gradient"]
    assert total == pytest.approx(integrated["context_sum_before_normalising"], **CAPTUM)
    ends = np.cumsum([len(word) for word in case["words"]])  # here every piece lies inside one word
    text = case["text"]
    starts = [end - text[:end].count(" ") for _, end in case["pieces"]]
    owner = np.searchsorted(ends, starts)
    for row, expected in ((scores / total, integrated), (attention, case["expected"]["attention"])):
        sums = np.bincount(owner, weights=row[passage], minlength=len(case["words"]))
        assert sums.tolist() == pytest.approx(expected["word_scores"], **CAPTUM)


# --- carton2020 --------------------------------------------------------------------------------------------------


def explain_carton(instances):
    """Our predictions, and p of the predicted label on the whole text, the rationale, the rest and nothing."""
    settings = build_settings("carton2020", fidelity_trials=0)
    assert (settings.method, settings.rationales) == (None, "human")
    rows = list(explain_instances(open_model(WordModel(CARTON["model"])), instances, settings))
    return rows, np.asarray([[row[field][row["classification"]] for field in FIELDS] for row in rows])


def make_instance(number, text, is_rationale):
    tokens = tuple(text.split(" ")) if text else ()
    flags = tuple(map(is_rationale, range(len(tokens))))
    return Instance(str(number), (), ("d",), (tokens,), rationale=(flags,))


@pytest.mark.parametrize("case", CARTON["cases"])
def test_carton_s_human_rationales(case):
    instances = [
        make_instance(at, text, lambda token, numbers=numbers: token < len(numbers) and numbers[token] >= 0.5)
        for at, (text, numbers) in enumerate(zip(case["texts"], case["rationales"], strict=True))
    ]
    rows, p = explain_carton(instances)
    expected = case["expected"]
    assert [row["classification"] for row in rows] == list(map(str, expected["predicted"]))
    theirs = [expected[name] for name in ("p_full", "p_rationale", "p_complement", "p_empty")]
    np.testing.assert_allclose(p.T, theirs, rtol=0, atol=1e-9)


class Drawn:
    """A generator of their uniform numbers, turned round: their rate is the share that stays."""

    def __init__(self, numbers) -> None:
        self.numbers = numbers

    def random(self, size):
        assert size == len(self.numbers)
        return 1 - self.numbers


@pytest.mark.parametrize("case", CARTON["curves"])
def test_carton_s_curves_by_their_own_draws(case):
    """One uniform number for each position of each rationale, by their seed; the scores of what is kept, by rate."""
    random, instances = np.random.RandomState(case["seed"]), []
    for point in case["expected"]:
        for sample in point["samples"]:
            for text, numbers, mask in zip(case["texts"], case["rationales"], sample["rationales"], strict=True):
                hard = np.flatnonzero(np.asarray(numbers) >= 0.5)
                uniform = random.uniform(size=len(numbers))
                kept = draw_occluded_rationale(Drawn(uniform[hard]), hard, 1 - point["rate"], each=True)
                assert kept.tolist() == [at for at, flag in enumerate(mask) if flag == "1"]
                instances.append(make_instance(len(instances), text, set(kept.tolist()).__contains__))
    scores = normalized_fidelity(explain_carton(instances)[1])
    for key in ("sufficiency", "comprehensiveness", "normalized_sufficiency", "normalized_comprehensiveness"):
        means = scores[key].reshape(len(case["expected"]), len(case["expected"][0]["samples"]), -1).mean(axis=2)
        expected = [[sample[key] for sample in point["samples"]] for point in case["expected"]]
        np.testing.assert_allclose(means, expected, rtol=0, atol=1e-9)
        np.testing.assert_allclose(means.mean(axis=1), [point[key] for point in case["expected"]], rtol=0, atol=1e-9)


@needs("sklearn")
def test_carton_s_features_are_tf_idf_of_padded_pieces():
    from sklearn.feature_extraction.text import TfidfVectorizer

    from eraser_hub.attribution.models.scikit_learn import Subwords

    pieces, expected = CARTON["features"]["pieces"], CARTON["features"]["expected"]

    class Pieces:
        """A tokenizer that gives the golden file's pieces, whatever the text."""

        def __call__(self, texts, padding, truncation, max_length):
            assert padding == "max_length" and truncation and len(texts) == len(pieces)
            return {"input_ids": pieces}

        def convert_ids_to_tokens(self, row):
            return row

    texts = Subwords(Pieces(), len(pieces[0]))(list(map(str, range(len(pieces)))))
    vectoriser = TfidfVectorizer()
    matrix = vectoriser.fit_transform(texts).toarray()
    assert vectoriser.get_feature_names_out().tolist() == expected["vocabulary"]
    np.testing.assert_allclose(vectoriser.idf_, expected["idf"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(matrix, expected["matrix"], rtol=0, atol=1e-9)


# --- all of them -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paper", "options", "signature"),
    [
        ("eraser", {"embeds": True}, "paper:eraser|method:simple-gradient|"),
        ("wang2022", {"config": "mrc_ch", "embeds": True}, "|method:integrated-gradients(steps=300)|kd:0.096|"),
        ("wang2022", {"config": "similarity_ch", "embeds": True}, "(steps=500)|kd:0.701,0.709|"),
        ("carton2020", {"method": "random"}, "paper:carton2020|method:random(draws=1)|"),
    ],
)
def test_options_override_a_preset_and_the_signature_says_it(paper, options, signature):
    assert signature in build_settings(paper, **options).signature()


def test_what_a_preset_lacks_is_refused():
    with refused(instance="0"):
        explain_texts(CountingModel(), ["a text"], paper="carton2020")
