"""A vector for each word of a batch: from a table, or from an encoder's states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .readings import PaddedReadings
from .vocabulary import PAD, Lexicon, SubwordLexicon, Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CHUNKS = 64  # stretches of full length that go through an encoder together


class Embedder(nn.Module, ABC):
    """Words of a batch to vectors.

    Attributes:
        width: of a vector.
        lexicon: the numbers of words.
    """

    width: int
    lexicon: Lexicon

    @abstractmethod
    def forward(self, batch: PaddedReadings) -> Tensor:
        """Vectors of shape (rows, places, width), zeros outside a row and at invisible places."""


class WordEmbedder(Embedder):
    """A table of vectors, trained with the network.

    Args:
        vectors: what it starts from, shape (words, width); None for small random ones.
    """

    def __init__(self, lexicon: Vocabulary, width: int, vectors: NDArray[np.float32] | None = None) -> None:
        super().__init__()
        self.lexicon, self.width = lexicon, width
        self.table = nn.Embedding(len(lexicon.words), width, padding_idx=PAD)
        if vectors is not None:
            with torch.no_grad():
                self.table.weight.copy_(torch.from_numpy(vectors))
                self.table.weight[PAD] = 0

    def forward(self, batch: PaddedReadings) -> Tensor:
        return self.table(batch.words)  # type: ignore[no-any-return]


class EncoderEmbedder(Embedder):
    """The last states of a transformers encoder at each word's first sub-word.

    A text longer than the window goes in as stretches of whole words one after the other, each with its own special
    tokens and positions from the start: the LSTM behind it sees them as one text (paper 000, section 6.2).

    Args:
        window: sub-words in a stretch, special tokens included.
        trained_layers: so many of its last layers are trained.

    Attributes:
        half_type: the type to compute in where that is faster; None for float32.
    """

    half_type: torch.dtype | None = None

    def __init__(self, encoder: PreTrainedModel, lexicon: SubwordLexicon, window: int, trained_layers: int) -> None:
        super().__init__()
        self.encoder, self.lexicon, self.subwords = encoder, lexicon, lexicon
        self.template = lexicon.words.single
        self.window = window
        self.width = int(encoder.config.hidden_size)
        self.trained_layers = trained_layers
        for weights in encoder.parameters():
            weights.requires_grad = False
        layers = layers_of(encoder)
        for layer in layers[len(layers) - min(trained_layers, len(layers)) :]:
            for weights in layer.parameters():
                weights.requires_grad = True

    def stretches(self, words: Sequence[int]) -> Iterator[tuple[list[int], list[tuple[int, int]]]]:
        """Stretches of a row: its sub-words, and (place in the row, place among the sub-words) of each word."""
        room = self.window - self.template.size
        ids: list[int] = []
        firsts: list[tuple[int, int]] = []
        for place, word in enumerate(words):
            pieces = self.subwords.pieces[word][:room]
            if len(ids) + len(pieces) > room:
                yield ids, firsts
                ids, firsts = [], []
            if pieces:
                firsts.append((place, len(ids)))
            ids = [*ids, *pieces]
        yield ids, firsts

    def forward(self, batch: PaddedReadings) -> Tensor:
        shown = batch.visible
        rows = [
            (row, [word if seen else PAD for word, seen in zip(words, flags, strict=True)])
            for row, (words, flags) in enumerate(zip(batch.words.tolist(), shown.tolist(), strict=True))
        ]
        parts = [(row, *part) for row, words in rows for part in self.stretches(words) if part[0]]
        vectors = torch.zeros((*batch.words.shape, self.width), device=batch.words.device, dtype=self.encoder.dtype)
        if not parts:
            return vectors
        parts.sort(key=lambda part: -len(part[1]))
        at: list[tuple[int, int]] = []
        states: list[Tensor] = []
        for some in self._together(parts):
            hidden = self._states([ids for _, ids, _ in some], batch.words.device)
            places = [(number, place) for number, (_, _, firsts) in enumerate(some) for _, place in firsts]
            at += [(row, word) for row, _, firsts in some for word, _ in firsts]
            number, place = torch.tensor(places, device=hidden.device).T
            states.append(hidden[number, place + len(self.template.before)])
        row, word = torch.tensor(at, device=vectors.device).T
        return vectors.index_put((row, word), torch.cat(states).to(vectors.dtype))

    def _together(
        self, parts: Sequence[tuple[int, list[int], list[tuple[int, int]]]]
    ) -> Iterator[Sequence[tuple[int, list[int], list[tuple[int, int]]]]]:
        """Stretches of like length, longest first."""
        start = 0
        while start < len(parts):
            rows = max(1, CHUNKS * self.window // max(len(parts[start][1]), 1))
            yield parts[start : start + rows]
            start += rows

    def _states(self, rows: Sequence[Sequence[int]], device: torch.device) -> Tensor:
        before, after = self.template.before, self.template.after
        sizes = [len(row) + len(before) + len(after) for row in rows]
        ids = torch.full((len(rows), max(sizes)), self.subwords.words.pad)
        for line, row in zip(ids, rows, strict=True):
            line[: len(row) + len(before) + len(after)] = torch.tensor([*before, *row, *after])
        mask = torch.arange(max(sizes))[None] < torch.tensor(sizes)[:, None]
        with torch.autocast(device.type, self.half_type, enabled=self.half_type is not None):
            states = self.encoder(input_ids=ids.to(device), attention_mask=mask.long().to(device)).last_hidden_state
        return states.to(self.encoder.dtype)  # type: ignore[no-any-return]


def layers_of(encoder: nn.Module) -> list[nn.Module]:
    """An encoder's layers, first to last: the longest list of modules that it holds."""
    lists = [list(module) for module in encoder.modules() if isinstance(module, nn.ModuleList)]
    return max(lists, key=len, default=[])
