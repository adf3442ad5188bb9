"""WikiAttack's rationale CSV, comments and annotations: reading, hostile files, the real development file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.conversion.human_rationales.rows import read_wikiattack_rows
from eraser_hub.conversion.human_rationales.wikiattack import (
    find_kind,
    format_rationale,
    read_attacks,
    read_comments,
    read_rationales,
    restore_comment,
    tokenize_comment,
)

from ...refusals import refused

pytestmark = pytest.mark.unit

HEADER = "platform_comment_id,rationale\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@settings(derandomize=True, max_examples=50)
@given(st.dictionaries(st.integers(0, 10**12), st.lists(st.booleans(), max_size=40), max_size=8))
def test_records_come_back_as_they_were_written(tmp_path_factory: pytest.TempPathFactory, masks: dict) -> None:
    path = tmp_path_factory.mktemp("wiki") / "wiki_attack_dev_rationale.csv"
    lines = [format_rationale(str(comment_id), mask) for comment_id, mask in masks.items()]
    write(path, HEADER + "".join(line + "\n" for line in lines))
    records = list(read_rationales(path))
    assert {int(record.comment_id): list(record.mask) for record in records} == masks
    assert [record.text for record in records] == lines
    assert [record.line for record in records] == list(range(2, len(lines) + 2))


def test_a_mask_may_have_many_tokens(tmp_path: Path) -> None:
    path = write(tmp_path / "wiki_attack_dev_rationale.csv", HEADER + '7,"[' + "0, " * 50_000 + '1]"\n')
    (record,) = read_rationales(path)
    assert len(record.mask) == 50_001 and sum(record.mask) == 1


@pytest.mark.parametrize(
    ("line", "field", "mentions"),
    [
        ('7,"[0, 814]"', "rationale", ("index 1", 814)),
        ('7,"[0, 1.0]"', "rationale", ("1.0",)),
        ('7,"[true]"', "rationale", ("True",)),
        ('7,"[NaN]"', "rationale", ("nan",)),
        ('7,"[0, 1"', "rationale", ("'[0, 1'",)),
        ('7,"{}"', "rationale", ("{}",)),
        ("7,", "rationale", ("''",)),
        ("7", None, ("2 fields", " 1")),
        ("", None, ("2 fields", " 0")),
        ('7,"[0]",x', None, ("2 fields", " 3")),
        (',"[0]"', "platform_comment_id", ()),
        ('7,"[0]', None, ("CSV",)),
        ('7,"[0]"x', None, ("CSV",)),
        ('1,"[0]"', None, ("'1'", "line 2 ")),
        ('7,"' + "[" * 50_000 + '"', "rationale", ("'[[[",)),
    ],
)
def test_what_is_no_record_is_refused_with_its_line(
    tmp_path: Path, line: str, field: str | None, mentions: tuple[object, ...]
) -> None:
    path = write(tmp_path / "wiki_attack_dev_rationale.csv", HEADER + '1,"[0]"\n' + line + "\n")
    with refused(*mentions, file=path, line=3, field=field) as caught:
        list(read_rationales(path))
    assert str(caught.error).startswith(f"{path}:3: ")
    assert len(str(caught.error)) < 500


@pytest.mark.parametrize(
    "text",
    [
        "",
        "id,rationale\n",
        "platform_comment_id\n",
        "rationale,platform_comment_id\n",
    ],
)
def test_another_header_is_refused(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "x.csv", text)
    with refused("platform_comment_id,rationale", line=1):
        list(read_rationales(path))


def test_broken_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(HEADER.encode() + b'1,"[0]"\n\xff,"[0]"\n')
    with refused("0xff", "byte 1", line=3):
        list(read_rationales(path))


def test_tokens_are_runs_of_word_signs_and_runs_of_other_signs() -> None:
    text = restore_comment("NEWLINE_TOKEN== don't!TAB_TOKENüber_1 ")
    assert text == "== don't!\tüber_1"
    assert tokenize_comment(text) == ["==", "don", "'", "t", "!", "über_1"]


def test_comments_and_annotations_are_known_by_their_columns(tmp_path: Path) -> None:
    comments = write(tmp_path / "c.tsv", "rev_id\tcomment\tyear\n1\thi\t2001\n2.0\tyou\t2001\n9\tx\t2001\n")
    votes = write(tmp_path / "a.tsv", "rev_id\tworker_id\tattack\n1\t1\t0.0\n1\t2\t1.0\n2\t1\t1\n9\t1\t1\n")
    assert (find_kind(comments), find_kind(votes)) == ("comments", "annotations")
    assert {key: value.text for key, value in read_comments(comments, {"1", "2"}).items()} == {"1": "hi", "2": "you"}
    assert read_attacks(votes, {"1", "2"}) == {"1": 0.5, "2": 1.0}


def test_quotes_in_a_tsv_are_plain_signs(tmp_path: Path) -> None:
    comments = write(tmp_path / "c.tsv", 'rev_id\tcomment\n1\tsay "hi\n2\t"\n')
    assert read_comments(comments, {"1"})["1"].text == 'say "hi'


@pytest.mark.parametrize(
    ("text", "line", "mentions"),
    [
        ("rev_id\tcomment\n1\thi\textra\n", 2, ("2 fields", " 3")),
        ("rev_id\tcomment\n1\thi\n1\tho\n", 3, ("'1'", "line 2 ")),
        ("rev_id\tyear\n1\t2000\n", 1, ("rev_id", "comment", "['rev_id', 'year']")),
        ("", 1, ("rev_id", "comment", "[]")),
    ],
)
def test_a_damaged_comments_file_is_refused(tmp_path: Path, text: str, line: int, mentions: tuple[str, ...]) -> None:
    with refused(*mentions, file="c.tsv", line=line):
        read_comments(write(tmp_path / "c.tsv", text), {"1"})


def test_a_judgement_other_than_0_and_1_is_refused(tmp_path: Path) -> None:
    with refused("'2'", line=2, instance="1", field="attack"):
        read_attacks(write(tmp_path / "a.tsv", "rev_id\tattack\n1\t2\n"), {"1"})


@pytest.mark.parametrize("mask", [[0, 1, 0], [0]])
def test_a_mask_longer_or_shorter_than_its_comment_is_refused(tmp_path: Path, mask: list[int]) -> None:
    rationales = write(tmp_path / "r.csv", HEADER + f'1,"{json.dumps(mask)}"\n')
    comments = write(tmp_path / "c.tsv", "rev_id\tcomment\n1\tgo away\n")
    mentions = ("2 tokens", f"{comments}:2,", f" {len(mask)}")
    with refused(*mentions, file=rationales, line=2, instance="1", field="rationale"):
        read_wikiattack_rows(rationales, read_comments(comments, {"1"}), None, comments)


def test_a_comment_that_is_missing_leaves_its_row_without_text_and_is_counted(tmp_path: Path) -> None:
    rationales = write(tmp_path / "r.csv", HEADER + '1,"[1, 0]"\n2,"[1]"\n')
    comments = write(tmp_path / "c.tsv", "rev_id\tcomment\n1\tgo away\n")
    made = read_wikiattack_rows(rationales, read_comments(comments, {"1", "2"}), {"1": 0.5}, comments)
    assert [row["tokens"] for row in made.rows] == [["go", "away"], None]
    assert [row["label"] for row in made.rows] == [1, None]
    assert made.skipped == {"ids without a comment": 1, "ids without annotations": 1}


def test_the_real_development_file(corpora: Path) -> None:
    path = corpora / "wikiattack" / "wiki_attack_dev_rationale.csv"
    if not path.is_file():
        pytest.skip("skipped: no wikiattack/wiki_attack_dev_rationale.csv")
    records = list(read_rationales(path))
    assert len(records) == 549
    assert sum(any(record.mask) for record in records) == 247
    assert [(r.comment_id, len(r.mask), sum(r.mask)) for r in (records[0], records[9], records[-1])] == PINNED
    assert all(format_rationale(record.comment_id, record.mask) == record.text for record in records)


# id, tokens, tokens in the mask
PINNED = [("2644049", 110, 0), ("15308779", 6, 0), ("694372614", 6, 6)]
