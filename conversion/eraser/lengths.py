"""Text and rationale lengths of ``eraser`` by class: Table 2 and Figure 1 of Carton, Rathore and Tan (2020).

Means over annotations. A text is all of an annotation's documents; where the paper counts the query too (MultiRC,
FEVER: "and the claim itself"), its tokens belong to the text and to the rationale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eraser_hub.papers import paper
from eraser_hub.records.tables import Cell, Table

from .configs import CONFIGS

# config -> whether the query counts, by what the printed lengths come to
COUNTS_QUERY = {"movies": False, "multirc": True, "fever": True, "esnli": False}


class Lengths:
    """Sums over annotations, by label.

    Attributes:
        sums: float64 (labels, 4): annotations, tokens, rationale tokens, and their shares.
    """

    def __init__(self, config: str, labels: int) -> None:
        self.with_query = COUNTS_QUERY.get(config, False)
        self.sums = np.zeros((labels, 4))

    def add(self, labels: np.ndarray, tokens: np.ndarray, marked: np.ndarray, query: np.ndarray) -> None:
        """Take up some annotations: of each its label, and the tokens of its documents, its rationale and its query."""
        if self.with_query:
            tokens, marked = tokens + query, marked + query
        values = np.stack([np.ones(len(tokens)), tokens, marked, marked / np.maximum(tokens, 1)], axis=1)
        known = labels >= 0
        np.add.at(self.sums, labels[known], values[known])


def length_tables(by_config: Mapping[str, Sequence[Lengths]]) -> list[Table]:
    """The paper's Table 2 and Figure 1 over the splits of each config that it has; none without such a config."""
    carton = paper("carton_2020").tables
    lengths, classes = carton["table_2"], carton["figure_1"]
    columns = ("rows", "text_length", "rationale_length", "rationale_percent")
    table = Table("carton_table_2", lengths.title, ("config",), columns, lengths.source)
    figure = Table("carton_figure_1", classes.title, ("config", "label"), ("rows", "rationale_percent"), classes.source)
    for config, splits in by_config.items():
        if config not in COUNTS_QUERY:
            continue
        sums = sum((split.sums for split in splits), np.zeros((len(CONFIGS[config].label_names), 4)))
        if not sums[:, 0].any():
            continue
        count, tokens, marked, shares = sums.sum(axis=0).tolist()
        printed = lengths.row(config)
        table.add(
            config,
            rows=Cell(int(count)),
            text_length=Cell(tokens / count, printed.get("text_length")),
            rationale_length=Cell(marked / count, printed.get("rationale_length")),
            rationale_percent=Cell(100 * shares / count, printed.get("rationale_percent")),
        )
        for label, (own, *_, share) in zip(CONFIGS[config].label_names, sums.tolist(), strict=True):
            value = 100 * share / own if own else None
            about = classes.row(config, label).get("rationale_percent")
            figure.add(config, label, rows=Cell(int(own)), rationale_percent=Cell(value, about))
    table.notes.append(
        "Means over the annotations of train, validation and test as far as they are there. MultiRC and FEVER: "
        "the query's tokens count to text and rationale, as the printed lengths do."
    )
    return [each for each in (table, figure) if each.rows]
