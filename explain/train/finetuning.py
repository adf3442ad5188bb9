"""Fine-tune a transformers encoder as a sequence classifier or for multiple choice, with the Trainer.

A document longer than the window gives one training example per window (without overlap), each with the document's
label; when explaining, windows overlap and their probabilities are averaged. A multiple-choice example holds one input
for each answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from eraser_hub.explain.instances import Instance
from eraser_hub.explain.transformers.devices import runs_bf16
from eraser_hub.explain.transformers.multiple_choice import ChoiceModel, Choices
from eraser_hub.explain.transformers.pieces import Window
from eraser_hub.explain.transformers.sequence_model import SequenceModel
from eraser_hub.explain.transformers.words import load_tokenizer, not_opened

from .baselines import write_facts
from .recipe import MULTIPLE_CHOICE, Recipe

WARMUP_STEPS = 50  # paper 004, appendix A
Row = dict[str, Any]  # what the Trainer's collator takes: input_ids, attention_mask, token_type_ids, labels
Say = Callable[[str], None]


def finetune(
    recipe: Recipe,
    instances: Sequence[Instance],
    labels: Sequence[str],
    label_names: Sequence[str],
    out: Path,
    facts: dict[str, Any],
    say: Say,
) -> None:
    """Train and save a classifier that ``eraser-hub explain`` opens.

    Args:
        recipe: ``model`` is a local folder or Hub id of an encoder (its classification head may be missing), ``task``
            classification or multiple-choice (the query holds an answer for each label, ``[sep]`` between).
        facts: what ``model.json`` says of the data.

    Raises:
        DataError: the model cannot be opened.
    """
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    transformers.set_seed(recipe.seed)
    chooses = recipe.task == MULTIPLE_CHOICE
    model = _untrained(recipe, label_names, bool(facts.get("uses_query")), bool(facts.get("query_last")))
    rows = _training_rows(model, instances, [label_names.index(label) for label in labels])
    say(
        f"{len(rows)} {'questions' if chooses else 'windows'} of at most {model.window} sub-words from "
        f"{len(instances)} instances"
    )
    model.network.train()
    pad = transformers.DataCollatorWithPadding(model.tokenizer)
    trainer = transformers.Trainer(
        model=model.network,
        args=_arguments(model, out / ".training", recipe),
        train_dataset=rows,
        data_collator=_questions(pad, len(label_names)) if chooses else pad,
        callbacks=[_losses(say)],
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    facts = {**facts, "base": Path(recipe.model).name, "steps": trainer.state.global_step, "window": recipe.window}
    _save(model, {**facts, "seed": recipe.seed}, out)


def _untrained(recipe: Recipe, label_names: Sequence[str], uses_query: bool, query_last: bool) -> SequenceModel:
    """The adapter of an encoder with a new head; it cuts the training examples."""
    import transformers

    head: dict[str, Any] = {
        "num_labels": len(label_names), "id2label": dict(enumerate(label_names)),
        "label2id": {label: number for number, label in enumerate(label_names)},
    }  # fmt: skip
    try:
        if recipe.task == MULTIPLE_CHOICE:
            network = transformers.AutoModelForMultipleChoice.from_pretrained(
                recipe.model, ignore_mismatched_sizes=True, trust_remote_code=recipe.trust_remote_code
            )
        else:
            network = transformers.AutoModelForSequenceClassification.from_pretrained(
                recipe.model, ignore_mismatched_sizes=True, trust_remote_code=recipe.trust_remote_code, **head
            )
        tokenizer = load_tokenizer(recipe.model, recipe.trust_remote_code)
    except Exception as error:  # transformers raises many kinds
        raise not_opened(error, recipe.model) from error
    more: dict[str, Any] = {"window": recipe.window, "description": Path(recipe.model).name, "precision": "float32"}
    if recipe.task != MULTIPLE_CHOICE:
        return SequenceModel(network, tokenizer, uses_query=uses_query, query_last=query_last, **more)
    model = ChoiceModel(network, tokenizer, **more)
    model.label_names = tuple(label_names)
    return model


def _training_rows(model: SequenceModel, instances: Sequence[Instance], labels: Sequence[int]) -> list[Row]:
    """Training examples: each window of a text, or each question with one input for every answer."""
    rows = []
    for one, label in zip(instances, labels, strict=True):
        encoded = model.encode(one)
        if isinstance(encoded, Choices):
            choices = [_row(window, model.tokenizer) for window in encoded.whole()]
            rows.append({**{name: [row[name] for row in choices] for name in choices[0]}, "labels": label})
        else:
            rows += [{**_row(window, model.tokenizer), "labels": label} for window in encoded.whole(overlap=False)]
    return rows


def _row(window: Window, tokenizer: Any) -> Row:
    row = {"input_ids": window.ids.tolist(), "attention_mask": [1] * len(window.ids)}
    if "token_type_ids" in tokenizer.model_input_names:
        row["token_type_ids"] = window.types.tolist()
    return row


def _questions(pad: Callable[[list[Row]], Any], answers: int) -> Callable[[list[Row]], dict[str, Any]]:
    """A collator of questions, each with as many inputs as answers: shape (questions, answers, sub-words)."""
    import torch

    def collate(batch: list[Row]) -> dict[str, Any]:
        flat = [
            {name: row[name][answer] for name in row if name != "labels"} for row in batch for answer in range(answers)
        ]
        inputs = {name: tensor.view(len(batch), answers, -1) for name, tensor in pad(flat).items()}
        return {**inputs, "labels": torch.tensor([row["labels"] for row in batch])}

    return collate


def _arguments(model: SequenceModel, folder: Path, recipe: Recipe) -> Any:
    import torch
    import transformers

    grouping: dict[str, Any] = {}
    if recipe.task != MULTIPLE_CHOICE:  # by length; its name changed with transformers 5
        new = "train_sampling_strategy" in transformers.TrainingArguments.__dataclass_fields__
        grouping = {"train_sampling_strategy": "group_by_length"} if new else {"group_by_length": True}
    return transformers.TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=recipe.epochs,
        max_steps=recipe.max_steps or -1,
        per_device_train_batch_size=recipe.batch_size,
        learning_rate=recipe.learning_rate,
        warmup_steps=min(WARMUP_STEPS, recipe.max_steps // 10) if recipe.max_steps else WARMUP_STEPS,
        lr_scheduler_type="linear",
        seed=recipe.seed,
        data_seed=recipe.seed,
        save_strategy="no",
        report_to="none",
        logging_steps=25,
        disable_tqdm=True,
        bf16=runs_bf16(model.device),
        dataloader_pin_memory=torch.cuda.is_available(),
        use_cpu=not torch.cuda.is_available(),
        **grouping,
    )


def _losses(say: Say) -> Any:
    """A callback that says losses as they come, one line each."""
    import transformers

    class Losses(transformers.TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
            if logs and "loss" in logs:
                say(f"step {state.global_step} of {state.max_steps}: loss {float(logs['loss']):.4f}")

    return Losses()


def _save(model: SequenceModel, facts: dict[str, Any], out: Path) -> None:
    model.network.eval()
    out.mkdir(parents=True, exist_ok=True)
    # what `train` left in this folder before would be opened in the new model's place
    (out / "model.skops").unlink(missing_ok=True)
    model.network.save_pretrained(out)
    model.tokenizer.save_pretrained(out)
    write_facts(facts, out)
    leftover = out / ".training"
    if leftover.is_dir() and not any(leftover.iterdir()):
        leftover.rmdir()
