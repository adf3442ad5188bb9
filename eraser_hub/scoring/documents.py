"""The documents of a released corpus, as counts of tokens and sentences: their texts are not kept."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice, repeat
from pathlib import Path

import numpy as np

from eraser_hub.conversion.eraser.format import read_document_lines
from eraser_hub.metrics.joining import DocumentLengths
from eraser_hub.metrics.tokens import measure_texts
from eraser_hub.records.errors import DataError
from eraser_hub.records.lines import NoFile, file_name, read_utf8_file

# bytes of texts that are counted at a time
TEXTS_AT_ONCE = 1 << 17


class CorpusDocuments(DocumentLengths):
    """Token and sentence counts of a corpus' documents, read when they are first asked about.

    Args:
        data_dir: the corpus folder, with ``docs/`` (one file a document) or ``docs.jsonl``.

    Attributes:
        path: the one of the two that is read.

    Raises:
        DataError: the folder has no documents; one of them is not as it should be.
    """

    def __init__(self, data_dir: Path) -> None:
        self.folder, self.lines = data_dir / "docs", data_dir / "docs.jsonl"
        if not self.folder.is_dir() and not self.lines.is_file():
            message = "expected the documents in docs/ or docs.jsonl, found neither"
            raise DataError(message, rule="file-missing", file=data_dir)
        self.path = self.lines if self.lines.is_file() else self.folder
        self.numbers: dict[str, int] = {}  # of the documents of docs.jsonl, or of those of docs/ that were asked for
        # by number, with room for more; a document that does not exist has -1 tokens
        self.tokens = self.sentences = np.zeros(0, dtype=np.int32)
        self.sizes = array("i")  # of sentences
        self.known = 0  # how many numbers have been looked for
        self._places = np.zeros(0, np.int64), np.zeros(0, np.int64)

    @property
    def sentence_places(self) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[override]
        """See `joining.DocumentLengths`; computed when documents were added since the last time."""
        if len(self._places[1]) != len(self.sizes) + 1:
            counts = np.maximum(self.sentences, 0)
            sizes = np.frombuffer(self.sizes, dtype=np.intc) if self.sizes else np.zeros(0, dtype=np.intc)
            self._places = np.cumsum(counts) - counts, np.append(0, np.cumsum(sizes, dtype=np.int64))
        return self._places

    def number(self, docids: Sequence[str]) -> np.ndarray:
        """Return the number of each document, int64; -1 for one that does not exist. New documents are counted."""
        numbers = self.numbers
        if self.lines.is_file():
            if not numbers:
                self._read_lines()
            return np.fromiter(map(numbers.get, docids, repeat(-1)), np.int64, len(docids))
        places = np.fromiter([numbers.setdefault(docid, len(numbers)) for docid in docids], np.int64, len(docids))
        texts, found, size = dict[str, bytes](), list[int](), 0
        new = islice(numbers, self.known, None) if self.known < len(numbers) else ()
        for number, docid in enumerate(new, self.known):
            with suppress(NoFile):
                if name := file_name(docid):  # a docid is a file's name: it never leads out of the folder
                    texts[docid] = read_utf8_file(f"{self.folder}/{name}")
                    found.append(number)
                    size += len(texts[docid])
            if size > TEXTS_AT_ONCE:
                self._count(found, texts)
                texts, found, size = {}, [], 0
        if self.known < len(numbers):
            self._count(found, texts)
            self.known = len(numbers)
        return np.where(self.tokens[places] < 0, -1, places)

    def find(self, annotation: np.ndarray, doc: np.ndarray) -> np.ndarray:
        """Return the row of each document, which is its number."""
        return doc

    def _read_lines(self) -> None:
        for _, documents in read_document_lines(self.lines, self.numbers, TEXTS_AT_ONCE):
            places = range(len(self.numbers) - len(documents), len(self.numbers))
            self._count(places, {document.docid: document.document.encode() for document in documents})

    def _count(self, numbers: Sequence[int], texts: Mapping[str, bytes]) -> None:
        """Keep the counts of some documents, ascending, behind those that were counted before."""
        n = max(len(self.numbers), 1)
        if self.tokens.size < n:
            more = np.full(n + n // 8 - self.tokens.size, -1, dtype=np.int32)
            self.tokens, self.sentences = np.append(self.tokens, more), np.append(self.sentences, more)
        sizes = measure_texts(b"".join(texts.values()), list(map(len, texts.values())))
        self.tokens[numbers], self.sentences[numbers] = sizes.tokens, sizes.sentences
        self.sizes.frombytes(sizes.sentence_tokens.astype(np.intc).tobytes())

    def counts(self, chosen: np.ndarray) -> np.ndarray:
        """Return the tokens and the sentences of each document, shape (documents, 2)."""
        return np.stack([self.tokens[chosen], self.sentences[chosen]], axis=1)
