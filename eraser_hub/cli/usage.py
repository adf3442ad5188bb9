"""What several verbs have in common: options, and what is checked before they begin; bad usage is exit status 2."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from copy import copy
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer
from msgspec import Meta
from typer.models import OptionInfo

from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.dataset import HubDataset
from eraser_hub.records.errors import printable, respelled, visible
from eraser_hub.records.hub import place_of
from eraser_hub.records.tables import FORMATS, Tables

Options = TypeVar("Options")
_SPELLINGS: ContextVar[Mapping[str, str]] = ContextVar(
    "spellings", default=MappingProxyType({})
)  # of the verb that runs


def takes(options: type[Options], **more: OptionInfo) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Make a verb of a function of a dataclass, each of whose fields is an option; those without a default come first.

    The help of an option is what the dataclass's docstring, or a base's, says of the field under ``Attributes``, unless
    its type has one (`Annotated`, as those that verbs share). A range of `msgspec.Meta` is the option's range, a
    boolean that is False a flag, and a tuple of strings an option that may be repeated.

    Args:
        more: field -> what the command line says otherwise of its option: another spelling, another help.
    """
    helps: dict[str, str] = {}
    for base in reversed(options.__mro__):
        _, _, attributes = inspect.cleandoc(vars(base).get("__doc__") or "").partition("Attributes:\n")
        entries = (entry.partition(": ") for entry in re.split(r"(?m)^ {4}(?=\w)", attributes)[1:])
        helps |= {name: " ".join(words.split()) for name, _, words in entries}
    kinds = get_type_hints(options, include_extras=True)
    assert not (helps.keys() - kinds), f"{options.__name__}: {', '.join(helps.keys() - kinds)}: no such field"
    own = {name: option.default for name, option in more.items() if isinstance(option.default, str)}
    names = {name: own.get(name, f"--{name.replace('_', '-')}") for name in kinds}
    parsed = [name for name, option in more.items() if option.parser]
    lists = [name for name, kind in kinds.items() if kind == tuple[str, ...] and name not in parsed]
    parameters = []
    for one in sorted(inspect.signature(options).parameters.values(), key=lambda one: one.default is not one.empty):
        hint = list[str] | None if one.name in lists else str if one.name in parsed else kinds[one.name]
        option = _option(hint, helps.get(one.name, ""), more.get(one.name), names)
        if hint is bool and one.default is False:
            get_args(option)[1].param_decls = (names[one.name],)  # a flag, without its opposite
        default = None if one.name in lists else "" if one.name in parsed else one.default
        parameters.append(one.replace(annotation=option, default=default, kind=one.KEYWORD_ONLY))

    def verb(function: Callable[[Options], None]) -> Callable[..., None]:
        @wraps(function)
        def with_options(**values: Any) -> None:
            _SPELLINGS.set(names)
            function(options(**values | {name: tuple(values[name] or ()) for name in lists}))

        with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # for typer
        with_options.__annotations__ = {one.name: one.annotation for one in parameters}
        return with_options

    return verb


def _option(hint: Any, words: str, more: OptionInfo | None, names: Mapping[str, str]) -> Any:
    """A field's type as typer takes it, with its help, its range, and its spelling."""
    kind, marks = _plain(hint)
    option = copy(more or next((one for one in marks if isinstance(one, OptionInfo)), typer.Option()))
    option.help = option.help or respelled(words, names)
    assert option.help, f"{hint}: an option without help"
    for limits in marks:
        if isinstance(limits, Meta):
            option.min, option.max = limits.ge, limits.le
    return Annotated[kind, option]


def _plain(hint: Any) -> tuple[Any, list[Any]]:
    """A type without what is annotated to it, which may stand inside of ``| None``."""
    if get_origin(hint) is Annotated:
        kind, *marks = get_args(hint)
        return kind, marks
    parts = [_plain(each) for each in get_args(hint)] if type(None) in get_args(hint) else []
    return (hint, []) if not parts else (parts[0][0] | None, [mark for _, marks in parts for mark in marks])


def spellings(command: Any) -> dict[str, str]:
    """How a command spells the arguments of the Python call: options with their dashes, others in capitals."""
    named = {
        p.name: p.opts[0] if p.opts[0].startswith("-") else getattr(p, "metavar", None) or p.name.upper()
        for p in command.params
        if p.name
    }
    return {**named, **{name.removesuffix("_"): spelling for name, spelling in named.items()}}


def spelled(words: str) -> str:
    """A line for the command's caller: an argument in backquotes, as library layers have it, becomes its option."""
    return respelled(words, _SPELLINGS.get())


def chosen(options: object, names: str) -> dict[str, Any]:
    """Some of the options by their names, which are parted by blanks."""
    return {name: getattr(options, name) for name in names.split()}


def _one_of_the_formats(format: str) -> str:
    one_of(format, FORMATS, "--format")
    return format


def say(words: str) -> None:
    """A line on stderr for whoever reads the output: what was left out, guessed or defaulted."""
    typer.echo(printable(spelled(words)), err=True)


Format = Annotated[str, typer.Option(callback=_one_of_the_formats, help=f"{', '.join(FORMATS)}.")]


def print_tables(tables: Tables, format: str, content: Mapping[str, Any], signatures: Sequence[str]) -> None:
    """Write tables to stdout, and their signatures where these do not disturb the form.

    Args:
        content: what is printed as JSON.
        signatures: stand below a text, in comments of LaTeX, on stderr beside CSV.
    """
    if format == "json":
        from eraser_hub.scoring.scores import json_bytes

        typer.echo(json_bytes(content), nl=False)
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
