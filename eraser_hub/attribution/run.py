"""A whole run: open, explain chunk by chunk, write as results come, go on after a stop."""

from __future__ import annotations

import functools
import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import orjson

from eraser_hub.metrics.fields import AOPC_THRESHOLDS
from eraser_hub.papers.presets import preset
from eraser_hub.records.digests import file_digest
from eraser_hub.records.errors import DataError
from eraser_hub.records.operators import operator_path
from eraser_hub.records.run_record import read_run, write_run

from .adapter import Adapter, Notes, align_labels
from .attribution import ALL_ZERO
from .costs import PROBED, cost_in_words, inputs_of, seconds_of
from .dataset import Split, kd_of, open_split, queries_differ
from .given import Given, GivenScores, GoldRationales, KnownBounds, given_rationales
from .instances import Instance, chunks_of
from .job import Engine, Job
from .measures.aopc_bounds import NO_SPAN
from .measures.distances import training_texts
from .measures.tokens_to_flip import NEVER_FLIPPED
from .open import opener_of, opening_of, training_facts
from .outputs import (
    Partial,
    check_format,
    partial_path,
    refuse_other,
    refuse_stopped,
    write_predictions,
)
from .runner import INFILLED, Runner
from .settings import GIVEN, HUMAN, OWN, SPANS, ExplainSettings, settings_for
from .work import ChunkResult, Worker, explain_on_ray, infiller_of_job, model_of

