"""The board's Space without a browser: the page that it serves, the files that it takes and refuses, a private gold."""

from __future__ import annotations

import importlib
import json
import random
import re
import shutil
import sys
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest

from eraser_hub.reports.board import collect_board_lines, write_board
from eraser_hub.reports.board_lines import BoardLine
from eraser_hub.reports.space import write_space

from ..refusals import refused

gradio = pytest.importorskip("gradio", reason="skipped: gradio is not installed")
PREDICTIONS = Path(__file__).resolve().parents[2] / "samples" / "predictions" / "eraser" / "movies.val.jsonl"


def make_lines() -> list[BoardLine]:
    scores = {"auprc": 0.25, "token_macro_f1": 0.5, "token_macro_p": 0.5, "accuracy": 1.0, "sufficiency": 0.1}
    return collect_board_lines(
        [
            BoardLine("ours", "movies", split, "scored", "scored here", "sig|1", scores)
            for split in ("validation", "test")
        ]
    )


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    """The app and the scoring of a Space, imported from its folder as a Space does."""
    folder = tmp_path_factory.mktemp("space")
    write_space(folder, make_lines())
    names = ("board_scoring", "app")
    sys.path.insert(0, str(folder))
    try:
        scoring, app = map(importlib.import_module, names)
    finally:
        sys.path.remove(str(folder))
    yield SimpleNamespace(app=app, scoring=scoring, folder=folder)
    for name in names:
        del sys.modules[name]


@pytest.fixture
def client(space):
    from starlette.testclient import TestClient

    return TestClient(space.app.make_app())


# -- what is served ---------------------------------------------------------------------------------------------------


def test_the_space_serves_the_boards_own_page_with_a_link_to_submit(client, tmp_path):
    files = write_board(tmp_path, make_lines())
    page = client.get("/").text
    (link,) = (line for line in page.splitlines(keepends=True) if "submit/" in line)
    assert page.replace(link, "") == files[0].read_text("utf-8")
    assert '<a href="submit/">Submit a system</a>' in link
    for file in files[1:]:
        assert client.get(f"/{file.name}").content == file.read_bytes(), file.name
    assert client.get("/feed.xml").headers["content-type"] == "application/rss+xml"
    assert client.head("/").status_code == 200


def test_submit_lies_beside_it_and_nothing_else_does(client):
    answer = client.get("/submit", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "./submit/"), "no address that loses https"
    assert "gradio" in client.get("/submit").text
    behind = {"x-forwarded-host": "org-board.hf.space", "x-forwarded-proto": "https"}
    assert client.get("/submit/config", headers=behind).json()["root"] == "https://org-board.hf.space/submit"
    for path in ("/app.py", "/settings.json", "/docs", "/openapi.json", "/../settings.json", "/submit/settings.json"):
        assert client.get(path).status_code == 404, path


# -- what is scored ---------------------------------------------------------------------------------------------------


def test_a_line_ends_at_a_newline_alone(space, tmp_path):
    rows = [{"annotation_id": "one\u2028two\x85three"}, {"annotation_id": "b"}]
    path = tmp_path / "p.jsonl"
    path.write_bytes("\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode())
    assert space.scoring.read_predictions(path) == rows


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff", "Expected UTF-8 text."),
        (b"", "an empty file"),
        (b"{}\n[]", "Line 2: expected a JSON object, found list."),
        (b"[" * 100_000, "Line 1: expected a JSON object."),
        (b'{"a": ' + b"9" * 5000 + b"}", "Line 1: expected a JSON object."),
        (bytes(2000), "The file is larger than 0 MB."),
    ],
)
def test_a_file_that_is_none_is_refused_in_words(space, tmp_path, monkeypatch, content, words):
    monkeypatch.setattr(space.scoring, "MOST_BYTES", 200_000 if content != bytes(2000) else 1000)
    path = tmp_path / "p.jsonl"
    path.write_bytes(content)
    with pytest.raises(gradio.Error, match=words):
        space.app.submit(str(path), "movies", "val")


