"""The printed tables that can be reproduced: their rows, and what makes each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from eraser_hub.papers import PrintedResult, paper
from eraser_hub.records.tables import Cell

ENCODER = "encoder"  # in place of a model's name: what --encoder names is fine-tuned
OWN, HUMAN = "model", "human"  # in place of a method: the model's own rationales, human ones
ANNOTATORS = "annotators"  # in place of a model: nothing is trained, people are compared


@dataclass(frozen=True, slots=True)
class Row:
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
    rows: tuple[Row, ...]
    papers: tuple[tuple[str, str], ...] = ()
    better: Mapping[str, str] = field(default_factory=dict)
    table: tuple[str, str] | tuple[()] = ()
    note: str = ""

    def results(self, row: Row, config: str) -> list[tuple[str, PrintedResult]]:
        """What the papers print of a row, each with the paper's short name."""
        return [
            (paper(name).short, result)
            for name, number in self.papers
            for result in paper(name).results
            if result.table == number and result.dataset == config and result.system in row.printed
        ]

    def print_of(self, row: Row, config: str) -> dict[str, str]:
        """The printed figures of a row, by column."""
        if self.table:
            return dict(paper(self.table[0]).tables[self.table[1]].row(config))
        figures: dict[str, str] = {}
        for _, result in self.results(row, config):
            for key, value in result.scores.items():
                figures.setdefault(key, f"{value:.3f}")
        return figures

    def cell(self, row: Row, config: str, column: str, figure: Any = None) -> Cell:
        """A figure beside its print.

        Args:
            figure: a number, a string, or (number, low, high); None where it could not be made.
        """
        value, low, high = figure if isinstance(figure, tuple) else (figure, None, None)
        return Cell(value, self.print_of(row, config).get(column), digits=3, low=low, high=high)


def _soft(family: str, model: str) -> tuple[Row, ...]:
    """The four methods of ERASER's Table 4 on one model."""
    methods = {"Attention": "attention", "Simple Gradient": "simple-gradient", "Lime": "lime", "Random": "random"}
    return tuple(
        Row(f"{family} + LSTM - {words}", model, method, (f"{family} + LSTM - {words}", f"{family}-LSTM + {words}"))
        for words, method in methods.items()
    )


_CARTON = (
    Row("Logistic regression", "logistic-regression", HUMAN),
    Row("Random forest", "random-forest", HUMAN),
    Row("LSTM", "bilstm", HUMAN),
    Row("RoBERTa", ENCODER, HUMAN),
)
_ERASER = ("eraser_acl_2020", "eraser_first_version")
_REGIMES = ("no_rationale", "eval_rationale", "train_eval_rationale")
_SELECTED = ("macro_f1", "accuracy", "iou_macro_f1", "token_macro_f1")
_SCORED = ("macro_f1", "accuracy", "auprc", "comprehensiveness_aopc", "sufficiency_aopc")
_SCORED_ALL = (*_SCORED, "comprehensiveness", "sufficiency")


def _best(columns: tuple[str, ...]) -> dict[str, str]:
    """Which end of each score is the better one."""
    return {name: "low" if name.startswith("sufficiency") else "high" for name in columns}


TABLES: Mapping[str, PrintedRows] = {
    "eraser-2": PrintedRows(
        "Human agreement on rationales (ERASER, Table 2)",
        "eraser",
        ("cohen_kappa", "f1", "p", "r", "annotators", "documents"),
        (Row("Annotators", ANNOTATORS, HUMAN),),
        table=("eraser_acl_2020", "table_2"),
        note="means ± standard deviations over texts and annotators",
    ),
    "eraser-3": PrintedRows(
        "Models that select their rationales (ERASER, Table 3)",
        "eraser",
        _SELECTED,
        (
            Row("Lei et al. (2016)", "lei", OWN, ("Lei et al. (2016)",)),
            Row("Lei et al. (2016) (u)", "lei-unsupervised", OWN, ("Lei et al. (2016) (u)",)),
            Row("Lehman et al. (2019)", "lehman", OWN, ("Lehman et al. (2019)",)),
            Row("Bert-To-Bert", "bert-to-bert", OWN, ("Bert-To-Bert",)),
        ),
        tuple((name, "3") for name in _ERASER),
        _best(_SELECTED),
    ),
    "eraser-4": PrintedRows(
        "Models that score every token (ERASER, Table 4)",
        "eraser",
        _SCORED_ALL,
        (*_soft("GloVe", "glove-lstm"), *_soft("BERT", "bert-lstm")),
        tuple((name, "4") for name in _ERASER),
        _best(_SCORED_ALL),
    ),
    "carton2020-3": PrintedRows(
        "Accuracy in three regimes (Human Rationales, Table 3 and Figure 6)",
        "carton2020",
        _REGIMES,
        _CARTON,
        better=_best(_REGIMES),
        note="the paper shows these accuracies as bars of Figure 6, without numbers",
    ),
    "carton2020-figure-2": PrintedRows(
        "Human rationales under four models (Human Rationales, Figure 2)",
        "carton2020",
        ("accuracy", "sufficiency", "comprehensiveness"),
        _CARTON,
        better={"accuracy": "high"},
        note="the paper shows these scores as bars, without numbers; "
        "sufficiency is 1 minus the clipped difference there",
    ),
}
