"""What a pipeline's classifier may read: sentences that an identifier picks, or tokens that an explainer attends to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import Adapter, Selection
from eraser_hub.attribution.erasure import NONE, full, ranking, tokens_at, top
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.runner import Runner

from .sentences import EVIDENCE, by_document, sentence_bounds, sentences_as_instances

BATCH_SIZE = 32  # inputs of full length that go through a stage together
KEPT_RESULTS = 100_000  # inputs of a stage whose results are kept, so that erased texts' equal sentences are read once


class Stage:
    """A model of a pipeline, asked for probabilities of whole texts."""

    def __init__(self, model: Adapter) -> None:
        self.model = model
        self._runner, self._kept = Runner(model, "remove", BATCH_SIZE), 0

    def probabilities(self, instances: Sequence[Instance]) -> NDArray[np.float64]:
        """Shape (instances, labels), in the order of the model's ``label_names``."""
        if self._runner.counts.inputs - self._kept > KEPT_RESULTS:
            self._runner.forget()
            self._kept = self._runner.counts.inputs
        encoded = [self.model.encode(one) for one in instances]
        return self._runner.run(encoded, [full(number) for number in range(len(encoded))])


class Selector(ABC):
    """Decides which tokens of a text the classifier reads.

    Attributes:
        model: the stage that it asks.
    """

    model: Adapter

    @abstractmethod
    def select(self, instances: Sequence[Instance]) -> list[Selection]:
        """The selection from each text; none from a text without tokens."""


class SentenceSelector(Selector):
    """The sentences that are most probably evidence (Lehman et al., 2019); of equal ones the first of the text.

    Args:
        identifier: tells :data:`sentences.SENTENCE_LABELS` apart, one sentence at a time.
        number: of sentences.
    """

    def __init__(self, identifier: Adapter, number: int) -> None:
        self.model, self.number = identifier, number
        self._stage, self._column = Stage(identifier), identifier.label_names.index(EVIDENCE)

    def select(self, instances: Sequence[Instance]) -> list[Selection]:
        sentences = [sentences_as_instances(one) for one in instances]
        flat = [sentence for each in sentences for sentence in each]
        scores = self._stage.probabilities(flat)[:, self._column] if flat else np.zeros(0)
        parts = np.split(scores, np.cumsum([len(each) for each in sentences])[:-1])
        return [self._best(one, part) for one, part in zip(instances, parts, strict=True)]

    def _best(self, one: Instance, scores: NDArray[np.float64]) -> Selection:
        bounds = sentence_bounds(one)
        chosen = [np.arange(*bounds[number]) for number in sorted(ranking(scores)[: self.number].tolist())]
        return Selection(np.concatenate([NONE, *chosen]), by_document(one, scores.tolist()))


class AttentionSelector(Selector):
    """The tokens that a classifier of the full text attends to most (Jain et al., 2020).

    Args:
        explainer: the classifier.
        share: of the text's tokens that are selected, counted by :func:`erasure.tokens_at`.
        extractor: ``top-k`` for single tokens, ``contiguous`` for the neighbours whose attention sums up to most (of
            equal ones the first).
    """

    def __init__(self, explainer: Adapter, share: float, extractor: str) -> None:
        self.model, self.share, self.extractor = explainer, share, extractor

    def select(self, instances: Sequence[Instance]) -> list[Selection]:
        encoded = [self.model.encode(one) for one in instances if one.bounds[-1]]
        rows = iter(self.model.scores("attention", encoded, [0] * len(encoded), 0)) if encoded else iter(())
        return [Selection(self._best(next(rows)) if one.bounds[-1] else NONE) for one in instances]

    def _best(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        return best_window(scores, self.share) if self.extractor == "contiguous" else top(scores, self.share)


def best_window(scores: NDArray[np.float64], share: float) -> NDArray[np.int64]:
    """The positions of ``share`` of the tokens, all in a row, whose scores sum up to most; the first of equal ones.

    >>> best_window(np.array([0.0, 3.0, 1.0, 2.0, 1.0]), 0.6)
    array([1, 2, 3])
    """
    size = tokens_at(share, len(scores))
    if not size:
        return NONE
    sums = np.convolve(scores, np.ones(size), "valid")
    most = sums.max()
    start = int(np.argmax(sums >= most - 1e-12 * max(1.0, abs(most))))  # rounding parts no equal sums
    return np.arange(start, start + size)
