"""Table 2 of "Evaluating and Characterizing Human Rationales", recomputed from a built folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eraser_hub.conversion.dataset import read_release
from eraser_hub.conversion.small_dataset import Entry
from eraser_hub.papers import paper
from eraser_hub.records.built import open_built
from eraser_hub.records.tables import Cell, Table, Tables

from .rows import LABEL_NAMES, SCHEMA

COLUMNS = ("label", "rationale_mask", "rationale_scores")


@dataclass(frozen=True, slots=True)
class MeanLengths:
    """Means over rows.

    Attributes:
        rows: how many.
        text_length: tokens.
        rationale_length, rationale_ratio: tokens in the mask, and their share.
        score_length, score_ratio: sum of the scores (of a tree's token ``|sentiment| / 2`` of its phrase), and mean.
    """

    rows: int
    text_length: float
    rationale_length: float
    rationale_ratio: float
    score_length: float
    score_ratio: float


def lengths(rows: Sequence[Mapping[str, Any]]) -> MeanLengths:
    """The figures of rows (at least one). A row without tokens counts with ratio 0."""
    count = len(rows)
    masks = [row["rationale_mask"] for row in rows]
    scores = [row["rationale_scores"] for row in rows]
    return MeanLengths(
        rows=count,
        text_length=sum(map(len, masks)) / count,
        rationale_length=sum(map(sum, masks)) / count,
        rationale_ratio=sum(sum(mask) / len(mask) for mask in masks if mask) / count,
        score_length=sum(map(sum, scores)) / count,
        score_ratio=sum(sum(score) / len(score) for score in scores if score) / count,
    )


def lengths_by_split(folder: Path, configs: Sequence[str] | None = None) -> dict[tuple[str, str], MeanLengths]:
    """(configuration, split) -> figures; the split ``all`` is over all rows, as in the paper."""
    built = open_built(folder)
    figures: dict[tuple[str, str], MeanLengths] = {}
    for config in built.chosen(configs):
        together: list[dict[str, Any]] = []
        for split in built.splits(config):
            rows = built.rows(config, split, COLUMNS, SCHEMA, COLUMNS[1:])
            figures[config, split] = lengths(rows)
            together += rows
        figures[config, "all"] = lengths(together)
    return figures


def tables(
    figures_by_split: Mapping[tuple[str, str], MeanLengths],
    by_class: Mapping[tuple[str, str], tuple[int, float]] | None = None,
) -> Tables:
    """The figures beside the paper's Table 2, which is over all splits, and its Figure 1."""
    printed = paper("carton_2020").tables["table_2"]
    columns = ("rows", "text_length", "rationale_length", "rationale_percent", "score_length", "score_percent")
    table = Table("table_2", printed.title, ("config", "split"), columns, printed.source)
    for (config, split), figures in figures_by_split.items():
        row = printed.row(config) if split == "all" else {}
        length, ratio = row.get("rationale_length"), row.get("rationale_percent")
        # what the paper prints of the trees follows the scores; of the masks the two are the same
        by_scores = config == "sst"
        table.add(
            *(config, split),
            rows=Cell(figures.rows),
            text_length=Cell(figures.text_length, row.get("text_length")),
            rationale_length=Cell(figures.rationale_length, None if by_scores else length),
            rationale_percent=Cell(100 * figures.rationale_ratio, None if by_scores else ratio),
            score_length=Cell(figures.score_length, length if by_scores else None),
            score_percent=Cell(100 * figures.score_ratio, ratio if by_scores else None),
        )
    table.notes.append(
        "Rationale: tokens in the mask. Score: sum of rationale_scores, for trees half the magnitude of the token's "
        "phrase; its figures, not the mask's, are near those that the paper prints for SST."
    )
    classes = paper("carton_2020").tables["figure_1"]
    figure = Table("figure_1", classes.title, ("config", "label"), ("rows", "rationale_percent"), classes.source)
    for (config, label), (count, share) in (by_class or {}).items():
        about = classes.row(config, label).get("rationale_percent")
        figure.add(config, label, rows=Cell(count), rationale_percent=Cell(share, about))
    return Tables("human_rationales", [each for each in (table, figure) if each.rows])


def human_rationales_statistics(folder: Path, configs: Sequence[str] | None = None, raw: Path | None = None) -> Tables:
    """Table 2 and Figure 1 of a built folder; ``raw`` tells no more."""
    return tables(lengths_by_split(folder, configs), shares_by_class(folder, configs))


def shares_by_class(folder: Path, configs: Sequence[str] | None = None) -> dict[tuple[str, str], tuple[int, float]]:
    """(configuration, label) -> (rows, mean share of the text in the mask, per cent), of rows with a label."""
    built = open_built(folder)
    shares: dict[tuple[str, str], tuple[int, float]] = {}
    for config in built.chosen(configs):
        rows = [
            row for split in built.splits(config) for row in built.rows(config, split, COLUMNS, SCHEMA, COLUMNS[1:])
        ]
        for number, label in enumerate(LABEL_NAMES[config]["label"]):
            own = [
                sum(row["rationale_mask"]) / max(len(row["rationale_mask"]), 1)
                for row in rows
                if row["label"] == number
            ]
            if own:
                shares[config, label] = (len(own), 100 * sum(own) / len(own))
    return shares


def card_tables(folder: Path) -> dict[str, str]:
    """The tables of the card: marker -> markdown."""
    figures_by_split = lengths_by_split(folder)
    splits = ["| config | split | rows |", "|---|---|---:|"]
    splits += [
        f"| `{config}` | `{split}` | {figures.rows:,} |"
        for (config, split), figures in figures_by_split.items()
        if split != "all"
    ]
    skipped = [
        f"- `{file['file']}` ({config}): {count:,} {reason}"
        for config, facts in read_release(folder, Entry).items()
        for file in facts["files"]
        for reason, count in file["skipped"].items()
    ]
    return {
        "splits": "\n".join(splits),
        "table 2": tables(figures_by_split).written("markdown"),
        "skipped": "\n".join(skipped) or "- nothing",
    }
