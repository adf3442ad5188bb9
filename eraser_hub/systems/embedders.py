"""Embed the words of a batch: by a table, learned or from a file, or by an encoder's states."""

from __future__ import annotations

import logging
import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from eraser_hub.attribution.models.loading import find_loading_options, load_tokenizer, make_open_error, silence
from eraser_hub.attribution.models.subwords import count_positions, decode_places
from eraser_hub.records.errors import DataError, show

from .readings import PAD, SPECIAL, Lexicon, PaddedReadings, SubwordLexicon, Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CHUNKS = 64  # windows of full length that go through an encoder together
SPREAD = 0.1  # standard deviation of the vectors of words that a file does not have, near that of GloVe's elements
log = logging.getLogger("eraser_hub")


def read_embeddings(path: Path, vocabulary: Vocabulary, seed: int) -> NDArray[np.float32]:
    """Return vectors of shape (words, width) from a text file; of words that it lacks random ones by the seed.

    A line holds a word and its numbers (GloVe); word2vec's text begins with a line of two counts. The file is
    memory-mapped, and only the lines of wanted words are parsed; the first of equal words counts.

    Raises:
        DataError: no such file, an empty or binary one, a damaged line, none of the words.
    """
    if not path.is_file() or not path.stat().st_size:
        raise DataError("expected a file of words and their vectors, found none", file=path, argument="model")
    wanted, vectors = {word.encode() for word in vocabulary.words[len(SPECIAL) :]}, dict[str, NDArray[np.float32]]()
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        first = mapped.readline().split()
        has_counts = len(first) == 2 and all(part.isdigit() for part in first)
        width, number = (int(first[1]), 1) if has_counts else (len(first) - 1, 0)
        if width < 1:
            raise DataError(f"expected a word and its vector, found {show(first[:3])}", file=path, line=1)
        if not has_counts:
            mapped.seek(0)
        while line := mapped.readline():
            number += 1
            word, *parts = line.rstrip().split(b" ")
            # of a word with blanks the first part is another word
            if word in wanted and word.decode() not in vectors and len(parts) <= width:
                vectors[word.decode()] = _parse_vector(parts, width, path, number)
    if not vectors:
        raise DataError(f"expected words of the corpus, found none of {len(wanted)}", file=path, argument="model")
    table = np.random.default_rng(seed).normal(0, SPREAD, (len(vocabulary.words), width)).astype(np.float32)
    for at, name in enumerate(vocabulary.words):
        table[at] = vectors.get(name, table[at])
    table[PAD] = 0
    found = f"{len(vectors)} of {len(wanted)} words of the corpus in {path.name}, {width} dimensions"
    log.info(f"embeddings: {found}; the others start at random")
    return table


def _parse_vector(parts: Sequence[bytes], width: int, path: Path, line: int) -> NDArray[np.float32]:
    try:
        vector = np.asarray([float(part) for part in parts], dtype=np.float32)
    except ValueError:
        vector = np.zeros(0, np.float32)
    if len(vector) != width or not np.isfinite(vector).all():
        found = f"{len(parts)} values" + (" that are not" if len(parts) == width else "")
        message = f"expected {width} finite numbers behind the word, as in the first line, found {found}"
        raise DataError(message, file=path, line=line)
    return vector


def load_pretrained(kind: str, name: str, trust_remote_code: bool, **more: Any) -> tuple[Any, Any]:
    """Return a network of a class of transformers, and its tokenizer, from a folder or Hub id.

    Raises:
        DataError: it cannot be opened.
    """
    silence()
    try:
        options = find_loading_options(name, trust_remote_code)
        network = getattr(transformers, kind).from_pretrained(name, **options, **more)
        return network, load_tokenizer(name, options)
    except DataError:
        raise
    except Exception as error:  # transformers raises many kinds
        raise make_open_error(error, name) from error


class Embedder(nn.Module):
    """Embeds a batch's words as vectors of shape (rows, places, width), zero at padding and at invisible places.

    Attributes:
        width: width of a vector.
        lexicon: the numbers of words.
    """

    width: int
    lexicon: Lexicon


