"""``eraser-hub score`` beside ERASER's own scorer, at the paper's shapes: CPU seconds of whole processes less start-up.

python -m benchmarks.reference CHECKOUT PYTHON [SHAPE ..]     CHECKOUT: a folder that holds rationale_benchmark/;
                               PYTHON: the interpreter of an environment that it runs in (scikit-learn 1.2.2)

Start-up is the same command on one instance. The shapes are those of `benchmarks.scoring`; ours scores them in one process.
"""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.scoring import FOLDER, SHAPES, cpu_seconds, first_part, generate

# the papers' seven; e-SNLI's training split has 56 times the instances of its test split
NAMES = [name for name in SHAPES if not name.startswith("esnli_train")]
RUNS = 5


def seconds(command: list[str], cwd: Path, runs: int) -> float:
    """CPU seconds of a command's process, the median."""
    times = list[float]()
    for _ in range(runs):
        begin = cpu_seconds()
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")
        times.append(cpu_seconds() - begin)
    return statistics.median(times)


def both(corpus: Path, checkout: Path, python: str, runs: int) -> tuple[float, float]:
    """Seconds of ours and of the reference scorer for a corpus; ``runs`` of the latter."""
    options = ["--split", "test", "--results", f"{corpus / 'predictions.jsonl'}"]
    out = f"{corpus.with_name('scores.json')}"
    ours = [sys.executable, "-m", "eraser_hub", "score", *options, "--data-dir", f"{corpus}", "--score-file", out]
    theirs = [python, "-m", "rationale_benchmark.metrics", *options, "--data_dir", f"{corpus}", "--score_file", out]
    return seconds([*ours, "--num-proc", "1"], FOLDER.parent, RUNS), seconds(theirs, checkout, runs)


def main(arguments: list[str]) -> int:
    if len(arguments) < 2 or not set(arguments[2:]) <= set(NAMES):
        print(f"expected CHECKOUT PYTHON [SHAPE ..], shapes of {', '.join(NAMES)}", file=sys.stderr)
        return 2
    checkout, python = Path(arguments[0]).resolve(), arguments[1]
    ratios, start = list[float](), (0.0, 0.0)
    for name in arguments[2:] or NAMES:
        with tempfile.TemporaryDirectory() as place:
            corpus = Path(place) / "corpus"
            generate(corpus, name)
            if not ratios:
                start = both(first_part(corpus, name, 1), checkout, python, RUNS)
                print(f"start-up: eraser-hub {start[0]:.2f} s, the reference scorer {start[1]:.2f} s\n")
                print("| shape | instances | eraser-hub, s | reference, s | ratio |\n|---|---:|---:|---:|---:|")
            # once: the reference scorer takes up to minutes
            ours, theirs = both(corpus, checkout, python, 1)
        ratios.append((theirs - start[1]) / (ours - start[0]))
        print(f"| {name} | {SHAPES[name][0]} | {ours:.2f} | {theirs:.2f} | {ratios[-1]:.0f} |", flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"\nGeometric mean of the ratios: {mean:.0f}; lowest: {min(ratios):.0f}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
