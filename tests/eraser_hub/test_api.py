"""The public functions: typed keyword arguments, examples that run, and results that print and are saved."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import pkgutil
from dataclasses import replace
from pathlib import Path

import pytest

import eraser_hub
from eraser_hub.cli import VERBS

from ..refusals import refused

PUBLIC = [*("import_corpus" if verb == "import" else verb for verb in VERBS), "load", "explain_texts"]


@pytest.fixture(scope="module")
def folder(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``hub/eraser`` of the samples."""
    folder = tmp_path_factory.mktemp("api")
    eraser_hub.build("eraser", samples / "eraser", out=folder / "hub")
    return folder


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_run(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    test = doctest.DocTestParser().get_doctest(getattr(eraser_hub, name).__doc__, {}, name, None, None)
    result = doctest.DocTestRunner().run(test)
    assert result.failed == 0 and result.attempted


@pytest.mark.parametrize("name", PUBLIC)
def test_each_is_public_and_says_what_it_takes_and_returns(name):
    text = inspect.getdoc(getattr(eraser_hub, name))
    assert name in eraser_hub.__all__ and "Returns:\n" in text
    for parameter in inspect.signature(getattr(eraser_hub, name)).parameters.values():
        typed = parameter.kind is not parameter.VAR_KEYWORD or parameter.annotation.startswith("Unpack[")
        assert typed and f"\n    {parameter.name}: " in text.replace("**", ""), parameter


def test_a_wrong_argument_is_named_as_python_has_it(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for call, argument, words in (
        (lambda: eraser_hub.build("eraser", config="movie"), "config", "movie"),
        (lambda: eraser_hub.build("metrics", source=folder), "source", ""),
        (lambda: eraser_hub.check("nowhere"), "dataset", ""),
        (lambda: eraser_hub.load("eraser", "movies", "dev"), None, "validation"),
        (lambda: eraser_hub.compare("a.jsonl", "b.jsonl", names=["a", "b"]), "names", ""),
        (lambda: eraser_hub.explain("model", "hub/eraser", out="p.jsonl", queries=["why?"]), "queries", "texts"),
    ):
        with refused(words, argument=argument):
            call()


def test_functions_are_callable_after_every_module_was_imported():
    for found in pkgutil.walk_packages(eraser_hub.__path__, "eraser_hub."):
        if not found.name.startswith(("eraser_hub.metrics.app", "eraser_hub.__main__")):
            try:
                importlib.import_module(found.name)
            except ModuleNotFoundError as error:  # an extra that is not installed
                assert not str(error.name).startswith("eraser_hub"), error
    assert all(callable(getattr(eraser_hub, name)) for name in PUBLIC)


def test_results_show_their_headline_scores_in_a_session(folder, samples):
    file, other = (samples / "predictions" / "eraser" / f"movies.val{name}.jsonl" for name in ("", ".baseline"))
    where = {"dataset": folder / "hub" / "eraser", "config": "movies", "split": "val"}
    scores = eraser_hub.score(file, **where, confidence_level=0.95)
    (token,) = [line.split() for line in repr(scores).splitlines() if line.startswith("token_macro_f1")]
    low, high = scores.intervals["token_macro_f1"]
    assert token[1:4] == [f"{scores.scores[token[0]]:.4f}", f"[{low:.4f},", f"{high:.4f}]"]
    result = eraser_hub.compare(predictions={"ours": file, "theirs": [other]}, **where, resamples=50)
    lines = repr(result).splitlines()
    assert lines[0] == "ours against theirs, 24 instances"
    assert [line.split()[0] for line in lines[2 : 2 + len(result["family"])]] == result["family"]
    assert set(result["notes"]) | set(result["score_notes"]) <= set(lines)
    pair = eraser_hub.compare(f"ours={file}", predictions={"theirs": other}, **where, resamples=50)
    assert json.dumps(pair) == json.dumps(result)


def test_a_comparison_takes_what_score_gave(folder, samples, tmp_path):
    ours, theirs = (samples / "predictions" / "eraser" / f"movies.val{name}.jsonl" for name in ("", ".baseline"))
    source = {"dataset": folder / "hub" / "eraser", "config": "movies", "split": "val"}
    by_files = eraser_hub.compare({"ours": ours, "theirs": theirs}, resamples=50, **source)
    scores = [eraser_hub.score(one, per_instance=True, **source) for one in (ours, theirs)]
    by_scores = eraser_hub.compare(*scores, names=["ours", "theirs"], resamples=50)
    assert by_scores["scores"] == by_files["scores"] and list(by_files["scores"]) == ["ours", "theirs"]
    assert by_scores.to_frame()["difference"].tolist() == by_files.to_frame()["difference"].tolist()
    half, copy = tmp_path / "half.jsonl", tmp_path / "ours.jsonl"
    half.write_text("".join(theirs.read_text().splitlines(keepends=True)[:12]))
    partly = [eraser_hub.score(one, per_instance=True, only_predicted=True, **source) for one in (half, half)]
    same = eraser_hub.compare(*partly, names=["one", "two"])["comparisons"][0]["keys"]
    assert same["token_macro_f1"]["difference"] == 0, "not all of the gold has predictions"
    copy.write_bytes(ours.read_bytes())
    own, sums = eraser_hub.score(copy, per_instance=True, **source), eraser_hub.score(theirs, **source)
    other = replace(scores[1], data_digest=64 * "0")
    for systems, settings, words, place in (
        ((scores[0], sums), {}, "per_instance=True", {"argument": "systems"}),
        (scores, {"names": ["one"]}, "2 different names", {"argument": "names"}),
        (scores, {"names": ["one", "one"]}, "2 different names", {"argument": "names"}),
        (scores, {"cluster_by": "none"}, "scores have theirs already", {"argument": "cluster_by"}),
        ((own, scores[1]), {"out": copy, "force": True}, "another file than the input", {"file": copy}),
        ((scores[0], other), {}, "same data", {}),
    ):
        with refused(words, **place):
            eraser_hub.compare(*systems, **settings)
