"""A selector and a classifier of what it selects, as one model of ``explain``; what the classifier may read.

A selector gives sentences that an identifier picks, or tokens that an explainer attends to. A pipeline's folder holds
``config.json`` with every hyper-parameter, and a folder for each stage, a model of its own.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import Adapter, Encoded, Selection, View, align_labels
from eraser_hub.attribution.erasure import NONE, full, ranking, tokens_at, top
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.runner import Runner
from eraser_hub.records.errors import DataError, shown

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


@dataclass(slots=True)
class Whole(Encoded):
    """An instance; an erased one is the instance without the erased tokens, from which is selected anew."""

    instance: Instance

    def view(self, kept: NDArray[np.bool_], erase: str) -> View:
        if erase != "remove":
            words = f"`erase` {erase}: a pipeline cuts its extract out of the text; use `erase` remove"
            raise DataError(words, rule="unsupported")
        left = self.instance.only(kept)
        digest = hashlib.blake2b(repr((left.query, left.documents, left.sentences)).encode(), digest_size=16).digest()
        return View((digest,), (len(left.query) + left.bounds[-1],), left)


class RationalePipeline(Adapter):
    """A pipeline: of every text, erased ones too, the classifier reads the extract alone.

    Args:
        selector: decides what the extract is.
        classifier: its labels are the pipeline's.
        uses_query: whether any of the two sees the query.
    """

    selects = True

    def __init__(self, selector: Selector, classifier: Adapter, *, uses_query: bool, description: str) -> None:
        super().__init__()
        align_labels(classifier, ())
        self.selector, self._classifier = selector, Stage(classifier)
        self.label_names, self.uses_query, self.description = classifier.label_names, uses_query, description
        for stage in (selector.model, classifier):
            stage.notes = self.notes  # what happens in a stage happens in the pipeline

    def encode(self, instance: Instance) -> Whole:
        return Whole(instance)

    def forward(self, units: Sequence[tuple[View, int]]) -> NDArray[np.float64]:
        instances = [view.data for view, _ in units]
        return self._classifier.probabilities(
            [extract(one, selection) for one, selection in zip(instances, self.selector.select(instances), strict=True)]
        )

    def selections(self, encoded: Sequence[Encoded]) -> list[Selection]:
        return self.selector.select([one.instance for one in encoded])


def extract(instance: Instance, selection: Selection) -> Instance:
    """What the classifier reads: the selected tokens, and the query."""
    kept = np.zeros(instance.bounds[-1], dtype=bool)
    kept[selection.positions] = True
    return instance.only(kept)


def pipeline_of(folder: Path, stages: Mapping[str, Adapter], uses_query: bool | None) -> RationalePipeline:
    """A pipeline of opened stages, as the folder's ``config.json`` says.

    Args:
        uses_query: None: as it was trained.

    Raises:
        DataError: a ``config.json`` that is missing or damaged, or of other stages.
    """
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text("utf-8"))
        hyper = config["hyper"]
        selector: Selector
        if "identifier" in stages:
            selector = SentenceSelector(stages["identifier"], hyper["sentences"])
        else:
            selector = AttentionSelector(stages["explainer"], hyper["share"], hyper["extractor"])
        asks = config["uses_query"] if uses_query is None else uses_query
        return RationalePipeline(
            selector, stages["classifier"], uses_query=asks, description=f"{config['system']} {folder.name}"
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        words = f"expected a pipeline's config.json, found {shown(str(error))}"
        raise DataError(words, rule="model", file=path) from error
