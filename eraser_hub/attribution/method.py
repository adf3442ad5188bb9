"""The attribution methods, one class each in :mod:`methods`, and what they all are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from eraser_hub.records.registry import Registry

from .part import Part

if TYPE_CHECKING:  # the command line lists methods without waiting for numpy
    from .chunk import Chunk, Scores
    from .instances import Instance


class Method(Part, ABC):
    """An attribution method.

    Attributes:
        needs: what it asks of an adapter (:attr:`adapter.Adapter.provides`).
        erases: whether its scores hang on how tokens are erased.
        plays: whether it erases sets of units, which ``units`` names.
        normalised: whether papers divide its scores by their sum (:attr:`papers.presets.Choices.normalise`).
        drawn: whether it is drawn by chance alone, so that several draws make sense.
    """

    needs: ClassVar[tuple[str, ...]] = ("probabilities",)
    erases: ClassVar[bool] = False
    plays: ClassVar[bool] = False
    normalised: ClassVar[bool] = False
    drawn: ClassVar[bool] = False

    @abstractmethod
    def scores(self, chunk: Chunk) -> Sequence[Scores]:
        """Return the scores of every instance's tokens, float64 (tokens,) each, for ``chunk.targets``."""

    @classmethod
    @abstractmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return how many inputs of the model the scores of an instance take at most.

        Args:
            units: how many units the instance has.
            settings: the run's :class:`settings.ExplainSettings`.
        """


class InsideMethod(Method):
    """A method that an adapter computes from the inside: gradients, attention, coefficients."""

    needs = ("gradients",)

    def scores(self, chunk: Chunk) -> Sequence[Scores]:
        """Return what the adapter computes."""
        model, settings = chunk.model, chunk.settings
        model.choices, model.outputs = settings.choices, chunk.runner.results
        return model.scores(settings.method, chunk.encoded, chunk.targets, settings.steps)

    @classmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return 1: one pass."""
        return 1


METHODS = Registry("eraser_hub.methods", "method", Method, "eraser_hub.attribution.methods")  # type: ignore[type-abstract]
