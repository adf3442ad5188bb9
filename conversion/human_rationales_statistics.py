"""Table 2 of "Evaluating and Characterizing Human Rationales", recomputed from a built folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .small_dataset import read_release, read_split

COLUMNS = ("label", "rationale_mask", "rationale_scores")
# text length, rationale length, rationale ratio
TABLE2 = {"sst": (19.3, 6.5, 0.346), "wikiattack": (51.8, 6.5, 0.191)}


@dataclass(frozen=True, slots=True)
class Lengths:
    """Means over rows.

    Attributes:
        rows: how many.
        text_length: tokens.
        rationale_length, rationale_ratio: tokens in the mask, and their share.
        score_length, score_ratio: sum of the scores (for trees ``|sentiment| / 2`` of the token's phrase), and their mean.
    """

    rows: int
    text_length: float
    rationale_length: float
    rationale_ratio: float
    score_length: float
    score_ratio: float


def lengths(rows: Sequence[Mapping[str, Any]]) -> Lengths:
    """The figures of rows (at least one). A row without tokens counts with ratio 0."""
    count = len(rows)
    masks = [row["rationale_mask"] for row in rows]
    scores = [row["rationale_scores"] for row in rows]
    return Lengths(
        rows=count,
        text_length=sum(map(len, masks)) / count,
        rationale_length=sum(map(sum, masks)) / count,
        rationale_ratio=sum(sum(mask) / len(mask) for mask in masks if mask) / count,
        score_length=sum(map(sum, scores)) / count,
        score_ratio=sum(sum(score) / len(score) for score in scores if score) / count,
    )


def lengths_by_split(folder: Path, configs: Sequence[str] | None = None) -> dict[tuple[str, str], Lengths]:
    """(configuration, split) -> figures; the split ``all`` is over all rows, as in the paper."""
    found: dict[tuple[str, str], Lengths] = {}
    for config, facts in read_release(folder).items():
        if configs is not None and config not in configs:
            continue
        together: list[dict[str, Any]] = []
        for file in facts["files"]:
            if file["split"]:
                rows = read_split(folder, config, file["split"], COLUMNS)
                found[config, file["split"]] = lengths(rows)
                together += rows
        found[config, "all"] = lengths(together)
    return found


def card_tables(folder: Path, configs: Sequence[str]) -> dict[str, str]:
    """The tables of the card: marker -> markdown."""
    seen = lengths_by_split(folder, configs)
    splits = ["| config | split | rows |", "|---|---|---:|"]
    table2 = [
        "| config | text length | paper | rationale length: mask, scores | paper | rationale ratio: mask, scores | paper |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for (config, split), figures in seen.items():
        if split != "all":
            splits.append(f"| `{config}` | `{split}` | {figures.rows:,} |")
            continue
        text, length, ratio = TABLE2[config]
        table2.append(
            f"| `{config}` | {figures.text_length:.1f} | {text} | {figures.rationale_length:.1f}, {figures.score_length:.1f} "
            f"| {length} | {figures.rationale_ratio:.1%}, {figures.score_ratio:.1%} | {ratio:.1%} |"
        )
    skipped = [
        f"- `{file['file']}` ({config}): {count:,} {reason}"
        for config, facts in read_release(folder).items()
        if config in configs
        for file in facts["files"]
        for reason, count in file["skipped"].items()
    ]
    return {"splits": "\n".join(splits), "table 2": "\n".join(table2), "skipped": "\n".join(skipped) or "- nothing"}
