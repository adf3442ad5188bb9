"""From models to a verdict: every file, a second run that does nothing, plans in YAML, and what is refused."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import eraser_hub
from eraser_hub.__main__ import _register, app
from eraser_hub.attribution.method import METHODS
from eraser_hub.conversion.eraser.corpus_yaml import MOST_CHARACTERS
from eraser_hub.experiments.bench_run import BenchResult, plan_models, read_plan
from eraser_hub.records.errors import UsageError
from eraser_hub.reports.options import BenchArguments

from ..needs import needs
from ..refusals import refused

pytestmark = needs("sklearn", "skops")


def run(hub, out, **more) -> Any:
    values: dict[str, Any] = {"model": "logistic-regression", "method": ("occlusion",), "resamples": 100, **more}
    return eraser_hub.bench(dataset=str(hub / "eraser"), config="movies", split="validation", out=out, **values)


@pytest.fixture(scope="module")
def benched(hub, tmp_path_factory):
    out = tmp_path_factory.mktemp("bench") / "out"
    lines: list[str] = []
    return run(hub, out, say=lines.append, sample=12, seeds=2), out, lines


def test_all_files_are_there(benched):
    result, out, _ = benched
    assert isinstance(result, BenchResult)
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    for method in ("random", "occlusion", "people"):
        assert {f"predictions/logistic-regression.{method}.seed-{seed}.jsonl" for seed in (1, 2)} <= names
        assert f"report/{method}.scores.json" in names
    assert {"report/index.html", "comparison.json", "table.tex", "table.csv", "verdict.md", "bench.yaml"} <= names


def test_the_table_has_the_scores_of_the_score_files(benched):
    _, out, _ = benched
    rows = list(csv.DictReader((out / "table.csv").read_text("utf-8").splitlines()))
    systems = [row["system"] for row in rows]
    assert systems[:3] == ["random", "occlusion", "people"]
    assert systems[3:] == ["chance"]
    for row in rows[:3]:
        scores = json.loads((out / "report" / f"{row['system']}.scores.json").read_text("utf-8"))
        assert float(row["comprehensiveness"]) == pytest.approx(scores["comprehensiveness"], abs=1e-12)
    people = rows[2]
    assert people["token_macro_f1"] == "" and people["comprehensiveness"] != ""


def test_findings_are_those_of_the_comparison(benched):
    from eraser_hub.reports.findings import describe_findings

    result, out, _ = benched
    stored = json.loads((out / "comparison.json").read_text("utf-8"))
    assert set(stored["scores"]) == {"random", "occlusion"}
    assert result.findings == describe_findings(stored, ["random"])
    page = (out / "verdict.md").read_text("utf-8")
    assert all(line in page for line in result.findings) and all(note in page for note in result.notes)


def test_a_second_run_does_what_is_missing(hub, benched):
    _, out, _ = benched
    kept = out / "predictions" / "logistic-regression.occlusion.seed-1.jsonl"
    gone = out / "predictions" / "logistic-regression.random.seed-2.jsonl"
    before, content, table = kept.stat().st_mtime_ns, gone.read_bytes(), (out / "table.csv").read_bytes()
    gone.unlink()
    lines: list[str] = []
    run(hub, out, say=lines.append, sample=12, seeds=2)
    assert kept.stat().st_mtime_ns == before and gone.read_bytes() == content
    assert (out / "table.csv").read_bytes() == table
    assert [line for line in lines if "trained before" in line]


def test_the_written_plan_repeats_the_run(hub, benched):
    _, out, _ = benched
    plan = read_plan(BenchArguments(plan=out / "bench.yaml"))
    assert (plan.config, plan.split, plan.seeds, plan.sample) == ("movies", "validation", 2, 12)
    assert plan.method == ("occlusion",) and plan.model == ["logistic-regression"]
    record = yaml.safe_load((out / "bench.yaml").read_text("utf-8"))["record"]
    assert record["versions"]["eraser-hub"] == eraser_hub.__version__
    runs = record["systems"]["occlusion"]
    assert len(runs) == 2 and runs[0]["model"] != runs[1]["model"] and all(one["signature"] for one in runs)


def test_a_plan_with_a_long_record_is_read(tmp_path):
    path, plan = tmp_path / "bench.yaml", {"dataset": "d", "model": ["m"], "out": "o", "seeds": 3}
    runs = [{"file": f"{place}.jsonl", "signature": "a|b: c\n\n'd' " * 40} for place in range(600)]
    whole = {**plan, "record": {"versions": {"python": "3"}, "systems": {"lime": runs}}}
    path.write_text(yaml.safe_dump(whole, sort_keys=False), "utf-8")
    assert len(path.read_text("utf-8")) > 2 * MOST_CHARACTERS
    assert read_plan(BenchArguments(plan=path)).seeds == 3
    lines = path.read_text("utf-8").count("\n")
    path.write_text(path.read_text("utf-8") + "quick: 1\n", "utf-8")
    with refused(file=path, line=lines + 1, field="quick"):
        read_plan(BenchArguments(plan=path))
    path.write_text(yaml.safe_dump({**plan, "paper": "x" * MOST_CHARACTERS}), "utf-8")
    with refused(file=path, argument="plan"):
        read_plan(BenchArguments(plan=path))


def test_other_settings_do_not_resume(hub, benched):
    _, out, _ = benched
    with refused("sample", file=out, argument="out"):
        run(hub, out, sample=13, seeds=2)


def test_a_dry_run_trains_and_writes_nothing(hub, benched, tmp_path):
    _, out, _ = benched
    place = str(out / "models" / "logistic-regression.seed-1")
    lines = run(hub, tmp_path / "none", model=f"LR={place}", dry_run=True, sample=3)
    assert not (tmp_path / "none").exists()
    assert lines[0].endswith("movies, validation: 3 texts")
    assert [line.partition(":")[0] for line in lines[1:]] == ["LR random", "LR occlusion"]
    assert run(hub, tmp_path / "none", dry_run=True, seeds=3)[1].startswith("logistic-regression: 3 trainings")


def test_settings_of_methods_are_passed_on(hub, benched, tmp_path):
    model = str(benched[1] / "models" / "logistic-regression.seed-1")
    values = {"model": model, "sample": 4}
    run(hub, tmp_path / "out", **values, method=("lime(samples=50)",))
    (path,) = (tmp_path / "out" / "predictions").glob("*.lime.jsonl.run.json")
    settings = json.loads(path.read_text("utf-8"))["settings"]
    assert settings["lime_samples"] == 50
    with refused("settings", file=tmp_path / "out", argument="out"):
        run(hub, tmp_path / "out", **values, method=("lime(samples=60)",))
    for setting in ("steps=9", "sample=9", "samples=x"):
        with refused(argument="method"):
            run(hub, tmp_path / "none", **values, method=(f"lime({setting})",))


def test_draws_of_a_given_model(hub, benched, tmp_path):
    _, out, _ = benched
    place = str(out / "models" / "logistic-regression.seed-1")
    run(hub, tmp_path / "out", model=place, seeds=2, sample=4)
    names = sorted(path.name for path in (tmp_path / "out" / "predictions").glob("*.jsonl"))
    own = "logistic-regression.seed-1"
    assert names == [f"{own}.{end}.jsonl" for end in ("occlusion", "people", "random.draw-1", "random.draw-2")]


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("model: [a", "YAML"),
        ("- a\n", "key: value"),
        ("a: &x [b]\nmodel: *x\n", "no aliases"),
        ("model: a\nmodel: b\n", "'model'"),
        ("sample: 0\n", "at least 1"),
        ("dry_run: true\n", "dry_run"),
        ("engine: cloud\n", "local, ray"),
        ("modle: a\n", "modle"),
        ("seeds: many\n", "many"),
        ("quick: 1\n", "True or False"),
        ("seeds: true\n", "whole number"),
        ("model: [1]\n", "1"),
    ],
)
def test_a_plan_that_is_none(tmp_path, text, mention):
    path = tmp_path / "plan.yaml"
    path.write_text(text, "utf-8")
    with refused(mention, file=path, argument="plan"):
        read_plan(BenchArguments(plan=path))


def test_a_plan_is_refused_before_the_work(tmp_path):
    (tmp_path / "file").write_text("x")
    whole: dict[str, Any] = {"dataset": "d", "model": "m", "out": tmp_path / "out"}
    for more, mention in (
        ({"minimum_effect": float("nan")}, "minimum_effect"),
        ({"minimum_effect": -1.0}, "at least 0"),
        ({"paper": "x"}, "eraser"),
        ({"out": tmp_path / "file"}, "a folder"),
    ):
        with refused(mention):
            read_plan(BenchArguments(**{**whole, **more}))


def test_a_plan_names_the_split(hub, tmp_path):
    (tmp_path / "plan.yaml").write_text(f"dataset: {hub}\nconfig: nothing\nsplit: val\nmodel: m\nout: {tmp_path}/out\n")
    _register(("bench",))
    announced = CliRunner().invoke(app, ["bench", "--plan", str(tmp_path / "plan.yaml"), "--dry-run"]).stderr
    assert "split: test" not in announced
    assert "split: test" in CliRunner().invoke(app, ["bench", "--dataset", str(hub), "--dry-run"]).stderr


def test_what_is_missing_is_named(tmp_path):
    names = ("dataset", "model", "out")
    for place, argument in enumerate(names):
        values: dict[str, Any] = dict.fromkeys(names[:place], "x")
        with refused(argument=argument, type=UsageError):
            read_plan(BenchArguments(**values))


def test_models_have_names_of_their_own():
    assert [one.name for one in plan_models(["A=x/model", "y/model"])] == ["A", "model"]
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

    counts: dict[str, list[object]] = {"has_rationales": [], "compute_model_digest": []}

    def count(name):
        function = getattr(of_bench, name)

        def counted(one):
            counts[name].append(one)
            return function(one)

        return counted

    for name in counts:
        monkeypatch.setattr(of_bench, name, count(name))
    run(hub, tmp_path / "in" / "out", model=("../../up=logistic-regression", "b=logistic-regression"), sample=3)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["out"]
    folders = {path.name for path in (tmp_path / "in" / "out" / "models").iterdir() if path.is_dir()}
    assert {name for name in folders if not name.startswith(".")} == {"_.._up.seed-1", "b.seed-1"}
    assert len(counts["has_rationales"]) == 1
    places = counts["compute_model_digest"]
    assert len(places) == len(set(places)) == 2


def test_an_unsupported_method(hub, tmp_path):
    with refused("attention", argument="method"):
        run(hub, tmp_path / "out", method=("attention",))
    with refused("oclusion", argument="method"):
        run(hub, tmp_path / "out", method=("oclusion",))


def test_methods_that_the_model_does_not_support_are_left_out_and_named(hub, benched, tmp_path):
    import skops.io
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = f"LR={benched[1] / 'models' / 'logistic-regression.seed-1'}"
    plan = run(hub, tmp_path / "none", model=model, method=("all",), dry_run=True)
    (left_out,) = [line for line in plan if "not explained by" in line]
    planned = {line.removeprefix("LR ").partition(":")[0] for line in plan if line.startswith("LR ")}
    assert {"coefficients", "gradient"} <= planned and not any(f" {name}," in left_out for name in planned)
    assert all(name in planned or f" {name}," in left_out for name in METHODS)

    parts, lines = make_pipeline(TfidfVectorizer(analyzer="char_wb"), LogisticRegression()), list[str]()
    skops.io.dump(parts.fit(["a good film", "a bad plot"], ["POS", "NEG"]), tmp_path / "parts.skops")
    settings = {"model": f"C={tmp_path / 'parts.skops'}", "method": (), "more": ("lime_samples=20",), "sample": 2}
    result = run(hub, tmp_path / "out", say=lines.append, **settings)
    names = [left[0] for left, _ in result.tables.tables[0].rows]
    assert {"random", "occlusion", "lime"} <= set(names) and "coefficients" not in names
    lacking = "coefficients, input-x-gradient, integrated-gradients, attention"
    assert lines[0] == f"C: not explained by {lacking}, which LogisticRegression does not support"


def test_of_several_models_each_is_explained_by_the_methods_that_it_supports(hub, benched, tmp_path):
    lines: list[str] = []
    model = f"LR={benched[1] / 'models' / 'logistic-regression.seed-1'}"
    several = {"model": (model, "logistic-regression"), "method": ("occlusion", "attention"), "sample": 3}
    result = run(hub, tmp_path / "out", say=lines.append, **several)
    names = [left[0] for left, _ in result.tables.tables[0].rows]
    assert {"LR occlusion", "logistic-regression occlusion"} <= set(names)
    assert not any("attention" in name for name in names)
    left_out = [line for line in lines if "not explained by" in line]
    assert left_out == [
        f"{name}: not explained by attention, which LogisticRegression does not support"
        for name in ("LR", "logistic-regression")
    ]
    stored = json.loads((tmp_path / "out" / "comparison.json").read_text("utf-8"))
    assert result.notes == stored["notes"] and f"note: {result.notes[0]}" in repr(result)
    with refused("attention", argument="method"):
        run(hub, tmp_path / "none", **{**several, "method": ("attention",)})


def test_each_training_explains_the_same_texts_by_its_own_seed(benched):
    _, out, _ = benched
    paths = [out / "predictions" / f"logistic-regression.random.seed-{seed}.jsonl" for seed in (1, 2)]
    rows = [list(map(json.loads, path.read_text("utf-8").splitlines())) for path in paths]
    ids, rationales = ([[row[name] for row in one] for one in rows] for name in ("annotation_id", "rationales"))
    assert len(ids[0]) == 12 and ids[0] == ids[1]
    assert rationales[0] != rationales[1]


def test_the_table_has_chance(benched):
    result, out, _ = benched
    rows = list(csv.DictReader((out / "table.csv").read_text("utf-8").splitlines()))
    scores = {
        name: json.loads((out / "report" / f"{name}.scores.json").read_text("utf-8"))
        for name in ("random", "occlusion")
    }
    (line,) = [row for row in rows if row["system"] == "chance"]
    for own in scores.values():
        assert float(line["token_macro_f1"]) == pytest.approx(own["chance"]["token_macro_f1"], abs=5e-4)
    assert line["comprehensiveness"] == "", "faithfulness has no chance"
    assert "chance" in result.table().written("text") and "chance" in (out / "table.tex").read_text("utf-8")


def test_each_model_is_opened_once(hub, benched, tmp_path, monkeypatch):
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
    run(hub, tmp_path / "out", model=place, sample=3)
    assert opened == [place]


@pytest.mark.parametrize("paper", ["eraser", "wang2022", "carton2020"])
def test_the_settings_of_a_paper(hub, benched, tmp_path, paper):
    """A given model is explained as the paper does; each file says so."""
    place = str(benched[1] / "models" / "logistic-regression.seed-1")
    run(hub, tmp_path / "out", model=place, sample=4, paper=paper)
    plan = yaml.safe_load((tmp_path / "out" / "bench.yaml").read_text("utf-8"))
    assert plan["paper"] == paper
    signatures = [one["signature"] for runs in plan["record"]["systems"].values() for one in runs]
    assert len(signatures) == 3 and all(f"paper:{paper}|" in line for line in signatures), signatures
