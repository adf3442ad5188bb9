"""What an attribution method and a measure are; one class each in :mod:`methods` and :mod:`measures`.

Both are dataclasses whose fields are their settings: ``Lime(samples=1000)``, on the command line
``lime(samples=1000)``. Third parties add theirs by entry points of ``eraser_hub.methods`` and ``eraser_hub.measures``.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError, show
from eraser_hub.records.extras import need
from eraser_hub.records.registry import Registry

if TYPE_CHECKING:
    from .engine import Engine
    from .models.model import Model
    from .text import Text

Scores: TypeAlias = NDArray[np.float64]
Kept: TypeAlias = NDArray[np.bool_]
Result = TypeVar("Result")
# Asks for inputs: yields flags of the tokens that stay, bool (inputs, tokens), and is sent the probabilities of the
# labels, float64 (inputs, labels). The searches of many texts run side by side (`Engine.run`).
Search: TypeAlias = Generator[Kept, NDArray[np.float64], Result]


@dataclass(frozen=True)
class Method:
    """An attribution method: gives each token of a text a score.

    A subclass has :meth:`search`, or :meth:`scores` where it looks inside the model; with settings it is a frozen
    dataclass, too.

    Attributes:
        needs: what a model must provide (:attr:`models.model.Model.provides`).
        packages: modules of an extra that it needs.
        scores_units: whether it scores whole units (tokens, or sentences), each shared equally by the unit's tokens.
        normalised: whether papers divide its scores by their sum (`Choices.normalise`).
    """

    needs: ClassVar[tuple[str, ...]] = ("probabilities",)
    packages: ClassVar[tuple[str, ...]] = ()
    scores_units: ClassVar[bool] = False
    normalised: ClassVar[bool] = False

    def scores(self, texts: Sequence[Text], engine: Engine) -> list[Scores]:
        """Return the scores of each text's tokens for its label, float64 (tokens,) each."""
        return engine.run([self.search(text) for text in texts], filled=False)

    def search(self, text: Text) -> Search[Scores]:
        """Ask for erased inputs of one text; return the scores of its tokens."""
        raise DataError(f"expected a method with `search` or `scores`, found neither in {type(self).__name__}")

    def check(self, model: Model) -> None:
        """Refuse a model that lacks what the method needs, or a missing package.

        Raises:
            DataError: names the methods that the model allows, or the package.
        """
        if not model.supports(type(self)):
            allowed = ", ".join(name for name in METHODS if model.supports(METHODS[name]))
            message = f"{call(self)} is not possible with {model.description}; it allows {allowed}"
            raise DataError(message, argument="method")
        if self.packages:
            need(*self.packages)


@dataclass(frozen=True)
class Measure:
    """A measure of a ranking beside the erasure of its top: fields of a prediction that `score` reads.

    A subclass has :meth:`search`, or :meth:`measure` where it asks for more than erased inputs; with settings it is a
    frozen dataclass, too.

    Attributes:
        fields: of a prediction, which it fills.
        recomputes_scores: whether it has the method score further inputs.
    """

    fields: ClassVar[tuple[str, ...]]
    recomputes_scores: ClassVar[bool] = False

    def measure(self, texts: Sequence[Text], engine: Engine, method: Method | None) -> list[Mapping[str, Any]]:
        """Return the fields of each text's prediction."""
        return engine.run([self.search(text) for text in texts])

    def search(self, text: Text) -> Search[Mapping[str, Any]]:
        """Ask for erased inputs of one text; return the fields of its prediction."""
        raise DataError(f"expected a measure with `search` or `measure`, found neither in {type(self).__name__}")


def as_calls(value: Any, argument: str) -> list[Any]:
    """Return one method or measure, or its call, or several, as a list."""
    listed: list[Any] = [value] if isinstance(value, str | Method | Measure) else list(value or ())
    if not all(isinstance(one, str | Method | Measure) for one in listed):
        raise DataError(f"expected a string, or a list of strings, found {show(value)}", argument=argument)
    return listed


METHODS = Registry("eraser_hub.methods", "method", Method, "eraser_hub.attribution.methods")
MEASURES = Registry("eraser_hub.measures", "measure", Measure, "eraser_hub.attribution.measures")


def call(part: Method | Measure) -> str:
    """Return the call that makes a method or a measure, with every setting: ``lime(samples=1000,tokens=0)``."""
    registry: Registry[Any] = METHODS if isinstance(part, Method) else MEASURES
    settings = ",".join(f"{one.name}={getattr(part, one.name)}" for one in fields(part))
    name = registry.name_of(type(part))
    return f"{name}({settings})" if settings else name
