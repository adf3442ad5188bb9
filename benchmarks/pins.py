"""Pins what a refactoring must not change: two checkouts compared by what their command lines say and write.

    python -m benchmarks.pins run --checkout DIR --python PYTHON --out FOLDER [--corpora DIR] [--only PATTERN ..]
    python -m benchmarks.pins measure --out FOLDER
    python -m benchmarks.pins compare OLD/pins.json NEW/pins.json [--diff 20] [--common] [--quiet]

`run` walks a fixed list of journeys: commands of `PYTHON -m eraser_hub`, and a few Python snippets that use public
names alone. PYTHON's `eraser_hub` must be that of DIR (an editable install of DIR in a virtual environment of its own
does). Most journeys run in a process forked from a warm one, which holds the libraries but nothing of the checkout;
those marked fresh, which start processes themselves, run in a new interpreter. `--only` takes shell patterns of names;
what these journeys read from others is run too. `--corpora` adds the journeys on real corpora, and on the reference
scorer's golden predictions where `--golden` (by default `../golden/eraser_metrics` beside the corpora) has them.

`measure` digests once more what a run has left (when the rules below have changed). FOLDER is emptied first, and keeps
everything:

    pins.json         journey -> exit status, digests of stdout and stderr, of every file, of every Parquet column
    timings.json      seconds per journey
    inputs            the samples, and broken copies of them
    journeys/NAME     what the journey wrote
    said/NAME.stdout  what it printed, and NAME.stderr

A Parquet file has the digest of its bytes, and for each column of the schema its type and the digest of its values.
Every other file that is UTF-8 is digested after normalisation, like stdout and stderr; the rest byte by byte.

Normalised, because it varies with the place, the hour and the release, and with nothing else:

- absolute paths of FOLDER, DIR, the corpora, the golden files, PYTHON's environment: <OUT>, <CHECKOUT>, <CORPORA>, ..
- rates and durations where a unit of time follows (`12.3 instances/s`, `(.., 0.1 s)`): <RATE>, <SECONDS>
- dates with a time of day: <TIME>
- `eraser_hub.__version__` behind the project's name (`eraser-hub:1.0.0`, `"eraser_hub": "1.0.0"`) and at the end of a
  signature (`|version:1.0.0`): <VERSION>; the first two numbers of a dataset's version (`1.0.1234567`): <RELEASE>

Journeys run with one thread, a fixed PYTHONHASHSEED (the caller's, if set), no network, no colours, 120 columns, UTC.
What may differ between two runs of one checkout is named in EXCLUDED, with the reason.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import difflib
import fnmatch
import gc
import hashlib
import importlib
import importlib.util
import itertools
import json
import os
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMIT_SECONDS = 300
TEXT_BATCH = 256
# imported once, before the journeys are forked off; those that are not installed are passed over
WARM = """typer rich.console rich.table numpy pyarrow.parquet orjson msgspec jinja2 yaml tqdm datasets evaluate torch
    transformers sklearn.linear_model scipy.stats skops.io lime matplotlib.pyplot"""


@dataclass(frozen=True)
class Varying:
    """What differs between two runs of one checkout: shell patterns of journeys and files, and why.

    With `part`, a regular expression, the text that it finds alone is passed over; otherwise the whole file is.
    """

    journeys: str
    files: str
    reason: str
    part: str = ""


EXCLUDED = (
    Varying("train-*", "model/model.skops", "skops names its parts by id(), an address in memory"),
    Varying("real-train", "model/model.skops", "skops names its parts by id(), an address in memory"),
    Varying("explain-[!n]*", "*.run.json", "digest of a skops file", r'(?<="digest": ")[0-9a-f]+(?=",\s+"task")'),
    Varying("real-explain", "*.run.json", "digest of a skops file", r'(?<="digest": ")[0-9a-f]+(?=",\s+"task")'),
)

ERASER = "journeys/build-eraser/hub/eraser"
BILINGUAL = "journeys/build-bilingual/hub/bilingual_perturbation"
HUMAN = "journeys/build-human/hub/human_rationales"
HUBS = {"eraser": ERASER, "bilingual": BILINGUAL, "human": HUMAN}
PREDICTIONS = "inputs/samples/predictions/eraser"
MOVIES = f"--dataset {ERASER} --config movies"
LINEAR = "journeys/train-movies/model"
MOVIES_RAW = "--data-dir inputs/samples/eraser/movies --split val"
OURS, BASELINE = f"{PREDICTIONS}/movies.val.jsonl", f"{PREDICTIONS}/movies.val.baseline.jsonl"
VERBS = "build check stats export score compare train explain report highlight board publish serve quickstart"
CONFIGS = "boolq cose cose_simplified esnli esnli_flat evidence_inference fever movies multirc"


@dataclass(frozen=True)
class Journey:
    """A command line, or a Python snippet; `@` at the head of a word is the folder that the journey may write to."""

    name: str
    command: str
    fresh: bool = False
    snippet: bool = False

    @property
    def folder(self) -> str:
        """The journey's own folder, relative to FOLDER."""
        return f"journeys/{self.name}"

    @property
    def words(self) -> list[str]:
        """The arguments of the command."""
        return [re.sub(r"(^|=)@", rf"\1{self.folder}", word) for word in shlex.split(self.command)]

    @property
    def needs(self) -> set[str]:
        """Names of the journeys that this one reads from."""
        return set(re.findall(r"journeys/([^/\s\"')]+)", self.command)) - {self.name}


# --- the journeys ----------------------------------------------------------------------------------------------------


def helps() -> Iterator[Journey]:
    """What the command line says of itself."""
    yield Journey("help", "--help")
    yield Journey("version", "--version")
    for verb in VERBS.split():
        yield Journey(f"help-{verb}", f"{verb} --help")


def builds() -> Iterator[Journey]:
    """Every dataset and the metrics; some configurations again, by more processes and one after the other."""
    samples = "inputs/samples"
    yield Journey("build-eraser", f"build eraser --source {samples}/eraser --out @/hub --no-progress")
    yield Journey(
        "build-bilingual", f"build bilingual_perturbation --source {samples}/bilingual_perturbation --out @/hub"
    )
    yield Journey("build-human", f"build human_rationales --source {samples}/human_rationales --out @/hub")
    yield Journey("build-metrics", "build metrics --out @/hub")
    yield Journey(
        "build-eraser-2-processes",
        f"build eraser --source {samples}/eraser --out @/hub --num-proc 2 --no-progress",
        fresh=True,
    )
    yield Journey(
        "build-eraser-backup",
        f"build eraser --source {samples}/eraser --config movies --include-backup-records --out @/hub --no-progress",
    )
    yield Journey(
        "build-eraser-two-configs",
        f"build eraser --source {samples}/eraser --config cose --config boolq --out @/hub --no-progress",
    )
    for kind, hub in HUBS.items():
        yield Journey(f"export-{kind}", f"export --dataset {hub} --out @/raw")
    yield Journey("export-eraser-one-config", f"export --dataset {ERASER} --config boolq --out @/raw")
    yield Journey("export-eraser-backup", "export --dataset journeys/build-eraser-backup/hub/eraser --out @/raw")
    yield Journey("publish-dry-run", "publish --namespace org --dry-run --dir journeys/quickstart/hub")
    yield Journey("quickstart", "quickstart --out @/hub", fresh=True)


