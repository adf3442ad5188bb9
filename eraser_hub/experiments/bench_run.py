"""One command from models to a verdict: train what has to be trained, explain, score, compare, report.

    OUT/bench.json                what decides the results; a run with other settings does not resume here
    OUT/models/NAME.seed-1/       a trained system
    OUT/predictions/              a file for each model, method and seed, and those of people's rationales
    OUT/comparison.json           every pair of systems, as `compare --format json`
    OUT/table.tex, table.csv      the headline scores; bold is better than every other system
    OUT/report/index.html         the report, and a score file for each system
    OUT/verdict.md                the findings and the table

Finished files are reused; stopped trainings and explanations resume.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from eraser_hub.attribution.adapter import Adapter
from eraser_hub.attribution.config import ExplainConfig, parse_model
from eraser_hub.attribution.costs import count_inputs
from eraser_hub.attribution.dataset import Split
from eraser_hub.attribution.method import METHODS, supports
from eraser_hub.attribution.run import explain_runs, find_run_settings, resolve_query
from eraser_hub.attribution.settings import ExplainSettings, RationaleSource
from eraser_hub.attribution.work import load_model
from eraser_hub.records.errors import DataError, UsageError, describe_bad_name, show_controls
from eraser_hub.records.files import atomic_write
from eraser_hub.records.registry import parse_call
from eraser_hub.records.tables import Cell, Table, Tables
from eraser_hub.reports.catalogue import metric
from eraser_hub.reports.explorer.overview import Compared
from eraser_hub.reports.findings import describe_findings
from eraser_hub.reports.report_page import make_report
from eraser_hub.reports.report_tables import label_with_arrow, summarise_chance
from eraser_hub.scoring.compare import BETTER, WORSE, Comparison
from eraser_hub.scoring.runs import System
from eraser_hub.scoring.score import compare_systems
from eraser_hub.scoring.scored_split import ScoredSplit
from eraser_hub.scoring.settings import ScoreSettings
from eraser_hub.systems.run_folder import lock_run_folder, train_or_resume
from eraser_hub.systems.system import SYSTEMS, read_model
from eraser_hub.systems.train_config import TrainConfig

RANDOM, PEOPLE = "random", "people"
NAMED = re.compile(r"([^=(]+)=(.+)", re.DOTALL)  # a model with its name
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
log = logging.getLogger("eraser_hub")


@dataclass(slots=True, repr=False)
class BenchTables(Tables):
    """The headline scores of each system, below the findings."""

    findings: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the findings, and the table as plain values."""
        return {"findings": self.findings, **super(BenchTables, self).as_json()}

    def written(self, format: str, width: int | None = None) -> str:
        """Return the table, in text and Markdown below the findings."""
        table = super(BenchTables, self).written(format, width)
        between = {"text": "\n", "markdown": "\n\n"}.get(format)
        if between is None or not self.findings:
            return table
        return f"{between.join(map(show_controls, self.findings))}\n\n{table}"


@dataclass(frozen=True, slots=True, repr=False)
class BenchResult:
    """Result of a bench.

    Attributes:
        out: its folder.
        findings: sentences made of the verdicts.
        tables: the findings, and the headline scores of each system.
        comparison: every pair of systems; None of a single system.
        page: the report.
        notes: what the reader has to know of the results.
    """

    out: Path
    findings: list[str]
    tables: BenchTables
    comparison: Comparison | None
    page: Path
    notes: list[str]

    def table(self, whole: bool = False) -> Tables:
        """Return the headline scores of each system."""
        return self.tables

    def as_json(self) -> dict[str, Any]:
        """Return the findings, and the table as plain values."""
        return self.tables.as_json()

    def __repr__(self) -> str:
        return "\n".join([self.tables.written("text"), *(f"note: {line}" for line in self.notes)])

    def _repr_html_(self) -> str:
        """Return findings and table, for notebooks."""
        from html import escape

        return f"<pre>{escape(self.tables.written('text'))}</pre>"


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """A model of a bench.

    Attributes:
        name: its name in the results.
        place: a folder, file or Hub id, or the name of a system to train, with its settings.
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
        runs: the settings and the file of each run.
    """

    name: str
    model: str
    method: str
    runs: list[tuple[ExplainSettings, Path]]


def plan_models(models: Sequence[str]) -> list[PlannedModel]:
    """Return the models that arguments name, ``PLACE`` or ``NAME=PLACE``; a place may have settings in brackets.

    Raises:
        UsageError: two of one name, or whose files have one name.
    """
    found = list[PlannedModel]()
    for argument in models:
        named = NAMED.fullmatch(argument)
        name, place = named.groups() if named and not os.path.exists(argument) else ("", argument)
        model, _ = parse_call(place, "model")
        trained = model in SYSTEMS and not Path(model).exists()
        found.append(PlannedModel(name or Path(model).name, place, trained))
    names = dict[str, str]()
    for one in found:
        if words := describe_bad_name(one.name):
            raise UsageError(words, argument="model")
        if (other := names.get(one.file_name)) is not None:
            message = f"expected a name of its own for each model and its files (NAME=PLACE), found {other}, {one.name}"
            raise UsageError(message, argument="model")
        names[one.file_name] = one.name
    return found


