"""scikit-learn models: closed forms, safe opening, fast counting equal to the pipeline's own."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")
from eraser_hub.attribution import explain_texts
from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.adapters._linear import find_occurrences
from eraser_hub.attribution.adapters.scikit_learn import MASK, PAD, PipelineModel, load_pipeline
from eraser_hub.attribution.engine import explain_instances
from eraser_hub.attribution.erasure import without
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.open import open_model
from eraser_hub.attribution.runner import Runner
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.systems.baselines import build_pipeline
from eraser_hub.systems.system import SYSTEMS

from ...refusals import refused
from ..conftest import CLOSE, CountingModel, instance

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


def fitted(features: str = "words", baseline: str = "logistic-regression", size: float = 1.0, labels=LABELS):
    return build_pipeline(SYSTEMS[baseline](), features, size, 1).fit(TEXTS, labels)


def opened(pipeline, **more) -> PipelineModel:
    adapter = PipelineModel(pipeline, **more)
    align_labels(adapter, sorted(set(adapter.label_names)))
    return adapter


def scores_of(adapter, one: Instance, method: str, **more):
    (found,) = explain_instances(adapter, [one], ExplainSettings(method=method, bins=(), **more))
    parts = [np.array(part["soft_rationale_predictions"]) for part in found["rationales"]]
    return found, np.concatenate(parts)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


@pytest.fixture
def closed():
    """Weights of the document's tokens for the predicted label, its logit and the bias."""
    pipeline = fitted()
    vectoriser, estimator = pipeline[0], pipeline[-1]
    one = instance(DOCUMENT)
    weights = np.array(
        [
            estimator.coef_[0][vectoriser.vocabulary_[t.lower()]] if t.lower() in vectoriser.vocabulary_ else 0.0
            for t in one.tokens
        ]
    )
    bias = estimator.intercept_[0]
    z = bias + weights.sum()
    sign = 1 if z > 0 else -1
    return opened(pipeline), one, sign * weights, sign * z, sign * bias


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("coefficients", lambda weights, z, bias: weights),
        ("occlusion", lambda weights, z, bias: sigmoid(z) - sigmoid(z - weights)),
        ("integrated-gradients", lambda weights, z, bias: weights * (sigmoid(z) - sigmoid(bias)) / (z - bias)),
        ("input-x-gradient", lambda weights, z, bias: weights * sigmoid(z) * (1 - sigmoid(z))),
        ("gradient", lambda weights, z, bias: abs(weights * sigmoid(z) * (1 - sigmoid(z)))),
    ],
)
def test_scores_have_their_closed_form(closed, method, expected):
    adapter, one, weights, z, bias = closed
    _, found = scores_of(adapter, one, method)
    np.testing.assert_allclose(found, expected(weights, z, bias), rtol=0, atol=1e-8)
    if method == "integrated-gradients":
        assert found.sum() == pytest.approx(sigmoid(z) - sigmoid(bias), abs=1e-8)  # completeness
        assert 0 <= adapter.notes.maxima["largest convergence delta"] < 1e-12


def test_gradients_of_three_labels_agree_with_differences():
    adapter = opened(fitted(labels=["a", "a", "b", "b", "c", "c", "b"]))
    one = instance("good film bad plot")
    found, gradient = scores_of(adapter, one, "input-x-gradient")
    estimator, vectoriser = adapter.pipeline[-1], adapter.pipeline[0]
    column = list(estimator.classes_).index(found["classification"])
    row = vectoriser.transform(["good film bad plot"]).toarray().astype(float)
    for place, token in enumerate(one.tokens):
        step = np.zeros_like(row)
        step[0, vectoriser.vocabulary_[token]] = 1e-6
        slope = (estimator.predict_proba(row + step) - estimator.predict_proba(row - step))[0, column] / 2e-6
        assert gradient[place] == pytest.approx(slope, abs=1e-6)


