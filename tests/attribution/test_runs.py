"""Whole runs: files, resuming after a kill, the command line's words and exit status, Ray."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

pytest.importorskip("sklearn")
from eraser_hub import train
from eraser_hub.attribution.adapters.scikit_learn import load_pipeline, save_pipeline
from eraser_hub.attribution.config import ExplainConfig
from eraser_hub.attribution.dataset import draw_stratified, open_split
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.outputs import get_partial_path, open_partial_result
from eraser_hub.attribution.run import compute_model_digest, explain, explain_runs, seed_runs
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.records.errors import BusyError
from eraser_hub.records.predictions import run_path
from eraser_hub.systems.baselines import fit_baseline
from eraser_hub.systems.system import SYSTEMS

from ..command_line import invoke
from ..refusals import refused
from .conftest import CountingModel, made_row, make_hub, told, write_hub

SETTINGS = ExplainSettings(method="occlusion", chunk=4, random_draws=2)
ENVIRONMENT = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "RAY_AUTH_MODE": "disabled"}


@pytest.fixture(scope="session")
def whole(hub: Path, linear: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of an undisturbed run with SETTINGS."""
    out = tmp_path_factory.mktemp("whole") / "p.jsonl"
    explain(ExplainConfig(dataset=str(hub), config="movies", split="val", model=str(linear)), SETTINGS, out)
    return out.read_bytes()


class Stop(Exception):
    pass


def stop_after(instances: int):
    seen = [0]

    def progress(done: int, passes: int) -> None:
        seen[0] += done
        if seen[0] >= instances:
            raise Stop

    return progress


def test_a_run_and_its_record(job, tmp_path, whole):
    report = explain(job, SETTINGS, tmp_path / "p.jsonl")
    assert report.instances == 21 and report.resumed == 0
    assert (tmp_path / "p.jsonl").read_bytes() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.jsonl", "p.jsonl.run.json"]
    record = json.loads((tmp_path / "p.jsonl.run.json").read_text())
    assert record["settings"]["method"] == "occlusion" and record["instances"] == 21
    assert "erase:remove" in record["signature"] and "ties:position" in record["signature"]


@pytest.mark.parametrize(
    ("stopped_after", "cut", "more"),
    [(4, 0, b""), (12, 0, b""), (21, 0, b""), (12, 1, b""), (12, 7, b""), (12, 300, b""), (8, 0, b'{"other": 1}\n')],
)
def test_a_stopped_run_goes_on_to_the_same_bytes(job, tmp_path, whole, stopped_after, cut, more):
    """Stopped between chunks, cut within a line, or with a line that no run wrote at its end."""
    out = tmp_path / "p.jsonl"
    with pytest.raises(Stop):
        explain(job, SETTINGS, out, on_progress=stop_after(stopped_after))
    partial = get_partial_path(out)
    data = partial.read_bytes()
    assert not out.exists()
    partial.write_bytes(data[: len(data) - cut] + more)
    report = explain(job, SETTINGS, out, resume=True)
    assert (report.resumed >= stopped_after or cut) and out.read_bytes() == whole
    again = explain(job, SETTINGS, out, resume=True)
    assert again.passes == 0 and out.read_bytes() == whole


@pytest.mark.parametrize("name", ["p.jsonl", "p.jsonl.partial"])
def test_an_empty_file_and_a_header_cut_by_a_kill_are_written_over(job, tmp_path, whole, name):
    out = tmp_path / "p.jsonl"
    (tmp_path / name).write_bytes(b"" if out.name == name else b'{"settings": {"me')
    explain(job, SETTINGS, out, resume=out.name != name)
    assert out.read_bytes() == whole


def test_a_stopped_run_is_not_thrown_away(job, tmp_path):
    out = tmp_path / "p.jsonl"
    with pytest.raises(Stop):
        explain(job, SETTINGS, out, on_progress=stop_after(4))
    before = get_partial_path(out).read_bytes()
    with refused("resume", file=get_partial_path(out)):
        explain(job, SETTINGS, out)
    with refused("resume", "kd", "0.1", "0.2", "seed", "1", "2"):
        explain(job, replace(SETTINGS, kd=0.2, seed=2), out, resume=True)
    assert get_partial_path(out).read_bytes() == before