def has_rationales(split: Split) -> bool:
    """Return True if any instance of a split has a token that people marked."""
    return any(one.has_rationale for one in split.instances())


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRun:
    """A run of a bench: its data, models and methods, and the folder of its results.

    Attributes:
        dataset, split_name: place of the dataset, and name of the split.
        split: the split.
        models: the models, in order.
        methods: the methods that are asked for, each with its settings; empty: those that take few inputs; None: each
            that a model supports.
        out: the folder of all results.
        sample: the number of texts to explain; None: all.
        seeds, seed: the number of trainings and draws, and the first seed.
        paper: the preset; "" for none.
        minimum_effect, resamples: of the tests.
        workers: Ray workers of explanations; 0: none.
    """

    dataset: str
    split_name: str
    split: Split
    models: list[PlannedModel]
    methods: Mapping[str, Mapping[str, Any]] | None
    out: Path
    sample: int | None
    seeds: int
    seed: int
    paper: str
    minimum_effect: float
    resamples: int | None
    workers: int

    def run(self) -> BenchResult:
        """Train, explain, score, compare and report; what is finished is kept.

        Raises:
            DataError: wrong data or models; ``out`` holds another run.
            BusyError: another run is at work in ``out``.
        """
        settings = {
            "dataset": self.dataset,
            "config": self.split.config,
            "split": self.split_name,
            "sample": self.sample,
            "seed": self.seed,
            "paper": self.paper,
            **{f"method {name}": dict(own) for name, own in (self.methods or {}).items() if own},
        }
        with lock_run_folder(self.out, "bench", settings):
            marked = has_rationales(self.split)
            return self.conclude([system for model in self.models for system in self.explain(model, marked)])

    def choose_methods(self, model: PlannedModel, adapter: Adapter) -> list[str]:
        """Return the methods that explain a model, and chance; a warning names those that it does not support.

        Of several models, each is explained by those of the methods that it supports.

        Raises:
            DataError: a method that the only model does not support; none that one of several supports.
        """
        asked = list(METHODS) if self.methods is None else list(self.methods or DEFAULT_METHODS)
        supported = [name for name in METHODS if supports(adapter, name)]
        chosen = [name for name in asked if name in supported]
        lacking = [name for name in asked if name not in supported]
        if self.methods and lacking and (not chosen or len(self.models) == 1):
            message = f"{adapter.description} does not support {', '.join(lacking)}"
            raise DataError(f"{message}; expected some of {', '.join(supported)}", argument="method")
        if lacking:
            log.warning(f"{model.name}: not explained by {', '.join(lacking)}, which {adapter.description} lacks")
        return list(dict.fromkeys([RANDOM, *chosen]))

    def find_settings(self, config: ExplainConfig, method: str, seed: int) -> ExplainSettings:
        """Return the settings of an explanation by a method."""
        chosen = (self.methods or {}).get(method, {})
        return find_run_settings(config, self.paper, method=method, **{"seed": seed, **chosen})[0]

    def open_model(self, place: str) -> tuple[ExplainConfig, Adapter]:
        """Return model and data of an explanation, and the model."""
        name, settings = parse_model(place)
        config = ExplainConfig(
            self.dataset,
            self.split.config,
            self.split_name,
            name,
            **settings,
            sample=self.sample,
            sample_seed=self.seed,
        )
        return config, load_model(resolve_query(config, self.split), self.split.label_names)

    def describe(self) -> list[str]:
        """Return the plan in lines: what is trained, and the largest number of model inputs of each explanation.

        Methods of a system that is yet to be trained are known after its training.
        """
        split = self.split
        rows = split if self.sample is None else split.sample(self.sample, self.seed)
        lines = [f"{self.dataset}, {split.config}, {self.split_name}: {sum(1 for _ in rows.instances())} texts"]
        for model in self.models:
            if model.trained:
                lines.append(f"{model.name}: {_count(self.seeds, 'training')} of {model.place}, then explained")
                continue
            config, adapter = self.open_model(model.place)
            for method in self.choose_methods(model, adapter):
                settings = self.find_settings(config, method, self.seed)
                draws, own = self.seeds if METHODS[method].sampled else 1, settings.for_kind(split.kind)
                most = sum(count_inputs(one, own, split.kind).total() for one in rows.instances())
                lines.append(f"{model.name} {method}: {_count(draws, 'run')} of at most {most} model inputs")
        return lines

    def train(self, model: PlannedModel) -> list[str]:
        """Return the models to explain: one, or the trainings of a system by each seed."""
        if not model.trained:
            return [model.place]
        config = TrainConfig(
            **read_model(model.place), dataset=self.dataset, config=self.split.config, paper=self.paper
        )
        folders = []
        for seed in range(self.seed, self.seed + self.seeds):
            folder = self.out / "models" / f"{model.file_name}.seed-{seed}"
            folder.parent.mkdir(exist_ok=True)
            folders.append(str(train_or_resume(folder, partial(replace, config, seed=seed), log.info)))
        return folders

    def explain(self, model: PlannedModel, marked: bool) -> list[PlannedSystem]:
        """Explain a model by each method, and by what people marked if they ``marked`` any.

        Systems are named after their model too if there are several models.
        """
        systems, places = dict[str, PlannedSystem](), self.train(model)
        folder = self.out / "predictions"
        folder.mkdir(exist_ok=True)

        def add_run(settings: ExplainSettings, method: str, suffix: str) -> tuple[ExplainSettings, Path]:
            name = f"{model.name} {method}" if len(self.models) > 1 else method
            system = systems.setdefault(method, PlannedSystem(name, model.name, method, []))
            system.runs.append((settings, folder / f"{model.file_name}.{method}{suffix}.jsonl"))
            return system.runs[-1]

        methods = list[str]()
        for seed, place in enumerate(places, self.seed):  # each training is explained by its own seed
            config, adapter = self.open_model(place)
            methods = methods or self.choose_methods(model, adapter)
            suffix = f".{Path(place).suffix.lstrip('.')}" if model.trained else ""
            runs = list[tuple[ExplainSettings, Path]]()
            for method in methods:
                settings = self.find_settings(config, method, seed)
                draws = self.seeds if METHODS[method].sampled and not model.trained else 1
                for draw in range(draws):
                    more = f".draw-{draw + 1}" if draws > 1 else ""
                    runs.append(add_run(replace(settings, seed=settings.seed + draw), method, f"{suffix}{more}"))
            jobs = [(config, runs)]
            if marked:
                human = replace(config, rationales=RationaleSource.HUMAN)
                settings, _ = find_run_settings(human, self.paper, seed=seed)
                jobs.append((human, [add_run(settings, PEOPLE, suffix)]))
            for job, own in jobs:
                for report in explain_runs(job, own, model=adapter, workers=self.workers, resume=True):
                    log.info(report.lines()[0])
        return list(systems.values())

    def conclude(self, systems: Sequence[PlannedSystem]) -> BenchResult:
        """Score, compare and report the systems, and write the folder's files."""
        out, dataset, config, split = self.out, Path(self.dataset), self.split.config, self.split_name
        scored = {one.name: System(one.name, tuple(path for _, path in one.runs)) for one in systems}
        compared = [scored[one.name] for one in systems if one.method != PEOPLE]
        chance, models = [one.name for one in systems if one.method == RANDOM], {one.name: one.model for one in systems}
        level: dict[str, Any] = {"confidence_level": LEVEL, "n_resamples": self.resamples, "seed": 0}
        settings = ScoreSettings(only_predicted=True, **level)
        comparison, notes = None, list[str]()
        if len(compared) > 1:
            log.info(f"comparing {len(compared)} systems")
            source = ScoredSplit(split=split, dataset=dataset, config=config)
            inference: dict[str, Any] = {} if self.resamples is None else {"resamples": self.resamples}
            asked = replace(settings, confidence_level=None, n_resamples=None)
            comparison = compare_systems(source, compared, asked, minimum_effect=self.minimum_effect, **inference)
            notes = comparison["notes"]
            comparison.save(out / "comparison.json", force=True)
        log.info("writing the report")
        title = f"{dataset.name}, {config}, {split}"
        report = make_report(
            dataset,
            config=config,
            split=split,
            systems=list(scored.values()),
            baselines=[scored[name] for name in chance[:1]],
            out=out / "report",
            title=title,
            settings=settings,
            minimum_effect=self.minimum_effect,
            compared=Compared(comparison, chance, models),
        )
        flat = {
            name: json.loads(path.read_text("utf-8")) for name, path in zip(scored, report.score_files, strict=True)
        }
        findings = [] if comparison is None else describe_findings(comparison, chance, models)
        tables = BenchTables(config, [make_table(title, systems, flat, comparison)], findings)
        result = BenchResult(out, findings, tables, comparison, report.page, notes)
        for suffix, format_name in ((".tex", "latex"), (".csv", "csv")):
            atomic_write(out / f"table{suffix}", (tables.written(format_name) + "\n").encode())
        page = "\n\n".join([f"# {title}", tables.written("markdown"), *(f"- {note}" for note in notes)])
        atomic_write(out / "verdict.md", (page + "\n").encode())
        log.info(f"report: {report.page}")
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


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
