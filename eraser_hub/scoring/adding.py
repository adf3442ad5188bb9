"""What a metric gives, put into `Scores`; and the quotes of language models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eraser_hub.metrics.errors import DataError, cut
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


class QuotedInstances:
    """Instances with a language model's quotes, added a chunk at a time: all of a file have quotes, or none.

    Attributes:
        rows: id -> instance.
        lines: id -> its line.
    """

    def __init__(self) -> None:
        self.rows: dict[str, Mapping[str, Any]] = {}
        self.lines: dict[str, int] = {}
        self.expected: bool | None = None

    def add(self, rows: Sequence[Mapping[str, Any]], lines: Sequence[int], ids: Sequence[str]) -> None:
        """Add instances; a DataError at the first that has quotes where others have none, or the other way round."""
        for row, line, name in zip(rows, lines, ids, strict=True):
            found = row.get("quotes") is not None
            self.expected = found if self.expected is None else self.expected
            if found != self.expected:
                words = "quotes" if self.expected else "no quotes"
                message = f"expected {words}, as in the first instance, found {cut(row.get('quotes'))}"
                raise DataError(message, line=line, instance=name, field="quotes")
            if found:
                self.rows[name], self.lines[name] = row, line


def score_quotes(
    gold: Gold | None, rows: Mapping[str, Mapping[str, Any]], lines: Mapping[str, int] | None = None
) -> Measured:
    """Return what a language model's quotes give; a corpus folder does not say which documents it read.

    Args:
        gold: the annotations; None: records of the perturbation benchmark.
        rows: id -> instance.
        lines: id -> its line, for errors.

    Raises:
        DataError: an instance without quotes, or with faulty ones.
    """
    from eraser_hub.metrics.quotes import measure_quotes

    sizes: dict[str, dict[str, int]] = {name: {} for name in rows}
    whole = gold is not None and gold.documents.packed.size > 0
    if gold is not None and whole:
        tokens = gold.documents.lengths(*gold.listed)[0]
        for row, doc, count in zip(*gold.listed, tokens, strict=True):
            if (name := gold.ids[int(row)]) in sizes:
                sizes[name][gold.docids[int(doc)]] = int(count)
    try:
        statistics, counts = measure_quotes(rows, sizes)
    except DataError as error:
        error.line = (lines or {}).get(str(error.instance))
        raise
    notes = [] if whole else ["coverage is left out: a corpus folder does not say which documents were read"]
    return Measured(statistics, {"coverage": "documents"} if whole else {}, counts, notes)
