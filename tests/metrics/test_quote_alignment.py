"""Quotes and where they stand: what is the same to a reader comes back to its offsets, what is not there does not."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.quote_alignment import Document, Quote, align, make_key
from eraser_hub.metrics.tokens import split_sentences, split_tokens
from tests.raw_corpora import documents

from ..mangling import NORMALISATIONS

pytestmark = pytest.mark.unit

TEXT = "a `` fine '' film -- it 's not bad .\nthe ending , though , is bad ( very bad ) .\nnaïve viewers do n't mind ."


@pytest.fixture(scope="module")
def movies(corpora) -> list[Document]:
    return [Document(name, split_tokens(text)) for name, text in sorted(documents(corpora / "movies").items())[:40]]


def one(quote: str, text: str = TEXT, **how: object) -> Quote:
    (aligned,) = align([quote], [Document("d", split_tokens(text))], **how)
    return aligned


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
        ("ilm", "not_found", (None, None)),
        ("", "empty", (None, None)),
        (" … ", "empty", (None, None)),
    ],
)
def test_the_status_of_a_quote(quote, status, span):
    aligned = one(quote)
    assert (aligned.status, (aligned.start_token, aligned.end_token)) == (status, span)
    assert (aligned.similarity == 1.0) == (status in ("exact", "normalised"))


def test_of_several_places_the_nearest_to_the_others_or_all():
    document = Document("d", split_tokens(TEXT))
    bad = [(9, 10), (17, 18), (20, 21)]
    nearest = align(["the ending , though", "bad"], [document])
    assert [(quote.status, quote.start_token) for quote in nearest] == [("exact", 11), ("ambiguous", 9)]
    every = align(["bad", "bad"], [document])
    assert [(quote.start_token, quote.end_token) for quote in every] == bad[:2]
    assert [(q.start_token, q.end_token) for q in align(["bad"], [document], several="all")] == bad


def test_a_quote_that_leaves_words_out_becomes_its_pieces():
    quotes = align(["fine '' film ... naïve viewers"], [Document("d", split_tokens(TEXT))])
    assert [(quote.text, quote.start_token, quote.end_token) for quote in quotes] == [
        ("fine '' film", 2, 5),
        ("naïve viewers", 23, 25),
    ]


def test_the_document_that_holds_the_quote_is_named():
    two = [Document("premise", ["a", "man", "sleeps"]), Document("hypothesis", ["nobody", "is", "awake"])]
    assert align(["nobody is"], two)[0].docid == "hypothesis"


def test_writing_without_blanks_is_cut_anywhere():
    document = Document("d", ["这部", "电影", "非常", "好看"], blank="")
    assert align(["电影非常"], [document]) == [Quote("电影非常", "exact", "d", 1, 3, 1.0)]
    assert align(["影非"], [document])[0] == Quote("影非", "normalised", "d", 1, 3, 1.0)
