"""`check` finds each mutation of a built folder, but for those that docs/check.md lists."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.checks import Report
from eraser_hub.conversion.eraser.schema import MASKS
from eraser_hub.records.errors import DataError

from ..planted import plant
from .mutations import (
    Mutation,
    Row,
    change_card,
    change_rows,
    mutate_beside,
    mutate_card,
    mutate_columns,
    mutate_files,
    mutate_rows,
    mutate_values,
    record_files,
)

ROOT = Path(__file__).resolve().parents[2]
# dataset, config, split of the rows that are mutated, gold label
BUILDS = [
    ("eraser", "movies", "train", "classification"),
    ("eraser", "esnli", "validation", "classification"),
    ("eraser", "cose", "validation", "classification"),
    ("eraser", "own", "test", "classification"),
    ("bilingual_perturbation", "similarity_en", "test", "label"),
    ("bilingual_perturbation", "mrc_ch", "test", "label"),
    ("human_rationales", "sst", "validation", "label"),
    ("human_rationales", "wikiattack", "test", "label"),
]


@pytest.fixture(scope="module")
def folders(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """Build a folder with one configuration; each is built once."""

    @cache
    def build(dataset: str, config: str) -> Path:
        source = samples / dataset
        if config == "own":
            source = tmp_path_factory.mktemp("raw")
            plant(source / "own", {"train": 6, "val": 6, "test": 6})
            card = source / "own" / "corpus.yaml"
            card.write_text(card.read_text("utf-8").replace("planted_word", "own"), "utf-8")
            (source / "own" / "LICENSE.txt").write_text("Use it well.", "utf-8")
            (source / "own" / "annotators").mkdir()
            first = json.loads((source / "own" / "test.jsonl").read_text("utf-8").partition("\n")[0])["annotation_id"]
            masks = pa.Table.from_pylist(
                [{"annotation_id": first, "split": "test", "annotators": [[1, 0], [1, 1]]}], schema=MASKS
            )
            pq.write_table(masks, source / "own" / "annotators" / "own.parquet")
        return HUB_DATASETS[dataset].build([config], source=source, out=tmp_path_factory.mktemp("hub")).folder

    return build


def check(folder: Path) -> Report | DataError:
    """Return the report, or the error of a folder that cannot be read."""
    try:
        return HUB_DATASETS[folder.name].check(folder)
    except DataError as error:
        return error


def find_uncaught(folder: Path, mutations: Iterator[Mutation], aside: Path) -> tuple[int, list[str]]:
    """Return the number of mutations, and the names of those that `check` does not find or does not name."""
    count, uncaught = 0, []
    copy = aside / folder.name
    for mutation in mutations:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        mutation.apply(copy)
        count += 1
        report = check(copy)
        if isinstance(report, Report):
            words = [words for split in report.splits for found in split.findings for words in found.examples]
            named = not mutation.column or f"column {mutation.column}: differs from what build recorded" in words
            if not report.violations or not named:
                uncaught.append(mutation.name)
    return count, uncaught


def list_mutations(folder: Path, config: str, split: str, label: str) -> Iterator[Mutation]:
    """Yield all mutations of a built folder with one configuration."""
    file = next((folder / config).glob(f"{split}-*")).relative_to(folder)
    table = pq.read_table(folder / file)
    yield from mutate_values(file, table.to_pylist(), table.schema)
    yield from mutate_rows(file, table.column_names[0])
    yield from mutate_columns(file, table.schema)
    yield from mutate_card(label)
    yield from (each for each in mutate_files(folder) if each.name not in UNDETECTED)
    yield from mutate_beside(folder)


@pytest.mark.parametrize("number", range(len(BUILDS)))
def test_some_mutations_of_every_kind_are_found(folders, number, tmp_path):
    """A tenth of all mutations, another tenth of each configuration: 240 in all."""
    dataset, config, split, label = BUILDS[number]
    folder = folders(dataset, config)
    assert not check(folder).violations
    count, uncaught = find_uncaught(
        folder, islice(list_mutations(folder, config, split, label), number, None, 10), tmp_path
    )
    assert count >= 25 and not uncaught


@pytest.mark.slow
@pytest.mark.parametrize(("dataset", "config", "split", "label"), BUILDS)
def test_all_mutations_are_found(folders, dataset, config, split, label, tmp_path):
    folder = folders(dataset, config)
    count, uncaught = find_uncaught(folder, list_mutations(folder, config, split, label), tmp_path)
    assert count > 250 and not uncaught


# -- the cases that passed before -------------------------------------------------------------------------------------


def shift(rows: list[Row]) -> list[Row]:
    """Move each span by one token, with the columns that follow from it; the texts stay as they are."""
    for row in rows:
        covered = set()
        for evidence in (each for group in row["evidences"] for each in group):
            evidence["start_token"] -= 1
            evidence["end_token"] -= 1
            if evidence["start_token"] < 0:
                evidence["start_token"], evidence["end_token"] = 0, evidence["end_token"] - evidence["start_token"]
            covered |= set(range(evidence["start_token"], evidence["end_token"]))
        row["rationale_positions"] = [sorted(covered)]
    return rows


def set_sentences(first: int, stop: int) -> Callable[[list[Row]], list[Row]]:
    def change(rows: list[Row]) -> list[Row]:
        for evidence in (each for row in rows for group in row["evidences"] for each in group):
            evidence.update(start_sentence=first, end_sentence=stop)
        return rows

    return change


def clear(rows: list[Row]) -> list[Row]:
    nothing = {"rationale": "", "rationale_ratio": 0.0, "evidences": []}
    return [{**row, **nothing, "rationale_positions": [[] for _ in row["documents"]]} for row in rows]


def merge(rows: list[Row]) -> list[Row]:
    return [{**row, "evidences": [[each for group in row["evidences"] for each in group]]} for row in rows]


@pytest.mark.parametrize(
    ("config", "split", "change", "column"),
    [
        ("cose", "validation", shift, "evidences"),
        ("movies", "train", set_sentences(0, 1), "evidences"),
        ("movies", "train", set_sentences(500, 501), "evidences"),
        ("movies", "train", clear, "evidences"),
        ("movies", "validation", clear, "evidences"),
        ("movies", "train", merge, "evidences"),
        (
            "movies",
            "train",
            lambda rows: [{**row, "classification": 1 - row["classification"]} for row in rows],
            "classification",
        ),
        ("movies", "train", lambda rows: [{**row, "query": None} for row in rows], "query"),
    ],
)
def test_rows_that_fit_each_other_are_still_not_those_that_build_wrote(
    folders, config, split, change, column, tmp_path
):
    folder = Path(shutil.copytree(folders("eraser", config), tmp_path / "eraser"))
    change_rows(folder, next((folder / config).glob(f"{split}-*")).relative_to(folder), change)
    report = check(folder)
    found = {finding.check: finding for each in report.splits for finding in each.findings}
    assert f"column {column}: differs from what build recorded" in found["columns"].examples
    assert found["columns"].level == "violation" and found["data digest"].level == "violation"


def test_a_shifted_or_misnumbered_corpus_is_found_without_digests(folders, tmp_path):
    """By the rules alone, as in raw folders: no text is clipped by a token, and most sentence offsets fit the text."""
    cose = Path(shutil.copytree(folders("eraser", "cose"), tmp_path / "cose" / "eraser"))
    movies = Path(shutil.copytree(folders("eraser", "movies"), tmp_path / "movies" / "eraser"))
    changes = (
        (cose, "validation", shift, "evidence text"),
        (movies, "train", set_sentences(0, 1), "sentence offsets of most spans"),
    )
    for folder, split, change, expected in changes:
        path = folder / "release.json"
        release = json.loads(path.read_text("utf-8"))
        config = next(iter(release["configs"]))
        change_rows(folder, next((folder / config).glob(f"{split}-*")).relative_to(folder), change)
        for facts in release["configs"][config]["splits"].values():
            facts.pop("columns")
        path.write_text(json.dumps(release), "utf-8")
        found = {finding.check: finding.level for each in check(folder).splits for finding in each.findings}
        assert found[expected] == "violation" and found["no digests"] == "note"


def test_a_folder_of_an_earlier_version_is_read_with_a_note(folders, samples, tmp_path):
    folder = Path(shutil.copytree(folders("human_rationales", "sst"), tmp_path / "human_rationales"))
    path = folder / "release.json"
    release = json.loads(path.read_text("utf-8"))
    release = {"format": release["format"], "configs": {"sst": {"files": release["configs"]["sst"]["files"]}}}
    path.write_text(json.dumps(release), "utf-8")
    report = check(folder)
    found = {finding.check: finding.level for each in report.splits for finding in each.findings}
    assert found == {"no digests": "note", "built by another version": "note"}
    again = HUB_DATASETS["human_rationales"].build(["wikiattack"], source=samples / "human_rationales", out=tmp_path)
    assert again.folder == folder
    found = {finding.check: finding.level for each in check(folder).splits for finding in each.findings}
    assert found.pop("no digests") == "note" and set(found.values()) <= {"note"}
    (folder / "README.md").write_text("damaged", "utf-8")
    HUB_DATASETS["human_rationales"].build(["sst", "wikiattack"], source=samples / "human_rationales", out=tmp_path)
    assert not check(folder).violations


# -- undetected -------------------------------------------------------------------------------------------------------


def _rewrite(folder: Path, file: Path, order: int) -> None:
    table = pq.read_table(folder / file)
    pq.write_table(table.take(list(range(len(table)))[::order]), folder / file, compression="gzip", row_group_size=3)
    record_files(folder, file)


def _edit_prose(folder: Path) -> None:
    path = folder / "README.md"
    path.write_text(path.read_text("utf-8") + "\nMore words.\n", "utf-8")


def _build_again(folder: Path) -> None:
    raw, out = folder.parent / "raw", folder.parent / "again"
    HUB_DATASETS[folder.name].export(folder, None, out=raw)
    path = raw / "movies" / "val.jsonl"
    path.write_text(
        path.read_text("utf-8").replace('"NEG"', '"X"').replace('"POS"', '"NEG"').replace('"X"', '"POS"'), "utf-8"
    )
    shutil.rmtree(folder)
    HUB_DATASETS[folder.name].build(None, source=raw, out=out)
    shutil.move(out / folder.name, folder)


UNDETECTED: dict[str, Callable[[Path], object]] = {
    "order of rows": lambda folder: _rewrite(folder, Path("movies/validation-00000-of-00001.parquet"), -1),
    "settings of Parquet": lambda folder: _rewrite(folder, Path("movies/validation-00000-of-00001.parquet"), 1),
    "prose of the card": _edit_prose,
    "keys added to the card": lambda folder: change_card(folder, lambda card: card.update(arxiv="1911.03429")),
    "files of other kinds": lambda folder: (folder / "notes.md").write_text("Ours.", "utf-8"),
    "another corpus of the same form": _build_again,
    # one bit in the middle of the card lies in its prose
    "file README.md: one bit": lambda folder: None,
}


@pytest.mark.parametrize("name", UNDETECTED)
def test_what_check_cannot_see_is_on_its_page(folders, name, tmp_path):
    folder = Path(shutil.copytree(folders("eraser", "movies"), tmp_path / "eraser"))
    UNDETECTED[name](folder)
    assert not check(folder).violations
    assert ":" in name or f"**{name}".lower() in (ROOT / "docs" / "check.md").read_text("utf-8").lower()


def test_a_release_without_the_data_digest_alone_is_no_traceback(folders, tmp_path):
    """In `eraser` the digest may be missing, as of 2.0; beside digests of columns it is a violation."""
    folder = Path(shutil.copytree(folders("eraser", "movies"), tmp_path / "eraser"))
    release = json.loads((folder / "release.json").read_text("utf-8"))
    for facts in release["configs"]["movies"]["splits"].values():
        del facts["digest"]
    (folder / "release.json").write_text(json.dumps(release), "utf-8")
    found = {
        finding.check for each in check(folder).splits for finding in each.findings if finding.level == "violation"
    }
    assert "data digest" in found
