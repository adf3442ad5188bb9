"""The vocabulary in little memory: a dict's answers, whatever comes."""

from __future__ import annotations

import random

import pytest

from eraser_hub.scoring import names as module
from eraser_hub.scoring.names import Names, all_strings

WORDS = ["", "é", "\ud800", "x{}", "ab{}_premise", "日本{}", "a\0{}"]


@pytest.mark.parametrize("spread", ["as it is", "all alike", "few"])
def test_numbers_are_those_of_a_dict(spread: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal hashes of different strings are told apart by their bytes."""
    hashes = {"all alike": lambda text: 7, "few": lambda text: len(text)}
    if spread in hashes:
        monkeypatch.setattr(module, "hash", hashes[spread], raising=False)
    draw, names, expected = random.Random(0), Names(), {}
    for _ in range(60):
        some = [
            draw.choice(WORDS).format(draw.randrange(40 if spread in hashes else 9000))
            for _ in range(draw.choice([0, 1, 5, 60]))
        ]
        if draw.random() < 0.5:
            assert names.add(some).tolist() == [expected.setdefault(text, len(expected)) for text in some]
        else:
            assert names.find(some).tolist() == [expected.get(text, -1) for text in some]
    assert list(names) == list(expected) and len(names) == len(expected)


def test_strings_in_order_need_no_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [f"word {k}" for k in range(5000)]
    names = Names(words)
    monkeypatch.setattr(module, "hash", None, raising=False)
    for first in range(0, 5000, 500):
        assert names.find(words[first : first + 500]).tolist() == list(range(first, first + 500))
    assert names.add(words[:3]).tolist() == [0, 1, 2]


def test_equal_bytes_cut_elsewhere_are_other_strings() -> None:
    names = Names(["ab", "c"])
    assert names.find(["a", "bc"]).tolist() == [-1, -1]
    assert names[1] == "c" and names[-1] == "c"
    with pytest.raises(IndexError):
        names[2]


def test_all_strings() -> None:
    assert all_strings(["a", ""]) and all_strings([])
    assert not all_strings(["a", 1]) and not all_strings([None])
