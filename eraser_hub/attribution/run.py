"""A whole run: open, explain chunk by chunk, write results as they come, resume after a stop."""

from __future__ import annotations

import functools
import hashlib
import itertools
import logging
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from eraser_hub.papers import AOPC_THRESHOLDS
from eraser_hub.papers.presets import load_preset
from eraser_hub.records.errors import DataError
from eraser_hub.records.files import OutputWriter, compute_file_digest
from eraser_hub.records.predictions import find_inputs, make_seed_path, read_run, write_run
from eraser_hub.records.readers import read_json_object

from .adapter import Adapter, Notes
from .config import ExplainConfig, Prompting
from .costs import PROBE_TEXTS, count_inputs, describe_cost, measure_seconds
from .dataset import KD_SOURCES, Split, find_kd, has_different_queries, open_split
from .engine import ALL_ZERO
from .external_rationales import (
    ExternalRationales,
    ExternalScores,
    GoldRationales,
    read_external_rationales,
)
from .instances import Instance, split_into_chunks
from .measures.aopc_bounds import NO_SPAN
from .measures.tokens_to_flip import NEVER_FLIPPED
from .method import check_support
from .open import find_opener, find_trainings, make_opening
from .outputs import (
    FORMATS,
    PartialResult,
    check_format,
    get_partial_path,
    open_partial_result,
    refuse_other,
    refuse_stopped,
    write_predictions,
)
from .prompts import open_prompt
from .runner import Runner
from .settings import ExplainSettings, RationaleSource, build_settings, check_used, parse_measures, parse_method
from .transformers.pieces import HEADS_CUT, UNKNOWN
from .transformers.words import GENERATOR_ENDINGS
from .work import Worker, explain_on_ray, load_model

OnProgress = Callable[[int, int], None]
log = logging.getLogger("eraser_hub")
# what a report tells of the counts, in its order
REPORTED_COUNTS = (
    *(UNKNOWN, HEADS_CUT, "questions cut at their end"),
    *(NEVER_FLIPPED, ALL_ZERO, NO_SPAN),
)


@dataclass(frozen=True, slots=True)
class ResolvedRun:
    """A run whose settings the data have completed.

    Attributes:
        config: with its query decided.
        settings: without what the dataset's results have no place for.
        split: the split, opened.
        out: the result.
        inputs: the records of data and model as the run begins.
        external: external scores or rationales; None for a method's.
        words: messages on the data for the reader of the results.
    """

    config: ExplainConfig
    settings: ExplainSettings
    split: Split
    out: Path
    inputs: Mapping[str, Any]
    external: ExternalRationales | None = None
    words: tuple[str, ...] = ()

    def chunks(self, done: Container[int]) -> Iterator[tuple[int, list[Instance]]]:
        """Yield the open chunks with their external rationales or scores."""
        instances: Iterator[Instance] = islice(self.split.instances(), self.config.limit)
        if self.external is not None:
            instances = self.external.attach_all(instances)
        return (chunk for chunk in split_into_chunks(instances, self.settings.chunk) if chunk[0] not in done)

    def header(self) -> dict[str, Any]:
        """Return the record of all that decides the results; a stopped run with another header does not resume."""
        values = {one.name: getattr(self.settings, one.name) for one in fields(self.settings)}
        return {"settings": {name: value for name, value in values.items() if name != "more" or value}, **self.inputs}


