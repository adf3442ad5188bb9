"""Files line by line, and what is no file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from eraser_hub.records.errors import DataError
from eraser_hub.records.lines import batches_of_lines, utf8_lines


@pytest.mark.parametrize("lines", [batches_of_lines, utf8_lines])
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkfifo, "expected a file, found a pipe"),
        (os.mkdir, "expected a file, found a folder"),
        (lambda path: os.symlink(path, path), "cannot be read: Too many levels of symbolic links"),
        (lambda path: os.symlink("nowhere", path), "cannot be read: No such file or directory"),
    ],
)
def test_what_is_no_file_is_refused_and_never_waited_for(lines: Callable, make: Callable, said: str, tmp_path: Path):
    make(tmp_path / "x")
    with pytest.raises(DataError) as caught:
        list(lines(tmp_path / "x"))
    assert str(caught.value) == f"{tmp_path / 'x'}: {said}"
