"""Raw ERASER corpora read the plain way, by json alone: what the product's own reading is compared with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def annotations(path: Path) -> list[Record]:
    """The annotations of a split file; double-encoded ones too."""
    values = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    return [json.loads(value) if isinstance(value, str) else value for value in values]


def documents(folder: Path) -> dict[str, str]:
    """docid -> text of a corpus folder."""
    lines = folder / "docs.jsonl"
    if lines.is_file():
        records = [json.loads(line) for line in lines.read_text(encoding="utf-8").split("\n") if line]
        return {record["docid"]: record["document"] for record in records}
    return {path.name: path.read_bytes().decode("utf-8") for path in (folder / "docs").iterdir()}


def evidences(record: Record) -> list[Record]:
    """The evidences of all groups, in order."""
    return [evidence for group in record["evidences"] for evidence in group]


def document_ids(record: Record) -> list[str]:
    """The documents of an annotation: those of its docids, then those of its evidences, each once."""
    return list(dict.fromkeys([*(record.get("docids") or ()), *(evidence["docid"] for evidence in evidences(record))]))
