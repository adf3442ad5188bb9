"""Cards: what `load_dataset` and the Hub read there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from huggingface_hub import DatasetCard

from eraser_hub.conversion import get_dataset, list_datasets
from eraser_hub.conversion.card import CARDS, fill_prose, get_dataset_version

MAX_WORDS = 1_200


@pytest.mark.parametrize("name", list_datasets())
def test_a_card_has_what_the_hub_files_it_under_and_can_be_read_in_a_sitting(
    name: str, samples: Path, tmp_path: Path
) -> None:
    for _ in range(2):  # a build that replaces a folder writes its own picture
        folder = get_dataset(name).build(None, out=tmp_path, source=samples / name).folder
    card = DatasetCard.load(folder / "README.md")
    assert len([word for word in card.text.split() if re.search(r"\w", word)]) <= MAX_WORDS
    assert f"]({name}.png)" in card.text and "<!--" not in card.text
    assert "A sample, or a part of the release" in card.text
    assert (folder / f"{name}.png").read_bytes() == (CARDS / f"{name}.png").read_bytes()
    metadata = card.data.to_dict()
    assert len([config for config in metadata["configs"] if config.get("default")]) == 1
    assert metadata["size_categories"] == ["n<1K"]
    for key in ("pretty_name", "language", "license", "task_categories", "source_datasets", "multilinguality"):
        assert metadata[key], key
    for link in ("aclanthology.org", "arxiv.org", "github.com", "eraser_agreement"):
        assert link in card.text or name != "eraser", link


def test_other_contents_have_another_version_and_marks_without_a_part_go() -> None:
    one = {"configs": [{"config_name": "a", "version": "1.0.5"}, {"config_name": "b", "version": "1.0.5"}]}
    assert get_dataset_version(one) == "1.0.5"
    one["configs"][0]["version"] = "1.0.6"
    assert get_dataset_version(one) not in ("1.0.5", "1.0.6")
    prose = "a\n\n<!-- splits -->\n\nb\n\n<!-- own -->\n\n<!-- picture: x -->"
    assert fill_prose(prose, {"splits": " | t |\n"}) == "a\n\n| t |\n\nb\n\n<!-- picture: x -->"
