"""Groups of a board: lines stand together only if they are scores of the same split of the same data.

A line scored here is of the data whose digest it has. A printed line has no digest, so that a paper's lines are a group
of their own beside lines scored here.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from eraser_hub.metrics.data_digest import shorten_digest
from eraser_hub.papers import COMPREHENSIVE, find_comprehensive

from ..board_lines import BoardLine

SplitData = tuple[str, str]  # a split, and the digest of its data


def group_lines(lines: Sequence[BoardLine]) -> list[BoardLine]:
    """Return the lines with the name of their group, and what tells a sample from the release's split."""
    scored: dict[str, dict[SplitData, None]] = {}
    for line in lines:
        if line.kind == "scored":
            scored.setdefault(line.dataset, {})[line.split, line.data] = None
    return [_name_group(line, scored.get(line.dataset, {})) for line in lines]


def _name_group(line: BoardLine, scored: Collection[SplitData]) -> BoardLine:
    """Return a line in its group; ``scored`` has the splits and data of the dataset's lines that were scored here."""
    if line.kind == "published":
        if not scored:
            return replace(line, group=line.dataset)
        return replace(line, group=f"{line.dataset}, printed", apart=_explain_print(line, scored))
    parts = [line.dataset]
    if len({split for split, _ in scored}) > 1:
        parts.append(line.split or "split unknown")
    if len({data for split, data in scored if split == line.split}) > 1:
        parts.append(f"data:{shorten_digest(line.data)}")
    return replace(line, group=", ".join(parts), sample=describe_sample(line))


def _explain_print(line: BoardLine, scored: Collection[SplitData]) -> str:
    """Return why a printed line stands apart from lines of the dataset that were scored here."""
    splits = sorted({*(split for split, _ in scored), line.split})
    gold = {split: COMPREHENSIVE[find_comprehensive(line.dataset, split)] for split in splits}
    words = {split: f"{split or 'an unknown split'}, {gold[split]}" for split in splits}
    others = "; ".join(words[split] for split in splits if split != line.split)
    if others:
        return f"gold of {words[line.split]}: not beside lines of {line.dataset} scored on other gold ({others})"
    return f"printed figures of {words[line.split]}: their data have no digest"


def describe_sample(line: BoardLine) -> str:
    """Return how the data of a line differ from the release's split; "" if they do not, or if that is not known."""
    pin = _read_pins().get(line.dataset, {}).get(line.split)
    if pin is None or not line.data or line.data == pin["digest"]:
        return ""
    whole = int(pin["num_examples"])
    if line.instances is not None and line.instances < whole:
        return f"a sample: {line.instances:,} annotations, the release has {whole:,}"
    return "other data than the release's"


@cache
def _read_pins() -> dict[str, dict[str, dict[str, Any]]]:
    """Return config -> split -> the release's number of annotations and digest."""
    text = resources.files("eraser_hub.conversion.eraser").joinpath("pins.json").read_text(encoding="utf-8")
    pins: dict[str, dict[str, dict[str, Any]]] = json.loads(text)
    return pins
