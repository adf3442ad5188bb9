"""Cells of documents, each under its id, in place of one text: ``[{"id": "d1", "text": ".."}, {"id": "d2", ..}]``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from eraser_hub.records.errors import DataError, show

from .texts import Text, TokenCutter, parse_literal, parse_text, parse_tokens, parse_word

IDS = ("id", "docid", "doc_id", "document_id")
TEXTS = ("text", "content", "utterance")


def find_objects(value: Any) -> list[Mapping[str, Any]] | None:
    """Return the objects of a cell of documents; None for other cells."""
    value = parse_literal(value)
    if not isinstance(value, list) or not value or not all(isinstance(each, Mapping) for each in value):
        return None
    return value if all(_find_key(each, IDS) for each in value) else None


def _find_key(each: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in each), None)


def parse_objects(
    objects: Sequence[Mapping[str, Any]], cut: TokenCutter, column: str, *, tokenized: bool
) -> list[Text]:
    """Return the documents of a cell, with their names.

    Args:
        objects: what `find_objects` returns.
        cut: the tokenizer.
        column: name of the column, for errors.
        tokenized: the texts are lists of tokens, under the key tokens.

    Raises:
        DataError: an object without text, or an id twice.
    """
    texts: dict[str, Text] = {}
    for number, each in enumerate(objects):
        field = f"{column}[{number}]"
        name = parse_word(each[_find_key(each, IDS) or "id"], field)
        if name in texts:
            raise DataError(f"expected each id once, found {show(name)} again", field=field)
        value = _get_text(each, field, tokenized)
        text = parse_tokens(value, field) if tokenized else parse_text(value, cut, field)
        texts[name] = replace(text, name=name)
    return [*texts.values()]


def _get_text(each: Mapping[str, Any], field: str, tokenized: bool) -> Any:
    names = ("tokens",) if tokenized else TEXTS
    key = _find_key(each, names)
    if key is None:
        raise DataError(f"expected {' or '.join(names)}, found {show(list(each))}", field=field)
    return each[key]


def split_marks(value: Any, names: Sequence[str], column: str) -> list[Any]:
    """Return the marks of each document of a row, in their order.

    Args:
        value: a list of one for each document, an object of them by id, or a list of spans that name their document.
        names: the ids of the documents.
        column: name of the column, for errors.

    Raises:
        DataError: the cell has another form, or names another document.
    """
    value = parse_literal(value)
    if value is None or value == "" or value == []:
        return [None] * len(names)
    by_name: dict[str, Any] = {}
    if isinstance(value, Mapping):
        by_name = {str(name): marks for name, marks in value.items()}
    elif isinstance(value, list) and all(isinstance(each, Mapping) and _find_key(each, IDS) for each in value):
        for each in value:
            by_name.setdefault(str(each[_find_key(each, IDS) or "id"]), []).append(each)
    elif isinstance(value, list) and len(value) == len(names):
        return value
    else:
        message = f"expected marks for each of {len(names)} documents, found {show(value)}"
        raise DataError(message, field=column)
    unknown = [name for name in by_name if name not in names]
    if unknown:
        message = f"expected one of the row's documents {', '.join(map(show, names))}, found {show(unknown[0])}"
        raise DataError(message, field=column)
    return [by_name.get(name) for name in names]
