"""A model's results: what `score --eval-results` writes, and what `publish --eval-results` sends."""

from __future__ import annotations

import pytest
import yaml
from conftest import write_toy_dataset
from huggingface_hub import ModelCard, parse_eval_result_entries
from loopback_hub import TOKEN, Repo

from eraser_hub.publishing.eval_results import write_eval_results
from eraser_hub.records.built import open_built

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
def built(tmp_path):
    write_toy_dataset(tmp_path / "data" / "eraser")
    return open_built(tmp_path / "data" / "eraser")


def scores(split="test", **more):
    values = {"token_macro_f1": 0.5, "iou_macro_f1": float("nan"), "sufficiency": 0.25, "run": "explain|kd:0.1"}
    values["signature"] = ["eraser_agreement|version:2.0.0", "eraser_faithfulness|aopc:0.5", "explain|kd:0.1"]
    return {"config": "movies", "split": split, "dataset": "eraser", **values, **more}


def entries(folder, name="eraser"):
    path = folder / MODEL / ".eval_results" / f"{name}.yaml"
    return {entry.task_id: entry for entry in parse_eval_result_entries(yaml.safe_load(path.read_text()))}


def test_the_source_holds_the_digest_of_the_data(built, tmp_path):
    digest = "914ebab402fa" + "0" * 52
    write_eval_results(MODEL, scores(data_digest=digest), built, folder=tmp_path, source="https://x.org/p.jsonl")
    assert {entry.source_name for entry in entries(tmp_path).values()} == {"Predictions, data 914ebab402fa"}


def test_values_and_signatures_are_read_back_by_the_hubs_classes(built, tmp_path):
    paths, notes = write_eval_results(MODEL, scores(), built, folder=tmp_path, source="https://x.org/p.jsonl")
    there = entries(tmp_path)
    assert {task: entry.value for task, entry in there.items()} == {"movies_token_f1": 0.5, "movies_sufficiency": 0.25}
    assert there["movies_token_f1"].notes == "eraser_agreement|version:2.0.0; explain|kd:0.1"
    assert there["movies_token_f1"].source_url == "https://x.org/p.jsonl"
    assert there["movies_token_f1"].source_name == "Predictions", "the scores have no digest"
    assert any("iou_f1, auprc, comprehensiveness, macro_f1" in note for note in notes)
    assert any("eraser-hub publish" in note for note in notes)
    results = {one.metric_type: one for one in ModelCard.load(paths[1]).data.eval_results}
    assert results["sufficiency"].metric_name == "sufficiency (lower is better)"
    assert results["token_macro_f1"].metric_args["signature"].startswith("eraser_agreement|")
    assert (results["token_macro_f1"].dataset_config, results["token_macro_f1"].dataset_split) == ("movies", "test")


def test_splits_gather_and_a_second_value_takes_the_place_of_the_first(built, tmp_path):
    write_eval_results(MODEL, scores(), built, folder=tmp_path)
    write_eval_results(MODEL, scores("validation"), built, folder=tmp_path)
    again = scores(token_macro_f1=0.75)
    write_eval_results(MODEL, again, built, folder=tmp_path)
    there = entries(tmp_path)
    assert {task: entry.value for task, entry in there.items()} == {
        "movies_token_f1": 0.75,
        "movies_sufficiency": 0.25,
        "movies_validation_token_f1": 0.5,
        "movies_validation_sufficiency": 0.25,
    }
    card = ModelCard.load(tmp_path / MODEL / "README.md")
    assert len(card.data.eval_results) == 4 and card.data.model_name == "lstm"


@pytest.mark.parametrize(
    ("model", "content", "mentioned"),
    [
        ("lab", scores(), "'lab'"),
        ("lab/../x", scores(), "'lab/../x'"),
        ("a/b/c", scores(), "'a/b/c'"),
        (MODEL, scores("train"), " train "),
        (MODEL, {"config": "movies", "split": "test", "signature": ["x"]}, "token_macro_f1, iou_macro_f1, auprc"),
    ],
)
def test_what_is_refused(built, tmp_path, model, content, mentioned):
    with refused(mentioned, argument="eval_results"):
        write_eval_results(model, content, built, folder=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "text",
    [
        "- 1\n",
        "{",
        "a: b\n",
        "- {dataset: {id: x, task_id: y}, value: [1]}\n",
        "\x00",
        "[" * 100_000,
        "caf\xe9",
    ],
)
def test_a_file_of_another_make_is_named_and_stays(built, tmp_path, text):
    path = tmp_path / MODEL / ".eval_results" / "eraser.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="latin-1")
    with refused(file=path):
        write_eval_results(MODEL, scores(), built, folder=tmp_path)
    assert path.read_text(encoding="latin-1") == text


# -- to the Hub and back ----------------------------------------------------------------------------------------------


