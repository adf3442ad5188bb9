"""Label Studio's export JSON: a task with several people's annotations."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from eraser_hub.conversion.importing.sources import SourceRow, open_file
from eraser_hub.conversion.importing.tally import locate
from eraser_hub.conversion.importing.tasks import Mark, Task, look_at_first_row, read_list, read_offsets
from eraser_hub.conversion.importing.texts import Span, have_same_letters
from eraser_hub.records.errors import DataError, UsageError, show

TITLE = "Label Studio"
CHOICES = ("choices", "rating", "number")
LABELS = ("labels", "hypertextlabels", "paragraphlabels")
TAG = re.compile(r"</?[A-Za-z]")


def recognizes(path: Path) -> bool:
    """Look for tasks with data and annotations, or for the keys of JSON_MIN."""
    row = look_at_first_row(path)
    return (isinstance(row.get("data"), dict) and "annotations" in row) or row.keys() >= {"annotation_id", "lead_time"}


def read_tasks(path: Path, text: str | None) -> Iterator[Task]:
    """Read a task of each annotation; cancelled ones are left out."""
    rows = list(open_file(path).rows())
    for row in rows:
        with locate(path, row.number):
            if not isinstance(row.cells.get("data"), dict):
                raise DataError("expected a task with data and annotations (of JSON, not of JSON_MIN)", field="data")
            for at, each in enumerate(read_list(row.cells, "annotations")):
                results = each.get("result") if isinstance(each, dict) else None
                if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
                    raise DataError("expected an annotation with a result", field=f"annotations[{at}]")
    column = text or _find_text([row.cells for row in rows])
    for row in rows:
        with locate(path, row.number):
            if not isinstance(found := row.cells["data"].get(column), str):
                raise DataError(f"expected a text, found {show(found)}", field=column)
            for each in row.cells["annotations"]:
                yield _read_annotation(path, row, each, column)
            if not row.cells["annotations"]:
                yield Task(path, row.number, found, left_out="not annotated")


def _find_text(tasks: Sequence[Mapping[str, Any]]) -> str:
    """Return the column of the text: the one that the results name, else the only column with the marks' words.

    Raises:
        UsageError: there is none, or several.
    """
    strings = [{name for name, cell in task["data"].items() if isinstance(cell, str)} for task in tasks]
    columns = set.intersection(*strings) if strings else set()
    results = [(task["data"], result) for task in tasks for each in task["annotations"] for result in each["result"]]
    marks = [(data, str(result["value"].get("text") or "").split()[:1]) for data, result in results if is_mark(result)]
    fitting = {name for name in columns if all(word in data[name] for data, words in marks for word in words)}
    found = columns & {str(result.get("to_name")) for _, result in results} or fitting
    if len(found) != 1:
        there = ", ".join(sorted(found or columns)) or "none"
        raise UsageError(f"expected one column of the text, found {there}", argument="text")
    return str(found.pop())


def _read_annotation(path: Path, row: SourceRow, each: Mapping[str, Any], column: str) -> Task:
    """Return an annotation as a task, its offsets in characters."""
    data, person = row.cells["data"], each.get("completed_by")
    if isinstance(person, dict):
        person = next((person[name] for name in ("email", "username", "id") if person.get(name)), None)
    task = Task(path, row.number, data[column], annotator=None if person is None else str(person))
    task.id = str(row.cells["id"]) if "id" in row.cells else None
    task.fields = {name: cell for name, cell in data.items() if name != column}
    task.left_out = "cancelled" if each.get("was_cancelled") else ""
    for result in each["result"]:
        kind, value = str(result.get("type", "")), result.get("value")
        task.counts["relations"] += kind == "relation"
        if kind in CHOICES and isinstance(value, dict) and not is_mark(result):
            chosen = value.get(kind)
            names = map(str, chosen if isinstance(chosen, list) else [chosen])
            task.answers.setdefault(str(result.get("from_name", kind)), []).extend(names)
        elif is_mark(result):
            if "globalOffsets" in value and TAG.search(task.text):
                message = "HyperText with tags is not read: its marks count the visible text; export plain text"
                raise DataError(message)
            span, words = read_offsets(value.get("globalOffsets", value), "result"), value.get("text")
            # the tool counts UTF-16 units; what other programs write may count characters
            candidates = (to_characters(task.text, span), span)
            fitting = [one for one in candidates if words is None or have_same_letters(task.text[slice(*one)], words)]
            if not fitting:
                message = f"expected the mark's own text {show(words)} at {list(span)}"
                raise DataError(f"{message}, found {show(task.text[slice(*span)])}", field="result")
            task.counts["utf-16"] += fitting[0] != span
            labels: Any = next((value[name] for name in LABELS if isinstance(value.get(name), list)), [""])
            task.marks += [Mark(*fitting[0], str(label)) for label in labels]
    return task


def is_mark(result: Mapping[str, Any]) -> bool:
    """Return True for a result that marks a span, and asks nothing about it."""
    value = result.get("value")
    return str(result.get("type", "")).endswith("labels") and isinstance(value, dict) and "start" in value


def to_characters(text: str, span: Span) -> Span:
    """Return a span that counts UTF-16 units, as JavaScript does, in characters."""
    if text.isascii() or min(span) < 0:
        return span
    units = [0, *accumulate(2 if sign > "\uffff" else 1 for sign in text)]
    return bisect_left(units, span[0]), bisect_left(units, span[1])
