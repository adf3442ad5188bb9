"""What a network is trained and validated on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eraser_hub.explain.instances import Instance

Labelled = tuple[Sequence[Instance], Sequence[str]]  # instances and their labels


@dataclass(frozen=True, slots=True)
class Data:
    """What to train and to validate on.

    Attributes:
        train, validation: instances and their labels; no instances to validate on: none.
        label_names: in the dataset's order.
        uses_query: whether the network sees the query.
        draw: epoch -> the numbers of the instances that it trains on; None for all in every epoch.
    """

    train: Labelled
    validation: Labelled
    label_names: Sequence[str]
    uses_query: bool
    draw: Callable[[int], NDArray[np.int64]] | None = None
