"""``eraser-hub experiment``: the papers' tables, removing and retraining (ROAR), and which scores know the truth."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from eraser_hub.experiments.configs import BenchmarkConfig, ReproduceConfig, RoarConfig

from .usage import TableFormat, call_with_options, print_note, print_tables, spell_arguments, with_options


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(ReproduceConfig):
    """The options of ``eraser-hub experiment reproduce``: a plan, and how it is printed."""

    format: TableFormat = "text"


@with_options(ReproduceOptions)
def reproduce(options: ReproduceOptions) -> None:
    """Recompute a printed table: train, explain and score each of its rows.

    The figures have 95 % intervals and stand beside the printed ones. A row that cannot run (no train split, no
    encoder) says why. If no row can run, the exit status is 1. If the command is stopped, the same command goes on.
    OUT/*.scores.json are entries for `eraser-hub board --scores`.

    **Examples**

        eraser-hub experiment reproduce --table eraser-3 --config movies --fast

        eraser-hub experiment reproduce --table eraser-4 --config movies --encoder bert-base-uncased --format latex
    """
    from eraser_hub import api

    tables = call_with_options(api.reproduce, options, say=print_note)
    for table in tables.tables:
        table.notes = list(map(spell_arguments, table.notes))
    signature = f"reproduce|{options.table}|{options.config}|seed:{options.seed}"
    signature += (f"|seeds:{options.seeds}" if options.seeds > 1 else "") + ("|fast" if options.fast else "")
    print_tables(tables, options.format, tables.as_dict(), [signature])
    cells = [cell for table in tables.tables[:1] for _, row in table.rows for cell in row.values()]
    if all(cell.value is None for cell in cells):
        raise typer.Exit(1)


@dataclass(frozen=True, kw_only=True)
class RoarOptions(RoarConfig):
    """The options of ``eraser-hub experiment roar``: a plan, and how the result is printed."""

    format: TableFormat = "text"


@with_options(RoarOptions)
def roar(options: RoarOptions) -> None:
    """Retrain without the tokens that a method ranks first, and report the accuracy (ROAR).

    The tokens are removed from training and test texts. The accuracy after removing as many random tokens is shown
    beside it.

    **Examples**

        eraser-hub experiment roar --dataset hub/eraser --config movies --model logistic-regression --method occlusion
        --out roar
    """
    from eraser_hub.experiments.roar import make_roar_tables
    from eraser_hub.experiments.roar import roar as run

    result = run(options, print_note)
    print_tables(make_roar_tables(result), options.format, result, [result["signature"]])


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
