"""``eraser-hub benchmark-scores``: which scores put a true explanation before a worse one."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from .usage import Format, Seed, print_tables, say

Fast = Annotated[bool, typer.Option("--fast", help="Fewer texts, masks and beams: about a minute.")]
Models = Annotated[
    Literal["closed-form", "trained", "all"],
    typer.Option(help="Whom the scores are asked about; trained ones need the extra explain."),
]


def benchmark_scores(
    fast: Fast = False, models: Models = "closed-form", seed: Seed = 1, format: Format = "text"
) -> None:
    """Judge every score by planted texts, whose only evidence is known, and models that decide by it: in closed form,
    or networks trained on such texts, which judge where they tell new ones.

    Of each text the true explanation is held against a random one, a shuffled one, one of the right tokens in the wrong
    order, a longer one, and one that leaks the label by where its tokens stand. A score that knows the truth has 1, a
    coin 0.5.

    Examples:

        eraser-hub benchmark-scores --fast

        eraser-hub benchmark-scores --models all --format markdown
    """
    from dataclasses import replace

    from eraser_hub.experiments.score_benchmark import FAST, MODELS, BenchmarkSettings, benchmark, benchmark_tables

    settings = replace(FAST if fast else BenchmarkSettings(), models=MODELS[models], seed=seed)
    result = benchmark(settings, say)
    print_tables(benchmark_tables(result), format, result, [result["signature"]])
