"""Reader of brat's standoff: a folder with ``NAME.txt`` and ``NAME.ann``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from eraser_hub.conversion.importing.reader import locate
from eraser_hub.conversion.importing.tasks import (
    NOT_ANNOTATED,
    Mark,
    Relation,
    Task,
    TaskAnnotation,
    TaskReader,
    list_files,
    merge_files,
    read_text_file,
)
from eraser_hub.conversion.importing.texts import have_same_letters
from eraser_hub.records.errors import DataError, show

_MARK = re.compile(r"(T\S+)\t(\S+) (\d+ \d+(?:;\d+ \d+)*)\t(.*)")
_RELATION = re.compile(r"(R\S+)\t(\S+) \S+?:(\S+) \S+?:(\S+)\s*")
_ATTRIBUTE = re.compile(r"([AM]\S+)\t(\S+) (\S+)(?: (\S.*?))?\s*")


class Brat(TaskReader):
    """Reader of a folder; folders in it that hold files of one name and text are people."""

    title = "brat"

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Look for .ann files beside texts."""
        return any(file.with_suffix(".txt").is_file() for file in list_files(path, ".ann"))

    def tasks(self) -> Iterator[Task]:
        """Read a task for each text; nobody has annotated a text without an .ann file."""
        yield from merge_files((path, self._read_task(path)) for path in list_files(self.path, ".txt"))

    def _read_task(self, path: Path) -> Task:
        marks = path.with_suffix(".ann")
        text = read_text_file(path)
        place = path.relative_to(self.path)
        fields = {"folder": place.parent.as_posix()} if place.parent.name else {}
        identity = place.with_suffix("").as_posix()
        if not marks.is_file():
            return Task(1, {"text": text}, [], identity, fields, left_out=NOT_ANNOTATED, file=path)
        return Task(1, {"text": text}, [_read_annotation(marks, text)], identity, fields, file=path)


def _read_annotation(path: Path, text: str) -> TaskAnnotation:
    annotation = TaskAnnotation()
    attributes: dict[str, dict[str, str]] = {}
    for number, line in enumerate(read_text_file(path).split("\n"), 1):
        line = line.rstrip("\r")
        kind = line[:1]
        with locate(path, number):
            if kind == "T":
                annotation.marks += _parse_marks(line, text)
            elif kind == "R":
                match = _match(_RELATION, line, "R1<TAB>Type Arg1:T1 Arg2:T2")
                annotation.relations.append(Relation(match[2], match[3], match[4]))
            elif kind in ("A", "M"):
                match = _match(_ATTRIBUTE, line, "A1<TAB>Name T1 Value")
                attributes.setdefault(match[3], {})[match[2]] = match[4] or "true"
            elif line and kind not in ("#", "N", "*", "E"):
                raise DataError(f"expected a line of standoff, found {show(line)}")
    annotation.marks = [mark._replace(attributes=attributes.get(mark.id, {})) for mark in annotation.marks]
    return annotation


def _match(pattern: re.Pattern[str], line: str, form: str) -> re.Match[str]:
    match = pattern.fullmatch(line)
    if match is None:
        raise DataError(f"expected {form}, found {show(line)}")
    return match


def _parse_marks(line: str, text: str) -> Iterator[Mark]:
    """Yield a mark for each part of a line; the parts have one id."""
    match = _match(_MARK, line, "T1<TAB>Type START END<TAB>TEXT")
    parts = [(int(start), int(end)) for start, _, end in (part.partition(" ") for part in match[3].split(";"))]
    found = " ".join(text[start:end] for start, end in parts)
    if not have_same_letters(found, match[4]):
        message = f"expected the mark's own text {show(match[4])} at {match[3]}, found {show(found)}"
        raise DataError(message)
    yield from (Mark(start, end, match[2], match[1]) for start, end in parts)
