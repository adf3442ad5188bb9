"""Integrated gradients."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..instances import Instance
from ..method import InsideMethod, Setting


class IntegratedGradients(InsideMethod):
    """The gradient of p along the line from a baseline to the input, times their difference."""

    source = "Sundararajan, Taly and Yan 2017"
    settings: ClassVar = {"steps": Setting(300, "Steps of the integral.", 1, field="steps")}
    signature_format = "steps:{0.steps}|baseline:{0.choices.baseline}"

    @classmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return a pass a step."""
        return int(settings.steps)


@cache
def make_path_points(steps: int, integral: str = "gauss-legendre") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points and weights on [0, 1]: Gauss-Legendre, or the trapezoid rule with both ends.

    Kept, since to find 300 of them takes longer than a small model's passes.
    """
    if integral == "trapezoid" and steps > 1:
        shares = np.full(steps, 1 / (steps - 1))
        shares[[0, -1]] /= 2
        return np.linspace(0, 1, steps), shares
    points, weights = np.polynomial.legendre.leggauss(steps)
    return (1 + points) / 2, weights / 2
