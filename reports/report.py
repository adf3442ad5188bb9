"""The report of one split: scores with intervals, comparison, curves, distributions, classes, and the documents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eraser_hub.records.errors import DataError, shown
from eraser_hub.version import __version__

from .catalogue import metric
from .curves import aopc_figures, distribution_figures
from .documents import browse
from .fidelity import fidelity_section
from .figures import Figure
from .marks import MarkedInstance, mark
from .page import write_pieces, write_report
from .rows import Table, by_id, paired, read_predictions, read_table
from .scores import SystemScores
from .scoring import Settings, compare_systems, score_file, score_system
from .tables import Note, Section, chance_block, class_blocks, comparison_section, place_of, score_blocks

# per-instance scores that are drawn as distributions, where they exist; the list of documents offers all of them
DISTRIBUTIONS = (
    "auprc",
    "token_f1",
    "token_macro_f1",
    "comprehensiveness",
    "sufficiency",
    "comprehensiveness_aopc",
    "sufficiency_aopc",
)
BY_CLASS = (
    "accuracy",
    "auprc",
    "comprehensiveness",
    "comprehensiveness_aopc",
    "iou_macro_f1",
    "sufficiency",
    "sufficiency_aopc",
    "token_macro_f1",
)


@dataclass(frozen=True, slots=True)
class System:
    """A file of predictions and what it is called in the report."""

    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class Written:
    """What `make_report` wrote."""

    page: Path
    score_files: tuple[Path, ...]
    figures: tuple[Path, ...]


def named_systems(arguments: Sequence[str], *, draws: bool = False) -> list[System]:
    """``PATH`` or ``NAME=PATH``; a path's stem names the system, and its folder too where two stems are equal.

    Args:
        arguments: as given on the command line.
        draws: several files under one name given are draws of one system, not a mistake.

    Raises:
        DataError: two systems of one name.
    """
    systems = []
    for argument in arguments:
        name, equals, path = argument.partition("=")
        if equals and name and not Path(argument).exists():
            systems.append(System(name, Path(path)))
        else:
            systems.append(System(Path(argument).stem, Path(argument)))
    stems = [system.path.stem for system in systems if system.name == system.path.stem]
    systems = [
        System(f"{system.path.parent.name}/{system.name}", system.path) if stems.count(system.name) > 1 else system
        for system in systems
    ]
    for system in systems:
        if not draws and sum(other.name == system.name for other in systems) > 1:
            raise DataError(f"expected a name of its own for each system (NAME=PATH), found {shown(system.name)} twice")
    return systems


def make_report(
    dataset: Path,
    *,
    config: str | None,
    split: str,
    systems: Sequence[System],
    out: Path,
    baselines: Sequence[System] = (),
    title: str = "",
    settings: Settings | None = None,
    figures: Path | None = None,
) -> Written:
    """Write ``out/index.html``, and a score file beside it for each system.

    Args:
        dataset, config, split: the built dataset's folder, its config (None: the default) and split.
        systems: the predictions; none shows the gold rationales alone.
        out: the folder to write to.
        baselines: draws of random rationales, averaged in the curves.
        title: the page's title.
        settings: confidence level, resamples and seed.
        figures: also write each figure there as PNG and SVG.

    Raises:
        DataError: bad data, with file and instance; nothing is written then.
    """
    settings = settings or Settings()
    table = read_table(dataset, config, split)
    if table.rows and "sample_type" in table.rows[0]:
        from .pairs import make_pair_report

        return make_pair_report(table, systems=systems, out=out, title=title, settings=settings, figures=figures)
    if not table.rows or "evidences" not in table.rows[0]:
        raise DataError("expected rows with documents and evidences, or original/perturbed pairs", file=dataset)
    outputs = [_outputs(table, system) for system in systems]
    scored = [
        score_system(s.name, table, instances, settings, s.path) for s, instances in zip(systems, outputs, strict=True)
    ]
    chance = [score_system(s.name, table, _outputs(table, s), settings, s.path, plain=True) for s in baselines]
    marked = _marked(table, systems, outputs)
    sections = [
        _scores_section(scored),
        comparison_section(scored, compare_systems(scored, settings) if len(scored) > 1 else None),
        _aopc_section(scored, chance),
        fidelity_section(scored),
        _distribution_section(scored),
        _class_section(scored),
    ]
    browsed = browse(marked, [system.name for system in systems], table.label_names or ())
    values = [
        {
            key: column
            for key, column in sorted(system.per_instance.items(), key=lambda item: place_of(item[0]))
            if any(v is not None for v in column)
        }
        for system in scored
    ]
    name = f"{table.folder.resolve().name} {table.config}, {table.split}"
    drawn: list[Figure] = [figure for section in sections for figure in section.figures]
    plotted: list[Path] = []
    if figures is not None:
        from .plots import write_figures

        plotted = write_figures(drawn, figures)
    write_report(
        out / "index.html",
        title=title or f"Rationales on {name}",
        subtitle=f"{len(table.rows)} instances · {systems_words(systems)}",
        sections=sections,
        browsed=browsed,
        values=values,
        names={key: metric(key).label for columns in values for key in columns},
        documents_missing=_unmarked(systems, outputs),
        footer=f"eraser-hub {__version__}",
    )
    files = []
    for system in scored:
        path = out / f"{file_name(system.name)}.scores.json"
        write_pieces(path, [json.dumps(score_file(system, table), indent=2, ensure_ascii=False, allow_nan=False), "\n"])
        files.append(path)
    return Written(out / "index.html", tuple(files), tuple(plotted))


def file_name(name: str) -> str:
    """A system's name as a file's: no separator, no leading dot."""
    return "".join(c if c.isalnum() or c in "-_.+" else "_" for c in name).lstrip(".") or "system"


def _outputs(table: Table, system: System) -> list[Mapping[str, Any]]:
    instances = by_id(read_predictions(system.path), "annotation_id", system.path)
    return paired(table.rows, instances, system.path)


def _marked(
    table: Table, systems: Sequence[System], outputs: Sequence[Sequence[Mapping[str, Any]]]
) -> list[list[MarkedInstance]]:
    if not systems:
        return [[mark(row, label_names=table.label_names)] for row in table.rows]
    out = []
    for place, row in enumerate(table.rows):
        seen = []
        for system, instances in zip(systems, outputs, strict=True):
            try:
                seen.append(mark(row, instances[place], label_names=table.label_names))
            except DataError as error:
                raise DataError(error.message, file=system.path, instance=error.instance, field=error.field) from None
        out.append(seen)
    return out


def systems_words(systems: Sequence[System]) -> str:
    """How many systems there are, and their names."""
    if not systems:
        return "gold rationales alone, no predictions were given"
    return f"{len(systems)} {'system' if len(systems) == 1 else 'systems'}: " + ", ".join(s.name for s in systems)


def _unmarked(systems: Sequence[System], outputs: Sequence[Sequence[Mapping[str, Any]]]) -> list[str]:
    out = []
    for system, instances in zip(systems, outputs, strict=True):
        rationales = [rationale for instance in instances for rationale in instance.get("rationales") or ()]
        for field, words in (
            ("hard_rationale_predictions", "no predicted spans are marked: the predictions have no hard rationales"),
            ("soft_rationale_predictions", "no shades are drawn: the predictions have no soft scores"),
        ):
            if not any(rationale.get(field) is not None for rationale in rationales):
                out.append(f"{system.name}: {words} ({field}).")
        if all(instance.get("classification") is None for instance in instances):
            out.append(f"{system.name}: right and wrong are unknown: the predictions have no classification.")
    return out


def _scores_section(scored: Sequence[SystemScores]) -> Section:
    section = Section("scores-section", "Scores", blocks=score_blocks(scored))
    chance = chance_block(scored)
    if chance is not None:
        section.blocks.append(chance)
    if not scored:
        section.missing.append("No predictions were given, so there is nothing to score.")
    for system in scored:
        section.missing.extend(f"{system.name}: {why}" for why in system.missing)
        section.notes.extend(Note(f"{system.name}: {line}", "signature") for line in system.signatures)
    return section


def _aopc_section(scored: Sequence[SystemScores], chance: Sequence[SystemScores]) -> Section:
    section = Section("aopc-section", "Erasure curves (AOPC)", figures=list(aopc_figures(scored, chance)))
    without = [system.name for system in scored if not system.scores.get("comprehensiveness_aopc_points")]
    if without:
        section.missing.append(
            f"No curve for {', '.join(without)}: the predictions have no thresholded_scores (probabilities on inputs "
            "erased at several shares of tokens; `eraser-hub explain` writes them)."
        )
    if not scored:
        section.missing.append("No predictions were given.")
    elif section.figures and not chance:
        section.missing.append(
            "No random baseline: give predictions of random rationales with --baseline "
            "(`eraser-hub explain --method random --draws 10` writes them)."
        )
    return section


def _distribution_section(scored: Sequence[SystemScores]) -> Section:
    figures = distribution_figures(scored, DISTRIBUTIONS)
    section = Section("distribution-section", "Per-instance scores", figures=list(figures))
    if not figures:
        section.missing.append("There are no per-instance scores to draw.")
    return section


def _class_section(scored: Sequence[SystemScores]) -> Section:
    section = Section("class-section", "By class", blocks=class_blocks(scored, BY_CLASS))
    if not section.blocks:
        section.missing.append("There are no scores by class.")
    return section
