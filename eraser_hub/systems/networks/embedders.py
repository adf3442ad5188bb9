"""Embed the words of a batch: by a table, learned or from a file, or by an encoder's states."""

from __future__ import annotations

import io
import mmap
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from eraser_hub.attribution.transformers.sequence_model import count_positions
from eraser_hub.records.errors import DataError, show

from .readings import PAD, SPECIAL, Lexicon, PaddedReadings, SubwordLexicon, Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CHUNKS = 64  # stretches of full length that go through an encoder together
SPREAD = 0.1  # standard deviation of the vectors of words that a file does not have, near that of GloVe's elements


def read_embeddings(path: Path, vocabulary: Vocabulary, seed: int, say: Callable[[str], None]) -> NDArray[np.float32]:
    """Return vectors of shape (words, width): from the file, random by seed for words that it lacks.

    Raises:
        DataError: no such file, another format, a damaged line, none of the words.
    """
    if not path.is_file():
        raise DataError("no such file", file=path, argument="embeddings")
    wanted = {word.encode() for word in vocabulary.words[len(SPECIAL) :]}
    vectors = read_keyed_vectors(path, wanted) if path.suffix == ".kv" else read_text_vectors(path, wanted)
    if not vectors:
        words = f"expected words of the corpus, found none of {len(wanted)}"
        raise DataError(words, file=path, argument="embeddings")
    width = len(next(iter(vectors.values())))
    random = np.random.default_rng(seed)
    table = random.normal(0, SPREAD, (len(vocabulary.words), width)).astype(np.float32)
    for number, word in enumerate(vocabulary.words):
        if word in vectors:
            table[number] = vectors[word]
    table[0] = 0
    words = f"embeddings: {len(vectors)} of {len(wanted)} words of the corpus in {path.name}, {width} dimensions"
    say(f"{words}; the others start at random")
    return table


def read_text_vectors(path: Path, wanted: set[bytes]) -> dict[str, NDArray[np.float32]]:
    """Read the vectors of the wanted words from a text file: one word and its numbers per line.

    The word2vec format starts with a line of two counts. The file is memory-mapped, and only the lines of wanted words
    are parsed; the first of equal words counts.

    Raises:
        DataError: An empty file, values that are not numbers, a line of another width than the first, or binary
            word2vec.
    """
    vectors: dict[str, NDArray[np.float32]] = {}
    if not path.stat().st_size:
        raise DataError("expected words and their vectors, found an empty file", file=path)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        first = mapped.readline().split()
        counts = len(first) == 2 and all(part.isdigit() for part in first)
        width = int(first[1]) if counts else len(first) - 1
        if width < 1:
            words = f"expected a word and its vector, found {show(first[:3])}"
            raise DataError(words, file=path, line=1)
        mapped.seek(0)
        number = 1 if counts else 0
        if counts:
            mapped.readline()
        while line := mapped.readline():
            number += 1
            word = line.partition(b" ")[0]
            if word in wanted and word.decode() not in vectors:
                vector = _parse_vector(line.rstrip().split(b" ")[1:], width, path, number)
                if vector is not None:
                    vectors[word.decode()] = vector
    return vectors


def _parse_vector(parts: list[bytes], width: int, path: Path, line: int) -> NDArray[np.float32] | None:
    """Return a line's vector; None for a word with blanks, whose first part is another word."""
    if len(parts) > width:
        return None
    try:
        vector = np.asarray([float(part) for part in parts], dtype=np.float32)
    except ValueError:
        vector = np.zeros(0, np.float32)
    if len(vector) != width or not np.isfinite(vector).all():
        words = f"expected {width} finite numbers behind the word, as in the first line, found {len(parts)} values"
        if len(parts) != width:
            raise DataError(words, file=path, line=line)
        raise DataError(f"{words} that are not", file=path, line=line)
    return vector


