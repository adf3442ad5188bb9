"""Options made of the library's own declarations, for `explain`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial, wraps
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import typer
from typer.models import OptionInfo

from eraser_hub.attribution.method import LARGEST, OPEN, Range

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
