"""A network that answers a question with words of the text, as a model of ``explain``: rankings for MAP.

As for :mod:`eraser_hub.attribution.transformers.question_answering`, what is explained is p(start) p(end) of the best
answer, and methods that erase are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eraser_hub.attribution.adapter import Encoded, View
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.transformers.devices import doubled
from eraser_hub.attribution.transformers.question_answering import best_span, no_probabilities
from eraser_hub.records.errors import DataError

from .network_model import NetworkModel
from .readings import ReadInstance, batch_of
from .token_network import TokenNetwork


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """An answer: the numbers of its first and last word, from 1 (0 and 0: the text does not answer), and its p."""

    first: int
    last: int
    p: float


def best_answer(start: NDArray[np.float64], end: NDArray[np.float64]) -> AnswerSpan:
    """The answer of largest p(start) p(end), or none where that is larger.

    Args:
        start, end: probabilities of no answer and of each word.
    """
    none = float(start[0] * end[0])
    first, last, p = best_span(start[1:], end[1:])
    # what is not a number is larger than nothing
    return AnswerSpan(0, 0, none) if none >= p else AnswerSpan(first + 1, last + 1, p)


@dataclass(slots=True)
class ReadQuestion(ReadInstance):
    """A question and its text, and the best answer once it was looked for."""

    best: AnswerSpan | None = None


class AnswerNetwork(NetworkModel):
    """(question, text) in, the best answer out, which may be none."""

    has_labels = False
    gives_answers = True
    provides = frozenset({"gradients", "embeddings", "attention"})

    def __init__(
        self, network: TokenNetwork, label_names: Sequence[str], *, uses_query: bool = True, **more: Any
    ) -> None:
        super().__init__(network, (), uses_query=True, **more)

    def start(self, units: Sequence[tuple[View, int]]) -> Tensor:
        raise no_probabilities(self.description)

    def encode(self, instance: Instance) -> ReadQuestion:
        one = super().encode(instance)
        return ReadQuestion(one.instance, one.reading)

    def answer(self, encoded: Encoded) -> AnswerSpan:
        """The best answer, looked for once.

        Raises:
            DataError: the network gives what is not finite.
        """
        assert isinstance(encoded, ReadQuestion)
        if encoded.best is None:
            with torch.inference_mode():
                logits = self.network(batch_of([encoded.reading], self.device))
                best = best_answer(*torch.softmax(doubled(logits[0]), dim=-1).cpu().numpy())
            if not np.isfinite(best.p):
                words = f"{self.description}: its output holds NaN or infinite values"
                raise DataError(words, rule="model-output", instance=encoded.instance.id)
            encoded.best = best
        return encoded.best

    def answer_text(self, encoded: Encoded) -> tuple[str, float]:
        """The answer's words, blank between, "" for none; and its probability."""
        best = self.answer(encoded)
        return " ".join(encoded.instance.tokens[best.first - 1 : best.last] if best.first else ()), best.p

    def scores(
        self, method: str, encoded: Sequence[Encoded], targets: Sequence[int], steps: int
    ) -> list[NDArray[np.float64]]:
        rows = super().scores(method, encoded, targets, steps)
        # with the sum's own sign, as in the code of paper 002: a negative one reverses the ranking
        return [row / (row.sum() or 1) for row in rows] if self._of_logits(method) else rows

    def _of_logits(self, method: str) -> bool:
        return method == "integrated-gradients" and self.choices.signed_sum

    def explained_places(self, encoded: Sequence[Encoded], columns: Sequence[int]) -> list[tuple[int, ...]]:
        return [(best.first, best.last) for best in map(self.answer, encoded)]

    def explained_output(self, logits: Tensor, places: Tensor, method: str) -> Tensor:
        """p(start) p(end), or by paper 002's choice for integrated gradients the mean of both logits."""
        if self._of_logits(method):
            return logits.gather(2, places[..., None])[..., 0].mean(dim=1)
        return torch.softmax(logits, dim=-1).gather(2, places[..., None])[..., 0].prod(dim=1)
