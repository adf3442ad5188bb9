"""Identity of gold data: a digest of one split, equal for raw folders, built folders and Datasets with the same data.

The digest is the SHA-256 of lines of JSON in UTF-8 (no spaces, no escapes beyond those that JSON needs)::

    ["eraser-hub-data-1", kind, [label name, ..]]
    one line per annotation, sorted by the bytes of its id:
      eraser            [id, query, label name, [docid, ..], [[[docid, start_token, end_token, start_sentence,
                        end_sentence (exclusive)], ..], ..]]
      perturbation      [id, sample_type, rel_ids, answer or label name, [text, ..], [[token, ..], ..], rationale_ids];
                        the texts are those of title, context, question, sentence1, sentence2 that are not null
      human_rationales  [id, label name, [token, ..], [true or false, ..]]
    eraser only, one line per document of a row, sorted: [docid, SHA-256 of its text in hexadecimal digits]

A missing value is null. The digest does not depend on the order of rows, on file names, on derived columns or on
settings of Parquet.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import compress, pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = "eraser-hub-data-1"
SHOWN_DIGITS = 12
BLOCK = 1024
SENTENCES = ("start_sentence", "end_sentence")
_BEFORE_QUOTE = re.compile(r'[\x00-"\\]')  # characters that sort before the end of a string, or are escaped
TEXT_COLUMNS = ("title", "context", "question", "sentence1", "sentence2")  # of the perturbation benchmark


def to_json_lines(values: Sequence[object]) -> bytes:
    """Return values as lines of JSON without spaces, in UTF-8."""
    lines = [json.dumps(value, ensure_ascii=False, separators=(",", ":")) for value in values]
    return "\n".join([*lines, ""]).encode()


def shorten_digest(digest: str) -> str:
    """Return the digits of a digest that signatures and tables show; "none" if there is no digest."""
    return digest[:SHOWN_DIGITS] or "none"


class DataDigest:
    """Digest of a split under construction; rows come in any order.

    Args:
        kind: ``eraser``, ``perturbation`` or ``human_rationales``.
        to_lines: encoder with the bytes of `to_json_lines`; another one may be faster.

    Attributes:
        rows: annotations in the form of the kind's line; the first value of each is the id, a string.
        documents: documents of rows, each once, in the form of their lines; `add_documents` takes their place.
    """

    def __init__(self, kind: str, to_lines: Callable[[Sequence[object]], bytes] = to_json_lines) -> None:
        self.kind, self.rows, self.documents = kind, KeyedLines(to_lines), KeyedLines(to_lines)
        self._known: dict[str, str] = {}

    def add_documents(self, documents: Iterable[tuple[str, str]]) -> None:
        """Add documents of rows: (docid, SHA-256 of the text in hexadecimal digits); repeats count once."""
        self._known.update(documents)

    def hexdigest(self, label_names: Sequence[str]) -> str:
        """Return the digest."""
        to_lines, known = self.rows.to_lines, list(self._known.items())
        digest = hashlib.sha256(to_lines([[VERSION, self.kind, list(label_names)]]))
        documents = KeyedLines(to_lines) if known else self.documents
        for start in range(0, len(known), BLOCK):
            documents.add(known[start : start + BLOCK])  # few objects: garbage collection walks through them
        for lines in (self.rows, documents):
            digest.update(b"\n".join([*lines.sort(), b""]))
        return digest.hexdigest()


@dataclass
class KeyedLines:
    """Lines of JSON, one per value; a value is a list whose first item, a string, is its key.

    Attributes:
        to_lines: as of `DataDigest`.
        lines: the lines.
        keys: the key of each.
        plain: no key has a character that sorts before a quotation mark, or is escaped.
    """

    to_lines: Callable[[Sequence[object]], bytes] = to_json_lines
    lines: list[bytes] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    plain: bool = True

    def add(self, values: Iterable[Sequence[Any]]) -> None:
        """Add values."""
        values = list(values)
        self.lines += self.to_lines(values).split(b"\n")[:-1]  # JSON escapes the newlines of strings
        keys = [value[0] for value in values]
        self.keys += keys
        self.plain = self.plain and not _BEFORE_QUOTE.search("".join(keys))

    def select(self, chosen: Sequence[bool]) -> KeyedLines:
        """Return the lines that ``chosen`` marks, a flag per line."""
        lines, keys = compress(self.lines, chosen), compress(self.keys, chosen)
        return KeyedLines(self.to_lines, list(lines), list(keys), self.plain)

    def sort(self) -> list[bytes]:
        """Return the lines in the order of the keys' bytes."""
        if self.plain:  # a key's end is a quotation mark, which sorts before all characters of the keys
            return sorted(self.lines)
        order = sorted(range(len(self.lines)), key=self.keys.__getitem__)  # code points sort as their UTF-8
        return list(map(self.lines.__getitem__, order))


def nest(values: Sequence[Any], *offsets: Sequence[int]) -> Sequence[Any]:
    """Return flat values as nested lists; ``offsets`` come from the innermost lists to the outermost.

    >>> nest("abc", [0, 2, 2, 3])
    ['ab', '', 'c']
    """
    for bounds in offsets:
        values = [values[start:end] for start, end in pairwise(bounds)]
    return values


