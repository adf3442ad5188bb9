"""``eraser-hub experiment benchmark-scores``: which scores put a true explanation before a worse one."""

from __future__ import annotations

from dataclasses import dataclass

from eraser_hub.experiments.configs import BenchmarkConfig

from .usage import TableFormat, print_tables, say, takes


@dataclass(frozen=True, kw_only=True)
class BenchmarkOptions(BenchmarkConfig):
    """The options of ``eraser-hub experiment benchmark-scores``: a plan, and how the result is printed."""

    format: TableFormat = "text"


@takes(BenchmarkOptions)
def benchmark_scores(options: BenchmarkOptions) -> None:
    """Judge every score by planted texts, whose only evidence is known, and models that decide by it: in closed form,
    or networks trained on such texts, which judge where they tell new ones.

    Of each text the true explanation is held against a random one, a shuffled one, one of the right tokens in the wrong
    order, a longer one, and one that leaks the label by where its tokens stand. A score that knows the truth has 1, a
    coin 0.5.

    Examples:

        eraser-hub experiment benchmark-scores --fast

        eraser-hub experiment benchmark-scores --models all --format markdown
    """
    from eraser_hub.experiments.score_benchmark import benchmark, make_benchmark_settings, make_benchmark_tables

    result = benchmark(make_benchmark_settings(options), say)
    print_tables(make_benchmark_tables(result), options.format, result, [result["signature"]])
