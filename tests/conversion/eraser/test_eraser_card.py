"""The card of ``eraser``: what a reader looks for stands in it, and it says what the folder holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from eraser_hub.conversion import get_dataset
from eraser_hub.conversion.built import read_card
from eraser_hub.conversion.eraser.card import is_whole
from eraser_hub.conversion.eraser.configs import CONFIGS

ERASER = get_dataset("eraser")


@pytest.fixture(scope="module")
def card(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("hub")
    return ERASER.build(None, out=out, source=samples / "eraser").folder / "README.md"


def test_each_configuration_and_column_stands_in_the_card(card: Path) -> None:
    text = read_card(card)[1]
    for name, facts in CONFIGS.items():
        assert f"| `{name}` |" in text and (name.endswith(("_flat", "_simplified")) or facts.license_note in text)
    assert all(f"`{column}`" in text for column in ERASER.schema.names)


def test_a_part_of_the_release_says_so(card: Path, corpora: Path, tmp_path: Path) -> None:
    metadata, text = read_card(card)
    assert metadata["pretty_name"].endswith("(a sample, or a part of the release)")
    assert "6 / 5 / 5 of 6,363 / 1,491 / 2,817, test_comprehensive 4, test_original 4" in text
    assert "| `movies` | train | 26 | 14.3 | 99 | 4.7 | no |" in text
    folder = ERASER.build(["movies"], source=corpora, out=tmp_path).folder
    metadata, text = read_card(folder / "README.md")
    assert "1,600 / 200 / – of 1,600 / 200 / 200" in text and "`fever` |" not in text
    assert (metadata["language_creators"], metadata["annotations_creators"]) == (["found"], ["expert-generated"])


def test_a_whole_release_shows_the_papers_figures_beside_its_own(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    splits = ("train", "validation", "test")
    assert is_whole("movies", dict(zip(splits, (1600, 200, 199), strict=True))), "as released"
    assert not is_whole("movies", dict(zip(splits, (1600, 200, 190), strict=True)))
    monkeypatch.setattr("eraser_hub.conversion.eraser.card.MIN_SHARE", 0)
    folder = ERASER.build(["movies"], source=samples / "eraser", out=tmp_path).folder
    text = read_card(folder / "README.md")[1]
    assert "holds `movies` whole" in text and "| `movies` | train | 26 (1,599, -1,573) | 14.27 (9.35, +4.92) |" in text
