"""The ``stats`` verb: the papers' tables, recomputed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eraser_hub.conversion import HUB_DATASETS

from .usage import Format, Revision, chosen_dataset, known_configs


def stats(
    name: Annotated[str | None, typer.Argument(help=f"{', '.join(HUB_DATASETS)}.")] = None,
    dataset: Annotated[
        Path | None,
        typer.Option(help="A built folder, a dataset of the Hub (org/eraser), or raw corpora; by default hub/NAME."),
    ] = None,
    revision: Revision = None,
    config: Annotated[list[str] | None, typer.Option(help="A configuration; repeat it for several.")] = None,
    format: Format = "text",
) -> None:
    """Recompute the papers' tables of sizes and evidence, beside the printed figures and with the difference.

    Examples:

        eraser-hub stats

        eraser-hub stats --dataset hub/eraser --config movies --format markdown

        eraser-hub stats human_rationales --format json

        eraser-hub stats --format latex > tables.tex
    """
    name, folder = chosen_dataset(name, dataset, revision)
    known_configs(config, HUB_DATASETS[name], folder)
    typer.echo(HUB_DATASETS[name].stats(folder, config or None).written(format))
