"""``eraser-hub reproduce``: the rows of a printed table, run here, beside the print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .usage import Format, Revision, Seed, at_revision, print_tables, say

TableName = Annotated[
    str, typer.Option("--table", help="eraser-2, eraser-3, eraser-4, carton2020-3 or carton2020-figure-2.")
]
Config = Annotated[str, typer.Option(help="The configuration, e.g. movies.")]
Dataset = Annotated[Path, typer.Option(help="The built dataset: its folder, or its id on the Hub.")]
Fast = Annotated[bool, typer.Option("--fast", help="Small sizes; the table says which.")]
Encoder = Annotated[
    str | None, typer.Option(help="Of the rows that need one: a transformers folder or Hub id; there is no default.")
]
Embeddings = Annotated[
    Path | None, typer.Option(help="Of the rows over words: a file of word vectors; else learned ones.")
]
Corpora = Annotated[
    Path | None, typer.Option(help="eraser-2: raw corpora with the release's files of human performance.")
]
Split = Annotated[
    str | None, typer.Option(help="The split that is scored; by default test, or validation where test has no labels.")
]
Out = Annotated[Path | None, typer.Option(help="Keeps what is done; by default reproduce/TABLE-CONFIG.")]


def reproduce(
    table: TableName, config: Config, dataset: Dataset = Path("hub/eraser"), fast: Fast = False,
    encoder: Encoder = None, embeddings: Embeddings = None, corpora: Corpora = None, split: Split = None,
    seed: Seed = 1, out: Out = None, revision: Revision = None, format: Format = "text",
) -> None:  # fmt: skip
    """Train, explain and score each row of a printed table, and print the figures beside the print, with 95 % intervals.

    A row that cannot run here (no train split, no encoder) says why. Stopped at any point, the same command goes on.
    OUT/*.scores.json are entries for `eraser-hub board --scores`.

    Examples:

        eraser-hub reproduce --table eraser-3 --config movies --fast

        eraser-hub reproduce --table eraser-4 --config movies --encoder bert-base-uncased --format latex
    """
    from eraser_hub.experiments.plan import ReproducePlan
    from eraser_hub.experiments.reproduce import reproduce as run

    plan = ReproducePlan(
        table, at_revision(str(dataset), revision), config, split or "", encoder or "",
        "" if embeddings is None else str(embeddings), "" if corpora is None else str(corpora), fast, seed,
    )  # fmt: skip
    place = out if out is not None else Path("reproduce") / f"{table}-{config}"
    tables = run(plan, place, say)
    print_tables(
        tables, format, tables.as_dict(), [f"reproduce|{table}|{config}|seed:{seed}" + ("|fast" if fast else "")]
    )
