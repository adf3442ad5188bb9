"""From models to a verdict: every file, a second run that does nothing, and what is refused."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest

import eraser_hub
from eraser_hub.attribution.method import METHODS
from eraser_hub.experiments.bench import ExplainedSystem, make_table, plan_models
from eraser_hub.records.errors import UsageError
from eraser_hub.systems import training

from ..command_line import invoke
from ..needs import needs
from ..refusals import refused

pytestmark = needs("sklearn", "skops")
MODEL = "models/logistic-regression/seed-1"


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
    out = tmp_path_factory.mktemp("bench") / "out, with a comma"
    return run(hub, out, sample=12, seeds=2), out


def test_files_table_and_findings(benched):
    """The table has the score files' scores, and chance; findings are the comparison's, in which people are not."""
    from eraser_hub.reports.findings import describe_findings

    result, out = benched
    random = [out / "predictions" / f"logistic-regression.random.seed-{seed}.jsonl" for seed in (1, 2)]
    assert random[0].read_bytes() != random[1].read_bytes(), "each training has a ranking of its own"
    runs = [
        f"predictions/logistic-regression.{name}.seed-{n}.jsonl" for name in ("occlusion", "people") for n in (1, 2)
    ]
    for name in (*runs, "report/index.html", "table.tex", "verdict.md"):
        assert (out / name).stat().st_size > 100
    rows = {row["system"]: row for row in csv.DictReader((out / "table.csv").read_text("utf-8").splitlines())}
    assert list(rows) == ["random", "occlusion", "people", "chance"]
    scores = {name: json.loads((out / "report" / f"{name}.scores.json").read_text("utf-8")) for name in list(rows)[:3]}
    for name, own in scores.items():
        assert float(rows[name]["comprehensiveness"]) == pytest.approx(own["comprehensiveness"], abs=1e-12)
    chance = [scores[name]["chance"]["token_macro_f1"] for name in ("random", "occlusion")]
    assert float(rows["chance"]["token_macro_f1"]) == pytest.approx(sum(chance) / 2)
    assert rows["people"]["token_macro_f1"] == "" and rows["people"]["sufficiency"] != ""
    assert rows["chance"]["sufficiency_aopc"] == "", "faithfulness has no chance"
    stored = json.loads((out / "comparison.json").read_text("utf-8"))
    assert set(stored["scores"]) == {"random", "occlusion"}
    assert result.findings == describe_findings(stored, ["random"]) == result.as_json()["findings"]
    page = (out / "verdict.md").read_text("utf-8")
    assert all(line in page for line in (*result.findings, *result.notes))
    assert result.written("text").startswith(f"{result.findings[0]}\n")


def test_a_second_run_does_what_is_missing(hub, benched, monkeypatch):
    _, out = benched
    kept = out / "predictions" / "logistic-regression.occlusion.seed-1.jsonl"
    gone = out / "predictions" / "logistic-regression.random.seed-2.jsonl"
    before, content, table = kept.stat().st_mtime_ns, gone.read_bytes(), (out / "table.csv").read_bytes()
    gone.unlink()
    monkeypatch.setattr(training, "train_model", None)  # the models are there
    run(hub, out, sample=12, seeds=2)
    assert kept.stat().st_mtime_ns == before and gone.read_bytes() == content
    assert (out / "table.csv").read_bytes() == table
    words = ["--dataset", hub / "eraser", "--config", "movies", "--split", "validation", "--out", out, "--quick"]
    done = invoke(["bench", *words, "--model", "logistic-regression", "--method", "occlusion"])
    assert done.exit_code == 1 and "sample was 12, now 50" in done.stderr


def test_a_dry_run_trains_and_writes_nothing(hub, benched, tmp_path):
    models = (f"LR={benched[1] / MODEL}", "lstm(epochs=3)")
    lines = run(hub, tmp_path / "none", model=models, dry_run=True, sample=3, seeds=2)
    assert not (tmp_path / "none").exists()
    assert lines[0].endswith("movies, validation: 3 texts")
    assert lines[1:3] == ["LR random: random(draws=2)", "LR occlusion: occlusion"]
    assert lines[3].startswith("lstm: lstm(epochs=3) trained by seeds 1 to 2")


def test_a_given_model_is_explained_with_settings_by_several_random_draws(hub, benched, tmp_path):
    values = {"model": f"a_b/c={benched[1] / MODEL}", "sample": 4, "seeds": 2}
    run(hub, tmp_path, **values, method="lime(samples=50)")
    names = sorted(path.name for path in (tmp_path / "predictions").glob("*.jsonl"))
    ends = ("lime", "people", "random.draw-01", "random.draw-02")
    assert names == [f"a_b_c.{end}.jsonl" for end in ends]
    record = json.loads((tmp_path / "predictions" / "a_b_c.lime.jsonl.run.json").read_text("utf-8"))
    assert "method:lime(samples=50,tokens=0)|" in record["signature"]
    with refused(file="a_b_c.lime.jsonl"):  # was made otherwise
        run(hub, tmp_path, **values, method="lime(samples=60)")


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        ({"seeds": 0}, "seeds"),
        ({"method": "oclusion"}, "method"),
        ({"method": ["lime", "lime(samples=9)"]}, "method"),
        ({"model": ["x/model", "y/model"]}, "model"),
    ],
)
def test_what_cannot_be_is_refused_before_the_work(hub, tmp_path, wrong, argument):
    with refused(argument=argument):
        run(hub, tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


def test_models_have_names_of_their_own():
    planned = plan_models(["A=x/model", "y/model", "lstm(epochs=3)", "../../up=random-forest"])
    assert [one.name for one in planned] == ["A", "model", "lstm", "../../up"]
    assert [one.is_trained for one in planned] == [False, False, True, True]
    assert planned[3].file_name == "_.._up", "it stays in the folder"
    long, pairs = f"{'n' * 10_000}=x", (["x/model", "y/model"], ["a/b=x", "a b=y"], ["..=x", ".=y"], ["A=x", "A=y"])
    for models in (*pairs, ["a\nb=x"], [long]):
        with refused(argument="model", type=UsageError):
            plan_models(models)


def test_each_model_is_explained_by_the_methods_that_it_supports(hub, benched, tmp_path, caplog):
    model = f"LR={benched[1] / MODEL}"
    plan = run(hub, tmp_path / "none", model=model, method="all", dry_run=True)
    planned = {line.removeprefix("LR ").partition(":")[0] for line in plan if line.startswith("LR ")}
    (left_out,) = [line for line in caplog.messages if "not explained by" in line]
    assert {"coefficients", "gradient"} <= planned
    assert all((name in planned) != (f" {name}," in left_out) for name in METHODS)
    caplog.clear()
    several = {"model": (model, "logistic-regression"), "method": ("occlusion", "attention"), "sample": 3}
    result = run(hub, tmp_path / "out", **several)
    names = [left[0] for left, _ in result.tables[0].rows]
    assert {"LR occlusion", "logistic-regression occlusion"} <= set(names) and "attention" not in " ".join(names)
    assert [line for line in caplog.messages if "attention" in line] == [
        f"{name}: not explained by attention, which it does not support" for name in ("LR", "logistic-regression")
    ]
    with refused("attention", argument="method"):
        run(hub, tmp_path / "only", model=model, method="attention")


def test_bold_is_better_than_every_other_system():
    names = ("first", "second", "third", "random")
    methods = ("occlusion", "lime", "people", "random")
    systems = {name: ExplainedSystem("LR", method, []) for name, method in zip(names, methods, strict=True)}
    own = {"auprc": 0.5, "auprc_ci": [0.4, 0.6], "sufficiency": 0.1, "chance": {"auprc": 0.125}}
    pairs = [
        {"first": names[0], "second": other, "keys": {"auprc": {"verdict": "better"}}} for other in (names[1], names[3])
    ]
    table = make_table("movies_small & more, 100 %", systems, dict.fromkeys(names, own), {"comparisons": pairs})
    rows = {left[0]: cells for left, cells in table.rows}
    assert [name for name in rows if "auprc" in rows[name] and rows[name]["auprc"].better] == [names[0]]
    assert "auprc" not in rows[names[2]] and rows["chance"]["auprc"].value == 0.125
