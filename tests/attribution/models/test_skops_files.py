"""Files of scikit-learn models: what could run code, or crash, is refused before it is asked."""

from __future__ import annotations

import re
import zipfile

import numpy as np
import pytest

pytest.importorskip("skops")
import joblib
import skops.io
from sklearn.ensemble import BaggingClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from eraser_hub.attribution import open_model
from eraser_hub.attribution.models.skops_files import load_pipeline, save_pipeline

from ...refusals import refused

pytestmark = [pytest.mark.unit, pytest.mark.filterwarnings("ignore:y contains no unlabeled")]
TEXTS, LABELS = ["good film", "bad film"] * 8, [1, 0] * 8


def fitted(estimator=None, words=None):
    steps = words or CountVectorizer(), LogisticRegression() if estimator is None else estimator
    return make_pipeline(*steps).fit(TEXTS, LABELS)


def test_a_pickle_is_not_opened_without_trust(tmp_path):
    joblib.dump(fitted(), tmp_path / "m.joblib")
    with refused("trust_pickle", file="m.joblib"):
        open_model(tmp_path / "m.joblib")
    assert open_model(f"{tmp_path}/m.joblib(trust_pickle=True)").label_names == ("0", "1")
    (tmp_path / "m.pkl").write_bytes(b"no pickle")
    with refused(file="m.pkl"):
        open_model(tmp_path / "m.pkl", trust_pickle=True)


def upper(text):
    return text.upper()


def test_a_skops_file_with_code_is_not_opened(tmp_path):
    skops.io.dump(make_pipeline(CountVectorizer(preprocessor=upper), LogisticRegression()), tmp_path / "m.skops")
    with refused("test_skops_files.upper", file="m.skops"):
        open_model(tmp_path / "m.skops")


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04broken"])
def test_a_broken_file(tmp_path, content):
    (tmp_path / "m.skops").write_bytes(content)
    with refused(file="m.skops"):
        open_model(tmp_path / "m.skops")


def test_a_bomb_is_not_unpacked(tmp_path):
    path = tmp_path / "bomb.skops"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("schema.json", "w") as schema:
        for _ in range(128):
            schema.write(b" " * (1 << 20))
    with refused("134,217,728", file=path):
        open_model(path)


@pytest.mark.parametrize(
    "estimator",
    [
        MultinomialNB(),
        RandomForestClassifier(3),
        SelfTrainingClassifier(DecisionTreeClassifier()),
        BaggingClassifier(n_estimators=2),
        OneVsRestClassifier(RandomForestClassifier(2)),
    ],
)
def test_a_pipeline_comes_back_and_is_written_alike(tmp_path, estimator):
    pipeline = fitted(estimator, TfidfVectorizer())
    for name in ("a.skops", "b.skops"):
        save_pipeline(pipeline, tmp_path / name)
    np.testing.assert_array_equal(
        load_pipeline(tmp_path / "a.skops").predict_proba(TEXTS), pipeline.predict_proba(TEXTS)
    )
    assert (tmp_path / "a.skops").read_bytes() == (tmp_path / "b.skops").read_bytes()


@pytest.mark.parametrize("kind", [GradientBoostingClassifier, SVC, LogisticRegression])
def test_what_cannot_be_checked_or_asked_is_refused(tmp_path, kind):
    skops.io.dump(kind().fit([[0], [1]], [0, 1]), tmp_path / "m.skops")
    with refused(kind.__name__, file="m.skops"):
        load_pipeline(tmp_path / "m.skops")


def tree_of(estimator):
    """Return the first tree of several nodes, wherever it is."""
    waiting = [estimator]
    while waiting:
        one = waiting.pop(0)
        if hasattr(one, "tree_") and one.tree_.node_count > 1:
            return one
        waiting += [getattr(one, name) for name in ("estimator_", "base_estimator_") if hasattr(one, name)]
        waiting += list(getattr(one, "estimators_", ()))
    raise AssertionError(estimator)


def lead_outside(node):
    def change(estimator):
        tree_of(estimator).tree_.children_left[0] = node

    return change


def read_another_feature(estimator):
    tree_of(estimator).tree_.feature[0] = 10**6


def change_width(estimator):
    """The tree and its feature agree with each other, and not with the input."""
    one = tree_of(estimator)
    tree, state = one.tree_, one.tree_.__getstate__()
    wide = type(tree)(10**6, np.array([2]), 1)
    state["nodes"]["feature"][0] = 10**6 - 1
    wide.__setstate__(state)
    one.tree_ = wide
    if len(getattr(estimator, "estimators_", ())):
        one.n_features_in_ = 10**6  # a forest's trees are not asked whether they fit


def lack_width(estimator):
    change_width(estimator)
    vars(tree_of(estimator)).pop("n_features_in_")


def hide(estimator):
    tree = tree_of(estimator).tree_
    estimator.hidden = {"a": np.array([[tree.__class__(3, np.array([2]), 1)], [0]], dtype=object)}


def replace_the_check(estimator):
    tree_of(estimator)._validate_X_predict = np.positive


CHANGES = [
    *(lead_outside(node) for node in (10**6, -5, 0)),
    *(read_another_feature, change_width, lack_width, hide, replace_the_check),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__qualname__)
@pytest.mark.parametrize("within", ["forest", "itself", "self-training", "bagging of forests"])
def test_a_tree_that_leads_outside_is_refused(tmp_path, change, within):
    estimator = {
        "forest": RandomForestClassifier(2, random_state=1),
        "itself": DecisionTreeClassifier(),
        "self-training": SelfTrainingClassifier(DecisionTreeClassifier()),
        "bagging of forests": BaggingClassifier(RandomForestClassifier(2, random_state=1), 1),
    }[within]
    pipeline = fitted(estimator)
    change(estimator)
    skops.io.dump(pipeline, tmp_path / "m.skops")
    with refused(file="m.skops"):
        load_pipeline(tmp_path / "m.skops")


@pytest.mark.parametrize("count", ["0", "1"])
def test_a_tree_of_another_number_of_nodes_is_refused(tmp_path, count):
    save_pipeline(fitted(DecisionTreeClassifier()), tmp_path / "good.skops")
    number = re.compile(r'("node_count": \{[^}]*"content": )"3"([^}]*),\s*"__id__": \d+')
    with zipfile.ZipFile(tmp_path / "good.skops") as good, zipfile.ZipFile(tmp_path / "m.skops", "w") as bad:
        for name in good.namelist():
            content = good.read(name)
            if name == "schema.json":
                schema, times = number.subn(rf'\1"{count}"\2', content.decode())
                content = schema.encode()
                assert times == 1
            bad.writestr(name, content)
    with refused("nodes", file="m.skops"):
        load_pipeline(tmp_path / "m.skops")


@pytest.mark.parametrize("number", [10**6, -1, 0])
def test_a_vocabulary_that_leads_outside_is_refused(tmp_path, number):
    pipeline = fitted()
    pipeline[0].vocabulary_["good"] = number if number else pipeline[0].vocabulary_["bad"]
    skops.io.dump(pipeline, tmp_path / "m.skops")
    with refused("vocabulary", file="m.skops"):
        load_pipeline(tmp_path / "m.skops")
