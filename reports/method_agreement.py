"""How far systems rank tokens alike: rank correlation, and overlap of their tops, as a matrix.

A cell is the mean over the instances that both systems score. On the diagonal stand a system's own runs against one
another (trained by other seeds), where it has several.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.metrics.fields import SOFT_FIELDS
from eraser_hub.metrics.rank_correlation import kendall_tau, top_overlap

from .catalogue import number
from .report_tables import Block, Cell, Note, Row, Section

TOP_SHARE = 0.1  # of an instance's tokens
Scores = Mapping[str, NDArray[np.float64]]  # instance -> the soft scores of all its documents
Measure = Callable[[NDArray[np.float64], NDArray[np.float64]], float]


def soft_scores_of(answers: Mapping[str, Mapping[str, Any]]) -> Scores:
    """The soft scores of each instance that has some, its documents in the order of their names."""
    field = SOFT_FIELDS["soft"].field
    scores = {}
    for identity, instance in answers.items():
        rationales = sorted(instance.get("rationales") or (), key=lambda one: str(one["docid"]))
        if rationales and all(one.get(field) is not None for one in rationales):
            scores[identity] = np.concatenate([np.asarray(one[field], dtype=np.float64) for one in rationales])
    return scores


def overlap_of_tops(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """The share of the top tenth of tokens that both have in common."""
    return top_overlap(left, right, math.ceil(TOP_SHARE * len(left)))


def mean_over_instances(measure: Measure, pairs: Sequence[tuple[Scores, Scores]]) -> tuple[float | None, int]:
    """The mean over instances of pairs of systems; and over how many it is. None where there is none."""
    values = [
        measure(left[identity], right[identity])
        for left, right in pairs
        for identity in left
        if identity in right and len(left[identity]) == len(right[identity])
    ]
    defined = [value for value in values if not math.isnan(value)]
    return (math.fsum(defined) / len(defined) if defined else None), len(defined)


def agreement_section(names: Sequence[str], runs: Sequence[Sequence[Mapping[str, Mapping[str, Any]]]]) -> Section:
    """Both matrices.

    Args:
        names: of the systems.
        runs: for each system the predictions of each of its runs, by instance.
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
        rows = tuple(Row(names[row], tuple(_cell(measure, scores, row, column) for column in ranked)) for row in ranked)
        section.blocks.append(Block(("system", *(names[place] for place in ranked)), rows, caption))
    section.notes.append(
        Note(
            "Small print: instances with both; a ranking without differences has no tau. Diagonal: runs of one system."
        )
    )
    return section


def _cell(measure: Measure, scores: Sequence[Sequence[Scores]], row: int, column: int) -> Cell:
    pairs = list(combinations(scores[row], 2)) if row == column else [(scores[row][0], scores[column][0])]
    mean, count = mean_over_instances(measure, pairs)
    return Cell(number(mean), f"n {count}" if count else "")
