"""Networks over words as models of ``explain``: classifiers, and networks that answer with words of the text.

As in :mod:`eraser_hub.attribution.transformers.question_answering`, explanations of an answer explain p(start) p(end)
of the best answer, and methods that erase tokens are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eraser_hub.attribution.adapter import Adapter, Encoded, Selection, View
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.transformers.devices import describe_half, find_device, half_type, move_network, to_float64
from eraser_hub.attribution.transformers.gradients import FULL_LENGTH_ROWS, compute_embedding_scores
from eraser_hub.attribution.transformers.question_answering import find_best_span, make_no_probabilities_error
from eraser_hub.records.errors import DataError

from .classifiers import TokenNetwork
from .embedders import EncoderEmbedder
from .readings import AnswerSpan, PaddedReadings, Reading, ReadInstance, pad_readings, read_instance

Work = Callable[[Sequence[Encoded]], list[NDArray[np.float64]]]
FULL_LENGTH = 512  # words; of shorter inputs more go through together


class NetworkModel(Adapter):
    """One of the papers' networks.

    A network that selects its rationale reads each input, erased ones included, through its selection. It has no token
    scores of its own, and gradients end at the selection: methods that need them are refused.

    On a GPU, an encoder's forward passes run in bfloat16 if the GPU supports it; everything else runs in float32.
    """

    def __init__(
        self,
        network: TokenNetwork,
        label_names: Sequence[str],
        *,
        uses_query: bool = False,
        device: str | None = None,
        precision: str = "auto",
        description: str = "",
    ) -> None:
        super().__init__()
        self.device = find_device(device)
        self.network: TokenNetwork = move_network(network, self.device)
        self.label_names, self.uses_query = tuple(label_names), uses_query
        self.description = description or type(network).__name__
        self.selects, self.has_embeddings = network.selects, not network.selects
        gradients = [] if self.selects else ["gradients", "embeddings"]
        self.provides = frozenset(["probabilities", *gradients, *["attention"] * network.attends])
        self._encoders = [module for module in self.network.modules() if isinstance(module, EncoderEmbedder)]
        half = half_type(precision, self.device) if self._encoders else None
        for embedder in self._encoders:
            embedder.half_type = half
        if half:
            self.notes.add_message(describe_half(half, self.device))

    def encode(self, instance: Instance) -> ReadInstance:
        """Return the instance as the network reads it."""
        return read_instance(instance, self.network.embedder.lexicon, self.uses_query, self.network.shape.apart)

    def forward(self, units: Sequence[tuple[View, int]]) -> Tensor:
        """Return probabilities of shape (views, labels), on the device."""
        with torch.inference_mode():
            logits = self.network(pad_readings([view.data for view, _ in units], self.device))
            return torch.softmax(to_float64(logits), dim=-1)

    def rows_for(self, size: int, batch_size: int) -> int:
        """Return how many inputs of that length go through the network together."""
        return max(1, min(batch_size * FULL_LENGTH // max(size, 1), 32 * batch_size))

    def scores(
        self, method: str, encoded: Sequence[Encoded], targets: Sequence[int], steps: int
    ) -> list[NDArray[np.float64]]:
        """Return token scores of each instance by attention or gradients."""
        columns = [self.column(target) for target in targets]
        with self._use_exact_arithmetic():
            if method == "attention":
                return self._map_batches(encoded, self._compute_attention)
            if method == "integrated-gradients":  # the points of one integral fill a batch by themselves
                pairs = zip(encoded, columns, strict=True)
                return [self._compute_gradients([one], [column], method, steps)[0] for one, column in pairs]
            column_of = dict(zip(map(id, encoded), columns, strict=True))
            return self._map_batches(
                encoded, lambda some: self._compute_gradients(some, [column_of[id(x)] for x in some], method, steps)
            )

    def selections(self, encoded: Sequence[Encoded]) -> list[Selection]:
        """Return the network's own rationale of each instance."""
        if not self.selects:
            return super().selections(encoded)

        def select(some: Sequence[Encoded]) -> list[NDArray[np.float64]]:
            with torch.inference_mode():
                return self._to_token_scores(some, self.network.selected(self._make_batch(some)))

        return [Selection(np.flatnonzero(row)) for row in self._map_batches(encoded, select)]

    @contextmanager
    def _use_exact_arithmetic(self) -> Iterator[None]:
        """Run encoders in float32, and no fused LSTM, which has no gradient outside of training."""
        halves = [(embedder, embedder.half_type) for embedder in self._encoders]
        try:
            for embedder, _ in halves:
                embedder.half_type = None
            with torch.backends.cudnn.flags(enabled=False):
                yield
        finally:
            for embedder, half in halves:
                embedder.half_type = half

    def _map_batches(self, encoded: Sequence[Encoded], work: Work) -> list[NDArray[np.float64]]:
        """Apply ``work`` to batches of instances of similar length; return the results in their order."""
        return self.map_batches(work, encoded, [len(get_reading(one).words) for one in encoded], FULL_LENGTH_ROWS)

    def _make_batch(self, encoded: Sequence[Encoded]) -> PaddedReadings:
        return pad_readings([get_reading(one) for one in encoded], self.device)

    def _to_token_scores(self, encoded: Sequence[Encoded], values: Tensor) -> list[NDArray[np.float64]]:
        """Return the values of each instance's tokens from the values of a batch's places."""
        rows = []
        for one, row in zip(encoded, to_float64(values).cpu().numpy(), strict=True):
            token = get_reading(one).token
            scores = np.zeros(one.instance.bounds[-1])
            scores[token[token >= 0]] = row[: len(token)][token >= 0]
            rows.append(scores)
        return rows

    def _compute_attention(self, encoded: Sequence[Encoded]) -> list[NDArray[np.float64]]:
        batch = self._make_batch(encoded)
        with torch.inference_mode():
            return self._to_token_scores(encoded, self.network.attention(self.network.embedder(batch), batch))

    def explained_places(self, encoded: Sequence[Encoded], columns: Sequence[int]) -> list[tuple[int, ...]]:
        """Return for each instance the outputs of the network to explain."""
        return [(column,) for column in columns]

    def explained_output(self, logits: Tensor, places: Tensor, method: str) -> Tensor:
        """Return the values to differentiate, shape (rows,): a label's probability."""
        return torch.softmax(logits, dim=-1).gather(1, places)[:, 0]

    def _compute_gradients(
        self, encoded: Sequence[Encoded], columns: Sequence[int], method: str, steps: int
    ) -> list[NDArray[np.float64]]:
        """Return scores by gradients of the embedder's vectors; for an encoder, of its last states."""
        batch = self._make_batch(encoded)
        with torch.no_grad():
            vectors = self.network.embedder(batch)

        def probability(embedded: Tensor, explained: Tensor, *values: Tensor) -> Tensor:
            return self.explained_output(self.network.logits(embedded, PaddedReadings(*values)), explained, method)

        explained = torch.tensor(self.explained_places(encoded, columns), device=self.device)
        more = (explained, *(getattr(batch, field.name) for field in fields(batch)))
        rows = self.rows_for(vectors.shape[1], FULL_LENGTH_ROWS)
        values = compute_embedding_scores(self, probability, vectors, method, steps, rows, more)
        return self._to_token_scores(encoded, torch.from_numpy(values))