def test_an_unknown_config_is_named(space, tmp_path, monkeypatch):
    monkeypatch.setenv("BOARD_DATASET", str(tmp_path))
    path = tmp_path / "p.jsonl"
    path.write_text('{"annotation_id": "a"}\n')
    with pytest.raises(gradio.Error, match="no_such_config, validation: "):
        space.app.submit(str(path), "no_such_config", "val")
    with pytest.raises(gradio.Error, match="Choose a predictions file"):
        space.app.submit(None, "movies", "val")
    for config, split in (("movies", "validation[:1]"), ("movies", ""), ("../x", "test"), ("movies", "train+test")):
        with pytest.raises(gradio.Error, match=r"Expected the name of a (config|split)"):
            space.app.submit(str(path), config, split)


def test_a_file_stands_beside_the_lines_of_its_data(space, monkeypatch):
    same = {"kind": "scored", "dataset": "d", "split": "test", "status": "verified", "scores": {"auprc": 0.5}}
    names = ("same", "other data", "other split", "a paper's")
    rows = [{"system": name, **same, "data": 64 * "a"} for name in names]
    rows[1]["data"], rows[2]["split"], rows[3]["kind"] = 64 * "b", "validation", "published"
    monkeypatch.setattr(space.scoring, "BOARD", {**space.scoring.BOARD, "rows": rows})
    scores, signature = {"auprc": 0.123456789, "token_macro_p": 1.0}, "eraser_agreement|data:aaaaaaaaaaaa|split:test"
    shown = space.scoring.place_beside(" mine ", "d", "test", scores, signature)
    assert shown["headers"] == ["System", "AUPRC ↑", "Status"]
    assert shown["data"] == [["mine (this file)", 0.1235, "not submitted"], ["same", 0.5, "verified"]]
    alone = space.scoring.place_beside("", "d", "test", scores, "eraser_agreement|split:test")
    assert [line[0] for line in alone["data"]] == ["your system (this file)"], "unknown data are beside no others"


def test_whose_dataset_it_takes(space, monkeypatch, tmp_path):
    scoring = space.scoring
    monkeypatch.setattr(scoring, "HERE", tmp_path / "results_board")
    assert scoring.find_place("eraser", "my-org/eraser") == "my-org/eraser"
    with pytest.raises(scoring.Refused, match=r"does not know whose eraser to take.*publish --namespace ORG"):
        scoring.find_place("eraser", None)
    monkeypatch.setattr(scoring, "NAMESPACE", "org")
    assert scoring.find_place("eraser", None) == "org/eraser"
    beside = tmp_path / "eraser"
    beside.mkdir()
    (beside / "README.md").write_text("x")
    assert scoring.find_place("eraser", None) == str(beside)


# -- a private gold ---------------------------------------------------------------------------------------------------


@pytest.fixture
def private(space, hub, spaces, monkeypatch):
    """The Space scores ``movies.validation`` on a private dataset; its public dataset cannot be read."""
    monkeypatch.setenv("BOARD_GOLD", str(hub / "eraser"))
    monkeypatch.setenv("BOARD_GOLD_SPLITS", "boolq.test, movies.validation")
    monkeypatch.setenv("BOARD_DATASET", "/nowhere")
    monkeypatch.setenv("BOARD_METRICS", f"{spaces}/")
    monkeypatch.setattr(space.scoring, "_memory", {})
    return space


