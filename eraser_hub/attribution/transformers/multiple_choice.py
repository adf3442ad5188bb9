"""Multiple choice (CoS-E): the query holds the answers, the document the question; each answer is scored with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import Encoded, View
from eraser_hub.attribution.instances import Instance
from eraser_hub.records.errors import DataError

from .pieces import Explained, Pieces, Window, make_blank_window, make_window
from .sequence_model import SequenceModel

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


@dataclass(slots=True)
class CutChoices(Encoded):
    """A question and its answers, cut into sub-words."""

    instance: Instance
    question: Pieces
    answers: list[NDArray[np.int64]]

    def windows(self, kept: NDArray[np.bool_], erase: str) -> list[Window]:
        """Return one model input for each answer: (question, answer)."""
        ids, places = self.question.remaining(kept, erase)
        model = self.question.model
        hidden = ~kept[self.question.owner[places]] if erase == "pad" else np.zeros(len(ids), dtype=bool)
        template = model.words.pair
        room = max(1, model.window - template.size - max(len(answer) for answer in self.answers))
        windows = [
            make_window(template, ids[:room], places[:room], answer, np.full(len(answer), -1), hidden[:room])
            for answer in self.answers
        ]
        return [window if len(window.code) else make_blank_window(model.words) for window in windows]

    @property
    def owner(self) -> NDArray[np.int64]:
        """The token that each sub-word of the question belongs to."""
        return self.question.owner

    def whole(self) -> list[Window]:
        """Return the model's inputs with nothing erased."""
        return self.windows(np.ones(self.question.bounds[-1], dtype=bool), "remove")

    def view(self, kept: NDArray[np.bool_], erase: str) -> View:
        """Return the input with the tokens that are not kept erased."""
        windows = self.windows(kept, erase)
        key = b"".join(len(window.code).to_bytes(4, "little") + window.key for window in windows)
        return View((key,), (max(len(window.code) for window in windows),), [windows])


class ChoiceModel(SequenceModel):
    """A multiple-choice model: one logit per answer, softmax over the answers.

    The labels are the dataset's (A, B, ..), in the order of the answers; a question longer than the window is cut at
    its end, and counted.
    """

    has_labels = False  # an input is as many texts as there are answers
    explains_singly = True
    provides = frozenset({"probabilities", "gradients", "embeddings"})

    def __init__(self, network: Any, tokenizer: Any, **more: Any) -> None:
        super().__init__(network, tokenizer, **{**more, "uses_query": True, "query_last": False})
        self.label_names = ()

    def encode(self, instance: Instance) -> CutChoices:  # type: ignore[override]
        """Cut the instance into the units that the model reads."""
        answers = split_answers(instance)
        if self.label_names and len(answers) != len(self.label_names):
            message = f"expected {len(self.label_names)} answers between {SEPARATOR}, found {len(answers)}"
            raise DataError(message, instance=instance.id, field="query")
        question = super().encode(replace(instance, query=()))
        cut = [
            np.asarray([piece for word in self.words.cut(answer) for piece in word], dtype=np.int64)
            for answer in answers
        ]
        if len(question.ids) + max(map(len, cut)) + self.words.pair.size > self.window:
            self.notes.count("questions cut at their end")
        return CutChoices(instance, question, cut)

    def rows_for(self, size: int, batch_size: int) -> int:
        """Return the number of units in a batch."""
        return max(1, super().rows_for(size, batch_size) // max(len(self.label_names), 1))

    def tensors(self, windows: Sequence[Any]) -> dict[str, Any]:
        """Return padded model inputs on the device."""
        flat = super().tensors([window for several in windows for window in several])
        return {name: rows.view(len(windows), -1, rows.shape[-1]) for name, rows in flat.items()}

    def _first_output(self, windows: Sequence[Any]) -> Any:
        return super()._first_output([[window] for window in windows])

    def explained(self, encoded: Any, target: int) -> list[Explained]:
        """Return the pairs (question, answer), over whose question's sub-words scores are summed."""
        return [Explained(encoded.whole(), (self.column(target),), target=target)]
