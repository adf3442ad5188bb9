"""Rows of a table -> annotations: texts as tokens, and what each person marked and chose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from eraser_hub.records.errors import DataError, show

from .marks import Kind, MarkReader, Offsets
from .sources import Source, SourceRow
from .tally import Tally, find_majority_label, locate
from .texts import (
    BLANKS,
    WORDS,
    Cells,
    Span,
    Text,
    get_cell,
    is_empty,
    parse_labels,
    parse_literal,
    parse_strings,
    parse_text,
    parse_tokens,
    parse_word,
)

QUERY_SEPARATOR = " [sep] "  # between the parts of a query, as in CoS-E


class Columns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Columns of the imported rows, by role.

    Attributes:
        texts: columns of the texts, one per document of a row.
        marks: for each text, the column of its marks; or for one text several columns, one for each person, who has the
            column's name; empty for a corpus without rationales.
        label: column of the gold label, or of the labels of several people.
        tokenized: True if the texts are lists of tokens.
        kind: form of ``marks``.
        offsets: what spans count.
        query: column of the query, if any.
        id: column of the annotation's id, if any.
        annotator: column of people's names: one name in a table of a row per text and person, or a list in the order of
            labels and marks. Rows of one text are those of one id, else of one text and query.
        is_gold: True if the label is that of the text, and nobody knows those of the people.
    """

    texts: tuple[str, ...]
    marks: tuple[str, ...]
    label: str
    tokenized: bool = True
    kind: Kind = "mask"
    offsets: Offsets = "tokens"
    query: str | None = None
    id: str | None = None
    annotator: str | None = None
    is_gold: bool = False

    @property
    def suffixes(self) -> list[str]:
        """The endings of the ids of several documents."""
        return [name.rpartition(".")[2] for name in self.texts]

    def choose_tokenizer(self, wanted: str | None) -> str:
        """Return the tokenizer of running text; marks that count tokens mean those between blanks."""
        counts_tokens = self.kind == "mask" or (self.kind == "spans" and self.offsets in ("tokens", "indices"))
        return wanted or (BLANKS if self.marks and counts_tokens else WORDS)


class Person(NamedTuple):
    """One annotator of a text.

    Attributes:
        name: the annotator.
        label: the label that the annotator chose; None: not known.
        marks: the marked tokens of each text; None: not known.
    """

    name: str
    label: str | None
    marks: list[list[Span]] | None


class Row(NamedTuple):
    """An annotation.

    Attributes:
        id: its id.
        query: the query.
        label: the gold label.
        texts: its texts.
        suffixes: the endings of the ids of several documents.
        people: its annotators.
        named: True if they have names; None if they are no people, but alternative rationales.
        file, line: where it is from.
    """

    id: str
    query: str
    label: str
    texts: list[Text]
    suffixes: Sequence[str]
    people: list[Person]
    named: bool | None
    file: str
    line: int


PeopleMarks = list[list[list[Span]] | None]
"""[person][text][span]; None: not known."""


