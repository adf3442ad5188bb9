"""One command from models to a verdict: train what has to be trained, explain, score, compare, report.

    OUT/bench.json                what decides the results; a run with other settings does not resume here
    OUT/models/NAME.seed-1/       a trained system
    OUT/predictions/              a file for each model, method and seed, and those of people's rationales
    OUT/comparison.json           every pair of systems, as `compare --format json`
    OUT/table.tex, table.csv      the headline scores; bold is better than every other system
    OUT/report/index.html         the report, and a score file for each system
    OUT/verdict.md                the findings and the table
    OUT/bench.yaml                the plan, as `--plan` takes it, with digests and versions

Finished files are reused; stopped trainings and explanations resume.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from eraser_hub.attribution.adapter import Adapter
from eraser_hub.attribution.config import ExplainConfig
from eraser_hub.attribution.costs import count_inputs
from eraser_hub.attribution.dataset import Split, open_split
from eraser_hub.attribution.method import METHODS, supports
from eraser_hub.attribution.run import compute_model_digest, explain_runs, find_run_settings, resolve_query
from eraser_hub.attribution.settings import (
    ExplainSettings,
    RationaleSource,
    find_preset,
    parse_method,
)
from eraser_hub.attribution.work import load_model
from eraser_hub.conversion.eraser.corpus_yaml import load_yaml_values
from eraser_hub.conversion.readers import read_utf8_file
from eraser_hub.metrics.errors import find_similar
from eraser_hub.records.errors import DataError, UsageError, describe_bad_name, show
from eraser_hub.records.files import atomic_write
from eraser_hub.records.options import as_list, read_options
from eraser_hub.records.predictions import read_run
from eraser_hub.records.readers import wrap_read_errors
from eraser_hub.records.tables import Cell, Table, Tables
from eraser_hub.reports.catalogue import metric
from eraser_hub.reports.explorer.overview import Compared
from eraser_hub.reports.findings import describe_findings
from eraser_hub.reports.options import BenchArguments
from eraser_hub.reports.report_page import make_report
from eraser_hub.reports.report_tables import label_with_arrow, summarise_chance
from eraser_hub.scoring.compare import BETTER, WORSE, Comparison
from eraser_hub.scoring.runs import System
from eraser_hub.scoring.score import compare_systems
from eraser_hub.scoring.scored_split import ScoredSplit
from eraser_hub.scoring.settings import ScoreSettings
from eraser_hub.systems.run_folder import lock_run_folder, train_or_resume
from eraser_hub.systems.system import SYSTEMS
from eraser_hub.systems.train_config import Say, TrainConfig
from eraser_hub.version import __version__

QUICK = 50  # texts of `quick`
ALL, RANDOM, PEOPLE = "all", "random", "people"
# of a model that supports them; the others take many inputs
DEFAULT_METHODS = (RANDOM, "occlusion", "lime", "coefficients", "input-x-gradient", "integrated-gradients", "attention")
COLUMNS = (
    "token_macro_f1",
    "iou_macro_f1",
    "auprc",
    "comprehensiveness_aopc",
    "sufficiency_aopc",
    "comprehensiveness",
    "sufficiency",
    "accuracy",
)
LEVEL = 0.95
_RECORD = re.compile(r"^record:[ \t]*\r?\n(?:[ \t].*\n?|\r?\n)*", re.MULTILINE)
PACKAGES = ("datasets", "numpy", "pyarrow", "scikit-learn", "torch", "transformers")


@dataclass(frozen=True, slots=True, repr=False)
class BenchResult:
    """Result of a bench.

    Attributes:
        out: its folder.
        findings: sentences made of the verdicts.
        tables: the headline scores of each system.
        comparison: every pair of systems; None of a single system.
        page: the report.
        notes: what the reader has to know of the results.
    """

    out: Path
    findings: list[str]
    tables: Tables
    comparison: Comparison | None
    page: Path
    notes: list[str]

    def table(self) -> Tables:
        """Return the headline scores of each system."""
        return self.tables

    def __repr__(self) -> str:
        return "\n".join([*self.findings, "", self.tables.written("text"), *(f"note: {line}" for line in self.notes)])

    def _repr_html_(self) -> str:
        """Return findings and table, for notebooks."""
        from html import escape

        lines = "".join(f"<p>{escape(line)}</p>" for line in self.findings)
        return f"{lines}<pre>{escape(self.tables.written('text'))}</pre>"


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """A model of a bench.

    Attributes:
        name: its name in the results.
        place: a folder, file or Hub id; the name of a system to train.
        trained: whether it is trained here.
    """

    name: str
    place: str
    trained: bool

    @property
    def file_name(self) -> str:
        """The name as a file's."""
        return System(self.name, ()).file_name


