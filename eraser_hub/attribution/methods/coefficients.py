"""Coefficients of a linear model."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine import Engine
from ..method import Method, Scores
from ..text import Text


class Coefficients(Method):
    """Each token's share of a linear model's weighted features, in closed form."""

    needs = ("coefficients",)

    def scores(self, texts: Sequence[Text], engine: Engine) -> list[Scores]:
        """Return the shares of each text's tokens."""
        return engine.model.coefficients(texts)
