"""Files line by line, and what is no file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from eraser_hub.records.readers import NoFile, read_limited, read_line_batches, read_utf8_file, read_utf8_lines

from ..refusals import refused

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("lines", [read_line_batches, read_utf8_lines])
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkfifo, "a pipe"),
        (os.mkdir, "a folder"),
        (lambda path: os.symlink(path, path), "Too many levels of symbolic links"),
        (lambda path: os.symlink("nowhere", path), "No such file or directory"),
    ],
)
def test_what_is_no_file_is_refused_and_never_waited_for(lines: Callable, make: Callable, said: str, tmp_path: Path):
    make(tmp_path / "x")
    with refused(said, file=tmp_path / "x"):
        list(lines(tmp_path / "x"))


@pytest.mark.parametrize("lines", [read_line_batches, read_utf8_lines, read_limited])
def test_a_name_with_a_nul_is_refused(lines: Callable):
    with refused("NUL", file="a\0b"):
        list(lines("a\0b"))


def test_a_file_is_read_up_to_a_limit(tmp_path: Path):
    (tmp_path / "x").write_bytes(b"12345")
    assert read_limited(tmp_path / "x", 5) == b"12345"
    with refused("4 bytes", file=tmp_path / "x"):
        read_limited(tmp_path / "x", 4)


@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        os.mkdir,
        lambda path: os.symlink(path, path),
        lambda path: os.symlink("nowhere", path),
        lambda path: None,
    ],
)
def test_a_document_that_is_no_file_is_told_apart_from_one_that_cannot_be_read(make: Callable, tmp_path: Path):
    make(tmp_path / "x")
    with pytest.raises(NoFile):
        read_utf8_file(f"{tmp_path}/x")
    with pytest.raises(NoFile):
        read_utf8_file(f"{tmp_path}/x/y")
    with refused("File name too long") as caught:
        read_utf8_file(f"{tmp_path}/{'x' * 300}")
    assert not isinstance(caught.error, NoFile)


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1])
def test_a_document_comes_whole(size: int, tmp_path: Path):
    (tmp_path / "x").write_bytes(b"a " * size)
    os.symlink("x", tmp_path / "link")
    assert read_utf8_file(f"{tmp_path}/link") == b"a " * size


@pytest.mark.parametrize("told", [0, 3, 100])
def test_a_document_whose_size_is_told_wrong_comes_whole(told: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # a file that grows or shrinks between its size and its bytes; files of /proc have no size at all
    (tmp_path / "x").write_bytes(b"one two")
    stated = os.fstat
    monkeypatch.setattr(os, "fstat", lambda handle: os.stat_result((*stated(handle)[:6], told, *stated(handle)[7:])))
    assert read_utf8_file(f"{tmp_path}/x") == b"one two"


def test_a_document_in_broken_utf_8_is_refused_with_its_line(tmp_path: Path):
    (tmp_path / "x").write_bytes(b"one\ntwo \xff")
    with refused("0xff", file=f"{tmp_path}/x", line=2):
        read_utf8_file(f"{tmp_path}/x")
