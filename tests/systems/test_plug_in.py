"""The plug-in of docs/add-a-metric-or-method.md is installed, and trained and explained as any system."""

from __future__ import annotations

import json

import pytest

from ..attribution.test_plugins import installed, said
from ..needs import needs

pytestmark = [pytest.mark.slow, needs("torch", "pip", "setuptools")]


def test_the_plug_in_is_a_system(hub, tmp_path):
    site, where = installed("add-a-metric-or-method.md", "plugin", tmp_path), ("--dataset", hub, "--config", "movies")
    model, predictions = tmp_path / "m", tmp_path / "p.jsonl"
    out = said(site, "train", *where, "--model", "mean-words(embedding_size=8, max_steps=2)", "--out", model)
    assert out.startswith(f"{model}: mean-words trained on the full text of train") and out.endswith("exit 0"), out
    facts = json.loads((model / "model.json").read_text())
    assert facts["system"] == "mean-words" and facts["settings"]["embedding_size"] == 8
    how = ("--split", "val", "--limit", 3, "--method", "gradient", "--out", predictions)
    assert said(site, "explain", *where, "--model", model, *how).endswith("exit 0")
    assert len(predictions.read_text().splitlines()) == 3
