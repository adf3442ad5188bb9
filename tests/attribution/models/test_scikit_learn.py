"""scikit-learn pipelines: closed forms, and fast counting equal to the pipeline's own."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from eraser_hub.attribution import Instance, build_settings, explain_instances, explain_texts, open_model
from eraser_hub.attribution.models.scikit_learn import MASK, PAD, CountModel, PipelineModel, wrap_pipeline

from ...refusals import refused
from ..conftest import CLOSE, instance

pytestmark = pytest.mark.unit

TEXTS = [
    "good warm film",
    "good plot good",
    "bad dull film",
    "grey bad plot a",
    "warm a the",
    "the dull grey",
    "film film",
]
LABELS = ["POS", "POS", "NEG", "NEG", "POS", "NEG", "NEG"]
DOCUMENT = "Good film good unknown bad the \u200b plot"
BLANKS = "[^ ]+"


def fitted(*steps, labels=LABELS):
    return make_pipeline(*(steps or [CountVectorizer(token_pattern=BLANKS), LogisticRegression()])).fit(TEXTS, labels)


def scores_of(model, one, method):
    (found,) = explain_instances(model, [one], build_settings(method=method, bins=()))
    return found, np.concatenate([part["soft_rationale_predictions"] for part in found["rationales"]])


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("coefficients", lambda w, z, b: w),
        ("occlusion", lambda w, z, b: sigmoid(z) - sigmoid(z - w)),
        ("integrated-gradients", lambda w, z, b: w * (sigmoid(z) - sigmoid(b)) / (z - b)),
        ("input-x-gradient", lambda w, z, b: w * sigmoid(z) * (1 - sigmoid(z))),
        ("gradient", lambda w, z, b: abs(w * sigmoid(z) * (1 - sigmoid(z)))),
    ],
)
@pytest.mark.parametrize("flip", [1, -1])
def test_scores_have_their_closed_form(method, expected, flip):
    """For the predicted label, whichever it is."""
    pipeline = fitted()
    pipeline[-1].coef_ *= flip
    pipeline[-1].intercept_ *= flip
    vocabulary, one, model = pipeline[0].vocabulary_, instance(DOCUMENT), open_model(pipeline)
    places = [vocabulary.get(token.lower()) for token in one.tokens]
    weights = np.array([0.0 if place is None else pipeline[-1].coef_[0][place] for place in places])
    bias = pipeline[-1].intercept_[0]
    z = bias + weights.sum()
    sign = 1 if z > 0 else -1
    _, found = scores_of(model, one, method)
    np.testing.assert_allclose(found, expected(sign * weights, sign * z, sign * bias), rtol=0, atol=1e-8)
    if method == "integrated-gradients":
        assert 0 <= model.notes.maxima["largest convergence delta"] < 1e-12


@pytest.mark.parametrize("pattern", [BLANKS, r"\S+", r"(?u)\b\w\w+\b"])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("erase", ["remove", "mask", "pad"])
@pytest.mark.parametrize("uses_query", [False, True])
def test_counting_equals_the_pipeline(pattern, binary, erase, uses_query):
    """Of every set of tokens, of several words, unknown, empty or twice; equal inputs have equal keys."""
    pipeline = fitted(CountVectorizer(token_pattern=pattern, binary=binary), LogisticRegression())
    model = wrap_pipeline(pipeline, uses_query=uses_query)
    assert type(model) is CountModel
    tokens, query = ("bad", "good film", "", "bad", "unknown good-plot", "The"), ("film plot", "unseen")
    kept = np.array([[number >> at & 1 for at in range(len(tokens))] for number in range(1 << len(tokens))], bool)
    units = [unit for (unit,) in model.cut(model.read(Instance("x", query, ("d",), (tokens,))), kept, erase)]
    substitute = {"mask": MASK, "pad": PAD}.get(erase, "")
    texts, keys = [], {}
    for row, unit in zip(kept, units, strict=True):
        words = [token if stays else substitute for token, stays in zip(tokens, row, strict=True)]
        texts.append(" ".join([*(query if uses_query else ()), *words]))
        counts = pipeline[0].transform([texts[-1]]).toarray().tobytes()
        assert binary or keys.setdefault(unit.key, counts) == counts
        assert unit.size >= np.frombuffer(counts, np.int64).sum()
    expected = pipeline.predict_proba(texts)
    np.testing.assert_allclose(model.forward([unit.data for unit in units]), expected, rtol=0, atol=CLOSE)
    assert binary or len(keys) == len({unit.key for unit in units}) < len(units)


@pytest.mark.parametrize("words", [{"ngram_range": (1, 2)}, {"token_pattern": "."}, {"vocabulary": ["good", MASK]}])
def test_what_is_counted_over_blanks_or_marks_goes_as_text(words):
    pipeline = fitted(CountVectorizer(**{"token_pattern": BLANKS, **words}), LogisticRegression())
    model = open_model(pipeline)
    assert type(model) is PipelineModel
    (unit,) = next(iter(model.cut(model.read(instance("good film bad")), np.array([[True, False, True]]), "mask")))
    expected = pipeline.predict_proba([f"good {MASK} bad"])
    np.testing.assert_array_equal(model.forward([unit.data]), expected)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"ngram_range": (1, 2), "stop_words": ["plot"]},
        {"token_pattern": "(?:[a-z]+-)?([a-z]{3,} [a-z]+|[a-z]+)"},
        {"analyzer": "char", "ngram_range": (1, 3)},
    ],
)
@pytest.mark.parametrize("scaled", [False, True])
def test_coefficients_of_any_words_and_characters_sum_to_the_logit(settings, scaled):
    from sklearn.preprocessing import MaxAbsScaler

    pipeline = fitted(TfidfVectorizer(**settings), *([MaxAbsScaler()] if scaled else []), LogisticRegression())
    one, model = instance("Good film-plot it's bad a the grey"), open_model(pipeline)
    found, scores = scores_of(model, one, "coefficients")
    assert model.provides == {"probabilities", "coefficients"} and model.details.startswith("steps:TfidfVectorizer,")
    z = pipeline.decision_function([" ".join(one.tokens)])[0] - pipeline[-1].intercept_[0]
    assert len(scores) == 7 and scores.sum() == pytest.approx(z if found["classification"] == "POS" else -z, abs=1e-8)


@pytest.mark.parametrize(
    ("steps", "method"),
    [
        # features that no token can be traced to
        ((TfidfVectorizer(strip_accents="unicode"),), "coefficients"),
        ((TfidfVectorizer(tokenizer=str.split, token_pattern=None),), "coefficients"),
        ((TfidfVectorizer(), TruncatedSVD(2)), "coefficients"),
        # probabilities that are no softmax of counts
        ((TfidfVectorizer(),), "gradient"),
        ((CountVectorizer(binary=True),), "gradient"),
    ],
)
def test_what_a_pipeline_does_not_allow_is_refused(steps, method):
    pipeline = fitted(*steps, LogisticRegression(), labels=["a", "a", "b", "b", "c", "c", "b"])
    with refused(method, "kernel-shap, lime", argument="method"):
        explain_texts(pipeline, ["good film"], method=method)


@pytest.mark.parametrize(
    ("model", "mentions"),
    [
        (LogisticRegression().fit([[0], [1]], ["a", "b"]), ("over strings", "LogisticRegression")),
        (make_pipeline(TfidfVectorizer(), LogisticRegression()), ("fitted", "LogisticRegression")),
        (Ridge().fit([[0], [1]], [0, 1]), ("predict_proba", "Ridge")),
    ],
)
def test_a_model_that_takes_no_strings_or_is_not_fitted(model, mentions):
    with refused(*mentions) as caught:
        open_model(model)
    assert len(str(caught.error).splitlines()) == 1
