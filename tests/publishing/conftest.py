"""A Hub on loopback, a folder to publish, and clean child processes that talk to it."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from loopback_hub import TOKEN, LoopbackHub

ROOT = Path(__file__).resolve().parents[2]

STAND_IN_METRIC = '''"""A small metric of one leaf."""

import datasets
import evaluate
import numpy as np

from .toy_positions import unique_positions


class ToyOverlap(evaluate.Metric):
    """The share of predicted tokens that are evidence."""

    def _info(self):
        row = {"id": datasets.Value("string"), "rationale": datasets.Sequence(datasets.Value("int64"))}
        return evaluate.MetricInfo(
            description="The share of predicted tokens that are evidence.",
            citation="",
            inputs_description="rows {id, rationale: [index ..]} on both sides",
            features=datasets.Features({"predictions": row, "references": row}),
        )

    def _compute(self, predictions, references):
        truth = {row["id"]: unique_positions(row["rationale"]) for row in references}
        for row in predictions:
            if row["id"] not in truth:
                raise ValueError(f"instance {row['id']!r}: no reference of this id")
        found = [(unique_positions(row["rationale"]), truth[row["id"]]) for row in predictions]
        return {"share": float(np.mean([len(ours & theirs) / len(ours) for ours, theirs in found]))}
'''
STAND_IN_LEAF = '''"""Positions as a set."""

import numpy as np


def unique_positions(positions):
    return set(np.asarray(positions).tolist())
'''
CARD = """---
title: {name}
sdk: gradio
sdk_version: {gradio}
python_version: "3.11"
app_file: app.py
tags: [evaluate, metric]
---
# {name}
"""


@pytest.fixture
def metric_source(tmp_path: Path) -> Path:
    """A folder of modules and cards with one small metric, built as the project's own folder is."""
    from eraser_hub.publishing.spaces import get_metrics_folder, read_pin

    source = tmp_path / "modules"
    (source / "cards").mkdir(parents=True)
    (source / "toy_overlap.py").write_text(STAND_IN_METRIC)
    (source / "toy_positions.py").write_text(STAND_IN_LEAF)
    (source / "unused_leaf.py").write_text("import numpy\n")
    (source / "cards" / "toy_overlap.md").write_text(CARD.format(name="toy_overlap", gradio=read_pin("gradio")))
    (source / "cards" / "toy_overlap.json").write_text("{}")
    for name in ("app.py", "requirements.txt"):
        (source / name).write_bytes((get_metrics_folder() / name).read_bytes())
    return source


def record_digests(folder: Path) -> None:
    """Record the digests of a dataset's files in release.json, as `build` does."""
    from eraser_hub.records.files import compute_file_digest

    configs: dict[str, dict[str, dict[str, dict[str, dict[str, str]]]]] = {}
    for path in sorted(folder.glob("*/*.parquet")):
        splits = configs.setdefault(path.parent.name, {"splits": {}})["splits"]
        files = splits.setdefault(path.name.partition("-")[0], {"files": {}})["files"]
        files[path.name] = compute_file_digest(path)
    (folder / "release.json").write_text(json.dumps({"configs": configs}))


def write_toy_dataset(folder: Path, rows: int = 40) -> None:
    """A small Parquet dataset of two configs in the shape that `build` writes, with card and digests."""
    import datasets
    import yaml

    from eraser_hub.conversion.leaderboard import write_eval_yaml

    features = datasets.Features(
        {
            "annotation_id": datasets.Value("string"),
            "classification": datasets.ClassLabel(names=["NEG", "POS"]),
            "documents": datasets.List({"docid": datasets.Value("string"), "text": datasets.Value("string")}),
            "evidences": datasets.List(
                datasets.List({"docid": datasets.Value("string"), "start_token": datasets.Value("int32")})
            ),
            "num_tokens": datasets.Value("int32"),
        }
    )
    header: dict[str, object] = {"license": "apache-2.0", "language": ["en"], "configs": [], "dataset_info": []}
    for config in ("movies", "boolq"):
        (folder / config).mkdir(parents=True)
        files, splits = [], []
        for split, number in (("train", rows), ("test", 7)):
            data = datasets.Dataset.from_dict(
                {
                    "annotation_id": [f"{config}_{split}_{at}" for at in range(number)],
                    "classification": [at % 2 for at in range(number)],
                    "documents": [
                        [{"docid": f"d{at}", "text": "a plain film .\nwell made , too ."}] for at in range(number)
                    ],
                    "evidences": [
                        [[{"docid": f"d{at}", "start_token": 1}, {"docid": f"d{at}", "start_token": 3}]]
                        for at in range(number)
                    ],
                    "num_tokens": [9 + at for at in range(number)],
                },
                features=features,
            )
            import pyarrow.parquet as pq

            name = f"{config}/{split}-00000-of-00001.parquet"
            table = data.data.table.replace_schema_metadata(None)
            pq.write_table(table, folder / name, write_page_index=True, use_content_defined_chunking=True)
            files.append({"split": split, "path": f"{config}/{split}-*.parquet"})
            splits.append({"name": split, "num_examples": number, "num_bytes": (folder / name).stat().st_size})
        default = {"default": True} if config == "movies" else {}
        header["configs"].append({"config_name": config, **default, "data_files": files})  # type: ignore[attr-defined]
        facts = {"config_name": config, "version": "1.2.0", "features": features._to_yaml_list(), "splits": splits}
        header["dataset_info"].append(facts)  # type: ignore[attr-defined]
    text = yaml.safe_dump(header, sort_keys=False, allow_unicode=True)
    (folder / "README.md").write_text(f"---\n{text}---\n# Small\n\nA small dataset of the tests.\n")
    record_digests(folder)
    write_eval_yaml(folder, "eraser")


@pytest.fixture
def toy_hub(tmp_path: Path, metric_source: Path) -> Path:
    """A built folder with a dataset ``eraser`` and a metric ``toy_overlap``."""
    from eraser_hub.publishing.spaces import build_metrics

    folder = tmp_path / "hub"
    build_metrics(folder, source=metric_source)
    write_toy_dataset(folder / "eraser")
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


@pytest.fixture
def child(tmp_path: Path) -> Child:
    """Child processes start in an empty folder, without transformers: neither a Space nor a reader has to have it.

    (Where it can be imported, evaluate imports it, and torch with it: seconds in each process.)
    """
    folder, modules = tmp_path / "elsewhere", tmp_path / "modules_of_children"
    folder.mkdir()
    modules.mkdir()
    (modules / "transformers.py").write_text("raise ImportError('not here')\n")
    return Child(tmp_path / "hf_home", folder, modules)


class Said(logging.Handler):
    """Keeps each line of the package's log."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What `publish` says."""
    log, handler = logging.getLogger("eraser_hub"), Said()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler.lines
    log.removeHandler(handler)
    log.setLevel(level)


@pytest.fixture
def publish_toy(toy_hub: Path, metric_source: Path, loopback: LoopbackHub, online: None, monkeypatch) -> Callable:
    """Publish the folder of `toy_hub` to the loopback Hub; its dataset counts as checked."""
    import eraser_hub.publishing.publish as module
    import eraser_hub.publishing.uploads as uploads

    monkeypatch.setattr(uploads, "check_dataset", lambda name, folder: None)

    def run(datasets=(), metrics=(), results=None, **more):
        options = {"endpoint": loopback.url, "token": TOKEN, "pause": 0.01, "source": metric_source}
        return module.publish_folder(toy_hub, "org", datasets, metrics, results or {}, **(options | more))

    return run
