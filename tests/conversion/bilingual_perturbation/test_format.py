"""Public and gold files of the bilingual benchmark: released spellings, the join, hostile lines, the real files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eraser_hub.conversion.bilingual_perturbation.format import CONFIGS, join, make_rows, read_records

from ...refusals import refused

pytestmark = pytest.mark.unit

SENTI, SIMILARITY, MRC = CONFIGS["senti_en"], CONFIGS["similarity_ch"], CONFIGS["mrc_ch"]
GOOD = {"id": 1, "context": "so good", "sent_token": ["so", "good"], "sample_type": "ori", "rel_ids": [2]}
GOLD = {"sent_id": 1, "sent_text": "so good", "sent_label": 1, "sent_token": ["so", "good"], "rationale_ids": [[["1"]]]}


def write(path: Path, *records: Any) -> Path:
    """Write records as JSON lines; strings and bytes are taken as they are."""
    texts = [record if isinstance(record, str | bytes) else json.dumps(record) for record in records]
    path.write_bytes(b"\n".join(text.encode() if isinstance(text, str) else text for text in texts) + b"\n")
    return path


def change(record: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the record with fields set, or dropped where the value is ``...``."""
    return {name: value for name, value in {**record, **fields}.items() if value is not ...}


@pytest.mark.parametrize(
    ("field", "value", "sets"),
    [
        ("rationale_ids", [[["0"], ["1"]]], [[0], [1]]),
        ("rationale_ids", [[[0], [1]]], [[0], [1]]),
        ("rationales", [["0"], ["1"]], [[0], [1]]),
        ("rationales", ["0", "1"], [[0, 1]]),
        ("rationales", [], []),
    ],
)
def test_each_spelling_of_rationales_is_read(tmp_path: Path, field: str, value: Any, sets: Any) -> None:
    path = write(tmp_path / "gold", change(GOLD, **{"rationale_ids": ..., field: value}))
    assert read_records(path, SENTI, True)[0]["rationale_ids"] == [sets]


@pytest.mark.parametrize(("q", "t"), [(["0"], [1]), ([[0]], [["1"]])])
def test_the_spelling_of_two_sentences(tmp_path: Path, q: Any, t: Any) -> None:
    record = {"sent_id": "a", "query": "甲乙", "title": "乙甲", "text_q_seg": ["甲", "乙"], "text_t_seg": ["乙", "甲"]}
    path = write(tmp_path / "gold", {**record, "sent_label": "0", "rationale_q_idx": q, "rationale_t_idx": t})
    (gold,) = read_records(path, SIMILARITY, True)
    assert gold["rationale_ids"] == [[[0]], [[1]]]
    assert [gold[name] for name in ("label", "sentence1", "sentence2")] == [0, "甲乙", "乙甲"]
    nested = {"sent_id": 1, "sent_text": ["甲乙", "乙甲"], "sent_token": [["甲", "乙"], ["乙", "甲"]]}
    (gold,) = read_records(write(tmp_path / "gold", {**nested, "rationales": [[], [["1"]]]}), SIMILARITY, True)
    assert [gold[name] for name in ("rationale_ids", "tokens", "sentence2")] == [
        [[], [[1]]],
        nested["sent_token"],
        "乙甲",
    ]


@pytest.mark.parametrize(
    ("fields", "answer", "label"),
    [
        ({"answer": "春天"}, "春天", 1),
        ({"answers": ["春天", "春"]}, "春天", 1),
        ({"sent_label": "春天"}, "春天", 1),
        ({"answers": []}, "", 0),
        ({}, None, None),
    ],
)
def test_answers_of_the_reading_task(tmp_path: Path, fields: dict, answer: str | None, label: int | None) -> None:
    record = {"sent_id": 1, "sent_text": "春天", "sent_token": ["春", "天"], "rationales": [0], **fields}
    (gold,) = read_records(write(tmp_path / "gold", record), MRC, True)
    assert (gold["answer"], gold["label"]) == (answer, label)


