"""What every network over words does: vectors in, logits of labels out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from eraser_hub.systems.hyper import NetworkHyper

from .embedders import Embedder
from .readings import PaddedReadings, Reading


@dataclass(frozen=True, slots=True)
class Shape:
    """What the data decide of a network.

    Attributes:
        labels: how many there are.
        apart: instances are read as two segments (:mod:`readings`).
        answers: it answers with words of the text, and has no labels.
    """

    labels: int
    apart: bool
    answers: bool = False


@dataclass(frozen=True, slots=True)
class TaughtReading:
    """A reading and what it teaches.

    Attributes:
        label: its number.
        rationale: the human one at each place; None where there is none.
        span: of an answer: the numbers of its first and last word, counted from 1; (0, 0) for none.
    """

    reading: Reading
    label: int = 0
    rationale: NDArray[np.bool_] | None = None
    span: tuple[int, int] = (0, 0)


class TokenNetwork(nn.Module, ABC):
    """A classifier of texts over word vectors.

    Attributes:
        attends: whether :meth:`attention` gives weights.
        selects: whether :meth:`selected` gives a rationale of its own.
        epoch: of the training, which sets it.
    """

    attends = False
    selects = False
    epoch = 0

    def __init__(self, embedder: Embedder, hyper: NetworkHyper, shape: Shape) -> None:
        super().__init__()
        self.embedder, self.hyper, self.shape = embedder, hyper, shape

    @classmethod
    def made(cls, new_embedder: Callable[[int], Embedder], hyper: Any, shape: Shape) -> TokenNetwork:
        """Return an untrained network; ``new_embedder`` takes the number of an encoder's layers to train."""
        return cls(new_embedder(hyper.trained_layers), hyper, shape)

    @abstractmethod
    def logits(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """Logits of shape (rows, labels) from word vectors of shape (rows, places, width)."""

    def attention(self, vectors: Tensor, batch: PaddedReadings) -> Tensor:
        """The weight of each place, shape (rows, places)."""
        raise TypeError(f"{type(self).__name__} has no attention")

    def selected(self, batch: PaddedReadings) -> Tensor:
        """True at the tokens of the network's own rationale, shape (rows, places)."""
        raise TypeError(f"{type(self).__name__} selects no tokens")

    def forward(self, batch: PaddedReadings) -> Tensor:
        """Logits of shape (rows, labels)."""
        return self.logits(self.embedder(batch), batch)

    def penalty(self, batch: PaddedReadings) -> Tensor:
        """What training makes small beside the loss of the labels, shape (rows,)."""
        return torch.zeros(len(batch.words), device=batch.words.device)

    def loss(self, batch: PaddedReadings, examples: Sequence[TaughtReading]) -> Tensor:
        """What training makes small: the mean over the batch's examples."""
        labels = torch.tensor([one.label for one in examples], device=batch.words.device)
        return functional.cross_entropy(self(batch), labels)
