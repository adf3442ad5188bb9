"""Words as numbers, instances as networks over words read them, and batches of these.

A *place* holds one word: of a document, of the query, or a separator. Documents stand one after the other, the query
behind them, each with a separator behind it (ERASER's "document [SEP] query [SEP]"). Networks that read two texts apart
(premise and hypothesis, question and passage) tell them by their *segment*.
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
    """A number for each word of the training text; others are :data:`UNKNOWN`.

    Args:
        words: different words, those of :data:`SPECIAL` not among them.
        lowercase: words are lower-cased before they are looked up.
    """

    def __init__(self, words: Iterable[str], lowercase: bool) -> None:
        self.words, self.lowercase = (*SPECIAL, *words), lowercase
        self._numbers = {word: number for number, word in enumerate(self.words) if number >= len(SPECIAL)}

    def numbers(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The number of each word."""
        known = (word.lower() if self.lowercase else word for word in words)
        return np.asarray([self._numbers.get(word, UNKNOWN) for word in known], dtype=np.int64)

    @classmethod
    def build(cls, texts: Iterable[Sequence[str]], lowercase: bool, min_count: int) -> Vocabulary:
        """The words that occur at least ``min_count`` times in texts, the most frequent first, ties by spelling."""
        counts = Counter(word.lower() if lowercase else word for text in texts for word in text)
        words = [word for word, count in counts.items() if count >= min_count and word not in SPECIAL]
        return cls(sorted(words, key=lambda word: (-counts[word], word)), lowercase)


class SubwordLexicon:
    """A number for each word that an encoder's tokenizer cuts: the next one when it is first seen.

    Attributes:
        pieces: the sub-words of each number; none for a word that the tokenizer drops, and for :data:`PAD`.
    """

    def __init__(self, words: CutWords) -> None:
        self.words = words
        tokenizer = words.tokenizer
        separator = [tokenizer.sep_token_id] if tokenizer.sep_token_id is not None else []
        mask = words.mask if words.mask is not None else tokenizer.unk_token_id
        self.pieces: list[tuple[int, ...]] = [(), () if mask is None else (mask,), tuple(separator)]
        self._numbers: dict[str, int] = {}

    def numbers(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The number of each word."""
        for word in words:
            if word not in self._numbers:
                self._numbers[word] = len(self.pieces)
                self.pieces.append(self.words.cut([word])[0])
        return np.asarray([self._numbers[word] for word in words], dtype=np.int64)


Lexicon = Vocabulary | SubwordLexicon  # :data:`PAD`, :data:`UNKNOWN` and :data:`SEPARATOR` are in each


@dataclass(frozen=True, slots=True)
class Reading:
    """One text as a network reads it; all arrays have a value for each place.

    Attributes:
        words: the number of each place's word in the network's lexicon.
        token: the number of the instance's token at each place; :data:`STAYS` for what cannot be erased.
        segment: 0 or 1: which of two texts a place belongs to.
        visible: False where a token was erased by padding: no attention falls there.
    """

    words: NDArray[np.int64]
    token: NDArray[np.int64]
    segment: NDArray[np.int64]
    visible: NDArray[np.bool_]

    @property
    def key(self) -> bytes:
        """Bytes that are equal exactly when a network's inputs are."""
        digest = hashlib.blake2b(self.words.tobytes(), digest_size=16)
        digest.update(self.segment.tobytes() + self.visible.tobytes())
        return digest.digest()

    def only(self, places: NDArray[np.bool_] | NDArray[np.int64]) -> Reading:
        """The reading of some places alone."""
        return Reading(self.words[places], self.token[places], self.segment[places], self.visible[places])


class AnswerSpan(NamedTuple):
    """An answer: the numbers of its first and last word, from 1 (0 and 0: the text does not answer), and its p."""

    first: int
    last: int
    p: float


@dataclass(slots=True)
class ReadInstance(Encoded):
    """An instance with its reading, and the best answer once it was looked for; erased ones are cut from it."""

    instance: Instance
    reading: Reading
    best: AnswerSpan | None = None

    def view(self, kept: NDArray[np.bool_], erase: str) -> View:
        reading = erase_tokens(self.reading, kept, erase)
        return View((reading.key,), (len(reading.words),), reading)


def read_instance(instance: Instance, lexicon: Lexicon, uses_query: bool, apart: bool) -> ReadInstance:
    """Read an instance.

    Args:
        uses_query: the query is read too.
        apart: two segments and no separators: the documents and the query, or two documents where there is no query;
            else one segment with separators.
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
    """The reading with the tokens that are not ``kept`` removed, or in their places the unknown word (``mask``) or an
    invisible nothing (``pad``).

    Args:
        kept: flags of the instance's tokens, shape (tokens,).
    """
    stays = np.append(kept, True)[reading.token]  # STAYS is the last
    if erase == "remove":
        return reading.only(stays)
    words = np.where(stays, reading.words, UNKNOWN if erase == "mask" else PAD)
    return replace(reading, words=words, visible=stays if erase == "pad" else reading.visible)


@dataclass(frozen=True, slots=True)
class PaddedReadings:
    """Readings side by side, padded to the longest; shape (rows, places).

    Attributes:
        words, segment: as in :class:`Reading`.
        inside: True where a row has a place, False for padding.
        visible: True where attention may fall; never outside.
        erasable: True at the documents' tokens.
    """

    words: Tensor
    segment: Tensor
    inside: Tensor
    visible: Tensor
    erasable: Tensor

    @property
    def lengths(self) -> Tensor:
        """Places of each row, on the processor."""
        return self.inside.sum(dim=1).cpu()

    def repeat(self, times: int) -> PaddedReadings:
        """All rows, one time after the other."""
        return PaddedReadings(*(getattr(self, field.name).repeat(times, 1) for field in fields(self)))

    def only(self, kept: Tensor) -> PaddedReadings:
        """The batch with the places that are not ``kept`` cut out of each row: nothing of them is left."""
        part = SelectedPlaces(kept & self.inside)
        return PaddedReadings(*(part.gather(getattr(self, field.name)) for field in fields(self)))


class SelectedPlaces:
    """Some places of each row, moved to the row's start in their order.

    Attributes:
        lengths: how many there are in each row, on the processor.
        within: True at those places of the moved rows, shape (rows, the longest's length).
    """

    def __init__(self, kept: Tensor) -> None:
        self.lengths = kept.sum(dim=1).cpu()
        longest = max(1, int(self.lengths.max()))
        self._order = (~kept).to(torch.uint8).argsort(dim=1, stable=True)[:, :longest]
        self.within = (torch.arange(longest)[None] < self.lengths[:, None]).to(kept.device)

    def gather(self, values: Tensor) -> Tensor:
        """Values of the places, shape (rows, places) or (rows, places, width), moved; zeros behind the end."""
        if values.ndim == 2:
            return values.gather(1, self._order) * self.within
        return values.gather(1, self._wide(values)) * self.within[..., None]

    def scatter(self, values: Tensor, places: int) -> Tensor:
        """Moved values, shape (rows, the longest's length, width), back at their places of so many; zeros elsewhere."""
        whole = values.new_zeros((len(values), places, values.shape[-1]))
        return whole.scatter(1, self._wide(values), values * self.within[..., None])

    def _wide(self, values: Tensor) -> Tensor:
        return self._order[..., None].expand(-1, -1, values.shape[-1])


def pad_readings(readings: Sequence[Reading], device: torch.device) -> PaddedReadings:
    """Pad readings; a row without any place (everything is erased) gets one that is neither inside nor visible."""
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