class _StoredObject:
    """A stand-in for gensim's classes: it only keeps the stored state of an object."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


class _Reader(pickle.Unpickler):
    """A reader of ``.kv`` files that runs none of their code: gensim's classes become :class:`_StoredObject`."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in of a gensim class."""
        if module.split(".")[0] == "gensim":
            return _StoredObject
        if module.split(".")[0] == "numpy" and name in ("_reconstruct", "ndarray", "dtype", "scalar"):
            return super().find_class(module, name)
        if f"{module}.{name}" in ("builtins.dict", "builtins.list", "builtins.set", "collections.OrderedDict"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def read_keyed_vectors(path: Path, wanted: set[bytes]) -> dict[str, NDArray[np.float32]]:
    """Read the vectors of the wanted words from gensim's ``KeyedVectors.save``.

    An array beside the file (``.kv.vectors.npy``) is memory-mapped.

    Raises:
        DataError: Not a file of gensim, or one without words or vectors.
    """
    try:
        stored = _Reader(io.BytesIO(path.read_bytes())).load()
    except Exception as error:  # pickle raises errors of many types
        message = f"expected gensim's KeyedVectors, found a file that cannot be read as such: {error}"
        raise DataError(message, file=path, argument="embeddings") from error
    words = getattr(stored, "index_to_key", None) or getattr(stored, "index2word", None)
    beside = path.with_name(path.name + ".vectors.npy")
    table = getattr(stored, "vectors", None)
    if table is None and beside.is_file():
        table = np.load(beside, mmap_mode="r", allow_pickle=False)
    if not isinstance(words, list) or table is None or len(words) != len(table):
        message = "expected gensim's KeyedVectors with a vector for each word"
        raise DataError(message, file=path, argument="embeddings")
    pairs = zip(words, table, strict=True)
    return {word: np.asarray(vector, np.float32) for word, vector in pairs if str(word).encode() in wanted}


class Embedder(nn.Module):
    """Embedder of a batch's words as vectors of shape (rows, places, width), zero at padding and at invisible places.

    Attributes:
        width: Width of a vector.
        lexicon: The numbers of words.
    """

    width: int
    lexicon: Lexicon


class WordEmbedder(Embedder):
    """A table of vectors, trained with the network.

    Args:
        lexicon: The numbers of words.
        width: Width of a vector.
        vectors: Initial vectors, shape (words, width); None for small random ones.
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
        """Return vectors of shape (rows, places, width)."""
        return self.table(batch.words)  # type: ignore[no-any-return]


class EncoderEmbedder(Embedder):
    """The last states of a transformers encoder at each word's first sub-word.

    A text longer than the window is cut into windows of whole words, each with its own special tokens and positions
    from the start. The LSTM behind the encoder sees them as one text (DeYoung et al., 2020, section 6.2).

    Args:
        encoder: The encoder.
        lexicon: The numbers and sub-words of words.
        window: Sub-words in a window, special tokens included.
        trained_layers: Number of its last layers that are trained.

    Raises:
        DataError: The window is longer than the encoder's positions.

    Attributes:
        half_type: The type to compute in if that is faster; None for float32.
    """

    half_type: torch.dtype | None = None

    def __init__(self, encoder: PreTrainedModel, lexicon: SubwordLexicon, window: int, trained_layers: int) -> None:
        super().__init__()
        self.encoder, self.lexicon, self.subwords = encoder, lexicon, lexicon
        self.template = lexicon.words.single
        self.window, most = window, count_positions(encoder)
        if most and window > most:
            words = f"expected at most {most} sub-words, the encoder's positions, found {window}"
            raise DataError(f"window: {words}", argument="model")
        self.width = int(encoder.config.hidden_size)
        self.trained_layers = trained_layers
        for weights in encoder.parameters():
            weights.requires_grad = False
        # the encoder's layers are the longest list of modules in it
        lists = [list(module) for module in encoder.modules() if isinstance(module, nn.ModuleList)]
        layers = max(lists, key=len, default=[])
        for layer in layers[len(layers) - min(trained_layers, len(layers)) :]:
            for weights in layer.parameters():
                weights.requires_grad = True

    def cut_windows(self, words: Sequence[int]) -> Iterator[tuple[list[int], list[tuple[int, int]]]]:
        """Yield the windows of a row: its sub-words, and (place in row, place in window) of each word."""
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
        """Return vectors of shape (rows, places, width)."""
        rows = enumerate(batch.words.where(batch.visible, PAD).tolist())
        parts = [(row, *part) for row, words in rows for part in self.cut_windows(words) if part[0]]
        vectors = torch.zeros((*batch.words.shape, self.width), device=batch.words.device, dtype=self.encoder.dtype)
        if not parts:
            return vectors
        parts.sort(key=lambda part: -len(part[1]))
        at: list[tuple[int, int]] = []
        states: list[Tensor] = []
        while parts:
            count = max(1, CHUNKS * self.window // len(parts[0][1]))
            some, parts = parts[:count], parts[count:]
            hidden = self._states([ids for _, ids, _ in some], batch.words.device)
            places = [(number, place) for number, (_, _, firsts) in enumerate(some) for _, place in firsts]
            at += [(row, word) for row, _, firsts in some for word, _ in firsts]
            number, place = torch.tensor(places, device=hidden.device).T
            states.append(hidden[number, place + len(self.template.before)])
        row, word = torch.tensor(at, device=vectors.device).T
        return vectors.index_put((row, word), torch.cat(states).to(vectors.dtype))

    def _states(self, rows: Sequence[Sequence[int]], device: torch.device) -> Tensor:
        before, after = self.template.before, self.template.after
        whole = [torch.tensor([*before, *row, *after]) for row in rows]
        ids = pad_sequence(whole, batch_first=True, padding_value=self.subwords.words.pad)
        mask = torch.arange(ids.shape[1])[None] < torch.tensor(list(map(len, whole)))[:, None]
        with torch.autocast(device.type, self.half_type, enabled=self.half_type is not None):
            states = self.encoder(input_ids=ids.to(device), attention_mask=mask.long().to(device)).last_hidden_state
        return states.to(self.encoder.dtype)  # type: ignore[no-any-return]