def test_lime_ranks_a_linear_model_like_its_weights(closed):
    adapter, one, weights, _, _ = closed
    _, found = scores_of(adapter, one, "lime", lime_samples=2000, lime_tokens=0)
    assert np.argmax(found) in np.flatnonzero(weights == weights.max())
    assert np.argmin(found) == np.argmin(weights)
    assert scores_of(adapter, one, "lime", lime_samples=50)[1] == pytest.approx(
        scores_of(adapter, one, "lime", lime_samples=50)[1], abs=0
    )


@pytest.mark.parametrize(("size", "keep"), [(6, 1), (6, 2), (6, 3), (6, 5), (40, 3)])
def test_limes_sets_of_one_size_are_equally_likely(size, keep):
    from math import comb

    from eraser_hub.attribution.methods.lime import draw_position_sets

    number = 200 * comb(size, keep)
    sets = draw_position_sets(np.random.default_rng(3), number, size, keep)
    assert sets.shape == (number, keep) and sets.min() >= 0 and sets.max() < size
    assert (np.diff(sets, axis=1) > 0).all()
    times = np.unique(sets, axis=0, return_counts=True)[1]
    assert len(times) == comb(size, keep)
    # a multinomial count of mean 200 stays within six standard deviations
    assert abs(times - 200).max() < 6 * np.sqrt(200)
    assert draw_position_sets(np.random.default_rng(3), 0, size, keep).shape == (0, keep)


@pytest.mark.parametrize(("bounds", "kept"), [([0, 3, 9], 2), ([0, 3, 3, 9], 10), ([0, 1, 2], 0)])
def test_lime_perturbs_one_sequence_of_a_pair_at_a_time(bounds, kept):
    from eraser_hub.attribution.methods.lime import draw_pair_samples

    sets = draw_pair_samples(np.random.default_rng(1), bounds, 12, kept)
    assert len(sets) == 12 and sets[0].tolist() == list(range(bounds[-1]))
    first, second = (set(range(bounds[0], bounds[1])), set(range(bounds[-2], bounds[-1])))
    for number, places in enumerate(sets[1:]):
        assert sorted(places.tolist()) == places.tolist()
        changed, whole = (first, second) if number % 2 == 0 else (second, first)
        assert whole <= set(places.tolist()) and len(changed & set(places.tolist())) < len(changed)
        if 0 < kept < len(changed):
            assert len(changed & set(places.tolist())) == kept


def test_lime_of_a_pair_leaves_the_other_sequence_whole():
    two = Instance("x", (), ("sequence_0", "sequence_1"), (("good", "film", "the"), ("bad", "plot", "a", "scene")))
    for kind in ("perturbation", "eraser"):
        model = CountingModel()
        adapter = open_model(model)
        align_labels(adapter, ("NEG", "POS"))
        settings = ExplainSettings(method="lime", lime_samples=40, lime_tokens=1, bins=())
        list(explain_instances(adapter, [two], settings, kind))
        lone = [t for t in model.asked if len(t) == 1]  # one token of both together; a pair's other sequence stays
        assert len(lone) > 2 if kind == "eraser" else len(lone) <= 2


@pytest.mark.parametrize("baseline", ["logistic-regression", "random-forest"])
@pytest.mark.parametrize("erase", ["remove", "mask", "pad"])
@pytest.mark.parametrize("uses_query", [False, True])
def test_counting_from_ids_equals_the_pipeline(baseline, erase, uses_query):
    """Of every set of tokens, of several words, unknown, empty or twice; equal inputs have equal keys."""
    pipeline = build_pipeline(SYSTEMS[baseline](), "words", 16, 1).fit([*TEXTS, f"{MASK} {PAD}"], [*LABELS, "POS"])
    model = PipelineModel(pipeline, uses_query=uses_query)
    assert model.vocabulary is not None
    tokens, query = ("bad", "good film", "", "bad", "unknown good", "The"), ("film plot", "unseen")
    one = model.encode(Instance("x", query, ("d",), (tokens,)))
    substitute = {"mask": MASK, "pad": PAD}.get(erase, "")
    keys: dict[bytes, tuple[bytes, ...]] = {}
    for number in range(1 << len(tokens)):
        kept = np.asarray([bool(number >> at & 1) for at in range(len(tokens))])
        words = [token if stays else substitute for token, stays in zip(tokens, kept, strict=True)]
        text = " ".join([*(query if uses_query else ()), *filter(None, words)])
        view = one.view(kept, erase)
        np.testing.assert_allclose(model.forward([(view, 0)]), pipeline.predict_proba([text]), rtol=0, atol=CLOSE)
        assert keys.setdefault(one.alike(np.flatnonzero(kept)), view.keys) == view.keys


