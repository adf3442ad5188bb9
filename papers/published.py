"""The papers' printed results, as data: ``reports/data/*.json``, a file a paper, a row with table and settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from eraser_hub.records.errors import DataError
from eraser_hub.reports.entries import Entry


def published_entries() -> list[Entry]:
    """Every printed result, ordered by paper, table and row; percentages are turned into shares.

    Raises:
        DataError: a data file that is not what this module expects.
    """
    out: list[Entry] = []
    folder = resources.files("eraser_hub.papers").joinpath("data")
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        if file.name.endswith(".json"):
            out.extend(_entries(json.loads(file.read_text(encoding="utf-8")), file.name))
    return out


def _entries(paper: Mapping[str, Any], file: str) -> Iterator[Entry]:
    for table in paper["tables"]:
        percent = set(table.get("percent", ()))
        unstated = table.get("unstated", {})
        for row in table["rows"]:
            scores = {}
            for key, value in row["scores"].items():
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise DataError(f"expected a number, found {value!r}", file=file, field=f"{row['system']}.{key}")
                # 36.9 / 100 is 0.369 exactly as printed only after rounding
                scores[key] = round(value / 100, 9) if key in percent else float(value)
            notes = [table["about"], table["settings"], row.get("note", "")]
            notes += [words for key, words in unstated.items() if key in scores]
            yield Entry(
                system=row["system"],
                dataset=row["dataset"],
                split="",
                kind="published",
                source=f"{paper['short']}, Table {table['table']}",
                detail=f"{paper['paper']}, Table {table['table']}. " + "; ".join(note for note in notes if note),
                scores=scores,
                settings=table["settings"],
            )
