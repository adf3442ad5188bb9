"""The results board: published rows, score files, and what it refuses."""

from __future__ import annotations

import json
import math
from collections import Counter

import pytest

from eraser_hub.records.errors import make_printable
from eraser_hub.reports import score_ranges
from eraser_hub.reports.board_lines import (
    BoardLine,
    average_draws,
    parse_score_argument,
    read_score_file,
)
from eraser_hub.reports.board_page import collect_board_lines, read_published_lines, to_board_json, write_board
from eraser_hub.reports.catalogue import METRICS, format_number, metric
from eraser_hub.reports.score_ranges import find_range

from ..refusals import refused

SIGNATURE = "eraser_agreement|iou:0.5|seed:1|version:0.1.0"


def write(path, **content):
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


# ------------------------------------------------------------------------------------------------ published rows
def find(system, dataset, source):
    found = [e for e in read_published_lines() if (e.system, e.dataset, e.source) == (system, dataset, source)]
    assert len(found) == 1
    return found[0]


def test_published_rows_as_printed():
    entries = read_published_lines()
    assert Counter(entry.source for entry in entries) == {
        "Bilingual benchmark (2022), Table 6": 24,
        "Bilingual benchmark (2022), Table 8": 24,
        "ERASER (ACL 2020), Table 3": 5,
        "ERASER (ACL 2020), Table 4": 2,
        "ERASER v1 (2019), Table 3": 18,
        "ERASER v1 (2019), Table 4": 14,
    }
    # ERASER, first version, Table 3
    lei = find("Lei et al. (2016)", "movies", "ERASER v1 (2019), Table 3").scores
    assert lei == {"macro_f1": 0.914, "iou_macro_f1": 0.124, "token_macro_f1": 0.285}
    cose = find("Lei et al. (2016) (u)", "cose", "ERASER v1 (2019), Table 3")
    assert cose.scores["accuracy"] == 0.476 and "degenerated" in cose.detail
    # ERASER, first version, Table 4: measured once, at k_d
    first = find("GloVe-LSTM + Attention", "boolq", "ERASER v1 (2019), Table 4")
    assert first.scores == {"macro_f1": 0.631, "auprc": 0.525, "comprehensiveness": -0.001, "sufficiency": 0.028}
    assert "k_d = 10%" in first.detail and "not AOPC" in first.detail
    # ACL 2020, Table 4: AOPC over bins, so other columns
    second = find("GloVe + LSTM - Attention", "boolq", "ERASER (ACL 2020), Table 4")
    assert second.scores["comprehensiveness_aopc"] == 0.010 and "comprehensiveness" not in second.scores
    assert "AOPC" in second.detail
    # the bilingual benchmark prints percentages: shares here
    english = find("RoBERTa-base + LIME", "senti_en", "Bilingual benchmark (2022), Table 6").scores
    assert english == {
        "token_f1": 0.415,
        "iou_f1": 0.138,
        "map": 0.61,
        "sufficiency": 0.032,
        "comprehensiveness": 0.568,
    }
    chinese = find("LSTM + ATT", "mrc_ch", "Bilingual benchmark (2022), Table 8").scores
    assert chinese == {"token_f1": 0.027, "iou_f1": 0.0, "map": 0.796}


def test_published_rows_are_known_and_in_range():
    for entry in read_published_lines():
        assert entry.kind == "published" and entry.detail and entry.source
        for key, value in entry.scores.items():
            assert key in METRICS and -1 <= value <= 1, (entry, key)


# ------------------------------------------------------------------------------------------------- score files
def test_a_score_file_becomes_a_line(tmp_path):
    content = {"auprc": 0.5, "auprc_ci": [0.4, 0.6], "accuracy": None, "aopc_thresholds": [0.1]}
    path = write(tmp_path / "ours.scores.json", config="movies", split="val", signature=SIGNATURE, **content)
    entry = read_score_file(path)
    assert (entry.system, entry.dataset, entry.split, entry.kind) == ("ours", "movies", "validation", "scored")
    assert entry.scores == {"auprc": 0.5, "accuracy": None} and entry.intervals == {"auprc": (0.4, 0.6)}
    assert entry.detail == SIGNATURE
    assert read_score_file(path, system="x", dataset="fever").dataset == "fever"


def of_movies(rest: str) -> str:
    return f'{{"signature": "a|b", "config": "movies"{rest}}}'


