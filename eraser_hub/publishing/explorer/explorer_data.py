"""Texts of the explorer: the bundled samples, and datasets of the Hub by name."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from eraser_hub.metrics.app_rows import Malformed, load_gold
from eraser_hub.metrics.tokens import split_tokens

HERE = Path(__file__).parent
SAMPLES = "samples"
MOST_INSTANCES = 500  # in the list of a split
MOST_TOKENS = 20_000  # of one text: more of them make a page slow


@lru_cache(maxsize=1)
def read_samples() -> dict[str, Any]:
    """Return the bundled corpora, systems and pairs."""
    value: dict[str, Any] = json.loads((HERE / "samples.json").read_text(encoding="utf-8"))
    return value


@lru_cache(maxsize=4)
def load_rows(dataset: str, config: str, split: str) -> Any:
    """Return the rows of a split: a list of the samples, or a Dataset.

    Raises:
        Malformed: There is no such dataset, configuration or split, or its rows have no documents and evidences.
    """
    if dataset == SAMPLES:
        corpus = read_samples()["corpora"].get(config)
        if corpus is None or split not in corpus["splits"]:
            raise Malformed(f"the samples have no {config}, {split}")
        return corpus["splits"][split]
    rows = load_gold(dataset, config, split, HERE.parent)
    if lacking := sorted({"annotation_id", "classification", "documents", "evidences"} - set(rows.column_names)):
        raise Malformed(f"{dataset}, {config}, {split}: expected the columns of eraser, found no {', '.join(lacking)}")
    return rows


@lru_cache(maxsize=4)
def index_rows(dataset: str, config: str, split: str) -> dict[str, int]:
    """Return the ids of a split, each with the place of its row; errors as of `load_rows`."""
    rows = load_rows(dataset, config, split)
    ids = [row["annotation_id"] for row in rows] if isinstance(rows, list) else rows["annotation_id"]
    return {str(one): place for place, one in enumerate(ids)}


def list_instances(dataset: str, config: str, split: str) -> dict[str, Any]:
    """Return the ids of a split, the first `MOST_INSTANCES`, and the number of all."""
    ids = list(index_rows(dataset, config, split))
    return {"ids": ids[:MOST_INSTANCES], "total": len(ids)}


def read_row(dataset: str, config: str, split: str, identity: str) -> dict[str, Any]:
    """Return one row, its label by name.

    Raises:
        Malformed: There is no such row, or its text is too long to draw.
    """
    place = index_rows(dataset, config, split).get(identity)
    if place is None:
        raise Malformed(f"{dataset}, {config}, {split}: no instance {identity!r}")
    rows = load_rows(dataset, config, split)
    row = dict(rows[place])
    label = row["classification"]
    if isinstance(label, int) and not isinstance(rows, list):  # a ClassLabel of a Dataset
        names = rows.features["classification"].names
        row["classification"] = names[label] if label >= 0 else None
    total = sum(len(split_tokens(document["text"])) for document in row["documents"])
    if total > MOST_TOKENS:
        raise Malformed(f"{identity}: {total} tokens, at most {MOST_TOKENS} are drawn")
    return row


def get_rationales(config: str, system: str, identity: str) -> list[dict[str, Any]]:
    """Return the rationales of a sample system: docid, hard spans, soft scores; none where it has none."""
    systems = read_samples()["corpora"].get(config, {}).get("systems", {})
    return list(systems.get(system, {}).get(identity, ()))
