"""Extractive question answering: scores of the passage's tokens for the predicted answer span (rankings for MAP).

What is explained is p(start) · p(end) of the model's best span. Erased inputs change which spans there are, so there
are no comprehensiveness and sufficiency for this task (Wang 2022, Table 6), and methods that erase are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import Encoded, View
from eraser_hub.attribution.instances import Instance
from eraser_hub.records.errors import DataError

from .devices import to_float32, to_float64
from .pieces import Explained, Pieces, Window
from .sequence_model import SequenceModel

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


def make_no_probabilities_error(description: str) -> DataError:
    """Return the error for probabilities of labels, which question answering does not give."""
    return DataError(
        f"{description}: question answering gives spans, not label probabilities: rankings only "
        "(`method` random, gradient, input-x-gradient, integrated-gradients or attention)",
    )


@dataclass(slots=True)
class Passage(Pieces):
    """A question and its passage, and the best answer once it was looked for."""

    best: tuple[Window, int, int, float] | None = None


def check_passage(encoded: Encoded) -> Passage:
    """Return the encoding if it is a passage."""
    assert isinstance(encoded, Passage)
    return encoded


class AnswerModel(SequenceModel):
    """An extractive question-answering model: (question, passage) in, the best span out."""

    has_labels = False
    gives_answers = explains_singly = True
    provides = frozenset({"gradients", "embeddings", "attention"})

    def __init__(self, network: Any, tokenizer: Any, **more: Any) -> None:
        super().__init__(network, tokenizer, **{**more, "uses_query": True, "query_last": False})
        self.label_names = ()

    def forward(self, units: Sequence[tuple[View, int]]) -> Any:
        """Refuse: answers have no label probabilities."""
        raise make_no_probabilities_error(self.description)

    def _first_output(self, windows: Sequence[Window]) -> Any:
        logits = self.network(**self.tensors(windows)).start_logits[0]
        return logits[self.inside(windows[0], len(logits))]

    def encode(self, instance: Instance) -> Passage:
        """Cut the instance into the units that the model reads."""
        one = super().encode(instance)
        return Passage(one.instance, one.model, one.query, one.ids, one.owner, one.first, one.split)

    def answer(self, one: Passage) -> tuple[Window, int, int, float]:
        """Find the best span of a passage: its window, its first and last place there, and p(start) · p(end)."""
        if one.best is not None:
            return one.best
        best: tuple[Window, int, int, float] | None = None
        for window in one.whole():
            with self.torch.inference_mode():
                out = self.network(**self.tensors([window]))
            start = self.torch.softmax(to_float64(out.start_logits), dim=-1)[0].cpu().numpy()
            end = self.torch.softmax(to_float64(out.end_logits), dim=-1)[0].cpu().numpy()
            inside = window.piece >= 0
            first, last, p = find_best_span(start * inside, end * inside)
            if not np.isfinite(p):
                message = f"{self.description}: its output holds NaN or infinite values"
                raise DataError(message, instance=one.instance.id)
            if best is None or p > best[3]:
                best = (window, first, last, p)
        if best is None:
            raise DataError("the passage is empty: nothing to answer from", instance=one.instance.id)
        one.best = best
        return best

    def answer_text(self, encoded: Encoded) -> tuple[str, float]:
        """Return the answer's words, blank between, and its probability."""
        one = check_passage(encoded)
        window, first, last, p = self.answer(one)
        pieces = window.piece[first : last + 1]
        words = sorted({int(one.owner[piece]) for piece in pieces if piece >= 0})
        return " ".join(one.instance.tokens[word] for word in words), p

    def scores(
        self, method: str, encoded: Sequence[Encoded], targets: Sequence[int], steps: int
    ) -> list[NDArray[np.float64]]:
        """Compute token scores by a method that looks inside the model."""
        rows = super().scores(method, encoded, targets, steps)
        # with the sum's own sign, as in the authors' code: a negative one reverses the ranking
        return [row / row.sum() for row in rows] if self._of_logits(method) else rows

    def _of_logits(self, method: str) -> bool:
        return method == "integrated-gradients" and self.choices.signed_sum

    def explained(self, encoded: Any, target: int) -> list[Explained]:
        """Return the model inputs to explain."""
        window, first, last, _ = self.answer(check_passage(encoded))
        return [Explained(window, (first, last))]

    def explained_output(self, out: Any, places: Any, method: str) -> Any:
        """Return the output whose gradient is taken, shape (inputs,)."""
        logits = [to_float32(out.start_logits), to_float32(out.end_logits)]
        if not self._of_logits(method):
            logits = [one.softmax(dim=-1) for one in logits]
        start, end = (one.gather(1, at[:, None])[:, 0] for one, at in zip(logits, places.T, strict=True))
        return (start + end) / 2 if self._of_logits(method) else start * end
