"""The prose of ``eraser``'s card, with what depends on the build filled in: splits, licences, the paper's Table 5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eraser_hub.papers import paper
from eraser_hub.records.errors import DataError, visible
from eraser_hub.records.tables import Cell

from .configs import CONFIGS, EraserConfig

MARKS = ("splits", "own corpora", "table 5", "licences")


def filled_prose(prose: str, release: Mapping[str, Any], facts: Mapping[str, EraserConfig]) -> str:
    """The prose with its marks, as ``<!-- splits -->``, replaced by tables.

    Args:
        prose: the card's text below the YAML, with each of `MARKS`.
        release: config -> its entry in ``release.json``, with splits and their numbers of rows.
        facts: config -> its facts, in the card's order.

    Raises:
        DataError: a mark is missing.
    """
    tables = (_splits(release, facts), _own(facts), _table_five(release, facts), _licences(facts))
    for mark, table in zip(MARKS, tables, strict=True):
        comment = f"<!-- {mark} -->"
        if comment not in prose:
            raise DataError(f"expected the mark {comment} in the card's prose, found none")
        prose = prose.replace(comment if table else f"{comment}\n\n", table)
    return prose


def _own(facts: Mapping[str, EraserConfig]) -> str:
    """The corpora of one's own: labels, languages and citations; nothing where there are none."""
    own = [config for name, config in facts.items() if name not in CONFIGS]
    if not own:
        return ""
    lines = ["Corpora of this folder's own:", "", "| config | labels | languages |", "|---|---|---|"]
    for config in own:
        labels = " ".join(f"`{_cell(label)}`" for label in config.label_names)
        lines.append(f"| `{config.name}` | {labels} | {', '.join(config.language) or '–'} |")
    for config in own:
        lines += ["", "```bibtex", *map(_cell, config.citation.splitlines()), "```"] if config.citation else []
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Words that neither a table's cell nor a fenced block ends at."""
    return visible(text).replace("|", "\\|").replace("`", "'")


def _splits(release: Mapping[str, Any], facts: Mapping[str, EraserConfig]) -> str:
    main = ("train", "validation", "test")
    lines = ["| config | train | validation | test | further splits |", "|---|---:|---:|---:|---|"]
    for name in facts:
        rows = {split: facts["num_examples"] for split, facts in release[name]["splits"].items()}
        cells = [f"{rows[split]:,}" if split in rows else "–" for split in main]
        further = ", ".join(f"`{split}` {count:,}" for split, count in rows.items() if split not in main) or "–"
        lines.append(f"| `{name}` | {' | '.join(cells)} | {further} |")
    return "\n".join(lines)


def _table_five(release: Mapping[str, Any], facts: Mapping[str, EraserConfig]) -> str:
    lines = [
        "| config | split | documents | instances | rationale % | evidence statements | evidence length |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    printed = paper("eraser_acl_2020").tables["table_5"]
    columns = ("documents", "instances", "rationale_percent", "evidences", "evidence_length")
    for name in facts:
        of_paper = [split for config, split in printed.rows if config == name]
        built = release[name]["splits"]
        # what the paper prints of a split that this folder lacks stands in brackets alone
        for split in dict.fromkeys([*of_paper, *built]):
            figures, row = built.get(split, {}).get("statistics", {}), printed.row(name, split)
            digits = {"rationale_percent": 2}
            cells = [str(Cell(figures.get(c), row.get(c), digits.get(c, 1))) for c in columns]
            lines.append(f"| `{name}` | {split} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _licences(facts: Mapping[str, EraserConfig]) -> str:
    lines = ["| config | licence | |", "|---|---|---|"]
    for name, config in facts.items():
        lines.append(f"| `{name}` | {config.license} | {config.license_note} |")
    return "\n".join(lines)
