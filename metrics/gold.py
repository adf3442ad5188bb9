"""Gold (annotations) as flat arrays, read from the buffers of an Arrow table and checked."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import DataError, cut, find_similar
from .rows import Row, check, find_fault, row_id, simplify
from .statistics import add_up, find_components
from .tokens import measure_texts

if TYPE_CHECKING:  # a corpus as released is scored without it
    import pyarrow as pa

ENDS = ("start_token", "end_token", "start_sentence", "end_sentence")
GOLD: dict[str, Any] = {
    "annotation_id": (str, int),
    "classification": (str, int),
    "documents": [{"docid": (str, int), "text": str}],
    "evidences": [
        [{"docid": (str, int), "start_token": int, "end_token": int, "start_sentence": int, "end_sentence": int}]
    ],
}


class Documents:
    """Lengths of an annotation's own documents, else of the one document of that name.

    Args:
        docids: the names of documents.
        owner: the annotation of each own document: int (documents,).
        name: its name, as a place in docids: int (documents,).
        sizes: tokens, sentences, and tokens of each sentence, see `tokens.measure_texts`.
    """

    def __init__(self, docids: Sequence[str], owner: np.ndarray, name: np.ndarray, sizes: Any) -> None:
        self.numbers = {docid: number for number, docid in enumerate(docids)}
        self.tokens, self.sentences = sizes.tokens, sizes.sentences
        first = np.cumsum(self.sentences) - self.sentences
        self.places = first, np.append(0, np.cumsum(sizes.sentence_tokens, dtype=np.int64))
        self.width = max(len(self.numbers), 1)
        packed = owner * self.width + name
        self.order = np.argsort(packed, kind="stable")
        self.packed = packed[self.order]
        # by name alone: only where all documents of that name have one length
        by_name = np.lexsort((self.tokens, name))
        names, start, size = np.unique(name[by_name], return_index=True, return_counts=True)
        rows = by_name[start]
        same = self.tokens[rows] == self.tokens[by_name[start + size - 1]]
        self.any_row = np.full(self.width + 1, -1, dtype=np.int64)
        self.any_row[names[same]] = rows[same]

    @property
    def sentence_places(self) -> tuple[np.ndarray, np.ndarray]:
        """The place of each document's first sentence; and the tokens before each sentence of all documents."""
        return self.places

    def number(self, docids: Sequence[str]) -> np.ndarray:
        """Return the number of each document, int64; -1 for an unknown one."""
        return np.array([self.numbers.get(docid, -1) for docid in docids], dtype=np.int64)

    def find(self, annotation: np.ndarray, doc: np.ndarray) -> np.ndarray:
        """Return the place of each (annotation, document) in ``tokens`` and ``sentences``; -1 if there is none."""
        places: np.ndarray = self.any_row[doc]
        if self.packed.size:
            wanted = annotation * self.width + doc
            at = np.minimum(np.searchsorted(self.packed, wanted), self.packed.size - 1)
            own = (self.packed[at] == wanted) & (annotation >= 0) & (doc >= 0)
            places[own] = self.order[at[own]]
        return places

    def lengths(self, annotation: np.ndarray, doc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (tokens, sentences) of each (annotation, document), int64; -1 if there is no such document."""
        places = self.find(annotation, doc)
        if not self.tokens.size:
            return places, places
        return tuple(np.where(places < 0, -1, sizes[places]) for sizes in (self.tokens, self.sentences))  # type: ignore[return-value]

    def sentence_spans(
        self, annotation: np.ndarray, doc: np.ndarray, start: np.ndarray, end: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sentences [first, last) of which each span [start, end) of tokens covers at least one token."""
        first_sentence, reached = self.sentence_places
        first = first_sentence[self.find(annotation, doc)] if first_sentence.size else np.zeros_like(doc)
        before = reached[first]
        low = np.searchsorted(reached, before + start, side="right") - 1 - first
        high = np.searchsorted(reached, before + end, side="left") - first
        return low, np.where(end > start, high, low)


@dataclass
class Gold:
    """Annotations as flat arrays.

    Attributes:
        ids: of the n annotations.
        labels: names of labels.
        label: int (n,) into labels; -1: none.
        docids: names of documents.
        offsets: int64 (n + 1,): the evidences of annotation i are [offsets[i], offsets[i + 1]).
        group: the evidence group of each evidence, numbered over all annotations: int (evidences,).
        doc: the document of each evidence, into docids.
        start, end: its tokens; first, last: its sentences, -1 where they are not known.
        documents: lengths of documents.
        listed: (annotation, document) of each document that an annotation has beside its evidence, for clusters.
        named: the valid labels are known, and are ``labels``.
        lines: the line of each annotation in its file, for errors; ``file``: this file.
    """

    ids: Sequence[str]
    labels: list[str]
    label: np.ndarray
    docids: Sequence[str]
    offsets: np.ndarray
    group: np.ndarray
    doc: np.ndarray
    start: np.ndarray
    end: np.ndarray
    first: np.ndarray
    last: np.ndarray
    documents: Any
    listed: tuple[np.ndarray, np.ndarray]
    named: bool = False
    lines: Sequence[int] | None = None
    file: Any = None

    @cached_property
    def index(self) -> dict[str, int]:
        """The row of each id."""
        return {name: row for row, name in enumerate(self.ids)}

    @property
    def owner(self) -> np.ndarray:
        """The annotation of each evidence: int64 (evidences,)."""
        return np.repeat(np.arange(len(self.ids)), np.diff(self.offsets))

    def error(self, row: int, field: str, message: str) -> DataError:
        """Return the error of an annotation's field."""
        line = None if self.lines is None else self.lines[row]
        return DataError(message, file=self.file, line=line, instance=self.ids[row], field=field)

    def digest(self) -> str:
        """Return the SHA-256 over ids, label names and gold spans, in the order of the ids, whatever their source."""
        labels = [*self.labels, None]
        spans = np.stack([self.owner, self.doc, self.start, self.end], axis=1).reshape(-1, 4).astype(np.int64)
        return digest(self.ids, [labels[code] for code in self.label.tolist()], self.docids, spans)

    def clusters(self) -> np.ndarray | None:
        """Return the cluster of each annotation, those that share documents, also through others: int64 (n,)."""
        owner = np.concatenate([self.listed[0], self.owner])
        return find_components(owner, np.concatenate([self.listed[1], self.doc]), len(self.ids))

    @cached_property
    def evidence_tokens(self) -> np.ndarray:
        """The tokens of each annotation's documents with evidence: float64 (n,)."""
        width = max(len(self.docids), 1)
        owner, doc = np.divmod(np.unique(self.owner * width + self.doc), width)
        return add_up(owner, self.documents.lengths(owner, doc)[0], len(self.ids))

    def check(self) -> None:
        """Raise a `DataError` at the first evidence in an unknown document, reversed, or past the document's end."""
        owner = self.owner
        tokens, sentences = self.documents.lengths(owner, self.doc)
        names = [self.docids[doc] for doc in self.doc.tolist()] if (tokens < 0).any() else []
        check(tokens < 0, self.error, owner, "evidences.docid", "no document {!r}", names)
        order = "expected 0 <= start_token <= end_token, found [{}, {})"
        reversed_ = (self.start < 0) | (self.end < self.start)
        check(reversed_, self.error, owner, "evidences.start_token", order, self.start, self.end)
        past = "expected at most {} (the document's tokens), found {}"
        check(self.end > tokens, self.error, owner, "evidences.end_token", past, tokens, self.end)
        order = "expected sentences of the document's {}, found [{}, {})"
        outside = (self.first >= 0) & (self.last >= 0) & ((self.last < self.first) | (self.last > sentences))
        check(outside, self.error, owner, "evidences.end_sentence", order, sentences, self.first, self.last)


def digest(ids: Sequence[str], labels: Sequence[str | None], docids: Sequence[str], spans: np.ndarray) -> str:
    """Return the SHA-256 of ids, names of labels and gold spans, in the order of the ids.

    Args:
        ids: of the annotations.
        labels: the name of each annotation's label; None: none.
        docids: the names of documents.
        spans: int64 (spans, 4): annotation, place of the document's name, start, end.
    """
    order = np.argsort(np.array(ids, dtype=object), kind="stable")
    used, document = np.unique(spans[:, 1], return_inverse=True)
    names = [docids[place] for place in used.tolist()]
    by_name = np.argsort(np.array(names, dtype=object), kind="stable")
    columns = np.empty(spans.shape, "<i8")
    columns[:, 0], columns[:, 1] = np.argsort(order)[spans[:, 0]], np.argsort(by_name)[document]
    columns[:, 2:] = spans[:, 2:]
    hashed = hashlib.sha256()
    for before, words, places in ((b"[[", ids, order), (b"],[", labels, order), (b"],[", names, by_name)):
        hashed.update(before)
        for start in range(0, len(places), 1 << 14):  # the text of a large corpus is never in memory as a whole
            block = [words[place] for place in places[start : start + (1 << 14)].tolist()]
            text = json.dumps(block, ensure_ascii=False, separators=(",", ":"))[1:-1]
            hashed.update((f",{text}" if start else text).encode("utf-8", "surrogatepass"))
    hashed.update(b"]]")
    hashed.update(columns[np.lexsort(columns.T[::-1])].tobytes())
    return hashed.hexdigest()


def read_gold(data: Any, label_names: Sequence[str] | None = None, required: Sequence[str] = ()) -> Gold:
    """Return annotations as flat arrays, checked.

    Args:
        data: an Arrow table, or rows: annotation_id, classification, documents, evidences.
        label_names: the labels; names of numbers in ``classification``.
        required: columns that must be there.

    Raises:
        DataError: a field of another type, an id twice, an evidence outside its document, a label without a name.
    """
    import pyarrow as pa

    string, integer = pa.string(), pa.int64()
    types = {
        "annotation_id": string,
        "documents": pa.list_(pa.struct([("docid", string), ("text", pa.large_string())])),
        "evidences": pa.list_(pa.list_(pa.struct([("docid", string), *((end, integer) for end in ENDS)]))),
    }
    table = data if isinstance(data, pa.Table) else _make_table(data, types)
    if not table.num_rows:
        raise DataError("expected at least one row, found none", argument="references")
    for name in required:
        if name not in table.column_names or pa.types.is_null(table.column(name).type):
            raise DataError("expected this column in the references, found none", field=name)
    id_column, texts, groups = (_get_column(table, name, kind) for name, kind in types.items())
    ids = id_column.to_pylist()
    twice = [name for name, count in Counter(ids).items() if count > 1] if len(set(ids)) < len(ids) else []
    if twice:
        more = f" (and {len(twice) - 1:,} more)" if len(twice) > 1 else ""
        raise DataError(f"expected each id once, found it again{more}", instance=twice[0], field="annotation_id")
    (owner, documents), (group_owner, members) = _flatten(texts), _flatten(groups)
    group, evidences = _flatten(members)
    coded = pa.concat_arrays([documents.field("docid"), evidences.field("docid")]).dictionary_encode()
    docids, place = coded.dictionary.to_pylist(), read_integers(coded.indices, -1)
    document, doc = place[: len(documents)], place[len(documents) :]
    repeated = np.unique(owner * (len(docids) + 1) + document, return_index=True)[1]
    if repeated.size < owner.size:
        at = int(np.setdiff1d(np.arange(owner.size), repeated)[0])
        message = f"expected each document once, found {docids[document[at]]!r} again"
        raise DataError(message, instance=ids[owner[at]], field="documents")
    labels, label = _read_labels(table, list(label_names or ()), ids)
    start, end, first, last = (read_integers(evidences.field(name), -1) for name in ENDS)
    gold = Gold(
        ids,
        labels,
        label,
        docids,
        np.append(0, np.cumsum(np.bincount(group_owner[group], minlength=len(ids)))).astype(np.int64),
        group,
        doc,
        start,
        end,
        first,
        last,
        documents=Documents(docids, owner, document, _measure_documents(documents.field("text"))),
        listed=(owner, document),
        named=bool(label_names),
    )
    gold.check()
    return gold


def _make_table(rows: Sequence[Row], types: dict[str, pa.DataType]) -> pa.Table:
    """Return rows as a table, without the columns that no row has."""
    import pyarrow as pa

    plain = []
    for number, row in enumerate(map(simplify, rows)):
        name = row_id(row)
        cells = {**row, "annotation_id": name} if isinstance(row, Mapping) else row
        if fault := find_fault(cells, GOLD):
            field = fault[0] if name else f"references[{number}].{fault[0]}".rstrip(".")
            raise DataError(fault[1], instance=name, field=field)
        for part in chain(cells.get("documents", ()), *cells.get("evidences", ())):
            part["docid"] = str(part["docid"])
        plain.append(cells)
    labels = [row.get("classification") for row in plain]
    if set(map(type, labels)) >= {int, str}:
        labels = [None if label is None else str(label) for label in labels]
    there = set(chain.from_iterable(plain))
    table = pa.Table.from_pylist(plain, pa.schema([(name, kind) for name, kind in types.items() if name in there]))
    return table.append_column("classification", pa.array(labels)) if rows else table


def _get_column(table: pa.Table, name: str, kind: pa.DataType) -> pa.Array:
    """Return a column in one piece and of this type; nulls where the table lacks it, or fields of it."""
    import pyarrow as pa

    if name not in table.column_names:
        return pa.nulls(table.num_rows, kind)
    try:
        column = table.column(name).cast(kind).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise DataError(f"expected {kind}, found {table.column(name).type}", field=name) from error
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column


def read_integers(values: pa.Array, missing: int) -> np.ndarray:
    """Return int64, ``missing`` for null; out of the buffers, since Arrow's `to_numpy` loads pandas."""
    import pyarrow as pa

    values = values.cast(pa.int64())
    validity, data = values.buffers()
    numbers = np.frombuffer(data, np.int64)[values.offset :][: len(values)]
    if not values.null_count:
        return numbers
    bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
    return np.where(bits[values.offset :][: len(values)], numbers, missing)


def _flatten(lists: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Return (list, item) of all items of lists: int64 (items,), and the items; a null list has none."""
    sizes = read_integers(lists.value_lengths(), 0)
    return np.repeat(np.arange(len(lists)), sizes), lists.flatten()


def _read_labels(table: pa.Table, names: list[str], ids: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Return the labels, and the label of each row: int64 (n,), -1 where it has none."""
    import pyarrow as pa

    if "classification" not in table.column_names or pa.types.is_null(table.column("classification").type):
        return names, np.full(len(ids), -1)
    column, path = table.column("classification").combine_chunks(), "classification"

    def describe(row: int, field: str, message: str) -> DataError:
        return DataError(message, instance=ids[row], field=field)

    if pa.types.is_integer(column.type):
        codes = read_integers(column, -1)
        expected = f"a number from 0 to {len(names) - 1}" if names else "labels (numbers need `label_names`)"
        bad = (codes < -1) | (codes >= len(names))
        check(bad, describe, None, path, f"expected {expected}, found {{}}", codes)
        return names, codes
    coded = column.cast(pa.string()).dictionary_encode()
    found = coded.dictionary.to_pylist()
    labels = names or found
    places, place = {label: code for code, label in enumerate(labels)}, read_integers(coded.indices, -1)
    codes = np.array([*(places.get(label, -2) for label in found), -1])[place]
    strange = {at: describe_label(found[at], labels) for at in np.unique(place[codes == -2]).tolist()}
    check(codes == -2, describe, None, path, "{}", [strange.get(at) for at in place.tolist()] if strange else ())
    return labels, codes


def describe_label(label: str, labels: Sequence[str]) -> str:
    """Return the message for a label that is none of the labels, with the one that it may stand for."""
    lower = {name.lower(): name for name in labels}
    near = lower.get(find_similar(label.lower(), lower) or "")
    return f"expected one of {', '.join(labels)}, found {cut(label)}" + (f": did you mean {near!r}?" if near else "")


def _measure_documents(texts: pa.Array) -> Any:
    """Return the sizes of texts, see `tokens.measure_texts`, from their buffers."""
    if texts.null_count:
        raise DataError("expected a text in every document, found none", field="documents.text")
    offsets = np.frombuffer(texts.buffers()[1] or b"\0" * 8, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    content = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    return measure_texts(content[offsets[0] : offsets[-1]] if len(texts) else content[:0], np.diff(offsets))
