"""Write a released JSON line back from a dataset row, by a recipe that was fitted to the file's first lines.

A file spells the same facts in its own way (ids as integers, indices as strings, sets nested or not, keys in some
order). A recipe says per key where its value comes from; a line that its recipe does not give back letter by letter is
kept whole beside the data by the caller. So no spelling can be lost, and the file's manner is stored once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

Recipe = list[list[Any]]  # [key, source, argument ..] per key, in the file's order
Style = list[Any]  # ensure_ascii, item separator, key separator
STYLES: tuple[Style, ...] = (
    [False, ", ", ": "],
    [True, ", ", ": "],
    [False, ",", ":"],
    [True, ",", ":"],
)


def dumps(fields: Mapping[str, Any], style: Sequence[Any]) -> str:
    """An object as a line in one of STYLES."""
    ascii_only, item, key = style
    return json.dumps(dict(fields), ensure_ascii=bool(ascii_only), separators=(str(item), str(key)))


def _as(value: Any, kind: str) -> Any:
    """A string (or index) in the file's type."""
    return int(value) if kind == "int" else str(value)


def _nested(sets: Sequence[Sequence[Sequence[Any]]], sequence: int | None, depth: int) -> Any:
    """Part of [sequence][set][item]: all of it (depth 3), one sequence's sets (2), or its first set (1)."""
    if depth == 3:
        return sets
    chosen = sets[sequence or 0]
    return chosen if depth == 2 else (chosen[0] if chosen else [])


def value_of(source: str, arguments: Sequence[Any], row: Mapping[str, Any], label_names: Sequence[str]) -> Any:
    """The value that a recipe's entry gives for a row.

    Raises:
        LookupError, TypeError, ValueError: the row does not hold what the entry needs.
    """
    if source == "constant":
        return arguments[0]
    if source == "id":
        return _as(row["id"], arguments[0])
    if source == "rel_ids":
        return [_as(identifier, arguments[0]) for identifier in row["rel_ids"]]
    if source == "column":
        return row[arguments[0]]
    if source == "columns":
        return [row[name] for name in arguments]
    if source == "tokens":
        return row["tokens"] if arguments[0] is None else row["tokens"][arguments[0]]
    if source == "numbered_tokens":
        return [[token, index] for index, token in enumerate(row["tokens"][arguments[0]])]
    if source == "label":
        return label_names[row["label"]] if arguments[0] == "name" else _as(row["label"], arguments[0])
    if source == "answers":
        return [row["answer"]]
    if source in ("rationale_ids", "rationale_tokens"):
        sequence, depth, kind = arguments
        if source == "rationale_ids":
            sets = [[[_as(i, kind) for i in chosen] for chosen in sets] for sets in row["rationale_ids"]]
        else:
            sets = [
                [[tokens[i] for i in chosen] for chosen in sets]
                for tokens, sets in zip(row["tokens"], row["rationale_ids"], strict=True)
            ]
        return _nested(sets, sequence, depth)
    raise LookupError(source)


def _candidates(key: str, value: Any, row: Mapping[str, Any], texts: Mapping[str, str]) -> list[list[Any]]:
    """What a key's value may come from, the most telling first."""
    sequences = range(len(row["tokens"]))
    named: list[list[Any]] = [["column", column] for column, name in texts.items() if name == key]
    ways: list[list[Any]] = [
        *named,
        *([["column", key]] if key in row else []),
        *([["id", kind] for kind in ("int", "string")] if key in ("id", "sent_id") else []),
        *([["rel_ids", kind] for kind in ("int", "string")] if key == "rel_ids" else []),
        *([["label", kind] for kind in ("int", "string", "name")] if "label" in key else []),
        *([["answers"]] if key == "answers" else []),
        *([["column", "answer"]] if key in ("answer", "answers", "sent_label") else []),
    ]
    if isinstance(value, str):
        ways += [["column", column] for column in texts]
    elif isinstance(value, list):
        ways += [["columns", *texts]]
        ways += [["tokens", sequence] for sequence in (*sequences, None)]
        ways += [["numbered_tokens", sequence] for sequence in sequences]
        for source, kinds in (("rationale_ids", ("int", "string")), ("rationale_tokens", ("string",))):
            for kind in kinds:
                ways.append([source, None, 3, kind])
                ways += [[source, sequence, depth, kind] for depth in (2, 1) for sequence in sequences]
    if value is None or isinstance(value, str | int | float | bool):
        ways.append(["constant", value])
    return ways


def fit(
    fields: Mapping[str, Any], row: Mapping[str, Any], label_names: Sequence[str], texts: Mapping[str, str]
) -> Recipe | None:
    """The recipe that gives ``fields`` back from ``row``, or None where some field does not follow from the row.

    Args:
        fields: a record of the file.
        row: its dataset row.
        label_names: the names of the labels.
        texts: column -> field of the public file.
    """
    recipe: Recipe = []
    for key, value in fields.items():
        try:
            wanted = json.dumps(value)
        except RecursionError:  # read, but nested too deeply to be written
            return None
        for way in _candidates(key, value, row, texts):
            try:
                given = json.dumps(value_of(way[0], way[1:], row, label_names))
            except (LookupError, TypeError, ValueError):
                continue
            if given == wanted:
                recipe.append([key, *way])
                break
        else:
            return None
    return recipe


def rebuilt(
    recipe: Recipe | None, style: Sequence[Any] | None, row: Mapping[str, Any], label_names: Sequence[str]
) -> str | None:
    """The line that a recipe gives for a row, or None where it gives none."""
    if recipe is None or style is None:
        return None
    try:
        return dumps({key: value_of(source, rest, row, label_names) for key, source, *rest in recipe}, style)
    except (LookupError, TypeError, ValueError):
        return None


def fit_style(fields: Mapping[str, Any], text: str) -> Style | None:
    """The style in which a line was written, or None."""
    try:
        return next((style for style in STYLES if dumps(fields, style) == text), None)
    except RecursionError:
        return None
