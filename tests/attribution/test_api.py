"""``explain_texts``: texts in memory, the same predictions as the command line's."""

from __future__ import annotations

import json

import numpy as np
import pytest

from eraser_hub import explain
from eraser_hub.attribution import Instance, explain_texts, open_model

from ..refusals import refused
from .conftest import CountingModel

pytestmark = pytest.mark.unit

TEXTS = [
    "the good film",
    ["a", "bad", "good", "bad", "plot"],
    "",
    Instance("own", (), ("d", "e"), (("good",), ("bad",))),
]


def test_texts_tokens_and_instances_are_explained():
    found = explain_texts(CountingModel(), TEXTS, method="occlusion", kd=0.3, bins=())
    assert [one["annotation_id"] for one in found] == ["0", "1", "2", "own"]
    assert [one["classification"] for one in found] == ["POS", "NEG", "NEG", "NEG"]
    assert found[0]["rationales"][0]["hard_rationale_predictions"] == [{"start_token": 1, "end_token": 2}]
    first = found[0]["classification_scores"]["POS"] - found[0]["comprehensiveness_classification_scores"]["POS"]
    assert found[0]["rationales"][0]["soft_rationale_predictions"] == pytest.approx([0, first, 0])
    assert [len(part["soft_rationale_predictions"]) for part in found[3]["rationales"]] == [1, 1]
    json.dumps(found)


def test_any_library_can_call_an_opened_model():
    model = CountingModel()
    opened = open_model(model)
    texts = ["the good film", ["a", "bad", "good", "bad", "plot"], ""]
    expected = [list(one["classification_scores"].values()) for one in explain_texts(CountingModel(), texts)]
    assert opened.proba(texts).tolist() == opened.proba(texts, batch_size=1).tolist() == expected
    assert opened.proba([]).shape == (0, 2)
    with refused(argument="texts"):
        opened.proba("a text")
    with refused(argument="queries"):
        opened.proba(texts, queries=["one"])
    open_model(model, uses_query=True).proba(["good film"], queries=["is it"])
    explain_texts(model, ["bad"], queries=[["is"]], bins=())
    explain_texts(model, [Instance("own", ("was", "it"), ("d",), (("good",),)), "plot"], bins=())
    assert all(one in model.asked for one in (["is", "it", "good", "film"], ["is"], ["was", "it", "good"], ["plot"]))


class Nameless:
    def predict_proba(self, token_lists):
        return np.full((len(token_lists), 2), 0.5)


def test_a_pipeline_over_strings_is_taken_as_it_is():
    pytest.importorskip("sklearn")
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    texts, labels = ["a good film", "a bad film", "good plot", "bad plot"], ["POS", "NEG"] * 2
    strings = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, labels)
    (one,) = explain_texts(strings, ["a good film"], kd=0.3)
    assert one["rationales"][0]["hard_rationale_predictions"] == [{"start_token": 1, "end_token": 2}]
    search = GridSearchCV(strings, {"logisticregression__C": [1.0]}, cv=2).fit(texts, labels)
    assert explain_texts(search, ["a good film"], kd=0.3) == [one]
    # one that splits nothing takes token lists, as any other object does
    lists = make_pipeline(CountVectorizer(analyzer=list), LogisticRegression()).fit([t.split() for t in texts], labels)
    assert explain_texts(lists, ["a good film"], kd=0.3)[0]["classification"] == "POS"


def test_bad_input_is_refused():
    model = CountingModel()
    with refused("'x,y'", argument="label_names"):
        explain_texts(Nameless(), ["a"], label_names="x,y")
    with refused("Nameless", argument="label_names"):
        explain_texts(Nameless(), ["a"])
    assert explain_texts(Nameless(), ["a"], label_names=["x", "y"])[0]["classification"] == "x"
    with refused("token 1", "7", instance="1"):
        explain_texts(model, ["a", ["b", 7]])
    assert explain_texts(model, []) == []


@pytest.mark.parametrize(
    ("settings", "argument", "mentions"),
    [
        ({"method": "lime(sample=7)"}, "method", ("lime", "did you mean 'samples'?")),
        ({"method": "lime(samples=1)"}, "method", ("lime, samples", "a whole number of at least 2")),
        ({"method": "random(draws=3)"}, "method", ("one draw",)),
        ({"method": ("shapley", "occlusion")}, "method", ("one method", "occlusion")),
        ({"measure": "soft(masks=words)"}, "measure", ("soft, masks", "'words'")),
        ({"fidelity_rates": (0.5,)}, "fidelity_rates", ("`fidelity_trials`",)),
        ({"kd": float("nan")}, "kd", ("nan",)),
        ({"bins": (0.1, 0.1)}, "bins", ("0.1",)),
        ({"erase": "drop"}, "erase", ("'drop'",)),
        ({"kds": 0.1}, "kds", ("did you mean 'kd'",)),
        ({"method": "lime(samples=7"}, "method", ("bracket",)),
        ({"paper": "lei2016"}, "paper", ("eraser, wang2022, carton2020", "'lei2016'")),
        ({"target": "gold"}, "target", ("a label", "found none")),
    ],
)
def test_wrong_settings_are_refused(settings, argument, mentions):
    """Before a model is opened where no model can mend them."""
    with refused(*mentions, argument=argument):
        explain_texts(CountingModel() if argument == "target" else "./no-model", ["a fine film"], **settings)


