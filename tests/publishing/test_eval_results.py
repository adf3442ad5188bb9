"""A model's results: what `publish --eval-results` makes of score files and sends."""

from __future__ import annotations

import json

import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries
from loopback_hub import Repo

from eraser_hub.publishing.eval_results import make_results_files

from ..refusals import refused

MODEL = "lab/lstm"
CARD = """---
license: mit
model-index:
- name: Our LSTM
  results:
  - task: {type: text-classification}
    dataset: {name: GLUE, type: glue, config: sst2, split: validation}
    metrics:
    - {type: accuracy, value: 0.9}
---
# Our LSTM

Words of its owner.
"""


@pytest.fixture
def write(tmp_path):
    """Write a score file, as `score --out` does."""

    def write(split="test", name="scores", **more):
        values = {"token_macro_f1": 0.5, "iou_macro_f1": None, "sufficiency": 0.25, "run": "explain|kd:0.1"}
        values["signature"] = ["eraser_agreement|version:1.0.0", "eraser_faithfulness|aopc:0.5", "explain|kd:0.1"]
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps({"config": "movies", "split": split, "dataset": "eraser", **values, **more}))
        return file

    return write


def make(out, *files, there=None, model=MODEL):
    """The texts of the model's repository, which holds the texts of ``there``."""
    made = make_results_files(model, files, "org", lambda path: (there or {}).get(path, ""), out)
    return {path: file.read_text("utf-8") for path, file in made.items()}


def entries(texts, name="eraser"):
    return {
        entry.task_id: entry for entry in parse_eval_result_entries(yaml.safe_load(texts[f".eval_results/{name}.yaml"]))
    }


def test_values_and_signatures_are_read_back_by_the_hubs_classes(write, tmp_path):
    texts = make(tmp_path, write())
    there = entries(texts)
    assert {task: entry.value for task, entry in there.items()} == {"movies_token_f1": 0.5, "movies_sufficiency": 0.25}
    assert there["movies_token_f1"].notes == "eraser_agreement|version:1.0.0; explain|kd:0.1"
    assert {entry.dataset_id for entry in there.values()} == {"org/eraser"}
    results = {one.metric_type: one for one in ModelCard(texts["README.md"]).data.eval_results}
    assert results["sufficiency"].metric_name == "sufficiency (lower is better)"
    assert results["token_macro_f1"].metric_args["signature"].startswith("eraser_agreement|")
    assert (results["token_macro_f1"].dataset_config, results["token_macro_f1"].dataset_split) == ("movies", "test")


def test_splits_gather_and_a_second_value_takes_the_place_of_the_first(write, tmp_path):
    before = make(tmp_path, write(), write("validation", "other"))
    again = write(token_macro_f1=0.75)
    texts = make(tmp_path, again, there=before)
    there = entries(texts)
    assert {task: entry.value for task, entry in there.items()} == {
        "movies_token_f1": 0.75,
        "movies_sufficiency": 0.25,
        "movies_validation_token_f1": 0.5,
        "movies_validation_sufficiency": 0.25,
    }
    card = ModelCard(texts["README.md"])
    assert len(card.data.eval_results) == 4 and card.data.model_name == "lstm"
    assert make(tmp_path, again, there=texts) == texts


@pytest.mark.parametrize(
    ("content", "mentioned"),
    [
        ({"split": "train"}, " train "),
        ({"dataset": None}, "built dataset"),
        ({"signature": None}, "signature"),
        ({"token_macro_f1": None, "sufficiency": None, "comprehensiveness_aopc": 0.5}, "token_macro_f1, iou_macro_f1"),
        ({"token_macro_f1": 7}, "token_macro_f1"),
    ],
)
def test_what_is_refused(write, tmp_path, content, mentioned):
    file = write(**content)
    with refused(mentioned, file=file):
        make(tmp_path / "out", file)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "a: b\n",
        "- {dataset: {id: x, task_id: y}, value: [1]}\n",
        "\x00",
        "[" * 100_000,
    ],
)
def test_a_file_of_another_make_is_named(write, tmp_path, text):
    with refused(file="lab/lstm/.eval_results/eraser.yaml"):
        make(tmp_path, write(), there={".eval_results/eraser.yaml": text})


# -- to the Hub and back ----------------------------------------------------------------------------------------------


@pytest.fixture
def model(loopback):
    repo = Repo()
    repo.record("main", {"README.md": (CARD.encode(), False), "config.json": (b"{}", False)}, "a model")
    loopback.repos["models", MODEL] = repo
    return repo


def test_results_come_to_the_models_repository_and_nothing_else_goes(publish_toy, loopback, model, write):
    assert publish_toy(results={MODEL: [write()]}) == [f"{loopback.url}/{MODEL}"]
    tree = model.commits[model.branches["main"]]
    assert set(tree) == {"README.md", "config.json", ".eval_results/eraser.yaml"}
    there = parse_eval_result_entries(yaml.safe_load(tree[".eval_results/eraser.yaml"][0]))
    assert {entry.dataset_id for entry in there} == {"org/eraser"}
    card = ModelCard(tree["README.md"][0].decode())
    assert card.data.license == "mit" and card.data.model_name == "Our LSTM" and "Words of its owner." in card.text
    assert {one.dataset_type for one in card.data.eval_results} == {"glue", "org/eraser"}
    assert not model.tags and ("datasets", "org/eraser") not in loopback.repos
    assert publish_toy(results={MODEL: [write()]}, check=True)[-1] == "what is published is what the folder holds"
    with refused("0 missing, 2 differ", file="lab/lstm"):
        publish_toy(results={MODEL: [write("validation")]}, check=True)


def test_a_model_that_is_not_there_is_not_created(publish_toy, loopback, write):
    with refused(" lab/lstm "):
        publish_toy(results={MODEL: [write()]})
    assert not loopback.repos


def test_a_dry_run_shows_the_results_without_the_hub(publish_toy, loopback, write):
    plan = publish_toy(results={MODEL: [write()]}, dry_run=True, token=None)
    assert plan[0].startswith("model lab/lstm: 2 files") and not loopback.requests
    assert "    task_id: movies_token_f1" in plan and "model-index:" in plan


def test_a_card_that_cannot_be_read_is_named_and_stays(publish_toy, model, write):
    model.record("main", {"README.md": (b"---\n: [\n---\n", False)}, "broken")
    with refused(file="lab/lstm/README.md"):
        publish_toy(results={MODEL: [write()]})
    assert len(model.messages) == 3
