"""Do tests call equal systems different, and do intervals hold the truth, as often as they say?

Made-up systems, whose true difference is known, are drawn again and again. Documents differ by .2, runs (other seeds)
by the spread, and a document's score changes from run to run by .05. One run of each system is tested by the exchange
of documents, several runs by the model of documents crossed with runs, which gives all intervals of differences.
Intervals of single scores are BCa.

python -m benchmarks.inference
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from time import perf_counter

import numpy as np

from eraser_hub.metrics.statistics import (
    DEFAULT_LEVEL,
    MIN_CLUSTERS,
    Score,
    Statistics,
    divide,
    mean,
    mean_columns,
)
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
MAX_REJECTED, MAX_REJECTED_ONE, COVERED, BARRED_SIZE = 0.07, 0.065, (0.92, 0.98), 50
LARGEST = 400  # annotations of a document, where documents are uneven
Draw = Callable[[np.random.Generator, tuple[int, int], int, float], np.ndarray]


# ------------------------------------------------------------------------------------------------------------- systems
def draw_effects(
    random: np.random.Generator, shape: tuple[int, int], runs: int, spread: float, rest: float = 0.05
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw effects of documents, of documents for one system, and of its runs: (samples, n, systems, runs)."""
    samples, n = shape
    changes = random.normal(0, spread, (samples, 1, 2, runs)) + random.normal(0, rest, (samples, n, 2, runs))
    return random.normal(size=(samples, n, 1, 1)), random.normal(size=(samples, n, 2, 1)), changes


def draw_normal(random, shape, runs, spread, rest=0.05):
    shared, own, changes = draw_effects(random, shape, runs, spread, rest)
    return 0.5 + 0.2 * shared + 0.15 * own + changes


def draw_unsteady(random, shape, runs, spread):
    """Draw scores that change from run to run as much as from document to document."""
    return draw_normal(random, shape, runs, spread, rest=0.2)


def draw_bounded(random, shape, runs, spread, gap=0.0):
    """Draw probabilities, most of them near 1; the second system's logits are higher by the gap."""
    shared, own, changes = draw_effects(random, shape, runs, spread)
    return 1 / (1 + np.exp(-(2 + 1.5 * shared + own + 5 * changes + gap * np.array([[0.0], [1.0]]))))


def draw_apart(random, shape, runs, spread):
    return draw_bounded(random, shape, runs, spread, gap=1.5)


def draw_zeros(random, shape, runs, spread):
    """Draw scores that are 0 in nine documents of ten."""
    _, own, changes = draw_effects(random, shape, runs, spread)
    return (own > 1.2815515655446004) * (random.uniform(0.3, 1, own.shape) + changes)


def draw_one_sided(random, shape, runs, spread):
    return draw_zeros(random, shape, runs, spread) * np.array([[1.0], [0.0]])


EQUAL: Mapping[str, Draw] = {
    "normal": draw_normal,
    "unsteady runs": draw_unsteady,
    "near 1": draw_bounded,
    "90 % zero": draw_zeros,
}
UNEQUAL: Mapping[str, Draw] = {"near 1, apart": draw_apart, "90 % zero, other all": draw_one_sided}


@cache
def find_truth(kind: str, spread: float) -> float:
    """Return the true difference: that of a million documents."""
    if kind in EQUAL:
        return 0.0
    scores = UNEQUAL[kind](np.random.default_rng(99), (1_000_000, 1), 1, spread).mean(axis=(0, 1, 3))
    return float(scores[0] - scores[1])


# --------------------------------------------------------------------------------------------------------------- cells
def measure(kind: str, n: int, runs: int, spread: float, uneven: bool = False) -> tuple[float, float]:
    """Return how many tests of a true difference of 0 reject it, and how many intervals hold the truth."""
    random, truth = np.random.default_rng([n, runs, int(1000 * spread)]), find_truth(kind, spread)
    scores = (EQUAL | UNEQUAL)[kind](random, (SAMPLES, n), runs, spread)
    sizes = np.ones((SAMPLES, n))
    if uneven:
        sizes = np.minimum(LARGEST, np.ceil(np.exp(random.normal(1, 1.2, (SAMPLES, n)))))
    weights, total = sizes[..., None, None], sizes.sum(axis=1)[:, None, None, None]
    sums = (weights * scores).sum(axis=1, keepdims=True)
    left_out = np.moveaxis((sums - weights * scores) / (total - weights), 1, 0)
    influences = compute_influences((sums / total)[:, 0].reshape(-1), left_out.reshape(n, -1))
    fit = fit_difference(*influences.reshape(n, SAMPLES, 2, runs).transpose(2, 1, 0, 3))
    covers, given = (
        compute_p_value(fit, truth) >= 1 - DEFAULT_LEVEL,
        (fit.error > 0) & ((fit.df >= MIN_DF) | (runs > 1)),
    )
    differing = (scores != scores[:, :, ::-1]).any(axis=(2, 3)).sum(axis=1)
    tested = compute_p_value(fit) if runs > 1 else exchange(scores[..., 0], sizes)
    return float(((tested < ALPHA) & (differing >= MIN_CLUSTERS)).mean()), float(covers[given].mean())


