"""Inputs of networks over words: word numbers, readings of instances, and batches of readings.

A *place* holds one word: of a document, of the query, or a separator. The documents come first, then the query, each
followed by a separator (ERASER's "document [SEP] query [SEP]"). Networks that read two texts apart (premise and
hypothesis, question and passage) distinguish them by their *segment*.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eraser_hub.attribution.adapter import Encoded, View
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.transformers.words import CutWords

PAD, UNKNOWN, SEPARATOR = 0, 1, 2
STAYS = -1  # in place of a token's number: a separator or a word of the query
SPECIAL = ("[PAD]", "[UNK]", "[SEP]")


class Vocabulary:
    """The numbers of the words of the training text; other words are :data:`UNKNOWN`.

    Args:
        words: Distinct words, without those of :data:`SPECIAL`.
        lowercase: Lower-case words before they are looked up.
    """

    def __init__(self, words: Iterable[str], lowercase: bool) -> None:
        self.words, self.lowercase = (*SPECIAL, *words), lowercase
        self._numbers = {word: number for number, word in enumerate(self.words) if number >= len(SPECIAL)}

    def numbers(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of each word."""
        known = (word.lower() if self.lowercase else word for word in words)
        return np.asarray([self._numbers.get(word, UNKNOWN) for word in known], dtype=np.int64)

    @classmethod
    def build(cls, texts: Iterable[Sequence[str]], lowercase: bool, min_count: int) -> Vocabulary:
        """Build a vocabulary of the words with at least ``min_count`` occurrences, most frequent first."""
        counts = Counter(word.lower() if lowercase else word for text in texts for word in text)
        words = [word for word, count in counts.items() if count >= min_count and word not in SPECIAL]
        return cls(sorted(words, key=lambda word: (-counts[word], word)), lowercase)


