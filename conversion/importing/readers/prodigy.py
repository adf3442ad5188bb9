"""Reader of the JSON lines of Prodigy's ``db-out``: answers, spans, choices, tokens, relations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eraser_hub.conversion.importing.reader import SourceRow, locate
from eraser_hub.conversion.importing.tasks import (
    IGNORED,
    NOT_ANNOTATED,
    REJECTED,
    Mark,
    Relation,
    Task,
    TaskAnnotation,
    TaskReader,
)
from eraser_hub.records.errors import DataError, show

from ._first_rows import first_line_object
from .json_lines import JsonLines

ANSWERS = {"accept": "", "reject": REJECTED, "ignore": IGNORED}
_USED = {"text", "spans", "tokens", "answer", "accept", "options", "label", "relations", "html", "config"}


class Prodigy(TaskReader):
    """Reader of a line for each answer; the answers of several people to one input are one task."""

    title = "Prodigy"

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Look for a text with an answer, or with Prodigy's hashes."""
        row = first_line_object(path)
        return isinstance(row.get("text"), str) and (row.get("answer") in tuple(ANSWERS) or "_task_hash" in row)

    def tasks(self) -> Iterator[Task]:
        """Read a task for each input, with its position as id."""
        ids: dict[str, str] = {}
        for row in JsonLines(self.path).rows():
            with locate(self.path, row.number):
                yield _parse_task(row, self.path, ids)


def _parse_task(row: SourceRow, path: Path, ids: dict[str, str]) -> Task:
    cells = row.cells
    text, answer = cells.get("text"), cells.get("answer", "accept")
    if not isinstance(text, str):
        raise DataError(f"expected a text, found {show(text)}", field="text")
    if answer is not None and answer not in tuple(ANSWERS):
        raise DataError(f"expected accept, reject or ignore, found {show(answer)}", field="answer")
    person = cells.get("_annotator_id") or cells.get("_session_id")
    annotation = TaskAnnotation(None if person is None else str(person))
    for at, span in enumerate(_list(cells, "spans")):
        (start, end), words = _parse_offsets(span, f"spans[{at}]"), span.get("text")
        words = words if isinstance(words, str) else None
        annotation.marks.append(Mark(start, end, str(span.get("label", "")), f"{start}-{end}", words=words))
    chosen = cells.get("accept")
    if chosen := [chosen] if isinstance(chosen, str | int) else _list(cells, "accept"):
        annotation.choices["accept"] = [str(choice) for choice in chosen]
    if isinstance(cells.get("label"), str):
        annotation.choices["label"] = [cells["label"]]
    annotation.relations = [
        _parse_relation(each, f"relations[{at}]") for at, each in enumerate(_list(cells, "relations"))
    ]
    fields = {name: value for name, value in cells.items() if name not in _USED and not name.startswith("_")}
    key = json.dumps([text, fields, cells.get("_input_hash")], sort_keys=True)
    identity = ids.setdefault(key, str(len(ids) + 1))
    reason = NOT_ANNOTATED if answer is None else ANSWERS[answer]
    places = [_parse_offsets(token, f"tokens[{at}]") for at, token in enumerate(_list(cells, "tokens"))]
    return Task(row.number, {"text": text}, [annotation], identity, fields, [places] if places else None, reason, path)


def _list(cells: Mapping[str, Any], name: str) -> list[Any]:
    value = cells.get(name)
    if value is not None and not isinstance(value, list):
        raise DataError(f"expected a list, found {show(value)}", field=name)
    return value or []


def _parse_offsets(value: Any, place: str) -> tuple[int, int]:
    if not isinstance(value, dict) or not all(type(value.get(name)) is int for name in ("start", "end")):
        raise DataError(f"expected an object with start and end, found {show(value)}", field=place)
    return value["start"], value["end"]


def _parse_relation(value: Any, place: str) -> Relation:
    if not isinstance(value, dict):
        raise DataError(f"expected an object, found {show(value)}", field=place)
    ends = [_parse_offsets(value.get(name), f"{place}.{name}") for name in ("head_span", "child_span")]
    return Relation(str(value.get("label", "")), *(f"{start}-{end}" for start, end in ends))
