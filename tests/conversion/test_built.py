"""Built dataset folders, as everybody reads them."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Dataset, Features

from eraser_hub.conversion.built import get_label_name, open_built, read_rows
from eraser_hub.conversion.files import link_or_copy

from ..refusals import refused

pytestmark = pytest.mark.unit

CARD = """---
license: mit
configs:
- config_name: movies
  default: true
  data_files:
  - {split: train, path: movies/train-*.parquet}
  - {split: validation, path: [movies/validation-*.parquet]}
- config_name: pairs
  data_files:
  - {split: test, path: movies/train-*.parquet}
dataset_info:
- config_name: movies
  version: 1.2.3
  features:
  - {name: annotation_id, dtype: string}
  - name: classification
    dtype:
      class_label:
        names: {'10': K, '0': NEG, '1': POS, '2': C, '3': D, '4': E, '5': F, '6': G, '7': H, '8': I, '9': J}
- config_name: pairs
  features:
  - {name: label, dtype: {class_label: {names: ['no', 'yes']}}}
---
# Words

---
More.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "movies").mkdir()
    table = pa.table({"annotation_id": ["a", "b", "c"], "classification": [0, 1, -1]})
    for name in ("train-00001-of-00002", "train-00000-of-00002", "validation-00000-of-00001"):
        pq.write_table(table, tmp_path / "movies" / f"{name}.parquet")
    (tmp_path / "README.md").write_text(CARD, encoding="utf-8")
    return tmp_path


def test_label_names_of_a_card_without_columns_are_the_files(folder):
    (folder / "README.md").write_text(CARD.partition("dataset_info")[0] + "---\n", encoding="utf-8")
    assert open_built(folder).label_names("movies") is None
    rows = Dataset.from_dict({"label": [0]}, Features({"label": ClassLabel(names=["no", "yes"])}))
    rows.to_parquet(folder / "movies" / "train-00000-of-00002.parquet")
    assert open_built(folder).label_names("pairs") == ("no", "yes")


def test_configs_splits_and_files_are_the_cards(folder):
    built = open_built(folder)
    assert built.configs == ["movies", "pairs"] and built.default_config == "movies"
    assert built.chosen() == built.configs and built.chosen(["pairs", "pairs"]) == ["pairs"]
    assert list(built.splits("movies")) == ["train", "validation"]
    assert [path.name[:11] for path in built.files("movies", "train")] == ["train-00000", "train-00001"]
    assert built.files("movies", "val") == built.files("movies", "validation") != []
    assert built.label_names("movies") == ("NEG", "POS", *"CDEFGHIJK") and built.label_names("pairs") == ("no", "yes")
    parts = list(read_rows(built.files("movies", "train"), ["classification"]))
    assert [part["classification"].to_pylist() for part in parts] == [[0, 1, -1]] * 2
    assert built.info("movies")["version"] == "1.2.3" and built.prose.startswith("# Words\n\n---\nMore.")


def test_what_is_not_there_is_said_with_what_is(folder):
    for harm, file, mentions in (
        (lambda: open_built(folder / "none"), "none", ()),
        (lambda: open_built(folder / "movies"), "movies", ("README.md",)),
        (lambda: open_built(folder).chosen(["films"]), folder, ("movies, pairs,", "'films'")),
        (lambda: open_built(folder).files("movies", "dev"), "movies", ("train, validation,", "'dev'")),
    ):
        with refused(*mentions, file=file):
            harm()
    for pattern in ("../x*.parquet", "/etc/*", "a/../../b", ""):
        (folder / "README.md").write_text(CARD.replace("movies/train-*.parquet", f"'{pattern}'"))
        with refused(repr(pattern), file=folder):
            open_built(folder).splits("movies")
    (folder / "README.md").write_text(CARD)
    (folder / "movies" / "validation-00000-of-00001.parquet").unlink()
    with refused("movies/validation-*.parquet", "movies/validation,", file=folder):
        open_built(folder).files("movies", "train")


