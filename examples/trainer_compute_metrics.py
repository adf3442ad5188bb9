"""Watch agreement with human rationales while transformers' Trainer trains: `compute_metrics` by `eraser_agreement`.

python examples/trainer_compute_metrics.py --dataset hub/eraser --config movies --model FOLDER_OR_NAME --out model

The model marks evidence, sub-word by sub-word. `RationaleMetrics` brings its logits back to the dataset's tokens (a
token is as likely evidence as its likeliest sub-word) and scores them against the rows, after each epoch and by
`trainer.evaluate()`.

transformers' Trainer needs `pip install "accelerate>=1.12"` beside the extra [explain].
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

import evaluate
import numpy as np
import torch
import transformers
from datasets import load_dataset

import eraser_hub

SHOWN = ("token_macro_f1", "iou_macro_f1", "auprc")


class RationaleMetrics:
    """What `Trainer(compute_metrics=..)` calls with the logits of all windows of some rows, in their order."""

    def __init__(self, rows: Any, alignments: list[Any], metric: str) -> None:
        self.rows, self.alignments = rows, alignments
        self.metric = evaluate.load(metric)

    def __call__(self, evaluated: transformers.EvalPrediction) -> dict[str, float]:
        """The module's scores; the Trainer puts `eval_` before their names. Its signature, a string, no log takes."""
        windows = iter(torch.tensor(evaluated.predictions).softmax(-1)[..., 1].numpy())
        instances = [self._instance(row, each, windows) for row, each in zip(self.rows, self.alignments, strict=True)]
        scores = self.metric.compute(predictions=instances, references=self.rows)
        return {key: value for key, value in scores.items() if isinstance(value, int | float)}

    def _instance(self, row: dict[str, Any], alignment: Any, windows: Any) -> dict[str, Any]:
        lengths = [len(tokens) for tokens in eraser_hub.tokens(row)]
        scores = [np.zeros(length) for length in lengths]
        for window in alignment.windows:
            for document, token, score in zip(window.documents, window.tokens, next(windows), strict=False):
                if token >= 0:
                    scores[document][token] = max(scores[document][token], float(score))
        return {
            "annotation_id": row["annotation_id"],
            "rationales": [
                {
                    "docid": document["docid"],
                    "soft_rationale_predictions": values.tolist(),
                    "hard_rationale_predictions": spans_of(values > 0.5),
                }
                for document, values in zip(row["documents"], scores, strict=True)
            ],
        }


def spans_of(marked: Any) -> list[dict[str, int]]:
    """The runs of marked tokens, from the first one to behind the last one."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(marked, int), [0]])))
    return [{"start_token": int(at), "end_token": int(to)} for at, to in zip(edges[::2], edges[1::2], strict=True)]


def main() -> None:
    """Train, and say the agreement after each epoch."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--dataset", default="hub/eraser")
    options.add_argument("--config", default="movies")
    options.add_argument("--metric", default="hub/eraser_agreement")
    options.add_argument("--model", required=True, help="a folder or Hub name of a transformers encoder")
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--max-length", type=int, default=256)
    asked = options.parse_args()

    transformers.set_seed(0)
    tokenizer = transformers.AutoTokenizer.from_pretrained(asked.model)
    parts = load_dataset(asked.dataset, asked.config)
    aligned = {
        name: [eraser_hub.align(row, tokenizer, max_length=asked.max_length) for row in parts[name]]
        for name in ("train", "validation")
    }
    train, validation = ([asdict(window) for each in part for window in each.windows] for part in aligned.values())
    collator = eraser_hub.Collator(tokenizer)

    def collate(windows: list[dict[str, Any]]) -> dict[str, Any]:
        batch = collator(windows)
        return {name: batch[name] for name in ("input_ids", "attention_mask", "labels")}

    fitting = {"num_train_epochs": asked.epochs, "per_device_train_batch_size": 8, "learning_rate": 5e-4}
    quiet = {"save_strategy": "no", "report_to": [], "disable_tqdm": True}
    trainer = transformers.Trainer(
        transformers.AutoModelForTokenClassification.from_pretrained(asked.model, num_labels=2),
        transformers.TrainingArguments(
            str(asked.out), eval_strategy="epoch", remove_unused_columns=False, **fitting, **quiet
        ),
        train_dataset=train,
        eval_dataset=validation,
        data_collator=collate,
        compute_metrics=RationaleMetrics(parts["validation"], aligned["validation"], asked.metric),
    )
    trainer.train()
    trainer.save_model(str(asked.out))
    final = trainer.evaluate()
    print(", ".join(f"{key} {final[f'eval_{key}']:.3f}" for key in SHOWN))


if __name__ == "__main__":
    main()
