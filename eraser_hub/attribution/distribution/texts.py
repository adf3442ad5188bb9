"""Which training texts a model's states are fitted on, and what that says of a chunk's erased inputs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import Adapter, Encoded, Notes
from eraser_hub.attribution.dataset import Split, open_split
from eraser_hub.attribution.erasure import Erased, full
from eraser_hub.attribution.instances import chunks_of
from eraser_hub.attribution.runner import Runner
from eraser_hub.metrics.fields import DISTANCES, ENTROPIES
from eraser_hub.records.errors import DataError

from .gaussian import Gaussian, entropies, fitted

CHUNK = 16  # training texts that are encoded together
Figures = list[dict[str, float]]


def training_texts(dataset: str, config: str | None, split: str, texts: int, seed: int) -> Split:
    """So many texts of the split that the model was trained on, drawn by seed with each label's share.

    Raises:
        DataError: no such split, or fewer than two texts.
    """
    rows = open_split(dataset, config, split)
    sample = rows.sample(texts, seed)
    if sum(1 for _ in islice(sample.instances(), 2)) < 2:
        words = f"--distribution: expected two texts or more in split {split}, found fewer"
        raise DataError(words, rule="empty", file=dataset)
    return sample


def fitted_on(model: Adapter, sample: Split, batch_size: int) -> Gaussian | None:
    """The distribution of the model's pooled states on these texts; None for a model that has none."""
    if not model.has_states:
        return None
    notes, model.notes = model.notes, Notes()  # what is told of texts counts those that are explained
    runner, rows = Runner(model, "remove", batch_size), list[NDArray[np.float64]]()
    for _, chunk in chunks_of(sample.instances(), CHUNK):
        encoded = [model.encode(model.seen(one)) for one in chunk]
        rows.append(runner.states(encoded, [full(number) for number in range(len(chunk))]))
    model.notes = notes
    return fitted(np.concatenate(rows))


def distances_of(
    runner: Runner,
    encoded: Sequence[Encoded],
    inputs: Sequence[Sequence[Erased]],
    probabilities: Sequence[NDArray[np.float64]],
) -> Figures:
    """For each instance how far its inputs lie from the training texts, and how unsure the model is of them.

    Args:
        runner: by its ``gaussian``; without one entropies alone.
        inputs: of each instance the whole input, it without its rationale, and the rationale alone.
        probabilities: of these, float64 (3, classes) each.
    """
    figures: Figures = [dict(zip(ENTROPIES, entropies(values).tolist(), strict=True)) for values in probabilities]
    if runner.gaussian is not None:
        states = runner.states(encoded, [one for three in inputs for one in three])
        rows = runner.gaussian.distances(states).reshape(-1, len(DISTANCES)).tolist()
        figures = [dict(zip(DISTANCES, row, strict=True)) | own for row, own in zip(rows, figures, strict=True)]
    return figures
