"""A released corpus, as far as scoring needs it: annotations as flat arrays, documents as counts of tokens."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import orjson

from eraser_hub.metrics.flat import References
from eraser_hub.metrics.flatten_rows import ReferenceFlattener
from eraser_hub.metrics.joining import Documents
from eraser_hub.metrics.offences import Offences, cut
from eraser_hub.metrics.tokens import sentence_sizes
from eraser_hub.records.errors import MOST_SHOWN, DataError, DataErrors
from eraser_hub.records.splits import release_split

from .names import Names, all_strings


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a file, read as they are asked for."""
    try:
        with open(path, "rb") as file:
            yield from file
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from None


# the bytes of lines that are decoded at a time: objects that fit into a processor's cache
BLOCK = 1 << 17


def blocks_of(path: Path, start: int = 0, end: int | None = None, blocks: int = 1) -> Iterator[list[bytes]]:
    """The lines of a file, so many times `BLOCK` bytes or a little more at a time.

    Args:
        start, end: bytes, ends of lines both, between which the lines stand; None: the file's end.
    """
    try:
        with open(path, "rb", buffering=BLOCK) as file:
            file.seek(start)
            while (end is None or start < end) and (lines := file.readlines(blocks * BLOCK)):
                start += sum(map(len, lines))
                while end is not None and start > end:
                    start -= len(lines.pop())
                yield lines
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from None


def check_utf8(lines: Sequence[bytes]) -> None:
    """Raise a UnicodeDecodeError for a line that is no UTF-8 (a decoder does not look at fields that it skips)."""
    if not all(map(bytes.isascii, lines)):
        for line in lines:
            line.decode()


