"""What a report reads: the rows of a built dataset's split, and systems' predictions, from disk without a cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from eraser_hub.metrics.token_rows import as_eraser_row, is_token_row
from eraser_hub.records.built import label_name, open_built
from eraser_hub.records.errors import DataError
from eraser_hub.records.predictions import instances, plain_rows
from eraser_hub.records.rules import Rule
from eraser_hub.records.splits import dataset_split
from eraser_hub.scoring.operators import runs_by_operator
from eraser_hub.scoring.runs import named_runs

Rows = Sequence[Mapping[str, Any]]
Label = str | int | None


# ------------------------------------------------------------------------ what has to stand in a row before it is drawn
class _Document(msgspec.Struct):
    docid: str
    text: str


class _Evidence(msgspec.Struct):
    docid: str
    start_token: int
    end_token: int


class _Annotation(msgspec.Struct):
    annotation_id: str
    documents: list[_Document]
    evidences: list[list[_Evidence]]
    classification: Label = None
    query: str | None = None


class _Record(msgspec.Struct):
    id: str
    tokens: list[list[str]]
    sample_type: str
    rel_ids: list[str] | None = None
    rationale_ids: list[list[list[int]]] | None = None
    label: Label = None


class _Tokens(msgspec.Struct):
    id: str
    tokens: list[str]
    rationale_mask: list[bool] | None
    label: Label = None


def _check_rows(rows: Rows, file: Path) -> None:
    """Refuse rows of none of the datasets, and cells of another type, before anything of them is drawn.

    Raises:
        DataError: with the row's number.
    """
    for number, row in enumerate(rows, 1):
        kind = next((kind for column, kind in _KINDS.items() if column in row), None)
        if kind is None:
            message = f"expected one of the columns {', '.join(_KINDS)}, found {', '.join(row)}"
            raise DataError(message, rule="key-missing", file=file, line=number)
        try:
            msgspec.convert(row, kind)
        except msgspec.ValidationError as error:
            raise DataError(str(error), rule="type", file=file, line=number) from None


_KINDS = {"evidences": _Annotation, "sample_type": _Record, "rationale_mask": _Tokens}


@dataclass(frozen=True, slots=True)
class ReportedSplit:
    """One split of a built dataset.

    Attributes:
        folder, config, split: where it comes from.
        rows: the rows, in file order.
        label_names: names of the gold label's ClassLabel, None where the card has none.
    """

    folder: Path
    config: str
    split: str
    rows: list[dict[str, Any]]
    label_names: tuple[str, ...] | None

    @property
    def holds_pairs(self) -> bool:
        """Whether the rows are records of the perturbation benchmark."""
        return bool(self.rows) and "sample_type" in self.rows[0]

    @property
    def id_field(self) -> str:
        """The column that holds a row's id."""
        return "id" if self.holds_pairs else "annotation_id"

    @property
    def ids(self) -> list[str]:
        """Each row's id."""
        return [str(row[self.id_field]) for row in self.rows]

    def labelled(self) -> list[dict[str, Any]]:
        """The rows with the label's name in place of its number."""
        field = "label" if self.holds_pairs else "classification"
        return [
            {**row, field: label_name(row.get(field), self.label_names, instance=identity, field=field)}
            for row, identity in zip(self.rows, self.ids, strict=True)
        ]


def read_split(dataset: Path, config: str | None, split: str) -> ReportedSplit:
    """The rows of a split, and the label names in the dataset's card.

    Args:
        dataset: a folder that ``eraser-hub build`` wrote.
        config: the config; None takes the card's default.
        split: ``validation`` or ``val``, both are understood.

    Raises:
        DataError: no such folder, config or split, naming those that are there; a row that is not of its dataset.
    """
    built = open_built(dataset)
    if config is None:
        config = built.default_config
    held = built.rows(config, split)
    _check_rows(held, built.files(config, split)[0])
    if held and is_token_row(held[0]):
        held = [as_eraser_row(row) for row in held]
    return ReportedSplit(dataset, config, dataset_split(split), held, built.label_names(config))


@dataclass(frozen=True, slots=True)
class System:
    """A file of predictions and what it is called in the report.

    Attributes:
        path: the file; of several runs (seeds) the first.
        more: the further runs.
    """

    name: str
    path: Path
    more: tuple[Path, ...] = ()

    @property
    def runs(self) -> list[System]:
        """Each run as a system of its own."""
        return [System(self.name, path) for path in (self.path, *self.more)]

    @property
    def file_name(self) -> str:
        """The name as a file's: no separator, no leading dot."""
        return "".join(c if c.isalnum() or c in "-_.+" else "_" for c in self.name).lstrip(".") or "system"

    def predictions(self, split: ReportedSplit) -> dict[str, dict[str, Any]]:
        """The predictions by id: instances, or rows of the perturbation benchmark where the split holds pairs.

        Raises:
            DataError: a file that cannot be read or is empty; a prediction without id, or an id twice.
        """
        field, predictions = split.id_field, dict[str, dict[str, Any]]()
        for line, row in self._numbered(split):
            if row.get(field) in (None, ""):
                rule: Rule = "key-missing" if row.get(field) is None else "empty"
                words = f"expected an id, found {'none' if row.get(field) is None else 'an empty one'}"
                raise DataError(words, rule=rule, file=self.path, line=line, field=field)
            identity = str(row[field])
            if identity in predictions:
                message = "expected each id once, found it twice"
                raise DataError(message, rule="id-twice", file=self.path, line=line, instance=identity, field=field)
            predictions[identity] = row
        if not predictions:
            raise DataError("expected predictions, found an empty file", rule="empty", file=self.path)
        return predictions

    def _numbered(self, split: ReportedSplit) -> Iterator[tuple[int, dict[str, Any]]]:
        if split.holds_pairs:
            return plain_rows(self.path)
        return ((line, msgspec.to_builtins(instance)) for line, instance in instances(self.path))

    def line_of(self, split: ReportedSplit, identity: object) -> int | None:
        """The line of a prediction, for an error about it."""
        lines = (line for line, row in self._numbered(split) if str(row.get(split.id_field)) == str(identity))
        return next(lines, None)


def named_systems(arguments: Sequence[str], *, draws: bool = False, ways: bool = False) -> list[System]:
    """Systems as the command line names them: see `scoring.runs.named_runs`; each way of erasing is a run
    (:func:`by_operator` tells them apart)."""
    named = named_runs(arguments, ways=ways, draws=draws)
    return [System(name, first, tuple(more)) for name, (first, *more) in named]


def by_operator(systems: Sequence[System]) -> dict[str, list[System]]:
    """The systems with the runs of each way of erasing: one way "" where no system has several.

    Raises:
        DataError: some system has predictions by a way that another has not.
    """
    numbers = runs_by_operator({system.name: [run.path for run in system.runs] for system in systems})
    ways: dict[str, list[System]] = {}
    for way, own in numbers.items():
        paths = [[system.runs[number].path for number in own[system.name]] for system in systems]
        ways[way] = [System(one.name, path, tuple(more)) for one, (path, *more) in zip(systems, paths, strict=True)]
    return ways


def systems_words(systems: Sequence[System]) -> str:
    """How many systems there are, and their names."""
    if not systems:
        return "gold rationales alone, no predictions were given"
    return f"{len(systems)} {'system' if len(systems) == 1 else 'systems'}: " + ", ".join(s.name for s in systems)