def test_character_ngrams_of_chinese():
    texts = ["好电影", "真好", "坏电影", "真坏"]
    pipeline = build_pipeline(SYSTEMS["logistic-regression"](), "characters", 1.0, 1).fit(texts, ["a", "a", "b", "b"])
    adapter = opened(pipeline, joiner="")
    one = Instance("x", (), ("s",), (("电", "影", "真", "好", "OK"),))
    found, coefficients = scores_of(adapter, one, "coefficients")
    assert found["classification"] == "a" and len(coefficients) == 5 and coefficients.argmax() == 3
    # all features lie within the text: their shares sum to the logit without its bias
    z = pipeline.decision_function(["电影真好OK"])[0] - pipeline[-1].intercept_[0]
    assert coefficients.sum() == pytest.approx(-z, abs=1e-8)
    encoded = [adapter.encode(one)]
    got = Runner(adapter, "remove", 4).run(encoded, [without(0, [2])])
    np.testing.assert_array_equal(got, pipeline.predict_proba(["电影好OK"]))


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
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    between = [MaxAbsScaler()] if scaled else []
    pipeline = make_pipeline(TfidfVectorizer(**settings), *between, LogisticRegression()).fit(TEXTS, LABELS)
    one = instance("Good film-plot it's bad a the grey")
    adapter = opened(pipeline)
    found, scores = scores_of(adapter, one, "coefficients")
    assert adapter.provides == {"probabilities", "coefficients"}
    z = pipeline.decision_function([" ".join(one.tokens)])[0] - pipeline[-1].intercept_[0]
    assert len(scores) == 7 and scores.sum() == pytest.approx(z if found["classification"] == "POS" else -z, abs=1e-8)


def test_a_word_that_covers_two_tokens_is_shared_by_them():
    from sklearn.feature_extraction.text import CountVectorizer

    words = CountVectorizer(token_pattern="good film|[a-z]+", vocabulary=["good film", "bad"]).fit([])
    assert list(find_occurrences(words, ["A", "Good", "film", "bad"], " ")) == [(0, [1, 2]), (1, [3])]


@pytest.mark.parametrize(
    ("settings", "step"),
    [
        ({"strip_accents": "unicode"}, None),
        ({"analyzer": "char_wb"}, None),
        ({"tokenizer": str.split, "token_pattern": None}, None),
        ({"preprocessor": str.upper}, None),
        ({"analyzer": str.split}, None),
        ({}, "mix"),
        ({}, "select"),
    ],
)
def test_features_that_no_token_can_be_traced_to_give_no_coefficients(settings, step):
    from sklearn import decomposition, feature_selection
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    between = {
        "mix": [decomposition.TruncatedSVD(2)],
        "select": [feature_selection.SelectPercentile()],
    }.get(step, [])
    pipeline = make_pipeline(TfidfVectorizer(**settings), *between, LogisticRegression()).fit(TEXTS, LABELS)
    assert PipelineModel(pipeline).provides == {"probabilities"}
    with refused("`method` coefficients", "it allows kernel-shap, lime, occlusion, random, shapley"):
        explain_texts(pipeline, ["good film"], method="coefficients")


