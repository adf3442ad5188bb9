"""Do tests call equal systems different, and do intervals hold the truth, as often as they say?

Made-up systems, whose true difference is known, are drawn again and again. Documents differ by .2, runs (other seeds)
by the spread, and a document's score changes from run to run by .05. One run of each system is tested by the exchange
of documents, several runs by the model of documents crossed with runs, which gives all intervals of differences.
Intervals of single scores are BCa.

python -m benchmarks.inference     writes results_inference.md; the exit status is 1 where an aim is missed
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from time import process_time

import numpy as np

from eraser_hub.metrics.statistics import DEFAULT_LEVEL, MIN_CLUSTERS, Score, Statistics, divide, mean, mean_columns
from eraser_hub.scoring.statistics import (
    ALPHA,
    MIN_DF,
    compute_influences,
    compute_p_value,
    exchange_systems,
    fit_difference,
)

RESULTS = Path(__file__).with_name("results_inference.md")
SAMPLES, DRAWS = 2000, 999
SIZES = (20, 56, 200)
DESIGNS = [(1, 0.0), *((runs, spread) for runs in (3, 5) for spread in (0.0, 0.02, 0.05))]
MAX_REJECTED, MAX_REJECTED_ONE, COVERED, MIN_SIZE = 0.07, 0.065, (0.92, 0.98), 50
LARGEST = 400  # annotations of a document, where documents are uneven
NINE_OF_TEN = 1.2815515655446004  # of a normal distribution


# ------------------------------------------------------------------------------------------------------------- systems
def draw_scores(kind: str, random: np.random.Generator, shape: tuple[int, int], runs: int, spread: float) -> np.ndarray:
    """Draw scores (samples, n, systems, runs): documents of two systems, and their runs, have effects of their own."""
    samples, n = shape
    rest = 0.2 if kind == "unsteady runs" else 0.05  # by which a document's score changes from run to run
    changes = random.normal(0, spread, (samples, 1, 2, runs)) + random.normal(0, rest, (samples, n, 2, runs))
    shared, own = random.normal(size=(samples, n, 1, 1)), random.normal(size=(samples, n, 2, 1))
    if kind.startswith("near 1"):  # probabilities
        gap = 1.5 if kind == "near 1, apart" else 0.0
        return 1 / (1 + np.exp(-(2 + 1.5 * shared + own + 5 * changes + gap * np.array([[0.0], [1.0]]))))
    if kind.startswith("90 % zero"):
        scores = (own > NINE_OF_TEN) * (random.uniform(0.3, 1, own.shape) + changes)
        return scores * np.array([[1.0], [0.0]]) if kind == "90 % zero, other all" else scores
    return 0.5 + 0.2 * shared + 0.15 * own + changes


EQUAL = ("normal", "unsteady runs", "near 1", "90 % zero")
UNEQUAL = ("near 1, apart", "90 % zero, other all")


@cache
def find_truth(kind: str, spread: float) -> float:
    """Return the true difference: that of a million documents."""
    if kind in EQUAL:
        return 0.0
    scores = draw_scores(kind, np.random.default_rng(99), (1_000_000, 1), 1, spread).mean(axis=(0, 1, 3))
    return float(scores[0] - scores[1])


# ------------------------------------------------------------------------------------------------------------ measures
def measure(kind: str, n: int, runs: int, spread: float, uneven: bool = False) -> tuple[float, float]:
    """Return how many tests of a true difference of 0 reject it, and how many intervals hold the truth."""
    random, truth = np.random.default_rng([n, runs, int(1000 * spread)]), find_truth(kind, spread)
    scores = draw_scores(kind, random, (SAMPLES, n), runs, spread)
    sizes = np.ones((SAMPLES, n))
    if uneven:
        sizes = np.minimum(LARGEST, np.ceil(np.exp(random.normal(1, 1.2, (SAMPLES, n)))))
    weights, total = sizes[..., None, None], sizes.sum(axis=1)[:, None, None, None]
    sums = (weights * scores).sum(axis=1, keepdims=True)
    left_out = np.moveaxis((sums - weights * scores) / (total - weights), 1, 0)
    influences = compute_influences((sums / total)[:, 0].reshape(-1), left_out.reshape(n, -1))
    fit = fit_difference(*influences.reshape(n, SAMPLES, 2, runs).transpose(2, 1, 0, 3))
    covers = compute_p_value(fit, truth) >= 1 - DEFAULT_LEVEL
    given = (fit.error > 0) & ((fit.df >= MIN_DF) | (runs > 1))
    p = compute_p_value(fit)
    if runs == 1:  # the exchange of documents
        for seed, (sample, size) in enumerate(zip(scores[..., 0], sizes, strict=True)):
            systems = [{"f.sum": column * size, "f.count": size} for column in sample.T]
            p[seed] = exchange_systems(*systems, {"f": Score(mean("f"))}, {"f": ["f.sum", "f.count"]}, DRAWS, seed)["f"]
    differing = (scores != scores[:, :, ::-1]).any(axis=(2, 3)).sum(axis=1)
    return float(((p < ALPHA) & (differing >= MIN_CLUSTERS)).mean()), float(covers[given].mean())


def measure_scores(n: int) -> dict[str, float]:
    """Return how many intervals of single scores hold the truth: `Statistics.intervals` of samples of n documents."""
    random, documents = np.random.default_rng(n), 100_000
    skill, gold = random.normal(size=documents), 1.0 + random.poisson(4, documents)
    predicted = 1.0 + random.poisson(4, documents)
    hits = random.binomial(np.minimum(gold, predicted).astype(int), 1 / (1 + np.exp(-skill)))
    columns = {"hits": hits, "predicted": predicted, "gold": gold, "n": np.ones(documents)}
    columns["right"] = (random.random(documents) < 0.8).astype(float)
    zeros = (random.random(documents) < 0.1) * random.uniform(0.3, 1, documents)
    means = {"normal": skill, "near 1": 1 / (1 + np.exp(-2 - 1.5 * skill)), "90 % zero": zeros}
    means["exponential"] = random.exponential(size=documents)
    for key, values in means.items():
        columns |= mean_columns(key, values)
    scores = {key: Score(mean(key), low=None, high=None) for key in means}
    scores["micro F1"] = Score(lambda sums: divide(2 * sums["hits"], sums["predicted"] + sums["gold"]))
    scores["share"] = Score(lambda sums: divide(sums["right"], sums["n"]), units="n")
    population = Statistics(range(documents), columns, scores)
    truth, held = population.values(), dict.fromkeys(scores, 0)
    for seed in range(SAMPLES):
        bounds = population.take(random.integers(0, documents, n)).intervals(seed=seed)
        for key, (low, high) in bounds.items():
            held[key] += low <= truth[key] <= high
    return {key: count / SAMPLES for key, count in held.items()}


# -------------------------------------------------------------------------------------------------------------- report
def make_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return ["", *(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])]


def make_tables(kinds: Sequence[str], uneven: bool, missed: list[str]) -> list[list[str]]:
    """Return the tables of rejections, of equal systems, and of intervals that hold the truth; note missed aims."""
    heads = ["scores", "documents", *(f"{runs} runs, {spread:g}" if runs > 1 else "1 run" for runs, spread in DESIGNS)]
    rejected, held = [], []
    for kind in kinds:
        for n in SIZES:
            cells = [measure(kind, n, runs, spread, uneven) for runs, spread in DESIGNS]
            for (runs, spread), (rejects, covers) in zip(DESIGNS, cells, strict=True):
                name = f"{kind}, n {n}, {runs} runs, spread {spread}"
                if not uneven and kind in EQUAL and rejects > (MAX_REJECTED_ONE if runs == 1 else MAX_REJECTED):
                    missed.append(f"{name}: {rejects:.3f} of the tests reject")
                if not uneven and n >= MIN_SIZE and not COVERED[0] <= covers <= COVERED[1]:
                    missed.append(f"{name}: {covers:.3f} of the intervals hold the truth")
            if kind in EQUAL:
                rejected.append([kind, str(n), *(f"{rejects:.3f}" for rejects, _ in cells)])
            held.append([kind, str(n), *(f"{covers:.3f}" for _, covers in cells)])
    return [make_table(heads, rejected), make_table(heads, held)]


def main() -> int:
    """Measure, write the page, print it, and return 1 if an aim is missed."""
    start, missed = process_time(), list[str]()
    tests, intervals = make_tables(EQUAL + UNEQUAL, False, missed)
    uneven_tests, uneven_intervals = make_tables(("normal", "near 1"), True, missed)
    single = {n: measure_scores(n) for n in SIZES}
    for n, rates in single.items():
        outside = [key for key, held in rates.items() if n >= MIN_SIZE and not COVERED[0] <= held <= COVERED[1]]
        missed += [f"{key}, n {n}: {rates[key]:.3f} of the intervals hold the truth" for key in outside]
    rows = ([str(n), *(f"{held:.3f}" for held in rates.values())] for n, rates in single.items())
    lines = [
        "## inference",
        "",
        f"`python -m benchmarks.inference`, Python {platform.python_version()}, numpy {np.__version__}, "
        f"{SAMPLES:,} samples, {process_time() - start:.0f} s of CPU.",
        "",
        "The share of tests at .05 that call equal systems different (number of runs, their spread): one run by "
        f"exchange, at most {MAX_REJECTED_ONE}; several by documents and runs, at most {MAX_REJECTED}.",
        *tests,
        "",
        f"The share of 95 % intervals of a difference that hold the true one: {COVERED[0]} to {COVERED[1]} from "
        f"{MIN_SIZE} documents on. In the last two rows the systems differ.",
        *intervals,
        "",
        f"Documents of very uneven size (1 to {LARGEST} annotations), without an aim: tests, then intervals.",
        *uneven_tests,
        *uneven_intervals,
        "",
        "The share of 95 % intervals of single scores that hold the true score (BCa; of a share exact).",
        *make_table(["documents", *single[SIZES[0]]], rows),
        "",
        *(missed or ["All aims are met."]),
    ]
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