def test_a_run_that_failed_before_its_first_chunk_leaves_nothing(job, tmp_path, whole):
    out = tmp_path / "p.jsonl"
    with refused("labels", "2", "1"):
        explain(replace(job, labels=("POS",)), SETTINGS, out)
    assert list(tmp_path.iterdir()) == []
    explain(job, SETTINGS, out)  # without --resume
    assert out.read_bytes() == whole


def test_other_data_or_another_model_is_noticed(job, tmp_path, linear):
    out = tmp_path / "p.jsonl"
    with pytest.raises(Stop):
        explain(job, SETTINGS, out, on_progress=stop_after(4))
    with refused("resume", "limit", "None", "3"):
        explain(replace(job, limit=3), SETTINGS, out, resume=True)
    other = tmp_path / linear.name
    shutil.copytree(linear, other)
    single = compute_model_digest(str(other / "model.skops"))
    (other / "model.json").write_text((other / "model.json").read_text() + "\n")
    assert compute_model_digest(str(other / "model.skops")) != single  # a file is used as the card beside it says
    with refused("resume", "digest"):
        explain(replace(job, model=str(other)), SETTINGS, out, resume=True)


@pytest.mark.parametrize("notes", ["my notes\n", "my notes"])
def test_someone_elses_file_is_not_touched(job, tmp_path, notes):
    partial = get_partial_path(tmp_path / "p.jsonl")
    partial.write_text(notes)
    with refused(file=partial, line=1):
        explain(job, SETTINGS, tmp_path / "p.jsonl", resume=True)
    assert partial.read_text() == notes


def test_two_runs_do_not_write_into_one_file(job, tmp_path):
    out = tmp_path / "p.jsonl"
    with open_partial_result(out, {"settings": {}}, False), pytest.raises(BusyError):
        explain(job, SETTINGS, out, resume=True)


def test_a_file_that_no_run_wrote_is_not_replaced(job, tmp_path):
    out = make_hub(tmp_path / "hub") / "movies" / "validation-00000-of-00001.parquet"
    before = out.read_bytes()
    with refused("force", file=out):
        explain(job, SETTINGS, out)
    for force in (False, True):
        with refused(file=out):
            explain(replace(job, dataset=str(tmp_path / "hub")), SETTINGS, out, force=force)
    assert out.read_bytes() == before and len(list(out.parent.iterdir())) == 2


def test_another_result_is_replaced_by_force_alone(job, tmp_path, whole):
    out = tmp_path / "p.jsonl"
    explain(job, SETTINGS, out)
    explain(job, SETTINGS, out)  # the same settings replace it
    with refused("out", "kd", "0.1", "0.2", "force"):
        explain(job, replace(SETTINGS, kd=0.2), out)
    with refused("force", "limit", "None", "3"):
        explain(replace(job, limit=3), SETTINGS, out, resume=True)
    assert out.read_bytes() == whole
    assert explain(job, replace(SETTINGS, kd=0.2), out, force=True).instances == 21
    run_path(out).unlink()
    with refused("force", file=out):
        explain(job, SETTINGS, out)
    explain(job, SETTINGS, out, force=True)
    assert out.read_bytes() == whole


@pytest.mark.parametrize("suffix", [".run.json", ".partial"])
def test_a_pipe_beside_the_result_is_refused(job, tmp_path, suffix):
    os.mkfifo(tmp_path / f"p.jsonl{suffix}")
    with refused(file=f"p.jsonl{suffix}"):
        explain(job, SETTINGS, tmp_path / "p.jsonl", force=True)


def test_scores_are_never_replaced_by_their_explanation(job, tmp_path, whole):
    scores = tmp_path / "p.jsonl"
    scores.write_bytes(whole)
    os.link(scores, tmp_path / "out.jsonl")
    for out in (scores, tmp_path / "out.jsonl"):
        with refused(file=out):
            explain(replace(job, scores=scores), SETTINGS, out, force=True)
    assert scores.read_bytes() == whole


def test_a_wrong_model_is_told_before_the_data_are_read(job, tmp_path, monkeypatch):
    def read(*_: object) -> str:
        raise AssertionError("the data were read first")

    monkeypatch.setattr("eraser_hub.attribution.dataset.Split.fingerprint", read)
    for wrong, mention in (
        ({"model": "./nowhere"}, "nowhere"),
        ({"labels": ("GOOD", "BAD")}, "GOOD, BAD"),
    ):
        with refused(mention):
            explain(replace(job, **wrong), SETTINGS, tmp_path / "p.jsonl")


