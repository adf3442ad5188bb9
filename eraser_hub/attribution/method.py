"""The attribution methods, one class each in :mod:`methods`; and the description that methods and measures share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from eraser_hub.records.errors import DataError, show
from eraser_hub.records.extras import need
from eraser_hub.records.registry import Registry

if TYPE_CHECKING:  # the command line lists methods without waiting for numpy
    from .adapter import Adapter
    from .chunk import Chunk, Scores
    from .instances import Instance


class Setting(NamedTuple):
    """A setting of a part that :class:`settings.ExplainSettings` has no field for.

    Attributes:
        default: the default, whose type is the setting's: a bool, an int, a float or a string.
        help: one sentence on the setting.
        least: the least number; None for any.
        choices: the allowed values; () for any.
    """

    default: Any
    help: str
    least: float | None = None
    choices: tuple[Any, ...] = ()

    def check(self, name: str, value: Any) -> None:
        """Refuse another type, a number below the least, or a value that is none of the choices.

        Raises:
            DataError: such a value.
        """
        kind = type(self.default)
        number = kind is float and isinstance(value, int) and not isinstance(value, bool)
        if type(value) is not kind and not number:
            message = f"a value of type {kind.__name__}"
        elif self.choices and value not in self.choices:
            message = f"one of {', '.join(map(str, self.choices))}"
        elif self.least is not None and not value >= self.least:
            message = f"at least {self.least:g}"
        else:
            return
        raise DataError(f"expected {message}, found {show(value)}", argument=name)

    def parsed(self, text: str) -> Any:
        """Return a value from its text; the text where it is none of the type, which :meth:`check` refuses."""
        kind = type(self.default)
        if kind is bool and text in ("true", "false"):
            return text == "true"
        try:
            return kind(text) if kind in (int, float) else text
        except ValueError:
            return text


class DescribedPart:
    """Description of a method or measure; its name is its module's, or its entry point's.

    Attributes:
        source: the paper that it is from.
        reads: fields of :class:`settings.ExplainSettings` that it reads beside those that all do.
        settings: its own: name -> setting; read as ``chunk.settings.more[name]``.
        signature_format: a format of its settings for a run's signature: ``"steps:{0.steps}"``.
    """

    source: ClassVar[str] = ""
    reads: ClassVar[tuple[str, ...]] = ()
    settings: ClassVar[Mapping[str, Setting]] = {}
    signature_format: ClassVar[str] = ""

    @classmethod
    def summary(cls) -> str:
        """Return its docstring's first line."""
        return (cls.__doc__ or "").strip().partition("\n")[0]

    @classmethod
    def describe_settings(cls, settings: Any) -> list[str]:
        """Return the settings for a run's signature, ``["steps:300"]``; by default by :attr:`signature_format`."""
        return [cls.signature_format.format(settings)] * bool(cls.signature_format) + [
            f"{name}:{settings.more[name]}" for name in cls.settings
        ]


class Method(DescribedPart, ABC):
    """An attribution method.

    Attributes:
        needs: capabilities of an adapter that it needs (:attr:`adapter.Adapter.provides`).
        packages: modules of an extra that it needs (`records.extras.EXTRAS`).
        erases_units: whether it erases sets of units, which ``units`` names.
        scores_units: whether its scores are of whole units, each shared equally by the unit's tokens; the scores of
            other methods are of tokens, and a sentence has their mean.
        normalised: whether papers divide its scores by their sum (:attr:`papers.presets.Choices.normalise`).
        drawn: whether it is drawn by chance alone, so that several draws make sense.
        sampled: whether its scores depend on the seed.
    """

    needs: ClassVar[tuple[str, ...]] = ("probabilities",)
    packages: ClassVar[tuple[str, ...]] = ()
    erases_units: ClassVar[bool] = False
    scores_units: ClassVar[bool] = False
    normalised: ClassVar[bool] = False
    drawn: ClassVar[bool] = False
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