PUBLIC_FAULTS = [
    (b'{"id": 2, "context": "\xff"}', None, "0xff"),
    ("[1]", None, "list"),
    ('{"id": 2, "context": ' + "[" * 100_000 + "]" * 100_000 + "}", None, "deeply"),
    (change(GOOD, id=...), None, "'context', 'sent_token'"),
    (change(GOOD, id=True), "id", "true"),
    (change(GOOD, id="1"), "id", "line 1 "),
    (change(GOOD, id=5, context=...), "context", ""),
    (change(GOOD, id=5, sent_token=...), "tokens", ""),
    (change(GOOD, id=5, sent_token=["so", 814]), "sent_token[1]", 814),
    (change(GOOD, id=5, sample_type="original"), "sample_type", "'original'"),
    (change(GOOD, id=5, rel_ids=[3, 3]), "rel_ids", "['3', '3']"),
    (change(GOOD, id=5, rel_ids=[3, "5"]), "rel_ids", "['3', '5']"),
]
GOLD_FAULTS = [
    ({"rationale_ids": ...}, None, "rationale_q_idx"),
    ({"rationale_ids": [[[True]]]}, "rationale_ids[0][0][0]", "true"),
    ({"rationale_ids": [[["٣"]]]}, "rationale_ids", "'٣'"),
    ({"rationale_ids": [[["1"]], [["1"]]]}, "rationale_ids", " 2"),
    ({"rationale_ids": [["1", ["0"]]]}, "rationale_ids[0][0]", "'1'"),
    ({"sent_label": 814}, "sent_label", 814),
    ({"sent_id": 3, "rel_ids": [3]}, "rel_ids", "'3'"),
    ({"sent_id": 1}, "id", "line 1 "),
]


@pytest.mark.parametrize(
    ("first", "record", "field", "mentioned"),
    [(GOOD, *fault) for fault in PUBLIC_FAULTS]
    + [(GOLD, change(GOLD, **{"sent_id": 2, **fields}), *rest) for fields, *rest in GOLD_FAULTS],
)
def test_a_hostile_line_is_refused_with_its_line(
    tmp_path: Path, first: dict, record: Any, field: str | None, mentioned: object
) -> None:
    path = write(tmp_path / "senti_en", first, record)
    with refused(mentioned, file=path, line=2, field=field) as caught:
        read_records(path, SENTI, first is GOLD)
    assert str(caught.error).startswith(f"{path}:2: ") and len(str(caught.error)) < 600


def test_a_byte_order_mark_and_a_missing_last_newline_are_read_and_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "senti_en"
    # what only a gold file says is not read in a public one
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({**GOOD, "sent_text": 1, "answers": {}, "sent_label": "?"}).encode())
    assert [record["id"] for record in read_records(path, SENTI, False)] == ["1"]
    path.write_bytes(b"")
    with refused(file=path, line=1):
        read_records(path, SENTI, False)


def join_files(folder: Path, public: list[dict], gold: list[dict]) -> tuple[list[dict[str, Any]], list[str]]:
    files = {"public": write(folder / "senti_en", *public), "gold": write(folder / "gold", *gold)}
    public_records = read_records(files["public"], SENTI, False) if public else []
    return join(public_records, read_records(files["gold"], SENTI, True), SENTI, files)


@pytest.mark.parametrize(
    ("public", "fields", "mentions"),
    [
        (12, {"sent_token": ["so", "bad"]}, ("senti_en:1,", "'good'", "'bad'", "(and 11 more)")),
        (12, {"sent_token": ..., "rationale_ids": [[[814]]]}, ("below 2,", 814)),
        (0, {}, ("sample_type",)),
        (0, {"sample_type": "ori", "sent_token": ..., "sent_text": ...}, ("tokens and context",)),
    ],
)
def test_gold_that_does_not_fit_is_refused(tmp_path: Path, public: int, fields: dict, mentions: tuple) -> None:
    gold = [change(GOLD, **{"sent_id": number, **fields}) for number in range(12)]
    with refused(*mentions, file="gold", line=1, instance="0"):
        join_files(tmp_path, [change(GOOD, id=number, rel_ids=[100]) for number in range(public)], gold)


def test_the_golds_rel_ids_win_and_what_is_joined_is_reported(tmp_path: Path) -> None:
    perturbed = [change(GOOD, id=n, sample_type="disturb", rel_ids=...) for n in (2, 3)]
    records, notes = join_files(tmp_path, [GOOD, *perturbed], [change(GOLD, rel_ids=["3"])])
    rows = make_rows(records, SENTI)
    assert [(row["rel_ids"], row["original_id"]) for row in rows] == [(["3"], None), (None, None), (None, "1")]
    assert [(row["has_gold"], row["position"]) for row in rows] == [(True, 1), (False, 2), (False, 3)]
    assert len(notes) == 1 and "(1: 2 -> 3)" in notes[0]
    assert join_files(tmp_path, [GOOD], [change(GOLD, rel_ids=["2"])])[1] == []  # equal, of another type
    records, notes = join_files(tmp_path, [GOOD], [GOLD, change(GOLD, sent_id=9, sample_type="disturb")])
    assert [record["id"] for record in records] == ["1", "9"]
    assert len(notes) == 1 and notes[0].startswith("1 ")
