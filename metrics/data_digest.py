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
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = "eraser-hub-data-1"
SHOWN_DIGITS = 12
SPOOLED_BYTES = 1 << 26  # lines beyond these wait in a temporary file
SENTENCES = ("start_sentence", "end_sentence")
TEXT_COLUMNS = ("title", "context", "question", "sentence1", "sentence2")  # of the perturbation benchmark


def to_json_line(value: object) -> bytes:
    """Return a value as JSON without spaces, in UTF-8."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def shorten_digest(digest: str) -> str:
    """Return the digits of a digest that signatures and tables show; "none" if there is no digest."""
    return digest[:SHOWN_DIGITS] or "none"


class DataDigest:
    """Digest of a split under construction; rows come in any order.

    Args:
        kind: ``eraser``, ``perturbation`` or ``human_rationales``.
        dumps: JSON encoder with the bytes of `to_json_line`; another one may be faster.
    """

    def __init__(self, kind: str, dumps: Callable[[object], bytes] = to_json_line) -> None:
        self.kind, self._dumps = kind, dumps
        self.ids: list[str] = []
        self._ends = [0]
        self._lines = SpooledTemporaryFile(max_size=SPOOLED_BYTES)  # noqa: SIM115 - closed by `hexdigest`
        self._documents: set[tuple[str, bytes]] = set()

    def add(self, rows: Iterable[Sequence[object]]) -> None:
        """Add annotations in the form of the kind's line; the first value of each is the id, a string."""
        lines, end = list[bytes](), self._ends[-1]
        for row in rows:
            line = self._dumps(row)
            lines.append(line)
            end += len(line) + 1
            self._ends.append(end)
            self.ids.append(str(row[0]))
        if lines:
            self._lines.write(b"\n".join([*lines, b""]))

    def add_documents(self, documents: Iterable[tuple[str, bytes]]) -> None:
        """Add documents of rows that were added: (docid, SHA-256 of the text as 32 bytes); repeats count once."""
        self._documents.update(documents)

    def hexdigest(self, label_names: Sequence[str]) -> str:
        """Return the digest; nothing may be added later."""
        digest = hashlib.sha256(self._dumps([VERSION, self.kind, list(label_names)]) + b"\n")
        order = sorted(range(len(self.ids)), key=self.ids.__getitem__)  # code points sort as their bytes in UTF-8
        with self._lines as file:
            if order == list(range(len(order))):
                file.seek(0)
                while block := file.read(1 << 20):
                    digest.update(block)
            else:
                for row in order:
                    file.seek(self._ends[row])
                    digest.update(file.read(self._ends[row + 1] - self._ends[row]))
        for docid, text in sorted(self._documents):
            digest.update(self._dumps([docid, text.hex()]) + b"\n")
        return digest.hexdigest()


def nest(values: Sequence[Any], *offsets: Sequence[int]) -> Sequence[Any]:
    """Return flat values as nested lists; ``offsets`` come from the innermost lists to the outermost.

    >>> nest("abc", [0, 2, 2, 3])
    ['ab', '', 'c']
    """
    for bounds in offsets:
        values = [values[start:end] for start, end in pairwise(bounds)]
    return values


def add_eraser_rows(digest: DataDigest, rows: Sequence[Mapping[str, Any]], label_names: Sequence[str]) -> None:
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
        digest.add([(str(row["annotation_id"]), row["query"], label, docids, groups)])
        digest.add_documents(
            (docid, hashlib.sha256(document["text"].encode()).digest())
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
    digest.add(zip(ids, queries, labels, nest(docids, _get_offsets(documents)), nested, strict=True))
    first = {docid: row for row, docid in reversed(list(enumerate(docids)))}
    column = _decode(texts.field("text"))
    hashes = [hashlib.sha256(column[row].as_buffer()).digest() for row in first.values()]
    digest.add_documents(zip(first, hashes, strict=True))


def add_pair_rows(digest: DataDigest, rows: Iterable[Mapping[str, Any]], label_names: Sequence[str]) -> None:
    """Add rows of ``bilingual_perturbation`` in plain values; errors as of `add_eraser_rows`."""
    for row in rows:
        answer = row["answer"] if row["answer"] is not None else get_label(row["label"], label_names)
        texts = [row[name] for name in TEXT_COLUMNS if row[name] is not None]
        names = row["id"], row["sample_type"], row["rel_ids"]
        digest.add([(*names, answer, texts, row["tokens"], row["rationale_ids"])])


def add_token_rows(digest: DataDigest, rows: Iterable[Mapping[str, Any]], label_names: Sequence[str]) -> None:
    """Add rows of ``human_rationales`` in plain values; errors as of `add_eraser_rows`."""
    for row in rows:
        label = get_label(row["label"], label_names)
        digest.add([(str(row["id"]), label, row["tokens"], [bool(mark) for mark in row["rationale_mask"]])])


def _get_offsets(lists: pa.ListArray) -> list[int]:
    """Return the offset of each list in `flatten`, from 0."""
    offsets: list[int] = lists.offsets.to_pylist()
    return [offset - offsets[0] for offset in offsets]


def _decode(values: pa.Array) -> pa.Array:
    return values.dictionary_decode() if hasattr(values, "dictionary_decode") else values


def get_label(label: object, label_names: Sequence[str]) -> object:
    """Return the name of a class number; other values are returned unchanged, -1 (no label) as null."""
    if isinstance(label, int) and not isinstance(label, bool):
        return label_names[label] if 0 <= label < len(label_names) else None if label == -1 else label
    return label
