"""``eraser-hub compare``: do two or more systems' scores differ?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def compare(
    data_dir: Annotated[Path, typer.Option("--data-dir", help="The corpus folder.")],
    split: Annotated[str, typer.Option("--split", help="train, val or validation, test, or the release's own name.")],
    results: Annotated[
        list[Path],
        typer.Option("--results", help="A system's predictions (JSON lines or Parquet); give it twice or more."),
    ],
    n_resamples: Annotated[int, typer.Option("--n-resamples", min=1, help="Resamples of both tests.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same numbers.")] = 0,
    confidence_level: Annotated[float, typer.Option("--confidence-level", help="Of the intervals, in (0, 1).")] = 0.95,
    output: Annotated[Literal["text", "json"], typer.Option("--format", help="A table or JSON.")] = "text",
) -> None:
    """Compare systems on the same split, score by score.

    Every pair of systems is compared by approximate randomisation and by the paired bootstrap over instances; p Holm is
    corrected over the pairs of each score.

    Examples:

        eraser-hub compare --data-dir movies --split test --results a.jsonl --results b.jsonl

        eraser-hub compare --data-dir movies --split test --results a.jsonl --results b.jsonl --results c.jsonl
        --n-resamples 10000 --seed 7 --format json
    """
    if len(results) < 2:
        raise typer.BadParameter("expected at least two files of predictions", param_hint="--results")
    if not 0 < confidence_level < 1:
        raise typer.BadParameter("expected a number between 0 and 1", param_hint="--confidence-level")
    import json

    from eraser_hub.scoring.comparison import as_json, as_text, compare_files

    found = compare_files(data_dir, split, results, n_resamples, seed, confidence_level)
    typer.echo(json.dumps(as_json(found), indent=2, ensure_ascii=False) if output == "json" else as_text(found))
