"""Attention weights."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine import Engine
from ..method import Method, Scores
from ..text import Text


class Attention(Method):
    """Attention of the last layer to each token, the mean over heads, without sign.

    DeYoung et al. 2020, ERASER.
    """

    needs = ("attention",)
    normalised = True

    def scores(self, texts: Sequence[Text], engine: Engine) -> list[Scores]:
        """Return the model's attention to each text's tokens."""
        return engine.model.attention(texts)
