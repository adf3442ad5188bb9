"""Sequence classifiers whose heads are no softmax: sigmoids of several labels, or a number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from eraser_hub.attribution.instances import Instance
from eraser_hub.records.errors import DataError
from eraser_hub.schema.label_tasks import ABSENT, MULTI_LABEL, PRESENT, REGRESSION, VALUE, LabelTask

from .devices import to_float32
from .pieces import Explained, Pieces
from .sequence_model import SequenceModel


class MultiLabelModel(SequenceModel):
    """A classifier with a sigmoid for each label.

    The query of an instance names the label, and is not part of the input. The outputs are ``1 - p, p`` of each label;
    one forward pass of a text serves the instances of all its labels.
    """

    label_task = MULTI_LABEL

    def __init__(self, network: Any, tokenizer: Any, *, uses_query: bool = False, **options: Any) -> None:
        super().__init__(network, tokenizer, uses_query=False, **options)
        self.label_columns = {name.casefold(): column for column, name in enumerate(self.label_names)}
        if len(self.label_columns) < len(self.label_names):
            message = f"{self.description}: expected different labels, found {', '.join(self.label_names[:10])}"
            raise DataError(message, rule="label-unknown")
        self.label_names = (ABSENT, PRESENT)

    def encode(self, instance: Instance) -> Pieces:
        """Cut the instance into the units that the model reads; the query stays with it."""
        encoded = super().encode(replace(instance, query=()))
        encoded.instance = instance
        return encoded

    def to_outputs(self, logits: Any) -> Any:
        """Return ``1 - p, p`` of each label, shape (inputs, 2 labels)."""
        p = self.torch.sigmoid(logits)
        # sigmoid(-z) is 1 - p without loss where p is near 1
        return self.torch.stack([self.torch.sigmoid(-logits), p], dim=-1).flatten(start_dim=1)

    def explained(self, encoded: Any, target: int) -> list[Explained]:
        """Return the model inputs to explain."""
        column = 2 * self.find_label_column(encoded.instance) + target
        return [Explained(window, (column,), target=column) for window in encoded.whole()]

    def explained_output(self, out: Any, places: Any, method: str) -> Any:
        """Return the output whose gradient is taken; for DeepLIFT half the log odds, the logit minus the mean."""
        logits = to_float32(out.logits)
        if method == "deeplift":
            halves = self.torch.stack([-logits / 2, logits / 2], dim=-1).flatten(start_dim=1)
            return halves.gather(1, places)[:, 0]
        return self.to_outputs(logits).gather(1, places)[:, 0]

    def output_column(self, encoded: Pieces, target: int) -> int:
        """Return the number of the explained output."""
        return 2 * self.find_label_column(encoded.instance) + target


class RegressionModel(SequenceModel):
    """A network with one output, a number in the units of its gold values."""

    label_task: LabelTask = REGRESSION

    def __init__(self, network: Any, tokenizer: Any, **options: Any) -> None:
        super().__init__(network, tokenizer, **options)
        if len(self.label_names) != 1:
            message = (
                f"{self.description}: expected one output for the task {REGRESSION}, found {len(self.label_names)}"
            )
            raise DataError(message, rule="unsupported")
        self.label_names = (VALUE,)

    def to_outputs(self, logits: Any) -> Any:
        """Return the numbers, shape (inputs, 1)."""
        return logits

    def explained_output(self, out: Any, places: Any, method: str) -> Any:
        """Return the output whose gradient is taken, shape (inputs,)."""
        return to_float32(out.logits)[:, 0]
