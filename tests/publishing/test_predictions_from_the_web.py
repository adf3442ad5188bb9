"""Predictions by their address, https or of the Hub, with what their run says."""

from __future__ import annotations

from pathlib import Path

import pytest
from loopback_hub import LoopbackHub, Repo

from eraser_hub.conversion.download import fetch_file

from ..refusals import refused
from .conftest import Child

FETCH = "import sys; from eraser_hub.conversion.download import fetch_file; print(fetch_file(sys.argv[1]))"


@pytest.fixture
def served(loopback: LoopbackHub) -> LoopbackHub:
    """The Hub with two files of predictions, one with its run."""
    loopback.repos["datasets", "org/eraser"] = Repo()
    files = {"p.jsonl": b"{}\n", "p.jsonl.run.json": b'{"signature": "lime"}', "q.jsonl": b"[]\n"}
    loopback.repos["datasets", "org/eraser"].record(files)
    return loopback


def test_predictions_come_from_the_web_with_what_their_run_says(served: LoopbackHub) -> None:
    address = f"{served.url}/datasets/org/eraser/resolve/main"
    path = fetch_file(f"{address}/p.jsonl")
    assert path.read_text() == "{}\n" and path.with_name("p.jsonl.run.json").read_text() == '{"signature": "lime"}'
    alone = fetch_file(f"{address}/q.jsonl")
    assert alone.read_text() == "[]\n" and not alone.with_name("q.jsonl.run.json").exists()
    assert fetch_file("here/p.jsonl") == Path("here/p.jsonl")
    with refused(f"{address}/nothing.jsonl", "404"):
        fetch_file(f"{address}/nothing.jsonl")


def test_predictions_come_from_the_hub(served: LoopbackHub, child: Child) -> None:
    path = Path(child.call("-c", FETCH, "hf://datasets/org/eraser/p.jsonl", endpoint=served.url).stdout.strip())
    assert path.read_text() == "{}\n" and path.with_name("p.jsonl.run.json").is_file()
    lost = child.call("-c", FETCH, "hf://datasets/org/eraser/nothing.jsonl", endpoint=served.url)
    assert lost.returncode == 1 and "hf://datasets/org/eraser/nothing.jsonl: " in lost.stderr


@pytest.mark.parametrize(
    "address",
    ["hf://me:secret@org/x/p", "hf://datasets/me:secret@org/x/p", "hf://hf_secret@org/x/p", "hf://o/x/p?token=secret"],
)
def test_an_address_of_the_hub_with_credentials_is_refused_and_not_repeated(address):
    with refused("HF_TOKEN") as caught:
        fetch_file(address)
    assert "secret" not in str(caught.error)