@dataclass(frozen=True, slots=True)
class RunReport:
    """Report of a run.

    Attributes:
        out: the result.
        instances, resumed: how many instances it holds, and how many of them a stopped run had done.
        inputs, passes: of this run: inputs asked for, forward passes made.
        seconds: of this run, the opening of the model not counted.
        notes: messages and counts for the reader of the results.
        signature: the settings in one line.
    """

    out: Path
    instances: int
    resumed: int
    inputs: int
    passes: int
    seconds: float
    notes: Notes
    signature: str

    def lines(self) -> list[str]:
        """Return the report as lines of text."""
        fresh = self.instances - self.resumed
        words = [
            f"{self.out}: {self.instances} instances"
            + (f", {self.resumed} of them from the stopped run" if self.resumed else "")
        ]
        if fresh and self.seconds > 0:
            words.append(
                f"{fresh / self.seconds:.1f} instances/s, {self.passes / self.seconds:.0f} forward passes/s "
                f"({self.passes} passes for {self.inputs} inputs, {self.seconds:.1f} s)"
            )
        counts = self.notes.counts
        if "texts longer than the window" in counts:
            words.append(
                f"{counts['texts longer than the window']} texts longer than the model's window went in as "
                f"{counts['windows of those texts']} overlapping windows, probabilities averaged"
            )
        words += [f"{counts[name]} {name}" for name in REPORTED_COUNTS if name in counts]
        words += [f"{name}: {value:.2g}" for name, value in self.notes.maxima.items()]
        return [*words, *self.notes.messages, self.signature]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def explain(
    config: ExplainConfig,
    settings: ExplainSettings,
    out: Path,
    *,
    resume: bool = False,
    force: bool = False,
    workers: int = 0,
    model: Adapter | None = None,
    max_inputs: int | None = None,
    on_progress: OnProgress = lambda instances, passes: None,
) -> RunReport:
    """Explain a split and write predictions.

    Args:
        config: the model and the data.
        settings: settings of the run.
        out: result, ``.jsonl`` or ``.parquet``, beside it ``OUT.run.json``.
        resume: go on with a stopped run of the same settings, model and data.
        force: replace a result that was made by other settings, another model or other data.
        workers: number of Ray workers, each with a model; 0: the work is done in this process.
        model: an opened model in place of ``config.model`` (without workers).
        max_inputs: largest number of inputs of the run.
        on_progress: called with (instances, forward passes) as they are done.

    Raises:
        DataError: wrong data, model or settings; a stopped run or a result that was made otherwise; too many inputs.
    """
    writer = check_result_path(config, out, force)
    split = open_split(config.dataset, config.config, config.split)
    if config.sample is not None:
        split = split.sample(config.sample, settings.seed if config.sample_seed is None else config.sample_seed)
    config, settings = resolve_query(config, split), settings.for_kind(split.kind)
    if not workers:  # before the data are read through, so that a wrong model fails at once
        model = load_model(config, split.label_names, model)
    plan = resolve_run(config, settings, split, out, model)
    if not force:
        refuse_other(out, plan.header(), get_partial_path(out))
    if resume and (report := _find_complete_report(plan)) is not None:
        return report
    with open_partial_result(out, plan.header(), resume) as partial:
        resumed = sum(record["instances"] for record in partial.records())
        if max_inputs is not None or plan.settings.is_costly:
            log.info(_describe_run_cost(plan, partial, model, max_inputs))
        todo, on_passes = plan.chunks(partial.places), functools.partial(on_progress, 0)
        start, done = time.perf_counter(), dict[str, Any](inputs=0, passes=0)
        if model is None:
            chunks = explain_on_ray(config, plan.settings, split, todo, workers, on_passes)
        else:
            worker = Worker(model, plan.settings, split.kind, on_passes)
            chunks = itertools.starmap(worker.explain, todo)
        for result in chunks:
            partial.append(result.number, result.lines, result.facts)
            done = {name: number + result.facts[name] for name, number in done.items()}
            on_progress(result.facts["instances"], 0)
        written = _write_results(plan, partial, writer)
        return replace(written, resumed=resumed, **done, seconds=time.perf_counter() - start)


def check_result_path(config: ExplainConfig, out: Path, force: bool) -> OutputWriter:
    """Return the writer of a run's result.

    Raises:
        DataError: a place that no result may take.
    """
    writer = OutputWriter(find_inputs(config.dataset, config.scores, config.rationales, config.model), force)
    check_format(out, get_partial_path(out), writer)
    return writer


def find_run_settings(
    config: ExplainConfig, paper: str, *, model: Adapter | None = None, **options: Any
) -> tuple[ExplainSettings, int | None]:
    """Find the settings by paper, data and options, and the number of rows of the split.

    Args:
        config: the model and the data.
        paper: as of :func:`build_settings`.
        model: the model, where it is open already.
        **options: as of :func:`build_settings`.
    """
    rows = open_split(config.dataset, config.config, config.split)
    if config.rationales or config.scores is not None:
        options["method"] = RationaleSource.SPANS if config.rationales else RationaleSource.SCORES
    if model is not None:
        of_model = model.has_embeddings, model.selects
    else:
        opening = make_opening(config.model)
        opener = find_opener(opening)
        of_model = opener.embeds(opening), opener.selects(opening)
    settings = build_settings(paper, rows.config, *of_model, **options)
    by_paper = rows.config in load_preset(paper).kd
    if options.get("kd") is None and settings.method != RationaleSource.SPANS and not by_paper:
        length = find_kd(rows)
        settings = replace(settings, kd=length.kd, kd_source=length.source)
    return settings, rows.size