def looks() -> Iterator[Journey]:
    """check and stats of built and raw folders, in every format."""
    for kind, hub in HUBS.items():
        for form in ("text", "json"):
            yield Journey(f"check-{kind}-{form}", f"check --dataset {hub} --format {form}")
            yield Journey(f"check-{kind}-leakage-{form}", f"check --dataset {hub} --leakage --format {form}")
            yield Journey(f"check-{kind}-viewer-{form}", f"check --dataset {hub} --viewer --format {form}")
        for form in ("text", "json", "markdown"):
            yield Journey(f"stats-{kind}-{form}", f"stats --dataset {hub} --format {form}")
    for name in ("eraser", "bilingual_perturbation", "human_rationales"):
        yield Journey(f"check-raw-{name}", f"check {name} --dataset inputs/samples/{name} --format json")
        yield Journey(f"stats-raw-{name}", f"stats {name} --dataset inputs/samples/{name} --format json")
    yield Journey("check-eraser-some", f"check --dataset {ERASER} --config movies --config fever --leakage --viewer")


SCORE_VARIANTS = {
    "plain": "",
    "ious": "--iou-thresholds 0.1 --iou-thresholds 0.5 --iou-thresholds 0.9",
    "by": "--by classification",
    "per-instance": "--per-instance",
    "intervals": "--confidence-level 0.95 --n-resamples 200 --seed 3 --ci-method bca",
    "bca": "--confidence-level 0.9 --n-resamples 100 --ci-method bca --by classification",
    "chance": "--random-baseline 3 --seed 2",
    "strict": "--strict --iou-thresholds 0.5",
    "sentences": "--sentence-threshold 0.3 --auprc-policy skip",
}


def scores() -> Iterator[Journey]:
    """score for every file of sample predictions, in every variant; compare."""
    for config in CONFIGS.split():
        results = f"--results {PREDICTIONS}/{config}.val.jsonl --score-file @/scores.json"
        folder = f"inputs/samples/eraser/{config}"
        raw = f"--data-dir {folder} --split val {results}"
        for variant, options in SCORE_VARIANTS.items():
            yield Journey(f"score-{config}-{variant}", f"score {raw} {options}")
        yield Journey(
            f"score-{config}-dataset", f"score --dataset {ERASER} --config {config} --split validation {results}"
        )
        annotated = f"score --data-dir {folder} --annotations {folder}/val.jsonl {results}"
        yield Journey(f"score-{config}-annotations", annotated)
    raw = f"score {MOVIES_RAW} --score-file @/scores.json"
    everything = "--per-instance --by classification --random-baseline 2"
    everything += " --confidence-level 0.95 --n-resamples 100 --ci-method bca"
    yield Journey("score-movies-2-processes", f"{raw} --results {OURS} --num-proc 2 {everything}", fresh=True)
    yield Journey("score-movies-baseline", f"{raw} --results {BASELINE} {everything}")
    yield Journey("score-movies-aopc", f"{raw} --results {OURS} --aopc-thresholds 0.05 --aopc-thresholds 0.5")
    for policy in ("zero", "one", "reference"):
        words = f"--results {PREDICTIONS}/multirc.val.jsonl --auprc-policy {policy} --score-file @/scores.json"
        words = f"score --data-dir inputs/samples/eraser/multirc --split val {words}"
        yield Journey(f"score-multirc-auprc-{policy}", words)
    pair = f"--results {OURS} --results {BASELINE} --n-resamples 200"
    yield Journey("compare-text", f"compare {MOVIES_RAW} {pair} --seed 5")
    yield Journey(
        "compare-json", f"compare {MOVIES_RAW} {pair} --format json --iou-thresholds 0.1 --iou-thresholds 0.5"
    )
    three = "--results journeys/explain-movies-random-draws/p.jsonl --confidence-level 0.9"
    yield Journey("compare-three-dataset", f"compare {MOVIES} --split validation {pair} {three} --format json")


EXPLAIN_LINEAR = {
    "occlusion": "--method occlusion --tokens-to-flip --out @/p.jsonl",
    "occlusion-mask": "--method occlusion --erase mask --out @/p.jsonl",
    "occlusion-pad": "--method occlusion --erase pad --kd 0.3 --bins 10,50 --out @/p.jsonl",
    "coefficients": "--method coefficients --out @/p.parquet",
    "lime": "--method lime --lime-samples 60 --out @/p.jsonl",
    "lime-uniform": "--method lime --lime-samples 60 --lime-tokens 0 --erase mask --seed 4 --out @/p.parquet",
    "random": "--method random --draws 2 --out @/p.jsonl",
    "random-draws": "--method occlusion --random-draws 5 --out @/p.jsonl",
    "random-spans": "--method coefficients --random-draws 5 --random-kind spans --out @/p.parquet",
    "fidelity": "--method occlusion --fidelity-trials 2 --out @/p.jsonl",
    "fidelity-rates": "--method random --fidelity-trials 2 --fidelity-rates 0,50,100 --bins '' --out @/p.parquet",
}
EXPLAIN_NETWORK = {
    "attention": "--method attention --out @/p.jsonl",
    "gradient": "--method gradient --erase mask --tokens-to-flip --out @/p.parquet",
    "input-x-gradient": "--method input-x-gradient --erase pad --window 16 --out @/p.jsonl",
    "integrated-gradients": "--method integrated-gradients --steps 8 --out @/p.jsonl",
    "lime": "--method lime --lime-samples 30 --random-draws 2 --limit 3 --out @/p.jsonl",
    "occlusion": "--method occlusion --query --fidelity-trials 1 --limit 3 --out @/p.parquet",
}


