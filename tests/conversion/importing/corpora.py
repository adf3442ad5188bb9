"""Corpus folders read back as the rows of the dataset, and what an import keeps of people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from eraser_hub.conversion.eraser.corpus_yaml import read_corpus_yaml
from eraser_hub.conversion.eraser.documents import read_documents
from eraser_hub.conversion.eraser.rows import SplitRows

Row = dict[str, Any]


def rows_of(folder: Path, split: str = "train") -> list[Row]:
    """The rows that the folder gives, read as `build` reads it, with every check."""
    documents, _ = read_documents(folder)
    tables = SplitRows(folder / f"{split}.jsonl", read_corpus_yaml(folder), documents)
    rows = [row for table in tables for row in table.to_pylist()]
    return sorted(rows, key=lambda row: row["position"])


def group_masks(row: Row) -> list[list[int]]:
    """0/1 over the tokens of all documents of a row, for each group of evidences."""
    masks = []
    sizes = {document["docid"]: len(document["text"].replace("\n", " ").split(" ")) for document in row["documents"]}
    for group in row["evidences"]:
        mask = {docid: [0] * size for docid, size in sizes.items()}
        for one in group:
            mask[one["docid"]][one["start_token"] : one["end_token"]] = [1] * (one["end_token"] - one["start_token"])
        masks.append([mark for part in mask.values() for mark in part])
    return masks


def people_of(folder: Path) -> list[tuple[str, str, str | None, list[list[int]] | None]]:
    """What annotators/ keeps: (annotation id, annotator, label, rationale_positions)."""
    path = folder / "annotators" / f"{folder.name}.parquet"
    rows = pq.read_table(path).to_pylist() if path.is_file() else []
    return [(row["annotation_id"], row["annotator"], row["label"], row["rationale_positions"]) for row in rows]


def write_lines(path: Path, rows: Sequence[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
