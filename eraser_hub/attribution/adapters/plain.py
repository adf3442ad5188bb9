"""Any object with ``predict_proba(list of token lists) -> array (n, classes)``."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError, show

from ..adapter import Adapter, Encoded, ProbabilityModel, View
from ..instances import Instance
from ..open import Opener, Opening


@dataclass(slots=True)
class CutTokens(Encoded):
    """An instance as a list of tokens, with the substitutes of erased ones."""

    instance: Instance
    tokens: list[str]
    query: list[str]
    mask_token: str | None
    pad_token: str | None

    def view(self, kept: NDArray[np.bool_], erase: str) -> View:
        """Return the input with the tokens that are not kept erased."""
        tokens = erase_tokens(self.tokens, kept, erase, self.mask_token, self.pad_token)
        key = hashlib.blake2b("\x1f".join(tokens).encode("utf-8", "surrogatepass"), digest_size=16)
        key.update(b"\x1d" + "\x1f".join(self.query).encode("utf-8", "surrogatepass") + bytes(min(len(tokens), 1)))
        return View((key.digest(),), (len(tokens) + len(self.query),), (tokens, self.query))


def erase_tokens(
    tokens: Sequence[str], kept: NDArray[np.bool_], erase: str, mask: str | None, pad: str | None
) -> list[str]:
    """Remove the tokens that are not kept, or replace them by the mask or padding token."""
    if erase == "remove":
        return [token for token, stays in zip(tokens, kept, strict=True) if stays]
    substitute = mask if erase == "mask" else pad
    if substitute is None:
        message = f"`erase` {erase}: the model has no {erase} token; use `erase` remove"
        raise DataError(message)
    return [token if stays else substitute for token, stays in zip(tokens, kept, strict=True)]


class PlainModel(Adapter):
    """Any object with ``predict_proba(list of token lists)``.

    Attributes ``mask_token`` and ``pad_token`` of the object are used for erasing, ``label_names`` (or scikit-learn's
    ``classes_``) for its labels. A ``predict_proba`` with a second parameter named ``queries`` is given the queries;
    any other gets the query's tokens before the document's when the query is used.
    """

    def __init__(self, model: ProbabilityModel, *, uses_query: bool = False) -> None:
        super().__init__()
        if not callable(getattr(model, "predict_proba", None)):
            message = f"expected a model with predict_proba(token lists), found {type(model).__name__}"
            if hasattr(model, "save_pretrained"):
                message += ": save it and its tokenizer by save_pretrained, and give the folder"
            elif callable(model):
                message += ": give an object whose predict_proba calls it, with the labels as label_names"
            raise DataError(message)
        self.model, self.uses_query = model, uses_query
        self.description = type(model).__name__
        names: Any = getattr(model, "label_names", None)
        names = getattr(model, "classes_", ()) if names is None else names
        if callable(names) or isinstance(names, str):
            message = f"{self.description}.label_names: expected a list of names, found {show(names)}"
            raise DataError(message)
        self.label_names = tuple(map(str, names))
        self._separate = "queries" in inspect.signature(model.predict_proba).parameters

    def encode(self, instance: Instance) -> Encoded:
        """Cut the instance into the units that the model reads."""
        query = list(instance.query) if self.uses_query else []
        mask, pad = getattr(self.model, "mask_token", None), getattr(self.model, "pad_token", None)
        return CutTokens(instance, instance.tokens, query, mask, pad)

    def forward(self, units: Sequence[tuple[View, int]]) -> NDArray[np.float64]:
        """Return the probabilities of a batch."""
        if self._separate:
            model: Any = self.model  # whose second parameter the protocol does not name
            texts, queries = ([list(view.data[part]) for view, _ in units] for part in (0, 1))
            separate: NDArray[np.float64] = model.predict_proba(texts, queries=queries)
            return separate
        return self.model.predict_proba([view.data[1] + view.data[0] for view, _ in units])


class PlainOpener(Opener):
    """An object that takes token lists."""

    last = True

    @classmethod
    def opens(cls, opening: Opening) -> bool:
        """Return True if the model is of this kind."""
        return opening.path is None

    @classmethod
    def open(cls, opening: Opening) -> Adapter:
        """Return the model behind the one interface."""
        return PlainModel(opening.model, uses_query=bool(opening.uses_query))
