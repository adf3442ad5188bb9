"""Options: the arguments of a public function, declared once as the fields of a frozen dataclass.

    @dataclass(frozen=True)
    class PageOptions(Options):
        folder: Annotated[Path, Option(name="dir")] = Path("hub")
        count: Annotated[int, Option(min=0, max=200)] = 24

:func:`with_keywords` turns a function of such options into one with typed keyword arguments and documents them.
:func:`with_documented_options` documents the ``**settings`` of a function. The command line makes its options, with
defaults, ranges, choices and groups, from the same fields. The heading ``Attributes`` holds the options without a
group; any further heading is a group of the help page. The type of a field says what it takes: ``Literal`` lists the
choices, ``| None`` makes it optional, and a sequence makes it repeatable.
"""

from __future__ import annotations

import collections.abc
import inspect
import numbers
import os
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from .errors import UsageError, show

Arguments = ParamSpec("Arguments")
Values = TypeVar("Values")
Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., Any])

_SECTION = re.compile(r"^(\w[\w ,'-]*):\n((?:(?: {4}.*)?\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^ {4}(?=\w+: )", re.MULTILINE)
_AFTER_ARGUMENTS = re.compile(r"^(?:Returns|Yields|Raises|Examples?):$", re.MULTILINE)
_TEXT = (str, os.PathLike)
_KINDS: dict[type, Any] = {int: numbers.Integral, float: numbers.Real, str: _TEXT, Path: _TEXT}
_NOUNS = {bool: "True or False", int: "a whole number", float: "a number", str: "a string", Path: "a path"}
LARGEST = 2**63 - 1  # what the record of a run, which is JSON, can hold of a whole number
REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Option:
    """Facts about an option that its type and the dataclass's docstring do not say, for ``Annotated``.

    Attributes:
        help: its words; by default those in the docstring.
        min, max: of a number.
        name: at the command line, where it is not the field's.
        settable: at the command line a pair of ``--set NAME=VALUE``.
        positional: stands at the command line without a name.
        python_only: no option of the command line.
        commas: one string holds all of its values, with commas between: at the command line, and in Python too.
        percent: at the command line shares are per cent.
        announced: the command line prints the default value if the user gives none.
        open: the data or another argument decide if the caller does not; the argument is None then.
        kind: the type of a value, out of the field's own type; so are those below.
        choices: the values that there are; empty for any.
        many: it may be given several times.
        optional: it may be None.
        default: of the field; ``REQUIRED`` where it has to be given.
        group: the heading of the help page.
        hint: the field's type, as a signature shows it.
    """

    help: str = ""
    min: float | None = None
    max: float | None = None
    name: str = ""
    settable: bool = False
    positional: bool = False
    python_only: bool = False
    commas: bool = False
    percent: bool = False
    announced: bool = False
    open: bool = False
    kind: type = str
    choices: tuple[str, ...] = ()
    many: bool = False
    optional: bool = False
    default: Any = REQUIRED
    group: str = ""
    hint: Any = None

    def check(self, field: str, value: Any) -> Any:
        """Return a value as functions read it: a path as Path, a string where several may be as the only one.

        Raises:
            UsageError: names the field; the value is none that it may have.
        """
        if value is None and (self.optional or self.default is None):
            return None
        if self.many and isinstance(value, Mapping):
            value = _name_values(field, value)
        if self.commas and isinstance(value, str):
            value = split_at_commas(value)
        low, high, kinds = self.min, self.max, _KINDS.get(self.kind, self.kind)
        for each in value if self.many and isinstance(value, (list, tuple)) else [value]:
            if self.choices:
                expected = "" if each in self.choices else f"one of {', '.join(self.choices)}"
            elif self.kind in _NOUNS and (
                not isinstance(each, kinds) or (isinstance(each, bool) and self.kind is not bool)
            ):
                expected = _NOUNS[self.kind]
            elif isinstance(each, _TEXT) and "\0" in str(each):
                expected = f"{_NOUNS.get(self.kind, 'a string')} without NUL characters"
            elif not isinstance(each, numbers.Real):
                expected = ""
            elif self.kind is int and float(each) > LARGEST:
                expected = f"at most {LARGEST}"
            elif (low is None or low <= float(each)) and (high is None or float(each) <= high):
                expected = ""
            elif low is None or high is None:
                expected = f"at most {high:g}" if low is None else f"at least {low:g}"
            else:
                noun = "a share" if (low, high, self.kind) == (0, 1, float) else _NOUNS[self.kind]
                expected = f"{noun} from {low:g} to {high:g}"
            if expected:
                raise UsageError(f"expected {expected}, found {show(each)}", argument=field)
        if isinstance(self.default, tuple) and not isinstance(value, tuple):
            return (value,) if isinstance(value, str) else tuple(value or ())
        if self.many and self.kind is str and isinstance(value, (list, tuple)):
            return type(value)(os.fspath(each) if isinstance(each, os.PathLike) else each for each in value)
        if self.kind is Path and isinstance(value, str):
            return Path(value)
        return os.fspath(value) if self.kind is str and isinstance(value, os.PathLike) else value

    def read(self, text: str) -> Any:
        """Return a value from its text; the text itself where it is none of the type, which `check` refuses."""
        if self.kind is bool and text in ("true", "false"):
            return text == "true"
        try:
            return self.kind(text) if self.kind in (int, float, Path) else text
        except ValueError:
            return text


