"""The chunks of a run on Ray Data: one model per worker; Ray starts a killed worker anew, and asks it again."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from eraser_hub.records.errors import DataError
from eraser_hub.records.extras import need

from .instances import Instance
from .models.opening import open_model
from .run import ChunkResult, OnPasses, Run, explain_one_chunk
from .settings import ExplainSettings

CPUS_PER_WORKER = 0.5  # two whole-processor workers on two processors would leave none for the reader


@contextmanager
def open_ray(**options: Any) -> Iterator[Any]:
    """Use the Ray that runs, or one of our own (`ray.init` with the options) that ends with the block.

    Raises:
        DataError: Ray is not installed; a worker failed, with the worker's own error if that is a DataError.
    """
    need("ray")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray
    from ray.exceptions import RayError

    starts = not ray.is_initialized()
    if starts:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, **options)
    try:
        yield ray
    except RayError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, DataError):
            raise cause from None
        raise DataError(f"a Ray worker failed: {str(error).strip().splitlines()[-1]}") from error
    finally:
        if starts:
            ray.shutdown()


def explain_on_ray(
    run: Run, todo: Iterator[tuple[int, list[Instance]]], on_passes: OnPasses, *, workers: int
) -> Iterator[ChunkResult]:
    """Explain numbered chunks with ``workers`` workers; yields results in any order.

    Raises:
        DataError: Ray is not installed; an error of a worker.
    """
    items = [{"chunk": number, "instances": msgspec.json.encode(chunk)} for number, chunk in todo]
    if not items:
        return
    opening = {"threads": count_threads(), **run.opening}  # sums differ with the number of threads
    with open_ray() as ray:
        ray.data.DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        results = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
            ChunkWorker,
            fn_constructor_args=(run.place, opening, run.settings, run.split.kind),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=min(workers, len(items))),
            num_cpus=CPUS_PER_WORKER,
        )
        for batch in results.iter_batches(batch_size=1, batch_format="pyarrow", prefetch_batches=0):
            number, lines, facts, error = msgspec.json.decode(batch["result"][0].as_py())
            if error:
                raise DataError(error)
            on_passes(facts["passes"])
            yield ChunkResult(number, [line.encode("utf-8") for line in lines], facts)


class ChunkWorker:
    """One worker of Ray's: it opens the model when it starts, and explains the chunks that it gets."""

    def __init__(self, place: str, opening: Mapping[str, Any], settings: ExplainSettings, kind: str) -> None:
        self.error, self.settings, self.kind = "", settings, kind
        try:
            self.model = open_model(place, **opening)
        except DataError as error:  # the driver raises it; Ray would restart the worker forever
            self.error = str(error)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Explain the chunk of a batch."""
        number, lines, facts = int(batch["chunk"][0]), list[str](), dict[str, Any]()
        if not self.error:
            try:
                chunk = msgspec.json.decode(batch["instances"][0], type=list[Instance])
                result = explain_one_chunk(self.model, number, chunk, self.settings, self.kind)
                lines, facts = [line.decode("utf-8") for line in result.lines], result.facts
            except DataError as error:
                self.error = str(error)
        return {"result": [msgspec.json.encode([number, lines, facts, self.error])]}


def count_threads() -> int:
    """Return the number of threads of a model in this process."""
    if importlib.util.find_spec("torch") is None:
        return os.cpu_count() or 1
    import torch

    return int(torch.get_num_threads())
