"""Groups of a board: lines stand together only if they are scores of the same split of the same data.

A line scored here is of the data whose digest it has. A printed line has no digest, so that a paper's lines are a group
of their own beside lines scored here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eraser_hub.papers import COMPREHENSIVE, find_comprehensive, read_released_gold
from eraser_hub.records.files import shorten_digest

from .board_lines import BoardLine

SplitData = tuple[str, str]  # a split, and the digest of its data


def group_lines(lines: Sequence[BoardLine]) -> list[BoardLine]:
    """Return the lines with the name of their group, and what tells a sample from the release's split."""
    scored, released = dict[str, dict[SplitData, None]](), read_released_gold()
    for line in lines:
        if line.kind == "scored":
            scored.setdefault(line.dataset, {})[line.split, line.data] = None
    return [
        _name_group(line, scored.get(line.dataset, {}), released.get(line.dataset, {}).get(line.split))
        for line in lines
    ]


def _name_group(line: BoardLine, scored: Collection[SplitData], released: Mapping[str, Any] | None) -> BoardLine:
    """Return a line in its group.

    Args:
        line: the line.
        scored: the splits and data of the dataset's lines that were scored here.
        released: digest of the gold and number of annotations of the release's split, if they are known.
    """
    if line.kind == "published":
        if not scored:
            return replace(line, group=line.dataset)
        return replace(line, group=f"{line.dataset}, printed", apart=_explain_print(line, scored))
    parts = [line.dataset]
    if len({split for split, _ in scored}) > 1:
        parts.append(line.split or "split unknown")
    if len({data for split, data in scored if split == line.split}) > 1:
        parts.append(f"data:{shorten_digest(line.data)}")
    sample = ""
    if released is not None and line.data not in ("", released["digest"]):
        sample = "other data than the release's"
        if line.instances is not None and line.instances < released["num_examples"]:
            sample = f"a sample: {line.instances:,} annotations, the release has {released['num_examples']:,}"
    return replace(line, group=", ".join(parts), sample=sample)


def _explain_print(line: BoardLine, scored: Collection[SplitData]) -> str:
    """Return why a printed line stands apart from lines of the dataset that were scored here."""
    splits = sorted({*(split for split, _ in scored), line.split})
    gold = {split: COMPREHENSIVE[find_comprehensive(line.dataset, split)] for split in splits}
    words = {split: f"{split or 'an unknown split'}, {gold[split]}" for split in splits}
    others = "; ".join(words[split] for split in splits if split != line.split)
    if others:
        return f"gold of {words[line.split]}: not beside lines of {line.dataset} scored on other gold ({others})"
    return f"printed figures of {words[line.split]}: their data have no digest"
