"""Reader of Label Studio's exports JSON and JSON_MIN."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eraser_hub.conversion.importing.reader import locate
from eraser_hub.conversion.importing.tasks import (
    CANCELLED,
    NOT_ANNOTATED,
    Mark,
    Relation,
    Task,
    TaskAnnotation,
    TaskReader,
)
from eraser_hub.records.errors import DataError, UsageError, show

from ._first_rows import first_element
from .json import Json

_MIN_KEYS = {"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement"}
_TAG = re.compile(r"</?[A-Za-z]")
_CHOICES = ("choices", "taxonomy", "rating", "number")


class LabelStudio(TaskReader):
    """Reader of tasks with the annotations of several people (JSON), or of a row for each annotation (JSON_MIN)."""

    title = "Label Studio"
    counts_utf16 = True

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Look for tasks with data and annotations, or for JSON_MIN's annotation_id."""
        row = first_element(path)
        whole = isinstance(row.get("data"), dict) and any(name in row for name in ("annotations", "completions"))
        return whole or ("annotation_id" in row and len(_MIN_KEYS & row.keys()) > 2)

    def tasks(self) -> Iterator[Task]:
        """Read the tasks; cancelled annotations count as tasks that are left out."""
        rows = [(row.number, row.cells) for row in Json(self.path).rows()]
        whole = any("data" in cells for _, cells in rows)
        parse = self._parse_tasks if whole else self._parse_rows
        data = [cells.get("data") if whole else _list_data_columns(cells) for _, cells in rows]
        marks = [
            _list_marked(cells) if whole else [("", span) for value in cells.values() for span in _get_spans(value)]
            for _, cells in rows
        ]
        for (number, _), each, some in zip(rows, data, marks, strict=True):
            texts = each.values() if isinstance(each, dict) else ()
            has_tags = any(isinstance(text, str) and _TAG.search(text) for text in texts)
            if has_tags and any("globalOffsets" in value for _, value in some):
                message = (
                    "HyperText with tags is not read: its marks count the visible text. Export the tasks as plain text"
                )
                raise DataError(message, file=self.path, line=number)
        names = self._find_texts([each if isinstance(each, dict) else {} for each in data], marks)
        for number, cells in rows:
            with locate(self.path, number):
                yield from parse(number, cells, names)

    # -- JSON -------------------------------------------------------------------------------------------------------

    def _parse_tasks(self, number: int, cells: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[Task]:
        data, annotations = cells.get("data"), cells.get("annotations", cells.get("completions"))
        if not isinstance(data, dict) or not isinstance(annotations, list):
            raise DataError("expected a task with data and annotations", field="data")
        texts = {key: _get_text(data, key) for key in dict.fromkeys(names.values())}
        fields = {name: value for name, value in data.items() if name not in texts}
        identity = str(cells["id"]) if "id" in cells else None
        people = []
        for at, each in enumerate(annotations):
            if not isinstance(each, dict) or not isinstance(each.get("result"), list):
                raise DataError("expected an annotation with a result", field=f"annotations[{at}]")
            if each.get("was_cancelled"):
                yield Task(number, texts, [], identity, fields, left_out=CANCELLED, file=self.path)
            else:
                people.append(_parse_annotation(each, names, f"annotations[{at}]"))
        if people or not annotations:
            reason = "" if people else NOT_ANNOTATED
            yield Task(number, texts, people, identity, fields, left_out=reason, file=self.path)

    # -- JSON_MIN ---------------------------------------------------------------------------------------------------

    def _parse_rows(self, number: int, cells: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[Task]:
        (key,) = dict.fromkeys(names.values())
        person = cells.get("annotator")
        annotation = TaskAnnotation(_get_person(person))
        data = _list_data_columns(cells)
        fields = {name: value for name, value in cells.items() if name in data and name != key}
        for name, value in cells.items():
            spans = _get_spans(value)
            if name in _MIN_KEYS or name == key or name in fields:
                continue
            for at, span in enumerate(spans):
                offsets = _parse_offsets(span, f"{name}[{at}]")
                annotation.marks += (Mark(*offsets[:2], one, words=offsets[2], text=key) for one in _get_labels(span))
            if spans:
                continue
            if isinstance(value, str):
                annotation.choices[name] = [value]
            elif isinstance(value, dict) and isinstance(value.get("choices"), list):
                annotation.choices[name] = [str(choice) for choice in value["choices"]]
            else:
                fields[name] = value
        identity, texts = str(cells["id"]) if "id" in cells else None, {key: _get_text(cells, key)}
        reason = NOT_ANNOTATED if cells.get("annotation_id") is None else ""
        yield Task(number, texts, [annotation], identity, fields, left_out=reason, file=self.path)

    # -- texts ------------------------------------------------------------------------------------------------------

    def _find_texts(
        self, data: list[Mapping[str, Any]], marks: list[list[tuple[str, Mapping[str, Any]]]]
    ) -> dict[str, str]:
        """Return name of a text in the results -> column of the text; "" stands for the only one.

        A column is a text's if it has the text's name, if it is the only column of strings, or if the marked words
        stand at their offsets in it for all tasks.
        """
        columns = [name for name, value in (data[0] if data else {}).items() if isinstance(value, str)]
        columns = [name for name in columns if name not in _MIN_KEYS]
        columns = [name for name in columns if all(isinstance(each.get(name), str) for each in data)]
        named = dict.fromkeys(name for some in marks for name, _ in some) or {"": None}
        if self.texts and len(named) <= 1:
            return dict.fromkeys([*named, ""], self.texts[0])
        found = {}
        for name in named:
            fitting = [
                column
                for column in columns
                if all(
                    _fits(each[column], value)
                    for each, some in zip(data, marks, strict=True)
                    for other, value in some
                    if other == name
                )
            ]
            chosen = [name] if name in columns else fitting
            if len(chosen) != 1:
                there = ", ".join(columns) or "none"
                message = f"expected the column of the text, one of: {there}; found {len(chosen)} that fit the marks"
                raise UsageError(message, argument="text")
            found[name] = chosen[0]
        return {**found, "": next(iter(found.values()))}


def _get_text(data: Mapping[str, Any], key: str) -> str:
    text = data.get(key)
    if not isinstance(text, str):
        raise DataError(f"expected a text, found {show(text)}", field=key)
    return text


def _list_data_columns(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a row of JSON_MIN that are no answers: the converter writes them before ``id``."""
    names = list(cells)
    before = names[: names.index("id")] if "id" in names else []
    return {name: cells[name] for name in before} or {k: v for k, v in cells.items() if k not in _MIN_KEYS}


def _get_person(person: Any) -> str | None:
    if isinstance(person, dict):
        person = next((person[name] for name in ("email", "username", "id") if person.get(name)), None)
    return None if person is None else str(person)


def _list_marked(cells: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return (name of the text, value) of each mark in a task's results."""
    annotations = cells.get("annotations", cells.get("completions"))
    results = [
        result
        for each in (annotations if isinstance(annotations, list) else ())
        if isinstance(each, dict) and isinstance(each.get("result"), list)
        for result in each["result"]
        if isinstance(result, dict)
    ]
    return [(str(result.get("to_name", "")), result["value"]) for result in results if _is_mark(result.get("value"))]


def _get_spans(value: Any) -> list[Mapping[str, Any]]:
    return value if isinstance(value, list) and value and all(map(_is_mark, value)) else []


def _is_mark(value: Any) -> bool:
    return isinstance(value, dict) and "start" in value and "end" in value


def _fits(text: str, value: Mapping[str, Any]) -> bool:
    try:
        start, end, words = _parse_offsets(value, "")
    except DataError:  # raised again with its place, when the task is parsed
        return True
    return words is None or (len(text) >= end and words.split()[:1] == text[start:end].split()[:1])


def _parse_offsets(value: Mapping[str, Any], place: str) -> tuple[int, int, str | None]:
    """Return start, end and own words of a mark; a mark in HTML has its characters in ``globalOffsets``."""
    offsets = value.get("globalOffsets", value)
    if not isinstance(offsets, dict) or not all(type(offsets.get(name)) is int for name in ("start", "end")):
        raise DataError(f"expected whole numbers as start and end, found {show(value)}", field=place)
    words = value.get("text")
    return offsets["start"], offsets["end"], words if isinstance(words, str) else None


def _get_labels(value: Mapping[str, Any]) -> list[str]:
    names = ("labels", "hypertextlabels", "paragraphlabels")
    labels: list[Any] = next((value[name] for name in names if isinstance(value.get(name), list)), [])
    return [str(label) for label in labels] or [""]


def _parse_annotation(each: Mapping[str, Any], names: Mapping[str, str], place: str) -> TaskAnnotation:
    annotation = TaskAnnotation(_get_person(each.get("completed_by")))
    answers: dict[str, dict[str, str]] = {}
    regions: dict[str, tuple[Mapping[str, Any], str]] = {}
    for at, result in enumerate(each["result"]):
        where = f"{place}.result[{at}]"
        if not isinstance(result, dict):
            raise DataError(f"expected an object, found {show(result)}", field=where)
        kind, value = str(result.get("type", "")), result.get("value")
        value = value if isinstance(value, dict) else {}
        if kind == "relation":
            label = ", ".join(map(str, result.get("labels") or ()))
            ends = [str(result.get("from_id")), str(result.get("to_id"))]
            annotation.relations.append(Relation(label, *(ends[::-1] if result.get("direction") == "left" else ends)))
        elif kind in _CHOICES:
            answer = value.get(kind)
            values = answer if isinstance(answer, list) else [] if answer is None else [answer]
            # of a taxonomy's path the last name
            chosen = [str(each[-1]) if isinstance(each, list) and each else str(each) for each in values]
            name = str(result.get("from_name", kind))
            if _is_mark(value):  # a question about one mark
                answers.setdefault(str(result.get("id")), {})[name] = chosen[0] if chosen else ""
            else:
                annotation.choices.setdefault(name, []).extend(chosen)
        elif _is_mark(value) and kind.endswith("labels"):
            regions[str(result.get("id", where))] = (value, names[str(result.get("to_name", ""))])
    for identity, (value, text) in regions.items():
        start, end, words = _parse_offsets(value, f"{place}.result")
        for label in _get_labels(value):
            annotation.marks.append(Mark(start, end, label, identity, answers.get(identity, {}), words, text))
    return annotation
