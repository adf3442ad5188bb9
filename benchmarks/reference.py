"""``eraser-hub score`` beside ERASER's own scorer, at the paper's shapes: CPU seconds of whole processes less start-up.

python -m benchmarks.reference CHECKOUT PYTHON [SHAPE ..]     CHECKOUT: a folder that holds rationale_benchmark/;
                               PYTHON: the interpreter of an environment that it runs in (scikit-learn 1.2.2)

Start-up is the same command on one instance of movies' shape. Ours scores in one process.
"""

from __future__ import annotations

import math
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.shapes import SHAPES, generate

ROOT = Path(__file__).resolve().parents[1]
RUNS = 15


def cpu_seconds() -> float:
    """CPU seconds of the processes that this one waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(command: list[str], cwd: Path) -> float:
    """CPU seconds of a command's process."""
    begin = cpu_seconds()
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")
    return cpu_seconds() - begin


def ours(corpus: Path) -> float:
    """CPU seconds of `eraser-hub score`."""
    files = ["--dataset", f"{corpus}", "--split", "test", "--predictions", f"{corpus / 'predictions.jsonl'}"]
    scores = ["--out", f"{corpus.with_name('ours.json')}"]
    return seconds([sys.executable, "-m", "eraser_hub", "score", *files, *scores], ROOT)


def theirs(corpus: Path, checkout: Path, python: str) -> float:
    """CPU seconds of the reference scorer."""
    files = ["--data_dir", f"{corpus}", "--split", "test", "--results", f"{corpus / 'predictions.jsonl'}"]
    scores = ["--score_file", f"{corpus.with_name('scores.json')}"]
    return seconds([python, "-m", "rationale_benchmark.metrics", *files, *scores], checkout)


def net(scorer: Callable[[Path], float], corpus: Path, one: Path, runs: int) -> float:
    """Seconds less start-up, which is taken right after, since the machine's speed changes: the median."""
    return statistics.median(scorer(corpus) - scorer(one) for _ in range(runs))


def main(arguments: list[str]) -> int:
    if len(arguments) < 2 or not set(arguments[2:]) <= SHAPES.keys():
        print(f"expected CHECKOUT PYTHON [SHAPE ..], shapes of {', '.join(SHAPES)}", file=sys.stderr)
        return 2
    reference = partial(theirs, checkout=Path(arguments[0]).resolve(), python=arguments[1])
    ratios = list[float]()
    print("| shape | instances | eraser-hub, s | reference, s | ratio |\n|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as place:
        one = Path(place) / "one"
        generate(one, "movies", 1)
        for name in arguments[2:] or SHAPES:
            corpus = Path(place) / name
            generate(corpus, name)
            own, other = net(ours, corpus, one, RUNS), net(reference, corpus, one, 1)  # the reference takes minutes
            ratios.append(other / own)
            print(f"| {name} | {SHAPES[name][0]} | {own:.3f} | {other:.2f} | {ratios[-1]:.0f} |", flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"\nGeometric mean of the ratios: {mean:.0f}; lowest: {min(ratios):.0f}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
