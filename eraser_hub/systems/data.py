"""The data that a system is trained and validated on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.dataset import Split, draw_stratified
from eraser_hub.attribution.instances import Instance
from eraser_hub.records.errors import DataError

from .train_config import Say, TrainConfig

Labelled = tuple[Sequence[Instance], Sequence[str]]  # instances and their labels


def say_nothing(words: str) -> None:
    """Ignore a line of progress."""


@dataclass(frozen=True, slots=True)
class Data:
    """The instances to train on and to validate on.

    Attributes:
        train: Instances and their labels.
        validation: Instances and their labels; empty without validation.
        label_names: The labels in the dataset's order; () if ``answers``.
        uses_query: True if the network sees the query.
        draw: Maps an epoch to the numbers of the instances that it trains on; None to use all instances in every epoch.
        answers: True if the labels are answers, words of the texts.
        clusters: int64 (texts,), the number of each text's cluster of texts that share documents; None if none do.
    """

    train: Labelled
    validation: Labelled
    label_names: Sequence[str]
    uses_query: bool
    draw: Callable[[int], NDArray[np.int64]] | None = None
    answers: bool = False
    clusters: NDArray[np.int64] | None = None

    @property
    def has_pairs(self) -> bool:
        """True if texts come in pairs: there is a query, or every instance has two documents."""
        return self.uses_query or all(len(one.documents) == 2 for one in self.train[0])


@dataclass(frozen=True, slots=True)
class Training:
    """One training: its settings, its data and its folders.

    Attributes:
        config: The settings.
        data: The instances.
        out: The folder of the model.
        folder: The folder of the checkpoint (:func:`folder.checkpoint_dir`).
        say: Receives lines of progress.
        facts: Facts about the data, for ``model.json``.
    """

    config: TrainConfig
    data: Data
    out: Path
    folder: Path
    say: Say
    facts: dict[str, Any] = field(default_factory=dict)

    def describe(self, **more: Any) -> dict[str, Any]:
        """Return the training's part of ``config.json``; ``more`` precedes the origins."""
        config, data = self.config, self.data
        facts = {"system": config.model, "label_names": list(data.label_names), "uses_query": data.uses_query, **more}
        names = {"encoder": Path(config.encoder).name, "embeddings": Path(config.embeddings).name}
        return {**facts, **names, "seed": config.seed}


def read_examples(
    split: Split, *, rationale_only: bool = False, uses_query: bool = False, limit: int | None = None, seed: int = 1
) -> tuple[list[Instance], list[str]]:
    """Return the labelled instances of a split, and their labels; other instances are skipped.

    Args:
        split: The split.
        rationale_only: Replace the documents by the tokens of the human rationale.
        uses_query: Keep the query.
        limit: Number of instances, stratified by label (:func:`stratified`); None for all.
        seed: Seed of that draw.

    Raises:
        DataError: No instance has a label, or an instance has no rationale although ``rationale_only`` is set.
    """
    rows = (one for one in split.instances() if one.label is not None)
    if limit is not None:
        # read the labels alone first, so that the rows of a large split are not kept in memory
        chosen = draw_stratified([str(one.label) for one in split.instances() if one.label is not None], limit, seed)
        rows = (one for place, one in enumerate(rows) if place in chosen)
    if rationale_only:
        rows = (one.rationale_only() for one in rows)
    if not uses_query:
        rows = (replace(one, query=()) for one in rows)
    instances = list(rows)
    if not instances:
        words = "expected labelled instances, found none"
        raise DataError(words, file=split.name, field="classification")
    return instances, [str(one.label) for one in instances]


def has_labels(split: Split) -> bool:
    """Return True if any row of the split has a label."""
    return any(one.label is not None for one in split.instances())


def find_answer_span(tokens: Sequence[str], answer: str) -> tuple[int, int] | None:
    """Return the first and the last token of an answer's first occurrence, counted from 1.

    Case and blanks are ignored. An occurrence at token boundaries takes precedence over one that cuts tokens. The
    result is (0, 0) for the answer "", and None for an answer that does not occur.

    >>> find_answer_span(["1903", ",", "by", "Tom", "Reed"], "tom reed"), find_answer_span(["plant", "ant"], "ant")
    ((4, 5), (2, 2))
    """
    words = "".join(answer.casefold().split())
    if not words:
        return 0, 0
    texts = ["".join(token.casefold().split()) for token in tokens]
    text, ends = "".join(texts), np.asarray([0, *accumulate(map(len, texts))])
    spans, start = [], text.find(words)
    while start >= 0:
        end = start + len(words)
        cut = int(start not in ends) + int(end not in ends)
        spans.append((cut, int(np.searchsorted(ends, start, "right")), int(np.searchsorted(ends, end, "left"))))
        start = text.find(words, start + 1)
    return min(spans, key=lambda span: span[0])[1:] if spans else None