def test_of_several_draws_none_begins_where_one_was_stopped(job, tmp_path):
    outs = [tmp_path / f"r{draw}.jsonl" for draw in range(2)]
    with pytest.raises(Stop):
        explain(job, SETTINGS, outs[1], on_progress=stop_after(4))
    with refused("resume", file="r1.jsonl.partial"):
        explain_runs(job, seed_runs(SETTINGS, outs))
    assert not outs[0].exists()


def test_a_sample_has_its_own_seed_in_every_run(job, tmp_path):
    """Neither the first run's seed nor a run's own draws the texts: 4 of 24, by seed 7."""
    runs = [(replace(SETTINGS, seed=seed), tmp_path / f"{seed}.jsonl") for seed in (1, 2)]
    explain_runs(replace(job, sample=4, sample_seed=7), runs)
    split = open_split(job.dataset, job.config, job.split)
    drawn = {seed: [str(one.id) for one in split.sample(4, seed).instances()] for seed in (1, 2, 7)}
    assert drawn[7] not in (drawn[1], drawn[2])
    for _, path in runs:
        assert [json.loads(line)["annotation_id"] for line in path.read_text("utf-8").splitlines()] == drawn[7]


def test_a_full_disk_is_said_by_file_and_the_run_goes_on_later(job, tmp_path, undisturbed):
    """A limit on the size of files gives the same error of writing as a disk without room."""
    out, room = tmp_path / "p.jsonl", len(undisturbed) - 1000
    ran = subprocess.run(
        command(job, out),
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
    )
    assert ran.returncode == 1 and "Traceback" not in ran.stderr, ran.stderr
    assert f"{get_partial_path(out)}: File too large" in ran.stderr and "`resume`" in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["p.jsonl.partial"]
    subprocess.run(command(job, out, "--resume"), env=ENVIRONMENT, check=True, timeout=300)
    assert out.read_bytes() == undisturbed


def test_parquet_holds_the_same(job, tmp_path, whole):
    out = tmp_path / "p.parquet"
    settings = replace(SETTINGS, tokens_to_flip=True, fidelity_trials=1, fidelity_rates=(0.0, 1.0))
    explain(job, settings, out)
    explain(job, settings, tmp_path / "p.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert pq.read_table(out).to_pylist() == lines


# --- the command line --------------------------------------------------------------------------------------------


def call(*words: str, verb: str = "explain"):
    return invoke([verb, *words])


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
        ("--out", "p.csv", 2, ()),
        ("--workers", "-1", 2, ()),
        ("--limit", "0", 2, ()),
        ("--seed", "9223372036854775808", 2, ()),
        ("--split", "dev", 2, ()),
        ("--method", "oclusion", 2, ("did you mean 'occlusion'?",)),
        ("--method", "lime --method lime(samples=9)", 2, ("each method once",)),
        ("--method", "lime(draws=2)", 2, ()),
        ("--method", "integrated-gradients(steps=0)", 2, ()),
        ("--method", "attention", 1, ("`method` attention", "LogisticRegression", "random, shapley")),
        ("--measure", "soft(draws=0)", 2, ()),
        ("--rationales", "human --kd 0.3", 2, ()),
        ("--rationales", "human --bins 0.1", 2, ()),
        ("--model", "m(task=ner)", 2, ()),
        ("--model", "m(window=x)", 2, ()),
        ("--model", "{linear}(window=4)", 2, ("at least 8",)),
        ("--model", "{linear}(precision=float17)", 2, ("bfloat16",)),
        ("--model", "{linear}(trust_pickle=yes)", 2, ("True or False",)),
        ("--model", "{linear}(lables=[NEG,POS])", 2, ("'labels'",)),
        ("--model", "{linear}(labels=[NEG,POS,x])", 2, ("2 names",)),
        ("--model", "{linear}(labels=[POS])", 2, ()),
        ("--model", "{linear}(labels=[POS,NEG])", 2, ()),
        ("--model", "{linear}(labels=[a,b])", 1, ("NEG, POS", "a, b")),
        ("--model", "./nowhere", 1, ("nowhere",)),
        ("--config", "films", 1, ("films",)),
        ("--dataset", "./nowhere", 1, ("nowhere", "eraser-hub build")),
    ],
)
def test_wrong_options_and_bad_data_have_their_exit_status(hub, linear, tmp_path, option, value, status, mentions):
    options = {"--dataset": str(hub), "--split": "val", "--model": str(linear), "--out": str(tmp_path / "p.jsonl")}
    options[option] = value.format(linear=linear)
    found = call(*(word for name, words in options.items() for word in (name, *words.split(" "))))
    assert found.exit_code == status and "Traceback" not in found.output, found.output
    assert all(mention in found.stderr for mention in mentions), found.stderr


