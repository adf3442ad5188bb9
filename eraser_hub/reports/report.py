"""The public function `report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from eraser_hub.records.arguments import PYTHON, Place
from eraser_hub.scoring.verbs import make_settings, name_files

if TYPE_CHECKING:
    from .report_page import ReportFiles


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
    """Write a page of scores, comparisons, curves and texts of systems.

    The page is one HTML file that needs no network. Without predictions it shows the gold rationales alone. A score
    file for each system, with its signature, stands beside it, for `board`.

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
    from eraser_hub.records.files import OutputWriter
    from eraser_hub.records.predictions import find_inputs
    from eraser_hub.scoring.runs import parse_systems

    from .report_page import make_report

    settings = make_settings(
        gold=gold,
        cluster_by=cluster_by,
        only_predicted=only_predicted,
        confidence_level=confidence_level,
        n_resamples=resamples,
        seed=seed,
    )
    files, draws = name_files(predictions), name_files(baseline)
    return make_report(
        Path(dataset),
        config=config,
        split=split,
        systems=parse_systems(files, seeds=True),
        baselines=parse_systems(draws),
        out=Path(out),
        title=title,
        settings=settings,
        minimum_effect=minimum_effect,
        figures=None if figures is None else Path(figures),
        writer=OutputWriter(find_inputs(Path(dataset), files, draws), force),
    )