NO_NAME = "---\nconfigs: [{config_name: 3, data_files: [{split: a, path: b}]}]\n---\n"


@pytest.mark.parametrize(
    ("card", "field", "found"),
    [
        ("words", None, "found none"),
        ("---\nlicense: \udce4\n---\n", None, "0xe4"),
        ("---\na: [\n---\n", None, "while parsing"),
        ("---\nlicense: mit\n---\n", None, "'configs'"),
        (NO_NAME, "configs[0].config_name", "found 3"),
        (CARD.replace("dataset_info:", "dataset_info: {features: 3}\nother:"), "dataset_info.features", "found 3"),
        (None, None, "a pipe"),
    ],
)
def test_a_card_that_is_none(folder, card, field, found):
    (folder / "README.md").unlink()
    if card is None:
        os.mkfifo(folder / "README.md")
    else:
        (folder / "README.md").write_text(card, errors="surrogateescape")
    with refused(found, file=folder / "README.md") as caught:
        open_built(folder)
    assert caught.first.field == field


def test_a_null_is_named_with_its_row_and_its_place(tmp_path):
    rows = [{"a": [[1], [2]]}, {"a": None}, {"a": [[3], [4, None]]}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet")
    with refused("null", file="x.parquet", line=2, field="a"):
        list(read_rows([tmp_path / "x.parquet"], whole=["a"]))
    with refused("null", file="x.parquet", line=3, field="a[][]"):
        list(read_rows([tmp_path / "x.parquet"], whole=["a[]"]))
    assert sum(table.num_rows for table in read_rows([tmp_path / "x.parquet"])) == 3


def test_a_dataset_of_the_hub_is_fetched_as_far_as_it_is_read(folder, monkeypatch, tmp_path):
    asked = []

    def fetch(repository, repo_type, revision, allow_patterns):
        asked.append((repository, repo_type, revision, *allow_patterns))
        target = tmp_path / "cache" / "commit"
        for path in (path for pattern in allow_patterns for path in folder.glob(pattern)):
            link_or_copy(path, target / path.relative_to(folder))
        return str(target)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    built = open_built("org/eraser@v2")
    assert built.place.repository == "org/eraser" and built.configs == ["movies", "pairs"]
    assert len(built.rows("movies", "val")) == 3
    files = [f"movies/{split}-*.parquet" for split in ("train", "validation")]
    first, *others = asked
    assert first == ("org/eraser", "dataset", "v2", "README.md")
    assert others == [("org/eraser", "dataset", "commit", file, "README.md") for file in files]
    with refused("movies, pairs,", "'x'", file="org/eraser@v2"):
        built.chosen(["x"])

    def fail(*_, **__):
        raise OSError("no network\nat all")

    monkeypatch.setattr("huggingface_hub.snapshot_download", fail)
    with refused("(no network)", file="org/eraser"):
        open_built("org/eraser")


def test_columns_that_are_not_there_or_stand_twice(folder, tmp_path):
    (path,) = open_built(folder).files("movies", "val")
    with refused("evidences", "['annotation_id', 'classification']", file=path):
        list(read_rows([path], ["evidences"]))
    with refused("classification as string", "int64", file=path):
        list(read_rows([path], ["classification"], kinds=pa.schema({"classification": pa.string()})))
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), tmp_path / "x.parquet")
    with refused("column a ", "2 times", file="x.parquet"):
        list(read_rows([tmp_path / "x.parquet"], ["a"]))


@pytest.mark.parametrize(
    ("label", "names", "name"), [("x", None, "x"), (1, ("a", "b"), "b"), (-1, ("a",), None), (None, None, None)]
)
def test_a_labels_name(label, names, name):
    assert get_label_name(label, names) == name
    for wrong in (2, -2, True, 0.0):
        with refused(f"found {wrong}", instance="i", field="label"):
            get_label_name(wrong, ("a", "b"), instance="i", field="label")
