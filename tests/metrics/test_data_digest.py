"""Data digest: the form that the documentation defines, written out here once more in the plainest way."""

from __future__ import annotations

import gc
import hashlib
import json
import random
from typing import Any

import pyarrow as pa
import pytest

from eraser_hub.metrics.data_digest import (
    DataDigest,
    KeyedLines,
    add_eraser_rows,
    add_eraser_table,
    add_pair_rows,
    add_token_rows,
    shorten_digest,
)
from eraser_hub.records.digests import pause_garbage_collection

NAMES = ("NEG", "POS")


def dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


def eraser_rows() -> list[dict[str, Any]]:
    span = {"docid": "d ü.", "text": "a", "start_token": 0, "end_token": 1, "start_sentence": 0, "end_sentence": 1}
    documents = [{"docid": "d ü.", "text": "a b\nc"}, {"docid": "e", "text": "\u200bx"}]
    far = span | {"docid": "e", "start_sentence": -1, "end_sentence": -1}
    return [
        {"annotation_id": "10", "query": 'what "now"\t?', "classification": 1, "documents": documents, "evidences": []},
        {
            "annotation_id": "9",
            "query": "q\x7f",
            "classification": 0,
            "documents": documents[:1],
            "evidences": [[span], [span | {"start_token": 2, "end_token": 3}], []],
        },
        {"annotation_id": "é", "query": "", "classification": 0, "documents": documents[1:], "evidences": [[far]]},
    ]


def expected_digest(rows: list[dict[str, Any]]) -> str:
    """Return the digest as FORMATS' words have it, line by line."""
    text = dump(["eraser-hub-data-1", "eraser", list(NAMES)])
    for row in sorted(rows, key=lambda row: row["annotation_id"].encode()):
        groups = [
            [[one[k] for k in ("docid", "start_token", "end_token", "start_sentence", "end_sentence")] for one in group]
            for group in row["evidences"]
        ]
        docids = [one["docid"] for one in row["documents"]]
        text += dump([row["annotation_id"], row["query"], NAMES[row["classification"]], docids, groups])
    texts = {one["docid"]: one["text"] for row in rows for one in row["documents"]}
    for docid in sorted(texts, key=str.encode):
        text += dump([docid, hashlib.sha256(texts[docid].encode()).hexdigest()])
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of(rows: list[dict[str, Any]], names: tuple[str, ...] = NAMES) -> str:
    digest = DataDigest("eraser")
    add_eraser_rows(digest, rows, names)
    return digest.hexdigest(names)


def test_eraser_digest_is_the_defined_one_for_rows_and_tables():
    from eraser_hub.records.digests import to_json_lines

    rows = eraser_rows()
    assert digest_of(rows) == expected_digest(rows)
    for table in (pa.Table.from_pylist(rows), pa.Table.from_pylist([rows[1], *rows]).slice(1)):
        digest = DataDigest("eraser", to_json_lines)
        add_eraser_table(digest, table, NAMES)
        assert digest.hexdigest(NAMES) == expected_digest(rows)


@pytest.mark.parametrize("seed", range(5))
def test_digest_does_not_depend_on_the_order_or_on_derived_columns(seed):
    rows = eraser_rows()
    mixed = random.Random(seed).sample(rows, len(rows))
    assert digest_of([row | {"rationale": str(seed), "position": seed} for row in mixed]) == expected_digest(rows)
    named = [row | {"classification": NAMES[row["classification"]]} for row in mixed]
    assert digest_of(named) == expected_digest(rows)


CHANGES = {
    "id": lambda row: row.update(annotation_id="8"),
    "query": lambda row: row.update(query="Q"),
    "label": lambda row: row.update(classification=1),
    "no evidence": lambda row: row.update(evidences=[]),
    "groups merged": lambda row: row.update(evidences=[[*row["evidences"][0], *row["evidences"][1]]]),
    "token": lambda row: row["evidences"][0][0].update(end_token=2),
    "sentence": lambda row: row["evidences"][0][0].update(start_sentence=1),
    "document's text": lambda row: row["documents"][0].update(text="a b\nc "),
    "one document more": lambda row: row["documents"].append({"docid": "e", "text": "\u200bx"}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_the_gold_changes_the_digest(change):
    rows = eraser_rows()
    del rows[0]["documents"][0]  # the second row alone has this document
    before = digest_of(rows)
    CHANGES[change](rows[1])
    assert digest_of(rows) != before


def test_label_order_and_kind_change_the_digest():
    rows = eraser_rows()
    named = [row | {"classification": NAMES[row["classification"]]} for row in rows]
    assert digest_of(named, NAMES[::-1]) != digest_of(named)
    assert DataDigest("eraser").hexdigest(NAMES) != DataDigest("perturbation").hexdigest(NAMES)


def test_pairs_and_tokens():
    empty = dict.fromkeys(("title", "context", "question", "sentence1", "sentence2", "answer", "rationale_ids"))
    one = empty | {"id": "2", "sample_type": "ori", "rel_ids": ["1"], "label": 1, "context": "好", "tokens": [["好"]]}
    two = one | {"id": "1", "rel_ids": None, "answer": "春", "title": "", "rationale_ids": [[[0]]]}
    digest = DataDigest("perturbation")
    add_pair_rows(digest, [one, two], NAMES)
    text = dump(["eraser-hub-data-1", "perturbation", list(NAMES)])
    text += dump(["1", "ori", None, "春", ["", "好"], [["好"]], [[[0]]]])
    text += dump(["2", "ori", ["1"], "POS", ["好"], [["好"]], None])
    assert digest.hexdigest(NAMES) == hashlib.sha256(text.encode()).hexdigest()

    digest = DataDigest("human_rationales")
    add_token_rows(digest, [{"id": "a", "label": None, "tokens": ["x"], "rationale_mask": [1]}], NAMES)
    text = dump(["eraser-hub-data-1", "human_rationales", list(NAMES)]) + dump(["a", None, ["x"], [True]])
    assert digest.hexdigest(NAMES) == hashlib.sha256(text.encode()).hexdigest()


def test_what_a_table_shows():
    assert shorten_digest("0123456789abcdef") == "0123456789ab"
    assert shorten_digest("") == "none"


def test_a_digest_can_be_read_twice_and_goes_on():
    first, *others = eraser_rows()
    digest = DataDigest("eraser")
    add_eraser_rows(digest, [first], NAMES)
    assert digest.hexdigest(NAMES) == digest.hexdigest(NAMES) == expected_digest([first])
    add_eraser_rows(digest, others, NAMES)
    assert digest.hexdigest(NAMES) == expected_digest(eraser_rows())


@pytest.mark.unit
@pytest.mark.parametrize("names", [["b", "a b", "a", "a!"], ["é", "z", "\U0001f600", "￼"], ["b", "a"]])
def test_lines_are_in_the_order_of_their_keys(names: list[str]) -> None:
    lines = KeyedLines()
    lines.add([(name, 1) for name in names])
    expected = [f'["{name}",1]'.encode() for name in sorted(names, key=str.encode)]
    assert lines.sort() == expected
    assert lines.select([True, False, *[True] * (len(names) - 2)]).sort() == [
        line for line in expected if line != f'["{names[1]}",1]'.encode()
    ]


@pytest.mark.unit
def test_a_pause_of_garbage_collection_ends_and_leaves_it_off_where_it_was_off() -> None:
    with pytest.raises(ValueError, match="inside"), pause_garbage_collection():
        assert not gc.isenabled()
        raise ValueError("inside")
    assert gc.isenabled()
    gc.disable()
    try:
        with pause_garbage_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