@dataclass(frozen=True, slots=True)
class PlannedSystem:
    """A method of a model: a system of the results.

    Attributes:
        name: its name in the results.
        model: the model's.
        method: the method; ``people`` for their rationales.
        runs: the model, the settings and the file of each run.
    """

    name: str
    model: str
    method: str
    runs: list[tuple[str, ExplainSettings, Path]]


def read_plan(arguments: BenchArguments) -> BenchArguments:
    """Return the arguments completed by those of the plan's file.

    Raises:
        DataError: a file that cannot be read, an unknown key, a value of another type.
        UsageError: no dataset, model or folder.
    """
    values: dict[str, Any] = {}
    if arguments.plan is not None:
        values = _read_plan_file(arguments.plan)
    defaults = {one.name: one.default for one in fields(BenchArguments)}
    chosen = {name: getattr(arguments, name) for name in defaults if getattr(arguments, name) != defaults[name]}
    merged = BenchArguments(**{**values, **chosen, "plan": None})
    for name in ("dataset", "model", "out"):
        if not getattr(merged, name):
            raise UsageError("expected it, here or in the plan's file", argument=name)
    if merged.quick and merged.sample is not None:
        raise UsageError("expected one of `quick` and `sample`", argument="sample")
    find_preset(merged.paper)  # these three before hours of work
    if os.path.lexists(merged.out or "") and not os.path.isdir(merged.out or ""):
        raise DataError("expected a folder, found a file", file=merged.out, argument="out")
    if not 0 <= merged.minimum_effect < math.inf:
        message = f"expected a difference of at least 0, found {show(merged.minimum_effect)}"
        raise DataError(message, argument="minimum_effect")
    return merged


def _read_plan_file(path: Path) -> dict[str, Any]:
    """Return the arguments in a plan's file."""
    try:
        with wrap_read_errors(path):
            text = read_utf8_file(str(path)).decode("utf-8")
            # what a run wrote into its bench.yaml is no part of the plan, and may be long; lines keep their numbers
            values, lines = load_yaml_values(_RECORD.sub(lambda found: "\n" * found[0].count("\n"), text), path)
    except DataError as error:
        raise DataError(error.message, file=path, line=error.line, argument="plan") from None
    values.pop("record", None)
    options = {name: one for name, one in read_options(BenchArguments).items() if not one.python_only}
    known = [name for name in options if name not in ("plan", "dry_run")]
    for name, value in values.items():
        if name not in known:
            hint = f": did you mean {near!r}?" if (near := find_similar(name, known)) else ""
            message = f"expected one of {', '.join(known)}, found {show(name)}{hint}"
            raise DataError(message, file=path, line=lines[name], argument="plan")
        try:
            values[name] = options[name].check(name, value)
        except UsageError as error:
            of: dict[str, Any] = {"line": lines[name], "field": name, "argument": "plan"}
            raise DataError(error.message, file=path, **of) from None
    return values


def bench(arguments: BenchArguments) -> BenchResult | list[str]:
    """Run a bench, or describe it.

    Args:
        arguments: the models, data and methods.

    Returns:
        The result; of a dry run the lines of the plan.

    Raises:
        DataError: wrong data, models or settings; ``out`` holds another run.
        BusyError: another run is at work in ``out``.
    """
    plan = read_plan(arguments)
    dataset = plan.dataset or ""
    split = open_split(dataset, plan.config, plan.split)
    plan = replace(plan, config=split.config)
    models = plan_models(as_list(plan.model) or [])
    run = _Run(plan, dataset, split, read_settings(plan), plan.say or (lambda line: None))
    if plan.dry_run:
        return run.describe(models)
    settings = {
        "dataset": str(dataset),
        "config": plan.config,
        "split": plan.split,
        "sample": run.sample,
        "seed": plan.seed,
        "paper": plan.paper,
        **({"settings": run.chosen} if any(run.chosen.values()) else {}),
    }
    with lock_run_folder(run.out, "bench", settings):
        systems, marked = list[PlannedSystem](), has_rationales(split)
        for model in models:
            systems += run.explain(model, marked, len(models) > 1)
        return run.conclude(systems)


