"""Word vectors from a file, of the corpus' words alone: GloVe and word2vec text, and gensim's ``.kv``."""

from __future__ import annotations

import io
import mmap
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError, shown

from .vocabulary import SPECIAL, Vocabulary

SPREAD = 0.1  # standard deviation of the vectors of words that a file does not have, near that of GloVe's elements


def embeddings_for(path: Path, vocabulary: Vocabulary, seed: int, say: Callable[[str], None]) -> NDArray[np.float32]:
    """A vector for each word of the vocabulary, shape (words, width): the file's, random by seed for what it lacks.

    Raises:
        DataError: no such file, another format, a damaged line, none of the words.
    """
    if not path.is_file():
        raise DataError("no such file", rule="file-missing", file=path, argument="embeddings")
    wanted = {word.encode() for word in vocabulary.words[len(SPECIAL) :]}
    vectors = keyed_vectors(path, wanted) if path.suffix == ".kv" else text_vectors(path, wanted)
    if not vectors:
        words = f"expected words of the corpus, found none of {len(wanted)}"
        raise DataError(words, rule="model", file=path, argument="embeddings")
    width = len(next(iter(vectors.values())))
    random = np.random.default_rng(seed)
    table = random.normal(0, SPREAD, (len(vocabulary.words), width)).astype(np.float32)
    for number, word in enumerate(vocabulary.words):
        if word in vectors:
            table[number] = vectors[word]
    table[0] = 0
    say(
        f"embeddings: {len(vectors)} of {len(wanted)} words of the corpus in {path.name}, {width} dimensions; "
        "the others start at random"
    )
    return table


def text_vectors(path: Path, wanted: set[bytes]) -> dict[str, NDArray[np.float32]]:
    """The wanted words of a text file: a word and its numbers in each line, word2vec's with a line of two counts first.

    The file is memory-mapped, and only lines of wanted words are read as numbers; the first of equal words counts.

    Raises:
        DataError: an empty file, numbers that are none, or another number of them than in the first line; binary
            word2vec.
    """
    vectors: dict[str, NDArray[np.float32]] = {}
    if not path.stat().st_size:
        raise DataError("expected words and their vectors, found an empty file", rule="empty", file=path)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        first = mapped.readline().split()
        counts = len(first) == 2 and all(part.isdigit() for part in first)
        width = int(first[1]) if counts else len(first) - 1
        if width < 1:
            words = f"expected a word and its vector, found {shown(first[:3])}"
            raise DataError(words, rule="syntax", file=path, line=1)
        mapped.seek(0)
        number = 1 if counts else 0
        if counts:
            mapped.readline()
        while line := mapped.readline():
            number += 1
            word = line.partition(b" ")[0]
            if word in wanted and word.decode() not in vectors:
                vector = _numbers(line.rstrip().split(b" ")[1:], width, path, number)
                if vector is not None:
                    vectors[word.decode()] = vector
    return vectors


def _numbers(parts: list[bytes], width: int, path: Path, line: int) -> NDArray[np.float32] | None:
    """A line's vector; None for a word with blanks in it, of which the first part is another word."""
    if len(parts) > width:
        return None
    try:
        vector = np.asarray([float(part) for part in parts], dtype=np.float32)
    except ValueError:
        vector = np.zeros(0, np.float32)
    if len(vector) != width or not np.isfinite(vector).all():
        words = f"expected {width} finite numbers behind the word, as in the first line, found {len(parts)} values"
        words = words + ("" if len(parts) != width else " that are not")
        raise DataError(words, rule="range" if len(parts) == width else "length", file=path, line=line)
    return vector


class _Stored:
    """In place of gensim's classes: it only keeps what was stored of an object."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


class _Reader(pickle.Unpickler):
    """Reads what a ``.kv`` file holds, and runs none of its code: gensim's classes become :class:`_Stored`."""

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] == "gensim":
            return _Stored
        if module.split(".")[0] == "numpy" and name in ("_reconstruct", "ndarray", "dtype", "scalar"):
            return super().find_class(module, name)
        if (module, name) in (
            ("builtins", "dict"),
            ("builtins", "list"),
            ("collections", "OrderedDict"),
            ("builtins", "set"),
        ):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def keyed_vectors(path: Path, wanted: set[bytes]) -> dict[str, NDArray[np.float32]]:
    """The wanted words of gensim's ``KeyedVectors.save``; an array beside it (``.kv.vectors.npy``) is memory-mapped.

    Raises:
        DataError: no such file of gensim's, or without words or vectors.
    """
    try:
        stored = _Reader(io.BytesIO(path.read_bytes())).load()
    except Exception as error:  # pickle raises errors of many types
        message = f"expected gensim's KeyedVectors, found a file that cannot be read as such: {error}"
        raise DataError(message, rule="syntax", file=path, argument="embeddings") from error
    words = getattr(stored, "index_to_key", None) or getattr(stored, "index2word", None)
    beside = path.with_name(path.name + ".vectors.npy")
    table = getattr(stored, "vectors", None)
    if table is None and beside.is_file():
        table = np.load(beside, mmap_mode="r", allow_pickle=False)
    if not isinstance(words, list) or table is None or len(words) != len(table):
        message = "expected gensim's KeyedVectors with a vector for each word"
        raise DataError(message, rule="model", file=path, argument="embeddings")
    pairs = zip(words, table, strict=True)
    return {word: np.asarray(vector, np.float32) for word, vector in pairs if str(word).encode() in wanted}
