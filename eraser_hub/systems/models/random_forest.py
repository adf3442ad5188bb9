"""A random forest over counted words."""

from __future__ import annotations

from typing import Any

from eraser_hub.systems.system import Baseline


class RandomForestSystem(Baseline):
    """A random forest over counted words or characters; its trees are chosen as Carton 2020 does (appendix A)."""

    paper = "Carton et al. (2020)"
    size, words = "n_estimators", "trees"
    sizes = (16, 32, 64, 128, 256, 512)

    def estimator(self, size: float, seed: int, warm: bool = False) -> Any:
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(int(size), random_state=seed, n_jobs=1, warm_start=warm)

    def paper_estimator(self, size: float, seed: int) -> Any:
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(int(size), random_state=seed)
