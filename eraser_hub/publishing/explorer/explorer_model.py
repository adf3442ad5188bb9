"""A small real model: logistic regression over word counts, which answers erased texts at once."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np


class WordCountModel:
    """Logistic regression over the counts of lower-case tokens, trained on the samples.

    Args:
        file: ``labels`` (L), ``intercepts`` (L), ``weights``, word -> (L), and ``texts``, the number it was trained on.
    """

    def __init__(self, file: Mapping[str, Any]) -> None:
        self.labels: list[str] = list(file["labels"])
        self.texts = int(file["texts"])
        self._intercepts = np.asarray(file["intercepts"], dtype=float)
        self._weights = {word: np.asarray(weights, dtype=float) for word, weights in file["weights"].items()}
        self._none = np.zeros(len(self.labels))

    def count_known(self, tokens: Sequence[str]) -> int:
        """Count the tokens that the model has a weight for."""
        return sum(token.lower() in self._weights for token in tokens)

    def predict(self, tokens: Sequence[str], kept: Collection[int] | None = None) -> dict[str, float]:
        """Return label -> probability.

        Args:
            tokens: The tokens of the text.
            kept: The positions of the tokens that stay; all by default.
        """
        places = range(len(tokens)) if kept is None else sorted(kept)
        logits = self._intercepts.copy()
        for at in places:
            logits += self._weights.get(tokens[at].lower(), self._none)
        powers = np.exp(logits - logits.max())
        return dict(zip(self.labels, (powers / powers.sum()).tolist(), strict=True))

    def explain(self, tokens: Sequence[str]) -> list[float]:
        """Return a score for each token: its share in the logit of the predicted label, over the others' mean.

        Returns:
            Scores in [0, 1], 1 for the token that speaks most for the label, 0 for all that speak against it.
        """
        scores = self.predict(tokens)
        chosen = self.labels.index(max(scores, key=lambda label: scores[label]))
        others = [at for at in range(len(self.labels)) if at != chosen]
        weights = [self._weights.get(token.lower(), self._none) for token in tokens]
        shares = [max(float(row[chosen] - row[others].mean()), 0.0) for row in weights]
        return [round(share / (max(shares) or 1.0), 3) for share in shares]


def read_models(folder: Path) -> dict[str, WordCountModel]:
    """Return config -> model, of ``model.json``."""
    files = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    return {config: WordCountModel(file) for config, file in files.items()}
