"""Do tests call equal systems different, and do intervals hold the truth, as often as they say?

rejection   two simple systems on real corpora, exchanged document by document: every difference is chance, and a test
            at .05 is to find one in five cases of a hundred
stars       how many of these comparisons put a star anywhere
coverage    samples of a made-up population whose scores are known: a 95 % BCa interval is to hold
            them in 95 of a hundred

python -m benchmarks.inference
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness
from eraser_hub.metrics.resampling import bootstrap_weights, compute_bounds, jackknife
from eraser_hub.metrics.results import HEADLINE
from eraser_hub.metrics.statistics_builder import Finalize, Statistics, StatisticsBuilder
from eraser_hub.metrics.token_rows import find_runs
from eraser_hub.scoring.comparison import restrict_finalize
from eraser_hub.scoring.paired_tests import Pair, holm, randomisation
from eraser_hub.scoring.score import score
from eraser_hub.scoring.scored_split import ScoredSplit
from eraser_hub.scoring.uncertainty.verdicts import ALPHA

ROOT = Path(__file__).resolve().parent.parent
CORPORA = Path(os.environ.get("ERASER_CORPORA", ROOT.parent / "shared" / "corpora"))
RESULTS = Path(__file__).with_name("results_inference.md")
NAMES = ("multirc", "evidence_inference", "fever")
EXCHANGES, ALONE, RESAMPLES = 500, 100, 999
SAMPLES, SIZES = 2000, (25, 50, 200)
MEAN_SAMPLES, MEAN_SIZES = 1000, (3, 5, 8, 12, 25, 50, 100, 200)
KEYS = ("comprehensiveness", "macro_f1", "iou_macro_f1", "auprc")
MEANS = ("normal", "skew", "mostly 0", "uneven")


# ------------------------------------------------------------------------------------------------------------ rejection
def _instance(
    row: dict[str, Any], folder: Path, skills: dict[str, float], random: np.random.Generator
) -> dict[str, Any]:
    """A system's rationales: the more skilled it is in a document, the more evidence it marks, and the nearer."""
    gold: dict[str, list[tuple[int, int]]] = {}
    for evidence in (evidence for group in row["evidences"] for evidence in group):
        gold.setdefault(evidence["docid"], []).append((evidence["start_token"], evidence["end_token"]))
    rationales = []
    for docid, spans in gold.items():
        tokens = len((folder / "docs" / docid).read_text(encoding="utf-8").split())
        skill, soft, marked = skills.setdefault(docid, float(random.uniform())), random.normal(size=tokens), set()
        for start, end in spans:
            soft[start:end] += 2 * skill
            if random.random() < 0.3 + 0.7 * skill:
                moved = min(start + int(random.integers(0, 2 + (1 - skill) * (end - start))), tokens - 1)
                marked |= {*range(moved, min(moved + end - start, tokens))}
        rationales.append(
            {
                "docid": docid,
                "hard_rationale_predictions": [{"start_token": at, "end_token": to} for at, to in find_runs(marked)],
                "soft_rationale_predictions": soft.round(3).tolist(),
            }
        )
    return {"annotation_id": str(row["annotation_id"]), "rationales": rationales}


def systems(folder: Path, random: np.random.Generator) -> list[Statistics]:
    """Two systems' agreement on a corpus' validation split; each has its own skill in each document."""
    rows = [json.loads(line) for line in (folder / "val.jsonl").read_text(encoding="utf-8").splitlines()]
    scored = []
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(2):
            skills: dict[str, float] = {}
            path = Path(scratch) / "predictions.jsonl"
            path.write_text("".join(json.dumps(_instance(row, folder, skills, random)) + "\n" for row in rows))
            scored.append(score(ScoredSplit(folder, "val"), path).statistics["agreement"])
    return scored


def _p_values(both: tuple[np.ndarray, np.ndarray], swap: np.ndarray, finalize: Finalize, seed: int) -> dict[str, float]:
    """The p-values of systems of which some rows (of a cluster, of an annotation) are exchanged."""
    first, second = (np.where(swap[:, None], other, own) for own, other in (both, both[::-1]))
    pair = Pair([first], [second], finalize)
    return randomisation(pair, RESAMPLES, seed)


