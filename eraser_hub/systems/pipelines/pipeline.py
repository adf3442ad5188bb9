"""A selector and a classifier of what it selects, as one model of ``explain``."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import Adapter, Encoded, Selection, View, align_labels
from eraser_hub.attribution.instances import Instance
from eraser_hub.records.errors import DataError

from .selectors import Selector, Stage


@dataclass(slots=True)
class Whole(Encoded):
    """An instance; an erased one is the instance without the erased tokens, from which is selected anew."""

    instance: Instance

    def view(self, kept: NDArray[np.bool_], erase: str) -> View:
        if erase != "remove":
            words = f"--erase {erase}: a pipeline cuts its extract out of the text; use --erase remove"
            raise DataError(words, rule="unsupported")
        left = self.instance.only(kept)
        digest = hashlib.blake2b(repr((left.query, left.documents, left.sentences)).encode(), digest_size=16).digest()
        return View((digest,), (len(left.query) + left.bounds[-1],), left)


class RationalePipeline(Adapter):
    """A pipeline: of every text, erased ones too, the classifier reads the extract alone.

    Args:
        selector: decides what the extract is.
        classifier: its labels are the pipeline's.
        uses_query: whether any of the two sees the query.
    """

    selects = True

    def __init__(self, selector: Selector, classifier: Adapter, *, uses_query: bool, description: str) -> None:
        super().__init__()
        align_labels(classifier, ())
        self.selector, self._classifier = selector, Stage(classifier)
        self.label_names, self.uses_query, self.description = classifier.label_names, uses_query, description
        for stage in (selector.model, classifier):
            stage.notes = self.notes  # what happens in a stage happens in the pipeline

    def encode(self, instance: Instance) -> Whole:
        return Whole(instance)

    def forward(self, units: Sequence[tuple[View, int]]) -> NDArray[np.float64]:
        instances = [view.data for view, _ in units]
        return self._classifier.probabilities(
            [extract(one, selection) for one, selection in zip(instances, self.selector.select(instances), strict=True)]
        )

    def selections(self, encoded: Sequence[Encoded]) -> list[Selection]:
        return self.selector.select([one.instance for one in encoded])


def extract(instance: Instance, selection: Selection) -> Instance:
    """What the classifier reads: the selected tokens, and the query."""
    kept = np.zeros(instance.bounds[-1], dtype=bool)
    kept[selection.positions] = True
    return instance.only(kept)
