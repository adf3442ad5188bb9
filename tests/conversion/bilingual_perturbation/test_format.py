"""Public and gold files of the bilingual benchmark: released spellings, the join, hostile lines, the real files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eraser_hub.conversion.bilingual_perturbation.configs import CONFIGS
from eraser_hub.conversion.bilingual_perturbation.format import read_gold, read_public
from eraser_hub.conversion.bilingual_perturbation.rows import join
from eraser_hub.conversion.errors import DataErrors

from ...refusals import refused

pytestmark = pytest.mark.unit

SENTI, SIMILARITY, MRC = CONFIGS["senti_en"], CONFIGS["similarity_ch"], CONFIGS["mrc_ch"]
GOOD = {"id": 1, "context": "so good", "sent_token": ["so", "good"], "sample_type": "ori", "rel_ids": [2]}
GOLD = {"sent_id": 1, "sent_text": "so good", "sent_label": 1, "sent_token": ["so", "good"], "rationale_ids": [[["1"]]]}


def lines(path: Path, *records: Any) -> Path:
    """Records as JSON lines; strings and bytes are taken as they are."""
    written = [
        record
        if isinstance(record, bytes)
        else (record if isinstance(record, str) else json.dumps(record, ensure_ascii=False)).encode()
        for record in records
    ]
    path.write_bytes(b"\n".join(written) + b"\n")
    return path


def changed(record: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The record with fields set, or dropped where the value is ``...``."""
    return {name: value for name, value in {**record, **fields}.items() if value is not ...}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rationale_ids", [[["0"], ["1"]]]),
        ("rationale_ids", [[[0], [1]]]),
        ("rationales", [["0"], ["1"]]),
        ("rationales", [[0], [1]]),
        ("rationales", [[["0"], ["1"]]]),
    ],
)
def test_each_spelling_of_one_sequence_reads_alike(tmp_path: Path, field: str, value: Any) -> None:
    path = lines(tmp_path / "gold", changed(GOLD, **{"rationale_ids": ..., field: value}))
    assert next(read_gold(path, SENTI)).rationale_ids == (((0,), (1,)),)


def test_a_flat_list_is_one_set(tmp_path: Path) -> None:
    path = lines(tmp_path / "gold", changed(GOLD, rationale_ids=..., rationales=["0", "1"]))
    assert next(read_gold(path, SENTI)).rationale_ids == (((0, 1),),)


@pytest.mark.parametrize(("q", "t"), [(["0"], [1]), ([[0]], [["1"]])])
def test_the_spelling_of_two_sentences(tmp_path: Path, q: Any, t: Any) -> None:
    record = {"sent_id": "a", "query": "甲乙", "title": "乙甲", "text_q_seg": ["甲", "乙"], "text_t_seg": ["乙", "甲"]}
    path = lines(tmp_path / "gold", {**record, "sent_label": "0", "rationale_q_idx": q, "rationale_t_idx": t})
    gold = next(read_gold(path, SIMILARITY))
    assert gold.rationale_ids == (((0,),), ((1,),))
    assert (gold.label, gold.texts) == (0, {"sentence1": "甲乙", "sentence2": "乙甲"})


@pytest.mark.parametrize(
    ("fields", "answer", "label"),
    [
        ({"answer": "春天"}, "春天", 1),
        ({"answers": ["春天", "春"]}, "春天", 1),
        ({"sent_label": "春天"}, "春天", 1),
        ({"answer": ""}, "", 0),
        ({"answers": []}, "", 0),
        ({}, None, None),
    ],
)
def test_answers_of_the_reading_task(tmp_path: Path, fields: dict, answer: str | None, label: int | None) -> None:
    record = {"sent_id": 1, "sent_text": "春天", "sent_token": ["春", "天"], "rationales": [0], **fields}
    gold = next(read_gold(lines(tmp_path / "gold", record), MRC))
    assert (gold.answer, gold.label) == (answer, label)


