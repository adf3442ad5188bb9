"""A released corpus, as far as scoring needs it: annotations as flat arrays, documents as counts of tokens."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from eraser_hub.errors import MOST_SHOWN, DataError, DataErrors
from eraser_hub.metrics.inputs import Offences, ReferenceFlattener, References, found
from eraser_hub.splits import release_split


def lines_of(path: Path, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
    """The lines of a file, or of its bytes [start, stop), read as they are asked for."""
    try:
        with open(path, "rb") as file:
            if start:
                file.seek(start)
            at = start
            for line in file:
                if stop is not None and at >= stop:
                    return
                at += len(line)
                yield line
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from None


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


def raise_offences(offences: Offences, places: dict[str, tuple[Path, Any]], names: dict[str, list[str]]) -> None:
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
            raise DataError(f"expected an object, found {found(row)}", file=path, line=number)
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


# bytes from which looking at all of them at once is worth its start
LONG = 512


def count_bytes(data: bytes) -> tuple[int, int]:
    """(tokens, sentences) of a document's UTF-8 bytes; see `inputs.count_tokens` for the rule.

    >>> count_bytes(b"one two .\\nthree  four")
    (5, 2)
    """
    if not data:
        return 0, 0
    if len(data) > LONG and data[0] not in b" \n" and data[-1] not in b" \n":
        letters = np.frombuffer(data, dtype=np.uint8)
        ends = letters == 10
        between = ends | (letters == 32)
        if not (between[1:] & between[:-1]).any():
            return int(np.count_nonzero(between)) + 1, int(np.count_nonzero(ends)) + 1
    blanks, lines = data.count(b" "), data.count(b"\n")
    if (
        b"  " not in data
        and data[0] not in b" \n"
        and data[-1] not in b" \n"
        and (not lines or (b"\n\n" not in data and b" \n" not in data and b"\n " not in data))
    ):
        return blanks + lines + 1, lines + 1
    tokens = [sum(1 for piece in line.split(b" ") if piece) for line in data.split(b"\n")]
    return sum(tokens), sum(1 for count in tokens if count)


class CorpusDocuments:
    """Token and sentence counts of a corpus' documents, read when first asked for.

    Args:
        data_dir: the corpus folder, with ``docs/`` (one file a document) or ``docs.jsonl``.
        docs: the vocabulary of docids, which others add to.
    """

    def __init__(self, data_dir: Path, docs: dict[str, int]) -> None:
        self.folder, self.lines, self.docs = data_dir / "docs", data_dir / "docs.jsonl", docs
        self.tokens, self.sentences = array("q"), array("q")
        self.whole = False
        self.known: tuple[np.ndarray, np.ndarray] = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
        if not self.folder.is_dir() and not self.lines.is_file():
            raise DataError("expected the documents in docs/ or docs.jsonl, found neither", file=data_dir)

    def lengths(self) -> tuple[np.ndarray, np.ndarray]:
        """(tokens, sentences) of every document of the vocabulary; -1 for one that does not exist."""
        if self.lines.is_file():
            if not self.whole:
                self._read_lines()
            self._extend()
        else:
            first = len(self.tokens)
            self._extend()
            folder = str(self.folder)
            for code, docid in enumerate(islice(self.docs, first, None), first):
                # a docid is a file's name: it never leads out of the folder
                if not docid or "/" in docid or "\0" in docid or docid in (".", ".."):
                    continue
                try:
                    with open(f"{folder}/{docid}", "rb") as file:
                        data = file.read()
                except OSError:
                    continue
                self.tokens[code], self.sentences[code] = count_bytes(data)
        if self.known[0].size != len(self.tokens):
            self.known = np.array(self.tokens), np.array(self.sentences)
        return self.known

    def _extend(self) -> None:
        missing = len(self.docs) - len(self.tokens)
        self.tokens.extend([-1] * missing)
        self.sentences.extend([-1] * missing)

    def _read_lines(self) -> None:
        self._extend()
        docs, tokens, sentences, loads = self.docs, self.tokens, self.sentences, orjson.loads
        for number, line in enumerate(lines_of(self.lines), 1):
            if not line.strip():
                continue
            try:
                record = loads(line)
                docid, text = record["docid"], record["document"]
                both = count_bytes(text.encode())
            except ValueError as error:
                raise DataError(said(error, line), file=self.lines, line=number) from None
            except (TypeError, KeyError, AttributeError):
                raise DataError(
                    f"expected docid and document (a text), found {found(line)}", file=self.lines, line=number
                ) from None
            code = docs.setdefault(docid if type(docid) is str else str(docid), len(docs))
            if code == len(tokens):
                tokens.append(both[0])
                sentences.append(both[1])
            else:
                tokens[code], sentences[code] = both
        self.whole = True


def with_documents(references: References, docs: dict[str, int], lengths: tuple[np.ndarray, np.ndarray]) -> References:
    """The references (changed) with all documents of the vocabulary that exist, every annotation's."""
    known = np.flatnonzero(lengths[0] >= 0)
    references.docids = list(docs)
    references.document, references.document_instance = known, np.full(known.size, -1, dtype=np.int64)
    references.tokens, references.sentences = lengths[0][known], lengths[1][known]
    return references
