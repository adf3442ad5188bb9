"""The sound inputs that mutators spoil: tiny corpora, predictions for them, and what the verbs make of them."""

from __future__ import annotations

import copy
import json
import random
import shutil
from pathlib import Path
from typing import Any

from tests.metrics.family import made_up

Record = dict[str, Any]
SAMPLES = Path(__file__).resolve().parents[2] / "samples"
THRESHOLDS = (0.01, 0.05, 0.1, 0.2, 0.5)
LABELS = {"movies": ["NEG", "POS"], "esnli": ["contradiction", "entailment", "neutral"]}
WORDS = [
    "a",
    "the",
    "film",
    "scene",
    "plot",
    "warm",
    "funny",
    "dull",
    "cold",
    "with",
    "and",
    "of",
    "never",
    "ends",
    "well",
]
ERASED = ("comprehensiveness_classification_scores", "sufficiency_classification_scores")


class Corpus:
    """An ERASER corpus of a few annotations: ``splits`` of records, ``documents`` by id."""

    def __init__(self, config: str) -> None:
        self.config, self.documents, self.splits = config, {}, {}
        draw = random.Random(config)
        for split, size in (("train", 6), ("val", 4), ("test", 3)):
            self.splits[split] = [self._annotation(draw, split, number) for number in range(size)]

    def _annotation(self, draw: random.Random, split: str, number: int) -> Record:
        labels, name = LABELS[self.config], f"{split}{number}"
        parts = ("_hypothesis", "_premise") if self.config == "esnli" else ("",)
        docids = [name + part for part in parts]
        for docid in docids:
            lengths = [draw.randint(4, 7) for _ in range(1 if self.config == "esnli" else 2)]
            self.documents[docid] = "\n".join(" ".join(draw.choice(WORDS) for _ in range(n)) for n in lengths)
        groups = [[self._evidence(docids[0], 1, 3)]]
        if self.config == "movies":
            groups.append([self._evidence(docids[0], 3, 4)])
        record = {
            "annotation_id": name,
            "query": "What is it ?",
            "query_type": None,
            "classification": labels[number % len(labels)],
            "evidences": groups,
        }
        return record if self.config == "movies" else {**record, "docids": docids}

    def _evidence(self, docid: str, start: int, end: int) -> Record:
        text = " ".join(self.documents[docid].replace("\n", " ").split(" ")[start:end])
        span = {"start_token": start, "end_token": end, "start_sentence": 0, "end_sentence": 1}
        return {"docid": docid, "text": text, **span}

    def files(self) -> dict[str, Any]:
        """Path -> records of JSON lines, or bytes: the corpus as it is released."""
        files: dict[str, Any] = {
            f"{self.config}/{split}.jsonl": copy.deepcopy(rows) for split, rows in self.splits.items()
        }
        if self.config == "esnli":
            files["esnli/docs.jsonl"] = [{"docid": k, "document": v} for k, v in self.documents.items()]
        else:
            files.update({f"{self.config}/docs/{k}": v.encode() for k, v in self.documents.items()})
        return files

    def rows(self, split: str) -> list[Record]:
        """The split's annotations as rows that the modules take."""
        rows = copy.deepcopy(self.splits[split])
        for row in rows:
            docids = row.get("docids") or [row["annotation_id"]]
            row["documents"] = [{"docid": docid, "text": self.documents[docid]} for docid in docids]
        return rows


CORPORA = {config: Corpus(config) for config in LABELS}


def instances(config: str, split: str = "val", seed: int = 0) -> list[Record]:
    """Predictions for a split with every optional field that the policy speaks of."""
    draw, corpus = random.Random(seed), CORPORA[config]

    def scores() -> dict[str, float]:
        share = [draw.randint(1, 9) for _ in LABELS[config]]
        return {label: part / sum(share) for label, part in zip(LABELS[config], share, strict=True)}

    result = []
    for record in corpus.splits[split]:
        rationales = []
        for docid in record.get("docids") or [record["annotation_id"]]:
            lines = corpus.documents[docid].split("\n")
            tokens = sum(len(line.split(" ")) for line in lines)
            rationales.append(
                {
                    "docid": docid,
                    "hard_rationale_predictions": [{"start_token": 0, "end_token": 2}],
                    "soft_rationale_predictions": [round(draw.random(), 3) for _ in range(tokens)],
                    "soft_sentence_predictions": [round(draw.random(), 3) for _ in lines],
                }
            )
        full = scores()
        result.append(
            {
                "annotation_id": record["annotation_id"],
                "rationales": rationales,
                "classification": max(full, key=lambda label: full[label]),
                "classification_scores": full,
                **{name: scores() for name in ERASED},
                "thresholded_scores": [{"threshold": t, **{name: scores() for name in ERASED}} for t in THRESHOLDS],
                "tokens_to_flip": 2,
            }
        )
    return result


