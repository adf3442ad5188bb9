"""Work of one process, local or of Ray: open the model of a run, explain chunk after chunk."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice, zip_longest
from typing import Any, NamedTuple

import msgspec

from eraser_hub.records.errors import DataError
from eraser_hub.records.extras import need

from .adapter import Adapter, align_labels
from .config import ExplainConfig, Prompting
from .dataset import TRAINING, Split, open_split
from .engine import explain_chunk
from .instances import Instance
from .open import open_model
from .runner import Runner
from .settings import ExplainSettings

LOOKED_AT = 500  # rows of train that a prompt's examples are taken from


class ChunkResult(NamedTuple):
    """A chunk's number, its predictions as JSON lines, and its counts, as :class:`PartialResult` keeps them."""

    number: int
    lines: list[bytes]
    facts: dict[str, Any]


class Worker:
    """A model that explains chunks.

    Args:
        model: the model.
        settings: settings of the run.
        kind: the dataset's, see :func:`dataset.find_kind`.
        on_passes: called with the number of forward passes after each batch.
    """

    def __init__(
        self,
        model: Adapter,
        settings: ExplainSettings,
        kind: str,
        on_passes: Callable[[int], None] | None = None,
    ) -> None:
        self.settings, self.kind = settings, kind
        self.runner = Runner(model, settings.erase, settings.batch_size, on_passes)

    def explain(self, number: int, chunk: Sequence[Instance]) -> ChunkResult:
        """Explain one chunk."""
        model, counts = self.runner.model, self.runner.counts
        inputs, passes = counts.inputs, counts.passes
        predictions = explain_chunk(self.runner, list(map(model.seen, chunk)), self.settings, self.kind)
        notes = model.notes.take()
        facts = {
            "instances": len(chunk),
            "inputs": counts.inputs - inputs,
            "passes": counts.passes - passes,
            "labels": list(model.label_names),
            "counts": notes.counts,
            "maxima": notes.maxima,
            "words": notes.messages,
        }
        return ChunkResult(number, list(map(msgspec.json.encode, predictions)), facts)


def load_model(config: ExplainConfig, label_names: Sequence[str], model: Adapter | None = None) -> Adapter:
    """Open the model of a run, its labels in the dataset's order; every worker opens it alike.

    Args:
        config: the model and the data.
        label_names: the dataset's.
        model: the model, where it is open already.

    Raises:
        DataError: as :func:`open_model` and :func:`align_labels` do.
    """
    if model is None:
        if config.threads:
            limit_threads(config.threads)
        names = ("task", "trust_pickle", "trust_remote_code", "window", "device", "precision")
        options = {name: getattr(config, name) for name in names}
        prompting = add_examples(config) if config.shots else config.prompting
        model = open_model(config.model, uses_query=config.query, prompting=prompting, **options)
        if config.threads:
            limit_threads(config.threads)  # once more: opening the model has loaded libraries with threads of their own
    align_labels(model, label_names, config.labels)
    return model


def add_examples(config: ExplainConfig) -> Prompting:
    """Return how a language model is prompted, with its examples from train, the labels in turn.

    Raises:
        DataError: train has too few rows with a label; as of :func:`open_split`.
    """
    prompting = config.prompting
    by_label: dict[str, list[Instance]] = {}
    for one in islice(open_split(config.dataset, config.config, TRAINING).instances(), LOOKED_AT):
        if one.label is not None:
            by_label.setdefault(one.label, []).append(one)
    turns = zip_longest(*(by_label[label] for label in sorted(by_label)))
    examples = [one for turn in turns for one in turn if one is not None][: prompting.shots + 1]
    if len(examples) <= prompting.shots:
        message = f"expected {prompting.shots + 1} rows of train with a label (one is left out where it is explained)"
        raise DataError(f"{message}, found {len(examples)}", argument="shots")
    return replace(prompting, examples=tuple(examples))


def limit_threads(threads: int) -> None:
    """Use so many processor threads for linear algebra (results can differ in the last digit with their number)."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads)


def count_threads() -> int:
    """Count the threads of a model in this process; workers take as many, since sums differ with it."""
    if importlib.util.find_spec("torch") is None:
        return os.cpu_count() or 1
    import torch

    return int(torch.get_num_threads())


# --- the same chunks on Ray Data: one model per worker; Ray starts a killed worker anew, and asks it again ---


@contextmanager
def open_ray(**options: Any) -> Iterator[Any]:
    """Use the Ray that runs, or one of our own that ends with the block.

    Args:
        **options: Further arguments of `ray.init` for a Ray of our own.

    Yields:
        The module ``ray``.

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


CPUS_PER_WORKER = 0.5  # two whole-processor workers on two processors would leave none for the reader


def explain_on_ray(
    config: ExplainConfig,
    settings: ExplainSettings,
    split: Split,
    todo: Iterator[tuple[int, list[Instance]]],
    workers: int,
    on_passes: Callable[[int], None],
) -> Iterator[ChunkResult]:
    """Explain open chunks with ``workers`` workers; yields results in any order.

    Args:
        config: the model and the data.
        settings: settings of the run.
        split: the split to explain.
        todo: numbered chunks that are open.
        workers: number of workers.
        on_passes: called with the number of forward passes of each chunk.

    Raises:
        DataError: Ray is not installed; an error of a worker.
    """
    need("ray")
    items = [{"chunk": number, "instances": msgspec.json.encode(chunk)} for number, chunk in todo]
    if not items:
        return
    config = config if config.threads else replace(config, threads=count_threads())
    with open_ray() as ray:
        ray.data.DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        results = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
            ChunkWorker,
            fn_constructor_args=(config, settings, split.label_names, split.kind),
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

    def __init__(
        self,
        config: ExplainConfig,
        settings: ExplainSettings,
        label_names: tuple[str, ...],
        kind: str,
    ) -> None:
        self.error = ""
        try:
            self.worker = Worker(load_model(config, label_names), settings, kind)
        except DataError as error:  # the driver raises it; Ray would restart the worker forever
            self.error = str(error)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Explain the chunk of a batch."""
        lines, facts = list[str](), dict[str, Any]()
        if not self.error:
            try:
                chunk = msgspec.json.decode(batch["instances"][0], type=list[Instance])
                _, predictions, facts = self.worker.explain(0, chunk)
                lines = [line.decode("utf-8") for line in predictions]
            except DataError as error:
                self.error = str(error)
        return {"result": [msgspec.json.encode([int(batch["chunk"][0]), lines, facts, self.error])]}
