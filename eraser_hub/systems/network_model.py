"""Networks over words as models of ``explain``: classifiers, and networks that answer with words of the text.

As in :mod:`eraser_hub.attribution.models.question_answering`, explanations of an answer explain p(start) p(end) of the
best answer, and methods that erase tokens are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.methods._captum import Embedded, GradientMethod
from eraser_hub.attribution.models.devices import find_device, move_network, to_float64
from eraser_hub.attribution.models.inputs import ModelInput
from eraser_hub.attribution.models.model import FULL_LENGTH_ROWS, Model, Selection
from eraser_hub.attribution.models.question_answering import explains_logits, find_best_span
from eraser_hub.records.errors import DataError

from .networks import TokenNetwork
from .readings import PaddedReadings, Reading, ReadInstance, pad_readings, read_instance

if TYPE_CHECKING:
    from eraser_hub.attribution.method import Scores
    from eraser_hub.attribution.text import Text

FULL_LENGTH = 512  # words; of shorter inputs more go through together


class NetworkModel(Model):
    """One of the papers' networks.

    A network that selects its rationale reads each input, erased ones included, through its selection. It has no token
    scores of its own, and gradients end at the selection: methods that need them are refused.

    It runs in float32.
    """

    def __init__(
        self,
        network: TokenNetwork,
        label_names: Sequence[str],
        *,
        uses_query: bool = False,
        device: str | None = None,
        description: str = "",
    ) -> None:
        super().__init__()
        self.device = find_device(device)
        self.network: TokenNetwork = move_network(network, self.device)
        self.label_names, self.uses_query = tuple(label_names), uses_query
        self.description = description or type(network).__name__
        self.selects, self.embeds = network.selects, not network.selects
        own = {"gradients": self.embeds, "attention": network.attends}
        self.provides = frozenset({"probabilities", *(name for name, has in own.items() if has)})

    def read(self, instance: Instance) -> ReadInstance:
        """Return the instance as the network reads it."""
        return read_instance(instance, self.network.embedder.lexicon, self.uses_query, self.network.shape.apart)

    def cut(self, reading: ReadInstance, kept: NDArray[np.bool_], erase: str) -> Iterator[list[ModelInput]]:
        """Yield the input of each erased variant."""
        for flags in kept:
            erased = reading.reading.erase(flags, erase)
            yield [ModelInput(erased.key, len(erased.words), erased)]

    def forward(self, inputs: Sequence[Reading]) -> Tensor:
        """Return probabilities of shape (inputs, labels), on the device."""
        with torch.inference_mode():
            return torch.softmax(to_float64(self.network(pad_readings(inputs, self.device))), dim=-1)

    def rows_for(self, size: int, batch_size: int) -> int:
        """Return how many inputs of that length go through the network together."""
        return max(1, min(batch_size * FULL_LENGTH // max(size, 1), 32 * batch_size))

    def gradients(self, texts: Sequence[Text], method: GradientMethod) -> list[Scores]:
        """Return token scores by gradients of the words' vectors; of an encoder's last states where there is one."""

        def work(batch: list[Text]) -> list[Scores]:
            readings = [text.reading for text in batch]
            padded = self._pad(readings)
            with torch.no_grad():
                vectors = self.network.embedder(padded)

            def output(points: Tensor, explained: Tensor, *values: Tensor) -> Tensor:
                return self.explained_output(self.network.logits(points, PaddedReadings(*values)), explained, method)

            inputs = Embedded(
                output=output,
                vectors=vectors,
                more=(torch.tensor([self.explained(text) for text in batch], device=self.device), *padded),
                baseline=None,
                network=self.network,
                rows=self.rows_for(vectors.shape[1], FULL_LENGTH_ROWS),
                choices=self.choices,
                notes=self.notes,
                description=self.description,
            )
            return self._to_scores(readings, method.attribute(inputs).detach())

        with torch.backends.cudnn.flags(enabled=False):  # a fused LSTM has no gradient outside of training
            return self.map_inputs(method, work, texts, [text.reading.size for text in texts])

    def explained(self, text: Text) -> tuple[int, ...]:
        """Return the outputs of the network that explain a text."""
        return (self.column(text.label),)

    def explained_output(self, logits: Tensor, places: Tensor, method: GradientMethod) -> Tensor:
        """Return the values to differentiate, shape (rows,): the label's probability, or its centred logit."""
        centred = logits - logits.mean(dim=-1, keepdim=True)
        return (centred if method.explains == "logit" else torch.softmax(logits, dim=-1)).gather(1, places)[:, 0]

    def attention(self, texts: Sequence[Text]) -> list[Scores]:
        """Return the network's weight of each token."""

        def work(batch: list[ReadInstance]) -> list[Scores]:
            padded = self._pad(batch)
            with torch.inference_mode():
                return self._to_scores(batch, self.network.attention(self.network.embedder(padded), padded))

        return self._map([text.reading for text in texts], work)

    def select(self, readings: Sequence[ReadInstance]) -> list[Selection]:
        """Return the network's own rationale of each instance."""
        if not self.selects:
            return super().select(readings)

        def work(batch: list[ReadInstance]) -> list[Scores]:
            with torch.inference_mode():
                return self._to_scores(batch, self.network.selected(self._pad(batch)))

        return [Selection(np.flatnonzero(row)) for row in self._map(readings, work)]

    def _map(
        self, readings: Sequence[ReadInstance], work: Callable[[list[ReadInstance]], list[Scores]]
    ) -> list[Scores]:
        return self.map_batches(work, readings, [one.size for one in readings])

    def _pad(self, readings: Sequence[ReadInstance]) -> PaddedReadings:
        return pad_readings([one.reading for one in readings], self.device)

    def _to_scores(self, readings: Sequence[ReadInstance], values: Tensor) -> list[Scores]:
        """Return the values of each instance's tokens from the values of a batch's places."""
        rows = []
        for one, row in zip(readings, to_float64(values).cpu().numpy(), strict=True):
            token = one.reading.token
            scores = np.zeros(one.instance.bounds[-1])
            scores[token[token >= 0]] = row[: len(token)][token >= 0]
            rows.append(scores)
        return rows


