"""What a worker does, in this process or in one of Ray's: open the model of a job, explain chunk after chunk."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from eraser_hub.records.extras import need

from .adapter import Adapter
from .engine import explain_chunk
from .instances import Instance
from .job import Job
from .labels import align_labels
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
