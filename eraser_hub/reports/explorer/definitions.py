"""Definitions of scores for a report's reader: meaning, formula, range, direction, and this data's numbers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from eraser_hub.scoring.result import Scores

from ..catalogue import format_number, metric
from ..report_tables import make_score_cell
from ..score_ranges import find_range

_PRF = re.compile(r"^(token|sentence|exact|iou)_(micro|macro|matched)_(p|r|f1)$")
_UNITS = {
    "token": "Overlap of selected and marked tokens",
    "sentence": "Overlap of selected and marked sentences",
    "exact": "Spans that are exactly those that people marked",
    "iou": "Spans that overlap a marked span by at least half (intersection over union)",
}
_PARTS = {"p": "right / selected", "r": "found / marked", "f1": "2PR / (P + R)"}
_MEANS = {
    "micro": "over all texts together",
    "macro": "P and R of each text, their means over texts",
    "matched": "each span matched once, over all texts together",
}
_DIRECTIONS = {"higher": "higher is better", "lower": "lower is better", "": "neither direction is better as such"}
_FILES = resources.files("eraser_hub.reports.explorer")
_WORDS: dict[str, list[str]] = json.loads((_FILES / "definitions.json").read_bytes())  # key -> meaning and formula
_JUDGED: dict[str, list[str]] = json.loads(
    (_FILES / "rewards.json").read_bytes()
)  # key -> what it rewards, what it misses
SHOWN = 4  # systems whose numbers a definition repeats


@dataclass(frozen=True, slots=True)
class Definition:
    """A score's definition.

    Attributes:
        key: the key in score files.
        label: its name.
        meaning, formula: in words; "" where only the documentation has them.
        facts: direction and range.
        numbers: a line for each system with this data's numbers.
    """

    key: str
    label: str
    meaning: str
    formula: str
    facts: str
    numbers: tuple[str, ...]


def describe_score(key: str) -> tuple[str, str]:
    """Return meaning and formula of a score; a threshold and a baseline are added in words.

    >>> describe_score("token_macro_p")
    ('Overlap of selected and marked tokens.', 'right / selected; P and R of each text, their means over texts')
    """
    whole, _, threshold = key.partition("@")
    base = whole.removesuffix("_random")
    of_tokens = base.removeprefix("sentence_")
    if match := _PRF.match(base):
        unit, mean, part = match.groups()
        meaning, formula = f"{_UNITS[unit]}.", f"{_PARTS[part]}; {_MEANS[mean]}"
    elif base in _WORDS or of_tokens in _WORDS:
        meaning, formula = _WORDS.get(base) or _WORDS[of_tokens]
        meaning = meaning if base in _WORDS else f"Of sentences instead of tokens. {meaning}"
    else:
        return "", ""
    meaning += f" At {threshold}." if threshold else ""
    return meaning + " Here the scores of tokens are shuffled, as a baseline." * (base != whole), formula


def define_score(key: str, systems: Sequence[Scores]) -> Definition:
    """Return a score's definition with the numbers of the first systems that have it."""
    low, high = find_range(key)
    ends = [
        f"{'−' * (end < 0)}∞" if math.isinf(end) else format_number(end, 0).replace("-", "−") for end in (low, high)
    ]
    meaning, formula = describe_score(key)
    rewards, misses = _JUDGED.get(key, ("", ""))
    having = [system for system in systems if system.number(key) is not None]
    numbers = []
    for system in having[:SHOWN]:
        cell = make_score_cell(system, key, count=False)
        counted = [value for value in system.per_instance.get(key, ()) if value is not None and math.isfinite(value)]
        count = f" over {len(counted)} texts" if counted else ""
        numbers.append(f"{system.name}: {cell.text}{count}{f' · {cell.small}' if cell.small else ''}")
    if len(having) > SHOWN:
        numbers.append(f"and {len(having) - SHOWN} more systems")
    facts = f"{_DIRECTIONS[metric(key).better]}; from {ends[0]} to {ends[1]}"
    meaning = " ".join(filter(None, (meaning, rewards, misses)))
    return Definition(key, metric(key).label, meaning, formula, facts, tuple(numbers))
