"""Rows of the three datasets as instances, kd, and what is refused."""

from __future__ import annotations

import shutil

import pytest

from eraser_hub.attribution.dataset import find_kd, open_split
from eraser_hub.attribution.instances import read_eraser_row, read_perturbation_row, read_tokens_row

from ..refusals import refused
from .conftest import made_row, write_hub


def test_tokens_are_split_on_the_blank_alone():
    (row,) = rows_of(7, documents=[{"docid": "d", "text": "a\u00a0b  c\n\u200b d"}])
    one = read_eraser_row(row)
    assert one.id == "7" and one.tokens == ["a\u00a0b", "c", "\u200b", "d"]
    assert one.label is None and one.rationale is None and one.query == ()
    with refused(instance="7"):
        one.rationale_only()


@pytest.mark.parametrize("value", [2, -2, 1.5, ["POS"]])
def test_a_label_that_is_none(value):
    with refused("0 to 1", value, instance="doc1", field="classification"):
        read_eraser_row({**made_row(1), "classification": value}, ("NEG", "POS"))
    assert read_eraser_row({**made_row(1), "classification": -1}, ("NEG",)).label is None


def marked(*flags):
    """Rows of tokens, each with these flags."""
    return [{"id": str(at), "tokens": ["a"] * len(row), "rationale_mask": list(row)} for at, row in enumerate(flags)]


@pytest.mark.parametrize(
    ("config", "rows", "split", "kd"),
    [
        ("movies", [made_row(1)], "train", (0.1, "paper")),
        ("cose_simplified", [made_row(1)], "train", (0.3, "paper")),
        ("senti_ch", [{"id": "a", "tokens": [["a"]]}], "train", (0.276, "paper")),
        # a row without a rationale does not count
        ("sst", marked((1, 0), (0, 0), (1, 0, 0, 0)), "test", (0.375, "train")),
    ],
)
def test_kd_is_the_papers_or_the_training_splits(tmp_path, config, rows, split, kd):
    hub = write_hub(tmp_path / "hub", config, {"train": rows, "test": rows}, ["a"])
    assert find_kd(open_split(hub, None, split)) == kd


@pytest.mark.parametrize(
    ("split", "rows", "mention"),
    [
        ("train", marked((1, 0)), "there is no other training split"),
        ("test", marked((0, 0)), "none of its 1 training rows has a rationale"),
    ],
)
def test_kd_is_never_that_of_the_split_that_is_explained(tmp_path, split, rows, mention):
    hub = write_hub(tmp_path / "hub", "own", {"train": rows, "test": marked((1, 0))}, ["a"])
    with refused("kd", "'own'", mention):
        find_kd(open_split(hub, None, split))


D = {"docid": "d", "text": "a b"}


def span(start, end, docid="d"):
    return {"docid": docid, "start_token": start, "end_token": end}


READERS = {"documents": read_eraser_row, "tokens": read_tokens_row, "sequences": read_perturbation_row}


@pytest.mark.parametrize(
    ("kind", "change", "field", "mention"),
    [
        ("documents", {"annotation_id": None}, "annotation_id", "null"),
        ("documents", {"documents": [D, {"docid": "e", "text": None}]}, "documents[1].text", "null"),
        ("documents", {"documents": [D, D]}, "documents[1]", "'d'"),
        ("documents", {"evidences": [[span(0, 3)]]}, "evidences[0][0]", "0 and 3"),
        ("documents", {"evidences": [[span("0", 1)]]}, "evidences[0][0].start_token", "'0'"),
        ("documents", {"evidences": [[span(0, 1, "e")]]}, "evidences[0][0]", "'d'"),
        ("tokens", {"tokens": ["a", None]}, "tokens[1]", "null"),
        ("tokens", {"tokens": ["a", "b"], "rationale_mask": [1, 0, 1]}, "rationale_mask", "3"),
        ("tokens", {"tokens": ["a", "b"], "rationale_mask": [1, 2]}, "rationale_mask", "2"),
        ("tokens", {"tokens": ["a", "b"], "rationale_mask": [1, None]}, "rationale_mask[1]", "null"),
        ("sequences", {"rationale_ids": [[[0, 2]]]}, "rationale_ids[0][0]", "2"),
        ("sequences", {"rationale_ids": [[], []]}, "rationale_ids", "2"),
    ],
)
def test_rows_that_are_none(kind, change, field, mention):
    row = {"annotation_id": "7", "id": "7", "documents": [D], "tokens": [["a", "b"]], **change}
    with refused(mention, field=field, instance=None if field == "annotation_id" else "7"):
        READERS[kind](row)


def rows_of(*ids, **more):
    row = {"documents": [D], "query": None, "classification": None}
    return [{"annotation_id": one, **row, **more} for one in ids]


def test_an_id_that_occurs_twice(tmp_path):
    splits = {"train": rows_of("a", "b", "a", "b"), "test": rows_of("a", None)}
    hub = write_hub(tmp_path / "hub", "own", splits, ["a"])
    with refused(instance="a", field="annotation_id"):
        open_split(hub, None, "train").header()
    assert open_split(hub, None, "train").header(2)["limit"] == 2
    with refused("null", file="own/test-00000-of-00001.parquet", line=2, field="annotation_id"):
        open_split(hub, None, "test").header()


@pytest.mark.parametrize(
    ("labels", "columns", "gold"),
    [
        (("P", "N"), {}, None),
        (("N", "P"), {"documents": [{"docid": "e", "text": "a b"}], "evidences": []}, None),
        (("N", "P"), {"classification": 1}, "labels"),
        (("N", "P"), {"evidences": [[span(0, 1)]]}, "rationales"),
    ],
)
def test_what_predictions_depend_on_is_in_the_digest(tmp_path, labels, columns, gold):
    """Gold is in it where predictions depend on gold."""
    row, digests = {"classification": 0, "evidences": [[span(1, 2)]]}, []
    for name, more, names in (("one", {}, ("N", "P")), ("other", columns, labels)):
        hub = write_hub(tmp_path / name, "own", {"test": rows_of("a", **{**row, **more})}, list(names))
        split = open_split(hub, None, "test")
        digests.append([split.header(**how)["digest"] for how in ({}, {gold: True} if gold else {})])
    assert (digests[0][0] == digests[1][0]) == (gold is not None)
    assert digests[0][1] != digests[1][1]


def test_a_damaged_file_of_a_built_dataset_is_named(samples, tmp_path):
    from eraser_hub.conversion import get_dataset

    folder = get_dataset("eraser").build(["movies"], out=tmp_path, source=samples / "eraser").folder
    split = open_split(folder, "movies", "val")
    (file,) = (folder / "movies").glob("validation-*.parquet")
    with file.open("r+b") as content:
        content.write(b"\0" * 4000)  # the footer is whole: the damage shows when rows are read
    with refused(file=file):
        split.header()


def test_what_is_no_built_dataset_is_named_with_what_to_type(samples, hub, tmp_path, monkeypatch):
    monkeypatch.chdir(hub.parent)
    shutil.copytree(samples / "eraser" / "movies", tmp_path / "movies")
    for dataset, *mentions in (
        (tmp_path / "movies", f"build eraser --source {tmp_path}"),
        (hub.parent, f"say {hub}"),
        (tmp_path, "eraser-hub build"),
        ("./erasre", "did you mean eraser?"),
    ):
        with refused(*mentions, file=dataset):
            open_split(dataset, None, "test")
    for config, split, argument, near in (("movie", "val", "config", "movies"), (None, "valid", "split", "validation")):
        with refused(f"did you mean '{near}'?", argument=argument):
            open_split(hub, config, split)
