"""What the product says of small inputs, from end to end: ``python -m tests.golden.record [NAME ..]``.

Each function of RECORDS returns plain values. ``numbers/NAME.json`` holds those that stay, and ``test_numbers.py``
computes them anew. What differs on purpose is recorded again, in a commit that gives the reason; a new number where
its key stands in the file, with null.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import eraser_hub

HERE = Path(__file__).resolve().parent
SAMPLES = HERE.parents[1] / "samples"
EXPORTS = HERE.parent / "conversion" / "importing" / "exports"
CORPORA = ("movies", "multirc", "fever", "boolq", "evidence_inference", "cose", "esnli")
ERASED = ("comprehensiveness_classification_scores", "sufficiency_classification_scores")
Values = dict[str, Any]


def plain(value: Any) -> Any:
    """Return a value as JSON has it: numbers of numpy as Python's, tuples as lists, NaN as null."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(one) for one in value]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and value != value else value


def digest(values: Any) -> str:
    """Return the SHA-256 of values as JSON with sorted keys."""
    text = json.dumps(plain(values), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def golden(name: str) -> list[Values]:
    return json.loads((HERE / name).read_text(encoding="utf-8"))["cases"]


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def build(dataset: str, out: Path, source: Path = SAMPLES, **more: Any) -> Path:
    eraser_hub.build(dataset, source=source / dataset if source is SAMPLES else source, out=out, **more)
    return out / dataset


def open_modules(folder: Path) -> Callable[..., Values]:
    """Return a function that loads a module by its name, out of its Space, and computes."""
    import evaluate

    from eraser_hub.publishing.spaces import build_metrics

    build_metrics(folder)
    loaded: dict[str, Any] = {}

    def compute(name: str, **given: Any) -> Values:
        if name not in loaded:
            loaded[name] = evaluate.load(str(folder / name))
        return loaded[name].compute(**given)

    return compute


def random_rows(seed: int, size: int = 6) -> tuple[list[Values], list[Values]]:
    """Return predictions with every field of ERASER's results format, and rows of a dataset that they answer."""
    random, predictions, references = np.random.default_rng(seed), [], []
    for number in range(size):
        docid, length = f"d{number}", int(random.integers(8, 20))
        start, cut = int(random.integers(0, length - 3)), np.sort(random.choice(length, 2, replace=False)).tolist()
        lines = [" ".join(f"w{token}" for token in part) for part in np.array_split(np.arange(length), 3)]
        gold = {"docid": docid, "text": "", "start_token": start, "end_token": start + 3}
        bounds = np.cumsum([len(line.split(" ")) for line in lines])
        first, last = np.searchsorted(bounds, (start, start + 2), side="right").tolist()
        gold |= {"start_sentence": first, "end_sentence": last + 1}
        p = [dict(zip(("NEG", "POS"), pair, strict=True)) for pair in random.dirichlet((1, 1), 7).tolist()]
        rationale = {
            "docid": docid,
            "hard_rationale_predictions": [{"start_token": cut[0], "end_token": cut[1]}],
            "soft_rationale_predictions": random.random(length).round(2).tolist(),
            "soft_sentence_predictions": random.random(3).tolist(),
        }
        prediction = {"annotation_id": f"a{number}", "rationales": [rationale], "classification_scores": p[0]}
        prediction |= {"classification": max(p[0], key=lambda label: p[0][label]), **dict(zip(ERASED, p[1:]))}  # noqa: B905
        prediction["tokens_to_flip"] = int(random.integers(1, length))
        thresholds = [(0.1, p[3:5]), (0.5, p[5:7])]
        prediction["thresholded_scores"] = [
            {"threshold": share, **dict(zip(ERASED, pair, strict=True))} for share, pair in thresholds
        ]
        predictions.append(prediction)
        row = {"annotation_id": f"a{number}", "classification": "POS" if number % 3 else "NEG", "query": ""}
        documents = [{"docid": docid, "text": "\n".join(lines)}]
        references.append({**row, "documents": documents, "evidences": [[gold]]})
    return predictions, references


def soft_rows(case: Values) -> tuple[list[Values], list[Values]]:
    """Return a golden case of soft scores as rows: an annotation of one document each."""
    predictions, references = [], []
    for number, document in enumerate(case["documents"]):
        name, truth = str(number), document["truth"]
        soft = [{"docid": name, "soft_rationale_predictions": document["scores"]}]
        predictions.append({"annotation_id": name, "rationales": soft})
        spans = [
            {"docid": name, "text": "", "start_token": at, "end_token": at + 1} for at, one in enumerate(truth) if one
        ]
        spans = [span | {"start_sentence": -1, "end_sentence": -1} for span in spans]
        documents = [{"docid": name, "text": " ".join("w" * len(truth))}]
        row = {"annotation_id": name, "classification": "POS", "query": "", "documents": documents}
        references.append({**row, "evidences": [[span] for span in spans]})
    return predictions, references


def mean_of(results: Sequence[Mapping[str, Any]]) -> Values:
    """Return the mean of each score over the results that have it as a number."""
    keys = dict.fromkeys(key for one in results for key in one)
    numbers = {key: [one[key] for one in map(plain, results) if isinstance(one.get(key), int | float)] for key in keys}
    return {key: float(np.mean(values)) for key, values in numbers.items() if values} | {"cases": len(results)}


def record_modules(work: Path) -> Values:
    """Every module, on the golden small cases (means over the cases) and on rows made here."""
    compute, random, names = open_modules(work / "spaces"), np.random.default_rng(0), ("predictions", "references")
    pairs = [dict(zip(names, (one["predictions"], one["golden"]))) for one in golden("small/perturbation.json")]  # noqa: B905
    made = [dict(zip(names, random_rows(seed), strict=True)) for seed in range(8)]
    soft = [dict(zip(names, soft_rows(case), strict=True)) for case in golden("small/soft_rationales.json")]
    four = ("p_full", "p_rationale", "p_complement", "p_empty")
    sizes = [
        [dict(zip(four, cells, strict=True)) for cells in zip(*map(case.get, four), strict=True)]
        for case in golden("small/normalized_fidelity.json")
    ]
    curves = [
        dict(zip(four, random.random(4).tolist(), strict=True)) | {"annotation_id": str(one), "occlusion_rate": rate}
        for one in range(5)
        for rate in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    people = [{"annotation_id": str(n), "annotators": random.integers(0, 2, (3, n)).tolist()} for n in range(6, 14)]
    quoted = [
        {"id": "1", "quotes": ["a warm film", "a Warm  film", "warm filn with songs"]},
        {"id": "2", "quotes": ["nothing of it"]},
    ]
    texts = [{"id": "1", "text": "It is a warm film with songs , a warm film ."}, {"id": "2", "text": "It is dull ."}]
    answers = [
        {"id": 1, "rationale": [[0, 2]], "answer": "the red barn"},
        {"id": 2, "rationale": [[1]], "answer": "红色的谷仓"},
    ]
    asked = [
        {"id": 1, "rationale_ids": [[[0, 1]]], "answer": "a red barn"},
        {"id": 2, "rationale_ids": [[[1]]], "answer": "谷仓"},
    ]
    masks = {"predictions": [[0, 1, 1, 0], [1, 0, 0, 0]], "references": [[0, 1, 0, 0], [1, 1, 0, 1]]}
    bca = compute("eraser_agreement", **made[0], confidence_level=0.95, n_resamples=200, seed=1)
    by_label = compute("eraser_agreement", **made[0], by="classification")["by"]
    sets = "rationale_set_agreement"
    return {
        "eraser_agreement": mean_of([compute("eraser_agreement", **one) for one in made]),
        "eraser_agreement of soft scores": mean_of([compute("eraser_agreement", **one) for one in soft]),
        "eraser_agreement of masks": compute("eraser_agreement", **masks),
        "eraser_agreement, intervals": {key.removesuffix("_ci"): ends for key, ends in bca.items()},
        "eraser_agreement by label": {label: scores["token_macro_f1"] for label, scores in by_label.items()},
        "eraser_faithfulness": mean_of(
            [compute("eraser_faithfulness", **one, aopc_thresholds=[0.1, 0.5]) for one in made]
        ),
        "perturbation_map": mean_of([compute("perturbation_map", **one) for one in pairs]),
        sets: mean_of([compute(sets, **one) for one in pairs]),
        f"{sets} of answers": compute(sets, predictions=answers, references=asked),
        "normalized_fidelity": mean_of([compute("normalized_fidelity", predictions=rows) for rows in sizes]),
        "normalized_fidelity, curves": compute("normalized_fidelity", predictions=curves),
        "annotator_agreement": compute("annotator_agreement", references=people),
        "quote_faithfulness": compute("quote_faithfulness", predictions=quoted, references=texts),
    }  # fmt: skip


def record_scores(work: Path) -> Values:
    """`score` of the samples' predictions, and the difference of two systems."""
    hub, folder, found = build("eraser", work), SAMPLES / "predictions", dict[str, Values]()
    bca = {"confidence_level": 0.95, "resamples": 200, "seed": 1}

    def score(name: str, predictions: Path, dataset: Path = hub, **settings: Any) -> None:
        scores = eraser_hub.score(predictions, dataset=dataset, **settings)
        found[name] = {"scores": scores.scores, "intervals": scores.intervals}

    for config in CORPORA:
        more = {"config": config, "split": "val", "iou_thresholds": [0.1, 0.5]}
        more |= bca if config in ("movies", "multirc", "fever") else {}
        score(config, folder / f"eraser/{config}.val.jsonl", **more)
    pairs = build("bilingual_perturbation", work)
    of = {"config": "senti_ch", "split": "test"}
    score("senti_ch", folder / "bilingual_perturbation/senti_ch.jsonl", pairs, **of, **bca)
    movies, other = folder / "eraser/movies.val.jsonl", folder / "eraser/movies.val.baseline.jsonl"
    of = {"config": "movies", "split": "val"}
    score("movies as released", movies, SAMPLES / "eraser/movies", **of)
    few = [write_lines(work / one.name, read_lines(one)[:10]) for one in (movies, other)]
    score("movies, only predicted", few[0], **of, only_predicted=True)
    flat = [
        {"id": "1", "tokens": list("abcde"), "rationale": [0, 1, 1, 0, 0]},
        {"id": "2", "tokens": list("ab"), "rationale": [1, 0]},
    ]
    masks = [{"id": "1", "rationale": [0, 1, 0, 0, 1]}, {"id": "2", "rationale": [1, 1]}]
    score("masks", write_lines(work / "masks.jsonl", masks), write_lines(work / "gold.jsonl", flat))
    primary = ["token_macro_f1", "iou_macro_f1", "average_precision", "comprehensiveness", "comprehensiveness_aopc"]
    for name, files, only in (
        ("movies against the baseline", (movies, other), False),
        ("movies against the baseline, 10 documents", few, True),
    ):
        systems, tested = dict(zip(("ours", "baseline"), files, strict=True)), {"resamples": 10_000, "seed": 1}
        made = eraser_hub.compare(systems, dataset=hub, **of, **tested, primary=primary, only_predicted=only)
        keys = made["comparisons"][0]["keys"]
        figures = {"d": "difference", "p": "p", "p adjusted": "p_holm"}
        found[name] = {key: {short: keys[key][own] for short, own in figures.items()} for key in primary}
    return found


def record_datasets(work: Path) -> Values:
    """Rows, columns and digests of the built samples, their tables, and what `export` writes back."""
    found: Values = {}

    def load(dataset: Path, config: str) -> dict[str, Any]:
        splits = sorted({path.name.partition("-0")[0] for path in (dataset / config).glob("*.parquet")})
        rows = {split: eraser_hub.load(dataset, config, split) for split in splits}
        # `label`, the name of `classification`, came later
        return {split: one.remove_columns("label") if dataset.name == "eraser" else one for split, one in rows.items()}

    for name in ("eraser", "bilingual_perturbation", "human_rationales"):
        dataset = build(name, work)
        for config in sorted({path.parent.name for path in dataset.glob("*/*-0*.parquet")}):
            rows = load(dataset, config)
            found[f"{name}, {config}"] = {
                "rows": {split: len(own) for split, own in rows.items()},
                "columns": next(iter(rows.values())).column_names,
                "sha256": digest([own.to_list() for own in rows.values()]),
            }
        tables = eraser_hub.stats(dataset=dataset)
        texts = [replace(tables, tables=[table]).written("csv") for table in tables.tables]
        lines = [row for text in texts for row in csv.DictReader(io.StringIO(text))]
        found[f"{name}, stats"] = {"rows": len(lines), "sha256": digest(lines)}
        if name == "eraser":
            of_movies = [row for row in lines if row["config"] == "movies" and "evidences" in row]
            found["stats of the movies"] = {row["split"]: row for row in of_movies}
    for config in CORPORA:
        eraser_hub.export(work / "eraser", out=work / "raw", config=config)
        raw = work / "raw" / config
        files = sorted(path for path in raw.rglob("*") if path.is_file() and path.suffix in (".jsonl", ".txt", ""))
        found[f"export of {config}"] = {
            "files": len(files),
            "records": digest([read_lines(path) for path in files if path.suffix == ".jsonl"]),
            "documents": digest([[path.name, path.read_bytes().decode()] for path in files if path.suffix != ".jsonl"]),
        }
    again = load(build("eraser", work / "again", work / "raw", config="movies"), "movies")
    found["movies, built from its export"] = {"sha256": digest([own.to_list() for own in again.values()])}
    return found


def linear_model() -> Any:
    """Return a fitted scikit-learn pipeline over strings; its weights are set, for a fit differs between processors."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(CountVectorizer(token_pattern=r"\S+"), LogisticRegression())
    model.fit(TEXTS, ["POS", "NEG", "POS"])
    model[1].coef_, model[1].intercept_ = np.linspace(-1, 1, model[1].coef_.size)[None], np.array([0.1])
    return model


def network(folder: Path) -> Path:
    """Write a small BERT of float64 weights, drawn by numpy, and its tokenizer."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted({word for text in TEXTS for word in text.split()})]
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    named = {
        name: f"[{name[:-6].upper()}]" for name in ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    }
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named).save_pretrained(folder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    labels = {"id2label": {0: "NEG", 1: "POS"}, "label2id": {"NEG": 0, "POS": 1}}
    config = transformers.BertConfig(
        vocab_size=len(words), max_position_embeddings=32, hidden_act="relu", **sizes, **labels
    )
    model, random = transformers.BertForSequenceClassification(config).double(), np.random.default_rng(0)
    with torch.no_grad():
        for _, weights in sorted(model.named_parameters()):
            weights.copy_(torch.from_numpy(random.normal(0, 0.3, tuple(weights.shape))))
    model.save_pretrained(folder)
    return folder


TEXTS = [
    "a warm and funny film with a good plot",
    "a dull film , cold and grey , bad from the first scene",
    "the plot is bright",
]
CALLS = {
    "lime": "lime(samples=200)", "kernel-shap": "kernel-shap(samples=100)", "shapley": "shapley(draws=5)",
    "integrated-gradients": "integrated-gradients(steps=20)",
}  # fmt: skip
MEASURES = ["aopc-bounds", "soft(draws=20)", "infidelity(draws=10)", "sensitivity(draws=5)", "tokens-to-flip"]


def record_explanations(work: Path) -> Values:
    """Scores by each method, the answers on erased inputs, and what a trained model of a corpus gets."""
    found: Values = {}
    erased, gradients = ("classification_scores", *ERASED), ("gradient", "input-x-gradient", "integrated-gradients")
    how: Values = {"kd": 0.3, "seed": 1}
    for kind, model, methods in (
        ("linear", linear_model(), ("random", "occlusion", "lime", "shapley", "kernel-shap", *gradients)),
        ("bert", network(work / "bert"), ("occlusion", "deeplift", "attention", *gradients)),
    ):
        for method in methods:
            rows = eraser_hub.explain(model, TEXTS, method=CALLS.get(method, method), bins=(0.1, 0.5), **how)
            (rationales,) = zip(*(row["rationales"] for row in rows), strict=True)
            spans = [one["hard_rationale_predictions"] for one in rationales]
            found[f"{kind}, {method}"] = {
                "scores": [one["soft_rationale_predictions"] for one in rationales],
                "rationale": [[[span["start_token"], span["end_token"]] for span in one] for one in spans],
                "answers": [[row[field]["POS"] for field in erased] for row in rows],
                "bins": [[one[field]["POS"] for one in row["thresholded_scores"] for field in ERASED] for row in rows],
            }
    rows = eraser_hub.explain(linear_model(), TEXTS, method="occlusion", bins=(), measure=MEASURES, **how)
    fields = ("tokens_to_flip", "aopc_bounds", "soft_scores", "infidelity", "sensitivity_max")
    found["linear, measures"] = {field: plain([row.get(field) for row in rows]) for field in fields}
    of = {"dataset": build("eraser", work), "config": "movies"}
    model = eraser_hub.train(**of, model="logistic-regression", out=work / "model").folder
    curves = {"rationales": "human", "fidelity_trials": 2, "fidelity_rates": (0.0, 0.5, 1.0)}
    for name, more in (
        ("logistic regression of the movies", {"measure": "tokens-to-flip"}),
        ("people's rationales erased", curves),
    ):
        (made,) = eraser_hub.explain(model, **of, split="validation", seed=1, out=work / f"{len(found)}.jsonl", **more)
        found[name] = dict(eraser_hub.score(made.out, **of, split="val").scores)
    found[name] |= open_modules(work / "spaces")("normalized_fidelity", predictions=read_lines(made.out))
    return found


def record_imports(work: Path) -> Values:
    """Rows of every reader, of the bundled files and exports, and of each recipe's sample."""
    import pyarrow as pa
    from pyarrow import parquet

    from eraser_hub.conversion.importing.recipes import list_recipes, read_recipe

    bundled, found = SAMPLES / "any_corpus", dict[str, Values]()
    masks = [
        {"words": ["a", "good", "film"], "why": [0, 1, 0], "label": "p"},
        {"words": ["bad"], "why": [1], "label": "n"},
    ]
    parquet.write_table(pa.Table.from_pylist(masks), work / "masks.parquet")
    columns = {"tokens": "words", "mask": "why", "label": "label"}
    spans = {"text": "question", "spans": "selected_offsets", "label": "answerKey", "query": "choices", "id": "id"}
    quotes = {"text": "review", "quotes": "why", "label": "verdict", "id": "id"}
    people = {"tokens": "post_tokens", "mask": "rationales", "label": "annotators.label"}
    sources: list[tuple[str, Path, Values]] = [
        ("masks of parquet", work / "masks.parquet", columns),
        ("masks of jsonl", write_lines(work / "m.jsonl", masks), columns),
        ("character spans of csv", bundled / "cose.csv", spans),
        ("quotes of jsonl", bundled / "quotes.jsonl", quotes),
        ("several people", bundled / "hatexplain_train.json", people),
        ("doccano", EXPORTS / "doccano-entities.jsonl", {"span_label": "RATIONALE"}),
        ("label studio", EXPORTS / "label-studio.json", {"span_label": "RATIONALE"}),
        ("prodigy", EXPORTS / "prodigy.jsonl", {"span_label": "RATIONALE"}),
        ("brat", EXPORTS / "brat", {"span_label": "Evidence"}),
        ("cas", EXPORTS / "cas", {}),
    ]
    for recipe in list_recipes():
        (folder := work / f"recipe-{recipe}").mkdir()
        for file, text in read_recipe(recipe).sample.items():
            (folder / file).write_text(text, encoding="utf-8")
        sources.append((f"recipe {recipe}", folder / next(iter(read_recipe(recipe).sample)), {"recipe": recipe}))
    for name, source, more in sources:
        eraser_hub.import_corpus(source, "mine", out=work / name, **more)
        documents = {row["docid"]: row["document"] for row in read_lines(work / name / "mine" / "docs.jsonl")}
        rows = read_lines(work / name / "mine" / "train.jsonl")
        for row in rows:  # the texts themselves in place of the documents' names
            marks = [span for group in row["evidences"] for span in group]
            names = row.pop("docids", None) or sorted({span["docid"] for span in marks})
            row["texts"] = [documents[one] for one in names]
            for span in marks:
                span["docid"] = names.index(span["docid"])
        given = [row["classification"] for row in rows]
        labels = {label: given.count(label) for label in sorted({*given})}
        found[name] = {"rows": len(rows), "labels": labels, "sha256": digest(rows)}
    return found


RECORDS: dict[str, Callable[[Path], Values]] = {
    "modules": record_modules,
    "scores": record_scores,
    "datasets": record_datasets,
    "explanations": record_explanations,
    "imports": record_imports,
}


def keep(recorded: Any, found: Any) -> Any:
    """Return what is found of the keys that are recorded."""
    if not isinstance(recorded, dict) or not isinstance(found, dict):
        return found
    return {key: keep(value, found.get(key, "not there")) for key, value in recorded.items()}


def compute(name: str) -> tuple[Values, Values]:
    """Return a file of numbers, and the same computed anew."""
    recorded = json.loads((HERE / "numbers" / f"{name}.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return recorded, keep(recorded, plain(RECORDS[name](Path(folder))))


def main() -> None:
    """Write the named files of numbers; all by default."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    for name in sys.argv[1:] or RECORDS:
        text = json.dumps(compute(name)[1], indent=1, ensure_ascii=False)
        # a list of numbers stands on one line
        text = re.sub(r"\[[^\[\]{}]*\]", lambda found: re.sub(r"\s*\n\s*", " ", found[0]), text)
        (HERE / "numbers" / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
