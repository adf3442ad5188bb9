"""Tables: what an import takes of their cells, counts and refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eraser_hub import import_corpus
from eraser_hub.conversion.importing.corpus import Imported

from ...refusals import refused
from .corpora import Row, group_masks, people_of, rows_of

MASKS: dict[str, Any] = {"tokens": "tokens", "mask": "mask", "label": "label"}
SPANS: dict[str, Any] = {"text": "text", "spans": "spans", "label": "label"}
QUOTES: dict[str, Any] = {"text": "text", "quotes": "quotes", "label": "label"}
GOOD: Row = {"tokens": ["a", "fine", "film"], "mask": [0, 1, 0], "label": "good"}
FINE: Row = {"text": "a fine film", "label": "x"}


def run(rows: list[Row], out: Path, **arguments: Any) -> Imported:
    return import_corpus(rows, "mine", out=out, **arguments)


def masks(rows: list[Row], out: Path, **arguments: Any) -> list[list[int]]:
    """The groups of the only row."""
    return group_masks(rows_of(run(rows, out, **arguments).folder)[0])


# -- marks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mask", "groups"),
    [
        ([0, 1, 1], [[0, 1, 1]]),
        ("[False, True, False]", [[0, 1, 0]]),
        ("[0 1 0]", [[0, 1, 0]]),
        ("[[0 1 0]\n [0 0 1]]", [[0, 1, 0], [0, 0, 1]]),
        ([[0, 1, 0], [0, 0, 1]], [[0, 1, 0], [0, 0, 1]]),
        ([[1, 1, 0], [1, 1, 0]], [[1, 1, 0], [1, 1, 0]]),
        (None, []),
    ],
)
def test_masks(mask: object, groups: list[list[int]], tmp_path: Path) -> None:
    for at, tokens in enumerate((GOOD["tokens"], "['a' 'fine' 'film']")):  # as numpy spells lists
        assert masks([{**GOOD, "tokens": tokens, "mask": mask}], tmp_path / str(at), **MASKS) == groups


@pytest.mark.parametrize(
    ("spans", "groups"),
    [
        ([[2, 6]], [[0, 1, 0]]),
        ([{"start": 2, "end": 6, "text": " fine"}], [[0, 1, 0]]),
        ({"start": [2], "end": [6], "text": ["fine"]}, [[0, 1, 0]]),
        ("2-6", [[0, 1, 0]]),
        ("2:6; 7-11", [[0, 1, 1]]),
        ([[[2, 6]], [[7, 11]]], [[0, 1, 0], [0, 0, 1]]),
        ([[1, 2]], []),
    ],
)
def test_spans(spans: object, groups: list[list[int]], tmp_path: Path) -> None:
    assert masks([{**FINE, "spans": spans}], tmp_path, **SPANS) == groups


@pytest.mark.parametrize(("cell", "mask"), [("0,2", [1, 0, 1]), ([1, 2], [0, 1, 1]), ("1", [0, 1, 0]), ("{}", None)])
def test_numbers_of_tokens(cell: object, mask: list[int] | None, tmp_path: Path) -> None:
    """They count what stands between blanks, so that the text is cut there."""
    rows = [{"text": "a fine film.", "spans": cell, "label": "x"}]
    assert masks(rows, tmp_path, **SPANS, offsets="indices") == ([mask] if mask else [])


def test_numbers_of_sentences(tmp_path: Path) -> None:
    text = ["One two.", "", "Three.", "Four five six."]
    rows = [{"text": text, "spans": [[0, 3], [2]], "label": 1, "claim": "Is it?"}]
    done = run(rows, tmp_path, **SPANS, offsets="sentences", query="claim")
    (row,) = rows_of(done.folder)
    assert group_masks(row) == [[1, 1, 1, 0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 1, 0, 0, 0, 0]] and row["query"] == "Is it?"
    assert [(one["start_sentence"], one["end_sentence"]) for one in row["evidences"][0]] == [(0, 1), (2, 3)]
    assert row["num_sentences"] == 3 and people_of(done.folder) == []  # alternatives, nobody's


@pytest.mark.parametrize(
    ("cell", "rationale"),
    [
        ("warm; funny", "warm … funny"),
        ("warm, funny", "warm … funny"),
        ("['warm' \"funny\"]", "warm … funny"),
        ("{}", ""),
    ],
)
def test_quotes_of_a_cell(cell: str, rationale: str, tmp_path: Path) -> None:
    rows = [{"text": "a warm and funny film but slow, it drags.", "quotes": cell, "label": "x"}]
    assert rows_of(run(rows, tmp_path, **QUOTES).folder)[0]["rationale"] == rationale


def test_a_repeated_quote_is_its_first_occurrence_and_lost_ones_are_counted(tmp_path: Path) -> None:
    quotes = ["thin and thin", "but warm", "art", "Thin", "cold", "  "]
    rows = [{"text": "A party: the plot is thin and thin, but  warm.", "quotes": quotes, "label": "x"}]
    done = run(rows, tmp_path, **QUOTES)
    assert rows_of(done.folder)[0]["rationale"] == "thin … thin and thin … but warm"
    counts = {"quotes": 3, "repeated": 1, "other case": 1, "unfound": 2}
    assert {key: done.counts[key] for key in counts} == counts
    assert "'Thin', 2 times" in str(done) and "'cold'" in str(done) and "train:1" in str(done)
    rows = [{"text": "A thin plot, but warm.", "quotes": quotes, "label": "x"} for quotes in ("thick; thin", "cold; x")]
    with refused("3 of 4", "'thick'", "'cold'", "'x'", "`allow_unfound`", file="train"):
        run(rows, tmp_path / "most", **QUOTES)
    assert not (tmp_path / "most").exists()
    assert run(rows, tmp_path / "most", **QUOTES, allow_unfound=True).counts["unfound"] == 3


# -- texts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tokenizer", "document"),
    [
        ('"Well-made," he said. Is it? Yes...', None, '" Well-made , " he said .\nIs it ?\nYes ...'),
        ("3.5 stars (of 5)\nU.S.  film\u00a0noir", "words", "3.5 stars ( of 5 )\nU.S .\nfilm noir"),
        ("हिन्दी, 它很好。", None, "हिन्दी , 它很好 。"),
        ('"Well-made," he said. Is  it?', "blanks", '"Well-made," he said. Is  it?'),
        (["Not cut. Here.", "Nor here"], None, "Not cut . Here .\nNor here"),
    ],
)
def test_texts(text: object, tokenizer: Any, document: str, tmp_path: Path) -> None:
    done = run([{"text": text, "label": "x"}], tmp_path, text="text", label="label", tokenizer=tokenizer)
    assert rows_of(done.folder)[0]["documents"][0]["text"] == document


def test_rows_of_one_text_share_its_document_and_texts_of_a_row_have_their_own(tmp_path: Path) -> None:
    rows = [{"one": "a b", "two": f"c {at // 2}", "m1": [1, 0], "m2": [0, 1], "label": at} for at in range(3)]
    pair: dict[str, Any] = {"text": ["one", "two"], "mask": ["m1", "m2"], "label": "label"}
    done = run(rows, tmp_path, **pair)
    docids = [[one["docid"] for one in row["documents"]] for row in rows_of(done.folder)]
    assert docids == [["train_1_one", f"train_{number}_two"] for number in (1, 1, 3)]
    assert done.counts["shared"] == 1 and group_masks(rows_of(done.folder)[0]) == [[1, 0, 0, 1]]
    done = run([{"text": "unkind, words", "spans": [[2, 6], [8, 13]], "label": "x"}], tmp_path / "wide", **SPANS)
    assert rows_of(done.folder)[0]["rationale"] == "unkind … words" and done.counts["widened"] == 1


# -- people -----------------------------------------------------------------------------------------------------------


def person(who: str, label: str | None, mask: list[int] | None, tokens: str = "a fine film", **more: Any) -> Row:
    return {"tokens": tokens.split(), "who": who, "label": label, "mask": mask, **more}


def test_a_column_for_each_person_keeps_its_name(tmp_path: Path) -> None:
    rows = [{"text": "a warm and funny film", "Anna": "warm; funny", "Ben": "", "Cleo": "cold", "label": "x"}]
    done = run(rows, tmp_path, text="text", quotes=["Anna", "Ben", "Cleo"], label="label")
    assert group_masks(rows_of(done.folder)[0]) == [[0, 1, 0, 1, 0]]
    people = [("Anna", [[1, 3]]), ("Ben", [[]]), ("Cleo", None)]
    assert people_of(done.folder) == [("train_1", name, None, marks) for name, marks in people]
    assert done.counts["unlocated"] == 1 and done.counts["silent"] == 1


@pytest.mark.parametrize("names", [None, ["ann", 7, "cid"]])
def test_a_list_of_people(names: list[Any] | None, tmp_path: Path) -> None:
    row = {**GOOD, "mask": [[0, 1, 0], [0, 1, 1], []], "label": ["good", "good", "bad"], "who": names or [None]}
    done = run([row], tmp_path, **MASKS, annotator="who")
    given = [("good", [[1]]), ("good", [[1, 2]]), ("bad", [[]])]
    expected = [("train_1", str(who), *marks) for who, marks in zip(names or (1, 2, 3), given, strict=True)]
    assert people_of(done.folder) == expected
    assert done.labels == ["good"] and done.counts["labels differ"] == 1


def test_marks_that_nobody_can_be_named_for_are_kept_apart(tmp_path: Path) -> None:
    row = {**GOOD, "mask": [[0, 1, 0], [1, 1, 0]], "label": ["good", "good", "bad"], "ask": {"of": ["it?", "yes"]}}
    done = run([row, {**row, "tokens": ["x"], "mask": None}], tmp_path, **MASKS, query="ask.of")
    assert rows_of(done.folder)[0]["query"] == "it? [sep] yes"
    labels = [("1", "good", None), ("2", "good", None), ("3", "bad", None)]
    marks = [("marks 1", None, [[1]]), ("marks 2", None, [[0, 1]])]
    expected = [("train_1", *one) for one in [*labels, *marks]] + [("train_2", *one) for one in labels]
    assert people_of(done.folder) == expected and done.counts["unmatched"] == 1


def test_a_row_for_each_person_and_text(tmp_path: Path) -> None:
    rows = [person("ann", "good", [0, 1, 0]), person("bob", "bad", [0, 1], "dull film")]
    rows += [person("bob", "good", [1, 1, 0]), person("cid", "bad", None), person("ann", "bad", [1, 1, 1])]
    done = run(rows, tmp_path, **MASKS, annotator="who")
    assert [group_masks(row) for row in rows_of(done.folder)] == [[[0, 1, 0], [1, 1, 0]], [[0, 1]]]
    assert done.rows == {"train": 2} and done.labels == ["bad", "good"]
    people = [("ann", "good", [[1]]), ("bob", "good", [[0, 1]]), ("cid", "bad", [[]])]
    assert people_of(done.folder) == [*(("train_1", *one) for one in people), ("train_2", "bob", "bad", [[1]])]
    counts = {"labels differ": 1, "silent": 1, "duplicates": 1, "missing": 2}
    assert {key: done.counts[key] for key in counts} == counts and "ann 1, bob 2, cid 1" in str(done)


def test_ties_name_the_labels_and_missing_labels_are_counted(tmp_path: Path) -> None:
    rows = [
        person("ann", "good", [0, 1, 0], id=1),
        person("bob", None, [0, 0, 1], id=1),
        person("ann", "good", [1, 0, 0], id=2),
        person("bob", "bad", [1, 0, 0], id=2),
        person("bob", "", [1, 0, 0], id=3),
    ]
    done = run(rows, tmp_path, **MASKS, annotator="who", id="id")
    assert people_of(done.folder) == [("1", "ann", "good", [[1]]), ("1", "bob", None, [[2]])]
    assert done.counts["ties"] == done.counts["no label"] == 1 and "train:3: good, bad" in str(done)
    with refused("no label", file="train"):
        run([person("ann", None, [0, 1, 0])], tmp_path / "none", **MASKS, annotator="who")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"who": " "}, "who"),
        ({"label": ["good", "bad"]}, "label"),
        ({"mask": [[0, 1, 0], [1, 1, 0]]}, "mask"),
        ({"tokens": ["another", "fine", "film"]}, "tokens"),
        ({"who": ["ann", "ann"], "mask": [[0, 1, 0], [1, 1, 0]]}, "who"),
    ],
)
def test_people_that_do_not_fit(change: Row, field: str, tmp_path: Path) -> None:
    rows = [person("ann", "good", [0, 1, 0], id=1), person("bob", "good", [0, 1, 0], id=1) | change]
    with refused(file="train", line=2, field=field):
        run(rows, tmp_path, **MASKS, annotator="who", id="id")


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "field", "mentions"),
    [
        ({"mask": [0, 1]}, "mask", ("3 marks", " 2")),
        ({"mask": [0, 814, 0]}, "mask[1]", (814,)),
        ({"mask": "[0 1 ... 1 0]"}, "mask", ("'[0 1 ... 1 0]'",)),
        ({"tokens": ["a b", "c", "d"]}, "tokens[0]", ("'a b'",)),
        ({"tokens": "a fine film"}, "tokens", ("`text`", "'a fine film'")),
        ({"tokens": "['a' 'fine', 'film']"}, "tokens", ("['a' 'fine', 'film']",)),
        ({"tokens": ["\ud800", "b", "c"]}, "tokens[0]", ("d800",)),
        ({"label": ""}, "label", ("''",)),
        ({"label": float("nan")}, "label", ("nan",)),
    ],
)
def test_cells_that_are_none(cells: Row, field: str, mentions: tuple[object, ...], tmp_path: Path) -> None:
    with refused(*mentions, file="train", line=2, field=field):
        run([GOOD, {**GOOD, **cells}], tmp_path, **MASKS)
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize(
    ("spans", "field", "mentioned"),
    [
        ([[-1, 2]], "spans[0]", "[-1, 2]"),
        ([[0, 99]], "spans[0]", "[0, 99]"),
        ("2-", "spans", "'2-'"),
        ({"start": [1, 2], "end": [2]}, "spans", "one length"),
        ([{"start": 2, "end": 6, "text": "film"}], "spans[0]", "'film'"),
    ],
)
def test_spans_that_are_none(spans: object, field: str, mentioned: str, tmp_path: Path) -> None:
    with refused(mentioned, file="train", line=1, field=field):
        run([{**FINE, "spans": spans}], tmp_path, **SPANS)


@pytest.mark.parametrize(
    ("arguments", "field", "mentioned"),
    [
        ({**MASKS, "mask": "masks"}, "masks", "['tokens', 'mask', 'label', 'more', 'two', 'id', 'text']"),
        ({**MASKS, "id": "id"}, "id", "'a'"),
        ({**MASKS, "tokens": ["tokens", "tokens"], "mask": ["mask", "two"]}, "mask", "2 people"),
        ({"text": "text", "spans": "more", "label": "label", "offsets": "indices"}, "more[0]", "3 tokens"),
        ({"text": "text", "quotes": "more", "label": "label"}, "more[0]", "[0, 1, 3]"),
        ({"tokens": "tokens", "mask": ["mask", "two"], "label": "label"}, "two", "one person"),
    ],
)
def test_columns_that_do_not_fit(arguments: dict[str, Any], field: str, mentioned: str, tmp_path: Path) -> None:
    more = {"more": [[0, 1, 3], [0, 1, 0]], "two": [[0, 1, 0]] * 2}
    row = {**GOOD, **more, "id": "a", "text": "a fine film"}
    with refused(mentioned, file="train", field=field):
        run([row, row], tmp_path, **arguments)
