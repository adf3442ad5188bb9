"""What several verbs have in common: options, and what is checked before they begin; bad usage is exit status 2."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import typer
from typer.models import OptionInfo

from eraser_hub.attribution.method import LARGEST, OPEN, Range
from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.dataset import HubDataset
from eraser_hub.records.errors import printable, visible
from eraser_hub.records.hub import place_of
from eraser_hub.records.tables import FORMATS, Tables

Options = TypeVar("Options")


def takes(
    options: type[Options], *declared: type, renamed: Mapping[str, str] = {}, without: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a verb of a function of dataclasses, each of whose fields is an option.

    The help of an option is what the dataclass's docstring says of the field under ``Attributes``, unless its type has
    one (`Annotated`, as those that verbs share). Choices (`Literal`) and ranges (`Range`) are those of its type.

    Args:
        options: those of the verb alone; the function takes one.
        declared: dataclasses of the library, whose further fields are options too; the function takes their values as a
            dictionary each.
        renamed: field -> the option's name, where that is another.
        without: fields of ``declared`` that are no options.
    """
    parameters, own = dict[str, inspect.Parameter](), dict[type, list[str]]()
    for each in (options, *declared):
        helps, hints = _helps(each), get_type_hints(each, include_extras=True)
        odd = helps.keys() - hints.keys()
        assert not odd, f"{each.__name__}: {', '.join(odd)}: no such field"
        skip = parameters.keys() | {*without} if each is not options else set()
        own[each] = [name for name in hints if name not in skip]
        for name in own[each]:
            parameter = inspect.signature(each).parameters[name]
            words = helps.get(name)
            if words and each is not options:  # a docstring of the library goes on in the middle of a sentence
                words = words[0].upper() + words[1:]
            flag = each is not options
            parameters[name] = _parameter(parameter, hints[name], words, renamed.get(name, name), flag)

    def verb(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def with_options(**values: Any) -> None:
            parts = [{name: values[name] for name in names} for names in own.values()]
            function(options(**parts[0]), *parts[1:])

        with_options.__signature__ = inspect.Signature([*parameters.values()])  # type: ignore[attr-defined]
        with_options.__annotations__ = {name: one.annotation for name, one in parameters.items()}
        return with_options

    return verb


def _helps(declared: type) -> dict[str, str]:
    """Return what a dataclass's docstring says of its fields."""
    _, _, attributes = inspect.cleandoc(declared.__doc__ or "").partition("Attributes:\n")
    entries = (entry.partition(": ") for entry in re.split(r"(?m)^ {4}(?=\w)", attributes)[1:])
    return {name: " ".join(words.replace("``", "").split()) for name, _, words in entries}


def _parameter(parameter: inspect.Parameter, hint: Any, words: str | None, name: str, flag: bool) -> inspect.Parameter:
    """Return a field as a parameter that typer makes an option of; with ``flag`` one of bool has no ``--no-``."""
    kind, *more = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    given = next((one for one in more if isinstance(one, OptionInfo)), None)
    option = copy(given) if given is not None else typer.Option()
    option.help = option.help or words
    assert option.help, f"{hint}: an option without help"
    spelling = f"--{name.replace('_', '-')}"
    if given is None and name != parameter.name:
        option.param_decls = (spelling,)
    if given is None and kind is bool and flag:
        option.param_decls = (spelling,)
    if given is None and kind == bool | None:
        option.param_decls = (f"{spelling}/--no-{spelling[2:]}",)
    if get_origin(kind) is Literal:
        option.callback, kind = choice(partial(get_args, kind), spelling), str
    for within in (one for one in more if isinstance(one, Range)):
        if within.most == LARGEST:
            option.min = int(within.least)
        else:
            option.callback = _range(within, spelling)
    if OPEN in more:
        kind, parameter = kind | None, parameter.replace(default=None)
    return parameter.replace(annotation=Annotated[kind, option])


def choice(allowed: Callable[[], Sequence[str]], spelling: str) -> Callable[[str | None], str | None]:
    """Return an option's callback that refuses what is none of the values allowed, asked for when one is said."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in allowed():
            words = f"expected one of {', '.join(allowed())}; found {value!r}"
            raise typer.BadParameter(words, param_hint=spelling)
        return value

    return check


def _range(within: Range, spelling: str) -> Callable[[float | None], float | None]:
    def check(value: float | None) -> float | None:
        if value is not None and (words := within.expected(value)):
            raise typer.BadParameter(f"expected {words}, found {value}", param_hint=spelling)
        return value

    return check


def spellings_of(verb: Callable[..., None]) -> dict[str, str]:
    """Return how a verb of `takes` spells the arguments of the Python call."""
    parameters = inspect.signature(verb).parameters.values()
    named = {one.name: get_args(one.annotation)[1].param_decls or () for one in parameters}
    return {name: next(iter(decls), f"--{name.replace('_', '-')}").split("/")[0] for name, decls in named.items()}


def chosen(options: object, names: str) -> dict[str, Any]:
    """Some of the options by their names, which are parted by blanks."""
    return {name: getattr(options, name) for name in names.split()}


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
