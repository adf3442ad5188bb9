"""Identity of scores: the gold that they are scores against."""

from __future__ import annotations

from typing import NamedTuple

from eraser_hub.metrics.gold_digest import shorten_digest


class Identity(NamedTuple):
    """The gold that scores are scores against.

    Attributes:
        data: digest of the gold.
        split: the dataset's name of the split.
    """

    data: str
    split: str

    def sign(self, signature: str) -> str:
        """Return a signature with the gold and the split behind the name of its metric."""
        name, _, settings = signature.partition("|")
        own = [f"data:{shorten_digest(self.data)}"] * ("|data:" not in signature)
        return "|".join([name, *own, f"split:{self.split}", settings])