def _describe_run_cost(plan: ResolvedRun, partial: PartialResult, model: Adapter | None, max_inputs: int | None) -> str:
    """Describe the cost of the open chunks of a run, with its time if the model is in this process.

    Raises:
        DataError: more than ``max_inputs`` inputs.
    """
    settings, kind = plan.settings, plan.split.kind
    counts, first = Counter[str](), list[Instance]()
    for _, chunk in plan.chunks(partial.places):
        for one in chunk:
            counts.update(count_inputs(one, settings, kind))
        first = first or list(chunk[:PROBE_TEXTS])
    describe_cost(counts, None, max_inputs)  # too many are refused before the model is asked
    seconds = None
    if model is not None and first and not model.gives_answers:
        seconds = measure_seconds(counts, Runner(model, settings.erase, settings.batch_size), first)
    return describe_cost(counts, seconds, None)


def resolve_run(
    config: ExplainConfig,
    settings: ExplainSettings,
    split: Split,
    out: Path,
    model: Adapter | None = None,
) -> ResolvedRun:
    """Decide what the split decides.

    Raises:
        DataError: settings that its results have no place for; a method that the model does not allow; an instance
            without scores where they come from elsewhere.
    """
    words = list[str]()
    external: ExternalRationales | None = None
    if config.rationales == RationaleSource.MODEL or (
        settings.scores == RationaleSource.MODEL and not config.rationales and config.scores is None
    ):
        settings = replace(settings, method=RationaleSource.SPANS, scores=RationaleSource.MODEL)
    elif config.rationales or settings.method == RationaleSource.SPANS:
        external = read_external_rationales(config.rationales or RationaleSource.HUMAN, split.kind)
        settings = replace(settings, method=RationaleSource.SPANS, scores=external.digest)
    elif config.scores is not None:
        external = ExternalScores(config.scores)
        settings = replace(settings, method=RationaleSource.SCORES, scores=external.digest)
    if external is not None:
        partly = config.limit is not None or split.places is not None
        words.append(external.check(islice(split.instances(), config.limit), partly))
    if settings.paper and make_opening(config.model).facts.get("paper") != settings.paper:
        words.append(f"the model was not trained with `paper` {settings.paper}: taken as it is")
    if settings.kd_source and settings.method != RationaleSource.SPANS:
        words.append(f"kd {settings.kd:g}: {KD_SOURCES[settings.kd_source]}")
    if settings.bins not in ((), AOPC_THRESHOLDS):
        words.append("to score these bins, set aopc_thresholds to " + " ".join(f"{rate:g}" for rate in settings.bins))
    settings = settings.for_kind(split.kind)
    check_support(model, settings.method_class, settings.method)
    human = isinstance(external, GoldRationales)
    inputs: dict[str, Any] = {
        "data": split.header(config.limit, labels=settings.target == "gold", rationales=human),
        "model": {
            "model": Path(config.model).name,
            "digest": compute_model_digest(config.model),
            **{name: getattr(config, name) for name in ("task", "query", "window", "labels", "precision")},
            **({"prompt": describe_prompting(config.prompting)} if is_prompted(config) else {}),
        },
    }
    return ResolvedRun(config, settings, split, out, inputs, external, tuple(filter(None, words)))


def resolve_query(config: ExplainConfig, split: Split) -> ExplainConfig:
    """Return the run with its config's name and its query, which a transformers model sees if queries differ."""
    config = replace(config, config=split.config)
    path = Path(config.model)
    knows = (path / "model.json").is_file() or path.is_file()
    if config.query is None and not knows:
        return replace(config, query=has_different_queries(split))
    return config


def is_prompted(config: ExplainConfig) -> bool:
    """Return True if the model is a language model that is prompted, by its files; a Hub id's are not read for that."""
    path = Path(config.model) / "config.json"
    if config.task == "generation" or config.prompting.options:
        return True
    if config.task != "auto" or not path.is_file():
        return False
    architectures = read_json_object(path).get("architectures")
    first = architectures[0] if isinstance(architectures, list) and architectures else ""
    return isinstance(first, str) and first.endswith(GENERATOR_ENDINGS)


