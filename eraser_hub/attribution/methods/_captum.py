"""Gradient methods, by captum over a network's embedding layer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from eraser_hub.papers.presets import Choices

from ..method import Method, Scores

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ..engine import Engine
    from ..models.inputs import Notes
    from ..text import Text


class Embedded(NamedTuple):
    """Inputs of a network behind its embedding layer, and the output that is explained.

    Attributes:
        output: embeddings, and ``more``, to the explained output of each input, (inputs,).
        vectors: the embeddings, (inputs, .., places, width).
        more: further arguments of ``output``, tensors of shape (inputs, ..).
        baseline: embeddings from which integrated gradients start; None for zeros.
        network: the module whose layers DeepLIFT hooks.
        rows: inputs that go through the network together.
        choices: choices of a paper.
        notes: counters and messages of the run.
        description: the model, for errors.
    """

    output: Callable[..., Tensor]
    vectors: Tensor
    more: tuple[Tensor, ...]
    baseline: Tensor | None
    network: nn.Module
    rows: int
    choices: Choices
    notes: Notes
    description: str

    def leaf(self) -> Tensor:
        """Return the embeddings so that gradients along them can be taken."""
        return self.vectors.detach().requires_grad_()


class GradientMethod(Method):
    """A method that differentiates a network's output along the embeddings of its input.

    Attributes:
        explains: what is differentiated: the label's ``probability``, or its ``logit`` less the mean of all labels'.
        one_by_one: whether an input fills a batch by itself.
    """

    needs = ("gradients",)
    explains: ClassVar[str] = "probability"
    one_by_one: ClassVar[bool] = False

    def scores(self, texts: Sequence[Text], engine: Engine) -> list[Scores]:
        """Return the scores that the model has :meth:`attribute` compute of its sub-words, summed to tokens."""
        return engine.model.gradients(texts, self)

    @abstractmethod
    def attribute(self, inputs: Embedded) -> Tensor:
        """Return the score of each place, (inputs, .., places), from a batch of inputs."""
