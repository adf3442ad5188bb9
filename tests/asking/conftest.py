"""A dataset of the samples to ask about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import eraser_hub
from eraser_hub.conversion import get_dataset

from .scripted_server import Script, ScriptedServer


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Path:
    """The samples' ``eraser``, built."""
    out = tmp_path_factory.mktemp("hub")
    get_dataset("eraser").build(["movies", "esnli", "fever"], out=out, source=samples / "eraser")
    return out / "eraser"


class Asking:
    """A run on the samples' movies, in a folder of its own."""

    def __init__(self, hub: Path, folder: Path) -> None:
        self.hub, self.out, self.cache = hub, folder / "quotes.jsonl", folder / "cache"

    def __call__(self, script: Script, limit: int | None = 1, **how: object) -> list[dict]:
        with ScriptedServer(script, how.pop("latency", 0.0)) as server:
            self.server = server
            place = {"dataset": self.hub, "config": "movies", "limit": limit, "out": self.out, "cache": self.cache}
            how = {"max_tokens": 50, "attempts": 2, "endpoint": server.endpoint, **place, **how}
            self.report = eraser_hub.ask("scripted", **how)
        self.notes = self.report.notes
        return [json.loads(line) for line in self.out.read_text().splitlines()]


@pytest.fixture
def asking(hub, tmp_path) -> Asking:
    return Asking(hub, tmp_path)
