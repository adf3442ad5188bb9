"""The public function `report`: one page that says which system is better and by how much, and shows on which texts."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from eraser_hub.records.arguments import PYTHON, Place
from eraser_hub.records.errors import DataError

if TYPE_CHECKING:
    from eraser_hub.scoring.compare import Comparison
    from eraser_hub.scoring.runs import System

log = logging.getLogger("eraser_hub")
TEXTS = "texts.js"  # stands beside the page where it has more texts than fit into it


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Files of a report, and its comparison; each note says once what was left out, and of which systems."""

    page: Path
    score_files: tuple[Path, ...]
    figures: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    comparison: Comparison | None = None

    def __str__(self) -> str:
        """Return the files, a line each."""
        return "\n".join(map(str, (self.page, *self.score_files, *self.figures)))


def report(
    dataset: Place,
    predictions: str | Sequence[str] | Mapping[str, Any] = (),
    *,
    config: str | None = None,
    split: str = "test",
    out: Place = "report",
    baseline: str | Sequence[str] | Mapping[str, Any] = (),
    figures: Place | None = None,
    minimum_effect: float = 0.0,
    seed: int = 0,
    force: bool = False,
    title: Annotated[str, PYTHON] = "",
    gold: Annotated[Literal["evidence", "majority", "union"], PYTHON] = "evidence",
    cluster_by: Annotated[str, PYTHON] = "auto",
    confidence_level: Annotated[float, PYTHON] = 0.95,
    resamples: Annotated[int | None, PYTHON] = None,
    only_predicted: Annotated[bool, PYTHON] = False,
) -> ReportFiles:
    """Write a page: which system is better, the scores, the curves, the texts.

    The page is one HTML file that needs no network; texts after the first 200 stand in a file beside it. Without
    predictions it shows the gold rationales alone. A score file for each system, with its signature, stands beside it,
    for `board`.

    Args:
        dataset: Built dataset or Hub id.
        predictions: FILE, NAME=FILE, or NAME=FILE,FILE for runs of one system; repeat it for each system.
        config: Config; by default the only or the default one.
        split: Split, as the Hub or the release calls it.
        out: Folder to write index.html and the score files to.
        baseline: Predictions of random rationales for the curves; several are averaged.
        figures: Folder to write the figures to, as PNG, SVG and PDF.
        minimum_effect: Smallest difference that matters, in the scores' units.
        seed: Seed of all random draws.
        force: Replace files that no run wrote.
        title: title of the page.
        gold: gold rationales: as they stand, or the majority or union of the annotators' marks.
        cluster_by: what intervals and tests draw together: "auto", "none" or a field, as of `score`.
        confidence_level: level of the intervals.
        resamples: of intervals and tests; by default as many as `score` and `compare` take.
        only_predicted: score only annotations with an instance.

    Returns:
        The page, the score files and the figures.

    Raises:
        DataError: bad data, with file and instance; nothing is written then.

    Examples:
        >>> from eraser_hub import report, samples
        >>> predictions = samples.path("predictions", "eraser", "movies.val.jsonl")
        >>> report("hub/eraser", predictions, config="movies", split="val", out="report").page.name
        'index.html'

        $ eraser-hub report --dataset hub/eraser --config movies --split val --predictions p.jsonl --out report
        $ eraser-hub report --dataset hub/eraser --config movies --predictions ours=a.jsonl \\
          --predictions theirs=b.jsonl --baseline random.jsonl --figures figures --out report
    """
    from eraser_hub.records.files import OutputWriter, to_json_bytes
    from eraser_hub.records.predictions import find_inputs
    from eraser_hub.scoring.runs import parse_systems
    from eraser_hub.scoring.score import ScoreSettings, score, score_system
    from eraser_hub.scoring.scored_split import open_split

    from .figures import draw_figures
    from .findings import merge_notes
    from .page import write_files
    from .report_page import NO_FIGURES, compare_systems, render_report
    from .texts import make_texts

    settings = ScoreSettings(
        gold=gold,
        cluster_by=cluster_by,
        only_predicted=only_predicted,
        confidence_level=confidence_level,
        n_resamples=resamples,
        seed=seed,
        per_instance=True,
    )
    systems, baselines, folder = parse_systems(predictions, seeds=True), parse_systems(baseline), Path(out)
    files = [path for system in (*systems, *baselines) for path in system.paths]
    writer = OutputWriter(find_inputs(Path(dataset), files), force)
    page, score_files = folder / "index.html", name_score_files(folder, systems)
    for path in (page, *score_files):
        writer.check(path)
    earlier = list_files(page)
    rows = open_split(dataset, config, split)
    if not rows.rows:
        raise DataError(f"expected rows in {', '.join(rows.names.values())}, found none", file=rows.dataset)

    by = "classification" if any(row.get("classification") is not None for row in rows.rows) else None
    # people are the same beside every system
    scored = [score_system(rows, one, replace(settings, by=by, people=one is systems[0])) for one in systems]
    for system in scored:
        system.people = scored[0].people
        # the page groups by class of its own accord, and its table shows what a class has
        system.cautions = [note for note in system.cautions if not note.startswith(f"by {by}: ")]
    plain = replace(settings, confidence_level=None, n_resamples=None, people=False)
    drawn = [replace(score(rows, one.path, plain), name=one.name) for one in baselines]
    compared = compare_systems(scored, drawn, settings, minimum_effect)
    texts = make_texts(rows, systems, scored, gold, hidden=[*compared.people, *compared.random])
    if texts.has_pairs and not texts.index["ids"]:
        raise DataError("expected original records with perturbed ones, found no pair", file=rows.dataset)

    try:
        how = compared.systems, compared.headline, compared.drawn, compared.chance, compared.models
        inline, figure_files = draw_figures(*how, None if figures is None else Path(figures))
    except DataError:
        if figures is not None:
            raise
        log.warning(NO_FIGURES)
        inline, figure_files = {}, {}
    about = f"{len(systems)} {'system' if len(systems) == 1 else 'systems'}"
    if len(systems) <= 6:  # the names of more would fill the screen
        about += f": {', '.join(one.name for one in systems)}"
    content = render_report(
        title or f"Rationales on {', '.join(rows.names.values())}",
        f"{texts.counts} · {about if systems else 'the gold rationales alone, no predictions were given'}",
        compared,
        texts,
        inline,
        [path.name for path in score_files],
    )
    written: dict[Path, Any] = {page: [content]}
    if texts.beside:
        written[folder / TEXTS] = texts.beside
    for path, system in zip(score_files, scored, strict=True):
        written[path] = to_json_bytes(system.as_json(per_instance=False))
    write_files({**written, **figure_files}, writer)
    for path in earlier:
        if not any(path.samefile(file) for file in written):  # X.scores.json may be x.scores.json
            path.unlink()
    notes = merge_notes([(one.name, note) for one in scored for note in one.all_notes], [one.name for one in scored])
    return ReportFiles(page, tuple(score_files), tuple(figure_files), tuple(notes), compared.comparison)


def list_files(page: Path) -> set[Path]:
    """Return the files that stand beside a report's page: the score files that it links to, and its further texts."""
    from eraser_hub.records.files import is_generated

    if not page.is_file() or not is_generated(page):
        return set()
    names = re.findall(r'<a href="([^"/\\]+\.scores\.json)">', page.read_text(encoding="utf-8", errors="replace"))
    paths = {page.with_name(name) for name in (*names, TEXTS)}
    return {path for path in paths if path.is_file() and is_generated(path)}


def name_score_files(out: Path, systems: Sequence[System]) -> list[Path]:
    """Return a score file for each system; names that a file system cannot tell apart are numbered.

    >>> from eraser_hub.scoring.runs import System
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