def plan_models(models: Sequence[str]) -> list[PlannedModel]:
    """Return the models that arguments name.

    Raises:
        UsageError: two of one name, or whose files have one name.
    """
    found = list[PlannedModel]()
    for argument in models:
        name, equals, place = argument.partition("=")
        if not equals or os.path.exists(argument):
            name, place = "", argument
        trained = place in SYSTEMS and not Path(place).exists()
        found.append(PlannedModel(name or Path(place).name, place, trained))
    names = dict[str, str]()
    for one in found:
        if words := describe_bad_name(one.name):
            raise UsageError(words, argument="model")
        if (other := names.get(one.file_name)) is not None:
            message = f"expected a name of its own for each model and its files (NAME=PLACE), found {other}, {one.name}"
            raise UsageError(message, argument="model")
        names[one.file_name] = one.name
    return found


def read_settings(plan: BenchArguments) -> dict[str, dict[str, Any]]:
    """Return the settings of each method that a plan names.

    Raises:
        DataError: an unknown method or setting.
    """
    return dict(parse_method(text) for text in plan.method if text != ALL)


def choose_methods(plan: BenchArguments, adapter: Adapter) -> list[str]:
    """Return the methods that explain a model, and chance.

    Of several models, each is explained by those of the methods that it supports.

    Raises:
        DataError: an unknown method, or one that the only model does not support; none that one of several supports.
    """
    supported = [name for name in METHODS if supports(adapter, name)]
    if plan.method == (ALL,):
        return supported
    if not plan.method:
        return [name for name in DEFAULT_METHODS if name in supported]
    asked = list(read_settings(plan))
    chosen = [name for name in asked if name in supported]
    if len(chosen) < len(asked) and (not chosen or len(as_list(plan.model) or ()) == 1):
        lacking = ", ".join(name for name in asked if name not in supported)
        message = f"{adapter.description} does not support {lacking}; expected some of {', '.join(supported)}"
        raise DataError(message, argument="method")
    return list(dict.fromkeys([RANDOM, *chosen]))


def describe_lacking(plan: BenchArguments, name: str, adapter: Adapter, methods: Sequence[str]) -> list[str]:
    """Return a line on the methods of a plan that a model does not support; none where it supports all."""
    asked = METHODS if plan.method == (ALL,) else read_settings(plan) or DEFAULT_METHODS
    lacking = ", ".join(method for method in asked if method not in methods)
    return [f"{name}: not explained by {lacking}, which {adapter.description} does not support"] if lacking else []


