"""A selector of sentences and a classifier of its selection, as one model of ``explain``.

A pipeline's folder holds ``config.json`` with every hyper-parameter, and a folder for each stage, which is a model of
its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import Adapter, Encoded, Selection, View, align_labels
from eraser_hub.attribution.erasure import NO_POSITIONS, rank_tokens
from eraser_hub.attribution.instances import Instance
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.readers import read_json_object
from eraser_hub.systems.evaluation import TextProbabilities

OTHER, EVIDENCE = SENTENCE_LABELS = ("other", "evidence")
Labelled = tuple[list[Instance], list[str]]  # and their labels


def find_sentence_bounds(instance: Instance) -> list[tuple[int, int]]:
    """Return the start and end of each sentence, in flat token positions."""
    return list(pairwise(accumulate((size for sizes in instance.sentence_sizes for size in sizes), initial=0)))


def make_sentence_instances(instance: Instance) -> list[Instance]:
    """Return each sentence as a text of one document, with the query."""
    tokens = instance.tokens
    return [
        Instance(f"{instance.id}[{start}:{end}]", instance.query, ("sentence",), (tuple(tokens[start:end]),))
        for start, end in find_sentence_bounds(instance)
    ]


def find_evidence_sentences(instance: Instance) -> list[int]:
    """Return the ascending numbers of the sentences that hold a token of the human rationale."""
    flags = [flag for document in instance.rationale or () for flag in document]
    return [number for number, (start, end) in enumerate(find_sentence_bounds(instance)) if any(flags[start:end])]


def make_sentence_examples(instances: Sequence[Instance]) -> Labelled:
    """Return the sentences of instances with a human rationale, labelled as evidence or other."""
    sentences, labels = list[Instance](), list[str]()
    for one in instances:
        gold = set(find_evidence_sentences(one))
        if gold:
            each = make_sentence_instances(one)
            sentences += each
            labels += [EVIDENCE if number in gold else OTHER for number in range(len(each))]
    return sentences, labels


def make_extract_examples(instances: Sequence[Instance], labels: Sequence[str], number: int) -> Labelled:
    """Return the human rationale's sentences in groups of ``number``, with the instance's label."""
    extracts, extract_labels = list[Instance](), list[str]()
    for one, label in zip(instances, labels, strict=True):
        bounds, gold = find_sentence_bounds(one), find_evidence_sentences(one)
        for start in range(0, len(gold), number):
            kept = np.zeros(one.bounds[-1], dtype=bool)
            for sentence in gold[start : start + number]:
                kept[slice(*bounds[sentence])] = True
            extracts.append(one.only(kept))
            extract_labels.append(label)
    return extracts, extract_labels


def make_sampler(labels: Sequence[str], negatives: float, seed: int) -> Callable[[int], NDArray[np.int64]]:
    """Return a function that samples an epoch: all evidence sentences, and ``negatives`` times as many others.

    Returns:
        epoch -> ascending numbers among ``labels``; the others are drawn anew in each epoch.
    """
    marked = np.array([label == EVIDENCE for label in labels], dtype=bool)
    evidence, others = np.flatnonzero(marked), np.flatnonzero(~marked)
    size = min(len(others), max(1, round(negatives * len(evidence))))

    def draw(epoch: int) -> NDArray[np.int64]:
        random = np.random.default_rng([seed, epoch])
        return np.sort(np.concatenate([evidence, random.choice(others, size=size, replace=False)]))

    return draw


class SentenceSelector:
    """A selector of the sentences that are most probably evidence (Lehman et al., 2019); the first of equal ones wins.

    Args:
        identifier: A classifier of single sentences by :data:`SENTENCE_LABELS`.
        number: Number of sentences.
    """

    def __init__(self, identifier: Adapter, number: int) -> None:
        self.model, self.number = identifier, number
        self._probabilities, self._column = TextProbabilities(identifier), identifier.label_names.index(EVIDENCE)

    def select(self, instances: Sequence[Instance]) -> list[Selection]:
        """Return the selected sentences of each text."""
        sentences = [make_sentence_instances(one) for one in instances]
        flat = [sentence for each in sentences for sentence in each]
        scores = self._probabilities.compute(flat)[:, self._column] if flat else np.zeros(0)
        parts = np.split(scores, np.cumsum([len(each) for each in sentences])[:-1])
        return [self._select_best(one, part) for one, part in zip(instances, parts, strict=True)]

    def _select_best(self, one: Instance, scores: NDArray[np.float64]) -> Selection:
        bounds = find_sentence_bounds(one)
        chosen = [np.arange(*bounds[number]) for number in sorted(rank_tokens(scores)[: self.number].tolist())]
        values = iter(scores.tolist())
        by_document = tuple(tuple(next(values) for _ in sizes) for sizes in one.sentence_sizes)
        return Selection(np.concatenate([NO_POSITIONS, *chosen]), by_document)


@dataclass(slots=True)
class PipelineInstance(Encoded):
    """An instance; an erased one lacks the erased tokens, and the selector selects anew."""

    instance: Instance

    def view(self, kept: NDArray[np.bool_], erase: str) -> View:
        """Return the instance without the tokens that are not kept."""
        if erase != "remove":
            words = f"`erase` {erase}: a pipeline cuts its extract out of the text; use `erase` remove"
            raise DataError(words)
        rest = self.instance.only(kept)
        digest = hashlib.blake2b(repr((rest.query, rest.documents, rest.sentences)).encode(), digest_size=16).digest()
        return View((digest,), (len(rest.query) + rest.bounds[-1],), rest)


class RationalePipeline(Adapter):
    """A pipeline whose classifier reads only the extract of every text, erased texts included.

    Args:
        selector: The selector of the extract.
        classifier: The classifier; its labels are the pipeline's.
        uses_query: True if any of the two sees the query.
        description: The name of the model in messages.
    """

    selects = True

    def __init__(self, selector: SentenceSelector, classifier: Adapter, *, uses_query: bool, description: str) -> None:
        super().__init__()
        align_labels(classifier, ())
        self.selector, self._classifier = selector, TextProbabilities(classifier)
        self.label_names, self.uses_query, self.description = classifier.label_names, uses_query, description
        for stage in (selector.model, classifier):
            stage.notes = self.notes  # what happens in a stage happens in the pipeline

    def encode(self, instance: Instance) -> PipelineInstance:
        """Return the instance as the pipeline reads it."""
        return PipelineInstance(instance)

    def forward(self, units: Sequence[tuple[View, int]]) -> NDArray[np.float64]:
        """Return probabilities of shape (views, labels)."""
        instances = [view.data for view, _ in units]
        extracts = map(cut_extract, instances, self.selector.select(instances))
        return self._classifier.compute(list(extracts))

    def selections(self, encoded: Sequence[Encoded]) -> list[Selection]:
        """Return the extract of each instance."""
        return self.selector.select([one.instance for one in encoded])


def cut_extract(instance: Instance, selection: Selection) -> Instance:
    """Return what the classifier reads: the selected tokens and the query."""
    kept = np.zeros(instance.bounds[-1], dtype=bool)
    kept[selection.positions] = True
    return instance.only(kept)


def open_pipeline(folder: Path, stages: Mapping[str, Adapter], uses_query: bool | None) -> RationalePipeline:
    """Return the pipeline of opened stages that the folder's ``config.json`` describes.

    Args:
        folder: The folder of the pipeline.
        stages: The opened stages by name.
        uses_query: Overrides the setting of the training; None keeps it.

    Raises:
        DataError: ``config.json`` is missing, damaged, or of other stages.
    """
    path = folder / "config.json"
    try:
        config = read_json_object(path)
        hyper = config["hyper"]
        selector = SentenceSelector(stages["identifier"], hyper["sentences"])
        sees_query = config["uses_query"] if uses_query is None else uses_query
        description = f"{config['system']} {folder.name}"
        return RationalePipeline(selector, stages["classifier"], uses_query=sees_query, description=description)
    except DataError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        words = f"expected a pipeline's config.json, found {show(str(error))}"
        raise DataError(words, file=path) from error
