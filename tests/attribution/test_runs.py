"""Whole runs: files, resuming after a stop or a kill, the command line's words and exit status, Ray."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import eraser_hub

pytest.importorskip("sklearn")
from eraser_hub.attribution.dataset import open_split
from eraser_hub.attribution.outputs import get_partial_path, open_partial_result
from eraser_hub.attribution.run import compute_model_digest
from eraser_hub.records.errors import BusyError
from eraser_hub.records.predictions import run_path

from ..command_line import invoke
from ..refusals import refused
from .conftest import CountingModel, make_hub

ENVIRONMENT = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "RAY_AUTH_MODE": "disabled"}


class Stop(Exception):
    pass


@pytest.fixture
def run(hub: Path, linear: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Explain the validation split; ``stop_after`` so many instances."""
    from eraser_hub.attribution import outputs

    keep = outputs.PartialResult.append

    def explain(out: Path | str = "p.jsonl", stop_after: int = 0, **more: Any) -> Any:
        seen = [0]

        def append(self, number, record):
            keep(self, number, record)
            seen[0] += record["instances"]
            if stop_after and seen[0] >= stop_after:
                raise Stop

        given = {"model": linear, "dataset": hub, "config": "movies", "split": "val", "chunk": 4, "random_draws": 2}
        with monkeypatch.context() as patched, pytest.raises(Stop) if stop_after else nullcontext():
            patched.setattr(outputs.PartialResult, "append", append)
            return eraser_hub.explain(**given | {"out": tmp_path / out, **more})[0]
        return None

    return explain


@pytest.fixture
def whole(run) -> bytes:
    """The bytes of an undisturbed run."""
    return run("whole.jsonl").out.read_bytes()


@pytest.mark.parametrize(
    ("stopped_after", "cut", "more"),
    [(4, 0, b""), (12, 0, b""), (21, 0, b""), (12, 1, b""), (12, 300, b""), (8, 0, b'{"other": 1}\n')],
)
def test_a_stopped_run_goes_on_to_the_same_bytes(run, tmp_path, whole, stopped_after, cut, more):
    """Stopped between chunks, cut within a line, or with a line that no run wrote at its end."""
    out = tmp_path / "p.jsonl"
    run(stop_after=stopped_after)
    partial = get_partial_path(out)
    data = partial.read_bytes()
    assert not out.exists()
    with refused("resume", file=partial):
        run()
    with refused("resume", "kd", "0.1", "0.2", "seed", "1", "2"):
        run(kd=0.2, seed=2, resume=True)
    assert partial.read_bytes() == data
    partial.write_bytes(data[: len(data) - cut] + more)
    report = run(resume=True)
    assert (report.resumed >= stopped_after or cut) and out.read_bytes() == whole
    assert run(resume=True).passes == 0 and out.read_bytes() == whole


def test_other_data_or_another_model_is_noticed(run, tmp_path, linear):
    run(stop_after=4)
    with refused("resume", "limit", "None", "3"):
        run(limit=3, resume=True)
    other = tmp_path / linear.name
    shutil.copytree(linear, other)
    single = compute_model_digest(str(other / "model.skops"))
    (other / "model.json").write_text((other / "model.json").read_text() + "\n")
    assert compute_model_digest(str(other / "model.skops")) != single  # a file is used as the card beside it says
    with refused("resume", "digest"):
        run(model=other, resume=True)


def test_someone_elses_file_is_not_touched(run, tmp_path):
    partial = get_partial_path(tmp_path / "p.jsonl")
    partial.write_text("my notes")
    with refused(file=partial, line=1):
        run(resume=True)
    assert partial.read_text() == "my notes"
    partial.unlink()
    with open_partial_result(tmp_path / "p.jsonl", {"settings": {}}, False), pytest.raises(BusyError):
        run(resume=True)


def test_a_file_that_no_run_wrote_is_not_replaced(run, tmp_path):
    out = make_hub(tmp_path / "hub") / "movies" / "validation-00000-of-00001.parquet"
    before = out.read_bytes()
    with refused("force", file=out):
        run(out)
    for force in (False, True):
        with refused(file=out):
            run(out, dataset=tmp_path / "hub", force=force)
    assert out.read_bytes() == before and len(list(out.parent.iterdir())) == 2


