"""A whole run: open, explain chunk by chunk, write as results come, go on after a stop."""

from __future__ import annotations

import functools
import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from eraser_hub.metrics.erasure import AOPC_THRESHOLDS
from eraser_hub.papers.presets import preset
from eraser_hub.records.atomic import replacing
from eraser_hub.records.digests import file_digest
from eraser_hub.records.errors import DataError

from .adapter import Adapter, Notes
from .attribution import ALL_ZERO
from .dataset import Split, kd_of, open_split, queries_differ
from .engine import NEVER_FLIPPED, chunks_of
from .games.costs import PROBED, cost_in_words, inputs_of_all, rate_of
from .games.measures import NO_SPAN
from .given import Given, GivenScores, HumanRationales, given_rationales
from .instances import Instance
from .labels import align_labels
from .open import has_embeddings, selects, training_facts
from .outputs import Partial, check_format, refuse_other, refuse_stopped, run_path, write_predictions
from .ray_engine import explain_on_ray
from .settings import GIVEN, HUMAN, OWN, SPANS, ExplainSettings, settings_for
from .work import ChunkResult, Job, Worker, model_of

ENGINES = ("local", "ray")
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run explains and how, as the data decide it.

    Attributes:
        job: with its query decided.
        settings: without what the dataset's results have no place for.
        split: the split, opened.
        given: scores or rationales that come from elsewhere; None for a method's.
        words: what a reader of the results must know of the data.
    """

    job: Job
    settings: ExplainSettings
    split: Split
    given: Given | None
    words: tuple[str, ...] = ()

    def instances(self) -> Iterator[Instance]:
        """The instances to explain, with their scores or rationales where those come from elsewhere."""
        instances = islice(self.split.instances(), self.job.limit)
        return instances if self.given is None else self.given.put_on_all(instances)

    def header(self) -> dict[str, Any]:
        """What decides the results, as a run's record holds it: a stopped run with another header does not go on."""
        job = self.job
        return {
            "settings": self.settings,
            "data": self.split.header(
                job.limit, labels=self.settings.target == "gold", rationales=isinstance(self.given, HumanRationales)
            ),
            "model": {
                "model": Path(job.model).name, "digest": model_digest(job.model), "task": job.task, "query": job.query,
                "window": job.window, "labels": job.labels, "precision": job.precision,
            },
        }  # fmt: skip


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
        """The report in words."""
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
        for name in (
            "queries or first texts cut to half the window",
            "questions cut at their end",
            NEVER_FLIPPED,
            ALL_ZERO,
            NO_SPAN,
        ):
            if name in counts:
                words.append(f"{counts[name]} {name}")
        for name, value in self.notes.maxima.items():
            words.append(f"{name}: {value:.2g}")
        return [*words, *self.notes.words, self.signature]


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
    on_cost: Callable[[str], None] = lambda words: None,
    on_progress: OnProgress = lambda instances, passes: None,
) -> RunReport:
    """Explain a split and write predictions.

    Args:
        out: result, ``.jsonl`` or ``.parquet``; ``OUT.run.json`` beside it says how it was made.
        resume: go on with a stopped run of the same settings, model and data.
        force: replace a result that was made by other settings, another model or other data.
        engine: ``local``, or ``ray`` for workers of a Ray cluster.
        workers: of the engine ``ray``, each with a model.
        model: an opened model in place of ``job.model`` (local engine alone).
        max_inputs: how many inputs the run may take at most.
        on_cost: called before the run with a line on what it costs, where ``max_inputs`` or something that may cost much is
            asked for.
        on_progress: called with (instances, forward passes) as they are done.

    Raises:
        DataError: anything wrong with data, model or settings; a stopped run, or without ``force`` a result, that was made
            otherwise; more than ``max_inputs`` inputs.
    """
    check_format(out)
    if engine not in ENGINES:
        raise DataError(f"--engine: expected one of {', '.join(ENGINES)}; found {engine!r}")
    split = split_of(job, settings.seed)
    job, settings = settled(job, split), settings.for_kind(split.kind)
    if engine == "local":
        # before the data are read through: what is wrong with the model or its labels is said at once
        model = model_of(job, split.label_names) if model is None else model
        align_labels(model, split.label_names, job.labels)
    plan = plan_of(job, settings, split)
    header = plan.header()
    if not force:
        refuse_other(out, header)
    if resume and (report := _report_of(out, header)) is not None:
        return report
    partial = Partial(out, header, resume)
    try:
        resumed = sum(record["instances"] for record in partial.records())
        if max_inputs is not None or plan.settings.may_cost_much:
            on_cost(_cost(plan, partial, model, max_inputs))
        start, inputs, passes = time.perf_counter(), 0, 0
        for result in _results(plan, partial, model, workers, functools.partial(on_progress, 0)):
            partial.append(result.number, result.lines, result.facts)
            inputs += result.facts["inputs"]
            passes += result.facts["passes"]
            on_progress(result.facts["instances"], 0)
        count, notes = _write_result(out, partial, plan)
        seconds = time.perf_counter() - start
        signature = plan.settings.signature(Path(job.model).name)
        report = RunReport(out, count, resumed, inputs, passes, seconds, notes, signature)
        _write_run(report, header)
        partial.close(remove=True)
        return report
    finally:
        # a run that failed before its first chunk was done leaves nothing to go on with
        partial.close(remove=not partial.places)