def exchange(scores: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the p-values of the exchange of documents: scores (samples, n, systems)."""
    p, score, read = [], {"f": Score(mean("f"))}, {"f": ["f.sum", "f.count"]}
    for seed, (each, size) in enumerate(zip(scores, sizes, strict=True)):
        first, second = ({"f.sum": column * size, "f.count": size} for column in each.T)
        p.append(exchange_systems(first, second, score, read, DRAWS, seed)["f"])
    return np.array(p)


def measure_scores(random: np.random.Generator, n: int) -> dict[str, float]:
    """Return how many intervals of single scores hold the truth: `Statistics.intervals` of samples of n documents."""
    documents = 100_000
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
def make_table(heads: list[str], rows: Iterator[list[str]]) -> list[str]:
    return ["", *(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])]


def main() -> int:
    """Measure, write the page, print it, and return 1 if a bar is missed."""
    start, missed = perf_counter(), []
    cells = {
        (kind, n, *design): measure(kind, n, *design) for kind in EQUAL | UNEQUAL for n in SIZES for design in DESIGNS
    }
    uneven = {
        (kind, n, *design): measure(kind, n, *design, True)
        for kind in ("normal", "near 1")
        for n in SIZES
        for design in DESIGNS
    }
    alone = {n: measure_scores(np.random.default_rng(n), n) for n in (20, 56, 200)}
    for (kind, n, runs, spread), (rejected, held) in cells.items():
        bar = MAX_REJECTED_ONE if runs == 1 else MAX_REJECTED
        if kind in EQUAL and rejected > bar:
            missed.append(f"{kind}, n {n}, {runs} runs, spread {spread}: rejected {rejected:.3f}, more than {bar}")
        if n >= BARRED_SIZE and not COVERED[0] <= held <= COVERED[1]:
            missed.append(f"{kind}, n {n}, {runs} runs, spread {spread}: {held:.3f} of the intervals hold the truth")
    for n, held_of in alone.items():
        missed += [f"{key}, n {n}: {held:.3f} of the intervals hold the truth" for key, held in held_of.items()
                   if n >= BARRED_SIZE and not COVERED[0] <= held <= COVERED[1]]  # fmt: skip
    heads = ["scores", "documents", *(f"{runs} runs, {spread:g}" if runs > 1 else "1 run" for runs, spread in DESIGNS)]

    def list_rows(found: Mapping[tuple, tuple[float, float]], place: int) -> Iterator[list[str]]:
        for kind, n in dict.fromkeys(cell[:2] for cell in found):
            if place or kind in EQUAL:
                yield [kind, str(n), *(f"{found[kind, n, *design][place]:.3f}" for design in DESIGNS)]

    keys = list(alone[SIZES[0]])
    lines = [
        "## inference",
        "",
        f"`python -m benchmarks.inference`, Python {platform.python_version()}, numpy {np.__version__}, "
        f"{SAMPLES:,} samples, {perf_counter() - start:.0f} s.",
        "",
        "The share of tests at .05 that call equal systems different (number of runs, their spread): one run by "
        f"exchange, at most {MAX_REJECTED_ONE}; several by documents and runs, at most {MAX_REJECTED}.",
        *make_table(heads, list_rows(cells, 0)),
        "",
        f"The share of 95 % intervals of a difference that hold the true one: {COVERED[0]} to {COVERED[1]} from "
        f"{BARRED_SIZE} documents on. In the last two rows the systems differ.",
        *make_table(heads, list_rows(cells, 1)),
        "",
        f"Documents of very uneven size (1 to {LARGEST} annotations), without a bar: tests, then intervals.",
        *make_table(heads, list_rows(uneven, 0)),
        *make_table(heads, list_rows(uneven, 1)),
        "",
        "The share of 95 % intervals of single scores that hold the true score (BCa; of a share exact).",
        *make_table(["documents", *keys], ([str(n), *(f"{of[key]:.3f}" for key in keys)] for n, of in alone.items())),
        "",
        *(missed or ["All bars are met."]),
    ]
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
