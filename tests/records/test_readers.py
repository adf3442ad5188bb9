"""Files line by line, and what is no file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from eraser_hub.conversion.readers import read_utf8_lines
from eraser_hub.records.readers import read_json_object, read_limited, read_line_batches

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
    ("data", "found"),
    [
        (b"", "expected JSON"),
        (b"[1]", "a list"),
        (b'{"a": NaN}', "byte 6"),
        (b"1" * 5000, "integer value out of range"),
        (b"[" * 9999, "nested"),
        (b'{"a": "\xff"}', "UTF-8, found byte 0xff at byte 8"),
        (b"\xef\xbb\xbf{}", "byte 0"),
    ],
)
def test_what_is_no_json_object_is_refused(data: bytes, found: str, tmp_path: Path):
    (tmp_path / "x.json").write_bytes(data)
    with refused(found, file="x.json"):
        read_json_object(tmp_path / "x.json")
