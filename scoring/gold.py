"""Annotations in little memory: what scores need of them, flat, and the part of them that some predictions speak of."""

from __future__ import annotations

from array import array
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from eraser_hub.metrics.flat import References
from eraser_hub.metrics.joining import says_sentences

from .corpus import blocks_of, check_utf8
from .names import Names, all_strings

# ids that wait before they are numbered: numbering few takes nearly as long as numbering many
NAMES_AT_ONCE = 1 << 15


# first bytes of lines that are blank, or encoded twice
UNUSUAL = frozenset(b'" \n\r\t')


class Unclear(Exception):
    """Something that reading part by part does not tell: whoever reads everything does (see `score.score`)."""


class _Evidence(msgspec.Struct, gc=False):
    docid: str | int
    start_token: int
    end_token: int
    start_sentence: int | None = None
    end_sentence: int | None = None


class _Annotation(msgspec.Struct, gc=False):
    annotation_id: str | int
    evidences: list[list[_Evidence]] | None = None
    classification: str | None = None


class Gold(NamedTuple):
    """n annotations, their evidence groups and evidences."""

    ids: Names
    docids: Names
    labels: list[str]
    classification: np.ndarray  # (n,) into labels; -1: absent
    groups: np.ndarray  # (n + 1,) where each annotation's groups begin
    evidences: np.ndarray  # (groups + 1,) where each group's evidences begin
    doc: np.ndarray
    start: np.ndarray
    end: np.ndarray
    start_sentence: np.ndarray | None  # None: no evidence says its sentences
    end_sentence: np.ndarray | None

    def part(self, rows: np.ndarray) -> References:
        """The annotations of some rows, numbered by their places among them; documents are not there."""
        group_instance, group_at = _ranges(self.groups, rows)
        group, at = _ranges(self.evidences, group_at)
        unsaid = np.full(at.size, -1, dtype=np.int64)
        nothing = np.zeros(0, dtype=np.int64)

        def wide(column: np.ndarray | None) -> np.ndarray:
            return unsaid if column is None else column[at].astype(np.int64)

        return References(
            ids=_Rows(self.ids, rows),  # type: ignore[arg-type]
            labels=self.labels,
            classification=self.classification[rows].astype(np.int64),
            docids=self.docids,  # type: ignore[arg-type]
            document_instance=nothing,
            document=nothing,
            tokens=nothing,
            sentences=nothing,
            first_sentence=nothing,
            sentence_tokens=nothing,
            group_instance=group_instance,
            group=group,
            doc=wide(self.doc),
            start=wide(self.start),
            end=wide(self.end),
            start_sentence=wide(self.start_sentence),
            end_sentence=wide(self.end_sentence),
        )


class _Rows:
    """Some names of a vocabulary, by place."""

    def __init__(self, names: Names, rows: np.ndarray) -> None:
        self.names, self.rows = names, rows

    def __len__(self) -> int:
        return self.rows.size

    def __getitem__(self, at: int) -> str:
        return self.names[int(self.rows[at])]


