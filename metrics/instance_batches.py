"""How the ERASER modules keep what they are given: flattened as it comes, joined at ``compute``.

With one process the flat arrays stay in memory; with several (``num_process``) they travel as bytes through evaluate's
shared files. Lists of dicts are taken apart once; a Dataset or an Arrow table goes straight through its buffers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

SCALARS = (str, int, float, bool, type(None))


class Tools(NamedTuple):
    """The leaves' functions that a module hands to the mixin (a Space fetches only what the module itself imports)."""

    predictions: type
    references: type
    flatten_predictions: Callable[[Any], Any]  # offences -> flattener
    flatten_references: Callable[[Any, Sequence[str] | None], Any]
    predictions_from_arrow: Callable[[Any], dict[str, Any] | None]
    references_from_arrow: Callable[[Any, Sequence[str] | None], dict[str, Any] | None]
    offences: type
    pack: Callable[[Any], bytes]
    unpack: Callable[[type, bytes], Any]
    concatenate: Callable[..., Any]


class Batch(NamedTuple):
    """Flat records, and the columns they came with (for breakdowns)."""

    record: Any
    columns: Callable[[str], list[Any] | None]
    label_names: list[str] | None = None  # of a Dataset's ClassLabel


def stop(offences: Any, names: Mapping[str, Sequence[str]]) -> None:
    """Raise a ValueError that names instance and field of the first ten offences, and says how many there are."""
    if not offences.total:
        return
    lines = []
    for offence in offences:
        own = names.get(offence.side, ())
        name = repr(own[offence.row]) if offence.row < len(own) and own[offence.row] else f"number {offence.row}"
        noun = "instance" if offence.side == "prediction" else "reference"
        where = f": {offence.field}" if offence.field else ""
        lines.append(f"{noun} {name}{where}: {offence.message}" if own else f"{offence.side}s: {offence.message}")
    if offences.total > len(offences):
        lines.append(f"… and {offences.total - len(offences)} more ({offences.total} in all)")
    raise ValueError("\n".join(lines))


def _table(data: Any) -> tuple[Any, list[str] | None]:
    """An Arrow table of a Dataset, a table or a record batch, with the label names it knows; (None, ..) for others."""
    if hasattr(data, "features") and hasattr(data, "with_format") and hasattr(data, "num_rows"):
        label = (data.features or {}).get("classification")
        names = list(label.names) if label is not None and hasattr(label, "names") else None
        # a Dataset's own table ignores selections: the arrow format gives the rows that it stands for
        return data.with_format("arrow")[:], names
    if hasattr(data, "column_names") and hasattr(data, "num_rows") and hasattr(data, "combine_chunks"):
        return data, None
    if hasattr(data, "num_rows") and hasattr(data, "schema") and hasattr(data, "columns"):
        import pyarrow as pa

        return pa.Table.from_batches([data]), None
    return None, None


def _rows(data: Any, side: str) -> list[Any]:
    if hasattr(data, "to_dict") and hasattr(data, "columns"):
        data = data.to_dict("records")
    elif isinstance(data, Mapping):
        columns = {name: column for name, column in data.items() if isinstance(column, (list, tuple))}
        if len(columns) != len(data) or len({len(column) for column in columns.values()}) != 1:
            raise ValueError(
                f"{side}s: expected a list of rows, found one object with {', '.join(map(str, data))[:60]}"
            )
        data = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    if isinstance(data, (str, bytes)) or not isinstance(data, Iterable):
        raise ValueError(f"{side}s: expected a list of rows, a Dataset or an Arrow table, found {repr(data)[:60]}")
    return list(data)


