"""Score files whose predictions are scored again."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import Any

import pytest

import eraser_hub
from eraser_hub.reports.board_lines import read_score_file
from eraser_hub.reports.boards.verification import describe_differences

from ..refusals import refused

OF: dict[str, Any] = {"config": "movies", "split": "validation"}


@pytest.fixture(scope="module")
def claimed(hub, samples, tmp_path_factory):
    """A folder with a dataset, predictions and their score file."""
    folder = tmp_path_factory.mktemp("claimed")
    predictions = folder / "p.jsonl"
    shutil.copy(samples / "predictions" / "eraser" / "movies.val.jsonl", predictions)
    eraser_hub.score(dataset=hub / "eraser", predictions=predictions, **OF).save(folder / "ours.json")
    return folder


def board(hub, folder, **more):
    options = {"dataset": hub / "eraser", "published": False, "scores": str(folder / "ours.json"), **OF}
    return eraser_hub.board(**(options | more))


def test_a_verified_line_takes_the_place_of_its_score_file(hub, claimed):
    (line,) = board(hub, claimed).lines
    assert line.status == "self-reported"
    result = board(hub, claimed, verify=f"{line.system}={claimed / 'p.jsonl'}")
    (verified,) = result.lines
    assert verified.status == "verified" and verified.system == line.system
    assert any("scores of the score file come out again" in note for note in result.notes)


def test_a_forged_score_file_is_contradicted_and_not_shown(hub, claimed, tmp_path):
    content = json.loads((claimed / "ours.json").read_text())
    content["agreement"]["token_macro_f1"] = 0.9999
    content["token_prf"]["instance_macro"]["f1"] = 0.9999
    (tmp_path / "ours.json").write_text(json.dumps(content))
    (line,) = board(hub, tmp_path).lines
    assert line.scores["token_macro_f1"] == 0.9999
    result = board(hub, tmp_path, verify=f"{line.system}={claimed / 'p.jsonl'}")
    assert (result.lines[0].scores["token_macro_f1"] or 1) < 0.9
    assert any("does not hold: token_macro_f1 0.9999 in the score file, 0." in note for note in result.notes)


def test_other_data_and_predictions_are_named(claimed):
    line = read_score_file(claimed / "ours.json")
    other = replace(line, data=64 * "0", predictions=("1",), scores={"auprc": None})
    words = describe_differences(line, other)
    assert f"data {line.data[:12]} in the score file, 000000000000 here" in words
    assert "other predictions" in words
    assert "scores of the file do not come out" in words


def test_lines_of_other_splits_and_datasets_stay(hub, claimed, tmp_path):
    content = json.loads((claimed / "ours.json").read_text())
    files = {"here": {}, "elsewhere": {"split": "test"}, "other": {"config": "boolq"}, "unknown": {"split": ""}}
    for name, more in files.items():
        text = json.dumps(content | {"system": "ours"} | more)
        (tmp_path / f"{name}.json").write_text(
            text.replace("|split:validation", f"|split:{more.get('split') or 'validation'}")
        )
    scores = [str(tmp_path / f"{name}.json") for name in ("here", "elsewhere", "other")]
    result = board(hub, tmp_path, scores=scores, verify=f"ours={claimed / 'p.jsonl'}")
    assert {(line.dataset, line.split, line.status) for line in result.lines} == {
        ("movies", "validation", "verified"),
        ("movies", "test", "self-reported"),
        ("boolq", "validation", "self-reported"),
    }
    (line,) = board(hub, tmp_path, scores=str(tmp_path / "unknown.json"), verify=f"ours={claimed / 'p.jsonl'}").lines
    assert (line.split, line.status) == ("validation", "verified")
    with refused("option-value", "'ours' on movies, validation", "boolq, validation; movies, test", argument="verify"):
        board(hub, tmp_path, scores=scores[1:], verify=f"ours={claimed / 'p.jsonl'}")


def test_a_system_without_score_file_is_bad_usage(hub, claimed):
    with refused("option-value", "the system of a score file", "'theirs'"):
        board(hub, claimed, verify=f"theirs={claimed / 'p.jsonl'}")
    for name in ("movies", "a/b/c", "https://x/y"):
        with refused("option-value", "ORG/NAME of the Hub, or a folder", argument="from_hub"):
            eraser_hub.board(from_hub=name, dataset=hub / "eraser", published=False)
    with refused("option-missing", "texts are shown", argument="texts"):
        eraser_hub.board(texts=3)
    with refused("option-conflict", "another folder than `dataset`", argument="out"):
        eraser_hub.board(hub, from_hub="org/name", dataset=hub)
    with refused("option-missing", "give `dataset`"):
        eraser_hub.board(verify="a=b", published=False)