def has_rationales(split: Split) -> bool:
    """Return True if any instance of a split has a token that people marked."""
    return any(one.has_rationale for one in split.instances())


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of a bench: the complete plan, its data, and the settings of the methods that it names."""

    plan: BenchArguments
    dataset: str
    split: Split
    chosen: Mapping[str, Mapping[str, Any]]
    say: Say

    @property
    def out(self) -> Path:
        """The folder of all results."""
        return self.plan.out or Path()

    @property
    def sample(self) -> int | None:
        """The number of texts to explain; None: all."""
        return QUICK if self.plan.quick else self.plan.sample

    def open_model(self, place: str) -> tuple[ExplainConfig, Adapter]:
        """Return model and data of an explanation, and the model."""
        plan, split = self.plan, self.split
        config = ExplainConfig(self.dataset, plan.config, plan.split, place, sample=self.sample, sample_seed=plan.seed)
        return config, load_model(resolve_query(config, split), split.label_names)

    def describe(self, models: Sequence[PlannedModel]) -> list[str]:
        """Return the plan in lines: what is trained, and the largest number of model inputs of each explanation.

        Methods of a system that is yet to be trained are known after its training.
        """
        plan, split = self.plan, self.split
        rows = split if self.sample is None else split.sample(self.sample, plan.seed)
        lines = [f"{self.dataset}, {plan.config}, {plan.split}: {sum(1 for _ in rows.instances())} texts"]
        for model in models:
            if model.trained:
                lines.append(f"{model.name}: {_count(plan.seeds, 'training')} of {model.place}, then explained")
                continue
            config, adapter = self.open_model(model.place)
            methods = choose_methods(plan, adapter)
            lines += describe_lacking(plan, model.name, adapter, methods)
            for method in methods:
                settings, _ = find_run_settings(
                    config, plan.paper, method=method, seed=plan.seed, **self.chosen.get(method, {})
                )
                draws, own = plan.seeds if METHODS[method].sampled else 1, settings.for_kind(split.kind)
                most = sum(count_inputs(one, own, split.kind).total() for one in rows.instances())
                lines.append(f"{model.name} {method}: {_count(draws, 'run')} of at most {most} model inputs")
        return lines

    def train(self, model: PlannedModel) -> list[str]:
        """Return the models to explain: one, or the trainings of a system by each seed."""
        if not model.trained:
            return [model.place]
        plan, folders = self.plan, list[str]()
        config = TrainConfig(dataset=self.dataset, config=plan.config, model=model.place, paper=plan.paper)
        for seed in range(plan.seed, plan.seed + plan.seeds):
            folder = self.out / "models" / f"{model.file_name}.seed-{seed}"
            folder.parent.mkdir(exist_ok=True)
            folders.append(str(train_or_resume(folder, partial(replace, config, seed=seed), self.say)))
        return folders

    def explain(self, model: PlannedModel, marked: bool, several: bool) -> list[PlannedSystem]:
        """Explain a model by each method, and by what people marked if they ``marked`` any.

        Systems are named after their model too if there are ``several`` models.
        """
        plan, systems, places = self.plan, dict[str, PlannedSystem](), self.train(model)
        folder = self.out / "predictions"
        folder.mkdir(exist_ok=True)

        def add_run(place: str, settings: ExplainSettings, method: str, suffix: str) -> tuple[ExplainSettings, Path]:
            name = f"{model.name} {method}" if several else method
            system = systems.setdefault(method, PlannedSystem(name, model.name, method, []))
            path = folder / f"{model.file_name}.{method}{suffix}.jsonl"
            system.runs.append((place, settings, path))
            return settings, path

        for seed, place in enumerate(places, plan.seed):  # each training is explained by its own seed
            config, adapter = self.open_model(place)
            suffix = f".{Path(place).suffix.lstrip('.')}" if model.trained else ""
            methods, runs = choose_methods(plan, adapter), list[tuple[ExplainSettings, Path]]()
            for line in describe_lacking(plan, model.name, adapter, methods) if place == places[0] else ():
                self.say(line)
            for method in methods:
                settings, _ = find_run_settings(
                    config, plan.paper, method=method, seed=seed, **self.chosen.get(method, {})
                )
                draws = plan.seeds if METHODS[method].sampled and not model.trained else 1
                for draw in range(draws):
                    drawn = replace(settings, seed=settings.seed + draw)
                    more = f".draw-{draw + 1}" if draws > 1 else ""
                    runs.append(add_run(place, drawn, method, f"{suffix}{more}"))
            jobs = [(config, runs)]
            if marked:
                human = replace(config, rationales=RationaleSource.HUMAN)
                settings, _ = find_run_settings(human, plan.paper, seed=seed)
                jobs.append((human, [add_run(place, settings, PEOPLE, suffix)]))
            for job, own in jobs:
                how: dict[str, Any] = {"workers": plan.workers if plan.engine == "ray" else 0, "resume": True}
                for report in explain_runs(job, own, model=adapter, **how):
                    self.say(report.lines()[0])
        return list(systems.values())

    def conclude(self, systems: Sequence[PlannedSystem]) -> BenchResult:
        """Score, compare and report the systems, and write the folder's files."""
        plan, out, dataset = self.plan, self.out, Path(self.dataset)
        scored = {one.name: System(one.name, tuple(path for _, _, path in one.runs)) for one in systems}
        compared = [scored[one.name] for one in systems if one.method != PEOPLE]
        chance, models = [one.name for one in systems if one.method == RANDOM], {one.name: one.model for one in systems}
        level: dict[str, Any] = {"confidence_level": LEVEL, "n_resamples": plan.resamples, "seed": 0}
        settings = ScoreSettings(only_predicted=True, **level)
        comparison, notes = None, list[str]()
        if len(compared) > 1:
            self.say(f"comparing {len(compared)} systems")
            source = ScoredSplit(split=plan.split, dataset=dataset, config=plan.config)
            inference: dict[str, Any] = {} if plan.resamples is None else {"resamples": plan.resamples}
            asked = replace(settings, confidence_level=None, n_resamples=None)
            comparison = compare_systems(source, compared, asked, minimum_effect=plan.minimum_effect, **inference)
            notes = comparison["notes"]
            comparison.save(out / "comparison.json", force=True)
        self.say("writing the report")
        title = f"{dataset.name}, {plan.config}, {plan.split}"
        report = make_report(
            dataset,
            config=plan.config,
            split=plan.split,
            systems=list(scored.values()),
            baselines=[scored[name] for name in chance[:1]],
            out=out / "report",
            title=title,
            settings=settings,
            minimum_effect=plan.minimum_effect,
            compared=Compared(comparison, chance, models),
        )
        flat = {
            name: json.loads(path.read_text("utf-8")) for name, path in zip(scored, report.score_files, strict=True)
        }
        tables = Tables(str(plan.config), [make_table(title, systems, flat, comparison)])
        findings = [] if comparison is None else describe_findings(comparison, chance, models)
        result = BenchResult(out, findings, tables, comparison, report.page, notes)
        for suffix, format_name in ((".tex", "latex"), (".csv", "csv")):
            atomic_write(out / f"table{suffix}", (tables.written(format_name) + "\n").encode())
        page = "\n\n".join([f"# {title}", *findings, tables.written("markdown"), *(f"- {note}" for note in notes)])
        atomic_write(out / "verdict.md", (page + "\n").encode())
        atomic_write(out / "bench.yaml", yaml.safe_dump(_describe(plan, systems), sort_keys=False).encode())
        return result


