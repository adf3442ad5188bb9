"""Table 3 of the bilingual benchmark's paper, recomputed from a built folder: pairs, rationale length ratio, sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eraser_hub.conversion.built import open_built
from eraser_hub.papers import load_paper
from eraser_hub.records.tables import Cell, Table, Tables

from .configs import CONFIGS
from .rows import NOT_NULL, SCHEMA

COLUMNS = ("id", "tokens", "sample_type", "rel_ids", "rationale_ids", "has_gold", "rationale_ratio")
LANGUAGES = {"en": "English", "zh": "Chinese"}
TASKS = {"senti": "sentiment analysis", "similarity": "textual similarity", "mrc": "reading comprehension"}


def summarize(rows: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Compute the figures of Table 3 for rows of one configuration, and the counts behind them.

    Args:
        rows: the rows of the configuration.

    Returns:
        ``rows``, ``originals``, ``perturbed``, ``with_rationales``: numbers of rows. ``pairs``: number of (original,
        perturbed) with both rows present, the paper's Size. ``tokens``: mean number per input. ``rationale_percent``:
        mean over rows of (tokens in any set) / (tokens), the paper's RLR; None without gold.
        ``rationale_percent_of_one_set``: the same for the mean set. ``sets``: mean number of sets per sequence with a
        set, the paper's RSN.
    """
    ids = {row["id"] for row in rows}
    ratios: list[float] = []
    of_sets: list[float] = []
    numbers: list[float] = []
    for row in rows:
        length = sum(map(len, row["tokens"]))
        if row["rationale_ids"] is None or not length:
            continue
        sequences = [[set(chosen) for chosen in sets] for sets in row["rationale_ids"]]
        ratios.append(sum(len(set().union(*sets)) for sets in sequences) / length)
        of_sets.append(sum(sum(map(len, sets)) / len(sets) for sets in sequences if sets) / length)
        with_sets = [len(sets) for sets in sequences if sets]
        if with_sets:
            numbers.append(sum(with_sets) / len(with_sets))
    return {
        "rows": len(rows),
        "originals": sum(row["sample_type"] == "ori" for row in rows),
        "perturbed": sum(row["sample_type"] == "disturb" for row in rows),
        "with_rationales": sum(bool(row["has_gold"]) for row in rows),
        "pairs": sum(rel_id in ids for row in rows if row["sample_type"] == "ori" for rel_id in row["rel_ids"] or ()),
        "tokens": _compute_mean([sum(map(len, row["tokens"])) for row in rows]) or 0.0,
        "rationale_percent": _compute_mean(ratios, 100),
        "rationale_percent_of_one_set": _compute_mean(of_sets, 100),
        "sets": _compute_mean(numbers),
    }


def _compute_mean(values: Sequence[float], times: int = 1) -> float | None:
    return times * (sum(values) / len(values)) if values else None


def _read_overviews(folder: Path, configs: Sequence[str] | None = None) -> dict[str, dict[str, float | None]]:
    built = open_built(folder)
    return {name: summarize(built.rows(name, "test", COLUMNS, SCHEMA, NOT_NULL)) for name in built.chosen(configs)}


def _make_table_three(overviews: Mapping[str, Mapping[str, float | None]]) -> Table:
    printed = load_paper("wang_2022").tables["table_3"]
    columns = ("pairs", "rationale_percent", "rationale_percent_of_one_set", "sets")
    table = Table("table_3", printed.title, ("config",), columns, printed.source)
    for name, figures in overviews.items():
        table.add(name, **{key: Cell(figures[key], printed.row(name).get(key)) for key in columns})
    table.notes.append(
        "Rationale %: mean over the rows with gold of the share of tokens that stand in any set; of one set: the mean "
        "set's share. The paper does not say which of the two it prints."
    )
    return table


def make_tables(folder: Path, configs: Sequence[str] | None = None, raw: Path | None = None) -> Tables:
    """Return Table 3 of a built folder, and the numbers of rows; ``raw`` is not used."""
    overviews = _read_overviews(folder, configs)
    columns = ("rows", "originals", "perturbed", "with_rationales", "tokens")
    counts = Table("rows", "Rows", ("config", "language", "task"), columns, "no paper counts them")
    for name, figures in overviews.items():
        config = CONFIGS[name]
        counts.add(name, LANGUAGES[config.language], TASKS[config.task], **{key: Cell(figures[key]) for key in columns})
    return Tables("bilingual_perturbation", [_make_table_three(overviews), counts])


def make_card_tables(folder: Path) -> dict[str, str]:
    """Return the tables of the card: marker -> markdown."""
    overviews = _read_overviews(folder)
    splits = [
        "| config | language | task | rows | originals | perturbed | with rationales |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for name, figures in overviews.items():
        words = (f"`{name}`", LANGUAGES[CONFIGS[name].language], TASKS[CONFIGS[name].task])
        counts = (f"{figures[key]:,}" for key in ("rows", "originals", "perturbed", "with_rationales"))
        splits.append(f"| {' | '.join((*words, *counts))} |")
    table3 = Tables("bilingual_perturbation", [_make_table_three(overviews)])
    return {"splits": "\n".join(splits), "table 3": table3.written("markdown")}
