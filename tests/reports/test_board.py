"""The results board: printed rows, score files, groups, and what it refuses."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from eraser_hub.records.errors import make_printable
from eraser_hub.reports.board import board
from eraser_hub.reports.board_page import BoardLine, group_lines, list_printed_lines, read_score_file
from eraser_hub.reports.catalogue import METRICS

from ..refusals import refused

pytestmark = pytest.mark.unit
SIGNATURE = "eraser_agreement|data:914ebab402fa|config:movies|split:validation|n:24|version:1.0.0"


def write(path, **content):
    path.write_text(json.dumps({"config": "movies", "signature": SIGNATURE, "auprc": 0.5, **content}), "utf-8")
    return path


# -- printed rows -----------------------------------------------------------------------------------------------------


def test_printed_rows_as_printed():
    lines = list_printed_lines()
    assert Counter(line.source for line in lines) == {
        "Bilingual benchmark (2022), Table 6": 24,
        "Bilingual benchmark (2022), Table 8": 24,
        "ERASER (ACL 2020), Table 3": 5,
        "ERASER (ACL 2020), Table 4": 2,
        "ERASER v1 (2019), Table 3": 18,
        "ERASER v1 (2019), Table 4": 14,
    }
    assert all(key in METRICS and -1 <= value <= 1 for line in lines for key, value in line.scores.items())
    found = {(line.system, line.dataset, line.source): line for line in lines}
    # ERASER's first version measures Table 4 once, at k_d; ACL 2020 prints AOPC, so other columns
    first = found["GloVe-LSTM + Attention", "boolq", "ERASER v1 (2019), Table 4"]
    assert first.scores == {"macro_f1": 0.631, "auprc": 0.525, "comprehensiveness": -0.001, "sufficiency": 0.028}
    assert first.split == "test" and "k_d = 10%" in first.detail and "not AOPC" in first.detail
    second = found["GloVe + LSTM - Attention", "boolq", "ERASER (ACL 2020), Table 4"].scores
    assert second["comprehensiveness_aopc"] == 0.010 and "comprehensiveness" not in second
    # the bilingual benchmark prints percentages: shares here
    assert found["LSTM + ATT", "mrc_ch", "Bilingual benchmark (2022), Table 8"].scores["map"] == 0.796


# -- score files ------------------------------------------------------------------------------------------------------


def test_a_score_file_becomes_a_line(tmp_path):
    content = {"accuracy": None, "mine": 0.25, "pairs": 7, "aopc_thresholds": [0.1], "auprc_ci": [0.4, 0.6]}
    more = {"chance": {"auprc": 0.1, "map": 0.2}, "auprc_spread": 0.1, "mine_note": "words"}
    run = "explain|method:lime|erase:mask|seed:1"
    line = read_score_file(write(tmp_path / "ours.scores.json", split="val", run=run, **content, **more))
    assert (line.system, line.dataset, line.split, line.kind) == ("ours", "movies", "validation", "measured")
    assert line.scores == {"auprc": 0.5, "accuracy": None, "mine": 0.25} and line.intervals == {"auprc": (0.4, 0.6)}
    assert (line.spread, line.chance, line.annotations) == ({"auprc": 0.1}, {"auprc": 0.1}, 24)
    assert line.detail == f"{SIGNATURE} · {run}" and line.settings == {"eraser_agreement": "", "run": "erase:mask"}
    assert line.small_print("auprc") == "[0.400, 0.600]\n±0.100\nchance 0.100"


def test_scores_at_the_ends_of_their_ranges(tmp_path):
    content = {"iou_macro_r": 2.0, "iou_macro_f1": 1.25, "sufficiency": -1.0, "auprc": 1 + 1e-12}
    assert read_score_file(write(tmp_path / "s.json", **content)).scores == content
    beside = {"auprc_ci": [0.51, 0.52], "signature": f"{SIGNATURE}|level:0.1"}  # which leaves a skewed score out
    assert read_score_file(write(tmp_path / "s.json", **beside)).intervals == {"auprc": (0.51, 0.52)}


GOLD = {"marked_rows": 24, "unmarked_rows": 0, "density": 0.1}


@pytest.mark.parametrize(
    ("more", "field", "found"),
    [
        *(({"signature": signature}, "signature", "") for signature in (None, "  ", 7, [])),
        ({"signature": [1]}, "signature[0]", ""),
        ({"signature": "x" * 100_000}, "signature", "one printable line"),
        ({"signature": "a|b\x1b[31m"}, "signature", "one printable line"),
        ({"run": "a|b\x1b[31m"}, "run", "one printable line"),
        ({"config": ["movies"]}, "config", "array"),
        ({"config": None}, None, "SYSTEM@DATASET=FILE"),
        ({"config": "a\nb"}, "dataset", "on one line"),
        ({"system": "a\u202eb"}, "system", "printable"),
        ({"system": "n" * 300}, "system", "printable"),
        ({"auprc": "0.99"}, "auprc", "the string '0.99'"),
        ({"auprc": 10**400}, "auprc", "found 1000"),
        ({"auprc": True}, "auprc", "found true"),
        ({"auprc": None}, None, "1 to 1,000 scores"),
        ({f"mine{k}": 0.5 for k in range(1001)}, None, "1 to 1,000 scores"),
        ({"auprc": 7.5}, "auprc", "at most 1, found 7.5"),
        ({"sufficiency": -1.2}, "sufficiency", "at least -1 and at most 1, found -1.2"),
        ({"token_f1": [0.5]}, "token_f1", "a list"),
        ({"auprc_ci": [0, "1"]}, "auprc_ci[1]", "the string '1'"),
        ({"auprc_ci": [0.6, 0.7]}, "auprc_ci[0]", "at most 0.5, found 0.6"),
        ({"auprc_ci": [-3, 0.7]}, "auprc_ci[0]", "at least 0"),
        ({"auprc": None, "map": 1, "auprc_ci": [0.3, 0.2]}, "auprc_ci[0]", "at most 0.2, found 0.3"),
        ({"auprc_spread": -1}, "auprc_spread", "at least 0, found -1"),
        ({"chance": {"auprc": 9.0}}, "chance.auprc", "at most 1, found 9"),
        ({"chance": 3}, "chance", ""),
        ({"gold": {**GOLD, "density": "x"}}, "gold.density", ""),
        ({"gold": [1]}, "gold", ""),
    ],
)
def test_a_score_file_that_is_none(tmp_path, more, field, found):
    path = write(tmp_path / "s.json", **more)
    with refused(found, file=path) as caught:
        read_score_file(path)
    assert caught.first.field == field


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"auprc": NaN}', '{"auprc": 1e400}', '{"a": 1, "a": 2}', f'{{"x": {"[" * 99}{"]" * 99}}}']
)
def test_what_is_no_strict_json(tmp_path, text):
    (tmp_path / "s.json").write_text(text)
    with refused(file=tmp_path / "s.json"):
        read_score_file(tmp_path / "s.json")


def test_names_are_given_and_credentials_are_not_shown(tmp_path):
    odd = write(tmp_path / "a\x1bb.json", system="a\nb", config="a\nb")
    (line,) = board(f"ours@movies={odd}", published=False).lines
    assert (line.system, line.dataset) == ("ours", "movies")
    with refused("SYSTEM@DATASET=FILE", file=odd, field="system"):
        board(str(odd))
    with refused() as caught:
        board("https://me:secret@host/s.json?token=secret")
    assert "secret" not in make_printable(str(caught.error))


# -- the board --------------------------------------------------------------------------------------------------------


def test_groups_are_of_one_split_data_and_settings(tmp_path):
    def line(system, split="validation", data="1" * 12, metric="eraser_agreement", more="", **content):
        signature = f"{metric}|data:{data}|split:{split}|n:24{more}|seed:{len(system)}|version:1.0.0"
        return read_score_file(write(tmp_path / f"{system}.json", signature=[signature], **content))

    lines = [line("a"), line("bb", metric="eraser_faithfulness"), line("c", data="2" * 12), line("d", "test")]
    lines += [line("e", more="|iou:0.1"), line("f", "test", "", gold=GOLD)]
    groups = group_lines([*lines, *list_printed_lines()])
    assert {group.name: [line.system for line in group.lines] for group in groups[:5]} == {
        "movies, test, data 111111111111": ["d"],
        "movies, test, data unknown": ["f"],
        "movies, validation, data 111111111111, defaults": ["a", "bb"],
        "movies, validation, data 111111111111, eraser_agreement iou:0.1": ["e"],
        "movies, validation, data 222222222222": ["c"],
    }
    assert groups[2].facts == ["24 annotations", "data 111111111111", groups[2].facts[-1]]
    assert "200 annotations" in groups[2].facts[-1], "the release has other data"
    printed = {group.name: group for group in groups[5:]}
    assert all(line.kind == "printed" for group in printed.values() for line in group.lines)
    assert printed["movies, test, printed"].facts[-1] == "gold comprehensive"
    (unlike,) = group_lines([BoardLine("a", "x", settings={"run": "erase:mask"}, scores={"auprc": 1})])
    assert unlike.name == "x, split unknown"


def test_the_tables_and_the_data_of_a_board(tmp_path):
    write(tmp_path / "zz.scores.json", chance={"auprc": 0.1}, auprc_ci=[0.4, 0.6], accuracy=1.0, roc_auc_score=0.7)
    write(tmp_path / "AA.scores.json")
    made = board(str(tmp_path), out=tmp_path / "board")
    (table,) = made.table().tables
    assert [left for left, _ in table.rows] == [("AA",), ("zz",), ("zz, chance",)], "none by its merit"
    assert table.columns == ("AUPRC", "Accuracy") and table.rows[1][1]["AUPRC"].interval == (0.4, 0.6)
    assert len(made.table(whole=True).tables) == len(made.groups) == 14 and len(made.signatures) == 2
    assert "source" in made.table(whole=True).tables[-1].left
    data = json.loads((tmp_path / "board" / "board.json").read_text())
    row = next(row for row in data["rows"] if row["system"] == "zz")
    assert (row["group"], row["kind"], row["chance"]) == ("movies, validation", "measured", {"auprc": 0.1})
    assert sorted({row["group"] for row in data["rows"]}) == sorted(group["name"] for group in data["groups"])
    assert board().table().tables, "without score files the printed ones"
    with refused(argument="scores"):
        board(published=False)


def test_a_file_that_is_given_twice_is_a_row(tmp_path):
    file = write(tmp_path / "ours.scores.json")
    made = board([str(tmp_path), str(file), f"theirs={file}"], published=False)
    assert [line.system for line in made.lines] == ["ours", "theirs"] and "1 of 2 score files" in made.notes[-1]


def test_links_in_a_folder_are_not_followed(tmp_path, caplog):
    (folder := tmp_path / "in").mkdir()
    (outside := tmp_path / "out").mkdir()
    secret = write(outside / "secret.scores.json")
    (folder / "link.scores.json").symlink_to(secret)
    (folder / "linked").symlink_to(outside)
    with refused("found 0", file=folder):
        board(str(folder))
    write(folder / "own.scores.json")
    (folder / "own.run.json").write_text("{}")
    assert [line.system for line in board([str(folder)], published=False).lines] == ["own"]
    assert "1 links" in caplog.text


def test_hostile_names_are_text_and_files_are_written_together(tmp_path):
    hostile = '"><script>alert(1)</script>'
    file = write(tmp_path / "s.json", system=hostile, config=hostile, **{hostile: 2.0})
    page, data = board(str(file), out=tmp_path / "board").files
    assert page.read_text().count("<script>") == 1
    before = page.read_bytes()
    data.unlink()
    data.mkdir()
    with refused(file=data):
        board(str(file), out=tmp_path / "board", title="other")
    assert page.read_bytes() == before
