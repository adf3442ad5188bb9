"""A corpus of one's own name: built, checked, published, and loaded by other processes."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from loopback_hub import TOKEN

import eraser_hub
from eraser_hub.conversion.built import open_built, read_card
from eraser_hub.version import __version__

from ..refusals import refused
from ..source_copy import ROOT

LOAD = """
import json, datasets
data = datasets.load_dataset("org/hass")
tagged = datasets.load_dataset("org/hass", revision={tag!r}, split="test")
streamed = next(iter(datasets.load_dataset("org/hass", split="train", streaming=True)))
names, sizes = data["train"].features["classification"].names, {{split: rows.num_rows for split, rows in data.items()}}
print(json.dumps([sizes, tagged.num_rows, names, streamed["rationale"]]))
"""


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    """A folder with two corpora, as `import` writes them."""
    for name in ("hass", "other"):
        folder = tmp_path / "corpora" / name
        folder.mkdir(parents=True)
        facts = {"name": name, "labels": ["bad", "good"], "language": "en", "license": "cc-by-4.0"}
        facts["citation"] = "@misc{a}"
        (folder / "corpus.yaml").write_text(yaml.safe_dump(facts))
        texts = ["a fine film .", "dull from the start .", "a warm film ."]
        with (folder / "docs.jsonl").open("w") as file:
            for at, text in enumerate(texts):
                file.write(json.dumps({"docid": f"d{at}", "document": text}) + "\n")
        for split, numbers in (("train", (0, 1)), ("test", (2,))):
            with (folder / f"{split}.jsonl").open("w") as file:
                for at in numbers:
                    words = texts[at].split(" ")
                    place = {"start_token": 1, "end_token": 2, "start_sentence": 0, "end_sentence": 1}
                    evidence = {"docid": f"d{at}", "text": words[1], **place}
                    row = {"annotation_id": f"a{at}", "query": "", "classification": ("good", "bad", "good")[at]}
                    row |= {"evidences": [[evidence]], "docids": [f"d{at}"]}
                    file.write(json.dumps(row, sort_keys=True) + "\n")
    return tmp_path / "corpora"


@pytest.fixture
def hub(corpora: Path, tmp_path: Path) -> Path:
    eraser_hub.build("own", source=corpora / "hass", out=tmp_path / "hub")
    return tmp_path / "hub"


def tags_of(folder: Path) -> list[str]:
    version = str(open_built(folder).info("hass")["version"])
    return [f"v{version}", f"v{__version__}"]


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
    for name in ("train.jsonl", "docs.jsonl", "corpus.yaml"):
        assert (tmp_path / "raw/hass" / name).read_bytes() == (corpora / "hass" / name).read_bytes()
    monkeypatch.chdir(tmp_path)
    assert eraser_hub.load("hass", split="train").num_rows == 2
    instances = [{"annotation_id": "a2", "rationales": [{"docid": "d2", "hard_rationale_predictions": []}]}]
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
    assert "Corpora of English text (`boolq`, `cose`)" in prose and "Seven" not in prose
    assert 'load_dataset("eraser", "boolq")  # or cose' in prose and "multirc" not in prose.partition("## Config")[0]
    assert eraser_hub.check(dataset=tmp_path / "eraser").errors == []


@pytest.mark.slow
def test_it_is_published_with_both_tags_and_loaded_under_its_name(hub: Path, loopback: Any, child: Any) -> None:
    command = [sys.executable, "-m", "eraser_hub", "publish", "--namespace", "org", "--folder", str(hub)]
    here = {"PYTHONPATH": os.pathsep.join((str(child.modules), str(ROOT)))}
    done = child.call(command, loopback.url, HF_TOKEN=TOKEN, **here)
    assert done.returncode == 0, done.stderr
    repository = loopback.repos["datasets", "org/hass"]
    assert repository.tags == dict.fromkeys(tags_of(hub / "hass"), repository.branches["main"])
    card = child.run(
        "import json, huggingface_hub\n"
        "print(json.dumps(open(huggingface_hub.hf_hub_download('org/hass', 'README.md', repo_type='dataset')).read()))",
        loopback.url,
    )
    assert 'load_dataset("org/hass")' in card
    loaded = child.run(LOAD.format(tag=f"v{__version__}"), loopback.url)
    assert loaded == [{"train": 2, "test": 1}, 1, ["bad", "good"], "fine"]
    check = [sys.executable, "-m", "eraser_hub", "check", "--dataset", "org/hass"]
    done = child.call(check, loopback.url, **here)
    assert done.returncode == 0 and "no violation" in done.stdout, done.stdout + done.stderr
