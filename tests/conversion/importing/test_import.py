"""What an import takes, counts and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import evaluate
import pyarrow.parquet as pq
import pytest

import eraser_hub
from eraser_hub import import_corpus
from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.importing.corpus import NOTES, Columns, Imported, write_corpus
from eraser_hub.conversion.importing.sources import (
    find_label_column,
    open_dataset,
    open_file,
    wrap_rows,
)
from eraser_hub.conversion.importing.texts import get_cell, parse_literal

from ...command_line import Result, invoke
from ...refusals import refused
from .corpora import Row, group_masks, kept_masks, rows_of, source, write_lines

MASKS = Columns(("tokens",), ("mask",), "label")
QUOTES = Columns(("text",), ("quotes",), "label", tokenized=False, kind="quotes")
SPANS = Columns(("text",), ("spans",), "label", tokenized=False, kind="spans", offsets="characters")
GOOD: Row = {"tokens": ["a", "fine", "film"], "mask": [0, 1, 0], "label": "good"}


def run(rows: list[Row], columns: Columns, out: Path, **options: Any) -> Imported:
    return write_corpus({"train": source(rows)}, "mine", columns, out, **options)


def said(result: Imported, check: str) -> str:
    """What an import says of a check: how often, and where."""
    (line,) = [note for note in result.notes if note.startswith(f"{NOTES[check]}: ")]
    return line.removeprefix(f"{NOTES[check]}: ")


def typed(*words: str) -> Result:
    return invoke(["import", *words])


# -- what is taken ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("mask", "groups"),
    [
        ([0, 1, 1], [[0, 1, 1]]),
        ([False, True, False], [[0, 1, 0]]),
        ([0.0, 1.0, 0.0], [[0, 1, 0]]),
        ("[0, 1, 1]", [[0, 1, 1]]),
        ("[False, True, False]", [[0, 1, 0]]),
        ([[0, 1, 0], [0, 0, 1]], [[0, 1, 0], [0, 0, 1]]),
        ([[0, 1, 0], []], [[0, 1, 0]]),
        ([[0, 1, 0], None], [[0, 1, 0]]),
        (None, []),
        ([], []),
        ("", []),
        ([[], []], []),
        ([[1, 1, 0], [1, 1, 0]], [[1, 1, 0], [1, 1, 0]]),
    ],
)
def test_masks_in_every_form(mask: object, groups: list[list[int]], tmp_path: Path) -> None:
    result = run([{**GOOD, "mask": mask}], MASKS, tmp_path)
    (row,) = rows_of(result.folder)
    assert group_masks(row) == groups


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("['a' 'fine' 'film']", ["a", "fine", "film"]),
        ("['a' \"it's\"]", ["a", "it's"]),
        ("[0 1 1]", [0, 1, 1]),
        ("[0. 1. 1.]", [0, 1, 1]),
        ("[[0 1]\n [2 3]]", [[0, 1], [2, 3]]),
        ("['a', 'fine']", ["a", "fine"]),
        ("[u'a', u'fine']", ["a", "fine"]),
        ("[(2, 6)]", [(2, 6)]),
        # two notations in one, and what numpy left out
        ("['a' 'fine', 'film']", "['a' 'fine', 'film']"),
        ("[0 1 ... 1 0]", "[0 1 ... 1 0]"),
    ],
)
def test_lists_of_pandas_and_of_numpy(cell: str, value: object) -> None:
    assert parse_literal(cell) == value


def test_tokens_and_masks_that_numpy_printed(tmp_path: Path) -> None:
    rows = [{"tokens": "['a' 'fine' 'film']", "mask": "[0 1 0]", "label": "x"}]
    (row,) = rows_of(run(rows, MASKS, tmp_path).folder)
    assert row["documents"][0]["text"] == "a fine film" and group_masks(row) == [[0, 1, 0]]


@pytest.mark.parametrize(
    ("cell", "rationale"),
    [
        ("warm; funny", "warm … funny"),
        ("warm|funny", "warm … funny"),
        ("warm\nfunny", "warm … funny"),
        ("warm, funny", "warm … funny"),
        ("warm ; slow, it drags", "warm … slow, it drags"),
        ("slow, it drags", "slow, it drags"),
        ('["warm", "funny"]', "warm … funny"),
        ("{}", ""),
    ],
)
def test_several_quotes_in_a_cell(cell: str, rationale: str, tmp_path: Path) -> None:
    columns = Columns(("text",), ("why",), "label", tokenized=False, kind="quotes")
    rows = [{"text": "a warm and funny film but slow, it drags", "why": cell, "label": "x"}]
    rows.append({**rows[0], "why": "film"})
    assert rows_of(run(rows, columns, tmp_path).folder)[0]["rationale"] == rationale


def test_a_column_for_each_person_keeps_its_name(tmp_path: Path) -> None:
    columns = Columns(("text",), ("Anna", "Ben"), "label", tokenized=False, kind="quotes")
    rows = [{"text": "a warm and funny film", "Anna": "warm; funny", "Ben": "", "label": "x"}]
    result = run(rows, columns, tmp_path)
    (row,) = rows_of(result.folder)
    assert group_masks(row) == [[0, 1, 0, 1, 0]]
    kept = pq.read_table(result.folder / "annotators" / "mine.parquet").to_pylist()
    people = [(one["annotator"], one["rationale_positions"]) for one in kept]
    assert people == [("Anna", [[1, 3]]), ("Ben", [[]])]


@pytest.mark.parametrize(("cell", "mask"), [("0,2", [1, 0, 1]), ([1, 2], [0, 1, 1]), ("1", [0, 1, 0]), ("{}", None)])
def test_numbers_of_marked_tokens(cell: object, mask: list[int] | None, tmp_path: Path) -> None:
    columns = Columns(("text",), ("words",), "label", tokenized=False, kind="spans", offsets="indices")
    (row,) = rows_of(run([{"text": "a fine film", "words": cell, "label": "x"}], columns, tmp_path).folder)
    assert group_masks(row) == ([mask] if mask else [])
    with refused("3 tokens", field="words"):
        run([{"text": "a fine film", "words": "0,3", "label": "x"}], columns, tmp_path / "other")


def test_numbers_of_tokens_are_no_spans(tmp_path: Path) -> None:
    with refused("`offsets` indices", field="spans"):
        run([{"text": "a fine film", "label": "x", "spans": "1,2"}], SPANS, tmp_path)


def test_another_separator_is_named_where_cells_are_quoted(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('"text";"label"\n"a film";"good"\n')
    with refused("separated by ';'", file="rows.csv", line=1):
        list(open_file(tmp_path / "rows.csv").rows())


@pytest.mark.parametrize(
    ("spans", "groups"),
    [
        ([[2, 6]], [[0, 1, 0]]),
        ([{"start": 2, "end": 6}], [[0, 1, 0]]),
        ({"start": [2], "end": [6]}, [[0, 1, 0]]),
        ("2-6", [[0, 1, 0]]),
        ("2:6; 7-11", [[0, 1, 1]]),
        ("[[2, 6], [7, 11]]", [[0, 1, 1]]),
        ("[(2, 6)]", [[0, 1, 0]]),
        ([[[2, 6]], [[7, 11]]], [[0, 1, 0], [0, 0, 1]]),
        ([[], [[2, 6]]], [[0, 1, 0]]),
        ([None, [[2, 6]]], [[0, 1, 0]]),
        ([[3, 4]], [[0, 1, 0]]),
        ([[1, 2]], []),
        ([[2, 2]], []),
        (None, []),
    ],
)
def test_spans_in_every_form(spans: object, groups: list[list[int]], tmp_path: Path) -> None:
    result = run([{"text": "a fine film", "label": "x", "spans": spans}], SPANS, tmp_path)
    (row,) = rows_of(result.folder)
    assert group_masks(row) == groups


def test_spans_that_touch_stay_two(tmp_path: Path) -> None:
    """Gold spans count one by one in exact match and IOU."""
    (row,) = rows_of(run([{"text": "a fine film", "label": "x", "spans": [[0, 1], [2, 6]]}], SPANS, tmp_path).folder)
    assert [(one["start_token"], one["end_token"]) for one in row["evidences"][0]] == [(0, 1), (1, 2)]


def test_sentences(tmp_path: Path) -> None:
    columns = Columns(("text",), ("which",), "label", tokenized=False, kind="spans", offsets="sentences", query="claim")
    rows = [{"text": ["One two.", "Three.", "Four five six."], "which": [[0, 2], [1]], "label": 1, "claim": "Is it?"}]
    result = run(rows, columns, tmp_path)
    (row,) = rows_of(result.folder)
    assert group_masks(row) == [[1, 1, 0, 1, 1, 1], [0, 0, 1, 0, 0, 0]] and row["query"] == "Is it?"
    assert [(one["start_sentence"], one["end_sentence"]) for one in row["evidences"][0]] == [(0, 1), (2, 3)]
    assert row["num_sentences"] == 3 and kept_masks(result.folder) == {}


def test_quotes_stand_once_or_are_told(tmp_path: Path) -> None:
    text = "The plot is thin and thin, but  warm."
    quotes = ["thin and thin", "but warm", "plot is", "thin", "cold", "  "]
    result = run([{"text": text, "quotes": quotes, "label": "x"}], QUOTES, tmp_path)
    (row,) = rows_of(result.folder)
    assert [one["text"] for one in row["evidences"][0]] == ["plot is", "thin and thin,", "but warm."]
    assert said(result, "quotes nowhere") == "2 (rows:1: 'cold', rows:1: '  ')"
    assert said(result, "quotes twice") == "1 (rows:1: 'thin' 2 times)"
    assert said(result, "widened").startswith("2 ")


def test_an_import_of_which_no_quote_is_found_is_refused(tmp_path: Path) -> None:
    rows = [
        {"text": "A thin plot, but warm.", "quotes": quotes, "label": "x"} for quotes in ("thick; dull", "cold", "")
    ]
    with refused("found none among 3", field="quotes") as caught:
        run(rows, QUOTES, tmp_path)
    assert caught.error.message.startswith(
        "expected quotes of the texts, found none among 3; quotes left out, for they do not"
    )
    assert ": 3 (rows:1: 'thick', rows:1: 'dull', rows:2: 'cold')" in caught.error.message
    assert not (tmp_path / "mine").exists()
    run(rows[2:], QUOTES, tmp_path)  # nobody quoted


def test_an_import_without_an_agreed_token_is_no_import_without_quotes(tmp_path: Path) -> None:
    quotes = [["thin"], ["plot"], ["cold"]]  # three people, no token that two of them mark
    rows = [{"text": "A thin plot, but warm.", "quotes": quotes, "label": "x"}]
    result = write_corpus({"train": source(rows)}, "mine", QUOTES, tmp_path, annotators="majority")
    assert said(result, "no majority") and said(result, "quotes nowhere") == "1 (rows:1: 'cold')"


def test_a_quote_in_another_case_is_taken_and_counted(tmp_path: Path) -> None:
    rows = [{"text": "A PAINFULLY slow film. Slow!", "quotes": ["Painfully Slow", "SLOW"], "label": "x"}]
    result = run(rows, QUOTES, tmp_path)
    (row,) = rows_of(result.folder)
    assert [one["text"] for one in row["evidences"][0]] == ["PAINFULLY slow"]
    assert said(result, "quotes of another case") == "1 (rows:1: 'Painfully Slow')"
    assert said(result, "quotes twice") == "1 (rows:1: 'SLOW' 2 times)"


def test_without_columns_the_error_names_those_of_the_file(tmp_path: Path) -> None:
    table = tmp_path / "reviews.csv"
    table.write_text("review,label\ngood,pos\n", encoding="utf-8")
    words = "--name", "reviews", "--out", str(tmp_path / "out")
    ended = typed("--source", str(table), *words)
    message = " ".join(ended.output.replace("│", " ").split())
    assert ended.exit_code == 2 and "found none; reviews.csv has 'review', 'label'" in message
    table.write_text("", encoding="utf-8")
    ended = typed("--source", str(table), *words)
    assert ended.exit_code == 2 and "has" not in ended.output
    ended = typed("--source", str(tmp_path / "absent.csv"), *words)
    assert ended.exit_code == 1 and "no such file" in ended.stderr
    assert not (tmp_path / "out").exists()


def test_a_quote_of_whole_words_goes_before_one_within_a_word(tmp_path: Path) -> None:
    result = run([{"text": "badly bad", "quotes": "bad", "label": "x"}], QUOTES, tmp_path)
    (row,) = rows_of(result.folder)
    assert group_masks(row) == [[0, 1]]
    result = run([{"text": "bad or bad", "quotes": ["bad", "or"], "label": "x"}], QUOTES, tmp_path / "two")
    assert said(result, "quotes twice") == "1 (rows:1: 'bad' 2 times)"


def test_labels(tmp_path: Path) -> None:
    rows = [{**GOOD, "label": label} for label in (["b", "a", "b"], ["a", "b"], "c", ["a"])]
    result = run(rows, MASKS, tmp_path)
    assert result.labels == ["a", "b", "c"] and result.rows == {"train": 3}
    assert (said(result, "ties"), said(result, "labels differ")) == ("1 (rows:2)", "1 (rows:1)")
    numbers = run([{**GOOD, "label": number} for number in (10, 9, 2.0)], MASKS, tmp_path / "numbers")
    assert numbers.labels == ["2", "9", "10"]
    named = write_corpus(
        {"train": source([{**GOOD, "label": 1}], label=("no", "yes"))}, "mine", MASKS, tmp_path / "named"
    )
    assert named.labels == ["no", "yes"] and rows_of(named.folder)[0]["classification"] == 1


def test_texts_are_shared_within_a_split_and_counted_across(tmp_path: Path) -> None:
    rows = [{**GOOD, "id": str(number)} for number in range(3)]
    columns = Columns(("tokens",), ("mask",), "label", id="id")
    result = write_corpus({"train": source(rows), "test": source(rows[:1])}, "mine", columns, tmp_path)
    assert [row["documents"][0]["docid"] for row in rows_of(result.folder)] == ["0", "0", "0"]
    assert [row["documents"][0]["docid"] for row in rows_of(result.folder, "test")] == ["test:0"]
    assert (said(result, "shared"), said(result, "in several splits")) == ("2 (1, 2)", "1 (test:0 of test)")


@pytest.mark.parametrize(
    ("tokenizer", "tokens"),
    [
        ("blanks", ["它\u00a0很好。", "Sehr", "gut."]),
        ("whitespace", ["它", "很好。", "Sehr", "gut."]),
    ],
)
def test_tokenizers(tokenizer: str, tokens: list[str], tmp_path: Path) -> None:
    rows = [{"text": "它\u00a0很好。 Sehr\ngut.", "label": "x", "spans": [[2, 4]]}]
    result = run(rows, SPANS, tmp_path, tokenizer=tokenizer)
    (row,) = rows_of(result.folder)
    assert eraser_hub.tokens(row)[0] == tokens and row["num_sentences"] == 2
    assert row["rationale"].replace(" ", "") in ("它\u00a0很好。", "很好。", "很好")


def test_a_tokenizers_folder(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    words = {"[UNK]": 0, "un": 1, "##kind": 2, "words": 3}
    model = tokenizers.Tokenizer(tokenizers.models.WordPiece(words, unk_token="[UNK]"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    model.save(str(tmp_path / "tokenizer.json"))
    rows = [{"text": "unkind  words!", "label": "x", "spans": [[2, 6]]}]
    (row,) = rows_of(run(rows, SPANS, tmp_path / "out", tokenizer=str(tmp_path)).folder)
    assert eraser_hub.tokens(row)[0] == ["un", "kind", "words", "!"] and row["rationale"] == "kind"
    mentions = ("whitespace", "tokenizer.json", repr(str(tmp_path / "out")))
    with refused(*mentions, argument="tokenizer"):
        run(rows, SPANS, tmp_path / "other", tokenizer=str(tmp_path / "out"))
    (tmp_path / "tokenizer.json").write_text("{}")
    with refused(file="tokenizer.json"):
        run(rows, SPANS, tmp_path / "other", tokenizer=str(tmp_path))


# -- where it is from -------------------------------------------------------------------------------------------------
def test_the_same_rows_from_every_kind_of_source(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "text": "a fine film", "quotes": ["fine"], "label": "good"},
        {"id": "b", "text": "it, ends", "quotes": ["it"], "label": "bad"},
    ]
    held = datasets.Dataset.from_list(rows)
    held.to_parquet(tmp_path / "rows.parquet")
    held.to_csv(tmp_path / "rows.csv")
    held.save_to_disk(str(tmp_path / "saved"))
    write_lines(tmp_path / "rows.jsonl", rows)
    (tmp_path / "list.json").write_text(json.dumps(rows, indent=1))
    (tmp_path / "object.json").write_text(json.dumps({row["id"]: row for row in rows}))
    write_lines(tmp_path / "lines.json", rows)
    names = ("rows.parquet", "rows.csv", "rows.jsonl", "list.json", "object.json", "lines.json")
    sources = [open_file(tmp_path / name) for name in names]
    sources += [open_dataset(str(tmp_path / "saved"), None)["train"]]
    sources += [wrap_rows(one, "memory") for one in (held, held.with_format("numpy"), held.to_iterable_dataset())]
    with refused("iterator", argument="source"):
        wrap_rows(iter(rows), "memory")  # type: ignore[arg-type]
    columns = Columns(("text",), ("quotes",), "label", tokenized=False, kind="quotes", id="id")
    folders = [
        write_corpus({"train": one}, "mine", columns, tmp_path / str(at)).folder for at, one in enumerate(sources)
    ]
    expected = [(folders[0] / name).read_bytes() for name in ("train.jsonl", "docs.jsonl", "corpus.yaml")]
    for folder in folders:
        assert [(folder / name).read_bytes() for name in ("train.jsonl", "docs.jsonl", "corpus.yaml")] == expected


def test_the_names_of_a_class_label_are_kept_wherever_they_stand(tmp_path: Path) -> None:
    columns_of = {"tokens": datasets.List(datasets.Value("string")), "mask": datasets.List(datasets.Value("int8"))}
    labels_of = {"label": datasets.List(datasets.ClassLabel(names=["neg", "pos"]))}
    features = datasets.Features({**columns_of, "annotators": labels_of})
    rows = [{"tokens": ["a"], "mask": [1], "annotators": {"label": [1, 1, 0]}}]
    held = datasets.Dataset.from_list(rows, features=features)
    held.to_parquet(tmp_path / "rows.parquet")
    columns = Columns(("tokens",), ("mask",), "annotators.label")
    for at, one in enumerate((open_file(tmp_path / "rows.parquet"), wrap_rows(held, "memory"))):
        result = write_corpus({"train": one}, "mine", columns, tmp_path / str(at))
        assert result.labels == ["neg", "pos"] and rows_of(result.folder)[0]["classification"] == 1
    other = held.cast(
        datasets.Features(features | {"annotators": {"label": datasets.List(datasets.ClassLabel(names=["x", "y"]))}})
    )
    with refused("('neg', 'pos')", "('x', 'y')", field="annotators.label"):
        write_corpus({"train": wrap_rows(held, "a"), "test": wrap_rows(other, "b")}, "mine", columns, tmp_path / "2")


def test_a_built_dataset_of_ours_can_be_imported_again(tmp_path: Path, samples: Path) -> None:
    """A folder that load_dataset takes: splits are named, and what is left out is said."""
    built = HUB_DATASETS["human_rationales"].build(["sst"], out=tmp_path, source=samples / "human_rationales").folder
    words = [
        "--source",
        str(built),
        "--name",
        "sst-again",
        "--tokens",
        "tokens",
        "--mask",
        "rationale_mask",
        "--id",
        "id",
    ]
    done = typed(*words, "--label", "label", "--out", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    assert "split: train " in done.stderr and "validation, test; `split`" in done.stderr
    done = typed(
        *words, "--label", "label", "--out", str(tmp_path / "all"), "--split", "val=validation", "--split", "test=test"
    )
    assert "sst-again: val 3, test 4; labels" in done.stdout and (tmp_path / "all/sst-again/val.jsonl").is_file()


# -- what may be meant otherwise --------------------------------------------------------------------------------------
STARS = Columns(("text",), ("marked",), "label", tokenized=False, kind="stars")


@pytest.mark.parametrize(
    ("marked", "groups"),
    [
        ("a *fine* film", [[0, 1, 0]]),
        ("*a fine* film", [[1, 1, 0]]),
        ("*a* *fine* film", [[1, 1, 0]]),
        ("a f*in*e film", [[0, 1, 0]]),
        ("", []),
    ],
)
def test_asterisks_in_a_copy_of_the_text_as_in_e_snli(marked: str, groups: list, tmp_path: Path) -> None:
    result = run([{"text": "a fine film", "marked": marked, "label": "x"}], STARS, tmp_path)
    (row,) = rows_of(result.folder)
    assert row["documents"][0]["text"] == "a fine film" and group_masks(row) == groups


@pytest.mark.parametrize(
    ("marked", "mentions"),
    [
        ("a *fine film", ("asterisk",)),
        ("a *good* film", ("'good* film'", "'fine film'", "character 4")),
        ("a *fine*", ("' film'",)),
        ([0, 1, 0], ("[0, 1, 0]",)),
    ],
)
def test_a_copy_that_is_not_the_text(marked: object, mentions: tuple[str, ...], tmp_path: Path) -> None:
    with refused(*mentions, file="rows", line=1, field="marked"):
        run([{"text": "a fine film", "marked": marked, "label": "x"}], STARS, tmp_path)


def test_a_text_in_brackets_is_a_text(tmp_path: Path) -> None:
    columns = Columns(("text",), ("spans",), "label", False, "spans", "characters", query="query")
    cells = {"spans": None, "label": "x"}
    rows = [{**cells, "text": "[2019]", "query": "[1984]"}, {**cells, "text": '["a b", "c"]', "query": '["d", "e"]'}]
    result = run(rows, columns, tmp_path)
    first, second = rows_of(result.folder)
    assert (first["documents"][0]["text"], first["query"]) == ("[2019]", "[1984]")
    assert (second["documents"][0]["text"], second["query"]) == ("a b\nc", "d [sep] e")
    assert said(result, "lists") == "2 (rows:2)"


def test_a_label_in_brackets_is_a_list_and_counted(tmp_path: Path) -> None:
    result = run([{**GOOD, "label": "[2019]"}, GOOD], MASKS, tmp_path)
    assert result.labels == ["2019", "good"] and said(result, "lists") == "1 (rows:1)"


def test_labels_that_are_alike_are_named(tmp_path: Path) -> None:
    labels = ["good", "Good", "good ", "good", "NA", "null", "bad", "caf\u00e9", "cafe\u0301"]
    result = run([{**GOOD, "label": label} for label in labels], MASKS, tmp_path)
    assert result.labels == sorted(set(labels)), "nothing is merged"
    alike, composed, missing = result.notes[-3:]
    assert "'caf\u00e9' 1" in composed and "'cafe\u0301' 1" in composed
    assert "'Good' 1, 'good ' 1, 'good' 2" in alike and "bad" not in alike
    assert "'NA' 1, 'null' 1" in missing
    assert not [note for note in run([GOOD], MASKS, tmp_path / "other").notes if "label" in note]


def test_sentence_numbers_beside_blank_lines(tmp_path: Path) -> None:
    columns = Columns(("text",), ("which",), "label", tokenized=False, kind="spans", offsets="sentences")
    texts = ["One two.\n\nThree.", "One.\nTwo.\n", "\nOne.\nTwo."]
    result = run([{"text": text, "which": [1], "label": 1} for text in texts], columns, tmp_path)
    assert said(result, "blank sentences") == "2 (rows:1, rows:3)"
    columns = Columns(("tokens",), ("which",), "label", kind="spans", offsets="sentences")
    result = run([{"tokens": [["One"], [], ["Two"]], "which": [1], "label": 1}], columns, tmp_path / "tokens")
    assert said(result, "blank sentences") == "1 (rows:1)"


@pytest.mark.parametrize(
    ("spans", "field"),
    [
        ([{"start": 2, "end": 6, "text": "film"}], "spans[0]"),
        ([{"start": 0, "end": 1}, {"start": 3, "end": 7, "text": "fine"}], "spans[1]"),
        ({"start": [2, 7], "end": [6, 11], "text": ["fine", "filn"]}, "spans[1]"),
        ({"start": 2, "end": 6, "text": "Fine"}, "spans[0]"),
    ],
)
def test_a_span_that_contradicts_its_own_text(spans: object, field: str, tmp_path: Path) -> None:
    with refused("own text", file="rows", line=1, field=field):
        run([{"text": "a fine film", "label": "x", "spans": spans}], SPANS, tmp_path)


@pytest.mark.parametrize(
    "spans", [[{"start": 2, "end": 6, "text": " fine"}], {"start": [2], "end": [6], "text": ["fine"]}]
)
def test_a_span_with_its_own_text(spans: object, tmp_path: Path) -> None:
    (row,) = rows_of(run([{"text": "a fine film", "label": "x", "spans": spans}], SPANS, tmp_path).folder)
    assert group_masks(row) == [[0, 1, 0]]


def test_a_span_of_tokens_with_its_own_text(tmp_path: Path) -> None:
    columns = Columns(("tokens",), ("spans",), "label", kind="spans")
    rows = [{**GOOD, "spans": [{"start_token": 1, "end_token": 3, "text": "fine film"}]}]
    assert group_masks(rows_of(run(rows, columns, tmp_path).folder)[0]) == [[0, 1, 1]]
    rows[0]["spans"][0]["text"] = "a fine"
    with refused("'a fine'", field="spans[0]"):
        run(rows, columns, tmp_path / "other")


# -- what is refused --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("cells", "field", "mentions"),
    [
        ({"mask": [0, 1]}, "mask", ("3 marks", " 2")),
        ({"mask": [0, 814, 0]}, "mask[1]", (814,)),
        ({"mask": [0, "1", 0]}, "mask[1]", ("'1'",)),
        ({"mask": [[0, 1, 0], [0, 1]]}, "mask[1]", ("3 marks", " 2")),
        ({"mask": 814}, "mask", (814,)),
        ({"mask": "a *fine* film"}, "mask", ("list of 0 and 1", "'a *fine* film'")),
        ({"tokens": ["a b", "c", "d"]}, "tokens[0]", ("'a b'",)),
        ({"tokens": ["a", "", "d"]}, "tokens[1]", ("''",)),
        ({"tokens": ["a", "b\nc", "d"]}, "tokens[1]", (repr("b\nc"),)),
        ({"tokens": ["a", None, "d"]}, "tokens[1]", ("None",)),
        ({"tokens": "a fine film"}, "tokens", ("`text`", "'a fine film'")),
        ({"tokens": None}, "tokens", ("`text`", "None")),
        ({"label": None}, "label", ("None",)),
        ({"label": ""}, "label", ("''",)),
        ({"label": []}, "label", ("list",)),
        ({"label": {"x": 2}}, "label", ("'x': 2",)),
        ({"label": 0.5}, "label", ("0.5",)),
        ({"label": float("nan")}, "label", ("nan",)),
        ({"label": "\ud800"}, "label", ("d800",)),
        ({"tokens": ["\ud800", "b", "c"]}, "tokens[0]", ("d800",)),
    ],
)
def test_a_cell_that_is_not_what_it_should_be(
    cells: Row, field: str, mentions: tuple[object, ...], tmp_path: Path
) -> None:
    with refused(*mentions, file="rows", line=1, field=field):
        run([{**GOOD, **cells}], MASKS, tmp_path)
    assert not list(tmp_path.iterdir()) or not (tmp_path / "mine").exists()


@pytest.mark.parametrize(
    ("spans", "field", "mentioned"),
    [
        ([[-1, 2]], "spans[0]", "[-1, 2]"),
        ([[3, 2]], "spans[0]", "[3, 2]"),
        ([[0, 99]], "spans[0]", "[0, 99]"),
        ([["0", 2]], "spans[0][0]", "'0'"),
        ([[0, 1.5]], "spans[0][0]", " 0"),
        ([[True, 2]], "spans[0][0]", "True"),
        ([[1, 2, 3]], "spans[0][0]", " 1"),
        ("2-", "spans", "'2-'"),
        ("2-6,7", "spans", "'2-6,7'"),
        ({"a": 1}, "spans", "{'a': 1}"),
        (814, "spans", "814"),
        ([{"start": 1}], "spans[0]", "[1, None]"),
        ([[[[1, 2]]]], "spans[0][0]", "[[1, 2]]"),
    ],
)
def test_spans_that_are_none(spans: object, field: str, mentioned: str, tmp_path: Path) -> None:
    with refused(mentioned, file="rows", line=1, field=field):
        run([{"text": "a fine film", "label": "x", "spans": spans}], SPANS, tmp_path)


def test_columns_that_are_not_there_and_ids_twice(tmp_path: Path) -> None:
    with refused("['tokens', 'mask', 'label']", file="rows", line=1, field="masks"):
        run([GOOD], Columns(("tokens",), ("masks",), "label"), tmp_path)
    with refused(file="rows", line=1, field="label.x"):
        run([GOOD], Columns(("tokens",), ("mask",), "label.x"), tmp_path)
    with refused("'a'", "line 1)", file="rows", line=2, field="id"):
        run([{**GOOD, "id": "a"}, {**GOOD, "id": "a"}], Columns(("tokens",), ("mask",), "label", id="id"), tmp_path)
    with refused("3 annotators", " 2", file="rows", line=1, field="mask"):
        rows = [{**GOOD, "mask": [[0, 1, 0]] * 2, "more": [[0, 1, 0]] * 3}]
        run(rows, Columns(("tokens", "tokens"), ("mask", "more"), "label"), tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "line", "mentions"),
    [
        ("rows.txt", b"x", None, (".jsonl, .ndjson", "'rows.txt'")),
        ("rows.jsonl", b'{"tokens": \n', 1, ("of 11",)),
        ("rows.jsonl", json.dumps(GOOD).encode() + b"\n\n", 2, ()),
        ("rows.jsonl", b"\xff\n", 1, ("0xff",)),
        ("rows.jsonl", b"", None, ()),
        ("rows.json", b"814", None, (814,)),
        ("rows.json", b"[814]", 1, (814,)),
        ("rows.json", b"[" * 3000, 1, (64,)),
        ("rows.csv", b"tokens,tokens\n1,2\n", 1, ("['tokens', 'tokens']",)),
        ("rows.csv", b"tokens,mask,label\n1,2\n", 2, ("3 fields", " 2")),
        ("rows.csv", b"tokens;mask;label\n1;0;x\n", 2, ("the column", "by ';'", ".csv has ','")),
        ("rows.csv", b"tokens\tmask\tlabel\n1\t0\tx\n", 2, ("separated by '\\t'", ".tsv has '\\t'")),
        ("rows.csv", b"tokens|mask|what, label\n1|0|x\n", 2, ("2 fields", "by '|'")),
        ("rows.tsv", b"tokens,mask,label\n1,0,x\n", 2, ("the column", "by ','", ".csv has ','")),
        ("rows.csv", b'tokens,mask,label\n"a,b\n', 2, ("CSV",)),
        ("rows.csv", b"tokens,mask,label\n\xff,1,x\n", 2, ("0xff",)),
        ("rows.parquet", b"PAR1", None, ("Parquet",)),
    ],
)
def test_files_that_are_not_in_order(
    name: str, content: bytes, line: int | None, mentions: tuple[object, ...], tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with refused(*mentions, file=name, line=line):
        write_corpus({"train": open_file(tmp_path / name)}, "mine", MASKS, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_one_column_may_have_any_name(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text; or tweet\na fine film\na bad film\n")
    rows = list(open_file(path).rows())
    assert [row.cells for row in rows] == [{"text; or tweet": "a fine film"}, {"text; or tweet": "a bad film"}]
    assert get_cell(rows[0].cells, "text; or tweet") == "a fine film"
    with refused("text; or tweet", "separated by ';'", argument="label"):
        find_label_column(open_file(path), ())


@pytest.mark.parametrize(
    ("text", "options", "held"),
    [
        ("a fine\r\nfilm", {}, True),
        ("a\tfine film", {}, True),
        ([{"id": "1", "text": "a\u00a0fine film"}], {}, True),
        ("a fine\nfilm", {}, False),
        ("a\tfine film", {"tokenizer": "whitespace"}, False),
    ],
)
def test_blanks_that_do_not_cut_are_counted(text: object, options: dict[str, str], held: bool, tmp_path: Path) -> None:
    notes = run(
        [{"text": text, "label": "good"}], Columns(("text",), (), "label", tokenized=False), tmp_path, **options
    )
    assert any(note == f"{NOTES['other blanks']}: 1 (rows:1)" for note in notes.notes) == held


@pytest.mark.parametrize(("name", "end"), [("rows.jsonl", "\r\n"), ("rows.json", "\n"), ("rows.csv", "\r\n")])
def test_a_byte_order_mark_is_no_content(name: str, end: str, tmp_path: Path) -> None:
    lines = ["tokens,mask,label", '"[""a"", ""b""]","[0, 1]",good'] if name == "rows.csv" else [json.dumps(GOOD)] * 2
    (tmp_path / name).write_bytes(f"\ufeff{end.join(lines)}{end}".encode())
    done = write_corpus({"train": open_file(tmp_path / name)}, "mine", MASKS, tmp_path / "out")
    assert done.labels == ["good"]


def test_no_folder_of_others_is_replaced(tmp_path: Path) -> None:
    target = run([GOOD], MASKS, tmp_path).folder
    with refused("`force`", file="mine"):
        run([GOOD], MASKS, tmp_path)
    run([{**GOOD, "label": "new"}], MASKS, tmp_path, force=True)
    assert rows_of(target)[0]["classification"] == 0 and "new" in (target / "corpus.yaml").read_text()
    (target / "corpus.yaml").unlink()
    (target / ".import.json").unlink()
    with refused("corpus.yaml", "`out`", file="mine"):
        run([GOOD], MASKS, tmp_path, force=True)
    assert (target / "train.jsonl").is_file()


def test_force_keeps_what_no_import_wrote(tmp_path: Path) -> None:
    target = run([GOOD], MASKS, tmp_path).folder
    yaml = (target / "corpus.yaml").read_text() + "license: mit\n"
    (target / "corpus.yaml").write_text(yaml)
    (target / "notes.txt").write_text("mine")
    (target / "annotators").mkdir()
    (target / "annotators" / "others.parquet").write_bytes(b"mine")
    (target / "val.jsonl").symlink_to("notes.txt")
    result = run([GOOD], MASKS, tmp_path, force=True)
    assert (target / "notes.txt").read_text() == (target / "val.jsonl").read_text() == "mine"
    assert (target / "annotators" / "others.parquet").read_bytes() == b"mine"
    assert (target / "corpus.yaml.old").read_text() == yaml != (target / "corpus.yaml").read_text()
    assert "kept, since no import wrote them: annotators/others.parquet, notes.txt, val.jsonl" in result.notes
    assert "corpus.yaml was changed after its import: it is corpus.yaml.old now" in result.notes
    assert not run([GOOD], MASKS, tmp_path, force=True).notes[-1].startswith("corpus.yaml")


def test_force_removes_a_split_of_the_earlier_import_alone(tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_text(json.dumps(GOOD) + "\n")
    opened = open_file(source)
    target = write_corpus({"train": opened, "test": opened}, "mine", MASKS, tmp_path / "out").folder
    (target / "val.jsonl").write_text("mine\n")
    write_corpus({"train": opened}, "mine", MASKS, tmp_path / "out", force=True)
    assert sorted(path.name for path in target.glob("*.jsonl")) == ["docs.jsonl", "train.jsonl", "val.jsonl"]
    write_corpus({"train": opened, "test": opened}, "mine", MASKS, tmp_path / "out", force=True)
    (target / "test.jsonl").write_text("changed\n")
    result = write_corpus({"train": opened}, "mine", MASKS, tmp_path / "out", force=True)
    assert (target / "test.jsonl.old").read_text() == "changed\n" and not (target / "test.jsonl").exists()
    assert "test.jsonl was changed after its import: it is test.jsonl.old now" in result.notes


def test_a_source_in_the_folder_is_not_replaced(tmp_path: Path) -> None:
    target = run([GOOD], MASKS, tmp_path).folder
    source = target / "docs.jsonl"
    source.write_text(json.dumps(GOOD) + "\n")
    before = source.read_bytes()
    with refused(file=source):
        write_corpus({"train": open_file(source)}, "mine", MASKS, tmp_path, force=True)
    assert source.read_bytes() == before


@pytest.mark.parametrize("name", ["../up", "a/b", "movies", "", ".", "documents", "a b"])
def test_names_that_no_corpus_can_have(name: str, tmp_path: Path) -> None:
    with refused(repr(name), argument="name"):
        write_corpus({"train": source([GOOD])}, name, MASKS, tmp_path / "out")


@pytest.mark.parametrize("splits", [("all",), ("docs",), ("a b",), ("../x",), ("val", "validation")])
def test_splits_that_no_dataset_can_have(splits: tuple[str, ...], tmp_path: Path) -> None:
    with refused(", ".join(splits), argument="split"):
        write_corpus({split: source([GOOD]) for split in splits}, "mine", MASKS, tmp_path)


@pytest.mark.parametrize(
    ("arguments", "argument", "mentions"),
    [
        ({}, None, ("`tokens`, `text`",)),
        ({"tokens": "t", "text": "t", "mask": "m"}, None, ("found `tokens` and `text`",)),
        ({"text": "t", "mask": "m", "spans": "m"}, None, ("found `mask` and `spans`",)),
        ({"tokens": ["t", "u"], "mask": "m"}, "mask", ("`tokens` (2)", "found 1")),
        ({"tokens": "t", "mask": "m", "offsets": "tokens"}, "offsets", ("`spans`",)),
        ({"tokens": "t", "mask": "m", "tokenizer": "whitespace"}, "tokenizer", ("`text`",)),
        ({"tokens": "t", "mask": "m", "annotators": "all"}, "annotators", ("groups, majority", "'all'")),
        ({"tokens": "t", "mask": "m", "split": ["x"]}, "split", ("SPLIT=FILE", "'x'")),
        ({"tokens": "t", "mask": "m", "split": ["a=x.jsonl", "a=y.jsonl"]}, "split", ("once",)),
        ({"tokens": "t", "mask": "m", "split": {"train": "x.jsonl"}}, "split", ("`source`",)),
        ({"tokens": "t", "mask": "m", "span_label": "x"}, "span_label", ()),
        ({"recipe": "cos-e", "label": "x"}, "label", ("recipe",)),
    ],
)
def test_arguments_that_do_not_go_together(
    arguments: dict[str, Any], argument: str | None, mentions: tuple[str, ...], tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "rows.jsonl", [GOOD])
    with refused(*mentions, argument=argument):
        import_corpus(path, "mine", out=tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()


def test_an_unknown_unit_of_spans_is_bad_usage(tmp_path: Path) -> None:
    words = ("--text", "t", "--spans", "m", "--offsets", "words")
    done = typed(str(tmp_path / "rows.jsonl"), "mine", "--out", str(tmp_path), *words)
    assert done.exit_code == 2 and "words" in done.stderr


def test_rows_in_memory(tmp_path: Path) -> None:
    rows = [{**GOOD, "label": label} for label in ("good", "bad", "good")]
    columns = {"tokens": "tokens", "mask": "mask"}
    held = datasets.DatasetDict(train=datasets.Dataset.from_list(rows), val=datasets.Dataset.from_list(rows))
    for at, given in enumerate((rows, datasets.Dataset.from_list(rows), {"train": rows, "val": rows}, held)):
        done = import_corpus(given, "mine", out=tmp_path / str(at), **columns)
        assert done.rows == dict.fromkeys(["train", "val"] if isinstance(given, dict) else ["train"], 3)
    done = import_corpus(held, "mine", out=tmp_path / "chosen", split={"test": "val"}, **columns)
    assert done.rows == {"test": 3}
    with refused("val", "'dev'", argument="split"):
        import_corpus(held, "mine", out=tmp_path / "other", split={"test": "dev"}, **columns)


def test_no_such_file_and_no_such_dataset(tmp_path: Path) -> None:
    with refused(file="nothing.jsonl"):
        open_file(tmp_path / "nothing.jsonl")
    with refused("org/name", file="nothing"):
        open_dataset(str(tmp_path / "nothing"), None)


# -- the whole way ----------------------------------------------------------------------------------------------------
def test_the_hatexplain_shape_to_annotator_agreement(tmp_path: Path, samples: Path, spaces: Path) -> None:
    files = samples / "any_corpus"
    columns = ["--tokens", "post_tokens", "--mask", "rationales", "--label", "annotators.label"]
    places = ["--split", f"test={files / 'hatexplain_test.json'}", "--name", "village", "--out", str(tmp_path)]
    done = typed("--source", str(files / "hatexplain_train.json"), *columns, *places)
    assert done.exit_code == 0, done.output
    assert "village: train 18, test 9; labels hatespeech, normal, offensive" in done.stdout
    assert f"{NOTES['ties']}: 1 (hatexplain_train.json:19)" in done.stderr
    built = HUB_DATASETS["eraser"].build(None, out=tmp_path / "hub", source=tmp_path).folder
    rows: Any = datasets.Dataset.from_parquet(
        str(built / "annotators/village.parquet"), cache_dir=str(tmp_path / "cache")
    )
    result: Any = evaluate.load(str(spaces / "annotator_agreement")).compute(references=rows)
    assert (
        result["comparisons"] == sum(1 for row in rows if row["rationale_positions"])
        and 0.5 < result["cohen_kappa"] < 1
    )
    tables = {table.name: table for table in HUB_DATASETS["eraser"].stats(built).tables}
    ((_, figures),) = tables["table_2"].rows
    assert f"{result['f1']:.3f}" in str([str(each) for each in figures.values()])
