"""Documents that are no files or no text, and YAML of other people, which is bounded."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from eraser_hub.conversion.built import read_card
from eraser_hub.conversion.readers import NoFile, load_yaml, read_utf8_file

from ..refusals import refused

pytestmark = pytest.mark.unit


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


def test_a_document_in_broken_utf_8_is_refused_with_its_line(tmp_path: Path):
    (tmp_path / "x").write_bytes(b"one\ntwo \xff")
    with refused("0xff", file=f"{tmp_path}/x", line=2):
        read_utf8_file(f"{tmp_path}/x")


BOMB = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))


def test_plain_values_are_read():
    assert load_yaml("a: [1, x]\nb: R&B *\n", "x.yaml") == {"a": [1, "x"], "b": "R&B *"}


@pytest.mark.parametrize(
    ("text", "mentioned"),
    [
        (BOMB, "aliases"),
        ("a: [" * 3000, "brackets"),
        ("- " * 3000 + "a", ""),
        ("x" * (1 << 21), "1,048,576"),
        ("a: 2024-99-99\n", "month"),
        ("!!python/object/apply:os.system ['true']\n", "YAML"),
        ("a: [\n", "YAML"),
    ],
)
def test_what_could_grow_without_end_is_refused(text, mentioned, tmp_path):
    with refused(mentioned, file="x.yaml"):
        load_yaml(text, "x.yaml")
    (tmp_path / "README.md").write_text(f"---\n{text}\n---\nWords.\n")
    with refused(mentioned, file="README.md"):
        read_card(tmp_path / "README.md")
