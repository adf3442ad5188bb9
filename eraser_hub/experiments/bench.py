"""The public function `bench`: models to a verdict. It trains what has to be trained, explains, scores and compares.

    OUT/bench.json                what decides the results; a run with other settings does not go on here
    OUT/models/NAME/seed-1/       a trained system
    OUT/predictions/              a file for each model, method and seed, and those of people's rationales
    OUT/comparison.json           every pair of systems, as `compare --format json`
    OUT/table.tex, table.csv      the headline scores; bold is better than every other system
    OUT/report/index.html         the report, and a score file for each system
    OUT/verdict.md                the findings and the table

Finished files are reused; stopped trainings and explanations go on.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from eraser_hub.attribution.explain import explain
from eraser_hub.metrics.errors import check_number
from eraser_hub.records.arguments import PYTHON, Place
from eraser_hub.records.errors import DataError, UsageError, describe_bad_name, show, show_controls
from eraser_hub.records.registry import parse_call
from eraser_hub.records.tables import Cell, Table, Tables
from eraser_hub.reports.report import report

if TYPE_CHECKING:
    from eraser_hub.attribution.dataset import Split
    from eraser_hub.scoring.compare import Comparison

log = logging.getLogger("eraser_hub")
QUICK = 50  # texts of `quick`
ALL, RANDOM, PEOPLE = "all", "random", "people"
# of a model that supports them; the others take many inputs
DEFAULT_METHODS = ("occlusion", "lime", "coefficients", "input-x-gradient", "integrated-gradients", "attention")
FURTHER = ("comprehensiveness", "sufficiency")  # people's rationales rank nothing, and have no AOPC
NAMED = re.compile(r"([^=(]+)=(.+)", re.DOTALL)  # a model with its name


@dataclass(slots=True, repr=False)
class BenchResult(Tables):
    """Result of a bench, printed as the findings above the table of headline scores.

    Attributes:
        findings: sentences made of the verdicts.
        comparison: every pair of systems; None of a single system.
        page: the report.
        notes: what the reader has to know of the results.
    """

    findings: list[str] = field(default_factory=list)
    comparison: Comparison | None = None
    page: Path = Path()
    notes: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the findings, and the table as plain values."""
        return {"findings": self.findings, **super(BenchResult, self).as_json()}

    def written(self, format: str, width: int | None = None) -> str:
        """Return the table, in text and Markdown below the findings."""
        table = super(BenchResult, self).written(format, width)
        between = {"text": "\n", "markdown": "\n\n"}.get(format)
        if between is None or not self.findings:
            return table
        return f"{between.join(map(show_controls, self.findings))}\n\n{table}"

    def __repr__(self) -> str:
        return "\n".join([self.written("text"), *(f"note: {line}" for line in self.notes)])


class PlannedModel(NamedTuple):
    """A model of a bench.

    Attributes:
        name, file_name: its name in the results, and that of its files.
        place: a folder, file or Hub id, or the name of a system to train, with its settings.
        is_trained: whether it is trained here.
    """

    name: str
    file_name: str
    place: str
    is_trained: bool


class ExplainedSystem(NamedTuple):
    """A method of a model: a system of the results.

    Attributes:
        model: the model's name.
        method: the method; ``people`` for their rationales.
        paths: the predictions of each run.
    """

    model: str
    method: str
    paths: list[Path]


