"""Base class of the readers of annotation tools, and their tasks: texts with people's marks and choices."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from eraser_hub.conversion.readers import read_utf8_file
from eraser_hub.records.errors import DataError, get_first_line

from .reader import Reader, SourceRow

REJECTED, IGNORED, CANCELLED, NOT_ANNOTATED = "rejected", "ignored", "cancelled", "not annotated"


class Mark(NamedTuple):
    """A marked span of a text.

    Attributes:
        start, end: its characters, the end exclusive.
        label: its label or type.
        id: by which relations name it.
        attributes: its features: name -> value.
        words: the marked text, if the file has it; it is compared with the text.
        text: name of the text that it is in; "" for the first.
    """

    start: int
    end: int
    label: str
    id: str = ""
    attributes: Mapping[str, str] = {}
    words: str | None = None
    text: str = ""


class Relation(NamedTuple):
    """A relation of two marks, by their ids."""

    label: str
    source: str
    target: str


@dataclass
class TaskAnnotation:
    """Marks and choices of one person in one task.

    Attributes:
        annotator: name of the person; None if the file has none.
        marks: the marked spans.
        choices: name of a question -> the chosen labels of the whole text.
        relations: relations of the marks.
    """

    annotator: str | None = None
    marks: list[Mark] = field(default_factory=list)
    choices: dict[str, list[str]] = field(default_factory=dict)
    relations: list[Relation] = field(default_factory=list)


@dataclass
class Task:
    """A text that people annotated.

    Attributes:
        number: its line in the file, or its number, from 1.
        texts: name -> text; most tools have one.
        annotations: one for each person.
        id: the tool's id.
        fields: further columns of the task.
        tokens: the tokens of each sentence of the first text as spans of characters, where the tool has tokens.
        left_out: why the task is not imported: `REJECTED`, `IGNORED`, `CANCELLED` or `NOT_ANNOTATED`.
        file: the file, where a folder holds a file for each task.
    """

    number: int
    texts: dict[str, str]
    annotations: list[TaskAnnotation]
    id: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    tokens: list[list[tuple[int, int]]] | None = None
    left_out: str = ""
    file: Path | None = None

    @property
    def place(self) -> str:
        """File and line, for notes."""
        return f"{self.file.name if self.file else ''}:{self.number}"


class TaskReader(Reader):
    """Base class of a reader of an annotation tool's export.

    `recognizes` looks at a file's or a folder's content, since tools share the endings of names. ``texts`` names the
    columns of the texts where the tool's export does not say them.

    Attributes:
        title: name of the tool, for messages.
        counts_utf16: True if the tool counts offsets in UTF-16 units; not all exports are the tool's own.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()
    title: ClassVar[str]
    counts_utf16: ClassVar[bool] = False

    def __init__(self, path: Path, texts: Sequence[str] = ()) -> None:
        super().__init__(path)
        self.texts = tuple(texts)

    @classmethod
    @abstractmethod
    def recognizes(cls, path: Path) -> bool:
        """Return True if the file or folder is an export of the tool; never raises for another."""

    @abstractmethod
    def tasks(self) -> Iterator[Task]:
        """Read the tasks in order.

        Raises:
            DataError: at the first fault, with file and line.
        """

    def rows(self) -> Iterator[SourceRow]:
        """Read each task as it stands, with all marks of all people, and with the reason why an import skips it."""
        for task in self.tasks():
            cells: dict[str, Any] = {**task.fields, **task.texts, "id": task.id, "left_out": task.left_out}
            cells["annotators"] = [each.annotator for each in task.annotations]
            cells["spans"] = [[[mark.start, mark.end, mark.label] for mark in each.marks] for each in task.annotations]
            cells["choices"] = [each.choices for each in task.annotations]
            yield SourceRow(task.number, None, cells)


def read_text_file(path: Path) -> str:
    """Return a file's text with its line ends as they are.

    Raises:
        DataError: the file cannot be read, or is no UTF-8.
    """
    return read_utf8_file(str(path)).decode("utf-8").removeprefix("\ufeff")


def read_xml_file(path: Path) -> ElementTree.Element:
    """Return the root of an XML file.

    Raises:
        DataError: the file cannot be read, is no XML, or has a document type, whose entities could grow without end.
    """
    text = read_text_file(path)
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise DataError("expected XML without a document type", file=path)
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        message = f"cannot be read as XML: {get_first_line(error)}"
        raise DataError(message, file=path, line=error.position[0]) from None


def list_files(folder: Path, *suffixes: str) -> list[Path]:
    """Return the files below a folder with these endings, sorted; none if it is no folder."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.rglob("*") if path.name.endswith(suffixes) and path.is_file())


def look_at_start(path: Path, size: int = 1 << 16) -> str:
    """Return the start of a file as text; "" for a folder and for what cannot be read."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(size).decode("utf-8", "replace").removeprefix("\ufeff")
    except OSError:
        return ""


class Utf16Offsets:
    """Conversion of offsets in UTF-16 units, as Java and JavaScript count them, to characters."""

    def __init__(self, text: str) -> None:
        self._places = None if text.isascii() else [0, *accumulate(2 if sign > "\uffff" else 1 for sign in text)]

    def to_character(self, offset: int) -> int:
        """Return the character at an offset; a negative one stays, so that the span is refused."""
        return offset if self._places is None or offset < 0 else bisect_left(self._places, offset)


def list_project_files(folder: Path, *suffixes: str) -> list[tuple[Path, str, str | None]]:
    """Return file, name of its text, and person, of each file below a folder, or of the file that it is.

    An exported project of INCEpTION has ``annotation/TEXT/PERSON.tsv``; its folder ``curation`` and the files
    ``INITIAL_CAS`` are no person's, and are not read. In another folder each file is a text.
    """
    project = folder / "annotation"
    if folder.is_file():
        return [(folder, folder.stem, None)]
    if not project.is_dir():
        files = list_files(folder, *suffixes)
        return [(path, path.relative_to(folder).with_suffix("").as_posix(), None) for path in files]
    files = [path for path in list_files(project, *suffixes) if path.stem != "INITIAL_CAS"]
    return [(path, path.parent.relative_to(project).as_posix(), path.stem) for path in files]


def merge_files(tasks: Iterable[tuple[Path, Task]]) -> Iterator[Task]:
    """Merge the files of several people: files of one name with one text in several folders, named after the folders.

    Args:
        tasks: file and task of each.
    """
    groups: dict[tuple[str, ...], list[tuple[Path, Task]]] = {}
    for path, task in tasks:
        groups.setdefault((path.name, *task.texts.values()), []).append((path, task))
    for members in groups.values():
        path, first = members[0]
        if len(members) > 1:
            for each, task in members:
                for annotation in task.annotations:
                    annotation.annotator = each.parent.name
            first.id, first.fields = path.stem, {}
            first.annotations = [annotation for _, task in members for annotation in task.annotations]
            first.left_out = "" if first.annotations else first.left_out
        yield first