def test_another_result_is_replaced_by_force_alone(run, tmp_path, whole):
    out = run().out
    assert run().resumed == 0  # the same settings replace it
    assert sorted(path.name for path in tmp_path.glob("p.*")) == ["p.jsonl", "p.jsonl.run.json"]
    with refused("out", "kd", "0.1", "0.2", "force"):
        run(kd=0.2)
    assert out.read_bytes() == whole
    assert run(kd=0.2, force=True).instances == 21
    run_path(out).unlink()
    with refused("force", file=out):
        run()
    assert run(force=True).out.read_bytes() == whole


def test_scores_are_never_replaced_by_their_explanation(run, tmp_path, whole):
    scores = tmp_path / "p.jsonl"
    scores.write_bytes(whole)
    os.link(scores, tmp_path / "out.jsonl")
    for out in ("p.jsonl", "out.jsonl"):
        with refused(file=tmp_path / out):
            run(out, scores=scores, force=True)
    assert scores.read_bytes() == whole
    os.mkfifo(tmp_path / "q.jsonl.partial")
    with refused(file="q.jsonl.partial"):
        run("q.jsonl", force=True)


def test_a_sample_is_the_same_in_every_draw(run, tmp_path, hub):
    run("r.jsonl", method="random(draws=2)", sample=4, seed=7)
    drawn = [one.id for one in open_split(hub, "movies", "val").sample(4, 7).instances()]
    files = [tmp_path / f"r.draw-0{draw}.jsonl" for draw in (1, 2)]
    for path in files:
        assert [json.loads(line)["annotation_id"] for line in path.read_text("utf-8").splitlines()] == drawn
    assert files[0].read_bytes() != files[1].read_bytes()


def test_a_model_in_memory_explains_a_dataset(run, linear, tmp_path):
    import skops.io

    pipeline = skops.io.load(linear / "model.skops")
    folder, memory = run("f.jsonl"), run("m.jsonl", model=pipeline)
    assert folder.out.read_bytes() == memory.out.read_bytes()
    record = json.loads((tmp_path / "m.jsonl.run.json").read_text())
    assert record["model"]["model"] == record["model"]["digest"] == "sklearn.pipeline.Pipeline"
    assert "model:sklearn.pipeline.Pipeline|" in memory.signature
    counted = run("c.jsonl", model=CountingModel())
    assert counted.instances == 21 and "CountingModel" in counted.signature
    for argument in ({"resume": True}, {"workers": 2}, {"ids": ["a"]}, {"queries": ["a"]}):
        with refused(argument=next(iter(argument))):
            run("d.jsonl", model=CountingModel(), **argument)


# --- the command line --------------------------------------------------------------------------------------------


def call(*words: str):
    return invoke(["explain", *words])


def test_several_methods_and_draws_write_a_file_each(hub, linear, tmp_path):
    out, draws = tmp_path / "r.jsonl", [f"r.random.draw-{n:02d}.jsonl" for n in range(1, 11)]
    words = f"--dataset {hub} --split val --model {linear} --out {out} --bins 0.5 --limit 9 --method".split()
    found = call(*words, "random(draws=10)", "--method", "occlusion")
    assert found.exit_code == 0 and f"{tmp_path / draws[0]}: 9 instances" in found.stdout, found.output
    assert sorted(file.name for file in tmp_path.glob("*.jsonl")) == ["r.occlusion.jsonl", *draws]
    files = [(tmp_path / name).read_bytes() for name in draws]
    assert len(set(files)) == 10
    call(*words, "random", "--seed", "3")
    assert out.read_bytes() == files[2]


@pytest.mark.parametrize(
    ("option", "value", "status", "mentions"),
    [
        ("--bins", "x", 2, ()),
        ("--split", "dev", 2, ()),
        ("--method", "oclusion", 2, ("did you mean 'occlusion'?",)),
        ("--method", "lime --method lime(samples=9)", 2, ("each method once",)),
        ("--method", "attention", 2, ("attention", "LogisticRegression", "random, shapley")),
        ("--model", "{linear}(labels=[a,b])", 1, ("NEG, POS", "a, b")),
        ("--config", "films", 2, ("films",)),
        ("--dataset", "./nowhere", 1, ("nowhere", "eraser-hub build")),
    ],
)
def test_wrong_options_and_bad_data_have_their_exit_status(hub, linear, tmp_path, option, value, status, mentions):
    options = {"--dataset": str(hub), "--split": "val", "--model": str(linear), "--out": str(tmp_path / "p.jsonl")}
    options[option] = value.format(linear=linear)
    found = call(*(word for name, words in options.items() for word in (name, *words.split(" "))))
    assert found.exit_code == status and "Traceback" not in found.output, found.output
    assert all(mention in found.stderr for mention in mentions), found.stderr
    assert not list(tmp_path.iterdir())


