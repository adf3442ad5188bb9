"""Scores as a table on the terminal."""

from __future__ import annotations

import math

from rich.console import Console
from rich.table import Table

from .score import Scored

TITLES = {"agreement": "Agreement with human rationales", "faithfulness": "Faithfulness"}


def shown(value: object) -> str:
    """A score to four digits; what is undefined is a dash."""
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.4f}"
    if isinstance(value, list):
        return " ".join(shown(part) for part in value)
    return str(value)


def print_scores(scored: Scored, found: dict[str, object], console: Console | None = None) -> None:
    """Print the flat scores, with intervals and the breakdown where there are some, and the signature."""
    console = console or Console()
    for name, title in TITLES.items():
        flat = found.get(name)
        if isinstance(flat, dict):
            console.print(_table(title, flat))
            if isinstance(flat.get("by"), dict):
                console.print(_breakdown(f"{title}, by {scored.settings.by}", flat["by"]))
    for side, chance in scored.chance.items():
        console.print(
            f"{side} against {chance['draws']} random rationales: p {shown(chance['p_value'])}, "
            f"win rate {shown(chance['win_rate'])}, effect size {shown(chance['effect_size'])} "
            f"(mean win rate per instance {shown(chance['mean_win_rate'])})"
        )
    console.print(f"[dim]{found['signature']}[/dim]", soft_wrap=True, highlight=False)


def _table(title: str, flat: dict[str, object]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("score")
    table.add_column("value", justify="right")
    intervals = any(key.endswith("_ci") for key in flat)
    if intervals:
        table.add_column("interval", justify="right")
    for key, value in flat.items():
        if key in ("by", "per_instance", "signature") or key.endswith("_ci"):
            continue
        row = [key, shown(value)]
        if intervals:
            bounds = flat.get(f"{key}_ci")
            row.append("" if bounds is None else f"[{shown(bounds)}]".replace("[", r"\["))
        table.add_row(*row)
    return table


def _breakdown(title: str, groups: dict[str, dict[str, object]]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("score")
    for name in groups:
        table.add_column(name, justify="right")
    keys = list(next(iter(groups.values()), {}))
    for key in keys:
        table.add_row(key, *(shown(scores[key]) for scores in groups.values()))
    return table
