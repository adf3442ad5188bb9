"""Train a transformer with a rationale loss beside the task loss: L = CE(label) + weight * CE(is a sub-word evidence?).

python examples/train_with_rationales.py --dataset hub/eraser --config movies --model FOLDER_OR_NAME --out model

The encoder has two heads: one reads the first sub-word and says the label, one reads every sub-word and says whether
people marked it. `align` gives the sub-words' labels (-100 leaves out the query and special tokens), and `Collator`
pads them.

transformers' Trainer needs `pip install "accelerate>=1.12"` beside the extra [explain].
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import transformers
from datasets import load_dataset
from torch import nn

import eraser_hub


class TwoHeads(nn.Module):
    """An encoder with a head for the label and one for the rationale."""

    def __init__(self, encoder: nn.Module, labels: int, weight: float) -> None:
        super().__init__()
        size = encoder.config.hidden_size
        self.encoder, self.weight = encoder, weight
        self.label, self.evidence = nn.Linear(size, labels), nn.Linear(size, 2)

    def forward(
        self, input_ids: Any, attention_mask: Any, labels: Any, classes: Any, token_type_ids: Any = None
    ) -> dict[str, Any]:
        """The two losses, their weighted sum, and both heads' logits."""
        hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        logits, marks = self.label(hidden[:, 0]), self.evidence(hidden)
        task = nn.functional.cross_entropy(logits, classes)
        rationale = nn.functional.cross_entropy(marks.flatten(0, 1), labels.flatten(), ignore_index=-100)
        return {"loss": task + self.weight * rationale, "logits": logits, "marks": marks}


def windows_of(rows: Any, tokenizer: Any, max_length: int) -> list[dict[str, Any]]:
    """Each window of each row that holds rationale, with the row's label: others would teach it without evidence."""
    return [
        {**asdict(window), "classes": row["classification"]}
        for row in rows
        for window in eraser_hub.align(row, tokenizer, max_length=max_length).windows
        if 1 in window.labels
    ]


def collate(collator: eraser_hub.Collator, windows: list[dict[str, Any]]) -> dict[str, Any]:
    """A batch without the places of sub-words, which the model does not ask for."""
    batch = collator(windows)
    batch = {name: batch[name] for name in ("input_ids", "attention_mask", "labels")}
    return {**batch, "classes": torch.tensor([window["classes"] for window in windows])}


def main() -> None:
    """Train, and say both heads' accuracy on the validation split."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--dataset", default="hub/eraser")
    options.add_argument("--config", default="movies")
    options.add_argument("--model", required=True, help="a folder or Hub name of a transformers encoder")
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--weight", type=float, default=1.0, help="of the rationale loss")
    options.add_argument("--max-length", type=int, default=256)
    options.add_argument("--steps", type=int, default=200)
    asked = options.parse_args()

    transformers.set_seed(0)
    parts = load_dataset(asked.dataset, asked.config)
    tokenizer = transformers.AutoTokenizer.from_pretrained(asked.model)
    encoder = transformers.AutoModel.from_pretrained(asked.model)
    model = TwoHeads(encoder, len(parts["train"].features["classification"].names), asked.weight)
    train, validation = (windows_of(parts[name], tokenizer, asked.max_length) for name in ("train", "validation"))
    print(f"{len(train)} windows to train on, {len(validation)} to validate")
    collator = eraser_hub.Collator(tokenizer)
    fitting = {"max_steps": asked.steps, "per_device_train_batch_size": 8, "learning_rate": 5e-4, "warmup_steps": 10}
    quiet = {"save_strategy": "no", "report_to": [], "disable_tqdm": True, "logging_steps": 10**9}
    trainer = transformers.Trainer(
        model,
        transformers.TrainingArguments(str(asked.out), remove_unused_columns=False, **fitting, **quiet),
        train_dataset=train,
        data_collator=lambda windows: collate(collator, windows),
    )
    trainer.train()
    trainer.save_model(str(asked.out))
    model.eval()
    with torch.no_grad():
        batch = collate(collator, validation)
        made = model(**{name: values.to(trainer.args.device) for name, values in batch.items()})
    inside = batch["labels"] >= 0
    marks, labels = made["marks"].cpu().argmax(-1)[inside], batch["labels"][inside]
    right = (made["logits"].cpu().argmax(-1) == batch["classes"]).float().mean()
    overlap = 2 * ((marks == 1) & (labels == 1)).sum() / max(1, int((marks == 1).sum() + (labels == 1).sum()))
    print(f"label accuracy {right:.3f}, rationale F1 over sub-words {overlap:.3f}")


if __name__ == "__main__":
    main()
