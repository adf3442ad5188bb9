"""The token rule and the mask of spans, against plain splitting and plain sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.tokens import (
    find_token_starts,
    mask,
    masks,
    measure_texts,
    sentence_sizes,
    split_sentences,
    split_tokens,
)

texts = st.text(alphabet="ab é\t\xa0\u2028\r\n  \n", max_size=30)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(texts, max_size=5))
def test_all_forms_follow_one_rule(several: list[str]) -> None:
    expected = [[[piece for piece in line.split(" ") if piece] for line in text.split("\n")] for text in several]
    expected = [[line for line in lines if line] for lines in expected]
    for text, lines in zip(several, expected, strict=True):
        assert split_sentences(text) == lines
        assert split_tokens(text) == [token for line in lines for token in line]
        assert sentence_sizes(text) == [len(line) for line in lines]
    parts = [text.encode() for text in several]
    content = np.frombuffer(b"".join(parts), dtype=np.uint8)
    found = find_token_starts(content, np.cumsum([0, *map(len, parts)]))
    sizes = [len(line) for lines in expected for line in lines]
    assert np.diff(found.first_token).tolist() == [sum(map(len, lines)) for lines in expected]
    assert np.flatnonzero(found.opens_sentence).tolist() == (np.cumsum(sizes) - sizes).tolist()
    counts = measure_texts(content, [*map(len, parts)])
    assert counts.tokens.tolist() == [sum(map(len, lines)) for lines in expected]
    assert counts.sentences.tolist() == list(map(len, expected)) and counts.sentence_tokens.tolist() == sizes
    words = [token for lines in expected for line in lines for token in line]
    whole = b"".join(parts)
    for start, word in zip(found.start.tolist(), words, strict=True):
        assert whole[start:].startswith(word.encode())


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted), max_size=4), max_size=4))
def test_masks_are_unions_of_spans(documents: list[list[list[int]]]) -> None:
    expected = [[any(a <= at < b for a, b in spans) for at in range(9)] for spans in documents]
    assert [mask(spans, 9) for spans in documents] == expected
    flat = np.array([(k, a, b) for k, spans in enumerate(documents) for a, b in spans], dtype=np.int64).reshape(-1, 3)
    offsets = np.arange(len(documents) + 1) * 9
    assert masks(*flat.T, offsets).tolist() == [flag for flags in expected for flag in flags]
