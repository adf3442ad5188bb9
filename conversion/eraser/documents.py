"""The documents of a corpus, in memory: their ids, texts, and numbers of tokens and sentences."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise, repeat
from pathlib import Path

import numpy as np
import pyarrow as pa

from eraser_hub.conversion.arrays import get_bytes, make_numbers, make_strings
from eraser_hub.conversion.built import BuiltDataset, read_rows
from eraser_hub.conversion.readers import file_name, read_utf8_file
from eraser_hub.metrics.tokens import find_token_starts
from eraser_hub.records.errors import DataError, show

from .checked import compute_offsets
from .format import read_document_lines

# documents/CONFIG.parquet of a built dataset
SCHEMA = pa.schema(
    [("docid", pa.string()), ("text", pa.string()), ("num_tokens", pa.int32()), ("num_sentences", pa.int32())]
)
BATCH_BYTES = 4 << 20  # of texts whose tokens are counted together, and of a row group of documents/CONFIG.parquet


class Documents:
    """Documents by number.

    Attributes:
        path: the folder or the file that holds them.
        names: the ids; the number of a document is its place here.
        texts: the texts, in one large array.
        sizes: int64 (documents,), the bytes of each text.
    """

    def __init__(
        self,
        path: Path,
        names: Sequence[str] | dict[str, int],
        texts: Sequence[pa.StringArray],
        counts: np.ndarray | None = None,
    ) -> None:
        self.path = path
        self._numbers = names if isinstance(names, dict) else {name: number for number, name in enumerate(names)}
        self.names = make_strings(self._numbers)
        counted = [count_tokens(chunk) for chunk in texts if len(chunk)]
        self._counts = np.concatenate([np.zeros((0, 2), np.int32), *counted]) if counts is None else counts
        sizes = [np.diff(get_bytes(chunk)[1]) for chunk in texts]
        self.sizes = np.concatenate([np.zeros(0, np.int64), *sizes])
        # a chunked array would be joined anew by every `take`
        chunks = pa.chunked_array([chunk.cast(pa.large_string()) for chunk in texts], pa.large_string())
        self.texts: pa.LargeStringArray = chunks.combine_chunks()

    def number(self, docids: Sequence[str]) -> np.ndarray:
        """Return the number of each id, int32; -1 for an unknown id."""
        return np.fromiter(map(self._numbers.get, docids, repeat(-1)), np.int32, len(docids))

    def counts(self, chosen: np.ndarray) -> np.ndarray:
        """Return the numbers of tokens and sentences of documents, int32 (chosen, 2)."""
        counts: np.ndarray = self._counts[chosen]
        return counts

    def take(self, chosen: np.ndarray) -> tuple[pa.Array, pa.Array]:
        """Return the ids and the texts of the documents with these numbers."""
        places = make_numbers(chosen)
        return self.names.take(places), self.texts.take(places).cast(pa.string())

    def make_tables(self) -> Iterator[pa.Table]:
        """Yield all documents as rows of `SCHEMA`, in parts of about `BATCH_BYTES`."""
        groups = np.cumsum(self.sizes) // BATCH_BYTES
        for begin, end in pairwise([0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]):
            names, texts = self.take(np.arange(begin, end))
            counts = (make_numbers(self._counts[begin:end, place]) for place in (0, 1))
            yield pa.Table.from_arrays([names, texts, *counts], schema=SCHEMA)


def count_tokens(texts: pa.StringArray) -> np.ndarray:
    """Return the numbers of tokens and sentences of each text, int32 (texts, 2).

    Counting all texts together is four times as fast as text by text.
    """
    starts = find_token_starts(*get_bytes(texts))
    sentences = compute_offsets(starts.opens_sentence)[starts.first_token]
    return np.diff(np.stack([starts.first_token, sentences], axis=1), axis=0).astype(np.int32)


def read_documents(folder: Path) -> tuple[Documents, list[Path]]:
    """Read the documents of a corpus folder: those of docs.jsonl, or the files of docs/.

    Returns:
        the documents, and the entries of docs/ that are no files.

    Raises:
        DataError: the folder has neither; a line of docs.jsonl is no document, or repeats an id; a file is no UTF-8.
    """
    lines, names, chunks = folder / "docs.jsonl", dict[str, int](), list[pa.Array]()
    if lines.is_file():
        for _, records in read_document_lines(lines, names):
            chunks.append(make_strings([record.document for record in records]))
        return Documents(lines, names, chunks), []
    docs, found, others = folder / "docs", list[str](), list[Path]()
    try:
        with os.scandir(docs) as entries:
            for entry in entries:
                if not entry.is_file():
                    others.append(docs / entry.name)
                    continue
                found.append(entry.name if entry.name.isascii() else os.fsencode(entry.name).decode("utf-8"))
    except UnicodeDecodeError as error:
        name = show(os.fsdecode(error.object))
        raise DataError(f"expected file names in UTF-8, found {name}", file=docs) from None
    except FileNotFoundError:
        raise DataError("expected a folder docs/ or a file docs.jsonl, found neither", file=folder) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=error.filename or docs) from None
    texts, size = list[bytes](), 0
    for name in sorted(found):
        # an id is looked up among the folder's entries and never joined to a path: one with "/" or ".." is unknown
        texts.append(read_utf8_file(f"{docs}/{file_name(name)}"))
        size += len(texts[-1])
        if size > BATCH_BYTES:
            chunks.append(make_strings(texts))
            texts, size = [], 0
    chunks.append(make_strings(texts))
    return Documents(docs, sorted(found), chunks), others


def open_documents(built: BuiltDataset, config: str, with_texts: bool = True) -> Documents:
    """Read ``documents/CONFIG.parquet`` of a built dataset; that of a dataset of the Hub is fetched.

    Args:
        built: the dataset.
        config: the configuration.
        with_texts: read the texts, and count their tokens anew; else take the counts that stand there.

    Raises:
        DataError: the file cannot be read, lacks a value, or repeats an id.
    """
    built.paths(f"documents/{config}.parquet")
    path = built.folder / "documents" / f"{config}.parquet"
    columns = ("docid", "text") if with_texts else ("docid", "num_tokens", "num_sentences")
    tables = list(read_rows([path], columns, kinds=SCHEMA, whole=columns))
    names = [name for table in tables for name in table["docid"].to_pylist()]
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise DataError(f"expected each document once, found {show(twice)} twice", file=path)
    if not with_texts:
        counts = [np.stack([table[name].to_numpy() for name in columns[1:]], axis=1) for table in tables]
        return Documents(path, names, [], np.concatenate([np.zeros((0, 2), np.int32), *counts]))
    chunks = [chunk.cast(pa.string()) for table in tables for chunk in table["text"].chunks]
    return Documents(path, names, chunks)
