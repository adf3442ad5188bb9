"""Annotations read and checked, a run at a time: what `build` and `score` refuse alike. Arrow is not needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol

import numpy as np

from eraser_hub.conversion.offsets import first_places, offsets_of
from eraser_hub.records.errors import shown

from .format import Annotation, Annotations, read_annotations, take_up

# the objects of so many bytes of lines fit into a processor's cache
CHECKED_BYTES = 1 << 18


class DocumentLookup(Protocol):
    """What a check asks of a corpus' documents."""

    @property
    def path(self) -> Path:
        """Where they stand."""
        ...

    def __len__(self) -> int: ...

    def find(self, docids: list[str]) -> np.ndarray:
        """The number of each id, -1 where there is no such document."""
        ...

    def counts(self, chosen: np.ndarray) -> np.ndarray:
        """(chosen, 2): the tokens and the sentences of each, by their numbers."""
        ...


class Evidences:
    """The evidences of a run of annotations, flat.

    Attributes:
        all: the evidences.
        groups: int64 (records + 1,), where each record's groups begin.
        members: int64 (groups + 1,), where each group's evidences begin.
        row: int64 (evidences,), the place of each one's record.
        bounds: int32 (evidences, 4): start_token, end_token, start_sentence, end_sentence, as in the file.
    """

    def __init__(self, records: list[Annotation]) -> None:
        groups = [group for record in records for group in record.evidences]
        flat = [evidence for group in groups for evidence in group]
        sizes = np.fromiter([len(record.evidences) for record in records], np.int64, len(records))
        self.all = flat
        self.groups = offsets_of(sizes)
        self.members = offsets_of(np.fromiter(map(len, groups), np.int64, len(groups)))
        self.row = np.repeat(np.repeat(np.arange(len(records)), sizes), np.diff(self.members))
        bounds = [
            [evidence.start_token for evidence in flat],
            [evidence.end_token for evidence in flat],
            [evidence.start_sentence for evidence in flat],
            [evidence.end_sentence for evidence in flat],
        ]
        self.bounds = np.array(bounds, np.int32).T


class RowDocuments(NamedTuple):
    """The documents of a run's rows: those of their docids, then those of their evidences, each once.

    Attributes:
        offsets: int64 (rows + 1,), where each row's begin.
        numbers: int32, the number of each document.
        slots: int64 (evidences,), the place of each evidence's document in ``numbers``.
        counts: int32, the tokens and sentences of each document.
    """

    offsets: np.ndarray
    numbers: np.ndarray
    slots: np.ndarray
    counts: np.ndarray


class Checked(NamedTuple):
    """A run of annotations that are in order, their evidences and the documents of their rows."""

    run: Annotations
    evidences: Evidences
    documents: RowDocuments


def read_checked(
    path: Path, labels: Collection[str] | None, documents: DocumentLookup, numbers: dict[str, int]
) -> Iterator[Checked]:
    """The annotations of a split file in its order, some at a time, as strictly as `read_split` reads them.

    Args:
        path: the file.
        labels: those that a record may have; None allows any.
        documents: those that the annotations may name.
        numbers: takes up each record's id, with its place in the file from 0.

    Raises:
        DataError: at the first record that is not in order, or whose id stands twice.
    """
    for run in read_annotations(path, CHECKED_BYTES):
        refuse_repeated(run, numbers)
        yield Checked(run, *checked(run, labels, documents))


def refuse_repeated(run: Annotations, numbers: dict[str, int]) -> None:
    """Refuse an id that stands twice; ``numbers`` has the ids before the run's by place, and takes these up."""
    ids = [str(record.annotation_id) for record in run.records]
    again = take_up(ids, numbers)
    if again is None:
        return
    place = again[0]
    earlier = (zip(before.numbers, before.records, strict=True) for before in read_annotations(run.file))
    first = next(number for pairs in earlier for number, one in pairs if str(one.annotation_id) == ids[place])
    words = f"{shown(run.records[place].annotation_id)} again (first on line {first})"
    raise run.error(place, f"expected each annotation id once, found {words}", "annotation_id", "id-twice")


