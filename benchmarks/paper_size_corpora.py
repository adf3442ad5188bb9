"""Made-up ERASER corpora of the papers' full sizes: the papers' numbers (ERASER, Tables 1, 2 and 5), not their text.

Words are made of syllables and drawn by Zipf's law, so that they compress about as English does.

    python -m benchmarks.paper_size_corpora FOLDER esnli fever      writes FOLDER/esnli, FOLDER/fever
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eraser_hub.conversion.eraser.configs import CONFIGS


@dataclass(frozen=True)
class Shape:
    """A corpus in numbers: instances per split, documents per split, mean tokens and sentences of a document, documents
    and evidences per instance, mean tokens of an evidence."""

    instances: tuple[int, int, int]
    documents: tuple[int, int, int]
    tokens: int
    sentences: int
    documents_each: int = 1
    evidences: float = 1.0
    evidence_tokens: int = 20


SHAPES = {
    "movies": Shape((1600, 200, 199), (1599, 200, 199), 774, 37, evidences=8.6, evidence_tokens=8),
    "multirc": Shape((24029, 3214, 4848), (400, 56, 83), 303, 15, evidences=2.3, evidence_tokens=18),
    "fever": Shape((97957, 6122, 6111), (2915, 570, 614), 327, 12, evidences=1.5, evidence_tokens=24),
    "boolq": Shape((6363, 1491, 2807), (4518, 1092, 1420), 3580, 175, evidence_tokens=108),
    "evidence_inference": Shape((7958, 972, 959), (1924, 247, 240), 4761, 156, evidences=1.3, evidence_tokens=30),
    "cose": Shape((8752, 1086, 1079), (8752, 1086, 1079), 28, 1, evidence_tokens=6),
    "esnli": Shape(
        (549309, 9823, 9807), (911938, 16328, 16299), 16, 1, documents_each=2, evidences=2.2, evidence_tokens=2
    ),
}


class Words:
    """A vocabulary, and texts of it."""

    def __init__(self, rng: np.random.Generator, size: int = 30_000) -> None:
        syllables = np.array(
            [
                a + b
                for a in ["b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr", "ch"]
                for b in ["a", "e", "i", "o", "u"]
            ]
        )
        lengths = rng.integers(1, 5, size)
        self.words = np.array(["".join(rng.choice(syllables, n)) for n in lengths], dtype=object)
        weights = 1 / (np.arange(size) + 2.7)
        self._cumulative = np.cumsum(weights / weights.sum())
        self._rng = rng

    def draw(self, count: int) -> list[str]:
        """So many words."""
        return self.words[np.searchsorted(self._cumulative, self._rng.random(count))].tolist()


def write_corpus(folder: Path, config: str, scale: float = 1.0, seed: int = 0) -> Path:
    """Write ``folder/config`` in the release's form, ``scale`` times as large as the paper's; the folder."""
    rng = np.random.default_rng(seed)
    words, shape, facts = Words(rng), SHAPES[config], CONFIGS[config]
    target = folder / config
    target.mkdir(parents=True, exist_ok=True)
    lines = config in ("cose", "cose_simplified", "esnli", "esnli_flat")
    if lines:
        documents = (target / "docs.jsonl").open("w", encoding="utf-8")
    else:
        (target / "docs").mkdir(exist_ok=True)
    for split, instances, count in zip(("train", "val", "test"), shape.instances, shape.documents, strict=True):
        instances, count = max(4, int(instances * scale)), max(4, int(count * scale))
        stem = ""
        made: list[tuple[str, list[list[str]]]] = []
        with (target / f"{split}.jsonl").open("w", encoding="utf-8") as file:
            for number in range(instances):
                wanted = shape.documents_each
                if (
                    wanted == 2
                ):  # premise and hypothesis; the premise of three instances in a row is one and the same text
                    identity = f"{rng.integers(10**8, 10**10) if number % 3 == 0 else stem}.jpg#{number % 5}r1"
                    stem = identity.split(".")[0]
                    identity += "nce"[number % 3]
                    fresh = [f"{identity}_hypothesis", f"{identity}_premise"]
                elif count >= instances - 1:
                    identity = (
                        f"{rng.integers(0, 2**63):016x}{rng.integers(0, 2**63):016x}"
                        if lines
                        else f"negR_{split}_{number}.txt"
                    )
                    fresh = [identity]
                else:
                    identity = f"{split}{number}"
                    fresh = (
                        [f"{split}_page_{len(made)}"]
                        if len(made) < count and number * count >= len(made) * instances
                        else []
                    )
                if wanted == 2 or fresh:
                    sizes = [max(4, int(rng.gamma(8, shape.tokens / 8))) for _ in fresh]
                    new = [
                        (docid, _sentences(words.draw(size), shape.sentences))
                        for docid, size in zip(fresh, sizes, strict=True)
                    ]
                    for docid, sentences in new:
                        text = "\n".join(" ".join(sentence) for sentence in sentences)
                        if lines:
                            documents.write(json.dumps({"docid": docid, "document": text}) + "\n")
                        else:
                            (target / "docs" / docid).write_text(text, encoding="utf-8")
                    made = new if lines else [*made, *new]
                of = (
                    made
                    if wanted == 2 or lines
                    else [made[-1] if fresh else made[rng.integers(max(0, len(made) - 40), len(made))]]
                )
                file.write(json.dumps(_record(config, facts.label_names, identity, of, shape, words, rng)) + "\n")
    if lines:
        documents.close()
    return target


def _sentences(tokens: list[str], count: int) -> list[list[str]]:
    size = max(1, len(tokens) // count)
    return [tokens[start : start + size] for start in range(0, len(tokens), size)]


def _record(config, labels, identity, documents, shape, words, rng):
    evidences = []
    for _ in range(max(1, rng.poisson(shape.evidences))):
        docid, sentences = documents[rng.integers(len(documents))]
        flat = [token for sentence in sentences for token in sentence]
        length = min(len(flat), max(1, int(rng.gamma(4, shape.evidence_tokens / 4))))
        start = int(rng.integers(0, len(flat) - length + 1))
        size = len(sentences[0])
        evidences.append(
            {
                "docid": docid,
                "end_sentence": (start + length - 1) // size + (config != "boolq"),
                "end_token": start + length,
                "start_sentence": start // size,
                "start_token": start,
                "text": " ".join(flat[start : start + length]),
            }
        )
    return {
        "annotation_id": int(rng.integers(2**40)) if config == "boolq" else identity,
        "classification": labels[rng.integers(len(labels))],
        "docids": [docid for docid, _ in documents],
        "evidences": [evidences] if config in ("multirc", "esnli", "cose") else [[each] for each in evidences],
        "query": "" if config == "esnli" else "What is it ?" if config == "movies" else " ".join(words.draw(9)),
        "query_type": None,
    }


def main(arguments: list[str]) -> int:
    """``FOLDER CONFIG ..`` from the command line."""
    if len(arguments) < 2 or any(name not in SHAPES for name in arguments[1:]):
        print(__doc__, file=sys.stderr)
        return 2
    for name in arguments[1:]:
        print(write_corpus(Path(arguments[0]), name))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
