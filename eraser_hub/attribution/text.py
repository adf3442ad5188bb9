"""A text that is explained, and what is known of it so far: what methods and measures read."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError

from .erasure import make_generator
from .instances import Instance

if TYPE_CHECKING:
    from .method import Kept, Scores, Search
    from .models.inputs import Notes
    from .settings import ExplainSettings


@dataclass(slots=True, eq=False)
class Text:
    """A text that is explained.

    Attributes:
        instance: the instance, as the model sees it (without a query that the model does not read).
        reading: the instance in the model's own form (`Model.read`).
        settings: of the run.
        notes: counters and messages of the run, where something has to be said of this text.
        by_sequence: whether the documents are sequences that are ranked apart (the perturbation benchmark).
        p: probabilities of the labels of the whole input, float64 (labels,).
        label: the label that the scores explain, as an index.
        scores: of the tokens, as they are written, float64 (tokens,).
        sentences: per document a score of each sentence; None where sentences are not scored.
        rationale: the tokens of the rationale, ascending flat positions.
        tokens: number of tokens of all documents.
        bounds: the first token of each unit (a token, or a sentence), and the number of tokens behind them; int64
            (units + 1,), ascending.
        size: number of units.

    Raises:
        DataError: sentences are asked for, of a text that is not divided into any.
    """

    instance: Instance
    reading: Any
    settings: ExplainSettings
    notes: Notes
    by_sequence: bool = False
    p: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    label: int = -1
    scores: Scores | None = None
    sentences: tuple[tuple[float, ...], ...] | None = None
    rationale: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    tokens: int = field(init=False)
    bounds: NDArray[np.int64] = field(init=False)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.tokens, sentences = self.instance.bounds[-1], self.instance.sentences
        self.bounds = np.arange(self.tokens + 1)
        if self.settings.units == "sentences":
            if self.tokens and not sentences:
                message = "expected documents with sentences, found tokens alone"
                raise DataError(message, instance=self.instance.id, argument="units")
            self.bounds = np.cumsum([0, *chain.from_iterable(sentences)])
        self.size = len(self.bounds) - 1

    @property
    def predicted(self) -> int:
        """The predicted label, as an index."""
        return int(self.p.argmax())

    @property
    def full(self) -> float:
        """p of the explained label on the whole input."""
        return float(self.p[self.label])

    @property
    def unit_scores(self) -> Scores:
        """The sum of each unit's token scores, float64 (units,)."""
        assert self.scores is not None
        return np.add.reduceat(self.scores, self.bounds[:-1]) if self.size else np.zeros(0)

    def ask(self, units: Kept) -> Search[NDArray[np.float64]]:
        """Ask for inputs that keep these units, bool (inputs, units); return p of the label, float64 (inputs,)."""
        answers = yield self.spread(units)
        return answers[:, self.label]

    def spread(self, units: Kept) -> Kept:
        """Return flags of tokens from flags of units, (inputs, units) to (inputs, tokens)."""
        return units if self.size == self.tokens else np.repeat(units, np.diff(self.bounds), axis=-1)

    def share(self, values: NDArray[np.float64]) -> Scores:
        """Return values of units, each shared equally by its tokens: sums stay as they are."""
        sizes = np.diff(self.bounds)
        return np.repeat(values / sizes, sizes)

    def without(self, positions: NDArray[np.int64]) -> Kept:
        """Return flags of all tokens but these, bool (tokens,)."""
        kept = np.ones(self.tokens, dtype=bool)
        kept[positions] = False
        return kept

    def random(self, purpose: str) -> np.random.Generator:
        """Return the random generator of this text and purpose."""
        return make_generator(self.settings.seed, self.instance.id, purpose)
