"""Train a transformer on the human rationale alone: every other sub-word is masked ("rationale-only" input).

python examples/train_on_masked_input.py --dataset hub/eraser --config movies --model FOLDER_OR_NAME --out model

The model that comes out answers from evidence; `eraser-hub explain --model model` takes it like any other.

transformers' Trainer needs `pip install "accelerate>=1.1"` beside the extra [explain].
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from datasets import load_dataset

import eraser_hub


def masked_windows(rows: Any, tokenizer: Any, max_length: int) -> list[dict[str, Any]]:
    """Each window that holds rationale, with the mask token in place of every sub-word of the text that is none."""
    windows = []
    for row in rows:
        for window in eraser_hub.align(row, tokenizer, max_length=max_length).windows:
            if 1 not in window.labels:
                continue
            hidden = np.array(window.labels) == 0
            ids = np.where(hidden, tokenizer.mask_token_id, window.input_ids)
            windows.append({"input_ids": ids.tolist(), "labels": row["classification"]})
    return windows


def main() -> None:
    """Train, and say the accuracy on the validation split's rationales."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--dataset", default="hub/eraser")
    options.add_argument("--config", default="movies")
    options.add_argument("--model", required=True, help="a folder or Hub name of a transformers encoder")
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--max-length", type=int, default=256)
    options.add_argument("--steps", type=int, default=200)
    asked = options.parse_args()

    transformers.set_seed(0)
    parts = load_dataset(asked.dataset, asked.config)
    names = parts["train"].features["classification"].names
    tokenizer = transformers.AutoTokenizer.from_pretrained(asked.model)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        asked.model, num_labels=len(names), id2label=dict(enumerate(names)), ignore_mismatched_sizes=True
    )
    train, validation = (masked_windows(parts[name], tokenizer, asked.max_length) for name in ("train", "validation"))
    print(f"{len(train)} windows to train on, {len(validation)} to validate")
    fitting = {"max_steps": asked.steps, "per_device_train_batch_size": 8, "learning_rate": 5e-4, "warmup_steps": 10}
    quiet = {"save_strategy": "no", "report_to": [], "disable_tqdm": True, "logging_steps": 10**9}
    trainer = transformers.Trainer(
        model,
        transformers.TrainingArguments(str(asked.out), **fitting, **quiet),
        train_dataset=train,
        data_collator=transformers.DataCollatorWithPadding(tokenizer),
    )
    trainer.train()
    trainer.save_model(str(asked.out))
    tokenizer.save_pretrained(asked.out)
    logits = torch.from_numpy(trainer.predict(validation).predictions)
    right = (logits.argmax(-1) == torch.tensor([window["labels"] for window in validation])).float().mean()
    print(f"accuracy on rationales {right:.3f}")


if __name__ == "__main__":
    main()
