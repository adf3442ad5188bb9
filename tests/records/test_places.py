"""What a dataset's name means, and both names of a split."""

from __future__ import annotations

from pathlib import Path

import pytest

from eraser_hub.records.places import dataset_split, find_place, release_split

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("dataset", "repository", "revision"),
    [
        ("org/eraser", "org/eraser", None),
        ("org/eraser@v2", "org/eraser", "v2"),
        ("hf://datasets/org/eraser", "org/eraser", None),
        (Path("hf://datasets/org/eraser@refs%2Fpr%2F1"), "org/eraser", "refs/pr/1"),
        ("hub/eraser/movies", None, None),
        ("eraser", None, None),
        ("./eraser", None, None),
        ("~/eraser", None, None),
        ("../eraser", None, None),
    ],
)
def test_what_a_dataset_means(dataset, repository, revision, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_place(dataset)[1:] == (repository, revision)
    (tmp_path / "org" / "eraser").mkdir(parents=True)
    assert find_place("org/eraser") == ("org/eraser", None, None), "a folder that is here goes before the Hub"


@pytest.mark.parametrize(
    ("release", "dataset"),
    [("train", "train"), ("val", "validation"), ("test", "test"), ("dev", "dev"), ("test_original", "test_original")],
)
def test_names_of_splits(release, dataset):
    assert dataset_split(release) == dataset_split(dataset) == dataset
    assert release_split(dataset) == release_split(release) == release


def test_what_a_dataset_is_is_found_by_looking(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "docs.jsonl").touch()
    (tmp_path / "gold.csv").touch()
    kinds = [find_place(tmp_path / name).kind for name in ("raw", "gold.csv", "built")]
    assert [*kinds, find_place("org/eraser").kind] == ["raw", "rows", "built", "built"]
