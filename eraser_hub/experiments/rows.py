"""The printed tables that can be reproduced (``tables.json``), and what ``fast`` makes smaller (``fast.json``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import msgspec

from eraser_hub.papers import PrintedResult, load_paper
from eraser_hub.records.tables import Cell

ENCODER = "encoder"  # in place of a model's name: what --encoder names is fine-tuned
OWN, HUMAN = "model", "human"  # in place of a method: the model's own rationales, human ones
ANNOTATORS = "annotators"  # in place of a model: nothing is trained, people are compared


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table.

    Attributes:
        system: Its name in the paper.
        model: A model of `train`, :data:`ENCODER` or :data:`ANNOTATORS`.
        method: A method of `explain`, :data:`OWN` or :data:`HUMAN`.
        printed: The system's names in the results of ``papers/``.
    """

    system: str
    model: str
    method: str
    printed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PrintedRows:
    """A table, or a figure, of a paper.

    Attributes:
        title: Its title.
        preset: The paper's choices for `explain --paper`.
        columns: The scores, by key.
        rows: Its rows.
        papers: The papers whose results are compared, each with the table's number there; the first with a figure wins.
        table: Paper and name of a table of ``papers/`` whose row of the config is compared; () for none.
        note: The origin of the printed figures if ``papers`` has none.
    """

    title: str
    preset: str
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    papers: tuple[tuple[str, str], ...] = ()
    table: tuple[str, ...] = ()
    note: str = ""

    def find_results(self, row: TableRow, config: str) -> list[tuple[str, PrintedResult]]:
        """Return the papers' results of a row, each with the paper's short name."""
        return [
            (load_paper(name).short, result)
            for name, number in self.papers
            for result in load_paper(name).results
            if result.table == number and result.dataset == config and result.system in row.printed
        ]

    def get_printed(self, row: TableRow, config: str) -> dict[str, str]:
        """Return the printed figures of a row, by column."""
        if self.table:
            return dict(load_paper(self.table[0]).tables[self.table[1]].row(config))
        figures: dict[str, str] = {}
        for _, result in self.find_results(row, config):
            for key, value in result.scores.items():
                figures.setdefault(key, f"{value:.3f}")
        return figures

    def make_cell(self, row: TableRow, config: str, column: str, figure: Any = None) -> Cell:
        """Return a figure beside the printed one.

        Args:
            row: The row.
            config: The configuration of the dataset.
            column: The column.
            figure: A number, a string, or (number, low, high); None if it could not be computed.
        """
        value, low, high = figure if isinstance(figure, tuple) else (figure, None, None)
        return Cell(value, self.get_printed(row, config).get(column), digits=3, low=low, high=high)


@dataclass(frozen=True, slots=True)
class FastSettings:
    """Smaller sizes for ``fast``: the rows of all tables finish on two cores in about an hour.

    Attributes:
        sample: Instances that are explained, stratified by label.
        samples: Fewer instances for some models, whose encoder reads whole texts, each erased about forty times.
        settings: Settings of `explain`.
        random_draws: Random rankings that are averaged.
        train_options: Smaller settings of the training of each model.
    """

    sample: int
    samples: Mapping[str, int]
    settings: Mapping[str, Any]
    random_draws: int
    train_options: Mapping[str, Mapping[str, Any]]

    def get_train_options(self, model: str) -> dict[str, Any]:
        """Return the smaller settings of a model's training."""
        return dict(self.train_options.get(model, {}))

    def describe(self, model: str) -> str:
        """Describe the smaller settings of a model's training in one line; "" for none."""
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