def add_eraser_rows(digest: DataDigest, rows: Iterable[Mapping[str, Any]], label_names: Sequence[str]) -> None:
    """Add rows of ``eraser`` in plain values; classes are numbers or names.

    Raises:
        KeyError, TypeError: a row lacks a column that the digest needs.
    """
    for row in rows:
        docids = [str(document["docid"]) for document in row["documents"]]
        groups = [
            [
                [str(one["docid"]), int(one["start_token"]), int(one["end_token"]), *(int(one[at]) for at in SENTENCES)]
                for one in group
            ]
            for group in row["evidences"]
        ]
        label = get_label(row["classification"], label_names)
        digest.rows.add([(str(row["annotation_id"]), row["query"], label, docids, groups)])
        digest.add_documents(
            (docid, hashlib.sha256(document["text"].encode()).hexdigest())
            for docid, document in zip(docids, row["documents"], strict=True)
        )


def add_eraser_table(digest: DataDigest, table: pa.Table, label_names: Sequence[str]) -> None:
    """Add rows of ``eraser`` in Arrow; texts may be dictionaries.

    Raises:
        KeyError: the table lacks a column that the digest needs.
    """
    documents, groups = (table[name].combine_chunks() for name in ("documents", "evidences"))
    texts = documents.flatten()
    docids = _decode(texts.field("docid")).to_pylist()
    members = groups.flatten()
    spans = members.flatten()
    columns = [_decode(spans.field(name)).to_pylist() for name in ("docid", "start_token", "end_token", *SENTENCES)]
    nested = nest(list(zip(*columns, strict=True)), _get_offsets(members), _get_offsets(groups))
    labels = [get_label(label, label_names) for label in table["classification"].to_pylist()]
    ids, queries = (table[name].to_pylist() for name in ("annotation_id", "query"))
    digest.rows.add(zip(ids, queries, labels, nest(docids, _get_offsets(documents)), nested, strict=True))
    first = {docid: row for row, docid in reversed(list(enumerate(docids)))}
    column = _decode(texts.field("text"))
    hashes = [hashlib.sha256(column[row].as_buffer()).hexdigest() for row in first.values()]
    digest.add_documents(zip(first, hashes, strict=True))


def add_pair_rows(digest: DataDigest, rows: Iterable[Mapping[str, Any]], label_names: Sequence[str]) -> None:
    """Add rows of ``bilingual_perturbation`` in plain values; errors as of `add_eraser_rows`."""
    for row in rows:
        answer = row["answer"] if row["answer"] is not None else get_label(row["label"], label_names)
        texts = [row[name] for name in TEXT_COLUMNS if row[name] is not None]
        names = row["id"], row["sample_type"], row["rel_ids"]
        digest.rows.add([(*names, answer, texts, row["tokens"], row["rationale_ids"])])


def add_token_rows(digest: DataDigest, rows: Iterable[Mapping[str, Any]], label_names: Sequence[str]) -> None:
    """Add rows of ``human_rationales`` in plain values; errors as of `add_eraser_rows`."""
    for row in rows:
        label = get_label(row["label"], label_names)
        digest.rows.add([(str(row["id"]), label, row["tokens"], [bool(mark) for mark in row["rationale_mask"]])])


def _get_offsets(lists: pa.ListArray) -> list[int]:
    """Return the offset of each list in `flatten`, from 0."""
    offsets: list[int] = lists.offsets.to_pylist()
    return [offset - offsets[0] for offset in offsets]


def _decode(values: pa.Array) -> pa.Array:
    return values.dictionary_decode() if hasattr(values, "dictionary_decode") else values


ROW_READERS = {"eraser": add_eraser_rows, "perturbation": add_pair_rows, "human_rationales": add_token_rows}


def digest_rows(kind: str, rows: Iterable[Mapping[str, Any]], label_names: Sequence[str]) -> str:
    """Return the digest of rows in plain values; arguments and errors as of the kind's function."""
    digest = DataDigest(kind)
    ROW_READERS[kind](digest, rows, label_names)
    return digest.hexdigest(label_names)


def find_digest(batches: Iterable[Any], label_names: Sequence[str]) -> str:
    """Return the digest of references, in lists of rows or tables; "" if they lack a column."""
    rows = [row for batch in batches for row in (batch if isinstance(batch, list) else batch.to_pylist())]
    if not rows:
        return ""
    kinds = {"evidences": "eraser", "sample_type": "perturbation", "rationale_mask": "human_rationales"}
    kind = next((kind for column, kind in kinds.items() if column in rows[0]), "eraser")
    # rows without a digest can be scored as well
    with suppress(KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        return digest_rows(kind, rows, label_names)
    return ""


def get_label(label: object, label_names: Sequence[str]) -> object:
    """Return the name of a class number; other values are returned unchanged, -1 (no label) as null."""
    if isinstance(label, int) and not isinstance(label, bool):
        return label_names[label] if 0 <= label < len(label_names) else None if label == -1 else label
    return label
