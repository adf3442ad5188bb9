"""The small networks that learn planted rules, a recurrent one and a transformer, and when a rule is learned."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from eraser_hub.systems.hyper import NetworkHyper
from eraser_hub.systems.networks.classifiers import (
    AdditiveAttention,
    AdditiveClassifier,
    Shape,
    TokenNetwork,
    pool_states,
)
from eraser_hub.systems.networks.embedders import Embedder
from eraser_hub.systems.networks.readings import PaddedReadings

from .configs import RECURRENT, TRANSFORMER

HEADS, LAYERS, MOST_PLACES = 4, 2, 256
LEARNED_LOSS = 0.05  # of the validation texts, beside no wrong label


class TransformerClassifier(TokenNetwork):
    """Two layers of a transformer encoder with learned positions, additive attention, logits."""

    attends = True

    def __init__(self, embedder: Embedder, hyper: NetworkHyper, shape: Shape) -> None:
        super().__init__(embedder, hyper, shape)
        width = embedder.width
        self.positions = nn.Parameter(0.1 * torch.randn(MOST_PLACES, width))
        layer = nn.TransformerEncoderLayer(
            width, HEADS, 2 * width, hyper.dropout, batch_first=True, norm_first=True, activation="gelu"
        )
        self.encoder = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(width), enable_nested_tensor=False)
        self.weights = AdditiveAttention(width)
        self.head = nn.Linear(width, shape.labels)

    def _read(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        hidden = ~batch.visible
        hidden[:, 0] &= ~hidden.all(dim=1)  # attention to nothing is undefined
        states: Tensor = self.encoder(vectors + self.positions[: vectors.shape[1]], src_key_padding_mask=hidden)
        return states

    def logits(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """Return logits of shape (rows, labels)."""
        states = self._read(vectors, batch)
        logits: Tensor = self.head(pool_states(states, self.weights(states, batch.visible)))
        return logits

    def attention(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """Return the weight of each place, shape (rows, places)."""
        weights: Tensor = self.weights(self._read(vectors, batch), batch.visible)
        return weights


def is_rule_learned(figures: Mapping[str, float]) -> bool:
    """Return True if a network labels every validation text right, with a small loss: it is trained no longer."""
    return figures["accuracy"] == 1 and figures["loss"] <= LEARNED_LOSS


_COMMON = {"embedding_size": 32, "hidden_size": 32, "dropout": 0.0, "batch_size": 32, "patience": 0, "epochs": 20.0}
FAMILIES: Mapping[str, tuple[Callable[[Embedder, NetworkHyper, Shape], TokenNetwork], NetworkHyper]] = {
    RECURRENT: (AdditiveClassifier, NetworkHyper(**_COMMON, learning_rate=1e-2)),  # type: ignore[arg-type]
    TRANSFORMER: (TransformerClassifier, NetworkHyper(**_COMMON, learning_rate=2e-3)),  # type: ignore[arg-type]
}
