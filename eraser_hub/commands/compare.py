"""``eraser-hub compare``: do two or more systems' scores differ?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def compare(
    results: Annotated[list[Path], typer.Option(help="A system's predictions, jsonl or Parquet; give two or more.")],
    data_dir: Annotated[
        Path | None, typer.Option(help="The corpus as released: SPLIT.jsonl, docs/ or docs.jsonl.")
    ] = None,
    dataset: Annotated[
        Path | None, typer.Option(help="Instead of --data-dir: a built dataset, e.g. hub/eraser.")
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(help="The configuration of --dataset, e.g. movies; with --data-dir the one whose labels count."),
    ] = None,
    split: Annotated[
        str, typer.Option(help="train, val (or validation), test, or a split of the corpus' own.")
    ] = "test",
    annotations: Annotated[Path | None, typer.Option(help="An annotation file other than SPLIT.jsonl.")] = None,
    iou_thresholds: Annotated[list[float] | None, typer.Option(help="IOU threshold; repeat for several.")] = None,
    aopc_thresholds: Annotated[list[float] | None, typer.Option(help="AOPC threshold; repeat for several.")] = None,
    n_resamples: Annotated[int, typer.Option(min=1, help="Resamples of either test.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same numbers.")] = 0,
    confidence_level: Annotated[float, typer.Option(help="Of the differences' intervals, in (0, 1).")] = 0.95,
    output: Annotated[Literal["text", "json"], typer.Option("--format", help="A table, or JSON.")] = "text",
) -> None:
    """Compare systems on the same split, score by score.

    Every pair of systems is compared by approximate randomisation and by the paired bootstrap over instances; "p Holm"
    is the former corrected over the pairs of each score, and a star stands where it is below 0.05. Where predictions
    hold random rationales (explain --random-draws), each system's p-value against chance is corrected over the systems.

    Examples:

        eraser-hub compare --data-dir corpora/movies --split val --results ours.jsonl --results baseline.jsonl

        eraser-hub compare --dataset hub/eraser --config movies --split test --results a.parquet --results b.parquet
        --results c.parquet --n-resamples 10000 --seed 7 --format json
    """
    import json

    from eraser_hub.scoring.comparison import as_json, as_text, compare_files
    from eraser_hub.scoring.settings import Inputs, ScoreSettings

    if len(results) < 2:
        raise typer.BadParameter("expected at least two files of predictions", param_hint="--results")
    if not 0 < confidence_level < 1:
        raise typer.BadParameter("expected a number between 0 and 1", param_hint="--confidence-level")
    if (data_dir is None) == (dataset is None):
        raise typer.BadParameter("give either --data-dir, or --dataset with --config")
    if dataset is not None and config is None:
        raise typer.BadParameter("--dataset needs --config")
    if dataset is not None and annotations is not None:
        raise typer.BadParameter("--annotations goes with --data-dir")
    try:
        settings = ScoreSettings(
            iou_thresholds=tuple(iou_thresholds or (0.5,)),
            aopc_thresholds=tuple(aopc_thresholds or ScoreSettings().aopc_thresholds),
        )
        settings.check()
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    inputs = [Inputs(data_dir, split, path, annotations, dataset=dataset, config=config) for path in results]
    note = inputs[0].labels().note
    if note:
        typer.echo(note, err=True)
    found = compare_files(inputs, settings, n_resamples, seed, confidence_level)
    typer.echo(json.dumps(as_json(found), indent=2, ensure_ascii=False) if output == "json" else as_text(found))
