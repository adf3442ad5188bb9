"""What a worker does, in this process or in one of Ray's: open the model of a job, explain chunk after chunk."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import orjson

from eraser_hub.records.atomic import replacing
from eraser_hub.records.errors import DataError
from eraser_hub.records.extras import need

from .adapter import Adapter, align_labels
from .dataset import Split
from .engine import explain_chunk
from .instances import Instance
from .job import Job
from .open import open_model
from .runner import Runner
from .settings import ExplainSettings

if TYPE_CHECKING:
    from .transformers.infilling import Infiller


class ChunkResult(NamedTuple):
    """A chunk's number, its predictions as JSON lines, and what was counted: what :class:`Partial` keeps.

    The lines of the first way of erasing come first, then those of the second, and so on.
    """

    number: int
    lines: list[bytes]
    facts: dict[str, Any]


class Worker:
    """A model that explains chunks.

    Args:
        job, settings: what is explained by what, and how.
        kind: the dataset's, see :func:`dataset.kind_of`.
        on_passes: called with the number of forward passes after each batch.
        infiller: what draws words for erased tokens, where they are infilled.

    Raises:
        DataError: what a measure needs and does not get.
    """

    def __init__(
        self,
        model: Adapter,
        job: Job,
        settings: ExplainSettings,
        kind: str,
        on_passes: Callable[[int], None] | None = None,
        infiller: Infiller | None = None,
    ) -> None:
        self.settings, self.kind, self.infiller = settings, kind, infiller
        self.runner = Runner(model, settings.erase, settings.batch_size, on_passes, infiller)
        self.measures = [measure() for measure in settings.measures]
        self.words = [measure.prepare(model, job, settings) for measure in self.measures]

    def explain(self, number: int, chunk: Sequence[Instance]) -> ChunkResult:
        """Explain one chunk."""
        model, counts = self.runner.model, self.runner.counts
        inputs, passes = counts.inputs, counts.passes
        predictions = explain_chunk(self.runner, list(map(model.seen, chunk)), self.settings, self.kind, self.measures)
        notes = model.notes.take()
        filled = [] if self.infiller is None else self.infiller.notes.take().words
        for words in filter(None, (*self.words, *filled)):
            notes.say(words)
        facts = {
            "instances": len(chunk),
            "inputs": counts.inputs - inputs,
            "passes": counts.passes - passes,
            "labels": list(model.label_names),
            "counts": notes.counts,
            "maxima": notes.maxima,
            "words": notes.words,
        }
        return ChunkResult(number, list(map(orjson.dumps, predictions)), facts)


def model_of(job: Job, label_names: Sequence[str]) -> Adapter:
    """The model of a job, its labels brought into the dataset's order; every worker opens it alike.

    Raises:
        DataError: what :func:`open_model` and :func:`align_labels` refuse.
    """
    if job.threads:
        limit_threads(job.threads)
    model = open_model(
        job.model,
        task=job.task,
        trust_pickle=job.trust_pickle,
        uses_query=job.query,
        window=job.window,
        device=job.device,
        precision=job.precision,
        trust_remote_code=job.trust_remote_code,
    )
    if job.threads:
        limit_threads(job.threads)  # once more: opening the model has loaded libraries with threads of their own
    align_labels(model, label_names, job.labels)
    return model


def infiller_of(
    model: str | Path, seed: int, *, device: str | None = None, precision: str = "auto", trust_remote_code: bool = False
) -> Infiller | None:
    """The masked language model that draws words for erased tokens; None where none is asked for.

    Args:
        device, precision, trust_remote_code: as of :class:`Job`.

    Raises:
        DataError: missing packages; it cannot be opened, or is no masked language model.
    """
    if not model:
        return None
    need("torch", "transformers")
    from .transformers.infilling import open_infiller

    return open_infiller(str(model), seed, device=device, precision=precision, trust_remote_code=trust_remote_code)


def infiller_of_job(job: Job, seed: int) -> Infiller | None:
    """Return :func:`infiller_of` a job."""
    how = {"device": job.device, "precision": job.precision, "trust_remote_code": job.trust_remote_code}
    return infiller_of(job.infill, seed, **how)  # type: ignore[arg-type]


def limit_threads(threads: int) -> None:
    """Use so many processor threads for linear algebra (results can differ in the last digit with their number)."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads)


def threads_here() -> int:
    """Threads that a model takes in this process; workers take as many, since sums can differ with their number."""
    if importlib.util.find_spec("torch") is None:
        return os.cpu_count() or 1
    import torch

    return int(torch.get_num_threads())


# --- the same chunks on Ray Data: Parquet in, one model per worker, Parquet out ---
# The driver writes the open chunks to Parquet, one file a chunk; a worker writes its chunk's result as a file of its
# own and renames it into place: Ray starts a killed worker anew, and a run that was stopped as a whole goes on.

