"""Rows of annotators -> the marks and labels of each text.

Two forms are read: one row a text, ``{annotation_id, annotators: [[0, 1, ..], ..]}``, with or without ``labels`` and
``annotator_names``; and one row a text and person, ``{annotation_id, annotator, label, rationale_positions,
num_tokens}``, as `eraser-hub import` writes them to ``annotators/NAME.parquet``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .cells import Row, as_list, as_scalar
from .issues import Issues
from .rows import CellReader, index_by_id

PERSON_FIELDS = ("annotator", "rationale_positions", "num_tokens", "label")


@dataclass(frozen=True)
class AnnotatedText:
    """The marks and labels of a text's annotators.

    Attributes:
        row: the row, or its first one, for further columns.
        names: the annotators whose marks are known.
        marks: bool (annotators, tokens), in the order of ``names``.
        lengths: number of tokens of each document; their sum is the number of tokens.
        labels: annotator -> label, of those whose label is known.
    """

    row: Row
    names: Sequence[str] = ()
    marks: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), bool))
    lengths: Sequence[int] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    def documents(self) -> list[np.ndarray]:
        """Return the marks of each document, bool (annotators, tokens)."""
        return np.split(self.marks, np.cumsum(self.lengths)[:-1], axis=1)


def is_person_row(row: Row) -> bool:
    """Return True if the row holds the marks of one person."""
    return "annotators" not in row and any(name in row for name in PERSON_FIELDS)


def read_annotated_texts(rows: Sequence[Row], side: str, issues: Issues) -> dict[str, AnnotatedText]:
    """Return {id: text} of rows of either form, in the rows' order; faults are issues.

    Args:
        rows: the rows.
        side: "prediction" or "reference", for messages.
        issues: the issues to extend.
    """
    if any(map(is_person_row, rows)):
        return _join_people(rows, side, issues)
    named = index_by_id(rows, side, issues)
    texts = {name: _read_text(CellReader(row, name, issues, side)) for name, row in named.items()}
    return {name: text for name, text in texts.items() if text is not None}


# ------------------------------------------------------------------------------------------------------ a row a text
def _read_text(reader: CellReader) -> AnnotatedText | None:
    """Return a row's text; None, and an issue, if its marks are no marks."""
    value = reader.row.get("annotators")
    several = as_list(value) or []
    if not reader.expect(len(several) > 1, "annotators", "at least two annotators' lists", value, "length"):
        return None
    lists = [None if marks is None else [as_scalar(mark) for mark in as_list(marks) or ()] for marks in several]
    width = max((len(marks) for marks in lists[:1] if marks is not None), default=0)
    width = width or max((len(marks) for marks in lists if marks is not None), default=0)
    for at, marks in enumerate(lists):
        field, what = f"annotators[{at}]", f"{width or 'a list of'} marks"
        if marks is None:
            continue
        if not reader.expect(bool(marks) and len(marks) == width, field, what, several[at], "length"):
            return None
        wrong = [mark for mark in marks if type(mark) not in (int, bool) or mark not in (0, 1)]
        if wrong:
            reader.expect(False, field, "0 or 1", next((mark for mark in wrong if mark is not None), None), "choice")
            return None
    names, labels = (_read_column(reader, column, len(lists)) for column in ("annotator_names", "labels"))
    if names is None or labels is None:
        return None
    people = [str(at + 1) if name is None else name for at, name in enumerate(names)]
    if not reader.expect(len(set(people)) == len(people), "annotator_names", "each name once", people, "id-twice"):
        return None
    known = [(name, marks) for name, marks in zip(people, lists, strict=True) if marks is not None]
    return AnnotatedText(
        reader.row,
        [name for name, _ in known],
        np.array([marks for _, marks in known], bool).reshape(len(known), width),
        [width],
        {name: label for name, label in zip(people, labels, strict=True) if label is not None},
    )


