"""Rows of the three datasets as instances, kd, and what is refused."""

from __future__ import annotations

import pytest

from eraser_hub.attribution.dataset import Split, find_kd, open_split
from eraser_hub.attribution.instances import read_eraser_row, read_perturbation_row, read_tokens_row

from ..refusals import refused
from .conftest import made_row


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


def make_split(config: str, kind: str, rows: list, name: str | None = None) -> Split:
    return Split(rows, (), kind, None, config, name)


def test_kd_is_the_papers_or_the_training_splits():
    assert find_kd(make_split("movies", "eraser", [])) == (0.1, "paper")
    assert find_kd(make_split("cose_simplified", "eraser", [])) == (0.3, "paper")
    assert find_kd(make_split("senti_ch", "perturbation", [])) == (0.276, "paper")
    rows = [
        {"id": "1", "tokens": ["a", "b"], "rationale_mask": [True, False]},
        {"id": "2", "tokens": [], "rationale_mask": []},
        {"id": "3", "tokens": ["a", "b"], "rationale_mask": [False, False]},  # without a rationale: it does not count
        {"id": "4", "tokens": ["a", "b", "c", "d"], "rationale_mask": [True, False, False, False]},
    ]
    assert find_kd(make_split("sst", "tokens", []), make_split("sst", "tokens", rows)) == (0.375, "train")


def test_kd_is_never_that_of_the_split_that_is_explained():
    rows = [{"id": "1", "tokens": ["a", "b"], "rationale_mask": [True, False]}]
    empty = [{"id": "1", "tokens": ["a", "b"], "rationale_mask": [False, False]}]
    with refused("kd", "'own'", "there is no other training split"):
        find_kd(make_split("own", "tokens", rows))
    with refused("kd", "'own'", "none of its 1 training rows has a rationale"):
        find_kd(make_split("own", "tokens", rows), make_split("own", "tokens", empty))


D = {"docid": "d", "text": "a b"}


def span(start, end, docid="d"):
    return {"docid": docid, "start_token": start, "end_token": end}


@pytest.mark.parametrize(
    ("change", "field", "mention"),
    [
        ({"annotation_id": None}, "annotation_id", "null"),
        ({"documents": [D, {"docid": "e", "text": None}]}, "documents[1].text", "null"),
        ({"documents": [D, D]}, "documents[1]", "'d'"),
        ({"evidences": [[span(0, 3)]]}, "evidences[0][0]", "0 and 3"),
        ({"evidences": [[span("0", 1)]]}, "evidences[0][0].start_token", "'0'"),
        ({"evidences": [[span(0, 1, "e")]]}, "evidences[0][0]", "'d'"),
    ],
)
def test_rows_that_are_none(change, field, mention):
    (row,) = rows_of(7, **change)
    with refused(mention, field=field, instance=None if field == "annotation_id" else "7"):
        read_eraser_row(row)


@pytest.mark.parametrize(
    ("change", "field", "mention"),
    [
        ({"tokens": ["a", None]}, "tokens[1]", "null"),
        ({"tokens": ["a", "b"], "rationale_mask": [1, 0, 1]}, "rationale_mask", "3"),
        ({"tokens": ["a", "b"], "rationale_mask": [1, 2]}, "rationale_mask", "2"),
        ({"tokens": ["a", "b"], "rationale_mask": [1, None]}, "rationale_mask[1]", "null"),
        ({"rationale_ids": [[[0, 2]]]}, "rationale_ids[0][0]", "2"),
        ({"rationale_ids": [[], []]}, "rationale_ids", "2"),
    ],
)
def test_rows_of_tokens_that_are_none(change, field, mention):
    row = {"id": "s", "tokens": [["a", "b"]], **change}
    with refused(mention, instance="s", field=field):
        (read_tokens_row if isinstance(row["tokens"][0], str) else read_perturbation_row)(row)


def rows_of(*ids, **more):
    row = {"documents": [D], "query": None, "classification": None}
    return [{"annotation_id": one, **row, **more} for one in ids]


def test_an_id_that_occurs_twice():
    split = Split(rows_of("a", "b", "a", "b"), (), "eraser", None, "own", "hub/own")
    with refused(instance="a", field="annotation_id"):
        split.fingerprint()
    assert split.fingerprint(2)
    with refused("null", file="hub/own", line=2, field="annotation_id"):
        Split(rows_of("a", None), (), "eraser", None, "own", "hub/own").fingerprint()


@pytest.mark.parametrize(
    ("labels", "columns", "gold"),
    [
        (("P", "N"), {}, None),
        (("N", "P"), {"documents": [{"docid": "e", "text": "a b"}], "evidences": []}, None),
        (("N", "P"), {"classification": 1}, "labels"),
        (("N", "P"), {"evidences": [[span(0, 1)]]}, "rationales"),
    ],
)
def test_what_predictions_depend_on_is_in_the_fingerprint(labels, columns, gold):
    """Gold is in it where predictions depend on gold."""
    row = {"classification": 0, "evidences": [[span(1, 2)]]}
    one, other = (
        Split(rows_of("a", **{**row, **more}), names, "eraser", None, "own")
        for more, names in (({}, ("N", "P")), (columns, labels))
    )
    assert (one.fingerprint() == other.fingerprint()) == (gold is not None)
    assert not gold or one.fingerprint(**{gold: True}) != other.fingerprint(**{gold: True})


def test_a_damaged_file_of_a_built_dataset_is_named(samples, tmp_path):
    from eraser_hub.conversion import get_dataset

    folder = get_dataset("eraser").build(["movies"], out=tmp_path, source=samples / "eraser").folder
    split = open_split(folder, "movies", "val")
    (file,) = (folder / "movies").glob("validation-*.parquet")
    with file.open("r+b") as content:
        content.write(b"\0" * 4000)  # the footer is whole: the damage shows when rows are read
    with refused(file=file):
        split.fingerprint()