def test_train_prints_three_regimes(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(SYSTEMS["random-forest"], "sizes", (4, 8, 16))  # the papers' 512 say nothing more here
    found = call(
        *f"--dataset {hub} --config movies --model random-forest --regimes --out {tmp_path / 'm'}".split(), verb="train"
    )
    assert found.exit_code == 0, found.output
    names = [line.split(":")[0] for line in found.stdout.splitlines()[1:]]
    assert names == ["no-rationale", "eval-rationale", "train-eval-rationale"]
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == ["model.json", "model.skops"]
    facts = json.loads((tmp_path / "m" / "model.json").read_text())
    assert facts["label_names"] == ["NEG", "POS"] and facts["uses_query"] is False


TRAINED = ("--config", "movies", "--eval-split", "", "--model")


@pytest.mark.slow
@pytest.mark.parametrize("baseline", ["logistic-regression", "random-forest"])
def test_training_writes_the_same_bytes(hub, tmp_path, baseline):
    """Whatever the number of threads, the order of sets, and where in memory things lie."""
    environments = ({"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "1"}, {"OMP_NUM_THREADS": "4", "PYTHONHASHSEED": "2"})
    code = (
        "import sys; from eraser_hub.systems.system import SYSTEMS; SYSTEMS['random-forest'].sizes = (4, 8, 16)\n"
        "rest = [object() for _ in range(int(sys.argv.pop()))]\n"
        "from eraser_hub.cli import main; main()"
    )
    for number, more in enumerate(environments):
        words = ["train", "--dataset", str(hub), *TRAINED, baseline, "--out", str(tmp_path / f"m{number}")]
        ran = subprocess.run(
            [sys.executable, "-c", code, *words, str(number * 1000)],
            env={**ENVIRONMENT, **more},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stderr.count("the mean of 5 folds") == (7 if baseline == "logistic-regression" else 3)
    for name in ("model.skops", "model.json"):
        assert (tmp_path / "m0" / name).read_bytes() == (tmp_path / "m1" / name).read_bytes()


def test_a_stopped_run_goes_on_after_its_model_is_trained_anew(job, hub, linear, tmp_path, whole):
    out = tmp_path / "p.jsonl"
    with pytest.raises(Stop):
        explain(job, SETTINGS, out, on_progress=stop_after(12))
    again = tmp_path / "again" / linear.name
    assert (
        call("--dataset", str(hub), *TRAINED, "logistic-regression", "--out", str(again), verb="train").exit_code == 0
    )
    assert explain(replace(job, model=str(again)), SETTINGS, out, resume=True).resumed == 12
    assert out.read_bytes() == whole


def test_of_equally_good_values_the_stronger_regularisation_is_taken(tmp_path):
    words = {"POS": "good", "NEG": "bad"}
    labels = ["POS", "NEG"] * 10
    instances = [Instance(str(n), (), ("d",), ((words[label],),), label) for n, label in enumerate(labels)]
    lines: list[str] = []
    _, facts = fit_baseline(SYSTEMS["logistic-regression"](), instances, labels, say=lines.append)
    assert facts["size"] == 0.001 and lines[-1].startswith("C 1000: 1.000")
    _, facts = fit_baseline(SYSTEMS["logistic-regression"](), instances[:3], labels[:3], say=lines.append)
    assert facts["size"] == 1.0 and lines[-1].startswith("C 1: too few")


@pytest.mark.parametrize(
    ("settings", "mentions", "argument"),
    [
        ({"model": "./nowhere"}, ("random-forest", "nowhere"), "model"),
        ({"limit": 1}, ("two labels",), None),
        ({"model": "bert", "limit": 1}, ("two labels",), None),
        ({"seed": 4294967296}, ("4294967295", "4294967296"), "seed"),
        ({"model": "logistic-regression(features=syllables)"}, ("words, characters", "'syllables'"), "model"),
        ({"split": "test"}, ("train, validation", "'test'"), None),
        ({"eval_split": "test"}, ("train, validation", "'test'"), None),
    ],
)
def test_train_says_what_is_wrong(hub, tmp_path, settings, mentions, argument):
    with refused(*mentions, argument=argument):
        train(hub, settings.pop("model", "logistic-regression"), out=tmp_path / "m", **settings)


def test_a_limit_takes_each_label_s_share(tmp_path):
    """The splits of the releases are sorted by label: the first so many rows are of one class."""
    rows = [made_row(number) for number in (*range(0, 40, 2), *range(1, 40, 2))]
    data = write_hub(tmp_path / "hub", "movies", {"train": rows, "validation": rows}, ["NEG", "POS"])
    options = f"--dataset {data} --model logistic-regression --out {tmp_path / 'm'} --eval-split val --limit 10".split()
    done = call(*options, verb="train")
    assert done.exit_code == 0, done.output
    assert told(done.stderr.splitlines(), "limit", "10", "seed 1", "5 NEG, 5 POS")
    assert told(done.stdout.splitlines(), "limit", "10 instances")


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 10, 25])
def test_a_stratified_draw(limit):
    labels = ["a"] * 13 + ["b"] * 5 + ["c"] * 2
    places = draw_stratified(labels, limit, seed=3)
    counts = {label: sum(labels[place] == label for place in places) for label in "abc"}
    assert len(places) == min(limit, 20) and places == draw_stratified(labels, limit, seed=3)
    assert limit < 3 or min(counts.values()) >= 1
    assert all(abs(counts[label] - min(limit, 20) * labels.count(label) / 20) < 1 for label in "abc") or limit in (3, 7)


def test_a_folder_that_no_training_wrote_is_left_alone(hub, tmp_path):
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "config.json").write_text("mine")
    with refused("out", "'config.json'", "model.json", file=out):
        train(hub, "logistic-regression", eval_split="", out=out)
    assert [path.name for path in out.iterdir()] == ["config.json"]
    (out / "config.json").rename(out / "model.json")
    train(hub, "logistic-regression", eval_split="", out=out)


def test_labels_of_a_card_that_are_none_are_refused(hub, monkeypatch):
    rows = SimpleNamespace(
        features={"annotation_id": None, "documents": None, "classification": SimpleNamespace(names=[None, "P"])}
    )
    monkeypatch.setattr("datasets.load_dataset", lambda *_, **__: {"validation": rows})
    with refused("None", field="class_label"):
        open_split(hub, "movies", "val")


def test_a_validation_split_without_labels_is_not_evaluated_on(hub, tmp_path):
    data = make_hub(tmp_path / "hub", validation={"classification": -1})
    options = ("--dataset", str(data), "--model", "logistic-regression", "--out", str(tmp_path / "m"), "--regimes")
    found = call(*options, verb="train")
    assert found.exit_code == 0, found.output
    assert "logistic-regression" in found.stdout and "accuracy" not in found.stdout
    assert "eval_split" in found.stderr.replace("-", "_")
    shutil.rmtree(tmp_path / "m")
    with refused("`eval_split` val", file=data):
        train(data, "logistic-regression", eval_split="val", out=tmp_path / "m")
    assert not (tmp_path / "m").exists()  # told before the training, not after it
    found = call(
        *f"--dataset {hub} --model logistic-regression --out {tmp_path / 'm'} --split validation".split(), verb="train"
    )
    assert found.exit_code == 0 and "accuracy" not in found.stdout  # what it was trained on tells nothing


@pytest.mark.parametrize("features", ["words", "characters"])
def test_nothing_to_train_on(tmp_path, features):
    blank = make_hub(tmp_path / "hub", {"documents": [{"docid": "d", "text": " \n "}], "evidences": []})
    with refused("40", field="documents"):
        train(blank, f"logistic-regression(features={features})", out=tmp_path / "m")


# --- kills, and workers ------------------------------------------------------------------------------------------


def command(job: ExplainConfig, out: Path, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "eraser_hub", "explain"),
        *f"--dataset {job.dataset} --split val --model {job.model} --out {out}".split(),
        *("--method", "lime(samples=4000)"),
        *more,
    ]


