"""Score your predictions: from lists in memory to ERASER's numbers, without a file.

python examples/score_predictions.py --hub hub --config movies --split validation

In place of `my_model` put what your model says of a row. The scores are those of `eraser-hub score` on the same
predictions.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import evaluate
from datasets import load_dataset

import eraser_hub


def my_model(row: dict[str, Any], label_names: list[str]) -> dict[str, Any]:
    """A prediction in the results format. This one calls each review bad, for its first ten tokens."""
    tokens = eraser_hub.tokens(row)
    return {
        "annotation_id": row["annotation_id"],
        "classification": label_names[0],
        "rationales": [
            {
                "docid": document["docid"],
                "hard_rationale_predictions": [{"start_token": 0, "end_token": min(10, len(words))}],
                "soft_rationale_predictions": [1.0 / (place + 1) for place in range(len(words))],
            }
            for document, words in zip(row["documents"], tokens, strict=True)
        ],
    }


def main() -> None:
    """Score the model on a split, with a 95 % interval."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--hub", type=Path, default=Path("hub"), help="the folder that `make quickstart` built")
    options.add_argument("--config", default="movies")
    options.add_argument("--split", default="validation")
    asked = options.parse_args()

    rows = load_dataset(str(asked.hub / "eraser"), asked.config, split=asked.split)
    label_names = rows.features["classification"].names
    agreement = evaluate.load(str(asked.hub / "eraser_agreement"))
    predictions = [my_model(row, label_names) for row in rows]
    result = agreement.compute(predictions=predictions, references=rows, confidence_level=0.95)
    for key in ("token_macro_f1", "iou_macro_f1", "auprc"):
        low, high = result[f"{key}_ci"]
        print(f"{key}: {result[key]:.3f} [{low:.3f}, {high:.3f}]")
    print(result["signature"])


if __name__ == "__main__":
    main()
