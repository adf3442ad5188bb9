"""Reader of doccano's JSON lines: triples in ``label``, objects in ``entities``, categories, relations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eraser_hub.conversion.importing.reader import SourceRow, locate
from eraser_hub.conversion.importing.tasks import Mark, Relation, Task, TaskAnnotation, TaskReader, list_files
from eraser_hub.records.errors import DataError, show

from ._first_rows import first_line_object
from .json_lines import JsonLines

TEXTS = ("text", "data")  # of releases 1.5 and later, and of earlier ones
_USED = {*TEXTS, "id", "label", "labels", "entities", "relations", "cats", "annotations", "Comments", "comments"}


class Doccano(TaskReader):
    """Reader of one file, or of a folder with a file for each person; nobody annotated its ``unknown.jsonl``."""

    title = "doccano"

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Look for a text beside labels, entities or annotations."""
        files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
        return bool(files) and all(_is_export(first_line_object(file)) for file in files)

    def tasks(self) -> Iterator[Task]:
        """Read a task a line."""
        folder = self.path.is_dir()
        for path in list_files(self.path, ".jsonl") if folder else [self.path]:
            person = path.stem if folder and path.stem not in ("all", "unknown") else None
            for row in JsonLines(path).rows():
                with locate(path, row.number):
                    yield _parse_task(row, path, person)


def _is_export(row: dict[str, Any]) -> bool:
    if not any(isinstance(row.get(name), str) for name in TEXTS) or "answer" in row or "spans" in row:
        return False
    entities, annotations = row.get("entities"), row.get("annotations")
    return (
        any(isinstance(row.get(name), list) for name in ("label", "labels", "cats"))
        or (isinstance(entities, list) and ("relations" in row or "Comments" in row or _has_offsets(entities)))
        or (isinstance(annotations, list) and _has_offsets(annotations))
    )


def _has_offsets(values: list[Any]) -> bool:
    return bool(values) and all(
        isinstance(one, dict) and {"start_offset", "end_offset"} <= one.keys() for one in values
    )


def _parse_task(row: SourceRow, path: Path, person: str | None) -> Task:
    cells = row.cells
    text = next((cells[name] for name in TEXTS if name in cells), None)
    if not isinstance(text, str):
        raise DataError(f"expected a text, found {show(text)}", field=TEXTS[0])
    people: dict[Any, TaskAnnotation] = {}
    for name in ("label", "labels", "entities", "cats", "annotations"):
        values = cells.get(name)
        values = [values] if isinstance(values, str) else values
        for at, value in enumerate(values if isinstance(values, list) else ()):
            user = value.get("user") if isinstance(value, dict) else None
            annotation = people.setdefault(user, TaskAnnotation(person if user is None else str(user)))
            _add_value(annotation, "label" if name in ("labels", "annotations") else name, value, f"{name}[{at}]")
    relations = cells.get("relations")
    if isinstance(relations, list):
        owner = people.setdefault(None, TaskAnnotation(person))
        owner.relations = [_parse_relation(each, f"relations[{at}]") for at, each in enumerate(relations)]
    fields = {name: value for name, value in cells.items() if name not in _USED}
    number = cells.get("id")
    identity = str(number) if isinstance(number, int | str) and not isinstance(number, bool) else None
    return Task(row.number, {"text": text}, list(people.values()), identity, fields, file=path)


def _add_value(annotation: TaskAnnotation, question: str, value: Any, place: str) -> None:
    """Add a mark (a triple, or an object with offsets) or a category."""
    if isinstance(value, dict):
        value = [value.get("start_offset"), value.get("end_offset"), value.get("label"), value.get("id")]
        value = value[2] if value[:2] == [None, None] else value
    if isinstance(value, str | int) and not isinstance(value, bool):
        annotation.choices.setdefault(question, []).append(str(value))
        return
    parts: list[Any] = value if isinstance(value, list) and len(value) in (3, 4) else [None] * 3
    start, end, label = parts[:3]
    if type(start) is not int or type(end) is not int or isinstance(label, bool) or not isinstance(label, str | int):
        message = f"expected a label, or [start, end, label], found {show(value)}"
        raise DataError(message, field=place)
    identity = "" if len(parts) == 3 or parts[3] is None else str(parts[3])
    annotation.marks.append(Mark(start, end, str(label), identity))


def _parse_relation(value: Any, place: str) -> Relation:
    if not isinstance(value, dict) or not {"from_id", "to_id"} <= value.keys():
        raise DataError(f"expected an object with from_id and to_id, found {show(value)}", field=place)
    return Relation(str(value.get("type", "")), str(value["from_id"]), str(value["to_id"]))