class SubwordLexicon:
    """The numbers of words that an encoder's tokenizer cuts, assigned in the order of their first use.

    Attributes:
        pieces: The sub-words of each number; empty for :data:`PAD` and for words that the tokenizer drops.
    """

    def __init__(self, words: CutWords) -> None:
        self.words = words
        tokenizer = words.tokenizer
        separator = [tokenizer.sep_token_id] if tokenizer.sep_token_id is not None else []
        mask = words.mask if words.mask is not None else tokenizer.unk_token_id
        self.pieces: list[tuple[int, ...]] = [(), () if mask is None else (mask,), tuple(separator)]
        self._numbers: dict[str, int] = {}

    def numbers(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of each word."""
        for word in words:
            if word not in self._numbers:
                self._numbers[word] = len(self.pieces)
                self.pieces.append(self.words.cut([word])[0])
        return np.asarray([self._numbers[word] for word in words], dtype=np.int64)


Lexicon = Vocabulary | SubwordLexicon  # :data:`PAD`, :data:`UNKNOWN` and :data:`SEPARATOR` are in each


@dataclass(frozen=True, slots=True)
class Reading:
    """One text as a network reads it; all arrays have one value per place.

    Attributes:
        words: The number of each place's word in the network's lexicon.
        token: The number of the instance's token at each place; :data:`STAYS` for places that cannot be erased.
        segment: 0 or 1: the text that a place belongs to.
        visible: False if a token was erased by padding; it gets no attention.
    """

    words: NDArray[np.int64]
    token: NDArray[np.int64]
    segment: NDArray[np.int64]
    visible: NDArray[np.bool_]

    @property
    def key(self) -> bytes:
        """Bytes that are equal exactly if the inputs of a network are equal."""
        digest = hashlib.blake2b(self.words.tobytes(), digest_size=16)
        digest.update(self.segment.tobytes() + self.visible.tobytes())
        return digest.digest()

    def only(self, places: NDArray[np.bool_] | NDArray[np.int64]) -> Reading:
        """Return the reading of some places alone."""
        return Reading(self.words[places], self.token[places], self.segment[places], self.visible[places])


class AnswerSpan(NamedTuple):
    """An answer: its first and last word, counted from 1 (0 and 0: no answer), and its probability."""

    first: int
    last: int
    p: float


@dataclass(slots=True)
class ReadInstance(Encoded):
    """An instance with its reading, and its best answer once computed; erased inputs are cut from the reading."""

    instance: Instance
    reading: Reading
    best: AnswerSpan | None = None

    def view(self, kept: NDArray[np.bool_], erase: str) -> View:
        """Return the input without the tokens that are not kept."""
        reading = erase_tokens(self.reading, kept, erase)
        return View((reading.key,), (len(reading.words),), reading)


def read_instance(instance: Instance, lexicon: Lexicon, uses_query: bool, apart: bool) -> ReadInstance:
    """Return an instance as a network reads it.

    Args:
        instance: The instance.
        lexicon: The numbers of words.
        uses_query: Read the query too.
        apart: Read two segments without separators: the documents and the query, or two documents without a query; else
            one segment with separators.
    """
    parts, start = [], 0
    for document in instance.documents:
        parts.append((lexicon.numbers(document), np.arange(start, start + len(document))))
        start += len(document)
    if uses_query:
        query = lexicon.numbers(instance.query)
        parts.append((query, np.full(len(query), STAYS)))
    segments = [0] * len(parts)
    if apart and len(parts) > 1:
        segments[-1] = 1
    elif not apart:
        parts = [(np.append(words, SEPARATOR), np.append(token, STAYS)) for words, token in parts]
    none = np.zeros(0, np.int64)
    words = np.concatenate([none, *(words for words, _ in parts)])
    segment = np.repeat(np.asarray(segments, np.int64), [len(words) for words, _ in parts])
    token = np.concatenate([none, *(token for _, token in parts)])
    return ReadInstance(instance, Reading(words, token, segment, np.ones(len(words), dtype=bool)))


def erase_tokens(reading: Reading, kept: NDArray[np.bool_], erase: str) -> Reading:
    """Return the reading without the tokens that are not kept.

    Args:
        reading: The reading.
        kept: Flags of the instance's tokens, shape (tokens,).
        erase: The operator: ``remove`` cuts tokens out, ``mask`` puts the unknown word in their places, ``pad`` an
            invisible padding word.
    """
    stays = np.append(kept, True)[reading.token]  # STAYS is the last
    if erase == "remove":
        return reading.only(stays)
    words = np.where(stays, reading.words, UNKNOWN if erase == "mask" else PAD)
    return replace(reading, words=words, visible=stays if erase == "pad" else reading.visible)


@dataclass(frozen=True, slots=True)
class PaddedReadings:
    """A batch of readings, padded to the longest; tensors of shape (rows, places).

    Attributes:
        words: As in :class:`Reading`.
        segment: As in :class:`Reading`.
        inside: True if a row has a place, False for padding.
        visible: True if a place gets attention; False outside.
        erasable: True at the documents' tokens.
    """

    words: Tensor
    segment: Tensor
    inside: Tensor
    visible: Tensor
    erasable: Tensor

    @property
    def lengths(self) -> Tensor:
        """Number of places of each row, on the CPU."""
        return self.inside.sum(dim=1).cpu()

    def repeat(self, times: int) -> PaddedReadings:
        """Return the batch several times, one copy after another."""
        return PaddedReadings(*(getattr(self, field.name).repeat(times, 1) for field in fields(self)))

    def only(self, kept: Tensor) -> PaddedReadings:
        """Return the batch with the places that are not ``kept`` cut out of each row."""
        part = SelectedPlaces(kept & self.inside)
        return PaddedReadings(*(part.gather(getattr(self, field.name)) for field in fields(self)))


class SelectedPlaces:
    """Selected places of each row, moved to the row's start in their order.

    Attributes:
        lengths: Number of places in each row, on the CPU.
        within: True at those places of the moved rows, shape (rows, longest length).
    """

    def __init__(self, kept: Tensor) -> None:
        self.lengths = kept.sum(dim=1).cpu()
        longest = max(1, int(self.lengths.max()))
        self._order = (~kept).to(torch.uint8).argsort(dim=1, stable=True)[:, :longest]
        self.within = (torch.arange(longest)[None] < self.lengths[:, None]).to(kept.device)

    def gather(self, values: Tensor) -> Tensor:
        """Move the values of the places, shape (rows, places[, width]), to the start; zeros follow."""
        if values.ndim == 2:
            return values.gather(1, self._order) * self.within
        return values.gather(1, self._wide(values)) * self.within[..., None]

    def scatter(self, values: Tensor, places: int) -> Tensor:
        """Move values back to their places, of which there are ``places`` per row; zeros elsewhere."""
        whole = values.new_zeros((len(values), places, values.shape[-1]))
        return whole.scatter(1, self._wide(values), values * self.within[..., None])

    def _wide(self, values: Tensor) -> Tensor:
        return self._order[..., None].expand(-1, -1, values.shape[-1])


def pad_readings(readings: Sequence[Reading], device: torch.device) -> PaddedReadings:
    """Pad readings to one batch; a row without any place gets one that is neither inside nor visible."""
    longest = max(1, max((len(one.words) for one in readings), default=1))

    def pad(rows: list[NDArray[np.int64]] | list[NDArray[np.bool_]]) -> Tensor:
        whole = np.zeros((len(rows), longest), rows[0].dtype)  # of words: PAD
        for row, values in zip(whole, rows, strict=True):
            row[: len(values)] = values
        return torch.from_numpy(whole).to(device)

    inside = pad([np.ones(len(one.words), dtype=bool) for one in readings])
    words, segment = pad([one.words for one in readings]), pad([one.segment for one in readings])
    visible, erasable = pad([one.visible for one in readings]), pad([one.token != STAYS for one in readings])
    return PaddedReadings(words, segment, inside, visible, erasable)