@pytest.fixture(scope="session")
def undisturbed(hub: Path, linear: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a run of its own process that nothing stops."""
    out = tmp_path_factory.mktemp("undisturbed") / "p.jsonl"
    job = ExplainConfig(dataset=str(hub), config="movies", split="val", model=str(linear))
    subprocess.run(command(job, out), env=ENVIRONMENT, check=True, timeout=300)
    return out.read_bytes()


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_bytes(job, tmp_path, undisturbed):
    out = tmp_path / "p.jsonl"
    running = subprocess.Popen(command(job, out), env=ENVIRONMENT)
    for _ in range(6000):
        if running.poll() is not None or (
            get_partial_path(out).exists() and get_partial_path(out).read_bytes().count(b"\n") >= 2
        ):  # the settings and the first of two chunks
            break
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait(timeout=30)
    assert running.returncode == -signal.SIGKILL, "it ended before it was killed"
    subprocess.run(command(job, out, "--resume"), env=ENVIRONMENT, check=True, timeout=300)
    assert out.read_bytes() == undisturbed
    assert not get_partial_path(out).exists()


def test_an_interrupted_run_says_how_it_goes_on(hub, linear, tmp_path, monkeypatch):
    from eraser_hub.attribution import explain as verb

    def interrupt(bar: object, instances: int, passes: int) -> None:
        if instances:
            raise KeyboardInterrupt

    options = ("--dataset", str(hub), "--split", "val", "--model", str(linear), "--out")
    with monkeypatch.context() as patched:
        patched.setattr(verb._Bar, "show", interrupt)
        found = call(*options, str(tmp_path / "p.jsonl"))
    assert found.exit_code == 130 and "stopped" in found.stderr and "`resume`" in found.stderr
    assert get_partial_path(tmp_path / "p.jsonl").exists()
    assert call(*options, str(tmp_path / "p.jsonl"), "--resume").exit_code == 0


@pytest.mark.slow
@pytest.mark.ray
def test_ray_gives_the_same_bytes_though_a_worker_is_killed(job, tmp_path, undisturbed):
    pytest.importorskip("ray")
    psutil = pytest.importorskip("psutil")
    out = tmp_path / "p.jsonl"
    running = subprocess.Popen(command(job, out, "--workers", "2"), env=ENVIRONMENT, stderr=subprocess.PIPE)
    killed = 0
    partial = get_partial_path(out)
    for _ in range(6000):
        if running.poll() is not None or killed:
            break
        if partial.exists() and partial.read_bytes().count(b"\n") > 1:  # a first chunk is done
            below = psutil.Process(running.pid).children(recursive=True)
            for worker in [one for one in below if any("MapWorker" in word for word in one.cmdline())][:1]:
                worker.kill()
                killed = worker.pid
        time.sleep(0.05)
    _, words = running.communicate(timeout=300)
    assert running.returncode == 0, words.decode()[-2000:]
    assert killed, "no worker was found to kill"
    assert out.read_bytes() == undisturbed
    assert not partial.exists()


# what rankings are asked besides, beside a method that draws
ASKED = ExplainSettings(
    method="shapley",
    chunk=4,
    units="sentences",
    aopc_bounds=True,
    soft_draws=4,
    infidelity_draws=3,
    sensitivity_draws=2,
)


def test_asked_rankings_go_on_to_the_same_bytes_and_say_their_cost(job, tmp_path, caplog):
    caplog.set_level("INFO", "eraser_hub")
    whole, out = tmp_path / "whole.jsonl", tmp_path / "p.jsonl"
    report = explain(job, ASKED, whole)
    lines = caplog.messages
    assert len(lines) == 1 and lines[0].startswith("cost: at most ") and lines[0].endswith("inputs/s")
    stated = int(lines[0].removeprefix("cost: at most ").partition(" ")[0].replace(",", ""))
    assert report.passes <= stated
    with pytest.raises(Stop):
        explain(job, ASKED, out, on_progress=stop_after(8))
    caplog.clear()
    explain(job, ASKED, out, resume=True)
    lines = caplog.messages
    assert out.read_bytes() == whole.read_bytes()
    left = int(lines[0].removeprefix("cost: at most ").partition(" ")[0].replace(",", ""))
    assert left < stated  # of what is still to be done


def test_more_inputs_than_allowed_are_refused_before_the_run(job, hub, linear, tmp_path):
    with refused("max_inputs", "10", "(erasure", "sensitivity"):
        explain(job, ASKED, tmp_path / "p.jsonl", max_inputs=10)
    assert not list(tmp_path.iterdir())
    words = ["--dataset", str(hub), "--model", str(linear), "--split", "val", "--out", str(tmp_path / "q.jsonl")]
    result = call(*words, "--limit", "2", "--measure", "aopc-bounds")
    assert result.exit_code == 0 and "cost: at most" in result.stderr
    assert "aopc_bounds" in json.loads((tmp_path / "q.jsonl").read_text().splitlines()[0])


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.parametrize("given", [False, True])
def test_ray_asks_rankings_to_the_same_bytes(job, tmp_path, caplog, given):
    caplog.set_level("INFO", "eraser_hub")
    pytest.importorskip("ray")
    settings = SETTINGS if given else ASKED
    explain(job, settings, tmp_path / "whole.jsonl")
    caplog.clear()
    job = replace(job, scores=tmp_path / "whole.jsonl" if given else None)
    explain(job, settings, tmp_path / "p.jsonl", workers=2)
    assert (tmp_path / "p.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert given or caplog.messages[0].endswith(")")  # no model in this process: how long it takes is not said


@pytest.mark.slow
@pytest.mark.ray
def test_a_worker_s_error_is_the_one_of_a_run_without_workers(job, linear, tmp_path):
    pytest.importorskip("ray")
    broken = load_pipeline(linear / "model.skops")
    broken[-1].coef_[:] = np.nan
    shutil.copytree(linear, tmp_path / "broken")
    save_pipeline(broken, tmp_path / "broken" / "model.skops")
    errors = []
    for more in ({}, {"workers": 1}):
        with refused("NaN") as caught:
            explain(replace(job, model=str(tmp_path / "broken"), limit=2), SETTINGS, tmp_path / "p.jsonl", **more)
        errors.append(str(caught.error))
    assert errors[0] == errors[1]


def test_a_method_that_the_model_lacks_is_refused_before_a_text_is_explained(hub, linear, tmp_path, monkeypatch):
    import eraser_hub
    from eraser_hub.attribution.adapters.scikit_learn import PipelineModel

    monkeypatch.setattr(PipelineModel, "forward", lambda self, units: pytest.fail("a forward pass"))
    for methods in (("random", "attention"), ("attention",)):
        with refused("`method` attention", "it allows coefficients, gradient"):
            eraser_hub.explain(linear, hub, config="movies", split="val", method=methods, out=tmp_path / "p.jsonl")
    assert not list(tmp_path.iterdir())


def test_a_model_in_memory_explains_a_dataset(hub, linear, tmp_path):
    import eraser_hub

    of = {"config": "movies", "split": "val", "limit": 3, "method": ["random", "occlusion"]}
    eraser_hub.explain(linear, hub, out=tmp_path / "folder.jsonl", **of)
    reports = eraser_hub.explain(load_pipeline(linear / "model.skops"), hub, out=tmp_path / "object.jsonl", **of)
    for method, report in zip(("random", "occlusion"), reports, strict=True):
        assert report.out.read_bytes() == (tmp_path / f"folder.{method}.jsonl").read_bytes()
        record = json.loads((tmp_path / f"object.{method}.jsonl.run.json").read_text())
        assert record["model"]["model"] == record["model"]["digest"] == "sklearn.pipeline.Pipeline"
    assert "model:sklearn.pipeline.Pipeline|" in reports[0].signature
    (report,) = eraser_hub.explain(CountingModel(), hub, out=tmp_path / "counted.jsonl", config="movies", split="val")
    assert report.instances == 21 and "CountingModel" in report.signature


@pytest.mark.parametrize("argument", [{"resume": True}, {"workers": 2}, {"ids": ["a"]}, {"queries": ["a"]}], ids=str)
def test_arguments_that_a_model_in_memory_does_not_take(hub, tmp_path, argument):
    import eraser_hub

    with refused(argument=next(iter(argument))):
        eraser_hub.explain(CountingModel(), hub, out=tmp_path / "p.jsonl", **argument)


def test_what_is_no_model_says_how_to_make_it_one(hub, tmp_path):
    import eraser_hub

    def function(token_lists):
        return [[0.2, 0.8] for _ in token_lists]

    class Loaded:
        def save_pretrained(self, folder):
            raise AssertionError

    with refused("a results file", argument="scores"):
        eraser_hub.explain(3, hub, scores=[[1.0]], out=tmp_path / "p.jsonl")
    for model, words in ((function, "predict_proba calls it"), (Loaded(), "save_pretrained"), (3, "found int")):
        with refused(words):
            eraser_hub.explain(model, hub, out=tmp_path / "p.jsonl")
        with refused(words):
            eraser_hub.explain_texts(model, ["a film"])
