"""A whole run: open, explain chunk by chunk, write as results come, go on after a stop."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from eraser_hub.records.errors import DataError
from eraser_hub.records.splits import dataset_split

from .adapter import Adapter, Notes, align_labels, open_model
from .attribution import GIVEN
from .engine import NEVER_FLIPPED, Settings, chunks_of, explain_chunk, kd_of
from .given import GivenScores
from .instances import Instance, Split, open_split, queries_differ
from .outputs import Partial, check_format, refuse_stopped, replacing, run_path, write_predictions
from .runner import Runner

ENGINES = ("local", "ray")


@dataclass(frozen=True, slots=True)
class Source:
    """What is explained by what.

    Attributes:
        dataset, config, split: a dataset folder or Hub id, and the part of it.
        model: a model folder, file or Hub id.
        labels: the dataset's name of each of the model's outputs, where the model does not say them.
        query: whether the model sees the query; None: as it was trained, and for a transformers model without such a
            record, when the queries of the split differ.
        precision: ``float32``, ``bfloat16``, or ``auto``: bfloat16 on a GPU that has it (transformers).
        scores: a predictions file whose soft rationales are taken in place of a method's; its digest is
            ``Settings.scores``.
        limit: explain the first so many instances.
        threads: processor threads of a model; 0: as many as torch takes by itself.
    """

    dataset: str
    config: str | None
    split: str
    model: str
    task: str = "auto"
    trust_pickle: bool = False
    labels: tuple[str, ...] = ()
    query: bool | None = None
    window: int | None = None
    device: str | None = None
    precision: str = "auto"
    limit: int | None = None
    threads: int = 0
    scores: Path | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did."""

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
        for name in ("queries or first texts cut to half the window", "questions cut at their end", NEVER_FLIPPED):
            if name in counts:
                words.append(f"{counts[name]} {name}")
        for name, value in self.notes.maxima.items():
            words.append(f"{name}: {value:.2g}")
        return [*words, *self.notes.words, self.signature]


def open_source(source: Source, label_names: Sequence[str]) -> Adapter:
    """The model of a source, its labels brought into the dataset's order; every worker opens it alike.

    Raises:
        DataError: what :func:`open_model` and :func:`align_labels` refuse.
    """
    if source.threads:
        limit_threads(source.threads)
    model = open_model(
        source.model, task=source.task, trust_pickle=source.trust_pickle, uses_query=source.query,
        window=source.window, device=source.device, precision=source.precision,
    )  # fmt: skip
    if source.threads:
        limit_threads(source.threads)  # once more: opening the model has loaded libraries with threads of their own
    align_labels(model, label_names, source.labels)
    return model


def limit_threads(threads: int) -> None:
    """Use so many processor threads for linear algebra (results can differ in the last digit with their number)."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads)


def settled(source: Source, split: Split) -> Source:
    """The source with what can be told from the data decided: whether a transformers model sees the query."""
    if source.query is None and not (Path(source.model) / "model.json").is_file() and not Path(source.model).is_file():
        return replace(source, query=queries_differ(split))
    return source


def model_digest(model: str) -> str:
    """Digest of a local model's files (sizes and, up to 1 GB, contents); a Hub id stands for itself.

    Of a single file also the ``model.json`` beside it, which says how the file is to be used.
    """
    path = Path(model)
    if not path.exists():
        return model
    digest = hashlib.blake2b(digest_size=12)
    among = [path, path.with_name("model.json")] if path.is_file() else sorted(path.iterdir())
    files = [file for file in among if file.is_file()]
    for file in files:
        digest.update(f"{file.name}\x1f{file.stat().st_size}\x1e".encode())
        if file.stat().st_size <= 1 << 30:
            with open(file, "rb") as opened:
                while block := opened.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()


def limited(split: Split, limit: int | None, start: int = 0) -> Iterator[Instance]:
    """Instances from ``start`` on, no more than ``limit`` in all."""
    for place, one in enumerate(split.instances(start), start):
        if limit is not None and place >= limit:
            return
        yield one


def instances_of(source: Source, split: Split, given: GivenScores | None) -> Iterator[Instance]:
    """The instances to explain, with their scores where those come from elsewhere."""
    found = limited(split, source.limit)
    return found if given is None else map(given.put_on, found)


def explain(
    source: Source,
    settings: Settings,
    out: Path,
    *,
    resume: bool = False,
    engine: str = "local",
    workers: int = 2,
    model: Adapter | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Explain a split and write predictions.

    Args:
        out: result, ``.jsonl`` or ``.parquet``; ``OUT.run.json`` beside it says how it was made.
        resume: go on with a stopped run of the same settings, model and data.
        engine: ``local``, or ``ray`` for workers of a Ray cluster.
        model: an opened model in place of ``source.model`` (local engine alone).
        on_progress: called with (instances, forward passes) as they are done.

    Raises:
        DataError: anything wrong with data, model or settings; a stopped run that was made otherwise.
    """
    check_format(out)
    if engine not in ENGINES:
        raise DataError(f"--engine: expected one of {', '.join(ENGINES)}; found {engine!r}")
    split = open_split(source.dataset, source.config, source.split)
    source, settings = settled(source, split), settings.for_kind(split.kind)
    given = None if source.scores is None else GivenScores(source.scores)
    if given is not None:
        settings = replace(settings, method=GIVEN, scores=given.digest)
        # what is missing is said now and not after hours
        for _ in instances_of(source, split, given):
            pass
    header = {
        "settings": settings.as_dict(),
        "data": {
            "dataset": Path(source.dataset).name, "config": split.config, "split": dataset_split(source.split),
            "limit": source.limit, "digest": split.fingerprint(source.limit),
        },
        "model": {
            "model": Path(source.model).name, "digest": model_digest(source.model),
            "task": source.task, "query": source.query, "window": source.window, "labels": list(source.labels),
            "precision": source.precision,
        },
    }  # fmt: skip
    if resume and out.is_file() and _made_alike(out, header):
        return _complete(out)
    partial = Partial(out, header, resume)
    resumed = sum(record["instances"] for record in partial.records())
    fresh_inputs = fresh_passes = 0
    names: Sequence[str] = ()
    try:
        if engine == "local":
            model = open_source(source, split.label_names) if model is None else model
            align_labels(model, split.label_names, source.labels)
        started = time.perf_counter()
        todo = (
            (n, chunk)
            for n, chunk in chunks_of(instances_of(source, split, given), settings.chunk)
            if n not in partial.places
        )
        if engine == "ray":
            from .ray_engine import explain_on_ray

            results = explain_on_ray(source, settings, split, todo, partial.path.with_name(out.name + ".ray"), workers)
        elif model is not None:
            results = explain_here(settings, split.kind, todo, model, on_progress)
        for chunk, lines, facts in results:
            partial.append(chunk, lines, facts)
            fresh_inputs += facts["inputs"]
            fresh_passes += facts["passes"]
            if on_progress is not None:
                on_progress(facts["instances"], facts["passes"] if engine == "ray" else 0)
        notes, count = Notes(), 0
        for record in partial.records():
            notes.add(record["counts"], record["maxima"], record["words"])
            names = record["labels"]
            count += record["instances"]
        if not count:
            raise DataError(f"split {source.split}: no instances to explain", file=source.dataset)
        write_predictions(
            out, (line for record in partial.records() for line in record["predictions"]), names, split.kind
        )
        seconds = time.perf_counter() - started
        report = Report(
            out,
            count,
            resumed,
            fresh_inputs,
            fresh_passes,
            seconds,
            notes,
            settings.signature(header["model"]["model"]),
        )
        _write_run(report, header)
        partial.close(remove=True)
        return report
    finally:
        # a run that failed before its first chunk was done leaves nothing to go on with
        partial.close(remove=not partial.places)