def bench(
    dataset: Place,
    model: str | Sequence[str],
    *,
    config: str | None = None,
    split: str = "test",
    method: str | Sequence[str] = (),
    out: Place = "bench",
    quick: bool = False,
    dry_run: bool = False,
    seeds: int = 1,
    seed: int = 1,
    sample: Annotated[int | None, PYTHON] = None,
    paper: Annotated[str, PYTHON] = "",
    minimum_effect: Annotated[float, PYTHON] = 0.0,
    resamples: Annotated[int | None, PYTHON] = None,
    workers: Annotated[int, PYTHON] = 0,
) -> BenchResult | list[str]:
    """Train, explain, score, compare and report in one call.

    Models are explained by several methods, beside tokens drawn by chance and what people marked. OUT has
    predictions, comparison.json, report/index.html, table.tex, table.csv and verdict.md. A second run does only what
    is missing.

    Args:
        dataset: Built dataset or Hub id.
        model: PLACE or NAME=PLACE: a model as in `explain`, or a system of `train`, which is trained first:
            lstm(epochs=3). Repeat it for several.
        config: Config; by default the only or the default one.
        split: Split, as the Hub or the release calls it.
        method: Attribution method: lime(samples=1000); all: each that the model supports. Repeat it for several; by
            default those that take few inputs.
        out: Folder of all results.
        quick: Explain 50 texts, each label by its share.
        dry_run: Print the plan, and stop.
        seeds: Trainings of a system, and random draws for a model that is trained already.
        seed: The first seed.
        sample: number of texts to explain, each label by its share.
        paper: make all choices of this paper's code: eraser, wang2022, carton2020.
        minimum_effect: smallest difference that matters, in the scores' units.
        resamples: of intervals and tests; by default as many as `score` and `compare` take.
        workers: Ray workers of explanations, each with a model; 0: none.

    Returns:
        The findings in words, the table, the comparison and the report's page; with ``dry_run`` the lines of the plan.

    Raises:
        DataError: wrong data, models or settings; ``out`` holds a run with other settings.
        BusyError: another run is at work in ``out``.

    Examples:
        >>> from eraser_hub import bench
        >>> result = bench("hub/eraser", "logistic-regression", config="movies", out="bench")  # doctest: +SKIP
        >>> result.findings  # doctest: +SKIP

        $ eraser-hub bench --dataset hub/eraser --config movies --model logistic-regression --quick
        $ eraser-hub bench --dataset hub/eraser --config movies --model LR=model --model "lstm(epochs=3)" \\
          --method occlusion --method "lime(samples=1000)" --seeds 3 --out bench
    """
    from eraser_hub.attribution.dataset import open_split
    from eraser_hub.attribution.method import METHODS
    from eraser_hub.systems.folder import lock_run_folder
    from eraser_hub.systems.training import TrainSettings, train_seeds

    sample = QUICK if quick else sample
    check_number(seeds, "seeds", 1)  # these before hours of work
    check_number(1 if sample is None else sample, "sample", 1)
    asked = [method] if isinstance(method, str) else list(method)
    names = [parse_call(call, "method")[0] for call in asked]
    if len(set(names)) < len(names):
        raise UsageError(f"expected each method once, found {', '.join(asked)}", argument="method")
    for name in names:
        if name != ALL:
            METHODS.find(name, argument="method")
    models, folder = plan_models([model] if isinstance(model, str) else model), Path(out)
    opened = open_split(os.fspath(dataset), config, split)
    training: dict[str, Any] = {"dataset": os.fspath(dataset), "config": opened.config, "paper": paper}
    settings = {**training, "split": split, "sample": sample, "seed": seed}
    if dry_run:
        texts = sum(1 for _ in opened.instances())
        lines = [f"{dataset}, {opened.config}, {split}: {texts if sample is None else min(texts, sample)} texts"]
        for one in models:
            if one.is_trained:  # its methods are known after its training
                numbers = f"seed {seed}" if seeds == 1 else f"seeds {seed} to {seed + seeds - 1}"
                lines.append(f"{one.name}: {one.place} trained by {numbers}, then explained")
            else:
                calls = choose_methods(one.name, one.place, opened, asked, seeds)
                lines += [f"{one.name} {name}: {call}" for name, call in calls.items()]
        return lines
    systems = dict[str, ExplainedSystem]()
    with lock_run_folder(folder, "bench", settings):
        is_marked = any(one.has_rationale for one in opened.instances())
        for one in models:
            place, stem = one.place, folder / "predictions" / one.file_name
            if one.is_trained:
                place = os.fspath(folder / "models" / one.file_name)
                for line in train_seeds(TrainSettings(model=one.place, seed=seed, **training), Path(place), seeds):
                    log.info(line)
            calls = choose_methods(one.name, place, opened, asked, 1 if one.is_trained else seeds)
            explained = explain_model(place, calls, is_marked, stem, {**settings, "workers": workers})
            for name, paths in explained.items():
                systems[f"{one.name} {name}" if len(models) > 1 else name] = ExplainedSystem(one.name, name, paths)
        return conclude(folder, settings, systems, minimum_effect, resamples)


