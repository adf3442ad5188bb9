"""What a system is trained and validated on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.dataset import Split, draw_stratified
from eraser_hub.attribution.erasure import make_generator
from eraser_hub.attribution.instances import Instance
from eraser_hub.records.errors import DataError

from .recipe import SUBSETS, Recipe, Say

# Random subsets of texts, on which EVAL-X's evaluator is trained (Jethani et al. 2021, "Have We Learned to Explain?").
# A model that has seen random subsets of tokens knows p(label | these tokens) of any of them, and no selector was
# trained beside it: what it tells from a rationale is what the rationale says. The paper keeps each feature with
# probability 1/2; rationales are a tenth of a text, so here the share itself is drawn, between none and all.
SUBSETS_EACH = 10  # of each text; a network sees one of them in an epoch
Labelled = tuple[Sequence[Instance], Sequence[str]]  # instances and their labels


def silent(words: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, slots=True)
class Data:
    """What to train and to validate on.

    Attributes:
        train, validation: instances and their labels; no instances to validate on: none.
        label_names: in the dataset's order; () where ``answers``.
        uses_query: whether the network sees the query.
        draw: epoch -> the numbers of the instances that it trains on; None for all in every epoch.
        answers: answers, words of the texts, stand in the labels' place.
        copies: so many random subsets of each text stand one after the other (:func:`subsets_of`).
    """

    train: Labelled
    validation: Labelled
    label_names: Sequence[str]
    uses_query: bool
    draw: Callable[[int], NDArray[np.int64]] | None = None
    answers: bool = False
    copies: int = 1

    @property
    def in_pairs(self) -> bool:
        """Whether texts come in twos: with a query, or where every instance has two documents."""
        return self.uses_query or all(len(one.documents) == 2 for one in self.train[0])


@dataclass(frozen=True, slots=True)
class Training:
    """One training: of what, on what, into which folder.

    Attributes:
        recipe, data: what is trained how on what.
        out: the model's folder.
        folder: what a stopped training needs to go on lies there (:func:`folder.unfinished`).
        say: called with lines of progress.
        facts: what ``model.json`` says of the data.
        share: gives the average length of a rationale, for systems that extract as much.
    """

    recipe: Recipe
    data: Data
    out: Path
    folder: Path
    say: Say
    facts: dict[str, Any] = field(default_factory=dict)
    share: Callable[[], float] = float

    def config(self, **more: Any) -> dict[str, Any]:
        """What ``config.json`` of a network or a pipeline says of its training; ``more`` stands before the origins."""
        recipe, data = self.recipe, self.data
        about = {"system": recipe.model, "label_names": list(data.label_names), "uses_query": data.uses_query, **more}
        names = {"encoder": Path(recipe.encoder).name, "embeddings": Path(recipe.embeddings).name}
        return {**about, **names, "seed": recipe.seed}


def examples(
    split: Split, *, rationale_only: bool = False, uses_query: bool = False, limit: int | None = None, seed: int = 1
) -> tuple[list[Instance], list[str]]:
    """Return the labelled instances of a split, and their labels; others are left out, and it must not be all.

    Args:
        rationale_only: the human rationale's tokens in place of the documents.
        uses_query: keep the query.
        limit: so many of them, each label's share as in the split (:func:`stratified`); None: all.
        seed: of that draw.

    Raises:
        DataError: no labels at all; an instance without rationale when ``rationale_only``.
    """
    rows = (one for one in split.instances() if one.label is not None)
    if limit is not None:
        # the labels alone first: the rows of a large split are not held to choose some of them
        chosen = draw_stratified([str(one.label) for one in split.instances() if one.label is not None], limit, seed)
        rows = (one for place, one in enumerate(rows) if place in chosen)
    if rationale_only:
        rows = (one.rationale_only() for one in rows)
    if not uses_query:
        rows = (replace(one, query=()) for one in rows)
    instances = list(rows)
    if not instances:
        words = "expected labelled instances, found none"
        raise DataError(words, rule="label-missing", file=split.name, field="classification")
    return instances, [str(one.label) for one in instances]


def has_labels(split: Split) -> bool:
    """Return whether any of the split's rows has a label."""
    return any(one.label is not None for one in split.instances())


def is_marked(one: Instance) -> bool:
    """Return whether any token of an instance is in a human rationale."""
    return one.rationale is not None and any(map(any, one.rationale))


def span_of(tokens: Sequence[str], answer: str) -> tuple[int, int] | None:
    """Return the numbers, counted from 1, of the first and the last token of an answer's first place.

    (0, 0) for the answer "", None for one that does not stand there.

    Case and blanks do not matter. Where it stands at the borders of tokens goes before where it cuts some in two.

    >>> span_of(["1903", ",", "by", "Tom", "Reed"], "tom reed"), span_of(["plant", "ant"], "ant"), span_of(["a"], "b")
    ((4, 5), (2, 2), None)
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


def subsets_of(instances: Sequence[Instance], seed: int) -> list[Instance]:
    """:data:`SUBSETS_EACH` subsets of each text: the first of all, then the second of all, ..

    Each keeps a uniformly drawn share of the tokens, every token by itself, and one at least where there is any. What
    is drawn hangs on the seed and the instance's id alone.
    """
    rows = []
    for one in instances:
        random, tokens = make_generator(seed, one.id, SUBSETS), one.bounds[-1]
        subsets = list[Instance]()
        for _ in range(SUBSETS_EACH):
            ranks = random.random(tokens)
            kept = ranks < random.random()
            if tokens and not kept.any():
                kept[ranks.argmin()] = True
            subsets.append(one.only(kept))
        rows.append(subsets)
    return [subset for subsets in zip(*rows, strict=True) for subset in subsets]


def in_turn(texts: int, copies: int) -> Callable[[int], NDArray[np.int64]] | None:
    """Which of the copies of each text an epoch trains on; None where there is one.

    Args:
        texts: how many there are; copy c of text i is number ``c * texts + i``.
    """
    if copies == 1:
        return None
    return lambda epoch: (epoch % copies) * texts + np.arange(texts)