class InstanceBatches:
    """A mixin before ``evaluate.Metric``. The class sets ``tools`` and defines ``_score``.

    ``_score(predictions, references, columns, **settings)`` gets the joined flat records (references may be None) and
    a function from a column's name to its values over all references (None where there is no such column).
    """

    tools: Tools
    num_process: int
    references_needed = True

    def __len__(self) -> int:
        """How many predictions are kept."""
        held = self.__dict__.get("_held")
        return sum(len(batch.record.ids) for batch in held["prediction"]) if held else super().__len__()  # type: ignore[misc]

    # ------------------------------------------------------------------------------------------------- evaluate's API
    def add_batch(self, *, predictions: Any = None, references: Any = None) -> None:
        """Keep a batch of predictions and references; both may come in any order, and in different batches.

        Args:
            predictions: ERASER instances: a list of dicts, a Dataset, or an Arrow table.
            references: dataset rows, likewise.

        Raises:
            ValueError: a field of the wrong type; names the instance and the field.
        """
        both = {
            side: None if data is None else self._flatten(data, side)
            for side, data in (("prediction", predictions), ("reference", references))
        }
        if self.num_process > 1:
            packed = [b"" if batch is None else self._packed(batch) for batch in both.values()]
            super().add_batch(predictions=packed[:1], references=packed[1:])  # type: ignore[misc]
            return
        held = self.__dict__.setdefault("_held", {"prediction": [], "reference": []})
        for side, batch in both.items():
            if batch is not None:
                held[side].append(batch)

    def add(
        self, *, prediction: Any = None, reference: Any = None, predictions: Any = None, references: Any = None
    ) -> None:
        """Keep one prediction and one reference.

        Args:
            prediction: an ERASER instance.
            reference: a dataset row.
            predictions, references: the same under the names that ``evaluate.combine`` uses.
        """
        one = (
            prediction if prediction is not None else predictions,
            reference if reference is not None else references,
        )
        batch = [None if row is None else [row] for row in one]
        self.add_batch(predictions=batch[0], references=batch[1])

    def compute(self, *, predictions: Any = None, references: Any = None, **settings: Any) -> dict[str, Any] | None:
        """The scores of all that was added and of what is given here.

        Args:
            predictions: as for ``add_batch``.
            references: as for ``add_batch``.
            **settings: see below; an unknown one is a TypeError.

        Returns:
            A flat dict of plain Python numbers; None on processes other than the first.

        Raises:
            ValueError: wrong input; names the instance and the field.
        """
        if predictions is not None or references is not None:
            try:
                self.add_batch(predictions=predictions, references=references)
            except ValueError:
                self.__dict__.pop("_held", None)
                raise
        if self.num_process > 1:
            return super().compute(**settings)  # type: ignore[misc]
        held = self.__dict__.pop("_held", {"prediction": [], "reference": []})
        return self._together(held["prediction"], held["reference"], settings)

    def _compute(self, *, predictions: Any = None, references: Any = None, **settings: Any) -> dict[str, Any]:
        """What evaluate calls with the bytes of all processes."""
        sides = [[self._unpacked(data, side) for data in column if data] for side, column in (
            ("prediction", predictions or []), ("reference", references or []),
        )]  # fmt: skip
        return self._together(sides[0], sides[1], settings)

    # ------------------------------------------------------------------------------------------------------- batches
    @staticmethod
    def _by(by: str | None, r: Any, column: Callable[[str], list[Any] | None]) -> list[Any] | None:
        """The values of the column to break scores down by; labels by their names."""
        if by is None:
            return None
        if r is None:
            raise ValueError(f"by: expected references with the column {by!r}, found no references")
        if by == "classification" and (r.classification >= 0).any():
            names = [*(label.lstrip("\0") for label in r.labels), None]
            return [names[code] for code in r.classification.tolist()]
        values = column(by)
        if values is None:
            raise ValueError(f"by: expected a column that every reference has, found {by!r} not in all of them")
        return values

    def _together(self, predictions: list[Batch], references: list[Batch], settings: dict[str, Any]) -> dict[str, Any]:
        if not predictions:
            raise ValueError("predictions: expected at least one instance, found none")
        if not references and self.references_needed:
            raise ValueError("references: expected at least one row, found none")
        join = self.tools.concatenate
        p = join([batch.record for batch in predictions], **PREDICTION_PARTS)
        r = join([batch.record for batch in references], **REFERENCE_PARTS) if references else None
        if r is not None and not r.ids:
            raise ValueError("references: expected at least one row, found none")
        if settings.get("label_names") is None:
            named = [batch.label_names for batch in references if batch.label_names is not None]
            if any(names != named[0] for names in named):
                raise ValueError(f"references: expected the same label names throughout, found {named[0]} and others")
            settings["label_names"] = named[0] if named else None

        def column(name: str) -> list[Any] | None:
            parts = [batch.columns(name) for batch in references]
            return None if any(part is None for part in parts) else [value for part in parts for value in part or ()]

        return self._score(p, r, column, **settings)

    def _score(self, p: Any, r: Any, column: Callable[[str], list[Any] | None], **settings: Any) -> dict[str, Any]:
        raise TypeError(f"{type(self).__name__} does not define _score")

    def _flatten(self, data: Any, side: str) -> Batch:
        tools = self.tools
        kind = tools.predictions if side == "prediction" else tools.references
        table, names = _table(data)
        if table is not None:
            if side == "prediction":
                columns = tools.predictions_from_arrow(table)
            else:
                columns = tools.references_from_arrow(table, names)
            if columns is not None:
                return Batch(kind(**columns), partial(_of_table, table), names)
            data = table.to_pylist()
        rows = _rows(data, side)
        offences = tools.offences()
        if side == "prediction":
            flattener = tools.flatten_predictions(offences)
        else:
            flattener = tools.flatten_references(offences, names)
        for row in rows:
            flattener.add(row)
        record = flattener.finish()
        stop(offences, {side: record.ids})
        return Batch(record, partial(_of_rows, rows), names)

    def _packed(self, batch: Batch) -> bytes:
        record = self.tools.pack(batch.record)
        scalars: dict[str, list[Any]] = {}
        if hasattr(batch.record, "group"):  # breakdowns are by columns of references
            names = batch.columns("") or []
            for name in names:
                values = batch.columns(name)
                if values is not None and all(isinstance(value, SCALARS) for value in values):
                    scalars[name] = values
        rest = json.dumps([scalars, batch.label_names]).encode()
        return len(record).to_bytes(8, "little") + record + rest

    def _unpacked(self, data: bytes, side: str) -> Batch:
        end = 8 + int.from_bytes(data[:8], "little")
        kind = self.tools.predictions if side == "prediction" else self.tools.references
        columns, names = json.loads(data[end:])
        return Batch(self.tools.unpack(kind, data[8:end]), columns.get, names)


def _of_table(table: Any, name: str) -> list[Any] | None:
    """A column's values; the names of all columns for the empty name."""
    if not name:
        return list(table.column_names)
    return table.column(name).to_pylist() if name in table.column_names else None


def _of_rows(rows: list[Any], name: str) -> list[Any] | None:
    if not name:
        return [key for key in rows[0] if isinstance(key, str)] if rows else []
    if not rows or any(name not in row for row in rows):
        return None
    return [row[name] for row in rows]


# what `batches.concatenate` has to know of the two records
PREDICTION_PARTS: dict[str, Any] = {
    "coded": {"doc": "docids", "classification": "labels"},
    "shifted": {"instance": "ids"},
    "labelled": (
        "full", "comprehensiveness", "sufficiency", "null", "threshold_comprehensiveness", "threshold_sufficiency",
        "draw_comprehensiveness", "draw_sufficiency",
    ),
}  # fmt: skip
REFERENCE_PARTS: dict[str, Any] = {
    "coded": {"classification": "labels", "document": "docids", "doc": "docids"},
    "shifted": {
        "document_instance": "ids", "group_instance": "ids", "group": "group_instance",
        "first_sentence": "sentence_tokens",
    },
}  # fmt: skip