def find_best_answer(start: NDArray[np.float64], end: NDArray[np.float64]) -> tuple[int, int, float]:
    """Return the answer of largest p(start) p(end): its first and last word, counted from 1, and that p.

    They are 0 and 0 where no answer is more probable.

    Args:
        start: probabilities of no answer and of each word.
        end: likewise.
    """
    none = float(start[0] * end[0])
    first, last, p = find_best_span(start[1:], end[1:]) if len(start) > 1 else (0, 0, 0.0)
    # what is not a number is larger than nothing
    return (0, 0, none) if none >= p else (first + 1, last + 1, p)


class AnswerNetwork(NetworkModel):
    """A network that maps (question, text) to the best answer, which may be none."""

    has_labels = False
    answers = True

    def __init__(self, network: TokenNetwork, label_names: Sequence[str], **more: Any) -> None:
        super().__init__(network, (), **{**more, "uses_query": True})
        self.provides = frozenset({"gradients", "attention"})  # no probabilities of labels

    def forward(self, inputs: Sequence[Reading]) -> Tensor:
        """Refuse: answers have no label probabilities."""
        raise DataError(f"{self.description} answers with words, and has no probabilities of labels: rankings alone")

    def find_answer(self, reading: ReadInstance) -> tuple[int, int, float]:
        """Return the best answer, see `find_best_answer`.

        Raises:
            DataError: the network's output is not finite.
        """
        with torch.inference_mode():
            logits = self.network(pad_readings([reading.reading], self.device))
            best = find_best_answer(*torch.softmax(to_float64(logits[0]), dim=-1).cpu().numpy())
        if not np.isfinite(best[2]):
            raise DataError(f"{self.description}: its output is not finite", instance=reading.instance.id)
        return best

    def answer(self, reading: ReadInstance) -> tuple[str, float]:
        """Return the answer's words, joined by blanks ("" for none), and its probability."""
        first, last, p = self.find_answer(reading)
        return " ".join(reading.instance.tokens[first - 1 : last] if first else ()), p

    def gradients(self, texts: Sequence[Text], method: GradientMethod) -> list[Scores]:
        """Return token scores by a gradient method."""
        rows = super().gradients(texts, method)
        # with the sum's own sign, as in the code of Wang et al. (2022): a negative one reverses the ranking
        return [row / (row.sum() or 1) for row in rows] if explains_logits(self, method) else rows

    def explained(self, text: Text) -> tuple[int, ...]:
        """Return the first and last word of the best answer."""
        return self.find_answer(text.reading)[:2]

    def explained_output(self, logits: Tensor, places: Tensor, method: GradientMethod) -> Tensor:
        """Return p(start) p(end), or the mean of both logits as Wang et al. (2022) do."""
        if explains_logits(self, method):
            return logits.gather(2, places[..., None])[..., 0].mean(dim=1)
        return torch.softmax(logits, dim=-1).gather(2, places[..., None])[..., 0].prod(dim=1)
