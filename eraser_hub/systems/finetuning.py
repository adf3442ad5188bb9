"""Fine-tune a transformers encoder as a sequence classifier or for multiple choice.

A document longer than the window gives one training example per window (without overlap), each with the document's
label; when explaining, windows overlap and their probabilities are averaged. A multiple-choice example holds one input
for each answer.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import torch
import transformers
from msgspec import Meta
from torch import Tensor

from eraser_hub.attribution.models.multiple_choice import ChoiceModel, split_answers
from eraser_hub.attribution.models.transformer import TransformerModel
from eraser_hub.papers.presets import load_preset

from .data import Data, Labelled, Training
from .embedders import load_pretrained
from .fitting import Objective, fit
from .system import Count, Optimised, Positive, Weight, name_source

MULTIPLE_CHOICE = "multiple-choice"
log = logging.getLogger("eraser_hub")


@dataclass(frozen=True, kw_only=True)
class FineTuning(Optimised):
    """A fine-tuned transformers encoder (Carton et al., 2020, appendix A), for names that are no system's.

    Batch, warmup and learning rate are the paper's; AdamW with a linear decay.

    Attributes:
        base: the encoder, a folder or Hub id; its classification head may be missing.
        task: classification, multiple-choice, or auto: the latter if every query holds an answer for each label.
        window: longest input in sub-words; None for the encoder's own limit.
        trust_remote_code: run the code that the encoder brings.
    """

    epochs: Positive = 3.0
    learning_rate: Positive = 2e-5
    warmup_steps: Count = 50
    linear_decay: bool = True
    patience: Count = 0
    clip: Weight = 1.0
    base: str = ""
    task: Literal["auto", "classification", "multiple-choice"] = "auto"
    window: Annotated[int, Meta(ge=8)] | None = None
    trust_remote_code: bool = False
    validates: ClassVar[bool] = False
    files: ClassVar[tuple[str, ...]] = ("base",)

    def fit(self, training: Training) -> dict[str, Any]:
        """Train and save a classifier that ``explain`` opens."""
        data, chooses = training.data, self.task == MULTIPLE_CHOICE
        if self.task == "auto":
            # CoS-E's labels are letters, which mean another answer in every question: its query holds one for each
            size = len(data.label_names)
            chooses = data.uses_query and size > 1 and all(len(split_answers(one)) == size for one in data.train[0])
        query_last = load_preset(training.paper).choices.query_last
        transformers.set_seed(training.seed)
        model = self._make_untrained_model(data, chooses, query_last)
        objective = FinetuningObjective(model, data, self.batch_size)
        inputs = "questions" if chooses else "windows"
        count = sum(map(len, objective.training))
        log.info(f"{count} {inputs} of at most {model.window} sub-words from {len(data.train[0])} instances")
        warmup = min(self.warmup_steps, self.max_steps // 10) if self.max_steps else self.warmup_steps
        progress = fit(objective, replace(self, warmup_steps=warmup), training.seed, training.folder)
        model.network.save_pretrained(training.folder)
        model.tokenizer.save_pretrained(training.folder)
        task = MULTIPLE_CHOICE if chooses else "classification"
        facts = {"kind": "transformers", "task": task, "base": name_source(self.base), "window": self.window}
        return {**facts, **({"query_last": True} if query_last else {}), **progress.facts()}

    def _make_untrained_model(self, data: Data, chooses: bool, query_last: bool) -> TransformerModel:
        """Return an encoder with a new head as a model, which cuts the training examples."""
        names, head = dict(enumerate(data.label_names)), dict[str, Any]()
        kind = "AutoModelForMultipleChoice"
        if not chooses:
            kind = "AutoModelForSequenceClassification"
            head = {"num_labels": len(names), "id2label": names, "label2id": {name: at for at, name in names.items()}}
        network, tokenizer = load_pretrained(
            kind, self.base, self.trust_remote_code, ignore_mismatched_sizes=True, **head
        )
        more: dict[str, Any] = {"window": self.window, "description": name_source(self.base), "precision": "float32"}
        if not chooses:
            return TransformerModel(network, tokenizer, uses_query=data.uses_query, query_last=query_last, **more)
        model = ChoiceModel(network, tokenizer, **more)
        model.label_names = tuple(data.label_names)
        return model


class Window(NamedTuple):
    """A training example: one input of the network (of several rows in multiple choice), and its label's number."""

    data: Any
    label: int
    size: int


class FinetuningObjective(Objective[Window]):
    """The network's own loss on windows of texts, or on questions with one row per answer.

    Args:
        model: the untrained model.
        data: the instances.
        batch_size: size of validation batches.
    """

    def __init__(self, model: TransformerModel, data: Data, batch_size: int) -> None:
        self.model, self.network, self.device = model, model.network, model.device
        self.draw, self.batch_size = data.draw, batch_size
        self.training, validation = (self._cut(part, data.label_names) for part in (data.train, data.validation))
        self.validation = list(chain.from_iterable(validation))

    def _cut(self, part: Labelled, label_names: Sequence[str]) -> list[list[Window]]:
        """Return the examples of each instance."""
        examples, names = [], list(label_names)
        for one, name in zip(*part, strict=True):
            reading: Any = self.model.read(one)
            label = names.index(name)
            if isinstance(self.model, ChoiceModel):
                rows = [choice.code[choice.windows()[0]] for choice in reading.readings]
                examples.append([Window(rows, label, max(map(len, rows)))])
            else:
                places = reading.windows(overlap=False)
                examples.append([Window(reading.code[window], label, len(window)) for window in places])
        return examples

    def examples(self, epoch: int) -> Sequence[Window]:
        """Return the examples of an epoch."""
        numbers = range(len(self.training)) if self.draw is None else self.draw(epoch)
        return [window for number in numbers for window in self.training[number]]

    def size(self, example: Window) -> int:
        """Return the length of an example in sub-words."""
        return example.size

    def loss(self, batch: Sequence[Window]) -> Tensor:
        """Return the loss of a batch."""
        labels = torch.tensor([one.label for one in batch], device=self.device)
        return self.network(**self.model.tensors([one.data for one in batch]), labels=labels).loss  # type: ignore[no-any-return]

    def predict(self, batch: Sequence[Window]) -> tuple[Tensor, Tensor]:
        """Return logits, and no loss beside that of the labels."""
        logits = self.network(**self.model.tensors([one.data for one in batch])).logits
        return logits, logits.new_zeros(len(batch))
