"""``eraser-hub experiment benchmark-scores``: test which scores prefer a true explanation to a worse one."""

from __future__ import annotations

from dataclasses import dataclass

from eraser_hub.experiments.configs import BenchmarkConfig

from .usage import TableFormat, print_note, print_tables, with_options


@dataclass(frozen=True, kw_only=True)
class BenchmarkOptions(BenchmarkConfig):
    """The options of ``eraser-hub experiment benchmark-scores``: a plan, and how the result is printed."""

    format: TableFormat = "text"


@with_options(BenchmarkOptions)
def benchmark_scores(options: BenchmarkOptions) -> None:
    """Test every score on planted texts with known evidence.

    The models decide by that evidence alone: in closed form, or as networks trained on such texts, which count only
    where they classify new texts well.

    Of each text the true explanation is held against a random one, a shuffled one, one of the right tokens in the wrong
    order, a longer one, and one that leaks the label by where its tokens stand. A score that knows the truth has 1, a
    coin 0.5.

    **Examples**

        eraser-hub experiment benchmark-scores --fast

        eraser-hub experiment benchmark-scores --models all --format markdown
    """
    from eraser_hub.experiments.score_benchmark import benchmark, make_benchmark_settings, make_benchmark_tables

    result = benchmark(make_benchmark_settings(options), print_note)
    print_tables(make_benchmark_tables(result), options.format, result, [result["signature"]])
