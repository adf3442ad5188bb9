"""Distance of erased inputs from the training data (out of distribution), and entropy of the predictions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError
from eraser_hub.schema.instance import DISTANCES, ENTROPIES

from ..adapter import Adapter
from ..chunk import Chunk
from ..config import ExplainConfig
from ..dataset import Split, open_split
from ..erasure import full, only, without
from ..instances import Instance, split_into_chunks
from ..measure import Fields, Measure
from ..runner import Runner

CHUNK = 16  # training texts that are encoded together
Matrix = NDArray[np.float64]
RIDGE = 1e-3  # of the mean variance, added to every direction: texts may be fewer than directions


class OodDistances(Measure):
    """Mahalanobis distances of the whole and the erased inputs' states from training texts', and entropies."""

    source = "Lee et al. 2018; Hase, Xie and Bansal 2021"
    default = 200
    enabled_by, fields = "distribution_texts", (*DISTANCES, *ENTROPIES)
    signature_format = "distribution:{0.distribution_texts}"
    ranks = erases_units = False
    gaussian: Gaussian | None = None

    def prepare(self, model: Adapter, config: ExplainConfig, settings: Any) -> str:
        """Fit the distribution of the model's states; return a note if it has none.

        Raises:
            DataError: no such split, or fewer than two texts.
        """
        sample = draw_training_texts(config, settings)
        if model.has_states:
            runner, rows = Runner(model, "remove", settings.batch_size), list[NDArray[np.float64]]()
            with model.uncounted():
                for _, chunk in split_into_chunks(sample.instances(), CHUNK):
                    rows.append(runner.states([model.encode(model.seen(one)) for one in chunk]))
            self.gaussian = fit_gaussian(np.concatenate(rows))
        no_state = f"`distribution_texts`: {model.description} has no pooled state: entropies alone, no distances"
        return no_state if self.gaussian is None else ""

    def measure(self, chunk: Chunk) -> Fields:
        """Return the entropies of each instance's three inputs, and where there are states their distances."""
        pairs = zip(chunk.full, chunk.erased, strict=True)
        rows = [compute_entropies(np.vstack([whole, part[:2]])).tolist() for whole, part in pairs]
        fields: Fields = [dict(zip(ENTROPIES, row, strict=True)) for row in rows]
        if self.gaussian is None:
            return fields
        hard = enumerate(chunk.hard)
        inputs = [one for number, at in hard for one in (full(number), without(number, at), only(number, at))]
        distances = self.gaussian.distances(chunk.runner.states(chunk.encoded, inputs)).reshape(-1, len(DISTANCES))
        return [
            dict(zip(DISTANCES, row, strict=True)) | own for row, own in zip(distances.tolist(), fields, strict=True)
        ]

    @classmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return the whole input and both erased ones."""
        return 3

    @classmethod
    def most_infilled(cls, one: Instance, units: int, settings: Any) -> int:
        """Return the erased ones."""
        return 2


def draw_training_texts(config: ExplainConfig, settings: Any) -> Split:
    """Return texts of the split that the model was trained on, drawn by seed with each label's share.

    Raises:
        DataError: no such split, or fewer than two texts.
    """
    rows = open_split(config.dataset, config.config, config.distribution_split)
    sample = rows.sample(settings.distribution_texts, settings.seed)
    if sum(1 for _ in islice(sample.instances(), 2)) < 2:
        message = f"expected two texts or more in split {config.distribution_split}, found fewer"
        raise DataError(message, rule="empty", file=config.dataset, argument="distribution_texts")
    return sample


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Mean and covariance of states.

    Attributes:
        mean: float64 (width,).
        factor: lower triangular L with ``L L' = covariance``, float64 (width, width).
    """

    mean: Matrix
    factor: Matrix

    def distances(self, states: Matrix) -> Matrix:
        """Compute Mahalanobis distances ``sqrt((z - mean)' covariance^-1 (z - mean))``, float64 (n,).

        Near sqrt(width) for a state like those that it was fitted on.
        """
        white = np.linalg.solve(self.factor, (states - self.mean).T)
        return np.asarray(np.sqrt((white**2).sum(axis=0)))


def fit_gaussian(states: Matrix) -> Gaussian:
    """Fit mean and covariance (n - 1) of states, with :data:`RIDGE` times the mean variance on its diagonal.

    Args:
        states: float64 (n, width), n at least 2.
    """
    mean = states.mean(axis=0)
    centred = states - mean
    covariance = centred.T @ centred / (len(states) - 1)
    width = len(mean)
    # states that are all alike have no spread: distances are then Euclidean
    ridge = RIDGE * float(np.trace(covariance)) / width or 1.0
    return Gaussian(mean, np.linalg.cholesky(covariance + ridge * np.eye(width)))


def compute_entropies(probabilities: Matrix) -> Matrix:
    """Compute the predictive entropy ``-sum p ln p`` of each row, in nats, float64 (n,)."""
    logs = np.log(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0)
    return np.asarray(0.0 - (probabilities * logs).sum(axis=1))
