"""Reader of WebAnno TSV 3, which INCEpTION writes: a file for each text and person."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from eraser_hub.conversion.importing.reader import locate
from eraser_hub.conversion.importing.tasks import (
    Mark,
    Relation,
    Task,
    TaskAnnotation,
    TaskReader,
    list_files,
    list_project_files,
    look_at_start,
    read_text_file,
)
from eraser_hub.records.errors import DataError, show

HEADER = "#FORMAT=WebAnno TSV 3"
_ADDRESS = re.compile(r"(\d+-\d+)(?:\.\d+)?")
_OFFSETS = re.compile(r"(\d+)-(\d+)")
_NUMBERED = re.compile(r"(.*?)(?:\[(\d+(?:_\d+)?)\])?", re.DOTALL)
_ESCAPED = re.compile(r"\\(->|.)")


class Layer(NamedTuple):
    """A layer of annotations.

    Attributes:
        kind: SP (spans), RL (relations) or CH (chains).
        name: its short name.
        features: the names of its columns; of a relation the last is ``BT_`` and the layer that it joins.
    """

    kind: str
    name: str
    features: tuple[str, ...]


class WebAnno(TaskReader):
    """Reader of a file, or of a folder of files; a project's has a folder for each text."""

    title = "WebAnno TSV"

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Look for the header."""
        files = list_files(path, ".tsv") if path.is_dir() else [path] if path.name.endswith(".tsv") else []
        return bool(files) and all(look_at_start(file, 100).startswith(HEADER) for file in files)

    def tasks(self) -> Iterator[Task]:
        """Read a task for each file; those of one text are one task."""
        yield from (_read_task(*file) for file in list_project_files(self.path, ".tsv"))


class _Parser:
    """The lines of one file, as tokens, marks and relations."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.sentences: list[list[tuple[int, int]]] = []
        self.text = ""
        self.shift = 0  # UTF-16 units that are no characters
        self.open: dict[tuple[str, str], tuple[int, int, dict[str, str]]] = {}
        self.by_token: dict[tuple[str, str], list[str]] = {}
        self.relations: list[tuple[str, str, str, str, str]] = []
        self.sentence = ""

    def parse_line(self, line: str) -> None:
        if line.startswith("#T_"):
            kind, _, rest = line[3:].partition("=")
            name, *features = rest.split("|")
            self.layers.append(Layer(kind, name.rpartition(".")[2], tuple(features)))
        if not line or line.startswith("#"):
            return
        cells = line.split("\t")
        address, offsets = _ADDRESS.fullmatch(cells[0]), _OFFSETS.fullmatch(cells[1]) if len(cells) > 2 else None
        if address is None or offsets is None:
            message = f"expected a token's number, offsets and text, found {show(cells[:3])}"
            raise DataError(message, rule="syntax")
        place, whole = address[1], address[1] == cells[0]
        start, end = int(offsets[1]) - self.shift, int(offsets[2]) - self.shift
        word = _unescape(cells[2])
        if whole:
            sentence = place.partition("-")[0]
            gap = start - len(self.text)
            if gap < 0:
                raise DataError(f"expected tokens in order, found {show(cells[:3])}", rule="span-order")
            if sentence != self.sentence:
                self.sentences.append([])
            blank = "\n" if self.sentences and sentence != self.sentence and self.text else " "
            self.sentence = sentence
            self.text += (blank + " " * (gap - 1) if gap else "") + word
            self.shift += sum(sign > "\uffff" for sign in word)
            end = len(self.text)
            self.sentences[-1].append((start, end))
        self._parse_layers(cells[3:], place, start, end)

    def _parse_layers(self, cells: list[str], place: str, start: int, end: int) -> None:
        at = 0
        for layer in self.layers:
            columns = [_split_cell(cell) for cell in cells[at : at + max(1, len(layer.features))]]
            at += max(1, len(layer.features))
            for values in zip(*columns, strict=False) if columns else ():
                if all(value == "_" for value, _ in values):
                    continue
                if layer.kind == "SP":
                    self._add_span(layer, values, place, start, end)
                elif layer.kind == "RL":
                    *labels, (source, numbers) = values
                    target_layer = layer.features[-1].removeprefix("BT_").rpartition(".")[2]
                    label = next((_unescape(value) for value, _ in labels if value not in ("_", "*")), layer.name)
                    self.relations.append((target_layer, label, source, place, numbers))

    def _add_span(self, layer: Layer, values: tuple[tuple[str, str], ...], place: str, start: int, end: int) -> None:
        number = next((number for _, number in values if number), "")
        identity = f"{layer.name} {number or f'{place} {start}'}"
        names = layer.features or ("",)
        attributes = {
            f"{layer.name}.{name.rpartition('.')[2]}": _unescape(value)
            for name, (value, _) in zip(names, values, strict=False)
            if name and value not in ("_", "*")
        }
        first, _, _ = self.open.get((layer.name, identity), (start, end, {}))
        self.open[layer.name, identity] = first, end, attributes
        self.by_token.setdefault((layer.name, place), []).append(identity)

    def make_annotation(self, person: str | None) -> TaskAnnotation:
        marks = [
            Mark(start, end, layer, identity, attributes)
            for (layer, identity), (start, end, attributes) in self.open.items()
        ]
        relations = []
        for layer, label, source, target, numbers in self.relations:
            first, _, second = numbers.partition("_")
            ends = [self._find_mark(layer, place, number) for place, number in ((source, first), (target, second))]
            if ends[0] and ends[1]:
                relations.append(Relation(label, ends[0], ends[1]))
        return TaskAnnotation(person, marks, relations=relations)

    def _find_mark(self, layer: str, place: str, number: str) -> str:
        there = self.by_token.get((layer, place), [])
        if number not in ("", "0"):
            return next((identity for identity in there if identity == f"{layer} {number}"), "")
        return there[0] if there else ""


def _split_cell(cell: str) -> list[tuple[str, str]]:
    """Return (value, number) of each annotation in a cell."""
    values = []
    for part in re.split(r"(?<!\\)\|", cell):
        match = _NUMBERED.fullmatch(part)
        values.append((match[1], match[2] or "") if match else (part, ""))
    return values


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda match: {"t": "\t", "n": "\n"}.get(match[1], match[1]), text)


def _read_task(path: Path, name: str, person: str | None) -> Task:
    parser = _Parser()
    for number, line in enumerate(read_text_file(path).split("\n"), 1):
        with locate(path, number):
            parser.parse_line(line.rstrip("\r"))
    return Task(1, {"text": parser.text}, [parser.make_annotation(person)], name, tokens=parser.sentences, file=path)
