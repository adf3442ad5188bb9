"""``eraser-hub report`` and ``board`` from the command line."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import eraser_hub
from eraser_hub.reports.board_lines import read_score_file
from eraser_hub.reports.board_page import to_board_json
from eraser_hub.reports.documents import unpack

from ..refusals import refused

PREDICTIONS = Path(__file__).resolve().parents[2] / "samples" / "predictions" / "eraser"


def run(*arguments, **more):
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "120", **more.pop("locale", {})}
    command = [sys.executable, "-m", "eraser_hub", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False, **more)


def movies_of(hub, split="validation"):
    """The arguments for the samples' movies."""
    return ("--dataset", hub / "eraser", "--config", "movies", "--split", split)


def chunks_of(page):
    text = page.read_text(encoding="utf-8")
    return [unpack(packed) for packed in re.findall(r'id="chunk-\d+">([^<]*)</script>', text)]


def test_report_and_board_from_its_score_files(hub, tmp_path):
    predictions = (PREDICTIONS / "movies.val.jsonl", PREDICTIONS / "movies.val.baseline.jsonl")
    files = ("--predictions", predictions[0], "--predictions", predictions[1], "--out", tmp_path / "report")
    done = run("report", *movies_of(hub), *files)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split()
    assert [Path(line).name for line in lines] == [
        "index.html",
        "movies.val.scores.json",
        "movies.val.baseline.scores.json",
    ]
    rows = [row for chunk in chunks_of(Path(lines[0])) for row in chunk["rows"]]
    assert len(rows) > 10 and all(len(row["systems"]) == 2 for row in rows)
    board = run("board", "--scores", lines[1], "--scores", f"second@movies={lines[2]}", "--out", tmp_path / "board")
    assert board.returncode == 0, board.stderr
    data = json.loads((tmp_path / "board" / "board.json").read_text())
    mine = {row["system"]: row for row in data["rows"] if row["kind"] == "scored"}
    assert set(mine) == {"movies.val", "second"}
    assert mine["movies.val"]["scores"]["auprc"] == json.loads(Path(lines[1]).read_text())["auprc"]
    assert "eraser_agreement|" in mine["second"]["detail"]


def test_several_runs_of_a_system_are_told_as_mean_and_spread(hub, tmp_path):
    first, second = (PREDICTIONS / f"movies.val{end}.jsonl" for end in ("", ".baseline"))
    third = tmp_path / "third.jsonl"
    third.write_text(second.read_text(encoding="utf-8"), encoding="utf-8")
    how = {"config": "movies", "split": "validation", "resamples": 20, "cluster_by": "none"}
    systems = [f"ours={first},{second}", f"theirs={third}"]
    written = eraser_hub.report(hub / "eraser", systems, out=tmp_path / "out", **how)
    one, other = map(read_score_file, written.score_files)
    values = [0.7563175262, 0.4122834776]  # token macro F1 of the two files
    assert one.scores["token_macro_f1"] == pytest.approx(np.mean(values), abs=1e-4)
    assert one.spread["token_macro_f1"] == pytest.approx(np.std(values, ddof=1), abs=1e-4)
    assert not one.intervals and not other.spread and other.intervals["token_macro_f1"]
    page = written.page.read_text(encoding="utf-8")
    assert "±0.24" in page and "show the first of 2 runs" in page and re.search(r"\|tests:\d", page)
    assert "|cluster:none|clusters:24|" in page and "|cluster:documents|" not in page
    data = to_board_json([one])
    assert data["rows"][0]["spread"]["token_macro_f1"] == one.spread["token_macro_f1"]
    assert not any("spread" in column["key"] or column["key"] == "runs" for column in data["columns"])


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--config", "nothing"], 2, "found 'nothing'"),
        (["--config", "movies", "--split", "nothing"], 2, "eraser/movies: "),
        (["--config", "movies", "--predictions", "none.jsonl"], 1, "none.jsonl: "),
        (["--config", "movies", "--split", "val", "--predictions", "broken.jsonl"], 1, "broken.jsonl:1: "),
    ],
)
def test_what_report_refuses(hub, tmp_path, arguments, status, words):
    (tmp_path / "broken.jsonl").write_text("{")
    done = run("report", "--dataset", hub / "eraser", "--out", tmp_path / "out", *arguments, cwd=tmp_path)
    assert done.returncode == status and words in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists(), "nothing half-written"


@pytest.mark.parametrize("other", ["LIME [k 5]", "lime_(k_5)", "LIME/(k 5)"])
def test_names_that_are_one_as_a_file_get_a_score_file_each(hub, tmp_path, other):
    one, two = PREDICTIONS / "movies.val.jsonl", PREDICTIONS / "movies.val.baseline.jsonl"
    where = {"config": "movies", "split": "val", "resamples": 200}
    systems = [f"LIME (k 5)={one}", f"{other}={two}"]
    files = eraser_hub.report(hub / "eraser", systems, out=tmp_path, **where).score_files
    lines = [read_score_file(path) for path in files]
    assert [line.system for line in lines] == ["LIME (k 5)", other]
    assert [round(line.scores["token_macro_f1"], 3) for line in lines] == [0.756, 0.412]
    assert len({path.name.casefold() for path in files}) == 2


def test_board_refuses_a_bare_number(tmp_path):
    (tmp_path / "s.json").write_text('{"config": "movies", "auprc": 1.0}')
    done = run("board", "--scores", tmp_path / "s.json", "--out", tmp_path / "board")
    assert done.returncode == 1 and "s.json: signature: " in done.stderr and not (tmp_path / "board").exists()
    with refused("score files", argument="scores"):
        eraser_hub.board(published=False)


def test_figures_beside_the_report_and_a_full_disk_that_leaves_none(hub, tmp_path):
    """Files of more than a few bytes cannot be written: as on a full disk, the system's error comes without a name."""
    pytest.importorskip("matplotlib", reason="skipped: no matplotlib")

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    predictions = ("--predictions", PREDICTIONS / "movies.val.jsonl")
    report = ("report", *movies_of(hub, "val"), *predictions, "--figures", tmp_path / "figures")
    for arguments in (report, ("board",)):
        done = run(*arguments, "--out", tmp_path / "full", preexec_fn=small_files)
        assert done.returncode == 1 and done.stderr.startswith(f"{tmp_path / 'full' / 'index.html'}: "), done.stderr
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    done = run(*report, "--out", tmp_path / "report")
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"aopc_comprehensiveness.png", "aopc_sufficiency.svg"} <= names
