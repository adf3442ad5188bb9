"""Occlusion, or leave one out."""

from __future__ import annotations

import numpy as np

from ..method import Method, Scores, Search
from ..text import Text


class Occlusion(Method):
    """p of the label less p without the token, or without the sentence, whose tokens share it.

    Zeiler and Fergus 2014; Li, Monroe and Jurafsky 2016.
    """

    scores_units = True

    def search(self, text: Text) -> Search[Scores]:
        """Ask for the text without each of its units."""
        p = yield from text.ask(~np.eye(text.size, dtype=bool))
        return text.share(text.full - p)