if TYPE_CHECKING:
    from .transformers.infilling import Infiller

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ExplainPlan:
    """What a run explains and how, as the data decide it.

    Attributes:
        job: with its query decided.
        settings: without what the dataset's results have no place for.
        split: the split, opened.
        given: scores or rationales that come from elsewhere; None for a method's.
        bounds: of AOPC, from another run; None where they are looked for.
        words: what a reader of the results must know of the data.
    """

    job: Job
    settings: ExplainSettings
    split: Split
    given: Given | None
    words: tuple[str, ...] = ()
    bounds: Given | None = None

    def instances(self) -> Iterator[Instance]:
        """The instances to explain, with what comes from elsewhere: scores or rationales, and bounds of AOPC."""
        instances: Iterator[Instance] = islice(self.split.instances(), self.job.limit)
        for given in filter(None, (self.given, self.bounds)):
            instances = given.put_on_all(instances)
        return instances

    def header(self, operator: str = "") -> dict[str, Any]:
        """What decides the results, as a run's record holds it: a stopped run with another header does not go on.

        Args:
            operator: of the result of one way of erasing alone; "" for all.
        """
        job = self.job
        texts = training_texts(job, self.settings) if self.settings.distribution_texts else None
        return {
            "settings": (self.settings.by_operator(operator) if operator else self.settings).record(),
            "data": self.split.header(
                job.limit, labels=self.settings.target == "gold", rationales=isinstance(self.given, GoldRationales)
            ),
            "model": {
                "model": Path(job.model).name,
                "digest": model_digest(job.model),
                "task": job.task,
                "query": job.query,
                "window": job.window,
                "labels": job.labels,
                "precision": job.precision,
                **({"infill": model_digest(job.infill)} if job.infill else {}),
            },
            **({"distribution": texts.header()} if texts is not None else {}),
        }


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run did.

    Attributes:
        out: the result.
        instances, resumed: how many instances it holds, and how many of them a stopped run had done.
        inputs, passes: of this run: inputs asked for, forward passes made.
        seconds: of this run, the opening of the model not counted.
        notes: what a reader of the results must know.
        signature: the settings in one line.
        others: results and signatures of further ways of erasing.
    """

    out: Path
    instances: int
    resumed: int
    inputs: int
    passes: int
    seconds: float
    notes: Notes
    signature: str
    others: tuple[tuple[Path, str], ...] = ()

    def lines(self) -> list[str]:
        """The report in words."""
        fresh = self.instances - self.resumed
        words = [
            f"{', '.join(map(str, (self.out, *(path for path, _ in self.others))))}: {self.instances} instances"
            + (" each" if self.others else "")
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
        for name in (
            "queries or first texts cut to half the window",
            "questions cut at their end",
            NEVER_FLIPPED,
            ALL_ZERO,
            NO_SPAN,
            INFILLED,
        ):
            if name in counts:
                words.append(f"{counts[name]} {name}")
        for name, value in self.notes.maxima.items():
            words.append(f"{name}: {value:.2g}")
        return [*words, *self.notes.words, self.signature, *(signature for _, signature in self.others)]


def explain(
    job: Job,
    settings: ExplainSettings,
    out: Path,
    *,
    resume: bool = False,
    force: bool = False,
    engine: str = "local",
    workers: int = 2,
    model: Adapter | None = None,
    max_inputs: int | None = None,
    spell: Callable[[str], str] = str,
    on_cost: Callable[[str], None] = lambda words: None,
    on_progress: OnProgress = lambda instances, passes: None,
) -> RunReport:
    """Explain a split and write predictions.

    Args:
        out: result, ``.jsonl`` or ``.parquet``; ``OUT.run.json`` beside it says how it was made. Several ways of
            erasing make a result each, ``OUT.mask.jsonl`` and so on, of the same scores and rationales.
        resume: go on with a stopped run of the same settings, model and data.
        force: replace a result that was made by other settings, another model or other data.
        engine: ``local``, or ``ray`` for workers of a Ray cluster.
        workers: of the engine ``ray``, each with a model.
        model: an opened model in place of ``job.model`` (local engine alone).
        max_inputs: how many inputs the run may take at most.
        spell: writes arguments' names as the caller knows them.
        on_cost: called with a line on what the run costs, where that is asked for or may be much.
        on_progress: called with (instances, forward passes) as they are done.

    Raises:
        DataError: wrong data, model or settings; a stopped run or a result that was made otherwise; too many inputs.
    """
    results = _places(job, settings, out, engine)
    split = split_of(job, settings.seed)
    job, settings = settled(job, split), settings.for_kind(split.kind)
    if engine == "local":
        # before the data are read through: what is wrong with the model or its labels is said at once
        model = model_of(job, split.label_names) if model is None else model
        align_labels(model, split.label_names, job.labels)
    plan = plan_of(job, settings, split)
    if job.aopc_bounds_from is not None:
        plan = replace(plan, bounds=known_bounds(job.aopc_bounds_from, plan))
    if not force:
        for operator, path in results.items():
            refuse_other(path, plan.header(operator), partial_path(out))
    if resume and (report := _report_of(results, plan)) is not None:
        return report
    infiller = infiller_of_job(job, settings.seed) if model is not None else None
    partial = Partial(out, plan.header(), resume)
    try:
        resumed = sum(record["instances"] for record in partial.records())
        if max_inputs is not None or plan.settings.may_cost_much:
            on_cost(spell(_cost(plan, partial, model, infiller, max_inputs)))
        start, inputs, passes = time.perf_counter(), 0, 0
        for result in _results(plan, partial, model, infiller, workers, functools.partial(on_progress, 0)):
            partial.append(result.number, result.lines, result.facts)
            inputs += result.facts["inputs"]
            passes += result.facts["passes"]
            on_progress(result.facts["instances"], 0)
        count, notes = _write_results(results, partial, plan)
        notes.words = list(map(spell, notes.words))
        report = _report(results, plan, (count, resumed, inputs, passes, time.perf_counter() - start), notes)
        for operator, path in results.items():
            _write_run(path, report, plan, operator)
        partial.close(remove=True)
        return report
    finally:
        # a run that failed before its first chunk was done leaves nothing to go on with
        partial.close(remove=not partial.places)


def _places(job: Job, settings: ExplainSettings, out: Path, engine: str) -> dict[str, Path]:
    """The files of a run's results, by way of erasing.

    Raises:
        DataError: one that no result may take; an unknown engine; a masked language model of which the settings know
            nothing.
    """
    results = results_of(out, settings)
    for path in (out, *results.values()):
        check_format(path, partial_path(out))
    if engine not in get_args(Engine):
        words = f"expected one of {', '.join(get_args(Engine))}; found {engine!r}"
        raise DataError(words, argument="engine", rule="option-value")
    if bool(job.infill) != bool(settings.infill):
        words = "expected of the job and of the settings, found of one alone"
        raise DataError(words, argument="infill", rule="option-conflict")
    return results


def results_of(out: Path, settings: ExplainSettings) -> dict[str, Path]:
    """The file of each way of erasing: ``out`` of a single one."""
    if not settings.also_erase:
        return {settings.erase: out}
    return {operator: operator_path(out, operator) for operator in settings.operators}


def known_bounds(path: Path, plan: ExplainPlan) -> KnownBounds:
    """The bounds of AOPC that another run has found.

    Raises:
        DataError: they are of other inputs; or inputs are erased in several ways, or by drawing, each with bounds of
            its own.
    """
    if plan.settings.also_erase or plan.job.infill:
        words = "infilling, which draws" if plan.job.infill else "several"
        words = f"expected one way of erasing that draws nothing, found {words}"
        raise DataError(words, argument="aopc_bounds_from", rule="option-conflict")
    return KnownBounds(path, plan.header())


def split_of(job: Job, seed: int) -> Split:
    """The split of a job, or a sample of it."""
    split = open_split(job.dataset, job.config, job.split)
    return (
        split if job.sample is None else split.sample(job.sample, seed if job.sample_seed is None else job.sample_seed)
    )


def settings_for_job(job: Job, paper: str, **options: Any) -> tuple[ExplainSettings, int | None]:
    """The settings by paper, data and options, and how many rows the split has.

    Args:
        paper, options: as of :func:`settings_for`.
    """
    rows = open_split(job.dataset, job.config, job.split)
    if job.aopc_bounds_from is not None:
        options["aopc_bounds"] = True
    if job.rationales or job.scores is not None:
        options["method"] = SPANS if job.rationales else GIVEN
    options["infill"] = Path(job.infill).name
    opening = opening_of(job.model)
    opener = opener_of(opening)
    settings = settings_for(paper, rows.config, opener.embeds(opening), opener.selects(opening), **options)
    by_paper = rows.config in preset(paper).kd
    if options.get("kd") is None and settings.method != SPANS and not by_paper:
        settings = replace(settings, kd=kd_of(rows))
    return settings, rows.size


def _open_chunks(plan: ExplainPlan, partial: Partial) -> Iterator[tuple[int, list[Instance]]]:
    """The chunks that are not done yet."""
    chunks = chunks_of(plan.instances(), plan.settings.chunk)
    return (chunk for chunk in chunks if chunk[0] not in partial.places)


def _results(
    plan: ExplainPlan,
    partial: Partial,
    model: Adapter | None,
    infiller: Infiller | None,
    workers: int,
    on_passes: Callable[[int], None],
) -> Iterator[ChunkResult]:
    """The open chunks, explained: by this process's model, or without one by workers of Ray."""
    todo = _open_chunks(plan, partial)
    if model is None:
        return explain_on_ray(plan.job, plan.settings, plan.split, todo, workers, on_passes)
    worker = Worker(model, plan.job, plan.settings, plan.split.kind, on_passes, infiller)
    return (worker.explain(*chunk) for chunk in todo)


