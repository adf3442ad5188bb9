"""Registries of parts that describe themselves, from the package's folders and installed plug-ins.

A part is a class in a module of its own. Adding one to the package means adding its module; a third party's
distribution names its class as an entry point of the registry's group.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cached_property
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar, get_args, get_type_hints

import msgspec

from .errors import DataError, describe_choice, show

Part = TypeVar("Part")


def parse_call(text: str, argument: str = "") -> tuple[str, dict[str, Any]]:
    """Return the name and the settings of ``NAME(SETTING=VALUE, ..)``; no settings for a name, or a path, alone.

    Values are Python's (numbers, True, strings, lists); what is none of these is a string.

    >>> parse_call("lime(samples=1000)"), parse_call("models/mine(labels=[NEG,POS], device=cuda)")
    (('lime', {'samples': 1000}), ('models/mine', {'labels': ['NEG', 'POS'], 'device': 'cuda'}))

    Args:
        text: the call.
        argument: the argument that an error names.

    Raises:
        DataError: a setting without a name, or twice; brackets without a partner.
    """
    name, bracket, rest = text.partition("(")
    if not bracket or not text.endswith(")") or not name.strip():
        return text, {}
    settings: dict[str, Any] = {}
    for part in _split_at_commas(rest[:-1], argument):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key.isidentifier() or key in settings:
            message = f"expected NAME(SETTING=VALUE, ..) with each setting once, found {show(text)}"
            raise DataError(message, argument=argument or None)
        settings[key] = _read_value(value)
    return name.strip(), settings


def make_settings(kind: type[Part], given: Mapping[str, Any], name: str, argument: str) -> Part:
    """Return a dataclass whose fields, with their types and ranges, are the settings of a call.

    Args:
        kind: the dataclass; ``Annotated[int, Meta(ge=1)]`` bounds a field, a ``Literal`` lists its values.
        given: the settings, see :func:`parse_call`.
        name: what has the settings, for errors.
        argument: the argument that an error names.

    Raises:
        DataError: a setting that there is none of (names the nearest), or a value of another type or range.
    """
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for key in given:
        if key not in known:
            message = describe_choice(key, known) if known else f"expected no settings, found {key!r}"
            raise DataError(f"{name}: {message}", argument=argument)
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        expected, key = describe_expected(error)
        if expected.startswith("Invalid enum"):  # it does not say which values there are
            expected = f"expected one of {', '.join(get_args(get_type_hints(kind)[key]))}"
        raise DataError(f"{name}, {key}: {expected}, found {show(given.get(key))}", argument=argument) from None


# msgspec's words, and ours
WORDS = {
    "int": "a whole number", "float": "a number", "bool": "True or False", "str": "a string", "array": "a list",
    "null": "None", "|": "or", ">=": "of at least", "<=": "of at most", ">": "above", "<": "below",
}  # fmt: skip


def describe_expected(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return what was expected, ``expected a whole number of at least 2``, and the name of the field."""
    expected, _, place = str(error).partition(" - at `$.")
    words = expected.partition(", got")[0].replace("Expected", "expected", 1).replace("`", "").split(" ")
    words = [word.removesuffix(".0") if word[0].isdigit() else WORDS.get(word, word) for word in words]
    return " ".join(words), place.rstrip("`").partition("[")[0]


def _split_at_commas(text: str, argument: str = "") -> list[str]:
    """Return the parts between commas that stand outside quotes and brackets."""
    parts, depth, quote = [""], 0, ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        else:
            depth += (sign in "([{") - (sign in ")]}")
            if depth < 0:
                break
        if sign == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += sign
    if depth or quote:
        message = f"expected each bracket and quote with its partner, found {show(text)}"
        raise DataError(message, argument=argument or None)
    return [part for part in parts if part.strip()]


def _read_value(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        return [_read_value(part.strip()) for part in _split_at_commas(text[1:-1])]
    try:
        return ast.literal_eval({"true": "True", "false": "False"}.get(text, text))
    except (ValueError, SyntaxError):
        return text


class Registry(Mapping[str, type[Part]], Generic[Part]):
    """Parts of one sort by name. A part's module is imported at its first use.

    A module's name is its part's name, with ``_`` for ``-``. Modules whose names begin with ``_`` hold no part.

    Args:
        group: the entry points' group of third parties, such as ``eraser_hub.methods``.
        noun: what one part is called in messages, such as "method".
        base: the class that every part extends.
        folders: packages whose modules hold a part each, by name, so that a lower layer may name a higher one's.
        places: name -> ``module:class`` of further parts.

    Raises:
        DataError: a plug-in's name is one of the package's or of another plug-in's; a module or an entry point that
            holds no class of the sort.
    """

    def __init__(
        self, group: str, noun: str, base: type[Part], *folders: str, places: Mapping[str, str] | None = None
    ) -> None:
        self.group, self.noun, self.base, self.folders, self.places = group, noun, base, folders, places or {}

    @cached_property
    def _places(self) -> dict[str, str]:
        """The module of each of the package's parts, ``module:class`` of the others."""
        found = {
            module.name.replace("_", "-"): f"{folder}.{module.name}"
            for folder in self.folders
            for module in pkgutil.iter_modules(importlib.import_module(folder).__path__)
            if not module.name.startswith("_")
        }
        found |= self.places
        for point in entry_points(group=self.group):
            other = found.setdefault(point.name, point.value)
            if other != point.value:
                message = f"expected a {self.noun} of a new name, found {point.name!r} in {other} and {point.value}"
                raise DataError(message, field=self.group)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._places))

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __getitem__(self, name: str) -> type[Part]:
        """Return the part of that name; a KeyError where there is none (see :meth:`find`)."""
        place = self._places[name]
        if ":" in place:
            parts = [pkgutil.resolve_name(place)]
        else:
            values = vars(importlib.import_module(place))
            parts = [values[key] for key in values if getattr(values[key], "__module__", "") == place and key[0] != "_"]
        parts = [part for part in parts if isinstance(part, type) and issubclass(part, self.base)]
        if len(parts) != 1:
            raise DataError(f"expected one class that extends {self.base.__name__}, found {len(parts)}", field=place)
        part: type[Part] = parts[0]
        return part

    def find(self, name: str, argument: str = "") -> type[Part]:
        """Return the part of that name.

        Args:
            name: the part's name.
            argument: the argument that an error names; by default the noun.

        Raises:
            DataError: there is none; names those there are.
        """
        if isinstance(name, str) and name.count("(") != name.count(")"):
            message = f"expected each bracket with its partner, found {show(name)}"
            raise DataError(message, argument=argument or self.noun)
        if not isinstance(name, str) or name not in self:
            raise DataError(describe_choice(name, self), argument=argument or self.noun)
        return self[name]

    def make(self, text: str, argument: str = "") -> Part:
        """Return the part of a call, ``lime(samples=1000)``, with its settings; errors as of `make_settings`."""
        return self.build(*parse_call(text, argument or self.noun), argument)

    def build(self, name: str, given: Mapping[str, Any], argument: str = "") -> Part:
        """Return the part of that name with these settings; errors as of `find` and `make_settings`."""
        return make_settings(self.find(name, argument), given, name, argument or self.noun)

    def name_of(self, kind: type[Part]) -> str:
        """Return the name of a part's class; a class that is not registered has its own in lower case."""
        own = (f"{kind.__module__}:{kind.__qualname__}", kind.__module__)
        return next((name for name, place in self._places.items() if place in own), kind.__name__.lower())
