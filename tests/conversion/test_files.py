"""Folders that change all at once."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from eraser_hub.conversion import files
from eraser_hub.conversion.files import rebuild_folder

from ..refusals import refused

pytestmark = pytest.mark.unit


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