def change_gold(hub: Path, folder: Path, change) -> Path:
    """Copy the dataset; ``change`` takes and gives back the rows of movies' validation split."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    copy = Path(shutil.copytree(hub / "eraser", folder / "eraser"))
    (file,) = (copy / "movies").glob("validation-*.parquet")
    table = pq.read_table(file)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), file)
    # `datasets` keeps rows by the card, not by the content of local files
    card = (copy / "README.md").read_text("utf-8")
    changed = re.sub(r"(?m)^( +version: ).*$", rf"\g<1>9.9.{random.randrange(10**6)}", card)
    assert changed != card
    (copy / "README.md").write_text(changed, "utf-8")
    return copy


def move_gold(rows) -> None:
    """Give each row another label, and evidence at the first token alone."""
    for row in rows:
        row["classification"] = 1 - row["classification"]
        docid = row["documents"][0]["docid"]
        first = dict.fromkeys(("start_token", "start_sentence"), 0) | dict.fromkeys(("end_token", "end_sentence"), 1)
        row["evidences"] = [[{"docid": docid, "text": row["documents"][0]["text"].split()[0], **first}]]


def gold_tokens(evidences) -> int:
    """The tokens of all gold spans."""
    return sum(one["end_token"] - one["start_token"] for row in evidences for group in row for one in group)


def write_rows(path: Path, change=lambda rows: None) -> str:
    rows = [json.loads(line) for line in PREDICTIONS.read_text().splitlines()]
    change(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_of_a_private_gold_a_line_of_three_digits_leaves(private, hub, tmp_path, monkeypatch):
    line, scores, signature, note = private.app.submit(str(PREDICTIONS), "movies", "val", "Mine")
    shown = dict(scores["data"])
    assert {"auprc", "token_macro_f1", "accuracy", "sufficiency"} <= shown.keys()
    assert not {"token_macro_p", "exact_micro_f1"} & shown.keys(), "a part is shown, or what no line of the board has"
    assert all(value == round(value, 3) for value in shown.values())
    assert line["data"][0][0] == "Mine (this file)" and "|n:24|" in signature
    assert "private" in note and "2 more files of this system" in note
    monkeypatch.delenv("BOARD_GOLD")
    monkeypatch.setenv("BOARD_DATASET", str(hub / "eraser"))
    public = dict(private.app.submit(str(PREDICTIONS), "movies", "val", "")[1]["data"])
    assert {key: round(public[key], 3) for key in shown} == shown and len(public) > len(shown)


def test_files_of_a_system_are_counted_by_the_day(private, tmp_path, monkeypatch):
    monkeypatch.setenv("BOARD_STATE", str(tmp_path))
    days = iter(["2026-01-01"] * 4 + ["2026-01-02"] * 3)
    now = SimpleNamespace(now=lambda zone: datetime.fromisoformat(next(days)).replace(tzinfo=zone))
    monkeypatch.setattr(private.scoring, "datetime", now)
    monkeypatch.setattr(private.scoring, "timezone", timezone)
    count, key = private.scoring.count_submission, private.scoring.normalize_name
    assert key("Ours (v2)") == key(" OURS-v2") == key("ｏｕｒｓ v２") == "oursv2"
    assert [count("movies.test/ours"), count("movies.test/ours"), count("movies.test/ours")] == [2, 1, 0]
    monkeypatch.setattr(private.scoring, "_memory", {})  # the Space starts again
    with pytest.raises(private.scoring.Refused, match="3 files a day of one system"):
        count("movies.test/ours")
    assert count("movies.test/ours") == 2, "another day"
    monkeypatch.setenv("BOARD_DAILY_ALL", "2")
    count("movies.test/theirs")
    with pytest.raises(private.scoring.Refused, match="2 files a day are scored"):
        count("movies.test/third")


def test_a_private_split_needs_a_name_and_counts_before_it_scores(private, monkeypatch, tmp_path):
    with pytest.raises(gradio.Error, match="give the system a name"):
        private.app.submit(str(PREDICTIONS), "movies", "val", " ?! ")
    monkeypatch.setenv("BOARD_DAILY", "1")
    broken = write_rows(tmp_path / "p.jsonl", lambda rows: rows.pop())
    for _ in range(3):  # what fails without the gold does not count
        with pytest.raises(gradio.Error, match="annotation_id"):
            private.app.submit(broken, "movies", "val", "Mine")
    private.app.submit(str(PREDICTIONS), "movies", "val", "Mine")
    scored, compute = list[bool](), private.scoring.compute_scores

    def record(predictions, references, digits):
        scored.append(bool(gold_tokens(references["evidences"])))
        return compute(predictions, references, digits)

    monkeypatch.setattr(private.scoring, "compute_scores", record)
    with pytest.raises(gradio.Error, match="1 files a day of one system"):
        private.app.submit(str(PREDICTIONS), "movies", "val", "mine")
    private.app.submit(str(PREDICTIONS), "movies", "val", "another")
    assert scored == [False, False, True], "the gold is not read for a file too many"


WRONG = {
    "no such id": lambda rows: rows[0].update(annotation_id="../x"),
    "an id twice": lambda rows: rows.append(rows[0]),
    "missing ids": lambda rows: rows.__delitem__(slice(3)),
    "another label": lambda rows: [row.update(classification="NO") for row in rows],
    "no classes": lambda rows: [row.update(classification_scores={"A": 1.0}) for row in rows],
    "a span that is too long": lambda rows: rows[0]["rationales"][0].update(
        hard_rationale_predictions=[{"start_token": 0, "end_token": 10**6}]
    ),
    "another document": lambda rows: rows[0]["rationales"][0].update(docid="x"),
    "scores of another length": lambda rows: rows[0]["rationales"][0].update(soft_rationale_predictions=[0.5]),
    "texts in place of rationales": lambda rows: [row.update(rationales="x") for row in rows],
    "no rationales": lambda rows: [row.pop("rationales") for row in rows],
    "no rationale of a document": lambda rows: rows[0].update(rationales=[]),
}


def remove_first_gold(rows) -> None:
    """Take the evidence from the row of the predictions' first instance; move that of the others."""
    move_gold(rows)
    first = json.loads(PREDICTIONS.read_text().split("\n")[0])["annotation_id"]
    (row,) = (row for row in rows if row["annotation_id"] == first)
    row["evidences"] = []


