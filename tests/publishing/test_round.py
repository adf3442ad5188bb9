"""The whole round: build -> publish -> load from anywhere by the real clients -> score -> publish the results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import evaluate
import huggingface_hub
import pytest
import yaml
from loopback_hub import TOKEN, LoopbackHub, Repo

import eraser_hub
from eraser_hub.conversion.built import open_built
from eraser_hub.conversion.card import get_dataset_version

from .conftest import Child

pytestmark = pytest.mark.slow
LOAD = """
import json, sys
sys.modules["eraser_hub"] = sys.modules["rapidfuzz"] = None  # neither a reader nor a Space needs them
import datasets, evaluate
movies = datasets.load_dataset("org/eraser", "movies")
tagged = datasets.load_dataset("org/eraser", "movies", revision=sys.argv[2], split="test")
streamed = list(datasets.load_dataset("org/eraser", split="train", streaming=True))
own = datasets.load_dataset("org/hass", split="train")
scores = evaluate.load("org/eraser_faithfulness").compute(predictions=json.loads(sys.argv[1]))
loaded = [movies.num_rows, len(tagged), streamed == movies["train"].to_list(), own[0]["rationale"]]
print(json.dumps([loaded, scores]))
"""


@pytest.fixture(scope="module")
def world(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Samples, a corpus of one's own and a metric, built and published by the command line."""
    place = tmp_path_factory.mktemp("round")
    hub, child = place / "hub", Child(place)
    rows = [{"id": "a", "text": "a fine film .", "label": "good", "quotes": ["fine"]}]
    tables = {"train": rows, "test": [{**rows[0], "id": "b", "label": "bad"}]}
    eraser_hub.import_corpus(tables, "hass", out=place / "corpora", **{name: name for name in rows[0]})
    eraser_hub.build("own", source=place / "corpora", out=hub)
    eraser_hub.build("eraser", source=samples / "eraser", config="movies", out=hub)
    eraser_hub.build("metrics", config="eraser_faithfulness", out=hub)
    with LoopbackHub().running() as loopback:
        world = World(hub, loopback, child)
        printed = world.type("publish", "--namespace", "org", "--folder", hub, "--allow-sample")
        kinds = ("datasets/org/eraser", "datasets/org/hass", "spaces/org/eraser_faithfulness")
        assert printed.splitlines() == [f"{loopback.url}/{kind}" for kind in kinds]
        yield world


class World(NamedTuple):
    """What was published, and where."""

    hub: Path
    loopback: LoopbackHub
    child: Child

    def type(self, *words: object) -> str:
        """What a command prints; it succeeds."""
        done = self.child.call("-m", "eraser_hub", *words, endpoint=self.loopback.url, HF_TOKEN=TOKEN)
        assert done.returncode == 0 and TOKEN not in done.stdout + done.stderr, done.stdout + done.stderr
        return done.stdout


def test_what_is_published_is_loaded_and_scores_the_same(world: World) -> None:
    version = get_dataset_version(open_built(world.hub / "eraser").card)
    rows = json.loads((world.hub / "eraser_faithfulness" / "example.json").read_text())["predictions"]
    done = world.child.call("-c", LOAD, json.dumps(rows), f"v{version}", endpoint=world.loopback.url)
    assert done.returncode == 0, done.stderr
    loaded, scores = json.loads(done.stdout.splitlines()[-1])
    assert loaded == [{"train": 27, "validation": 24, "test": 13}, 13, True, "fine"]
    assert scores == evaluate.load(str(world.hub / "eraser_faithfulness")).compute(predictions=rows)


def test_a_published_dataset_is_scored_by_its_id_and_results_are_published(world: World, samples: Path) -> None:
    predictions, repo = samples / "predictions" / "eraser" / "movies.val.jsonl", Repo()
    world.loopback.repos["models", "lab/lstm"] = repo
    dataset = ["--dataset", "hf://datasets/org/eraser@main", "--config", "movies", "--split", "val"]
    world.type("score", *dataset, "--predictions", predictions, "--out", "scores.json")
    world.type("publish", "--namespace", "org", "--eval-results", "lab/lstm=scores.json")
    done = world.child.call("-m", "eraser_hub", "stats", "--dataset", "org/eraser@v9", endpoint=world.loopback.url)
    assert done.returncode == 1 and done.stderr.startswith("org/eraser@v9: ")
    scores = json.loads((world.child.folder / "scores.json").read_text())
    text = repo.tree[".eval_results/eraser-movies-validation.yaml"]
    entries = huggingface_hub.parse_eval_result_entries(yaml.safe_load(text))
    evaluated = yaml.safe_load(world.loopback.repos["datasets", "org/eraser"].tree["eval.yaml"])
    assert {entry.task_id for entry in entries} <= {task["id"] for task in evaluated["tasks"]}
    values = {entry.task_id: entry.value for entry in entries}
    assert values["movies_validation_token_f1"] == scores["token_macro_f1"]


def test_a_published_dataset_is_read_by_its_id_as_its_folder_is(world: World) -> None:
    train = ["train", "--dataset", "org/eraser", "--config", "movies", "--model", "logistic-regression"]
    world.type(*train, "--out", "model")
    read = []
    for dataset in (world.hub / "eraser", "org/eraser"):
        movies = ["--dataset", dataset, "--config", "movies"]
        few = [*movies, "--split", "validation", "--limit", 2]
        world.type("explain", *few, "--model", "model", "--method", "random", "--out", "p.jsonl", "--force")
        files = [(world.child.folder / name).read_text() for name in ("p.jsonl", "p.jsonl.run.json")]
        asked = world.type("ask", *few, "--model", "m", "--endpoint", "http://localhost:9/v1", "--dry-run")
        read.append([*files, asked, world.type("stats", *movies)])
    assert read[0] == read[1] and len(read[0][0].splitlines()) == 2
