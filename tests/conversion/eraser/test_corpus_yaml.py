"""Corpora of one's own: what a corpus.yaml may say, and that they are datasets of their own name everywhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

import eraser_hub
from eraser_hub.attribution.dataset import find_kd, open_split
from eraser_hub.conversion import get_dataset
from eraser_hub.conversion.built import open_built, read_card
from eraser_hub.conversion.eraser.corpus_yaml import find_own_corpora, read_corpus_yaml
from eraser_hub.conversion.eraser.schema import ANNOTATORS
from eraser_hub.scoring.scored_split import ScoredSplit

from ...refusals import refused
from .corpus_strategies import values

WORDS = "name: reviews\nlabels: [NEG, POS]\n"
MORE = WORDS + "language: [en, pt-BR]\nlicense: cc-by-4.0\ncitation: |\n  @misc{r`|b, title={R}}\nkd: 0.25\n"


@pytest.fixture
def mine(tmp_path: Path, samples: Path) -> Path:
    """A corpus of one's own, beside one of the release."""
    shutil.copytree(samples / "eraser" / "cose", tmp_path / "corpora" / "cose")
    folder = Path(shutil.copytree(samples / "eraser" / "movies", tmp_path / "corpora" / "mine"))
    for path in (*folder.glob("human_performance*"), folder / "test.jsonl.bak", folder / "README"):
        path.unlink()
    (folder / "corpus.yaml").write_text(MORE)
    return folder


def build_own(source: Path, out: Path, **options: Any) -> Path:
    return eraser_hub.build("own", source, out=out, **options).folder


@pytest.mark.parametrize(
    ("text", "line", "field", "mentioned"),
    [
        ("", None, None, "key: value"),
        ("name: reviews\n", None, "labels", "['name']"),
        ("labels: [a, b]\n", None, "name", "['labels']"),
        (WORDS + "licence: mit\n", 3, None, "'licence': did you mean 'license'?"),
        (WORDS + "name: again\n", 1, None, "'name'"),
        ("name: ../up\nlabels: [a]\n", 1, "name", "'../up'"),
        ("name: movies\nlabels: [a]\n", 1, "name", "'movies'"),
        ("name: a\nlabels: []\n", 2, "labels", "[]"),
        ("name: a\nlabels: [true, false]\n", 2, "labels", "[True, False]"),
        ("name: a\nlabels: [a, a]\n", 2, "labels", "['a', 'a']"),
        (WORDS + "language: no\n", 3, "language", "False"),
        (WORDS + "license: CC BY 4.0\n", 3, "license", "'CC BY 4.0'"),
        (WORDS + "kd: 0\n", 3, "kd", 0),
        (WORDS + "comprehensive: maybe\n", 3, "comprehensive", "'maybe'"),
        ("name: [\n", None, None, "YAML"),
    ],
)
def test_a_corpus_yaml_that_is_not_in_order(
    text: str, line: int | None, field: str | None, mentioned: object, tmp_path: Path
) -> None:
    (tmp_path / "corpus.yaml").write_text(text)
    with refused(mentioned, file=tmp_path / "corpus.yaml", line=line, field=field):
        read_corpus_yaml(tmp_path)