ERASER = {"documents": [{"docid": "d", "text": "good film\nbad plot"}], "evidences": []}
ROWS = [
    {"annotation_id": "r1", **ERASER},
    {"id": 7, "text": "bad bad"},
    {"tokens": ["good", "good"]},
    {"id": "w", "tokens": ["good", "plot"], "label": 0},
]
SAME = ["good film\nbad plot", "bad bad", ["good", "good"], ["good", "plot"]]


@pytest.mark.parametrize("form", [{"tokens": ["good"]}, {"text": "good"}, {**ERASER}])
def test_rows_of_every_form_keep_query_and_label(form):
    model, row = CountingModel(), {"id": "a", "annotation_id": "a", "query": "is it", "label": "NEG", **form}
    frame = pytest.importorskip("pandas").DataFrame([row, {**row, "id": "b", "annotation_id": "b", "query": None}])
    found = explain_texts(model, frame, target="gold")
    assert any(asked[:3] == ["is", "it", "good"] for asked in model.asked)
    assert found[0]["rationales"][0]["soft_rationale_predictions"][0] < 0


def test_given_scores_are_those_of_one_document_after_the_other():
    (found,) = explain_texts(CountingModel(), [TEXTS[3]], scores=[[1, 2]])
    assert [part["soft_rationale_predictions"] for part in found["rationales"]] == [[1], [2]]


def test_rows_are_texts_with_ids_and_not_names_of_columns():
    import datasets
    import pandas as pd

    found = explain_texts(CountingModel(), ROWS)
    assert [one["annotation_id"] for one in found] == ["r1", "7", "2", "w"]
    for one, other in zip(found, explain_texts(CountingModel(), SAME), strict=True):
        assert one["classification_scores"] == other["classification_scores"]
        (scores,), (expected,) = one["rationales"], other["rationales"]
        assert scores["soft_rationale_predictions"] == expected["soft_rationale_predictions"]
    rows = [{"id": "7", "text": "bad bad"}, {"id": "w", "text": "good plot"}]
    for table in (datasets.Dataset.from_list(rows), pd.DataFrame(rows)):
        assert explain_texts(CountingModel(), table) == explain_texts(CountingModel(), rows)


@pytest.mark.parametrize(
    ("texts", "more", "mentions"),
    [
        ({"text": ["good film"]}, {}, ("dict",)),
        ("good film", {}, ("texts", "'good film'")),
        (["good", 3.5], {}, ("texts[1]", "3.5")),
        ([{"review": "good"}], {}, ("texts[0]", "documents, tokens or text", "review")),
        ([{"id": "a", "text": "x"}, {"id": "a", "text": "y"}], {}, ("a",)),
        ([{"id": "a", "text": "x"}], {"ids": ["b"]}, ("no id", "a row")),
        ([TEXTS[3]], {"queries": ["b"]}, ("own",)),
        (["x", "y"], {"queries": ["b"]}, ("queries", "found 1")),
        (["x", "y"], {"ids": ["b", "b"]}, ("b",)),
        (["x"], {"scores": [[1, 2]]}, ("scores", "1 scores", "found 2")),
        (["x"], {"scores": [[1]], "method": "lime"}, ("`method` or `scores`",)),
        (["x"], {"limit": 0}, ("limit", "a dataset")),
    ],
)
def test_what_is_no_text_is_one_clear_error(texts, more, mentions):
    with refused(*mentions):
        (explain if "limit" in more else explain_texts)(CountingModel(), texts, **more)


@pytest.mark.parametrize("name", ["p.jsonl", "p.parquet"])
def test_texts_in_memory_go_to_a_file(name, tmp_path):
    from eraser_hub.records.predictions import read_instances

    out = tmp_path / name
    found = explain(CountingModel(), ["good film", "bad plot"], ids=["a", 8], out=out, kd=0.5)
    assert found == explain_texts(CountingModel(), ["good film", "bad plot"], ids=["a", 8], kd=0.5)
    # gold of one document names it by the annotation's id
    assert [one["rationales"][0]["docid"] for one in found] == ["a", "8"]
    assert [one["annotation_id"] for one in found] == ["a", "8"]
    for (_, row), one in zip(read_instances(out), found, strict=True):
        assert all(row[name] == one[name] for name in ("annotation_id", "classification_scores"))
    assert "kd:0.5" in json.loads((tmp_path / f"{name}.run.json").read_text())["signature"]
    with refused("found one", "force", file=out, argument="out"):
        explain(CountingModel(), ["good film"], out=out)
    numbers = {"kd": np.float32(0.5), "seed": np.int64(3), "bins": np.float32([0.5])}
    explain(CountingModel(), ["good film"], out=out, force=True, **numbers)
    assert len(list(read_instances(out))) == 1
