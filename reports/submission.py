"""Submissions to the board: predictions files, scored here by the same scorer as everybody's; never numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .entries import Entry
from .report import named_systems
from .rows import by_id, paired, read_predictions, read_table
from .scoring import Settings, score_file, score_pairs, score_system


def submitted_entries(
    submissions: Sequence[str], *, dataset: Path, config: str | None, split: str, settings: Settings | None = None
) -> list[Entry]:
    """Score predictions files against a built dataset, a line of the board for each.

    Args:
        submissions: ``SYSTEM=FILE`` or ``FILE``.
        dataset, config, split: what they answer.
        settings: confidence level, resamples, seed.

    Raises:
        DataError: predictions that the scorer does not take, with file and instance.
    """
    from .entries import entry_of_scores

    settings = settings or Settings()
    table = read_table(dataset, config, split)
    out = []
    for system in named_systems(submissions, draws=True):
        instances = read_predictions(system.path)
        if table.rows and "sample_type" in table.rows[0]:
            scored = score_pairs(system.name, table, instances, settings, system.path)
        else:
            rows = paired(table.rows, by_id(instances, "annotation_id", system.path), system.path)
            scored = score_system(system.name, table, rows, settings, system.path)
        out.append(entry_of_scores(score_file(scored, table), file=system.path))
    return out