@pytest.mark.parametrize(
    ("text", "field", "found"),
    [
        ("{", None, "line's end"),
        ("", None, ""),
        ('{"signature": "a|b", "signature": "c", "config": "movies", "auprc": 1}', None, "'signature'"),
        (of_movies(', "auprc": NaN'), None, "found NaN"),
        (of_movies(', "auprc": 1e400'), None, "found '1e400'"),
        (of_movies(f', "auprc": 1{"0" * 400}'), "auprc", "found 1000"),
        (of_movies(', "auprc": 1, "token_f1": [0.5]'), "token_f1", "a list"),
        (of_movies(', "auprc": 1, "auprc_ci": [0, "1"]'), "auprc_ci", "the string '1'"),
        ('{"signature": "a|b", "config": ["movies"], "auprc": 1}', "config", "a list"),
        (of_movies(f', "auprc": 1, "x": {"[" * 200}{"]" * 200}'), None, "64 levels"),
        ('{"signature": "a|b", "auprc": 1}', None, "SYSTEM@DATASET=FILE"),
        (of_movies(""), None, ""),
        (of_movies(', "auprc": "0.99"'), "auprc", "the string '0.99'"),
        (of_movies(', "auprc": 7.5'), "auprc", "at most 1, found 7.5"),
        (of_movies(', "sufficiency": -1.2'), "sufficiency", "at least -1 and at most 1, found -1.2"),
        (of_movies(', "iou_macro_p@0.1": 2'), "iou_macro_p@0.1", "found 2"),
        (of_movies(', "auprc": 0.5, "auprc_ci": [0.6, 0.7]'), "auprc_ci[0]", "at most 0.5, found 0.6"),
        (of_movies(', "auprc": null, "auprc_ci": [0.3, 0.2]'), "auprc_ci[0]", "at most 0.2, found 0.3"),
        (of_movies(', "auprc": 0.5, "auprc_ci": [-3, 0.7]'), "auprc_ci[0]", "at least 0"),
        (of_movies(', "auprc": 0.5, "auprc_spread": -1'), "auprc_spread", "at least 0, found -1"),
        ("\ufeff{", None, ""),
    ],
)
def test_score_files_that_are_none(tmp_path, text, field, found):
    path = tmp_path / "s.json"
    path.write_text(text, encoding="utf-8")
    with refused(found, file=path) as caught:
        read_score_file(path)
    assert caught.first.field == field or (field is None and "1000" in found)


def test_scores_at_the_ends_of_their_ranges(tmp_path):
    content = {
        "iou_macro_r": 2.0,
        "iou_macro_f1": 1.25,
        "sufficiency": -1.0,
        "auprc": 1 + 1e-12,
        "naopc_sufficiency": 7,
    }
    path = write(tmp_path / "s.json", config="movies", signature=SIGNATURE, **content)
    assert read_score_file(path).scores == content
    beside = {"auprc": 0.5, "auprc_ci": [0.51, 0.52]}  # a low level leaves the score of a skewed sample out
    path = write(tmp_path / "s.json", config="movies", signature=f"{SIGNATURE}|level:0.1", **beside)
    assert read_score_file(path).intervals == {"auprc": (0.51, 0.52)}


def test_every_declared_score_of_the_catalogue_has_a_range():
    """But for those without an end on either side, which the metrics declare so."""
    endless = {key for key in METRICS if find_range(key) == (-math.inf, math.inf)}
    assert endless == {
        *(f"{side}_entropy" for side in ("comprehensiveness", "sufficiency")),
        *(f"naopc_{side}" for side in ("comprehensiveness", "sufficiency")),
    }


def test_an_address_with_a_token_is_no_named_file():
    with refused() as caught:
        parse_score_argument("https://me:secret@host/s.json?token=secret")
    assert (
        make_printable(str(caught.error))
        == "https:/***@host/s.json?token=***: cannot be read: No such file or directory"
    )


def entry(system="a", dataset="movies", detail=SIGNATURE, **scores):
    return BoardLine(system, dataset, "test", "scored", "scored here", detail, scores)


def test_draws_are_averaged_and_other_settings_refused():
    draws = [entry(detail=SIGNATURE.replace("seed:1", f"seed:{s}"), auprc=s / 10, map=0.5) for s in range(3)]
    (mean,) = average_draws(draws)
    assert mean.spread == {"auprc": pytest.approx(0.1), "map": 0}
    assert mean.scores == {"auprc": pytest.approx(0.1), "map": 0.5}
    assert "mean of 3" in mean.source and "seed:*" in mean.detail and mean.notes == ("the mean of 3 score files",)
    with refused("'a'", "movies", "found 2 "):
        average_draws([draws[0], entry(detail=SIGNATURE.replace("0.5", "0.1"), auprc=0.2)])


