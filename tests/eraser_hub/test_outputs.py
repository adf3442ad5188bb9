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
# what is written -> the words of its command without the place of the output, and the option's argument
VERBS = {
    "score": (["score", *SPLIT, *P, "--out"], "{}"),
    "compare": (["compare", *SPLIT, *P, *Q, "--resamples", "20", "--out"], "{}"),
    "report": (["report", *SPLIT, *P, "--out"], "{}/index.html"),
    "scores of a report": (["report", *SPLIT, *P, "--out"], "{}/p.scores.json"),
    "board": (["board", "--scores", "s.json", "--out"], "{}/index.html"),
    "data of a board": (["board", "--scores", "s.json", "--out"], "{}/board.json"),
}


@pytest.mark.parametrize("verb", [pytest.param(one, marks=[pytest.mark.slow] * ("of a" in one)) for one in VERBS])
def test_inputs_pipes_and_other_files_are_refused_before_the_work(verb: str, place: Path) -> None:
    (words, pattern), source = VERBS[verb], place / ("s.json" if "board" in verb else "p.jsonl")
    out, before = place / pattern.format("made"), source.read_bytes()

    def run(*more: str) -> Any:
        return invoke([*words, "made", *more]).exception

    out.parent.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scored_split.ScoredSplit, "built", property(lambda self: 1 / 0))
        for make, always in (
            (lambda: os.link(source, out), True),
            (lambda: os.mkfifo(out), True),
            (lambda: out.write_text("my thesis"), False),
        ):
            make()
            for force in ([], ["--force"])[: 1 + always]:
                with refused():
                    raise run(*force)
            if always:
                out.unlink()
    assert source.read_bytes() == before and out.read_text() == "my thesis"
    assert run("--force") is None
    written = out.read_bytes()
    assert written != b"my thesis" and run() is None, "a run's own file is replaced"
    assert out.read_bytes() == written


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


@pytest.mark.parametrize("argument", ["p.jsonl", "hub/eraser/README.md"])
def test_results_do_not_save_over_their_inputs(argument: str, place: Path) -> None:
    before = (place / argument).read_bytes()
    split: dict[str, Any] = {"dataset": "hub/eraser", "config": "movies", "split": "val"}
    compared = eraser_hub.compare("p.jsonl", "q.jsonl", **split, resamples=20)
    for result in (eraser_hub.score("p.jsonl", **split), compared):
        with refused():
            result.save(place / argument, force=True)
    assert (place / argument).read_bytes() == before


@pytest.mark.slow  # draws every figure
def test_figures_models_and_scores_for_explain_replace_no_other_file(place: Path) -> None:
    pytest.importorskip("matplotlib")
    report = ["report", *SPLIT, *P, "--out", "made", "--figures", "figures"]
    assert invoke(report).exception is None
    figure = sorted((place / "figures").iterdir())[0]
    figure.write_text("mine")
    with refused(file=figure.name):
        raise invoke(report).exception
    assert figure.read_text() == "mine"
    (place / "m").mkdir()
    for model, out in (("logistic-regression", "hub/eraser"), ("m", "m")):
        with refused(argument="out"):
            eraser_hub.train(dataset="hub/eraser", config="movies", model=model, out=out)
    rows = [eraser_hub.load("hub/eraser", "movies", "val")[0]]
    scores = [[0.0] * sum(map(len, eraser_hub.tokens(rows[0])))]
    with refused(file="p.jsonl"):
        eraser_hub.write_scores("p.jsonl", rows, scores)
    for _ in range(2):  # its own file is replaced
        assert eraser_hub.write_scores("t.jsonl", rows, scores) == 1
    assert eraser_hub.write_scores("p.jsonl", rows, scores, force=True) == 1