def models() -> Iterator[Journey]:
    """train: baselines on the three datasets, a tiny transformer; a model in Python is not pinned here."""
    human, chinese = f"--dataset {HUMAN} --config sst", f"--dataset {BILINGUAL} --config senti_ch --split test"
    linear = "--model logistic-regression --out @/model"
    yield Journey("train-movies", f"train {MOVIES} --regimes {linear}")
    yield Journey("train-movies-rationale", f"train {MOVIES} --train-on rationale --seed 2 {linear}")
    yield Journey("train-movies-forest", f"train {MOVIES} --model random-forest --limit 20 --out @/model")
    yield Journey("train-cose", f"train --dataset {ERASER} --config cose --query {linear}")
    yield Journey("train-esnli", f"train --dataset {ERASER} --config esnli {linear}")
    yield Journey("train-sst", f"train {human} {linear}")
    yield Journey("train-senti_ch", f"train {chinese} --features characters {linear}")
    yield Journey("train-similarity_en", f"train --dataset {BILINGUAL} --config similarity_en --split test {linear}")
    yield Journey("network", TINY_NETWORK, snippet=True)
    tuned = "--model journeys/network/model --max-steps 2 --batch-size 4 --eval-split '' --out @/model"
    yield Journey("train-network", f"train {MOVIES} {tuned} --window 32")


def explanations() -> Iterator[Journey]:
    """explain: every method, erasure and option on the datasets of all three kinds, and what score makes of it."""
    targets = {
        "movies": f"{MOVIES} --split val --model journeys/train-movies/model --limit 6",
        "sst": f"--dataset {HUMAN} --config sst --split test --model journeys/train-sst/model",
        "senti_ch": f"--dataset {BILINGUAL} --config senti_ch --model journeys/train-senti_ch/model --limit 8",
        "esnli": f"--dataset {ERASER} --config esnli --split val --model journeys/train-esnli/model",
        "similarity_en": f"--dataset {BILINGUAL} --config similarity_en --model journeys/train-similarity_en/model",
    }
    for (config, words), (variant, options) in itertools.product(targets.items(), EXPLAIN_LINEAR.items()):
        if config == "similarity_en" and re.search("draws |flip|trials", options.replace("--draws", "")):
            continue  # the results of pairs have no place for it: refused, as senti_ch shows
        small = " --lime-samples 20" if config == "movies" and "lime" in variant else ""
        whole = words.replace(" --limit 6", "") if variant == "random-draws" else words
        yield Journey(f"explain-{config}-{variant}", f"explain {whole} {options}{small} --quiet")
    for variant, options in EXPLAIN_NETWORK.items():
        words = f"{MOVIES} --split val --model journeys/network/model --limit 4"
        yield Journey(f"explain-network-{variant}", f"explain {words} {options} --quiet")
    chinese = (
        f"--dataset {BILINGUAL} --config senti_ch --model journeys/network/model --limit 4 --labels negative,positive"
    )
    yield Journey("explain-network-senti_ch", f"explain {chinese} --method gradient --out @/p.jsonl --quiet")
    for model, config in (("movies-forest", "movies"), ("movies-rationale", "movies"), ("cose", "cose")):
        words = f"--dataset {ERASER} --config {config} --split val --model journeys/train-{model}/model --limit 3"
        yield Journey(f"explain-model-{model}", f"explain {words} --bins 10,50 --out @/p.jsonl --quiet")
    given = f"{MOVIES} --split val --model journeys/train-movies/model --scores {OURS}"
    yield Journey("explain-movies-given", f"explain {given} --kd 0.2 --chunk 5 --out @/p.jsonl --quiet")
    for made in ("movies-given/p.jsonl", "esnli-occlusion/p.jsonl", "esnli-coefficients/p.parquet"):
        results = f"--results journeys/explain-{made} --score-file @/scores.json"
        words = f"--dataset {ERASER} --config {made.partition('-')[0]} --split val {results}"
        yield Journey(f"score-explained-{made.partition('/')[0]}", f"score {words}")
    results = "--results journeys/explain-movies-random-draws/p.jsonl --score-file @/scores.json"
    yield Journey("score-random-draws", f"score {MOVIES_RAW} {results} --confidence-level 0.95 --n-resamples 100")


def pages() -> Iterator[Journey]:
    """highlight, report and board."""
    yield Journey("highlight-plain", f"highlight {MOVIES}")
    yield Journey("highlight-predicted", f"highlight {MOVIES} --predictions {OURS} --id posR_080.txt --whole")
    yield Journey("highlight-html", f"highlight {MOVIES} --predictions {OURS} --html @/one.html")
    yield Journey("highlight-esnli", f"highlight --dataset {ERASER} --config esnli --split val --whole")
    answers = "inputs/samples/predictions/bilingual_perturbation/senti_ch.jsonl"
    chinese = f"--dataset {BILINGUAL} --config senti_ch --split test --predictions {answers}"
    yield Journey("highlight-pair", f"highlight {chinese}")
    yield Journey("highlight-pair-html", f"highlight {chinese} --html @/pair.html")
    yield Journey("highlight-sst", f"highlight --dataset {HUMAN} --config sst --split test")
    yield Journey("highlight-wikiattack", f"highlight --dataset {HUMAN} --config wikiattack --html @/one.html")
    pair = f"--predictions ours={OURS} --predictions theirs={BASELINE} --resamples 100"
    yield Journey("report-movies", f"report {MOVIES} {pair} --title Two --out @/report")
    drawn = "journeys/explain-movies-random-draws/p.jsonl"
    yield Journey(
        "report-movies-figures", f"report {MOVIES} {pair} --baseline {drawn} --figures @/figures --out @/report"
    )
    for config in ("fever", "esnli", "cose", "boolq"):
        words = f"--dataset {ERASER} --config {config} --split val --predictions {PREDICTIONS}/{config}.val.jsonl"
        yield Journey(f"report-{config}", f"report {words} --resamples 50 --out @/report")
    yield Journey("report-senti_ch", f"report {chinese.replace('--predictions ', '--predictions a=')} --out @/report")
    explained = "fidelity=journeys/explain-sst-fidelity/p.jsonl"
    yield Journey(
        "report-sst", f"report --dataset {HUMAN} --config sst --split test --predictions {explained} --out @/report"
    )
    ours = "journeys/report-movies/report/ours.scores.json"
    yield Journey("board-published", "board --out @/board")
    scores = f"--scores {ours} --scores LIME@movies=journeys/score-movies-plain/scores.json"
    yield Journey("board-scores", f"board {scores} --out @/board --space @/space --title Ours")
    submitted = f"--submission ours={OURS} {MOVIES} --split validation"
    yield Journey("board-submission", f"board {submitted} --no-published --out @/board")


