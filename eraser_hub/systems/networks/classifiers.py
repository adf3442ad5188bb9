"""LSTM classifiers: those of papers 000, 002 and 004, and the sentence reader of Lehman et al. (2019)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from eraser_hub.systems.hyper import NetworkHyper
from eraser_hub.systems.models.lehman import LehmanHyper

from .embedders import Embedder
from .layers import AdditiveAttention, Recurrent, pooled
from .readings import PaddedReadings, SelectedPlaces
from .token_network import Shape, TokenNetwork


class AdditiveClassifier(TokenNetwork):
    """A bidirectional LSTM, dropout, additive attention, a layer of ReLU, dropout, logits (paper 000, C.1 and C.2)."""

    attends = True

    def __init__(self, embedder: Embedder, hyper: NetworkHyper, shape: Shape) -> None:
        super().__init__(embedder, hyper, shape)
        self.reader = Recurrent(embedder.width, hyper.hidden_size)
        self.weights = AdditiveAttention(self.reader.width)
        self.dropout = nn.Dropout(hyper.dropout)
        self.head = nn.Sequential(
            nn.Linear(self.reader.width, hyper.hidden_size),
            nn.ReLU(),
            nn.Dropout(hyper.dropout),
            nn.Linear(hyper.hidden_size, shape.labels),
        )

    def logits(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        states, _ = self.reader(vectors, batch.lengths)
        states = self.dropout(states)
        return self.head(pooled(states, self.weights(states, batch.visible)))  # type: ignore[no-any-return]

    def attention(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        states, _ = self.reader(vectors, batch.lengths)
        return self.weights(states, batch.visible)  # type: ignore[no-any-return]


class LastStateClassifier(TokenNetwork):
    """A bidirectional LSTM and logits of its last states (paper 004, appendix B)."""

    def __init__(self, embedder: Embedder, hyper: NetworkHyper, shape: Shape) -> None:
        super().__init__(embedder, hyper, shape)
        self.reader = Recurrent(embedder.width, hyper.hidden_size)
        self.dropout = nn.Dropout(hyper.dropout)
        self.head = nn.Linear(self.reader.width, shape.labels)

    def logits(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        _, last = self.reader(vectors, batch.lengths)
        return self.head(self.dropout(last))  # type: ignore[no-any-return]


class LstmClassifier(TokenNetwork):
    """An LSTM for each text, a layer of tanh over its last states, logits (paper 002, appendix B.2 and Figure 2).

    The attention of a word is the product of its state with that layer's output, divided by the sum over its text. Such
    products have signs, and so may the sum: weights may be negative, and a negative sum turns a text's ranking round.
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
        """States of all places, each by its own text's LSTM, and the joined representation."""
        states = vectors.new_zeros((*vectors.shape[:2], self.hyper.hidden_size))
        ends = []
        for number, reader in enumerate(self.readers):
            part = SelectedPlaces(batch.inside & (batch.segment == number))
            inner, last = reader(part.gather(vectors), part.lengths)
            states = states + part.scatter(inner, states.shape[1])
            ends.append(last)
        return states, self.joined(torch.cat(ends, dim=1))

    def logits(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        return self.head(self._read(vectors, batch)[1])  # type: ignore[no-any-return]

    def attention(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
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

    Where there is a query, another of its kind reads it: its last states stand beside every word of the text, ask in
    the attention, and go into the classification beside what was attended to.
    """

    attends = True
    hyper: LehmanHyper

    def __init__(self, embedder: Embedder, hyper: LehmanHyper, shape: Shape) -> None:
        super().__init__(embedder, hyper, shape)
        gated, size = hyper.cell == "gru", 2 * hyper.hidden_size
        self.query = Recurrent(embedder.width, hyper.hidden_size, gated=gated) if shape.apart else None
        self.text = Recurrent(embedder.width + (size if shape.apart else 0), hyper.hidden_size, gated=gated)
        self.weights, self.dropout = AdditiveAttention(size, asked=shape.apart), nn.Dropout(hyper.dropout)
        self.head = nn.Sequential(
            self.dropout,
            nn.Linear(size * (1 + shape.apart), hyper.hidden_size),
            nn.ReLU(),
            self.dropout,
            nn.Linear(hyper.hidden_size, shape.labels),
        )

    def _read(self, vectors: Tensor, batch: PaddedReadings) -> tuple[SelectedPlaces, Tensor, Tensor, Tensor | None]:
        """The text's part, its states, the weight of each, and the query's last states."""
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
        _, states, weights, asked = self._read(vectors, batch)
        summary = pooled(states, weights)
        logits: Tensor = self.head(summary if asked is None else torch.cat([asked, summary], dim=-1))
        return logits

    def attention(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        part, _, weights, _ = self._read(vectors, batch)
        return part.scatter(weights[..., None], vectors.shape[1])[..., 0]
