"""Multiple choice (CoS-E): the query holds the answers, the document the question; each answer is scored with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.instances import Instance
from eraser_hub.records.errors import DataError

from .inputs import ModelInput
from .model import Model
from .subwords import Reading, lay_out, make_key
from .transformer import Explained, TransformerModel

if TYPE_CHECKING:
    from eraser_hub.attribution.text import Text

SEPARATOR = "[sep]"


def split_answers(instance: Instance) -> list[list[str]]:
    """Split a query into its answers, which ``[sep]`` tokens separate."""
    answers: list[list[str]] = [[]]
    for token in instance.query:
        if token == SEPARATOR:
            answers.append([])
        else:
            answers[-1].append(token)
    return answers


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceReading:
    """A question with each of its answers, in sub-words."""

    instance: Instance
    readings: list[Reading]


class ChoiceModel(TransformerModel):
    """A multiple-choice model: one logit per answer, softmax over the answers.

    The labels are the dataset's (A, B, ..), in the order of the answers; a question longer than the window is cut at
    its end, and counted.
    """

    has_labels = False
    provides = frozenset({"probabilities", "gradients"})

    def __init__(self, network: Any, tokenizer: Any, **more: Any) -> None:
        super().__init__(network, tokenizer, **{**more, "uses_query": True, "query_last": False})
        self.label_names = ()

    def read(self, instance: Instance) -> ChoiceReading:
        """Cut the question and its answers into the sub-words that the model reads."""
        answers = split_answers(instance)
        if self.label_names and len(answers) != len(self.label_names):
            message = f"expected {len(self.label_names)} answers between {SEPARATOR}, found {len(answers)}"
            raise DataError(message, instance=instance.id, field="query")
        ids, source = self.words.cut(instance.tokens)
        texts = [self.words.cut(answer)[0] for answer in answers]
        room = max(1, self.window - self.words.pair.size - max(map(len, texts)))
        if len(ids) > room:
            self.notes.count("questions cut at their end")
        question = ids[:room], source[:room]
        readings = [
            lay_out(
                instance,
                self.words.pair,
                [question, (text, np.full(len(text), instance.bounds[-1]))],
                1,
                self.window,
                self.words.blank,
            )
            for text in texts
        ]
        self.count_limits(readings[0], ids, source)
        return ChoiceReading(instance, readings)

    def cut(self, reading: ChoiceReading, kept: NDArray[np.bool_], erase: str) -> Iterator[list[ModelInput]]:
        """Yield each erased variant: the question with every answer is one input."""
        substitute = self.find_substitute(erase)
        for variants in zip(*(answer.cut(kept, substitute) for answer in reading.readings), strict=True):
            rows = [windows[0] for windows in variants]
            key = b"".join(len(codes).to_bytes(4, "little") + make_key(codes) for codes in rows)
            yield [ModelInput(key, max(map(len, rows)), rows)]

    def rows_for(self, size: int, batch_size: int) -> int:
        """Return the number of inputs in a batch."""
        return max(1, super().rows_for(size, batch_size) // max(len(self.label_names), 1))

    def tensors(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """Return padded inputs of the network on the device, (inputs, answers, places)."""
        flat = super().tensors([codes for rows in inputs for codes in rows])
        return {name: rows.view(len(inputs), -1, rows.shape[-1]) for name, rows in flat.items()}

    def explained(self, text: Text) -> list[Explained]:
        """Return the question with all answers, over whose tokens scores are summed."""
        rows = [(answer, answer.windows()[0]) for answer in text.reading.readings]
        return [Explained([answer.code[places] for answer, places in rows], rows, (self.column(text.label),))]

    mask_elements = Model.mask_elements