# ------------------------------------------------------------------------------------------------------ the board
def test_no_system_is_first_by_merit():
    lines = collect_board_lines([entry("zzz", auprc=1.0), entry("AAA", auprc=0.0)])
    order = [(line.group.lower(), line.system.lower()) for line in lines]
    assert order == sorted(order)
    data = to_board_json(lines)
    families = [column["family"] for column in data["columns"]]
    assert families == sorted(families), "families in alphabetical order"
    assert {column["key"] for column in data["columns"]} >= {
        "auprc",
        "comprehensiveness",
        "comprehensiveness_aopc",
        "map",
    }


def test_a_print_of_another_split_stands_apart_and_says_why(tmp_path):
    """In movies the test split alone is comprehensive: its print is no match for scores of validation."""
    from eraser_hub.reports.board_page import make_board_tables

    chance = {"auprc": 0.125}
    gold = {"marked_rows": 200, "unmarked_rows": 0, "density": 0.072, "split": "validation", "comprehensive": False}
    path = write(
        tmp_path / "ours.json", config="movies", split="val", signature=SIGNATURE, auprc=0.5, gold=gold, chance=chance
    )
    ours = read_score_file(path)
    tables = {table.name: table for table in make_board_tables(collect_board_lines([ours])).tables}
    assert {name for name in tables if name.startswith("movies")} == {"movies", "movies, printed"}
    own, prints = tables["movies"], tables["movies, printed"]
    assert [left[0] for left, _ in own.rows] == ["ours", "ours, chance"]
    assert [cells["AUPRC"].value for _, cells in own.rows] == [0.5, 0.125]
    assert "7.2% of the tokens are gold where there is any; not comprehensive" in own.notes[0]
    reason = "not beside lines of movies scored on other gold (validation, not comprehensive)"
    assert [reason in note and "test, comprehensive" in note for note in prints.notes] == [True]
    (row,) = [row for row in to_board_json(collect_board_lines([ours]))["rows"] if row["system"] == "ours"]
    assert row["chance"] == chance and "not comprehensive" in row["detail"]
    page, *_ = write_board(tmp_path / "board", collect_board_lines([ours]))
    assert "chance\u00a00.125" in page.read_text()
    beside = collect_board_lines(
        [read_score_file(write(path, config="movies", split="test", signature="a|b", auprc=1))]
    )
    groups = {(line.group, line.status) for line in beside if line.dataset == "movies"}
    assert groups == {("movies", "self-reported"), ("movies, printed", "printed")}
    assert {line.apart for line in beside if line.group == "movies, printed"} == {
        "printed figures of test, comprehensive: their data have no digest"
    }


def test_lines_are_grouped_by_split_and_data_and_samples_are_flagged(tmp_path):
    def line(system, split, data, n=24):
        signature = f"eraser_agreement|data:{data[:12]}|split:{split}|n:{n}|version:1.0.0"
        path = write(
            tmp_path / f"{system}.json", config="movies", split=split, signature=signature, auprc=0.5, data_digest=data
        )
        return read_score_file(path)

    lines = [line("a", "val", 64 * "1"), line("b", "val", 64 * "2", 200), line("c", "test", 64 * "1")]
    found = {each.system: each for each in collect_board_lines(lines, published=False)}
    assert {name: each.group for name, each in found.items()} == {
        "a": "movies, validation, data:111111111111",
        "b": "movies, validation, data:222222222222",
        "c": "movies, test",
    }
    assert found["a"].sample == "a sample: 24 annotations, the release has 200"
    assert found["b"].sample == "other data than the release's"
    assert (found["a"].instances, found["a"].status) == (24, "self-reported")
    rows = to_board_json(list(found.values()))["rows"]
    assert {(row["group"], row["instances"], row["data"][:2]) for row in rows} >= {("movies, test", 24, "11")}


GOLD = {"marked_rows": 24, "unmarked_rows": 0, "density": 0.1, "split": "validation"}
OF_DATA = f"eraser_agreement|data:{64 * '1'}"[:40] + "|split:validation|n:24"


