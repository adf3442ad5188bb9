"""Verification of score files: their predictions are scored again, and the line is what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eraser_hub.metrics.data_digest import shorten_digest
from eraser_hub.records.errors import DataError, show
from eraser_hub.scoring.scored_split import ScoredSplit
from eraser_hub.scoring.settings import ScoreSettings

from ..board_lines import BoardLine, score_submissions

SLACK = 1e-6  # score files may be rounded
MOST_SHOWN = 5


def score_and_verify(
    lines: Sequence[BoardLine],
    submissions: Sequence[str],
    verify: Sequence[str],
    source: ScoredSplit,
    settings: ScoreSettings,
    texts: int,
) -> list[BoardLine]:
    """Score predictions, and replace the score files' lines of those that ``verify`` names.

    Args:
        lines: the lines of score files.
        submissions: ``SYSTEM=FILE``, as of `board_lines.score_submissions`.
        verify: ``SYSTEM=FILE``; the system is one of the score files'. Its lines of other splits stay.
        source: as of `board_lines.score_submissions`.
        settings: as of `board_lines.score_submissions`.
        texts: as of `board_lines.score_submissions`.

    Returns:
        The lines of other score files, then a verified line for each submission; the notes of a verified one say what
        differs from its score file.

    Raises:
        DataError: no score file of a system to verify, or none for the split; predictions that the scorer does not
            take.
    """
    names = {argument.partition("=")[0] for argument in verify}
    known = {line.system for line in lines}
    for name in sorted(names - known):
        words = (
            f"expected the system of a score file ({', '.join(sorted(known)) or 'none is given'}), found {show(name)}"
        )
        raise DataError(words, rule="option-value", argument="verify")
    scored = score_submissions([*submissions, *verify], source, settings, texts)
    verified = {line.system: line for line in scored if line.system in names}
    claims = [
        line
        for line in lines
        if (one := verified.get(line.system)) and line.dataset == one.dataset and line.split in ("", one.split)
    ]
    for name in sorted(names - {claim.system for claim in claims}):
        places = sorted({f"{line.dataset}, {line.split}" for line in lines if line.system == name})
        here = verified[name]
        words = f"expected a score file of {show(name)} on {here.dataset}, {here.split}, found {'; '.join(places)}"
        raise DataError(words, rule="option-value", argument="verify")
    found = [line for line in lines if line not in claims]
    for line in scored:
        notes = [describe_differences(claim, line) for claim in claims if claim.system == line.system]
        found.append(replace(line, notes=(*line.notes, *notes)))
    return found


def describe_differences(claim: BoardLine, scored: BoardLine) -> str:
    """Return in words how a score file differs from the scores of its predictions."""
    shared = [key for key, value in claim.scores.items() if value is not None and scored.scores.get(key) is not None]
    differing = [key for key in shared if abs((claim.scores[key] or 0) - (scored.scores[key] or 0)) > SLACK]
    parts = [
        f"{key} {claim.scores[key]:.6g} in the score file, {scored.scores[key]:.6g} scored again" for key in differing
    ]
    more = len(parts) - MOST_SHOWN
    if more > 0:
        parts[MOST_SHOWN:] = [f"and {more} more"]
    if claim.data and claim.data != scored.data:
        parts.append(f"data {shorten_digest(claim.data)} in the score file, {shorten_digest(scored.data)} here")
    if claim.predictions and claim.predictions != scored.predictions:
        parts.append("other predictions than those of the score file")
    absent = [key for key, value in claim.scores.items() if value is not None and key not in scored.scores]
    if absent:
        parts.append(f"{len(absent)} scores of the file do not come out: {', '.join(absent[:MOST_SHOWN])}")
    if not parts:
        return f"verified: all {len(shared)} scores of the score file come out again"
    return f"the score file does not hold: {'; '.join(parts)}"
