"""Layers that the papers' networks share; none of them sees padding."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Recurrent(nn.Module):
    """One layer of an LSTM or a GRU over rows of unlike length.

    Each direction reads the padded rows from their start, the second one the rows turned round; what it reads behind a
    row's end is dropped. (Packed sequences give the same; but on a processor their gradients take time that grows with
    the square of the length, for texts of 900 words a hundred times that of padded ones.)

    Args:
        size: of a state, in each direction.
        both: read from both ends.
        gated: a GRU in the LSTM's place.
    """

    def __init__(self, width: int, size: int, both: bool = True, gated: bool = False) -> None:
        super().__init__()
        kind: type[nn.GRU | nn.LSTM] = nn.GRU if gated else nn.LSTM
        self.cells = nn.ModuleList(kind(width, size, batch_first=True) for _ in range(1 + both))
        self.width = size * len(self.cells)

    def forward(self, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """States of every place, shape (rows, places, width), zeros behind a row's end; and the last ones, shape (rows,
        width): of each direction the one that has read all.

        A row of length 0 reads one place, which is a zero vector.
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
    """Weights softmax over t of v . tanh(q W + h_t U) (Bahdanau et al., 2014), q a learned vector, or each row's own.

    Args:
        asked: rows bring a query each; nothing is learned in its place.
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
        """Weights of shape (rows, places); they sum to 1 over the visible places, and are 0 elsewhere.

        Args:
            queries: q of each row, shape (rows, width), where rows bring one; None for the learned one.
        """
        asked = self.query if queries is None else queries[:, None]
        assert asked is not None  # whoever reads rows with queries brings them
        scores = torch.tanh(asked @ self.of_query + states @ self.of_states) @ self.vector
        return masked_softmax(scores[..., 0], visible)


def masked_softmax(scores: Tensor, visible: Tensor) -> Tensor:
    """Softmax over the last axis's visible places; 0 at the others, and everywhere where none is visible."""
    hidden = scores.masked_fill(~visible, torch.finfo(scores.dtype).min)
    return torch.softmax(hidden, dim=-1) * visible


def pooled(states: Tensor, weights: Tensor) -> Tensor:
    """The weighted sum of states over places, shape (rows, width)."""
    return (states * weights[..., None]).sum(dim=1)
