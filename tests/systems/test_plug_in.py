"""The plug-in of docs/add-a-system.md is installed, and trained and explained as any system."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..needs import needs

pytestmark = needs("torch")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "add-a-system.md"
FILE = re.compile(r"^`(plugin/[\w.]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder with the page's package, installed without network."""
    pytest.importorskip("setuptools")
    folder = tmp_path_factory.mktemp("plug-in")
    (folder / "plugin").mkdir()
    for name, text in FILE.findall(PAGE.read_text("utf-8")):
        (folder / name).write_text(text, "utf-8")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", "installed", "./plugin"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "installed"


def eraser_hub(installed: Path, folder: Path, *words: str) -> str:
    paths = os.pathsep.join(filter(None, [str(installed), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "eraser_hub", *words]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_plug_in_is_a_system(installed, hub, tmp_path):
    where = ["--dataset", str(hub), "--config", "movies"]
    model = "mean-words(embedding_size=8, max_steps=2)"
    said = eraser_hub(installed, tmp_path, "train", *where, "--model", model, "--out", "m")
    assert said.startswith("m: mean-words trained on the full text of train")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["system"] == "mean-words" and config["hyper"]["embedding_size"] == 8
    how = ["--split", "val", "--limit", "3", "--method", "gradient", "--out", "p.jsonl"]
    eraser_hub(installed, tmp_path, "explain", *where, "--model", "m", *how)
    assert len((tmp_path / "p.jsonl").read_text().splitlines()) == 3