PREDICTION_FAULTS: dict[str, tuple[tuple[str | int, ...], Any]] = {
    "unknown-label": (("classification",), "MIXED"),
    "label-number": (("classification",), 3),
    "field-misspelt": (("comprehensivness_classification_scores",), {"NEG": 0.5, "POS": 0.5}),
    "field-extra": (("remark",), "none"),
    "document-unknown": (("rationales", 0, "docid"), "nowhere.txt"),
    "span-reversed": (("rationales", 0, "hard_rationale_predictions"), [{"start_token": 9, "end_token": 4}]),
    "span-past-end": (("rationales", 0, "hard_rationale_predictions"), [{"start_token": 9, "end_token": 99999}]),
    "span-float": (("rationales", 0, "hard_rationale_predictions"), [{"start_token": 1.5, "end_token": 4}]),
    "spans-overlap": (
        ("rationales", 0, "hard_rationale_predictions"),
        [{"start_token": 1, "end_token": 5}, {"start_token": 4, "end_token": 9}],
    ),
    "soft-short": (("rationales", 0, "soft_rationale_predictions"), [0.5, 0.25]),
    "soft-null": (("rationales", 0, "soft_rationale_predictions", 0), None),
    "probability-negative": (("classification_scores",), {"NEG": -0.5, "POS": 1.5}),
    "probability-sum": (("classification_scores",), {"NEG": 0.5, "POS": 0.6}),
    "probability-label": (("sufficiency_classification_scores",), {"NEG": 0.5, "OTHER": 0.5}),
    "id-unknown": (("annotation_id",), "nobody.txt"),
    "optional-missing": (("classification_scores",), None),
}


def with_first_key_twice(line: bytes) -> bytes:
    """The JSON line with its first key once more, of another value, in front."""
    return b"{" + line[1 : line.index(b":")] + b': "a", ' + line[1:]


LINE_FAULTS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "cut": lambda lines: [lines[0][:100]],
    "no-object": lambda lines: [*lines[:2], b"[1, 2]"],
    "blank-line": lambda lines: [lines[0], b"", *lines[1:]],
    "key-twice": lambda lines: [with_first_key_twice(lines[0]), *lines[1:]],
    "not-utf-8": lambda lines: [lines[0], lines[1].replace(b"negR", b"neg\xff", 1), *lines[2:]],
    "deep": lambda lines: [b'{"annotation_id": ' + b"[" * 99 + b"]" * 99 + b"}", *lines],
    "record-missing": lambda lines: lines[:-2],
    "record-twice": lambda lines: [*lines, lines[3]],
    "empty": lambda lines: [],
}
CORPUS_FAULTS: dict[str, tuple[tuple[str | int, ...], Any]] = {
    "unknown-label": (("classification",), "MIXED"),
    "id-number": (("annotation_id",), {"a": 1}),
    "span-reversed": (("evidences", 0, 0, "end_token"), 0),
    "span-past-end": (("evidences", 0, 0, "end_token"), 99999),
    "span-text": (("evidences", 0, 0, "text"), "other words"),
    "document-unknown": (("evidences", 0, 0, "docid"), "nowhere.txt"),
    "evidences-object": (("evidences",), {"docid": "a"}),
}


def errors() -> Iterator[Journey]:
    """Bad data (exit status 1) and bad usage (2): what stderr says of it."""
    for name in (*PREDICTION_FAULTS, *LINE_FAULTS):
        results = f"--results inputs/broken/predictions/{name}.jsonl --score-file @/scores.json"
        yield Journey(f"error-score-{name}", f"score {MOVIES_RAW} {results}")
    for name in (*CORPUS_FAULTS, *LINE_FAULTS):
        source = f"inputs/broken/corpora/{name}"
        yield Journey(
            f"error-build-{name}", f"build eraser --source {source} --config movies --out @/hub --no-progress"
        )
        yield Journey(f"error-check-{name}", f"check eraser --dataset {source} --config movies")
    for name in ("cut", "key-twice", "record-twice"):
        source = f"inputs/broken/pairs/{name}"
        yield Journey(f"error-pairs-{name}", f"build bilingual_perturbation --source {source} --out @/hub")
    for name, command in USAGE_FAULTS.items():
        yield Journey(f"error-{name}", command)


USAGE_FAULTS = {
    "no-results": f"score {MOVIES_RAW} --results nowhere.jsonl",
    "wrong-split": f"score --data-dir inputs/samples/eraser/movies --split dev --results {OURS}",
    "no-data-dir": f"score --data-dir nowhere --split val --results {OURS}",
    "no-corpus": f"score --results {OURS}",
    "strict-alone": f"score {MOVIES_RAW} --strict --results {OURS}",
    "by-unknown": f"score {MOVIES_RAW} --by colour --results {OURS}",
    "level": f"score {MOVIES_RAW} --confidence-level 1.5 --results {OURS}",
    "threshold": f"score {MOVIES_RAW} --iou-thresholds 1.5 --results {OURS}",
    "other-corpus": f"score {MOVIES_RAW} --results {PREDICTIONS}/fever.val.jsonl",
    "misspelt-option": f"score {MOVIES_RAW} --resluts {OURS}",
    "misspelt-verb": "biuld eraser",
    "unknown-dataset": "build eraserr --source inputs/samples/eraser",
    "unknown-config": "build eraser --source inputs/samples/eraser --config movie --out @/hub",
    "no-source": "build eraser --source nowhere --out @/hub",
    "check-nothing": "check",
    "check-format": f"check --dataset {ERASER} --format yaml",
    "export-folder": "export --dataset inputs/samples/eraser --out @/raw",
    "compare-one": f"compare {MOVIES_RAW} --results {OURS}",
    "explain-method": f"explain {MOVIES} --model journeys/train-movies/model --method lyme --out @/p.jsonl",
    "explain-suffix": f"explain {MOVIES} --model journeys/train-movies/model --out @/p.csv",
    "explain-split": f"explain {MOVIES} --model journeys/train-movies/model --split vall --out @/p.jsonl --quiet",
    "explain-model": f"explain {MOVIES} --model nowhere --out @/p.jsonl --quiet",
    "explain-attention": f"explain {MOVIES} --model {LINEAR} --method attention --out @/p.jsonl --quiet",
    "train-model": f"train {MOVIES} --model logistic --out @/model",
    "highlight-id": f"highlight {MOVIES} --id nobody",
    "report-predictions": f"report {MOVIES} --predictions nowhere.jsonl --out @/report",
    "report-split": f"report {MOVIES} --split dev --predictions {OURS} --out @/report",
    "board-unsigned": "board --scores inputs/samples/eraser/movies/val.jsonl --out @/board",
    "publish-namespace": "publish --namespace a/b --dry-run",
    "publish-nothing": "publish --namespace org --dry-run --dir nowhere",
}

