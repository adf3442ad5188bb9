"""YAML of other people's files is bounded."""

from __future__ import annotations

import pytest

from eraser_hub.records.places import read_card
from eraser_hub.records.readers import load_yaml

from ..refusals import refused

pytestmark = pytest.mark.unit

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
        ("a: [\n", "YAML"),
    ],
)
def test_what_could_grow_without_end_is_refused(text, mentioned, tmp_path):
    with refused(mentioned, file="x.yaml"):
        load_yaml(text, "x.yaml")
    (tmp_path / "README.md").write_text(f"---\n{text}\n---\nWords.\n")
    with refused(mentioned, file="README.md"):
        read_card(tmp_path / "README.md")