def split_at_commas(text: str) -> tuple[str, ...]:
    """Return the values of a text with commas between, without blanks around them."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _name_values(field: str, values: Mapping[Any, Any]) -> list[str]:
    """Return ``NAME=VALUE,VALUE`` for each name of a mapping and its value or values.

    Raises:
        UsageError: a name that is no string, is empty or holds ``=``; several values, one of which holds a comma.
    """
    named = []
    for name, value in values.items():
        if not isinstance(name, str) or not name or "=" in name:
            raise UsageError(f"expected names without =, found {show(name)}", argument=field)
        own = [value] if isinstance(value, _TEXT) else list(value) if isinstance(value, (list, tuple)) else []
        if not own or not all(isinstance(each, _TEXT) for each in own):
            message = f"expected a path or a list of paths for {show(name)}, found {show(value)}"
            raise UsageError(message, argument=field)
        paths = [os.fspath(each) for each in own]
        if len(paths) > 1 and (odd := next((path for path in paths if "," in path), None)) is not None:
            message = f"expected paths without commas where there are several, found {show(odd)}"
            raise UsageError(message, argument=field)
        named.append(f"{name}={','.join(paths)}")
    return named


# options that several functions have
AtLeastOne = Annotated[int, Option(min=1)]
NotNegative = Annotated[int, Option(min=0)]
Seed = Annotated[int, Option(min=0, help="Seed of all random draws.")]


class Options:
    """Base class of options: each field checks its value when the options are made.

    A subclass with checks of its own calls ``Options.__post_init__(self)`` before them.

    Raises:
        UsageError: a value that its field may not have.
    """

    def __post_init__(self) -> None:
        for field, option in read_options(type(self)).items():  # type: ignore[arg-type]  # a type has a hash
            object.__setattr__(self, field, option.check(field, getattr(self, field)))  # frozen for everyone else


@cache
def read_options(options: type) -> dict[str, Option]:
    """Return the options that a dataclass declares: field -> option, each with its words, type and group."""
    words: dict[str, tuple[str, str]] = {}
    for base in reversed(options.__mro__):
        words |= _documented(base)
    described = {}
    hints, plain = get_type_hints(options, include_extras=True), get_type_hints(options)
    for field in (each for each in fields(options) if each.init):
        help_, group = words.pop(field.name, ("", ""))
        option = _typed(hints[field.name])
        default = REQUIRED if field.default is MISSING else field.default
        default = default if field.default_factory is MISSING else field.default_factory()
        option = replace(option, help=option.help or help_, group=group or option.group)
        described[field.name] = replace(option, default=default, hint=plain[field.name])
        assert described[field.name].help, f"{options.__name__}.{field.name}: an option without help"
    assert not words, f"{options.__name__}: {', '.join(words)}: no such field"
    return described


def _documented(options: type) -> dict[str, tuple[str, str]]:
    """Return the help and the group of each field from a dataclass's docstring."""
    words = {}
    text = inspect.cleandoc(vars(options).get("__doc__") or "") + "\n"
    start = text.find("Attributes:\n")
    for heading, body in _SECTION.findall(text[start:]) if start >= 0 else ():
        for name, _, help_ in (entry.partition(": ") for entry in _ENTRY.split(body)[1:]):
            words[name] = (" ".join(help_.split()), "" if heading == "Attributes" else heading)
    return words


