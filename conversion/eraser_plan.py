"""The plan of a conversion: which lines of a split file go into which Parquet file, in which order, with which documents.

A first pass over a split file decodes only what the plan needs and keeps some 30 bytes for each line, so that rows of
one document can stand together (which is what makes the Parquet small) although the texts never meet in memory. The
plan depends on the files alone, not on the number of processes: so does every byte that is written.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from eraser_hub.errors import DataError, shown

from .eraser_corpus import DocumentFiles, DocumentLines, SplitFile, read_document_lines
from .eraser_format import RawAnnotation, decode_annotations, document_text
from .eraser_rows import SplitFacts
from .json_lines import batches_of_lines

SHARD_BYTES = 64 << 20
BATCH_BYTES = 8 << 20


class _Evidence(msgspec.Struct, gc=False):
    docid: str


class _Annotation(msgspec.Struct, gc=False):
    annotation_id: str | int
    evidences: list[list[_Evidence]]
    docids: list[str] | UnsetType | None = UNSET
    query_type: str | UnsetType | None = UNSET


_decode = msgspec.json.Decoder(_Annotation).decode
_string = msgspec.json.Decoder(str).decode


@dataclass(frozen=True, slots=True, eq=False)
class SomeDocuments:
    """The documents that a shard needs, where they lie, as something small that travels to another process."""

    path: Path
    names: list[str] | None
    numbers: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray

    def read(self, chosen: np.ndarray) -> list[tuple[str, str]]:
        """(id, text) of each of ``chosen``."""
        if self.names is not None:
            return [(self.names[n], document_text(self.path / self.names[n])) for n in chosen.tolist()]
        return read_document_lines(self.path, self.starts[chosen], self.sizes[chosen])


def some_documents(index: DocumentFiles | DocumentLines, chosen: np.ndarray) -> SomeDocuments:
    """Those of an index that ``chosen`` numbers."""
    empty = np.zeros(0, np.int64)
    if isinstance(index, DocumentFiles):
        return SomeDocuments(index.path, [index.names[n] for n in chosen.tolist()], chosen, empty, index.sizes[chosen])
    return SomeDocuments(index.path, None, chosen, index.starts[chosen], index.sizes[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """The rows of one Parquet file: for each, its line (number, place, length) and its documents (numbers into
    ``some``), and where one batch ends and the next begins."""

    path: Path
    double: bool
    lines: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    offsets: np.ndarray
    documents: np.ndarray
    some: SomeDocuments
    batches: list[int]


@dataclass(frozen=True, slots=True, eq=False)
class SplitPlan:
    """A split file's shards, its facts, and the order in which its rows first name each document."""

    file: SplitFile
    facts: SplitFacts
    lines: int
    shards: list[Shard]
    order: np.ndarray


def plan_split(
    file: SplitFile,
    index: DocumentFiles | DocumentLines,
    *,
    inclusive: bool,
    advance: Callable[[int], None] = lambda _: None,
) -> SplitPlan:
    """Read a split file once and plan its conversion.

    Raises:
        DataError: a line that is no record, a document that does not exist, an id that stands twice.
    """
    starts, sizes, offsets, documents = array("q"), array("q"), array("q", [0]), array("i")
    hashes = array("q")
    lists = nulls = without_type = whole_numbers = 0
    for batch in batches_of_lines(file.path):
        records = _records(batch.lines, file, batch.numbers)
        length = np.fromiter(map(len, batch.lines), np.int64, len(batch.lines))
        ends = np.cumsum(length + 1) + batch.start
        sizes.frombytes(length.tobytes())
        starts.frombytes((ends - length - 1).tobytes())
        wanted: list[str] = []
        lengths: list[int] = []
        integers = 0
        for record in records:
            docids = record.docids
            if docids.__class__ is list:
                lists += 1
            elif docids is None:
                nulls += 1
            if record.query_type is UNSET:
                without_type += 1
            if record.annotation_id.__class__ is int:
                integers += 1
            names = document_ids(record) or named_by_id(str(record.annotation_id), index)
            wanted += names
            lengths.append(len(names))
        if integers:
            whole_numbers += integers
            hashes.extend([hash(str(record.annotation_id)) for record in records])
        else:
            hashes.extend([hash(record.annotation_id) for record in records])
        numbers = index.find(wanted)
        if len(numbers) and numbers.min() < 0:
            _refuse_missing(file, batch.numbers, records, lengths, wanted, int((numbers < 0).argmax()), index)
        documents.frombytes(numbers.astype(np.int32).tobytes())
        base = offsets[-1]
        offsets.frombytes((base + np.cumsum(lengths, dtype=np.int64)).tobytes())
        advance(int(ends[-1]) - batch.start)
    _refuse_repeated(file, np.frombuffer(hashes, np.int64), starts, sizes)
    count = len(starts)
    # what most records do is the split's fact; those that do otherwise are kept as exceptions
    states = {"absent": count - lists - nulls, "null": nulls, "list": lists}
    facts = SplitFacts(
        ids="integer" if 2 * whole_numbers > count else "string",
        docids=max(states, key=lambda state: states[state]),
        query_type="absent" if 2 * without_type > count else "present",
        sentence_ends="inclusive" if inclusive else "exclusive",
    )
    return _arranged(
        file,
        facts,
        index,
        np.frombuffer(starts, np.int64),
        np.frombuffer(sizes, np.int64),
        np.frombuffer(offsets, np.int64),
        np.frombuffer(documents, np.int32) if documents else np.zeros(0, np.int32),
    )


