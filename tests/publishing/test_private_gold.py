"""A split whose gold is private, on a Hub on loopback: its owner, a submitter, and a Space that scores."""

from __future__ import annotations

import json
import shutil
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from loopback_hub import TOKEN, Repo

from eraser_hub.conversion import HUB_DATASETS
from tools.browser import running_apps

pytestmark = pytest.mark.slow
SYSTEM = "name: Ours\nauthors: [Ada Lovelace]\nlicense: cc-by-4.0\ntrained_on: movies, train\n"
SUBMITTER = "hf_" + "anotherANOTHERanother1234567890ab"
LOAD = (
    "import json, datasets\nprint(json.dumps(datasets.load_dataset('keeper/eraser', 'movies', split='test').num_rows))"
)


@pytest.fixture
def corpora_of_both(samples, tmp_path) -> tuple[Path, Path]:
    """The corpus with the gold of movies' test split, and the one without it."""
    folders = tmp_path / "gold", tmp_path / "public"
    for folder in folders:
        shutil.copytree(samples / "eraser" / "movies", folder / "movies")
    test = folders[1] / "movies" / "test.jsonl"
    rows = [json.loads(line) | {"evidences": []} for line in test.read_text().splitlines()]
    test.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folders


@pytest.fixture
def predictions(samples, tmp_path) -> Path:
    """Predictions for the test split: five tokens of each review, of which some are gold."""
    rows = [json.loads(line) for line in (samples / "eraser" / "movies" / "test.jsonl").read_text().splitlines()]
    probabilities = {"NEG": 0.75, "POS": 0.25}
    answers = [
        {
            "annotation_id": row["annotation_id"],
            "rationales": [
                {
                    "docid": row["annotation_id"],
                    "hard_rationale_predictions": [{"start_token": start, "end_token": start + 5}],
                }
            ],
            "classification": "NEG",
            "classification_scores": probabilities,
            "comprehensiveness_classification_scores": {"NEG": 0.5, "POS": 0.5},
            "sufficiency_classification_scores": probabilities,
        }
        for row in rows
        for start in [max(0, row["evidences"][0][0]["end_token"] - 5)]
    ]
    path = tmp_path / "ours.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in answers))
    return path


@pytest.fixture
def run(child, loopback):
    """Run a verb of the command line with a token; its output."""

    def call(token: str, *words: object, **more: str) -> str:
        command = [sys.executable, "-m", "eraser_hub", *map(str, words)]
        done = child.call(command, loopback.url, HF_TOKEN=token, **more)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    return call


class Visitor:
    """A program that speaks to the Space's page of submissions as a browser does."""

    def __init__(self, url: str) -> None:
        self.api = f"{url}submit/gradio_api"

    def ask(self, path: str, body: bytes | None = None, **headers: str) -> bytes:
        request = urllib.request.Request(f"{self.api}{path}", body, headers)
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120) as answer:
            return answer.read()

    def upload(self, file: Path) -> str:
        head = f'--x\r\nContent-Disposition: form-data; name="files"; filename="{file.name}"\r\n\r\n'
        body = head.encode() + file.read_bytes() + b"\r\n--x--\r\n"
        return json.loads(self.ask("/upload", body, **{"Content-Type": "multipart/form-data; boundary=x"}))[0]

    def submit(self, path: str, name: str, split: str = "test") -> tuple[str, str]:
        """Return the kind of the last event, ``complete`` or ``error``, and its content."""
        file = {"path": path, "meta": {"_type": "gradio.FileData"}}
        body = json.dumps({"data": [file, "movies", split, name]}).encode()
        event = json.loads(self.ask("/call/submit", body, **{"Content-Type": "application/json"}))["event_id"]
        kind, data = self.ask(f"/call/submit/{event}").decode().strip().split("\n\n")[-1].split("\n")
        return kind.removeprefix("event: "), data.removeprefix("data: ")


@pytest.fixture
def published(run, loopback, corpora_of_both, tmp_path) -> tuple[Path, Path]:
    """Both datasets on the Hub, of which ``keeper/eraser`` is private, the metrics, and a repository of submissions."""
    folders = tmp_path / "keeper", tmp_path / "org"
    for source, folder in zip(corpora_of_both, folders, strict=True):
        HUB_DATASETS["eraser"].build(["movies"], source=source, out=folder)
    metrics = ("eraser_agreement", "eraser_faithfulness")
    run(TOKEN, "build", "metrics", *(word for name in metrics for word in ("--config", name)), "--out", folders[1])
    run(TOKEN, "publish", "--namespace", "keeper", "--dir", folders[0], "--private")
    run(TOKEN, "publish", "--namespace", "org", "--dir", folders[1])
    loopback.repos["datasets", "org/rationale_submissions"] = Repo()
    loopback.visitors.add(SUBMITTER)
    return folders


