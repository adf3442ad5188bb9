"""Sets of files that are written together, and worker processes."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from eraser_hub.conversion import files
from eraser_hub.conversion.files import rebuild_folder, write_files

from ..refusals import refused

pytestmark = pytest.mark.unit

STARTS_A_POOL = """
import os
from eraser_hub.conversion.files import make_process_pool
if __name__ == "__main__":
    with make_process_pool(2) as pool:
        here = pool.submit(os.getcwd).result()
        print(sorted(pool.map(abs, [-1, -2])), os.getcwd() == here)
    print(os.environ.get("PYTHONSAFEPATH"))
"""


def test_workers_import_nothing_from_the_working_directory(tmp_path: Path):
    script = tmp_path / "program" / "script.py"
    script.parent.mkdir()
    script.write_text(STARTS_A_POOL, encoding="utf-8")
    place = tmp_path / "place"
    place.mkdir()
    for name in ("pickle", "multiprocessing", "signal", "numpy"):
        (place / f"{name}.py").write_text(f"open('{name} ran', 'w').close()\n", encoding="utf-8")
    run = subprocess.run([sys.executable, str(script)], cwd=place, capture_output=True, text=True, check=False)
    assert (run.stdout, run.returncode) == ("[1, 2] True\nNone\n", 0), run.stderr
    assert not list(place.glob("* ran"))


def test_files_are_all_written_or_none(tmp_path, monkeypatch):
    contents = {tmp_path / "out" / "a" / "x": b"1", tmp_path / "out" / "y": b"2"}
    staging = tmp_path / "out" / ".exporting"

    def full(folder):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(files, "sync_tree", full)
        with refused("disk is full"):
            write_files(contents, staging)
    assert list(tmp_path.iterdir()) == []
    write_files(contents, staging)
    assert [path.read_bytes() for path in contents] == [b"1", b"2"] and not staging.exists()
    (tmp_path / "out" / "y").write_text("mine")
    with refused(file=next(iter(contents))):
        write_files(contents, staging)
    assert (tmp_path / "out" / "y").read_text() == "mine"
    write_files(contents, staging, force=True)
    assert [path.read_bytes() for path in contents] == [b"1", b"2"] and not staging.exists()


def list_files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_full_disk_leaves_nothing(tmp_path):
    with refused("disk is full", file=tmp_path / "x"), rebuild_folder(tmp_path / "x"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list_files(tmp_path) == {}


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_folder_changes_all_at_once(can_exchange, tmp_path, monkeypatch):
    if not can_exchange:
        monkeypatch.setattr(files, "exchange", lambda *_: False)
    for number in range(3):
        with rebuild_folder(tmp_path / "x") as folder:
            (folder / "a").write_text(str(number))
        assert list_files(tmp_path) == {"x/a": str(number).encode()}
    with pytest.raises(ValueError, match="no"), rebuild_folder(tmp_path / "x") as folder:
        (folder / "a").write_text("half")
        raise ValueError("no")
    assert list_files(tmp_path) == {"x/a": b"2"}
    (tmp_path / "x").rename(tmp_path / ".x.old")  # killed between the two renames
    with rebuild_folder(tmp_path / "x") as folder:
        assert (tmp_path / "x" / "a").read_text() == "2"
        (folder / "a").write_text("3")
    assert list_files(tmp_path) == {"x/a": b"3"}
