"""The measures, one class each in :mod:`measures`: what rankings are judged by beside their erasure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from eraser_hub.records.registry import Registry

from .method import DescribedPart

if TYPE_CHECKING:  # the command line lists measures without waiting for numpy
    from .chunk import Chunk
    from .instances import Instance

Fields = list[dict[str, Any]]
# fields of a prediction
AOPC_BOUNDS, SOFT_MASKS, OCCLUDED_FIELD = "aopc_bounds", "soft_scores", "occluded_scores"


class Measure(DescribedPart, ABC):
    """A measure.

    Attributes:
        enabled_by: the setting that asks for it, a field of :class:`settings.ExplainSettings` or one of its own; 0 or
            False: not asked for.
        fields: of a prediction, which it fills; numbers, where they are not of the record.
        ranks: whether it needs a score of every token.
        erases_units: whether it erases units, which ``units`` names.
        recomputes_scores: whether it has the method score further inputs.
        costly: whether it may take so many inputs that a run reports their number first.
    """

    enabled_by: ClassVar[str]
    fields: ClassVar[tuple[str, ...]]
    ranks: ClassVar[bool] = True
    erases_units: ClassVar[bool] = True
    recomputes_scores: ClassVar[bool] = False
    costly: ClassVar[bool] = True

    @classmethod
    def check(cls, settings: Any) -> None:
        """Refuse settings that do not go together, beyond their ranges.

        Raises:
            DataError: such settings.
        """

    @abstractmethod
    def measure(self, chunk: Chunk) -> Fields:
        """Return the fields of each instance's prediction."""

    @classmethod
    @abstractmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return the largest number of inputs of the model that an instance takes.

        Args:
            one: the instance.
            units: how many units the instance has.
            settings: settings of the run.
        """


MEASURES = Registry("eraser_hub.measures", "measure", Measure, "eraser_hub.attribution.measures")  # type: ignore[type-abstract]