def checked(
    run: Annotations, labels: Collection[str] | None, documents: DocumentLookup
) -> tuple[Evidences, RowDocuments]:
    """The evidences and documents of a run of annotations that are all in order; ``labels`` None: any label is.

    Raises:
        DataError: as `numbered_rows`.
    """
    evidences = Evidences(run.records)
    row_documents = _documents_of(run, evidences, labels, documents)
    _refuse_spans(run, evidences, row_documents)
    return evidences, row_documents


def _documents_of(
    run: Annotations, evidences: Evidences, labels: Collection[str] | None, documents: DocumentLookup
) -> RowDocuments:
    total = len(run.records)
    lists = [record.docids or _named_by_id(record, documents) for record in run.records]
    docids = list(chain.from_iterable(lists))
    listed = len(docids)
    docids += [evidence.docid for evidence in evidences.all]
    number = documents.find(docids)
    row = np.concatenate([np.repeat(np.arange(total), np.fromiter(map(len, lists), np.int64, total)), evidences.row])
    unknown = labels is not None and any(record.classification not in labels for record in run.records)
    if (number < 0).any() or unknown:
        _refuse_names(run, labels, documents, docids, np.flatnonzero(number < 0), row, listed)
    first = first_places(row * (len(documents) + 1) + number)
    once = np.flatnonzero(first == np.arange(len(first)))
    order = once[np.argsort(row[once], kind="stable")]
    place = np.empty(len(first), np.int64)
    place[order] = np.arange(len(order))
    offsets = offsets_of(np.bincount(row[once], minlength=total))
    return RowDocuments(offsets, number[order], place[first[listed:]], documents.counts(number[order]))


def _named_by_id(record: Annotation, documents: DocumentLookup) -> list[str]:
    """The document of a record that names none (no docids, no evidences): the one that has its id (movies' posR_161),
    or whose id its own begins with (multirc's ``DOCID:QUESTION:ANSWER``); none where there is no such document."""
    if any(record.evidences):
        return []
    identity = str(record.annotation_id)
    names = [identity, identity.rsplit(":", 2)[0]]
    return [name for name, number in zip(names, documents.find(names).tolist(), strict=True) if number >= 0][:1]


def _refuse_names(
    run: Annotations,
    labels: Collection[str] | None,
    documents: DocumentLookup,
    docids: list[str],
    lost: np.ndarray,
    row: np.ndarray,
    listed: int,
) -> NoReturn:
    """The error of the first record that has an unknown label or names a document that is not there.

    Args:
        run, labels, documents: as in `checked`.
        docids: what the records name: the first ``listed`` in their docids, the others in their evidences.
        lost: those of them that are not there.
        row: the place of each one's record.
    """
    there = [record.classification for record in run.records]
    unknown = next((at for at, label in enumerate(there) if labels is not None and label not in labels), len(there))
    nowhere = int(row[lost].min()) if len(lost) else len(there)
    if unknown < len(there) and unknown <= nowhere:
        expected = ", ".join(map(repr, labels or ()))
        message = f"expected one of {expected}, found {shown(there[unknown])}"
        raise run.error(unknown, message, "classification", "label-unknown")
    at = int(lost[row[lost] == nowhere][0])
    words = f"expected a document of {documents.path}, found {shown(docids[at])}, which is not there"
    if at < listed:
        raise run.error(nowhere, words, "docids", "document-missing")
    raise run.evidence_error(at - listed, words, "docid", "document-missing")


def _refuse_spans(run: Annotations, evidences: Evidences, row_documents: RowDocuments) -> None:
    start, end = evidences.bounds[:, 0], evidences.bounds[:, 1]
    length = row_documents.counts[row_documents.slots, 0]
    bad = (start < 0) | (end < start) | (end > length)
    if not bad.any():
        return
    at = int(bad.argmax())
    first, last = int(start[at]), int(end[at])
    name = shown(evidences.all[at].docid)
    if first < 0:
        raise run.evidence_error(at, f"expected a token of {name}, found {first}", "start_token", "span-order")
    if last < first:
        message = f"expected an end at or after the start {first}, found {last}"
        raise run.evidence_error(at, message, "end_token", "span-order")
    message = f"expected a span inside {name}, which has {length[at]} tokens, found the end {last}"
    raise run.evidence_error(at, message, "end_token", "span-bounds")
