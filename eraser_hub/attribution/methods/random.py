"""Chance, against which methods are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from ..method import Method, Scores, Search
from ..text import Text


@dataclass(frozen=True)
class Random(Method):
    """Scores drawn uniformly from 0 to 1, by seed and instance.

    Attributes:
        draws: number of draws, each in a file of its own.
    """

    needs = ()

    draws: Annotated[int, Meta(ge=1)] = 1

    def search(self, text: Text) -> Search[Scores]:
        """Ask for nothing."""
        yield from ()
        return text.random("scores").random(text.tokens)
