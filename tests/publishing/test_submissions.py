"""Submissions to a board: by request on a Hub on loopback, hostile ones in a folder, and a board of what is sound."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from loopback_hub import TOKEN, Repo

import eraser_hub
from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.records.built import open_built
from eraser_hub.reports.boards import repository, submissions
from eraser_hub.reports.boards.repository import score_repository
from eraser_hub.reports.boards.submissions import parse_outcome, parse_place, read_system_yaml
from eraser_hub.reports.boards.submit import add_digest, make_place
from eraser_hub.scoring.settings import ScoreSettings
from tools import review_submission

from ..refusals import refused

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
PREDICTIONS = SAMPLES / "predictions" / "eraser" / "movies.val.jsonl"
OTHERS = SAMPLES / "predictions" / "eraser" / "movies.val.baseline.jsonl"
SYSTEM = "name: Ours\nauthors: [Ada Lovelace]\nlicense: cc-by-4.0\ntrained_on: movies, train\n"
REPOSITORY = "org/rationale_submissions"
PLACE = "movies.validation/ours"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("hub")
    HUB_DATASETS["eraser"].build(["movies"], source=SAMPLES / "eraser", out=out)
    return out / "eraser"


def add(folder: Path, place: str = PLACE, system: str = SYSTEM, predictions: Path | bytes = PREDICTIONS) -> Path:
    target = folder / place
    target.mkdir(parents=True)
    (target / "system.yaml").write_text(system)
    content = predictions if isinstance(predictions, bytes) else predictions.read_bytes()
    (target / "predictions.jsonl").write_bytes(content)
    return target


def lines_of(repository: Path | str, dataset: Path, cache: Path) -> tuple[list, list[str]]:
    said: list[str] = []
    settings = ScoreSettings(confidence_level=0.95)
    lines = score_repository(str(repository), dataset=dataset, settings=settings, say=said.append, cache=cache)
    return lines, said


# ------------------------------------------------------------------------------------------------------ the whole cycle
@pytest.fixture
def at_loopback(loopback, online, monkeypatch):
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "ENDPOINT", loopback.url)
    address = loopback.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    loopback.repos["datasets", REPOSITORY] = Repo()
    return loopback


def test_a_submission_by_request_is_verified_merged_and_on_the_board(at_loopback, dataset, tmp_path):
    (tmp_path / "system.yaml").write_text(SYSTEM)
    of = {"dataset": dataset, "config": "movies", "split": "val", "repository": REPOSITORY}
    dry = eraser_hub.submit(PREDICTIONS, tmp_path / "system.yaml", dry_run=True, **of)
    assert (dry.place, dry.address) == ("movies.validation/ours", "")
    assert [(line.system, line.status) for line in dry.lines] == [("Ours", "verified")], "the papers print test alone"
    repo = at_loopback.repos["datasets", REPOSITORY]
    assert set(repo.branches) == {"main"}, "a dry run sends nothing"
    made = eraser_hub.submit(PREDICTIONS, tmp_path / "system.yaml", **of)
    assert made.address == f"{at_loopback.url}/datasets/{REPOSITORY}/discussions/1"
    assert lines_of(REPOSITORY, dataset, tmp_path / "cache") == ([], [])
    with refused("empty", "expected submissions CONFIG.SPLIT/SYSTEM, found none", file=REPOSITORY):
        eraser_hub.board(from_hub=REPOSITORY, dataset=dataset, published=False)
    (line,), said = lines_of(f"{REPOSITORY}@refs%2Fpr%2F1", dataset, tmp_path / "cache")
    assert (line.system, line.status, line.split, said) == ("Ours", "verified", "validation", [])
    assert "by Ada Lovelace; trained on movies, train; licence cc-by-4.0" in line.detail
    repo.merge("refs/pr/1")
    board = eraser_hub.board(tmp_path / "board", from_hub=REPOSITORY, dataset=dataset, published=False)
    assert [one.system for one in board.lines] == ["Ours"]
    page = (tmp_path / "board" / "index.html").read_text()
    assert "Ada Lovelace" in page and 'data-status="verified"' in page
    tree = repo.commits[repo.branches["main"]]
    digest = open_built(dataset).data_digest("movies", "validation")
    assert f"data_digest: {digest}\n".encode() in tree[f"{PLACE}/system.yaml"][0]


OTHER_TOKEN = "hf_" + "anotherANOTHERanother1234567890ab"


def submit_as_visitor(
    at_loopback, dataset, tmp_path, monkeypatch, predictions: Path = PREDICTIONS, system: str = SYSTEM
):
    """Submit with the token of another account than the owner's."""
    (tmp_path / "system.yaml").write_text(system)
    at_loopback.visitors.add(OTHER_TOKEN)
    with monkeypatch.context() as patch:
        patch.setenv("HF_TOKEN", OTHER_TOKEN)
        of = {"dataset": dataset, "config": "movies", "split": "val", "repository": REPOSITORY}
        return eraser_hub.submit(predictions, tmp_path / "system.yaml", **of)


