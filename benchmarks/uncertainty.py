"""Does the model of documents and runs reject true differences, and do its intervals hold them, as often as they say?

Two systems with documents of a corpus's cluster sizes, runs with a spread, and scores of several shapes are drawn
again and again; the true difference is known. Each cell has the share of samples that reject it at .05, the coverage of
the 95 % interval, the share that the model refuses, and the median half width of an interval.

python -m benchmarks.uncertainty
"""

from __future__ import annotations

import csv
import importlib.util
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, fields
from functools import cache
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy import stats

from eraser_hub.metrics.clusters import cluster_by_items
from eraser_hub.scoring.uncertainty.mixed_model import DifferenceModel, compute_influences, fit_difference

from .inference import CORPORA, ROOT

RESULTS = Path(__file__).with_name("results_uncertainty.md")
CELLS = ROOT / "docs" / "results" / "uncertainty.csv"
SAMPLES, AT_ONCE = 2000, 4_000_000
BOOTSTRAPS, DOMINANT = 200, 0.2  # of ASO; Dror et al. (2019) call a system dominant below .2
SIZES = (5, 10, 20, 56, 200, 1000)
RUNS = ((1, 0.0), (2, 0.05), (3, 0.0), (3, 0.02), (3, 0.05), (3, 0.1), (5, 0.02), (10, 0.0), (10, 0.05))
Draw = Callable[[np.ndarray, int, float, np.random.Generator], np.ndarray]


