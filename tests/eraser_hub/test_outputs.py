"""Every verb's output options: inputs, pipes and other files are refused, before the work and without a loss."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import eraser_hub
from eraser_hub.scoring import scored_split

from ..command_line import invoke
from ..refusals import refused

SPLIT = ["--dataset", "hub/eraser", "--config", "movies", "--split", "val"]
P, Q = ["--predictions", "p.jsonl"], ["--predictions", "q.jsonl"]
# verb -> its command without the place of its output, and the option of that place; {} becomes the file of a folder
VERBS = {
    "score": ([*SPLIT, *P], "--out", "{}"),
    "compare": ([*SPLIT, *P, *Q, "--resamples", "20"], "--out", "{}"),
    "report": ([*SPLIT, *P], "--out", "{}/index.html"),
    "report scores": ([*SPLIT, *P], "--out", "{}/p.scores.json"),
    "board": (["--scores", "s.json"], "--out", "{}/index.html"),
    "board data": (["--scores", "s.json"], "--out", "{}/board.json"),
}


@pytest.fixture(scope="module")
def built(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs")
    eraser_hub.build("eraser", samples / "eraser", config="movies", out=folder / "hub")
    of = {"dataset": folder / "hub/eraser", "config": "movies", "split": "val"}
    scored = eraser_hub.score(samples / "predictions/eraser/movies.val.jsonl", **of)
    scored.save(folder / "s.json")
    return folder


@pytest.fixture
def place(built: Path, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with hub/eraser, predictions and a score file, in which commands run."""
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    for name, file in (("p", "movies.val"), ("q", "movies.val.baseline")):
        shutil.copyfile(samples / "predictions" / "eraser" / f"{file}.jsonl", tmp_path / f"{name}.jsonl")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(verb: str, output: str, *more: str) -> Any:
    """Run a verb with its output at a place; None where it succeeds, else what it raised."""
    words, option, pattern = VERBS[verb]
    target = os.path.dirname(output) if "/" in pattern else output
    return invoke([verb.split()[0], *words, option, target, *more])


def name(verb: str) -> str:
    """The path of the verb's file below the folder ``made`` where it writes a folder."""
    return VERBS[verb][2].format("made") if "/" in VERBS[verb][2] else "made.out"


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize("verb", VERBS)
def test_an_input_and_a_pipe_are_refused_before_the_work(
    verb: str, force: list[str], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scored_split.ScoredSplit, "built", property(lambda self: 1 / 0))
    source, out = place / ("s.json" if verb.startswith("board") else "p.jsonl"), place / name(verb)
    before = source.read_bytes()
    out.parent.mkdir(exist_ok=True)
    os.link(source, out)
    with refused():
        raise run(verb, name(verb), *force).exception
    assert source.read_bytes() == out.read_bytes() == before
    out.unlink()
    os.mkfifo(out)
    with refused():
        raise run(verb, name(verb), *force).exception


@pytest.mark.parametrize("verb", VERBS)
def test_another_file_is_refused_before_the_work_and_replaced_by_force(verb: str, place: Path) -> None:
    out = place / name(verb)
    out.parent.mkdir(exist_ok=True)
    out.write_text("my thesis")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scored_split.ScoredSplit, "built", property(lambda self: 1 / 0))
        with refused():
            raise run(verb, name(verb)).exception
    assert out.read_text() == "my thesis"
    assert run(verb, name(verb), "--force").exception is None
    written = out.read_bytes()
    assert written != b"my thesis"
    assert run(verb, name(verb)).exception is None, "a run's own file is replaced"
    assert out.read_bytes() == written


@pytest.mark.parametrize("argument", ["p.jsonl", "hub/eraser/README.md"])
def test_results_do_not_save_over_their_inputs(argument: str, place: Path) -> None:
    before = (place / argument).read_bytes()
    split: dict[str, Any] = {"dataset": "hub/eraser", "config": "movies", "split": "val"}
    compared = eraser_hub.compare("p.jsonl", "q.jsonl", **split, resamples=20)
    for result in (eraser_hub.score("p.jsonl", **split), compared):
        with refused():
            result.save(place / argument, force=True)
    assert (place / argument).read_bytes() == before


def test_figures_of_others_stay(place: Path) -> None:
    pytest.importorskip("matplotlib")
    assert run("report", "made/index.html", "--figures", "figures").exception is None
    figure = sorted((place / "figures").iterdir())[0]
    figure.write_text("mine")
    with refused(file=figure.name):
        raise run("report", "made/index.html", "--figures", "figures").exception
    assert figure.read_text() == "mine"


def test_a_model_is_not_trained_into_its_input(place: Path) -> None:
    (place / "m").mkdir()
    for model, out in (("logistic-regression", "hub/eraser"), ("m", "m")):
        with refused(argument="out"):
            eraser_hub.train(dataset="hub/eraser", config="movies", model=model, out=out)


def test_scores_for_explain_replace_no_other_file(place: Path) -> None:
    from eraser_hub import load, tokens, write_scores

    rows = [load("hub/eraser", "movies", "val")[0]]
    scores = [[0.0] * sum(map(len, tokens(rows[0])))]
    with refused(file="p.jsonl"):
        write_scores("p.jsonl", rows, scores)
    for _ in range(2):  # its own file is replaced
        assert write_scores("s.jsonl", rows, scores) == 1
    assert write_scores("p.jsonl", rows, scores, force=True) == 1