def split_of(job: Job, seed: int) -> Split:
    """The split of a job, or a sample of it."""
    split = open_split(job.dataset, job.config, job.split)
    return split if job.sample is None else split.sample(job.sample, seed)


def settings_for_job(job: Job, paper: str, **options: Any) -> tuple[ExplainSettings, int | None]:
    """The settings by paper, data and options, and how many rows the split has.

    Args:
        paper, options: as of :func:`settings_for`.
    """
    rows = open_split(job.dataset, job.config, job.split)
    if job.rationales or job.scores is not None:
        options["method"] = SPANS if job.rationales else GIVEN
    settings = settings_for(paper, rows.config, has_embeddings(job.model), selects(job.model), **options)
    by_paper = rows.config in preset(paper).kd
    if options.get("kd") is None and settings.method != SPANS and not by_paper:
        settings = replace(settings, kd=kd_of(rows))
    return settings, rows.size


def _open_chunks(plan: Plan, partial: Partial) -> Iterator[tuple[int, list[Instance]]]:
    """The chunks that are not done yet."""
    chunks = chunks_of(plan.instances(), plan.settings.chunk)
    return (chunk for chunk in chunks if chunk[0] not in partial.places)


def _results(
    plan: Plan, partial: Partial, model: Adapter | None, workers: int, on_passes: Callable[[int], None]
) -> Iterator[ChunkResult]:
    """The open chunks, explained: by this process's model, or without one by workers of Ray."""
    todo = _open_chunks(plan, partial)
    if model is None:
        folder = partial.path.with_name(partial.path.stem + ".ray")
        return explain_on_ray(plan.job, plan.settings, plan.split, todo, folder, workers, on_passes)
    worker = Worker(model, plan.settings, plan.split.kind, on_passes)
    return (worker.explain(*chunk) for chunk in todo)


def _cost(plan: Plan, partial: Partial, model: Adapter | None, max_inputs: int | None) -> str:
    """What the open chunks of a run cost; how long, where the model is in this process.

    Raises:
        DataError: more than ``max_inputs`` inputs.
    """
    settings, kind = plan.settings, plan.split.kind
    counts, first = Counter[str](), list[Instance]()
    for _, chunk in _open_chunks(plan, partial):
        counts.update(inputs_of_all(chunk, settings, kind))
        first = first or list(chunk[:PROBED])
    cost_in_words(counts, None, max_inputs)  # too many are refused before the model is asked
    rate = None if model is None or model.gives_answers or not first else rate_of(model, first, settings)
    return cost_in_words(counts, rate, None)


