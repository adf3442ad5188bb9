"""Token scores from elsewhere go through the same erasure as our own."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice

import pytest
import typer

pytest.importorskip("sklearn")
from typer.testing import CliRunner

from eraser_hub.commands.explain import explain as explain_verb
from eraser_hub.explain import Instance, explain_texts
from eraser_hub.explain.dataset import open_split
from eraser_hub.explain.given import GivenScores
from eraser_hub.explain.run import explain
from eraser_hub.explain.settings import ExplainSettings
from eraser_hub.explain.work import Job
from eraser_hub.records.errors import DataError

from .conftest import CountingModel

SETTINGS = ExplainSettings(method="occlusion", chunk=4, random_draws=2)


@pytest.fixture
def job(hub, linear):
    return Job(dataset=str(hub), config="movies", split="val", model=str(linear))


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_the_scores_of_a_run_give_its_predictions_again(job, tmp_path, ending):
    first = tmp_path / f"occlusion.{ending}"
    explain(job, SETTINGS, first)
    again = explain(replace(job, scores=first), SETTINGS, tmp_path / f"again.{ending}")
    assert (tmp_path / f"again.{ending}").read_bytes() == first.read_bytes()
    assert "method:given" in again.signature and f"scores:{GivenScores(first).digest}" in again.signature


@pytest.mark.slow
def test_ray_takes_them_as_well(job, tmp_path):
    pytest.importorskip("ray")
    explain(job, SETTINGS, tmp_path / "occlusion.jsonl")
    given = replace(job, scores=tmp_path / "occlusion.jsonl")
    explain(given, SETTINGS, tmp_path / "ray.jsonl", engine="ray", workers=2)
    assert (tmp_path / "ray.jsonl").read_bytes() == (tmp_path / "occlusion.jsonl").read_bytes()


def row(name="x", scores=(0.1, 0.2), docid="d", **more):
    return {"annotation_id": name, "rationales": [{"docid": docid, "soft_rationale_predictions": list(scores)}], **more}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["{"], r"s\.jsonl:1: not JSON"),
        (["[]"], r"s\.jsonl:1: expected `object`, got `array`"),
        ([json.dumps({"annotation_id": "x"})], "rationales"),
        ([json.dumps({"annotation_id": "x", "rationales": [{"docid": "d"}]})], r"rationales\[0\].*found none"),
        ([json.dumps(row()), "", json.dumps(row())], r"s\.jsonl:3.*expected each id once"),
        ([json.dumps(row(scores=["0.5", 1]))], r"s\.jsonl:1: instance 'x': .*soft_rationale_predictions"),
        ([json.dumps({**row(), "rationales": row()["rationales"] * 2})], "expected each document once"),
        ([json.dumps(row(name="other"))], "expected token scores for each instance, found none"),
        (
            [json.dumps(row(docid="other"))],
            r"s\.jsonl:1: instance 'x': rationales: expected documents among 'd', found 'other'",
        ),
        ([json.dumps({"annotation_id": "x", "rationales": []})], "expected token scores for document 'd', found none"),
        (
            [json.dumps(row(scores=[1]))],
            r"s\.jsonl:1: instance 'x': soft_rationale_predictions: expected 2 finite scores for the tokens of 'd', found 1",
        ),
        ([json.dumps(row()).replace("0.1", "1e999")], "s.jsonl.*(finite|out of range)"),
    ],
)
def test_bad_files_are_refused_with_their_place(tmp_path, lines, words):
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    with pytest.raises(DataError, match=words) as found:
        GivenScores(path).put_on(Instance("x", (), ("d",), (("good", "film"),)))
    assert "s.jsonl" in str(found.value)


def test_a_document_without_tokens_needs_no_scores(tmp_path):
    (tmp_path / "s.jsonl").write_text(json.dumps(row()) + "\n", "utf-8")
    found = GivenScores(tmp_path / "s.jsonl").put_on(Instance("x", (), ("d", "e"), (("good", "film"), ())))
    assert found.scores == ((0.1, 0.2), ())


def test_a_missing_instance_is_told_before_anything_is_explained(job, tmp_path):
    (tmp_path / "s.jsonl").write_text(json.dumps(row("none of these")) + "\n", "utf-8")
    with pytest.raises(DataError, match="none of its ids occur: another corpus or split"):
        explain(replace(job, scores=tmp_path / "s.jsonl"), SETTINGS, tmp_path / "p.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["s.jsonl"]


def test_all_that_is_missing_is_told_at_once(job, tmp_path):
    explain(job, SETTINGS, tmp_path / "whole.jsonl")
    lines = (tmp_path / "whole.jsonl").read_text().splitlines()
    (tmp_path / "s.jsonl").write_text("\n".join(lines[15:]))
    with pytest.raises(DataError) as error:
        explain(replace(job, scores=tmp_path / "s.jsonl"), SETTINGS, tmp_path / "p.jsonl")
    assert str(error.value).count("\n") == 10 and "… and 5 more (15 in all)" in str(error.value)
    first = islice(open_split(job.dataset, "movies", "val").instances(), 20)
    with pytest.raises(DataError, match=r"whole\.jsonl:21: .*expected an instance of the split, found another"):
        GivenScores(tmp_path / "whole.jsonl").check(first, partly=False)
    explain(replace(job, scores=tmp_path / "whole.jsonl", limit=4), SETTINGS, tmp_path / "p.jsonl")


def test_the_command_line_takes_a_method_or_scores(job, tmp_path):
    words = ["--dataset", job.dataset, "--config", "movies", "--split", "val", "--model", job.model,
             "--quiet"]  # fmt: skip
    app = typer.Typer()
    app.command()(explain_verb)
    run = CliRunner().invoke
    first, again = str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")
    done = run(app, [*words, "--out", first])
    assert done.exit_code == 0, done.output
    assert run(app, [*words, "--scores", first, "--out", again]).exit_code == 0
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    both = run(app, [*words, "--scores", first, "--method", "lime", "--out", again])
    assert both.exit_code == 2 and "found both" in " ".join(both.output.replace("│", " ").split())
    assert run(app, [*words, "--scores", str(tmp_path / "none.jsonl"), "--out", again]).exit_code != 0


def test_scores_from_python():
    own = explain_texts(CountingModel(), ["the good film"], method="occlusion", kd=0.3)
    scores = [own[0]["rationales"][0]["soft_rationale_predictions"]]
    assert explain_texts(CountingModel(), ["the good film"], scores=scores, kd=0.3) == own
    other = explain_texts(CountingModel(), ["the good film"], scores=[[3, 2, 1]], kd=0.3)
    assert other[0]["rationales"][0]["hard_rationale_predictions"] == [{"start_token": 0, "end_token": 1}]
    with pytest.raises(DataError, match="expected 3 finite scores for the tokens of '0', found 2"):
        explain_texts(CountingModel(), ["the good film"], scores=[[1, 2]])
    with pytest.raises(DataError, match="not all of them finite"):
        explain_texts(CountingModel(), ["the good"], scores=[[1, float("nan")]])
    with pytest.raises(DataError, match="expected scores for each of 1 texts, found 2"):
        explain_texts(CountingModel(), ["the good"], scores=[[1, 2], [1, 2]])
    with pytest.raises(DataError, match="expected numbers"):
        explain_texts(CountingModel(), ["the good"], scores=[["a", 2]])
