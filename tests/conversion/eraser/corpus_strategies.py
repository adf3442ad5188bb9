"""Arbitrary small ERASER corpora, and folders that hold them: for property tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from eraser_hub.conversion.eraser.configs import CONFIGS
from eraser_hub.metrics.plain import split_tokens

WORDS = st.sampled_from(
    ["a", "film", "café", "U\u200bV", "don't", "\x12s", "''", "\\", '"', "漢字", "x" * 40, "\u00a0", "\t"]
)
TEXT = st.lists(st.lists(WORDS, min_size=1, max_size=6).map(" ".join), max_size=4).map("\n".join) | st.sampled_from(
    ["", " ", "\n", "a  b\n\n c \n", "a\r\nb"]
)
DOCIDS = st.sampled_from(["d1", "d2", "Ünïcode_.", "it's.txt", "a b", "-x", "#1", "%2F", "e.", "x_hypothesis", "ß"])


@st.composite
def corpora(draw: st.DrawFn) -> dict[str, Any]:
    """{"config", "documents": {docid: text}, "splits": {name: (records, double, final newline)}}."""
    config = draw(st.sampled_from(list(CONFIGS)))
    documents = {docid: draw(TEXT) for docid in draw(st.lists(DOCIDS, min_size=1, max_size=6, unique=True))}
    lengths = {docid: len(split_tokens(text)) for docid, text in documents.items()}
    splits = {}
    for name in draw(
        st.lists(st.sampled_from(["train", "val", "test", "dev", "extra_1"]), min_size=1, max_size=3, unique=True)
    ):
        records = []
        ids = draw(
            st.lists(st.text("abc_0 é", max_size=4) | st.integers(-3, 2**40), min_size=1, max_size=6, unique_by=str)
        )
        for identity in ids:
            groups = []
            for _ in range(draw(st.integers(0, 2))):
                group = []
                for _ in range(draw(st.integers(0, 2))):
                    docid = draw(st.sampled_from(list(documents)))
                    start = draw(st.integers(0, lengths[docid]))
                    group.append(
                        {
                            "docid": docid,
                            "end_sentence": draw(st.integers(-1, 9)),
                            "end_token": draw(st.integers(start, lengths[docid])),
                            "start_sentence": draw(st.integers(-1, 9)),
                            "start_token": start,
                            "text": draw(TEXT),
                        }
                    )
                groups.append(group)
            record = {
                "annotation_id": identity,
                "classification": draw(st.sampled_from(CONFIGS[config].label_names)),
                "evidences": groups,
                "query": draw(TEXT),
            }
            docids = draw(st.sampled_from(["absent", "null", "list"]))
            if docids != "absent":
                some = st.lists(st.sampled_from(list(documents)), max_size=3)
                record["docids"] = None if docids == "null" else draw(some)
            if draw(st.booleans()):
                record["query_type"] = draw(st.none() | TEXT)
            if draw(st.integers(0, 5)) == 0:
                record["note"] = draw(st.sampled_from([None, 1.5, {"deep": [1, "x"]}]))
            records.append(record)
        splits[name] = (records, draw(st.booleans()), draw(st.booleans()))
    return {"config": config, "documents": documents, "splits": splits}


def write(folder: Path, corpus: dict[str, Any]) -> Path:
    """Write the corpus's raw folder below ``folder``."""
    target = folder / corpus["config"]
    target.mkdir(parents=True)
    if corpus["config"].startswith(("cose", "esnli")):
        lines = [json.dumps({"docid": d, "document": t}) for d, t in corpus["documents"].items()]
        (target / "docs.jsonl").write_text("\n".join(lines))
    else:
        (target / "docs").mkdir()
        for docid, text in corpus["documents"].items():
            (target / "docs" / docid).write_bytes(text.encode())
    for name, (records, double, final_newline) in corpus["splits"].items():
        lines = [json.dumps(r) for r in records]
        lines = [json.dumps(line) for line in lines] if double else lines
        (target / f"{name}.jsonl").write_text("\n".join(lines) + "\n" * final_newline)
    return target


def values(folder: Path) -> dict[str, Any]:
    """All that a raw corpus folder says: the records of each split file, and the text of each document."""
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
        records = [(type(line), json.loads(line) if isinstance(line, str) else line) for line in lines]
        found[path.name] = sorted((r["docid"], r["document"]) for _, r in records) if path.stem == "docs" else records
    docs = folder / "docs"
    return found | ({path.name: path.read_bytes() for path in docs.iterdir()} if docs.is_dir() else {})
