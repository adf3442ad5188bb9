"""Networks over word vectors: the LSTMs of the papers, and the match-LSTM, which classifies or answers.

No layer sees padding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from .embedders import Embedder
from .readings import Example, PaddedReadings, SelectedPlaces

if TYPE_CHECKING:
    from .network_systems import NetworkSystem


@dataclass(frozen=True, slots=True)
class Shape:
    """Properties of a network that the data decide.

    Attributes:
        labels: number of labels.
        apart: whether instances are read as two segments (:mod:`readings`).
        answers: whether the network answers with words of the text and has no labels.
    """

    labels: int
    apart: bool
    answers: bool = False


class Form(NamedTuple):
    """How an LSTM of the papers sums a text up, see :class:`LstmClassifier`.

    Attributes:
        pools: by ``additive`` attention, by the ``last`` states, or by these joined to one whose ``product`` with each
            state is its attention.
        both: reads from both ends.
        drops_words: dropout also of word vectors and of the sum.
    """

    pools: Literal["additive", "last", "product"] = "additive"
    both: bool = True
    drops_words: bool = False


class TokenNetwork(nn.Module, ABC):
    """A classifier of texts over word vectors.

    Attributes:
        attends: whether :meth:`attention` returns weights.
        selects: whether :meth:`selected` returns a rationale of its own.
        epoch: the current epoch of the training, which sets it.
    """

    attends: bool = False
    selects: ClassVar[bool] = False
    epoch = 0

    def __init__(self, embedder: Embedder, settings: NetworkSystem, shape: Shape) -> None:
        super().__init__()
        self.embedder, self.settings, self.shape = embedder, settings, shape

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

    def loss(self, batch: PaddedReadings, examples: Sequence[Example]) -> Tensor:
        """Return the mean loss over the batch's examples."""
        labels = torch.tensor([one.label for one in examples], device=batch.words.device)
        return functional.cross_entropy(self(batch), labels)


class Recurrent(nn.Module):
    """One layer of an LSTM or a GRU over rows of different lengths.

    Each direction reads the padded rows from their start; the second direction reads them reversed. States behind a
    row's end are dropped. (Packed sequences give the same result, but on a CPU their gradients take time that grows
    with the square of the length: a hundred times as long for texts of 900 words.)

    Args:
        width: width of the input vectors.
        size: width of a state, in each direction.
        both: read from both ends.
        gated: use a GRU instead of an LSTM.
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
            vectors: input, shape (rows, places, width).
            lengths: number of places in each row, shape (rows,).

        Returns:
            The states, shape (rows, places, width), zero behind a row's end; and the last state of each direction,
            joined, shape (rows, width).
        """
        lengths = lengths.clamp(min=1).to(vectors.device)[:, None]
        places = torch.arange(vectors.shape[1], device=vectors.device)[None]
        turned = torch.where(places < lengths, lengths - 1 - places, places)[..., None]  # it is its own inverse
        ends = (lengths - 1)[..., None]
        states: list[Tensor] = []
        last: list[Tensor] = []
        for number, cells in enumerate(self.cells):
            there = vectors.gather(1, turned.expand_as(vectors)) if number else vectors
            read, _ = cells(there)
            last.append(read.gather(1, ends.expand(-1, 1, read.shape[-1]))[:, 0])
            states.append(read.gather(1, turned.expand_as(read)) if number else read)
        return torch.cat(states, dim=-1) * (places < lengths)[..., None], torch.cat(last, dim=-1)


class AdditiveAttention(nn.Module):
    """Weights softmax over t of v . tanh(q W + h_t U) (Bahdanau et al., 2014), q learned or given by each row.

    Args:
        width: width of the states.
        asked: whether each row comes with a query; q is not learned then.
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
            states: the states h_t, shape (rows, places, width).
            visible: True at visible places, shape (rows, places).
            queries: the vector q of each row, shape (rows, width); None for the learned vector.
        """
        asked: Any = self.query if queries is None else queries[:, None]
        scores = torch.tanh(asked @ self.of_query + states @ self.of_states) @ self.vector
        return compute_masked_softmax(scores[..., 0], visible)


def compute_masked_softmax(scores: Tensor, visible: Tensor) -> Tensor:
    """Return the softmax over the last axis's visible places; 0 elsewhere, and if no place is visible."""
    hidden = scores.masked_fill(~visible, torch.finfo(scores.dtype).min)
    return torch.softmax(hidden, dim=-1) * visible


