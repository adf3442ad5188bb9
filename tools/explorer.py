"""Data of the explorer's Space, out of the bundled samples: ``python -m tools.explorer``.

samples.json    rows, predictions of the sample systems, and pairs of original and changed texts
model.json      a logistic regression over word counts, trained on movies/train
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from eraser_hub import samples
from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.metrics.tokens import split_tokens
from eraser_hub.records.predictions import read_plain_rows

CONFIGS = ("movies", "multirc", "fever", "boolq", "evidence_inference", "esnli", "cose")
SPLITS = ("validation", "test", "train")
# the label of the other corpora depends on their question: over words of the text alone a model answers by chance
MODELS = ("movies",)
SYSTEMS = {"sample system": "{}.val.jsonl", "sample baseline": "{}.val.baseline.jsonl"}
PAIRS = 12
SPAN = ("docid", "start_token", "end_token", "start_sentence", "end_sentence")
FOLDER = Path(str(files("eraser_hub.publishing") / "explorer"))


def collect_rows(hub: Path, config: str) -> dict[str, list[dict[str, Any]]]:
    """Return split -> rows of a config, with the columns that the explorer needs."""
    import datasets

    rows = {}
    for split in SPLITS:
        table = datasets.load_dataset(str(hub / "eraser"), config, split=split)
        names = table.features["classification"].names
        rows[split] = [
            {
                "annotation_id": row["annotation_id"],
                "query": row["query"],
                "classification": names[row["classification"]] if row["classification"] >= 0 else None,
                "documents": row["documents"],
                "evidences": [[{key: span[key] for key in SPAN} for span in group] for group in row["evidences"]],
            }
            for row in table
        ]
    return rows


def collect_systems(config: str) -> dict[str, dict[str, Any]]:
    """Return system -> annotation -> its rationales, as the predictions file has them."""
    systems = {}
    for name, pattern in SYSTEMS.items():
        path = samples.path("predictions", "eraser") / pattern.format(config)
        if path.is_file():
            systems[name] = {
                row["annotation_id"]: [
                    {
                        "docid": rationale["docid"],
                        "hard": [[s["start_token"], s["end_token"]] for s in rationale["hard_rationale_predictions"]],
                        "soft": [round(score, 3) for score in rationale.get("soft_rationale_predictions") or ()],
                    }
                    for rationale in row["rationales"]
                ]
                for _, row in read_plain_rows(path)
            }
    return systems


def collect_pairs(hub: Path) -> Iterator[dict[str, Any]]:
    """Yield pairs of original and changed texts, each with the gold tokens of both in the order of the text."""
    import datasets

    rows = {
        row["id"]: row for row in datasets.load_dataset(str(hub / "bilingual_perturbation"), "senti_en", split="test")
    }
    for row in list(rows.values())[:PAIRS]:
        if row["rel_ids"]:
            both = [row, rows[row["rel_ids"][0]]]
            yield {
                "id": row["id"],
                "tokens": [one["tokens"][0] for one in both],
                "ranked": [[at for gold in one["rationale_ids"][0] for at in gold] for one in both],
            }


def train(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Train a logistic regression over word counts; return its labels, words, weights and intercepts."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    texts = [split_tokens("\n".join(document["text"] for document in row["documents"])) for row in rows]
    # a word that stands in most texts tells no label apart
    vectorizer = CountVectorizer(analyzer=lambda tokens: [token.lower() for token in tokens], max_df=0.5)
    model = LogisticRegression(C=1.0, max_iter=1000)
    model.fit(vectorizer.fit_transform(texts), [row["classification"] for row in rows])
    weights, intercepts = model.coef_.tolist(), model.intercept_.tolist()
    if len(weights) == 1:  # of two labels the second has the weights
        weights, intercepts = [[0.0] * len(weights[0]), weights[0]], [0.0, intercepts[0]]
    words = [word for word, _ in sorted(vectorizer.vocabulary_.items(), key=lambda item: item[1])]
    return {
        "texts": len(rows),
        "labels": model.classes_.tolist(),
        "intercepts": [round(value, 4) for value in intercepts],
        "weights": {word: [round(row[at], 4) for row in weights] for at, word in enumerate(words)},
    }


def make_data() -> dict[str, str]:
    """Return file name -> text of the explorer's data."""
    with tempfile.TemporaryDirectory() as place:
        hub = Path(place)
        for name in ("eraser", "bilingual_perturbation"):
            HUB_DATASETS[name].build(None, out=hub, source=samples.path(name))
        corpora = {
            config: {"splits": collect_rows(hub, config), "systems": collect_systems(config)} for config in CONFIGS
        }
        pairs = list(collect_pairs(hub))
    models = {config: train(corpora[config]["splits"]["train"]) for config in MODELS}
    made = {"samples.json": {"corpora": corpora, "pairs": pairs}, "model.json": models}
    options: dict[str, Any] = {"ensure_ascii": False, "separators": (",", ":")}
    return {name: json.dumps(value, **options) + "\n" for name, value in made.items()}


def main() -> None:
    """Write the files; the argument is another folder."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    for name, text in make_data().items():
        (folder / name).write_text(text, encoding="utf-8")
        print(folder / name, len(text.encode()))


if __name__ == "__main__":
    main()