@pytest.mark.parametrize(
    ("record", "instance", "field", "mentioned"),
    [
        (b'{"id": 2, "context": "\xff"}', None, None, "0xff"),
        ('{"id": 2', None, None, "of 8"),
        ("", None, None, ""),
        ("[1]", None, None, "list"),
        ('{"id": NaN}', None, None, "NaN"),
        ('{"id": 2, "id": 3}', None, None, "'id'"),
        ('{"id": 2, "context": "\\ud800"}', None, None, ""),
        ('{"id": 2, "x": 1e400}', None, None, "'1e400'"),
        ('{"id": 2, "context": ' + "[" * 100_000 + "]" * 100_000 + "}", None, None, "64"),
        ('{"id": ' + "9" * 5000 + "}", None, None, "64"),
        (changed(GOOD, id=...), None, None, "'context, sent_token, sample_type, rel_ids'"),
        (changed(GOOD, id=None), None, "id", "None"),
        (changed(GOOD, id=1.5), None, "id", "1.5"),
        (changed(GOOD, id=True), None, "id", "True"),
        (changed(GOOD, id=""), None, "id", "''"),
        (changed(GOOD, id=1), "1", "id", "line 1 "),
        (changed(GOOD, id="1"), "1", "id", "line 1 "),
        (changed(GOOD, id=2, context=...), "2", "context", ""),
        (changed(GOOD, id=2, context=814), "2", "context", 814),
        (changed(GOOD, id=2, sent_token=...), "2", "sent_token", ""),
        (changed(GOOD, id=2, sent_token="so good"), "2", "sent_token", "'so good'"),
        (changed(GOOD, id=2, sent_token=["so", 814]), "2", "sent_token[1]", 814),
        (changed(GOOD, id=2, sample_type=...), "2", "sample_type", "'ori'"),
        (changed(GOOD, id=2, sample_type="original"), "2", "sample_type", "'original'"),
        (changed(GOOD, id=2, sample_type=["ori"]), "2", "sample_type", "['ori']"),
        (changed(GOOD, id=2, rel_ids=814), "2", "rel_ids", 814),
        (changed(GOOD, id=2, rel_ids=[None]), "2", "rel_ids[0]", "None"),
        (changed(GOOD, id=2, rel_ids=[3, 3]), "2", "rel_ids", "['3', '3']"),
        (changed(GOOD, id=2, rel_ids=[3, 2]), "2", "rel_ids[1]", ""),
        (changed(GOOD, id=2, rel_ids=["2"]), "2", "rel_ids[0]", ""),
    ],
)
def test_a_hostile_public_line_is_refused_with_its_line(
    tmp_path: Path, record: Any, instance: str | None, field: str | None, mentioned: object
) -> None:
    path = lines(tmp_path / "senti_en", GOOD, record)
    with refused(mentioned, file=path, line=2, instance=instance, field=field) as caught:
        list(read_public(path, SENTI))
    assert str(caught.error).startswith(f"{path}:2: ")
    assert len(str(caught.error)) < 600


INDEX = "rationale_ids[0][0][0]"


@pytest.mark.parametrize(
    ("fields", "field", "mentions"),
    [
        ({"rationale_ids": ...}, None, ("rationale_ids", "rationale_q_idx")),
        ({"rationale_ids": [[["814"]]]}, "rationale_ids[0][0]", ("below 2,", 814)),
        ({"rationale_ids": [[["-1"]]]}, INDEX, ("'-1'",)),
        ({"rationale_ids": [[[-1]]]}, INDEX, (" -1",)),
        ({"rationale_ids": [[[1.0]]]}, INDEX, ("1.0",)),
        ({"rationale_ids": [[[True]]]}, INDEX, ("True",)),
        ({"rationale_ids": [[["٣"]]]}, INDEX, ("'٣'",)),
        ({"rationale_ids": [[[10**30]]]}, INDEX, (10**30,)),
        ({"rationale_ids": [[["1"]], [["1"]]]}, "rationale_ids", (" 1 ", " 2")),
        ({"rationale_ids": [["1", ["0"]]]}, "rationale_ids", ("[['1', ['0']]]",)),
        ({"rationale_ids": [[[["1"]]]]}, "rationale_ids", ("[[[['1']]]]",)),
        ({"rationale_ids": "1"}, "rationale_ids", ("'1'",)),
        ({"rationale_ids": None}, "rationale_ids", ("None",)),
        ({"sent_label": 814}, "sent_label", ("negative", "positive", 814)),
        ({"sent_label": "good"}, "sent_label", ("'good'",)),
        ({"sent_label": True}, "sent_label", ("True",)),
        ({"sent_id": 3, "rel_ids": [3]}, "rel_ids[0]", ("'3'",)),
        ({"sent_id": 1}, "id", ("line 1 ",)),
    ],
)
def test_a_hostile_gold_line_is_refused_with_its_line(
    tmp_path: Path, fields: dict, field: str | None, mentions: tuple[object, ...]
) -> None:
    path = lines(tmp_path / "gold", GOLD, changed(GOLD, **{"sent_id": 2, **fields}))
    with refused(*mentions, file=path, line=2, field=field) as caught:
        list(read_gold(path, SENTI))
    assert str(caught.error).startswith(f"{path}:2: ")


def test_a_byte_order_mark_and_a_missing_last_newline_load(tmp_path: Path) -> None:
    path = tmp_path / "senti_en"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode())
    assert [example.id for example in read_public(path, SENTI)] == ["1"]


def joined(tmp_path: Path, public: list[dict], gold: list[dict]):
    """The join of records written to files."""
    public_file, gold_file = lines(tmp_path / "senti_en", *public), lines(tmp_path / "gold", *gold)
    return join(read_public(public_file, SENTI), read_gold(gold_file, SENTI), SENTI), gold_file