def _cost(
    plan: ExplainPlan, partial: Partial, model: Adapter | None, infiller: Infiller | None, max_inputs: int | None
) -> str:
    """What the open chunks of a run cost; how long, where the model is in this process.

    Raises:
        DataError: more than ``max_inputs`` inputs.
    """
    settings, kind = plan.settings, plan.split.kind
    counts, first = Counter[str](), list[Instance]()
    for _, chunk in _open_chunks(plan, partial):
        for one in chunk:
            counts.update(inputs_of(one, settings, kind))
        first = first or list(chunk[:PROBED])
    cost_in_words(counts, None, max_inputs)  # too many are refused before the model is asked
    seconds = None
    if model is not None and first and not model.gives_answers:
        seconds = seconds_of(counts, Runner(model, settings.erase, settings.batch_size, infiller=infiller), first)
    return cost_in_words(counts, seconds, None)


def plan_of(job: Job, settings: ExplainSettings, split: Split) -> ExplainPlan:
    """Decide what the split decides.

    Raises:
        DataError: settings that its results have no place for; an instance without scores where they come
            from elsewhere.
    """
    by_paper = _words_on_paper(job, settings)
    of_options = job.rationales or job.scores
    if job.rationales == OWN or (settings.scores == OWN and not of_options):
        settings = replace(settings, method=SPANS, scores=OWN)
        return ExplainPlan(job, settings.for_kind(split.kind), split, None, by_paper)
    if job.rationales or settings.method == SPANS:
        given: Given = given_rationales(job.rationales or HUMAN, split.kind)
        settings = replace(settings, method=SPANS, scores=given.digest)
    elif job.scores is not None:
        given = GivenScores(job.scores)
        settings = replace(settings, method=GIVEN, scores=given.digest)
    else:
        return ExplainPlan(job, settings.for_kind(split.kind), split, None, by_paper)
    words = given.check(islice(split.instances(), job.limit), partly=job.limit is not None)
    return ExplainPlan(job, settings.for_kind(split.kind), split, given, tuple(filter(None, [words, *by_paper])))


def _words_on_paper(job: Job, settings: ExplainSettings) -> tuple[str, ...]:
    """What a reader of results made by a paper's preset must know."""
    words = []
    if settings.paper and training_facts(Path(job.model)).get("paper") != settings.paper:
        words.append(f"the model was not trained with `paper` {settings.paper}: taken as it is")
    if settings.bins not in ((), AOPC_THRESHOLDS):
        words.append("score takes these bins with `aopc_thresholds` " + " ".join(f"{rate:g}" for rate in settings.bins))
    return tuple(words)


