"""What a network is trained and validated on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.instances import Instance

Labelled = tuple[Sequence[Instance], Sequence[str]]  # instances and their labels


@dataclass(frozen=True, slots=True)
class Data:
    """What to train and to validate on.

    Attributes:
        train, validation: instances and their labels; no instances to validate on: none.
        label_names: in the dataset's order; () where ``answers``.
        uses_query: whether the network sees the query.
        draw: epoch -> the numbers of the instances that it trains on; None for all in every epoch.
        answers: answers, words of the texts, stand in the labels' place.
    """

    train: Labelled
    validation: Labelled
    label_names: Sequence[str]
    uses_query: bool
    draw: Callable[[int], NDArray[np.int64]] | None = None
    answers: bool = False


def span_of(tokens: Sequence[str], answer: str) -> tuple[int, int] | None:
    """The numbers, counted from 1, of the first and the last token in which the answer stands for the first time.

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
