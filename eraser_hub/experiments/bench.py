"""The public function `bench`."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from eraser_hub.records.arguments import PYTHON, Place
from eraser_hub.records.errors import DataError, UsageError, show

if TYPE_CHECKING:
    from .bench_run import BenchResult

QUICK = 50  # texts of `quick`
ALL = "all"


def bench(
    dataset: Place,
    model: str | Sequence[str],
    *,
    config: str | None = None,
    split: str = "test",
    method: str | Sequence[str] = (),
    out: Place = "bench",
    quick: bool = False,
    dry_run: bool = False,
    seeds: int = 1,
    seed: int = 1,
    sample: Annotated[int | None, PYTHON] = None,
    paper: Annotated[str, PYTHON] = "",
    minimum_effect: Annotated[float, PYTHON] = 0.0,
    resamples: Annotated[int | None, PYTHON] = None,
    workers: Annotated[int, PYTHON] = 0,
) -> BenchResult | list[str]:
    """Train, explain, score, compare and report in one call.

    Models are explained by several methods, beside tokens drawn by chance and what people marked. OUT has
    predictions, comparison.json, report/index.html, table.tex, table.csv and verdict.md. A second run does only what
    is missing.

    Args:
        dataset: Built dataset or Hub id.
        model: PLACE or NAME=PLACE: a model as in `explain`, or a system of `train`, which is trained first:
            lstm(epochs=3). Repeat it for several.
        config: Config; by default the only or the default one.
        split: Split, as the Hub or the release calls it.
        method: Attribution method: lime(samples=1000); all: each that the model supports. Repeat it for several; by
            default those that take few inputs.
        out: Folder of all results.
        quick: Explain 50 texts, each label by its share.
        dry_run: Print the plan and its cost, and stop.
        seeds: Trainings of a system, and draws of methods that draw.
        seed: The first seed.
        sample: number of texts to explain, each label by its share.
        paper: make all choices of this paper's code: eraser, wang2022, carton2020.
        minimum_effect: smallest difference that matters, in the scores' units.
        resamples: of intervals and tests; by default as many as `score` and `compare` take.
        workers: Ray workers of explanations, each with a model; 0: none.

    Returns:
        The findings in words, the table, the comparison and the report's page; with ``dry_run`` the lines of the plan.

    Raises:
        DataError: wrong data, models or settings; ``out`` holds a run with other settings.
        BusyError: another run is at work in ``out``.

    Examples:
        >>> from eraser_hub import bench
        >>> result = bench("hub/eraser", "logistic-regression", config="movies", out="bench")  # doctest: +SKIP
        >>> result.findings  # doctest: +SKIP

        $ eraser-hub bench --dataset hub/eraser --config movies --model logistic-regression --quick
        $ eraser-hub bench --dataset hub/eraser --config movies --model LR=model --model "lstm(epochs=3)" \\
          --method occlusion --method "lime(samples=1000)" --seeds 3 --out bench
    """
    from eraser_hub.attribution.dataset import open_split
    from eraser_hub.attribution.settings import find_preset, parse_method

    from .bench_run import BenchRun, plan_models

    if quick and sample is not None:
        raise UsageError("expected one of `quick` and `sample`", argument="sample")
    for name, number in (("seeds", seeds), ("sample", sample)):
        if number is not None and number < 1:
            raise UsageError(f"expected at least 1, found {number}", argument=name)
    find_preset(paper)  # these three before hours of work
    if os.path.lexists(out) and not os.path.isdir(out):
        raise DataError("expected a folder, found a file", file=out, argument="out")
    if not 0 <= minimum_effect < math.inf:
        message = f"expected a difference of at least 0, found {show(minimum_effect)}"
        raise DataError(message, argument="minimum_effect")
    methods = [method] if isinstance(method, str) else list(method)
    run = BenchRun(
        dataset=os.fspath(dataset),
        split_name=split,
        split=open_split(os.fspath(dataset), config, split),
        models=plan_models([model] if isinstance(model, str) else model),
        methods=None if ALL in methods else dict(map(parse_method, methods)),
        out=Path(out),
        sample=QUICK if quick else sample,
        seeds=seeds,
        seed=seed,
        paper=paper,
        minimum_effect=minimum_effect,
        resamples=resamples,
        workers=workers,
    )
    return run.describe() if dry_run else run.run()