def rejections(name: str, random: np.random.Generator) -> list[str]:
    """A line of the tables of rejection and of stars."""
    first, second = systems(CORPORA / name, random)
    every = [key for key, value in first.scores().items() if value.ndim == 0]
    headline = [key for key in HEADLINE["eraser_agreement"] if key in every]
    drawn = first.cluster_sums(), second.cluster_sums()
    whole = restrict_finalize(first, every)
    clusters = np.arange(len(first.ids)) if first.clusters is None else first.clusters
    found: dict[str, list[bool]] = {kind: [] for kind in ("exchange", "any raw p", "stars")}
    for seed in range(EXCHANGES):
        swap = random.random(first.n_clusters) < 0.5
        exchanged = _p_values(drawn, swap, whole, seed)
        found["exchange"] += [exchanged[key] <= ALPHA for key in headline]
        found["any raw p"].append(any(p <= ALPHA for p in exchanged.values()))
        found["stars"].append(min(holm([exchanged[key] for key in headline])) <= ALPHA)
    alone, few = [], restrict_finalize(first, headline)
    for seed in range(ALONE):
        swap = (random.random(first.n_clusters) < 0.5)[clusters]
        tests = _p_values((first.values, second.values), swap, few, seed)
        alone += [tests[key] <= ALPHA for key in headline]
    shares = [np.mean(alone), *(np.mean(found[kind]) for kind in found)]
    counts = [f"{len(first.ids):,}", f"{first.n_clusters:,}"]
    return [f"| {' | '.join([name, *counts, *(f'{share:.3f}' for share in shares)])} |"]


# ------------------------------------------------------------------------------------------------------------- coverage
def _population(documents: int, most: float, random: np.random.Generator) -> list[Statistics]:
    """Agreement and faithfulness of annotations on so many documents, 1 + Poisson(``most``) on each.

    Those of a document are alike, as hard as it is.
    """
    predictions, references = [], []
    for at in range(documents):
        hard = random.normal()
        for number in range(1 + random.poisson(most)):
            prediction, reference = _annotation(f"{at}", f"{at}.{number}", hard, random)
            predictions.append(prediction)
            references.append(reference)
    labels = {"label_names": ["common", "rare"]}
    return [
        EraserAgreement().statistics(predictions, references),
        EraserFaithfulness().statistics(predictions, references, **labels),
    ]