@pytest.mark.parametrize("wrong", WRONG)
def test_an_error_is_the_same_whatever_the_gold_is(private, hub, tmp_path, monkeypatch, wrong):
    file, said = write_rows(tmp_path / "p.jsonl", WRONG[wrong]), list[str]()
    places = (hub / "eraser", change_gold(hub, tmp_path, remove_first_gold))
    one, other = (private.scoring.load_split(str(place), "movies", "validation") for place in places)
    for column in ("evidences", "classification"):
        assert all(a != b for a, b in zip(one[column], other[column], strict=True))
    for place in places:
        monkeypatch.setenv("BOARD_GOLD", str(place))
        with pytest.raises(gradio.Error) as raised:
            private.app.submit(file, "movies", "val", "Mine")
        said.append(str(raised.value))
    assert said[0] == said[1] and "eraser_" in said[0] and "Not scored" not in said[0], said
    assert private.scoring._memory == {}
    told = "every document counts as one that has evidence" in said[0]
    assert told == (wrong in ("no rationale of a document", "another document"))


def test_a_document_without_scores_is_refused_even_without_evidence_of_any(private, hub, tmp_path, monkeypatch):
    gold = change_gold(hub, tmp_path, lambda rows: [row.update(evidences=[]) for row in rows])
    monkeypatch.setenv("BOARD_GOLD", str(gold))
    file = write_rows(tmp_path / "p.jsonl", lambda rows: rows[0].update(rationales=[]))
    with pytest.raises(gradio.Error, match="The gold of this split is private, so every document counts"):
        private.app.submit(file, "movies", "val", "Mine")


def test_an_error_of_the_gold_goes_to_the_log_alone(private, hub, tmp_path, monkeypatch, capfd):
    broken = change_gold(hub, tmp_path, lambda rows: rows[3]["evidences"][0][0].update(end_token=987_654))
    monkeypatch.setenv("BOARD_GOLD", str(broken))
    with pytest.raises(gradio.Error, match="Not scored: an error in reading or in scoring the private gold") as raised:
        private.app.submit(str(PREDICTIONS), "movies", "val", "Mine")
    assert "987654" not in str(raised.value).replace(",", "")
    assert "987654" in capfd.readouterr().err.replace(",", "").replace("_", "")


def test_a_gold_that_cannot_be_read_gives_no_score(private, monkeypatch, tmp_path, hub):
    monkeypatch.setenv("BOARD_DATASET", str(hub / "eraser"))
    monkeypatch.setenv("BOARD_GOLD", str(tmp_path / "gone"))
    with pytest.raises(gradio.Error, match="Not scored: ") as raised:
        private.app.submit(str(PREDICTIONS), "movies", "val", "Mine")
    assert "gone" not in str(raised.value)
    monkeypatch.setenv("BOARD_GOLD_SPLITS", "test")
    assert private.app.submit(str(PREDICTIONS), "movies", "val", "Mine")[3] == "", "another split is public"


