"""What a DataError says, and that it survives a process boundary."""

from __future__ import annotations

import pickle
import time
from pathlib import Path

import pytest

from eraser_hub.records.errors import BusyError, DataError, show

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ({"file": "val.jsonl", "line": 7, "field": "docids"}, "val.jsonl:7: docids: expected a list, found 3"),
        ({"argument": "kd"}, "kd: expected a list, found 3"),
        ({"instance": "negR_1", "field": "docids"}, "instance 'negR_1': docids: expected a list, found 3"),
    ],
)
def test_says_where(where, text):
    assert str(DataError("expected a list, found 3", **where)) == text


@pytest.mark.parametrize("kind", [DataError, BusyError])
def test_pickles_with_every_part(kind):
    error = pickle.loads(pickle.dumps(kind("m", file="f", line=2, instance="i", field="x", argument="a")))
    assert type(error) is kind
    assert str(error) == "f:2: instance 'i': x: a: m"


def test_a_hostile_value_is_cut():
    assert len(show("x" * 10**6)) == 80
    start = time.process_time()
    assert len(str(DataError(f"expected {'x' * 10**6}, found {'a:/' * 10**5} ?{'a' * 10**6}"))) < 1100
    assert time.process_time() - start < 5, "credentials are looked for in one pass"


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ("https://user:secret@host/p.jsonl", "https://***@host/p.jsonl"),
        (Path("https://hf_secret@host/s.json"), "https:/***@host/s.json"),
        ("http://user:se@cret@host/a?token=secret&x=1", "http://***@host/a?token=***&x=1"),
        ("hf://user:secret@org/eraser", "hf://***@org/eraser"),
        ("hf://datasets/org/eraser@main", "hf://datasets/org/eraser@main"),
        ("org/eraser@v1", "org/eraser@v1"),
    ],
)
def test_an_error_names_an_address_without_its_credentials(place, shown):
    assert str(DataError("cannot be read", file=place)) == f"{shown}: cannot be read"
    assert str(DataError(f"there is no {place}")) == f"there is no {shown}"