def is_parquet(path: Path) -> bool:
    """By its first bytes, whatever its name."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"PAR1"
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from None


def said(error: Exception, line: bytes) -> str:
    """What is wrong with a line that is no JSON, in words."""
    for name in (b"NaN", b"Infinity"):
        if name in line:
            return f"not JSON: {name.decode()} is no JSON number ({error})"
    return f"not JSON: {error}"


def raise_offences(offences: Offences, places: dict[str, tuple[Path, Any]], names: dict[str, Sequence[str]]) -> None:
    """Raise the offences, if there are any, each with its file and line.

    Args:
        places: side -> (file, line number of each row).
        names: side -> the annotation id of each row.
    """
    if not offences.total:
        return
    errors = []
    for offence in offences[:MOST_SHOWN]:
        path, numbers = places[offence.side]
        line = int(numbers[offence.row]) if offence.row < len(numbers) else None
        own = names[offence.side]
        name = own[offence.row] if offence.row < len(own) else None
        if not name or name.startswith("\0"):  # it has none, or none that could be read: the line is enough
            name = None
        errors.append(DataError(offence.message, file=path, line=line, instance=name, field=offence.field or None))
    if offences.total == 1:
        raise errors[0]
    raise DataErrors(errors, offences.total)


def read_annotations(
    path: Path, label_names: tuple[str, ...] | None, offences: Offences, by: str | None = None
) -> tuple[ReferenceFlattener, list[int], list[object] | None]:
    """An annotation file, flattened, the line of each annotation, and its value of the column ``by``.

    Lines may be doubly encoded.
    """
    column: list[object] | None = None if by is None else []
    flattener = ReferenceFlattener(offences, label_names, documents=False)
    numbers: list[int] = []
    loads, add = orjson.loads, flattener.add
    for number, line in enumerate(lines_of(path), 1):
        if not line.strip():
            continue
        try:
            row = loads(line)
            if isinstance(row, str):
                row = loads(row)
        except ValueError as error:
            raise DataError(said(error, line), file=path, line=number) from None
        numbers.append(number)
        if not isinstance(row, dict):
            raise DataError(f"expected an object, found {cut(row)}", file=path, line=number)
        if column is not None:
            if by not in row:
                raise DataError(
                    f"expected the field {by!r} (to break scores down by), found none", file=path, line=number
                )
            column.append(row[by])
        add(row)
    if not numbers:
        raise DataError("expected at least one annotation, found none", file=path)
    return flattener, numbers, column


def annotation_file(data_dir: Path, split: str) -> Path:
    """DIR/SPLIT.jsonl; the dataset's split names are understood as well as the release's."""
    for name in (release_split(split), split):
        path = data_dir / f"{name}.jsonl"
        if path.is_file():
            return path
    raise DataError(f"no annotation file {release_split(split)}.jsonl for the split {split!r}", file=data_dir)


class _Record(msgspec.Struct, gc=False):
    docid: str | int
    document: str


def check_there(data_dir: Path) -> None:
    """Raise a DataError where a corpus has no documents."""
    if not (data_dir / "docs").is_dir() and not (data_dir / "docs.jsonl").is_file():
        raise DataError("expected the documents in docs/ or docs.jsonl, found neither", file=data_dir)


class CorpusDocuments(Documents):
    """Token and sentence counts of a corpus' documents, read when first asked for.

    Args:
        data_dir: the corpus folder, with ``docs/`` (one file a document) or ``docs.jsonl``.
        docs: the vocabulary of docids, which others add to.
        sentences: whether the tokens of each sentence are kept.
    """

    def __init__(self, data_dir: Path, docs: Names, sentences: bool = True) -> None:
        self.folder, self.lines, self.docs, self.by_sentence = (
            data_dir / "docs",
            data_dir / "docs.jsonl",
            docs,
            sentences,
        )
        self.counts = array("i"), array("i"), array("i")  # tokens, sentences, where the sentences stand
        self.sizes = array("i")
        self.whole = False
        self.fresh = False
        check_there(data_dir)

    @property
    def n_docs(self) -> int:  # type: ignore[override]
        return max(len(self.docs), 1)

    def read(self) -> None:
        """Count the documents that the vocabulary has come to name; those that do not exist have -1 tokens."""
        first = len(self.counts[0])
        if self.lines.is_file():
            if not self.whole:
                self._extend()
                self._read_lines()
            self._extend()
        elif first < len(self.docs):
            self._extend()
            self._read_files(first)
        if not self.fresh or self.tokens.size != len(self.docs):
            # copies: arrays that are looked at cannot grow
            self.tokens, self.sentences, self.first_sentence = map(_copied, self.counts)
            self.sentence_tokens = _copied(self.sizes)
            self.fresh = True

    def _read_files(self, first: int) -> None:
        """The files of the documents from number ``first`` on."""
        folder, codes, texts, size = str(self.folder), [], [], 0
        for code in range(first, len(self.docs)):
            docid = self.docs[code]
            # a docid is a file's name: it never leads out of the folder
            if not docid or "/" in docid or "\0" in docid or docid in (".", ".."):
                continue
            try:
                with open(f"{folder}/{docid}", "rb", buffering=0) as file:
                    texts.append(file.read())
            except OSError:
                continue
            codes.append(code)
            size += len(texts[-1])
            if size > BLOCK:
                self._keep(codes, texts)
                codes, texts, size = [], [], 0
        self._keep(codes, texts)

    def find(self, annotation: np.ndarray, doc: np.ndarray) -> np.ndarray:
        """The row of each document; -1 where there is none."""
        return np.where((doc >= 0) & (self.tokens[doc] >= 0), doc, -1)

    def _extend(self) -> None:
        missing = len(self.docs) - len(self.counts[0])
        for column in self.counts:
            column.extend([-1] * missing)

    def _read_lines(self) -> None:
        decode, number = msgspec.json.Decoder(_Record).decode, 0
        for lines in blocks_of(self.lines, blocks=4):
            try:
                records = [decode(line) for line in lines]
                check_utf8(lines)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                self._read_one_by_one(lines, number)
            else:
                self._keep(
                    self._number([record.docid for record in records]),
                    [record.document.encode() for record in records],
                )
            number += len(lines)
        self.whole = True

    def _read_one_by_one(self, lines: Sequence[bytes], number: int) -> None:
        """Lines of which at least one is not as it should be; ``number``: of the line before the first."""
        decode = msgspec.json.Decoder(_Record).decode
        for number, line in enumerate(lines, number + 1):  # noqa: B020
            try:
                record = decode(line)
                check_utf8([line])
            except msgspec.ValidationError as error:
                message = f"expected docid and document (a text): {error}"
                raise DataError(message, file=self.lines, line=number) from None
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                if not line.strip():
                    continue
                raise DataError(said(error, line), file=self.lines, line=number) from None
            self._keep(self._number([record.docid]), [record.document.encode()])

    def _number(self, docids: Sequence[str | int]) -> np.ndarray:
        codes = self.docs.add(docids if all_strings(docids) else list(map(str, docids)))  # type: ignore[arg-type]
        self._extend()
        return codes

    def _keep(self, codes: Sequence[int] | np.ndarray, texts: Sequence[bytes]) -> None:
        """Keep the counts of some documents; of one that stands twice the last counts."""
        counts: tuple[np.ndarray, ...] | None = None if self.by_sentence else count_plain(texts)
        if counts is None:
            sizes = [sentence_sizes(text) for text in texts]
            sentences = np.fromiter(map(len, sizes), dtype=np.int64, count=len(sizes))
            places = np.cumsum(sentences) - sentences + len(self.sizes)
            if self.by_sentence:
                for own in sizes:
                    self.sizes.extend(own)
            counts = (np.fromiter(map(sum, sizes), dtype=np.int64, count=len(sizes)), sentences, places)
        for column, values in zip(self.counts, counts, strict=False):
            np.frombuffer(column, dtype=np.int32)[codes] = values


# bytes of a document from which looking at all of them at once is faster than to search for blanks
LONG = 256


def count_plain(texts: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray] | None:
    """(tokens, sentences) of documents without an empty piece; None where one has some.

    >>> [counts.tolist() for counts in count_plain([b"one two .\\nthree four", b"five"])]
    [[5, 1], [2, 1]]
    """
    # documents stand apart by line ends: a document that is empty, begins or ends with a blank makes two in a row
    letters = np.frombuffer(b"\n".join([b"", *texts, b""]), dtype=np.uint8)
    line_end = letters == 10
    between = line_end | (letters == 32)
    if (between[1:] & between[:-1]).any():
        return None
    n = len(texts)
    if letters.size > LONG * n:  # long documents are counted where they are marked
        ends = np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=n) + 1)
        blocks = [slice(end - len(text), end) for text, end in zip(texts, ends.tolist(), strict=True)]
        tokens, sentences = (
            np.array([np.count_nonzero(marks[block]) for block in blocks], dtype=np.int64) + 1
            for marks in (between, line_end)
        )
        return tokens, sentences
    sentences = np.ones(n, dtype=np.int64)
    if np.count_nonzero(line_end) > n + 1:
        sentences += np.fromiter((text.count(b"\n") for text in texts), dtype=np.int64, count=n)
    return np.fromiter((text.count(b" ") for text in texts), dtype=np.int64, count=n) + sentences, sentences


def _copied(values: array) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def with_documents(references: References, documents: CorpusDocuments) -> References:
    """The references (changed) with all documents of the corpus that are known, every annotation's."""
    documents.read()
    known = np.flatnonzero(documents.tokens >= 0)
    references.docids = documents.docs  # type: ignore[assignment]
    references.document, references.document_instance = known, np.full(known.size, -1, dtype=np.int64)
    references.tokens, references.sentences = documents.tokens[known], documents.sentences[known]
    references.first_sentence, references.sentence_tokens = documents.first_sentence[known], documents.sentence_tokens
    return references
