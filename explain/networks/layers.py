"""Layers that the papers' networks share; none of them sees padding."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Recurrent(nn.Module):
    """One layer of an LSTM or a GRU over rows of unlike length.

    Args:
        size: of a state, in each direction.
        both: read from both ends.
        gated: a GRU in the LSTM's place.
    """

    def __init__(self, width: int, size: int, both: bool = True, gated: bool = False) -> None:
        super().__init__()
        self.cells = (nn.GRU if gated else nn.LSTM)(width, size, batch_first=True, bidirectional=both)
        self.width = size * (2 if both else 1)

    def forward(self, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """States of every place, shape (rows, places, width), zeros behind a row's end; and the last ones, shape (rows,
        width): of each direction the one that has read all.

        A row of length 0 reads one place, which is a zero vector.
        """
        packed = pack_padded_sequence(vectors, lengths.clamp(min=1), batch_first=True, enforce_sorted=False)
        states, last = self.cells(packed)
        ends = last[0] if isinstance(last, tuple) else last
        whole, _ = pad_packed_sequence(states, batch_first=True, total_length=vectors.shape[1])
        return whole, ends.transpose(0, 1).flatten(1)


class AdditiveAttention(nn.Module):
    """Weights softmax over t of v . tanh(q W + h_t U) (Bahdanau et al., 2014), q a learned vector or a given one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(width))
        self.of_query = nn.Parameter(torch.empty(width, width))
        self.of_states = nn.Parameter(torch.empty(width, width))
        self.vector = nn.Parameter(torch.empty(width, 1))
        for weights in (self.of_query, self.of_states, self.vector):
            nn.init.xavier_uniform_(weights)

    def forward(self, states: Tensor, visible: Tensor, queries: Tensor | None = None) -> Tensor:
        """Weights of shape (rows, places); they sum to 1 over the visible places, and are 0 elsewhere.

        Args:
            queries: q of each row, shape (rows, width); None for the learned one.
        """
        asked = self.query @ self.of_query if queries is None else (queries @ self.of_query)[:, None]
        scores = torch.tanh(asked + states @ self.of_states) @ self.vector
        return masked_softmax(scores[..., 0], visible)


def masked_softmax(scores: Tensor, visible: Tensor) -> Tensor:
    """Softmax over the last axis's visible places; 0 at the others, and everywhere where none is visible."""
    hidden = scores.masked_fill(~visible, torch.finfo(scores.dtype).min)
    return torch.softmax(hidden, dim=-1) * visible


def pooled(states: Tensor, weights: Tensor) -> Tensor:
    """The weighted sum of states over places, shape (rows, width)."""
    return (states * weights[..., None]).sum(dim=1)