def get_reading(encoded: Encoded) -> Reading:
    """Return the reading in a result of :meth:`NetworkModel.encode`."""
    assert isinstance(encoded, ReadInstance)
    return encoded.reading


def find_best_answer(start: NDArray[np.float64], end: NDArray[np.float64]) -> AnswerSpan:
    """Return the answer of largest p(start) p(end), or no answer if that is more probable.

    Args:
        start: Start probabilities of no answer and of each word.
        end: End probabilities of no answer and of each word.
    """
    none = float(start[0] * end[0])
    first, last, p = find_best_span(start[1:], end[1:])
    # what is not a number is larger than nothing
    return AnswerSpan(0, 0, none) if none >= p else AnswerSpan(first + 1, last + 1, p)


class AnswerNetwork(NetworkModel):
    """A network that maps (question, text) to the best answer, which may be none."""

    has_labels = False
    gives_answers = True

    def __init__(self, network: TokenNetwork, label_names: Sequence[str], **more: Any) -> None:
        super().__init__(network, (), **{**more, "uses_query": True})
        self.provides = frozenset({"gradients", "embeddings", "attention"})  # no probabilities of labels

    def forward(self, units: Sequence[tuple[View, int]]) -> Tensor:
        """Refuse: answers have no label probabilities."""
        raise make_no_probabilities_error(self.description)

    def answer(self, encoded: Encoded) -> AnswerSpan:
        """Return the best answer, computed once.

        Raises:
            DataError: The network's output is not finite.
        """
        assert isinstance(encoded, ReadInstance)
        if encoded.best is None:
            with torch.inference_mode():
                logits = self.network(pad_readings([encoded.reading], self.device))
                best = find_best_answer(*torch.softmax(to_float64(logits[0]), dim=-1).cpu().numpy())
            if not np.isfinite(best.p):
                words = f"{self.description}: its output holds NaN or infinite values"
                raise DataError(words, instance=encoded.instance.id)
            encoded.best = best
        return encoded.best

    def answer_text(self, encoded: Encoded) -> tuple[str, float]:
        """Return the answer's words, joined by blanks ("" for none), and its probability."""
        best = self.answer(encoded)
        return " ".join(encoded.instance.tokens[best.first - 1 : best.last] if best.first else ()), best.p

    def scores(
        self, method: str, encoded: Sequence[Encoded], targets: Sequence[int], steps: int
    ) -> list[NDArray[np.float64]]:
        """Return token scores of each instance."""
        rows = super().scores(method, encoded, targets, steps)
        # with the sum's own sign, as in the code of Wang et al. (2022): a negative one reverses the ranking
        return [row / (row.sum() or 1) for row in rows] if self._explains_logits(method) else rows

    def _explains_logits(self, method: str) -> bool:
        return method == "integrated-gradients" and self.choices.signed_sum

    def explained_places(self, encoded: Sequence[Encoded], columns: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the first and last word of each instance's best answer."""
        return [(best.first, best.last) for best in map(self.answer, encoded)]

    def explained_output(self, logits: Tensor, places: Tensor, method: str) -> Tensor:
        """Return p(start) p(end), or the mean of both logits as Wang et al. (2022) do."""
        if self._explains_logits(method):
            return logits.gather(2, places[..., None])[..., 0].mean(dim=1)
        return torch.softmax(logits, dim=-1).gather(2, places[..., None])[..., 0].prod(dim=1)