@pytest.mark.parametrize("ending", [".skops", ".joblib", None])
def test_a_model_that_takes_no_strings_or_is_not_fitted(tmp_path, ending):
    import joblib
    import skops.io
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline

    features = TfidfVectorizer().fit_transform(TEXTS)
    for bare, expected in (
        (LogisticRegression().fit(features, LABELS), "pipeline over strings"),
        (Ridge().fit(features, range(len(TEXTS))), "classifier with predict_proba" if ending else "over strings"),
        (make_pipeline(TfidfVectorizer(), LogisticRegression()), "fitted"),
        (LogisticRegression(), "fitted"),
    ):
        path = tmp_path / f"bare{ending}"
        if ending:
            (skops.io.dump if ending == ".skops" else joblib.dump)(bare, path)
        name = "LogisticRegression" if "fitted" in expected else type(bare).__name__
        with refused(expected, name, file=path if ending else None) as caught:
            open_model(path if ending else bare, trust_pickle=bool(ending))
        assert len(str(caught.error).splitlines()) == 1


def test_a_pickle_is_not_opened_without_trust(tmp_path):
    import joblib

    joblib.dump(fitted(), tmp_path / "m.joblib")
    with refused("trust_pickle", file="m.joblib"):
        open_model(tmp_path / "m.joblib")
    assert open_model(tmp_path / "m.joblib", trust_pickle=True).label_names == ("NEG", "POS")


def test_a_skops_file_with_code_is_not_opened(tmp_path):
    import skops.io
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    pipeline = make_pipeline(CountVectorizer(analyzer=opened), LogisticRegression())
    skops.io.dump(pipeline, tmp_path / "m.skops")
    with refused("test_linear.opened", file="m.skops"):
        open_model(tmp_path / "m.skops")


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04broken"])
def test_a_broken_skops_file(tmp_path, content):
    (tmp_path / "m.skops").write_bytes(content)
    with refused(file="m.skops"):
        open_model(tmp_path / "m.skops")


@pytest.mark.parametrize("node", [10**6, -5, 0], ids=["outside", "negative", "circle"])
@pytest.mark.parametrize("within", ["a forest", "another estimator"])
def test_a_tree_whose_nodes_point_outside_is_refused(tmp_path, node, within):
    import skops.io
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.semi_supervised import SelfTrainingClassifier
    from sklearn.tree import DecisionTreeClassifier

    outer = RandomForestClassifier(2) if within == "a forest" else SelfTrainingClassifier(DecisionTreeClassifier())
    pipeline = make_pipeline(CountVectorizer(), outer).fit(["good film", "bad film"] * 4, [1, 0] * 4)
    skops.io.dump(pipeline, tmp_path / "good.skops")
    assert hasattr(load_pipeline(tmp_path / "good.skops"), "predict_proba")
    if within == "a forest":
        tree = next(one.tree_ for one in outer.estimators_ if one.tree_.node_count > 1)
    else:  # its name before scikit-learn 1.6 is the second
        tree = (getattr(outer, "estimator_", None) or outer.base_estimator_).tree_
    tree.children_left[0] = node
    skops.io.dump(pipeline, tmp_path / "bad.skops")
    with refused("point outside", file="bad.skops"):
        load_pipeline(tmp_path / "bad.skops")


def test_what_is_no_model(tmp_path):
    with refused("model.skops", "config.json", file=tmp_path):
        open_model(tmp_path)
    (tmp_path / "m.txt").write_text("x")
    with refused(".skops", ".joblib", ".pkl", file="m.txt"):
        open_model(tmp_path / "m.txt")
    with refused("object"):
        open_model(object())  # type: ignore[arg-type]
    with refused("auto", "'translation'", field="task"):
        open_model(tmp_path / "none.skops", task="translation")


def test_a_missing_extra_is_named(monkeypatch, tmp_path):
    from eraser_hub.records import extras

    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None)
    (tmp_path / "config.json").write_text("{}")
    with refused("torch, transformers", "eraser-hub[explain]"):
        open_model(tmp_path)
