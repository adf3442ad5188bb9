"""From models to a verdict: every file, a second run that does nothing, and what is refused."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest

import eraser_hub
from eraser_hub.attribution.method import METHODS
from eraser_hub.experiments.bench_run import BenchResult, plan_models
from eraser_hub.records.errors import UsageError

from ..command_line import invoke
from ..needs import needs
from ..refusals import refused

pytestmark = needs("sklearn", "skops")


def run(hub, out, **more) -> Any:
    values: dict[str, Any] = {"model": "logistic-regression", "method": "occlusion", "resamples": 100, **more}
    return eraser_hub.bench(hub / "eraser", config="movies", split="validation", out=out, **values)


@pytest.fixture(scope="module")
def hub(samples, tmp_path_factory):
    """A folder with ``eraser``: movies of the samples."""
    folder = tmp_path_factory.mktemp("hub")
    eraser_hub.build("eraser", source=samples / "eraser", config="movies", out=folder)
    return folder


@pytest.fixture(scope="module")
def benched(hub, tmp_path_factory):
    out = tmp_path_factory.mktemp("bench") / "out"
    return run(hub, out, sample=12, seeds=2), out


def test_all_files_are_there(benched):
    result, out = benched
    assert isinstance(result, BenchResult)
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    for method in ("random", "occlusion", "people"):
        assert {f"predictions/logistic-regression.{method}.seed-{seed}.jsonl" for seed in (1, 2)} <= names
        assert f"report/{method}.scores.json" in names
    assert {"report/index.html", "comparison.json", "table.tex", "table.csv", "verdict.md"} <= names


def test_the_table_has_the_scores_of_the_score_files_and_chance(benched):
    result, out = benched
    rows = {row["system"]: row for row in csv.DictReader((out / "table.csv").read_text("utf-8").splitlines())}
    assert list(rows) == ["random", "occlusion", "people", "chance"]
    scores = {name: json.loads((out / "report" / f"{name}.scores.json").read_text("utf-8")) for name in list(rows)[:3]}
    for name, own in scores.items():
        assert float(rows[name]["comprehensiveness"]) == pytest.approx(own["comprehensiveness"], abs=1e-12)
    for name in ("random", "occlusion"):
        chance = scores[name]["chance"]["token_macro_f1"]
        assert float(rows["chance"]["token_macro_f1"]) == pytest.approx(chance, abs=5e-4)
    assert rows["people"]["token_macro_f1"] == "" and rows["people"]["comprehensiveness"] != ""
    assert rows["chance"]["comprehensiveness"] == "", "faithfulness has no chance"
    assert "chance" in result.table().written("text") and "chance" in (out / "table.tex").read_text("utf-8")


def test_findings_are_those_of_the_comparison(benched):
    from eraser_hub.reports.findings import describe_findings

    result, out = benched
    stored = json.loads((out / "comparison.json").read_text("utf-8"))
    assert set(stored["scores"]) == {"random", "occlusion"}
    assert result.findings == describe_findings(stored, ["random"])
    page = (out / "verdict.md").read_text("utf-8")
    assert all(line in page for line in result.findings) and all(note in page for note in result.notes)


def test_a_second_run_does_what_is_missing(hub, benched, caplog):
    caplog.set_level("INFO", "eraser_hub")
    _, out = benched
    kept = out / "predictions" / "logistic-regression.occlusion.seed-1.jsonl"
    gone = out / "predictions" / "logistic-regression.random.seed-2.jsonl"
    before, content, table = kept.stat().st_mtime_ns, gone.read_bytes(), (out / "table.csv").read_bytes()
    gone.unlink()
    run(hub, out, sample=12, seeds=2)
    assert kept.stat().st_mtime_ns == before and gone.read_bytes() == content
    assert (out / "table.csv").read_bytes() == table
    assert "trained before" in caplog.text


def test_other_settings_do_not_resume(hub, benched):
    _, out = benched
    with refused("sample", file=out, argument="out"):
        run(hub, out, sample=13, seeds=2)


def test_a_dry_run_trains_and_writes_nothing(hub, benched, tmp_path):
    _, out = benched
    place = str(out / "models" / "logistic-regression.seed-1")
    lines = run(hub, tmp_path / "none", model=f"LR={place}", dry_run=True, sample=3)
    assert not (tmp_path / "none").exists()
    assert lines[0].endswith("movies, validation: 3 texts")
    assert [line.partition(":")[0] for line in lines[1:]] == ["LR random", "LR occlusion"]
    trained = run(hub, tmp_path / "none", dry_run=True, seeds=3, model="logistic-regression(features=characters)")
    assert trained[1].startswith("logistic-regression: 3 trainings of logistic-regression(features=characters)")


def test_settings_of_methods_are_passed_on(hub, benched, tmp_path):
    values = {"model": str(benched[1] / "models" / "logistic-regression.seed-1"), "sample": 4}
    run(hub, tmp_path / "out", **values, method="lime(samples=50)")
    (path,) = (tmp_path / "out" / "predictions").glob("*.lime.jsonl.run.json")
    assert json.loads(path.read_text("utf-8"))["settings"]["lime_samples"] == 50
    with refused("lime", file=tmp_path / "out", argument="out"):
        run(hub, tmp_path / "out", **values, method="lime(samples=60)")
    for setting in ("steps=9", "sample=9", "samples=x"):
        with refused(argument="method"):
            run(hub, tmp_path / "none", **values, method=f"lime({setting})")


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        ({"minimum_effect": float("nan")}, "minimum_effect"),
        ({"minimum_effect": -1.0}, "minimum_effect"),
        ({"paper": "x"}, "paper"),
        ({"out": "file"}, "out"),
        ({"seeds": 0}, "seeds"),
        ({"sample": 0}, "sample"),
        ({"sample": 3, "quick": True}, "sample"),
        ({"method": "oclusion"}, "method"),
        ({"model": ["x/model", "y/model"]}, "model"),
    ],
)
def test_what_cannot_be_is_refused_before_the_work(hub, tmp_path, monkeypatch, wrong, argument):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x")
    values = {"model": "logistic-regression", "config": "movies", "out": "out"}
    with refused(argument=argument):
        eraser_hub.bench(hub / "eraser", **{**values, **wrong})
    assert not (tmp_path / "out").exists()


def test_the_command_prints_findings_above_the_table(hub, benched):
    _, out = benched
    words = ["--dataset", hub / "eraser", "--config", "movies", "--split", "validation", "--out", out, "--quick"]
    done = invoke(["bench", *words, "--model", "logistic-regression", "--method", "occlusion"])
    assert done.exit_code == 1 and "sample was 12, now 50" in done.stderr
    result = benched[0]
    assert result.table().written("text").startswith(f"{result.findings[0]}\n")
    assert result.table().written("latex").startswith("\\begin{table}")
    assert result.as_json()["findings"] == result.findings


def test_models_have_names_of_their_own():
    assert [one.name for one in plan_models(["A=x/model", "y/model", "lstm(epochs=3)"])] == ["A", "model", "lstm"]
    for pair in (
        ["x/model", "y/model"],
        ["a/b=x", "a b=y"],
        ["..=x", ".=y"],
        ["A=x", "A=y"],
        ["a\nb=x"],
        [f"{'n' * 10_000}=x"],
    ):
        with refused(argument="model", type=UsageError):
            plan_models(pair)
    assert [one.file_name for one in plan_models(["../../a=x", "b=y"])] == ["_.._a", "b"]


def test_a_name_with_separators_stays_in_the_folder(hub, tmp_path, monkeypatch):
    from eraser_hub.experiments import bench_run as of_bench

    asked, real = [], of_bench.has_rationales
    monkeypatch.setattr(of_bench, "has_rationales", lambda split: asked.append(split) or real(split))
    run(hub, tmp_path / "in" / "out", model=("../../up=logistic-regression", "b=logistic-regression"), sample=3)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["out"]
    folders = {path.name for path in (tmp_path / "in" / "out" / "models").iterdir() if path.is_dir()}
    assert {name for name in folders if not name.startswith(".")} == {"_.._up.seed-1", "b.seed-1"}
    assert len(asked) == 1


def left_out_by(caplog):
    return [line for line in caplog.messages if "not explained by" in line]


def test_methods_that_the_model_does_not_support_are_left_out_and_named(hub, benched, tmp_path, caplog):
    import skops.io
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = f"LR={benched[1] / 'models' / 'logistic-regression.seed-1'}"
    plan = run(hub, tmp_path / "none", model=model, method="all", dry_run=True)
    (left_out,) = left_out_by(caplog)
    planned = {line.removeprefix("LR ").partition(":")[0] for line in plan if line.startswith("LR ")}
    assert {"coefficients", "gradient"} <= planned and not any(f" {name}," in left_out for name in planned)
    assert all(name in planned or f" {name}," in left_out for name in METHODS)

    caplog.clear()
    parts = make_pipeline(TfidfVectorizer(analyzer="char_wb"), LogisticRegression())
    skops.io.dump(parts.fit(["a good film", "a bad plot"], ["POS", "NEG"]), tmp_path / "parts.skops")
    result = run(hub, tmp_path / "out", model=f"C={tmp_path / 'parts.skops'}", method=(), sample=2)
    names = [left[0] for left, _ in result.tables.tables[0].rows]
    assert {"random", "occlusion", "lime"} <= set(names) and "coefficients" not in names
    lacking = "coefficients, input-x-gradient, integrated-gradients, attention"
    assert left_out_by(caplog) == [f"C: not explained by {lacking}, which LogisticRegression lacks"]


def test_of_several_models_each_is_explained_by_the_methods_that_it_supports(hub, benched, tmp_path, caplog):
    model = f"LR={benched[1] / 'models' / 'logistic-regression.seed-1'}"
    several = {"model": (model, "logistic-regression"), "method": ("occlusion", "attention"), "sample": 3}
    result = run(hub, tmp_path / "out", **several)
    names = [left[0] for left, _ in result.tables.tables[0].rows]
    assert {"LR occlusion", "logistic-regression occlusion"} <= set(names)
    assert not any("attention" in name for name in names)
    assert left_out_by(caplog) == [
        f"{name}: not explained by attention, which LogisticRegression lacks" for name in ("LR", "logistic-regression")
    ]
    stored = json.loads((tmp_path / "out" / "comparison.json").read_text("utf-8"))
    assert result.notes == stored["notes"] and f"note: {result.notes[0]}" in repr(result)
    with refused("attention", argument="method"):
        run(hub, tmp_path / "none", **{**several, "method": "attention"})


def test_each_training_explains_the_same_texts_by_its_own_seed(benched):
    _, out = benched
    paths = [out / "predictions" / f"logistic-regression.random.seed-{seed}.jsonl" for seed in (1, 2)]
    rows = [list(map(json.loads, path.read_text("utf-8").splitlines())) for path in paths]
    ids, rationales = ([[row[name] for row in one] for one in rows] for name in ("annotation_id", "rationales"))
    assert len(ids[0]) == 12 and ids[0] == ids[1]
    assert rationales[0] != rationales[1]


def test_a_given_model_is_opened_once_and_explained_by_several_draws(hub, benched, tmp_path, monkeypatch):
    import eraser_hub.attribution.run as of_runs
    import eraser_hub.attribution.work as of_work
    from eraser_hub.experiments import bench_run as of_bench

    opened: list[str] = []

    def load(config, label_names, model=None):
        opened.extend([config.model] if model is None else [])
        return of_work.load_model(config, label_names, model)

    for module in (of_bench, of_runs):
        monkeypatch.setattr(module, "load_model", load)
    place = str(benched[1] / "models" / "logistic-regression.seed-1")
    run(hub, tmp_path / "out", model=place, seeds=2, sample=3)
    assert opened == [place]
    names = sorted(path.name for path in (tmp_path / "out" / "predictions").glob("*.jsonl"))
    own = "logistic-regression.seed-1"
    assert names == [f"{own}.{end}.jsonl" for end in ("occlusion", "people", "random.draw-1", "random.draw-2")]


@pytest.mark.parametrize("paper", ["eraser", "wang2022", "carton2020"])
def test_the_settings_of_a_paper(hub, benched, tmp_path, paper):
    """A given model is explained as the paper does; each file says so."""
    place = str(benched[1] / "models" / "logistic-regression.seed-1")
    run(hub, tmp_path / "out", model=place, sample=4, paper=paper)
    records = (tmp_path / "out" / "predictions").glob("*.run.json")
    signatures = [json.loads(path.read_text("utf-8"))["signature"] for path in records]
    assert len(signatures) == 3 and all(f"paper:{paper}|" in line for line in signatures), signatures
