"""The printed tables that can be reproduced (``tables.json``), and what ``fast`` makes smaller (``fast.json``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import msgspec

from eraser_hub.papers import PrintedResult, paper
from eraser_hub.records.tables import Cell

ENCODER = "encoder"  # in place of a model's name: what --encoder names is fine-tuned
OWN, HUMAN = "model", "human"  # in place of a method: the model's own rationales, human ones
ANNOTATORS = "annotators"  # in place of a model: nothing is trained, people are compared


@dataclass(frozen=True, slots=True)
class TableRow:
    """A line of a table.

    Attributes:
        system: its name in the paper.
        model: of `train`; :data:`ENCODER` or :data:`ANNOTATORS`.
        method: of `explain`; :data:`OWN` or :data:`HUMAN`.
        printed: the system's names in the results of ``papers/``.
    """

    system: str
    model: str
    method: str
    printed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PrintedRows:
    """A table, or a figure, of a paper.

    Attributes:
        title: what it shows.
        preset: the paper's choices, of `explain --paper`.
        columns: of scores, by key.
        rows: its lines.
        papers: whose results are its print, the first that has a figure; with the table's number there.
        better: column -> ``high`` or ``low``.
        table: paper and name of a table of ``papers/`` whose row of the config is the print; () for none.
        note: what the print is, where ``papers`` has none.
    """

    title: str
    preset: str
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    papers: tuple[tuple[str, str], ...] = ()
    better: Mapping[str, str] = field(default_factory=dict)
    table: tuple[str, ...] = ()
    note: str = ""

    def find_results(self, row: TableRow, config: str) -> list[tuple[str, PrintedResult]]:
        """What the papers print of a row, each with the paper's short name."""
        return [
            (paper(name).short, result)
            for name, number in self.papers
            for result in paper(name).results
            if result.table == number and result.dataset == config and result.system in row.printed
        ]

    def get_printed(self, row: TableRow, config: str) -> dict[str, str]:
        """The printed figures of a row, by column."""
        if self.table:
            return dict(paper(self.table[0]).tables[self.table[1]].row(config))
        figures: dict[str, str] = {}
        for _, result in self.find_results(row, config):
            for key, value in result.scores.items():
                figures.setdefault(key, f"{value:.3f}")
        return figures

    def make_cell(self, row: TableRow, config: str, column: str, figure: Any = None) -> Cell:
        """A figure beside its print.

        Args:
            figure: a number, a string, or (number, low, high); None where it could not be made.
        """
        value, low, high = figure if isinstance(figure, tuple) else (figure, None, None)
        return Cell(value, self.get_printed(row, config).get(column), digits=3, low=low, high=high)


@dataclass(frozen=True, slots=True)
class FastSettings:
    """What ``fast`` makes smaller, so that the rows of all tables finish on two cores in about an hour.

    Attributes:
        sample: instances that are explained, with each label's share.
        samples: model -> fewer of them: whole texts go through an encoder, each erased some forty times.
        settings: of `explain`.
        random_draws: rankings that are averaged.
        recipes: model -> what is smaller of its recipe.
    """

    sample: int
    samples: Mapping[str, int]
    settings: Mapping[str, Any]
    random_draws: int
    train_options: Mapping[str, Mapping[str, Any]]

    def get_train_options(self, model: str) -> dict[str, Any]:
        """Return what is smaller of a model's recipe."""
        values = self.train_options.get(model, {})
        return {name: tuple(value) if name == "hyper" else value for name, value in values.items()}

    def describe(self, model: str) -> str:
        """Return what is smaller of a model's training, in one line; "" for nothing."""
        options = self.get_train_options(model)
        hyper = options.pop("hyper", ())
        parts = [f"{name} {value}" for name, value in options.items()]
        if model in self.samples:
            parts.append(f"{self.samples[model]} instances explained")
        return ", ".join([*parts, *hyper])


def _read_json(name: str, kind: Any) -> Any:
    return msgspec.json.decode(files("eraser_hub.experiments").joinpath(name).read_bytes(), type=kind)


TABLES: dict[str, PrintedRows] = _read_json("tables.json", dict[str, PrintedRows])
FAST: FastSettings = _read_json("fast.json", FastSettings)
