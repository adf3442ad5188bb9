"""Files that change all at once, locks, and what the outputs of a run may replace."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from eraser_hub.records.errors import BusyError
from eraser_hub.records.files import GENERATOR, OutputWriter, atomic_write, hold_lock, is_generated, replace_file
from eraser_hub.records.predictions import find_inputs, is_recorded, is_run_record, write_run

from ..refusals import refused

pytestmark = pytest.mark.unit
SCORES = b'{"token_f1": 0.5, "signature": "eraser_agreement|n:3|version:1.0.0"}\n'
both = pytest.mark.parametrize("force", [False, True])


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("name", ["a", "a" * 255, "ä" * 127, "b" * 241])
def test_a_file_changes_all_at_once(name, tmp_path):
    atomic_write(tmp_path / name, b"one")
    with pytest.raises(ValueError, match="no"), replace_file(tmp_path / name) as beside:
        beside.write_bytes(b"half")
        raise ValueError("no")
    assert files(tmp_path) == {name: b"one"}
    with pytest.raises(OSError, match="No space") as raised, replace_file(tmp_path / name):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert raised.value.filename == str(tmp_path / name)
    atomic_write(tmp_path / name, b"two")
    assert files(tmp_path) == {name: b"two"}


@pytest.mark.skipif(os.name != "posix", reason="whether a process lives is asked on POSIX alone")
def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path):
    code = "import os, sys; from pathlib import Path; from eraser_hub.records.files import replace_file\n"
    code += "with replace_file(Path(sys.argv[1])) as beside: beside.touch(); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code, tmp_path / "a[1]"], check=False)
    assert len(files(tmp_path)) == 1
    (tmp_path / f".a[1].{os.getppid()}.tmp").touch()  # of a run that goes on
    atomic_write(tmp_path / "a[1]", b"one")
    assert set(files(tmp_path)) == {"a[1]", f".a[1].{os.getppid()}.tmp"}


def test_a_lock_is_held_by_one_and_leaves_nothing(tmp_path):
    lock = tmp_path / "new" / ".x.lock"
    with hold_lock(lock, "busy", tmp_path):
        with refused("held", file=tmp_path, type=BusyError), hold_lock(lock, "held", tmp_path):
            pass
    with hold_lock(lock, "busy"):
        assert lock.is_file()
    assert not lock.exists()


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'{"annotation_id": "a"}\n')
    return path


@both
@pytest.mark.parametrize("spelling", ["same", "hard link", "link to a link", "dotted", "open"])
def test_an_input_is_never_written(tmp_path, predictions, spelling, force):
    before, out = predictions.read_bytes(), tmp_path / "out.json"
    if spelling == "same":
        out = predictions
    elif spelling == "hard link":
        os.link(predictions, out)
    elif spelling == "link to a link":
        (tmp_path / "between").symlink_to(predictions.name)
        out.symlink_to("between")
    elif spelling == "dotted":
        out = tmp_path / ".." / tmp_path.name / predictions.name
    with predictions.open("rb+") as opened:
        out = Path(f"/dev/fd/{opened.fileno()}") if spelling == "open" else out
        with refused(file=out):
            OutputWriter((predictions,), force).write(out, SCORES)
    assert predictions.read_bytes() == before


@both
def test_a_file_in_the_folder_of_an_input_is_an_input(tmp_path, force):
    corpus, outside = tmp_path / "corpus", tmp_path / "outside.json"
    (corpus / "docs").mkdir(parents=True)
    (corpus / "docs" / "d1").write_bytes(b"")  # an empty document is one, too
    os.link(corpus / "docs" / "d1", outside)
    with refused():
        OutputWriter((corpus,), force).check(outside)
    (corpus / "scores.json").write_bytes(SCORES)
    OutputWriter((corpus,), force).write(corpus / "scores.json", SCORES)  # a run's own file there is none


@both
@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "link to a pipe"])
def test_what_is_no_file_is_refused(tmp_path, monkeypatch, kind, force):
    out = tmp_path / "out.json"
    monkeypatch.chdir(tmp_path)  # an address of a socket has at most 108 characters
    with socket.socket(socket.AF_UNIX) as server:
        if kind == "socket":
            server.bind("out.json")
        elif kind == "folder":
            out.mkdir()
        elif kind == "pipe":
            os.mkfifo(out)
        else:
            os.mkfifo("pipe")
            out.symlink_to("pipe")
        mode = out.stat().st_mode
        with refused(file=out):
            OutputWriter((), force).write(out, SCORES)
        assert out.stat().st_mode == mode


def test_another_file_is_replaced_by_force_alone_and_an_empty_one_is_free(tmp_path):
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to("target")
    for out in (tmp_path / "empty", tmp_path / "a" / "b" / "new", tmp_path / "link"):
        OutputWriter().write(out, SCORES)
        assert out.read_bytes() == SCORES
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_bytes() == SCORES
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("eraser-hub 3 was used")
    with refused("force", file=thesis):
        OutputWriter().write(thesis, SCORES)
    assert thesis.read_text() == "eraser-hub 3 was used"
    OutputWriter(force=True).write(thesis, SCORES)
    assert thesis.read_bytes() == SCORES
    OutputWriter().write(thesis, b"{}")  # now it is a run's
    with refused():
        OutputWriter().write(thesis, SCORES)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (SCORES, True),
        (b'{"signature": ["a|version:1.0.0"], "x": 1}', True),
        (f'{{"generator": "{GENERATOR}"}}'.encode(), True),
        (f'<!DOCTYPE html>\n<meta name="generator" content="{GENERATOR}">'.encode(), True),
        (b'{"annotation_id": "a"}\n{"annotation_id": "b"}\n', False),
        (b"<p>made by eraser-hub 1.0.0</p>", False),
    ],
)
def test_a_runs_file_is_recognised(tmp_path, content, expected):
    (tmp_path / "x").write_bytes(content)
    assert is_generated(tmp_path / "x") is expected


@pytest.mark.parametrize("path", ["x\0y", "a" * 300, "file/below", "circle"])
def test_a_path_that_cannot_be_is_one_error(tmp_path, path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(ValueError, match=r"expected a path|expected a folder|cannot be written"):
        OutputWriter((), True).check(tmp_path / path)


def test_a_device_stays_one(tmp_path):
    (tmp_path / "link").symlink_to("/dev/null")
    for path in (Path("/dev/null"), tmp_path / "link"):
        OutputWriter().write(path, SCORES)
    assert Path("/dev/null").is_char_device()


def test_predictions_are_recognised_by_their_record(tmp_path, predictions):
    assert not is_recorded(predictions)
    write_run(predictions, {"signature": "explain|version:1.0.0"})
    assert is_recorded(predictions)
    OutputWriter().check(predictions, is_recorded)
    with predictions.open("a") as file:
        file.write("a line by hand\n")
    with refused(file=predictions):
        OutputWriter().check(predictions, is_recorded)
    record = tmp_path / "p.jsonl.run.json"
    record.write_text(json.dumps({"signature": "explain|without a digest"}))
    assert is_recorded(predictions)
    record.write_text(json.dumps({"my": "notes"}))
    with refused(file=record):
        OutputWriter().check(record, is_run_record)
    write_run(predictions, {"signature": "explain|version:1.0.0"})
    for writer in (OutputWriter(find_inputs(predictions)), OutputWriter()):
        with refused(file=record):
            writer.write(record, SCORES)


def test_inputs_are_found_in_arguments(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["a.jsonl", "b.jsonl", "c,d.jsonl", "e.seed-1.jsonl", "f=g.jsonl"]
    for name in names:
        Path(name).touch()
    given = ["ours=a.jsonl,b.jsonl", "c,d.jsonl", "e.jsonl", "f=g.jsonl"]
    assert sorted(map(str, find_inputs(given, None, "https://x.org/a", Path("no")))) == names