class TableReader:
    """Reader of the annotations of a table; what is left out is counted.

    Args:
        source: the table.
        split: its split, for ids.
        columns: its columns.
        tokenizer: what cuts running text; None: `Columns.choose_tokenizer` says.
        tally: counts what is left out and changed.
    """

    def __init__(self, source: Source, split: str, columns: Columns, tokenizer: str | None, tally: Tally) -> None:
        self.source, self.split, self.columns, self.tally = source, split, columns, tally
        self.tokenizer = columns.choose_tokenizer(tokenizer)
        self.marks = MarkReader(columns.kind, columns.offsets, tally)
        self.joined: dict[object, Row] = {}  # of a table with a row per text and person: id or content -> the first

    def __iter__(self) -> Iterator[Row]:
        """Yield the annotations.

        Raises:
            DataError: a cell is wrong, with file, line and column.
        """
        for row in self.source.rows():
            file = row.file or self.source.name
            self.tally.place = f"{Path(file).name}:{row.number}"
            with locate(file, row.number):
                found = self._read(row)
            if found is not None:
                yield found
        names = dict.fromkeys(person.name for row in self.joined.values() for person in row.people)
        for text in self.joined.values():
            by_name = {person.name: person for person in text.people}
            people = [by_name[name] for name in names if name in by_name]
            self.tally.place = f"{Path(text.file).name}:{text.line}"
            self.tally.add("missing", len(names) - len(people))
            labels = Counter(person.label for person in people if person.label is not None)
            if self.columns.is_gold:
                people = [person._replace(label=None) for person in people]
            if (label := find_majority_label(labels, self.tally)) is not None:
                yield text._replace(label=label, people=people)

    def _read(self, row: SourceRow) -> Row | None:
        """Return a row of all people of a text; None where it is left out, or one person's."""
        columns, cells = self.columns, row.cells
        texts = []
        for name in columns.texts:
            cell = get_cell(cells, name)
            parsed = parse_tokens(cell, name) if columns.tokenized else parse_text(cell, self.tokenizer, name)
            texts.append(parsed)
        if not all(text.tokens for text in texts):
            self.tally.add("no tokens")
            return None
        names = parse_names(get_cell(cells, columns.annotator), columns.annotator) if columns.annotator else None
        cell, classes = parse_literal(get_cell(cells, columns.label)), self.source.classes.get(columns.label)
        has_none = isinstance(names, str) and is_empty(cell)
        labels = [] if has_none else parse_labels(cell, classes, columns.label)
        id = f"{self.split}_{row.number}" if row.key is None else parse_word(row.key, "key")
        id = parse_word(get_cell(cells, columns.id), columns.id) if columns.id else id
        query = parse_strings(get_cell(cells, columns.query)) if columns.query else ""
        parts = query if isinstance(query, list) else [query]
        query = QUERY_SEPARATOR.join(parse_word(part, columns.query or "") for part in parts)
        marks = self._read_marks(cells, texts)
        found = Row(id, query, "", texts, columns.suffixes, [], True, row.file or self.source.name, row.number)
        if isinstance(names, str):
            self._join(names, found, labels, marks)
            return None
        if (label := find_majority_label(Counter(labels), self.tally)) is None:
            return None
        names = names or (list(columns.marks) if len(columns.marks) > len(texts) else None)
        people = self._pair(labels if isinstance(cell, list) else None, marks, names)
        # without names, lists of sentences are alternative rationales, not people
        named = True if names else None if columns.offsets == "sentences" else False
        return found._replace(label=label, people=people, named=named)

    def _read_marks(self, cells: Cells, texts: Sequence[Text]) -> PeopleMarks:
        """Return the marks of each person."""
        columns = self.columns.marks
        if len(texts) == 1 and len(columns) > 1:
            found = [self.marks.read(get_cell(cells, column), texts[0], column) or [[]] for column in columns]
            for column, people in zip(columns, found, strict=True):
                if len(people) > 1:
                    message = f"expected the marks of one person, whose column it is, found those of {len(people)}"
                    raise DataError(message, field=column)
            by_text = [[people[0] for people in found]]
        else:
            pairs = zip(columns, texts, strict=True) if columns else ()
            by_text = [self.marks.read(get_cell(cells, column), text, column) for column, text in pairs]
        size = max(map(len, by_text), default=0)
        for column, people in zip(columns, by_text, strict=False):
            if len(people) not in (0, size):
                message = f"expected marks of {size} people, as in the row's other texts, found {len(people)}"
                raise DataError(message, field=column)
        marks = [[people[at] if people else [] for people in by_text] for at in range(size)]
        return [None if None in own and not any(own) else [spans or [] for spans in own] for own in marks]

    def _join(self, name: str, row: Row, labels: Sequence[str], marks: PeopleMarks) -> None:
        """Add one person's row to those of the text."""
        if self.columns.marks:
            marks = marks or [[[] for _ in row.texts]]
        for each, column in ((labels, self.columns.label), (marks, ",".join(self.columns.marks))):
            if len(each) > 1:
                raise DataError(f"expected one, of the annotator {show(name)}, found {len(each)}", field=column)
        content = (row.query, *(text.document for text in row.texts))
        first = self.joined.setdefault(row.id if self.columns.id else content, row)
        if (first.query, *(text.document for text in first.texts)) != content:
            message = f"expected the text of {show(row.id)} as on line {first.line}, found another"
            raise DataError(message, field=self.columns.texts[0])
        if any(person.name == name for person in first.people):
            self.tally.add("duplicates", detail=f": {show(name, 40)}")
        else:
            first.people.append(Person(name, labels[0] if labels else None, marks[0] if marks else None))

    def _pair(self, labels: Sequence[str] | None, marks: PeopleMarks, names: Sequence[str] | None) -> list[Person]:
        """Return the people of a row, whose labels and marks have the same order.

        Where their numbers differ, labels are kept without marks, and marks as those of ``marks 1``, ..
        """
        counts = {len(each) for each in (labels, marks) if each}
        if names is not None and (len(set(names)) < len(names) or not counts <= {len(names)}):
            expected = " and ".join(map(str, sorted(counts)))
            message = f"expected {expected} people, each once, as there are labels and marks, found {show(list(names))}"
            raise DataError(message, field=self.columns.annotator or self.columns.label)
        if len(counts) <= 1:
            names = names or [str(at + 1) for at in range(max(counts, default=0))]
            return [Person(*person) for person in zip_longest(names, labels or (), marks)]
        self.tally.add("unmatched")
        people = [Person(str(at), label, None) for at, label in enumerate(labels or (), 1)]
        return [*people, *(Person(f"marks {at}", None, own) for at, own in enumerate(marks, 1))]


def parse_names(value: Any, column: str) -> str | list[str] | None:
    """Return the annotator of a cell, or the annotators of a list; None for a list of nulls.

    Raises:
        DataError: the cell has no name.
    """
    value = parse_literal(value)
    names = value if isinstance(value, list) else [value]
    if isinstance(value, list) and not any(names):
        return None
    words = [parse_word(name, column) for name in names]
    if not all(map(str.strip, words)):
        raise DataError(f"expected the name of an annotator, found {show(value)}", field=column)
    return words if isinstance(value, list) else words[0]
