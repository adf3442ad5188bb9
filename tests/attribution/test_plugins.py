"""The packages of docs/add-a-metric-or-method.md, installed and used."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..needs import needs

pytestmark = [pytest.mark.slow, needs("torch", "pip", "setuptools")]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "add-a-metric-or-method.md"
FILE = re.compile(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def installed(package: str, folder: Path) -> Path:
    """Write the files of a page, and install its package, without network, into a folder of its own."""
    for path, text in FILE.findall(PAGE.read_text(encoding="utf-8")):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    command = ["pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", "site"]
    subprocess.run([sys.executable, "-m", *command, f"./{package}"], cwd=folder, check=True)
    return folder / "site"


def said(site: Path, *words: object) -> str:
    """What the command line says with the package installed."""
    root = Path(__file__).resolve().parents[2]
    environ = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{root}", "COLUMNS": "200", "NO_COLOR": "1"}
    line = [sys.executable, "-m", "eraser_hub", *map(str, words)]
    done = subprocess.run(line, cwd=site, env=environ, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout + done.stderr + f"\nexit {done.returncode}"


def test_a_method(hub, linear, tmp_path):
    site = installed("window-occlusion", tmp_path)
    words = ("explain", "--dataset", hub, "--config", "movies", "--split", "val", "--model", linear)
    out = said(site, *words, "--method", "window(width=2)", "--out", tmp_path / "p.jsonl")
    assert "method:window(width=2)|" in out and "exit 0" in out
    low = said(site, *words, "--method", "window(width=0)", "--out", tmp_path / "q.jsonl")
    assert "width" in low and "exit 2" in low


def test_a_model(hub, tmp_path):
    site = installed("word-weights", tmp_path)
    words = ("explain", "--dataset", hub, "--config", "movies", "--split", "val", "--model", tmp_path / "weights")
    out = said(site, *words, "--method", "coefficients", "--out", tmp_path / "p.jsonl")
    assert "method:coefficients|" in out and "exit 0" in out
    refusal = said(site, *words, "--method", "gradient", "--out", tmp_path / "q.jsonl")
    assert "it allows coefficients" in refusal and "exit 2" in refusal


def test_a_system(hub, tmp_path):
    site, where = installed("plugin", tmp_path), ("--dataset", hub, "--config", "movies")
    model, predictions = tmp_path / "m", tmp_path / "p.jsonl"
    out = said(site, "train", *where, "--model", "mean-words(embedding_size=8, max_steps=2)", "--out", model)
    assert out.startswith(f"{model}: mean-words trained on the full text of train") and out.endswith("exit 0"), out
    facts = json.loads((model / "model.json").read_text())
    assert facts["system"] == "mean-words" and facts["settings"]["embedding_size"] == 8
    how = ("--split", "val", "--limit", 3, "--method", "gradient", "--out", predictions)
    assert said(site, "explain", *where, "--model", model, *how).endswith("exit 0")
    assert len(predictions.read_text().splitlines()) == 3
