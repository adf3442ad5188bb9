"""Typed instances of a prediction file become flat arrays, a column at a time."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple

from eraser_hub.metrics.fields import (
    ANSWERED,
    ERASED,
    HARD_FIELD,
    LABELLED,
    LEAVE_ONE_OUT,
    LIST_FIELDS,
    NUMBER_FIELDS,
    OUTCOME_FIELD,
    SCORE_FIELDS,
    SOFT_FIELDS,
    Format,
    NumberField,
)
from eraser_hub.metrics.flat import Predictions
from eraser_hub.metrics.flatten_rows import ScoreTable, flat_array
from eraser_hub.metrics.offences import Offences, Rows

from .rules import Rule


class Fields:
    """Typed objects as a column for each of their fields.

    Attributes:
        objects: the objects.
        known: their fields.
        columns: field -> its values, one an object.
    """

    def __init__(self, objects: Sequence[Any], known: Format) -> None:
        self.objects, self.known = objects, known
        names = objects[0].__struct_fields__ if objects else ()
        columns = zip(*map(astuple, objects), strict=True)
        self.columns: dict[str, tuple[Any, ...]] = dict.fromkeys(known, ()) | dict(zip(names, columns, strict=True))
        self._inner: dict[str, Fields] = {}

    def __getitem__(self, name: str) -> tuple[Any, ...]:
        return self.columns[name]

    def inner(self, name: str) -> Fields:
        """The objects that are a field's values, or stand in its lists, one after another."""
        if name not in self._inner:
            values = list(filter(None, self[name]))
            objects = values if values and isinstance(values[0], Struct) else list(chain.from_iterable(values))
            self._inner[name] = Fields(objects, self.known[name] or {})
        return self._inner[name]


