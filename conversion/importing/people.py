"""People who annotated the rows of an import: their names, labels and marks.

A row may hold all annotators of a text (lists of masks and of labels), or one of them (``--annotator COLUMN``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple

from eraser_hub.records.errors import DataError, show
from eraser_hub.records.places import dataset_split

from .evidence_marks import RowTally
from .texts import Span, Text, find_majority_label, parse_literal, parse_word

TextSpans = list[list[Span]]
"""Per text of a row the marked spans."""


class Person(NamedTuple):
    """One annotator of a text.

    Attributes:
        name: the annotator.
        label: the label that the annotator chose; None: not known.
        marked: the marked spans in each text; None: not known.
    """

    name: str
    label: str | None
    marked: TextSpans | None


class AnnotatedRow(NamedTuple):
    """Row as an annotation.

    Attributes:
        name: its id.
        label: the gold label.
        query: the query.
        texts: its texts.
        people: its annotators.
        named: True if they have names.
    """

    name: str
    label: str
    query: str
    texts: list[Text]
    people: list[Person]
    named: bool = False

    @property
    def marked(self) -> list[TextSpans]:
        """The spans of the annotators whose marks are known: [annotator][text][span]."""
        return [person.marked for person in self.people if person.marked is not None]


def parse_names(value: Any, column: str) -> str | list[str] | None:
    """Return the annotator of a cell, or the annotators of a list; None for a list of nulls.

    A null among names is a person without a name, who is called by his place: 1, 2, ..

    Raises:
        DataError: the cell has no name.
    """
    value = parse_literal(value)
    if isinstance(value, list):
        if all(each is None for each in value):
            return None
        return [str(at + 1) if each is None else _parse_name(each, f"{column}[{at}]") for at, each in enumerate(value)]
    return _parse_name(value, column)


def _parse_name(value: Any, field: str) -> str:
    name = parse_word(value, field)
    if not name.strip():
        raise DataError(f"expected the name of an annotator, found {show(value)}", field=field)
    return name


def join_people(
    labels: Sequence[str] | None,
    marked: Sequence[TextSpans | None],
    names: Sequence[str] | None,
    column: str,
    tally: RowTally,
) -> list[Person]:
    """Return the annotators of a row that holds several.

    Labels and marks of one place belong to one person. Where their numbers differ, nobody knows whose marks are whose:
    the labels are kept without marks, and the marks as those of ``marks 1``, ..

    Args:
        labels: the labels of the annotators; None: the row has one label, which is the gold label.
        marked: the marks of the annotators; None: not known.
        names: the names of the annotators; None: 1, 2, ..
        column: the column of the names, for errors.
        tally: counts rows whose labels and marks differ in number.

    Raises:
        DataError: the names are of another number than the labels and the marks, or one stands twice.
    """
    counts = [len(each) for each in (labels, marked) if each]
    if names is not None and (len(names) not in counts or len(set(names)) < len(names)):
        what = " or ".join(map(str, dict.fromkeys(counts))) or "no"
        message = f"expected {what} annotators, each once, as there are labels and marks, found {show(list(names))}"
        raise DataError(message, field=column)
    if len(set(counts)) > 1:
        tally.note("unmatched")
        labelled, marking = (
            list(names) if names is not None and len(names) == len(each or ()) else None for each in (labels, marked)
        )
        first = labelled or [str(at) for at in range(1, len(labels or ()) + 1)]
        second = marking or [f"marks {at}" for at in range(1, len(marked) + 1)]
        return [
            *(Person(name, label, None) for name, label in zip(first, labels or (), strict=True)),
            *(Person(name, None, spans) for name, spans in zip(second, marked, strict=True)),
        ]
    called = names or [str(at) for at in range(1, max(counts, default=0) + 1)]
    return [Person(*one) for one in zip_longest(called, labels or (), marked)]


@dataclass
class _Group:
    """The rows of one text."""

    name: str
    query: str
    texts: list[Text]
    line: int
    people: dict[str, Person] = field(default_factory=dict)


class PeopleJoiner:
    """Join rows of one person each to a row per text.

    Args:
        tally: counts duplicates, ties and texts without a label.
        by_id: the rows of a text have one id; otherwise they have the same text and query.
        column: the column of the texts, for errors.
    """

    def __init__(self, tally: RowTally, by_id: bool, column: str) -> None:
        self.tally, self.by_id, self.column = tally, by_id, column
        self._groups: dict[object, _Group] = {}

    def add(self, name: str, query: str, texts: list[Text], person: Person, line: int) -> None:
        """Add a row.

        Raises:
            DataError: the text of an id differs from the one before.
        """
        content = (query, *(text.document for text in texts))
        group = self._groups.setdefault(name if self.by_id else content, _Group(name, query, texts, line))
        if (group.query, *(text.document for text in group.texts)) != content:
            message = f"expected the text of {show(name)} as on line {group.line}, found another"
            raise DataError(message, field=self.column)
        if person.name in group.people:
            self.tally.note("duplicates", words=f": {show(person.name, 40)}")
        else:
            group.people[person.name] = person

    def rows(self) -> Iterator[tuple[int, AnnotatedRow]]:
        """Yield (line, row) of each text; texts without a majority label are counted and left out."""
        names = dict.fromkeys(name for group in self._groups.values() for name in group.people)
        for group in self._groups.values():
            people = [group.people[name] for name in names if name in group.people]
            labels = [person.label for person in people if person.label is not None]
            label = find_majority_label(labels) if labels else None
            self.tally.place = show(group.name, 40)
            if label is None:
                self.tally.note("ties" if labels else "no label")
                continue
            self.tally.note("labels differ", len(set(labels)) > 1)
            yield group.line, AnnotatedRow(group.name, label, group.query, group.texts, people, True)


class PeopleTable:
    """Rows of ``annotators/NAME.parquet``: of texts with two annotators or more, or with names."""

    def __init__(self) -> None:
        self.named, self.rows, self.single = False, list[dict[str, Any]](), list[str]()
        self._texts_of: dict[str, int] = {}
        self._texts = 0

    def add(self, row: AnnotatedRow, split: str, docids: Sequence[str]) -> None:
        """Add the annotators of a row."""
        if len(row.people) < (1 if row.named else 2):
            self.single.append(row.name)
            return
        self.named |= row.named
        self._texts += 1
        common: dict[str, Any] = {"annotation_id": row.name, "split": dataset_split(split), "docids": list(docids)}
        common["num_tokens"] = [len(text) for text in row.texts]
        for person in row.people:
            self._texts_of[person.name] = self._texts_of.get(person.name, 0) + 1
            positions = (
                None
                if person.marked is None
                else [sorted({at for start, end in spans for at in range(start, end)}) for spans in person.marked]
            )
            self.rows.append(
                {**common, "annotator": person.name, "label": person.label, "rationale_positions": positions}
            )

    def notes(self) -> Iterator[str]:
        """Yield a line on the number of annotators and on texts that some of them did not annotate."""
        if not self.named or not self._texts_of:
            return
        fewest = min(self._texts_of, key=self._texts_of.__getitem__)
        missing = self._texts * len(self._texts_of) - len(self.rows)
        lacking = f"; {missing:,} (annotator, text) are missing, most of {fewest} ({self._texts_of[fewest]:,} texts)"
        yield f"annotators: {len(self._texts_of):,} of {self._texts:,} texts{lacking if missing else ''}"
