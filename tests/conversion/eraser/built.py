"""A small built ``eraser`` folder made by hand, to be spoilt by the tests that look for what the checks find."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from eraser_hub.conversion.card import to_yaml_features
from eraser_hub.conversion.eraser.configs import CONFIGS
from eraser_hub.conversion.eraser.schema import SCHEMA
from eraser_hub.metrics.plain import split_sentences, split_tokens
from eraser_hub.records.files import compute_file_digest

Row = dict[str, Any]


def row(
    name: str,
    text: str,
    spans: list[tuple[int, int]],
    *,
    label: int = 0,
    position: int = 1,
    docid: str | None = None,
    one_group: bool = False,
) -> Row:
    """A row with one document; the derived columns are made the plain way."""
    docid = docid or f"{name}.txt"
    tokens = split_tokens(text)
    evidences = [
        {
            "docid": docid,
            "text": " ".join(tokens[start:end]),
            "start_token": start,
            "end_token": end,
            "start_sentence": -1,
            "end_sentence": -1,
        }
        for start, end in spans
    ]
    mask = [any(start <= k < end for start, end in spans) for k in range(len(tokens))]
    return {
        "annotation_id": name,
        "classification": label,
        "query": "?",
        "query_type": None,
        "documents": [{"docid": docid, "text": text}],
        "evidences": [evidences] if one_group else [[evidence] for evidence in evidences],
        "rationale_positions": [[k for k, covered in enumerate(mask) if covered]],
        "rationale": " … ".join(" ".join(tokens[a:b]) for a, b in sorted(set(spans)) if a < b),
        "num_tokens": len(tokens),
        "num_sentences": len(split_sentences(text)),
        "rationale_ratio": sum(mask) / max(1, len(tokens)),
        "position": position,
    }


TEXTS = [
    "the sea was calm .\nnobody swam .",
    "a dull film .\na long evening .",
    "bread and salt ,  with two blanks\n\nand an empty line .",
    "Penélope sang\u200b twice .",
    " a blank at either end ",
]


def rows() -> dict[str, list[Row]]:
    """Three splits without a fault."""
    train = [row(f"t{k}", text, [(0, 2), (3, 4)], label=k % 2, position=k + 1) for k, text in enumerate(TEXTS[:3])]
    validation = [row(f"v{k}", text, [(1, 3)], label=1, position=k + 1) for k, text in enumerate(TEXTS[3:])]
    return {"train": train, "validation": validation, "test": [row("s0", "all is well .", [(0, 4)])]}


def write_built(folder: Path, splits: dict[str, list[Row]], config: str = "movies", /, **changes: Any) -> Path:
    """Write rows, a card that tells the truth about them, and release.json.

    ``changes`` are made to the card's dataset_info.
    """
    (folder / config).mkdir(parents=True, exist_ok=True)
    for split, held in splits.items():
        table = pa.Table.from_pylist(copy.deepcopy(held), schema=SCHEMA)
        pq.write_table(table, folder / config / f"{split}-00000-of-00001.parquet")
    (folder / "documents").mkdir(exist_ok=True)
    pq.write_table(
        pa.table({"docid": pa.array([], "str"), "text": pa.array([], "str")}), folder / f"documents/{config}.parquet"
    )
    documents = {"layout": "docs/", "total": 1, "unreferenced": 0, "final_newline": True, "in_order": True}
    form = {"encoding": "json", "annotation_id": "string", "docids": "absent", "query_type": "absent"}
    form |= {"final_newline": True, "sentence_ends": "exclusive", "statistics": {}}
    facts = {
        s: {
            "num_examples": len(r),
            "num_bytes": 1,
            "file": f"{s}.jsonl",
            "lines": len(r),
            **form,
            "files": {path.name: compute_file_digest(path) for path in (folder / config).glob(f"{s}-*.parquet")},
        }
        for s, r in splits.items()
    }
    entry = {"version": "2.0.1", "download_size": 1, "documents": documents, "splits": facts, "skipped": []}
    beside = f"documents/{config}.parquet"
    entry["digests"] = {beside: compute_file_digest(folder / beside)}
    (folder / "release.json").write_text(json.dumps({"format": 2, "configs": {config: entry}}), encoding="utf-8")
    info = {
        "config_name": config,
        "features": to_yaml_features(SCHEMA, {"classification": CONFIGS[config].label_names}),
        "splits": [{"name": split, "num_examples": len(held)} for split, held in splits.items()],
        **changes,
    }
    card = {
        "configs": [
            {
                "config_name": config,
                "default": True,
                "data_files": [{"split": s, "path": f"{config}/{s}-*.parquet"} for s in splits],
            }
        ],
        "dataset_info": [info],
    }
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump(card)}---\nWords.\n", encoding="utf-8")
    return folder
