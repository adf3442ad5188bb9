"""The data that a system is trained and validated on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.dataset import Split, draw_stratified
from eraser_hub.attribution.instances import Instance, read_perturbation_row
from eraser_hub.records.errors import DataError, show

Labelled = tuple[Sequence[Instance], Sequence[str]]  # instances and their labels
log = logging.getLogger("eraser_hub")


@dataclass(frozen=True, slots=True)
class Data:
    """The instances to train on and to validate on.

    Attributes:
        train: instances and their labels.
        validation: instances and their labels; empty without validation.
        label_names: the labels in the dataset's order; () if ``answers``.
        uses_query: whether the model sees the query.
        answers: whether the labels are answers, words of the texts.
        by_name: whether documents are equal where their names are; else where their tokens are.
        draw: maps an epoch to the numbers of the instances that it trains on; None: to all.
    """

    train: Labelled
    validation: Labelled
    label_names: Sequence[str]
    uses_query: bool
    answers: bool = False
    by_name: bool = True
    draw: Callable[[int], NDArray[np.int64]] | None = None

    @property
    def has_pairs(self) -> bool:
        """True if texts come in pairs: there is a query, or every instance has two documents."""
        return self.uses_query or all(len(one.documents) == 2 for one in self.train[0])


@dataclass(frozen=True, slots=True)
class Training:
    """One training of a system.

    Attributes:
        data: the instances.
        folder: of the model, and of the checkpoints until it is finished.
        seed: of all random draws.
        paper: whose code decides what it says; "" for none.
        facts: of the data, for ``model.json``.
    """

    data: Data
    folder: Path
    seed: int = 1
    paper: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def has_labels(split: Split) -> bool:
    """Return True if any row of the split has a label."""
    return any(one.label is not None for one in split.instances())


def read_examples(
    split: Split, *, rationale_only: bool = False, uses_query: bool = False, limit: int | None = None, seed: int = 1
) -> tuple[list[Instance], list[str]]:
    """Return the labelled instances of a split, and their labels; other instances are skipped.

    Args:
        split: the split.
        rationale_only: replace the documents by the tokens of the human rationale.
        uses_query: keep the query.
        limit: number of instances, drawn with each label's share; None for all.
        seed: of that draw.

    Raises:
        DataError: no instance has a label, or an instance has no rationale although ``rationale_only`` is set.
    """
    rows = (one for one in split.instances() if one.label is not None)
    if limit is not None:
        # read the labels alone first, so that the rows of a large split are not kept in memory
        chosen = draw_stratified([str(one.label) for one in split.instances() if one.label is not None], limit, seed)
        rows = (one for place, one in enumerate(rows) if place in chosen)
    rows = (one.rationale_only() for one in rows) if rationale_only else rows
    instances = [one if uses_query else replace(one, query=()) for one in rows]
    if not instances:
        raise DataError("expected labelled instances, found none", file=split.name, field="classification")
    return instances, [str(one.label) for one in instances]


def has_answers(split: Split) -> bool:
    """Return True if any row of the split asks a question with a known answer, a text or "" for none."""
    return split.kind == "perturbation" and any(answer is not None for _, answer in split.read(_read_answer))


def _read_answer(row: Mapping[str, Any], label_names: Sequence[str]) -> tuple[Instance, str | None]:
    one, answer = read_perturbation_row(row, label_names), row.get("answer")
    if answer is not None and not isinstance(answer, str):
        raise DataError(f"expected a string, found {show(answer)}", instance=one.id, field="answer")
    return one, answer


def read_answers(split: Split, limit: int | None = None, seed: int = 1) -> Labelled:
    """Return the instances of a split with known answers, and the answers; "" if the text holds none.

    Args:
        split: the split.
        limit: number of instances, drawn with the shares of questions with and without answer; None for all.
        seed: of that draw.
    """
    rows = [(one, answer) for one, answer in split.read(_read_answer) if answer is not None]
    if limit is not None:
        chosen = draw_stratified([str(bool(answer)) for _, answer in rows], limit, seed)
        rows = [row for place, row in enumerate(rows) if place in chosen]
    return [one for one, _ in rows], [answer for _, answer in rows]


def keep_answerable(part: Labelled, name: str) -> Labelled:
    """Return the instances whose answers occur in their texts, and say how many others there are.

    Raises:
        DataError: no answer occurs in its text.
    """
    pairs = [pair for pair in zip(*part, strict=True) if find_answer_span(pair[0].tokens, pair[1]) is not None]
    if not pairs:
        message = f"{name}: expected answers that occur in their texts, found none in {len(part[0])} instances"
        raise DataError(message, field="answer")
    if len(pairs) < len(part[0]):
        count = f"{len(part[0]) - len(pairs)} of {len(part[0])} answers"
        log.info(f"{name}: {count} do not occur in their texts and are left out")
    return [one for one, _ in pairs], [answer for _, answer in pairs]


def find_answer_span(tokens: Sequence[str], answer: str) -> tuple[int, int] | None:
    """Return the first and the last token of an answer's first occurrence, counted from 1.

    Case and blanks are ignored. An occurrence at token boundaries takes precedence over one that cuts tokens. The
    result is (0, 0) for the answer "", and None for an answer that does not occur.

    >>> find_answer_span(["1903", ",", "by", "Tom", "Reed"], "tom reed"), find_answer_span(["plant", "ant"], "ant")
    ((4, 5), (2, 2))
    """
    sought = "".join(answer.casefold().split())
    if not sought:
        return 0, 0
    texts = ["".join(token.casefold().split()) for token in tokens]
    text, ends = "".join(texts), np.asarray([0, *accumulate(map(len, texts))])
    spans, start = [], text.find(sought)
    while start >= 0:
        end = start + len(sought)
        cut = int(start not in ends) + int(end not in ends)
        spans.append((cut, int(np.searchsorted(ends, start, "right")), int(np.searchsorted(ends, end, "left"))))
        start = text.find(sought, start + 1)
    return min(spans, key=lambda span: span[0])[1:] if spans else None