def test_an_interrupted_run_says_how_it_goes_on(hub, linear, tmp_path, monkeypatch):
    from eraser_hub.attribution import outputs

    keep = outputs.PartialResult.append

    def append(*given):
        keep(*given)
        raise KeyboardInterrupt

    options = ("--dataset", str(hub), "--split", "val", "--model", str(linear), "--out", str(tmp_path / "p.jsonl"))
    with monkeypatch.context() as patched:
        patched.setattr(outputs.PartialResult, "append", append)
        found = call(*options)
    assert found.exit_code == 130 and "stopped" in found.stderr and "`--resume`" in found.stderr
    assert get_partial_path(tmp_path / "p.jsonl").exists()
    assert call(*options, "--resume").exit_code == 0


# --- kills, and workers ------------------------------------------------------------------------------------------


@pytest.fixture
def command(hub: Path, linear: Path):
    given = f"-m eraser_hub explain --dataset {hub} --split val --model {linear} --out".split()
    return lambda out, *more, samples=60: [sys.executable, *given, out, "--method", f"lime(samples={samples})", *more]


@pytest.mark.slow
def test_a_full_disk_is_said_by_file_and_the_run_goes_on_later(command, tmp_path):
    """A limit on the size of files gives the same error of writing as a disk without room."""
    subprocess.run(command(tmp_path / "whole.jsonl"), env=ENVIRONMENT, check=True, timeout=300)
    out, whole = tmp_path / "p.jsonl", (tmp_path / "whole.jsonl").read_bytes()
    limits = (len(whole) - 1000, len(whole) - 1000)
    limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits)}
    ran = subprocess.run(command(out), env=ENVIRONMENT, capture_output=True, text=True, check=False, **limit)
    assert ran.returncode == 1 and "Traceback" not in ran.stderr, ran.stderr
    assert f"{get_partial_path(out)}: File too large" in ran.stderr and "`--resume`" in ran.stderr
    assert not out.exists()
    subprocess.run(command(out, "--resume"), env=ENVIRONMENT, check=True, timeout=300)
    assert out.read_bytes() == whole


@pytest.mark.slow
@pytest.mark.ray
def test_a_killed_worker_gives_the_same_bytes(command, tmp_path):
    """Ray starts it anew by itself."""
    psutil = pytest.importorskip("psutil")
    pytest.importorskip("ray")
    subprocess.run(command(tmp_path / "whole.jsonl", samples=1000), env=ENVIRONMENT, check=True, timeout=300)
    out = tmp_path / "p.jsonl"
    partial, killed = get_partial_path(out), []
    running = subprocess.Popen(command(out, "--workers", "2", samples=1000), env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    while running.poll() is None and not killed:
        if partial.exists() and partial.read_bytes().count(b"\n") > 1:  # the settings and a first chunk
            below = psutil.Process(running.pid).children(recursive=True)
            killed = [one for one in below if any("MapWorker" in word for word in one.cmdline())][:1]
        for worker in killed:
            worker.kill()
        time.sleep(0.01)
    assert killed, "it ended before anything was killed"
    assert running.wait(timeout=300) == 0
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes() and not partial.exists()


@pytest.mark.slow
@pytest.mark.ray
def test_workers_measure_as_a_run_without_them(run):
    pytest.importorskip("ray")
    asked = ["aopc-bounds", "soft(draws=4)", "infidelity(draws=3)", "sensitivity(draws=2)"]
    files = [
        run(f"{workers}.jsonl", method="shapley", measure=asked, units="sentences", workers=workers).out
        for workers in (0, 1)
    ]
    assert files[0].read_bytes() == files[1].read_bytes()
