"""A run: a model, a split and settings to a file of predictions, chunk by chunk; a stopped one goes on."""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from eraser_hub.metrics.errors import hide_credentials
from eraser_hub.papers import AOPC_THRESHOLDS
from eraser_hub.papers.presets import load_preset
from eraser_hub.records.errors import DataError
from eraser_hub.records.files import OutputWriter, compute_file_digest
from eraser_hub.records.predictions import find_inputs, read_run, write_run

from .dataset import KD_SOURCES, Split, find_kd, has_different_queries
from .given import Given
from .instances import Instance, split_into_chunks
from .models.model import Model
from .models.opening import read_facts, split_model
from .models.units import Notes
from .outputs import (
    PartialResult,
    check_format,
    open_partial_result,
    refuse_other,
    write_predictions,
)
from .predictions import explain_chunk
from .settings import HUMAN, ExplainSettings, build_settings

log = logging.getLogger("eraser_hub")
OnProgress = Callable[[int, int], None]
OnPasses = Callable[[int], None]


class ChunkResult(NamedTuple):
    """A chunk's number, its predictions as JSON lines, and its counts, as :class:`PartialResult` keeps them."""

    number: int
    lines: list[bytes]
    facts: dict[str, Any]


ExplainChunks = Callable[["Run", Iterator[tuple[int, list[Instance]]], OnPasses], Iterator[ChunkResult]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A model, a split and settings, and the file that their predictions go to.

    Attributes:
        split: the split.
        model: the opened model.
        place: what names the model; the class of a model in memory.
        opening: arguments of `open_model`, by which a worker opens the same model.
        settings: the settings.
        out: the file of predictions.
        given: rationales or scores that no method computes; None for none.
        limit: number of instances; None for all.
        messages: what the reader of the results has to know of the data.
    """

    split: Split
    model: Model
    place: str
    opening: Mapping[str, Any]
    settings: ExplainSettings
    out: Path
    given: Given | None = None
    limit: int | None = None
    messages: tuple[str, ...] = ()

    def instances(self) -> Iterator[Instance]:
        """Return the instances to explain, with their given rationales or scores."""
        instances = islice(self.split.instances(), self.limit)
        return instances if self.given is None else iter(self.given.attach(instances))

    def chunks(self, done: Container[int]) -> Iterator[tuple[int, list[Instance]]]:
        """Yield the numbered chunks that are not done."""
        return (chunk for chunk in split_into_chunks(self.instances(), self.settings.chunk) if chunk[0] not in done)

    def header(self) -> dict[str, Any]:
        """Return the record of all that decides the results; a stopped run with another header does not resume."""
        human = self.settings.rationales == HUMAN
        place, of_model = split_model(self.place)
        return {
            "settings": self.settings.record(),
            "data": self.split.header(self.limit, labels=self.settings.target == "gold", rationales=human),
            "model": {
                "model": hide_credentials(Path(place).name),
                "settings": of_model,
                "digest": compute_model_digest(place),
                "query": self.model.uses_query,
                "details": self.model.details,
            },
        }

    @property
    def signature(self) -> str:
        """Every setting that decides the numbers, and the model, in one line."""
        name = hide_credentials(Path(split_model(self.place)[0]).name)
        return self.settings.signature("|".join(filter(None, (name, self.model.details))))


def explain_one_chunk(
    model: Model,
    number: int,
    chunk: Sequence[Instance],
    settings: ExplainSettings,
    kind: str,
    on_passes: OnPasses | None = None,
) -> ChunkResult:
    """Return a chunk's predictions as JSON lines, and what has to be counted of it."""
    predictions, engine = explain_chunk(model, chunk, settings, kind, on_passes)
    notes = model.notes.take()
    facts = {
        "instances": len(chunk),
        "inputs": engine.inputs,
        "passes": engine.passes,
        "counts": notes.counts,
        "maxima": notes.maxima,
        "messages": notes.messages,
    }
    return ChunkResult(number, list(map(msgspec.json.encode, predictions)), facts)


@dataclass(frozen=True, slots=True)
class RunReport:
    """Report of a run, printed as lines.

    Attributes:
        out: the file of predictions.
        instances, resumed: how many instances it holds, and how many of them a stopped run had done.
        inputs, passes: of this run: inputs asked for, forward passes made.
        seconds: of this run, the opening of the model not counted.
        notes: messages and counts for the reader of the results.
        signature: the settings in one line.
    """

    out: Path
    instances: int
    resumed: int
    inputs: int = 0
    passes: int = 0
    seconds: float = 0.0
    notes: Notes = field(default_factory=Notes)
    signature: str = ""

    def lines(self) -> list[str]:
        """Return the report as lines of text."""
        fresh = self.instances - self.resumed
        resumed = f", {self.resumed} of them from the stopped run" if self.resumed else ""
        lines = [f"{self.out}: {self.instances} instances{resumed}"]
        if fresh and self.seconds > 0:
            rates = f"{fresh / self.seconds:.1f} instances/s, {self.passes / self.seconds:.0f} forward passes/s"
            lines.append(f"{rates} ({self.passes} passes for {self.inputs} inputs, {self.seconds:.1f} s)")
        lines += [f"{number} {name}" for name, number in self.notes.counts.items()]
        lines += [f"{name}: {value:.2g}" for name, value in self.notes.maxima.items()]
        return [*lines, *self.notes.messages, self.signature]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def make_settings_for(
    split: Split, model: Model, paper: str, place: str, given: Given | None, limit: int | None, **options: Any
) -> tuple[ExplainSettings, tuple[str, ...]]:
    """Return the settings of a run, which data and model complete, and messages for the reader of its results.

    Args:
        split: the split that is explained.
        model: the model.
        paper: whose choices are made; "" for ours.
        place: what names the model.
        given: rationales or scores that no method computes.
        limit: number of instances; None for all.
        **options: as of :func:`settings.build_settings`.

    Raises:
        DataError: settings that go together neither with the data nor with the model.
    """
    settings = build_settings(paper, config=split.config, embeds=model.embeds, selects=model.selects, **options)
    messages = []
    if given is not None:
        settings = replace(settings, digest=given.digest)
        partly = limit is not None or split.places is not None
        messages.append(given.check(islice(split.instances(), limit), partly))
    if paper and read_facts(place).get("paper") != paper:
        messages.append(f"the model was not trained with `paper` {paper}: taken as it is")
    ranks = not settings.rationales
    if ranks and options.get("kd") is None and split.config not in load_preset(paper).kd:
        kd, source = find_kd(split)
        settings = replace(settings, kd=kd, kd_source=source)
        messages.append(f"kd {kd:g}: {KD_SOURCES[source]}")
    if settings.bins not in ((), AOPC_THRESHOLDS):
        messages.append("to score these bins, set aopc_thresholds to " + " ".join(f"{x:g}" for x in settings.bins))
    if settings.method is not None:
        settings.method.check(model)
    settings = settings.for_pairs() if split.kind == "perturbation" else settings
    return settings, tuple(filter(None, messages))


def find_query(split: Split, place: str) -> bool | None:
    """Return whether the model is shown the query: if queries differ; None where its training or its kind says it.

    A model's file without such a record takes texts alone.
    """
    knows = "uses_query" in read_facts(place) or Path(split_model(place)[0]).is_file()
    return None if knows else has_different_queries(split)


def check_out(out: Path, inputs: Sequence[Any], force: bool, resume: bool) -> OutputWriter:
    """Return the writer of a file of predictions.

    Raises:
        DataError: a place that no predictions may take; a stopped run that is not resumed.
    """
    writer = OutputWriter(find_inputs(*inputs), force)
    check_format(out, writer, resume)
    return writer


def explain_here(run: Run, todo: Iterator[tuple[int, list[Instance]]], on_passes: OnPasses) -> Iterator[ChunkResult]:
    """Explain numbered chunks in this process, one after the other."""
    for number, chunk in todo:
        yield explain_one_chunk(run.model, number, chunk, run.settings, run.split.kind, on_passes)


def execute(
    run: Run,
    writer: OutputWriter,
    *,
    resume: bool = False,
    force: bool = False,
    on_progress: OnProgress = lambda instances, passes: None,
    explain_chunks: ExplainChunks = explain_here,
) -> RunReport:
    """Explain what is open of a run, and write predictions and the run's record.

    Args:
        run: the run.
        writer: the writer of its file.
        resume: go on with a stopped run of the same settings, model and data.
        force: replace a result that was made otherwise.
        on_progress: called with (instances, forward passes) as they are done.
        explain_chunks: explains numbered chunks, here or elsewhere, and yields their results in any order.

    Raises:
        DataError: a stopped run or a result that was made otherwise; no instances.
    """
    header = run.header()
    if not force:
        refuse_other(run.out, header)
    if resume and (report := _find_complete_report(run, header)) is not None:
        return report

    def on_passes(passes: int) -> None:
        on_progress(0, passes)

    with open_partial_result(run.out, header, resume) as partial:
        resumed = sum(record["instances"] for record in partial.records())
        todo, start = run.chunks(partial.places), time.perf_counter()
        inputs = passes = 0
        for result in explain_chunks(run, todo, on_passes):
            partial.append(result.number, result.lines, result.facts)
            inputs, passes = inputs + result.facts["inputs"], passes + result.facts["passes"]
            on_progress(result.facts["instances"], 0)
        count, notes = _gather(run, partial, writer, header)
    return RunReport(run.out, count, resumed, inputs, passes, time.perf_counter() - start, notes, run.signature)


def _gather(run: Run, partial: PartialResult, writer: OutputWriter, header: Mapping[str, Any]) -> tuple[int, Notes]:
    """Gather the chunks' predictions into the result, with its record; return their number, and the notes."""
    notes, count = Notes(messages=list(run.messages)), 0
    for record in partial.records():
        notes.add(Notes(record["counts"], record["maxima"], record["messages"]))
        count += record["instances"]
    if not count:
        raise DataError("expected instances to explain, found none", file=run.split.name)
    lines = itertools.chain.from_iterable(record["predictions"] for record in partial.records())
    write_predictions(run.out, lines, writer)
    counted = {"counts": notes.counts, "maxima": notes.maxima, "messages": notes.messages}
    write_run(run.out, {"signature": run.signature, **header, "instances": count, **counted})
    return count, notes


def _find_complete_report(run: Run, header: Mapping[str, Any]) -> RunReport | None:
    """Return the report of a result that is complete and was made like this; None for any other."""
    try:
        record = read_run(run.out) if run.out.is_file() else {}
    except DataError:
        return None
    if any(record.get(key) != value for key, value in msgspec.json.decode(msgspec.json.encode(header)).items()):
        return None
    count, notes = record["instances"], Notes(record["counts"], record["maxima"], record["messages"])
    return RunReport(run.out, count, count, notes=notes, signature=run.signature)


def compute_model_digest(place: str) -> str:
    """Digest a local model's files (sizes and, up to 1 GB, contents); a Hub id stands for itself.

    Of a single file also the ``model.json`` beside it, which says how the file is to be used.
    """
    path = Path(place)
    if not path.exists():
        return hide_credentials(place)
    digest = hashlib.blake2b(digest_size=12)
    among = [path, path.with_name("model.json")] if path.is_file() else sorted(path.rglob("*"))
    for file in (file for file in among if file.is_file()):
        digest.update(f"{file.name}\x1f{os.path.getsize(file)}\x1e".encode())
        if os.path.getsize(file) <= 1 << 30:
            compute_file_digest(file, digest)
    return digest.hexdigest()
