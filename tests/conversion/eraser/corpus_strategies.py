"""Arbitrary small ERASER corpora, and folders that hold them: for property tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from eraser_hub.conversion.eraser.configs import CONFIGS
from eraser_hub.metrics.tokens import split_tokens

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
    documents = draw(st.dictionaries(DOCIDS, TEXT, min_size=1, max_size=6))
    docid, sentence = st.sampled_from(list(documents)), st.integers(-1, 9)

    def place(name: str) -> st.SearchStrategy[dict[str, Any]]:
        end = st.integers(0, len(split_tokens(documents[name])))
        ends = st.tuples(end, end).map(sorted)
        return ends.map(lambda pair: {"docid": name, "start_token": pair[0], "end_token": pair[1]})

    more = st.fixed_dictionaries({"start_sentence": sentence, "end_sentence": sentence, "text": TEXT})
    evidence = st.tuples(docid.flatmap(place), more).map(lambda parts: parts[0] | parts[1])
    record = st.fixed_dictionaries(
        {
            "annotation_id": st.text("abc_0 é", max_size=4) | st.integers(-3, 2**40),
            "classification": st.sampled_from(CONFIGS[config].label_names),
            "evidences": st.lists(st.lists(evidence, max_size=2), max_size=2),
            "query": TEXT,
        },
        optional={
            "docids": st.none() | st.lists(docid, max_size=3),
            "query_type": st.none() | TEXT,
            "note": st.sampled_from([None, 1.5, {"deep": [1, "x"]}]),
        },
    )
    records = st.lists(record, min_size=1, max_size=6, unique_by=lambda record: str(record["annotation_id"]))
    split = st.tuples(records, st.booleans(), st.booleans())
    names = st.sampled_from(["train", "val", "test", "dev", "extra_1"])
    splits = draw(st.dictionaries(names, split, min_size=1, max_size=3))
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