class WordEmbedder(Embedder):
    """A table of vectors, trained with the network.

    Args:
        lexicon: the numbers of words.
        width: width of a vector.
        vectors: initial vectors, shape (words, width); None for small random ones.
    """

    def __init__(self, lexicon: Vocabulary, width: int, vectors: NDArray[np.float32] | None = None) -> None:
        super().__init__()
        self.lexicon, self.width = lexicon, width
        self.table = nn.Embedding(len(lexicon.words), width, padding_idx=PAD)
        if vectors is not None:
            with torch.no_grad():
                self.table.weight.copy_(torch.from_numpy(vectors))

    def forward(self, batch: PaddedReadings) -> Tensor:
        """Return vectors of shape (rows, places, width)."""
        return self.table(batch.words)  # type: ignore[no-any-return]


class EncoderEmbedder(Embedder):
    """The last states of a transformers encoder at each word's first sub-word.

    A text longer than the window is cut into windows of whole words, each with its own special tokens and positions
    from the start. The LSTM behind the encoder sees them as one text (DeYoung et al., 2020, section 6.2).

    Args:
        encoder: the encoder.
        lexicon: the numbers and sub-words of words.
        window: sub-words in a window, special tokens included.
        trained_layers: number of its last layers that are trained.

    Raises:
        DataError: the window is longer than the encoder's positions.
    """

    def __init__(self, encoder: PreTrainedModel, lexicon: SubwordLexicon, window: int, trained_layers: int) -> None:
        super().__init__()
        self.encoder, self.lexicon, self.subwords = encoder, lexicon, lexicon
        special = lexicon.words.single.special
        self.before, self.after = (decode_places(codes)[0].tolist() for codes in (special[0], special[-1]))
        self.window, most = window, count_positions(encoder)
        if most and window > most:
            message = f"window: expected at most {most} sub-words, the encoder's positions, found {window}"
            raise DataError(message, argument="model")
        self.width = int(encoder.config.hidden_size)
        encoder.requires_grad_(False)
        # the encoder's layers are the longest list of modules in it
        lists = [list(module) for module in encoder.modules() if isinstance(module, nn.ModuleList)]
        layers = max(lists, key=len, default=[])
        for layer in layers[len(layers) - min(trained_layers, len(layers)) :]:
            layer.requires_grad_(True)

    def cut_windows(self, words: Sequence[int]) -> Iterator[tuple[list[int], list[tuple[int, int]]]]:
        """Yield the windows of a row: its sub-words, and (place in row, place in window) of each word."""
        room = self.window - len(self.before) - len(self.after)
        ids: list[int] = []
        firsts: list[tuple[int, int]] = []
        for place, word in enumerate(words):
            pieces = self.subwords.pieces[word][:room]
            if len(ids) + len(pieces) > room:
                yield ids, firsts
                ids, firsts = [], []
            if pieces:
                firsts.append((place, len(ids)))
            ids += pieces
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
            hidden = self._encode([ids for _, ids, _ in some], batch.words.device)
            places = [(number, place) for number, (_, _, firsts) in enumerate(some) for _, place in firsts]
            at += [(row, word) for row, _, firsts in some for word, _ in firsts]
            number, place = torch.tensor(places, device=hidden.device).T
            states.append(hidden[number, place + len(self.before)])
        row, word = torch.tensor(at, device=vectors.device).T
        return vectors.index_put((row, word), torch.cat(states).to(vectors.dtype))

    def _encode(self, rows: Sequence[Sequence[int]], device: torch.device) -> Tensor:
        before, after = self.before, self.after
        whole = [torch.tensor([*before, *row, *after]) for row in rows]
        ids = pad_sequence(whole, batch_first=True, padding_value=self.subwords.words.pad)
        mask = torch.arange(ids.shape[1])[None] < torch.tensor(list(map(len, whole)))[:, None]
        states = self.encoder(input_ids=ids.to(device), attention_mask=mask.long().to(device)).last_hidden_state
        return states.to(self.encoder.dtype)  # type: ignore[no-any-return]  # training casts to bfloat16