def _records(lines: list[bytes], file: SplitFile, numbers: range) -> list[Any]:
    try:
        if file.double:
            return [_decode(_string(line).encode()) for line in lines]
        return [_decode(line) for line in lines]
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        return decode_annotations(lines, file=file.path, numbers=numbers, double=file.double, extras={})


def document_ids(record: _Annotation | RawAnnotation) -> list[str]:
    """docids, then those of the evidences, each once."""
    names = record.docids if record.docids.__class__ is list else []
    for group in record.evidences:
        for evidence in group:
            if evidence.docid not in names:  # type: ignore[operator]
                return list(dict.fromkeys([*names, *[each.docid for group in record.evidences for each in group]]))  # type: ignore[misc]
    return names if len(names) < 2 or len(set(names)) == len(names) else list(dict.fromkeys(names))  # type: ignore[arg-type,return-value]


def named_by_id(identity: str, index: DocumentFiles | DocumentLines) -> list[str]:
    """The document of a record that names none (no docids, no evidences): the one that has its id (movies' posR_161),
    or whose id its own begins with (multirc's ``DOCID:QUESTION:ANSWER``); none where there is no such document."""
    for candidate in (identity, identity.rsplit(":", 2)[0]):
        number = index.find([candidate])
        # the index answers by hash: look whether it is that document
        if number[0] >= 0 and index.read(number)[0][0] == candidate:
            return [candidate]
    return []


def _refuse_missing(
    file: SplitFile,
    numbers: range,
    records: list[Any],
    lengths: list[int],
    wanted: list[str],
    at: int,
    index: DocumentFiles | DocumentLines,
) -> None:
    row = int(np.searchsorted(np.cumsum(lengths), at, side="right"))
    record, docid = records[row], wanted[at]
    path = "docids" if isinstance(record.docids, list) and docid in record.docids else "evidences"
    if path == "evidences":
        for g, group in enumerate(record.evidences):
            for e, evidence in enumerate(group):
                if evidence.docid == docid and path == "evidences":
                    path = f"evidences[{g}][{e}].docid"
    raise DataError(
        f"expected a document of {index.path}, found {shown(docid)}, which is not there",
        file=file.path,
        line=numbers[row],
        instance=record.annotation_id,
        field=path,
    )


def _refuse_repeated(file: SplitFile, hashes: np.ndarray, starts: array[int], sizes: array[int]) -> None:
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(hashes[order][1:] == hashes[order][:-1])
    if not len(same):
        return
    later, earlier = min((int(order[i + 1]), int(order[i])) for i in same)
    with file.path.open("rb") as handle:
        found = []
        for row in (earlier, later):
            handle.seek(starts[row])
            found.append(_records([handle.read(sizes[row])], file, range(row + 1, row + 2))[0].annotation_id)
    if str(found[0]) == str(found[1]):
        raise DataError(
            f"expected each annotation id once, found {shown(found[1])} again (first on line {earlier + 1})",
            file=file.path,
            line=later + 1,
            instance=found[1],
            field="annotation_id",
        )


def _arranged(
    file: SplitFile,
    facts: SplitFacts,
    index: DocumentFiles | DocumentLines,
    starts: np.ndarray,
    sizes: np.ndarray,
    offsets: np.ndarray,
    documents: np.ndarray,
) -> SplitPlan:
    count = len(starts)
    lengths = np.diff(offsets)
    # rows of one (first) document stand together, in the order in which the file first names the documents
    first = np.full(count, -1, np.int64)
    some = lengths > 0
    first[some] = documents[offsets[:-1][some]]
    _, where, group = np.unique(first, return_index=True, return_inverse=True)
    order = np.argsort(where[group], kind="stable")
    # bytes of each row, as an estimate: its line and its documents
    running = np.concatenate([[0], np.cumsum(index.sizes[documents])])
    weight = (sizes + running[offsets[1:]] - running[offsets[:-1]])[order]
    shards: list[Shard] = []
    for begin, end in _cuts(weight, SHARD_BYTES):
        rows = order[begin:end]
        chosen, local = np.unique(documents[_ranges(offsets[rows], lengths[rows])], return_inverse=True)
        cuts = [0, *(cut for _, cut in _cuts(weight[begin:end], BATCH_BYTES))]
        shards.append(
            Shard(
                file.path,
                file.double,
                (rows + 1).astype(np.int32),
                starts[rows],
                sizes[rows],
                np.concatenate([[0], np.cumsum(lengths[rows])]),
                local.astype(np.int64),
                some_documents(index, chosen.astype(np.int64)),
                cuts,
            )
        )
    named = documents[_ranges(offsets[order], lengths[order])]
    _, once = np.unique(named, return_index=True)
    return SplitPlan(file, facts, count, shards, named[np.sort(once)])


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The numbers ``start, start + 1, ..`` of each range, one range after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def _cuts(weight: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Runs of rows of about ``most`` bytes each, none empty."""
    if not len(weight):
        return []
    total = np.cumsum(weight)
    pieces = max(1, round(float(total[-1]) / most))
    goals = total[-1] * np.arange(1, pieces) / pieces
    inner = np.unique(np.searchsorted(total, goals) + 1)
    edges = [0, *(int(edge) for edge in inner if edge < len(weight)), len(weight)]
    return list(pairwise(edges))
