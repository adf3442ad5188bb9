"""Any object with ``predict_proba(list of token lists)``."""

from __future__ import annotations

from ..adapter import Adapter
from ..models.plain_model import PlainModel
from ..open import Opener, Opening


class PlainOpener(Opener):
    """An object that takes token lists."""

    last = True

    @classmethod
    def opens(cls, opening: Opening) -> bool:
        return opening.path is None

    @classmethod
    def open(cls, opening: Opening) -> Adapter:
        return PlainModel(opening.model, uses_query=bool(opening.uses_query))
