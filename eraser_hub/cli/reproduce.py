"""``eraser-hub reproduce``: the rows of a printed table, run here, beside the print."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from .usage import Format, Revision, Seed, at_revision, chosen, print_tables, say, takes


@dataclass(frozen=True, slots=True)
class ReproduceOptions:
    """The options of ``eraser-hub reproduce``, and their help.

    Attributes:
        table: eraser-2, eraser-3, eraser-4, carton2020-3 or carton2020-figure-2.
        config: The configuration, e.g. movies.
        dataset: The built dataset: its folder, or its id on the Hub.
        fast: Small sizes; the table says which.
        encoder: Of the rows that need one: a transformers folder or Hub id; there is no default.
        embeddings: Of the rows over words: a file of word vectors; else learned ones.
        corpora: eraser-2: raw corpora with the release's files of human performance.
        split: The split that is scored; by default test, or validation where test has no labels.
        out: Keeps what is done; by default reproduce/TABLE-CONFIG.
    """

    table: Annotated[str, typer.Option("--table")]
    config: str
    dataset: Path = Path("hub/eraser")
    fast: Annotated[bool, typer.Option("--fast")] = False
    encoder: str | None = None
    embeddings: Path | None = None
    corpora: Path | None = None
    split: str | None = None
    seed: Seed = 1
    out: Path | None = None
    revision: Revision = None
    format: Format = "text"


@takes(ReproduceOptions)
def reproduce(options: ReproduceOptions) -> None:
    """Train, explain and score each row of a printed table, and print the figures beside the print, with 95 %
    intervals.

    A row that cannot run here (no train split, no encoder) says why. Stopped at any point, the same command goes on.
    OUT/*.scores.json are entries for `eraser-hub board --scores`.

    Examples:

        eraser-hub reproduce --table eraser-3 --config movies --fast

        eraser-hub reproduce --table eraser-4 --config movies --encoder bert-base-uncased --format latex
    """
    from eraser_hub.experiments.plan import ReproducePlan
    from eraser_hub.experiments.reproduce import reproduce as run

    dataset, optional = at_revision(str(options.dataset), options.revision), "split encoder embeddings corpora"
    texts: dict[str, Any] = {name: str(value or "") for name, value in chosen(options, optional).items()}
    plan = ReproducePlan(dataset=dataset, **chosen(options, "table config fast seed"), **texts)
    place = options.out if options.out is not None else Path("reproduce") / f"{options.table}-{options.config}"
    tables = run(plan, place, say)
    signature = f"reproduce|{options.table}|{options.config}|seed:{options.seed}" + ("|fast" if options.fast else "")
    print_tables(tables, options.format, tables.as_dict(), [signature])
