"""Sentences as texts of their own: what sentence selectors read, and what they are trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.instances import Instance

OTHER, EVIDENCE = "other", "evidence"
SENTENCE_LABELS = (OTHER, EVIDENCE)
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
    evidence = np.flatnonzero([label == EVIDENCE for label in labels])
    others = np.flatnonzero([label != EVIDENCE for label in labels])
    size = min(len(others), max(1, round(negatives * len(evidence))))

    def draw(epoch: int) -> NDArray[np.int64]:
        random = np.random.default_rng([seed, epoch])
        return np.sort(np.concatenate([evidence, random.choice(others, size=size, replace=False)]))

    return draw


def by_document(instance: Instance, scores: Sequence[float]) -> tuple[tuple[float, ...], ...]:
    """Scores of an instance's sentences, for each document."""
    values: Iterator[float] = iter(scores)
    return tuple(tuple(next(values) for _ in sizes) for sizes in instance.sentence_sizes)