def test_the_golds_rel_ids_win_and_are_reported(tmp_path: Path) -> None:
    perturbed = [changed(GOOD, id=n, sample_type="disturb", rel_ids=...) for n in (2, 3)]
    result, _ = joined(tmp_path, [GOOD, *perturbed], [changed(GOLD, rel_ids=["3"])])
    assert result.examples[0].rel_ids == ("3",)
    assert [example.original_id for example in result.examples] == [None, None, "1"]
    (report,) = result.reports
    assert "rel_ids" in report and " 1 " in report and "(1: 2 -> 3)" in report
    assert [example.gold is not None for example in result.examples] == [True, False, False]


def test_equal_rel_ids_of_another_type_do_not_differ(tmp_path: Path) -> None:
    result, _ = joined(tmp_path, [GOOD], [changed(GOLD, rel_ids=["2"])])
    assert result.reports == []


def test_gold_without_a_public_record_is_appended_and_reported(tmp_path: Path) -> None:
    result, _ = joined(tmp_path, [GOOD], [GOLD, changed(GOLD, sent_id=9, sample_type="disturb")])
    assert [example.id for example in result.examples] == ["1", "9"]
    assert result.examples[1].public is None
    assert len(result.reports) == 1 and result.reports[0].startswith("1 ")


def test_gold_of_other_tokens_is_refused_and_counted(tmp_path: Path) -> None:
    public = [changed(GOOD, id=n, rel_ids=[100]) for n in range(12)]
    gold = [changed(GOLD, sent_id=n, sent_token=["so", "bad"]) for n in range(12)]
    mentions = (f"{tmp_path / 'senti_en'}:1,", "'so good'", "'so bad'", "(12 in all)")
    with refused(*mentions, file="gold", line=1, instance="0", total=12, type=DataErrors):
        joined(tmp_path, public, gold)


def test_gold_without_tokens_is_held_against_the_public_ones(tmp_path: Path) -> None:
    with refused("below 2,", 814, file="gold", line=1, instance="1"):
        joined(tmp_path, [GOOD], [changed(GOLD, sent_token=..., rationale_ids=[[[814]]])])


def test_gold_alone_has_to_say_what_a_row_needs(tmp_path: Path) -> None:
    gold = lines(tmp_path / "gold", GOLD)
    with refused("sample_type", file="gold", line=1, instance="1"):
        join(None, read_gold(gold, SENTI), SENTI)


# first, tenth and last record: ids, and tokens of all sequences
FIRST_IDS = {
    "senti_en": ("1", "10", "1519"),
    "senti_ch": ("1", "15", "1672"),
    "similarity_en": ("1", "10", "1679"),
    "similarity_ch": ("1", "10", "1649"),
    "mrc_en": ("1", "10", "1527"),
    "mrc_ch": ("1", "36", "1834"),
}
TOKENS = {
    "senti_en": (9, 16, 32),
    "senti_ch": (14, 20, 30),
    "similarity_en": (18, 39, 19),
    "similarity_ch": (19, 16, 18),
    "mrc_en": (68, 60, 83),
    "mrc_ch": (141, 126, 156),
}


@pytest.mark.parametrize("name", list(CONFIGS))
def test_the_real_public_files(corpora: Path, name: str) -> None:
    path = corpora / "luge" / name
    if not path.is_file():
        pytest.skip(f"skipped: no luge/{name}")
    examples = list(read_public(path, CONFIGS[name]))
    assert len(examples) == 40
    assert [example.sample_type for example in examples] == ["ori"] * 20 + ["disturb"] * 20
    assert tuple(examples[n].id for n in (0, 9, -1)) == FIRST_IDS[name]
    assert tuple(sum(map(len, examples[n].tokens)) for n in (0, 9, -1)) == TOKENS[name]
    rows = join(examples, None, CONFIGS[name]).examples
    assert [row.original_id for row in rows[20:]] == [row.id for row in rows[:20]]


def test_the_real_gold_records(corpora: Path) -> None:
    folder = corpora / "luge"
    gold_file = folder / "senti_ch_golden_2records.jsonl"
    if not gold_file.is_file():
        pytest.skip("skipped: no luge/senti_ch_golden_2records.jsonl")
    config = CONFIGS["senti_ch"]
    public = read_public(folder / "senti_ch", config)
    result = join(public, read_gold(gold_file, config), config)
    first, second = result.examples[:2]
    assert (first.id, first.label, first.rel_ids) == ("1", 0, ("2162",))
    assert first.rationale_ids == (((2, 3, 7), (11, 12, 13)),)
    assert (second.id, second.label, second.rel_ids) == ("4", 1, ("2165",))
    assert second.rationale_ids == (((5, 6, 9), (15, 16, 17, 18)),)
    assert len(result.reports) == 1 and "(1: 1647 -> 2162, 4: 1650 -> 2165)" in result.reports[0]
