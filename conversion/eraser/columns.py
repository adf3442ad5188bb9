"""Decoded annotations as columns: flat arrays with offsets, from which rows of the schema are made and records told again.

A list comprehension per field, then numpy: nothing is looked at record by record but what is rare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from msgspec import UNSET

from eraser_hub.conversion.arrays import first_places, offsets_of, strings, with_nulls
from eraser_hub.records.errors import DataError, shown

from .format import RawAnnotation

# a record's state: how its id and its optional keys stand in the file
WHOLE_NUMBER, DOCIDS_NULL, DOCIDS_LIST, TYPE_NULL, TYPE_ABSENT, KEPT = 1, 2, 4, 8, 16, 32


class Finds(Protocol):
    """Documents that are found by their ids; ``path`` is their place, for errors."""

    path: Path

    def find(self, docids: list[str], /) -> np.ndarray:
        """The number of each id, -1 where there is none."""


def named_by_id(identity: str, documents: Finds) -> list[int]:
    """The document of a record that names none (no docids, no evidences): the one that has its id (movies' posR_161),
    or whose id its own begins with (multirc's ``DOCID:QUESTION:ANSWER``); none where there is no such document."""
    for number in documents.find([identity, identity.rsplit(":", 2)[0]]).tolist():
        if number >= 0:
            return [number]
    return []


@dataclass(slots=True)
class Columns:
    """A run of records.

    Attributes:
        file: where they stand.
        numbers: int64 (records,), the 1-based line of each.
        ids: the annotation ids, as strings.
        states: uint8 (records,), the bits above; KEPT says that ``kept`` has something.
        labels: int64 (records,).
        queries, types: query and query_type, the latter null where it is null or absent.
        offsets: int64 (records + 1,) into ``documents``, which are numbers of documents: each record's, once each, those of
            its docids first.
        groups: int64 (records + 1,), where each record's evidence groups begin; ``evidences``: int64 (groups + 1,), where
            each group's evidences do.
        evidence_documents: int64 (evidences,), numbers of documents.
        texts: the evidences' texts.
        spans: int32 (evidences, 4): start_token, end_token, start_sentence, end_sentence, as in the file.
        kept: by place in the run, the keys that do not follow from all this, as they were: those the format does not know,
            and docids that are not the record's documents in order.
    """

    file: Path
    numbers: np.ndarray
    ids: pa.StringArray
    states: np.ndarray
    labels: np.ndarray
    queries: pa.StringArray
    types: pa.StringArray
    offsets: np.ndarray
    documents: np.ndarray
    groups: np.ndarray
    evidences: np.ndarray
    evidence_documents: np.ndarray
    texts: pa.StringArray
    spans: np.ndarray
    kept: dict[int, dict[str, Any]] = field(default_factory=dict)

    def evidence_rows(self) -> np.ndarray:
        """int64 (evidences,): the place of each evidence's record."""
        return np.repeat(np.arange(len(self.numbers)), np.diff(self.evidences[self.groups]))

    def identity(self, row: int) -> str | int:
        """The annotation id as the file has it."""
        name = self.ids[row].as_py()
        return int(name) if self.states[row] & WHOLE_NUMBER else name

    def error(self, row: int, message: str, path: str | None = None) -> DataError:
        """The error for a record."""
        return DataError(message, file=self.file, line=int(self.numbers[row]), instance=self.identity(row), field=path)

    def evidence_error(self, evidence: int, message: str, key: str) -> DataError:
        """The error for an evidence, by its place among all."""
        group = int(np.searchsorted(self.evidences, evidence, side="right")) - 1
        row = int(np.searchsorted(self.groups, group, side="right")) - 1
        path = f"evidences[{group - int(self.groups[row])}][{evidence - int(self.evidences[group])}].{key}"
        return self.error(row, message, path)


def columns_of(
    records: list[RawAnnotation],
    extras: dict[int, dict[str, Any]],
    *,
    file: Path,
    first: int,
    label_numbers: dict[str, int],
    documents: Finds,
) -> Columns:
    """The columns of decoded records.

    Args:
        records: one a line.
        extras: by place, the keys that the format does not know.
        file: where the records stand.
        first: the line of the first one.
        label_numbers: label -> its number.
        documents: those that the records may name.

    Raises:
        DataError: an unknown label; a document that does not exist.
    """
    total = len(records)
    states = np.zeros(total, np.uint8)
    ids = [record.annotation_id for record in records]
    whole = np.fromiter([kind is int for kind in map(type, ids)], bool, total)
    states[whole] |= WHOLE_NUMBER
    names: list[str] = list(map(str, ids)) if whole.any() else ids  # type: ignore[assignment,arg-type]

    labels = [label_numbers.get(record.classification, -1) for record in records]
    docids = [record.docids for record in records]
    listed = np.fromiter([kind is list for kind in map(type, docids)], bool, total)
    states[listed] |= DOCIDS_LIST
    if not listed.all():
        states[np.fromiter([each is None for each in docids], bool, total)] |= DOCIDS_NULL
    lists: list[list[str]] = docids if listed.all() else [each for each in docids if type(each) is list]  # type: ignore[assignment]
    query_types = [record.query_type for record in records]
    if any(kind is not str for kind in set(map(type, query_types))):
        states[np.fromiter([each is None for each in query_types], bool, total)] |= TYPE_NULL
        states[np.fromiter([each is UNSET for each in query_types], bool, total)] |= TYPE_ABSENT
        query_types = [each if type(each) is str else "" for each in query_types]

    groups = [group for record in records for group in record.evidences]
    flat = [evidence for group in groups for evidence in group]
    group_offsets = offsets_of(np.fromiter([len(record.evidences) for record in records], np.int64, total))
    evidence_offsets = offsets_of(np.fromiter(map(len, groups), np.int64, len(groups)))
    listed_sizes = np.zeros(total, np.int64)
    listed_sizes[listed] = np.fromiter(map(len, lists), np.int64, len(lists))

    wanted = list(chain.from_iterable(lists))
    in_lists = len(wanted)
    wanted += [evidence.docid for evidence in flat]
    local = dict(zip(dict.fromkeys(wanted), count(), strict=False))
    found = documents.find(list(local)).astype(np.int64)
    numbers = found[np.fromiter(map(local.__getitem__, wanted), np.int64, len(wanted))]
    rows = np.arange(total)
    row_of = np.concatenate([np.repeat(rows, listed_sizes), np.repeat(rows, np.diff(evidence_offsets[group_offsets]))])
    columns = Columns(
        file=file,
        numbers=np.arange(first, first + total),
        ids=strings(names),
        states=states,
        labels=np.array(labels, np.int64),
        queries=strings([record.query for record in records]),
        types=with_nulls(strings(query_types), (states & (TYPE_NULL | TYPE_ABSENT)) > 0),  # type: ignore[arg-type]
        offsets=np.zeros(0, np.int64),
        documents=np.zeros(0, np.int64),
        groups=group_offsets,
        evidences=evidence_offsets,
        evidence_documents=numbers[in_lists:],
        texts=strings([evidence.text for evidence in flat]),
        spans=np.stack(
            [
                np.fromiter([evidence.start_token for evidence in flat], np.int32, len(flat)),
                np.fromiter([evidence.end_token for evidence in flat], np.int32, len(flat)),
                np.fromiter([evidence.start_sentence for evidence in flat], np.int32, len(flat)),
                np.fromiter([evidence.end_sentence for evidence in flat], np.int32, len(flat)),
            ],
            axis=1,
        ),
        kept={place: dict(extra) for place, extra in extras.items()},
    )
    _refuse(columns, records, labels, label_numbers, numbers, row_of, wanted, in_lists, documents.path)
    _documents(columns, numbers, row_of, in_lists, listed, listed_sizes, documents, docids)
    if columns.kept:
        states[list(columns.kept)] |= KEPT
    return columns


def _refuse(
    columns: Columns,
    records: list[RawAnnotation],
    labels: list[int],
    label_numbers: dict[str, int],
    numbers: np.ndarray,
    row_of: np.ndarray,
    wanted: list[str],
    in_lists: int,
    where: Path,
) -> None:
    """The error of the first record that has an unknown label or names a document that is not there."""
    lost = np.flatnonzero(numbers < 0)
    total = len(labels)
    nowhere = int(row_of[lost].min()) if len(lost) else total
    unknown = labels.index(-1) if -1 in labels else total
    if unknown < total and unknown <= nowhere:
        expected = ", ".join(map(repr, label_numbers))
        found = shown(records[unknown].classification)
        raise columns.error(unknown, f"expected one of {expected}, found {found}", "classification")
    if nowhere < total:
        at = int(lost[row_of[lost] == nowhere][0])
        words = f"expected a document of {where}, found {shown(wanted[at])}, which is not there"
        if at < in_lists:
            raise columns.error(nowhere, words, "docids")
        raise columns.evidence_error(at - in_lists, words, "docid")


def _documents(
    columns: Columns,
    numbers: np.ndarray,
    row_of: np.ndarray,
    in_lists: int,
    listed: np.ndarray,
    listed_sizes: np.ndarray,
    documents: Finds,
    docids: Sequence[Any],
) -> None:
    """Each record's documents once: those of its docids, then those of its evidences, in order."""
    total = len(listed)
    key = row_of * (int(numbers.max(initial=0)) + 1) + numbers
    once = np.flatnonzero(first_places(key) == np.arange(len(key)))
    sizes = np.bincount(row_of[once], minlength=total)
    own = np.bincount(row_of[once[once < in_lists]], minlength=total)
    taken = numbers[once[np.argsort(row_of[once], kind="stable")]]
    bare = np.flatnonzero(sizes == 0)
    if len(bare):
        given = {int(row): named_by_id(columns.ids[int(row)].as_py(), documents) for row in bare}
        before = offsets_of(sizes)[bare]
        taken = np.insert(
            taken,
            np.repeat(before, [len(more) for more in given.values()]),
            list(chain.from_iterable(given.values())),
        )
        sizes[bare] = [len(more) for more in given.values()]
    columns.offsets, columns.documents = offsets_of(sizes), taken.astype(np.int64)
    for row in np.flatnonzero(listed & ((own != listed_sizes) | (sizes != listed_sizes))).tolist():
        columns.kept.setdefault(row, {})["docids"] = docids[row]