CPUS_PER_WORKER = 0.5  # two whole-processor workers on two processors would leave none for the reader


def explain_on_ray(
    job: Job,
    settings: ExplainSettings,
    split: Split,
    todo: Iterator[tuple[int, list[Instance]]],
    folder: Path,
    workers: int,
    on_passes: Callable[[int], None],
) -> Iterator[ChunkResult]:
    """Explain open chunks with ``workers`` workers; yields results in any order.

    Args:
        folder: where input and output lie during the run, on a file system that all workers see.
        on_passes: called with the number of forward passes of each chunk.

    Raises:
        DataError: Ray is not installed; a worker's own error, in its words.
    """
    need("ray")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if workers < 1:
        raise DataError(f"expected at least 1, found {workers}", argument="workers", rule="option-value")
    if not job.threads:
        job = replace(job, threads=threads_here())
    shutil.rmtree(folder, ignore_errors=True)
    try:
        items = _write_inputs(todo, folder)
        for result in _results(items, job, settings, split, folder / "out", workers) if items else ():
            on_passes(result.facts["passes"])
            yield result
    finally:
        # the results are in the partial file by now; what is left here nobody would read again
        shutil.rmtree(folder, ignore_errors=True)


def _write_inputs(todo: Iterator[tuple[int, list[Instance]]], folder: Path) -> list[dict[str, Any]]:
    """The open chunks as Parquet files, one each; gives their numbers and paths."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    inputs = folder / "in"
    inputs.mkdir(parents=True)
    (folder / "out").mkdir()
    items = []
    for number, chunk in todo:
        # predictions do not depend on gold rationales
        rows = msgspec.json.encode(list(chunk)).decode()
        path = inputs / f"{number:08d}.parquet"
        pq.write_table(pa.table({"chunk": [number], "instances": [rows]}), path)
        items.append({"chunk": number, "path": str(path.resolve())})
    return items


def _results(
    items: list[dict[str, Any]], job: Job, settings: ExplainSettings, split: Split, folder: Path, workers: int
) -> Iterator[ChunkResult]:
    """Chunks as workers finish them."""
    import ray
    from ray.exceptions import RayError

    starts = not ray.is_initialized()
    if starts:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        results = (
            ray.data.from_items(items, override_num_blocks=len(items))
            .map_batches(
                ChunkWorker,
                fn_constructor_args=(job, settings, split.label_names, split.kind, folder.resolve()),
                batch_size=1,
                compute=ray.data.ActorPoolStrategy(size=min(workers, len(items))),
                num_cpus=CPUS_PER_WORKER,
            )
            .iter_batches(batch_size=1, batch_format="pyarrow", prefetch_batches=0)
        )
        try:
            for batch in results:
                number = batch["chunk"][0].as_py()
                error, rule = batch["error"][0].as_py(), batch["rule"][0].as_py()
                if error:
                    raise DataError(error, rule=rule)
                yield _read(folder, number)
        except RayError as error:
            raise DataError(f"a Ray worker failed: {str(error).strip().splitlines()[-1]}", rule="device") from error
    finally:
        if starts:
            ray.shutdown()


def _read(folder: Path, number: int) -> ChunkResult:
    """A chunk's result as its worker wrote it."""
    import pyarrow.parquet as pq

    table = pq.read_table(folder / f"{number:08d}.parquet")
    lines = [line.encode("utf-8") for line in table["prediction"].to_pylist()]
    return ChunkResult(number, lines, orjson.loads(table.schema.metadata[b"facts"]))


class ChunkWorker:
    """One worker of Ray's: it opens the model when it starts, and explains the chunks that it gets."""

    def __init__(
        self, job: Job, settings: ExplainSettings, label_names: tuple[str, ...], kind: str, folder: Path
    ) -> None:
        self.folder = folder
        self.error, self.rule = "", ""
        try:
            infiller = infiller_of_job(job, settings.seed)
            self.worker = Worker(model_of(job, label_names), job, settings, kind, infiller=infiller)
        except DataError as error:  # told to the driver, which raises it: Ray would start the worker again and again
            self.error, self.rule = str(error), error.rule

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        number = int(batch["chunk"][0])
        if not self.error:
            try:
                self._explain(number, Path(str(batch["path"][0])))
            except DataError as error:
                self.error, self.rule = str(error), error.rule
        return {"chunk": [number], "error": [self.error], "rule": [self.rule]}

    def _explain(self, number: int, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        chunk = msgspec.json.decode(pq.read_table(path)["instances"][0].as_py(), type=list[Instance])
        result = self.worker.explain(number, chunk)
        table = pa.table({"prediction": [line.decode("utf-8") for line in result.lines]})
        with replacing(self.folder / f"{number:08d}.parquet") as beside:
            pq.write_table(table.replace_schema_metadata({"facts": orjson.dumps(result.facts)}), beside)
