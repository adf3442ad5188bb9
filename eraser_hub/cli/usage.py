"""Shared code of the commands: options and their checks; bad usage is exit status 2."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import typer

from eraser_hub.records.errors import DataError, UsageError, make_printable, respell_arguments, show_controls
from eraser_hub.records.options import Option, merge_options, read_options, split_at_commas
from eraser_hub.records.tables import FORMATS, Format, Tables

Values = TypeVar("Values")
Result = TypeVar("Result")
_SPELLINGS: ContextVar[Mapping[str, str]] = ContextVar(
    "spellings", default=MappingProxyType({})
)  # of the verb that runs


_METAVARS: dict[Any, str] = {int: "N", float: "X", Path: "PATH"}
MOST_CHOICES = 30  # characters of choices that stand in the help; longer ones stand in its words


def with_options(options: type[Values], *more: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn a function of options (:mod:`eraser_hub.records.options`) into a command with an option for each field.

    Options without a default come first. A bad value is bad usage, and so are a UsageError of the function and
    an error that names an argument and no file.

    Args:
        options: the dataclass of the options.
        *more: dataclasses with further options; the function takes those with a value as a dictionary.
    """
    described = {name: each for name, each in merge_options(options, *more).items() if not each.python_only}
    others = described.keys() - read_options(options)  # type: ignore[arg-type]  # a type has a hash
    names = _spellings(described)
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=_typer_option(name, each, names),
            default=_typed_default(each),
        )
        for name, each in described.items()
        if not each.settable
    ]
    parameters.sort(key=lambda one: one.default is not one.empty)

    def verb(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def with_options(**values: Any) -> None:
            _SPELLINGS.set(names)
            try:
                values = {name: value for name, value in values.items() if value is not None and value != []}
                for name in [name for name in values if described[name].commas]:
                    values[name] = _split_values(name, described[name], values[name])
                if values.get("more"):
                    _take_settings(values, described)
                further = {name: values.pop(name) for name in others & values.keys()}
                for name, value in further.items():
                    described[name].check(name, value)
                chosen_options = options(**values)
            except DataError as error:
                raise _bad_usage(error) from None
            try:
                function(chosen_options, *([further] if more else []))
            except DataError as error:
                if isinstance(error, UsageError) or (error.argument is not None and error.file is None):
                    raise _bad_usage(error) from None
                raise

        with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # where typer looks
        with_options.__annotations__ = {one.name: one.annotation for one in parameters}
        return with_options

    return verb


def _take_settings(values: dict[str, Any], described: Mapping[str, Option]) -> None:
    """Move the pairs of ``--set NAME=VALUE`` that name an option to that option.

    Raises:
        UsageError: the value is none of the option's type, or the setting is given twice.
    """
    rest = []
    for pair in values["more"]:
        field, equals, text = pair.partition("=")
        option = described.get(field)
        if not equals or option is None or not option.settable:
            rest.append(pair)
        elif field in values:
            message = f"expected it once, found {values[field]} and {text}"
            raise UsageError(message, argument=field)
        else:
            values[field] = _split_values(field, option, text) if option.commas else option.read(text)
    values["more"] = tuple(rest)


def _spellings(described: Mapping[str, Option]) -> dict[str, str]:
    """Return the spelling of each argument: an option, or capitals for one without; also for names with ``_``."""
    named = {field: _spelling(field, option) for field, option in described.items()}
    return {**named, **{field.removesuffix("_"): name for field, name in named.items()}}


def _spelling(field: str, option: Option) -> str:
    name = option.name or field.removesuffix("_")
    if option.positional:
        return option.name or name.upper()
    return f"--set {field}" if option.settable else f"--{name.replace('_', '-')}"


def _bad_usage(error: DataError) -> typer.BadParameter:
    names, argument = _SPELLINGS.get(), error.argument or error.field
    hint = None if argument is None else names.get(argument, argument)
    where = "" if error.file is None else f"{error.file}: "
    return typer.BadParameter(make_printable(where + respell_arguments(error.message, names)), param_hint=hint)


def _typer_option(field: str, option: Option, names: Mapping[str, str]) -> Any:
    """Return a typer option; the options class itself checks choices and single values."""
    kind: Any = option.kind if option.kind in (bool, int, float, Path) and not option.commas else str
    kind = list[kind] if option.many and not option.commas else kind
    kind = kind | None if option.optional or option.default in (None, ()) else kind
    default = _typed_default(option)
    text = respell_arguments(option.help, names)
    if option.percent:
        text = f"{text.removesuffix('.')}, in per cent and comma-separated: 1,5,10."
    if default not in (None, "", inspect.Parameter.empty) and not isinstance(default, bool):
        text = f"{text.removesuffix('.')} (default: {default})."
    words: dict[str, Any] = {"help": text, "rich_help_panel": option.group or None, "show_default": False}
    words |= {} if option.commas else {"min": option.min, "max": option.max}
    words["metavar"] = _metavar(option)
    words["callback"] = _announce if option.announced else None
    name = names[field]
    if option.positional:
        words["metavar"] = option.name or None
        return Annotated[kind, typer.Argument(**words)]
    if option.kind is bool and option.default is not False:
        off = f"/--no-{name.removeprefix('--')}"
        name = f" {off}" if option.default is True else f"{name}{off}"
    return Annotated[kind, typer.Option(name, **words)]


def _metavar(option: Option) -> str:
    """Return the placeholder of an option's value in the help."""
    choices = f"[{'|'.join(option.choices)}]"
    if option.choices and not option.commas and len(choices) <= MOST_CHOICES:
        return choices
    return "" if option.kind is bool else _METAVARS.get(option.kind, "TEXT")


def _announce(context: typer.Context, parameter: typer.CallbackParam, value: Any) -> Any:
    source = context.get_parameter_source(parameter.name or "")
    default = source is not None and source.name == "DEFAULT" and not context.resilient_parsing
    if default and not any(map(context.params.get, ("plan", "comparison", "scores"))):  # a file may have the value
        print_note(f"{parameter.name}: {value} ({parameter.opts[0]} names another)")
    return value


def _typed_default(option: Option) -> Any:
    """Return a field's default as the user would type it."""
    default = option.default
    if default == ():
        return None
    if not isinstance(default, tuple) or not option.commas:
        return default
    return ",".join(f"{100 * value:.12g}" if option.percent else str(value) for value in default)


def _split_values(field: str, option: Option, value: str) -> tuple[str, ...] | tuple[float, ...]:
    """Return the values of a text with commas between."""
    parts = split_at_commas(value)
    if not option.percent:
        return parts
    try:  # of twelve significant digits: 7 per cent is 0.07, not 0.07000000000000001
        shares = tuple(float(f"{float(part) / 100:.12g}") for part in parts)
    except ValueError:
        message = f"expected numbers with commas between, found {value!r}"
        raise UsageError(message, argument=field) from None
    if 0 < max(shares, default=0) < 0.01:
        print_note(f"`{field}` {value}: read as per cent, shares of at most {max(shares):g}")
    return shares


def call_with_options(function: Callable[..., Result], options: object, **more: Any) -> Result:
    """Call a public function with those of the options that it takes; ``more`` goes before them."""
    of_options = getattr(function, "__wrapped__", None)  # see `with_keywords`: the options are made and checked already
    if of_options is not None:
        return of_options(replace(options, **more) if more else options)  # type: ignore[type-var,no-any-return]
    names = inspect.signature(function).parameters
    taken = {name: getattr(options, name) for name in names if hasattr(options, name)}
    return function(**{**taken, **more})


def spellings() -> Mapping[str, str]:
    """Return how the verb that runs spells the arguments of the Python call: argument -> option."""
    return _SPELLINGS.get()


def spell_arguments(words: str) -> str:
    """Return a message with arguments in backquotes replaced by their options."""
    return respell_arguments(words, _SPELLINGS.get())


def print_line(words: str) -> None:
    """Print a line of a result to stdout; values of data in it cannot steer the terminal."""
    typer.echo("\n".join(map(show_controls, words.split("\n"))))


def print_note(words: str) -> None:
    """Print a note to stderr: what was left out, guessed or defaulted."""
    typer.echo(make_printable(spell_arguments(words)), err=True)


TableFormat = Annotated[Format, Option(help=f"{', '.join(FORMATS)}.")]


def print_tables(tables: Tables, format: str, content: Mapping[str, Any], signatures: Sequence[str]) -> None:
    """Print tables to stdout with their signatures.

    Args:
        tables: the tables.
        format: one of `FORMATS`.
        content: the content of the JSON form.
        signatures: printed below a text, in comments of LaTeX, on stderr beside CSV.
    """
    if format == "json":
        from eraser_hub.scoring.result import to_json_bytes

        typer.echo(to_json_bytes(content), nl=False)
        return
    if format == "latex":
        typer.echo("\n".join(f"% {show_controls(line)}" for line in signatures))
    typer.echo(tables.written(format))
    if format == "csv":
        print_note("\n".join(signatures))
    elif format != "latex":
        quote = "`" if format == "markdown" else ""
        typer.echo("\n" + "\n".join(f"{quote}{show_controls(line)}{quote}" for line in signatures))