def import_rows() -> list[Record]:
    """Rows of a corpus that `import` takes, in every way that it takes them."""
    draw, rows = random.Random(5), []
    for number in range(5):
        tokens = draw.sample(WORDS, 6)
        masks = [[int(draw.random() < 0.4) for _ in tokens] for _ in range(2)]
        masks[0][number] = 1
        starts = [len(" ".join(tokens[:at])) + (at > 0) for at in range(len(tokens))]
        rows.append(
            {
                "id": f"r{number}",
                "tokens": tokens,
                "mask": masks,
                "label": draw.choice(("good", "bad")) if number else ["good", "good", "bad"],
                "text": " ".join(tokens),
                "spans": [[starts[1], starts[1] + len(tokens[1])]],
                "quotes": [" ".join(tokens[2:4])],
                "query": "What is it ?",
            }
        )
    return rows


def module_rows(name: str) -> tuple[list[Record], list[Record] | None]:
    """(predictions, references) that one of the eight modules takes."""
    if name.startswith("eraser_"):
        return instances("movies"), CORPORA["movies"].rows("val")
    if name == "quote_faithfulness":
        rows = CORPORA["movies"].rows("val")
        return [quoted(row) for row in rows], rows
    predictions, references = made_up(name, 4)
    for row in [*predictions, *(references or [])]:  # ids of one type, so that Arrow takes the rows too
        row.update({key: str(row[key]) for key in ("id", "annotation_id") if key in row})
    return predictions, references


def quoted(row: Record) -> Record:
    """A language model's quotes of a row: one that stands there, one that does not; and its answers without them."""
    document = row["documents"][0]
    place = {"docid": document["docid"], "start_token": 0, "end_token": 2, "similarity": 1.0}
    return {
        "annotation_id": row["annotation_id"],
        "classification": "POS",
        "quotes": [
            {"text": " ".join(document["text"].split()[:2]), "status": "exact", **place},
            {"text": "nobody wrote this", "status": "not_found"},
        ],
        "asked_again": [{"kind": "redacted", "classification": "NEG"}, {"kind": "alone", "classification": "POS"}],
    }


def json_lines(records: list[Any]) -> bytes:
    """Records, one a line."""
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def write_files(folder: Path, files: dict[str, Any]) -> None:
    """Write records as JSON lines, an object as JSON, bytes as they are."""
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            content = json.dumps(content).encode()
        target.write_bytes(content if isinstance(content, bytes) else json_lines(content))


def stock_commands() -> list[list[str]]:
    """The command lines that make the stock, in order, run in its folder."""
    built = ["--dataset", "hub/eraser", "--config", "movies", "--split", "val"]
    quiet = ["--out", "hub", "--no-progress"]
    return [
        ["build", "eraser", "--source", "raw", "--config", "movies", "--config", "esnli", *quiet],
        ["build", "bilingual_perturbation", "--source", "bilingual_perturbation", "--config", "senti_en", *quiet],
        ["build", "human_rationales", "--source", "human_rationales", *quiet],
        ["build", "metrics", "--out", "hub", "--config", "normalized_fidelity"],
        ["score", *built, "--results", "p.jsonl", "--score-file", "scores.json"],
        ["train", *built[:4], "--model", "logistic-regression", "--out", "model"],
        ["explain", *built, "--model", "model", "--out", "explained.jsonl", "--quiet"],
        ["report", *built, "--predictions", "p.jsonl", "--out", "report", "--resamples", "10"],
        ["board", "--scores", "ours@movies=scores.json", "--no-published", "--out", "board"],
    ]


def write_stock(folder: Path) -> None:
    """The raw files and predictions that `stock_commands` start from."""
    for corpus in CORPORA.values():
        write_files(folder / "raw", corpus.files())
    for name in ("bilingual_perturbation", "human_rationales"):
        shutil.copytree(SAMPLES / name, folder / name)
    write_files(folder, {"p.jsonl": instances("movies"), "q.jsonl": instances("movies", seed=1)})
    write_files(folder, {"p.test.jsonl": instances("movies", "test"), "rows.jsonl": import_rows()})
