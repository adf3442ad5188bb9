"""The board's Space without a browser: its tables, and the predictions files that it takes and refuses."""

from __future__ import annotations

import importlib.util
import json
import sys

import pytest

from eraser_hub.reports.board import collect_board_lines
from eraser_hub.reports.board_lines import BoardLine
from eraser_hub.reports.space import write_space

from ..refusals import refused

gradio = pytest.importorskip("gradio", reason="skipped: gradio is not installed")


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("space")
    entries = [
        BoardLine("ours", "movies", split, "scored", "scored here", "sig|1", {"auprc": value, "token_macro_p": value})
        for split, value in (("validation", 0.25), ("test", 0.75))
    ]
    write_space(folder, collect_board_lines(entries))
    spec = importlib.util.spec_from_file_location("board_space", folder / "app.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["board_space"] = module
    spec.loader.exec_module(module)
    return module


def test_lines_of_one_system_on_two_splits_are_told_apart(app):
    shown = app.table("all", "agreement")
    split, auprc = shown["headers"].index("Split"), shown["headers"].index("AUPRC ↑")
    assert {line[split]: line[auprc] for line in shown["data"] if line[0] == "ours"} == {
        "validation": 0.25,
        "test": 0.75,
    }
    assert app.details("all")["headers"][2] == "Split"
    assert {len(line) for line in shown["data"]} == {len(shown["headers"])}


def test_precision_and_recall_are_folded_and_the_fullest_columns_stand_first(app):
    scores = {"auprc": 0.5, "iou_macro_f1": 0.5, "token_macro_p": 0.5}
    rows = [{"system": "a", "dataset": "d", "group": "d", "split": "", "source": "s", "scores": scores}]
    rows.append({**rows[0], "system": "b", "scores": {"iou_macro_f1": 0.5}})
    app.BOARD, board = {**app.BOARD, "rows": rows}, app.BOARD
    try:
        assert app.table("d", "all")["headers"][4:] == ["IOU F1 (macro) ↑", "AUPRC ↑"]
    finally:
        app.BOARD = board


def test_a_star_stands_where_the_board_has_one(app):
    same = {"dataset": "d", "group": "d", "split": "", "source": "s", "detail": "", "kind": "scored"}
    first = {"system": "a", **same, "scores": {"auprc": 0.75}, "better": ["auprc"]}
    rows = [first, {"system": "b", **same, "scores": {"auprc": 0.5}, "better": []}]
    app.BOARD, board = {**app.BOARD, "rows": [*rows, {**rows[1], "system": "c", "scores": {}}]}, app.BOARD
    try:
        shown = app.table("d", "all")
        assert [line[4] for line in shown["data"]] == [0.75, 0.5, None]
        assert [line[4] for line in shown["metadata"]["display_value"]] == ["★ 0.75", "0.5", ""]
        assert app.drawn("d", "all").value["metadata"] is not None
        assert any(one.get("props", {}).get("value") == app.STARRED for one in app.build().config["components"])
    finally:
        app.BOARD = board
    assert not any(one.get("props", {}).get("value") == app.STARRED for one in app.build().config["components"])


def test_a_line_ends_at_a_newline_alone(app, tmp_path):
    rows = [{"annotation_id": "one\u2028two\x85three"}, {"annotation_id": "b"}]
    path = tmp_path / "p.jsonl"
    path.write_bytes("\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode())
    assert app._read(path) == rows


def test_an_unknown_config_is_named(app, tmp_path, monkeypatch):
    monkeypatch.setenv("BOARD_DATASET", str(tmp_path))
    path = tmp_path / "p.jsonl"
    path.write_text('{"annotation_id": "a"}\n')
    with pytest.raises(gradio.Error, match="no_such_config, validation: "):
        app.submit(str(path), "no_such_config", "val")
    with pytest.raises(gradio.Error, match="Choose a predictions file"):
        app.submit(None, "movies", "val")


def test_a_file_stands_beside_the_lines_of_its_data(app, monkeypatch):
    same = {"kind": "scored", "dataset": "d", "split": "test", "status": "verified", "scores": {"auprc": 0.5}}
    names = ("same", "other data", "other split", "a paper's")
    rows = [{"system": name, **same, "data": 64 * "a"} for name in names]
    rows[1]["data"], rows[2]["split"], rows[3]["kind"] = 64 * "b", "validation", "published"
    monkeypatch.setattr(app, "BOARD", {**app.BOARD, "rows": rows})
    scores, signature = {"auprc": 0.123456789, "token_macro_p": 1.0}, "eraser_agreement|data:aaaaaaaaaaaa|split:test"
    shown = app.place_beside(" mine ", "d", "test", scores, signature)
    assert shown["headers"] == ["System", "Status", "AUPRC ↑"]
    assert shown["data"] == [["mine (this file)", "not submitted", 0.1235], ["same", "verified", 0.5]]
    alone = app.place_beside("", "d", "test", scores, "eraser_agreement|split:test")
    assert [line[0] for line in alone["data"]] == ["your system (this file)"], "unknown data are beside no others"


def test_whose_dataset_it_takes(app, tmp_path, monkeypatch):
    assert app.place_of("eraser", "my-org/eraser") == "my-org/eraser"
    with pytest.raises(gradio.Error, match=r"does not know whose eraser to take.*publish --namespace ORG"):
        app.place_of("eraser", None)
    monkeypatch.setattr(app, "NAMESPACE", "org")
    assert app.place_of("eraser", None) == "org/eraser"
    beside = app.HERE.parent / "eraser"
    beside.mkdir()
    (beside / "README.md").write_text("x")
    assert app.place_of("eraser", None) == str(beside)


def test_the_folder_is_written_as_a_whole_and_no_other_one_is_replaced(tmp_path):
    lines = collect_board_lines()
    files = write_space(tmp_path / "results_board", lines)
    assert {path.name for path in files} == {path.name for path in (tmp_path / "results_board").iterdir()}
    (tmp_path / "results_board" / "notes.txt").write_text("mine")
    write_space(tmp_path / "results_board", lines, title="Another")
    assert (tmp_path / "results_board" / "notes.txt").read_text() == "mine"
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "app.py").write_text("theirs")
    (tmp_path / "file").write_text("a file")
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    for name, rule, mentions in (
        ("theirs", "file-exists", ("written.json", "`space`")),
        ("file", "file-kind", ()),
        ("link", "file-kind", ()),
    ):
        with refused(rule, *mentions, file=tmp_path / name):
            write_space(tmp_path / name, lines)
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["app.py"]
    with refused("file-unreadable"):  # what is written beside stays away with it
        write_space(tmp_path / "file" / "x", lines, beside=(tmp_path / "pages").mkdir)
    assert not (tmp_path / "pages").exists()
    (tmp_path / "empty").mkdir()
    write_space(tmp_path / "empty", lines)
