"""Hyper-parameters with their types and ranges; nothing here needs PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Annotated, Any, Literal, get_args, get_type_hints

from msgspec import Meta

from eraser_hub.records.errors import DataError, UsageError, show

MAX_TRIALS = 100
LARGEST = 1e12  # of a number: far above what trains, and far below what float32 cannot multiply
Value = int | float | str | bool
Size = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, lt=1)]


@dataclass(frozen=True, slots=True)
class Hyper:
    """Hyper-parameters of a training; a system with further hyper-parameters extends this class.

    The type of a field gives its values: a number is at least 0, a ``Size`` at least 1, a ``Share`` below 1, a
        ``Literal``
    one of its values.

    Attributes:
        epochs: Largest number of epochs.
        max_steps: Largest number of steps; 0: as many as ``epochs`` needs.
        batch_size: Examples in a step.
        learning_rate: Learning rate of Adam.
        weight_decay: Decoupled weight decay of AdamW; 0 gives Adam.
        warmup_steps: Steps over which the learning rate grows.
        linear_decay: Lower the learning rate linearly to 0 at the last step.
        patience: Epochs without a better validation score before training stops; 0: never stop early.
        monitor: The validation score that chooses the best weights.
        clip: Largest norm of the gradient; 0: any.
    """

    epochs: float = 20.0
    max_steps: int = 0
    batch_size: Size = 16
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    warmup_steps: int = 0
    linear_decay: bool = False
    patience: int = 5
    monitor: Literal["accuracy", "macro_f1", "loss"] = "accuracy"
    clip: float = 10.0

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(type(self), include_extras=True).items():
            expected = _describe_expected(hint, getattr(self, name))
            if expected:
                raise UsageError(f"{name}: expected {expected} found {show(getattr(self, name))}", argument="model")

    def parse_settings(self, settings: Sequence[str]) -> dict[str, Value]:
        """Parse hyper-parameters from ``NAME=VALUE``, each with its field's type.

        Raises:
            DataError: a name that is none of the fields (it lists these), a value of another type.
        """
        names, values = [field.name for field in fields(self)], dict[str, Value]()
        for setting in settings:
            name, _, text = setting.partition("=")
            if name not in names:
                words = f"expected NAME=VALUE with a name among {', '.join(names)}; found {show(setting)}"
                raise DataError(words, argument="model")
            values[name] = _parse_value(name, text, getattr(self, name))
        return values


@dataclass(frozen=True, slots=True)
class NetworkHyper(Hyper):
    """Hyper-parameters of networks over words.

    Attributes:
        embedding_size: Width of learned embeddings; a file of embeddings and an encoder have their own widths.
        hidden_size: Width of the LSTM, in each direction.
        dropout: Share of values that are dropped in training.
        lowercase: Lower-case words before they are looked up.
        min_count: Words that occur less often in the training text become unknown words.
        window: Sub-words that an encoder reads together; a longer text is cut into windows.
        trained_layers: Number of the encoder's last layers that are trained; the others stay frozen.
    """

    embedding_size: Size = 300
    hidden_size: Size = 128
    dropout: Share = 0.2
    lowercase: bool = True
    min_count: Size = 1
    window: Size = 512
    trained_layers: int = 2


def _describe_expected(hint: Any, value: Any) -> str:
    """Describe the values that a field accepts if the value is not among them; else return ""."""
    choices = get_args(hint)
    if isinstance(value, str):
        return "" if value in choices else f"one of {', '.join(choices)};"
    limits = [one for one in choices if isinstance(one, Meta)]
    if limits and limits[0].lt is not None and not limits[0].ge <= value < limits[0].lt:
        return "a share from 0 to below 1,"
    if limits and limits[0].lt is None and value < limits[0].ge:
        return f"at least {limits[0].ge},"
    return "" if 0 <= value <= LARGEST else f"a number from 0 to {LARGEST:g},"


def _parse_value(name: str, text: str, like: Value) -> Value:
    """Parse a hyper-parameter's value from text, with the type of ``like``."""
    try:
        if isinstance(like, bool):
            return {"true": True, "false": False}[text.lower()]
        return type(like)(text)
    except (KeyError, ValueError):
        kind = "true or false" if isinstance(like, bool) else {int: "an integer", float: "a number"}[type(like)]
        raise UsageError(f"{name}: expected {kind}, found {show(text)}", argument="model") from None


def parse_grid(grid: Sequence[str]) -> list[tuple[str, ...]]:
    """Return every combination of a grid's values as ``NAME=VALUE``; the last name changes fastest.

    >>> parse_grid(["hidden_size=100,200", "clip=5"])
    [('hidden_size=100', 'clip=5'), ('hidden_size=200', 'clip=5')]

    Args:
        grid: Entries ``NAME=VALUE,VALUE,..``; an empty grid has one empty combination.

    Raises:
        DataError: Another form, a name or a value twice, or more than :data:`MAX_TRIALS` combinations.
    """
    rows, names = list[list[str]](), set[str]()
    for one in grid:
        name, _, text = one.partition("=")
        values = text.split(",")
        if not name or not all(values) or name in names or len(set(values)) < len(values):
            words = f"expected several values, each once, found {show(one)}"
            raise DataError(words, argument="model")
        names.add(name)
        rows.append([f"{name}={value}" for value in values])
    trials = list(product(*rows))
    if len(trials) > MAX_TRIALS:
        words = f"expected at most {MAX_TRIALS} combinations, found {len(trials)}"
        raise DataError(words, argument="model")
    return trials
