"""The match-LSTM (Wang and Jiang, 2016): each word of the text is matched with the question."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .embedders import Embedder
from .layers import Recurrent, masked_softmax
from .readings import Batch, Part
from .systems import NetworkHyper
from .token_network import Shape, TokenNetwork


class MatchLstm(TokenNetwork):
    """An LSTM for each text; at each word of the first one attention over the second (the question), whose weighted states an
    LSTM reads together with the word's own; logits of its last state.

    The attention of word j over question words i is softmax over i of v . tanh(W_q h_i + W_p h_j + W_m m_{j-1}), m the
    reading LSTM's state. The importance of word j is paper 002's equation 5: the mean over question words i of
    h_i . m_j, divided by its sum over the text's words. (The paper's sum runs over question words, by which every word
    would have the same importance; its code divides by the passage's sum.)
    """

    attends = True

    def __init__(self, embedder: Embedder, hyper: NetworkHyper, shape: Shape) -> None:
        super().__init__(embedder, hyper, shape)
        size = hyper.hidden_size
        self.text, self.question = (Recurrent(embedder.width, size, both=False) for _ in range(2))
        self.of_question, self.of_text = nn.Linear(size, size), nn.Linear(size, size, bias=False)
        self.of_match, self.vector = nn.Linear(size, size, bias=False), nn.Linear(size, 1, bias=False)
        self.cell = nn.LSTMCell(2 * size, size)
        self.dropout = nn.Dropout(hyper.dropout)
        self.head = nn.Linear(size, shape.labels)

    @classmethod
    def reads_apart(cls, two: bool) -> bool:
        return two

    def _read(self, vectors: Tensor, batch: Batch) -> tuple[Part, Tensor, Tensor, Tensor]:
        """The text's part, its matched states, the last of them, and the question's states with zeros outside."""
        part, other = (Part(batch.inside & (batch.segment == number)) for number in range(2))
        states, _ = self.text(part.gather(vectors), part.lengths)
        asked, _ = self.question(other.gather(vectors), other.lengths)
        asked = asked * other.within[..., None]
        seen = other.within & other.gather(batch.visible)
        of_asked, of_states = self.of_question(asked), self.of_text(states)
        match = memory = states.new_zeros((len(states), states.shape[-1]))
        matched = []
        for place in range(states.shape[1]):
            mixed = torch.tanh(of_asked + (of_states[:, place] + self.of_match(match))[:, None])
            weights = masked_softmax(self.vector(mixed)[..., 0], seen)
            about = (asked * weights[..., None]).sum(dim=1)
            new, memory_there = self.cell(torch.cat([about, states[:, place]], dim=1), (match, memory))
            here = part.within[:, place, None]  # behind a row's end its state stays
            match, memory = torch.where(here, new, match), torch.where(here, memory_there, memory)
            matched.append(match)
        return part, torch.stack(matched, dim=1), match, asked

    def logits(self, vectors: Tensor, batch: Batch) -> Tensor:
        return self.head(self.dropout(self._read(vectors, batch)[2]))  # type: ignore[no-any-return]

    def attention(self, vectors: Tensor, batch: Batch) -> Tensor:
        part, matched, _, asked = self._read(vectors, batch)
        seen = part.within & part.gather(batch.visible)
        products = (matched @ asked.transpose(1, 2)) * seen[
            ..., None
        ]  # (rows, words of the text, words of the question)
        totals = products.sum(dim=1, keepdim=True)
        shares = torch.where(totals == 0, 0, products / torch.where(totals == 0, 1, totals))
        count = (asked != 0).any(dim=-1).sum(dim=1).clamp(min=1)
        return part.scatter(shares.sum(dim=-1, keepdim=True) / count[:, None, None], vectors.shape[1])[..., 0]
