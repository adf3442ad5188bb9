"""A corpus of one's own name: built, checked, published, and loaded by other processes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from loopback_hub import TOKEN

import eraser_hub
from eraser_hub.conversion.built import open_built
from eraser_hub.conversion.card import get_dataset_version
from eraser_hub.version import __version__

from ..refusals import refused

LOAD = """
import json, datasets, huggingface_hub
data = datasets.load_dataset("org/hass")
card = open(huggingface_hub.hf_hub_download("org/hass", "README.md", repo_type="dataset")).read()
names = data["train"].features["classification"].names
print(json.dumps([data.num_rows, names, data["train"][0]["rationale"], card]))
"""


def write_corpora(folder: Path) -> Path:
    """Two corpora, as `import` writes them."""
    rows = [
        {"id": "a1", "text": "a fine film .", "label": "good", "quotes": ["fine"]},
        {"id": "a2", "text": "dull from the start .", "label": "bad", "quotes": ["from"]},
    ]
    columns: dict[str, Any] = {"text": "text", "label": "label", "quotes": "quotes", "id": "id"}
    for name in ("hass", "other"):
        eraser_hub.import_corpus({"train": rows[:1], "test": rows[1:]}, name, out=folder, **columns)
    return folder


@pytest.mark.slow
def test_it_is_published_with_both_tags_and_loaded_under_its_name(tmp_path: Path, loopback: Any, child: Any) -> None:
    corpora, hub = write_corpora(tmp_path / "corpora"), tmp_path / "hub"
    with refused("hass, other", argument="config"):
        eraser_hub.build("own", source=corpora, out=hub)
    eraser_hub.build("own", source=corpora, config="hass", out=hub)
    command = [sys.executable, "-m", "eraser_hub", "publish", "--namespace", "org", "--folder", str(hub)]
    done = child.call(command, loopback.url, HF_TOKEN=TOKEN)
    assert done.returncode == 0, done.stderr
    repository = loopback.repos["datasets", "org/hass"]
    tags = [f"v{get_dataset_version(open_built(hub / 'hass').card)}", f"v{__version__}"]
    assert repository.tags == dict.fromkeys(tags, repository.branches["main"])
    evaluated = yaml.safe_load(repository.tree["eval.yaml"][0])
    assert (evaluated["name"], evaluated["tasks"][0]["id"]) == ("hass", "hass_token_f1")
    *loaded, card = child.run(LOAD, loopback.url)
    assert loaded == [{"train": 1, "test": 1}, ["bad", "good"], "fine"] and 'load_dataset("org/hass")' in card
    check = [sys.executable, "-m", "eraser_hub", "check", "--dataset", "org/hass"]
    done = child.call(check, loopback.url)
    assert done.returncode == 0 and "no violation" in done.stdout, done.stdout + done.stderr
