"""Bounds of AOPC that one run has found serve others of the same model and data: the same numbers, and no search."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

pytest.importorskip("sklearn")
from typer.testing import CliRunner

from eraser_hub.__main__ import _register, app
from eraser_hub.attribution.config import ExplainConfig
from eraser_hub.attribution.costs import count_inputs
from eraser_hub.attribution.run import explain, explain_runs, seed_runs
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.records.run_record import run_path

from ..refusals import refused
from .conftest import instance

SETTINGS = ExplainSettings(method="random", units="sentences", aopc_bounds=True, beam=2, bins=())
OTHERS = {"units": "tokens", "beam": 3, "erase": "mask", "target": "gold"}


@pytest.fixture(scope="module")
def job(hub, linear):
    return ExplainConfig(dataset=str(hub), config="movies", split="val", model=str(linear), limit=6)


@pytest.fixture(scope="module")
def bounds(job, tmp_path_factory):
    """A result with bounds, by another method."""
    out = tmp_path_factory.mktemp("bounds") / "coefficients.jsonl"
    explain(job, replace(SETTINGS, method="coefficients"), out)
    return out


def test_bounds_of_another_method_are_those_that_would_be_found(job, bounds, tmp_path):
    searched = explain(job, SETTINGS, tmp_path / "searched.jsonl")
    words = list[str]()
    shared = explain(
        replace(job, aopc_bounds_from=bounds),
        SETTINGS,
        tmp_path / "shared.jsonl",
        on_cost=words.append,
        max_inputs=10**6,
    )
    assert (tmp_path / "shared.jsonl").read_bytes() == (tmp_path / "searched.jsonl").read_bytes()
    assert shared.signature == searched.signature and shared.inputs < searched.inputs
    (line,) = words
    assert line.startswith("cost: at most ") and "`measure` aopc-bounds" in line
    # a finished run without them is that run
    assert explain(job, SETTINGS, tmp_path / "shared.jsonl", resume=True).resumed == 6


def test_known_bounds_cost_the_ranking_s_own_curves_alone():
    one = replace(instance("a b c d e f"), sentences=((2, 2, 2),))
    assert count_inputs(one, SETTINGS, "eraser")["`measure` aopc-bounds"] == 2**3 + 2 * 3
    assert count_inputs(replace(one, aopc_bounds=(0.0, 1.0)), SETTINGS, "eraser")["`measure` aopc-bounds"] == 2 * 3


def test_draws_search_once(job, tmp_path):
    outs = [tmp_path / f"{draw}.jsonl" for draw in range(3)]
    first, *others = explain_runs(job, seed_runs(SETTINGS, outs))
    assert all(other.inputs < first.inputs for other in others)
    explain(job, replace(SETTINGS, seed=SETTINGS.seed + 2), tmp_path / "alone.jsonl")
    assert (tmp_path / "alone.jsonl").read_bytes() == outs[2].read_bytes()


def test_draws_explain_the_same_sample(job, tmp_path):
    outs = [tmp_path / f"{draw}.jsonl" for draw in range(2)]
    first, second = explain_runs(replace(job, limit=None, sample=5), seed_runs(SETTINGS, outs))
    ids = [[json.loads(line)["annotation_id"] for line in out.read_text("utf-8").splitlines()] for out in outs]
    assert ids[0] == ids[1] and second.inputs < first.inputs
    alone = tmp_path / "alone.jsonl"
    explain(replace(job, limit=None, sample=5), replace(SETTINGS, seed=SETTINGS.seed + 1), alone)
    assert [json.loads(line)["annotation_id"] for line in alone.read_text("utf-8").splitlines()] != ids[0]


@pytest.mark.parametrize(("name", "value"), OTHERS.items())
def test_bounds_of_other_inputs_are_refused(job, bounds, tmp_path, name, value):
    settings = replace(SETTINGS, **{name: value})
    with refused("constant", "aopc_bounds_from", name, file=bounds):
        explain(replace(job, aopc_bounds_from=bounds), settings, tmp_path / "p.jsonl")
    assert not list(tmp_path.iterdir())


def test_bounds_of_other_data_or_of_another_model_are_refused(job, bounds, linear, tmp_path):
    shutil.copytree(linear, tmp_path / "other")
    (tmp_path / "other" / "notes.txt").write_text("retrained", "utf-8")
    for other, mentions in (
        ({"split": "train"}, ("split", "'validation'", "'train'")),
        ({"limit": 5}, ("limit", "6", "5")),
        ({"model": str(tmp_path / "other")}, ("digest", "model", "'other'")),
    ):
        with refused("constant", "aopc_bounds_from", *mentions, file=bounds):
            explain(replace(job, aopc_bounds_from=bounds, **other), SETTINGS, tmp_path / "p.jsonl")


def test_several_ways_of_erasing_take_no_bounds(job, bounds, tmp_path):
    settings = replace(SETTINGS, also_erase=("mask",))
    with refused("option-conflict", "aopc_bounds_from"):
        explain(replace(job, aopc_bounds_from=bounds), settings, tmp_path / "p.jsonl")


def test_results_that_have_no_bounds_are_refused(job, bounds, tmp_path):
    lines = [json.loads(line) for line in bounds.read_text("utf-8").splitlines()]
    copy = tmp_path / "b.jsonl"
    with refused("key-missing", "aopc_bounds_from", "'settings'", file=run_path(copy)):
        explain(replace(job, aopc_bounds_from=copy), SETTINGS, tmp_path / "p.jsonl")
    shutil.copy(run_path(bounds), run_path(copy))
    del lines[2]["aopc_bounds"]
    copy.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    with refused("score-missing", "aopc_bounds_from", "aopc_bounds", file=copy, line=3, instance="doc102"):
        explain(replace(job, aopc_bounds_from=copy), SETTINGS, tmp_path / "p.jsonl")
    copy.write_text("".join(json.dumps(line) + "\n" for line in lines[:2]), "utf-8")
    with refused("id-missing", "aopc_bounds_from", file=copy, instance="doc102"):
        explain(replace(job, aopc_bounds_from=copy), SETTINGS, tmp_path / "p.jsonl")


def test_the_option_asks_for_the_score(job, bounds, tmp_path):
    _register(("explain",))
    words = [*f"explain --dataset {job.dataset} --config movies --split val --model {job.model} --limit 6".split()]
    words += ["--method", "occlusion", "--units", "sentences", "--set", "beam=2", "--quiet", "--bins", ""]
    words += ["--set", f"aopc_bounds_from={bounds}"]
    result = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "p.jsonl")])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text("utf-8").splitlines()]
    theirs = [json.loads(line) for line in bounds.read_text("utf-8").splitlines()]
    assert [row["aopc_bounds"]["upper"] for row in rows] == [row["aopc_bounds"]["upper"] for row in theirs]