@pytest.mark.parametrize(
    ("more", "field", "found"),
    [
        *(({"signature": signature}, "signature", "") for signature in (None, "  ", 7, [], [1])),
        ({"signature": "x" * 100_000}, "signature", "one printable line"),
        ({"signature": "a|b\x1b[31m"}, "signature", "one printable line"),
        ({"run": "a|b\x1b[31m"}, "run", "one printable line"),
        (
            {"signature": OF_DATA, "split": "test"},
            "split",
            "expected 'validation', which its signature names, found 'test'",
        ),
        (
            {"signature": OF_DATA, "data_digest": 64 * "2"},
            "data_digest",
            f"expected {12 * '1'}, which its signature names, found {12 * '2'}",
        ),
        ({"config": "a\nb"}, "config", "on one line"),
        ({"system": "a\u202eb"}, "system", "printable"),
        ({"chance": {"auprc": 9.0}}, "chance.auprc", "at most 1, found 9"),
        ({"gold": {**GOLD, "marked_rows": -1}}, "gold.marked_rows", "found -1"),
        ({"gold": [1]}, "gold", ""),
        ({"chance": 3}, "chance", ""),
    ],
)
def test_a_score_file_that_contradicts_itself_or_its_form_is_refused(tmp_path, more, field, found):
    content = {"config": "movies", "split": "val", "signature": SIGNATURE, "auprc": 0.5, **more}
    path = write(tmp_path / "s.json", **content)
    with refused(found, file=path, field=field):
        read_score_file(path)


ODD = "a\nb\x1b[31m"


def test_the_names_that_are_shown_are_checked_and_no_others(tmp_path):
    scores = {"split": "val", "signature": SIGNATURE, "auprc": 0.5}
    good = write(tmp_path / "good.json", config="movies", **scores)
    for odd in (f"{ODD}={good}", f"ours@{ODD}={good}", f"{'n' * 300}={good}"):
        with refused("on one line", "SYSTEM@DATASET=FILE", file=good):
            parse_score_argument(odd)
    named = write(tmp_path / "named.json", system=ODD, config=ODD, dataset=ODD, **scores)
    with refused("on one line", file=named, field="system"):
        parse_score_argument(str(named))
    with refused("on one line", file=named, field="config"):
        parse_score_argument(f"ours={named}")
    line = parse_score_argument(f"ours@movies={named}")
    assert (line.system, line.dataset) == ("ours", "movies")
    odd = write(tmp_path / "a\x1bb.json", config="movies", **scores)
    with refused("SYSTEM@DATASET=FILE", file=odd):
        parse_score_argument(str(odd))
    assert parse_score_argument(f"ours={odd}").system == "ours"


def test_hostile_names_are_text(tmp_path):
    hostile = '"><script>alert(1)</script>'
    page, *_ = write_board(tmp_path, [entry(hostile, hostile, hostile, **{"auprc": 1.0, hostile: 2.0})])
    assert page.read_text().count("<script>") == 1


def test_keys_with_thresholds_and_unknown_ones():
    assert metric("iou_micro_f1@0.1").label == "IOU F1 (micro) @ 0.1"
    assert metric("something_new").label == "something_new" and metric("something_new").better == ""


def test_directions_are_those_of_the_scores():
    """Each score is better where its metric says so; where two metrics differ over a key, as one of them says."""
    better: dict[str, set[str]] = {}
    for scores in score_ranges.SCORES:
        for key, score in scores.items():
            better.setdefault(key, set()).add({True: "higher", False: "lower", None: ""}[score.higher_is_better])
    shown = [key for key, ways in better.items() if ways != {""} and not key.endswith("_points")]
    assert [key for key in shown if metric(key).label == key or metric(key).better not in better[key]] == []


def test_page_and_data_are_old_or_new_together(tmp_path):
    """A value that JSON does not have left the new page beside the old data."""
    paths = write_board(tmp_path, [entry("ours", auprc=0.5)])
    before = [path.read_bytes() for path in paths]
    with pytest.raises(ValueError, match="JSON"):
        write_board(tmp_path, [entry("ours", auprc=float("nan"))])
    assert [path.read_bytes() for path in paths] == before and len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.12345, "0.123"), (-0.0001, "0.000"), (float("nan"), "–"), (None, "–"), (float("inf"), "∞"), (-0.25, "-0.250")],
)
def test_numbers(value, text):
    assert format_number(value) == text