def test_the_space_scores_a_private_gold_and_gives_nothing_of_it(
    published, run, child, loopback, predictions, tmp_path
):
    assert loopback.repos["datasets", "keeper/eraser"].private
    for token in ("", SUBMITTER):
        done = child.call([sys.executable, "-c", LOAD], loopback.url, HF_TOKEN=token, HF_HOME=str(tmp_path / "theirs"))
        assert done.returncode and "keeper/eraser" in done.stderr, "others cannot read the gold"

    # the submitter checks the file without the gold, and sends the request
    (tmp_path / "system.yaml").write_text(SYSTEM)
    what = ("submit", predictions, "--system", tmp_path / "system.yaml", "--dataset", "org/eraser", "--split", "test")
    said = run(SUBMITTER, *what, "--repository", "org/rationale_submissions", HF_HOME=str(tmp_path / "theirs"))
    assert "has no gold rationale of test: scores of agreement are left out here" in said
    assert "No files matched" not in said, "a warning of the Hub's library on files that a dataset may lack"
    repo = loopback.repos["datasets", "org/rationale_submissions"]
    assert b"data_digest" not in repo.commits[repo.branches["refs/pr/1"]]["movies.test/ours/system.yaml"][0]
    repo.merge("refs/pr/1")

    # the keeper's board has the line, scored on the gold
    board = published[1] / "results_board"
    of = ("--from-hub", "org/rationale_submissions", "--dataset", "keeper/eraser", "--no-published")
    run(TOKEN, "board", *of, "--space", board)
    run(TOKEN, "publish", "--namespace", "org", "--dir", published[1], "--metric", "results_board")
    (row,) = json.loads((board / "board.json").read_text())["rows"]
    assert (row["system"], row["status"], row["split"]) == ("Ours", "verified", "test") and row["scores"][
        "token_macro_f1"
    ]

    # the Space shows the same line of the same file, and as often a day as it says
    space = tmp_path / "space"
    space.mkdir()
    files = loopback.repos["spaces", "org/results_board"]
    for path, (content, _) in files.commits[files.branches["main"]].items():
        (space / path).write_bytes(content)
    settings = child.environment(loopback.url, GRADIO_TEMP_DIR=str(tmp_path / "uploads"))
    settings |= {
        "HF_HUB_OFFLINE": "0",
        "HF_DATASETS_OFFLINE": "0",
        "HF_TOKEN": TOKEN,
        "BOARD_GOLD": "keeper/eraser",
        "BOARD_DAILY": "2",
    }
    with running_apps([space], **settings) as (url,):
        visitor = Visitor(url)
        kind, content = visitor.submit(visitor.upload(predictions), "Ours")
        assert kind == "complete", content
        line, scores, _, note = json.loads(content)
        shown = dict(map(tuple, scores["data"]))
        assert shown == {key: round(value, 3) for key, value in row["scores"].items() if key in shown}
        assert shown["token_macro_f1"] > 0
        assert [one[0] for one in line["data"]] == ["Ours (this file)", "Ours"]
        assert "1 more files of this system" in note
        assert visitor.submit(visitor.upload(predictions), "OURS")[0] == "complete"
        kind, content = visitor.submit(visitor.upload(predictions), "ours")
        assert kind == "error" and "2 files a day of one system" in content
        probe(visitor, predictions, child.home, tmp_path)
    # a Space whose public dataset is the private one scores no split by the public path
    with running_apps([space], **settings | {"BOARD_DATASET": "Keeper/eraser"}) as (url,):
        kind, content = Visitor(url).submit(Visitor(url).upload(predictions), "", "validation")
        assert kind == "error" and "give the system a name" in content
    # a Space that cannot read the gold scores nothing, and does not say why
    with running_apps([space], **settings | {"HF_TOKEN": "", "HF_HOME": str(tmp_path / "new")}) as (url,):
        kind, content = Visitor(url).submit(Visitor(url).upload(predictions), "Ours")
        assert kind == "error" and "Not scored: " in content and "keeper" not in content


def probe(visitor: Visitor, predictions: Path, home: Path, aside: Path) -> None:
    """Ask for scores of single rows, for the gold's own files, and for errors that would quote it."""
    for split in ("test[:1]", "test[0:1]+test[2:3]"):
        kind, content = visitor.submit(visitor.upload(predictions), "probe", split)
        assert kind == "error" and "Expected the name of a split" in content
    (gold,) = {path.resolve() for path in (home / "hub").rglob("test-*.parquet") if "keeper" in str(path)}
    cached = list((home / "datasets").rglob("*.arrow"))
    assert cached
    for path in (gold, *cached, aside / "space" / "settings.json"):
        with pytest.raises(urllib.error.HTTPError, match=r"403|404"):
            visitor.ask(f"/file={urllib.parse.quote(str(path))}")
        kind, content = visitor.submit(str(path), "probe")
        assert kind == "error" and "Line" not in content, "read as predictions"
    broken = aside / "broken.jsonl"
    broken.write_text("".join(predictions.read_text().splitlines(keepends=True)[1:]))
    kind, content = visitor.submit(visitor.upload(broken), "probe")
    assert kind == "error" and "eraser_agreement" in content
