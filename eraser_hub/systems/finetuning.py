"""Fine-tune a transformers encoder as a sequence classifier or for multiple choice.

A document longer than the window gives one training example per window (without overlap), each with the document's
label; when explaining, windows overlap and their probabilities are averaged. A multiple-choice example holds one input
for each answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eraser_hub.attribution.transformers.devices import to_float64
from eraser_hub.attribution.transformers.multiple_choice import ChoiceModel, CutChoices, split_answers
from eraser_hub.attribution.transformers.pieces import Window
from eraser_hub.attribution.transformers.sequence_model import SequenceModel
from eraser_hub.attribution.transformers.words import load_tokenizer, make_open_error, silence
from eraser_hub.papers.presets import load_preset
from eraser_hub.records.errors import DataError

from .data import Data, Labelled, Training
from .evaluation import compute_figures
from .fitting import Objective, fit
from .folder import mark_saving, write_facts
from .hyper import Hyper
from .system import FineTuning
from .train_config import MULTIPLE_CHOICE, Task, TrainConfig

Row = dict[str, Any]  # what a collator takes: input_ids, attention_mask, token_type_ids, labels


def train_encoder(system: FineTuning, training: Training) -> None:
    """Train and save a classifier that ``explain`` opens.

    Task "auto" means multiple choice if every query holds an answer for each label, else classification.

    Raises:
        DataError: The model cannot be opened, or :func:`fit` fails.
    """
    config, data = training.config, training.data
    task: Task = config.task
    if task == "auto":
        # CoS-E's labels are letters, which mean another answer in every question: its query holds one for each
        size = len(data.label_names)
        chooses = data.uses_query and size > 1 and all(len(split_answers(one)) == size for one in data.train[0])
        task = MULTIPLE_CHOICE if chooses else "classification"
    facts = {**training.facts, "task": task}
    if load_preset(config.paper).choices.query_last:
        facts["query_last"] = True
    finetune(replace(training, config=replace(config, task=task), facts=facts), system.hyper)


def finetune(training: Training, hyper: Hyper) -> None:
    """Train and save a classifier of a known task.

    Args:
        training: Its config names an encoder as ``model``, a local folder or Hub id (the classification head may be
            missing), and as ``task`` classification or multiple-choice.
        hyper: The hyper-parameters; those of the config take precedence.
    """
    import transformers

    config, data, out, say = training.config, training.data, training.out, training.say
    silence()
    transformers.set_seed(config.seed)
    chooses = config.task == MULTIPLE_CHOICE
    model = _make_untrained_model(config, data, bool(training.facts.get("query_last")))
    train, validation = (_make_training_rows(model, part, data.label_names) for part in (data.train, data.validation))
    inputs = f"{sum(map(len, train))} {'questions' if chooses else 'windows'} of at most {model.window} sub-words"
    say(f"{inputs} from {len(train)} instances")
    pad = transformers.DataCollatorWithPadding(model.tokenizer)
    collate = _make_collator(pad, len(data.label_names)) if chooses else pad
    hyper = replace(hyper, **config.options(), **hyper.parse_settings(config.hyper))  # type: ignore[arg-type]
    if hyper.max_steps:
        hyper = replace(hyper, warmup_steps=min(hyper.warmup_steps, hyper.max_steps // 10))
    objective = FinetuningObjective(model, train, validation, collate, data.draw, hyper.batch_size)
    progress = fit(objective, hyper, config.seed, training.folder, say)
    facts = {"base": Path(config.model).name, "steps": progress.step, "window": config.window, "seed": config.seed}
    with mark_saving(out):
        model.network.eval()
        out.mkdir(parents=True, exist_ok=True)
        # what `train` left in this folder before would be opened in the new model's place
        (out / "model.skops").unlink(missing_ok=True)
        model.network.save_pretrained(out)
        model.tokenizer.save_pretrained(out)
        write_facts({**training.facts, **facts}, out)


class FinetuningObjective(Objective[Row]):
    """The network's own loss on windows of texts, or on questions with one input per answer."""

    def __init__(
        self,
        model: SequenceModel,
        train: Sequence[list[Row]],
        validation: Sequence[list[Row]],
        collate: Callable[[list[Row]], dict[str, Tensor]],
        draw: Callable[[int], NDArray[np.int64]] | None = None,
        batch_size: int = 16,
    ) -> None:
        self.network, self.device = model.network, model.device
        self._train, self._validation, self._draw = train, validation, draw
        self._collate, self._batch_size = collate, batch_size

    def examples(self, epoch: int) -> Sequence[Row]:
        """Return the examples of an epoch."""
        instances = self._train if self._draw is None else [self._train[number] for number in self._draw(epoch)]
        return [row for rows in instances for row in rows]

    def size(self, example: Row) -> int:
        """Return the length of an example in sub-words."""
        first = example["input_ids"]
        return max(map(len, first)) if isinstance(first[0], list) else len(first)

    def loss(self, batch: Sequence[Row]) -> Tensor:
        """Return the loss of a batch."""
        return self._compute_outputs(batch).loss  # type: ignore[no-any-return]

    def _compute_outputs(self, batch: Sequence[Row]) -> Any:
        inputs = {name: tensor.to(self.device) for name, tensor in self._collate(list(batch)).items()}
        return self.network(**inputs)

    def validate(self) -> dict[str, float]:
        """Validate by instance: the probabilities of its windows are averaged, as in use."""
        if not self._validation:
            return {}
        number_of = {id(row): number for number, rows in enumerate(self._validation) for row in rows}
        numbers, values = list[int](), list[Tensor]()
        for batch in self.batches(chain.from_iterable(self._validation), self._batch_size):
            numbers += [number_of[id(row)] for row in batch]
            values.append(torch.softmax(to_float64(self._compute_outputs(batch).logits), dim=-1).cpu())
        whole = torch.cat(values)
        sums = whole.new_zeros((len(self._validation), whole.shape[1])).index_add_(0, torch.tensor(numbers), whole)
        probabilities = sums / sums.sum(dim=1, keepdim=True)
        labels = torch.tensor([rows[0]["labels"] for rows in self._validation])
        loss = -probabilities.gather(1, labels[:, None]).clamp(min=1e-12).log().mean()
        figures = compute_figures(labels.tolist(), probabilities.argmax(dim=1).tolist())
        return {**figures, "loss": float(loss)}


