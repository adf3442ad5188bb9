"""A report's sections: tables, figures, notes, and what is left out, with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eraser_hub.metrics.statistics import DEFAULT_LEVEL
from eraser_hub.records.files import shorten_digest
from eraser_hub.records.predictions import read_model_digest
from eraser_hub.scoring.compare import compare
from eraser_hub.scoring.result import Scores
from eraser_hub.scoring.settings import ScoreSettings
from eraser_hub.scoring.statistics import DRAWS

from .curves import make_aopc_figures, make_distribution_figures, make_fidelity_figures
from .explorer.matrix import make_matrix_block
from .explorer.notes import count_systems, merge_notes
from .report_tables import Section, make_class_blocks, make_score_blocks


def make_scores_section(scored: Sequence[Scores], headline: Sequence[str]) -> Section:
    """Make the tables of scores."""
    people = scored[0].people if scored else None
    shown = list(scored)
    if people is not None and people.scores:
        shown.append(Scores(name="people", scores=dict(people.scores), spread=dict(people.spread)))
    section = Section("scores-section", "Scores", blocks=make_score_blocks(shown, headline))
    if not scored:
        section.missing.append("No predictions were given, so there is nothing to score.")
    section.notes += dict.fromkeys(line for one in scored for line in one.describe_gold())
    return section


def make_provenance_section(scored: Sequence[Scores], compared: Mapping[str, Any] | None) -> Section:
    """Make the section of notes, signatures and digests, with one line for what is true of several systems."""
    section, names = Section("provenance-section", "Provenance and notes"), [system.name for system in scored]
    own = [(one.name, why) for one in scored for why in one.all_notes]
    section.notes += merge_notes(own, names)
    if compared is not None:
        # a caution about one module's scores begins with the module; a comparison's does not
        repeated = {f"{name}: {line}" for name, why in own for line in (why, why.partition(": ")[2])}
        section.notes += [note for note in compared["notes"] if note not in repeated]
        section.signatures.append(f"comparison: {compared['signature']}")
    lines = []
    for system in scored:
        predictions = map(shorten_digest, system.predictions_sha256)
        lines += [(system.name, line) for line in system.signatures]
        lines += [(system.name, f"predictions:{digest}") for digest in predictions]
    section.signatures += merge_notes(lines, names)
    return section


def compare_all_pairs(
    systems: Sequence[Scores], settings: ScoreSettings, minimum_effect: float
) -> dict[str, Any] | None:
    """Compare all pairs of systems, as `eraser-hub compare` does; None if they share no score."""
    keys = [{key for statistics in run.values() for key in statistics.scores} for one in systems for run in one.runs]
    if not set.intersection(*keys):
        return None
    return compare(
        {one.name: one.runs for one in systems},
        minimum_effect=minimum_effect,
        confidence_level=settings.confidence_level or DEFAULT_LEVEL,
        resamples=settings.n_resamples or DRAWS,
        seed=settings.seed,
        only_predicted=settings.only_predicted,
        models={one.name: [read_model_digest(path) for path in one.files] for one in systems},
        paper=settings.paper,
    )


def make_comparison_section(systems: Sequence[Scores], result: Mapping[str, Any] | None, baseline: str) -> Section:
    """Make the paired comparison: difference, interval, Holm's p and verdict of each system against a baseline.

    Args:
        systems: all systems.
        result: their comparison; None where they have no scores in common.
        baseline: the system that is subtracted at first.
    """
    section = Section("comparison-section", "Paired comparison")
    if len(systems) < 2:
        section.missing.append("A comparison needs the predictions of two systems on the same instances.")
        return section
    if result is None:
        section.missing = ["The systems have no block of scores in common: their predictions have different fields."]
        return section
    section.blocks = [make_matrix_block(result, baseline)]
    section.notes.append(
        "★ and the verdict: the system is better than the baseline where p (Holm) is at most .05 and the "
        "difference is the minimum effect or more. Interval by the model of documents and runs; p by exchange of "
        "documents with one run each, else by the model; Holm's correction over the headline scores times the "
        "pairs of systems, all other scores are exploratory."
    )
    section.notes += [
        f"Not compared, {name} alone has them: {', '.join(keys)}." for name, keys in result["left_out"].items()
    ]
    return section


def make_aopc_section(scored: Sequence[Scores], chance: Sequence[Scores]) -> Section:
    """Make the erasure curves, with random rationales."""
    section = Section("aopc-section", "Erasure curves (AOPC)", figures=make_aopc_figures(scored, chance))
    without = [system.name for system in scored if not system.scores.get("comprehensiveness_aopc_points")]
    if without:
        section.missing.append(
            f"No curve for {count_systems(without, len(scored))}: the predictions have no thresholded_scores "
            "(probabilities on inputs erased at several shares of tokens; `eraser-hub explain` writes them)."
        )
    if not scored:
        section.missing.append("No predictions were given.")
    elif section.figures and not chance:
        section.missing.append(
            "No random baseline: give predictions of random rationales with --baseline "
            '(`eraser-hub explain --method "random(draws=10)"` writes them).'
        )
    return section


def make_fidelity_section(systems: Sequence[Scores]) -> Section:
    """Make the fidelity curves of every system that has them."""
    section = Section("fidelity-section", "Fidelity curves", figures=make_fidelity_figures(systems))
    without = [system.name for system in systems if "sufficiency_curve" not in system.scores]
    if without:
        section.missing.append(
            f"No curve for {count_systems(without, len(systems))}: the predictions have no occluded_scores or no "
            "null_classification_scores (probabilities on the rationale with tokens occluded, and on the empty input; "
            "`eraser-hub explain --fidelity-trials 5` writes them)."
        )
    if not systems:
        section.missing.append("No predictions were given.")
    return section


def make_distribution_section(scored: Sequence[Scores], keys: Sequence[str]) -> Section:
    """Make the distributions of these per-instance scores, as far as there are any."""
    section = Section("distribution-section", "Per-instance scores", figures=make_distribution_figures(scored, keys))
    if not section.figures:
        section.missing.append("There are no per-instance scores to draw.")
    return section


def make_class_section(scored: Sequence[Scores], keys: Sequence[str], missing: str) -> Section:
    """Make the table of these scores by gold class; ``missing`` is the text if there are none."""
    section = Section("class-section", "By class", blocks=make_class_blocks(scored, keys))
    if not section.blocks:
        section.missing.append(missing)
    return section
