"""Rows and instances for the tests of the two ERASER modules: made up at random."""

from __future__ import annotations

from typing import Any

import numpy as np

LABELS = ["NEG", "POS"]
ERASED = ("comprehensiveness_classification_scores", "sufficiency_classification_scores")
Rows = list[dict[str, Any]]


def random_case(seed: int, n: int = 6, documents: int = 2) -> tuple[Rows, Rows]:
    """Predictions and references with every field, of n annotations with some documents each."""
    random = np.random.default_rng(seed)
    predictions, references = [], []
    for k in range(n):
        docs, groups, rationales = [], [], []
        for docid in (f"{k}_{d}" for d in range(documents)):
            size = int(random.integers(4, 20))
            lines = max(1, size // 4)
            tokens = np.array_split([f"w{t}" for t in range(size)], lines)
            docs.append({"docid": docid, "text": "\n".join(map(" ".join, tokens))})
            start = int(random.integers(0, size - 2))
            place = {"docid": docid, "text": "", "start_token": start, "end_token": start + 2}
            groups.append([place | {"start_sentence": 0, "end_sentence": 1}])
            first, end = sorted(random.choice(size, 2, replace=False).tolist())
            hard = {"hard_rationale_predictions": [{"start_token": first, "end_token": end}]}
            soft = {"soft_rationale_predictions": random.random(size).round(2).tolist()}
            rationales.append(
                {"docid": docid, **hard, **soft, "soft_sentence_predictions": random.random(lines).tolist()}
            )
        p = random.dirichlet(np.ones(2), 13)
        p[0] = np.sort(p[0])[:: 1 if k % 2 else -1]  # the label is the more probable one
        full, *erased = [dict(zip(LABELS, row, strict=True)) for row in p.tolist()]
        row = {"annotation_id": f"a{k}", "rationales": rationales, "classification": LABELS[k % 2]}
        row |= {"classification_scores": full, **dict(zip(ERASED, erased[:2], strict=True))}
        row |= {"tokens_to_flip": int(random.integers(0, 9))}
        pairs = zip((0.01, 0.05, 0.1, 0.2, 0.5), erased[2::2], erased[3::2], strict=True)
        row["thresholded_scores"] = [{"threshold": t, ERASED[0]: one, ERASED[1]: two} for t, one, two in pairs]
        predictions.append(row)
        label = LABELS[int(random.integers(2))]
        references.append({"annotation_id": f"a{k}", "classification": label, "documents": docs, "evidences": groups})
        references[-1]["source"] = f"s{k % 2}"
    return predictions, references
