"""The documents of a released corpus, as counts of tokens and sentences: their texts are not kept."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from eraser_hub.metrics.joining import Documents, tokens_before
from eraser_hub.metrics.tokens import text_sizes
from eraser_hub.records.errors import DataError
from eraser_hub.records.json_lines import not_json
from eraser_hub.records.lines import Lines, batches_of_lines, check_utf8, reading

# bytes of texts that are counted at a time
TEXTS_AT_ONCE = 1 << 17


class _Line(msgspec.Struct, gc=False):
    docid: str | int
    document: str


_decode = msgspec.json.Decoder(_Line).decode


class CorpusDocuments(Documents):
    """Token and sentence counts of a corpus' documents, read when they are first asked about.

    Args:
        data_dir: the corpus folder, with ``docs/`` (one file a document) or ``docs.jsonl``.
        numbers: docid -> number, from 0 in order; further documents are added.
        sentences: whether the tokens of each sentence are kept.

    Raises:
        DataError: the folder has no documents.
    """

    def __init__(self, data_dir: Path, numbers: dict[str, int], sentences: bool = True) -> None:
        self.folder, self.lines = data_dir / "docs", data_dir / "docs.jsonl"
        if not self.folder.is_dir() and not self.lines.is_file():
            raise DataError("expected the documents in docs/ or docs.jsonl, found neither", file=data_dir)
        self.numbers, self.with_sentences = numbers, sentences
        # by number, with room for more; a document that does not exist has -1 tokens
        self.tokens = self.sentences = self.first_sentence = np.zeros(0, dtype=np.int32)
        self.sizes = array("i")  # of sentences
        self.known = 0  # how many numbers have been looked for
        self.whole = False

    def number(self, docids: Sequence[str]) -> np.ndarray:
        """The number of each document; those that are new get one, and are counted."""
        numbers = self.numbers
        found = np.array([numbers.setdefault(docid, len(numbers)) for docid in docids], dtype=np.int64)
        if self.known < len(numbers) or not self.tokens.size:
            if not self.lines.is_file():
                self._read_files(list(numbers)[self.known :])
            elif not self.whole:
                self._read_lines()
            self._extend()
            self.known = len(numbers)
            self.reached = tokens_before(np.array(self.sizes, dtype=np.int32))
        return found

    def find(self, annotation: np.ndarray, doc: np.ndarray) -> np.ndarray:
        """The row of each document; -1 where there is none."""
        return np.where((doc >= 0) & (self.tokens[doc] >= 0), doc, -1)

    def _read_files(self, docids: Sequence[str]) -> None:
        texts, numbers, size = list[bytes](), list[int](), 0
        self._extend()
        for number, docid in enumerate(docids, self.known):
            # a docid is a file's name: it never leads out of the folder
            if not docid or "/" in docid or "\0" in docid or docid in (".", ".."):
                continue
            try:
                with open(f"{self.folder}/{docid}", "rb", buffering=0) as file:
                    texts.append(file.read())
            except OSError:
                continue
            numbers.append(number)
            size += len(texts[-1])
            if size > TEXTS_AT_ONCE:
                self._count(numbers, texts)
                texts, numbers, size = [], [], 0
        self._count(numbers, texts)

    def _read_lines(self) -> None:
        with reading(self.lines):
            for lines in batches_of_lines(self.lines, TEXTS_AT_ONCE):
                decoded = self._decoded(lines)
                docids = [line.docid if isinstance(line.docid, str) else str(line.docid) for line in decoded]
                numbers = [self.numbers.setdefault(docid, len(self.numbers)) for docid in docids]
                self._extend()
                self._count(numbers, [line.document.encode() for line in decoded])
        self.whole = True

    def _decoded(self, lines: Lines) -> list[_Line]:
        try:
            decoded = [_decode(line) for line in lines.raw]
            check_utf8(lines.raw)
            return decoded
        except (msgspec.MsgspecError, UnicodeDecodeError):  # a blank line, or one that is not as it should be
            decoded = []
        for number, line in zip(lines.numbers, lines.raw, strict=True):
            if not line.strip():
                continue
            try:
                decoded.append(_decode(line))
                check_utf8([line])
            except msgspec.ValidationError as error:
                message = f"expected docid and document (a text): {error}"
                raise DataError(message, file=self.lines, line=number) from None
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise DataError(not_json(error, line), file=self.lines, line=number) from None
        return decoded

    def _extend(self) -> None:
        """Make room for all numbers."""
        n = max(len(self.numbers), 1)
        if self.tokens.size < n:
            more = np.full(n + n // 8 - self.tokens.size, -1, dtype=np.int32)
            self.tokens, self.sentences = np.append(self.tokens, more), np.append(self.sentences, more)
            if self.with_sentences:
                self.first_sentence = np.append(self.first_sentence, more)

    def _count(self, numbers: Sequence[int], texts: Sequence[bytes]) -> None:
        """Keep the counts of some documents; of one that stands twice the last counts."""
        bounds = np.concatenate([[0], np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)))])
        sizes = text_sizes(np.frombuffer(b"".join(texts), dtype=np.uint8), bounds)
        self.tokens[numbers], self.sentences[numbers] = sizes.tokens, sizes.sentences
        if self.with_sentences:
            self.first_sentence[numbers] = np.cumsum(sizes.sentences) - sizes.sentences + len(self.sizes)
            self.sizes.frombytes(sizes.sentence_tokens.astype(np.int32).tobytes())
