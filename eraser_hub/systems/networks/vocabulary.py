"""Words as numbers: a vocabulary of the training text, or an encoder's sub-words of each word."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.transformers.words import CutWords

PAD, UNKNOWN, SEPARATOR = 0, 1, 2
SPECIAL = ("[PAD]", "[UNK]", "[SEP]")


class Lexicon(ABC):
    """A number for each word that a network reads; :data:`PAD`, :data:`UNKNOWN` and :data:`SEPARATOR` are in each."""

    @abstractmethod
    def numbers(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The number of each word."""


class Vocabulary(Lexicon):
    """The words of the training text; others are :data:`UNKNOWN`.

    Args:
        words: different words, those of :data:`SPECIAL` not among them.
        lowercase: words are lower-cased before they are looked up.
    """

    def __init__(self, words: Iterable[str], lowercase: bool) -> None:
        self.words, self.lowercase = (*SPECIAL, *words), lowercase
        self._numbers = {word: number for number, word in enumerate(self.words) if number >= len(SPECIAL)}

    def numbers(self, words: Sequence[str]) -> NDArray[np.int64]:
        known = (word.lower() if self.lowercase else word for word in words)
        return np.asarray([self._numbers.get(word, UNKNOWN) for word in known], dtype=np.int64)

    @classmethod
    def of(cls, texts: Iterable[Sequence[str]], lowercase: bool, min_count: int) -> Vocabulary:
        """The words that occur at least ``min_count`` times in texts, the most frequent first, ties by spelling."""
        counts = Counter(word.lower() if lowercase else word for text in texts for word in text)
        words = [word for word, count in counts.items() if count >= min_count and word not in SPECIAL]
        return cls(sorted(words, key=lambda word: (-counts[word], word)), lowercase)


class SubwordLexicon(Lexicon):
    """Words cut by an encoder's tokenizer; a word gets the next number when it is first seen.

    Attributes:
        pieces: the sub-words of each number; none for a word that the tokenizer drops, and for :data:`PAD`.
    """

    def __init__(self, words: CutWords) -> None:
        self.words = words
        tokenizer = words.tokenizer
        separator = [tokenizer.sep_token_id] if tokenizer.sep_token_id is not None else []
        erased = words.mask if words.mask is not None else tokenizer.unk_token_id
        self.pieces: list[tuple[int, ...]] = [(), () if erased is None else (erased,), tuple(separator)]
        self._numbers: dict[str, int] = {}

    def numbers(self, words: Sequence[str]) -> NDArray[np.int64]:
        new = [word for word in dict.fromkeys(words) if word not in self._numbers]
        for word, pieces in zip(new, map(self._cut, new), strict=True):
            self._numbers[word] = len(self.pieces)
            self.pieces.append(pieces)
        return np.asarray([self._numbers[word] for word in words], dtype=np.int64)

    def _cut(self, word: str) -> tuple[int, ...]:
        return self.words.cut([word])[0]
