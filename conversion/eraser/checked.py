"""Checked annotations, one run of lines at a time; `build` and `score` refuse the same faults. Needs no Arrow."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import Protocol

import numpy as np

from eraser_hub.records.errors import DataError, show

from .format import Annotation, Annotations, number_ids, read_annotations

# the objects of so many bytes of lines fit into the cache of a processor
CHECKED_BYTES = 1 << 18


class DocumentLookup(Protocol):
    """Interface of a corpus' documents for the checks."""

    @property
    def path(self) -> Path:
        """The file or folder of the documents."""
        ...

    def number(self, docids: list[str]) -> np.ndarray:
        """Return the number of each id, -1 where there is no such document."""
        ...

    def counts(self, chosen: np.ndarray) -> np.ndarray:
        """Return (chosen, 2): the tokens and the sentences of each document, by their numbers."""
        ...


class CheckedAnnotations:
    """A run of valid annotations as flat arrays.

    The documents of a row are those of its docids, then those of its evidences, each once.

    Attributes:
        run: the annotations.
        evidences: the evidences of all records.
        groups: int64 (records + 1,), the offset of each record's groups.
        members: int64 (groups + 1,), the offset of each group's evidences.
        row: int64 (evidences,), the index of each one's record.
        bounds: int32 (evidences, 4): start_token, end_token, start_sentence, end_sentence, as in the file.
        offsets: int64 (records + 1,), the offset of each row's documents.
        documents: int32, the number of each document of each row.
        slots: int64 (evidences,), the index of each evidence's document in ``documents``.
        counts: int32, the tokens and sentences of each document.

    Raises:
        DataError: a label is unknown, a document is missing, or a span is reversed, negative or past its document's
            end.
    """

    def __init__(self, run: Annotations, labels: Collection[str] | None, documents: DocumentLookup) -> None:
        records = run.records
        groups = [group for record in records for group in record.evidences]
        sizes = np.fromiter([len(record.evidences) for record in records], np.int64, len(records))
        self.run, self.evidences = run, [evidence for group in groups for evidence in group]
        self.groups = compute_offsets(sizes)
        self.members = compute_offsets(np.fromiter(map(len, groups), np.int64, len(groups)))
        self.row = np.repeat(np.repeat(np.arange(len(records)), sizes), np.diff(self.members))
        bounds = [
            [evidence.start_token for evidence in self.evidences],
            [evidence.end_token for evidence in self.evidences],
            [evidence.start_sentence for evidence in self.evidences],
            [evidence.end_sentence for evidence in self.evidences],
        ]
        self.bounds = np.array(bounds, np.int32).T
        lists = [
            record.docids or ([] if any(record.evidences) else _find_document_by_id(record, documents))
            for record in records
        ]
        docids = list(chain.from_iterable(lists))
        listed = len(docids)
        docids += [evidence.docid for evidence in self.evidences]
        number = documents.number(docids)
        row = np.concatenate([np.repeat(np.arange(len(records)), list(map(len, lists))), self.row])
        present = {record.classification for record in records}
        if (labels is not None and present.difference(labels)) or (number < 0).any():
            raise self._make_name_error(labels, documents, docids, number, row)
        pairs = row * (number.max(initial=0) + 1) + number
        _, first, pair = np.unique(pairs, return_index=True, return_inverse=True)
        order = np.lexsort((first, row[first]))  # by row, then in the order of the first mention
        place = np.empty(len(first), np.int64)
        place[order] = np.arange(len(order))
        self.offsets = compute_offsets(np.bincount(row[first], minlength=len(records)))
        self.documents, self.slots = number[first[order]], place[pair[listed:]]
        self.counts = documents.counts(self.documents)
        start, end = self.bounds[:, 0], self.bounds[:, 1]
        bad = (start < 0) | (end < start) | (end > self.counts[self.slots, 0])
        if bad.any():
            raise self._make_span_error(int(bad.argmax()))

    def _make_name_error(
        self,
        labels: Collection[str] | None,
        documents: DocumentLookup,
        docids: list[str],
        number: np.ndarray,
        row: np.ndarray,
    ) -> DataError:
        """Return the error of the first record with an unknown label or a missing document."""
        records, missing = self.run.records, np.flatnonzero(number < 0)
        missing_row = int(row[missing].min()) if len(missing) else len(records)
        labelled = (at for at, one in enumerate(records) if labels is not None and one.classification not in labels)
        wrong = next(labelled, len(records))
        if wrong < len(records) and wrong <= missing_row:
            value = show(records[wrong].classification)
            message = f"expected one of {', '.join(map(repr, labels or ()))}, found {value}"
            return self.run.make_error(wrong, message, "classification")
        at, listed = int(missing[row[missing] == missing_row][0]), len(docids) - len(self.evidences)
        words = f"expected a document of {documents.path}, found {show(docids[at])}, which is not there"
        if at < listed:
            return self.run.make_error(missing_row, words, "docids")
        return self.run.locate_error(at - listed, words, "docid")

    def _make_span_error(self, at: int) -> DataError:
        """Return the error of an evidence whose span is reversed, negative or past its document's end."""
        first, last = self.bounds[at, :2].tolist()
        name, length = show(self.evidences[at].docid), self.counts[self.slots[at], 0]
        if first < 0:
            return self.run.locate_error(at, f"expected a token of {name}, found {first}", "start_token")
        if last < first:
            message = f"expected an end at or after the start {first}, found {last}"
            return self.run.locate_error(at, message, "end_token")
        message = f"expected a span inside {name}, which has {length} tokens, found the end {last}"
        return self.run.locate_error(at, message, "end_token")


def read_checked(
    path: Path,
    labels: Collection[str] | None,
    documents: DocumentLookup,
    numbers: dict[str, int],
    batch_bytes: int = CHECKED_BYTES,
) -> Iterator[CheckedAnnotations]:
    """Yield the annotations of a split file in its order, one run of lines at a time.

    Args:
        path: the file.
        labels: the valid labels; None allows any.
        documents: the documents that annotations may name.
        numbers: receives id -> index in the file from 0, of each record.
        batch_bytes: bytes of lines to read at a time.

    Raises:
        DataError: at the first record that is invalid or repeats an id.
    """
    for run in read_annotations(path, batch_bytes):
        ids = [str(record.annotation_id) for record in run.records]
        if repeat := number_ids(ids, numbers):
            raise _make_repeated_error(run, repeat[0])
        yield CheckedAnnotations(run, labels, documents)


def _make_repeated_error(run: Annotations, place: int) -> DataError:
    """Return the error of a record that repeats an earlier id."""
    identity = run.records[place].annotation_id
    earlier = (zip(before.numbers, before.records, strict=True) for before in read_annotations(run.file))
    first = next(line for pairs in earlier for line, one in pairs if str(one.annotation_id) == str(identity))
    message = f"expected each annotation id once, found {show(identity)} again (first on line {first})"
    return run.make_error(place, message, "annotation_id")


def _find_document_by_id(record: Annotation, documents: DocumentLookup) -> list[str]:
    """Return the document of a record without docids and evidences, as a list of at most one id.

    It is the document with the record's id (movies' posR_161), or with the id at its start (multirc's
    ``DOCID:QUESTION:ANSWER``).
    """
    identity = str(record.annotation_id)
    names = [identity, identity.rsplit(":", 2)[0]]
    return [name for name, number in zip(names, documents.number(names).tolist(), strict=True) if number >= 0][:1]


def compute_offsets(lengths: np.ndarray) -> np.ndarray:
    """Return the start of each list and the end of the last, int64 (lengths + 1,)."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
