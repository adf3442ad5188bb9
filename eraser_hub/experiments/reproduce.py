"""Run the rows of a printed table, from data to score, and put each figure beside its print.

    OUT/reproduce.json           what is reproduced; a run with other settings does not go on from here
    OUT/models/MODEL/            a trained model, which several rows may share
    OUT/ROW.predictions.jsonl    its predictions (and ROW.predictions.jsonl.run.json), a draw each of random ones
    OUT/ROW.scores.json          its scores, an entry for `eraser-hub board --scores`

Whatever stands there already is taken up, a stopped training and a stopped explanation too.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from eraser_hub.attribution.dataset import open_split
from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.splits import dataset_split
from eraser_hub.records.tables import Table, Tables
from eraser_hub.systems.data import has_labels
from eraser_hub.systems.recipe import Say

from . import fast as sizes
from .folder import kept
from .measured import Work
from .plans import ReproducePlan
from .rows import ANNOTATORS, ENCODER, TABLES, PrintedRows, Row


def reproduce(plan: ReproducePlan, say: Say = lambda words: None) -> Tables:
    """Run every row that can run here; a row that cannot says why below the table.

    Args:
        plan: what is reproduced; its folder keeps what is done, and a later run goes on from there.
        say: called with lines of progress.

    Raises:
        DataError: an unknown table; no such dataset, config or split; ``out`` holds another run.
        BusyError: another run is at work in ``out``.
    """
    if plan.table not in TABLES:
        words = f"expected one of {', '.join(TABLES)}; found {shown(plan.table)}"
        raise DataError(words, rule="option-value", argument="table")
    printed, notes = TABLES[plan.table], list[str]()
    plan, out = _with_split(plan, notes), plan.out or Path("reproduce") / f"{plan.table}-{plan.config}"
    with kept(out, "reproduce", _settings(plan)):
        title, columns = f"{printed.title}: {plan.config}", _columns(printed, plan.config)
        source = _source(printed, plan.config)
        table = Table(plan.table, title, ("system",), columns, source=source, better=printed.better)
        for row in printed.rows:
            figures = _figures(plan, printed, row, out, notes, say)
            cells = {name: printed.cell(row, plan.config, name, figures.get(name)) for name in table.columns}
            table.add(row.system, **cells)
    table.notes += _about(plan, printed) + notes
    return Tables(plan.config, [table])


def _figures(
    plan: ReproducePlan, printed: PrintedRows, row: Row, out: Path, notes: list[str], say: Say
) -> Mapping[str, Any]:
    """A row's figures by column; none where it cannot run, and why among the notes."""
    say(f"--- {row.system}")
    work = Work(plan, printed, row, out, say)
    try:
        figures = work.figures()
    except DataError as error:
        notes.append(f"{row.system}: not run: {error.text({str(error.argument): f'`{error.argument}`'})}")
        say(notes[-1])
        return {}
    notes += [note for note in work.notes if note not in notes]
    return figures


def _with_split(plan: ReproducePlan, notes: list[str]) -> ReproducePlan:
    """The plan with a split that has labels."""
    if plan.split or plan.table == "eraser-2":
        return plan
    with suppress(DataError):
        if has_labels(open_split(plan.dataset, plan.config, "test")):
            return replace(plan, split="test")
    split = open_split(plan.dataset, plan.config, "validation")  # its error names the splits that there are
    if not has_labels(split):
        message = "expected a split with labels, test or validation, found none"
        raise DataError(message, rule="label-missing", file=plan.dataset)
    notes.append(
        "scored on validation, which also stops the training of networks: "
        "the dataset has no test split with labels; the print is of test"
    )
    return replace(plan, split="validation")


def _settings(plan: ReproducePlan) -> dict[str, Any]:
    """What two runs in one folder have to have in common."""
    settings = {field.name: getattr(plan, field.name) for field in fields(ReproducePlan) if field.name != "out"}
    return {**settings, "split": dataset_split(plan.split), "dataset": str(Path(plan.dataset).resolve())}


def _columns(printed: PrintedRows, config: str) -> tuple[str, ...]:
    """The table's columns; of two names of performance the one that is printed for this config."""
    figures = {key for row in printed.rows for key in printed.print_of(row, config)}
    beside = {
        "macro_f1": "accuracy" in figures,
        "accuracy": "macro_f1" in printed.columns and "accuracy" not in figures,
    }
    return tuple(name for name in printed.columns if not beside.get(name))


def _source(printed: PrintedRows, config: str) -> str:
    shorts = dict.fromkeys(short for row in printed.rows for short, _ in printed.results(row, config))
    numbers = {number for _, number in printed.papers}
    return ", ".join(f"{short}, Table {number}" for short in shorts for number in numbers)


def _about(plan: ReproducePlan, printed: PrintedRows) -> list[str]:
    """How to read the table."""
    words = [printed.note] if printed.note else []
    settings = dict.fromkeys(
        f"{short}: {result.settings}" for row in printed.rows for short, result in printed.results(row, plan.config)
    )
    words += settings
    if plan.encoder:
        words.append(f"encoder: {Path(plan.encoder).name}")
    if plan.fast:
        models = dict.fromkeys(row.model for row in printed.rows if row.model != ANNOTATORS)
        words.append(
            f"`fast`: {sizes.SAMPLE} instances of {plan.split or 'the split'}, "
            f"LIME with {sizes.SETTINGS['lime_samples']} samples"
        )
        for model in models:
            smaller = sizes.in_words(model)
            words += (
                [f"`fast`, {plan.encoder and Path(plan.encoder).name if model == ENCODER else model}: {smaller}"]
                if smaller
                else []
            )
    return words
