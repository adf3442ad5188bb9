"""What a worker does, in this process or in one of Ray's: open the model of a job, explain chunk after chunk."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from eraser_hub.records.extras import need

from .adapter import Adapter
from .distribution.gaussian import Gaussian
from .distribution.texts import fitted_on, training_texts
from .engine import explain_chunk
from .instances import Instance
from .labels import align_labels
from .open import open_model
from .runner import Runner
from .settings import ExplainSettings

if TYPE_CHECKING:
    from .transformers.infilling import Infiller


@dataclass(frozen=True, slots=True)
class Job:
    """What is explained by what.

    Attributes:
        dataset, config, split: a dataset folder or Hub id, and the part of it.
        model: a model folder, file or Hub id.
        task, trust_pickle, trust_remote_code, window, device: as for :func:`open_model`.
        labels: the dataset's name of each of the model's outputs, where the model does not say them.
        query: whether the model sees the query; None: as it was trained, and for a transformers model without such a
            record, when the queries of the split differ.
        precision: ``float32``, ``bfloat16``, ``float16``, or ``auto``: bfloat16 on a GPU that has it (transformers).
        limit: explain the first so many instances.
        sample: explain so many instances, drawn by the settings' seed with each label's share (a dataset may be sorted
            by its labels); None: all.
        sample_seed: by which a sample is drawn, in place of the settings': draws of chance explain the same texts.
        threads: processor threads of a model; 0: as many as torch takes by itself.
        scores: a predictions file whose soft rationales are taken in place of a method's; its digest is
            ``ExplainSettings.scores``.
        infill: a masked language model's folder or Hub id, which draws words for erased tokens; "" for none.
        aopc_bounds: a results file of the same model and data, whose bounds of AOPC are taken: they do not depend on
            the method; None: they are looked for.
        distribution_split: the split that the model's states are fitted on, where that is asked for.
        rationales: in place of a method: ``human``, ``model`` (its own), or a predictions file whose hard rationales
            are taken; "" for none.
    """

    dataset: str
    config: str | None
    split: str
    model: str
    task: str = "auto"
    trust_pickle: bool = False
    trust_remote_code: bool = False
    labels: tuple[str, ...] = ()
    query: bool | None = None
    window: int | None = None
    device: str | None = None
    precision: str = "auto"
    limit: int | None = None
    sample: int | None = None
    sample_seed: int | None = None
    threads: int = 0
    scores: Path | None = None
    aopc_bounds: Path | None = None
    rationales: str = ""
    infill: str = ""
    distribution_split: str = "train"


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
        kind: the dataset's, see :func:`kind_of`.
        on_passes: called with the number of forward passes after each batch.
        infiller: what draws words for erased tokens, where they are infilled.
        gaussian: of the model's states of training texts, where distances from it are asked for.
    """

    def __init__(
        self,
        model: Adapter,
        settings: ExplainSettings,
        kind: str,
        on_passes: Callable[[int], None] | None = None,
        infiller: Infiller | None = None,
        gaussian: Gaussian | None = None,
    ) -> None:
        self.settings, self.kind, self.infiller = settings, kind, infiller
        self.runner = Runner(model, settings.erase, settings.batch_size, on_passes, infiller, gaussian)

    def explain(self, number: int, chunk: Sequence[Instance]) -> ChunkResult:
        """Explain one chunk."""
        model, counts = self.runner.model, self.runner.counts
        inputs, passes = counts.inputs, counts.passes
        seen = list(map(model.seen, chunk))
        lines = list(map(orjson.dumps, explain_chunk(self.runner, seen, self.settings, self.kind)))
        notes = model.notes.take()
        if self.settings.distribution_texts and self.runner.gaussian is None:
            notes.say(f"--distribution: {model.description} has no pooled state: entropies alone, no distances")
        if self.infiller is not None:
            for words in self.infiller.notes.take().words:
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
        return ChunkResult(number, lines, facts)


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
    """:func:`infiller_of` a job."""
    return infiller_of(
        job.infill, seed, device=job.device, precision=job.precision, trust_remote_code=job.trust_remote_code
    )


def gaussian_of_job(job: Job, settings: ExplainSettings, model: Adapter) -> Gaussian | None:
    """The distribution of the model's states of training texts; None where it is not asked for, or the model has none.

    Raises:
        DataError: no such split, or fewer than two texts.
    """
    if not settings.distribution_texts:
        return None
    sample = training_texts(job.dataset, job.config, job.distribution_split, settings.distribution_texts, settings.seed)
    return fitted_on(model, sample, settings.batch_size)


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
