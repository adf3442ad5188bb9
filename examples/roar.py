"""Remove and retrain (ROAR, Hooker et al. 2019): does a retrained model miss the tokens that a method ranks first?

python examples/roar.py --hub hub --config movies --method occlusion

The tokens are removed from training and test texts alike, and the model is trained again, so that no input is unlike
its training texts. The lower its accuracy is than without as many random tokens, the more the method's tokens say.
"""

from __future__ import annotations

import argparse

import numpy as np
from datasets import load_dataset
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from eraser_hub import explain_texts


def remove_top(texts: list[str], scores: list[np.ndarray], share: float) -> list[str]:
    """Return texts without the share of their tokens that have the highest scores."""
    cut = []
    for text, values in zip(texts, scores, strict=True):
        tokens = np.array(text.split())
        kept = np.argsort(-values, kind="stable")[int(np.ceil(share * len(tokens))) :]
        cut.append(" ".join(tokens[np.sort(kept)]))
    return cut


def main() -> None:
    """Print the accuracy on the test split after removing each share of the tokens, by the method and at random."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--hub", default="hub", help="the folder that `make quickstart` built")
    options.add_argument("--config", default="movies")
    options.add_argument("--test", default="validation", help="a split with labels")
    options.add_argument("--method", default="occlusion")
    options.add_argument("--shares", type=float, nargs="+", default=[0.0, 0.1, 0.2, 0.5])
    asked = options.parse_args()

    parts, random = load_dataset(f"{asked.hub}/eraser", asked.config), np.random.default_rng(1)
    splits = ("train", asked.test)
    texts = {part: [" ".join(each["text"] for each in row["documents"]) for row in parts[part]] for part in splits}
    labels = {part: [str(label) for label in parts[part]["classification"]] for part in splits}
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts["train"], labels["train"])
    scores: dict[str, dict[str, list[np.ndarray]]] = {asked.method: {}, "random": {}}
    for part in splits:
        rows = explain_texts(model, texts[part], method=asked.method)
        scores[asked.method][part] = [np.array(row["rationales"][0]["soft_rationale_predictions"]) for row in rows]
        scores["random"][part] = [random.random(len(text.split())) for text in texts[part]]
    for share in asked.shares:
        for ranking, own in scores.items():
            cut = {part: remove_top(texts[part], own[part], share) for part in splits}
            again = make_pipeline(CountVectorizer(), LogisticRegression()).fit(cut["train"], labels["train"])
            print(f"{share:.0%} removed, {ranking}: accuracy {again.score(cut[asked.test], labels[asked.test]):.3f}")


if __name__ == "__main__":
    main()
