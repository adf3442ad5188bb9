"""Made-up corpora and predictions of the papers' shapes: random text, spans and scores."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import msgspec
import numpy as np

# name: (instances, tokens per document, documents per instance, labels, docs.jsonl)
SHAPES: dict[str, tuple[int, int, int, int, bool]] = {
    "movies": (200, 774, 1, 2, False),
    "cose": (1092, 28, 1, 5, True),
    "multirc": (4848, 303, 1, 2, False),
    "evidence_inference": (959, 4761, 1, 3, False),
    "boolq": (2817, 3580, 1, 2, False),
    "fever": (6111, 327, 1, 2, False),
    "esnli": (9807, 16, 2, 3, True),
}
AOPC = (0.01, 0.05, 0.1, 0.2, 0.5)
WORDS = np.array(["the", "of", "rationale", "a", "model", "evidence", "in", "is", "sentence", "token", ".", "and"])


def generate(folder: Path, name: str, count: int | None = None) -> None:
    """Write split test of a corpus of this shape, and predictions.jsonl; ``count``: the first instances alone."""
    n, size, per_instance, n_labels, jsonl = SHAPES[name]
    random = np.random.default_rng(0)
    labels = [f"label {k}" for k in range(n_labels)]
    (folder / "docs").mkdir(parents=True)
    with (
        open(folder / "docs.jsonl", "wb") if jsonl else nullcontext() as documents,
        open(folder / "test.jsonl", "wb") as gold,
        open(folder / "predictions.jsonl", "wb") as predictions,
    ):
        for k in range(count or n):
            docids = [f"{k}_premise", f"{k}_hypothesis"] if per_instance == 2 else [f"document {k}"]
            evidences: list[dict[str, object]] = []
            rationales: list[dict[str, object]] = []
            for docid in docids:
                text = " ".join(WORDS[random.integers(0, WORDS.size, size)].tolist()).replace(" . ", " .\n")
                if documents is None:
                    (folder / "docs" / docid).write_text(text, encoding="utf-8")
                else:
                    documents.write(msgspec.json.encode({"docid": docid, "document": text}) + b"\n")
                soft = random.random(size)
                hard: list[dict[str, int]] = []
                for start in np.unique(random.integers(0, size - 3, 1 + size // 200)).tolist()[::2]:
                    end = min(start + 2 + size // 100, size)
                    soft[start:end] += 0.5
                    evidences.append({"docid": docid, "start_token": start, "end_token": end, "text": ""})
                    evidences[-1] |= {"start_sentence": -1, "end_sentence": -1}
                    if not hard or hard[-1]["end_token"] <= start + 1:
                        hard.append({"start_token": start + 1, "end_token": end})
                rationale = {"docid": docid, "hard_rationale_predictions": hard}
                rationales.append({**rationale, "soft_rationale_predictions": soft.tolist()})
            p = random.dirichlet(np.ones(n_labels), 3 + 2 * len(AOPC))
            scores = [dict(zip(labels, row, strict=True)) for row in p.tolist()]
            erased = ("comprehensiveness_classification_scores", "sufficiency_classification_scores")
            instance = {
                "annotation_id": str(k),
                "rationales": rationales,
                "classification": labels[int(p[0].argmax())],
                "classification_scores": scores[0],
                erased[0]: scores[1],
                erased[1]: scores[2],
                "thresholded_scores": [
                    {"threshold": t, erased[0]: scores[3 + 2 * at], erased[1]: scores[4 + 2 * at]}
                    for at, t in enumerate(AOPC)
                ],
            }
            predictions.write(msgspec.json.encode(instance) + b"\n")
            annotation = {
                "annotation_id": str(k),
                "classification": labels[k % n_labels],
                "docids": docids,
                "evidences": [[evidence] for evidence in evidences],
                "query": "what",
                "query_type": None,
            }
            gold.write(msgspec.json.encode(annotation) + b"\n")
    if jsonl:
        (folder / "docs").rmdir()
