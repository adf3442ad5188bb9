"""Predictions by their address, https or of the Hub, with what their run says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from loopback_hub import LoopbackHub, Repo

from ..refusals import refused

FETCH = """
import json, sys
from eraser_hub.conversion.download import fetch_file
found = fetch_file(sys.argv[-1] if len(sys.argv) > 1 else "hf://datasets/org/eraser/p.jsonl")
print(json.dumps([found.name, found.read_text(), found.with_name(found.name + ".run.json").read_text()]))
"""


@pytest.fixture
def served(loopback: LoopbackHub) -> LoopbackHub:
    """The Hub with two files of predictions, one with its run."""
    files = {"p.jsonl": b"{}\n", "p.jsonl.run.json": b'{"signature": "lime"}', "q.jsonl": b"[]\n"}
    repo = loopback.repos["datasets", "org/eraser"] = Repo()
    repo.record("main", {name: (content, False) for name, content in files.items()}, "predictions")
    return loopback


def test_predictions_come_from_the_web_with_what_their_run_says(served: LoopbackHub) -> None:
    from eraser_hub.conversion.download import fetch_file

    address = f"{served.url}/datasets/org/eraser/resolve/main"
    path = fetch_file(f"{address}/p.jsonl")
    assert (path.name, path.read_text()) == ("p.jsonl", "{}\n")
    assert json.loads(path.with_name("p.jsonl.run.json").read_text()) == {"signature": "lime"}
    alone = fetch_file(f"{address}/q.jsonl")
    assert alone.read_text() == "[]\n" and not alone.with_name("q.jsonl.run.json").exists()
    assert fetch_file("here/p.jsonl") == Path("here/p.jsonl")
    with refused(f"{address}/nothing.jsonl", "404"):
        fetch_file(f"{address}/nothing.jsonl")


def test_predictions_come_from_the_hub(served: LoopbackHub, child) -> None:
    assert child.run(FETCH, served.url) == ["p.jsonl", "{}\n", '{"signature": "lime"}']
    lost = child.call([sys.executable, "-c", FETCH, "hf://datasets/org/eraser/nothing.jsonl"], served.url)
    assert lost.returncode == 1 and "hf://datasets/org/eraser/nothing.jsonl: " in lost.stderr


@pytest.mark.parametrize(
    "address",
    ["hf://me:secret@org/x/p", "hf://datasets/me:secret@org/x/p", "hf://hf_secret@org/x/p", "hf://o/x/p?token=secret"],
)
def test_an_address_of_the_hub_with_credentials_is_refused_and_not_repeated(address):
    from eraser_hub.conversion.download import fetch_file

    with refused("HF_TOKEN") as caught:
        fetch_file(address)
    assert "secret" not in str(caught.error)
