"""WikiAttack's rationale CSV, comments and annotations: reading, hostile files, the real development file."""

from __future__ import annotations

from pathlib import Path

import pytest

from eraser_hub.conversion.human_rationales.wikiattack import (
    find_kind,
    make_attack_rows,
    read_attacks,
    read_comments,
    read_masks,
    restore_comment,
    tokenize_comment,
)

from ...refusals import refused

pytestmark = pytest.mark.unit

HEADER = "platform_comment_id,rationale\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_masks_are_read_in_any_spelling_of_csv_and_json(tmp_path: Path) -> None:
    text = '1,"[1, 0]"\n"2","[0,1]"\r\n3,[]\n4,"[\n1]"\n5,"[' + "0, " * 50_000 + '1]"'
    masks = read_masks(write(tmp_path / "wiki_attack_dev_rationale.csv", HEADER + text))
    assert {key: line for key, (line, _) in masks.items()} == {"1": 2, "2": 3, "3": 4, "4": 5, "5": 7}
    assert [masks[key][1] for key in "1234"] == [[True, False], [False, True], [], [True]]
    assert len(masks["5"][1]) == 50_001 and sum(masks["5"][1]) == 1


@pytest.mark.parametrize(
    ("line", "field", "mentions"),
    [
        ('7,"[0, 814]"', "rationale", (814,)),
        ('7,"[0, 1"', "rationale", ("'[0, 1'",)),
        ("7", None, ("2 fields", " 1")),
        (',"[0]"', "platform_comment_id", ()),
        ('7,"[0]"x', None, ("CSV",)),
        ('1,"[0]"', "platform_comment_id", ("'1'", "line 2 ")),
        ('7,"' + "[" * 50_000 + '"', "rationale", ("'[[[",)),
    ],
)
def test_what_is_no_record_is_refused_with_its_line(
    tmp_path: Path, line: str, field: str | None, mentions: tuple[object, ...]
) -> None:
    path = write(tmp_path / "wiki_attack_dev_rationale.csv", HEADER + '1,"[0]"\n' + line + "\n")
    with refused(*mentions, file=path, line=3, field=field) as caught:
        read_masks(path)
    assert str(caught.error).startswith(f"{path}:3: ") and len(str(caught.error)) < 500


def test_tokens_are_runs_of_word_signs_and_runs_of_other_signs() -> None:
    text = restore_comment("NEWLINE_TOKEN== don't!TAB_TOKENüber_1 ")
    assert text == "== don't!\tüber_1"
    assert tokenize_comment(text) == ["==", "don", "'", "t", "!", "über_1"]


def test_comments_and_annotations_are_known_by_their_columns(tmp_path: Path) -> None:
    comments = write(tmp_path / "c.tsv", 'rev_id\tcomment\tyear\n1\tsay "hi\t2001\n2.0\tyou\t2001\n9\t"\t2001\n')
    votes = write(tmp_path / "a.tsv", "rev_id\tworker_id\tattack\n1\t1\t0.0\n1\t2\t1.0\n2\t1\t1\n9\t1\t1\n")
    others = write(tmp_path / "o.csv", "rev_id,year\n1,2001\n"), write(tmp_path / "p.tsv", "comment\nhi\n")
    kinds = ["comments", "annotations", None, None]
    assert [find_kind(path) for path in (comments, votes, *others)] == kinds
    assert read_comments(comments, {"1", "2"}) == {"1": 'say "hi', "2": "you"}
    assert read_attacks(votes, {"1", "2"}) == {"1": 0.5, "2": 1.0}


def test_a_comment_that_is_missing_leaves_its_row_without_text_and_is_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv", HEADER + '1,"[1, 0]"\n2,"[1]"\n')
    rows, missing = make_attack_rows(path, read_masks(path), {"1": "go away"}, {"1": 0.5})
    assert [(row["tokens"], row["label"]) for row in rows] == [(["go", "away"], 1), (None, None)]
    assert missing == {"ids without a comment": 1, "ids without annotations": 1}


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    for text in ("", "id,rationale\n", "platform_comment_id\n", "rationale,platform_comment_id\n", HEADER):
        with refused(file="x.csv", line=1):
            read_masks(write(tmp_path / "x.csv", text))
    for text, line, mentions in (
        ("rev_id\tcomment\n1\thi\textra\n", 2, ("2 fields", " 3")),
        ("rev_id\tcomment\n1\thi\n1\tho\n", 3, ("'1'",)),
        ("rev_id\tyear\n1\t2000\n", 1, ("rev_id", "comment", "['rev_id', 'year']")),
        ("", 1, ("rev_id", "comment", "[]")),
    ):
        with refused(*mentions, file="c.tsv", line=line):
            read_comments(write(tmp_path / "c.tsv", text), {"1"})
    with refused("'2'", line=2, instance="1", field="attack"):
        read_attacks(write(tmp_path / "a.tsv", "rev_id\tattack\n1\t2\n"), {"1"})
    for mask in ([0, 1, 0], [0]):
        path = write(tmp_path / "r.csv", HEADER + f'1,"{mask}"\n')
        with refused("2 tokens", f" {len(mask)}", file=path, line=2, instance="1", field="rationale"):
            make_attack_rows(path, read_masks(path), {"1": "go away"}, None)
