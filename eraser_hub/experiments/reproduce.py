"""The public function `reproduce`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from eraser_hub.metrics.errors import check_choice
from eraser_hub.records.arguments import PYTHON, Place
from eraser_hub.records.errors import UsageError

if TYPE_CHECKING:
    from .table_runs import ReproducedTables


def reproduce(
    table: str,
    *,
    config: str | None = None,
    dataset: Place = "hub/eraser",
    split: str = "",
    encoder: str = "",
    embeddings: Place = "",
    fast: bool = False,
    seeds: int = 1,
    seed: int = 1,
    out: Place | None = None,
    source: Annotated[Place, PYTHON] = "",
) -> ReproducedTables:
    """Recompute a printed table, and put the figures beside the print.

    Each row is trained, explained and scored; figures have 95 % intervals. A row that cannot run (no train split, no
    encoder) says why below the table; if no row can run, the exit status is 1. After a stop the same call goes on.
    OUT/*.scores.json are score files for `board`.

    Args:
        table: eraser-2, eraser-3, eraser-4, carton2020-3 or carton2020-figure-2.
        config: Config; by default the only or the default one.
        dataset: Built dataset or Hub id.
        split: Split to score; by default test, or validation if test has no labels.
        encoder: Encoder of rows that use one: a transformers folder or Hub id; no default.
        embeddings: File of word vectors for rows over words; by default they are learned.
        fast: Use smaller sizes; the table lists them.
        seeds: Run each row with so many seeds; figures are means, ± their standard deviation.
        seed: First seed of all random draws.
        out: Folder of all files; by default reproduce/TABLE-CONFIG.
        source: raw corpora with the release's files of human performance (eraser-2).

    Returns:
        The table; ``written("markdown")`` writes it.

    Raises:
        DataError: an unknown table; no such dataset, config or split; ``out`` holds another run.
        BusyError: another run is at work in ``out``.

    Examples:
        >>> from eraser_hub import reproduce
        >>> reproduce("eraser-3", config="movies", fast=True).written("text")  # doctest: +SKIP

        $ eraser-hub reproduce --table eraser-3 --config movies --fast
        $ eraser-hub reproduce --table eraser-4 --config movies --encoder bert-base-uncased --format latex
    """
    from eraser_hub.conversion.built import open_built

    from .rows import TABLES
    from .table_runs import TableRun, run_table

    check_choice(table, TABLES, "table")
    if seeds < 1:
        raise UsageError(f"expected at least 1, found {seeds}", argument="seeds")
    run = TableRun(
        table=table,
        dataset=os.fspath(dataset),
        config=config or open_built(dataset).default_config,
        split=split,
        encoder=encoder,
        embeddings=os.fspath(embeddings),
        source=os.fspath(source),
        fast=fast,
        seed=seed,
        seeds=seeds,
    )
    return run_table(run, Path(out) if out is not None else Path("reproduce") / f"{table}-{run.config}")
