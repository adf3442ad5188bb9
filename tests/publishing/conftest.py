"""A Hub on loopback, a folder to publish, and clean child processes that talk to the Hub."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from loopback_hub import TOKEN, LoopbackHub

import eraser_hub

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def built(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two configs of the samples and a metric, built; tests change a copy."""
    out = tmp_path_factory.mktemp("built")
    eraser_hub.build("eraser", samples / "eraser", config=["movies", "boolq"], out=out)
    eraser_hub.build("metrics", config="eraser_agreement", out=out)
    return out


@pytest.fixture
def hub(tmp_path: Path, built: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "hub"))


@pytest.fixture
def loopback() -> Iterator[LoopbackHub]:
    """A running, empty Hub."""
    with LoopbackHub().running() as loopback:
        yield loopback


@pytest.fixture
def send(hub: Path, loopback: LoopbackHub, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Publish the folder to the loopback Hub, by plain LFS."""
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    options = {"endpoint": loopback.url, "token": TOKEN, "allow_sample": True}
    return lambda **more: eraser_hub.publish("org", hub, **{**options, **more})


class Child:
    """Child processes with an HF_HOME of their own in an empty folder, without transformers, which nothing here needs.

    (Where it can be imported, evaluate imports it, and torch with it: seconds in each process.)
    """

    def __init__(self, place: Path) -> None:
        self.folder, self.home, modules = place / "elsewhere", place / "hf_home", place / "modules_of_children"
        self.folder.mkdir()
        modules.mkdir()
        (modules / "transformers.py").write_text("raise ImportError('not here')\n")
        self.path = os.pathsep.join((str(modules), str(ROOT)))  # the tree that these tests are of

    def call(self, *command: object, endpoint: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run Python with these arguments."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
        own = {"HF_HOME": str(self.home), "PYTHONPATH": self.path, "HF_ENDPOINT": endpoint, "no_proxy": "*"}
        quiet = dict.fromkeys(("HF_HUB_DISABLE_XET", "HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_PROGRESS_BARS"), "1")
        environment = {**kept, **own, **quiet, "HF_UPDATE_DOWNLOAD_COUNTS": "0", **more}
        words = [sys.executable, *map(str, command)]
        return subprocess.run(words, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=180)


@pytest.fixture
def child(tmp_path: Path) -> Child:
    return Child(tmp_path)