@pytest.fixture
def model(loopback):
    repo = Repo()
    repo.record("main", {"README.md": (CARD.encode(), False), "config.json": (b"{}", False)}, "a model")
    loopback.repos["models", MODEL] = repo
    return repo


def test_results_come_to_the_models_repository_and_nothing_else_goes(publish_toy, loopback, model, built, tmp_path):
    write_eval_results(MODEL, scores(), built, folder=tmp_path)
    assert publish_toy(eval_results=MODEL, results_folder=tmp_path) == [f"{loopback.url}/{MODEL}"]
    tree = model.commits[model.branches["main"]]
    assert set(tree) == {"README.md", "config.json", ".eval_results/eraser.yaml"}
    there = parse_eval_result_entries(yaml.safe_load(tree[".eval_results/eraser.yaml"][0]))
    assert {entry.dataset_id for entry in there} == {"org/eraser"}
    card = ModelCard(tree["README.md"][0].decode())
    assert card.data.license == "mit" and card.data.model_name == "Our LSTM" and "Words of its owner." in card.text
    assert {one.dataset_type for one in card.data.eval_results} == {"glue", "org/eraser"}
    assert not model.tags and ("datasets", "org/eraser") not in loopback.repos


def test_a_second_run_sends_nothing_and_check_agrees(publish_toy, model, built, tmp_path, said):
    write_eval_results(MODEL, scores(), built, folder=tmp_path)
    publish_toy(eval_results=MODEL, results_folder=tmp_path)
    publish_toy(eval_results=MODEL, results_folder=tmp_path)
    assert len(model.messages) == 3, "the Hub's first, the owner's, ours"
    publish_toy(eval_results=MODEL, results_folder=tmp_path, check=True)
    assert said[-1] == "what is published is what the folder holds"
    write_eval_results(MODEL, scores("validation"), built, folder=tmp_path)
    with refused("0 missing, 2 differ", file="lab/lstm"):
        publish_toy(eval_results=MODEL, results_folder=tmp_path, check=True)


def test_a_model_that_is_not_there_is_not_created(publish_toy, loopback, built, tmp_path):
    write_eval_results(MODEL, scores(), built, folder=tmp_path)
    with refused(" lab/lstm "):
        publish_toy(eval_results=MODEL, results_folder=tmp_path)
    assert not loopback.repos
    with refused("`eval_results` lab/other", file="lab/other"):
        loopback.repos["models", "lab/other"] = Repo()
        publish_toy(eval_results="lab/other", results_folder=tmp_path)


def test_a_dry_run_plans_without_the_card(publish_toy, loopback, built, tmp_path, said):
    write_eval_results(MODEL, scores(), built, folder=tmp_path)
    publish_toy(eval_results=MODEL, results_folder=tmp_path, dry_run=True, token=None)
    assert any(line.startswith("model lab/lstm: 2 files") for line in said) and not loopback.requests


def test_a_card_that_cannot_be_read_is_named_and_stays(publish_toy, model, built, tmp_path):
    model.record("main", {"README.md": (b"---\n: [\n---\n", False)}, "broken")
    write_eval_results(MODEL, scores(), built, folder=tmp_path)
    with refused(file="lab/lstm/README.md"):
        publish_toy(eval_results=MODEL, results_folder=tmp_path)
    assert len(model.messages) == 3


PUSHED = """
import json, evaluate, huggingface_hub
evaluate.push_to_hub(
    model_id="lab/lstm", task_type="text-classification", dataset_type="org/eraser", dataset_name="ERASER (movies)",
    dataset_config="movies", dataset_split="test", metric_type="token_macro_f1", metric_name="token_f1",
    metric_value=0.5,
)
card = huggingface_hub.ModelCard.load("lab/lstm")
print(json.dumps([card.data.to_dict()["model-index"], card.text]))
"""


def test_what_evaluates_own_push_writes_is_taken_over_by_ours(publish_toy, loopback, model, built, child, tmp_path):
    """`evaluate.push_to_hub` writes one value into model-index, without a signature and without .eval_results."""
    publish_toy(datasets=["eraser"])
    index, text = child.run(PUSHED, loopback.url, HF_TOKEN=TOKEN)
    assert "Words of its owner." in text
    (result,) = (one for one in index[0]["results"] if one["dataset"]["type"] == "org/eraser")
    assert result["metrics"] == [{"type": "token_macro_f1", "value": 0.5, "name": "token_f1"}]
    tree = model.commits[model.branches["main"]]
    assert set(tree) == {"README.md", "config.json"}
    write_eval_results(MODEL, scores(token_macro_f1=0.75), built, folder=tmp_path)
    publish_toy(eval_results=MODEL, results_folder=tmp_path)
    card = ModelCard(model.commits[model.branches["main"]]["README.md"][0].decode())
    (value,) = (one.metric_value for one in card.data.eval_results if one.metric_type == "token_macro_f1")
    assert value == 0.75, "one value of a score on a split"
