"""The whole round: publish -> load from anywhere -> push back -> load again -> score."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import evaluate
import huggingface_hub
import pytest
import yaml
from loopback_hub import TOKEN, LoopbackHub, Repo

from eraser_hub.conversion import list_datasets
from eraser_hub.conversion.built import open_built
from eraser_hub.conversion.card import get_dataset_version

from .conftest import Child, make_child

REAL = """
import json, datasets, evaluate
movies = datasets.load_dataset("org/eraser", "movies")
tagged = datasets.load_dataset("org/eraser", "movies", revision="v{version}", split="test")
cose = list(datasets.load_dataset("org/eraser", "cose", split="train", streaming=True))
skipped = next(iter(datasets.load_dataset("org/eraser", split="train", streaming=True).skip(20).take(1)))
movies.push_to_hub("org/copy", "movies")
again = datasets.load_dataset("org/copy", "movies")
same = all(movies[split].to_list() == again[split].to_list() for split in movies)
same = same and str(movies["train"].features) == str(again["train"].features)
row = next(row for row in movies["train"] if row["evidences"])
keys = ("start_token", "end_token")
spans = [{{key: span[key] for key in keys}} for group in row["evidences"] for span in group]
instance = {{
    "annotation_id": row["annotation_id"],
    "rationales": [{{"docid": row["documents"][0]["docid"], "hard_rationale_predictions": spans}}],
    "classification": "POS",
    "classification_scores": {{"NEG": 0.2, "POS": 0.8}},
    "comprehensiveness_classification_scores": {{"NEG": 0.7, "POS": 0.3}},
    "sufficiency_classification_scores": {{"NEG": 0.3, "POS": 0.7}},
}}
faithfulness = evaluate.load("org/eraser_faithfulness").compute(predictions=[instance])
agreement = evaluate.load("org/eraser_agreement").compute(
    predictions=[{{key: instance[key] for key in ("annotation_id", "rationales")}}], references=[row]
)
read = [movies.num_rows, tagged.num_rows, len(cose), skipped["annotation_id"]]
print(json.dumps([same, read, instance, row, faithfulness, agreement]))
"""
# each list of words is a call; the results go by place, and stdout of all of them is printed
VERBS = """
import json, sys
from tests.command_line import invoke
calls = [invoke(words) for words in json.loads(sys.argv[1])]
print(json.dumps([[one.exit_code, one.stdout, repr(one.exception)] for one in calls]))
"""


class Published(NamedTuple):
    """What the project builds of its samples, on a Hub."""

    hub: Path
    loopback: LoopbackHub
    child: Child
    printed: str

    def typed(self, *calls: list[str], **more: str) -> list[str]:
        """What each of the calls prints; they succeed."""
        words = [list(map(str, call)) for call in calls]
        done = self.child.call([sys.executable, "-c", VERBS, json.dumps(words)], self.loopback.url, **more)
        assert done.returncode == 0, done.stderr
        results = json.loads(done.stdout.splitlines()[-1])
        assert [call for call, (code, _, _) in zip(words, results, strict=True) if code] == [], results
        return [printed for _, printed, _ in results]


@pytest.fixture(scope="module")
def published(samples, tmp_path_factory) -> Iterator[Published]:
    """The three datasets of the samples and the metrics, built and published by the command line."""
    place = tmp_path_factory.mktemp("round")
    hub, child = place / "hub", make_child(place)
    publish = [sys.executable, "-m", "eraser_hub", "publish", "--namespace", "org", "--folder", str(hub)]
    with LoopbackHub().running() as loopback:
        world = Published(hub, loopback, child, "")
        calls = [["build", name, "--source", str(samples / name), "--out", str(hub)] for name in list_datasets()]
        world.typed(*calls, ["build", "metrics", "--out", hub])
        dry = child.call([*publish, "--dry-run"], "http://127.0.0.1:9", HF_HUB_OFFLINE="1")
        assert dry.returncode == 0 and "dataset org/eraser" in dry.stdout and loopback.requests == [], dry.stderr
        done = child.call(publish, loopback.url, HF_TOKEN=TOKEN)
        assert done.returncode == 0, done.stderr
        assert TOKEN not in done.stdout + done.stderr
        yield world._replace(printed=done.stdout)


@pytest.mark.slow
def test_what_is_published_is_loaded_pushed_back_and_scores_the_same(published):
    assert f"{published.loopback.url}/spaces/org/eraser_faithfulness" in published.printed.splitlines()
    built = open_built(published.hub / "eraser")
    code = REAL.format(version=get_dataset_version(built.card))
    same, read, instance, row, faithfulness, agreement = published.child.run(
        code, published.loopback.url, HF_TOKEN=TOKEN
    )
    ids = [row["annotation_id"] for row in built.rows("movies", "train")]
    assert same and read == [
        {"train": 27, "validation": 24, "test": 13},
        13,
        len(built.rows("cose", "train")),
        ids[20],
    ]
    local = {name: evaluate.load(str(published.hub / name)) for name in ("eraser_faithfulness", "eraser_agreement")}
    assert faithfulness == local["eraser_faithfulness"].compute(predictions=[instance])
    hard = {key: instance[key] for key in ("annotation_id", "rationales")}
    assert agreement == local["eraser_agreement"].compute(predictions=[hard], references=[row])
    assert agreement["token_micro_f1"] == 1.0


@pytest.mark.slow
def test_results_are_published_and_come_back(published, samples):
    loopback, predictions = published.loopback, samples / "predictions" / "eraser" / "movies.val.jsonl"
    loopback.repos["models", "lab/lstm"] = Repo()
    publish = ["publish", "--namespace", "org", "--folder", published.hub]
    dataset = ["--dataset", "org/eraser", "--config", "movies", "--split", "val"]
    published.typed(
        [*publish, "--check"],
        ["score", *dataset, "--predictions", predictions, "--out", "scores.json"],
        [*publish, "--eval-results", "lab/lstm=scores.json"],
        [*publish, "--eval-results", "lab/lstm=scores.json", "--check"],
        HF_TOKEN=TOKEN,
    )
    scores = json.loads((published.child.folder / "scores.json").read_text())
    text = loopback.repos["models", "lab/lstm"].tree[".eval_results/eraser.yaml"][0]
    entries = huggingface_hub.parse_eval_result_entries(yaml.safe_load(text))
    evaluated = yaml.safe_load(loopback.repos["datasets", "org/eraser"].tree["eval.yaml"][0])
    assert {entry.task_id for entry in entries} <= {task["id"] for task in evaluated["tasks"]}
    assert {entry.dataset_id for entry in entries} == {"org/eraser"}
    values = {entry.task_id: entry.value for entry in entries}
    assert values["movies_validation_token_f1"] == scores["token_macro_f1"]
    assert {entry.notes for entry in entries} == set(scores["signature"])


@pytest.mark.slow
def test_each_verb_reads_a_published_dataset_by_its_id(published, samples, tmp_path):
    places = (published.hub / "eraser", "org/eraser", "org/eraser@main", "hf://datasets/org/eraser@main")
    for verb in ("check", "stats"):
        local, *remote = published.typed(*([verb, "--dataset", place, "--format", "csv"] for place in places))
        assert remote[1:] == remote[:1] * 2
        assert remote[0].splitlines() == local.splitlines()
    published.typed(["export", "--dataset", "org/eraser", "--out", tmp_path / "raw"])
    assert (tmp_path / "raw" / "movies" / "val.jsonl").is_file()
    stats = [sys.executable, "-m", "eraser_hub", "stats", "--dataset", "org/eraser@v9"]
    done = published.child.call(stats, published.loopback.url)
    assert done.returncode == 1 and done.stderr.startswith("org/eraser@v9: no folder of that name is here, and the Hub")
