"""The match-LSTM (Wang and Jiang, 2016): each word of the text is matched with the question.

A classifier follows, or the boundary model of their answer pointer, which answers with words of the text.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from eraser_hub.systems.hyper import NetworkHyper

from .classifiers import Recurrent, Shape, TaughtReading, TokenNetwork, compute_masked_softmax
from .embedders import Embedder
from .readings import PaddedReadings, SelectedPlaces


class Matching(TokenNetwork):
    """A text whose words are matched with a second text (the question), each read by its own LSTM.

    At each word of the text, attention weighs the states of the question. An LSTM reads the weighted states together
    with the word's own state. The attention of word j over question words i is softmax over i of v . tanh(W_q h_i + W_p
    h_j + W_m m_{j-1}), m the reading LSTM's state. The importance of word j is equation 5 of Wang et al. (2022): the
    mean over question words i of h_i . m_j, divided by its sum over the text's words. (The paper's sum runs over
    question words, which would give every word the same importance; its code divides by the passage's sum.)
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

    def _read(self, vectors: Tensor, batch: PaddedReadings) -> tuple[SelectedPlaces, Tensor, Tensor, Tensor]:
        """Return the text's places, their matched states, the last one, and the question's states, zero outside."""
        part, other = (SelectedPlaces(batch.inside & (batch.segment == number)) for number in range(2))
        states, _ = self.text(part.gather(vectors), part.lengths)
        question, _ = self.question(other.gather(vectors), other.lengths)
        question = question * other.within[..., None]
        visible = other.within & other.gather(batch.visible)
        question_terms, of_states = self.of_question(question), self.of_text(states)
        match = memory = states.new_zeros((len(states), states.shape[-1]))
        matched = []
        for place in range(states.shape[1]):
            mixed = torch.tanh(question_terms + (of_states[:, place] + self.of_match(match))[:, None])
            weights = compute_masked_softmax(self.vector(mixed)[..., 0], visible)
            context = (question * weights[..., None]).sum(dim=1)
            new, memory_there = self.cell(torch.cat([context, states[:, place]], dim=1), (match, memory))
            here = part.within[:, place, None]  # behind a row's end its state stays
            match, memory = torch.where(here, new, match), torch.where(here, memory_there, memory)
            matched.append(match)
        return part, torch.stack(matched, dim=1), match, question

    def attention(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """Return the importance of each place, shape (rows, places)."""
        part, matched, _, question = self._read(vectors, batch)
        visible = part.within & part.gather(batch.visible)
        # (rows, words of the text, words of the question)
        products = (matched @ question.transpose(1, 2)) * visible[..., None]
        totals = products.sum(dim=1, keepdim=True)
        shares = torch.where(totals == 0, 0, products / torch.where(totals == 0, 1, totals))
        count = (question != 0).any(dim=-1).sum(dim=1).clamp(min=1)
        return part.scatter(shares.sum(dim=-1, keepdim=True) / count[:, None, None], vectors.shape[1])[..., 0]


class MatchLstm(Matching):
    """A classifier of the last matched state."""

    def __init__(self, embedder: Embedder, hyper: NetworkHyper, shape: Shape) -> None:
        super().__init__(embedder, hyper, shape)
        self.head = nn.Linear(hyper.hidden_size, shape.labels)

    def logits(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """Return logits of shape (rows, labels)."""
        return self.head(self.dropout(self._read(vectors, batch)[2]))  # type: ignore[no-any-return]


class AnswerPointer(Matching):
    """The boundary model of the answer pointer of Wang and Jiang (2016): the start and the end of an answer.

    With H the matched states and h_0 = 0: the logit of place j is v . tanh(V h_j^H + W h_{k-1}), its softmax over the
    text beta_k, and h_k the state of an LSTM after H beta_k; k = 1 is the start, k = 2 the end. A place with a learned
    state precedes the text: both point to it if the text does not answer the question.
    """

    def __init__(self, embedder: Embedder, hyper: NetworkHyper, shape: Shape) -> None:
        super().__init__(embedder, hyper, shape)
        size = hyper.hidden_size
        self.nowhere = nn.Parameter(torch.randn(size))
        self.of_place, self.of_pointer = nn.Linear(size, size, bias=False), nn.Linear(size, size)
        self.pointed, self.pointer = nn.Linear(size, 1, bias=False), nn.LSTMCell(size, size)

    def logits(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """Return logits of start and end, shape (rows, 2, 1 + words): first no answer, then each word."""
        part, matched, _, _ = self._read(vectors, batch)
        nowhere = self.nowhere.expand(len(matched), 1, -1)
        states = self.dropout(torch.cat([nowhere, matched], dim=1))
        visible = functional.pad(part.within & part.gather(batch.visible), (1, 0), value=True)
        of_place, rows = self.of_place(states), list[Tensor]()
        state = memory = states.new_zeros(len(states), states.shape[-1])
        for _ in range(2):
            scores = self.pointed(torch.tanh(of_place + self.of_pointer(state)[:, None]))[..., 0]
            rows.append(scores.masked_fill(~visible, torch.finfo(scores.dtype).min))
            context = (states * torch.softmax(rows[-1], dim=-1)[..., None]).sum(dim=1)
            state, memory = self.pointer(context, (state, memory))
        return torch.stack(rows, dim=1)

    def loss(self, batch: PaddedReadings, examples: Sequence[TaughtReading]) -> Tensor:
        """Return the mean of -log p(start) p(end)."""
        spans = torch.tensor([one.span for one in examples], device=batch.words.device)
        return 2 * functional.cross_entropy(self(batch).transpose(1, 2), spans)