def describe_prompting(prompting: Prompting) -> str:
    """Return the prompt, and how labels are scored, as a signature holds them."""
    prompt = open_prompt(prompting.config, prompting.prompt)
    words = [f"label-words:{','.join(prompting.label_words)}"] if prompting.label_words else []
    more = [f"shots:{prompting.shots}"] if prompting.shots else []
    more += [f"dtype:{prompting.dtype}"] if prompting.dtype != "float32" else []
    name = Path(prompt.name).name if prompting.prompt is not None else prompt.name
    return "|".join([f"prompt:{name}-{prompt.digest}", *words, f"label-score:{prompting.label_score}", *more])


def compute_model_digest(model: str) -> str:
    """Digest a local model's files (sizes and, up to 1 GB, contents); a Hub id stands for itself.

    Of a single file also the ``model.json`` beside it, which says how the file is to be used.
    """
    path = Path(model)
    if not path.exists():
        return model
    digest = hashlib.blake2b(digest_size=12)
    among = [path, path.with_name("model.json")] if path.is_file() else sorted(path.rglob("*"))
    for file in (file for file in among if file.is_file()):
        digest.update(f"{file.name}\x1f{file.stat().st_size}\x1e".encode())
        if file.stat().st_size <= 1 << 30:
            compute_file_digest(file, digest)
    return digest.hexdigest()


def _write_results(plan: ResolvedRun, partial: PartialResult, writer: OutputWriter) -> RunReport:
    """Gather the chunks' predictions into the result, with its record; gives the report, without its costs."""
    notes, count = Notes(messages=list(plan.words)), 0
    labels: Sequence[str] = ()
    for record in partial.records():
        notes.add(Notes(record["counts"], record["maxima"], record["words"]))
        labels = record["labels"]
        count += record["instances"]
    if not count:
        raise DataError(f"split {plan.config.split}: no instances to explain", file=plan.config.dataset)
    lines = (line for record in partial.records() for line in record["predictions"])
    write_predictions(plan.out, lines, labels, plan.split.kind, writer)
    report = _make_report(plan, count, notes)
    facts = {"counts": notes.counts, "maxima": notes.maxima, "notes": notes.messages}
    write_run(plan.out, {"signature": report.signature, **plan.header(), "instances": count, **facts})
    return report


def _make_report(plan: ResolvedRun, count: int, notes: Notes) -> RunReport:
    """Return the report of a result for which this run did nothing."""
    model = Path(plan.config.model).name
    if is_prompted(plan.config):
        model += f"|{describe_prompting(plan.config.prompting)}"
    return RunReport(plan.out, count, count, 0, 0, 0.0, notes, plan.settings.signature(model))


def _find_complete_report(plan: ResolvedRun) -> RunReport | None:
    """Return the report of a result that is complete and was made like this; None for any other."""
    try:
        record = read_run(plan.out) if plan.out.is_file() else {}
    except DataError:
        return None
    if any(record.get(key) != value for key, value in msgspec.json.decode(msgspec.json.encode(plan.header())).items()):
        return None
    return _make_report(plan, record["instances"], Notes(record["counts"], record["maxima"], record["notes"]))


def make_draw_path(out: Path, draw: int) -> Path:
    """Return the file of one of several random draws: ``predictions.draw-01.jsonl``."""
    return out.with_name(f"{out.stem}.draw-{draw:02d}{out.suffix}")


@dataclass(frozen=True, slots=True)
class ConfiguredRuns:
    """Runs that can begin.

    Attributes:
        config: of all of them.
        runs: the settings and the file of each.
        total: how many instances they explain together; None if unknown.
    """

    config: ExplainConfig
    runs: list[tuple[ExplainSettings, Path]]
    total: int | None = None


