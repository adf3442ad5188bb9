"""Quotes and where they stand: what is the same to a reader comes back to its offsets, what is not there does not."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.errors import DataError
from eraser_hub.metrics.quote_faithfulness import QuoteFaithfulness
from eraser_hub.metrics.quotes import Document, Quote, align, locate_quotes, make_key
from eraser_hub.metrics.tokens import split_sentences, split_tokens
from tests.raw_corpora import documents

from ..mangling import NORMALISATIONS

TEXT = "a `` fine '' film -- it 's not bad .\nthe ending , though , is bad ( very bad ) .\nnaïve viewers do n't mind ."


@pytest.fixture(scope="module")
def movies(corpora) -> list[Document]:
    return [Document(name, split_tokens(text)) for name, text in sorted(documents(corpora / "movies").items())[:40]]


@pytest.mark.parametrize("kind", NORMALISATIONS)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_span_comes_back_to_its_offsets_however_it_is_written(kind, movies, data):
    document = movies[data.draw(st.integers(0, len(movies) - 1))]
    tokens = document.tokens
    start = data.draw(st.integers(0, len(tokens) - 1))
    end = data.draw(st.integers(start + 1, min(len(tokens), start + 60)))
    # a token without a key, such as a lone control character, is as good as no token; a quote of marks alone is empty
    if (
        not make_key(tokens[start])
        or not make_key(tokens[end - 1])
        or not any(map(str.isalnum, "".join(tokens[start:end])))
    ):
        return
    # wrapped in marks where the text has marks itself, a quote may mean either
    if kind == "wrapped" and "'" in make_key("".join(tokens[max(0, start - 2) : end + 2])):
        return
    text = NORMALISATIONS[kind](" ".join(tokens[start:end]), random.Random(start))
    spans = [(quote.start_token, quote.end_token) for quote in align([text], [document], several="all")]
    same = {make_key(" ".join(tokens[first:last])) for first, last in spans}
    asked = make_key(" ".join(tokens[start:end]))
    if kind in ("wrapped", "trailing dots"):  # the marks may be those of another place in the text
        same, asked = {key.strip("'.") for key in same}, asked.strip("'.")
    assert (start, end) in spans or same == {asked}


def test_sentences_of_other_documents_are_not_found(movies, corpora):
    chance, texts = random.Random(1), documents(corpora / "movies")
    sentences = [" ".join(chance.choice(split_sentences(texts[one.docid]))) for one in movies for _ in range(10)]
    name = sorted(texts)[-1]
    document = Document(name, split_tokens(texts[name]))
    strange = [text for text in sentences if len(make_key(text)) > 3 and make_key(text) not in document.key]
    assert [quote for quote in align(strange, [document]) if quote.docid] == []


@pytest.mark.parametrize(
    ("quote", "status", "span"),
    [
        ("fine '' film", "exact", (2, 5)),
        ("fine” film — it's NOT bad", "normalised", (2, 10)),
        ("not bad .\nthe ending", "exact", (8, 13)),
        ("naive viewers don’t mind", "normalised", (23, 28)),
        ("a fine movie, it's not bad", "not_found", (None, None)),
        ("the endling, though, is bad (very bad)", "fuzzy", (11, 22)),
        ("bad", "ambiguous", (9, 10)),
        ("ilm", "not_found", (None, None)),
        ("", "empty", (None, None)),
        (" … ", "empty", (None, None)),
    ],
)
def test_the_status_of_a_quote(quote, status, span):
    (aligned,) = align([quote], [Document("d", split_tokens(TEXT))])
    assert (aligned.status, (aligned.start_token, aligned.end_token)) == (status, span)
    assert (aligned.similarity == 1.0) == (status in ("exact", "normalised", "ambiguous"))


def test_places_pieces_documents_and_scripts_without_blanks():
    document = Document("d", split_tokens(TEXT))
    nearest = align(["the ending , though", "bad"], [document])
    assert [(quote.status, quote.start_token) for quote in nearest] == [("exact", 11), ("ambiguous", 9)]
    assert [quote.start_token for quote in align(["bad", "bad"], [document])] == [9, 17]
    assert [quote.start_token for quote in align(["bad"], [document], several="all")] == [9, 17, 20]
    pieces = align(["fine '' film ... naïve viewers"], [document])
    assert [(quote.text, quote.start_token) for quote in pieces] == [("fine '' film", 2), ("naïve viewers", 23)]
    two = [Document("premise", ["a", "man", "sleeps"]), Document("hypothesis", ["nobody", "is", "awake"])]
    assert align(["nobody is"], two)[0].docid == "hypothesis"
    document = Document("d", ["这部", "电影", "非常", "好看"], blank="")
    assert align(["电影非常"], [document]) == [Quote("电影非常", "exact", "d", 1, 3, 1.0)]
    assert align(["影非"], [document])[0] == Quote("影非", "normalised", "d", 1, 3, 1.0)


def test_quotes_are_located_as_ask_does():
    text = "a warm and funny film .\nit drags a little ."
    quotes = ["Warm and funny", "a masterpiece of its kind", "it drags ... little", "warm and fuuny film"]
    assert locate_quotes(text, quotes) == [(1, 4), None, (6, 10), (1, 5)]
    assert locate_quotes(split_tokens(text), ["little"]) == [(9, 10)]
    assert locate_quotes("a b a", ["a", "a"]) == [(0, 1), (2, 3)]
    assert locate_quotes("", ["a"]) == [None] and locate_quotes(text, ["", "..."]) == [None, None]


# -- the module -------------------------------------------------------------------------------------------------------


def quote(status: str, start: int | None = None, end: int | None = None) -> dict[str, Any]:
    return {"text": "t", "status": status, "docid": "d", "start_token": start, "end_token": end, "similarity": 0.0}


REFERENCES = [{"annotation_id": name, "documents": [{"docid": "d", "text": "a b c d e\nf g h i j"}]} for name in "xyz"]


def compute(predictions: Any, references: Any = None, **options: Any) -> dict[str, Any]:
    result: dict[str, Any] = QuoteFaithfulness().compute(predictions=predictions, references=references, **options)
    return result


def test_counts_by_hand():
    quotes = {
        "x": [quote("exact", 0, 4), quote("fuzzy", 2, 6), quote("not_found")],
        "y": [quote("ambiguous", 0, 1), quote("empty")],
    }
    rows = [{"annotation_id": name, "quotes": own, "outcome": "answered"} for name, own in quotes.items()]
    result = compute([*rows, {"annotation_id": "z", "quotes": [], "outcome": "cut"}], REFERENCES)
    shares = {key: result[key] for key in ("in_text", "exact", "normalised", "fuzzy", "ambiguous", "invented")}
    expected = {"in_text": 0.75, "exact": 0.25, "normalised": 0, "fuzzy": 0.25, "ambiguous": 0.25, "invented": 0.25}
    assert shares == expected
    assert (result["instances_with_invented"], result["quotes_per_instance"], result["quote_length"]) == (0.5, 2, 3)
    assert (result["coverage"], result["answered"]) == (7 / 30, 2 / 3)
    assert (result["quotes"], result["empty"]) == (4, 1)
    alone = compute(rows[:1])
    assert alone["in_text"] == 2 / 3 and np.isnan(alone["coverage"]) and "coverage" not in alone["signature"]


def test_bare_quotes_and_texts_belong_together_by_place():
    named = [{"id": "a", "quotes": ["warm"]}, {"id": "b", "quotes": ["dull", "film"]}]
    texts = [{"id": "a", "text": "so warm"}, {"id": "b", "text": "a dull film"}]
    expected = compute(named, texts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for predictions, references in (
            (["warm", ["dull", "film"]], ["so warm", ["a", "dull", "film"]]),
            (pandas.Series([["warm"], ["dull", "film"]]), np.array(["so warm", "a dull film"])),
            ([{"quotes": "warm"}, {"quotes": ["dull", "film"]}], texts),
            ([{**one, "text": two["text"]} for one, two in zip(named, texts, strict=True)], texts),
        ):
            assert compute(predictions, references) == expected
    with pytest.raises(DataError, match="'1'"):
        compute([["warm"], ["dull"]], ["so warm"])


def test_rows_without_quotes_are_left_out_and_counted():
    rows = [{"id": "a", "rationale": [0, 1], "quotes": ["warm"]}, {"id": "b", "rationale": [1, 0]}]
    gold = [{"id": "a", "text": "so warm"}, {"id": "b", "text": "so dull"}]
    with pytest.warns(UserWarning, match=r"left out: 1 of 2 instances \(no quotes\)"):
        result = compute(rows, gold)
    assert result["quotes"] == 1 and result["in_text"] == 1.0 and "n:1|" in result["signature"]
    assert "scored:1/2" in result["signature"]
    with pytest.raises(DataError, match="'b': quotes: expected a list of quotes"):
        compute(rows[1:], gold[1:])


@pytest.mark.parametrize(
    ("row", "field", "words"),
    [
        ({"quotes": [quote(pandas.NA)]}, "quotes[0].status", "<NA>"),  # type: ignore[arg-type]
        ({"quotes": [quote("seen")]}, "quotes[0].status", "exact, normalised,"),
        ({"quotes": [quote("exact", 0, 11)]}, "quotes[0].end_token", "at most 10"),
        ({"quotes": [{**quote("exact", 0, 1), "docid": "e"}]}, "quotes[0].docid", "'e'"),
        ({"quotes": [quote("empty")], "outcome": "refusal"}, "quotes", "expected none"),
        ({"quotes": [], "outcom": "cut"}, "outcom", "'outcome'"),
    ],
)
def test_what_is_refused(row, field, words):
    with pytest.raises(DataError) as error:
        compute([{"annotation_id": "x", **row}], REFERENCES[:1])
    assert error.value.instance == "x" and error.value.field == field and words in str(error.value)
