"""A random forest over word counts."""

from __future__ import annotations

from typing import Any

from eraser_hub.systems.system import Baseline


class RandomForestSystem(Baseline):
    """A random forest over counts of words or characters; its size as in Carton et al. (2020), appendix A."""

    size, words = "n_estimators", "trees"
    sizes = (16, 32, 64, 128, 256, 512)

    def estimator(self, size: float, seed: int, warm: bool = False) -> Any:
        """Return an unfitted random forest."""
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(int(size), random_state=seed, n_jobs=1, warm_start=warm)

    def paper_estimator(self, size: float, seed: int) -> Any:
        """Return the random forest of the code of Carton et al. (2020)."""
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(int(size), random_state=seed)
