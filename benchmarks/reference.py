"""``eraser-hub score`` beside ERASER's own scorer, at the paper's shapes: CPU seconds of whole processes less start-up.

python -m benchmarks.reference CHECKOUT PYTHON [SHAPE ..]     CHECKOUT: a folder that holds rationale_benchmark/;
                               PYTHON: the interpreter of an environment that it runs in (scikit-learn 1.2.2)

Corpora and predictions are made up: random text, spans and scores. Start-up is the same command on one instance of
movies' shape. Ours scores in one process.
"""

from __future__ import annotations

import math
import resource
import statistics
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
RUNS = 15
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
ERASED = ("comprehensiveness_classification_scores", "sufficiency_classification_scores")
WORDS = np.array(["the", "of", "rationale", "a", "model", "evidence", "in", "is", "sentence", "token", ".", "and"])


def write_corpus(folder: Path, name: str, count: int | None = None) -> None:
    """Write split test of a corpus of this shape, and predictions.jsonl; ``count``: the first instances alone."""
    n, size, documents_each, n_labels, jsonl = SHAPES[name]
    random = np.random.default_rng(0)
    labels = [f"label {k}" for k in range(n_labels)]
    (folder if jsonl else folder / "docs").mkdir(parents=True)
    with (
        open(folder / "docs.jsonl", "wb") if jsonl else nullcontext() as documents,
        open(folder / "test.jsonl", "wb") as gold,
        open(folder / "predictions.jsonl", "wb") as predictions,
    ):
        for k in range(count or n):
            docids = [f"{k}_premise", f"{k}_hypothesis"] if documents_each == 2 else [f"document {k}"]
            evidences: list[list[dict[str, Any]]] = []
            rationales = []
            for docid in docids:
                text = " ".join(WORDS[random.integers(0, WORDS.size, size)].tolist()).replace(" . ", " .\n")
                if documents is None:
                    (folder / "docs" / docid).write_text(text, encoding="utf-8")
                else:
                    documents.write(msgspec.json.encode({"docid": docid, "document": text}) + b"\n")
                soft, hard, last = random.random(size), [], 0
                for start in np.unique(random.integers(0, size - 3, 1 + size // 200)).tolist()[::2]:
                    end = min(start + 2 + size // 100, size)
                    soft[start:end] += 0.5
                    span = {"docid": docid, "start_token": start, "end_token": end, "text": ""}
                    evidences.append([{**span, "start_sentence": -1, "end_sentence": -1}])
                    if last <= start + 1:
                        hard.append({"start_token": start + 1, "end_token": end})
                        last = end
                spans = {"docid": docid, "hard_rationale_predictions": hard}
                rationales.append({**spans, "soft_rationale_predictions": soft.tolist()})
            p = random.dirichlet(np.ones(n_labels), 3 + 2 * len(AOPC))
            whole, *erased = [dict(zip(labels, row, strict=True)) for row in p.tolist()]
            pairs = [dict(zip(ERASED, erased[at : at + 2], strict=True)) for at in range(0, len(erased), 2)]
            instance = {
                "annotation_id": str(k),
                "rationales": rationales,
                "classification": labels[int(p[0].argmax())],
                "classification_scores": whole,
                **pairs[0],
                "thresholded_scores": [{"threshold": t, **pair} for t, pair in zip(AOPC, pairs[1:], strict=True)],
            }
            predictions.write(msgspec.json.encode(instance) + b"\n")
            annotation = {"annotation_id": str(k), "classification": labels[k % n_labels], "docids": docids}
            annotation |= {"evidences": evidences, "query": "what", "query_type": None}
            gold.write(msgspec.json.encode(annotation) + b"\n")


def measure(command: list[str], folder: Path) -> float:
    """Return the CPU seconds of a command's process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(arguments: list[str]) -> int:
    """Print the table, and the geometric mean and the lowest of the ratios."""
    if len(arguments) < 2 or not set(arguments[2:]) <= SHAPES.keys():
        print(f"expected CHECKOUT PYTHON [SHAPE ..], shapes of {', '.join(SHAPES)}", file=sys.stderr)
        return 2
    checkout, python = Path(arguments[0]).resolve(), arguments[1]

    def ours(corpus: Path) -> float:
        files = ["--dataset", str(corpus), "--split", "test", "--predictions", str(corpus / "predictions.jsonl")]
        scores = ["--out", str(corpus.with_name("ours.json"))]
        return measure([sys.executable, "-m", "eraser_hub", "score", *files, *scores], ROOT)

    def reference(corpus: Path) -> float:
        files = ["--data_dir", str(corpus), "--split", "test", "--results", str(corpus / "predictions.jsonl")]
        scores = ["--score_file", str(corpus.with_name("scores.json"))]
        return measure([python, "-m", "rationale_benchmark.metrics", *files, *scores], checkout)

    ratios = []
    print("| shape | instances | eraser-hub, s | reference, s | ratio |\n|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as place:
        one = Path(place) / "one"
        write_corpus(one, "movies", 1)
        for name in arguments[2:] or SHAPES:
            corpus = Path(place) / name
            write_corpus(corpus, name)
            # start-up is taken right after, since the machine's speed changes; the reference takes minutes, so once
            own = statistics.median(ours(corpus) - ours(one) for _ in range(RUNS))
            other = reference(corpus) - reference(one)
            ratios.append(other / own)
            print(f"| {name} | {SHAPES[name][0]} | {own:.3f} | {other:.2f} | {ratios[-1]:.0f} |", flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"\nGeometric mean of the ratios: {mean:.0f}; lowest: {min(ratios):.0f}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
