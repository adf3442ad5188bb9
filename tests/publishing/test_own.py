"""A corpus of one's own name: built, checked, published, and loaded by other processes."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from loopback_hub import TOKEN

import eraser_hub
from eraser_hub.conversion.built import open_built, read_card
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


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    """A folder with two corpora, as `import` writes them, and what their owner says of them."""
    texts = (
        ("a fine film .", "good", "fine"),
        ("dull from the start .", "bad", "from"),
        ("a warm film .", "good", "warm"),
    )
    rows = [
        {"id": f"a{at}", "text": text, "label": label, "quotes": [quote]}
        for at, (text, label, quote) in enumerate(texts)
    ]
    facts = {"labels": ["bad", "good"], "language": "en", "license": "cc-by-4.0", "citation": "@misc{a}"}
    for name in ("hass", "other"):
        columns = {"text": "text", "label": "label", "quotes": "quotes", "id": "id"}
        eraser_hub.import_corpus({"train": rows[:2], "test": rows[2:]}, name, out=tmp_path / "corpora", **columns)
        (tmp_path / "corpora" / name / "corpus.yaml").write_text(yaml.safe_dump({"name": name, **facts}))
    return tmp_path / "corpora"


@pytest.fixture
def hub(corpora: Path, tmp_path: Path) -> Path:
    eraser_hub.build("own", source=corpora / "hass", out=tmp_path / "hub")
    return tmp_path / "hub"


def test_the_folder_has_a_name_a_card_and_a_snippet_of_its_own(hub: Path) -> None:
    assert [path.name for path in hub.iterdir() if not path.name.startswith(".")] == ["hass"]
    metadata, prose = read_card(hub / "hass" / "README.md")
    assert metadata["pretty_name"] == "hass" and "eraser" not in metadata["tags"]
    assert (metadata["license"], metadata["language"]) == (["cc-by-4.0"], ["en"])
    assert "@misc{a}" in prose and "Seven" not in prose
    assert re.findall(r"load_dataset\((.*?)\)", prose) == ['"hass"']
    evaluated = yaml.safe_load((hub / "hass" / "eval.yaml").read_text())
    assert evaluated["name"] == "hass" and evaluated["tasks"][0]["id"] == "hass_token_f1"


def test_it_goes_through_the_verbs(hub: Path, tmp_path: Path, corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = eraser_hub.check(dataset=hub / "hass")
    assert report.errors == [] and report.dataset == "hass"
    assert "hass" in eraser_hub.stats(dataset=hub / "hass").written("csv")
    eraser_hub.export(hub / "hass", out=tmp_path / "raw")
    for name in ("train.jsonl", "docs.jsonl"):
        ours, theirs = ((folder / "hass" / name).read_text().splitlines() for folder in (tmp_path / "raw", corpora))
        assert list(map(json.loads, ours)) == list(map(json.loads, theirs))
    assert (tmp_path / "raw/hass/corpus.yaml").read_bytes() == (corpora / "hass/corpus.yaml").read_bytes()
    monkeypatch.chdir(tmp_path)
    assert eraser_hub.load("hass", split="train").num_rows == 2
    instances = [{"annotation_id": "a2", "rationales": [{"docid": "a2", "hard_rationale_predictions": []}]}]
    (tmp_path / "p.jsonl").write_text(json.dumps(instances[0]) + "\n")
    scores = eraser_hub.score(tmp_path / "p.jsonl", dataset=hub / "hass", config="hass")
    assert scores.names["dataset"] == "hass" and scores.scores["token_micro_r"] == 0.0
    again = eraser_hub.build("own", source=corpora, config="hass", out=hub)
    assert again.rows == {"hass": {"train": 2, "test": 1}}


def test_which_corpus_is_asked_for_and_names_are_not_taken_twice(corpora: Path, tmp_path: Path) -> None:
    with refused("hass, other", argument="config"):
        eraser_hub.build("own", source=corpora, out=tmp_path)
    with refused("none", argument="config"):
        eraser_hub.build("own", source=corpora, config="none", out=tmp_path)
    with refused(argument="source"):
        eraser_hub.build("own", out=tmp_path)
    (tmp_path / "empty").mkdir()
    with refused("corpus.yaml"):
        eraser_hub.build("own", source=tmp_path / "empty", out=tmp_path)
    path = corpora / "hass" / "corpus.yaml"
    path.write_text(path.read_text().replace("name: hass", "name: human_rationales"))
    with refused("'human_rationales'"):
        eraser_hub.build("own", source=corpora / "hass", out=tmp_path)


def test_a_folder_of_some_released_configs_says_which(samples: Path, tmp_path: Path) -> None:
    eraser_hub.build("eraser", source=samples / "eraser", config=["boolq", "cose"], out=tmp_path)
    _, prose = read_card(tmp_path / "eraser" / "README.md")
    assert "none of the configurations is whole" in prose and "multirc" not in prose
    assert 'load_dataset("eraser", "boolq")' in prose and {"boolq", "cose"} <= set(
        re.findall(r"^\| `(\w+)`", prose, re.M)
    )
    assert eraser_hub.check(dataset=tmp_path / "eraser").errors == []


@pytest.mark.slow
def test_it_is_published_with_both_tags_and_loaded_under_its_name(hub: Path, loopback: Any, child: Any) -> None:
    command = [sys.executable, "-m", "eraser_hub", "publish", "--namespace", "org", "--folder", str(hub)]
    done = child.call(command, loopback.url, HF_TOKEN=TOKEN)
    assert done.returncode == 0, done.stderr
    repository = loopback.repos["datasets", "org/hass"]
    tags = [f"v{get_dataset_version(open_built(hub / 'hass').card)}", f"v{__version__}"]
    assert repository.tags == dict.fromkeys(tags, repository.branches["main"])
    *loaded, card = child.run(LOAD, loopback.url)
    assert loaded == [{"train": 2, "test": 1}, ["bad", "good"], "fine"] and 'load_dataset("org/hass")' in card
    check = [sys.executable, "-m", "eraser_hub", "check", "--dataset", "org/hass"]
    done = child.call(check, loopback.url)
    assert done.returncode == 0 and "no violation" in done.stdout, done.stdout + done.stderr
