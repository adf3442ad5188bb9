"""Extractive question answering: scores of the passage's tokens for the predicted answer span (rankings for MAP).

What is explained is p(start) · p(end) of the model's best span. Erased inputs change which spans there are, so there
are no comprehensiveness and sufficiency for this task (Wang 2022, Table 6), and methods that erase are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from eraser_hub.attribution.method import METHODS
from eraser_hub.records.errors import DataError

from .devices import to_float32, to_float64
from .model import Model
from .subwords import Ints, Reading
from .transformer import Explained, TransformerModel

if TYPE_CHECKING:
    from eraser_hub.attribution.method import Scores
    from eraser_hub.attribution.methods._captum import GradientMethod
    from eraser_hub.attribution.text import Text

LONGEST_ANSWER = 30


def find_best_span(start: NDArray[np.float64], end: NDArray[np.float64]) -> tuple[int, int, float]:
    """Find the answer of largest p(start) p(end): first place, last place, that p.

    >>> find_best_span(np.array([0.1, 0.9]), np.array([0.6, 0.4]))
    (1, 1, 0.36000000000000004)
    """
    pairs = np.outer(start, end)
    pairs = np.triu(pairs) - np.triu(pairs, LONGEST_ANSWER)
    first, last = np.unravel_index(int(np.argmax(pairs)), pairs.shape)
    return int(first), int(last), float(start[first] * end[last])


def explains_logits(model: Model, method: GradientMethod) -> bool:
    """Return True if a method explains the mean of the span's logits: integrated gradients, by Wang 2022's choice."""
    return model.choices.signed_sum and METHODS.name_of(type(method)) == "integrated-gradients"


class AnswerModel(TransformerModel):
    """An extractive question-answering model: (question, passage) in, the best span out."""

    has_labels = False
    answers = True
    provides = frozenset({"gradients", "attention"})

    def __init__(self, network: Any, tokenizer: Any, **more: Any) -> None:
        super().__init__(network, tokenizer, **{**more, "uses_query": True, "query_last": False})
        self.label_names = ()

    def forward(self, inputs: Sequence[Any]) -> Any:
        """Refuse: answers have no label probabilities."""
        message = f"{self.description}: question answering gives spans, not label probabilities: rankings only "
        message += "(`method` random, gradient, input-x-gradient, integrated-gradients or attention)"
        raise DataError(message)

    def find_answer(self, reading: Reading) -> tuple[Ints, int, int, float]:
        """Find the best span of a passage: the places of its window, its first and last there, and p(start) · p(end).

        Raises:
            DataError: an output that is no number.
        """
        answers = []
        for places in reading.windows():
            with torch.inference_mode():
                out = self.network(**self.tensors([reading.code[places]]))
            start, end = (
                to_float64(logits)[0].softmax(dim=-1).cpu().numpy() for logits in (out.start_logits, out.end_logits)
            )
            inside = reading.is_text[places]
            answers.append((places, *find_best_span(start * inside, end * inside)))
        best = max(answers, key=lambda answer: answer[3])
        if not all(np.isfinite(p) for *_, p in answers):
            raise DataError(
                f"{self.description}: its output holds NaN or infinite values", instance=reading.instance.id
            )
        return best

    def answer(self, reading: Reading) -> tuple[str, float]:
        """Return the answer's words, blank between, and its probability."""
        places, first, last, p = self.find_answer(reading)
        tokens, source = reading.instance.tokens, reading.source[places[first : last + 1]]
        return " ".join(tokens[token] for token in np.unique(source) if token < len(tokens)), p

    def gradients(self, texts: Sequence[Text], method: GradientMethod) -> list[Scores]:
        """Return token scores by a gradient method, text by text: the network does not hide padding from an answer."""
        rows = [super(AnswerModel, self).gradients([text], method)[0] for text in texts]
        # with the sum's own sign, as in the authors' code: a negative one reverses the ranking
        return [row / (row.sum() or 1) for row in rows] if explains_logits(self, method) else rows

    def explained(self, text: Text) -> list[Explained]:
        """Return the window of the best answer."""
        places, first, last, _ = self.find_answer(text.reading)
        return [Explained(text.reading.code[places], [(text.reading, places)], (first, last))]

    def explained_output(self, out: Any, places: Any, method: GradientMethod) -> Any:
        """Return p(start) · p(end), or the mean of both logits."""
        of_logits = explains_logits(self, method)
        logits = [to_float32(out.start_logits), to_float32(out.end_logits)]
        values = logits if of_logits else [rows.softmax(dim=-1) for rows in logits]
        start, end = (rows.gather(1, at[:, None])[:, 0] for rows, at in zip(values, places.T, strict=True))
        return (start + end) / 2 if of_logits else start * end

    def select_attention(self, reading: Reading, places: Ints, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the row that scores a window; by Wang 2022's choice the question's."""
        if not self.choices.question_to_passage:
            return super().select_attention(reading, places, matrix)
        before, between, _ = map(len, self.words.pair.special)
        passage = reading.is_text[places]
        return compute_question_attention(matrix, slice(before, int(passage.argmax()) - between), passage)

    mask_elements = Model.mask_elements


def compute_question_attention(
    matrix: NDArray[np.float64], question: slice, passage: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the mean of the question's rows of an attention matrix, as shares of the passage's columns."""
    row = matrix[question].mean(axis=0) if question.stop > question.start else matrix[0]
    return np.asarray(row / row[passage].sum())
