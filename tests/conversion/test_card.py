"""A card and its Parquet files: what is written for load_dataset, and what is refused where the two disagree."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eraser_hub.conversion import get_dataset
from eraser_hub.conversion.built import read_card
from eraser_hub.conversion.card import CARDS, compute_content_version, get_size_category, verify_folder
from eraser_hub.conversion.eraser.configs import CONFIGS
from eraser_hub.conversion.eraser.schema import SCHEMA

from ..refusals import refused

pytestmark = pytest.mark.unit

LABELS = {name: config.label_names for name, config in CONFIGS.items()}


@pytest.fixture
def copy(tmp_path: Path, samples: Path) -> Path:
    return get_dataset("eraser").build(["movies"], source=samples / "eraser", out=tmp_path).folder


def test_card_and_parquet_are_compared(copy):
    verify_folder(copy, SCHEMA, LABELS)
    card = copy / "README.md"
    good = card.read_text()
    for change, field, mentions in (
        (("num_examples: 27", "num_examples: 28"), "movies/train", ("28 rows", " 27")),
        (("'0': NEG", "'0': POS"), "movies", ("['NEG', 'POS']", "['POS', 'POS']")),
        (("default: true", "default: false"), "configs", ("[]",)),
        (("movies/train-*", "movies/gone-*"), None, ("movies/gone-*", "movies/train")),
        (("---\n", "", 1), None, (card,)),
    ):
        card.write_text(good.replace(*change))
        with refused(*mentions, field=field):
            verify_folder(copy, SCHEMA, LABELS)
    card.write_text(good)
    path = next((copy / "movies").glob("train-*"))
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with refused("Parquet", file=path):
        verify_folder(copy, SCHEMA, LABELS)
    pq.write_table(pa.table({"x": [1]}), path)
    with refused("column annotation_id", file=path):
        verify_folder(copy, SCHEMA, LABELS)


@pytest.mark.parametrize(("rows", "name"), [(0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (600_000, "100K<n<1M")])
def test_size_category(rows, name):
    assert get_size_category(rows) == name


def test_other_contents_have_another_version():
    assert compute_content_version(["a"]) != compute_content_version(["b"])
    assert compute_content_version(["a", "b"]) == compute_content_version(["a", "b"])


def test_a_cards_picture_is_copied_beside_it_and_a_missing_one_is_named(tmp_path, monkeypatch):
    import eraser_hub.conversion.card as module

    monkeypatch.setattr(module, "CARDS", tmp_path / "cards")
    (tmp_path / "cards").mkdir()
    (tmp_path / "out").mkdir()
    text = "# Title\n\n<!-- picture: A review with\nits rationale -->\n\nMore."
    with refused(file="cards/toy.png"):
        module.insert_picture(text, "toy", tmp_path / "out")
    (tmp_path / "cards" / "toy.png").write_bytes(b"png")
    shown = module.insert_picture(text, "toy", tmp_path / "out")
    assert shown == "# Title\n\n![A review with\nits rationale](toy.png)\n\nMore."
    assert (tmp_path / "out" / "toy.png").read_bytes() == b"png"
    assert module.insert_picture("no mark", "toy", tmp_path / "out") == "no mark"


@pytest.mark.parametrize(
    ("name", "config"), [("eraser", "cose"), ("bilingual_perturbation", "senti_en"), ("human_rationales", "sst")]
)
def test_a_built_card_has_its_picture_and_what_the_hub_files_it_under(samples, tmp_path, name, config):
    for _ in range(2):  # a build that replaces a folder writes its own picture
        folder = get_dataset(name).build([config], out=tmp_path, source=samples / name).folder
    metadata, prose = read_card(folder / "README.md")
    assert f"]({name}.png)" in prose and "<!--" not in prose
    assert (folder / f"{name}.png").read_bytes() == (CARDS / f"{name}.png").read_bytes()
    for key in (
        "task_ids",
        "language_creators",
        "annotations_creators",
        "source_datasets",
        "multilinguality",
        "language",
    ):
        assert metadata[key] and all(isinstance(value, str) for value in metadata[key]), key
    assert (metadata["multilinguality"] == ["multilingual"]) == (len(metadata["language"]) > 1)
