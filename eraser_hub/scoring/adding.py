"""What a metric gives, put into `Scores`; and the quotes of language models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eraser_hub.metrics.match import Gold
from eraser_hub.metrics.statistics import Measured, summarize

from .result import Scores
from .settings import ScoreSettings


def add_result(
    scores: Scores, metric: str, measured: Measured, settings: ScoreSettings, groups: Mapping[str, Any], n: int
) -> None:
    """Add what a metric gives: its scores, intervals, breakdown and values per annotation.

    Args:
        scores: of the split.
        metric: its name.
        measured: what it measured.
        settings: how predictions are scored.
        groups: id -> value of the column ``by``.
        n: the number of annotations that are scored.
    """
    names = {"data": scores.data_digest[:12], "config": scores.names.get("config"), "split": scores.names.get("split")}
    result, notes = summarize(
        metric,
        measured,
        {**{name: value for name, value in names.items() if value}, "n": n},
        by=settings.by,
        groups=[groups[name] for name in measured.statistics.ids] if settings.by is not None else (),
        per_instance=settings.per_instance,
        confidence_level=settings.confidence_level,
        n_resamples=settings.n_resamples,
        seed=settings.seed,
    )
    scores.notes += notes[: len(measured.notes)]
    scores.cautions += [note for note in notes[len(measured.notes) :] if note not in scores.cautions]
    scores.add(metric, result, measured.statistics)


def score_quotes(gold: Gold | None, rows: Mapping[str, Mapping[str, Any]]) -> Measured:
    """Return what a language model's quotes give; a corpus folder does not say which documents it read."""
    from eraser_hub.metrics.quotes import measure_quotes

    sizes: dict[str, dict[str, int]] = {name: {} for name in rows}
    whole = gold is not None and gold.documents.packed.size > 0
    if gold is not None and whole:
        tokens = gold.documents.lengths(*gold.listed)[0]
        for row, doc, count in zip(*gold.listed, tokens, strict=True):
            if (name := gold.ids[row]) in sizes:
                sizes[name][gold.docids[doc]] = int(count)
    statistics, counts = measure_quotes(rows, sizes)
    notes = [] if whole else ["coverage is left out: a corpus folder does not say which documents were read"]
    return Measured(statistics, {"coverage": "documents"} if whole else {}, counts, notes)
