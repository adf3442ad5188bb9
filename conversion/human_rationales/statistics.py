"""Table 2 and Figure 1 of "Evaluating and Characterizing Human Rationales", recomputed from a built folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eraser_hub.conversion.built import open_built
from eraser_hub.conversion.dataset import read_release
from eraser_hub.conversion.small_dataset import Entry
from eraser_hub.papers import load_paper
from eraser_hub.records.tables import Cell, Table, Tables

from .rows import LABEL_NAMES, SCHEMA

COLUMNS = ("label", "rationale_mask", "rationale_scores")
Rows = Sequence[Mapping[str, Any]]


def read_rows_by_split(folder: Path, configs: Sequence[str] | None = None) -> dict[tuple[str, str], Rows]:
    """Read (configuration, split) -> rows; ``all`` has the rows of all splits; empty ones are left out."""
    built = open_built(folder)
    rows: dict[tuple[str, str], Rows] = {}
    for config in built.chosen(configs):
        parts = {split: built.rows(config, split, COLUMNS, SCHEMA, COLUMNS[1:]) for split in built.splits(config)}
        parts["all"] = [row for part in parts.values() for row in part]
        rows |= {(config, split): part for split, part in parts.items() if part}
    return rows


def make_table_two(rows: Mapping[tuple[str, str], Rows]) -> Table:
    """Return the lengths with those of the paper's Table 2, which is over all splits.

    They are means over the rows; a row without tokens counts with the share 0. ``text_length``: tokens.
    ``rationale_length``, ``rationale_percent``: tokens in the mask, and their share. ``score_length``,
    ``score_percent``: sum and mean of the scores, of a tree token ``|sentiment| / 2`` of its phrase.
    """
    printed = load_paper("carton_2020").tables["table_2"]
    columns = ("rows", "text_length", "rationale_length", "rationale_percent", "score_length", "score_percent")
    table = Table("table_2", printed.title, ("config", "split"), columns, printed.source)
    for (config, split), part in rows.items():
        row = printed.row(config) if split == "all" else {}
        # the paper's figures for trees match the scores; for masks, scores and mask are equal
        follows = "score" if config == "sst" else "rationale"
        about = {f"{follows}_{what}": row.get(f"rationale_{what}") for what in ("length", "percent")}
        about["text_length"], count = row.get("text_length"), len(part)
        figures: dict[str, float] = {"rows": count}
        figures["text_length"] = sum(len(row["rationale_mask"]) for row in part) / count
        for name, column in (("rationale", "rationale_mask"), ("score", "rationale_scores")):
            values = [row[column] for row in part]
            figures[f"{name}_length"] = sum(map(sum, values)) / count
            figures[f"{name}_percent"] = 100 * (sum(sum(value) / len(value) for value in values if value) / count)
        table.add(config, split, **{name: Cell(value, about.get(name)) for name, value in figures.items()})
    table.notes.append(
        "Rationale: tokens in the mask. Score: sum of rationale_scores, for trees half the magnitude of the token's "
        "phrase; its figures, not the mask's, are near those that the paper prints for SST."
    )
    return table


def make_figure_one(rows: Mapping[tuple[str, str], Rows]) -> Table:
    """Return the mean share of the text in the mask by label, with that of the paper's Figure 1."""
    printed = load_paper("carton_2020").tables["figure_1"]
    figure = Table("figure_1", printed.title, ("config", "label"), ("rows", "rationale_percent"), printed.source)
    for (config, split), part in rows.items():
        for number, label in enumerate(LABEL_NAMES[config]["label"] if split == "all" else ()):
            masks = [row["rationale_mask"] for row in part if row["label"] == number]
            if masks:
                share = 100 * sum(sum(mask) / max(len(mask), 1) for mask in masks) / len(masks)
                about = printed.row(config, label).get("rationale_percent")
                figure.add(config, label, rows=Cell(len(masks)), rationale_percent=Cell(share, about))
    return figure


def make_tables(folder: Path, configs: Sequence[str] | None = None, raw: Path | None = None) -> Tables:
    """Return Table 2 and Figure 1 of a built folder; ``raw`` is not used."""
    rows = read_rows_by_split(folder, configs)
    return Tables("human_rationales", [each for each in (make_table_two(rows), make_figure_one(rows)) if each.rows])


def make_card_tables(folder: Path) -> dict[str, str]:
    """Return the tables of the card: marker -> markdown."""
    rows = read_rows_by_split(folder)
    splits = [f"| `{config}` | `{split}` | {len(part):,} |" for (config, split), part in rows.items() if split != "all"]
    skipped = [
        f"- `{file['file']}` ({config}): {count:,} {reason}"
        for config, facts in read_release(folder, Entry).items()
        for file in facts["files"]
        for reason, count in file["skipped"].items()
    ]
    return {
        "splits": "\n".join(["| config | split | rows |", "|---|---|---:|", *splits]),
        "table 2": Tables("human_rationales", [make_table_two(rows)]).written("markdown"),
        "skipped": "\n".join(skipped) or "- nothing",
    }