def make_table(
    title: str, systems: Sequence[PlannedSystem], flat: Mapping[str, Mapping[str, Any]], comparison: Any
) -> Table:
    """Return the headline scores of each system; bold is better than every other system by the verdicts."""
    columns = tuple(key for key in COLUMNS if any(isinstance(one.get(key), int | float) for one in flat.values()))
    winners = find_winners(comparison) if comparison is not None else {}
    table = Table("bench", title, ("system",), columns, labels={key: label_with_arrow(key) for key in columns})
    for one in systems:
        own = flat[one.name]
        cells = {}
        for key in columns:
            if one.method == PEOPLE and metric(key).family == "agreement":
                continue  # with themselves
            low, high = own.get(f"{key}_ci") or (None, None)
            better = key in winners.get(one.name, ())
            cells[key] = Cell(own.get(key), digits=3, low=low, high=high, better=better)
        table.add(one.name, **cells)
    _add_chance(table, [one for one in systems if one.method != PEOPLE], flat, columns)
    if any(one.method == PEOPLE for one in systems):
        table.notes.append(f"{PEOPLE}: the texts are erased by what people marked, so it has no agreement with them.")
    table.notes.append(f"{RANDOM}: tokens ranked by chance. Bold and star: better than every other system by verdict.")
    return table


def find_winners(comparison: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the scores in which each system of a comparison is better than every other, by its verdicts."""
    wins: dict[str, Counter[str]] = {name: Counter() for name in comparison["scores"]}
    for pair in comparison["comparisons"]:
        for key, test in pair["keys"].items():
            winner = {BETTER: pair["first"], WORSE: pair["second"]}.get(test["verdict"])
            if winner is not None:
                wins[winner][key] += 1
    return {name: [key for key, count in own.items() if count == len(wins) - 1] for name, own in wins.items()}


def _add_chance(
    table: Table, systems: Sequence[PlannedSystem], flat: Mapping[str, Mapping[str, Any]], columns: Sequence[str]
) -> None:
    """Add a line of chance: the mean over systems, between the least and the greatest where they differ."""
    known = [flat[one.name].get("chance", {}) for one in systems]
    cells = {}
    for key in columns:
        if (own := summarise_chance(one.get(key) for one in known)) is not None:
            mean, (low, high) = own[0], own[1] or (None, None)
            cells[key] = Cell(mean, digits=3, low=low, high=high)
    if cells:
        table.add("chance", **{key: cells.get(key, Cell(None)) for key in columns})
    if any(one.interval for one in cells.values()):
        table.notes.append("chance: the mean over systems [least, greatest], where they differ.")


def _describe(plan: BenchArguments, systems: Sequence[PlannedSystem]) -> dict[str, Any]:
    """Return the plan as a file holds it, with what decides its numbers."""
    names = [one.name for one in fields(plan) if one.name not in ("plan", "dry_run", "say")]
    values = {name: getattr(plan, name) for name in names if getattr(plan, name) not in (None, (), "")}
    values |= {"out": str(plan.out), "model": as_list(plan.model), "method": list(plan.method)}
    if not plan.method:
        del values["method"]
    places = {place for one in systems for place, _, _ in one.runs}
    runs, digests = {}, {place: compute_model_digest(place) for place in places}
    for one in systems:
        records = [read_run(path) for _, _, path in one.runs]
        runs[one.name] = [
            {
                "file": path.name,
                "signature": record["signature"],
                "model": digests[place],
                "data": record["data"]["digest"],
            }
            for (place, _, path), record in zip(one.runs, records, strict=True)
        ]
    versions = {"eraser-hub": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {**values, "record": {"versions": versions, "systems": runs}}


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