@pytest.mark.parametrize(
    ("text", "added"),
    [(SYSTEM + "# data_digest: none yet", True), (SYSTEM.replace("\n", "\r\n"), True), (None, False)],
)
def test_the_digest_of_the_data_is_added_or_the_line_is_named(dataset, tmp_path, text, added):
    digest = open_built(dataset).data_digest("movies", "validation")
    (tmp_path / "system.yaml").write_bytes(
        (text or "{name: Ours, authors: [A], license: mit, trained_on: movies}").encode()
    )
    of = {"dataset": dataset, "config": "movies", "split": "val"}
    if not added:
        with refused("syntax", f"data_digest: {digest}", file=tmp_path / "system.yaml"):
            eraser_hub.submit(PREDICTIONS, tmp_path / "system.yaml", dry_run=True, **of)
        return
    eraser_hub.submit(PREDICTIONS, tmp_path / "system.yaml", dry_run=True, **of)
    card = add_digest(tmp_path / "system.yaml", read_system_yaml(tmp_path / "system.yaml"), digest)
    (tmp_path / "system.yaml").write_text(card)
    assert read_system_yaml(tmp_path / "system.yaml").data_digest == digest


@pytest.mark.parametrize("repository", ["movies", "a/b/c", "https://x/y", "org/name@"])
def test_a_dry_run_refuses_what_is_no_repository(dataset, tmp_path, repository):
    (tmp_path / "system.yaml").write_text(SYSTEM)
    of = {"dataset": dataset, "config": "movies", "split": "val", "repository": repository}
    with refused("option-value", "ORG/NAME", argument="repository"):
        eraser_hub.submit(PREDICTIONS, tmp_path / "system.yaml", dry_run=True, **of)


