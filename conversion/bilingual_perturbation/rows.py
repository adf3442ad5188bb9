"""Public and gold records of the bilingual perturbation benchmark, joined by id, as rows of one schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from eraser_hub.records.errors import DataError, show

from .format import OPTIONAL_TEXTS, Task, list_missing

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("language", pa.string()),
        ("task", pa.string()),
        ("title", pa.string()),
        ("context", pa.string()),
        ("question", pa.string()),
        ("sentence1", pa.string()),
        ("sentence2", pa.string()),
        ("tokens", pa.list_(pa.list_(pa.string()))),
        ("sample_type", pa.string()),
        ("rel_ids", pa.list_(pa.string())),
        ("original_id", pa.string()),
        ("label", pa.int64()),
        ("answer", pa.string()),
        ("rationale_ids", pa.list_(pa.list_(pa.list_(pa.int32())))),
        ("has_gold", pa.bool_()),
        ("num_tokens", pa.int32()),
        ("rationale_ratio", pa.float32()),
        ("position", pa.int32()),
    ]
)


def join(
    public: Sequence[dict[str, Any]], gold: Sequence[dict[str, Any]], task: Task, files: Mapping[str, Path]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Join public and gold records by id, in the order of the public file, then of the remaining gold records.

    Args:
        public: the records of the public file; none where there is no such file.
        gold: the same of the gold file.
        task: what they hold.
        files: ``public`` and ``gold`` -> their files.

    Returns:
        the records, and notes. Where ``rel_ids`` differ those of the gold are taken, and a note says so.

    Raises:
        DataError: tokens of the same id differ (the rationale would mark other tokens), an index lies outside the
            tokens, or a gold record without a public one lacks tokens, text or sample type.
    """
    golds = {record["id"]: record for record in gold}
    joined, other_tokens, other_rel_ids, notes = [], [], [], []
    for record in public:
        match = golds.pop(record["id"], None)
        if match is None:
            joined.append(record)
        elif match["tokens"] not in (None, record["tokens"]):
            other_tokens.append((record, match))
        else:
            row = {**match, **record, "sample_type": match["sample_type"] or record["sample_type"]}
            _check_indices(row, files["gold"], match["position"])
            if match["rel_ids"] is not None and match["rel_ids"] != record["rel_ids"]:
                words = f"{' '.join(record['rel_ids'] or ['none'])} -> {' '.join(match['rel_ids'])}"
                other_rel_ids.append(f"{record['id']}: {words}")
                row["rel_ids"] = match["rel_ids"]
            joined.append(row)
    if other_tokens:
        record, match = other_tokens[0]
        more = f" (and {len(other_tokens) - 1} more)" if other_tokens[1:] else ""
        message = (
            f"expected the tokens of {files['public']}:{record['position']}, which has the same id, "
            f"{show(record['tokens'])}, found {show(match['tokens'])}; if the files number their records differently, "
            "build the gold file alone"
        )
        raise DataError(message + more, file=files["gold"], line=match["position"], instance=match["id"])
    for match in golds.values():
        if missing := list_missing(match, task, OPTIONAL_TEXTS):
            message = f"expected a public record of the same id, or the gold's own {' and '.join(missing)}"
            raise DataError(message, file=files["gold"], line=match["position"], instance=match["id"])
        _check_indices(match, files["gold"], match["position"])
    if other_rel_ids:
        some = ", ".join(other_rel_ids[:10]) + (", .." if other_rel_ids[10:] else "")
        notes.append(f"rel_ids of public and gold file differ in {len(other_rel_ids)} records; the gold's win ({some})")
    if golds and public:
        notes.append(f"{len(golds)} gold records without a public one, appended in the gold's order")
    return [*joined, *golds.values()], notes


def _check_indices(record: Mapping[str, Any], file: Path, line: int) -> None:
    place: dict[str, Any] = {"file": file, "line": line, "instance": record["id"]}
    if len(record["tokens"]) != len(record["rationale_ids"]):
        message = f"expected {len(record['rationale_ids'])} lists of tokens, found {len(record['tokens'])}"
        raise DataError(message, field="sent_token", **place)
    for sets, sequence in zip(record["rationale_ids"], record["tokens"], strict=True):
        for index in (index for chosen in sets for index in chosen):
            if index >= len(sequence):
                message = f"expected an index below {len(sequence)}, the number of tokens, found {index}"
                raise DataError(message, field="rationales", **place)


def make_rows(records: Sequence[Mapping[str, Any]], task: Task) -> list[dict[str, Any]]:
    """Return the rows of joined records; ``original_id`` is the first original that names a record."""
    originals: dict[str, str] = {}
    for record in records:
        for rel_id in record["rel_ids"] or ():
            originals.setdefault(rel_id, record["id"])
    rows = []
    for record in records:
        num_tokens, gold = sum(map(len, record["tokens"])), record.get("rationale_ids")
        marked = sum(len(set().union(*sets)) for sets in gold or ())
        derived = {
            "language": task.language,
            "task": task.name,
            "original_id": originals.get(record["id"]),
            "has_gold": gold is not None,
            "num_tokens": num_tokens,
            "rationale_ratio": None if gold is None or not num_tokens else marked / num_tokens,
        }
        rows.append({**record, **derived})
    return rows