def _ranges(bounds: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For rows that each hold the range [bounds[row], bounds[row + 1]): (place among the rows, what is held)."""
    first = bounds[rows].astype(np.int64)
    size = bounds[rows + 1] - first
    owner = np.repeat(np.arange(rows.size), size)
    return owner, np.arange(owner.size) + np.repeat(first - (np.cumsum(size) - size), size)


class _Arrays:
    """Takes annotations, some at a time."""

    def __init__(self, labels: list[str]) -> None:
        self.ids, self.docids, self.n = Names(), Names(), 0
        self.new_ids: list[str] = []
        self.new_docids: list[str] = []
        self.labels = {label: code for code, label in enumerate(labels)}
        self.classification, self.groups, self.evidences = array("i"), array("i", [0]), array("i", [0])
        self.doc, self.start, self.end = array("i"), array("i"), array("i")
        self.start_sentence, self.end_sentence = array("i"), array("i")
        self.sentences = False

    def add(self, annotations: list[_Annotation]) -> None:
        names: list[Any] = [one.annotation_id for one in annotations]
        self.new_ids += names if all_strings(names) else map(str, names)
        self.n += len(names)
        labels = [one.classification for one in annotations]
        for label in dict.fromkeys(labels):
            if label is not None:
                self.labels.setdefault(label, len(self.labels))
        known = self.labels.get
        self.classification.fromlist([known(label, -1) for label in labels])  # type: ignore[arg-type]
        groups = [one.evidences or () for one in annotations]
        several = [group for own in groups for group in own]
        evidences = [evidence for group in several for evidence in group]
        for ends, lists in ((self.groups, groups), (self.evidences, several)):
            sizes = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
            ends.frombytes((np.cumsum(sizes) + ends[-1]).astype(np.int32).tobytes())
        docids: list[Any] = [one.docid for one in evidences]
        self.new_docids += docids if all_strings(docids) else map(str, docids)
        if len(self.new_ids) + len(self.new_docids) > NAMES_AT_ONCE:
            self._number()
        self.start.extend([one.start_token for one in evidences])
        self.end.extend([one.end_token for one in evidences])
        first = [one.start_sentence for one in evidences]
        last = [one.end_sentence for one in evidences]
        if not self.sentences and {*first, *last} <= {None, -1}:
            return
        if not self.sentences:
            self.sentences = True
            self.start_sentence.extend([-1] * (len(self.start) - len(first)))
            self.end_sentence.extend([-1] * (len(self.start) - len(first)))
        self.start_sentence.extend([-1 if x is None else x for x in first])
        self.end_sentence.extend([-1 if x is None else x for x in last])

    def _number(self) -> None:
        self.ids.add(self.new_ids)
        if len(self.ids) != self.n:
            raise Unclear  # an id twice
        self.doc.frombytes(self.docids.add(self.new_docids).astype(np.int32).tobytes())
        self.new_ids, self.new_docids = [], []

    def finish(self) -> Gold:
        self._number()
        columns = [
            np.frombuffer(column, dtype=np.int32) if column else np.zeros(0, dtype=np.int32)
            for column in (self.classification, self.groups, self.evidences, self.doc, self.start, self.end)
        ]
        both: list[Any] = [np.frombuffer(x, dtype=np.int32) for x in (self.start_sentence, self.end_sentence) if x]
        return Gold(self.ids, self.docids, list(self.labels), *columns, *(both or [None, None]))


def _once_encoded(line: bytes) -> bytes:
    return msgspec.json.decode(line, type=str).encode() if line.lstrip()[:1] == b'"' else line


def read_gold(path: Path, label_names: tuple[str, ...] | None) -> Gold:
    """An annotation file.

    Raises:
        Unclear: something in it is not as expected.
    """
    decode = msgspec.json.Decoder(_Annotation).decode
    arrays = _Arrays(list(label_names or ()))
    try:
        for lines in blocks_of(path):
            check_utf8(lines)
            if not UNUSUAL.isdisjoint(map(itemgetter(0), lines)):
                lines = [_once_encoded(line) for line in lines if line.strip()]
            arrays.add([decode(line) for line in lines])
    except (msgspec.MsgspecError, UnicodeError, OverflowError):
        raise Unclear from None
    if not arrays.n or (label_names is not None and len(arrays.labels) > len(label_names)):
        raise Unclear
    return arrays.finish()


def of_references(r: References) -> Gold:
    """References that were read otherwise (of a built dataset)."""
    ids = Names(r.ids)
    if len(ids) != len(r.ids) or any(label.startswith("\0") for label in r.labels):
        raise Unclear
    sentences = says_sentences(r)
    return Gold(
        ids,
        Names(r.docids),
        list(r.labels),
        r.classification,
        np.searchsorted(r.group_instance, np.arange(len(ids) + 1)),
        np.searchsorted(r.group, np.arange(r.group_instance.size + 1)),
        r.doc,
        r.start,
        r.end,
        r.start_sentence if sentences else None,
        r.end_sentence if sentences else None,
    )
