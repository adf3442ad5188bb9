"""MAP of original/perturbed pairs: time per pair and per file, and growth with the number of tokens.

    plain = equation 2 as it is written: for every prefix, every token looked up in the prefix's set

Bars: a pair of 5,000 tokens under 10 ms; 2,000 pairs of 50 to 5,000 tokens under 2 s, through the module with all its
checks; time linear in tokens.

    python -m benchmarks.perturbation
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np

from eraser_hub.metrics.perturbation_map import PerturbationMap
from eraser_hub.metrics.rank_consistency import average_precision

RESULTS = Path(__file__).with_name("results_perturbation.md")
PAIRS, SHORTEST, LONGEST = 2000, 50, 5000
SIZES = (1250, 2500, 5000, 10000, 20000)
PLAIN_SIZES = (100, 500, 2000)


def plain_map(original: list[str], perturbed: list[str]) -> float:
    """Equation 2, a prefix at a time."""
    total = 0.0
    for i in range(1, len(perturbed) + 1):
        known = set(original[:i])
        total += sum(token in known for token in perturbed[:i]) / i
    return total / len(perturbed)


def ranking(size: int, random: np.random.Generator) -> tuple[list[str], list[str]]:
    """A text's tokens in two orders; words repeat as in texts (about half of them do)."""
    words = [f"w{word}" for word in random.integers(0, size, size)]
    return words, [words[at] for at in random.permutation(size)]


def pairs(random: np.random.Generator) -> tuple[list[dict], list[dict]]:
    """Predictions and references of 2,000 pairs, lengths even between 50 and 5,000."""
    predictions, references = [], []
    for at, size in enumerate(random.integers(SHORTEST, LONGEST + 1, PAIRS).tolist()):
        first, second = ranking(size, random)
        predictions += [{"id": at, "rationale_tokens": [first]}, {"id": f"{at}p", "rationale_tokens": [second]}]
        references.append({"id": at, "sample_type": "ori", "rel_ids": [f"{at}p"]})
        references.append({"id": f"{at}p", "sample_type": "disturb", "rel_ids": []})
    return predictions, references


def best(work: Callable[[], object], repeats: int = 5) -> float:
    """The least CPU seconds of several runs."""
    seconds = []
    for _ in range(repeats):
        start = process_time()
        work()
        seconds.append(process_time() - start)
    return min(seconds)


def main() -> int:
    random = np.random.default_rng(0)
    lines = [
        "## perturbation_map",
        "",
        f"`python -m benchmarks.perturbation`, Python {platform.python_version()}, numpy {np.__version__}, "
        f"{platform.machine()}. CPU seconds of one core, the best of five runs.",
        "",
        "| tokens of a pair | plain (ms) | ours (ms) | ratio |",
        "|---|---|---|---|",
    ]
    for size in PLAIN_SIZES:
        first, second = ranking(size, random)
        if abs(plain_map(first, second) - average_precision(first, second)[0]) > 1e-9:
            print(f"plain and ours differ at {size} tokens", file=sys.stderr)
            return 1
        plain, ours = best(lambda: plain_map(first, second), 3), best(lambda: average_precision(first, second))  # noqa: B023
        lines.append(f"| {size:,} | {1000 * plain:.2f} | {1000 * ours:.3f} | {plain / ours:,.0f} |")
    lines += ["", "| tokens of a pair | ours (ms) | ns per token |", "|---|---|---|"]
    measured = {}
    for size in SIZES:
        first, second = ranking(size, random)
        measured[size] = best(lambda: average_precision(first, second), 9)  # noqa: B023
        lines.append(f"| {size:,} | {1000 * measured[size]:.2f} | {1e9 * measured[size] / size:.0f} |")
    predictions, references = pairs(random)
    tokens = sum(len(row["rationale_tokens"][0]) for row in predictions)
    whole = best(lambda: PerturbationMap().compute(predictions=predictions, references=references), 3)
    pair = measured[LONGEST]
    lines += [
        "",
        f"{PAIRS:,} pairs of {SHORTEST} to {LONGEST:,} tokens ({tokens:,} in all) through the module, checks included: "
        f"**{whole:.2f} s** (bar 2 s: {'met' if whole < 2 else 'MISSED'}), {1e9 * whole / tokens:.0f} ns per token.",
        f"A pair of {LONGEST:,} tokens: **{1000 * pair:.2f} ms** (bar 10 ms: {'met' if pair < 0.01 else 'MISSED'}).",
        f"{SIZES[-1] // SIZES[0]} times the tokens take {measured[SIZES[-1]] / measured[SIZES[0]]:.0f} times as long.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    RESULTS.write_text(text, encoding="utf-8")
    return 0 if whole < 2 and pair < 0.01 else 1


if __name__ == "__main__":
    sys.exit(main())