def test_a_maintainer_reviews_a_request_and_comments(at_loopback, dataset, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(repository, "get_cache_folder", lambda: tmp_path / "cache")
    repo = at_loopback.repos["datasets", REPOSITORY]
    submit_as_visitor(at_loopback, dataset, tmp_path, monkeypatch)
    words = [REPOSITORY, "--dataset", str(dataset), "--revision"]
    assert review_submission.main([*words, "refs/pr/1"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("movies, validation, n 24, ") and "by Ada Lovelace; trained on movies, train" in printed
    assert at_loopback.comments == {}
    assert review_submission.main([*words, "refs/pr/1", "--comment"]) == 0
    (comment,) = at_loopback.comments[REPOSITORY, 1]
    head, _, block = comment.partition("\n\n")
    assert head == "The line on the board:" and all(line[:4] in ("", "    ") for line in block.splitlines())
    assert [line.strip() for line in block.splitlines()] == [line.strip() for line in printed.splitlines()]
    repo.merge("refs/pr/1")
    assert review_submission.main([*words, "refs/pr/1"]) == 1
    assert "expected a new or a changed submission, found none" in capsys.readouterr().out


def test_a_review_names_errors_and_what_a_request_lacks(at_loopback, dataset, tmp_path, monkeypatch):
    repo = at_loopback.repos["datasets", REPOSITORY]
    submit_as_visitor(at_loopback, dataset, tmp_path, monkeypatch)
    repo.merge("refs/pr/1")
    bad = {
        "movies.validation/b/system.yaml": (b"nmae: '``` @all'\n", False),
        "movies.validation/b/predictions.jsonl": (b"{}", False),
    }
    repo.branches["refs/pr/2"] = repo.branches["main"]
    repo.record("refs/pr/2", repo.commits[repo.branches["main"]] | bad, "request")
    found = review_submission.review(REPOSITORY, "refs/pr/2", dataset, cache=tmp_path / "cache")
    assert not found.sound and found.lines == [] and found.absent == []
    (error,) = found.errors
    assert error.startswith("not on the board: movies.validation/b/system.yaml:1: expected the keys name, ")
    assert review_submission.write_comment(found).splitlines()[2] == f"    {error}"
    repo.record("refs/pr/2", bad, "request")
    found = review_submission.review(REPOSITORY, "refs/pr/2", dataset, cache=tmp_path / "cache")
    assert found.absent == [PLACE] and found.errors == [error]
    with refused("option-value", "expected refs/pr/NUMBER, found 'main'"):
        review_submission.review(REPOSITORY, "main", dataset)


def test_a_review_downloads_and_scores_what_differs(at_loopback, dataset, tmp_path, monkeypatch):
    repo = at_loopback.repos["datasets", REPOSITORY]
    files = {
        f"movies.validation/{name}/{file}": (content, False)
        for name, system, rows in (
            ("a", "A", PREDICTIONS),
            ("b", "B", OTHERS),
        )
        for file, content in (
            ("system.yaml", SYSTEM.replace("Ours", system).encode()),
            ("predictions.jsonl", rows.read_bytes()),
        )
    }
    mine, theirs = ({path: one for path, one in files.items() if f"/{name}/" in path} for name in "ba")
    repo.record("main", theirs, "one")
    repo.branches["refs/pr/1"] = repo.branches["main"]
    repo.record("refs/pr/1", theirs | mine, "request")
    scored = []
    check = repository.check_submission
    monkeypatch.setattr(
        repository, "check_submission", lambda one, *more: scored.append(one.place) or check(one, *more)
    )
    of = {"dataset": dataset, "cache": tmp_path / "cache"}
    found = review_submission.review(REPOSITORY, "refs/pr/1", **of)
    assert [line.system for line in found.lines] == ["B"] and found.sound and found.absent == []
    assert scored == ["movies.validation/b"]
    assert at_loopback.count("GET", "/movies.validation/a/predictions.jsonl") == 0
    for card, rows, what in ((SYSTEM.replace("Ours", "a"), OTHERS, "name"), (SYSTEM, PREDICTIONS, "predictions")):
        copy = {"system.yaml": (card.encode(), False), "predictions.jsonl": (rows.read_bytes(), False)}
        copy = {f"movies.validation/0/{name}": one for name, one in copy.items()}
        repo.record("refs/pr/1", theirs | copy, "copy")
        assert review_submission.review(REPOSITORY, "refs/pr/1", **of).errors == [
            f"not on the board: movies.validation/0: expected another {what} than movies.validation/a"
        ]


def test_publishing_beside_merged_submissions_leaves_them(at_loopback, dataset, tmp_path, monkeypatch):
    repo, built = at_loopback.repos["datasets", REPOSITORY], tmp_path / "hub"
    shutil.copytree(dataset.parent, built)
    made = submit_as_visitor(at_loopback, dataset, tmp_path, monkeypatch)
    assert made.address.endswith("/discussions/1")
    monkeypatch.setenv("HF_TOKEN", OTHER_TOKEN)
    with refused("hub", "this token may not write there"):
        eraser_hub.publish("org", built)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    repo.merge("refs/pr/1")
    commit, tree = repo.branches["main"], dict(repo.commits[repo.branches["main"]])
    for _ in range(2):
        of = {"from_hub": REPOSITORY, "dataset": dataset, "published": False, "force": True}
        board = eraser_hub.board(tmp_path / "board", space=built / "results_board", **of)
        assert [line.system for line in board.lines] == ["Ours"]
        eraser_hub.publish("org", built)
    assert {("datasets", "org/eraser"), ("spaces", "org/results_board")} <= set(at_loopback.repos)
    assert (repo.branches["main"], repo.commits[commit]) == (commit, tree)
    assert f"{PLACE}/predictions.jsonl" in tree and set(repo.branches) == {"main", "refs/pr/1"}


def test_lines_have_the_day_of_their_predictions_on_the_hub(at_loopback, dataset, tmp_path):
    repo = at_loopback.repos["datasets", REPOSITORY]
    for name, system, rows in (("a", SYSTEM.replace("Ours", "A"), PREDICTIONS), ("b", SYSTEM, OTHERS)):
        add(tmp_path / "s", f"movies.validation/{name}", f"{system}cost: 1,200 forward passes\n", rows)
    paths = [path for path in (tmp_path / "s").rglob("*") if path.is_file()]
    repo.record("main", {path.relative_to(tmp_path / "s").as_posix(): (path.read_bytes(), False) for path in paths}, "")
    at_loopback.dates = {
        "movies.validation/a/predictions.jsonl": "2025-12-31T23:30:00.000Z",
        "movies.validation/a/system.yaml": "2026-02-02T00:00:00.000Z",
    }
    out = tmp_path / "board"
    board = eraser_hub.board(out, from_hub=REPOSITORY, dataset=dataset, published=False)
    assert {line.system: (line.date, line.cost) for line in board.lines} == {
        "A": ("2025-12-31T23:30:00Z", (1200.0, "forward passes")),
        "Ours": ("2026-01-01T00:00:00Z", (1200.0, "forward passes")),
    }
    page = (out / "index.html").read_text()
    days = re.findall('data-date="([^"]*)" data-cost="1200.0" data-unit="forward passes"', page)
    assert days == ["2025-12-31", "2026-01-01"]
    rows = {row["system"]: row for row in json.loads((out / "board.json").read_text())["rows"]}
    assert rows["A"]["date"] == "2025-12-31T23:30:00Z" and rows["A"]["cost"] == [1200.0, "forward passes"]
    first = json.loads((out / "feed.json").read_text())["items"][0]
    assert first["date_published"] == "2025-12-31T23:30:00Z"
    assert "<pubDate>Wed, 31 Dec 2025 23:30:00 +0000</pubDate>" in (out / "feed.xml").read_text()


def test_a_split_without_gold_takes_submissions_and_states_no_digest(at_loopback, dataset, tmp_path):
    public, source = tmp_path / "public", tmp_path / "source"
    shutil.copytree(SAMPLES / "eraser" / "movies", source / "movies")
    rows = [json.loads(line) | {"evidences": []} for line in (source / "movies" / "val.jsonl").read_text().splitlines()]
    (source / "movies" / "val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    HUB_DATASETS["eraser"].build(["movies"], source=source, out=public)
    of = {"dataset": public / "eraser", "config": "movies", "split": "val", "repository": REPOSITORY}
    (tmp_path / "system.yaml").write_text(SYSTEM)
    made = eraser_hub.submit(PREDICTIONS, tmp_path / "system.yaml", **of)
    (line,) = made.lines
    assert {"comprehensiveness", "accuracy"} <= line.scores.keys() and "token_macro_f1" not in line.scores
    (note,) = (note for note in made.notes if "has no gold rationale of validation" in note)
    assert "if the gold is kept elsewhere, the board's keeper scores the submission" in note
    tree = at_loopback.repos["datasets", REPOSITORY]
    card = tree.commits[tree.branches["refs/pr/1"]][f"{PLACE}/system.yaml"][0]
    assert b"data_digest" not in card
    # the board has the gold: the same request is a line of all scores there
    (line,), said = lines_of(f"{REPOSITORY}@refs%2Fpr%2F1", dataset, tmp_path / "cache")
    assert "token_macro_f1" in line.scores and said == []
    digest = open_built(public / "eraser").data_digest("movies", "validation")
    (tmp_path / "system.yaml").write_text(f"{SYSTEM}data_digest: '{digest[:12]}'\n")
    # a split that has no gold anywhere, as for scores of faithfulness: its digest is right
    made = eraser_hub.submit(PREDICTIONS, tmp_path / "system.yaml", dry_run=True, **of)
    assert made.notes[-1].endswith("that of the data without gold; a board of data with gold refuses it")
    (tmp_path / "system.yaml").write_text(f"{SYSTEM}data_digest: '{64 * '0'}'\n")
    other = eraser_hub.submit(PREDICTIONS, tmp_path / "system.yaml", dry_run=True, **of)
    assert other.notes == made.notes[:-1], "the digest of the data with the gold, which are not here"
    score_file = tmp_path / "s.json"
    eraser_hub.score(PREDICTIONS, dataset=public / "eraser", config="movies", split="val").save(score_file)
    (line,) = eraser_hub.board(scores=[score_file], published=False).lines
    assert line.gold["marked_rows"] == 0 and line.gold["density"] is None


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("12 GPU hours", (12.0, "GPU hours")),
        ("0.5 h", (0.5, "h")),
        ("1,200,000", (1_200_000.0, "")),
        ("12", (12.0, "")),
        ("1,20 h", None),
        ("12 34", None),
        ("-3 h", None),
        ("about 12 GPU hours", None),
        ("9" * 400, None),
        ("", None),
    ],
)
def test_a_cost_is_a_number_and_its_unit(text, cost):
    assert repository.parse_cost(text) == cost


def test_a_file_of_2_gb_is_not_fetched(at_loopback, dataset, tmp_path, monkeypatch):
    repo = at_loopback.repos["datasets", REPOSITORY]
    tree = {f"{PLACE}/system.yaml": (SYSTEM.encode(), False), f"{PLACE}/predictions.jsonl": (bytes(2000), True)}
    repo.record("main", tree, "large")
    monkeypatch.setattr(submissions, "MOST_BYTES", 1000)
    lines, said = lines_of(REPOSITORY, dataset, tmp_path)
    assert lines == [] and said == [
        f"not on the board: {PLACE}/predictions.jsonl: expected at most 1,000 bytes, found 2,000"
    ]
    assert at_loopback.count("GET", "resolve") == 0


def test_without_write_access_the_request_is_refused_in_a_line(at_loopback, dataset, tmp_path):
    at_loopback.may_write = False
    (tmp_path / "system.yaml").write_text(SYSTEM)
    with refused("hub", "this token may not write there"):
        eraser_hub.submit(
            PREDICTIONS, tmp_path / "system.yaml", dataset=dataset, config="movies", split="val", repository=REPOSITORY
        )


# ------------------------------------------------------------------------------------------------------ hostile ones
def rows() -> list[dict]:
    return [json.loads(line) for line in PREDICTIONS.read_text().splitlines()]


def changed(change: Callable[[list[dict]], object]) -> bytes:
    every = rows()
    change(every)
    return "".join(json.dumps(row) + "\n" for row in every).encode()


def link(folder: Path) -> None:
    target = add(folder) / "predictions.jsonl"
    target.unlink()
    os.symlink("/etc/passwd", target)


def pipe(folder: Path) -> None:
    target = add(folder) / "predictions.jsonl"
    target.unlink()
    os.mkfifo(target)


def system(text: str) -> Callable[[Path], object]:
    return lambda folder: add(folder, system=text)


def predictions(content: bytes) -> Callable[[Path], object]:
    return lambda folder: add(folder, predictions=content)


def beside(name: str, content: bytes = b"x") -> Callable[[Path], object]:
    return lambda folder: (add(folder) / name).write_bytes(content)


BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"
EXECUTED = SYSTEM.replace("Ours", "!!python/object/apply:os.system ['touch /tmp/executed']")
HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "aliases": (system(BOMB), "expected no aliases"),
    "an object of Python": (system(EXECUTED), "is no YAML"),
    "nested brackets": (system("name: " + "[" * 5000), "nest too deeply"),
    "control characters in a text": (system(SYSTEM + 'cost: "\\e[2J"\n'), "cost: expected up to 500 printable"),
    "a text from right to left": (system(SYSTEM.replace("movies, train", '"a\\u202eb"')), "trained_on: expected"),
    "a long text": (system(SYSTEM + f"erasing: {'x' * 501}\n"), "erasing: expected up to 500"),
    "a large description": (system(SYSTEM + "cost: " + "x" * 70_000), "65,536 bytes"),
    "markup in the name": (system(SYSTEM.replace("Ours", "<script>alert(1)</script>")), "without < and >"),
    "control characters in the name": (system(SYSTEM.replace("Ours", '"a\\u202eb"')), "printable"),
    "a name of 200 characters": (system(SYSTEM.replace("Ours", "x" * 200)), "up to 100"),
    "markup in an author": (system(SYSTEM.replace("Ada Lovelace", "<img src=x>")), "authors"),
    "a script as link": (system(SYSTEM + "link: javascript:alert(1)\n"), "expected an address"),
    "no licence": (system(SYSTEM.replace("license: cc-by-4.0\n", "")), "the key license"),
    "an unknown key": (system(SYSTEM + "nmae: x\n"), "found 'nmae'"),
    "a key twice": (system(SYSTEM + "name: y\n"), "each key once"),
    "a number as name": (system(SYSTEM.replace("Ours", "7")), "name"),
    "a list as description": (system("- a\n"), "key: value"),
    "an integer of 20,000 bits": (system(SYSTEM + f"seeds: [0x{'f' * 5000}]\n"), "an integer of 64 bits"),
    "an empty digest": (system(SYSTEM + "data_digest: ''\n"), "12 to 64"),
    "a digest of one digit": (system(SYSTEM + "data_digest: e\n"), "12 to 64"),
    "a digest of digits alone": (system(SYSTEM + "data_digest: 123456789012\n"), "quote it"),
    "a digest of many digits alone": (system(SYSTEM + f"data_digest: {'12' * 32}\n"), "quote digits"),
    "no digest": (system(SYSTEM + "data_digest:\n"), "12 to 64"),
    "wrong digest": (system(SYSTEM + "data_digest: '000000000000'\n"), "expected predictions for the data"),
    "scores": (predictions(b'{"auprc": 0.9999, "signature": "forged"}\n'), "predictions.jsonl:1"),
    "no JSON": (predictions(b"\x00\xff"), "predictions.jsonl"),
    "empty": (predictions(b""), "predictions.jsonl"),
    "cut line": (predictions(PREDICTIONS.read_bytes()[:-30]), "predictions.jsonl:24"),
    "deep": (predictions(b"[" * 100_000), "predictions.jsonl"),
    "half of the annotations": (predictions(changed(lambda every: every.__delitem__(slice(12)))), "12"),
    "unknown id": (predictions(changed(lambda every: every[0].update(annotation_id="../../etc"))), "annotation_id"),
    "an id twice": (predictions(changed(lambda every: every.append(every[0]))), "each id once"),
    "forged probability": (
        predictions(changed(lambda every: every[0].update(classification_scores={"NEG": 9.0, "POS": -8.0}))),
        "probabilities",
    ),
    "NaN": (predictions(PREDICTIONS.read_bytes().replace(b"0.", b"NaN, 0.", 1)), "predictions.jsonl:1"),
    "a Parquet file that is none": (
        lambda folder: (add(folder, predictions=b"PAR1xx") / "predictions.jsonl").rename(
            folder / PLACE / "predictions.parquet"
        ),
        "predictions.parquet",
    ),
    "a link": (link, "found a link"),
    "a pipe": (pipe, "expected a file"),
    "a program beside it": (beside("run.py"), "expected system.yaml and one of"),
    "two files of predictions": (beside("predictions.parquet"), "expected system.yaml and one of"),
    "a folder": (lambda folder: (add(folder) / "more").mkdir(), "expected system.yaml and one of"),
    "another config": (lambda folder: add(folder, "boolq.test/ours"), "a config and a split"),
    "another split": (lambda folder: add(folder, "movies.secret/ours"), "a config and a split"),
    "a place with blanks": (lambda folder: add(folder, "movies.validation/o u r s"), "expected CONFIG.SPLIT/SYSTEM"),
    "no split": (lambda folder: add(folder, "movies/ours"), "expected CONFIG.SPLIT/SYSTEM"),
}


@pytest.fixture(scope="module")
def hostile(dataset, tmp_path_factory) -> dict[str, tuple[list, list[str]]]:
    """What a board says of each hostile submission, alone; outcomes are kept as they are between runs."""
    cache, found = tmp_path_factory.mktemp("cache"), {}
    for name, (make, _) in HOSTILE.items():
        folder = tmp_path_factory.mktemp("submissions")
        make(folder)
        found[name] = lines_of(folder, dataset, cache)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_submission_is_one_line_and_nothing_else(hostile, name):
    lines, said = hostile[name]
    assert lines == [] and len(said) == 1 and said[0].startswith("not on the board: ")
    assert HOSTILE[name][1] in said[0] and "Traceback" not in said[0] and len(said[0]) < 900
    assert not Path("/tmp/executed").exists()


def test_duplicates_are_refused_and_sound_ones_stay(dataset, tmp_path):
    folder = tmp_path / "submissions"
    add(folder, "movies.validation/a")
    add(folder, "movies.validation/b", SYSTEM.replace("Ours", "OURS"), OTHERS)
    add(folder, "movies.validation/c", SYSTEM.replace("Ours", "Copy"))
    add(folder, "movies.validation/d", SYSTEM.replace("Ours", "Other"), OTHERS)
    lines, said = lines_of(folder, dataset, tmp_path / "cache")
    assert [line.system for line in lines] == ["Ours", "Other"]
    assert said == [
        "not on the board: movies.validation/b: expected another name than movies.validation/a",
        "not on the board: movies.validation/c: expected another predictions than movies.validation/a",
    ]


def test_an_outcome_is_kept_by_the_digests_of_predictions_and_data(dataset, tmp_path, monkeypatch):
    folder = tmp_path / "submissions"
    add(folder, predictions=b"{}\n")
    first = lines_of(folder, dataset, tmp_path / "cache")
    assert first[1]
    monkeypatch.setattr(submissions, "_score_apart", lambda *_: pytest.fail("scored again"))
    assert lines_of(folder, dataset, tmp_path / "cache") == first


def test_a_deadline_ends_the_scorer_and_is_not_kept(dataset, tmp_path, monkeypatch):
    folder = tmp_path / "submissions"
    add(folder)
    with monkeypatch.context() as patch:
        patch.setattr(submissions, "SECONDS", 0.01)
        lines, said = lines_of(folder, dataset, tmp_path / "cache")
    assert lines == [] and "not scored within 0.01 s" in said[0]
    assert [line.system for line in lines_of(folder, dataset, tmp_path / "cache")[0]] == ["Ours"]


def test_a_damaged_outcome_is_none(dataset, tmp_path, monkeypatch):
    folder, cache = tmp_path / "submissions", tmp_path / "cache"
    add(folder)
    lines_of(folder, dataset, cache)
    (kept,) = cache.iterdir()
    scored = []
    monkeypatch.setattr(submissions, "_score_apart", lambda *_: scored.append(1) or submissions.Outcome("refused"))
    for content in (b"", b"{", b"[]"):
        kept.write_bytes(content)
        assert lines_of(folder, dataset, cache)[1] == [f"not on the board: {PLACE}: refused"]
    assert len(scored) == 3
    assert [path.name for path in cache.iterdir()] == [kept.name], "no temporary file stays"


TRACEBACK = "Traceback (most recent call last):\n  File 'x'\n"


@pytest.mark.parametrize(
    ("status", "stderr", "error", "lasting"),
    [
        (0, "note: skipped", "", True),
        (1, "note: x\npredictions.jsonl:3: id: found 'Traceback MemoryError'\n", "predictions.jsonl:3: id", True),
        (1, "hub/eraser: no such folder", "hub/eraser: no such folder", False),
        (1, f"{TRACEBACK}ValueError: MemoryError", "the scorer ended in an error: ValueError: MemoryError", False),
        (1, f"{TRACEBACK}numpy._core._exceptions._ArrayMemoryError: Unable", "not scored within 8 GB", False),
        (1, f"{TRACEBACK}MemoryError", "not scored within 8 GB", False),
        (-9, "", "not scored within 8 GB", False),
        (3, "", "exit status 3", False),
    ],
)
def test_what_a_scorer_says(status, stderr, error, lasting):
    outcome = parse_outcome(status, stderr, "predictions.jsonl")
    assert outcome.error.startswith(error) and bool(outcome.error) == bool(error) and outcome.lasting == lasting


def test_a_board_of_refused_submissions_alone_says_why(dataset, tmp_path):
    add(tmp_path / "submissions", predictions=b"{}\n")
    of = {"from_hub": str(tmp_path / "submissions"), "dataset": dataset, "published": False}
    with refused("empty", "all 1 submissions are refused", PLACE, "annotation_id"):
        eraser_hub.board(tmp_path / "board", **of)


def test_places():
    names = ("bert", "BERT+", "模型", "模 型", "a b", "a-b", "Ünï / ../x", "x" * 90, "x" * 99)
    places = [make_place("movies", "test", name) for name in names]
    assert places[0] == "movies.test/bert" and places[5] == "movies.test/a-b"
    assert len(set(places)) == len(names)
    assert all(parse_place(place) == ("movies", "test") for place in places)
    assert make_place("movies", "test", "BERT") == places[0], "the board takes both for one name"
    assert make_place("movies", "test", places[1].removeprefix("movies.test/")) != places[1]


def test_a_copy_of_another_systems_predictions_is_not_submitted(dataset, tmp_path):
    """Not even in another order of rows."""
    add(tmp_path / "submissions", system=SYSTEM.replace("Ours", "Theirs"))
    (tmp_path / "system.yaml").write_text(SYSTEM)
    copy = tmp_path / "p.jsonl"
    copy.write_bytes(changed(list.reverse))
    of = {"config": "movies", "split": "val", "repository": str(tmp_path / "submissions"), "dry_run": True}
    with refused("id-twice", "'Theirs'", file=copy):
        eraser_hub.submit(copy, tmp_path / "system.yaml", dataset=dataset, **of)


def test_an_update_in_another_format_takes_the_place_of_the_file(at_loopback, dataset, tmp_path):
    import pyarrow.json
    import pyarrow.parquet

    (tmp_path / "system.yaml").write_text(SYSTEM.replace("Ours", "ours"))
    of = {"dataset": dataset, "config": "movies", "split": "val", "repository": REPOSITORY}
    eraser_hub.submit(PREDICTIONS, tmp_path / "system.yaml", **of)
    repo = at_loopback.repos["datasets", REPOSITORY]
    repo.merge("refs/pr/1")
    table = tmp_path / "p.parquet"
    pyarrow.parquet.write_table(pyarrow.json.read_json(PREDICTIONS), table)
    eraser_hub.submit(table, tmp_path / "system.yaml", **of)
    names = {path for path in repo.commits[repo.branches["refs/pr/2"]] if path.startswith(PLACE)}
    assert names == {f"{PLACE}/system.yaml", f"{PLACE}/predictions.parquet"}


def test_a_repository_of_too_much_is_refused(at_loopback, dataset, tmp_path, monkeypatch):
    (tmp_path / "system.yaml").write_text(SYSTEM)
    repo = at_loopback.repos["datasets", REPOSITORY]
    tree = {
        f"movies.validation/{name}/{file}": (content, False)
        for name in ("a", "b")
        for file, content in (("system.yaml", SYSTEM.encode()), ("predictions.jsonl", bytes(1000)))
    }
    repo.record("main", tree, "two")
    for limit, most in (("MOST_PLACES", 1), ("MOST_FILES", 4), ("MOST_BYTES_OF_ALL", 2000)):
        with monkeypatch.context() as patch:
            patch.setattr(repository, limit, most)
            with refused("size-limit", f"{most:,}", file=REPOSITORY):
                lines_of(REPOSITORY, dataset, tmp_path / "cache")
    assert at_loopback.count("GET", "resolve") == 0


def test_downloads_are_of_the_commit_that_was_listed(at_loopback, dataset, tmp_path):
    repo = at_loopback.repos["datasets", REPOSITORY]
    tree = {f"{PLACE}/{path.name}": (path.read_bytes(), False) for path in add(tmp_path / "s").iterdir()}
    commit = repo.record("main", tree, "one")
    assert [line.system for line in lines_of(REPOSITORY, dataset, tmp_path / "cache")[0]] == ["Ours"]
    assert at_loopback.count("GET", f"/tree/{commit}") == 1
    assert at_loopback.count("GET", "/resolve/") == at_loopback.count("GET", f"/resolve/{commit}/") > 0


def test_the_sample_description_is_sound():
    assert read_system_yaml(SAMPLES / "predictions" / "eraser" / "system.yaml").name == "ours"
