"""The prose of ``eraser``'s card, with what depends on the build filled in: splits, licences, the paper's Table 5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eraser_hub.papers import paper
from eraser_hub.records.errors import DataError
from eraser_hub.records.tables import Cell

from .configs import CONFIGS

MARKS = ("splits", "table 5", "licences")


def filled_prose(prose: str, release: Mapping[str, Any]) -> str:
    """The prose with its marks ``<!-- splits -->``, ``<!-- table 5 -->`` and ``<!-- licences -->`` replaced by tables.

    Args:
        prose: the card's text below the YAML.
        release: config -> its entry in ``release.json``, with splits and their numbers of rows.

    Raises:
        DataError: a mark is missing.
    """
    tables = {"splits": _splits(release), "table 5": _table_five(release), "licences": _licences(release)}
    for mark in MARKS:
        if f"<!-- {mark} -->" not in prose:
            raise DataError(f"expected the mark <!-- {mark} --> in the card's prose, found none")
        prose = prose.replace(f"<!-- {mark} -->", tables[mark])
    return prose


def _built(release: Mapping[str, Any]) -> list[str]:
    return [name for name in CONFIGS if name in release]


def _splits(release: Mapping[str, Any]) -> str:
    main = ("train", "validation", "test")
    lines = ["| config | train | validation | test | further splits |", "|---|---:|---:|---:|---|"]
    for name in _built(release):
        rows = {split: facts["num_examples"] for split, facts in release[name]["splits"].items()}
        cells = [f"{rows[split]:,}" if split in rows else "–" for split in main]
        further = ", ".join(f"`{split}` {count:,}" for split, count in rows.items() if split not in main) or "–"
        lines.append(f"| `{name}` | {' | '.join(cells)} | {further} |")
    return "\n".join(lines)


def _table_five(release: Mapping[str, Any]) -> str:
    lines = [
        "| config | split | documents | instances | rationale % | evidence statements | evidence length |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    printed = paper("eraser_acl_2020").tables["table_5"]
    columns = ("documents", "instances", "rationale_percent", "evidences", "evidence_length")
    for name in _built(release):
        of_paper = [split for config, split in printed.rows if config == name]
        built = release[name]["splits"]
        # what the paper prints of a split that this folder lacks stands in brackets alone
        for split in dict.fromkeys([*of_paper, *built]):
            figures, row = built.get(split, {}).get("statistics", {}), printed.row(name, split)
            digits = {"rationale_percent": 2}
            cells = [str(Cell(figures.get(c), row.get(c), digits.get(c, 1))) for c in columns]
            lines.append(f"| `{name}` | {split} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _licences(release: Mapping[str, Any]) -> str:
    lines = ["| config | licence | |", "|---|---|---|"]
    for name in _built(release):
        lines.append(f"| `{name}` | {CONFIGS[name].license} | {CONFIGS[name].license_note} |")
    return "\n".join(lines)