TINY_NETWORK = """
import glob, json, torch, transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
texts = [open(name, encoding="utf-8").read() for name in sorted(glob.glob("inputs/samples/eraser/movies/docs/*"))]
pairs = open("inputs/samples/bilingual_perturbation/senti_ch", encoding="utf-8")
texts += [json.loads(line)["context"] for line in pairs]
words = sorted({word for text in texts for word in text.split()} | {sign for text in texts for sign in text})
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
made = Tokenizer(models.WordPiece({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
made.post_processor = processors.TemplateProcessing(
    single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
tokenizer = transformers.PreTrainedTokenizerFast(
    tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
    mask_token="[MASK]", model_max_length=32, model_input_names=["input_ids", "token_type_ids", "attention_mask"])
torch.manual_seed(0)
config = transformers.BertConfig(
    vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
    max_position_embeddings=32, initializer_range=0.5, id2label={0: "NEG", 1: "POS"}, label2id={"NEG": 0, "POS": 1})
transformers.BertForSequenceClassification(config).save_pretrained("journeys/network/model")
tokenizer.save_pretrained("journeys/network/model")
"""

SNIPPETS = {
    "python-names": """
import eraser_hub
for name in dir(eraser_hub):
    if name != "__version__":
        value = getattr(eraser_hub, name)
        print(name, type(value).__name__, value.__doc__)
""",
    "python-load": """
import hashlib, os
from datasets import get_dataset_config_names, load_dataset
for hub, name in (("journeys/build-eraser/hub", "eraser"), ("journeys/build-bilingual/hub", "bilingual_perturbation"),
                  ("journeys/build-human/hub", "human_rationales")):
    os.chdir(hub)
    for config in sorted(get_dataset_config_names(name)):
        for split, rows in load_dataset(name, config).items():
            print(name, config, split, rows.num_rows)
            streamed = list(load_dataset(name, config, split=split, streaming=True))
            assert streamed == list(rows)
            for column in rows.column_names:
                digest = hashlib.sha256(repr(list(rows[column])).encode()).hexdigest()
                print("   ", column, rows.features[column], digest)
    os.chdir("../../..")
""",
    "python-builders": """
import eraser_hub
for kind, folder, config in (("Eraser", "eraser", "movies"),
                             ("BilingualPerturbation", "bilingual_perturbation", "senti_ch"),
                             ("HumanRationales", "human_rationales", "sst")):
    builder = getattr(eraser_hub, kind)(config, data_dir=f"inputs/samples/{folder}", cache_dir=f"cache/{kind}")
    builder.download_and_prepare()
    for split, rows in builder.as_dataset().items():
        print(kind, split, rows.num_rows, rows.features, rows[0], rows[-1])
        assert list(builder.as_streaming_dataset(split=split)) == list(rows)
    print(builder.info.description, builder.info.citation, builder.info.license, builder.info.homepage)
""",
    "python-modules": """
import json, evaluate
from datasets import load_dataset
movies = load_dataset("journeys/build-eraser/hub/eraser", "movies", split="validation")
chinese = load_dataset("journeys/build-bilingual/hub/bilingual_perturbation", "senti_ch", split="test")
lines = lambda path: [json.loads(line) for line in open("inputs/samples/predictions/" + path, encoding="utf-8")]
ours, pairs = lines("eraser/movies.val.jsonl"), lines("bilingual_perturbation/senti_ch.jsonl")
curve = [{"annotation_id": "a", "occlusion_rate": rate, "trial": 0, "p_full": 0.9, "p_empty": 0.4,
          "p_rationale": 0.9 - 0.5 * rate**0.5, "p_complement": 0.4 + 0.5 * rate**2}
         for rate in (0, 0.25, 0.5, 0.75, 1)]
people = [{"annotation_id": "a", "annotators": [[0, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 0, 0]], "language": "en"},
          {"annotation_id": "b", "annotators": [[1, 0, 0, 1], [1, 0, 0, 0], [1, 0, 1, 0]], "language": "zh"}]
drawn = {"confidence_level": 0.95, "n_resamples": 100, "seed": 1}
for name, given in (
    ("eraser_agreement", {"predictions": ours, "references": movies, "by": "classification", **drawn}),
    ("eraser_faithfulness", {"predictions": ours, "references": movies, "by": "classification", **drawn}),
    ("perturbation_map", {"predictions": pairs, "references": chinese, **drawn}),
    ("rationale_set_agreement", {"predictions": pairs, "references": chinese, "by": "sample_type", **drawn}),
    ("normalized_fidelity", {"predictions": curve}),
    ("annotator_agreement", {"references": people, "by": "language"}),
):
    module = evaluate.load("journeys/build-metrics/hub/" + name, keep_in_memory=True)
    print(name, json.dumps(module.compute(**given, per_instance=True), indent=1, default=str))
    print(module.features, module.description, module.citation, module.inputs_description)
""",
    "python-explain": """
import numpy as np
from eraser_hub.attribution import explain_texts
class Lexicon:
    label_names = ("NEG", "POS")
    weights = {"warm": 1.0, "funny": 2.0, "dull": -2.0, "long": -0.5}
    def predict_proba(self, token_lists):
        sums = [sum(self.weights.get(token, 0.0) for token in tokens) for tokens in token_lists]
        positive = 1 / (1 + np.exp(-np.array(sums, dtype=float)))
        return np.stack([1 - positive, positive], axis=1)
texts = ["a warm and funny film , though too long", "dull", "long and dull , not funny"]
for method in ("occlusion", "lime", "random"):
    print(method, list(explain_texts(Lexicon(), texts, method=method, kd=0.2, seed=3)))
""",
    "python-highlight": """
import json, eraser_hub
from datasets import load_dataset
rows = load_dataset("journeys/build-eraser/hub/eraser", "movies", split="validation")
instance = json.loads(open("inputs/samples/predictions/eraser/movies.val.jsonl", encoding="utf-8").readline())
print(eraser_hub.highlight(rows[0], instance, label_names=rows.features["classification"].names)._repr_html_())
""",
}


def snippets() -> Iterator[Journey]:
    """Public names in Python."""
    for name, code in SNIPPETS.items():
        yield Journey(name, code, snippet=True)


REAL_CONFIGS = ("boolq", "cose", "evidence_inference", "fever", "movies", "multirc")


