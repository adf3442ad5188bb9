"""Each violation, put into a folder without a fault, is found under its own name, with the record that has it."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.cli import show_result
from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.checks import Finding, Report, SplitReport
from eraser_hub.conversion.eraser.verbs import VERBS
from eraser_hub.metrics.plain import split_tokens
from eraser_hub.records.errors import DataError

from ...command_line import invoke
from ...refusals import refused

_spec = importlib.util.spec_from_file_location("built_by_hand", Path(__file__).with_name("built.py"))
assert _spec is not None and _spec.loader is not None
built = importlib.util.module_from_spec(_spec)
sys.modules["built_by_hand"] = built
_spec.loader.exec_module(built)

Splits = dict[str, list[dict[str, Any]]]


def levels(report: Report) -> dict[str, tuple[str, int]]:
    """Check -> level and count."""
    return {found.check: (found.level, found.count) for split in report.splits for found in split.findings}


def words(report: Report, check: str) -> str:
    return " / ".join(e for s in report.splits for f in s.findings if f.check == check for e in f.examples)


def test_a_folder_without_a_fault(tmp_path):
    report = VERBS.check(built.write_built(tmp_path / "eraser", built.rows()))
    assert levels(report) == {}
    assert report.violations == 0
    splits = [s for s in report.splits if s.documents is not None]
    assert {s.config for s in splits} == {"movies"}
    sizes = [(s.split, s.rows, s.documents) for s in splits]
    assert sizes == [("train", 3, 3), ("validation", 2, 2), ("test", 1, 1)]


def span(rows: Splits, **changes: Any) -> None:
    rows["train"][1]["evidences"][0][0].update(changes)


def _another_document(rows: Splits) -> None:
    rows["train"][1]["documents"].append({"docid": "t1.txt", "text": "x"})
    rows["train"][1]["rationale_positions"].append([])


def _add(rows: Splits, split: str, name: str, text: str) -> None:
    rows[split].append(built.row(name, text, [], position=9, docid="t0.txt"))


SEEDED: list[tuple[str, Callable[[Splits], Any], str]] = [
    ("ids", lambda r: r["train"][1].update(annotation_id="t0"), "'t0' stands 2 times"),
    ("labels", lambda r: r["train"][1].update(classification=2), "'t1': label 2"),
    ("labels", lambda r: r["train"][1].update(classification=-1), "'t1': label -1"),
    ("labels", lambda r: r["train"][1].update(classification=None), "'t1'"),
    ("spans", lambda r: span(r, end_token=10_000), "[0, 10000) of 8 tokens"),
    ("spans", lambda r: span(r, start_token=-3), "'t1': 't1.txt' [-3, 2)"),
    ("spans", lambda r: span(r, start_token=2, end_token=1), "[2, 1)"),
    ("spans", lambda r: span(r, start_token=None), "[-2147483648, 2)"),
    ("evidence documents", lambda r: span(r, docid="t0.txt"), "'t1': 't0.txt' [0, 2)"),
    ("clipped text", lambda r: span(r, text="a dul"), "text 'a dul', tokens 'a dull'"),
    ("evidence text", lambda r: span(r, text="a Dull"), "text 'a Dull'"),
    ("evidence text", lambda r: span(r, text=""), "text ''"),
    ("evidence text", lambda r: r["train"][2]["evidences"][1][0].update(text="salt ,  with"), "'salt ,  with'"),
    ("rationale_positions", lambda r: r["train"][1]["rationale_positions"][0].pop(), "'t1'"),
    ("rationale_positions", lambda r: r["train"][1]["rationale_positions"][0].append(7), "'t1'"),
    ("rationale_positions", lambda r: r["train"][1]["rationale_positions"][0].__setitem__(0, 2), "'t1'"),
    ("rationale_positions", lambda r: r["train"][1]["rationale_positions"].append([]), "'t1'"),
    ("rationale_positions", lambda r: r["train"][1].update(rationale_positions=[]), "'t1'"),
    ("rationale", lambda r: r["train"][1].update(rationale="a dull"), "'t1'"),
    ("rationale", lambda r: r["train"][1].update(rationale="long … a dull"), "'t1'"),
    ("num_tokens", lambda r: r["train"][1].update(num_tokens=9), "'t1'"),
    ("num_sentences", lambda r: r["train"][1].update(num_sentences=1), "'t1'"),
    ("rationale_ratio", lambda r: r["train"][1].update(rationale_ratio=0.5), "'t1'"),
    ("rationale_ratio", lambda r: r["train"][1].update(rationale_ratio=float("nan")), "'t1'"),
    ("missing values", lambda r: r["train"][1].update(num_tokens=None), "num_tokens is null"),
    ("missing values", lambda r: r["train"][1].update(annotation_id=None), "annotation_id is null"),
    ("position", lambda r: r["train"][1].update(position=1), "1 twice"),
    ("document names", _another_document, "'t1': a document twice".replace("'", "")),
    ("document texts", lambda r: _add(r, "train", "t9", "another ."), "'t0.txt'"),
    (
        "documents shared by train and test",
        lambda r: _add(r, "test", "s1", built.TEXTS[0]),
        "train and test: 1, e.g. 't0.txt'",
    ),
    ("document texts", lambda r: _add(r, "test", "s1", "else ."), "'t0.txt'"),
]


@pytest.mark.parametrize(("check", "spoil", "said"), SEEDED, ids=[f"{k}-{e[0]}" for k, e in enumerate(SEEDED)])
def test_a_seeded_violation_is_found(tmp_path, check, spoil, said):
    rows = built.rows()
    spoil(rows)
    report = VERBS.check(built.write_built(tmp_path / "eraser", rows))
    found = levels(report)
    assert found.get(check, ("", 0))[0] == "violation", found
    assert said in words(report, check)
    assert report.violations > 0


@pytest.mark.parametrize(
    ("changes", "mentions"),
    [
        ({"splits": [{"name": "train", "num_examples": 814}]}, ("movies/train: ", "814 rows", " 3")),
        ({"splits": [{"name": "dev", "num_examples": 4}]}, ("movies/dev: ", "dataset_info", "configs")),
        ({"features": [{"name": "annotation_id", "dtype": "string"}]}, ("column classification",)),
        ({"features": None}, ("movies: ", "features")),
        ({"config_name": "films"}, ("movies: ", "dataset_info")),
    ],
)
def test_a_card_that_does_not_tell_the_truth(tmp_path, changes, mentions):
    report = VERBS.check(built.write_built(tmp_path / "eraser", built.rows(), **changes))
    assert levels(report)["card"][0] == "violation"
    assert all(each in words(report, "card") for each in mentions)


def test_a_card_with_other_types(tmp_path):
    folder = built.write_built(tmp_path / "eraser", built.rows())
    path = folder / "movies" / "test-00000-of-00001.parquet"
    table = pq.read_table(path)
    place = table.column_names.index("num_tokens")
    table = table.set_column(place, "num_tokens", table["num_tokens"].cast(pa.int64()))
    pq.write_table(table.replace_schema_metadata({b"huggingface": b"{}"}), path)
    said = words(VERBS.check(folder), "card")
    assert all(each in said for each in ("num_tokens", "int32", "int64", "`huggingface`"))


@pytest.mark.parametrize(
    ("config", "split", "check", "spoil"),
    [
        ("cose", "validation", "clipped text", lambda r: r["evidences"][0][0].update(text="ang\u200b twice")),
        ("movies", "test", "empty spans", lambda r: r.update(built.row("e", "a b c", [(0, 1), (1, 1)], position=9))),
        ("movies", "train", "no evidence", lambda r: r.update(built.row("e", "a b c", [], position=9))),
        ("fever", "train", "repeated spans", lambda r: r.update(built.row("e", "a b c", [(0, 1), (0, 1)], position=9))),
    ],
)
def test_a_listed_quirk_is_named_and_is_no_violation(tmp_path, config, split, check, spoil):
    rows = built.rows()
    spoil(rows[split][0])
    if config == "cose":  # its positions follow the tokens, its rationale the clipped text
        evidence = rows[split][0]["evidences"][0][0]
        positions = list(range(evidence["start_token"], evidence["end_token"]))
        ratio = float(np.float32(len(positions) / rows[split][0]["num_tokens"]))
        rows[split][0].update(rationale="ang\u200b twice", rationale_positions=[positions], rationale_ratio=ratio)
    report = VERBS.check(built.write_built(tmp_path / "eraser", rows, config))
    assert levels(report) == {check: ("quirk", 1)}
    assert report.violations == 0


def test_the_same_elsewhere_is_a_note_or_a_violation(tmp_path):
    rows = built.rows()
    rows["train"][0] = built.row("t0", built.TEXTS[0], [(0, 1), (1, 1), (0, 1)])
    rows["train"][1]["evidences"][0][0]["text"] = "clipped"
    rows["train"][1]["rationale"] = "clipped … ."
    report = VERBS.check(built.write_built(tmp_path / "eraser", rows, "multirc"))
    notes = dict.fromkeys(("empty spans", "repeated spans"), ("note", 1))
    assert levels(report) == {**notes, "evidence text": ("violation", 1)}


@pytest.mark.parametrize(("first", "behind"), [(0, 3), (1, 0), (-1, 1), (0, 2), (500, 501)])
def test_sentence_offsets_are_a_guess_that_is_right_for_most_spans(tmp_path, first, behind):
    rows = built.rows()
    for each in rows["train"]:
        for group in each["evidences"]:
            group[0].update(start_sentence=0, end_sentence=1)
    span(rows, start_sentence=first, end_sentence=behind)
    report = VERBS.check(built.write_built(tmp_path / "one" / "eraser", rows))
    assert levels(report) == {"sentence offsets": ("note", 1)}
    assert f"sentences [{first}, {behind}), tokens lie in [0, 1)" in words(report, "sentence offsets")
    for each in rows["train"]:
        for group in each["evidences"]:
            group[0].update(start_sentence=first, end_sentence=behind)
    report = VERBS.check(built.write_built(tmp_path / "all" / "eraser", rows))
    assert levels(report)["sentence offsets of most spans"] == ("violation", 6)


def test_boolq_may_share_documents_and_the_others_may_not(tmp_path):
    rows = built.rows()
    rows["test"].append(built.row("s1", built.TEXTS[0], [], position=2, docid="t0.txt"))
    rows["test"][-1]["evidences"] = rows["train"][0]["evidences"]
    rows["test"][-1] = {**rows["train"][0], "annotation_id": "s1", "position": 2}
    rows["validation"] = rows.pop("train")
    check = "documents shared by validation and test"
    assert levels(VERBS.check(built.write_built(tmp_path / "a" / "eraser", rows, "boolq"))) == {check: ("quirk", 1)}
    others = levels(VERBS.check(built.write_built(tmp_path / "b" / "eraser", rows, "fever")))
    assert others[check] == ("violation", 1)
    rows["train"] = rows.pop("validation")
    of_train = levels(VERBS.check(built.write_built(tmp_path / "c" / "eraser", rows, "boolq")))
    assert of_train["documents shared by train and test"] == ("violation", 1)


def test_an_extra_split_may_share_documents_and_it_is_said(tmp_path):
    rows = built.rows()
    rows["dev"] = [{**rows["train"][0], "annotation_id": "d"}]
    assert levels(VERBS.check(built.write_built(tmp_path / "eraser", rows, "fever"))) == {
        "shared with an extra split": ("note", 1)
    }


def test_documents_beside(tmp_path):
    folder = built.write_built(tmp_path / "eraser", built.rows())
    (folder / "documents" / "movies.parquet").unlink()
    assert "movies.parquet: no such file" in words(VERBS.check(folder), "documents beside")
    table = pa.table({"docid": ["x", "x", "t0.txt"], "text": ["a", "a", "b"]})
    pq.write_table(table, folder / "documents" / "movies.parquet")
    report = VERBS.check(folder)
    assert "'t0.txt' is one of train's" in words(report, "documents beside")
    assert "'x' stands 2 times" in words(report, "documents beside")


@pytest.mark.parametrize(
    ("harm", "mentioned"),
    [
        ("no card", "README.md"),
        ("no yaml", "README.md"),
        ("bad yaml", "README.md"),
        ("no file", "movies/train-*.parquet"),
        ("not parquet", "train-00000-of-00001.parquet"),
        ("no column", "evidences"),
        ("unknown config", "'films'"),
    ],
)
def test_a_folder_that_cannot_be_read(tmp_path, harm, mentioned):
    folder = built.write_built(tmp_path / "eraser", built.rows())
    path = folder / "movies" / "train-00000-of-00001.parquet"
    configs = None
    if harm == "no card":
        (folder / "README.md").unlink()
    elif harm == "no yaml":
        (folder / "README.md").write_text("Words.")
    elif harm == "bad yaml":
        (folder / "README.md").write_text("---\na: [\n---\n")
    elif harm == "no file":
        path.unlink()
    elif harm == "not parquet":
        path.write_bytes(path.read_bytes()[:-300])
    elif harm == "no column":
        pq.write_table(pq.read_table(path).drop_columns(["evidences"]), path)
    else:
        configs = ["films"]
    with refused(mentioned):
        VERBS.check(folder, configs)


def test_damaged_parquet_is_an_error_or_a_finding(tmp_path):
    """Flipped and cut files end in a DataError or in a report, never in another exception."""
    from eraser_hub.conversion.eraser.statistics import compute_statistics

    folder = built.write_built(tmp_path / "eraser", built.rows())
    path = folder / "movies" / "train-00000-of-00001.parquet"
    whole, random = path.read_bytes(), np.random.default_rng(0)
    unreadable = 0
    for k in range(150):
        content = bytearray(whole)
        for place in random.integers(0, len(content), size=1 + k % 3):
            content[place] = random.integers(0, 256)
        path.write_bytes(bytes(content[: int(random.integers(1, len(content)))] if k % 5 == 0 else content))
        for look in (lambda: VERBS.check(folder), lambda: compute_statistics(folder)):
            try:
                look()
            except DataError:
                unreadable += 1
    assert unreadable > 100


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("classification", ["NEG", "POS", "NEG"]),
        ("num_tokens", [1.5] * 3),
        ("evidences", [[], [], []]),
        ("documents", [[{"docid": "a"}]] * 3),
        ("annotation_id", [1, 2, 3]),
    ],
)
def test_a_column_of_another_kind_is_an_error(tmp_path, column, values):
    folder = built.write_built(tmp_path / "eraser", built.rows())
    path = folder / "movies" / "train-00000-of-00001.parquet"
    table = pq.read_table(path)
    pq.write_table(table.set_column(table.column_names.index(column), column, pa.array(values)), path)
    with refused(f"column {column} ", file=path):
        VERBS.check(folder)


def test_findings_cannot_steer_the_terminal(capsys):
    finding = Finding("labels", "violation", 1, ("a\x1b]0;title\x07",))
    show_result(Report("eraser", Path("hub"), [SplitReport("movies", "train\x1b[2J", 1, 1, [finding])]))
    shown = capsys.readouterr().out
    assert "a␛]0;title␇" in shown and "train␛[2J" in shown and "\x1b" not in shown and "\x07" not in shown


def test_the_command_line(tmp_path, monkeypatch):
    good = built.write_built(tmp_path / "good" / "eraser", built.rows())
    monkeypatch.chdir(tmp_path)
    result = invoke(["check", "--dataset", str(good)])
    assert result.exit_code == 0 and "no violation" in result.output
    rows = built.rows()
    rows["train"][1]["classification"] = 7
    bad = built.write_built(tmp_path / "bad" / "eraser", rows)
    result = invoke(["check", "--dataset", str(bad), "--config", "movies"])
    assert result.exit_code == 1 and "label 7" in result.output and "1 violations" in result.output
    result = invoke(["check", "--dataset", str(bad), "--format", "json"])
    assert result.exit_code == 1 and json.loads(result.stdout)["violations"] == 1
    of_good = ["--dataset", str(good)]
    for arguments in (
        ["films"],
        ["--dataset", "nowhere"],
        [*of_good, "--format", "x"],
        [*of_good, "--config", "films"],
    ):
        assert invoke(["check", *arguments]).exit_code == 2, arguments
    assert invoke(["check"]).exit_code == 2


SENTENCE = st.lists(st.sampled_from(["sea", "a", "é", ".", "a a"]), min_size=1, max_size=5).map(" ".join)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.lists(SENTENCE, min_size=1, max_size=4), min_size=1, max_size=5), st.data())
def test_any_rows_made_the_plain_way_have_no_violation(tmp_path_factory, documents, data):
    rows = []
    for k, lines in enumerate(documents):
        count = len(split_tokens("\n".join(lines)))
        spans = data.draw(st.lists(st.tuples(st.integers(0, count), st.integers(0, count)).map(sorted), max_size=4))
        rows.append(built.row(f"r{k}", "\n".join(lines), [tuple(s) for s in spans], position=k + 1))
    folder = built.write_built(tmp_path_factory.mktemp("any") / "eraser", {"train": rows}, "multirc")
    assert VERBS.check(folder).violations == 0


# -- the samples, the real files --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sample_report(samples, tmp_path_factory) -> Report:
    out = tmp_path_factory.mktemp("hub")
    return VERBS.check(HUB_DATASETS["eraser"].build(None, out=out, source=samples / "eraser").folder)


def test_the_samples_have_every_listed_quirk_and_no_violation(sample_report):
    from eraser_hub.conversion.eraser.check import QUIRKS

    assert sample_report.violations == 0 and sample_report.errors == []
    found = {(s.config, s.split, f.check) for s in sample_report.splits for f in s.findings if f.level == "quirk"}
    for config, split, check in QUIRKS:
        assert any(c == config and (split in ("*", s)) and k == check for c, s, k in found), (config, split, check)


def test_the_real_corpora(corpora):
    """19 clipped texts in cose's val."""
    report = HUB_DATASETS["eraser"].check(corpora)
    assert report.violations == 0
    found = {(s.config, s.split, f.check): f.count for s in report.splits for f in s.findings}
    assert found == {
        ("movies", "train", "no evidence"): 1,
        ("fever", "validation", "repeated spans"): 9,
        ("cose", "validation", "clipped text"): 19,
    }
    sizes = {(s.config, s.split): (s.rows, s.documents) for s in report.splits}
    assert sizes["movies", "train"][0] == 1600 and sizes["multirc", "validation"] == (3214, 56)


# -- files and digests ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dataset", HUB_DATASETS)
def test_each_data_file_that_is_lost_changed_or_added_is_named(samples, tmp_path, dataset):
    folder = HUB_DATASETS[dataset].build(None, out=tmp_path, source=samples / dataset).folder
    assert not HUB_DATASETS[dataset].check(folder).violations
    path = sorted(folder.glob("*/*.parquet"))[0]
    shutil.copyfile(path, path.with_name("mine.parquet"))
    beside = next(folder.glob("[dr]*[sd]s/*.parquet"), None)  # documents or records
    if beside is not None:
        beside.write_bytes(beside.read_bytes() + b"x")
    said = words(HUB_DATASETS[dataset].check(folder), "files")
    assert "mine.parquet: not written by build" in said
    assert beside is None or f"{beside.name}: its content is not what build wrote" in said


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"start_token": 0', '"start_token": 1'),
        ('"text": "', '"text": "x'),
    ],
)
def test_a_released_file_whose_evidence_is_not_its_tokens_is_told(corpora, tmp_path, old, new):
    shutil.copytree(corpora / "cose", tmp_path / "cose")
    path = tmp_path / "cose" / "val.jsonl"
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")
    assert HUB_DATASETS["eraser"].check(tmp_path).violations