def test_a_dataset_of_its_own_name_and_back(mine: Path, tmp_path: Path) -> None:
    (mine / "annotators").mkdir()
    people = {"annotation_id": "negR_000.txt", "annotator": "Anna", "split": "train", "docids": ["negR_000.txt"]}
    rows = [people | {"label": "NEG", "num_tokens": [3], "rationale_positions": [[1]]}]
    pq.write_table(pa.Table.from_pylist(rows, ANNOTATORS), mine / "annotators" / "reviews.parquet")
    folder = build_own(mine, tmp_path / "hub")
    assert folder == tmp_path / "hub" / "reviews"
    built = open_built(folder)
    assert built.default_config == "reviews" and built.label_names("reviews") == ("NEG", "POS")
    card, prose = read_card(folder / "README.md")
    assert card["language"] == ["en", "pt-BR"] and card["license"] == ["cc-by-4.0"]
    assert 'load_dataset("reviews")' in prose and "@misc{r'|b, title={R}}" in prose and "<!--" not in prose
    assert load_dataset(str(folder), split="train").num_rows == 27
    assert not eraser_hub.check(folder).errors
    tables = {table.name: table for table in eraser_hub.stats(folder).tables}
    assert {left for left, _ in tables["evidence"].rows} == {("reviews", s) for s in ("train", "validation", "test")}
    eraser_hub.export(folder, out=tmp_path / "raw")
    assert values(tmp_path / "raw" / "reviews") == values(mine)
    for name in ("corpus.yaml", "annotators/reviews.parquet"):
        assert (tmp_path / "raw" / "reviews" / name).read_bytes() == (mine / name).read_bytes()
    builder = eraser_hub.Eraser("reviews", data_dir=str(mine), cache_dir=str(tmp_path / "cache"))
    assert next(iter(builder.as_streaming_dataset("val")))["annotation_id"] == "negR_080.txt"


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("", {"train": None, "test": None}),
        ("comprehensive: false\n", {"train": False, "test": False}),
        ("comprehensive: [val, test]\n", {"train": False, "validation": True, "test": True}),
    ],
)
def test_gold_is_comprehensive_as_the_corpus_says(text: str, known: dict, mine: Path, tmp_path: Path) -> None:
    (mine / "corpus.yaml").write_text(MORE + text)
    config = read_corpus_yaml(mine)
    assert {split: config.is_comprehensive(split) for split in known} == known
    built = ScoredSplit(dataset=build_own(mine, tmp_path), split="test")
    assert built.is_comprehensive() is ScoredSplit(data_dir=mine, split="test").is_comprehensive() is known["test"]


def test_what_is_refused(mine: Path, tmp_path: Path) -> None:
    with refused("build own", file=mine):
        get_dataset("eraser").build(None, out=tmp_path, source=mine)
    with refused("corpus.yaml", argument="source"):
        build_own(mine.parent / "cose", tmp_path)
    with refused("'opinions'", argument="config"):
        build_own(mine.parent, tmp_path, config="opinions")
    folder = build_own(mine, tmp_path / "hub")
    release = json.loads((folder / "release.json").read_bytes())
    release["configs"]["reviews"]["facts"].pop("corpus")
    (folder / "release.json").write_text(json.dumps(release))
    for verb in (eraser_hub.check, eraser_hub.stats):
        with refused("'reviews'", file="README.md"):
            verb(folder)
    (mine / "corpus.yaml").write_text("name: reviews\nlabels: [good, bad]\n")
    with refused("'good', 'bad'", "'NEG'", field="classification"):
        build_own(mine, tmp_path)
    (mine / "corpus.yaml").write_text(WORDS)
    (mine / "annotators").mkdir()
    (mine / "annotators" / "reviews.parquet").write_bytes(b"PAR1")
    with refused(file="annotators/reviews.parquet"):
        build_own(mine, tmp_path)
    shutil.copytree(mine, mine.parent / "other")
    with refused("'reviews'", file="other/corpus.yaml"):
        find_own_corpora(mine.parent)


def test_kd_is_that_of_corpus_yaml_else_of_training(mine: Path, tmp_path: Path) -> None:
    folder = build_own(mine, tmp_path)
    assert find_kd(open_split(folder, "reviews", "validation")) == (0.25, "corpus.yaml")
    (mine / "corpus.yaml").write_text(WORDS.replace("reviews", "movies_flat"))  # not the kd that papers print of movies
    folder = build_own(mine, tmp_path)
    kd, source = find_kd(open_split(folder, "movies_flat", "validation"))
    assert source == "train" and kd != 0.1
    with refused("kd", "'movies_flat'", "there is no other training split"):
        find_kd(open_split(folder, "movies_flat", "train"))  # its own rationales are what predictions are scored by


def test_what_is_no_built_dataset_is_told_with_what_to_type(mine, tmp_path, monkeypatch) -> None:
    build_own(mine, tmp_path / "hub")
    monkeypatch.chdir(tmp_path)
    for name, mention in (
        ("hub/revews", "none: did you mean hub/reviews?"),
        ("hub", "say hub/reviews"),
        ("hub/reviews/reviews", "say hub/reviews, and reviews as its configuration"),
        ("corpora", "`eraser-hub build own --source corpora`"),
        ("corpora/cose", "`eraser-hub build eraser --source corpora/cose`"),
    ):
        for run in (eraser_hub.load, lambda place: eraser_hub.export(place, out="out")):
            with refused(name, mention):
                run(name)