def real_corpora() -> Iterator[Journey]:
    """Real corpora: build, export, check, stats, a model."""
    hubs = {"eraser": "eraser", "bilingual": "bilingual_perturbation", "human": "human_rationales"}
    for kind, name in hubs.items():
        source = "corpora/luge" if kind == "bilingual" else "corpora"
        hub = f"journeys/real-build-{kind}/hub/{name}"
        yield Journey(f"real-build-{kind}", f"build {name} --source {source} --out @/hub --no-progress")
        yield Journey(f"real-export-{kind}", f"export --dataset {hub} --out @/raw")
        yield Journey(f"real-check-{kind}", f"check --dataset {hub} --leakage --viewer --format json")
        yield Journey(f"real-stats-{kind}", f"stats --dataset {hub} --format markdown")
    movies = "--dataset journeys/real-build-eraser/hub/eraser --config movies"
    yield Journey(
        "real-train", f"train {movies} --split validation --eval-split '' --model logistic-regression --out @/model"
    )
    words = f"{movies} --split val --model journeys/real-train/model --limit 20"
    yield Journey(
        "real-explain",
        f"explain {words} --method occlusion --tokens-to-flip --random-draws 3 --out @/p.parquet --quiet",
    )
    yield Journey("real-highlight", f"highlight {movies} --whole")


def golden() -> Iterator[Journey]:
    """The reference scorer's golden predictions."""
    for config in sorted({"cose", "evidence_inference", "fever", "movies", "multirc"}):
        files = f"--annotations golden/{config}/annotations.jsonl --results golden/{config}/predictions.jsonl"
        raw = f"score --data-dir corpora/{config} --split val {files} --score-file @/scores.json"
        for variant, options in SCORE_VARIANTS.items():
            yield Journey(f"golden-{config}-{variant}", f"{raw} {options}")
    yield Journey("golden-multirc-2-processes", f"{raw} --num-proc 2 {SCORE_VARIANTS['ious']}", fresh=True)


def all_journeys(corpora: bool, golden_too: bool) -> list[Journey]:
    """Every journey, those first that others read from."""
    parts = [helps, builds, looks, models, explanations, scores, pages, errors, snippets]
    parts += [real_corpora] if corpora else []
    parts += [golden] if golden_too else []
    found = [journey for part in parts for journey in part()]
    return ordered(found)


def ordered(journeys: Sequence[Journey]) -> list[Journey]:
    """The journeys in an order in which what is needed comes first.

    Raises:
        ValueError: a name twice, or one that is needed and not there.
    """
    by_name = {journey.name: journey for journey in journeys}
    if len(by_name) != len(journeys):
        raise ValueError("expected every name once")
    done: dict[str, Journey] = {}

    def visit(journey: Journey) -> None:
        if journey.name not in done:
            for name in sorted(journey.needs):
                if name not in by_name:
                    raise ValueError(f"{journey.name} needs {name}, which is no journey")
                visit(by_name[name])
            done[journey.name] = journey

    for journey in journeys:
        visit(journey)
    return list(done.values())


def chosen(journeys: Sequence[Journey], patterns: Sequence[str]) -> list[Journey]:
    """The journeys that a pattern names, and all that they need; all without a pattern."""
    by_name = {journey.name: journey for journey in journeys}
    wanted = {name for name in by_name if not patterns or any(fnmatch.fnmatch(name, pattern) for pattern in patterns)}
    todo = list(wanted)
    while todo:
        new = by_name[todo.pop()].needs - wanted
        wanted |= new
        todo += new
    return [journey for journey in journeys if journey.name in wanted]


# --- what the journeys read ------------------------------------------------------------------------------------------


def with_fault(line: bytes, path: Sequence[str | int], value: Any) -> bytes:
    """The JSON line with one value in place of another."""
    row = json.loads(line)
    place = row
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps(row, ensure_ascii=False).encode()


def broken_lines(
    lines: list[bytes], faults: dict[str, tuple[tuple[str | int, ...], Any]]
) -> Iterator[tuple[str, list[bytes]]]:
    """(name of the fault, the lines with it); a value is wrong in the second line."""
    for name, (path, value) in faults.items():
        yield name, [lines[0], with_fault(lines[1], path, value), *lines[2:]]
    for name, change in LINE_FAULTS.items():
        yield name, change(lines)


