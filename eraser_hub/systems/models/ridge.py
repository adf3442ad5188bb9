"""Ridge regression over word counts."""

from __future__ import annotations

from typing import Any

from eraser_hub.schema.label_tasks import REGRESSION
from eraser_hub.systems.system import Baseline


class RidgeSystem(Baseline):
    """Ridge regression of a number over counts of words or characters."""

    label_tasks = (REGRESSION,)
    size, words = "alpha", "alpha"
    sizes = (1000.0, 100.0, 10.0, 1.0, 0.1, 0.01)

    def estimator(self, size: float, seed: int, warm: bool = False) -> Any:
        """Return an unfitted ridge regression."""
        from sklearn.linear_model import Ridge

        return Ridge(alpha=size, solver="sparse_cg", tol=1e-10, max_iter=10_000)

    def paper_estimator(self, size: float, seed: int) -> Any:
        """Return the same: no paper's code has one."""
        return self.estimator(size, seed)