def divide_by_sum(values: Tensor) -> Tensor:
    """Return the values of each row (rows, places, ..) divided by their sum, as they are where it is 0."""
    total = values.sum(dim=1, keepdim=True)
    return torch.where(total == 0, values, values / torch.where(total == 0, 1, total))


class LstmClassifier(TokenNetwork):
    """An LSTM (or GRU) over a text, its states summed up to one vector, and a layer for the labels.

    What sums up is the form's:

    - ``additive``: additive attention, a layer of ReLU (DeYoung et al., 2020, C). Where a query stands apart, another
      layer of the same kind reads it first; its last states are appended to every word of the text, are the query of
      the attention, and enter the classification (Lehman et al., 2019).
    - ``last``: the last states of both directions (Carton et al., 2020, appendix B).
    - ``product``: an LSTM for each text, a layer of tanh over their last states (Wang et al., 2022, B.2 and Figure 2).
      The attention of a word is the product of its state with that layer's output, divided by the sum over its text.
      Products and sums may be negative, and a negative sum reverses a text's ranking.
    """

    def __init__(self, embedder: Embedder, settings: NetworkSystem, shape: Shape) -> None:
        super().__init__(embedder, settings, shape)
        self.form, size = settings.form, settings.hidden_size
        width, pools = size * (1 + self.form.both), self.form.pools
        self.asks, self.attends = shape.apart and pools == "additive", pools != "last"
        self.readers = nn.ModuleList()
        for number in range(1 + shape.apart):  # the query is read first where it asks
            inputs = embedder.width + (width if self.asks and number else 0)
            self.readers.append(Recurrent(inputs, size, self.form.both, getattr(settings, "cell", "lstm") == "gru"))
        if pools == "additive":
            self.weights = AdditiveAttention(width, asked=self.asks)
        self.dropout = nn.Dropout(settings.dropout)
        if pools == "additive":
            first = nn.Linear(width * (1 + self.asks), size)
            self.head = nn.Sequential(first, nn.ReLU(), self.dropout, nn.Linear(size, shape.labels))
        elif pools == "product":
            self.joined = nn.Sequential(nn.Linear(width * len(self.readers), size), nn.Tanh())
            self.head = nn.Sequential(self.dropout, nn.Linear(size, shape.labels))
        else:
            self.head = nn.Sequential(self.dropout, nn.Linear(width, shape.labels))

    def _sum_up(self, vectors: Tensor, batch: PaddedReadings) -> tuple[Tensor, Tensor]:
        """Return what stands for each text, shape (rows, width), and the weight of each place, (rows, places)."""
        pools, places = self.form.pools, vectors.shape[1]
        vectors = self.dropout(vectors) if self.form.drops_words else vectors
        segments = [1, 0] if self.asks else range(len(self.readers))
        read: list[tuple[SelectedPlaces, Tensor, Tensor]] = []  # the places of a segment, their states, the last ones
        for number, reader in zip(segments, self.readers, strict=True):
            part = SelectedPlaces(batch.inside & (batch.segment == number))
            words = part.gather(vectors)
            if self.asks and read:
                asked = read[0][2][:, None].expand(-1, words.shape[1], -1)
                words = torch.cat([words, asked * part.within[..., None]], dim=-1)
            read.append((part, *reader(words, part.lengths)))
        last = torch.cat([ends for *_, ends in read], dim=1)
        if pools == "last":
            return last, vectors.new_zeros(batch.words.shape)
        if pools == "product":
            summary, weights = self.joined(last), vectors.new_zeros(batch.words.shape)
            for part, states, _ in read:
                products = (states @ summary[..., None])[..., 0] * part.gather(batch.visible)
                weights = weights + part.scatter(divide_by_sum(products), places)
            return summary, weights
        part, states, _ = read[-1]
        states, queries = self.dropout(states), read[0][2] if self.asks else None
        weights = self.weights(states, part.within & part.gather(batch.visible), queries)
        summary = (states * weights[..., None]).sum(dim=1)
        summary = summary if queries is None else torch.cat([queries, summary], dim=-1)
        return self.dropout(summary) if self.form.drops_words else summary, part.scatter(weights, places)

    def logits(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """Return logits of shape (rows, labels)."""
        return self.head(self._sum_up(vectors, batch)[0])  # type: ignore[no-any-return]

    def attention(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """Return the weight of each place, shape (rows, places)."""
        return self._sum_up(vectors, batch)[1]


class Matching(TokenNetwork):
    """A text whose words are matched with a second text (the question), each read by its own LSTM.

    After Wang and Jiang (2016): at each word of the text, attention weighs the states of the question. An LSTM reads
    the weighted states together with the word's own state. The attention of word j over question words i is softmax
    over i of v . tanh(W_q h_i + W_p h_j + W_m m_{j-1}), m the reading LSTM's state. The importance of word j is
    equation 5 of Wang et al. (2022): the mean over question words i of h_i . m_j, divided by its sum over the text's
    words. (The paper's sum runs over question words, which would give every word the same importance; its code divides
    by the passage's sum.)
    """

    attends = True

    def __init__(self, embedder: Embedder, settings: NetworkSystem, shape: Shape) -> None:
        super().__init__(embedder, settings, shape)
        size = settings.hidden_size
        self.text, self.question = (Recurrent(embedder.width, size, both=False) for _ in range(2))
        self.of_question, self.of_text = nn.Linear(size, size), nn.Linear(size, size, bias=False)
        self.of_match, self.vector = nn.Linear(size, size, bias=False), nn.Linear(size, 1, bias=False)
        self.cell = nn.LSTMCell(2 * size, size)
        self.dropout = nn.Dropout(settings.dropout)

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
        count = (question != 0).any(dim=-1).sum(dim=1).clamp(min=1)
        return part.scatter(divide_by_sum(products).sum(dim=-1) / count[:, None], vectors.shape[1])


class MatchLstm(Matching):
    """A classifier of the last matched state."""

    def __init__(self, embedder: Embedder, settings: NetworkSystem, shape: Shape) -> None:
        super().__init__(embedder, settings, shape)
        self.head = nn.Linear(settings.hidden_size, shape.labels)

    def logits(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """Return logits of shape (rows, labels)."""
        return self.head(self.dropout(self._read(vectors, batch)[2]))  # type: ignore[no-any-return]


class AnswerPointer(Matching):
    """The boundary model of the answer pointer of Wang and Jiang (2016): the start and the end of an answer.

    With H the matched states and h_0 = 0: the logit of place j is v . tanh(V h_j^H + W h_{k-1}), its softmax over the
    text beta_k, and h_k the state of an LSTM after H beta_k; k = 1 is the start, k = 2 the end. A place with a learned
    state precedes the text: both point to it if the text does not answer the question.
    """

    def __init__(self, embedder: Embedder, settings: NetworkSystem, shape: Shape) -> None:
        super().__init__(embedder, settings, shape)
        size = settings.hidden_size
        self.nowhere = nn.Parameter(torch.randn(size))
        self.of_place, self.of_pointer = nn.Linear(size, size, bias=False), nn.Linear(size, size)
        self.pointed, self.pointer = nn.Linear(size, 1, bias=False), nn.LSTMCell(size, size)

    def logits(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """Return logits of start and end, shape (rows, 2, 1 + words): first no answer, then each word."""
        part, matched, _, _ = self._read(vectors, batch)
        states = self.dropout(torch.cat([self.nowhere.expand(len(matched), 1, -1), matched], dim=1))
        visible = functional.pad(part.within & part.gather(batch.visible), (1, 0), value=True)
        of_place = self.of_place(states)
        state = memory = states.new_zeros(len(states), states.shape[-1])
        rows: list[Tensor] = []
        for _ in range(2):
            scores = self.pointed(torch.tanh(of_place + self.of_pointer(state)[:, None]))[..., 0]
            rows.append(scores.masked_fill(~visible, torch.finfo(scores.dtype).min))
            context = (states * torch.softmax(rows[-1], dim=-1)[..., None]).sum(dim=1)
            state, memory = self.pointer(context, (state, memory))
        return torch.stack(rows, dim=1)

    def loss(self, batch: PaddedReadings, examples: Sequence[Example]) -> Tensor:
        """Return the mean of -log p(start) p(end)."""
        spans = torch.tensor([one.span for one in examples], device=batch.words.device)
        return 2 * functional.cross_entropy(self(batch).transpose(1, 2), spans)
