"""Rows and instances for the tests of the two ERASER modules: made up at random."""

from __future__ import annotations

from typing import Any

import numpy as np

LABELS = ["NEG", "POS"]
ERASED = ("comprehensiveness_classification_scores", "sufficiency_classification_scores")


def random_case(seed: int, n: int = 6, documents: int = 2) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Predictions and references with every field, of n annotations with some documents each."""
    random = np.random.default_rng(seed)
    predictions, references = [], []
    for k in range(n):
        docs, groups, rationales = [], [], []
        for d in range(documents):
            docid, size = f"{k}_{d}", int(random.integers(4, 20))
            lines = max(1, size // 4)
            tokens = [f"w{t}" for t in range(size)]
            docs.append({"docid": docid, "text": "\n".join(" ".join(part) for part in np.array_split(tokens, lines))})
            start = int(random.integers(0, size - 2))
            groups.append(
                [
                    {
                        "docid": docid,
                        "text": "",
                        "start_token": start,
                        "end_token": start + 2,
                        "start_sentence": 0,
                        "end_sentence": 1,
                    }
                ]
            )
            cut = sorted(random.choice(size, 2, replace=False).tolist())
            rationales.append(
                {
                    "docid": docid,
                    "hard_rationale_predictions": [{"start_token": cut[0], "end_token": cut[1]}],
                    "soft_rationale_predictions": random.random(size).round(2).tolist(),
                    "soft_sentence_predictions": random.random(lines).tolist(),
                }
            )
        p = random.dirichlet(np.ones(2), 13)
        p[0] = np.sort(p[0])[:: 1 if k % 2 else -1]  # the label is the more probable one
        scores = [dict(zip(LABELS, row, strict=True)) for row in p.tolist()]
        predictions.append(
            {
                "annotation_id": f"a{k}",
                "rationales": rationales,
                "classification": LABELS[k % 2],
                "classification_scores": scores[0],
                ERASED[0]: scores[1],
                ERASED[1]: scores[2],
                "tokens_to_flip": int(random.integers(0, 9)),
                "thresholded_scores": [
                    {"threshold": t, ERASED[0]: scores[3 + 2 * at], ERASED[1]: scores[4 + 2 * at]}
                    for at, t in enumerate((0.01, 0.05, 0.1, 0.2, 0.5))
                ],
            }
        )
        label = LABELS[int(random.integers(2))]
        references.append({"annotation_id": f"a{k}", "classification": label, "documents": docs, "evidences": groups})
        references[-1]["source"] = f"s{k % 2}"
    return predictions, references
