"""A normal distribution of the model's states of training texts, and how far other states lie from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
RIDGE = 1e-3  # of the mean variance, added to every direction: texts may be fewer than directions


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
        """Mahalanobis distances ``sqrt((z - mean)' covariance^-1 (z - mean))``, float64 (n,): Lee et al. (2018).

        Near sqrt(width) for a state like those that it was fitted on.
        """
        white = np.linalg.solve(self.factor, (states - self.mean).T)
        return np.asarray(np.sqrt((white**2).sum(axis=0)))


def fitted(states: Matrix) -> Gaussian:
    """The mean and the covariance (n - 1) of states, with :data:`RIDGE` times the mean variance on its diagonal.

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


def entropies(probabilities: Matrix) -> Matrix:
    """Predictive entropy ``-sum p ln p`` of each row, in nats, float64 (n,)."""
    logs = np.log(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0)
    return np.asarray(0.0 - (probabilities * logs).sum(axis=1))
