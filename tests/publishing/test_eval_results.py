"""A model's results: what `publish --eval-results` makes of score files and sends."""

from __future__ import annotations

import json

import pytest
import yaml
from huggingface_hub import parse_eval_result_entries
from loopback_hub import Repo

from ..refusals import refused

MODEL = "lab/lstm"


@pytest.fixture
def write(tmp_path):
    """Write a score file, as `score --out` does."""

    def write(split="test", **more):
        values = {"token_macro_f1": 0.5, "iou_macro_f1": None, "sufficiency": 0.25}
        values["signature"] = ["eraser_agreement|version:1.0.0", "eraser_faithfulness|aopc:0.5"]
        file = tmp_path / f"{split}.json"
        file.write_text(json.dumps({"config": "movies", "split": split, "dataset": "eraser", **values, **more}))
        return file

    return write


def test_results_come_to_the_models_repository_and_nothing_else_goes(send, loopback, write, caplog):
    repo = loopback.repos["models", MODEL] = Repo()
    repo.record({"README.md": b"theirs", ".eval_results/other.yaml": b"[]\n"})
    assert send(eval_results=[f"{MODEL}={write()}", f"{MODEL}={write('val')}"]) == [f"{loopback.url}/{MODEL}"]
    assert "iou_macro_f1" in caplog.text
    names = {f".eval_results/eraser-movies-{split}.yaml" for split in ("test", "validation")}
    assert set(repo.tree) == {"README.md", ".eval_results/other.yaml"} | names
    entries = [entry for name in sorted(names) for entry in parse_eval_result_entries(yaml.safe_load(repo.tree[name]))]
    assert [(entry.dataset_id, entry.task_id, entry.value) for entry in entries] == [
        ("org/eraser", "movies_token_f1", 0.5),
        ("org/eraser", "movies_sufficiency", 0.25),
        ("org/eraser", "movies_validation_token_f1", 0.5),
        ("org/eraser", "movies_validation_sufficiency", 0.25),
    ]
    assert entries[0].notes == "eraser_agreement|version:1.0.0; eraser_faithfulness|aopc:0.5"
    assert len(loopback.repos) == 1 and not repo.tags
    commits = len(repo.commits)
    send(eval_results=f"{MODEL}={write()}")
    assert len(repo.commits) == commits, "nothing changed"
    plan = send(eval_results=f"{MODEL}={write(token_macro_f1=0.75)}", dry_run=True)
    assert plan[1] == "  change .eval_results/eraser-movies-test.yaml" and "  value: 0.75" in plan


def test_a_model_that_is_not_there_is_not_created(send, loopback, write):
    with refused("404", file=MODEL):
        send(eval_results=f"{MODEL}={write()}")
    assert not loopback.repos


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({"split": "train"}, "split"),
        ({"dataset": None}, "dataset"),
        ({"config": "../../movies"}, "config"),
        ({"signature": None}, "signature"),
        ({"token_macro_f1": 7}, "token_macro_f1"),
        ({"token_macro_f1": None, "sufficiency": None}, None),
    ],
)
def test_scores_that_answer_no_task_are_refused(send, loopback, write, content, field):
    file = write(**content)
    with refused(file=file, field=field):
        send(eval_results=f"{MODEL}={file}")
    assert not loopback.requests