def _typed(hint: Any) -> Option:
    """Return the facts in a field's type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        option = next((each for each in arguments[1:] if isinstance(each, Option)), Option())
        inner = _typed(arguments[0])
        low, high = (inner.min if option.min is None else option.min), (inner.max if option.max is None else option.max)
        option = replace(option, help=option.help or inner.help, min=low, max=high)
        choices = option.choices or inner.choices
        return replace(option, kind=inner.kind, choices=choices, many=inner.many, optional=inner.optional)
    if origin in (Union, types.UnionType):
        parts = [_typed(each) for each in arguments if each is not type(None)]
        named = any(get_origin(each) is collections.abc.Mapping for each in arguments)  # NAME=FILE at the command line
        kind = Path if any(each.kind is Path for each in parts) and not named else parts[0].kind
        optional, many = len(parts) < len(arguments), any(each.many for each in parts)
        return replace(parts[0], kind=kind, many=many, optional=optional)
    if origin is Literal:
        return Option(kind=type(arguments[0]), choices=arguments)
    if origin in (list, tuple, collections.abc.Sequence):
        return replace(_typed(arguments[0]), many=True)
    if origin is os.PathLike or hint is Path:
        return Option(kind=Path)
    return Option(kind=hint if isinstance(hint, type) else object)


# files by system: FILE or NAME=FILE, several of them, or a mapping of names to a file or to the files of several runs
Files = str | Path
NamedFiles = Files | Sequence[Files] | Mapping[str, Files | Sequence[Files]] | None


def as_list(value: NamedFiles) -> list[str] | None:
    """Return the values of an argument that may be one or several; None where it is left out or empty."""
    if isinstance(value, Mapping):
        return _name_values("value", value) or None
    return [os.fspath(each) for each in ([value] if isinstance(value, _TEXT) else value or ())] or None


def with_keywords(
    options: Callable[Arguments, Values],
) -> Callable[[Callable[[Values], Result]], Callable[Arguments, Result]]:
    """Make a function of options one of their fields as keyword arguments.

    Its docstring gets what the options say of each, as ``Args``, before ``Returns``.
    """

    def public(function: Callable[[Values], Result]) -> Callable[Arguments, Result]:
        @wraps(function)
        def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            return function(options(*args, **kwargs))

        described = read_options(options)
        places = inspect.signature(options).parameters.values()
        _describe(call, [each.replace(annotation=described[each.name].hint) for each in places], described)
        return call

    return public


def with_documented_options(*declarations: type, without: Sequence[str] = ()) -> Callable[[Function], Function]:
    """Show the fields of dataclasses instead of ``**settings`` in a function's signature and docstring.

    Args:
        *declarations: dataclasses whose fields the function takes, see `merge_options`; fields with the name of an
            explicit argument are left out.
        without: further fields that it does not take.
    """

    def described(function: Function) -> Function:
        own = [each for each in inspect.signature(function).parameters.values() if each.kind is not each.VAR_KEYWORD]
        names = {*without, *(each.name for each in own)}
        further = {name: option for name, option in merge_options(*declarations).items() if name not in names}
        places = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=one.hint)
            for name, one in further.items()
        ]
        _describe(function, [*own, *places], further)
        return function

    return described


def merge_options(options: type, *more: type) -> dict[str, Option]:
    """Return the options of several dataclasses; the first declaration of a name counts.

    The docstrings of further dataclasses are a library's: their words become sentences. An option is None if another
    argument or the data decide its default.
    """
    described = dict(read_options(options))
    for name, option in (pair for each in more for pair in read_options(each).items()):
        if name not in described:
            words = option.help.replace("``", "")
            option = replace(option, help=words[:1].upper() + words[1:])  # "" with -OO
            open_ = replace(option, default=None, optional=True, hint=option.hint | None) if option.open else option
            described[name] = open_
    return described


def _describe(
    function: Callable[..., Any], parameters: Sequence[inspect.Parameter], options: Mapping[str, Option]
) -> None:
    """Give a function these parameters, and the options' words in its docstring."""
    signature = inspect.signature(function).replace(parameters=parameters)
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in parameters}
    function.__annotations__["return"] = signature.return_annotation
    entries = "".join(f"    {name}: {option.help}\n" for name, option in options.items())
    text = inspect.cleandoc(function.__doc__ or "")
    after = _AFTER_ARGUMENTS.search(text)
    at = after.start() if after else len(text)
    heading = "" if "\nArgs:\n" in text else "\nArgs:\n"
    function.__doc__ = f"{text[:at].rstrip()}\n{heading}{entries}\n{text[at:]}".rstrip() + "\n"