def plan_models(models: Sequence[str]) -> list[PlannedModel]:
    """Return the models that arguments name, ``PLACE`` or ``NAME=PLACE``; a place may have settings in brackets.

    Raises:
        UsageError: a name that results cannot have; two of one name, or whose files have one name.
    """
    from eraser_hub.systems.system import SYSTEMS

    planned = dict[str, PlannedModel]()
    for argument in models:
        named = NAMED.fullmatch(argument)
        name, place = named.groups() if named and not os.path.exists(argument) else ("", argument)
        system, _ = parse_call(place, "model")
        name = name or Path(system).name
        if "=" in name or describe_bad_name(name):
            message = describe_bad_name(name) or f"expected NAME=PLACE for a path with =, found {show(name)}"
            raise UsageError(message, argument="model")
        file_name = re.sub(r"[^\w.+-]", "_", name).lstrip(".") or "model"
        if file_name in planned:
            message = f"expected a name of its own for each model and its files (NAME=PLACE), found {name} again"
            raise UsageError(message, argument="model")
        is_trained = system in SYSTEMS and not Path(system).exists()
        planned[file_name] = PlannedModel(name, file_name, place, is_trained)
    return list(planned.values())


def choose_methods(name: str, place: str, split: Split, asked: Sequence[str], draws: int) -> dict[str, str]:
    """Return the methods that explain a model, chance first: name -> call; a warning names those that it lacks.

    Args:
        name: the model's name.
        place: where it is, trained.
        split: the split that is explained.
        asked: the methods that are asked for; none: those that take few inputs.
        draws: the number of random rankings.

    Raises:
        DataError: the model supports none of the methods that are asked for.
    """
    from eraser_hub.attribution.method import METHODS

    drawn = f"{RANDOM}(draws={draws})" if draws > 1 else RANDOM
    known = METHODS if ALL in asked else () if asked else DEFAULT_METHODS
    every = [call for call in (RANDOM, *known, *asked) if call != ALL]
    calls = {parse_call(call)[0]: drawn if call == RANDOM else call for call in every}
    supported = list_supported(place, split)
    lacking = ", ".join(method for method in calls if method not in supported)
    chosen = {method: call for method, call in calls.items() if method in supported}
    if lacking and len(chosen) < 2:
        message = f"{name} does not support {lacking}; expected some of {', '.join(supported)}"
        raise DataError(message, argument="method")
    if lacking:
        log.warning(f"{name}: not explained by {lacking}, which it does not support")
    return chosen


def list_supported(place: str, split: Split) -> list[str]:
    """Return the names of the methods that a model supports; of several trainings the first is asked."""
    from eraser_hub.attribution.method import METHODS
    from eraser_hub.attribution.models.opening import find_trainings, open_model

    first = next((folder for _, folder in find_trainings(place)), place)
    model = open_model(first, label_names=split.label_names, config=split.config)
    return [method for method in METHODS if model.supports(METHODS[method])]


def explain_model(
    place: str, calls: Mapping[str, str], is_marked: bool, stem: Path, how: Mapping[str, Any]
) -> dict[str, list[Path]]:
    """Explain a model by each method, and by what people marked; return the files of predictions by method.

    Args:
        place: the model.
        calls: the methods: name -> call.
        is_marked: whether people marked any token.
        stem: of the files: STEM.METHOD.jsonl.
        how: further arguments of `explain`.
    """
    # of several methods `explain` itself writes OUT.METHOD.jsonl each
    out = stem.with_name(f"{stem.name}.jsonl" if len(calls) > 1 else f"{stem.name}.{RANDOM}.jsonl")
    stem.parent.mkdir(exist_ok=True)
    reports = explain(place, **how, method=list(calls.values()), out=out, resume=True)
    if is_marked:
        out = stem.with_name(f"{stem.name}.{PEOPLE}.jsonl")
        reports += explain(place, **how, rationales="human", out=out, resume=True)
    paths: dict[str, list[Path]] = {}
    for made in reports:
        log.info(f"{made.out}: {made.instances} instances")
        method = made.out.name.removeprefix(f"{stem.name}.").partition(".")[0]
        paths.setdefault(method, []).append(made.out)
    return paths


