"""doccano's JSON lines: triples in ``label``, objects in ``entities``, categories; a file, or a folder of people's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eraser_hub.conversion.importing.sources import open_file
from eraser_hub.conversion.importing.tally import locate
from eraser_hub.conversion.importing.tasks import Mark, Task, look_at_first_row
from eraser_hub.records.errors import DataError, show

TITLE = "doccano"
TEXTS = ("text", "data")  # of releases 1.5 and later, and of earlier ones
LABELS = ("label", "labels", "entities", "cats", "annotations")
USED = {*TEXTS, *LABELS, "id", "relations", "Comments", "comments"}


def recognizes(path: Path) -> bool:
    """Look for a text beside labels, entities or annotations."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    return bool(files) and all(_is_export(look_at_first_row(file)) for file in files)


def _is_export(row: dict[str, Any]) -> bool:
    if not any(isinstance(row.get(name), str) for name in TEXTS) or "answer" in row or "spans" in row:
        return False
    objects = [row[name] for name in ("entities", "annotations") if isinstance(row.get(name), list)]
    has_offsets = any(isinstance(one, dict) and "start_offset" in one for some in objects for one in some)
    known = bool(objects) and ("relations" in row or "Comments" in row)
    return has_offsets or known or any(isinstance(row.get(name), list) for name in ("label", "labels", "cats"))


def read_tasks(path: Path, text: str | None) -> Iterator[Task]:
    """Read a line's task of each person; nobody has annotated the texts of a folder's ``unknown.jsonl``."""
    for file in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
        owner = file.stem if path.is_dir() and file.stem not in ("all", "unknown") else None
        for row in open_file(file).rows():
            with locate(file, row.number):
                yield from _read_row(file, row.number, row.cells, owner)


def _read_row(file: Path, line: int, cells: Any, owner: str | None) -> Iterator[Task]:
    text = next((cells[name] for name in TEXTS if name in cells), None)
    if not isinstance(text, str):
        raise DataError(f"expected a text, found {show(text)}", field=TEXTS[0])
    number, fields = cells.get("id"), {name: cell for name, cell in cells.items() if name not in USED}
    id = str(number) if isinstance(number, int | str) and not isinstance(number, bool) else None
    people: dict[Any, Task] = {}
    for name in LABELS:
        values = [cells[name]] if isinstance(cells.get(name), str) else cells.get(name)
        for at, value in enumerate(values if isinstance(values, list) else ()):
            user = value.get("user") if isinstance(value, dict) else None
            who = owner if user is None else str(user)
            task = people.setdefault(user, Task(file, line, text, annotator=who, id=id, fields=fields))
            found = value
            if isinstance(value, dict):
                span = [value.get(key) for key in ("start_offset", "end_offset", "label")]
                found = span[2] if span[:2] == [None, None] else span
            parts: list[Any] = found if isinstance(found, list) else [found]
            kinds = [type(part) for part in parts]
            if kinds in ([str], [int]):
                task.answers.setdefault("label" if name in ("labels", "annotations") else name, []).append(
                    str(parts[0])
                )
            elif kinds in ([int, int, str], [int, int, int]):
                task.marks.append(Mark(parts[0], parts[1], str(parts[2])))
            else:
                message = f"expected a label, or [start, end, label], found {show(value)}"
                raise DataError(message, field=f"{name}[{at}]")
    for task in [*people.values()][:1]:
        task.counts["relations"] += len(cells.get("relations") or ())
    yield from people.values() or [Task(file, line, text, id=id, left_out="not annotated")]
