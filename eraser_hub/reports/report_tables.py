"""A report's tables as plain data: what the template prints, and the tests compare with the score files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from eraser_hub.scoring.result import Scores

from .catalogue import (
    AGREEMENT,
    FAITHFULNESS,
    FAMILIES,
    PERFORMANCE,
    QUOTES,
    format_interval,
    format_number,
    format_small_print,
    is_precision_or_recall,
    metric,
)
from .figures import Figure

STAR = "★ "
# systems that a table has as columns; more are lines
MAX_COLUMNS = 4
_TITLES = {
    AGREEMENT: "Agreement with the human rationales",
    FAITHFULNESS: "Faithfulness to the model",
    PERFORMANCE: "Performance on the task",
    QUOTES: "Quotes",
    "other": "Further scores",
}


@dataclass(frozen=True, slots=True)
class ShownCell:
    """One number of a table: its text, its interval in small print, and the score it is."""

    text: str
    small: str = ""
    system: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A line of a table; ``key``: the score that it is about."""

    name: str
    cells: tuple[ShownCell, ...]
    key: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A table: caption, column heads, lines; ``summary`` folds it below these words.

    ``head_keys`` are the scores that columns are about, "" for none.
    """

    head: tuple[str, ...]
    rows: tuple[ShownRow, ...]
    caption: str = ""
    name: str = ""
    summary: str = ""
    head_keys: tuple[str, ...] = ()


@dataclass(slots=True)
class Section:
    """A section of the report; ``missing`` says what it leaves out, and why."""

    anchor: str
    title: str
    blocks: list[Block] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    signatures: list[str] = field(default_factory=list)


def label_with_arrow(key: str) -> str:
    """Return the key's label with an arrow for the better direction, without a line break between."""
    known = metric(key)
    return known.label + {"higher": "\u00a0↑", "lower": "\u00a0↓", "": ""}[known.better]


def collect_scalar_keys(systems: Iterable[Scores]) -> list[str]:
    """Return the keys with a number in any system, in a neutral order: by family, then by label."""
    return sorted(
        {key for system in systems for key in system.scores if system.number(key) is not None}, key=get_sort_key
    )


def get_sort_key(key: str) -> tuple[int, str]:
    """Return a score's sort key in tables: family, then label."""
    family = metric(key).family
    return (FAMILIES.index(family) if family in FAMILIES else len(FAMILIES), metric(key).label.lower())


def make_score_blocks(systems: Sequence[Scores], headline: Sequence[str]) -> list[Block]:
    """Return the table of headline scores; folded below it the others, a table a family, and precision and recall."""
    keys = [key for key in collect_scalar_keys(systems) if key not in headline]
    whole = [key for key in keys if not is_precision_or_recall(key)]
    blocks = []
    if headline:
        words = " and chance."
        if len(systems) > MAX_COLUMNS:
            words = "; of chance the least and the greatest of the systems, where they differ."
        words += " n: documents that count, if not all. ↑ higher is better, ↓ lower is better."
        caption = f"Small print: confidence interval{words}"
        blocks.append(_make_score_block(systems, headline, caption=caption, name="scores"))
    for family, title in _TITLES.items():
        own = [key for key in whole if metric(key).family == family]
        if own:
            words = f"{title}: {len(own)} {'more scores' if len(own) > 1 else 'more score'}"
            blocks.append(_make_score_block(systems, own, name=f"scores-{family}", summary=words))
    parts = [key for key in keys if is_precision_or_recall(key)]
    if parts:
        words = f"Precision and recall behind the F1 scores: {len(parts)} scores"
        blocks.append(_make_score_block(systems, parts, name="parts", summary=words))
    return blocks


def _make_score_block(
    systems: Sequence[Scores], keys: Sequence[str], *, name: str, caption: str = "", summary: str = ""
) -> Block:
    """Return a table of scores: a line a score; of many systems a line a system, then chance."""
    if len(systems) > MAX_COLUMNS:
        rows = [ShownRow(one.name, tuple(make_score_cell(one, key, chance=False) for key in keys)) for one in systems]
        rows += _make_chance_row(systems, keys)
        return Block(("system", *map(label_with_arrow, keys)), tuple(rows), caption, name, summary, ("", *keys))
    rows = [
        ShownRow(label_with_arrow(key), tuple(make_score_cell(one, key) for one in systems), key=key) for key in keys
    ]
    return Block(("score", *(one.name for one in systems)), tuple(rows), caption, name, summary)


def summarise_chance(values: Iterable[float | None]) -> tuple[float, tuple[float, float] | None] | None:
    """Return the mean of the systems' chance, and the least and the greatest where they differ; None for none.

    >>> summarise_chance([0.5, None, 1.0]), summarise_chance([0.5, 0.5]), summarise_chance([None])
    ((0.75, (0.5, 1.0)), (0.5, None), None)
    """
    known = [value for value in values if value is not None]
    if not known:
        return None
    differ = round(max(known), 3) > round(min(known), 3)
    return fmean(known), (min(known), max(known)) if differ else None


def _make_chance_row(systems: Sequence[Scores], keys: Sequence[str]) -> list[ShownRow]:
    """Return a line of chance, if any system has it."""
    found = [summarise_chance(one.chance.get(key) for one in systems) for key in keys]
    cells = (ShownCell(format_number(one[0]), format_interval(one[1])) if one else ShownCell("") for one in found)
    return [ShownRow("chance", tuple(cells))] if any(found) else []


def make_score_cell(system: Scores, key: str, *, chance: bool = True, count: bool = True) -> ShownCell:
    """Return the cell of a system's score; its small print has chance, and a count, if these say so."""
    value = system.number(key)
    if value is None and key not in system.scores:
        return ShownCell("", system=system.name, key=key)
    small = format_small_print(
        system.intervals.get(key),
        system.spread.get(key),
        system.chance.get(key) if chance else None,
        system.counted(key) if count else None,
    )
    return ShownCell(format_number(value), small, system.name, key)


def make_class_blocks(systems: Sequence[Scores], keys: Sequence[str]) -> list[Block]:
    """Return the chosen scores by gold class, a block for each system."""
    blocks = []
    for system in systems:
        shown = [key for key in keys if any(_plain(scores.get(key)) is not None for scores in system.by_class.values())]
        if not shown:
            continue
        rows = tuple(
            ShownRow(label, tuple(ShownCell(format_number(_plain(scores.get(key)))) for key in shown))
            for label, scores in system.by_class.items()
        )
        blocks.append(Block(("gold class", *map(label_with_arrow, shown)), rows, system.name))
    return blocks


def _plain(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def format_p_value(p: float | None) -> str:
    """Return a p-value with three digits, or an inequality below the smallest of them."""
    if p is None or math.isnan(p):
        return "–"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def collect_instance_values(scored: Sequence[Scores], ids: Sequence[str]) -> list[dict[str, list[float | None]]]:
    """Return the per-instance scores of each system, without empty columns, in a table's order.

    Args:
        scored: the systems.
        ids: for each document of the list the annotation whose scores stand beside it.
    """
    collected = []
    for system in scored:
        places, columns = {name: place for place, name in enumerate(system.ids)}, dict[str, list[float | None]]()
        for key, column in sorted(system.per_instance.items(), key=lambda item: get_sort_key(item[0])):
            if any(value is not None for value in column):
                columns[key] = [column[places[name]] if name in places else None for name in ids]
        collected.append(columns)
    return collected