def plan_of(job: Job, settings: ExplainSettings, split: Split) -> Plan:
    """Decide what the split decides.

    Raises:
        DataError: settings that its results have no place for; an instance without scores where they come
            from elsewhere.
    """
    by_paper = _words_on_paper(job, settings)
    of_options = job.rationales or job.scores
    if job.rationales == OWN or (settings.scores == OWN and not of_options):
        settings = replace(settings, method=SPANS, scores=OWN)
        return Plan(job, settings.for_kind(split.kind), split, None, by_paper)
    if job.rationales or settings.method == SPANS:
        given: Given = given_rationales(job.rationales or HUMAN, split.kind)
        settings = replace(settings, method=SPANS, scores=given.digest)
    elif job.scores is not None:
        given = GivenScores(job.scores)
        settings = replace(settings, method=GIVEN, scores=given.digest)
    else:
        return Plan(job, settings.for_kind(split.kind), split, None, by_paper)
    words = given.check(islice(split.instances(), job.limit), partly=job.limit is not None)
    return Plan(job, settings.for_kind(split.kind), split, given, tuple(filter(None, [words, *by_paper])))


def _words_on_paper(job: Job, settings: ExplainSettings) -> tuple[str, ...]:
    """What a reader of results made by a paper's preset must know."""
    words = []
    if settings.paper and training_facts(Path(job.model)).get("paper") != settings.paper:
        words.append(f"the model was not trained with --paper {settings.paper}: taken as it is")
    if settings.bins not in ((), AOPC_THRESHOLDS):
        words.append("score takes these bins with --aopc-thresholds " + " ".join(f"{rate:g}" for rate in settings.bins))
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


def _write_result(out: Path, partial: Partial, plan: Plan) -> tuple[int, Notes]:
    """Gather the chunks' predictions into ``out``; gives the number of instances, and the notes."""
    notes, count = Notes(words=list(plan.words)), 0
    labels: Sequence[str] = ()
    for record in partial.records():
        notes.add(Notes(record["counts"], record["maxima"], record["words"]))
        labels = record["labels"]
        count += record["instances"]
    if not count:
        raise DataError(f"split {plan.job.split}: no instances to explain", file=plan.job.dataset)
    lines = (line for record in partial.records() for line in record["predictions"])
    write_predictions(out, lines, labels, plan.split.kind)
    return count, notes


def _write_run(report: RunReport, header: dict[str, Any]) -> None:
    facts = {
        "signature": report.signature, **header, "instances": report.instances,
        "counts": report.notes.counts, "maxima": report.notes.maxima, "notes": report.notes.words,
    }  # fmt: skip
    with replacing(run_path(report.out)) as beside:
        beside.write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2) + b"\n")


def _report_of(out: Path, header: dict[str, Any]) -> RunReport | None:
    """The report of a result that is complete and was made with this header; None where there is none."""
    try:
        record = orjson.loads(run_path(out).read_bytes()) if out.is_file() else {}
    except (OSError, orjson.JSONDecodeError):
        return None
    if any(record.get(key) != value for key, value in orjson.loads(orjson.dumps(header)).items()):
        return None
    notes = Notes(record["counts"], record["maxima"], record["notes"])
    return RunReport(out, record["instances"], record["instances"], 0, 0, 0.0, notes, record["signature"])


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
    on_cost: Callable[[str], None] = lambda words: None,
    on_progress: OnProgress = lambda instances, passes: None,
) -> list[RunReport]:
    """One file per path in ``outs``, the seed one higher each time; the model is opened once.

    Raises:
        DataError: as :func:`explain` does; that a stopped run of any of the files lies there, before the first begins.
    """
    for out in outs:
        check_format(out)
        if not resume:
            refuse_stopped(out)
    model: Adapter | None = None
    if len(outs) > 1 and engine == "local":
        split = open_split(job.dataset, job.config, job.split)
        job = settled(job, split)
        model = model_of(job, split.label_names)
    return [
        explain(
            job, replace(settings, seed=settings.seed + draw), out, resume=resume, force=force, engine=engine, workers=workers,
            model=model, max_inputs=max_inputs, on_cost=on_cost, on_progress=on_progress,
        )
        for draw, out in enumerate(outs)
    ]  # fmt: skip
