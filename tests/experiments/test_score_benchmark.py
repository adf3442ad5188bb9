"""The benchmark of scores: wins, estimates over texts and models, units that resume, tables, the command."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from eraser_hub.cli.experiment import benchmark_scores
from eraser_hub.experiments import benchmark_tables, score_benchmark
from eraser_hub.experiments.benchmark_tables import (
    CONSTRUCTION,
    describe_sampling,
    get_construction,
    make_benchmark_tables,
)
from eraser_hub.experiments.configs import CLOSED, NETWORKS, BenchmarkConfig
from eraser_hub.experiments.explanations import CANDIDATES
from eraser_hub.experiments.planted_models import LEARNED, PlantedModel, make_judge, mask_others
from eraser_hub.experiments.plantings import KINDS, make_planted_texts
from eraser_hub.experiments.score_benchmark import (
    FAST,
    BenchmarkSettings,
    benchmark,
    judge_unit,
    make_benchmark_settings,
)
from eraser_hub.experiments.score_judgement import compute_wins
from eraser_hub.experiments.score_summary import decide_verdict, estimate, summarise
from eraser_hub.records.errors import DataError
from eraser_hub.reports.study.folder import make_figure_rows, write_study
from eraser_hub.scoring.uncertainty.mixed_model import fit_difference

from ..refusals import refused

TINY = replace(
    FAST,
    kinds=("word", "redundant"),
    networks=2,
    size=4,
    method_texts=2,
    soft_draws=2,
    perturbations=3,
    samples=8,
    curves=False,
)


def summarise_tiny(units):
    return {**summarise(TINY.families, TINY.kinds, units), "signature": TINY.signature()}


@pytest.fixture(scope="module")
def tiny():
    units = [judge_unit(TINY, kind, CLOSED, number) for kind in TINY.kinds for number in range(2)]
    return units, summarise_tiny(units)


def by_name(result):
    return {one["name"]: one for one in result["scores"]}


# --- wins and estimates ---------------------------------------------------------------------------------------------


def test_wins():
    best, other = np.array([1.0, 0.5, 1.0, np.nan]), np.array([0.0, 0.5, 2.0, 0.0])
    assert compute_wins(best, other, True, 1e-9).tolist() == pytest.approx([1, 0.5, 0, np.nan], nan_ok=True)
    assert compute_wins(best, other, False, 1e-9).tolist() == pytest.approx([0, 0.5, 1, np.nan], nan_ok=True)
    near = np.array([0.5 + 1e-6, 0.5])
    assert compute_wins(near, near[::-1], True, 1e-5).tolist() == [0.5, 0.5]
    assert compute_wins(near, near[::-1], True, 1e-9).tolist() == [1.0, 0.0]


def test_verdicts():
    judgements = [([0.6, 0.9], "better"), ([0.1, 0.4], "worse"), ([0.4, 0.7], "tie")]
    assert [decide_verdict({"auc": 0.5, "auc_ci": ends}) for ends, _ in judgements] == [word for _, word in judgements]
    assert decide_verdict({"auc": None, "auc_ci": None}) == decide_verdict({"auc": 1.0, "auc_ci": None}) == "undefined"


def test_an_estimate_of_one_stratum_is_the_crossed_model():
    values = np.random.default_rng(1).random((20, 5)) / 2 + np.linspace(0, 0.4, 5)
    model = fit_difference(values, np.zeros((20, 1)))
    found = estimate([values], 0.95)
    assert found["auc"] == pytest.approx(values.mean())
    assert found["auc_ci"] == pytest.approx(model.interval(0.95))
    assert found["networks_share"] == pytest.approx(float(model.components.runs / model.components.total))
    assert found["networks_share"] > 0.5


def test_strata_are_weighted_alike_and_their_errors_add_up():
    random = np.random.default_rng(2)
    parts = [random.random((30, 4)), random.random((60, 4)) / 10]
    found, whole = estimate(parts, 0.95), [estimate([part], 0.95) for part in parts]
    assert found["auc"] == pytest.approx((whole[0]["auc"] + whole[1]["auc"]) / 2)
    widths = [one["auc_ci"][1] - one["auc_ci"][0] for one in whole]
    assert found["auc_ci"][1] - found["auc_ci"][0] == pytest.approx(np.hypot(*widths) / 2, rel=0.1)


def test_where_no_text_differs_the_interval_allows_for_unseen_ones():
    """With probability .975, at most 1 - .025^(1/n) of new texts differ from n equal ones."""
    unseen = 1 - 0.025 ** (1 / 20)
    assert estimate([np.ones((20, 3))], 0.95)["auc_ci"] == pytest.approx([1 - unseen, 1])
    assert estimate([np.full((20, 3), 0.5)], 0.95)["auc_ci"] == pytest.approx([0.5 - unseen / 2, 0.5 + unseen / 2])
    assert estimate([np.full((20, 1), 1.0)], 0.95, (-1.0, 1.0))["auc_ci"] == pytest.approx([1 - 2 * unseen, 1])


def test_too_few_texts_have_no_interval_and_nothing_has_no_value():
    assert estimate([np.ones((5, 2))], 0.95) == {"auc": 1.0, "auc_ci": None, "networks_share": None}
    assert estimate([np.zeros((0, 0))], 0.95) == {"auc": None, "auc_ci": None, "networks_share": None}


@pytest.mark.slow
def test_intervals_hold_over_new_texts_and_new_models():
    """Of 300 simulated studies with effects of texts and of models, at most 8 % miss the mean, at 95 %."""
    random, missed = np.random.default_rng(5), 0
    for _ in range(300):
        parts = []
        for _ in range(3):
            values = (
                0.6
                + 0.1 * random.normal(size=(16, 1))
                + 0.08 * random.normal(size=(1, 6))
                + 0.1 * random.normal(size=(16, 6))
            )
            parts.append(values)
        low, high = estimate(parts, 0.95)["auc_ci"]
        missed += not low <= 0.6 <= high
    assert missed <= 24


# --- units and summaries --------------------------------------------------------------------------------------------


def test_a_unit_judges_every_score_by_every_explanation(tiny):
    units, _ = tiny
    unit = units[0]
    assert unit["judges"] and unit["accuracy"] == unit["masked_accuracy"] == 1.0 and unit["erased_inputs"] is None
    assert len(unit["wins"]) >= 18 and not set(unit["wins"]) & {"brier", "ece", "accuracy", "macro_f1"}
    assert all(set(one) == set(CANDIDATES) - {"incomplete"} for one in unit["wins"].values())
    assert all(len(values) == 4 for one in unit["wins"].values() for values in one.values())
    assert set(units[2]["wins"]["sufficiency"]) == set(CANDIDATES)  # two words decide
    assert set(unit["methods"]) == {"random", "occlusion", "lime", "kernel-shap", "shapley"}
    assert "sensitivity_max" in unit["methods"]["occlusion"] and unit["higher"]["sensitivity_max"] is False


def test_the_truth_knows_the_truth_and_sets_tie_in_another_order(tiny):
    _, result = tiny
    scores = by_name(result)
    assert scores["token_macro_f1"]["explanations"]["distractor"]["auc"] == 1.0
    for name in ("comprehensiveness", "sufficiency", "normalized_sufficiency", "token_macro_f1"):
        assert scores[name]["explanations"]["wrong_order"]["auc"] == 0.5
    assert scores["auprc"]["explanations"]["wrong_order"]["auc"] == 1.0


def test_redundant_evidence_defeats_leave_one_out(tiny):
    """Without one of two words that agree, nothing changes: occlusion finds neither, and tau_loo is undefined."""
    _, result = tiny
    assert by_name(result)["tau_loo"]["kinds"]["redundant"]["auc"] is None
    assert by_name(result)["tau_loo"]["kinds"]["word"]["auc"] > 0.9
    methods = result["methods"][CLOSED]
    assert methods["occlusion"]["kinds"]["word"] == 1.0 > methods["occlusion"]["kinds"]["redundant"]
    assert methods["shapley"]["kinds"]["redundant"] == 1.0


def test_the_result(tiny):
    units, result = tiny
    assert result["kinds"] == {CLOSED: {kind: {"models": 2, "judges": 2} for kind in TINY.kinds}}
    assert len({one["digest"] for one in result["models"]}) == 4
    for one in result["scores"]:
        assert one["families"][CLOSED]["auc"] == one["auc"] and set(one["verdicts"]) == set(CANDIDATES)
        if one["auc"] is not None:
            low, high = one["auc_ci"] or (0, 1)  # none of four texts
            assert 0 <= low <= one["auc"] <= high <= 1
    assert by_name(result)["auprc"]["agreement"]["auc"] == 1.0
    assert result == summarise_tiny(json.loads(json.dumps(units)))


def test_a_run_equals_its_units_and_resumes(tiny, tmp_path, monkeypatch):
    _, expected = tiny
    calls = []

    def judge(settings, *place):
        calls.append(place)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return judge_unit(settings, *place)

    monkeypatch.setattr(score_benchmark, "judge_unit", judge)
    with pytest.raises(KeyboardInterrupt):
        benchmark(TINY, out=tmp_path / "study")
    lines = []
    assert benchmark(TINY, lines.append, tmp_path / "study") == expected
    assert len(calls) == 5 and lines[0] == "2 of 4 models judged before"
    assert "redundant, closed-form 1: 100.0% of new texts right" in lines[-1]
    with refused("resume", "other settings", argument="out"):
        benchmark(replace(TINY, seed=2), out=tmp_path / "study")


def test_curves_show_that_infidelity_measures_its_draws():
    unit = judge_unit(replace(TINY, size=12, curves=True), "word", CLOSED, 0)
    shares = [np.mean(list(unit["curves"][str(draws)]["infidelity_normalized"].values())) for draws in (5, 80)]
    assert shares[0] < 0.8 < 0.9 < shares[1]
    assert judge_unit(replace(TINY, curves=True), "word", CLOSED, 1)["curves"] == {}


def test_a_model_that_did_not_learn_does_not_judge(tiny):
    units, _ = tiny
    lost = {key: units[0][key] for key in ("kind", "family", "number", "erased_inputs", "masked_accuracy", "digest")}
    lost |= {"accuracy": 0.5, "judges": False}
    result = summarise_tiny([lost, *units[1:]])
    assert result["kinds"][CLOSED]["word"] == {"models": 2, "judges": 1}
    text = make_benchmark_tables(result).written("text")
    assert "2 models of each kind; fewer label 98% of new texts right and judge: word 1." in text
    assert "it does not judge" in score_benchmark.describe_unit(lost)
    with refused("model", "98%", "(word 0.500)"):
        summarise((CLOSED,), ("word",), [lost])


def test_networks_trained_with_masks_are_compared_with_others(tiny):
    """The factor: 1 for networks of one side, 0 for those of the other, on the same texts."""
    units, _ = tiny
    made = []
    for number in range(6):
        erased = number % 2 == 1
        noise = np.random.default_rng(number).random(8) / 100
        wins = {"sufficiency": {"random": (erased * 0.5 + noise).tolist()}}
        made.append({**units[0], "family": "recurrent", "number": number, "erased_inputs": erased, "wins": wins})
    result = summarise(("recurrent",), ("word",), made)
    factor = by_name(result)["sufficiency"]["families"]["recurrent"]["erased_inputs"]
    assert factor["kinds"] == 1 and factor["difference"]["value"] == pytest.approx(0.5, abs=0.01)
    low, high = factor["difference"]["ci"]
    assert 0.45 < low < high < 0.55
    table = {one.name: one for one in make_benchmark_tables(result).tables}["recurrent_training"]
    alone = summarise(("recurrent",), ("word",), made[:3])  # one with masks: nothing tells how such networks vary
    assert by_name(alone)["sufficiency"]["families"]["recurrent"]["erased_inputs"]["difference"]["ci"] is None
    assert str({words[0]: cells for words, cells in table.rows}["sufficiency"]["difference"]).startswith("0.50 [")


def test_training_is_compared_on_the_texts_where_all_networks_have_a_score(tiny):
    units, _ = tiny
    nan = float("nan")
    sides = [[0.9, nan, 0.7, 0.8], [nan, 0.5, 0.1, 0.2]]  # without masks, with masks; two texts are common
    made = [
        {**units[0], "family": "recurrent", "number": number, "erased_inputs": number % 2 == 1}
        | {"wins": {"sufficiency": {"random": sides[number % 2]}}}
        for number in range(4)
    ]
    factor = by_name(summarise(("recurrent",), ("word",), made))["sufficiency"]["families"]["recurrent"]
    assert factor["erased_inputs"]["difference"]["value"] == pytest.approx(0.15 - 0.75)


# --- tables, the folder, the command ----------------------------------------------------------------------------------


def test_scores_that_are_decided_by_construction_are_marked_and_stand_last(tiny):
    _, result = tiny
    first = make_benchmark_tables(result).tables[0]
    marks = [words[2] for words, _ in first.rows]
    assert marks == sorted(marks, key=bool)
    assert {words[0]: words[2] for words, _ in first.rows if words[2]} == {
        name: word for name, (word, _, _) in CONSTRUCTION.items() if name != "sensitivity_max"
    }
    assert get_construction("tau_loo", CLOSED) == "truth" and get_construction("tau_loo", "recurrent") == ""
    assert any(note.startswith("tau_loo: leave-one-out is the gold in closed forms") for note in first.notes)


def test_tables_of_every_format(tiny):
    _, result = tiny
    tables = make_benchmark_tables(result)
    assert [table.name for table in tables.tables] == [
        "closed-form_scores",
        "closed-form_kinds",
        "methods",
        "agreement",
    ]
    for form in ("text", "markdown", "latex", "csv"):
        assert "comprehensiveness" in tables.written(form)


def test_one_model_alone_says_nothing_of_new_models(tiny, tmp_path):
    units = [unit for unit in tiny[0] if unit["number"] == 0]
    result = summarise_tiny(units)
    tables = make_benchmark_tables(result)
    assert "brackets: 95 % interval over new texts, of one model of each planting;" in tables.tables[0].notes[0]
    assert all(one["families"][CLOSED]["networks_share"] is None for one in result["scores"])
    write_study(tmp_path, replace(TINY, networks=1), result, tables)
    assert "intervals over new texts, of one model" in (tmp_path / "figures" / "closed-form-kinds.svg").read_text(
        "utf-8"
    )
    mixed = {"word": {"judges": 2}, "redundant": {"judges": 1}, "negation": {"judges": 0}}
    assert describe_sampling(mixed) == "new texts and new models (redundant: new texts, of one model)"


def test_tables_name_the_level_and_what_methods_lack(tiny, tmp_path, monkeypatch):
    units, _ = tiny
    result = {**summarise(TINY.families, TINY.kinds, units, 0.9), "signature": ""}
    result["methods"][CLOSED].pop("lime")
    monkeypatch.setattr(benchmark_tables, "list_missing", list)  # of packages: all are missing
    tables = make_benchmark_tables(result)
    assert "brackets: 90 % interval over new texts" in tables.tables[0].notes[0]
    notes = {one.name: one.notes for one in tables.tables}["methods"]
    lacking = "not judged: lime: missing package scikit-learn: install the extra with"
    assert any(note.startswith(lacking) for note in notes) and any(
        note.startswith("not judged: attention, ") and note.endswith("no gradients or attention") for note in notes
    )
    write_study(tmp_path, replace(TINY, confidence_level=0.9), result, tables)
    assert "with 90 % intervals" in (tmp_path / "figures" / "closed-form-kinds.svg").read_text("utf-8")


def test_the_folder_of_the_study(tiny, tmp_path):
    _, result = tiny
    files = write_study(tmp_path, TINY, result, make_benchmark_tables(result))
    names = {path.relative_to(tmp_path).as_posix() for path in files}
    assert names == {
        *(
            "data/word.jsonl",
            "data/redundant.jsonl",
            "models.csv",
            "result.json",
            "tables.csv",
            "tables.tex",
            "tables.md",
        ),
        *(f"figures/closed-form-{name}.{suffix}" for name in ("explanations", "kinds") for suffix in ("csv", "svg")),
    }
    lines = (tmp_path / "data" / "word.jsonl").read_text("utf-8").splitlines()
    texts = make_planted_texts("word", "test", 4, 1)
    assert [json.loads(line)["importance"] for line in lines] == [one.importance.tolist() for one in texts]
    assert json.loads((tmp_path / "result.json").read_text("utf-8")) == result
    models = list(csv.DictReader(io.StringIO((tmp_path / "models.csv").read_text("utf-8"))))
    assert [one["digest"] for one in models] == [one["digest"] for one in result["models"]]
    rows = make_figure_rows(result["scores"], CLOSED, "explanations", "explanation")
    assert rows[0]["explanation"] == "all" and rows[0]["value"] == "0.97"
    assert list(rows[0]) == ["explanation", "score", "better", "value", "low", "high", "mark", "weak"]
    figure = (tmp_path / "figures" / "closed-form-kinds.svg").read_text("utf-8")
    assert "closed-form models</text>" in figure and figure.count('<g class="weak">') == figure.count("</g>") > 4
    # one order in all panels, that of the tables; none is left out but those that are undefined there
    order = [words[0] for words, _ in make_benchmark_tables(result).tables[0].rows]
    panels: dict[str, list[str]] = {}
    for row in rows:
        panels.setdefault(row["explanation"], []).append(row["score"])
    assert panels["all"] == order and list(panels) == ["all", *CANDIDATES]
    assert all(names == [name for name in order if name in names] for names in panels.values())


def test_the_command(monkeypatch, tmp_path):
    monkeypatch.setattr(score_benchmark, "FAST", replace(TINY, kinds=("word",), networks=1, size=2, method_texts=0))
    app = typer.Typer()
    app.command()(benchmark_scores)
    result = CliRunner().invoke(app, ["--fast", "--format", "json", "--seed", "3", "--paper", str(tmp_path / "study")])
    content = json.loads(result.stdout)
    assert {"name", "verdicts", "auc"} <= content["scores"][0].keys() and "|seed:3|" in content["signature"]
    assert "|families:closed-form|" in content["signature"] and (tmp_path / "study" / "tables.tex").is_file()
    assert CliRunner().invoke(app, ["--models", "both"]).exit_code == 2


def test_options_become_settings():
    assert make_benchmark_settings(BenchmarkConfig()) == BenchmarkSettings()
    chosen = make_benchmark_settings(BenchmarkConfig(fast=True, models="all", networks=4, seed=2))
    assert chosen == replace(FAST, families=(CLOSED, *NETWORKS), networks=4, seed=2)
    assert make_benchmark_settings(BenchmarkConfig(models="trained")).families == NETWORKS
    whole = BenchmarkSettings()
    assert whole.networks == 10 and len(whole.kinds) == len(KINDS) >= 8


def test_plantings_and_texts_that_do_not_go_together_are_refused(tmp_path):
    chosen = make_benchmark_settings(BenchmarkConfig(fast=True, kinds=("leak", "word")))
    assert chosen == replace(FAST, kinds=("leak", "word"))
    for kinds in (("irony",), (), ("word", "word")):
        with refused("option-value", "some of word, conjunction, ", argument="kinds"):
            benchmark(replace(TINY, kinds=kinds))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a").write_text("".join(f"this is a sentence {number}\n" for number in range(30)), "utf-8")
    with refused("option-conflict", "a planting into real sentences", argument="texts"):
        benchmark(replace(TINY, texts=str(tmp_path)))


# --- trained models -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("family", NETWORKS)
@pytest.mark.parametrize("kind", ["word", "conjunction"])
def test_networks_learn_rules_and_know_nothing_without_the_deciding_words(kind, family):
    pytest.importorskip("torch", reason="skipped: no extra explain")
    judge = make_judge(kind, family, 1, 1, 800)
    assert judge.judges and judge.accuracy >= LEARNED and judge.masked_accuracy >= 0.95 and judge.erased_inputs
    assert len(judge.digest) == 64


@pytest.mark.slow
def test_too_few_texts_teach_no_conjunction():
    pytest.importorskip("torch", reason="skipped: no extra explain")
    judge = make_judge("conjunction", "recurrent", 0, 1, 16)
    assert not judge.judges and 0.3 < judge.accuracy < 0.8


@pytest.mark.slow
def test_networks_of_a_seed_are_the_same_and_judge_alike():
    pytest.importorskip("torch", reason="skipped: no extra explain")
    settings = replace(TINY, train_texts=200, size=3, method_texts=1)
    first, second = (judge_unit(settings, "word", "transformer", 1) for _ in range(2))
    assert first == second and first["judges"]
    assert set(first["methods"]) >= {"attention", "integrated-gradients", "occlusion"}
    other = make_judge("word", "transformer", 2, 1, 200)
    assert other.digest != first["digest"] and other.erased_inputs is False


@pytest.mark.slow
def test_ray_gives_the_same(tiny, tmp_path):
    pytest.importorskip("ray", reason="skipped: no extra ray")
    assert benchmark(TINY, out=tmp_path / "study", workers=2) == tiny[1]


class FakeRay(ModuleType):
    """As much of Ray as the study uses: every task is done at once, one at a time is fetched."""

    def __init__(self, error=None):
        super().__init__("ray")
        self.__spec__ = ModuleSpec("ray", None)
        self.exceptions = ModuleType("ray.exceptions")
        self.exceptions.RayError = type("RayError", (Exception,), {"cause": error})
        self.error, self.open, self.most, self.running = error, 0, 0, False

    def is_initialized(self):
        return self.running

    def init(self, **options):
        self.running = options["num_cpus"] == 2

    def shutdown(self):
        self.running = False

    def remote(self, **_):
        def start(*arguments):
            self.open += 1
            self.most = max(self.most, self.open)
            return arguments[1:]

        return lambda _: SimpleNamespace(remote=start)

    def wait(self, tasks, num_returns):
        return tasks[:num_returns], tasks[num_returns:]

    def get(self, task):
        self.open -= 1
        if self.error:
            raise self.exceptions.RayError("first line\nthe worker died")
        return task


def use_fake_ray(monkeypatch, error=None):
    ray = FakeRay(error)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.exceptions", ray.exceptions)
    return ray


def test_at_most_so_many_units_are_in_flight_as_there_are_workers(monkeypatch):
    ray, todo = use_fake_ray(monkeypatch), [(("word", CLOSED, number), None) for number in range(7)]
    found = list(score_benchmark._run_on_ray(TINY, todo, 2))
    assert [item for item, _ in found] == todo and [task for _, task in found] == [place for place, _ in todo]
    assert ray.most == 2 and not ray.running


@pytest.mark.parametrize(
    ("error", "rule", "words"),
    [(OSError("gone"), "device", "a Ray worker failed: the worker died"), (DataError("x", rule="model"), "model", "x")],
)
def test_a_worker_that_fails_is_told(error, rule, words, monkeypatch):
    ray = use_fake_ray(monkeypatch, error)
    with refused(rule, words):
        list(score_benchmark._run_on_ray(TINY, [(("word", CLOSED, 0), None)], 2))
    assert not ray.running


def test_models_that_are_asked_about_masked_texts():
    """The rule itself labels any text right that keeps its deciding words."""
    one = make_planted_texts("negation", "test", 1, 1)[0]
    other = mask_others(one, np.random.default_rng(1))
    model = PlantedModel("negation")
    assert model.predict_proba([other.tokens]).tolist() == model.predict_proba([one.instance.tokens]).tolist()
