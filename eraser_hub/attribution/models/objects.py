"""Any object with ``predict_proba(list of token lists) -> (texts, labels)``."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.instances import Instance
from eraser_hub.records.errors import DataError, show

from .inputs import ModelInput
from .model import Model


@dataclass(slots=True)
class Tokens:
    """An instance as the numbers of its tokens.

    Attributes:
        instance: the instance.
        query: tokens of the query, () where the model reads none.
        numbers: int32 (tokens,), equal for equal tokens of all texts.
    """

    instance: Instance
    query: tuple[str, ...]
    numbers: NDArray[np.int32]


class TokenModel(Model):
    """A model over tokens: an erased input is what is left of their list.

    Attributes:
        mask_token, pad_token: what stands in place of a token where erasing masks or pads; None where that is refused.
    """

    mask_token: str | None = None
    pad_token: str | None = None

    def __init__(self, uses_query: bool = False) -> None:
        super().__init__()
        self.uses_query = uses_query
        self._numbers: dict[str, int] = {}

    def read(self, instance: Instance) -> Any:
        """Read an instance once."""
        query, known = instance.query if self.uses_query else (), self._numbers
        numbers = [known.setdefault(token, len(known)) for token in instance.tokens]
        return Tokens(instance, query, np.asarray(numbers, np.int32))

    def cut(self, reading: Any, kept: NDArray[np.bool_], erase: str) -> Iterable[Sequence[ModelInput]]:
        """Yield the input of each erased variant: the numbers of its tokens."""
        substitute = {"mask": self.mask_token, "pad": self.pad_token}.get(erase)
        if erase != "remove" and substitute is None:
            raise DataError(f"`erase` {erase}: {self.description} has no {erase} token; use `erase` remove")
        number = None if substitute is None else self._numbers.setdefault(substitute, len(self._numbers))
        for flags in kept:
            left = reading.numbers[flags] if number is None else np.where(flags, reading.numbers, np.int32(number))
            key = hashlib.blake2b(left.tobytes(), digest_size=16).digest()
            yield (ModelInput((key, reading.query), len(left) + len(reading.query), (reading.query, left)),)

    def get_texts(self, inputs: Sequence[Any]) -> list[tuple[list[str], list[str]]]:
        """Return the tokens of the query and of the text of each input."""
        words = list(self._numbers)
        return [(list(query), [words[number] for number in numbers.tolist()]) for query, numbers in inputs]


class ObjectModel(TokenModel):
    """Any object with ``predict_proba(list of token lists)``.

    Attributes ``mask_token`` and ``pad_token`` of the object are used for erasing, ``label_names`` (or scikit-learn's
    ``classes_``) for its labels. A ``predict_proba`` with a second parameter named ``queries`` is given the queries;
    any other gets the query's tokens before the document's when the query is used.
    """

    def __init__(self, model: Any, *, uses_query: bool = False) -> None:
        super().__init__(uses_query)
        self.model, self.description = model, type(model).__name__
        self.mask_token, self.pad_token = getattr(model, "mask_token", None), getattr(model, "pad_token", None)
        names: Any = getattr(model, "label_names", None)
        names = getattr(model, "classes_", ()) if names is None else names
        if callable(names) or isinstance(names, str):
            raise DataError(f"{self.description}.label_names: expected a list of names, found {show(names)}")
        self.label_names = tuple(map(str, names))
        self._takes_queries = "queries" in inspect.signature(model.predict_proba).parameters

    def forward(self, inputs: Sequence[Any]) -> Any:
        """Return the object's own answer for a batch."""
        pairs = self.get_texts(inputs)
        if self._takes_queries:
            return self.model.predict_proba([text for _, text in pairs], queries=[query for query, _ in pairs])
        return self.model.predict_proba([[*query, *text] for query, text in pairs])
