"""The attribution methods, one class each in :mod:`methods`; and the description that methods and measures share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from eraser_hub.records.errors import DataError
from eraser_hub.records.extras import need
from eraser_hub.records.registry import Registry

if TYPE_CHECKING:  # the command line lists methods without waiting for numpy
    from .adapter import Adapter
    from .chunk import Chunk, Scores
    from .instances import Instance


class Setting(NamedTuple):
    """A setting of a method or a measure: an argument of its call, as in ``lime(samples=1000)``.

    Attributes:
        default: the default, whose type is the setting's: a bool, an int, a float or a string.
        help: one sentence on the setting.
        least: the least number; None for any.
        choices: the allowed values; () for any.
        field: the field of :class:`settings.ExplainSettings` that holds it; "" for ``settings.more[name]``.
    """

    default: Any
    help: str
    least: float | None = None
    choices: tuple[Any, ...] = ()
    field: str = ""

    def find_fault(self, value: Any) -> str:
        """Return what was expected instead of a value; "" for a good one."""
        kind = type(self.default)
        number = kind is float and isinstance(value, int) and not isinstance(value, bool)
        if type(value) is not kind and not number:
            return f"a value of type {kind.__name__}"
        if self.choices and value not in self.choices:
            return f"one of {', '.join(map(str, self.choices))}"
        if self.least is not None and not value >= self.least:
            return f"at least {self.least:g}"
        return ""


class DescribedPart:
    """Description of a method or measure; its name is its module's, or its entry point's.

    Attributes:
        source: the paper that it is from.
        settings: its arguments: name -> setting.
        signature_format: a format of its settings for a run's signature: ``"steps:{0.steps}"``.
    """

    source: ClassVar[str] = ""
    settings: ClassVar[Mapping[str, Setting]] = {}
    signature_format: ClassVar[str] = ""

    @classmethod
    def summary(cls) -> str:
        """Return its docstring's first line."""
        return (cls.__doc__ or "").strip().partition("\n")[0]

    @classmethod
    def describe_settings(cls, settings: Any) -> list[str]:
        """Return the settings for a run's signature, ``["steps:300"]``; by default by :attr:`signature_format`."""
        own = [cls.signature_format.format(settings)] if cls.signature_format else []
        return own + [f"{name}:{settings.more[name]}" for name, one in cls.settings.items() if not one.field]


class Method(DescribedPart, ABC):
    """An attribution method.

    Attributes:
        needs: capabilities of an adapter that it needs (:attr:`adapter.Adapter.provides`).
        packages: modules of an extra that it needs (`records.extras.EXTRAS`).
        erases_units: whether it erases sets of units, which ``units`` names.
        scores_units: whether its scores are of whole units, each shared equally by the unit's tokens; the scores of
            other methods are of tokens, and a sentence has their mean.
        normalised: whether papers divide its scores by their sum (:attr:`papers.presets.Choices.normalise`).
        sampled: whether its scores depend on the seed.
    """

    needs: ClassVar[tuple[str, ...]] = ("probabilities",)
    packages: ClassVar[tuple[str, ...]] = ()
    erases_units: ClassVar[bool] = False
    scores_units: ClassVar[bool] = False
    normalised: ClassVar[bool] = False
    sampled: ClassVar[bool] = False

    @abstractmethod
    def scores(self, chunk: Chunk) -> Sequence[Scores]:
        """Return the scores of every instance's tokens, float64 (tokens,) each, for ``chunk.targets``."""

    @classmethod
    @abstractmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return the largest number of inputs of the model that the scores of an instance take.

        Args:
            one: the instance.
            units: how many units the instance has.
            settings: the run's :class:`settings.ExplainSettings`.
        """


class InsideMethod(Method):
    """A method that an adapter computes from the inside: gradients, attention, coefficients."""

    needs = ("gradients",)

    def scores(self, chunk: Chunk) -> Sequence[Scores]:
        """Return the adapter's scores."""
        model, settings = chunk.model, chunk.settings
        model.choices, model.outputs = settings.choices, chunk.runner.results
        return model.scores(settings.method, chunk.encoded, chunk.targets, settings.steps)

    @classmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return 1: one pass."""
        return 1


METHODS = Registry("eraser_hub.methods", "method", Method, "eraser_hub.attribution.methods")  # type: ignore[type-abstract]


def supports(model: Adapter, name: str) -> bool:
    """Return True if the model provides what the method needs, or its adapter supports the method by name."""
    return set(METHODS[name].needs) <= model.provides or model.supports(name)


def check_support(model: Adapter | None, method: type[Method] | None, name: str) -> None:
    """Check that a model allows a method, and that its packages are there; None for no method, or an unopened model.

    Raises:
        DataError: the model does not allow it, and which it allows; a package is missing.
    """
    if method is None or model is None:
        return
    if not supports(model, name):
        allowed = ", ".join(other for other in METHODS if supports(model, other))
        message = f"`method` {name}: not possible with {model.description}; it allows {allowed}"
        raise DataError(message)
    need(*method.packages)
