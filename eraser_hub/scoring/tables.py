"""Scores as tables, in the forms that `records.tables` writes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from eraser_hub.records.tables import Cell, Table, Tables

from .uncertainty.verdicts import BETTER, WORSE, describe_components

BLOCK_TITLES = {
    "agreement": "Agreement with human rationales",
    "faithfulness": "Faithfulness",
    "quote_faithfulness": "Quotes",
    "normalized_fidelity": "Normalised fidelity",
}
DIGITS = 4
# what stands beside the scores in a flat result
BESIDE = ("by", "per_instance", "signature", "aopc_thresholds", "gold", "marked", "all")


def format_score(value: object) -> str:
    """Return a score with four digits, or a dash if it is undefined."""
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.{DIGITS}f}"
    if isinstance(value, list):
        return " ".join(format_score(part) for part in value)
    return str(value)


def make_score_cells(flat: Mapping[str, object], thresholds: object) -> Iterator[tuple[str, Cell]]:
    """Yield a cell for each score; for a list of points one for each threshold, named ``KEY@THRESHOLD``."""
    for key, value in flat.items():
        if key in BESIDE or key.endswith("_ci"):
            continue
        bounds = flat.get(f"{key}_ci")
        points = [(key, value, bounds)]
        if isinstance(value, list) and isinstance(thresholds, list) and len(value) == len(thresholds):
            ends = bounds if isinstance(bounds, list) else [None] * len(value)
            points = [(f"{key}@{t:g}", *point) for t, *point in zip(thresholds, value, ends, strict=True)]
        for name, score, interval in points:
            if isinstance(score, int | float):
                low, high = interval if isinstance(interval, list) else (None, None)
                yield name, Cell(score, digits=DIGITS, low=low, high=high)
            else:
                yield name, Cell(format_score(score))


def make_breakdown_table(
    name: str, title: str, groups: Mapping[str, Mapping[str, object]], flat: Mapping[str, object]
) -> Table:
    """Return a table with a column for each group of a breakdown."""
    table = Table(name, title, ("score",), tuple(groups), is_verbatim=True)
    rows: dict[str, dict[str, Cell]] = {}
    for group, scores in groups.items():
        for key, cell in make_score_cells(scores, flat.get("aopc_thresholds")):
            rows.setdefault(key, {})[group] = cell
    for key, cells in rows.items():
        table.add(key, **cells)
    return table


def make_comparison_tables(result: Mapping[str, Any]) -> Tables:
    """Return a table for each pair of systems, with a line for each score.

    ``verdict`` is a word on the first system; the score of the system that is better has a star, bold in markdown and
    LaTeX, and nothing else has one.

    Args:
        result: what `comparison.compare` gave.
    """
    instances, clusters = result.get("instances", 0), result.get("clusters", 0)
    words = f"{instances} instances" + (f" in {clusters} clusters" if clusters < instances else "")
    pairs = [_pair_table(result, pair, words) for pair in result["comparisons"]]
    notes = [
        f"not compared, {name} alone has them: {', '.join(own)}" for name, own in result.get("left_out", {}).items()
    ]
    for one in result.get("against_chance", ()):
        notes.append(
            f"{one['system']}, {one['score']} against {one['draws']} random rationales: "
            f"p {format_score(one['p_value'])}, p Holm {format_score(one['p_holm'])}, "
            f"win rate {format_score(one['win_rate'])}, effect size {format_score(one['effect_size'])}"
        )
    tables = Tables("compare", pairs or [Table("compare", "Comparison", ("score",), ())])
    if any(result.get("chance", {}).values()):
        tables.tables.append(_chance_table(result["chance"]))
    tables.tables[-1].notes += [*notes, *result.get("notes", ())]
    if quotes := result.get("quotes"):
        tables.tables.append(_quote_table(quotes))
    return tables


def _chance_table(chance: Mapping[str, Mapping[str, float]]) -> Table:
    """Return chance of each score of agreement, by system."""
    table = Table(
        "chance", "Chance of agreement", ("score",), tuple(f"{name}, chance" for name in chance), is_verbatim=True
    )
    for key in dict.fromkeys(key for own in chance.values() for key in own):
        table.add(key, **{f"{name}, chance": Cell(own.get(key), digits=DIGITS) for name, own in chance.items()})
    return table


def _quote_table(quotes: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return the quote scores of each system that has quotes."""
    table = Table("quotes", "Quotes", ("score",), tuple(quotes), is_verbatim=True)
    columns = {name: dict(make_score_cells(flat, None)) for name, flat in quotes.items()}
    for key in dict.fromkeys(key for cells in columns.values() for key in cells):
        table.add(key, **{name: cells[key] for name, cells in columns.items() if key in cells})
    return table


def _pair_table(result: Mapping[str, Any], pair: Mapping[str, Any], words: str) -> Table:
    tests = {"p": "p", "p Holm": "p_holm"}
    names = (pair["first"], pair["second"])
    # a system may be called like a column of its own: "p"
    systems = {
        f"{name} (system)"
        if name in ("self", "difference", "detectable", "verdict", "variance", *tests)
        else name: name
        for name in names
    }
    spreads = {f"{name} ±": name for name in names if name in result.get("spread", {})}
    sources = {key: describe_components(test["components"]) for key, test in pair["keys"].items()}
    varied = ("variance",) if spreads else ()
    columns = (*systems, *spreads, "difference", "detectable", *tests, "verdict", *varied)
    title = f"{names[0]} against {names[1]}, {words}"
    table = Table(f"{names[0]}-{names[1]}", title, ("score",), columns, is_verbatim=True)
    for key, test in pair["keys"].items():
        low, high = test["ci"]
        winner = {BETTER: names[0], WORSE: names[1]}.get(test["verdict"])
        table.add(
            key,
            **{
                head: Cell(result["scores"][name][key], digits=DIGITS, better=name == winner)
                for head, name in systems.items()
            },
            **{head: Cell(result["spread"][name][key], digits=DIGITS) for head, name in spreads.items()},
            difference=Cell(test["difference"], digits=DIGITS, low=low, high=high),
            detectable=Cell(test["detectable"], digits=DIGITS),
            **{head: Cell(test.get(name), digits=DIGITS) for head, name in tests.items()},
            verdict=Cell(test["verdict"]),
            **{head: Cell(sources[key] or None) for head in varied},
        )
    return table