def make_inputs(out: Path, samples: Path) -> None:
    """FOLDER/inputs: the samples, and the broken predictions, corpora and pairs made of them."""
    copied, broken = out / "inputs/samples", out / "inputs/broken"
    shutil.copytree(samples, copied, ignore=shutil.ignore_patterns("__pycache__", "*.py"))
    predictions = (copied / "predictions/eraser/movies.val.jsonl").read_bytes().splitlines()
    (broken / "predictions").mkdir(parents=True)
    for name, lines in broken_lines(predictions, PREDICTION_FAULTS):
        (broken / "predictions" / f"{name}.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    annotations = (copied / "eraser/movies/val.jsonl").read_bytes().splitlines()
    for name, lines in broken_lines(annotations, CORPUS_FAULTS):
        folder = broken / "corpora" / name / "movies"
        shutil.copytree(copied / "eraser/movies", folder)
        (folder / "val.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    for name in ("cut", "key-twice", "record-twice"):
        folder = broken / "pairs" / name
        shutil.copytree(copied / "bilingual_perturbation", folder)
        lines = (folder / "senti_ch").read_bytes().splitlines()
        (folder / "senti_ch").write_bytes(b"".join(line + b"\n" for line in LINE_FAULTS[name](lines)))


# --- running ---------------------------------------------------------------------------------------------------------


SWITCHES = """HF_HUB_OFFLINE HF_DATASETS_DISABLE_PROGRESS_BARS HF_HUB_DISABLE_PROGRESS_BARS PYTHONSAFEPATH NO_COLOR
    PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS MKL_NUM_THREADS OPENBLAS_NUM_THREADS"""
SETTINGS = "TOKENIZERS_PARALLELISM=false COLUMNS=120 TERM=dumb TZ=UTC LC_ALL=C.UTF-8"
PLACES = {"TMPDIR": "tmp", "HF_HOME": "cache/hf", "MPLCONFIGDIR": "cache/mpl"}


def environment(out: Path) -> dict[str, str]:
    """The environment of every journey: nothing of the caller's but where programs are."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH") if name in os.environ}
    return {
        **kept,
        **dict.fromkeys(SWITCHES.split(), "1"),
        **dict(setting.split("=") for setting in SETTINGS.split()),
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
        **{name: str(out / place) for name, place in PLACES.items()},
    }


def run(asked: argparse.Namespace) -> int:
    """The `run` verb."""
    out, checkout = asked.out.resolve(), asked.checkout.resolve()
    if out.is_relative_to(checkout) or checkout.is_relative_to(out):
        print("expected --out to be outside the checkout", file=sys.stderr)
        return 2
    if out.exists() and any(out.iterdir()) and not (out / "inputs").is_dir():
        print(f"{out} holds something else than pins: not emptied", file=sys.stderr)
        return 2
    shutil.rmtree(out, ignore_errors=True)
    for folder in ("tmp", "said", "journeys", "cache"):
        (out / folder).mkdir(parents=True)
    make_inputs(out, asked.samples or checkout / "samples")
    golden_folder = asked.golden or (
        asked.corpora.resolve().parent / "golden/eraser_metrics" if asked.corpora else None
    )
    places = {"<OUT>": out, "<CHECKOUT>": checkout, "<PYTHON>": asked.python.absolute().parent.parent}
    for name, source in (("corpora", asked.corpora), ("golden", golden_folder)):
        if source is not None and source.is_dir():
            (out / name).symlink_to(source.resolve())
            places[f"<{name.upper()}>"] = source.resolve()
    journeys = chosen(all_journeys((out / "corpora").exists(), (out / "golden").exists()), asked.only)
    if not journeys:
        print("no journey has such a name", file=sys.stderr)
        return 2
    (out / "places.json").write_text(json.dumps({sign: str(place) for sign, place in places.items()}), "utf-8")
    (out / "plan.json").write_text(json.dumps([journey.__dict__ for journey in journeys], indent=1), "utf-8")
    command = [str(asked.python.absolute()), str(Path(__file__).resolve()), "walk", "--checkout", str(checkout)]
    if status := subprocess.run([*command, "--out", str(out)], cwd=out, env=environment(out), check=False).returncode:
        return status
    return measure(argparse.Namespace(out=out))


def walk(asked: argparse.Namespace) -> int:
    """The checkout's own interpreter: warm up, then fork off journey after journey."""
    spec = importlib.util.find_spec("eraser_hub")
    if spec is None or spec.origin is None or not Path(spec.origin).resolve().is_relative_to(asked.checkout):
        print(f"expected eraser_hub of {asked.checkout}, found {spec and spec.origin}", file=sys.stderr)
        return 2
    journeys = [Journey(**values) for values in json.loads(Path("plan.json").read_text("utf-8"))]
    for name in WARM.split():
        try:
            importlib.import_module(name)
        except ImportError:
            print(f"not installed: {name}", file=sys.stderr)
    # from here on: the checkout is compiled once, and not into its own folders
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(asked.out / "cache/compiled")
    gc.freeze()  # the forks leave the libraries' pages alone
    codes, seconds = {}, {}
    for number, journey in enumerate(journeys, 1):
        Path(journey.folder).mkdir(parents=True)
        started = time.perf_counter()
        codes[journey.name] = in_new_process(journey) if journey.fresh else in_fork(journey, asked.checkout)
        seconds[journey.name] = round(time.perf_counter() - started, 2)
        print(f"{number}/{len(journeys)} {journey.name}: {codes[journey.name]}, {seconds[journey.name]} s", flush=True)
    Path("codes.json").write_text(json.dumps(codes), "utf-8")
    slowest_first = dict(sorted(seconds.items(), key=lambda pair: -pair[1]))
    Path("timings.json").write_text(json.dumps({"total": sum(seconds.values()), **slowest_first}, indent=1), "utf-8")
    return 0


def in_new_process(journey: Journey) -> int:
    """Exit status of `python -m eraser_hub ..`."""
    command = [sys.executable, "-m", "eraser_hub", *journey.words]
    with open(f"said/{journey.name}.stdout", "wb") as out, open(f"said/{journey.name}.stderr", "wb") as err:
        try:
            return subprocess.run(command, stdout=out, stderr=err, timeout=LIMIT_SECONDS, check=False).returncode
        except subprocess.TimeoutExpired:
            return -signal.SIGALRM


def in_fork(journey: Journey, checkout: Path) -> int:
    """Exit status of the journey in a fork of this process; negative: the signal that ended it."""
    process = os.fork()
    if process == 0:
        status = 70
        try:
            signal.alarm(LIMIT_SECONDS)
            status = in_child(journey, checkout)
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def in_child(journey: Journey, checkout: Path) -> int:
    """Run the journey here, its output into files, as `python -m eraser_hub` would."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        getattr(sys, name).flush()
        file = os.open(f"said/{journey.name}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))
    status = 0
    try:
        if journey.snippet:
            exec(compile(journey.command, journey.name, "exec"), {"__name__": "__main__"})
        else:
            sys.argv = ["eraser-hub", *journey.words]
            runpy.run_module("eraser_hub", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    for name, module in sorted(sys.modules.items()):
        place = getattr(module, "__file__", None)
        if name.split(".")[0] == "eraser_hub" and place and not Path(place).resolve().is_relative_to(checkout):
            print(f"pins: {name} is not of the checkout but {place}", file=sys.stderr)
            status = 71
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


# --- measuring -------------------------------------------------------------------------------------------------------


def checkout_version(checkout: Path) -> str:
    """The checkout's `eraser_hub.__version__`, read without importing it."""
    found = re.search(r'__version__ = "([^"]+)"', (checkout / "eraser_hub/version.py").read_text("utf-8"))
    if found is None:
        raise ValueError(f"expected __version__ in {checkout / 'eraser_hub/version.py'}")
    return found[1]


def normalise(text: str, places: dict[str, Path], version: str) -> str:
    """The text without what varies with place, hour and release."""
    for sign, place in sorted(places.items(), key=lambda pair: -len(str(pair[1]))):
        text = text.replace(str(place), sign)
    text = re.sub(r"\d[\d,.]*(?= [a-z ]+/s\b)", "<RATE>", text)
    text = re.sub(r"\d[\d,.]*(?= s\))", "<SECONDS>", text)
    text = re.sub(r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?", "<TIME>", text)
    named = rf"(eraser[-_]hub\W{{1,6}}|\|version:|VERSION = \"){re.escape(version)}(?![\d.])"
    text = re.sub(named, r"\1<VERSION>", text)
    # a dataset's version: the package's first two numbers, and one out of the contents
    return re.sub(rf"(?<![\d.]){re.escape(version.rpartition('.')[0])}\.(?=\d{{3,}}\b)", "<RELEASE>.", text)


def file_digest(path: Path, journey: str, name: str, places: dict[str, Path], version: str) -> str:
    """SHA-256 of the normalised text, or of the bytes where it is none; the reason where the file is excluded."""
    varying = [
        each for each in EXCLUDED if fnmatch.fnmatch(journey, each.journeys) and fnmatch.fnmatch(name, each.files)
    ]
    for each in varying:
        if not each.part:
            return f"excluded: {each.reason}"
    data = path.read_bytes()
    with contextlib.suppress(UnicodeDecodeError):
        text = normalise(data.decode("utf-8"), places, version)
        for each in varying:
            text = re.sub(each.part, f"<{each.reason}>", text)
        data = text.encode()
    return hashlib.sha256(data).hexdigest()


def column_digests(path: Path) -> dict[str, str]:
    """Column -> its type and the SHA-256 of its values, however the file stores them."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        found = {}
        for field in file.schema_arrow:
            digest = hashlib.sha256()
            for batch in file.iter_batches(batch_size=TEXT_BATCH, columns=[field.name], use_threads=False):
                for value in batch.column(0).to_pylist():
                    digest.update(repr(value).encode() + b"\n")
            found[field.name] = f"{field.type} {digest.hexdigest()}"
        return found


def measured(out: Path) -> dict[str, Any]:
    """journey -> its pins, of what stands in FOLDER."""
    codes, named = (json.loads((out / name).read_text("utf-8")) for name in ("codes.json", "places.json"))
    places = {sign: Path(place) for sign, place in named.items()}
    version = checkout_version(places["<CHECKOUT>"])
    pins = {}
    for journey in codes:
        folder = out / "journeys" / journey
        files: dict[str, str] = {}
        columns: dict[str, dict[str, str]] = {}
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            name = path.relative_to(folder).as_posix()
            files[name] = file_digest(path, journey, name, places, version)
            if path.suffix == ".parquet":
                columns[name] = column_digests(path)
        said = {
            stream: file_digest(out / "said" / f"{journey}.{stream}", journey, stream, places, version)
            for stream in ("stdout", "stderr")
        }
        pins[journey] = {"exit": codes[journey], **said, "files": files, "parquet": columns}
    return pins


def measure(asked: argparse.Namespace) -> int:
    """The `measure` verb: pins.json of what a run has left."""
    pins = measured(asked.out)
    (asked.out / "pins.json").write_text(json.dumps(pins, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")
    print(f"{asked.out / 'pins.json'}: {len(pins)} journeys")
    return 0


# --- comparing -------------------------------------------------------------------------------------------------------


def set_words(kind: str, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What is in one alone, and what is in both and differs."""
    parts = {
        "only in old": sorted(old.keys() - new.keys()),
        "only in new": sorted(new.keys() - old.keys()),
        "differ": sorted(name for name in old.keys() & new.keys() if old[name] != new[name]),
    }
    return [f"{kind} {words}: {', '.join(names)}" for words, names in parts.items() if names]


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """A line for everything that differs between the pins of a journey; for Parquet files column by column."""
    lines = []
    if old["exit"] != new["exit"]:
        lines.append(f"exit status {old['exit']} -> {new['exit']}")
    lines += [stream for stream in ("stdout", "stderr") if old[stream] != new[stream]]
    lines += set_words("files", old["files"], new["files"])
    for name in sorted(old["parquet"].keys() & new["parquet"].keys()):
        if old["files"][name] != new["files"][name]:
            before, after = old["parquet"][name], new["parquet"][name]
            same = [column for column in before if before[column] == after.get(column)]
            changed = set_words("columns", before, after) or ["every column equal"]
            lines += [f"{name}: {words}" for words in changed]
            lines.append(f"{name}: columns equal: {', '.join(same) or 'none'}")
    return lines


def shown_diff(old: Path, new: Path, journey: str, names: Sequence[str], most: int) -> list[str]:
    """At most so many lines of difference between two kept texts, for each of the names."""
    lines: list[str] = []
    for name in names:
        inside = f"said/{journey}.{name}" if name in ("stdout", "stderr") else f"journeys/{journey}/{name}"
        try:
            before, after = ((folder / inside).read_text("utf-8").splitlines() for folder in (old, new))
        except (OSError, UnicodeDecodeError):
            continue
        found = difflib.unified_diff(before, after, f"old/{inside}", f"new/{inside}", lineterm="", n=0)
        lines += [f"    {line[:200]}" for line in itertools.islice(found, most)]
    return lines


def compare(asked: argparse.Namespace) -> int:
    """The `compare` verb: 0 where every journey is equal, 1 otherwise."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    old, new = (json.loads(path.read_text("utf-8")) for path in (asked.old, asked.new))
    names = sorted(old.keys() & new.keys() if asked.common else old.keys() | new.keys())
    different = 0
    for name in names:
        if name not in old or name not in new:
            lines = ["only in old" if name in old else "only in new"]
        else:
            lines = differences(old[name], new[name])
        if not lines:
            if not asked.quiet:
                print(f"{name}: equal")
            continue
        different += 1
        print(f"{name}: differs")
        for line in lines:
            print(f"  {line}")
        if asked.diff and name in old and name in new:
            files = [file for file in old[name]["files"] if old[name]["files"][file] != new[name]["files"].get(file)]
            streams = [stream for stream in ("stdout", "stderr") if old[name][stream] != new[name][stream]]
            for line in shown_diff(asked.old.parent, asked.new.parent, name, [*streams, *files], asked.diff):
                print(line)
    print(f"{len(names) - different} equal, {different} differ")
    return 1 if different else 0


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    running = verbs.add_parser("run", help="walk the journeys and write FOLDER/pins.json")
    running.add_argument("--checkout", type=Path, required=True)
    running.add_argument(
        "--python", type=Path, required=True, help="an interpreter that imports the checkout's package"
    )
    running.add_argument("--out", type=Path, required=True, help="emptied first")
    running.add_argument("--corpora", type=Path, help="also the journeys on these real corpora")
    running.add_argument("--golden", type=Path, help="the reference scorer's golden values")
    running.add_argument("--samples", type=Path, help="samples other than the checkout's own")
    running.add_argument("--only", nargs="+", default=[], metavar="PATTERN", help="these journeys, and what they need")
    running.set_defaults(work=run)
    measuring = verbs.add_parser("measure", help="write FOLDER/pins.json anew, from what a run has left there")
    measuring.add_argument("--out", type=Path, required=True)
    measuring.set_defaults(work=measure)
    comparing = verbs.add_parser("compare", help="say which journeys differ, and where")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    comparing.add_argument(
        "--diff", type=int, default=0, metavar="LINES", help="also show so many lines of each difference"
    )
    comparing.add_argument("--common", action="store_true", help="pass over journeys that one of the two did not walk")
    comparing.add_argument("--quiet", action="store_true", help="name only what differs")
    comparing.set_defaults(work=compare)
    walking = verbs.add_parser("walk", help="used by run, in the checkout's interpreter")
    walking.add_argument("--checkout", type=Path, required=True)
    walking.add_argument("--out", type=Path, required=True)
    walking.set_defaults(work=walk)
    return parser


def main() -> int:
    """Run the command line."""
    asked = arguments().parse_args()
    return asked.work(asked)


if __name__ == "__main__":
    sys.exit(main())
