"""Fine-tune a transformers encoder as a sequence classifier or for multiple choice, with the Trainer.

A document longer than the window gives one training example per window (without overlap), each with the document's
label; when explaining, windows overlap and their probabilities are averaged. A multiple-choice example holds one input
for each answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from eraser_hub.explain.instances import Instance, first_line
from eraser_hub.records.errors import DataError

from .baselines import write_facts


def finetune(
    name: str,
    instances: Sequence[Instance],
    labels: Sequence[str],
    label_names: Sequence[str],
    out: Path,
    *,
    facts: dict[str, Any],
    epochs: float = 3.0,
    max_steps: int = 0,
    batch_size: int = 16,
    learning_rate: float = 2e-5,
    warmup_steps: int = 50,
    window: int | None = None,
    seed: int = 1,
    task: str = "classification",
    say: Callable[[str], None] = lambda words: None,
) -> None:
    """Train and save a classifier that ``eraser-hub explain`` opens.

    Args:
        name: a local folder or Hub id of an encoder (its classification head may be missing).
        max_steps: stop after so many optimiser steps; 0: as many as ``epochs`` ask for.
        learning_rate, warmup_steps: paper 004, appendix A (2e-5, 50 steps, linear).
        window: longest training example in sub-words.
        task: classification, or multiple-choice (the query holds an answer for each label, ``[sep]`` between).

    Raises:
        DataError: the model cannot be opened.
    """
    import numpy as np
    import torch
    import transformers

    from eraser_hub.explain.transformers.devices import runs_bf16
    from eraser_hub.explain.transformers.multiple_choice import ChoiceModel, Choices
    from eraser_hub.explain.transformers.sequence_model import SequenceModel
    from eraser_hub.explain.transformers.words import load_tokenizer

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    transformers.set_seed(seed)
    choosing = task == "multiple-choice"
    kind = transformers.AutoModelForMultipleChoice if choosing else transformers.AutoModelForSequenceClassification
    labelled: dict[str, Any] = {
        "num_labels": len(label_names), "id2label": dict(enumerate(label_names)),
        "label2id": {label: place for place, label in enumerate(label_names)},
    }  # fmt: skip
    try:
        network = kind.from_pretrained(name, ignore_mismatched_sizes=True, **({} if choosing else labelled))
        tokenizer = load_tokenizer(name)
    except Exception as error:  # transformers raises many kinds; its first line names what is missing
        raise DataError(f"cannot open the model: {first_line(error)}", file=name) from error
    more: dict[str, Any] = {"window": window, "description": Path(name).name, "precision": "float32"}
    model: SequenceModel
    if choosing:
        model = ChoiceModel(network, tokenizer, **more)
        model.label_names = tuple(label_names)
    else:
        model = SequenceModel(network, tokenizer, uses_query=bool(facts.get("uses_query")), **more)
    network = model.network
    place = {label: number for number, label in enumerate(label_names)}
    rows: list[dict[str, Any]] = []
    for one, label in zip(instances, labels, strict=True):
        encoded, whole = model.encode(one), np.ones(len(one.tokens), dtype=bool)
        if isinstance(encoded, Choices):
            choices = [row_of(part, tokenizer) for part in encoded.windows(whole, "remove")]
            rows.append({**{name: [row[name] for row in choices] for name in choices[0]}, "labels": place[label]})
        else:
            for part in encoded.windows(whole, "remove", overlap=False):
                rows.append({**row_of(part, tokenizer), "labels": place[label]})
    say(
        f"{len(rows)} {'questions' if choosing else 'windows'} of at most {model.window} sub-words from "
        f"{len(instances)} instances"
    )
    pad = transformers.DataCollatorWithPadding(tokenizer)

    def collate(batch: list[dict[str, Any]]) -> dict[str, Any]:
        """A batch of questions, each with as many inputs as answers: shape (questions, answers, sub-words)."""
        flat = [
            {name: row[name][choice] for name in row if name != "labels"}
            for row in batch
            for choice in range(len(label_names))
        ]
        inputs = {name: tensor.view(len(batch), len(label_names), -1) for name, tensor in pad(flat).items()}
        return {**inputs, "labels": torch.tensor([row["labels"] for row in batch])}

    network.train()
    known = transformers.TrainingArguments.__dataclass_fields__  # its name changed with transformers 5
    grouped: dict[str, Any] = (
        {"train_sampling_strategy": "group_by_length"}
        if "train_sampling_strategy" in known
        else {"group_by_length": True}
    )
    arguments = transformers.TrainingArguments(
        output_dir=str(out / ".training"),
        num_train_epochs=epochs,
        max_steps=max_steps or -1,
        per_device_train_batch_size=batch_size,
        learning_rate=learning_rate,
        warmup_steps=warmup_steps if not max_steps else min(warmup_steps, max_steps // 10),
        lr_scheduler_type="linear",
        seed=seed,
        data_seed=seed,
        save_strategy="no",
        report_to="none",
        logging_steps=25,
        disable_tqdm=True,
        bf16=runs_bf16(model.device),
        dataloader_pin_memory=torch.cuda.is_available(),
        use_cpu=not torch.cuda.is_available(),
        **({} if choosing else grouped),
    )

    class Log(transformers.TrainerCallback):
        """Losses as they come, one line each."""

        def on_log(
            self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **rest: Any
        ) -> None:
            if logs and "loss" in logs:
                say(f"step {state.global_step} of {state.max_steps}: loss {float(logs['loss']):.4f}")

    trainer = transformers.Trainer(
        model=network,
        args=arguments,
        train_dataset=rows,
        data_collator=collate if choosing else pad,
        callbacks=[Log()],
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    network.eval()
    out.mkdir(parents=True, exist_ok=True)
    # what `train` left in this folder before would be opened in the new model's place
    (out / "model.skops").unlink(missing_ok=True)
    network.save_pretrained(out)
    tokenizer.save_pretrained(out)
    write_facts(
        {**facts, "base": Path(name).name, "steps": trainer.state.global_step, "window": window, "seed": seed}, out
    )
    leftover = out / ".training"
    if leftover.is_dir() and not any(leftover.iterdir()):
        leftover.rmdir()


def row_of(window: Any, tokenizer: Any) -> dict[str, list[int]]:
    """One input as the Trainer's collator takes it."""
    row = {"input_ids": window.ids.tolist(), "attention_mask": [1] * len(window.ids)}
    if "token_type_ids" in tokenizer.model_input_names:
        row["token_type_ids"] = window.types.tolist()
    return row
