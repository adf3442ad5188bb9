"""The chunks of a run on Ray Data: one model per worker; Ray starts a killed worker anew, and asks it again."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from eraser_hub.records.errors import DataError
from eraser_hub.records.extras import need

from .instances import Instance
from .models.opening import open_model
from .predictions import explain_to_record
from .settings import ExplainSettings

CPUS_PER_WORKER = 0.5  # two whole-processor workers on two processors would leave none for the reader


def explain_on_ray(
    place: str,
    opening: Mapping[str, Any],
    settings: ExplainSettings,
    kind: str,
    chunks: Iterable[tuple[int, list[Instance]]],
    workers: int,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the record of each chunk (`explain_to_record`), in any order.

    Args:
        place: the model, which each worker opens.
        opening: arguments of `open_model`.
        settings: of the run.
        kind: of the rows.
        chunks: numbered chunks.
        workers: how many there are; those of the Ray that runs, or of one that ends with the last chunk.

    Raises:
        DataError: Ray is not installed; an error of a worker.
    """
    items = [{"chunk": number, "instances": msgspec.json.encode(chunk)} for number, chunk in chunks]
    if not items:
        return
    need("ray")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray
    from ray.exceptions import RayError

    starts = not ray.is_initialized()
    if starts:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        results = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
            ChunkWorker,
            # sums differ with the number of threads
            fn_constructor_args=(place, {"threads": count_threads(), **opening}, settings, kind),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=min(workers, len(items))),
            num_cpus=CPUS_PER_WORKER,
        )
        for batch in results.iter_batches(batch_size=1, batch_format="pyarrow", prefetch_batches=0):
            record = msgspec.json.decode(batch["result"][0].as_py())
            if "error" in record:
                raise DataError(record["error"])
            yield record.pop("chunk"), record
    except RayError as error:
        raise DataError(f"a Ray worker failed: {str(error).strip().splitlines()[-1]}") from error
    finally:
        if starts:
            ray.shutdown()


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
        record: dict[str, Any] = {"chunk": int(batch["chunk"][0])}
        try:
            if self.error:
                raise DataError(self.error)
            chunk = msgspec.json.decode(batch["instances"][0], type=list[Instance])
            record |= explain_to_record(self.model, chunk, self.settings, self.kind)
        except DataError as error:
            record["error"] = str(error)
        return {"result": [msgspec.json.encode(record)]}


def count_threads() -> int:
    """Return the number of threads of a model in this process."""
    if importlib.util.find_spec("torch") is None:
        return os.cpu_count() or 1
    import torch

    return int(torch.get_num_threads())