def _read_column(reader: CellReader, column: str, size: int) -> list[str | None] | None:
    """Return a list of strings or numbers, one per annotator, as strings; None, and an issue, if it is none."""
    value = reader.row.get(column)
    if value is None:
        return list[str | None]([None] * size)
    cells = [as_scalar(cell) for cell in as_list(value) or ()]
    if not reader.expect(len(cells) == size, column, f"{size} values, one per annotator", value, "length"):
        return None
    if not all(_is_word(cell) for cell in cells):
        reader.expect(False, column, "strings or integers", value)
        return None
    return [None if cell is None else str(cell) for cell in cells]


def _is_word(value: object) -> bool:
    return value is None or (isinstance(value, str | int) and not isinstance(value, bool))


# ------------------------------------------------------------------------------------------- a row a text and person
# name, label, marks, and the number of tokens of each document
_Person = tuple[str, str | None, np.ndarray | None, tuple[int, ...]]


def _join_people(rows: Sequence[Row], side: str, issues: Issues) -> dict[str, AnnotatedText]:
    """Return the texts of rows of one person each; the split's name stands before an id that several splits have."""
    splits: dict[str, dict[str, None]] = {}
    for row in rows:
        splits.setdefault(str(as_scalar(row.get("annotation_id"))), {})[str(row.get("split") or "")] = None
    several = {name for name, own in splits.items() if len(own) > 1}
    people: dict[str, dict[str, _Person]] = {}
    first: dict[str, Row] = {}
    for row in rows:
        name = next(iter(index_by_id([row], side, issues)), None)
        if name is None:
            continue
        key = f"{row.get('split')}/{name}" if name in several else name
        person = _read_person(CellReader(row, key, issues, side))
        if person is None:
            continue
        own = people.setdefault(key, {})
        if person[0] in own:
            message = f"expected each annotator of a text once, found {person[0]!r} again"
            issues.add_by_id(side, key, "annotator", message, "id-twice")
            continue
        own[person[0]] = person
        first.setdefault(key, row)
    texts = {}
    for key, own in people.items():
        marked = {name: marks for name, _, marks, _ in own.values() if marks is not None}
        sizes = {lengths for name, _, _, lengths in own.values() if name in marked}
        if len(sizes) > 1:
            found = " and ".join(map(str, sorted(sizes)))
            message = f"expected the same number of tokens for all annotators of a text, found {found}"
            issues.add_by_id(side, key, "num_tokens", message, "length")
            continue
        lengths = next(iter(sizes), ())
        marks = np.array([*marked.values()], bool).reshape(len(marked), sum(lengths))
        labels = {name: label for name, label, _, _ in own.values() if label is not None}
        texts[key] = AnnotatedText(first[key], list(marked), marks, lengths, labels)
    return texts


def _read_person(reader: CellReader) -> _Person | None:
    """Return the person of a row; None, and an issue, if a cell is wrong."""
    name, label = (as_scalar(reader.row.get(column)) for column in ("annotator", "label"))
    named = name is not None and _is_word(name)
    if not reader.expect(named, "annotator", "a name (string or integer)", name):
        return None
    if not reader.expect(_is_word(label), "label", "a label (string or integer)", label):
        return None
    shown = None if label is None else str(label)
    positions = reader.row.get("rationale_positions")
    if positions is None:
        return str(name), shown, None, ()
    lists = [as_list(own) for own in as_list(positions) or ()]
    lengths = [as_scalar(size) for size in as_list(reader.row.get("num_tokens")) or ()]
    found: Any = reader.row.get("num_tokens")
    sound = len(lengths) == len(lists) > 0 and all(type(size) is int and size >= 0 for size in lengths)
    if not reader.expect(sound, "num_tokens", f"the number of tokens of {len(lists)} documents", found, "length"):
        return None
    marks = []
    for number, (own, size) in enumerate(zip(lists, lengths, strict=True)):
        wrong = [one for one in own or () if type(as_scalar(one)) is not int or not 0 <= as_scalar(one) < size]
        field = f"rationale_positions[{number}]"
        if not reader.expect(own is not None, field, "a list of token positions", own):
            return None
        if not reader.expect(not wrong, field, f"positions from 0 to {size - 1}", wrong[:1] or own, "span-bounds"):
            return None
        part = np.zeros(size, bool)
        part[[as_scalar(one) for one in own or ()]] = True
        marks.append(part)
    return str(name), shown, np.concatenate(marks), tuple(lengths)
