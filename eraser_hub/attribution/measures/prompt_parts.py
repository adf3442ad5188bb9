"""Contributions of the parts of a prompt to its answer: of its instructions, examples, query and documents.

The value of a set of parts is the log-odds of the label, ``log p - log(1 - p)``, where the prompt has no other part.
A part's occlusion is the whole prompt's value minus that without the part. Shapley values are exact, over all sets of
the at most 4 parts: they sum to the value of the whole prompt minus that of the prompt without any part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError
from eraser_hub.schema.instance import PROMPT_PARTS

from ..adapter import Adapter, Encoded
from ..chunk import Chunk
from ..erasure import Erased, empty, full
from ..instances import Instance
from ..measure import Fields, Measure
from ..methods._shapley_values import compute_shapley_values

if TYPE_CHECKING:
    from ..config import ExplainConfig
    from ..transformers.prompted import PromptedModel

DOCUMENTS = "documents"
MOST_PARTS = 4
LEAST = float(np.finfo(np.float64).tiny)  # the least probability: log-odds lie within 708.4 of 0


class PromptParts(Measure):
    """Contributions of a prompt's instructions, examples, query and documents to the label's log-odds."""

    source = "Shapley 1953"
    enabled_by, fields = "prompt_parts", (PROMPT_PARTS,)
    signature_format = "prompt-parts"
    ranks = erases_units = costly = False

    def prepare(self, model: Adapter, config: ExplainConfig, settings: Any) -> str:
        """Refuse models without a prompt."""
        check_prompted(model)
        return ""

    def measure(self, chunk: Chunk) -> Fields:
        """Return occlusion and Shapley value of each part that a prompt has."""
        check_prompted(chunk.model)
        model = cast("PromptedModel", chunk.model)
        prompts, erased, names = list[Encoded](), list[Erased](), list[list[str]]()
        for one in chunk.instances:
            parts, encoded = model.encode_parts(one)
            numbers = range(len(prompts), len(prompts) + len(encoded))
            has_documents = bool(one.bounds[-1])
            # the documents are the last part: sets without them come first
            erased += [*map(empty, numbers)] * has_documents + [*map(full, numbers)]
            prompts += encoded
            names.append([*parts, *[DOCUMENTS] * has_documents])
        probabilities = chunk.runner.run(prompts, erased, chunk.settings.choices.filler)
        rows, start = [], 0
        for parts, target in zip(names, chunk.targets, strict=True):
            values = compute_log_odds(probabilities[start : start + (1 << len(parts))], target)
            start += len(values)
            occlusion = [float(values[-1] - values[(len(values) - 1) ^ (1 << place)]) for place in range(len(parts))]
            shapley = compute_shapley_values(len(parts), values).tolist()
            triples = zip(parts, occlusion, shapley, strict=True)
            rows.append(
                {PROMPT_PARTS: [dict(zip(("part", "occlusion", "shapley"), row, strict=True)) for row in triples]}
            )
        return rows

    @classmethod
    def most_inputs(cls, one: Instance, units: int, settings: Any) -> int:
        """Return every set of parts."""
        return 1 << MOST_PARTS


def check_prompted(model: Adapter) -> None:
    """Refuse a model without a prompt.

    Raises:
        DataError: such a model.
    """
    if not model.prompted:
        message = f"`prompt_parts`: expected a language model that is prompted, found {model.description}"
        raise DataError(message, rule="unsupported")


def compute_log_odds(probabilities: NDArray[np.float64], label: int) -> NDArray[np.float64]:
    """Compute ``log p - log(1 - p)`` of a label, natural logarithms, from probabilities of shape (inputs, labels)."""
    others = np.delete(probabilities, label, axis=1).sum(axis=1)
    odds: NDArray[np.float64] = np.log(np.maximum(probabilities[:, label], LEAST)) - np.log(np.maximum(others, LEAST))
    return odds
