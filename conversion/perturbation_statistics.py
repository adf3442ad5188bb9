"""Table 3 of the bilingual benchmark's paper, recomputed from a built folder: pairs, rationale length ratio, sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .perturbation_configs import CONFIGS
from .small_dataset import read_release, read_split

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
    there = read_release(folder)
    return {
        name: overview(read_split(folder, name, "test", COLUMNS))
        for name in CONFIGS
        if name in there and (configs is None or name in configs)
    }


def _cell(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def card_tables(folder: Path, configs: Sequence[str]) -> dict[str, str]:
    """The tables of the card: marker -> markdown."""
    seen = overviews(folder, configs)
    splits = [
        "| config | language | task | rows | originals | perturbed | with rationales |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    table3 = [
        "| config | pairs | paper | rationale length ratio | paper | rationale sets | paper |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, figures in seen.items():
        config = CONFIGS[name]
        size, ratio, sets = config.table3
        splits.append(
            f"| `{name}` | {LANGUAGES[config.language]} | {TASKS[config.task]} | {figures.rows:,} "
            f"| {figures.originals:,} | {figures.perturbed:,} | {figures.gold:,} |"
        )
        table3.append(
            f"| `{name}` | {figures.pairs:,} | {size:,} | {_cell(figures.length_ratio, '.1%')} | {ratio:.1%} "
            f"| {_cell(figures.sets, '.1f')} | {sets:.1f} |"
        )
    return {"splits": "\n".join(splits), "table 3": "\n".join(table3)}
