"""Scores as HTML: headline scores with range and chance, and a table of all.

A Space holds this file beside its app.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

from .score_explanations import ARROWS, DIRECTIONS, Explanation, format_value, read_labels

SCORE_STYLE = """
.headline { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(17rem, 100%), 1fr)); gap: .8rem; \
padding: 0 !important; margin: .3rem 0 !important; list-style: none !important; }
.headline > li { border: 1px solid var(--border-color-primary); border-radius: 10px; padding: .8rem 1rem; \
margin: 0 !important; background: var(--background-fill-primary); display: flex; flex-direction: column; gap: .35rem; }
.headline .name { font-weight: 600; display: flex; justify-content: space-between; gap: .6rem; \
align-items: baseline; }
.headline .value { font: 700 1.7rem/1.1 ui-sans-serif, system-ui, sans-serif; font-variant-numeric: tabular-nums; }
.headline .bounds, .headline .words { font-size: .84rem; line-height: 1.45; margin: 0; color: var(--body-text-color); }
.headline .range { position: relative; height: 8px; border-radius: 4px; background: var(--border-color-primary); \
margin: .25rem 0; }
.headline .range i { position: absolute; top: 0; height: 8px; border-radius: 4px; background: #b93c0a; }
.headline .range b { position: absolute; top: -4px; width: 3px; height: 16px; margin-left: -1px; border-radius: 1px; \
background: var(--body-text-color); opacity: .55; }
"""


def render_headline(explanations: Sequence[Explanation]) -> str:
    """Render headline scores as a list: name, value, range, and what each rewards and misses."""
    return f'<ul class="headline">{"".join(map(_render_one, explanations))}</ul>' if explanations else ""


def _render_one(shown: Explanation) -> str:
    low, high = shown.range
    direction = DIRECTIONS[shown.better]
    bounds = f"from {_format_bound(low, '−∞')} to {_format_bound(high, '∞')}, {direction}"
    chance = "" if shown.chance is None else f" · chance {format_value(shown.chance)}"
    words = " ".join(filter(None, (shown.rewards, shown.misses)))
    return (
        f'<li data-key="{html.escape(shown.key)}" data-value="{shown.value!r}">'
        f'<div class="name"><span>{html.escape(shown.label)} '
        f'<span aria-hidden="true">{ARROWS[shown.better]}</span></span>'
        f'<span class="value" title="{shown.value!r}">{format_value(shown.value)}</span></div>'
        + _render_range(shown)
        + f'<p class="bounds">{bounds}{chance}</p>'
        + (f'<p class="words">{html.escape(words)}</p>' if words else "")
        + "</li>"
    )


def _format_bound(bound: float | None, unbounded: str) -> str:
    return unbounded if bound is None else f"{bound:g}".replace("-", "−")


def _render_range(shown: Explanation) -> str:
    """Render the range as a bar from 0 (or the least value) to the value, with a mark for chance."""
    low, high = shown.range
    if low is None or high is None or not math.isfinite(shown.value):
        return ""

    def place(value: float) -> float:
        return 100 * min(max((value - low) / (high - low), 0), 1)

    start, end = sorted((place(max(low, 0)), place(shown.value)))
    mark = "" if shown.chance is None else f'<b class="chance" style="left:{place(shown.chance):.1f}%"></b>'
    bar = f'<i style="left:{start:.1f}%;width:{max(end - start, 0.8):.1f}%"></i>'
    return f'<div class="range" aria-hidden="true">{bar}{mark}</div>'


def format_score(value: float) -> str:
    """Format a score for the table."""
    return repr(value) if isinstance(value, (int, bool)) or not math.isfinite(value) else f"{value:.6g}"


def render_table(scores: Mapping[str, Any]) -> str:
    """Render the flat numbers of a result as an HTML table: name, key, value, and intervals if any score has one."""
    numbers = {key: value for key, value in scores.items() if isinstance(value, (int, float))}
    intervals = {key: scores[f"{key}_ci"] for key in numbers if scores.get(f"{key}_ci")}
    labels = read_labels()
    heads = ["score", "key", "value", *(["interval"] if intervals else [])]
    lines = ["<tr>" + "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr>"]
    for key, value in numbers.items():
        label, better = labels.get(key, (key.replace("_", " "), ""))
        cells = [html.escape(key), format_score(value)]
        cells += [" – ".join(map(format_score, intervals.get(key, ())))] if intervals else []
        row = "".join(f"<td>{cell}</td>" for cell in cells)
        lines.append(f'<tr><th scope="row">{html.escape(label)} {ARROWS[better]}</th>{row}</tr>')
    return f"<table>{''.join(lines)}</table>"
