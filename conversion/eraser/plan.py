"""The plan of a conversion: which lines of a split file go into which Parquet file, in which order, with which documents.

Rows of one document stand together, which is what makes the Parquet small. The plan depends on the files alone, not on the
number of processes: so does every byte that is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from eraser_hub.conversion.arrays import distinct, first_places, in_first_order, ranges
from eraser_hub.records.errors import DataError, shown

from .columns import DOCIDS_LIST, DOCIDS_NULL, TYPE_ABSENT, WHOLE_NUMBER
from .corpus import DocumentFiles, DocumentLines, SomeFiles, SplitFile, hashes_of, repeated
from .lines import SplitLines
from .rows import SplitFacts

SHARD_BYTES = 64 << 20
BATCH_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """The rows of one Parquet file.

    Attributes:
        lines: the split file's records.
        rows: int32, which of them, in order.
        batches: where one row group ends and the next begins.
        documents: the documents that they need.
        shared: whether rows share documents, so that each text is worth storing once in a row group.
        bytes: about how many the rows hold.
    """

    lines: SplitLines
    rows: np.ndarray
    batches: list[int]
    documents: SomeFiles | DocumentLines
    shared: bool
    bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class SplitPlan:
    """A split file's shards, its facts, its records, and the order in which its rows first name each document."""

    file: SplitFile
    facts: SplitFacts
    records: SplitLines
    shards: list[Shard]
    order: np.ndarray

    @property
    def lines(self) -> int:
        """The number of records, a line each."""
        return len(self.records)


def plan_split(
    file: SplitFile, lines: SplitLines, documents: DocumentFiles | DocumentLines, *, inclusive: bool
) -> SplitPlan:
    """Plan the conversion of a split file that has been read.

    Raises:
        DataError: an annotation id that stands twice.
    """
    _refuse_repeated(file, lines)
    count = len(lines)
    # what most records do is the split's fact; those that do otherwise are kept as exceptions
    lists = int(np.count_nonzero(lines.states & DOCIDS_LIST))
    nulls = int(np.count_nonzero(lines.states & DOCIDS_NULL))
    states = {"absent": count - lists - nulls, "null": nulls, "list": lists}
    facts = SplitFacts(
        ids="integer" if 2 * np.count_nonzero(lines.states & WHOLE_NUMBER) > count else "string",
        docids=max(states, key=lambda state: states[state]),
        query_type="absent" if 2 * np.count_nonzero(lines.states & TYPE_ABSENT) > count else "present",
        sentence_ends="inclusive" if inclusive else "exclusive",
    )
    return _arranged(file, facts, lines, documents)


def _refuse_repeated(file: SplitFile, lines: SplitLines) -> None:
    hashes = hashes_of(lines.ids)
    order = np.argsort(hashes, kind="stable")
    again = repeated(lines.ids, hashes[order], order)
    if again is not None:
        earlier, later, name = again
        identity: Any = int(name) if lines.states[later] & WHOLE_NUMBER else name
        raise DataError(
            f"expected each annotation id once, found {shown(identity)} again (first on line {earlier + 1})",
            file=file.path,
            line=later + 1,
            instance=identity,
            field="annotation_id",
        )


def _arranged(file: SplitFile, facts: SplitFacts, lines: SplitLines, index: DocumentFiles | DocumentLines) -> SplitPlan:
    count, offsets, documents = len(lines), lines.offsets, lines.documents
    lengths = np.diff(offsets)
    # rows of one (first) document stand together, in the order in which the file first names the documents
    first = np.full(count, -1, np.int64)
    some = lengths > 0
    first[some] = documents[offsets[:-1][some]]
    order = np.argsort(first_places(first), kind="stable")
    # bytes of each row, as an estimate: its line and its documents
    running = np.concatenate([[0], np.cumsum(index.sizes[documents])])
    weight = (lines.bytes + running[offsets[1:]] - running[offsets[:-1]])[order]
    shards: list[Shard] = []
    for begin, end in _cuts(weight, SHARD_BYTES):
        rows = order[begin:end]
        named = documents[ranges(offsets[rows], lengths[rows])]
        chosen = distinct(named)
        cuts = [0, *(cut for _, cut in _cuts(weight[begin:end], BATCH_BYTES))]
        shards.append(
            Shard(
                lines,
                rows.astype(np.int32),
                cuts,
                index.some(chosen.astype(np.int64)),
                len(named) > 1.2 * len(chosen),
                int(weight[begin:end].sum()),
            )
        )
    named = documents[ranges(offsets[order], lengths[order])]
    return SplitPlan(file, facts, lines, shards, in_first_order(named))


def _cuts(weight: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Runs of rows of about ``most`` bytes each, none empty."""
    if not len(weight):
        return []
    total = np.cumsum(weight)
    pieces = max(1, round(float(total[-1]) / most))
    goals = total[-1] * np.arange(1, pieces) / pieces
    inner = distinct(np.searchsorted(total, goals) + 1)
    edges = [0, *(int(edge) for edge in inner if edge < len(weight)), len(weight)]
    return list(pairwise(edges))