def explain_here(
    settings: Settings,
    kind: str,
    todo: Iterator[tuple[int, list[Instance]]],
    model: Adapter,
    on_progress: Callable[[int, int], None] | None = None,
) -> Iterator[tuple[int, list[bytes], dict[str, Any]]]:
    """Chunks explained one after the other in this process."""
    runner = Runner(model, settings.erase, settings.batch_size, (lambda p: on_progress(0, p)) if on_progress else None)
    for number, chunk in todo:
        yield number, *finish_chunk(model, runner, chunk, settings, kind)


def finish_chunk(
    model: Adapter, runner: Runner, chunk: Sequence[Instance], settings: Settings, kind: str
) -> tuple[list[bytes], dict[str, Any]]:
    """A chunk's predictions as JSON lines, and what was counted."""
    inputs, passes = runner.counts.inputs, runner.counts.passes
    seen = chunk if model.uses_query else [one.without_query() for one in chunk]
    lines = [orjson.dumps(prediction) for prediction in explain_chunk(model, runner, seen, settings, kind)]
    counts, maxima, words = model.notes.take()
    facts = {
        "instances": len(lines), "inputs": runner.counts.inputs - inputs, "passes": runner.counts.passes - passes,
        "labels": list(model.label_names), "counts": counts, "maxima": maxima, "words": words,
    }  # fmt: skip
    return lines, facts


def _write_run(report: Report, header: dict[str, Any]) -> None:
    facts = {
        "signature": report.signature, **header, "instances": report.instances,
        "counts": report.notes.counts, "maxima": report.notes.maxima, "notes": report.notes.words,
    }  # fmt: skip
    with replacing(run_path(report.out)) as beside:
        beside.write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2) + b"\n")


def _made_alike(out: Path, header: dict[str, Any]) -> bool:
    try:
        found = orjson.loads(run_path(out).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return False
    return all(found.get(key) == orjson.loads(orjson.dumps(header[key])) for key in header)


def _complete(out: Path) -> Report:
    found = orjson.loads(run_path(out).read_bytes())
    notes = Notes()
    notes.add(found["counts"], found["maxima"], found["notes"])
    return Report(out, found["instances"], found["instances"], 0, 0, 0.0, notes, found["signature"])


def settings_for(split: Split, kd: float | None, **more: Any) -> Settings:
    """Settings with kd given, or the config's average."""
    return Settings(kd=kd_of(split) if kd is None else kd, **more)


def draw_path(out: Path, draw: int) -> Path:
    """The file of one of several random draws: ``predictions.draw-01.jsonl``."""
    return out.with_name(f"{out.stem}.draw-{draw:02d}{out.suffix}")


def explain_draws(
    source: Source,
    settings: Settings,
    outs: Sequence[Path],
    *,
    resume: bool = False,
    engine: str = "local",
    workers: int = 2,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Report]:
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
        split = open_split(source.dataset, source.config, source.split)
        source = settled(source, split)
        model = open_source(source, split.label_names)
    return [
        explain(
            source,
            replace(settings, seed=settings.seed + draw),
            out,
            resume=resume,
            engine=engine,
            workers=workers,
            model=model,
            on_progress=on_progress,
        )
        for draw, out in enumerate(outs)
    ]
