"""Table 3 of the bilingual benchmark's paper, recomputed from a built folder: pairs, rationale length ratio, sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eraser_hub.papers import paper
from eraser_hub.records.built import open_built
from eraser_hub.records.tables import Cell, Table, Tables

from .configs import CONFIGS
from .rows import SCHEMA, WHOLE

COLUMNS = ("id", "tokens", "sample_type", "rel_ids", "rationale_ids", "has_gold", "rationale_ratio")
LANGUAGES = {"en": "English", "zh": "Chinese"}
TASKS = {"senti": "sentiment analysis", "similarity": "textual similarity", "mrc": "reading comprehension"}


@dataclass(frozen=True, slots=True)
class Overview:
    """What Table 3 says of a configuration, and the counts behind it.

    Attributes:
        rows, originals, perturbed, gold: numbers of rows; ``gold`` those with rationales.
        pairs: (original, perturbed) pairs of which both rows are there; the paper's Size.
        tokens: mean number of tokens an input.
        length_ratio: mean over rows of (tokens in any set) / (tokens); the paper's RLR. None without gold.
        set_ratio: the same for a set alone: mean over rows of the mean set's length / tokens.
        sets: mean number of sets a sequence, sequences without any left out; the paper's RSN.
    """

    rows: int
    originals: int
    perturbed: int
    gold: int
    pairs: int
    tokens: float
    length_ratio: float | None
    set_ratio: float | None
    sets: float | None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def overview(rows: Sequence[Mapping[str, Any]]) -> Overview:
    """The figures of rows of one configuration."""
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
    return Overview(
        rows=len(rows),
        originals=sum(row["sample_type"] == "ori" for row in rows),
        perturbed=sum(row["sample_type"] == "disturb" for row in rows),
        gold=sum(bool(row["has_gold"]) for row in rows),
        pairs=sum(rel_id in ids for row in rows if row["sample_type"] == "ori" for rel_id in row["rel_ids"] or ()),
        tokens=_mean([sum(map(len, row["tokens"])) for row in rows]) or 0.0,
        length_ratio=_mean(ratios),
        set_ratio=_mean(of_sets),
        sets=_mean(numbers),
    )


def overviews(folder: Path, configs: Sequence[str] | None = None) -> dict[str, Overview]:
    """Configuration -> figures, of a built folder."""
    built = open_built(folder)
    return {name: overview(built.rows(name, "test", COLUMNS, SCHEMA, WHOLE)) for name in built.chosen(configs)}


def tables(figures_by_config: Mapping[str, Overview]) -> Tables:
    """The figures of configurations beside the paper's Table 3."""
    printed = paper("wang_2022").tables["table_3"]
    columns = ("pairs", "rationale_percent", "rationale_percent_of_one_set", "sets")
    table = Table("table_3", printed.title, ("config",), columns, printed.source)
    for name, figures in figures_by_config.items():
        row = printed.row(name)
        table.add(
            name,
            pairs=Cell(figures.pairs, row["pairs"]),
            rationale_percent=Cell(_percent(figures.length_ratio), row["rationale_percent"]),
            rationale_percent_of_one_set=Cell(_percent(figures.set_ratio)),
            sets=Cell(figures.sets, row["sets"]),
        )
    table.notes.append(
        "Rationale %: mean over the rows with gold of the share of tokens that stand in any set; of one set: the mean "
        "set's share. The paper does not say which of the two it prints."
    )
    counts = Table(
        "rows",
        "Rows",
        ("config", "language", "task"),
        ("rows", "originals", "perturbed", "with_rationales", "tokens"),
        "no paper counts them",
    )
    for name, figures in figures_by_config.items():
        counts.add(
            *(name, LANGUAGES[CONFIGS[name].language], TASKS[CONFIGS[name].task]),
            rows=Cell(figures.rows),
            originals=Cell(figures.originals),
            perturbed=Cell(figures.perturbed),
            with_rationales=Cell(figures.gold),
            tokens=Cell(figures.tokens),
        )
    return Tables("bilingual_perturbation", [table, counts])


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else 100 * ratio


def bilingual_perturbation_statistics(
    folder: Path, configs: Sequence[str] | None = None, raw: Path | None = None
) -> Tables:
    """Table 3 of a built folder; ``raw`` tells no more."""
    return tables(overviews(folder, configs))


def card_tables(folder: Path) -> dict[str, str]:
    """The tables of the card: marker -> markdown."""
    figures_by_config = overviews(folder)
    splits = [
        "| config | language | task | rows | originals | perturbed | with rationales |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for name, figures in figures_by_config.items():
        config = CONFIGS[name]
        splits.append(
            f"| `{name}` | {LANGUAGES[config.language]} | {TASKS[config.task]} | {figures.rows:,} "
            f"| {figures.originals:,} | {figures.perturbed:,} | {figures.gold:,} |"
        )
    table3 = Tables("bilingual_perturbation", tables(figures_by_config).tables[:1])
    return {"splits": "\n".join(splits), "table 3": table3.written("markdown")}
