"""The base class of networks over words, their shared layers, and the LSTM classifiers.

The classifiers are those of DeYoung et al. (2020), Wang et al. (2022) and Carton et al. (2020), and the sentence reader
of Lehman et al. (2019). No layer sees padding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from eraser_hub.systems.hyper import NetworkHyper
from eraser_hub.systems.models.lehman import LehmanHyper

from .embedders import Embedder
from .readings import PaddedReadings, Reading, SelectedPlaces


@dataclass(frozen=True, slots=True)
class Shape:
    """Properties of a network that the data decide.

    Attributes:
        labels: Number of labels.
        apart: True if instances are read as two segments (:mod:`readings`).
        answers: True if the network answers with words of the text and has no labels.
    """

    labels: int
    apart: bool
    answers: bool = False


@dataclass(frozen=True, slots=True)
class TaughtReading:
    """A reading with its training targets.

    Attributes:
        reading: The reading.
        label: The number of the label.
        rationale: The human rationale at each place; None if there is none.
        span: The first and last word of the answer, counted from 1; (0, 0) for none.
    """

    reading: Reading
    label: int = 0
    rationale: NDArray[np.bool_] | None = None
    span: tuple[int, int] = (0, 0)


class TokenNetwork(nn.Module, ABC):
    """A classifier of texts over word vectors.

    Attributes:
        attends: True if :meth:`attention` returns weights.
        selects: True if :meth:`selected` returns a rationale of its own.
        epoch: The current epoch of the training, which sets it.
    """

    attends = False
    selects = False
    epoch = 0

    def __init__(self, embedder: Embedder, hyper: NetworkHyper, shape: Shape) -> None:
        super().__init__()
        self.embedder, self.hyper, self.shape = embedder, hyper, shape

    @classmethod
    def build(cls, new_embedder: Callable[[int], Embedder], hyper: Any, shape: Shape) -> TokenNetwork:
        """Build an untrained network; ``new_embedder`` takes the number of an encoder's layers to train."""
        return cls(new_embedder(hyper.trained_layers), hyper, shape)

    @abstractmethod
    def logits(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """Return logits of shape (rows, labels) from word vectors of shape (rows, places, width)."""

    def attention(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """Return the weight of each place, shape (rows, places)."""
        raise TypeError(f"{type(self).__name__} has no attention")

    def selected(self, batch: PaddedReadings) -> Tensor:
        """Return True at the tokens of the network's own rationale, shape (rows, places)."""
        raise TypeError(f"{type(self).__name__} selects no tokens")

    def forward(self, batch: PaddedReadings) -> Tensor:
        """Return logits of shape (rows, labels)."""
        return self.logits(self.embedder(batch), batch)

    def penalty(self, batch: PaddedReadings) -> Tensor:
        """Return the loss beside the loss of the labels, shape (rows,)."""
        return torch.zeros(len(batch.words), device=batch.words.device)

    def loss(self, batch: PaddedReadings, examples: Sequence[TaughtReading]) -> Tensor:
        """Return the mean loss over the batch's examples."""
        labels = torch.tensor([one.label for one in examples], device=batch.words.device)
        return functional.cross_entropy(self(batch), labels)


class Recurrent(nn.Module):
    """One layer of an LSTM or a GRU over rows of different lengths.

    Each direction reads the padded rows from their start; the second direction reads them reversed. States behind a
    row's end are dropped. (Packed sequences give the same result, but on a CPU their gradients take time that grows
    with the square of the length: a hundred times as long for texts of 900 words.)

    Args:
        width: Width of the input vectors.
        size: Width of a state, in each direction.
        both: Read from both ends.
        gated: Use a GRU instead of an LSTM.
    """

    def __init__(self, width: int, size: int, both: bool = True, gated: bool = False) -> None:
        super().__init__()
        kind: type[nn.GRU | nn.LSTM] = nn.GRU if gated else nn.LSTM
        self.cells = nn.ModuleList(kind(width, size, batch_first=True) for _ in range(1 + both))
        self.width = size * len(self.cells)

    def forward(self, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return the states of all places and the last state of each row.

        A row of length 0 reads one place, which is a zero vector.

        Args:
            vectors: Input, shape (rows, places, width).
            lengths: Number of places in each row, shape (rows,).

        Returns:
            The states, shape (rows, places, width), zero behind a row's end; and the last state of each direction,
            joined, shape (rows, width).
        """
        lengths = lengths.clamp(min=1).to(vectors.device)[:, None]
        places = torch.arange(vectors.shape[1], device=vectors.device)[None]
        turned = torch.where(places < lengths, lengths - 1 - places, places)[..., None]  # it is its own inverse
        ends = (lengths - 1)[..., None]
        states, last = list[Tensor](), list[Tensor]()
        for number, cells in enumerate(self.cells):
            there = vectors.gather(1, turned.expand_as(vectors)) if number else vectors
            read, _ = cells(there)
            last.append(read.gather(1, ends.expand(-1, 1, read.shape[-1]))[:, 0])
            states.append(read.gather(1, turned.expand_as(read)) if number else read)
        return torch.cat(states, dim=-1) * (places < lengths)[..., None], torch.cat(last, dim=-1)


class AdditiveAttention(nn.Module):
    """Weights softmax over t of v . tanh(q W + h_t U) (Bahdanau et al., 2014), q learned or given by each row.

    Args:
        width: Width of the states.
        asked: True if each row comes with a query; q is not learned then.
    """

    def __init__(self, width: int, asked: bool = False) -> None:
        super().__init__()
        self.query = None if asked else nn.Parameter(torch.randn(width))
        self.of_query = nn.Parameter(torch.empty(width, width))
        self.of_states = nn.Parameter(torch.empty(width, width))
        self.vector = nn.Parameter(torch.empty(width, 1))
        for weights in (self.of_query, self.of_states, self.vector):
            nn.init.xavier_uniform_(weights)

    def forward(self, states: Tensor, visible: Tensor, queries: Tensor | None = None) -> Tensor:
        """Return weights of shape (rows, places); they sum to 1 over the visible places and are 0 elsewhere.

        Args:
            states: The states h_t, shape (rows, places, width).
            visible: True at visible places, shape (rows, places).
            queries: The vector q of each row, shape (rows, width); None for the learned vector.
        """
        asked = self.query if queries is None else queries[:, None]
        assert asked is not None  # callers with `asked` pass queries
        scores = torch.tanh(asked @ self.of_query + states @ self.of_states) @ self.vector
        return compute_masked_softmax(scores[..., 0], visible)


def compute_masked_softmax(scores: Tensor, visible: Tensor) -> Tensor:
    """Return the softmax over the last axis's visible places; 0 elsewhere, and if no place is visible."""
    hidden = scores.masked_fill(~visible, torch.finfo(scores.dtype).min)
    return torch.softmax(hidden, dim=-1) * visible


def pool_states(states: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted sum of states over places, shape (rows, width)."""
    return (states * weights[..., None]).sum(dim=1)


class AdditiveClassifier(TokenNetwork):
    """A bidirectional LSTM, dropout, additive attention, a layer of ReLU, dropout, logits (DeYoung 2020, C)."""

    attends = True

    def __init__(self, embedder: Embedder, hyper: NetworkHyper, shape: Shape) -> None:
        super().__init__(embedder, hyper, shape)
        self.reader = Recurrent(embedder.width, hyper.hidden_size)
        self.weights = AdditiveAttention(self.reader.width)
        self.dropout = nn.Dropout(hyper.dropout)
        first, last = nn.Linear(self.reader.width, hyper.hidden_size), nn.Linear(hyper.hidden_size, shape.labels)
        self.head = nn.Sequential(first, nn.ReLU(), nn.Dropout(hyper.dropout), last)

    def logits(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """Return logits of shape (rows, labels)."""
        states, _ = self.reader(vectors, batch.lengths)
        states = self.dropout(states)
        return self.head(pool_states(states, self.weights(states, batch.visible)))  # type: ignore[no-any-return]

    def attention(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """Return the weight of each place, shape (rows, places)."""
        states, _ = self.reader(vectors, batch.lengths)
        return self.weights(states, batch.visible)  # type: ignore[no-any-return]


class LastStateClassifier(TokenNetwork):
    """A bidirectional LSTM and logits of its last states (Carton et al. (2020), appendix B)."""

    def __init__(self, embedder: Embedder, hyper: NetworkHyper, shape: Shape) -> None:
        super().__init__(embedder, hyper, shape)
        self.reader = Recurrent(embedder.width, hyper.hidden_size)
        self.dropout = nn.Dropout(hyper.dropout)
        self.head = nn.Linear(self.reader.width, shape.labels)

    def logits(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """Return logits of shape (rows, labels)."""
        _, last = self.reader(vectors, batch.lengths)
        return self.head(self.dropout(last))  # type: ignore[no-any-return]


class LstmClassifier(TokenNetwork):
    """An LSTM for each text, a layer of tanh over its last states, logits (Wang et al., 2022, B.2 and Figure 2).

    The attention of a word is the product of its state with that layer's output, divided by the sum over its text.
    Products and sums may be negative: weights may be negative, and a negative sum reverses a text's ranking.
    """

    attends = True

    def __init__(self, embedder: Embedder, hyper: NetworkHyper, shape: Shape) -> None:
        super().__init__(embedder, hyper, shape)
        self.readers = nn.ModuleList(
            Recurrent(embedder.width, hyper.hidden_size, both=False) for _ in range(1 + shape.apart)
        )
        self.dropout = nn.Dropout(hyper.dropout)
        self.joined = nn.Sequential(
            nn.Linear(hyper.hidden_size * len(self.readers), hyper.hidden_size), nn.Tanh(), self.dropout
        )
        self.head = nn.Linear(hyper.hidden_size, shape.labels)

    def _read(self, vectors: Tensor, batch: PaddedReadings) -> tuple[Tensor, Tensor]:
        """Return the states of all places, each by its own text's LSTM, and the joined representation."""
        states = vectors.new_zeros((*vectors.shape[:2], self.hyper.hidden_size))
        ends = []
        for number, reader in enumerate(self.readers):
            part = SelectedPlaces(batch.inside & (batch.segment == number))
            inner, last = reader(part.gather(vectors), part.lengths)
            states = states + part.scatter(inner, states.shape[1])
            ends.append(last)
        return states, self.joined(torch.cat(ends, dim=1))

    def logits(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """Return logits of shape (rows, labels)."""
        return self.head(self._read(vectors, batch)[1])  # type: ignore[no-any-return]

    def attention(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """Return the weight of each place, shape (rows, places)."""
        states, joined = self._read(vectors, batch)
        products = (states @ joined[..., None])[..., 0] * (batch.visible)
        weights = torch.zeros_like(products)
        for number in range(len(self.readers)):
            part = products * (batch.segment == number)
            total = part.sum(dim=1, keepdim=True)
            weights = weights + torch.where(total == 0, part, part / torch.where(total == 0, 1, total))
        return weights


class SentenceReader(TokenNetwork):
    """A bidirectional GRU or LSTM over the text, additive attention, a layer of ReLU, logits.

    If there is a query, another layer of the same kind reads it. Its last states are appended to every word of the
    text, are the query of the attention, and enter the classification.
    """

    attends = True
    hyper: LehmanHyper

    def __init__(self, embedder: Embedder, hyper: LehmanHyper, shape: Shape) -> None:
        super().__init__(embedder, hyper, shape)
        gated, size = hyper.cell == "gru", 2 * hyper.hidden_size
        self.query = Recurrent(embedder.width, hyper.hidden_size, gated=gated) if shape.apart else None
        self.text = Recurrent(embedder.width + (size if shape.apart else 0), hyper.hidden_size, gated=gated)
        self.weights, self.dropout = AdditiveAttention(size, asked=shape.apart), nn.Dropout(hyper.dropout)
        first = nn.Linear(size * (1 + shape.apart), hyper.hidden_size)
        last = nn.Linear(hyper.hidden_size, shape.labels)
        self.head = nn.Sequential(self.dropout, first, nn.ReLU(), self.dropout, last)

    def _read(self, vectors: Tensor, batch: PaddedReadings) -> tuple[SelectedPlaces, Tensor, Tensor, Tensor | None]:
        """Return the text's places, their states, the weight of each, and the query's last states."""
        part, dropped = SelectedPlaces(batch.inside & (batch.segment == 0)), self.dropout(vectors)
        words, asked = part.gather(dropped), None
        if self.query is not None:
            other = SelectedPlaces(batch.inside & (batch.segment == 1))
            asked = self.query(other.gather(dropped), other.lengths)[1]
            beside = asked[:, None].expand(-1, words.shape[1], -1) * part.within[..., None]
            words = torch.cat([words, beside], dim=-1)
        states = self.dropout(self.text(words, part.lengths)[0])
        return part, states, self.weights(states, part.within & part.gather(batch.visible), asked), asked

    def logits(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """Return logits of shape (rows, labels)."""
        _, states, weights, asked = self._read(vectors, batch)
        summary = pool_states(states, weights)
        logits: Tensor = self.head(summary if asked is None else torch.cat([asked, summary], dim=-1))
        return logits

    def attention(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """Return the weight of each place, shape (rows, places)."""
        part, _, weights, _ = self._read(vectors, batch)
        return part.scatter(weights[..., None], vectors.shape[1])[..., 0]
