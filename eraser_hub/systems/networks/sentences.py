"""The sentence reader of Lehman et al. (2019): a GRU or LSTM with attention, conditioned on the query."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from eraser_hub.systems.models.lehman import LehmanHyper

from .embedders import Embedder
from .layers import AdditiveAttention, Recurrent, pooled
from .readings import PaddedReadings, SelectedPlaces
from .token_network import Shape, TokenNetwork


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
