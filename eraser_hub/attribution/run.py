"""The runs of one call of ``explain``: each training of a model, each method, each draw has a file of its own."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from eraser_hub.metrics.errors import hide_credentials
from eraser_hub.papers import AOPC_THRESHOLDS
from eraser_hub.papers.presets import load_preset
from eraser_hub.records.errors import DataError
from eraser_hub.records.files import OutputWriter, compute_file_digest
from eraser_hub.records.predictions import find_inputs, make_seed_path, write_run

from .dataset import KD_SOURCES, Split, find_kd, has_different_queries, open_split
from .given import Given, open_given
from .instances import Instance, split_into_chunks
from .method import METHODS, Method
from .methods.random import Random
from .models.inputs import Notes
from .models.model import Model
from .models.opening import find_trainings, open_model, read_facts, split_model
from .outputs import check_format, open_partial_result, refuse_other, write_predictions
from .predictions import explain_to_record
from .ray_data import explain_on_ray
from .settings import FILE, HUMAN, MODEL, ExplainSettings, build_settings, find_preset

OnProgress = Callable[[int, int], None]


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
        given: rationales or scores of a file; None for none.
        limit: number of instances; None for all.
        messages: what the reader of the results has to know of the data.
    """

    split: Split
    model: Model
    place: str
    opening: Mapping[str, Any]
    settings: ExplainSettings
    out: Path
    given: Given | None
    limit: int | None
    messages: list[str]

    def instances(self) -> Iterator[Instance]:
        """Return the instances to explain, with their given rationales or scores."""
        instances = islice(self.split.instances(), self.limit)
        if self.settings.rationales == HUMAN:
            return (instance for instance in instances if instance.has_rationale)
        return instances if self.given is None else map(self.given.attach, instances)

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

    def __str__(self) -> str:
        fresh = self.instances - self.resumed
        resumed = f", {self.resumed} of them from the stopped run" if self.resumed else ""
        lines = [f"{self.out}: {self.instances} instances{resumed}"]
        if fresh and self.seconds > 0:
            rates = f"{fresh / self.seconds:.1f} instances/s, {self.passes / self.seconds:.0f} forward passes/s"
            lines.append(f"{rates} ({self.passes} passes for {self.inputs} inputs, {self.seconds:.1f} s)")
        lines += [f"{number} {name}" for name, number in self.notes.counts.items()]
        lines += [f"{name}: {value:.2g}" for name, value in self.notes.maxima.items()]
        return "\n".join([*lines, *self.notes.messages, self.signature])


def explain_split(
    model: Any,
    dataset: str,
    out: Path,
    *,
    config: str | None,
    split_name: str,
    limit: int | None,
    sample: int | None,
    methods: Sequence[str | Method],
    rationales: str,
    scores: str,
    label_names: Sequence[str],
    workers: int,
    resume: bool,
    force: bool,
    on_progress: OnProgress,
    paper: str,
    seed: int,
    **options: Any,
) -> list[RunReport]:
    """Explain a split by each method and training, into a file each; arguments as of `explain`.

    All places are looked at before the first model is opened, which is opened once for all of its runs.
    """
    named = isinstance(model, str | os.PathLike)
    kind = type(model[0] if isinstance(model, tuple) and model else model)  # a network, beside its tokenizer
    place = os.fspath(model) if named else f"{kind.__module__}.{kind.__qualname__}"
    if not named and (resume or workers):  # no record tells one object from another
        message = f"expected a model's path or id beside it, found an object, {type(model).__name__}"
        raise DataError(message, argument="resume" if resume else "workers")
    plans, trainings = plan_files(methods, out), list[tuple[int | None, str]]()
    trainings += find_trainings(place) if named else []
    trainings = trainings or [(None, place)]
    writer = OutputWriter(find_inputs(dataset, scores, rationales, place if named else None), force)
    for training, _ in trainings:
        for *_, path in plans:
            check_format(path if training is None else make_seed_path(path, training), writer, resume)
    if not (methods or rationales or scores):
        rationales = find_preset(paper).rationales
    options |= {"scores": FILE if scores else ""}
    options["rationales"] = rationales if rationales in ("", HUMAN, MODEL) else FILE
    for method, *_ in plans:  # what neither data nor model can mend is told before they are opened
        build_settings(paper, method=method, seed=seed, **options)
    split = open_split(dataset, config, split_name)
    split = split if sample is None else split.sample(sample, seed)
    given, notes = None, list[str]()
    if options["rationales"] == HUMAN:
        notes += check_marked(islice(split.instances(), limit))
    elif FILE in (options["rationales"], options["scores"]):
        given = open_given(rationales or scores, "rationales" if rationales else "scores", split.kind)
        given.check(islice(split.instances(), limit), partly=limit is not None or sample is not None)
        options["digest"] = given.digest
    reports, draws = [], 1 + max(draw for _, draw, _ in plans)
    for number, (training, folder) in enumerate(trainings):
        opening: dict[str, Any] = {"label_names": split.label_names, "config": split.config}
        opening |= {"labels": tuple(label_names)} if len(label_names) else {}
        # queries are shown if they differ, but where the training says it; a file without its record takes texts alone
        if "uses_query" not in read_facts(folder) and not Path(split_model(folder)[0]).is_file():
            opening["uses_query"] = has_different_queries(split)
        opened = open_model(folder if named else model, **opening)
        for method, draw, path in plans:
            own_seed = seed + number * draws + draw  # no draw of a training is one of another
            settings, messages = complete_settings(
                split, opened, folder, paper, method=method, seed=own_seed, **options
            )
            run = Run(
                split=split,
                model=opened,
                place=folder,
                opening=opening,
                settings=settings,
                out=path if training is None else make_seed_path(path, training),
                given=given,
                limit=limit,
                messages=notes + messages,
            )
            reports.append(execute(run, writer, resume, workers, on_progress))
    return reports