def settled(job: Job, split: Split) -> Job:
    """The job with what can be told from the data decided: whether a transformers model sees the query."""
    if job.query is None and not (Path(job.model) / "model.json").is_file() and not Path(job.model).is_file():
        return replace(job, query=queries_differ(split))
    return job


def model_digest(model: str) -> str:
    """Digest of a local model's files (sizes and, up to 1 GB, contents); a Hub id stands for itself.

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
            file_digest(file, digest)
    return digest.hexdigest()


def _write_results(results: Mapping[str, Path], partial: Partial, plan: ExplainPlan) -> tuple[int, Notes]:
    """Gather the chunks' predictions into the results; gives the number of instances, and the notes."""
    notes, count = Notes(words=list(plan.words)), 0
    labels: Sequence[str] = ()
    for record in partial.records():
        notes.add(Notes(record["counts"], record["maxima"], record["words"]))
        labels = record["labels"]
        count += record["instances"]
    if not count:
        raise DataError(f"split {plan.job.split}: no instances to explain", rule="empty", file=plan.job.dataset)
    for place, path in enumerate(results.values()):
        write_predictions(path, _lines_of(partial, place), labels, plan.split.kind)
    return count, notes


def _lines_of(partial: Partial, place: int) -> Iterator[str]:
    """The predictions by one of the ways of erasing."""
    for record in partial.records():
        size = record["instances"]
        yield from record["predictions"][place * size : (place + 1) * size]


def _report(
    results: Mapping[str, Path], plan: ExplainPlan, counts: tuple[int, int, int, int, float], notes: Notes
) -> RunReport:
    """The report of a run, ``counts`` the numbers of :class:`RunReport` in its order."""
    name = Path(plan.job.model).name
    (out, first), *others = [
        (path, plan.settings.by_operator(operator).signature(name)) for operator, path in results.items()
    ]
    return RunReport(out, *counts, notes, first, tuple(others))


def _write_run(path: Path, report: RunReport, plan: ExplainPlan, operator: str) -> None:
    facts = {
        "signature": plan.settings.by_operator(operator).signature(Path(plan.job.model).name),
        **plan.header(operator),
        "instances": report.instances,
        "counts": report.notes.counts,
        "maxima": report.notes.maxima,
        "notes": report.notes.words,
    }
    write_run(path, facts)


def _report_of(results: Mapping[str, Path], plan: ExplainPlan) -> RunReport | None:
    """The report of results that are complete and were made like this; None where any is not there."""
    record = dict[str, Any]()
    for operator, path in results.items():
        try:
            record = read_run(path) if path.is_file() else {}
        except DataError:
            return None
        if any(record.get(key) != value for key, value in orjson.loads(orjson.dumps(plan.header(operator))).items()):
            return None
    notes = Notes(record["counts"], record["maxima"], record["notes"])
    return _report(results, plan, (record["instances"], record["instances"], 0, 0, 0.0), notes)


def draw_path(out: Path, draw: int) -> Path:
    """The file of one of several random draws: ``predictions.draw-01.jsonl``."""
    return out.with_name(f"{out.stem}.draw-{draw:02d}{out.suffix}")


def explain_draws(
    job: Job,
    settings: ExplainSettings,
    outs: Sequence[Path],
    *,
    resume: bool = False,
    force: bool = False,
    engine: str = "local",
    workers: int = 2,
    max_inputs: int | None = None,
    spell: Callable[[str], str] = str,
    on_cost: Callable[[str], None] = lambda words: None,
    on_progress: OnProgress = lambda instances, passes: None,
) -> list[RunReport]:
    """One file per path in ``outs``, the seed one higher each time; model and bounds of AOPC are opened and found once.

    Raises:
        DataError: as :func:`explain` does; that a stopped run of any of the files lies there, before the first begins.
    """
    for out in outs:
        for path in (out, *results_of(out, settings).values()):
            check_format(path, partial_path(out))
        if not resume:
            refuse_stopped(out)
    model: Adapter | None = None
    if len(outs) > 1 and engine == "local":
        split = open_split(job.dataset, job.config, job.split)
        job = settled(job, split)
        model = model_of(job, split.label_names)
    job = replace(job, sample_seed=settings.seed)
    alike = not job.infill and not settings.also_erase  # words that are filled in differ from draw to draw
    bounds = outs[0] if settings.aopc_bounds and alike else None
    return [
        explain(
            replace(job, aopc_bounds_from=job.aopc_bounds_from or (bounds if draw else None)),
            replace(settings, seed=settings.seed + draw),
            out,
            resume=resume,
            force=force,
            engine=engine,
            workers=workers,
            model=model,
            max_inputs=max_inputs,
            spell=spell,
            on_cost=on_cost,
            on_progress=on_progress,
        )
        for draw, out in enumerate(outs)
    ]
