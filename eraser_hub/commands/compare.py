"""``eraser-hub compare``: do two or more systems' scores differ?"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from .scored import (
    Annotations,
    AopcThresholds,
    Config,
    DataDir,
    Dataset,
    IouThresholds,
    check_source,
    settings_of,
)
from .usage import Split, say

Results = Annotated[
    list[str], typer.Option(help="A system's predictions (a file, https:// or hf://); give two or more.")
]
NResamples = Annotated[int, typer.Option(min=1, help="Resamples of either test.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same numbers.")]
ConfidenceLevel = Annotated[float, typer.Option(help="Of the differences' intervals, in (0, 1).")]
Output = Annotated[Literal["text", "json"], typer.Option("--format", help="A table, or JSON.")]


def compare(
    results: Results, data_dir: DataDir = None, dataset: Dataset = None, config: Config = None, split: Split = "test",
    annotations: Annotations = None, iou_thresholds: IouThresholds = None, aopc_thresholds: AopcThresholds = None,
    n_resamples: NResamples = 1000, seed: Seed = 0, confidence_level: ConfidenceLevel = 0.95, output: Output = "text",
) -> None:  # fmt: skip
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

    from eraser_hub.conversion.download.addresses import local_file
    from eraser_hub.scoring.comparison import as_json, as_text, compare_files
    from eraser_hub.scoring.settings import Inputs

    if len(results) < 2:
        raise typer.BadParameter("expected at least two files of predictions", param_hint="--results")
    if not 0 < confidence_level < 1:
        raise typer.BadParameter("expected a number between 0 and 1", param_hint="--confidence-level")
    check_source(data_dir, dataset, config, annotations)
    settings = settings_of(iou_thresholds, aopc_thresholds)
    inputs = [
        Inputs(data_dir, split, local_file(file), annotations, dataset=dataset, config=config) for file in results
    ]
    note = inputs[0].labels().note
    if note:
        say(note)
    result = compare_files(inputs, settings, n_resamples, seed, confidence_level)
    typer.echo(json.dumps(as_json(result), indent=2, ensure_ascii=False) if output == "json" else as_text(result))
