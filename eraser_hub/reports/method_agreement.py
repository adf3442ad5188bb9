"""How far systems rank tokens alike: rank correlation, and overlap of their tops, as a matrix.

A cell is the mean over the instances that both systems score, with a bootstrap interval over the documents that these
share. On the diagonal stand a system's own runs against one another (trained by other seeds), where it has several.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.metrics.rank_correlation import kendall_tau, top_overlap
from eraser_hub.schema.instance import SOFT_FIELDS
from eraser_hub.scoring.leaks import interval_over_documents
from eraser_hub.scoring.settings import ScoreSettings

from .catalogue import interval_text, number
from .report_tables import Block, Note, Section, ShownCell, ShownRow

TOP_SHARE = 0.1  # of an instance's tokens
Docids = tuple[str, ...]
Scores = Mapping[
    str, tuple[Docids, NDArray[np.float64]]
]  # instance -> its documents, and the soft scores of all of them
Measure = Callable[[NDArray[np.float64], NDArray[np.float64]], float]


def soft_scores_of(answers: Mapping[str, Mapping[str, Any]]) -> Scores:
    """The soft scores of each instance that has some, its documents in the order of their names."""
    field = SOFT_FIELDS["soft"].field
    scores = {}
    for identity, instance in answers.items():
        rationales = sorted(instance.get("rationales") or (), key=lambda one: str(one["docid"]))
        if rationales and all(one.get(field) is not None for one in rationales):
            values = np.concatenate([np.asarray(one[field], dtype=np.float64) for one in rationales])
            scores[identity] = tuple(str(one["docid"]) for one in rationales), values
    return scores


def overlap_of_tops(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """The share of the top tenth of tokens that both have in common."""
    return top_overlap(left, right, math.ceil(TOP_SHARE * len(left)))


def values_of(measure: Measure, pairs: Sequence[tuple[Scores, Scores]]) -> tuple[list[float], list[Docids]]:
    """The measure of each instance that both of a pair have, where it is defined; and the instance's documents."""
    values, docids = list[float](), list[Docids]()
    for left, right in pairs:
        for identity, (documents, scores) in left.items():
            _, others = right.get(identity, ((), scores[:0]))
            if identity in right and len(scores) == len(others) and not math.isnan(value := measure(scores, others)):
                values.append(value)
                docids.append(documents)
    return values, docids


def agreement_section(
    names: Sequence[str], runs: Sequence[Sequence[Mapping[str, Mapping[str, Any]]]], settings: ScoreSettings
) -> Section:
    """Both matrices.

    Args:
        names: of the systems.
        runs: for each system the predictions of each of its runs, by instance.
        settings: of the intervals.
    """
    section = Section("agreement-section", "Agreement of methods")
    scores = [[soft_scores_of(answers) for answers in several] for several in runs]
    ranked = [place for place, several in enumerate(scores) if all(several)]
    section.missing += [
        f"{names[place]}: the predictions have no soft_rationale_predictions to rank tokens by."
        for place in range(len(names))
        if place not in ranked
    ]
    if len(ranked) < 2 and not any(len(scores[place]) > 1 for place in ranked):
        section.missing.append("A matrix needs two methods, or several runs of one, with scores of every token.")
        return section
    for measure, caption in (
        (kendall_tau, "Kendall's tau-b of both rankings of tokens, the mean over instances."),
        (overlap_of_tops, f"Share of the top {TOP_SHARE:.0%} of tokens that both have, the mean over instances."),
    ):
        rows = tuple(
            ShownRow(names[row], tuple(_cell(measure, scores, row, column, settings) for column in ranked))
            for row in ranked
        )
        section.blocks.append(Block(("system", *(names[place] for place in ranked)), rows, caption))
    section.notes.append(
        Note(
            "Small print: the mean's interval, and instances with both; a ranking without differences has no tau. "
            "Diagonal: runs of one system."
        )
    )
    return section


def _cell(
    measure: Measure, scores: Sequence[Sequence[Scores]], row: int, column: int, settings: ScoreSettings
) -> ShownCell:
    pairs = list(combinations(scores[row], 2)) if row == column else [(scores[row][0], scores[column][0])]
    values, docids = values_of(measure, pairs)
    if not values:
        return ShownCell(number(None))
    interval = interval_text(interval_over_documents(np.array(values), docids, settings))
    return ShownCell(number(math.fsum(values) / len(values)), f"{interval} n {len(values)}".strip())