def conclude(
    out: Path,
    settings: Mapping[str, Any],
    systems: Mapping[str, ExplainedSystem],
    minimum_effect: float,
    resamples: int | None,
) -> BenchResult:
    """Score, compare and report the systems, and write the folder's files."""
    from eraser_hub.records.files import atomic_write
    from eraser_hub.reports.findings import describe_findings

    source = {name: settings[name] for name in ("dataset", "config", "split")}
    how: dict[str, Any] = {"minimum_effect": minimum_effect, "resamples": resamples, "only_predicted": True}
    chance = {name: one.paths for name, one in systems.items() if one.method == RANDOM}
    title = f"{Path(settings['dataset']).name}, {settings['config']}, {settings['split']}"
    log.info(f"comparing {len(systems)} systems, and writing the report")
    shown = {name: one.paths for name, one in systems.items()}
    baseline = dict([*chance.items()][:1])
    made = report(predictions=shown, baseline=baseline, **source, **how, out=out / "report", title=title, force=True)
    result = BenchResult(settings["config"], comparison=made.comparison, page=made.page)
    if made.comparison is not None:
        made.comparison.save(out / "comparison.json", force=True)
        models = {name: one.model for name, one in systems.items()}
        result.findings += describe_findings(made.comparison, list(chance), models)
        result.notes = made.comparison["notes"]
    scores = {name: json.loads(path.read_bytes()) for name, path in zip(systems, made.score_files, strict=True)}
    result.tables = [make_table(title, systems, scores, result.comparison, settings["paper"])]
    for suffix, format_name in ((".tex", "latex"), (".csv", "csv")):
        atomic_write(out / f"table{suffix}", (result.written(format_name) + "\n").encode())
    page = "\n\n".join([f"# {title}", result.written("markdown"), *(f"- {note}" for note in result.notes)])
    atomic_write(out / "verdict.md", (page + "\n").encode())
    log.info(f"report: {result.page}")
    return result


def make_table(
    title: str,
    systems: Mapping[str, ExplainedSystem],
    scores: Mapping[str, Mapping[str, Any]],
    comparison: Mapping[str, Any] | None,
    paper: str = "",
) -> Table:
    """Return the headline scores of each system and of chance; bold is better than every other system by verdict.

    Args:
        title: the table's title.
        systems: the systems by name.
        scores: name -> the content of the score file.
        comparison: their comparison; None of a single one.
        paper: the preset, which chooses among headline scores.
    """
    from eraser_hub.reports.catalogue import AGREEMENT, metric
    from eraser_hub.scoring.result import choose_headline

    known = {key for own in scores.values() for key in own}
    columns = list(dict.fromkeys([*choose_headline(known, paper), *(key for key in FURTHER if key in known)]))
    arrows = {"higher": "\u00a0↑", "lower": "\u00a0↓"}
    labels = {key: metric(key).label + arrows.get(metric(key).better, "") for key in columns}
    table = Table("bench", title, ("system",), tuple(columns), labels=labels)
    wins = Counter[tuple[str, str]]()
    for pair in comparison["comparisons"] if comparison is not None else ():
        for key, test in pair["keys"].items():
            winner = {"better": pair["first"], "worse": pair["second"]}.get(test["verdict"], "")
            wins[winner, key] += 1
    others = sum(one.method != PEOPLE for one in systems.values()) - 1
    for name, one in systems.items():
        cells, own = dict[str, Cell](), scores[name]
        for key in columns:
            if one.method != PEOPLE or metric(key).family != AGREEMENT:  # theirs would be with themselves
                low, high = own.get(f"{key}_ci") or (None, None)
                cells[key] = Cell(own.get(key), digits=3, low=low, high=high, better=0 < others == wins[name, key])
        table.add(name, **cells)
    drawn = [scores[name].get("chance", {}) for name, one in systems.items() if one.method != PEOPLE]
    chance = {key: [own[key] for own in drawn if own.get(key) is not None] for key in columns}
    if any(chance.values()):
        table.add("chance", **{key: Cell(fmean(values), digits=3) for key, values in chance.items() if values})
        table.notes.append("chance: random rationales of the same size, the mean over systems.")
    if any(one.method == PEOPLE for one in systems.values()):
        table.notes.append(f"{PEOPLE}: the texts are erased by what people marked, so it has no agreement with them.")
    table.notes.append(f"{RANDOM}: tokens ranked by chance. Bold and star: better than every other system by verdict.")
    return table