def _make_untrained_model(config: TrainConfig, data: Data, query_last: bool) -> SequenceModel:
    """Return the adapter of an encoder with a new head, which cuts the training examples."""
    import transformers

    label_names = data.label_names
    chooses, names, head = config.task == MULTIPLE_CHOICE, dict(enumerate(label_names)), dict[str, Any]()
    kind: Any = transformers.AutoModelForMultipleChoice if chooses else transformers.AutoModelForSequenceClassification
    if not chooses:
        head = {"num_labels": len(names), "id2label": names, "label2id": {name: at for at, name in names.items()}}
    try:
        network = kind.from_pretrained(
            config.model, ignore_mismatched_sizes=True, trust_remote_code=config.trust_remote_code, **head
        )
        tokenizer = load_tokenizer(config.model, config.trust_remote_code)
    except DataError:
        raise
    except Exception as error:  # transformers raises many kinds
        raise make_open_error(error, config.model) from error
    more: dict[str, Any] = {"window": config.window, "description": Path(config.model).name, "precision": "float32"}
    if not chooses:
        return SequenceModel(network, tokenizer, uses_query=data.uses_query, query_last=query_last, **more)
    model = ChoiceModel(network, tokenizer, **more)
    model.label_names = tuple(label_names)
    return model


def _make_training_rows(model: SequenceModel, part: Labelled, label_names: Sequence[str]) -> list[list[Row]]:
    """Return the examples of each instance: its windows, or a question with one input per answer."""
    examples, names = [], list(label_names)
    for one, name in zip(*part, strict=True):
        encoded, label = model.encode(one), names.index(name)
        if isinstance(encoded, CutChoices):
            choices = [_make_row(window, model.tokenizer) for window in encoded.whole()]
            examples.append([{**{name: [row[name] for row in choices] for name in choices[0]}, "labels": label}])
        else:
            windows = encoded.whole(overlap=False)
            examples.append([{**_make_row(window, model.tokenizer), "labels": label} for window in windows])
    return examples


def _make_row(window: Window, tokenizer: Any) -> Row:
    row = {"input_ids": window.ids.tolist(), "attention_mask": [1] * len(window.ids)}
    if "token_type_ids" in tokenizer.model_input_names:
        row["token_type_ids"] = window.types.tolist()
    return row


def _make_collator(pad: Callable[[list[Row]], Any], answers: int) -> Callable[[list[Row]], dict[str, Any]]:
    """Return a collator of questions with one input per answer: shape (questions, answers, sub-words)."""

    def collate(batch: list[Row]) -> dict[str, Any]:
        names = [name for name in batch[0] if name != "labels"]
        flat = [{name: row[name][answer] for name in names} for row in batch for answer in range(answers)]
        inputs = {name: tensor.view(len(batch), answers, -1) for name, tensor in pad(flat).items()}
        return {**inputs, "labels": torch.tensor([row["labels"] for row in batch])}

    return collate
