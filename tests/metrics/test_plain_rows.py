"""Masks, scores, spans and quotes give exactly the scores that instances give."""

from __future__ import annotations

import json
import math
import warnings
from typing import Any

import evaluate
import numpy as np
import pandas
import pyarrow as pa
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

import eraser_hub
from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.plain_rows import (
    find_plain_rows,
    instances_from,
    make_annotations,
    mask_from_spans,
    spans_from_mask,
)
from eraser_hub.metrics.quote_alignment import locate_quotes
from eraser_hub.metrics.quote_faithfulness import QuoteFaithfulness

from ..refusals import refused

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
TEXT = "a warm and funny film .\nit drags a little ."
TOKENS = TEXT.replace("\n", " ").split(" ")


def scores_of(predictions: Any, references: Any) -> dict[str, Any]:
    result: dict[str, Any] = EraserAgreement(keep_in_memory=True).compute(
        predictions=predictions, references=references, per_instance=True
    )
    return {name: value for name, value in result.items() if name != "signature"}


def same(one: Any, other: Any) -> bool:
    """Equality in which NaN equals NaN."""
    return json.dumps(one, sort_keys=True, default=str) == json.dumps(other, sort_keys=True, default=str)


def instance(name: str, mask: list[int], scores: list[float] | None = None) -> dict[str, Any]:
    spans = [{"start_token": start, "end_token": end} for start, end in spans_from_mask(mask)]
    one: dict[str, Any] = {"docid": name, "hard_rationale_predictions": spans}
    if scores is not None:
        one["soft_rationale_predictions"] = scores
    return {"annotation_id": name, "rationales": [one]}


