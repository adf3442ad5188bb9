"""eval.yaml: the tasks of each config and split, and what of them the other modules say of the same scores."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.dataset import HubDataset
from eraser_hub.conversion.leaderboard import HEADLINES, get_task_category, verify_eval_yaml, write_eval_yaml

from ..refusals import refused

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def built(samples, tmp_path_factory):
    out = tmp_path_factory.mktemp("hub")
    HUB_DATASETS["eraser"].build(["movies", "fever"], out=out, source=samples / "eraser")
    HUB_DATASETS["human_rationales"].build(["wikiattack"], out=out, source=samples / "human_rationales")
    return out


def test_tasks_name_config_split_and_score(built):
    content = yaml.safe_load((built / "eraser" / "eval.yaml").read_text())
    assert set(content) == {"name", "description", "evaluation_framework", "tasks"}
    assert content["evaluation_framework"] == "eraser-hub"
    tasks = {task["id"]: (task["config"], task["split"]) for task in content["tasks"]}
    assert tasks["movies_token_f1"] == tasks["movies_comprehensiveness"] == ("movies", "test")
    assert tasks["movies_validation_token_f1"] == ("movies", "validation")
    assert tasks["fever_dev_sufficiency"] == ("fever", "dev")
    assert not any(split == "train" for _, split in tasks.values())
    assert len(tasks) == len(content["tasks"]) == 6 * 5, "six scores of two and three splits"
    assert "sufficiency: lower is better." in content["description"] and "**" not in content["description"]


def test_no_split_has_tasks_that_is_not_there(built):
    content = yaml.safe_load((built / "human_rationales" / "eval.yaml").read_text())
    assert {(task["config"], task["split"]) for task in content["tasks"]} == {
        ("wikiattack", "validation"),
        ("wikiattack", "test"),
    }


def test_a_dataset_without_headlines_has_no_eval_yaml(tmp_path, monkeypatch):
    monkeypatch.setitem(HUB_DATASETS, "starred", HubDataset("starred", ("a",), "a"))
    write_eval_yaml(tmp_path, "starred")
    verify_eval_yaml(tmp_path, "starred")
    assert not list(tmp_path.iterdir())


def test_headlines_are_scores_with_the_direction_that_the_board_shows():
    from eraser_hub.reports.catalogue import metric

    assert set(HEADLINES) <= set(HUB_DATASETS)
    for headlines in HEADLINES.values():
        assert {headline.name: metric(headline.key).better for headline in headlines} == {
            headline.name: "lower" if headline.lower else "higher" for headline in headlines
        }


def test_task_categories_are_those_of_the_cards():
    assert get_task_category("eraser", "multirc") == "question-answering"
    assert get_task_category("eraser", "movies") == "text-classification"
    assert get_task_category("bilingual_perturbation", "mrc_ch") == "question-answering"
    assert get_task_category("human_rationales", "sst") == "text-classification"


def test_an_edited_or_missing_eval_yaml_is_named(built, samples, tmp_path):
    import shutil

    folder = tmp_path / "eraser"
    shutil.copytree(built / "eraser", folder)
    verify_eval_yaml(folder, "eraser")
    path = folder / "eval.yaml"
    path.write_text(path.read_text().replace("movies_token_f1", "movies_f1"))
    with refused(file=path):
        verify_eval_yaml(folder, "eraser")
    path.unlink()
    with refused(file=path):
        verify_eval_yaml(folder, "eraser")
    HUB_DATASETS["eraser"].build(["movies"], out=tmp_path, source=samples / "eraser")
    verify_eval_yaml(folder, "eraser")


def test_the_page_lists_the_scores_of_which_lower_is_better():
    from eraser_hub.reports.catalogue import METRICS

    page = (Path(__file__).parents[2] / "docs" / "hub.md").read_text(encoding="utf-8")
    words = page[page.index("**Lower is better**") : page.index("Of `normalized_sufficiency`")]
    named = set(re.findall(r"`(\w+)`", words))
    assert named == {key for key, metric in METRICS.items() if metric.better == "lower"}
