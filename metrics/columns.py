"""Conversion of records to flat arrays, one per field, without a Python object per token or span.

The key of a field's values is its path, such as ``rationales.docid``. A field that is null is absent. `schema`
declares the records; `find_issues` looks for wrong values only after a failure.
"""

from __future__ import annotations

import dataclasses
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from eraser_hub.schema.record import Field, Record

from .cells import as_list, as_scalar
from .issues import cut
from .tokens import TextSizes, measure_texts

# kind -> the name of its values in messages, and their types
KINDS: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "text": ("a string", (str,)),
    "id": ("a string or an integer", (str, int)),
    "label": ("a label", (str, int)),
    "whole": ("an integer", (int,)),
    "number": ("a number", (int, float)),
    "flag": ("true or false", (bool,)),
    "probabilities": ("an object of label: probability", (dict,)),
    "record": ("an object", (dict,)),
}
TYPES = {kind: frozenset((*types, type(None))) for kind, (_, types) in KINDS.items()}
NUMBERS = frozenset((int, float))
ABSENT = type(None)
LISTS = frozenset((list, ABSENT))
LARGEST = int(np.finfo(float).max)


class UnsuitedError(ValueError):
    """Values that the flat arrays do not support."""


@dataclasses.dataclass
class FlatColumns:
    """Flat arrays of n records.

    Attributes:
        ids: the id of each record, if the record declares an id at its root.
        sizes: path of a list -> its lengths, int64, -1: absent; of lists in lists also ``PATH[]``.
        values: path -> numbers (float64, NaN: absent), integers (int64) or codes into ``words`` (-1: absent).
        words: path of texts -> the distinct ones.
        texts: path of documents' texts -> their sizes.
        tables: path of probabilities -> labels, and float64 (n, labels); NaN: absent.
    """

    ids: list[str] = dataclasses.field(default_factory=list)
    sizes: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    values: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    words: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    texts: dict[str, TextSizes] = dataclasses.field(default_factory=dict)
    tables: dict[str, tuple[list[str], np.ndarray]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class ScoreTable:
    """Rows of {label: probability} as flat values, with the layout (tuple of labels) of each row."""

    layouts: dict[tuple[str, ...], int]
    layout: array[int] = dataclasses.field(default_factory=lambda: array("i"))
    values: array[float] = dataclasses.field(default_factory=lambda: array("d"))

    def add(self, rows: Sequence[Mapping[str, float | None] | None]) -> None:
        """Append rows.

        Args:
            rows: {label: probability} or None each.

        Raises:
            UnsuitedError: a row holds no probabilities by label.
        """
        layouts = self.layouts
        if not any(rows) and rows.count(None) == len(rows):
            self.layout.extend(array("i", [-1]) * len(rows))
            return
        try:
            first, labels = tuple(rows[0] or ()), list(chain.from_iterable(rows))  # type: ignore[arg-type]
            # no dict has a label twice: if the labels repeat the first row's, each row has exactly these
            if first and labels == [*first] * len(rows):
                values: list[Any] = list(chain.from_iterable(map(dict.values, rows)))  # type: ignore[arg-type]
                if {*map(type, values)} <= NUMBERS:
                    self.values.fromlist(values)  # appends all or nothing
                    self.layout.extend(array("i", [layouts.setdefault(first, len(layouts))]) * len(rows))
                    return
        except (OverflowError, TypeError):  # a row or a label without a probability: below
            pass
        for row in rows:
            if row is not None and not row:
                raise UnsuitedError
            # a label that is None there is absent: Arrow's structs name every label in every row
            kept = {label: _number(p) for label, p in (row or {}).items() if p is not None}
            self.values.extend(kept.values())
            self.layout.append(layouts.setdefault(tuple(kept), len(layouts)) if kept else -1)

    def matrix(self, labels: Sequence[str]) -> np.ndarray:
        """Return float64 (rows, labels): NaN where a row lacks a label; a NaN in a row becomes infinite."""
        layout, values = np.asarray(self.layout), np.asarray(self.values)
        self.layout, self.values = array("i"), array("d")
        values[np.isnan(values)] = np.inf
        names = {number: name for name, number in self.layouts.items()}
        if layout.size and layout[0] >= 0 and (layout == layout[0]).all() and names[int(layout[0])] == tuple(labels):
            return values.reshape(layout.size, len(labels))
        out = np.full((layout.size, len(labels)), np.nan)
        sizes = np.array([len(names[k]) for k in range(len(names))] + [0], dtype=np.int64)[layout]
        first, at = np.cumsum(sizes) - sizes, {label: place for place, label in enumerate(labels)}
        for number in np.unique(layout[layout >= 0]).tolist():
            rows = np.flatnonzero(layout == number)
            places = np.array([at[label] for label in names[number]], dtype=np.int64)
            out[rows[:, None], places] = values[first[rows][:, None] + np.arange(places.size)]
        return out


def _to_python(kind: str, value: Any) -> Any:
    """Return a value as a Python value of that kind.

    Raises:
        UnsuitedError: the value is of another kind.
    """
    if value is None:
        return None
    scalar = as_scalar(value)
    if kind in ("record", "probabilities"):
        if isinstance(value, Mapping):
            return dict(value)
    elif type(scalar) in TYPES[kind]:
        return scalar
    elif kind in ("text", "id", "label") and isinstance(scalar, str):  # numpy's
        return str(scalar)
    raise UnsuitedError


class Level:
    """Objects of one record as columns, one per field.

    Args:
        objects: dicts, or typed objects.
        record: the record of the objects.
        to_tuple: returns the values of a typed object, whose types the decoder has checked, in the order of its
            ``__struct_fields__``; None: they are dicts.

    Attributes:
        columns: field -> its values, one per object.
    """

    def __init__(
        self,
        objects: Sequence[Any],
        record: Record,
        to_tuple: Callable[[Any], tuple[Any, ...]] | None = None,
    ) -> None:
        self.objects, self.record, self.to_tuple = objects, record, to_tuple
        self.columns: dict[str, Sequence[Any]] = dict.fromkeys(record, ())
        if to_tuple is None:
            self.columns = {name: [one.get(name) for one in objects] for name in record}
        elif objects:
            self.columns |= zip(objects[0].__struct_fields__, zip(*map(to_tuple, objects), strict=True), strict=True)
        self._inner: dict[str, Level] = {}

    def inner(self, name: str) -> Level:
        """Return the records in a field's values or lists, one after another."""
        if name not in self._inner:
            field = self.record[name]
            values: Sequence[Any] = list(filter(None, self.columns[name]))
            for _ in range(field.depth):
                values = list(chain.from_iterable(values))
            self._inner[name] = Level(values, field.record or {}, self.to_tuple)
        return self._inner[name]


class ObjectColumns:
    """Appends the objects of a record, some at a time, to growing arrays.

    Args:
        record: the record of the objects.
        paths: the fields to keep; others are not read.
        texts: the fields whose texts are counted.

    Attributes:
        unknown: True if a dict had a field that the record does not declare.
    """

    def __init__(self, record: Record, paths: Collection[str], texts: Collection[str] = ()) -> None:
        self.paths = frozenset(paths)
        self.texts: dict[str, list[bytes]] = {path: [] for path in texts}
        self.unknown, self.ids = False, list[str]()
        self.integers: dict[str, array[int]] = defaultdict(lambda: array("q"))
        self.floats: dict[str, array[float]] = defaultdict(lambda: array("d"))
        self.sizes: dict[str, array[int]] = defaultdict(lambda: array("q"))
        self.words: dict[str, dict[str, int]] = defaultdict(dict)
        self.layouts: dict[tuple[str, ...], int] = {}
        self.tables: dict[str, ScoreTable] = defaultdict(lambda: ScoreTable(self.layouts))
        self.add(Level([], record))  # each field gets its arrays, even without values

    def add(self, level: Level, before: str = "", there: Sequence[bool] | None = None) -> None:
        """Append records; after an UnsuitedError the arrays are of no use.

        Args:
            level: the records.
            before: the path of the records.
            there: True for each place that holds a record; None: all do.
        """
        checked, known = level.to_tuple is not None, level.record.keys()
        if not checked and not self.unknown:
            self.unknown = not all(one.keys() <= known for one in level.objects)
        for field in level.record.values():
            path = f"{before}{field.name}"
            if path in self.paths:
                values = level.columns[field.name]
                if there is not None:
                    present = iter(values)
                    values = [next(present) if one else None for one in there]
                self._add_field(field, path, values, level if checked else None)

    def _add_field(self, field: Field, path: str, values: Sequence[Any], typed: Level | None) -> None:
        """Append a field's values; ``typed`` is their level if its types are checked."""
        types = {*map(type, values)}
        if field.required and ABSENT in types:
            raise UnsuitedError
        for depth in range(field.depth):
            if typed is None and not types <= LISTS:
                values = [_to_list(field, value) for value in values]
            lengths = (-1 if one is None else len(one) for one in values) if ABSENT in types else map(len, values)
            self.sizes[path + "[]" * depth].fromlist([*lengths])
            if depth + 1 == field.depth and field.record is None:
                out = self.floats[path]
                try:
                    for own in values:
                        if type(own) is np.ndarray:
                            out.frombytes(np.ascontiguousarray(own, dtype=np.float64).tobytes())
                        elif own:  # a list
                            out.fromlist(own if typed or {*map(type, own)} <= NUMBERS else [*map(_number, own)])
                except (OverflowError, TypeError):
                    raise UnsuitedError from None
                return
            values = list(chain.from_iterable(value for value in values if value is not None))
            types = {*map(type, values)}
        if typed is None and not types <= TYPES[field.kind]:
            values = [_to_python(field.kind, value) for value in values]
            types = {*map(type, values)}
        if typed is None and (field.depth or field.required) and ABSENT in types:
            raise UnsuitedError
        if field.record is None:
            self._add_values(field, path, values)
        elif field.depth:
            self.add(typed.inner(field.name) if typed else Level(values, field.record), f"{path}.")
        else:
            present = [value for value in values if value is not None]
            if not present:  # only numbers are read of such records
                for name in field.record:
                    if f"{path}.{name}" in self.paths:
                        self.floats[f"{path}.{name}"].extend(array("d", [np.nan]) * len(values))
                return
            inner = typed.inner(field.name) if typed else Level(present, field.record)
            self.add(inner, f"{path}.", [value is not None for value in values])

    def _add_values(self, field: Field, path: str, values: Sequence[Any]) -> None:
        if field.kind == "probabilities":
            self.tables[path].add(values)
        elif field.kind == "number":
            absent = values.count(None)
            some = [np.nan if value is None else value for value in values] if absent < len(values) else []
            try:
                self.floats[path].fromlist(some or [np.nan] * absent)  # appends all or nothing
            except OverflowError:  # the check of ranges refuses it
                self.floats[path].fromlist([np.inf if abs(value) > LARGEST else value for value in some])
        elif field.kind == "whole":
            try:
                self.integers[path].fromlist([-1 if value is None else value for value in values])
            except OverflowError:
                raise UnsuitedError from None
        elif path in self.texts:
            self.texts[path] += [text.encode("utf-8", "surrogatepass") for text in values]
        elif path == "annotation_id":
            self.ids += map(str, values)
        else:
            codes, before = self.words[path], "\0" if field.kind == "label" else ""
            if not {*map(type, values)} <= {str}:  # -1 is a ClassLabel's "no label"
                values = [f"{before}{v}" if type(v) is int and (v != -1 or not before) else v for v in values]
            self.integers[path].fromlist(
                [-1 if v is None or v == -1 else codes.setdefault(v, len(codes)) for v in values]
            )

    def finish(self) -> FlatColumns:
        """Return the arrays of all added records."""
        labels = list(dict.fromkeys(chain.from_iterable(self.layouts)))
        return FlatColumns(
            self.ids,
            {path: np.asarray(sizes) for path, sizes in self.sizes.items()},
            {path: np.asarray(values) for path, values in (self.integers | self.floats).items()},
            {path: list(codes) for path, codes in self.words.items()},
            {path: measure_texts(b"".join(texts), list(map(len, texts))) for path, texts in self.texts.items()},
            {path: (labels, table.matrix(labels)) for path, table in self.tables.items()},
        )


def _number(value: Any) -> float:
    try:
        return float(_to_python("number", value))
    except (OverflowError, TypeError):
        raise UnsuitedError from None


def _to_list(field: Field, value: Any) -> Any:
    """Return a list of a field's values; numbers may stay in an array."""
    if field.kind == "number" and isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "fiu":
        return value
    items = as_list(value)
    if items is None and value is not None:
        raise UnsuitedError
    return items


# ------------------------------------------------------------------------------------------------------------- issues
def find_issues(row: Mapping[str, Any], record: Record, where: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield (field, message, rule) for each value of a row that differs from the record's declaration."""
    for field in record.values():
        value, path = row.get(field.name), f"{where}{field.name}"
        if value is not None:
            yield from _find_type_issues(value, field, path, field.depth)
        elif field.required:
            others = ", ".join(cut(name) for name in row if name not in record)
            there = f"; the format does not know {others} beside it" if others else ""
            yield path, f"expected {KINDS[field.kind][0]}, found None{there}", "type"


def _find_type_issues(value: Any, field: Field, path: str, depth: int) -> Iterator[tuple[str, str, str]]:
    if depth:
        items = as_list(value)
        if items is None:
            yield path, f"expected a list, found {cut(value)}", "type"
        for at, item in enumerate(items or ()):
            yield from _find_type_issues(item, field, f"{path}[{at}]", depth - 1)
        return
    try:
        known = None if value is None else _to_python(field.kind, value)
    except UnsuitedError:
        known = None
    if known is None:
        names = [name for name, one in field.record.items() if one.required] if field.record else []
        fields = f" with {', '.join(names)}" if names else ""
        yield path, f"expected {KINDS[field.kind][0]}{fields}, found {cut(value)}", "type"
    elif field.record is not None:
        yield from find_issues(known, field.record, f"{path}.")
    elif field.kind == "probabilities":
        yield from _find_probability_issues(known, path)
    elif field.kind == "whole" and not -(2**63) <= known < 2**63:
        yield path, f"expected an integer of at most 64 bits, found {cut(value)}", "range"
    elif field.kind == "number" and field.depth and isinstance(known, int) and not -LARGEST <= known <= LARGEST:
        yield path, "expected finite numbers, found one beyond the range of a float", "range"


def _find_probability_issues(scores: Mapping[Any, Any], path: str) -> Iterator[tuple[str, str, str]]:
    if not scores:
        yield path, "expected a probability for each label, found none", "probabilities"
    for label, p in scores.items():
        if not isinstance(label, str):
            yield path, f"label {cut(label)} is no string", "type"
        try:
            number = 0.0 if p is None else _number(p)
        except UnsuitedError:
            number = np.inf
        if number == np.inf and not isinstance(as_scalar(p), float):
            yield path, f"expected probabilities, found {cut(p)}", "probabilities"
            return
