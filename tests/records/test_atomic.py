"""Files and folders that change all at once, and locks that one holds at a time."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eraser_hub.records.errors import BusyError
from eraser_hub.records.files import atomic_write, hold_lock, rebuild_folder, replace_file

from ..refusals import refused

pytestmark = pytest.mark.unit


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_file_changes_all_at_once(tmp_path):
    atomic_write(tmp_path / "a", b"one")
    with pytest.raises(ValueError, match="no"), replace_file(tmp_path / "a") as beside:
        beside.write_bytes(b"half")
        raise ValueError("no")
    assert files(tmp_path) == {"a": b"one"}
    atomic_write(tmp_path / "a", b"two")
    assert files(tmp_path) == {"a": b"two"}


@pytest.mark.parametrize("name", ["a" * 255, "ä" * 127, "b" * 241])
def test_a_file_may_have_a_long_name(name, tmp_path):
    atomic_write(tmp_path / name, b"one")
    assert files(tmp_path) == {name: b"one"}


@pytest.mark.skipif(os.name != "posix", reason="whether a process lives is asked on POSIX alone")
def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path):
    code = "import os, sys; from pathlib import Path; from eraser_hub.records.files import replace_file\n"
    code += "with replace_file(Path(sys.argv[1])) as beside: beside.touch(); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code, tmp_path / "a[1]"], check=False)
    assert len(files(tmp_path)) == 1
    (tmp_path / f".a[1].{os.getppid()}.tmp").touch()  # of a run that goes on
    atomic_write(tmp_path / "a[1]", b"one")
    assert set(files(tmp_path)) == {"a[1]", f".a[1].{os.getppid()}.tmp"}


def test_an_error_of_writing_names_the_file(tmp_path):
    with pytest.raises(OSError, match="No space") as raised, replace_file(tmp_path / "a"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert raised.value.filename == str(tmp_path / "a")
    with refused("disk is full", file=tmp_path / "x"), rebuild_folder(tmp_path / "x"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert files(tmp_path) == {}


def test_a_folder_changes_all_at_once(tmp_path):
    for number in range(3):
        with rebuild_folder(tmp_path / "x") as folder:
            (folder / "a").write_text(str(number))
        assert files(tmp_path) == {"x/a": str(number).encode()}
    with pytest.raises(ValueError, match="no"), rebuild_folder(tmp_path / "x") as folder:
        (folder / "a").write_text("half")
        raise ValueError("no")
    assert files(tmp_path) == {"x/a": b"2"}
    (tmp_path / "x").rename(tmp_path / ".x.old")  # killed between the two renames
    with rebuild_folder(tmp_path / "x") as folder:
        assert (tmp_path / "x" / "a").read_text() == "2"
        (folder / "a").write_text("3")
    assert files(tmp_path) == {"x/a": b"3"}


def test_a_lock_is_held_by_one_and_leaves_nothing(tmp_path):
    lock = tmp_path / "new" / ".x.lock"
    with hold_lock(lock, "busy", tmp_path):
        with refused("held", file=tmp_path, type=BusyError), hold_lock(lock, "held", tmp_path):
            pass
    with hold_lock(lock, "busy"):
        assert lock.is_file()
    assert not lock.exists()
