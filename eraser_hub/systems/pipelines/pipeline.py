"""A selector and a classifier of what it selects, as one model of ``explain``; what the classifier may read.

A selector gives sentences that an identifier picks, or tokens that an explainer attends to. A pipeline's folder holds
``config.json`` with every hyper-parameter, and a folder for each stage, a model of its own.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import Adapter, Encoded, Selection, View, align_labels
from eraser_hub.attribution.erasure import NO_POSITIONS, count_tokens_at, rank_tokens, select_top
from eraser_hub.attribution.instances import Instance
from eraser_hub.records.errors import DataError, shown
from eraser_hub.systems.evaluation import TextProbabilities

OTHER, EVIDENCE = SENTENCE_LABELS = ("other", "evidence")
Labelled = tuple[list[Instance], list[str]]  # and their labels


def sentence_bounds(instance: Instance) -> list[tuple[int, int]]:
    """Where each sentence begins and ends, in flat token positions."""
    return list(pairwise(accumulate((size for sizes in instance.sentence_sizes for size in sizes), initial=0)))


def sentences_as_instances(instance: Instance) -> list[Instance]:
    """Each sentence as a text of one document, with the query."""
    tokens = instance.tokens
    return [
        Instance(f"{instance.id}[{start}:{end}]", instance.query, ("sentence",), (tuple(tokens[start:end]),))
        for start, end in sentence_bounds(instance)
    ]


def evidence_sentences(instance: Instance) -> list[int]:
    """Numbers of the sentences that hold a token of the human rationale, ascending."""
    flags = [flag for document in instance.rationale or () for flag in document]
    return [number for number, (start, end) in enumerate(sentence_bounds(instance)) if any(flags[start:end])]


def to_identify(instances: Sequence[Instance]) -> Labelled:
    """Every sentence of the instances that have a human rationale, labelled by whether it holds some of it."""
    sentences, labels = list[Instance](), list[str]()
    for one in instances:
        gold = set(evidence_sentences(one))
        if gold:
            each = sentences_as_instances(one)
            sentences += each
            labels += [EVIDENCE if number in gold else OTHER for number in range(len(each))]
    return sentences, labels


def to_classify(instances: Sequence[Instance], labels: Sequence[str], number: int) -> Labelled:
    """The human rationale's sentences, ``number`` together, each with its instance's label (teacher forcing)."""
    extracts, theirs = list[Instance](), list[str]()
    for one, label in zip(instances, labels, strict=True):
        bounds, gold = sentence_bounds(one), evidence_sentences(one)
        for start in range(0, len(gold), number):
            kept = np.zeros(one.bounds[-1], dtype=bool)
            for sentence in gold[start : start + number]:
                kept[slice(*bounds[sentence])] = True
            extracts.append(one.only(kept))
            theirs.append(label)
    return extracts, theirs


def sampled(labels: Sequence[str], negatives: float, seed: int) -> Callable[[int], NDArray[np.int64]]:
    """What an epoch trains on: all evidence sentences, and ``negatives`` times as many others, drawn anew each time.

    Returns:
        epoch -> ascending numbers among ``labels``.
    """
    marked = np.array([label == EVIDENCE for label in labels], dtype=bool)
    evidence, others = np.flatnonzero(marked), np.flatnonzero(~marked)
    size = min(len(others), max(1, round(negatives * len(evidence))))

    def draw(epoch: int) -> NDArray[np.int64]:
        random = np.random.default_rng([seed, epoch])
        return np.sort(np.concatenate([evidence, random.choice(others, size=size, replace=False)]))

    return draw


def by_document(instance: Instance, scores: Sequence[float]) -> tuple[tuple[float, ...], ...]:
    """Scores of an instance's sentences, for each document."""
    values: Iterator[float] = iter(scores)
    return tuple(tuple(next(values) for _ in sizes) for sizes in instance.sentence_sizes)


class Selector(ABC):
    """Decides which tokens of a text the classifier reads; ``model`` is the stage that it asks."""

    model: Adapter

    @abstractmethod
    def select(self, instances: Sequence[Instance]) -> list[Selection]:
        """The selection from each text; none from a text without tokens."""


class SentenceSelector(Selector):
    """The sentences that are most probably evidence (Lehman et al., 2019); of equal ones the first of the text.

    Args:
        identifier: tells :data:`SENTENCE_LABELS` apart, one sentence at a time.
        number: of sentences.
    """

    def __init__(self, identifier: Adapter, number: int) -> None:
        self.model, self.number = identifier, number
        self._probabilities, self._column = TextProbabilities(identifier), identifier.label_names.index(EVIDENCE)

    def select(self, instances: Sequence[Instance]) -> list[Selection]:
        sentences = [sentences_as_instances(one) for one in instances]
        flat = [sentence for each in sentences for sentence in each]
        scores = self._probabilities.of(flat)[:, self._column] if flat else np.zeros(0)
        parts = np.split(scores, np.cumsum([len(each) for each in sentences])[:-1])
        return [self._best(one, part) for one, part in zip(instances, parts, strict=True)]

    def _best(self, one: Instance, scores: NDArray[np.float64]) -> Selection:
        bounds = sentence_bounds(one)
        chosen = [np.arange(*bounds[number]) for number in sorted(rank_tokens(scores)[: self.number].tolist())]
        return Selection(np.concatenate([NO_POSITIONS, *chosen]), by_document(one, scores.tolist()))


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
        return [Selection(self._best(next(rows)) if one.bounds[-1] else NO_POSITIONS) for one in instances]

    def _best(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        return best_window(scores, self.share) if self.extractor == "contiguous" else select_top(scores, self.share)


def best_window(scores: NDArray[np.float64], share: float) -> NDArray[np.int64]:
    """The positions of ``share`` of the tokens, all in a row, whose scores sum up to most; the first of equal ones.

    >>> best_window(np.array([0.0, 3.0, 1.0, 2.0, 1.0]), 0.6)
    array([1, 2, 3])
    """
    size = count_tokens_at(share, len(scores))
    if not size:
        return NO_POSITIONS
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
        self.selector, self._classifier = selector, TextProbabilities(classifier)
        self.label_names, self.uses_query, self.description = classifier.label_names, uses_query, description
        for stage in (selector.model, classifier):
            stage.notes = self.notes  # what happens in a stage happens in the pipeline

    def encode(self, instance: Instance) -> Whole:
        return Whole(instance)

    def forward(self, units: Sequence[tuple[View, int]]) -> NDArray[np.float64]:
        instances = [view.data for view, _ in units]
        extracts = map(extract, instances, self.selector.select(instances))
        return self._classifier.of(list(extracts))

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
        about = f"{config['system']} {folder.name}"
        return RationalePipeline(selector, stages["classifier"], uses_query=asks, description=about)
    except (OSError, ValueError, KeyError, TypeError) as error:
        words = f"expected a pipeline's config.json, found {shown(str(error))}"
        raise DataError(words, rule="model", file=path) from error