class TypedColumns:
    """Takes typed instances, a column at a time, without a step per object between."""

    def __init__(self) -> None:
        self.lines, self.ids = array("q"), list[str]()
        self.offences = Offences({"prediction": Rows(self.lines, self.ids)})
        self.docs: dict[str, int] = {}
        self.labels: dict[str, int] = {}
        self.layouts: dict[tuple[str, ...], int] = {}
        own = ("answered", "rationales", "classification", "doc", "hard", "start", "end")
        self.integers = {name: array("q") for name in (*own, *SOFT_FIELDS, *LIST_FIELDS, LEAVE_ONE_OUT)}
        self.floats = {
            name: array("d") for name in ("threshold", *map("{}_scores".format, (*SOFT_FIELDS, LEAVE_ONE_OUT)))
        }
        self.numbers = {name: array("d") for name in NUMBER_FIELDS}
        self.tables = {name: ScoreTable(self.layouts) for name in LABELLED}
        self.first = 0  # of the instances that are being added

    def add(self, instances: Fields, lines: Iterable[int], wrong: Sequence[tuple[int, str, str, Rule]] = ()) -> None:
        """Append some instances.

        Args:
            instances: `predictions.TypedInstance` each.
            lines: the line of each.
            wrong: what else is to be told: (place among the instances, field, message, rule).
        """
        self.first = len(self.ids)
        self.lines.extend(lines)
        names = instances["annotation_id"]
        plain = _all_strings(names)
        self.ids += names if plain else ["" if name is None else str(name) for name in names]
        for row, field, message, rule in wrong:
            self._say(row, field, message, rule)
        if not plain:
            told = {row for row, *_ in wrong}
            for row, name in enumerate(names):
                if name is None and row not in told:
                    self._say(row, "annotation_id", "expected a string or an integer, found None")
        self._rationales(instances)
        codes = self.labels
        self.integers["classification"].fromlist(
            [-1 if label is None else codes.setdefault(label, len(codes)) for label in instances["classification"]]
        )
        outcomes = instances[OUTCOME_FIELD]
        self.integers["answered"].fromlist([outcome is None or outcome == ANSWERED for outcome in outcomes])
        for name, number in NUMBER_FIELDS.items():
            self.numbers[name].extend(_numbers(instances[number.path[0]], number))
        lists = instances[LEAVE_ONE_OUT]
        self.integers[LEAVE_ONE_OUT].fromlist(_sizes(lists))
        for values in filter(None, lists):
            self.floats[f"{LEAVE_ONE_OUT}_scores"].fromlist(values)
        for name, field in SCORE_FIELDS.items():
            self._scores(name, instances[field], field)
        for name, (field, entry) in LIST_FIELDS.items():
            self._several(instances, field, entry, self.integers[name])

    def _say(self, row: int, field: str, message: str, rule: Rule = "type") -> None:
        """Tell an offence of the row-th instance that is being added."""
        self.offences.say("prediction", self.first + row, field, message, rule)

    def _rationales(self, instances: Fields) -> None:
        several, rationales = instances["rationales"], instances.inner("rationales")
        self.integers["rationales"].fromlist(_sizes(several))
        docids = rationales["docid"]
        if not _all_strings(docids):
            places = _Places(several, "rationales")
            for at, docid in enumerate(docids):
                if docid is None:
                    row, before = places[at]
                    self._say(row, f"{before}docid", "expected a string, found None")
            docids = tuple("" if docid is None else str(docid) for docid in docids)
        codes = self.docs
        self.integers["doc"].fromlist([codes.setdefault(docid, len(codes)) for docid in docids])
        self._spans(rationales, several)
        for name, soft in SOFT_FIELDS.items():
            lists = rationales[soft.field]
            self.integers[name].fromlist(_sizes(lists))
            values = self.floats[f"{name}_scores"]
            for scores in lists:
                if scores:
                    values.fromlist(scores)

    def _spans(self, rationales: Fields, several: Sequence[list[Any] | None]) -> None:
        hard, spans = list(rationales[HARD_FIELD]), rationales.inner(HARD_FIELD)
        try:
            bounds = array("q", spans["start_token"]), array("q", spans["end_token"])
        except OverflowError:
            places = _Places(several, "rationales")
            for at, own in enumerate(hard):
                if own and any(abs(token) >= 2**63 for span in own for token in (span.start_token, span.end_token)):
                    row, before = places[at]
                    message = "expected offsets within the document, found one beyond 64 bits"
                    self._say(row, f"{before}{HARD_FIELD}", message, "range")
                    hard[at] = []
            near = [span for own in hard if own for span in own]
            bounds = array("q", [span.start_token for span in near]), array("q", [span.end_token for span in near])
        self.integers["start"] += bounds[0]
        self.integers["end"] += bounds[1]
        self.integers["hard"].fromlist(_sizes(hard))

    def _scores(
        self,
        name: str,
        several: Sequence[dict[str, float | None] | None],
        field: str,
        places: _Places | None = None,
    ) -> None:
        """Append rows of a table of scores; ``places`` says of each the instance, and what stands before the field."""
        table = self.tables[name]
        if table.add_all(several):
            return
        for at, scores in enumerate(several):
            wrong = table.add(scores, True)
            if wrong is not None:
                row, before = (at, "") if places is None else places[at]
                self._say(row, f"{before}{field}", wrong, "probabilities")

    def _several(self, instances: Fields, field: str, entry: str, sizes: array[int]) -> None:
        lists = instances[field]
        sizes.fromlist(_sizes(lists))
        entries = instances.inner(field)
        if not entries.objects:
            return
        places = _Places(lists, field)
        if entry == "threshold":
            thresholds = list(entries["threshold"])
            if None in thresholds:
                for at, threshold in enumerate(thresholds):
                    if threshold is None:
                        row, before = places[at]
                        self._say(row, f"{before}threshold", "expected a number, found None")
                        thresholds[at] = np.nan
            self.floats["threshold"].fromlist(thresholds)
        for side in ERASED:
            self._scores(f"{entry}_{side}", entries[SCORE_FIELDS[side]], SCORE_FIELDS[side], places)

    def finish(self) -> tuple[Predictions, Sequence[int], Offences]:
        """All that was added, the line of each, and what is wrong with them."""
        for layout in self.layouts:
            for label in layout:
                self.labels.setdefault(label, len(self.labels))
        columns = {name: flat_array(values) for name, values in (self.integers | self.floats).items()}
        record = Predictions(
            ids=self.ids,
            instance=np.repeat(np.arange(len(self.ids)), np.maximum(columns["rationales"], 0)),
            docids=list(self.docs),
            labels=list(self.labels),
            numbers=np.column_stack([flat_array(values) for values in self.numbers.values()]),
            **columns,
            **{name: table.matrix(self.labels) for name, table in self.tables.items()},
        )
        lines: Sequence[int] = self.lines
        if lines and lines[-1] - lines[0] == len(lines) - 1:
            lines = range(lines[0], lines[-1] + 1)
        told = Offences()
        told.take(self.offences)
        return record, lines, told


def _numbers(column: Sequence[Any], number: NumberField) -> array[float]:
    """The numbers of some instances' field; NaN where there is none."""
    if column.count(None) == len(column):
        return array("d", [np.nan]) * len(column)
    for name in number.path[1:]:
        column = [None if one is None else getattr(one, name) for one in column]
    return array("d", [np.nan if value is None else value for value in column])


class _Places:
    """Of each entry of lists the list, and what stands before the entry's fields; looked for when asked for."""

    def __init__(self, lists: Sequence[Sequence[Any] | None], field: str) -> None:
        self.lists, self.field = lists, field

    def __getitem__(self, at: int) -> tuple[int, str]:
        for row, own in enumerate(self.lists):
            if at < len(own or ()):
                return row, f"{self.field}[{at}]."
            at -= len(own or ())
        raise IndexError(at)


def _all_strings(values: Sequence[object]) -> bool:
    try:
        "".join(cast("Sequence[str]", values))  # faster than to ask each
    except TypeError:
        return False
    return True


def _sizes(lists: Sequence[list[Any] | None]) -> list[int]:
    """Lengths, -1 for None."""
    if all(lists):
        return list(map(len, cast("Sequence[list[Any]]", lists)))
    return [-1 if own is None else len(own) for own in lists]
