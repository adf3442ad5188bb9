"""What is erased together: single tokens, or sentences."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.instances import Instance
from eraser_hub.records.errors import DataError

UNITS = ("tokens", "sentences")
MASKS = ("tokens", "elements")  # of soft scores: units, or numbers of the tokens' embeddings


def unit_bounds(one: Instance, units: str) -> NDArray[np.int64]:
    """Offsets of the units in the instance's tokens, the end included.

    Raises:
        DataError: sentences of a text that is not divided into any.
    """
    tokens = one.bounds[-1]
    if units == "tokens":
        return np.arange(tokens + 1)
    if tokens and not one.sentences:
        words = "--units sentences: expected documents with sentences, found tokens alone"
        raise DataError(words, rule="unsupported", instance=one.id)
    return np.cumsum([0, *(size for sizes in one.sentences for size in sizes)])