def annotation(name: str, tokens: list[str], mask: list[int]) -> dict[str, Any]:
    return {"id": name, "tokens": tokens, "rationale_mask": mask, "label": 0}


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Texts of distinct words, with two masks and scores."""
    made = []
    for number in range(draw(st.integers(1, 4))):
        size = draw(st.integers(1, 8))
        flags = st.lists(st.integers(0, 1), min_size=size, max_size=size)
        numbers = st.lists(st.floats(-4, 4, width=32), min_size=size, max_size=size)
        tokens = [f"word{number}{at}" for at in range(size)]
        made.append({"tokens": tokens, "gold": draw(flags), "mask": draw(flags), "scores": draw(numbers)})
    return made


def forms(row: dict[str, Any], mask: list[int]) -> dict[str, Any]:
    """Every form of a mask."""
    text = " ".join(row["tokens"])
    spans = spans_from_mask(mask)
    characters = []
    for start, end in spans:
        first = len(" ".join([*row["tokens"][:start], ""]))
        characters.append([first, first + len(" ".join(row["tokens"][start:end]))])
    return {
        "mask": mask,
        "booleans": [bool(mark) for mark in mask],
        "numpy": np.array(mask),
        "spans": {"rationale": spans, "tokens": row["tokens"]},
        "objects": {"rationale": [{"start_token": s, "end_token": e} for s, e in spans], "text": text},
        "characters": {"rationale": characters, "text": text},
        "quotes": {"quotes": [" ".join(row["tokens"][s:e]) for s, e in spans], "text": text},
    }


@settings(max_examples=40, deadline=None)
@given(rows())
def test_each_form_gives_the_scores_of_instances(made: list[dict[str, Any]]) -> None:
    names = [str(number) for number in range(len(made))]
    gold = [annotation(name, row["tokens"], row["gold"]) for name, row in zip(names, made, strict=True)]
    hard = [instance(name, row["mask"]) for name, row in zip(names, made, strict=True)]
    expected = scores_of(hard, gold)
    kinds = list(forms(made[0], made[0]["mask"]))
    for kind in kinds:
        predictions = [forms(row, row["mask"])[kind] for row in made]
        references = [forms(row, row["gold"])[kind] for row in made]
        assert same(scores_of(predictions, gold), expected), kind
        assert same(scores_of(hard, references), expected), kind
        assert same(scores_of(predictions, references), expected), kind
        assert same(scores_of(instances_from(predictions), references), expected), kind
    both = [instance(name, row["mask"], row["scores"]) for name, row in zip(names, made, strict=True)]
    plain = [{"rationale": row["mask"], "scores": row["scores"]} for row in made]
    assert same(scores_of(plain, [row["gold"] for row in made]), scores_of(both, gold))
    soft = [{"annotation_id": i["annotation_id"], "rationales": [dict(i["rationales"][0])]} for i in both]
    for one in soft:
        del one["rationales"][0]["hard_rationale_predictions"]
    assert same(scores_of([row["scores"] for row in made], [row["gold"] for row in made]), scores_of(soft, gold))


@pytest.mark.parametrize("kind", ["array", "tensor", "series", "frame", "columns", "dataset", "arrow", "iterator"])
def test_every_container(kind: str) -> None:
    masks, gold = [[0, 1, 0], [1, 1, 0]], [[0, 1, 1], [1, 0, 0]]
    expected = scores_of(masks, gold)
    column = {"rationale": masks}
    if kind == "tensor":
        torch = pytest.importorskip("torch")
        assert same(scores_of(torch.tensor(masks), torch.tensor(gold)), expected)
        assert same(scores_of([torch.tensor(row) for row in masks], gold), expected)
        return
    made: Any = {
        "array": lambda: np.array(masks),
        "series": lambda: pandas.Series(masks),
        "frame": lambda: pandas.DataFrame(column),
        "columns": lambda: column,
        "dataset": lambda: Dataset.from_dict(column),
        "arrow": lambda: pa.table(column),
        "iterator": lambda: iter(masks),
    }[kind]()
    assert same(scores_of(made, gold), expected)


def test_batches_and_processes_pair_rows_by_place() -> None:
    masks, gold = [[0, 1, 0], [1, 1, 0], [1, 0]], [[0, 1, 1], [1, 0, 0], [0, 1]]
    expected = scores_of(masks, gold)
    metric = EraserAgreement(keep_in_memory=True)
    for mask, row in zip(masks, gold, strict=True):
        metric.add(prediction=mask, reference=row)
    result = metric.compute(per_instance=True)
    assert result["signature"].partition("|version")[0] and same({**expected}, {k: result[k] for k in expected})
    packed = metric._keep(masks, "prediction").to_bytes()
    assert metric._from_bytes(packed, "prediction").source == masks


def test_masks_against_rows_of_a_dataset_cover_its_documents_in_order() -> None:
    documents = [{"docid": "p", "text": "a man plays"}, {"docid": "h", "text": "he sleeps"}]
    place = {"docid": "h", "start_token": 1, "end_token": 2, "start_sentence": 0, "end_sentence": 1}
    gold = [{"annotation_id": "x", "documents": documents, "evidences": [[place]]}]
    result = scores_of([[0, 0, 1, 0, 1]], gold)
    assert (result["token_micro_p"], result["token_micro_r"]) == (0.5, 1.0)
    assert scores_of([{"id": "x", "quotes": ["He sleeps"]}], gold)["token_micro_p"] == 0.5
    with refused("unsupported", field="rationale"):
        scores_of([[[0, 1]]], gold)


def test_sentences_of_a_text_are_its_lines() -> None:
    gold = [{"text": TEXT, "rationale": ["drags"]}]
    result = scores_of([{"rationale": mask_from_spans([(0, 1)], len(TOKENS))}], gold)
    assert (result["sentence_micro_p"], result["sentence_micro_r"]) == (0.0, 0.0)


def test_labels_and_further_columns_stay() -> None:
    gold = [{"id": "a", "tokens": ["x", "y"], "rationale": [0, 1], "genre": "one"}]
    metric = EraserAgreement(keep_in_memory=True)
    result = metric.compute(predictions=[{"id": "a", "rationale": [0, 1]}], references=gold, by="genre")
    assert list(result["by"]) == ["one"]
    made = instances_from([[0, 1]], ids=["a"], labels=["good"], probabilities=[{"good": 1.0}])
    assert (made[0]["classification"], made[0]["classification_scores"]) == ("good", {"good": 1.0})


def test_quotes_that_are_invented_are_counted() -> None:
    metric = EraserAgreement(keep_in_memory=True)
    with pytest.warns(UserWarning, match="quotes that are not in the text, left out: 1"):
        metric.compute(
            predictions=[["warm and funny", "a masterpiece of its kind"]],
            references=[{"text": TEXT, "rationale": [[2, 6]]}],
        )


def test_quotes_in_several_places_are_counted() -> None:
    gold = [{"text": "good film and good cast", "rationale": ["cast"]}] * 2
    with pytest.warns(UserWarning, match="predicted quotes in several places, .*: 2$") as said:
        result = EraserAgreement(keep_in_memory=True).compute(predictions=[["good"], ["good", "film"]], references=gold)
    assert result["token_micro_p"] == 0.0 and len([one for one in said if "several" in str(one.message)]) == 1
    with pytest.warns(UserWarning, match="predicted quotes in several places, .*: 1$"):
        instances_from([["a"]], texts=["a b a"])


def test_quotes_of_a_prediction_with_a_text_of_its_own_need_no_text_beside_a_mask() -> None:
    assert scores_of([{"quotes": ["warm"], "text": "so warm"}], [[0, 1]])["token_micro_f1"] == 1.0
    assert scores_of([{"quotes": ["42"], "text": "42"}], [[1]])["token_micro_f1"] == 1.0


def test_a_misspelt_field_leads_to_the_plain_field() -> None:
    gold = [{"id": "a", "rationale": [0, 1]}]
    for wrong, right in (("rationle", "rationale"), ("score", "scores")):
        with refused("key-unknown", f"'{right}'", instance="a", field=wrong):
            scores_of([{"id": "a", wrong: [0, 1]}], gold)
    with refused("key-unknown", "'label'", instance="a", field="lable"):
        scores_of([{"id": "a", "rationale": [0, 1], "lable": "x"}], gold)
    with refused("key-missing", "'rationle'", instance="a", field="rationale"):
        scores_of(gold, [{"id": "a", "rationle": [0, 1]}])
    with pytest.warns(UserWarning, match="no such field: zebra \\(in 1\\)"):
        scores_of([{"id": "a", "rationale": [0, 1], "zebra": 1}], gold)


@pytest.mark.parametrize(
    ("predictions", "references", "rule", "field"),
    [
        ([[0, 2, 0]], [[0, 1, 0]], "choice", "rationale"),
        ([[0, 1]], [[0, 1, 0]], "length", "rationale"),
        ([[0.5, 1.0]], [[0, 1, 0]], "length", "rationale"),
        ([[0, None, 1]], [[0, 1, 0]], "type", "rationale"),
        ([[0.1, math.nan, 1.0]], [[0, 1, 0]], "range", "rationale[1]"),
        ([[0, 1, 0]], [[0.0, 0.5, 1.0]], "choice", "rationale"),
        ([[[0, 4]]], [[0, 1, 0]], "span-bounds", "rationale[0]"),
        ([[[2, 1]]], [[0, 1, 0]], "span-order", "rationale[0]"),
        ([[[0, "1"]]], [[0, 1, 0]], "type", "rationale[0]"),
        ([[0.1, -math.inf, 1.0]], [[0, 1, 0]], "range", "rationale[1]"),
        ([["warm"]], [{"rationale": ["warm"]}], "document-missing", "rationale"),
        ([["warm"]], [[0, 1, 0]], "document-missing", "rationale"),
        ([{"quotes": ["warm"]}], [[0, 1, 0]], "document-missing", "quotes"),
        ([["0", "1", "0"]], [[0, 1, 0]], "type", "rationale"),
        ([["0", "1", "0"]], [{"text": "a b c", "rationale": ["b"]}], "type", "rationale"),
        ([["0.5", "1"]], [[0, 1]], "type", "rationale"),
        ([[0, 1]], [["0", "1"]], "type", "rationale"),
        ([[0, 1], [0.1, 0.2]], [[0, 1], [0, 1]], "key-missing", ""),
        ([{"rationale": [0, 1], "label": "x"}, [0, 1]], [[0, 1], [0, 1]], "key-missing", ""),
        ([[0, 1]], [{"rationale": [[0, 1]]}], "document-missing", "rationale"),
        ([{"rationale": 3}], [[0, 1]], "type", "rationale"),
        ([{"rationale": [0, 1], "tokens": ["a", "b"]}], None, "empty", ""),
        ([{"rationale": [0, 1], "text": "a b c"}], [{"rationale": [0, 1], "text": "a b"}], "length", "text"),
        ([{"rationale": [0, 1]}], [{"rationale": [0, 1], "tokens": [3]}], "type", "text"),
        ([[0, 1], [0, 1]], [[0, 1]], "length", ""),
        ([[0, 1]], [[0, 1], [0, 1]], "id-missing", ""),
        ([{"id": "b", "rationale": [0, 1]}], [{"id": "a", "rationale": [0, 1]}], "id-unknown", ""),
    ],
)
def test_what_does_not_fit_names_the_row(predictions: Any, references: Any, rule: Any, field: str) -> None:
    with refused(rule, field=field or None):
        scores_of(predictions, references)


def test_what_is_not_plain_is_read_as_before() -> None:
    assert find_plain_rows([{"annotation_id": "a", "rationales": []}]) is None
    assert find_plain_rows([{"id": "a", "tokens": ["x"], "rationale_mask": [1]}]) is None
    assert find_plain_rows([{"annotation_id": "a", "rationale": "words", "documents": []}]) is None
    assert find_plain_rows([{"id": "a", "rationale": [{"docid": "d"}]}]) is None
    assert find_plain_rows("text") is None and find_plain_rows(3) is None and find_plain_rows([]) is None
    assert find_plain_rows([3]) is None and find_plain_rows([None]) is None
    with refused("type", field="predictions[0]"):
        scores_of([3], [[0, 1]])


# -- helpers ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 1), max_size=12))
def test_masks_and_spans_are_inverse(mask: list[int]) -> None:
    assert mask_from_spans(spans_from_mask(mask), len(mask)) == mask
    assert spans_from_mask(np.array(mask)) == spans_from_mask(mask) == spans_from_mask(map(bool, mask))


def test_helpers_are_public_and_refuse() -> None:
    assert eraser_hub.spans_from_mask is spans_from_mask and eraser_hub.instances_from is instances_from
    assert eraser_hub.mask_from_spans([(0, 2), (1, 3)], 4) == [1, 1, 1, 0]
    for spans in ([(0, 5)], [(2, 1)], [(-1, 1)]):
        with refused("span-bounds", field="spans"):
            mask_from_spans(spans, 4)
    with refused("length", field="ids"):
        instances_from([[0, 1]], ids=["a", "b"])
    with refused("type", field="rationales"):
        instances_from([{"annotation_id": "a", "rationales": []}])


def test_quotes_are_located_as_ask_does() -> None:
    quotes = ["Warm and funny", "a masterpiece of its kind", "it drags ... little", "warm and fuuny film"]
    assert locate_quotes(TEXT, quotes) == [(1, 4), None, (6, 10), (1, 5)]
    assert locate_quotes(TOKENS, ["little"]) == [(9, 10)]
    assert locate_quotes("a b a", ["a", "a"]) == [(0, 1), (2, 3)]
    assert locate_quotes("", ["a"]) == [None] and locate_quotes(TEXT, ["", "..."]) == [None, None]


def test_quote_faithfulness_takes_bare_quotes() -> None:
    """The numbers of the aligned quotes that `ask` writes."""
    metric = QuoteFaithfulness(keep_in_memory=True)
    plain = metric.compute(
        predictions=[{"id": "a", "quotes": ["warm and funny", "a masterpiece of its kind"]}],
        references=[{"id": "a", "text": TEXT}],
    )
    where = {"docid": "a", "start_token": 1, "end_token": 4, "similarity": 1.0}
    quotes = [{"text": "warm and funny", "status": "exact", **where}, {"text": "x", "status": "not_found"}]
    documents = [{"docid": "a", "text": TEXT}]
    aligned = QuoteFaithfulness(keep_in_memory=True).compute(
        predictions=[{"annotation_id": "a", "quotes": quotes}],
        references=[{"annotation_id": "a", "documents": documents}],
    )
    assert same(plain, aligned) and plain["invented"] == 0.5 and plain["coverage"] == 3 / 11
    with refused("document-missing", instance="a", field="quotes"):
        metric.compute(predictions=[{"id": "a", "quotes": ["warm"]}])


def test_bare_quotes_and_texts_belong_together_by_place() -> None:
    named = [{"id": "a", "quotes": ["warm"]}, {"id": "b", "quotes": ["dull", "film"]}]
    texts = [{"id": "a", "text": "so warm"}, {"id": "b", "text": "a dull film"}]
    metric = QuoteFaithfulness(keep_in_memory=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "left out: .* \\(no asked_again\\)$")
        expected = metric.compute(predictions=named, references=texts)
        for predictions, references in (
            (["warm", ["dull", "film"]], ["so warm", ["a", "dull", "film"]]),
            (pandas.Series([["warm"], ["dull", "film"]]), np.array(["so warm", "a dull film"])),
            ([{"quotes": "warm"}, {"quotes": ["dull", "film"]}], texts),
            ([{**one, "text": two["text"]} for one, two in zip(named, texts, strict=True)], texts),
        ):
            assert same(metric.compute(predictions=predictions, references=references), expected)
    with refused("id-unknown", instance="1"):
        metric.compute(predictions=[["warm"], ["dull"]], references=["so warm"])
    with refused("type", instance=None, field="annotation_id"):
        metric.compute(predictions=[{"annotation_id": None, "quotes": []}])


def test_rows_without_quotes_are_left_out_and_counted() -> None:
    rows = [{"id": "a", "rationale": [0, 1], "quotes": ["warm"]}, {"id": "b", "rationale": [1, 0]}]
    gold = [{"id": "a", "text": "so warm", "rationale": [0, 1]}, {"id": "b", "text": "so dull", "rationale": [0, 1]}]
    metric = QuoteFaithfulness(keep_in_memory=True)
    with pytest.warns(UserWarning, match=r"left out: 1 of 2 instances \(no quotes\)"):
        result = metric.compute(predictions=rows, references=gold)
    assert result["quotes"] == 1 and result["in_text"] == 1.0 and "n:1|" in result["signature"]
    assert "scored:1/2" in result["signature"]
    with refused("type", instance="b", field="quotes", total=1):
        metric.compute(predictions=rows[1:], references=gold[1:])
    instances = [instance("a", [0, 1]) | {"quotes": ["warm"]}, instance("b", [1, 0])]
    both = evaluate.combine([EraserAgreement(keep_in_memory=True), metric])
    combined = both.compute(predictions=instances, references=make_annotations(gold)[0])
    assert combined["in_text"] == 1.0 and combined["token_micro_f1"] == 0.5


def test_a_quote_of_digits_is_a_quote_where_the_text_is_known():
    gold = {"text": "in 1984 it was", "rationale": ["1984"]}
    with pytest.warns(UserWarning, match="predicted quotes that are not in the text, left out: 1"):
        result = EraserAgreement().compute(predictions=[["1985"]], references=[gold])
    assert result["token_macro_f1"] == 0.0
    with refused("type", "0"):  # a mask of the text's four tokens, read from a table
        EraserAgreement().compute(predictions=[["0", "1", "0", "0"]], references=[gold])


def test_a_further_column_beside_the_field_that_it_resembles_is_counted():
    rows = [{"rationale": [0, 1], "scores": [0.1, 0.9], "score": 0.93}]
    with pytest.warns(UserWarning, match="no such field: score"):
        EraserAgreement().compute(predictions=rows, references=[{"text": "a b", "rationale": [0, 1]}])
    with refused("key-unknown", "scores", field="score"):
        EraserAgreement().compute(predictions=[{"score": [0.1, 0.9]}], references=[[0, 1]])
