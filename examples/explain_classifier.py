"""Explain your classifier: token scores by occlusion, and how faithful they are to the model.

python examples/explain_classifier.py --hub hub --config movies --split validation

Any object with `predict_proba` will do; here it is a scikit-learn pipeline that is fitted to the training split first.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import evaluate
from datasets import load_dataset
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from eraser_hub.attribution import explain_texts


def main() -> None:
    """Fit, explain, and score the explanations' faithfulness."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--hub", type=Path, default=Path("hub"), help="the folder that `make quickstart` built")
    options.add_argument("--config", default="movies")
    options.add_argument("--split", default="validation")
    options.add_argument("--method", default="occlusion")
    asked = options.parse_args()

    parts = load_dataset(str(asked.hub / "eraser"), asked.config)
    names = parts["train"].features["classification"].names

    def texts(split: str) -> list[str]:
        return [" ".join(document["text"] for document in row["documents"]) for row in parts[split]]

    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10))
    model.fit(texts("train"), [names[row["classification"]] for row in parts["train"]])
    explained = explain_texts(model, texts(asked.split), method=asked.method, kd=0.1)
    first = explained[0]["rationales"][0]["hard_rationale_predictions"]
    print(f"{explained[0]['classification']}: {first}")
    faithfulness = evaluate.load(str(asked.hub / "eraser_faithfulness"))
    result = faithfulness.compute(predictions=explained)
    for key in ("comprehensiveness", "sufficiency"):
        print(f"{key}: {result[key]:.3f}")


if __name__ == "__main__":
    main()