def _annotation(
    docid: str, name: str, hard: float, random: np.random.Generator, tokens: int = 40
) -> tuple[dict[str, Any], dict[str, Any]]:
    skill = 1 / (1 + np.exp(hard + 0.5 * random.normal() - 0.8))
    marked, evidences, spans = np.zeros(tokens), [], []
    for start in random.choice(tokens // 8, 1 + random.integers(3), replace=False) * 8:
        marked[start : start + 5] = 1
        evidences.append({"docid": docid, "start_token": int(start), "end_token": int(start) + 5})
        moved = int(start) + int(random.integers(0, 2) if random.random() < skill else random.integers(3, 4))
        if random.random() < 0.5 + skill / 2:
            spans.append({"start_token": moved, "end_token": moved + 4})
    soft = (marked * 2.5 * skill + random.normal(size=tokens)).round(6).tolist()
    label = "rare" if random.random() < 0.1 else "common"
    other = {"rare": "common", "common": "rare"}[label]
    right = random.random() < skill ** (0.5 if label == "rare" else 0.15)
    answer, p, q = (label if right else other), random.uniform(0.5, 1), random.beta(2, 1 + 2 * skill)
    full = {answer: p, other if right else label: 1 - p}
    erased = {answer: q, other if right else label: 1 - q}
    rationale = {"docid": docid, "hard_rationale_predictions": spans, "soft_rationale_predictions": soft}
    prediction = {"annotation_id": name, "rationales": [rationale], "classification": answer}
    prediction |= {"classification_scores": full, "comprehensiveness_classification_scores": erased}
    text = " ".join(["word"] * tokens)
    reference = {"annotation_id": name, "classification": label, "documents": [{"docid": docid, "text": text}]}
    return prediction, reference | {"evidences": [[evidence] for evidence in evidences]}


def _make_means(random: np.random.Generator, documents: int = 4000) -> Statistics:
    """Return means over documents: normal, skew, 0 in nine documents of ten, and normal of uneven sizes (1 to 400)."""
    own, builder = random.normal(0.5, 0.2, documents), StatisticsBuilder(documents)
    sizes = np.ceil(np.exp(random.normal(1, 1.2, documents)))
    zeros = (random.random(documents) < 0.1) * random.uniform(0.3, 1, documents)
    for name, values in zip(MEANS, (own, random.exponential(size=documents), zeros), strict=False):
        builder.add_mean(name, values)
    builder.add_mean("uneven", np.repeat(own, sizes.astype(int)), np.repeat(np.arange(documents), sizes.astype(int)))
    return builder.statistics([str(at) for at in range(documents)])


def coverage(
    kind: str,
    population: Sequence[Statistics],
    random: np.random.Generator,
    keys: Sequence[str] = KEYS,
    samples: int = SAMPLES,
    sizes: Sequence[int] = SIZES,
) -> list[str]:
    """Lines of the table: the share of samples whose BCa interval holds the population's score."""
    lines = []
    for n in sizes:
        weights = np.concatenate(list(bootstrap_weights(n, RESAMPLES, n)))
        held: dict[str, list[bool]] = {}
        for statistics in population:
            rows, own = statistics.cluster_sums(), [key for key in keys if key in statistics.scores()]
            finalize = restrict_finalize(statistics, own)
            truth = finalize(rows.sum(axis=0))
            for _ in range(samples):
                sample = rows[random.integers(0, len(rows), n)]
                drawn, left_out = finalize(weights @ sample), jackknife(sample, finalize)
                bounds = compute_bounds(finalize(sample.sum(axis=0)), drawn, left_out=left_out)
                for key in own:
                    held.setdefault(key, []).append(bool(bounds[key][0] <= truth[key] <= bounds[key][1]))
        lines.append(f"| {kind} | {n} | {' | '.join(f'{np.mean(held[key]):.3f}' for key in keys)} |")
    return lines


# --------------------------------------------------------------------------------------------------------------- report
def main() -> int:
    start, random = perf_counter(), np.random.default_rng(0)
    tests = [line for name in NAMES if (CORPORA / name).is_dir() for line in rejections(name, random)]
    alone, together = _population(4000, 0, random), _population(1500, 4, random)
    alone = [replace(statistics, clusters=None) for statistics in alone]
    covered = coverage("independent", alone, random) + coverage("clustered", together, random)
    random = np.random.default_rng(0)  # so that this table needs no other
    means = coverage("means", [_make_means(random)], random, MEANS, MEAN_SAMPLES, MEAN_SIZES)
    lines = [
        "## inference",
        "",
        f"`python -m benchmarks.inference`, Python {platform.python_version()}, numpy {np.__version__}, "
        f"{perf_counter() - start:.0f} s.",
        "",
        f"Two systems, each with its own skill in each document, exchanged document by document, {EXCHANGES} times "
        f"({ALONE} by annotations), {RESAMPLES} resamples: the share of tests at .05 that reject, over the headline "
        "scores; and of comparisons with any raw p at most .05 among all scores, with any star.",
        "",
        "| corpus | annotations | clusters | by annotations | by clusters | any raw p | any star |",
        "|---|---|---|---|---|---|---|---|",
        *tests,
        "",
        f"Coverage of 95 % BCa intervals, {SAMPLES} samples of n documents, {RESAMPLES} resamples "
        "(independent: one annotation a document; clustered: five on average). Macro F1 has a class of 10 %.",
        "",
        "| annotations | n | mean | macro F1 | IOU | AUPRC |",
        "|---|---|---|---|---|---|",
        *covered,
        "",
        f"Likewise of means over documents, {MEAN_SAMPLES} samples.",
        "",
        f"| scores | n | {' | '.join(MEANS)} |",
        "|---|---|---|---|---|---|",
        *means,
    ]
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
