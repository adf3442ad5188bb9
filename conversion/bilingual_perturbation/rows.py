"""Examples of the bilingual perturbation benchmark as rows of its one schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from .configs import TEXT_COLUMNS, PerturbationConfig
from .format import Example

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


def row_of(example: Example, config: PerturbationConfig) -> dict[str, Any]:
    """The row of an example, in plain values."""
    tokens = example.tokens or ()
    num_tokens = sum(map(len, tokens))
    record = example.public or example.gold
    ratio = None
    if example.rationale_ids is not None and num_tokens:
        marked = sum(len({i for chosen in sets for i in chosen}) for sets in example.rationale_ids)
        ratio = marked / num_tokens
    return {
        "id": example.id,
        "language": config.language,
        "task": config.task,
        **{column: example.texts.get(column) for column in TEXT_COLUMNS},
        "tokens": [list(each) for each in tokens],
        "sample_type": example.sample_type,
        "rel_ids": None if example.rel_ids is None else list(example.rel_ids),
        "original_id": example.original_id,
        "label": example.label,
        "answer": example.answer,
        "rationale_ids": None
        if example.rationale_ids is None
        else [[list(chosen) for chosen in sets] for sets in example.rationale_ids],
        "has_gold": example.gold is not None,
        "num_tokens": num_tokens,
        "rationale_ratio": ratio,
        "position": record.line if record else None,
    }


def table_of(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows as an Arrow table of SCHEMA."""
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)
