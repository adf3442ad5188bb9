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
    """Test every score and every attribution method on planted texts with known evidence.

    The models decide by that evidence: in closed form, or as networks trained on such texts, which count only where
    they classify new texts well.

    Of each text the true explanation is held against a random one, one of distractors, an incomplete one, one that
    leaks the label by where its tokens stand, one in the wrong order, and a longer one. A score that knows the truth
    has 1, a coin 0.5.

    **Examples**

        eraser-hub experiment benchmark-scores --fast

        eraser-hub experiment benchmark-scores --models all --paper study --format markdown
    """
    from eraser_hub.experiments.benchmark_tables import make_benchmark_tables
    from eraser_hub.experiments.score_benchmark import benchmark, make_benchmark_settings

    settings = make_benchmark_settings(options)
    result = benchmark(settings, print_note, options.paper, options.workers)
    tables = make_benchmark_tables(result)
    if options.paper is not None:
        from eraser_hub.reports.study.folder import write_study

        write_study(options.paper, settings, result, tables)
        print_note(f"written: {options.paper}")
    print_tables(tables, options.format, result, [result["signature"]])
