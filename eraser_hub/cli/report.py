"""``eraser-hub report``: one self-contained HTML page about a split and the systems that were run on it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from .scored import ClusterBy
from .usage import OnlyPredicted, Revision, Seed, Split, at_revision, say


def report(
    dataset: Annotated[Path, typer.Option(help="A built dataset: its folder, or its id on the Hub.")],
    out: Annotated[Path, typer.Option(help="Folder to write index.html and the score files to.")],
    predictions: Annotated[
        list[str] | None,
        typer.Option(
            help="A system's predictions, FILE or NAME=FILE (https:// and hf:// too), several runs (seeds) as "
            "NAME=FILE,FILE,..; repeat it for further systems."
        ),
    ] = None,
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[PREDICTIONS]..", help="Further predictions, as after --predictions.")
    ] = None,
    config: Annotated[str | None, typer.Option(help="Config; the card's default if not given.")] = None,
    split: Split = "test",
    baseline: Annotated[
        list[str] | None, typer.Option(help="Predictions of random rationales for the curves; several are averaged.")
    ] = None,
    evaluator: Annotated[
        list[str] | None,
        typer.Option(help="NAME=FILE: what `explain --model EVALUATOR --rationales` wrote of system NAME (EVAL-X)."),
    ] = None,
    title: Annotated[str, typer.Option(help="The page's title.")] = "",
    figures: Annotated[Path | None, typer.Option(help="Also write the figures here, as PNG, SVG and PDF.")] = None,
    confidence_level: Annotated[float, typer.Option(help="Level of the confidence intervals.")] = 0.95,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples.")] = 1000,
    seed: Seed = 0,
    cluster_by: ClusterBy = "auto",
    only_predicted: OnlyPredicted = False,
    revision: Revision = None,
) -> None:
    """Write a report: scores with confidence intervals, paired comparison, curves, distributions, classes, documents.

    Predictions by several ways of erasing (explain --erase remove,mask) are given by the name asked for with --out.

    The page is one HTML file: it needs no network and opens from disk. Beside it stands a score file for each system,
    with signatures, as `eraser-hub board` takes them.

    **Examples**

        eraser-hub report --dataset hub/eraser --config movies --split validation --predictions P --out report

        eraser-hub report --dataset hub/eraser --config movies --predictions ours=a.jsonl --predictions theirs=b.jsonl
        --baseline random.0.jsonl --baseline random.1.jsonl --figures figures --out report
    """
    from eraser_hub.reports.report import make_report
    from eraser_hub.scoring.runs import named_systems
    from eraser_hub.scoring.settings import ScoreSettings

    if not 0 < confidence_level < 1:
        raise typer.BadParameter("expected a number between 0 and 1", param_hint="--confidence-level")
    if resamples < 1:
        raise typer.BadParameter("expected 1 or more", param_hint="--resamples")
    settings = ScoreSettings(confidence_level=confidence_level, n_resamples=resamples, seed=seed)
    written = make_report(
        Path(at_revision(str(dataset), revision)),
        config=config,
        split=split,
        systems=named_systems([*(predictions or []), *(more or [])], ways=True),
        baselines=named_systems(baseline or []),
        evaluators=named_systems(evaluator or []),
        out=out,
        title=title,
        settings=replace(settings, only_predicted=only_predicted, cluster_by=cluster_by),
        figures=figures,
    )
    for note in written.notes:
        say(note)
    for path in (written.page, *written.score_files, *written.figures):
        typer.echo(str(path))
