"""Multiple choice, and extractive question answering."""

from __future__ import annotations

import numpy as np
import pytest

from eraser_hub.attribution import Instance, open_model

from ...needs import needs
from ...refusals import refused
from ..conftest import CLOSE, check_answers, instance
from .networks import ask, only, scores, without

pytestmark = needs("torch", "transformers", "captum")


@pytest.fixture
def choice(network, tokenizer):
    return open_model((network("BertForMultipleChoice").double(), tokenizer), label_names=("A", "B", "C"))


def test_multiple_choice(choice):
    import torch

    query = "good [sep] bad film [sep] the"
    one = instance("it plays a scene", query=query)
    assert not choice.notes.messages  # answers have no order of their own to be told about
    flags = [without(4), without(4, 1), only(4)]
    for kept, row in zip(flags, ask(choice, [one], [flags])[0], strict=True):
        words = [token for token, stays in zip(one.tokens, kept, strict=True) if stays]
        answers = [answer.split() for answer in query.split(" [sep] ")]
        inputs = choice.tokenizer([words] * 3, answers, is_split_into_words=True, padding=True, return_tensors="pt")
        with torch.inference_mode():
            logits = choice.network(**{name: rows[None] for name, rows in inputs.items()}).logits
        np.testing.assert_allclose(row, logits.softmax(-1)[0], rtol=0, atol=CLOSE)
    other = instance("a film", "other", query="it [sep] bad bad bad [sep] good")
    for method in ("gradient", "input-x-gradient", "integrated-gradients", "occlusion"):
        together = scores(choice, [one, other], method)
        for each, row in zip((one, other), together, strict=True):
            np.testing.assert_allclose(row, scores(choice, [each], method)[0], rtol=0, atol=CLOSE)
            assert len(row) == len(each.tokens) and np.abs(row).max() > 0
    with refused("3", "[sep]", "2", instance="one", field="query"):
        choice.read(instance("it", query="good [sep] bad"))
    with refused("BertForMultipleChoice"):
        choice.mask_elements(choice.read(one), 0, np.ones(4), 1, np.random.default_rng(0))


def test_a_question_longer_than_the_window_is_cut_where_it_is_whole(choice):
    one = instance(" ".join(["film"] * 40), query="good [sep] bad film [sep] the")
    reading = choice.read(one)
    assert choice.notes.counts["questions cut at their end"] == 1
    (whole,), (erased,) = choice.cut(reading, np.stack([without(40), without(40, *range(20))]), "remove")
    assert [len(row) for row in whole.data] == [31, 32, 31] and [len(row) for row in erased.data] == [11, 12, 11]


def test_question_answering_gives_rankings(network, tokenizer):
    model = open_model((network("BertForQuestionAnswering"), tokenizer))
    text = ("the", "good", "film", "with", "a", "bad", "plot")
    check_answers(model, Instance("7", ("Is", "it", "?"), ("sequence_0",), (text,)))
    assert model.answer(model.read(Instance("8", ("Is",), ("d",), ((),)))) == ("", 0.0)
    long = Instance("9", ("Is", "it", "?"), ("d",), (text * 9,))
    answer, p = model.answer(model.read(long))
    parts = [model.answer(model.read(Instance("w", long.query, ("d",), (part,)))) for part in _windows(model, long)]
    assert (answer, p) == max(parts, key=lambda found: found[1])


def _windows(model, one):
    reading = model.read(one)
    for places in reading.windows():
        tokens = reading.source[places]
        yield tuple(one.tokens[token] for token in np.unique(tokens[tokens < len(one.tokens)]))
