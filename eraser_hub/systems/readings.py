"""Inputs of networks over words: numbers of words, readings of instances, and padded batches of them.

A *place* holds one word: of a document, of the query, or a separator. The documents come first, then the query, each
followed by a separator (ERASER's "document [SEP] query [SEP]"). Networks that read two texts apart (premise and
hypothesis, question and passage) have no separators and tell the texts by their *segment*.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.models.subwords import SubwordTokenizer

PAD, UNKNOWN, SEPARATOR = 0, 1, 2  # in every lexicon
STAYS = -1  # in place of a token's number: a separator or a word of the query
SPECIAL = ("[PAD]", "[UNK]", "[SEP]")


class Vocabulary:
    """The numbers of the words of the training text; other words are :data:`UNKNOWN`.

    Args:
        words: distinct words, without those of :data:`SPECIAL`.
        lowercase: lower-case words before they are looked up.
    """

    def __init__(self, words: Iterable[str], lowercase: bool) -> None:
        self.words, self.lowercase = (*SPECIAL, *words), lowercase
        self._numbers = {word: number for number, word in enumerate(self.words) if number >= len(SPECIAL)}

    def numbers(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of each word."""
        known = (word.lower() if self.lowercase else word for word in words)
        return np.asarray([self._numbers.get(word, UNKNOWN) for word in known], dtype=np.int64)

    @classmethod
    def build(cls, texts: Iterable[Sequence[str]], lowercase: bool, min_count: int = 1) -> Vocabulary:
        """Build the vocabulary of the words that occur so often in texts, the most frequent ones first."""
        counts = Counter(word.lower() if lowercase else word for text in texts for word in text)
        known = {word for word, count in counts.items() if count >= min_count} - {*SPECIAL}
        words = sorted(known, key=lambda word: (-counts[word], word))
        return cls(words, lowercase)


class SubwordLexicon:
    """The numbers of words that an encoder's tokenizer cuts, given in the order of their first use.

    Attributes:
        pieces: the sub-words of each number; none for :data:`PAD` and for words that the tokenizer drops.
    """

    def __init__(self, words: SubwordTokenizer) -> None:
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
                self.pieces.append(tuple(self.words.cut([word])[0].tolist()))
        return np.asarray([self._numbers[word] for word in words], dtype=np.int64)


Lexicon = Vocabulary | SubwordLexicon


class Reading(NamedTuple):
    """One text as a network reads it; all arrays have one value per place.

    Attributes:
        words: the number of each place's word in the network's lexicon.
        token: the number of the instance's token at each place; :data:`STAYS` for places that cannot be erased.
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

    def erase(self, kept: NDArray[np.bool_], erase: str) -> Reading:
        """Return the reading without the tokens that are not kept.

        Args:
            kept: flags of the instance's tokens, bool (tokens,).
            erase: ``remove`` cuts tokens out, ``mask`` puts the unknown word in their places, ``pad`` an invisible
                padding word.
        """
        stays = np.append(kept, True)[self.token]  # STAYS is the last
        if erase == "remove":
            return Reading(self.words[stays], self.token[stays], self.segment[stays], self.visible[stays])
        words = np.where(stays, self.words, UNKNOWN if erase == "mask" else PAD)
        return self._replace(words=words, visible=stays if erase == "pad" else self.visible)


class Example(NamedTuple):
    """A reading with its training targets.

    Attributes:
        reading: the reading.
        label: the number of the label.
        rationale: the human rationale at each place; None if there is none.
        span: the first and last word of the answer, counted from 1; (0, 0) for none.
    """

    reading: Reading
    label: int = 0
    rationale: NDArray[np.bool_] | None = None
    span: tuple[int, int] = (0, 0)


class ReadInstance(NamedTuple):
    """An instance with its reading."""

    instance: Instance
    reading: Reading

    @property
    def size(self) -> int:
        """Number of places."""
        return len(self.reading.words)


def read_instance(instance: Instance, lexicon: Lexicon, uses_query: bool, apart: bool) -> ReadInstance:
    """Return an instance as a network reads it.

    Args:
        instance: the instance.
        lexicon: the numbers of words.
        uses_query: read the query too.
        apart: read two segments without separators: the documents and the query, or two documents without a query; else
            one segment with separators.
    """
    bounds = instance.bounds
    parts = [
        (lexicon.numbers(document), np.arange(start, start + len(document)))
        for document, start in zip(instance.documents, bounds, strict=False)
    ]
    if uses_query:
        parts.append((lexicon.numbers(instance.query), np.full(len(instance.query), STAYS)))
    segments = np.zeros(len(parts), np.int64)
    if apart and len(parts) > 1:
        segments[-1] = 1
    elif not apart:
        parts = [(np.append(words, SEPARATOR), np.append(token, STAYS)) for words, token in parts]
    none = np.zeros(0, np.int64)
    words = np.concatenate([none, *(words for words, _ in parts)])
    token = np.concatenate([none, *(token for _, token in parts)])
    segment = np.repeat(segments, [len(words) for words, _ in parts])
    return ReadInstance(instance, Reading(words, token, segment, np.ones(len(words), dtype=bool)))


class PaddedReadings(NamedTuple):
    """A batch of readings, padded to the longest; tensors of shape (rows, places).

    Attributes:
        words, segment: as in :class:`Reading`.
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
        return PaddedReadings(*(values.repeat(times, 1) for values in self))

    def only(self, kept: Tensor) -> PaddedReadings:
        """Return the batch with the places that are not ``kept`` cut out of each row."""
        part = SelectedPlaces(kept & self.inside)
        return PaddedReadings(*map(part.gather, self))


class SelectedPlaces:
    """Selected places of each row, moved to the row's start in their order.

    Attributes:
        lengths: number of places in each row, on the CPU.
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
        return values.gather(1, self._order[..., None].expand(-1, -1, values.shape[-1])) * self.within[..., None]

    def scatter(self, values: Tensor, places: int) -> Tensor:
        """Move values, shape (rows, longest length), back to their places in rows of so many; zeros elsewhere."""
        return values.new_zeros((len(values), places)).scatter(1, self._order, values * self.within)


def pad_readings(readings: Sequence[Reading], device: torch.device) -> PaddedReadings:
    """Pad readings to one batch; a row without any place gets one that is neither inside nor visible."""
    longest = max(1, max((len(one.words) for one in readings), default=1))

    def pad(rows: Sequence[NDArray[np.int64] | NDArray[np.bool_]]) -> Tensor:
        whole = np.zeros((len(rows), longest), rows[0].dtype)  # of words: PAD
        for row, values in zip(whole, rows, strict=True):
            row[: len(values)] = values
        return torch.from_numpy(whole).to(device)

    inside = pad([np.ones(len(one.words), dtype=bool) for one in readings])
    words, segment = pad([one.words for one in readings]), pad([one.segment for one in readings])
    visible, erasable = pad([one.visible for one in readings]), pad([one.token != STAYS for one in readings])
    return PaddedReadings(words, segment, inside, visible, erasable)