def plan_files(methods: Sequence[str | Method], out: Path) -> list[tuple[str | Method | None, int, Path]]:
    """Return method, draw and file of each run: OUT.METHOD.jsonl of several methods, OUT.draw-01.jsonl of draws.

    Raises:
        DataError: a method twice, or one that there is not.
    """
    plans: list[tuple[str | Method | None, int, Path]] = []
    names = list[str]()
    for method in methods:
        made = method if isinstance(method, Method) else METHODS.make(method, "method")
        name = METHODS.name_of(type(made))
        if name in names:
            raise DataError(f"expected each method once, found {name} again", argument="method")
        names.append(name)
        path = out.with_name(f"{out.stem}.{name}{out.suffix}") if len(methods) > 1 else out
        if isinstance(made, Random) and made.draws > 1:
            files = [path.with_name(f"{path.stem}.draw-{draw:02d}{path.suffix}") for draw in range(1, made.draws + 1)]
            plans += [(Random(), draw, file) for draw, file in enumerate(files)]
        else:
            plans.append((method, 0, path))
    return plans or [(None, 0, out)]


def check_marked(instances: Iterator[Instance]) -> list[str]:
    """Return a message on instances without a human rationale, where there are any.

    Raises:
        DataError: no instance has one.
    """
    marked = [instance.has_rationale for instance in instances]
    if not any(marked):
        raise DataError(f"human: none of {len(marked)} instances has a human rationale", argument="rationales")
    lacking = marked.count(False)
    return [f"{lacking} of {len(marked)} instances without a human rationale, left out"] if lacking else []


def complete_settings(
    split: Split, model: Model, place: str, paper: str, **options: Any
) -> tuple[ExplainSettings, list[str]]:
    """Return the settings of a run, which data and model complete, and messages for the reader of its results.

    Args:
        split: the split that is explained.
        model: the model.
        place: what names the model.
        paper: whose choices are made; "" for ours.
        **options: as of :func:`settings.build_settings`.

    Raises:
        DataError: settings that go together neither with the data nor with the model.
    """
    settings = build_settings(paper, config=split.config, embeds=model.embeds, selects=model.selects, **options)
    messages = []
    if paper and read_facts(place).get("paper") != paper:
        messages.append(f"the model was not trained with `paper` {paper}: taken as it is")
    if not settings.rationales and options.get("kd") is None and split.config not in load_preset(paper).kd:
        kd, source = find_kd(split)
        settings = replace(settings, kd=kd, kd_source=source)
        messages.append(f"kd {kd:g}: {KD_SOURCES[source]}")
    if settings.bins not in ((), AOPC_THRESHOLDS):
        messages.append("to score these bins, set aopc_thresholds to " + " ".join(f"{x:g}" for x in settings.bins))
    if settings.method is not None:
        settings.method.check(model)
    return settings.for_pairs() if split.kind == "perturbation" else settings, messages


def execute(run: Run, writer: OutputWriter, resume: bool, workers: int, on_progress: OnProgress) -> RunReport:
    """Explain what is open of a run, and write predictions and the run's record.

    Args:
        run: the run.
        writer: the writer of its file.
        resume: go on with a stopped run of the same settings, model and data.
        workers: number of Ray workers; 0: none.
        on_progress: called with (instances, forward passes) as they are done.

    Raises:
        DataError: a stopped run or a result that was made otherwise; no instances.
    """
    header = run.header()
    before = refuse_other(run.out, header, writer.force)
    if resume and before:
        count = before["instances"]
        return RunReport(run.out, count, count, notes=msgspec.convert(before, Notes), signature=run.signature)
    with open_partial_result(run.out, header, resume) as partial_result:
        resumed, start = sum(record["instances"] for record in partial_result.records()), time.perf_counter()
        numbered = split_into_chunks(run.instances(), run.settings.chunk)
        chunks = (chunk for chunk in numbered if chunk[0] not in partial_result.places)
        how = (run.settings, run.split.kind)
        if workers:
            made = explain_on_ray(run.place, run.opening, *how, chunks, workers)
        else:
            on_passes = partial(on_progress, 0)
            made = ((number, explain_to_record(run.model, chunk, *how, on_passes)) for number, chunk in chunks)
        inputs = passes = 0
        for number, record in made:
            partial_result.append(number, record)
            inputs, passes = inputs + record["inputs"], passes + record["passes"]
            on_progress(record["instances"], record["passes"] if workers else 0)
        notes, count = Notes(messages=list(run.messages)), 0
        for record in partial_result.records():
            notes.add(msgspec.convert(record, Notes))
            count += record["instances"]
        if not count:
            raise DataError("expected instances to explain, found none", file=run.split.name)
        lines = chain.from_iterable(record["predictions"] for record in partial_result.records())
        write_predictions(run.out, lines, writer)
        write_run(run.out, {"signature": run.signature, **header, "instances": count, **asdict(notes)})
    return RunReport(run.out, count, resumed, inputs, passes, time.perf_counter() - start, notes, run.signature)


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