# ------------------------------------------------------------------------------------------------------------- scores
def _noise(weights: np.ndarray, runs: int, spread: float, random: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Return effects of (samples, n, systems, runs): shared documents, documents of a system, runs, and the rest."""
    samples, n = weights.shape
    return (
        random.normal(0, 1, (samples, n, 1, 1)),
        random.normal(0, 1, (samples, n, 2, 1)),
        random.normal(0, 1, (samples, 1, 2, runs)) * spread,
        random.normal(0, 0.05, (samples, n, 2, runs)),
    )


def normal(weights: np.ndarray, runs: int, spread: float, random: np.random.Generator) -> np.ndarray:
    """Scores such as an F1; annotations of a document are alike, and the mean of more of them varies less."""
    shared, own, run, rest = _noise(weights, runs, spread, random)
    return np.asarray(0.5 + 0.2 * shared + np.sqrt(0.01 + 0.09 / weights)[:, :, None, None] * own + run + rest)


def zeros(weights: np.ndarray, runs: int, spread: float, random: np.random.Generator) -> np.ndarray:
    """Scores that are 0 in nine documents of ten, of either system."""
    _, own, run, rest = _noise(weights, runs, spread, random)
    return np.asarray((own > 1.2815515655446004) * (random.uniform(0.3, 1, own.shape) + rest + run))


def one_sided(weights: np.ndarray, runs: int, spread: float, random: np.random.Generator) -> np.ndarray:
    """Scores of which the first system's are 0 in nine documents of ten, and the second's in all."""
    return np.asarray(zeros(weights, runs, spread, random) * [[1.0], [0.0]])


def bounded(weights: np.ndarray, runs: int, spread: float, random: np.random.Generator) -> np.ndarray:
    """Probabilities, most of them near 1."""
    shared, own, run, rest = _noise(weights, runs, spread, random)
    return np.asarray(1 / (1 + np.exp(-(2 + 1.5 * shared + own + 5 * run + 5 * rest))))


def bounded_apart(weights: np.ndarray, runs: int, spread: float, random: np.random.Generator) -> np.ndarray:
    """Probabilities of two systems of which the second is surer: both are skew, and differ in shape."""
    shared, own, run, rest = _noise(weights, runs, spread, random)
    centre = np.array([[2.0], [3.5]])
    return np.asarray(1 / (1 + np.exp(-(centre + 1.5 * shared + own + 5 * run + 5 * rest))))


SHAPES: dict[str, Draw] = {
    "normal": normal,
    "90 % zero": zeros,
    "90 % zero, one system": one_sided,
    "bounded": bounded,
    "bounded, apart": bounded_apart,
}


@cache
def find_truth(shape: str, spread: float) -> float:
    """Return the difference of the population: exact, or the mean of two million documents."""
    if shape == "90 % zero, one system":
        return 0.1 * 0.65
    if shape != "bounded, apart":
        return 0.0
    scores = bounded_apart(np.ones((2_000_000, 1)), 1, spread, np.random.default_rng(99))[:, 0, :, 0]
    return float(np.diff(scores.mean(axis=0))[0] * -1)


def read_structures() -> dict[str, np.ndarray]:
    """Return the numbers of annotations in the clusters of corpora: {corpus: int (clusters,)}."""
    sizes = {"equal": np.ones(1, dtype=int)}
    for name in ("multirc", "evidence_inference", "fever"):
        path = CORPORA / name / "val.jsonl"
        if path.is_file():
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            items = [[one["docid"] for group in row["evidences"] for one in group] for row in rows]
            numbers = cluster_by_items("documents", items).numbers
            sizes[name] = np.ones(1, dtype=int) if numbers is None else np.bincount(numbers)
    return sizes


# -------------------------------------------------------------------------------------------------------------- cells
@dataclass(frozen=True)
class Cell:
    """A cell: its design, and what the model does there.

    Attributes:
        rejected: share of samples whose test rejects the true difference at .05.
        covered: share of intervals that hold it, among those that are given.
        refused: share of samples without an interval.
        half_width: median half width of the intervals.
    """

    scores: str
    clusters: str
    n: int
    runs: int
    spread: float
    rejected: float
    covered: float
    refused: float
    half_width: float


def fit(scores: np.ndarray, weights: np.ndarray) -> DifferenceModel:
    """Fit the model to scores of documents: (samples, n, systems, runs), with their annotations (samples, n)."""
    w = weights[:, :, None, None]
    sums, total = (w * scores).sum(axis=1), w.sum(axis=1)
    left_out = (sums[:, None] - w * scores) / (total[:, None] - w)
    influences = [compute_influences((sums / total)[:, at], left_out[:, :, at]) for at in range(2)]
    return fit_difference(influences[0], influences[1])


def measure(shape: str, name: str, sizes: np.ndarray, n: int, runs: int, spread: float) -> Cell:
    """Draw the samples of a cell and count."""
    random = np.random.default_rng([n, runs, int(1000 * spread)])
    truth, p_values, errors, degrees = find_truth(shape, spread), [], [], []
    left = SAMPLES
    while left:
        count = min(left, max(1, AT_ONCE // (2 * n * runs)))
        weights = sizes[random.integers(0, len(sizes), (count, n))].astype(float)
        model = fit(SHAPES[shape](weights, runs, spread, random), weights)
        p_values.append(model.p_value(truth))
        errors.append(np.where(model.is_refused, np.nan, model.standard_error))
        degrees.append(model.df)
        left -= count
    p, error, df = (np.concatenate(parts) for parts in (p_values, errors, degrees))
    given = ~np.isnan(p)
    half = stats.t.ppf(0.975, df[given]) * error[given]
    covered = float((p[given] > 0.05).mean()) if given.any() else float("nan")
    width = float(np.median(half)) if given.any() else float("nan")
    return Cell(shape, name, n, runs, spread, float((p <= 0.05).mean()), covered, float(1 - given.mean()), width)


def measure_all() -> Iterator[Cell]:
    """Yield all cells; with 1,000 documents fewer designs, as they are long."""
    for name, sizes in read_structures().items():
        for shape in SHAPES:
            for n in SIZES:
                for runs, spread in RUNS:
                    if n < 1000 or (runs, spread) in ((1, 0.0), (3, 0.0), (3, 0.05)):
                        yield measure(shape, name, sizes, n, runs, spread)


# -------------------------------------------------------------------------------------------------------------- peers
def _mixedlm(scores: np.ndarray) -> float:
    import pandas as pd
    import statsmodels.formula.api as smf

    document, system, run = np.indices(scores.shape)
    table = {"y": scores.ravel(), "document": document.ravel(), "system": system.ravel(), "all": 1}
    frame = pd.DataFrame(table | {"run": (system * scores.shape[2] + run).ravel()})
    parts = {"document": "0 + C(document)", "pair": "0 + C(document):C(system)", "run": "0 + C(run)"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = smf.mixedlm("y ~ system", frame, groups="all", vc_formula=parts, re_formula="0").fit(method="lbfgs")
    return float(fitted.pvalues["system"])


def _bootstrap_by_arch(scores: np.ndarray) -> float:
    from arch.bootstrap import IIDBootstrap

    differences = scores.mean(axis=2) @ [1, -1]
    low, high = IIDBootstrap(differences, seed=1).conf_int(np.mean, 999, method="bca").ravel()
    return 0.0 if low > 0 or high < 0 else 1.0


def _stochastic_order_by_deepsig(scores: np.ndarray) -> float:
    from deepsig import aso

    runs = scores.mean(axis=0)
    both = [
        aso(list(a), list(b), num_bootstrap_iterations=BOOTSTRAPS, show_progress=False, seed=1)
        for a, b in (runs, runs[::-1])
    ]
    return 0.0 if min(both) < DOMINANT else 1.0


def find_violation(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return how far the first sample is from stochastically dominating the second (del Barrio et al. 2018).

    The integral over t of ``(F1^-1(t) - F2^-1(t))^2`` where the difference is negative, over that of all t: in [0, 1].

    Args:
        first, second: samples (..., size).
    """
    places = np.arange(0.0025, 1, 0.005)
    quantiles = [np.sort(one, axis=-1)[..., np.ceil(places * one.shape[-1]).astype(int) - 1] for one in (first, second)]
    gaps = quantiles[0] - quantiles[1]
    squares = gaps**2
    return np.asarray((squares * (gaps < 0)).sum(axis=-1) / np.maximum(squares.sum(axis=-1), 1e-300))


def find_least_violation(first: np.ndarray, second: np.ndarray, random: np.random.Generator) -> float:
    """Return ASO's eps_min: the upper .95 bound of the violation, by the bootstrap (Dror et al. 2019)."""
    drawn = [random.choice(one, (BOOTSTRAPS, len(one))) for one in (first, second)]
    spread = find_violation(drawn[0], drawn[1]).std()
    return float(np.clip(find_violation(first, second) + stats.norm.ppf(0.95) * spread, 0, 1))


def _stochastic_order(scores: np.ndarray) -> float:
    runs, random = scores.mean(axis=0), np.random.default_rng(1)
    both = [find_least_violation(a, b, random) for a, b in (runs, runs[::-1])]
    return 0.0 if min(both) < DOMINANT else 1.0


def _exchange(scores: np.ndarray) -> float:
    differences, random = scores.mean(axis=2) @ [1, -1], np.random.default_rng(0)
    drawn = random.choice([-1.0, 1.0], (999, len(differences))) @ differences
    return float((1 + (np.abs(drawn) >= abs(differences.sum())).sum()) / 1000)


@dataclass(frozen=True)
class Peer:
    """A test beside the model.

    Attributes:
        test: returns a p-value, or 0 or 1, of scores (n, systems, runs).
        samples: how many are drawn.
        module: the library that it needs.
        documents: n; mixedlm takes half a minute for 60 documents.
    """

    test: Callable[[np.ndarray], float]
    samples: int = 1000
    module: str = ""
    documents: int = 60


PEERS = {
    "this model": Peer(lambda s: float(fit(s[None], np.ones((1, len(s)))).p_value()[0])),
    "exchange of documents": Peer(_exchange),
    "scipy, paired t over documents": Peer(lambda s: float(stats.ttest_rel(*s.mean(axis=2).T).pvalue)),
    "scipy, Welch's t over runs": Peer(lambda s: float(stats.ttest_ind(*s.mean(axis=0), equal_var=False).pvalue)),
    "statsmodels, mixedlm": Peer(_mixedlm, 50, "statsmodels", 16),
    "this model, the same samples": Peer(lambda s: float(fit(s[None], np.ones((1, len(s)))).p_value()[0]), 50, "", 16),
    "arch, BCa over documents": Peer(_bootstrap_by_arch, 400, "arch"),
    "ASO over runs, eps_min < .2": Peer(_stochastic_order),
    "deep-significance, ASO over runs": Peer(_stochastic_order_by_deepsig, 20, "deepsig"),
}


def compare_peers(designs: tuple[tuple[int, float], ...] = ((3, 0.0), (3, 0.02), (3, 0.05))) -> list[str]:
    """Return lines of a table: the share of equal systems that each test calls different."""
    lines = []
    for name, peer in PEERS.items():
        if peer.module and importlib.util.find_spec(peer.module) is None:
            lines.append(f"| {name} | – | – | not installed |" + " |" * (len(designs) - 1))
            continue
        shares = []
        for runs, spread in designs:
            drawn = normal(np.ones((peer.samples, peer.documents)), runs, spread, np.random.default_rng(runs))
            shares.append(f"{np.mean([peer.test(one) <= 0.05 for one in drawn]):.3f}")
        lines.append(f"| {name} | {peer.documents} | {peer.samples:,} | {' | '.join(shares)} |")
    return lines


# ------------------------------------------------------------------------------------------------------------- report
def summarise(cells: list[Cell]) -> list[str]:
    """Return lines of a table by scores, cluster sizes and documents, over the designs of three runs or more."""
    lines = []
    for shape in SHAPES:
        for name in dict.fromkeys(cell.clusters for cell in cells):
            for n in SIZES:
                own = [c for c in cells if (c.scores, c.clusters, c.n) == (shape, name, n) and c.runs >= 3]
                shares = f"{max(c.rejected for c in own):.3f} | {min(c.covered for c in own):.3f}"
                widths = f"{min(c.half_width for c in own):.3f} to {max(c.half_width for c in own):.3f}"
                if all(np.isnan(c.covered) for c in own):
                    shares, widths = "– | –", "–"
                lines.append(f"| {shape} | {name} | {n:,} | {shares} | {max(c.refused for c in own):.2f} | {widths} |")
    return lines


def main() -> int:
    """Measure, write the cells and the page, and print the page."""
    start, cells = perf_counter(), list(measure_all())
    with CELLS.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(one.name for one in fields(Cell))
        writer.writerows([round(x, 4) if isinstance(x, float) else x for x in astuple(cell)] for cell in cells)
    held = [cell for cell in cells if cell.n >= 20 and cell.runs >= 3 and cell.refused < 1]
    lines = [
        "## uncertainty",
        "",
        f"`python -m benchmarks.uncertainty`: {len(cells)} cells, {SAMPLES:,} samples, {perf_counter() - start:.0f} s.",
        "",
        f"Cells with 20 clusters or more and three runs or more: {len(held)}; highest rejection "
        f"{max(cell.rejected for cell in held):.3f}, lowest coverage {min(cell.covered for cell in held):.3f}.",
        "",
        "| scores | cluster sizes of | n | rejected at most | covered at least | refused at most | half width |",
        "|---|---|--:|--:|--:|--:|--:|",
        *summarise(cells),
        "",
        "Equal systems: how often each test finds a difference.",
        "",
        "| test | documents | samples | 3 runs, spread 0 | 3 runs, .02 | 3 runs, .05 |",
        "|---|--:|--:|--:|--:|--:|",
        *compare_peers(),
    ]
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
