"""The same chunks on Ray Data: Parquet in, one model per worker, Parquet out.

The driver writes the open chunks to Parquet, one file a chunk; ``map_batches`` sends each to a worker that holds a
model. A worker writes its chunk's result as a Parquet file of its own and renames it into place, so what is done stays
done: Ray starts a killed worker anew and gives its chunk to it again, and a run that was stopped as a whole goes on.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from eraser_hub.records.errors import DataError

from .adapter import need
from .engine import Settings
from .instances import Instance, Split
from .run import Source

CPUS_PER_WORKER = 0.5  # two whole-processor workers on two processors would leave none for the reader


def explain_on_ray(
    source: Source,
    settings: Settings,
    split: Split,
    todo: Iterator[tuple[int, list[Instance]]],
    folder: Path,
    workers: int,
) -> Iterator[tuple[int, list[bytes], dict[str, Any]]]:
    """Explain open chunks with ``workers`` workers; yields finished chunks in any order.

    Args:
        folder: where input and output lie during the run, on a file system that all workers see.

    Raises:
        DataError: Ray is not installed; a worker's own error, in its words.
    """
    need("ray")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if workers < 1:
        raise DataError(f"--workers: expected at least 1, found {workers}")
    if not source.threads:
        source = replace(source, threads=threads_here())
    shutil.rmtree(folder, ignore_errors=True)
    try:
        items = _write_inputs(todo, folder)
        if items:
            yield from _finished(items, source, settings, split, folder / "out", workers)
    finally:
        # finished chunks are in the partial file by now; what is left here nobody would read again
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
        rows = orjson.dumps([_plain(one) for one in chunk]).decode()
        path = inputs / f"{number:08d}.parquet"
        pq.write_table(pa.table({"chunk": [number], "instances": [rows]}), path)
        items.append({"chunk": number, "path": str(path.resolve())})
    return items


def _finished(
    items: list[dict[str, Any]], source: Source, settings: Settings, split: Split, results: Path, workers: int
) -> Iterator[tuple[int, list[bytes], dict[str, Any]]]:
    """Chunks as workers finish them."""
    import ray

    own = not ray.is_initialized()
    if own:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        facts = {"label_names": list(split.label_names), "kind": split.kind, "results": str(results.resolve())}
        finished = (
            ray.data.from_items(items, override_num_blocks=len(items))
            .map_batches(
                ChunkWorker,
                fn_constructor_args=(source, settings, facts),
                batch_size=1,
                compute=ray.data.ActorPoolStrategy(size=min(workers, len(items))),
                num_cpus=CPUS_PER_WORKER,
            )
            .iter_batches(batch_size=1, batch_format="pyarrow", prefetch_batches=0)
        )
        try:
            for batch in finished:
                number = batch["chunk"][0].as_py()
                error = batch["error"][0].as_py()
                if error:
                    raise DataError(error)
                yield number, *_read(results, number)
        except ray.exceptions.RayError as error:
            raise DataError(f"a Ray worker failed: {str(error).strip().splitlines()[-1]}") from error
    finally:
        if own:
            ray.shutdown()


def threads_here() -> int:
    """Threads that a model takes in this process; workers take as many, since sums can differ with their number."""
    if importlib.util.find_spec("torch") is None:
        return os.cpu_count() or 1
    import torch

    return int(torch.get_num_threads())


def _plain(one: Instance) -> dict[str, Any]:
    return {
        "id": one.id, "query": one.query, "names": one.names, "documents": one.documents, "label": one.label,
        "evidence_documents": one.evidence_documents, "scores": one.scores,
    }  # fmt: skip


def _instance(row: dict[str, Any]) -> Instance:
    documents = tuple(tuple(document) for document in row["documents"])
    scores = None if row["scores"] is None else tuple(map(tuple, row["scores"]))
    return Instance(
        row["id"], tuple(row["query"]), tuple(row["names"]), documents, row["label"],
        evidence_documents=tuple(row["evidence_documents"]), scores=scores,
    )  # fmt: skip


def read_input(path: Path) -> list[Instance]:
    """A chunk's instances as the driver wrote them."""
    import pyarrow.parquet as pq

    return [_instance(row) for row in orjson.loads(pq.read_table(path)["instances"][0].as_py())]


def _read(results: Path, number: int) -> tuple[list[bytes], dict[str, Any]]:
    import pyarrow.parquet as pq

    table = pq.read_table(results / f"{number:08d}.parquet")
    facts = orjson.loads(table.schema.metadata[b"facts"])
    return [line.encode("utf-8") for line in table["prediction"].to_pylist()], facts


class ChunkWorker:
    """One worker: it opens the model when it starts, and explains the chunks that it is given."""

    def __init__(self, source: Source, settings: Settings, facts: dict[str, Any]) -> None:
        from .run import open_source
        from .runner import Runner

        self.settings, self.kind, self.results = settings, facts["kind"], Path(facts["results"])
        self.error = ""
        try:
            self.model = open_source(source, facts["label_names"])
            self.runner = Runner(self.model, settings.erase, settings.batch_size)
        except DataError as error:  # told to the driver, which raises it: Ray would start the worker again and again
            self.error = str(error)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        number = int(batch["chunk"][0])
        if not self.error:
            try:
                self._explain(number, read_input(Path(str(batch["path"][0]))))
            except DataError as error:
                self.error = str(error)
        return {"chunk": [number], "error": [self.error]}

    def _explain(self, number: int, chunk: list[Instance]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from .outputs import replacing
        from .run import finish_chunk

        lines, facts = finish_chunk(self.model, self.runner, chunk, self.settings, self.kind)
        table = pa.table({"prediction": [line.decode("utf-8") for line in lines]})
        with replacing(self.results / f"{number:08d}.parquet") as beside:
            pq.write_table(table.replace_schema_metadata({"facts": orjson.dumps(facts)}), beside)
