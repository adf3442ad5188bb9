"""The report of one split: scores with intervals, comparison, curves, distributions, classes, and the documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

from eraser_hub.metrics.statistics import DEFAULT_LEVEL
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.files import OutputWriter
from eraser_hub.scoring.result import Scores
from eraser_hub.scoring.runs import System
from eraser_hub.scoring.score import score, score_system
from eraser_hub.scoring.scored_split import ScoredSplit, read_split
from eraser_hub.scoring.settings import ScoreSettings

from . import sections
from .documents import index_documents
from .explorer.definitions import define_score
from .explorer.example import choose_example
from .explorer.forest import PEOPLE, RANDOM, drop_agreement, find_systems
from .explorer.matrix import pack_comparison
from .explorer.notes import merge_notes
from .explorer.overview import Compared, find_models, list_headline, make_overview
from .marked_instances import MarkedInstance, mark_for_systems, mark_rows, read_answers
from .marked_pairs import find_lost_partners, mark_pair, pair_rows
from .page import GOLD_GROUPS, ReportContent, to_json_text, write_report
from .plots import draw_figures
from .report_tables import collect_instance_values, collect_scalar_keys

# per-instance scores that are drawn as distributions, where they exist; the list of documents offers all of them
DISTRIBUTIONS = (
    "auprc",
    "token_f1",
    "token_macro_f1",
    "comprehensiveness",
    "sufficiency",
    "comprehensiveness_aopc",
    "sufficiency_aopc",
    "naopc_comprehensiveness",
    "naopc_sufficiency",
)
# scores by class, and the words where there are none
BY_CLASS = (
    (
        "accuracy",
        "auprc",
        "comprehensiveness",
        "comprehensiveness_aopc",
        "iou_macro_f1",
        "sufficiency",
        "sufficiency_aopc",
        "token_macro_f1",
    ),
    "There are no scores by class.",
)
GOLD_WORDS = {
    "majority": ("gold: more than half of the annotators",),
    "union": ("gold: any annotator",),
}
MAX_NAMED = 6  # systems below the title
PAIR_DISTRIBUTIONS = ("map", "token_f1", "sufficiency", "comprehensiveness")
PAIRS_BY_CLASS = (
    ("iou_f1", "map", "token_f1"),
    "There are no scores by class: the records have no gold label, or nothing was predicted.",
)

Answers = Mapping[str, Mapping[str, Any]]
Pair = tuple[Mapping[str, Any], Mapping[str, Any]]


class Marked(NamedTuple):
    """The documents of a page: marked for each system, the row of each, their number in words, what is not marked."""

    documents: list[list[MarkedInstance]]
    places: list[int]
    counts: str
    missing: list[str]


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Files of a report; each note says once what was left out, and of which systems."""

    page: Path
    score_files: tuple[Path, ...]
    figures: tuple[Path, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the files, a line each."""
        return "\n".join(map(str, (self.page, *self.score_files, *self.figures)))


def make_report(
    dataset: Path,
    *,
    config: str | None,
    split: str,
    systems: Sequence[System],
    out: Path,
    baselines: Sequence[System] = (),
    title: str = "",
    settings: ScoreSettings | None = None,
    minimum_effect: float = 0.0,
    figures: Path | None = None,
    compared: Compared | None = None,
    writer: OutputWriter | None = None,
) -> ReportFiles:
    """Write ``out/index.html``, and a score file beside it for each system.

    Args:
        dataset: the built dataset's folder.
        config: its config; None: the default.
        split: its split.
        systems: the predictions; none shows the gold rationales alone.
        out: the folder to write to.
        baselines: draws of random rationales, averaged in the curves (those of pairs have none).
        title: the page's title.
        settings: how the predictions are scored; by default with intervals.
        minimum_effect: the smallest difference that matters.
        figures: also write each figure there as PNG, SVG and PDF.
        compared: a comparison of the systems; None: they are compared here.
        writer: the run's writer; None: of a run without inputs.

    Raises:
        DataError: bad data, with file and instance; nothing is written then.
    """
    writer, names = writer or OutputWriter(), name_score_files(out, systems)
    for path in (out / "index.html", *names):
        writer.check(path)
    settings, rows = settings or ScoreSettings(confidence_level=DEFAULT_LEVEL), read_split(dataset, config, split)
    if not rows.rows:
        raise DataError(f"expected rows in {rows.config}, {rows.split}, found none", file=dataset)
    if rows.kind == "perturbation" and not pair_rows(rows.rows):
        message = "expected original records with perturbed ones, found no pair"
        raise DataError(message, file=rows.dataset)
    by = "classification" if any(row.get("classification") is not None for row in rows.rows) else None
    everything = replace(settings, per_instance=True, by=by, people=False)
    answers = [read_answers(rows, system.path) for system in systems]
    # people are the same beside every system
    scored = [score_system(rows, system, replace(everything, people=system is systems[0])) for system in systems]
    for one in scored:
        one.people = scored[0].people
    chance = list[Scores]()
    if rows.kind != "perturbation":
        plain = replace(settings, confidence_level=None, n_resamples=None, people=False)
        chance = [replace(score(rows, one.path, plain), name=one.name) for one in baselines]
    compared = compared or compare_systems(scored, settings, minimum_effect)
    content = _make_content(rows, systems, answers, scored, chance, settings, title, compared)
    drawn = [figure for section in content.sections for figure in section.figures]
    plotted = {} if figures is None else draw_figures(drawn, figures)
    score_files = {
        path: to_json_text(scores.as_json(per_instance=False), indent=2)
        for path, scores in zip(names, scored, strict=True)
    }
    write_report(out / "index.html", content, {**score_files, **plotted}, writer)
    pairs = ((scores.name, note) for scores in scored for note in scores.all_notes)
    notes = merge_notes(pairs, [scores.name for scores in scored])
    return ReportFiles(out / "index.html", tuple(score_files), tuple(plotted), tuple(notes))


def name_score_files(out: Path, systems: Sequence[System]) -> list[Path]:
    """Return a score file for each system; names that a file system cannot tell apart are numbered.

    >>> [path.name for path in name_score_files(Path(), [System("LIME (k 5)", ()), System("LIME [k 5]", ())])]
    ['LIME__k_5_.scores.json', 'LIME__k_5_-2.scores.json']
    """
    taken, names = set[str](), list[str]()
    for system in systems:
        numbered = (f"{system.file_name}-{number}" for number in count(2))
        name = next(name for name in chain([system.file_name], numbered) if name.casefold() not in taken)
        taken.add(name.casefold())
        names.append(name)
    return [out / f"{name}.scores.json" for name in names]


def _make_content(
    split: ScoredSplit,
    systems: Sequence[System],
    answers: Sequence[Answers],
    scored: list[Scores],
    chance: Sequence[Scores],
    settings: ScoreSettings,
    title: str,
    compared: Compared,
) -> ReportContent:
    """Return the content of a page on annotations, or on pairs of the perturbation benchmark."""
    pairs, names = split.kind == "perturbation", [system.name for system in systems]
    marked, places, counts, missing = (_mark_pairs if pairs else _mark_rows)(split, systems, answers, settings)
    result = compared.result
    values = collect_instance_values(scored, [split.ids[place] for place in places])
    headline = list_headline(scored, result)
    people = [] if pairs else find_systems(scored, PEOPLE)
    shown = [drop_agreement(one) if one.name in people else one for one in scored]
    made = [
        sections.make_scores_section(shown, headline),
        sections.make_comparison_section(scored, result, choose_baseline(compared)),
    ]
    if not pairs:
        made += [sections.make_aopc_section(scored, chance), sections.make_fidelity_section(scored)]
    made.append(sections.make_distribution_section(shown, PAIR_DISTRIBUTIONS if pairs else DISTRIBUTIONS))
    made.append(sections.make_class_section(shown, *(PAIRS_BY_CLASS if pairs else BY_CLASS)))
    made.append(sections.make_provenance_section(scored, result))
    if pairs:
        title = title or f"Perturbation pairs of {split.config}, {split.split}"
    example = choose_example(marked, names, values, list(result["scores"]) if result else ())
    return ReportContent(
        title=title or f"Rationales on {split.names['dataset']} {split.config}, {split.split}",
        subtitle=f"{counts} · {describe_systems(systems)}",
        sections=made,
        browsed=index_documents(marked, names, () if pairs else split.labels.names or ()),
        values=values,
        documents_title="Pairs" if pairs else "Documents",
        documents_missing=missing,
        gold_words=GOLD_GROUPS if pairs else GOLD_WORDS.get(settings.gold, GOLD_GROUPS),
        overview=make_overview(scored, compared, chance, example),
        comparison=pack_comparison(result) if result else "",
        definitions=[define_score(key, shown) for key in collect_scalar_keys(shown)],
    )


def _mark_rows(
    split: ScoredSplit, systems: Sequence[System], answers: Sequence[Answers], settings: ScoreSettings
) -> Marked:
    """Mark the annotations of which any system has an answer."""
    # annotations without an answer exist only if a part of the split may be scored
    places = [
        place
        for place, identity in enumerate(split.ids)
        if not systems or any(identity in system_answers for system_answers in answers)
    ]
    marked, note = mark_rows(split, [split.rows[place] for place in places], systems, answers, settings.gold)
    counts = f"{_of_all(len(places), len(split.rows))} instances"
    return Marked(marked, places, counts, [*filter(None, (note,)), *_unmarked(systems, answers)])


def _mark_pairs(
    split: ScoredSplit, systems: Sequence[System], answers: Sequence[Answers], settings: ScoreSettings
) -> Marked:
    """Mark the pairs of which any system has both answers; a record's own scores stand beside each of its pairs."""

    def answers_both(system_answers: Answers, pair: Pair) -> bool:
        return all(str(row["id"]) in system_answers for row in pair)

    def mark(pair: Pair, system_answers: Answers | None) -> MarkedInstance:
        alone = settings.only_predicted and system_answers is not None and not answers_both(system_answers, pair)
        return mark_pair(pair, None if alone else system_answers, split.labels.names)

    pairs = every = pair_rows(split.rows)
    if settings.only_predicted and systems:
        pairs = [pair for pair in every if any(answers_both(system_answers, pair) for system_answers in answers)]
    marked = mark_for_systems(systems, answers, pairs, mark)
    place = {identity: k for k, identity in enumerate(split.ids)}
    places = [place[str(original["id"])] for original, _ in pairs]
    counts = f"{_of_all(len(pairs), len(every))} pairs of {len(split.rows)} records"
    return Marked(marked, places, counts, _unmarked_pairs(split, systems, answers))


def compare_systems(scored: Sequence[Scores], settings: ScoreSettings, minimum_effect: float) -> Compared:
    """Return the comparison of all pairs of systems, as `eraser-hub compare` makes it.

    Rationales of people are shown and not compared: their agreement would be with themselves.
    """
    people = find_systems(scored, PEOPLE)
    scored = [one for one in scored if one.name not in people]
    result = sections.compare_all_pairs(scored, settings, minimum_effect) if len(scored) > 1 else None
    models = find_models(scored, settings.only_predicted) if result else {}
    return Compared(result, find_systems(scored, RANDOM), models)


def choose_baseline(compared: Compared) -> str:
    """Return the system that others are compared with at first: chance, or the last one."""
    names = list(compared.result["scores"]) if compared.result else []
    return next((name for name in compared.chance if name in names), names[-1] if names else "")


def describe_systems(systems: Sequence[System]) -> str:
    """Return the number of systems, and the names of a few."""
    if not systems:
        return "gold rationales alone, no predictions were given"
    count = f"{len(systems)} {'system' if len(systems) == 1 else 'systems'}"
    return count if len(systems) > MAX_NAMED else f"{count}: {', '.join(system.name for system in systems)}"


def _of_all(count: int, total: int) -> str:
    return str(count) if count == total else f"{count} of {total}"


def _unmarked(systems: Sequence[System], answers: Sequence[Answers]) -> list[str]:
    out: list[tuple[str, str]] = []
    for system, system_answers in zip(systems, answers, strict=True):
        rationales = [one for instance in system_answers.values() for one in instance.get("rationales") or ()]
        for field, words in (
            ("hard_rationale_predictions", "no predicted spans are marked: the predictions have no hard rationales"),
            ("soft_rationale_predictions", "no shades are drawn: the predictions have no soft scores"),
        ):
            if all(one.get(field) is None for one in rationales):
                out.append((system.name, f"{words} ({field})."))
        if all(instance.get("classification") is None for instance in system_answers.values()):
            out.append((system.name, "right and wrong are unknown: the predictions have no classification."))
    return merge_notes(out, [system.name for system in systems])


def _unmarked_pairs(split: ScoredSplit, systems: Sequence[System], answers: Sequence[Answers]) -> list[str]:
    words = "no predicted rationale is marked: the predictions have no rationale (lists of token indices)."
    without = [
        (system.name, words)
        for system, system_answers in zip(systems, answers, strict=True)
        if all(row.get("rationale") is None for row in system_answers.values())
    ]
    missing = merge_notes(without, [system.name for system in systems])
    if lost := find_lost_partners(split.rows):
        words = f"{len(lost)} perturbed records are named and not among the rows"
        missing.append(f"{words} ({show(lost[0])} first): no pairs of them.")
    if all(not row.get("rationale_ids") for row in split.rows):
        missing.append("No gold rationales are marked: this release of the benchmark has none.")
    return missing
