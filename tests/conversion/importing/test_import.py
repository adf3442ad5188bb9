"""What an import takes, counts and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import evaluate
import pytest
from typer.testing import CliRunner

import eraser_hub
from eraser_hub.__main__ import _register, app
from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.importing.corpus import Columns, Imported, import_corpus
from eraser_hub.conversion.importing.sources import parted, source_of_file, source_of_rows, sources_of_dataset
from eraser_hub.records.errors import DataError

from .corpora import Row, group_masks, kept_masks, rows_of, source, write_lines

MASKS = Columns(("tokens",), ("mask",), "label")
QUOTES = Columns(("text",), ("quotes",), "label", tokenized=False, kind="quotes")
SPANS = Columns(("text",), ("spans",), "label", tokenized=False, kind="spans", offsets="characters")
GOOD: Row = {"tokens": ["a", "fine", "film"], "mask": [0, 1, 0], "label": "good"}


def run(rows: list[Row], columns: Columns, out: Path, **options: Any) -> Imported:
    return import_corpus({"train": source(rows)}, "mine", columns, out, **options)


def said(result: Imported, words: str) -> str:
    (line,) = [note for note in result.notes if words in note]
    return line


def typed(*words: str) -> Any:
    _register(("import",))
    return CliRunner().invoke(app, ["import", *words])


# ---------------------------------------------------------------------------------------------------- what is taken
@pytest.mark.parametrize(
    ("mask", "groups"),
    [
        ([0, 1, 1], [[0, 1, 1]]), ([False, True, False], [[0, 1, 0]]), ([0.0, 1.0, 0.0], [[0, 1, 0]]), ("[0, 1, 1]", [[0, 1, 1]]),
        ("[False, True, False]", [[0, 1, 0]]), ("a *fine* film", [[0, 1, 0]]), ("*a fine* film", [[1, 1, 0]]), ("a f*in*e film", [[0, 1, 0]]),
        ([[0, 1, 0], [0, 0, 1]], [[0, 1, 0], [0, 0, 1]]), ([[0, 1, 0], []], [[0, 1, 0]]), ([[0, 1, 0], None], [[0, 1, 0]]),
        (["*a* fine film", "a fine *film*"], [[1, 0, 0], [0, 0, 1]]), (None, []), ([], []), ("", []), ([[], []], []),
        ([[1, 1, 0], [1, 1, 0]], [[1, 1, 0], [1, 1, 0]]),
    ],
)  # fmt: skip
def test_masks_in_every_form(mask: object, groups: list[list[int]], tmp_path: Path) -> None:
    result = run([{**GOOD, "mask": mask}], MASKS, tmp_path)
    (row,) = rows_of(result.folder)
    assert group_masks(row) == groups


@pytest.mark.parametrize(
    ("spans", "groups"),
    [
        ([[2, 6]], [[0, 1, 0]]), ([{"start": 2, "end": 6}], [[0, 1, 0]]), ({"start": [2], "end": [6]}, [[0, 1, 0]]), ("2-6", [[0, 1, 0]]),
        ("2:6; 7-11", [[0, 1, 1]]), ("[[2, 6], [7, 11]]", [[0, 1, 1]]), ("[(2, 6)]", [[0, 1, 0]]), ([[[2, 6]], [[7, 11]]], [[0, 1, 0], [0, 0, 1]]),
        ([[], [[2, 6]]], [[0, 1, 0]]), ([[3, 4]], [[0, 1, 0]]), ([[1, 2]], []), ([[2, 2]], []), (None, []),
    ],
)  # fmt: skip
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
    assert "2 (rows:1: 'cold', rows:1: '  ')" in said(result, "do not stand in the text")
    assert "1 (rows:1: 'thin' 2 times)" in said(result, "several times")
    assert "widened to whole tokens: 2" in said(result, "widened")


def test_a_quote_of_whole_words_goes_before_one_within_a_word(tmp_path: Path) -> None:
    result = run([{"text": "badly bad", "quotes": "bad", "label": "x"}], QUOTES, tmp_path)
    (row,) = rows_of(result.folder)
    assert group_masks(row) == [[0, 1]]
    result = run([{"text": "bad or bad", "quotes": "bad", "label": "x"}], QUOTES, tmp_path / "two")
    assert "1 (rows:1: 'bad' 2 times)" in said(result, "several times")


def test_labels(tmp_path: Path) -> None:
    rows = [{**GOOD, "label": label} for label in (["b", "a", "b"], ["a", "b"], "c", ["a"])]
    result = run(rows, MASKS, tmp_path)
    assert result.labels == ["a", "b", "c"] and result.rows == {"train": 3}
    assert said(result, "labels tie").endswith("1 (rows:2)") and said(result, "majority's is taken").endswith(
        "1 (rows:1)"
    )
    numbers = run([{**GOOD, "label": number} for number in (10, 9, 2.0)], MASKS, tmp_path / "numbers")
    assert numbers.labels == ["2", "9", "10"]
    named = import_corpus(
        {"train": source([{**GOOD, "label": 1}], label=("no", "yes"))}, "mine", MASKS, tmp_path / "named"
    )
    assert named.labels == ["no", "yes"] and rows_of(named.folder)[0]["classification"] == 1


def test_texts_are_shared_within_a_split_and_counted_across(tmp_path: Path) -> None:
    rows = [{**GOOD, "id": str(number)} for number in range(3)]
    columns = Columns(("tokens",), ("mask",), "label", id="id")
    result = import_corpus({"train": source(rows), "test": source(rows[:1])}, "mine", columns, tmp_path)
    assert [row["documents"][0]["docid"] for row in rows_of(result.folder)] == ["0", "0", "0"]
    assert [row["documents"][0]["docid"] for row in rows_of(result.folder, "test")] == ["test:0"]
    assert said(result, "same text").endswith("2 (1, 2)") and "1 (test:0 of test)" in said(result, "several splits")


@pytest.mark.parametrize(
    ("tokenizer", "tokens"),
    [("blanks", ["它\u00a0很好。", "Sehr", "gut."]), ("whitespace", ["它", "很好。", "Sehr", "gut."]),
     ("characters", [*"它很好。Sehrgut."])],
)  # fmt: skip
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
    with pytest.raises(
        DataError, match=r"--tokenizer: expected whitespace, characters, or a folder with a tokenizer\.json"
    ):
        run(rows, SPANS, tmp_path / "other", tokenizer=str(tmp_path / "out"))
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(DataError, match=r"tokenizer\.json: cannot be read as a tokenizer"):
        run(rows, SPANS, tmp_path / "other", tokenizer=str(tmp_path))


# ----------------------------------------------------------------------------------------------------- where it is from
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
    sources = [*(source_of_file(tmp_path / name) for name in names), sources_of_dataset(str(tmp_path / "saved"), None, None)["train"],
               source_of_rows(held, "memory"), source_of_rows(held.to_iterable_dataset(), "stream")]  # fmt: skip
    columns = Columns(("text",), ("quotes",), "label", tokenized=False, kind="quotes", id="id")
    folders = [
        import_corpus({"train": one}, "mine", columns, tmp_path / str(at)).folder for at, one in enumerate(sources)
    ]
    expected = [(folders[0] / name).read_bytes() for name in ("train.jsonl", "docs.jsonl", "corpus.yaml")]
    for folder in folders:
        assert [(folder / name).read_bytes() for name in ("train.jsonl", "docs.jsonl", "corpus.yaml")] == expected


def test_the_names_of_a_class_label_are_kept_wherever_they_stand(tmp_path: Path) -> None:
    features = datasets.Features({
        "tokens": datasets.List(datasets.Value("string")), "mask": datasets.List(datasets.Value("int8")),
        "annotators": {"label": datasets.List(datasets.ClassLabel(names=["neg", "pos"]))},
    })  # fmt: skip
    rows = [{"tokens": ["a"], "mask": [1], "annotators": {"label": [1, 1, 0]}}]
    held = datasets.Dataset.from_list(rows, features=features)
    held.to_parquet(tmp_path / "rows.parquet")
    columns = Columns(("tokens",), ("mask",), "annotators.label")
    for at, one in enumerate((source_of_file(tmp_path / "rows.parquet"), held)):
        result = eraser_hub.import_corpus({"train": one}, "mine", columns, tmp_path / str(at))
        assert result.labels == ["neg", "pos"] and rows_of(result.folder)[0]["classification"] == 1
    other = held.cast(
        datasets.Features(features | {"annotators": {"label": datasets.List(datasets.ClassLabel(names=["x", "y"]))}})
    )
    with pytest.raises(DataError, match=r"annotators\.label: expected one ClassLabel, or none, in all splits"):
        import_corpus({"train": held, "test": other}, "mine", columns, tmp_path / "2")


def test_a_built_dataset_of_ours_can_be_imported_again(tmp_path: Path, samples: Path) -> None:
    """A folder that load_dataset takes: splits are named, and what is left out is said."""
    built = HUB_DATASETS["human_rationales"].build(["sst"], out=tmp_path, source=samples / "human_rationales").folder
    words = [
        "--from",
        str(built),
        "--config",
        "sst",
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
    assert "split: train (left out: validation, test; --split SPLIT=SPLIT takes them)" in done.stderr
    done = typed(
        *words, "--label", "label", "--out", str(tmp_path / "all"), "--split", "val=validation", "--split", "test=test"
    )
    assert "sst-again: val 3, test 4; labels" in done.stdout and (tmp_path / "all/sst-again/val.jsonl").is_file()


def test_shares_of_one_file(tmp_path: Path) -> None:
    """Every row in one split, equal texts in the same, and the same ones each time."""
    rows = [{**GOOD, "tokens": [f"text{number % 200}", "fine", "film"], "id": str(number)} for number in range(400)]
    write_lines(tmp_path / "rows.jsonl", rows)
    words = ["--from", str(tmp_path / "rows.jsonl"), "--name", "mine", "--tokens", "tokens", "--mask", "mask"]
    words += ["--label", "label", "--id", "id"]
    splits = ["--split", "test=20%", "--split", "val=10%"]
    held = []
    for out in (tmp_path / "one", tmp_path / "two"):
        done = typed(*words, *splits, "--out", str(out))
        assert done.exit_code == 0, done.output
        held.append(
            {
                split: {row["annotation_id"] for row in rows_of(out / "mine", split)}
                for split in ("train", "val", "test")
            }
        )
        assert "stand in several splits" not in done.stderr
    one = held[0]
    assert (
        one == held[1]
        and sum(map(len, one.values())) == 400
        and set().union(*one.values()) == {row["id"] for row in rows}
    )
    assert (len(one["test"]), len(one["val"])) == (80, 40)
    assert all(str((int(name) + 200) % 400) in names for names in one.values() for name in names)
    for share in ("0%", "100%", "x%", "-1%"):
        assert typed(*words, "--split", f"test={share}", "--out", str(tmp_path / "out")).exit_code == 2
    with pytest.raises(DataError, match="expected shares of less than 100% together"):
        parted(source([GOOD]), {"test": 0.5, "val": 0.5}, ["tokens"])


# ---------------------------------------------------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"mask": [0, 1]}, r"rows:1: mask: expected 3 marks, one a token, found 2"),
        ({"mask": [0, 2, 0]}, r"mask\[1\]: expected 0 or 1, found 2"),
        ({"mask": [0, "1", 0]}, "mask"),
        ({"mask": [[0, 1, 0], [0, 1]]}, r"mask\[1\]: expected 3 marks"),
        ({"mask": 3}, "mask: expected a list of 0 and 1, found 3"),
        ({"mask": "a *fine film"}, "found an asterisk without its partner"),
        ({"mask": "a *good* film"}, "found 'good' in place of 'fine'|found 'good. film' in place of 'fine film'"),
        ({"mask": "a *fine*"}, "found no ' film' at its end"),
        ({"tokens": ["a b", "c", "d"]}, r"tokens\[0\]: expected a token without a blank, found 'a b'"),
        ({"tokens": ["a", "", "d"]}, r"tokens\[1\]: expected a token without a blank, found ''"),
        ({"tokens": ["a", "b\nc", "d"]}, r"tokens\[1\]: expected a token"),
        ({"tokens": ["a", None, "d"]}, r"tokens\[1\]: expected a token"),
        ({"tokens": "a fine film"}, r"tokens: expected a list of tokens \(--text takes running text\)"),
        ({"tokens": None}, "tokens: expected a list of tokens"),
        ({"label": None}, "label: expected a label, found None"),
        ({"label": ""}, "label: expected a label, found ''"),
        ({"label": []}, "label: expected a label, found an empty list"),
        ({"label": {"x": 1}}, "label: expected a string or a whole number"),
        ({"label": float("nan")}, "label: expected a label, found nan"),
        ({"label": "\ud800"}, "label: expected a string"),
        ({"tokens": ["\ud800", "b", "c"]}, r"tokens\[0\]: expected a token"),
    ],
)  # fmt: skip
def test_a_cell_that_is_not_what_it_should_be(cells: Row, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        run([{**GOOD, **cells}], MASKS, tmp_path)
    assert not list(tmp_path.iterdir()) or not (tmp_path / "mine").exists()


@pytest.mark.parametrize(
    "spans",
    [[[-1, 2]], [[3, 2]], [[0, 99]], [["0", 2]], [[0, 1.5]], [[True, 2]], [[1, 2, 3]], "2-", "2-6,7", {"a": 1}, 3, [{"start": 1}], [[[[1, 2]]]]],
)  # fmt: skip
def test_spans_that_are_none(spans: object, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"rows:1: spans.*: expected"):
        run([{"text": "a fine film", "label": "x", "spans": spans}], SPANS, tmp_path)


def test_columns_that_are_not_there_and_ids_twice(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"rows:1: masks: expected the column, found \['tokens', 'mask', 'label'\]"):
        run([GOOD], Columns(("tokens",), ("masks",), "label"), tmp_path)
    with pytest.raises(DataError, match=r"rows:1: label\.x: expected the column"):
        run([GOOD], Columns(("tokens",), ("mask",), "label.x"), tmp_path)
    with pytest.raises(DataError, match=r"rows:2: id: expected each id once, found 'a' again \(first on line 1\)"):
        run([{**GOOD, "id": "a"}, {**GOOD, "id": "a"}], Columns(("tokens",), ("mask",), "label", id="id"), tmp_path)
    with pytest.raises(DataError, match=r"expected 3 annotators, as in the other texts of the row, found 2"):
        rows = [{**GOOD, "mask": [[0, 1, 0]] * 2, "more": [[0, 1, 0]] * 3}]
        run(rows, Columns(("tokens", "tokens"), ("mask", "more"), "label"), tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.txt", b"x", r"expected a file ending in \.jsonl, \.ndjson"),
        ("rows.jsonl", b'{"tokens": \n', r"rows\.jsonl:1: expected a whole JSON object"),
        ("rows.jsonl", json.dumps(GOOD).encode() + b"\n\n", r"rows\.jsonl:2: expected a JSON object, found an empty line"),
        ("rows.jsonl", b"\xff\n", r"rows\.jsonl:1: expected UTF-8"),
        ("rows.jsonl", b"", "expected at least one row that can be taken, found none"),
        ("rows.json", b"3", "expected a list of rows, or an object of rows, found 3"),
        ("rows.json", b"[3]", r"rows\.json:1: expected an object, found 3"),
        ("rows.json", b"[" * 3000, "nested too deeply|expected a JSON object"),
        ("rows.csv", b"tokens,tokens\n1,2\n", r"rows\.csv:1: expected each column once"),
        ("rows.csv", b"tokens,mask,label\n1,2\n", r"rows\.csv:2: expected 3 fields, found 2"),
        ("rows.csv", b'tokens,mask,label\n"a,b\n', r"rows\.csv:\d: is no CSV"),
        ("rows.csv", b"tokens,mask,label\n\xff,1,x\n", r"rows\.csv:2: expected UTF-8"),
        ("rows.parquet", b"PAR1", r"rows\.parquet: cannot be read as Parquet"),
    ],
)  # fmt: skip
def test_files_that_are_not_in_order(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        import_corpus({"train": source_of_file(tmp_path / name)}, "mine", MASKS, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_folder_of_others_is_replaced(tmp_path: Path) -> None:
    target = run([GOOD], MASKS, tmp_path).folder
    with pytest.raises(DataError, match=r"mine: expected no such folder yet, or an empty one; --force replaces it"):
        run([GOOD], MASKS, tmp_path)
    run([{**GOOD, "label": "new"}], MASKS, tmp_path, force=True)
    assert rows_of(target)[0]["classification"] == 0 and "new" in (target / "corpus.yaml").read_text()
    (target / "corpus.yaml").unlink()
    with pytest.raises(DataError, match="expected a corpus folder to replace"):
        run([GOOD], MASKS, tmp_path, force=True)
    assert (target / "train.jsonl").is_file()


@pytest.mark.parametrize("name", ["../up", "a/b", "movies", "", ".", "documents", "a b"])
def test_names_that_no_corpus_can_have(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="--name: expected"):
        import_corpus({"train": source([GOOD])}, name, MASKS, tmp_path / "out")


@pytest.mark.parametrize("splits", [("all",), ("docs",), ("a b",), ("../x",), ("val", "validation")])
def test_splits_that_no_dataset_can_have(splits: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="--split: expected"):
        import_corpus({split: source([GOOD]) for split in splits}, "mine", MASKS, tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "expected one of --tokens, --text"),
        ("--tokens t --text t --mask m", "found --tokens and --text"),
        ("--tokens t", "expected one of --mask, --spans, --quotes"),
        ("--tokens t --tokens u --mask m", "expected it as often as --tokens (2), found it 1 times"),
        ("--tokens t --mask m --offsets tokens", "it goes with --spans"),
        ("--text t --spans m --offsets words", "expected one of tokens, characters, sentences"),
        ("--tokens t --mask m --tokenizer characters", "it goes with --text"),
        ("--tokens t --mask m --annotators all", "expected one of groups, majority"),
        ("--tokens t --mask m --split x", "expected SPLIT=FILE, found 'x'"),
        ("--tokens t --mask m --split train=x.jsonl", "expected other splits than train, which is --from"),
    ],
)  # fmt: skip
def test_bad_usage(words: str, said: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "rows.jsonl", [GOOD])
    done = typed(
        "--from", str(path), "--name", "mine", "--label", "label", "--out", str(tmp_path / "out"), *words.split()
    )
    assert done.exit_code == 2 and said in " ".join(done.stderr.replace("│", " ").split())


def test_no_such_file_and_no_such_dataset(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        source_of_file(tmp_path / "nothing.jsonl")
    with pytest.raises(DataError, match="nothing: expected a file, a dataset's folder, or a dataset of the Hub"):
        sources_of_dataset(str(tmp_path / "nothing"), None, None)


# --------------------------------------------------------------------------------------------------------- the whole way
def test_the_hatexplain_shape_to_annotator_agreement(tmp_path: Path, samples: Path) -> None:
    files = samples / "any_corpus"
    done = typed(
        "--from", str(files / "hatexplain_train.json"), "--split", f"test={files / 'hatexplain_test.json'}", "--name", "village",
        "--tokens", "post_tokens", "--mask", "rationales", "--label", "annotators.label", "--out", str(tmp_path),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "village: train 18, test 9; labels hatespeech, normal, offensive" in done.stdout
    assert "their labels tie: 1 (hatexplain_train.json:19)" in done.stderr
    built = HUB_DATASETS["eraser"].build(None, out=tmp_path / "hub", source=tmp_path).folder
    rows = datasets.Dataset.from_parquet(str(built / "annotators/village.parquet"), cache_dir=str(tmp_path / "cache"))
    metric = Path(eraser_hub.__file__).parents[1] / "metrics/annotator_agreement.py"
    result = evaluate.load(str(metric)).compute(references=rows)
    assert result["comparisons"] == sum(map(len, rows["annotators"])) and 0.5 < result["cohen_kappa"] < 1
    tables = {table.name: table for table in HUB_DATASETS["eraser"].stats(built).tables}
    (row,) = tables["table_2"].cells()
    assert f"{result['f1']:.3f}" in str([str(each) for each in row[1]])
