"""Logistic regression over word counts."""

from __future__ import annotations

from typing import Any

from eraser_hub.papers.presets import load_preset
from eraser_hub.systems.system import CARTON, Baseline


class LogisticRegressionSystem(Baseline):
    """Logistic regression over counts of words or characters; C as in Carton et al. (2020), appendix A."""

    size, words = "C", "C"
    sizes = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)

    def estimator(self, size: float, seed: int, warm: bool = False) -> Any:
        """Return an unfitted logistic regression."""
        from sklearn.linear_model import LogisticRegression

        # few large steps: a third of the time that lbfgs takes on long sparse texts
        return LogisticRegression(C=size, solver="newton-cg", max_iter=2000, random_state=seed, warm_start=warm)

    def paper_estimator(self, size: float, seed: int) -> Any:
        """Return the logistic regression of the code of Carton et al. (2020)."""
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=size, max_iter=load_preset(CARTON).training["max_iter"], random_state=seed)
