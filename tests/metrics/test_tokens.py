"""The token rule, masks and spans."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eraser_hub.metrics import tokens
from eraser_hub.metrics.errors import DataError
from eraser_hub.metrics.tokens import mask_from_spans, spans_from_mask


@given(st.lists(st.integers(0, 1), max_size=12))
def test_masks_and_spans_are_inverse(mask: list[int]) -> None:
    assert mask_from_spans(spans_from_mask(mask), len(mask)) == mask
    assert spans_from_mask(np.array(mask)) == spans_from_mask(mask) == spans_from_mask(map(bool, mask))


def test_helpers_refuse() -> None:
    assert mask_from_spans([(0, 2), (1, 3)], 4) == [1, 1, 1, 0]
    for spans in ([(0, 5)], [(2, 1)], [(-1, 1)]):
        with pytest.raises(DataError, match="spans within 4 tokens"):
            mask_from_spans(spans, 4)


@given(st.lists(st.text(st.sampled_from("ab \n\u00a0é影\t"), max_size=12), max_size=5))
def test_sizes_of_many_texts_are_those_of_each(texts: list[str]) -> None:
    encoded = [text.encode() for text in texts]
    sizes = tokens.measure_texts(b"".join(encoded), [len(each) for each in encoded])
    assert sizes.tokens.tolist() == [len(tokens.split_tokens(text)) for text in texts]
    assert sizes.sentences.tolist() == [len(tokens.split_sentences(text)) for text in texts]
    assert sizes.sentence_tokens.tolist() == [n for text in texts for n in tokens.sentence_sizes(text)]
