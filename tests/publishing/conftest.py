"""A Hub on loopback, a folder to publish, and clean child processes that talk to it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from loopback_hub import TOKEN, LoopbackHub

import eraser_hub

ROOT = Path(__file__).resolve().parents[2]

MODULE = '''"""A share."""

from __future__ import annotations

import evaluate
import datasets

from .deep import (
    twice,
)
from .leaf import unique


class ToyOverlap(evaluate.Metric):
    def _info(self):
        return evaluate.MetricInfo("a", "b", datasets.Features({"predictions": datasets.Value("int64")}), "c")

    def _compute(self, predictions):
        return {"share": twice(unique(predictions))}
'''
LEAF = (
    "from __future__ import annotations\n\nfrom .deep import twice\n\n\ndef unique(x):\n    return twice(len({*x}))\n"
)


@pytest.fixture
def metric_source(tmp_path: Path) -> Path:
    """A folder of modules and cards with one small metric of two leaves, built as the project's own folder is."""
    from eraser_hub.publishing.spaces import get_metrics_folder

    folder, own = tmp_path / "modules", get_metrics_folder()
    (folder / "cards").mkdir(parents=True)
    for name, text in (("toy_overlap", MODULE), ("leaf", LEAF), ("deep", "def twice(x):\n    return 2 * x\n")):
        (folder / f"{name}.py").write_text(text)
    (folder / "unused.py").write_text("import numpy\n")
    card = (own / "cards" / "perturbation_map.md").read_text("utf-8").replace("perturbation_map", "toy_overlap")
    (folder / "cards" / "toy_overlap.md").write_text(card.partition("![")[0])
    (folder / "cards" / "toy_overlap.json").write_text("{}")
    for name in ("app.py", "requirements.txt"):
        (folder / name).write_bytes((own / name).read_bytes())
    return folder


@pytest.fixture(scope="session")
def built(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two configs of the samples, built; tests change a copy."""
    return eraser_hub.build(
        "eraser", samples / "eraser", config=["movies", "boolq"], out=tmp_path_factory.mktemp("built")
    ).folder


@pytest.fixture
def toy_hub(tmp_path: Path, metric_source: Path, built: Path) -> Path:
    """A built folder with a dataset ``eraser`` and a metric ``toy_overlap``."""
    from eraser_hub.publishing.spaces import build_metrics

    folder = tmp_path / "hub"
    build_metrics(folder, source=metric_source)
    shutil.copytree(built, folder / "eraser")
    return folder


@pytest.fixture
def loopback() -> Iterator[LoopbackHub]:
    """A running, empty Hub."""
    with LoopbackHub().running() as hub:
        yield hub


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process may speak to loopback, and its client uses plain LFS and tries again without waiting."""
    import time
    from types import SimpleNamespace

    import huggingface_hub.constants as constants
    import huggingface_hub.utils._http as client

    monkeypatch.setattr(client, "time", SimpleNamespace(sleep=lambda _: None, time=time.time))

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.delenv("HF_TOKEN", raising=False)


@dataclass
class Child:
    """A child process with an HF_HOME of its own and a Hub at ``endpoint``."""

    home: Path
    folder: Path
    modules: Path

    def environment(self, endpoint: str, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
        return {
            **kept,
            "HF_HOME": str(self.home),
            "PYTHONPATH": os.pathsep.join((str(self.modules), str(ROOT))),  # the tree that these tests are of
            "HF_ENDPOINT": endpoint,
            "HF_HUB_DISABLE_XET": "1",
            "HF_UPDATE_DOWNLOAD_COUNTS": "0",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
            "no_proxy": "*",
            **more,
        }

    def run(self, code: str, endpoint: str, **more: str) -> object:
        """Run Python code that prints JSON as its last line; the JSON."""
        done = self.call([sys.executable, "-c", code], endpoint, **more)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.strip().splitlines()[-1])

    def call(self, command: list[str], endpoint: str, **more: str) -> subprocess.CompletedProcess[str]:
        environment = self.environment(endpoint, **more)
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=180)


def make_child(place: Path) -> Child:
    """Child processes start in an empty folder, without transformers: neither a Space nor a reader has to have it.

    (Where it can be imported, evaluate imports it, and torch with it: seconds in each process.)
    """
    folder, modules = place / "elsewhere", place / "modules_of_children"
    folder.mkdir()
    modules.mkdir()
    (modules / "transformers.py").write_text("raise ImportError('not here')\n")
    return Child(place / "hf_home", folder, modules)


@pytest.fixture
def child(tmp_path: Path) -> Child:
    return make_child(tmp_path)


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What `publish` said since the last call."""
    caplog.set_level("INFO", "eraser_hub")

    def take() -> list[str]:
        lines = [*caplog.messages]
        caplog.clear()
        return lines

    return take


@pytest.fixture
def publish_toy(toy_hub: Path, metric_source: Path, loopback: LoopbackHub, online: None) -> Callable:
    """Publish the folder of `toy_hub` to the loopback Hub."""
    import eraser_hub.publishing.publish as module

    def run(datasets=(), metrics=(), results=None, **more):
        options = {"endpoint": loopback.url, "token": TOKEN, "pause": 0.01, "source": metric_source}
        return module.publish_folder(toy_hub, "org", datasets, metrics, results or {}, **(options | more))

    return run