def plan_trainings(
    config: ExplainConfig,
    out: Path,
    methods: Sequence[str] = (),
    measures: Sequence[str] = (),
    model: Adapter | None = None,
    **options: Any,
) -> list[ConfiguredRuns]:
    """Build the runs of a model by several methods, or of each training that ``train --seeds`` made.

    The trainings explain the same texts, each by a seed of its own, into a file each: ``OUT.seed-1.jsonl``.

    Args:
        config: the model and the data.
        out: the result; of several methods OUT.METHOD.jsonl each, of several draws OUT.draw-01.jsonl.
        methods: the methods, with their settings: ``lime(samples=1000)``; () for the paper's or the default one.
        measures: the measures, with their settings.
        model: the model, where it is open already.
        **options: ``paper``, and as of :func:`build_settings`.

    Raises:
        DataError: arguments that exclude each other; unknown data or model, settings out of range.
    """
    sources = {"method": methods, "scores": config.scores, "rationales": config.rationales}
    together = [name for name, value in sources.items() if value]
    if len(together) > 1:
        message = f"expected {' or '.join(f'`{name}`' for name in together)}, found both"
        raise DataError(message, argument=together[1])
    if out.suffix not in FORMATS:
        raise DataError(f"expected a file ending in {' or '.join(FORMATS)}, found {out.name}", argument="out")
    named = [parse_method(text) for text in methods]
    if len({name for name, _ in named}) < len(named):
        raise DataError(f"expected each method once, found {', '.join(methods)}", argument="method")
    options |= parse_measures(measures)
    trainings = find_trainings(config.model)
    config = replace(config, model=trainings[0][1]) if trainings else config
    paper, runs, size = options.pop("paper", ""), [], None
    for method, own in named or [("", {})]:
        draws = own.pop("draws", 1) if method == "random" else 1
        settings, size = find_run_settings(config, paper, model=model, method=method or None, **{**options, **own})
        path = out.with_name(f"{out.stem}.{method}{out.suffix}") if len(named) > 1 else out
        paths = [make_draw_path(path, draw) for draw in range(1, draws + 1)] if draws > 1 else [path]
        runs += seed_runs(settings, paths)
    check_used(options, [settings for settings, _ in runs])
    total = min((number for number in (size, config.limit, config.sample) if number is not None), default=None)
    total = None if total is None else total * len(runs)
    if not trainings:
        return [ConfiguredRuns(config, runs, total)]
    plans = []
    for number, (seed, place) in enumerate(trainings):
        seeded = [(replace(one, seed=one.seed + number), make_seed_path(path, seed)) for one, path in runs]
        plans.append(ConfiguredRuns(replace(config, model=place, sample_seed=runs[0][0].seed), seeded, total))
    return plans


def seed_runs(settings: ExplainSettings, outs: Sequence[Path]) -> list[tuple[ExplainSettings, Path]]:
    """Return a run for each file, the seed one higher each time."""
    return [(replace(settings, seed=settings.seed + draw), out) for draw, out in enumerate(outs)]


def explain_trainings(
    plans: Sequence[ConfiguredRuns],
    *,
    resume: bool = False,
    force: bool = False,
    workers: int = 0,
    model: Adapter | None = None,
    **how: Any,
) -> list[RunReport]:
    """Explain by several settings, into a file each, after a look at the places of all results.

    A model is opened once for all of its runs.

    Args:
        plans: the runs of each model.
        resume: as of :func:`explain`.
        force: as of :func:`explain`.
        workers: as of :func:`explain`.
        model: the model, where it is open already; workers open their own.
        **how: as of :func:`explain`.

    Raises:
        DataError: as :func:`explain` does; a stopped run of any of the files exists.
    """
    for plan in plans:
        for _, out in plan.runs:
            check_result_path(plan.config, out, force)
            if not resume:
                refuse_stopped(out)
    reports = []
    for plan in plans:
        config, runs, opened = plan.config, plan.runs, None if workers else model
        if opened is None and not workers and len(runs) > 1:
            split = open_split(config.dataset, config.config, config.split)
            config = resolve_query(config, split)
            opened = load_model(config, split.label_names)
        for settings, _ in runs:
            check_support(opened, settings.method_class, settings.method)
        config = replace(config, sample_seed=runs[0][0].seed if config.sample_seed is None else config.sample_seed)
        for settings, out in runs:
            reports.append(
                explain(config, settings, out, resume=resume, force=force, workers=workers, model=opened, **how)
            )
    return reports


def explain_runs(config: ExplainConfig, runs: Sequence[tuple[ExplainSettings, Path]], **how: Any) -> list[RunReport]:
    """Explain by several settings of one model, into a file each; arguments as of :func:`explain_trainings`."""
    return explain_trainings([ConfiguredRuns(config, list(runs))], **how)