def test_a_private_gold_is_never_scored_by_the_public_path(private, hub, tmp_path, monkeypatch):
    """The dataset that the Space takes anyway is the private one: all its splits are private."""
    monkeypatch.setenv("BOARD_GOLD_SPLITS", "test")
    (tmp_path / "link").symlink_to(hub)
    for place in (f"{hub}/eraser", f"{hub}/eraser/", f"{tmp_path}/link/eraser"):
        monkeypatch.setenv("BOARD_DATASET", place)
        with pytest.raises(gradio.Error, match="give the system a name"):
            private.app.submit(str(PREDICTIONS), "movies", "val", "")
    shown = private.app.submit(str(PREDICTIONS), "movies", "val", "Mine")[1]["data"]
    assert shown and all(value == round(value, 3) for _, value in shown)
    # the folder beside the Space, and the dataset of its namespace
    monkeypatch.delenv("BOARD_DATASET")
    monkeypatch.setattr(private.scoring, "HERE", hub / "results_board")
    assert private.scoring.find_private_gold("movies", "validation") == f"{hub}/eraser"
    monkeypatch.setattr(private.scoring, "HERE", tmp_path / "results_board")
    monkeypatch.setattr(private.scoring, "NAMESPACE", "keeper")
    for gold, found in (("keeper/eraser", True), ("Keeper/ERASER", True), ("other/eraser", False)):
        monkeypatch.setenv("BOARD_GOLD", gold)
        assert private.scoring.find_private_gold("movies", "validation") == (gold if found else "")


def test_the_splits_of_a_private_gold_may_be_spelled_as_the_releases_do(private, monkeypatch):
    for splits, found in (("val", True), ("boolq.test, movies.val", True), ("boolq.val", False), ("interval", False)):
        monkeypatch.setenv("BOARD_GOLD_SPLITS", splits)
        assert bool(private.scoring.find_private_gold("movies", "validation")) == found, splits


def test_rows_without_gold_keep_what_is_public_alone(private, hub):
    rows = private.scoring.load_split(str(hub / "eraser"), "movies", "validation")
    blank = private.scoring.remove_gold(rows)
    assert set(blank.column_names) == {"annotation_id", "query", "classification", "documents", "evidences"}
    assert blank["documents"][:] == rows["documents"][:]
    assert gold_tokens(rows["evidences"]) and set(blank["classification"]) == {0}
    for row in blank:
        ((*spans,),) = row["evidences"]
        assert [span.pop("docid") for span in spans] == [one["docid"] for one in row["documents"]]
        assert all(not any(span.values()) for span in spans), "an empty span at the start of each document"


def test_the_page_says_that_a_gold_is_private(space, monkeypatch):
    def texts() -> list[str]:
        return [one.get("props", {}).get("value") for one in space.app.build().config["components"]]

    assert space.app.PRIVATE not in texts()
    monkeypatch.setenv("BOARD_GOLD", "org/gold")
    assert space.app.PRIVATE in texts() and not any("org/gold" in str(text) for text in texts())


def test_the_folder_is_written_as_a_whole_and_no_other_one_is_replaced(tmp_path):
    lines = collect_board_lines()
    files = write_space(tmp_path / "results_board", lines)
    assert {path.name for path in files} == {path.name for path in (tmp_path / "results_board").iterdir()}
    (tmp_path / "results_board" / "notes.txt").write_text("mine")
    write_space(tmp_path / "results_board", lines, title="Another")
    assert (tmp_path / "results_board" / "notes.txt").read_text() == "mine"
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "app.py").write_text("theirs")
    (tmp_path / "file").write_text("a file")
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    for name, rule, mentions in (
        ("theirs", "file-exists", ("written.json", "`space`")),
        ("file", "file-kind", ()),
        ("link", "file-kind", ()),
    ):
        with refused(rule, *mentions, file=tmp_path / name):
            write_space(tmp_path / name, lines)
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["app.py"]
    with refused("file-unreadable"):  # what is written beside stays away with it
        write_space(tmp_path / "file" / "x", lines, beside=(tmp_path / "pages").mkdir)
    assert not (tmp_path / "pages").exists()
    (tmp_path / "empty").mkdir()
    write_space(tmp_path / "empty", lines)
