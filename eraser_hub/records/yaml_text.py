"""YAML of other people's files, bounded: a few lines with aliases may expand to gigabytes."""

from __future__ import annotations

from os import PathLike
from typing import Any

import yaml

from .errors import DataError
from .json_lines import is_nested_deeper

MAX_CHARACTERS = 1 << 20
# by libyaml where PyYAML has it: a card of all configs takes a tenth of the time
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def check_yaml(text: str, file: str | PathLike[str], max_characters: int = MAX_CHARACTERS) -> None:
    """Raise a DataError for a text that is too long, nests its brackets too deeply, or has aliases (``*name``)."""
    if len(text) > max_characters:
        message = f"expected at most {max_characters:,} characters of YAML, found {len(text):,}"
        raise DataError(message, file=file)
    if is_nested_deeper(text):
        raise DataError("is no YAML: its brackets nest too deeply", file=file)
    if "&" not in text or "*" not in text:
        return
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.AliasEvent):
                line = event.start_mark.line + 1 if event.start_mark else None
                raise DataError("is no YAML: expected no aliases (*name)", file=file, line=line)
    except yaml.YAMLError:
        return  # whoever loads the text says what is wrong


def load_yaml(text: str, file: str | PathLike[str]) -> Any:
    """Return the plain values of a YAML text.

    Raises:
        DataError: the text is no YAML, is too long, or has aliases.
    """
    check_yaml(text, file)
    try:
        return yaml.load(text, Loader=_LOADER)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date that is none
        message = f"is no YAML: {' '.join(str(error).split())}"
        raise DataError(message, file=file) from None
