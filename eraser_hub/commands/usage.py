"""What several verbs check before they begin; an offence is bad usage, exit status 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.dataset import HubDataset
from eraser_hub.records.errors import printable, visible
from eraser_hub.records.hub import place_of
from eraser_hub.records.tables import FORMATS, Tables


def _one_of_the_formats(format: str) -> str:
    one_of(format, FORMATS, "--format")
    return format


def say(words: str) -> None:
    """A line on stderr for whoever reads the output: what was left out, guessed or defaulted."""
    typer.echo(printable(words), err=True)


Format = Annotated[str, typer.Option(callback=_one_of_the_formats, help=f"{', '.join(FORMATS)}.")]


def print_tables(tables: Tables, format: str, content: Mapping[str, Any], signatures: Sequence[str]) -> None:
    """Write tables to stdout, and their signatures where these do not disturb the form.

    Args:
        content: what is printed as JSON.
        signatures: stand below a text, in comments of LaTeX, on stderr beside CSV.
    """
    if format == "json":
        from eraser_hub.scoring.result import as_json

        typer.echo(as_json(content), nl=False)
        return
    if format == "latex":
        typer.echo("\n".join(f"% {visible(line)}" for line in signatures))
    typer.echo(tables.written(format))
    if format == "csv":
        say("\n".join(signatures))
    elif format != "latex":
        quote = "`" if format == "markdown" else ""
        typer.echo("\n" + "\n".join(f"{quote}{visible(line)}{quote}" for line in signatures))


OnlyPredicted = Annotated[
    bool,
    typer.Option("--only-predicted", help="Leave out annotations without an instance, and say how many were scored."),
]


def default_split() -> str:
    """The split of all verbs that read predictions where none is named, which is said."""
    say("split: test (--split names another)")
    return "test"


def _said_if_default(context: typer.Context, split: str) -> str:
    source = context.get_parameter_source("split")
    return default_split() if source is not None and source.name == "DEFAULT" else split


Dataset = Annotated[str, typer.Option(help="Dataset folder (hub/eraser), Hub id or hf:// path.")]
Config = Annotated[str | None, typer.Option(help="Config; by default the dataset's default config.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all that is drawn.")]
Split = Annotated[
    str,
    typer.Option(callback=_said_if_default, help="test, validation (or val), train, or a split of the dataset's own."),
]


def one_of(value: str, allowed: Sequence[str], option: str) -> None:
    """Refuse a value that is none of those allowed."""
    if value not in allowed:
        raise typer.BadParameter(f"expected one of {', '.join(allowed)}, found {value!r}", param_hint=option)


def known_configs(config: Sequence[str] | None, dataset: HubDataset, folder: Path | None) -> None:
    """Refuse a configuration that neither the dataset has nor the folder, raw or built, holds."""
    for name in config or ():
        if name not in dataset.configs:
            one_of(name, dataset.known_configs(folder), "--config")


Revision = Annotated[str | None, typer.Option(help="Of a dataset of the Hub: a branch, a tag or a commit.")]


def at_revision(dataset: str, revision: str | None) -> str:
    """A dataset's name with the revision behind it, as `records.hub.place_of` reads it; a folder has none."""
    place = place_of(dataset, revision)
    return dataset if place.repository is None or not revision else f"{place.repository}@{place.revision}"


def chosen_dataset(
    name: str | None, dataset: Path | None, revision: str | None = None, named: bool = False
) -> tuple[str, Path]:
    """(the dataset's name, its folder, fetched where it is of the Hub): the name is the folder's unless it is given.

    Args:
        name: the dataset's name; None: its folder's, or ``eraser`` where that is none of ours.
        dataset: its folder, or what it is called on the Hub; None: ``hub/NAME``.
        revision: on the Hub.
        named: whether the folder's name has to be one of ours.

    Raises:
        typer.BadParameter: an unknown name, or no such folder.
        DataError: the Hub has no such dataset.
    """
    place = place_of(dataset or Path("hub") / (name or "eraser"), None if dataset is None else revision)
    own = place.dataset
    if named and own not in HUB_DATASETS:
        message = f"expected a folder named {', '.join(HUB_DATASETS)}, found {own!r}"
        raise typer.BadParameter(message, param_hint="--dataset")
    if name is None:
        name = own if own in HUB_DATASETS else "eraser"
    one_of(name, tuple(HUB_DATASETS), "NAME")
    folder = Path(place.name) if dataset is None else place.fetch()
    if not folder.is_dir():
        raise typer.BadParameter(
            f"there is no folder {folder} (build it: eraser-hub build {name})", param_hint="--dataset"
        )
    return name, folder
