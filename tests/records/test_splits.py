"""Both spellings of a split's name are understood, and names beyond the three stay."""

from __future__ import annotations

import pytest

from eraser_hub.records.places import dataset_split, release_split

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("release", "dataset"),
    [("train", "train"), ("val", "validation"), ("test", "test"), ("dev", "dev"), ("test_original", "test_original")],
)
def test_names_of_splits(release, dataset):
    assert dataset_split(release) == dataset_split(dataset) == dataset
    assert release_split(dataset) == release_split(release) == release
