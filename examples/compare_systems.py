"""Compare two systems for a paper: paired tests on documents that both answered, corrected over the scores one reports.

python examples/compare_systems.py --hub hub --config movies --split validation ours=ours.jsonl theirs=theirs.jsonl

The same from the command line, with more forms of output: `eraser-hub compare .. --format latex`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import evaluate
from datasets import load_dataset

import eraser_hub


def main() -> None:
    """Score both, compare them, and print a line a score: the difference, its interval, its corrected p-value."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("systems", nargs=2, metavar="NAME=FILE", help="two files in the results format")
    options.add_argument("--hub", type=Path, default=Path("hub"), help="the folder that `make quickstart` built")
    options.add_argument("--config", default="movies")
    options.add_argument("--split", default="validation")
    asked = options.parse_args()

    rows = load_dataset(str(asked.hub / "eraser"), asked.config, split=asked.split)
    agreement = evaluate.load(str(asked.hub / "eraser_agreement"))
    statistics = {}
    for system in asked.systems:
        name, _, path = system.partition("=")
        predictions = [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]
        statistics[name] = agreement.statistics(predictions, rows)
    compared = eraser_hub.compare(*statistics.values(), names=list(statistics))
    (pair,) = compared["comparisons"]
    print(f"{pair['first']} - {pair['second']}, {compared['instances']} annotations, {compared['clusters']} documents")
    for key in compared["family"]:
        test = pair["keys"][key]
        low, high = test["ci"]
        print(
            f"{key}: {test['difference']:+.3f} [{low:+.3f}, {high:+.3f}], p = {test['p_holm']:.4f}, {test['verdict']}"
        )
    for note in compared["notes"]:
        print(note)


if __name__ == "__main__":
    main()
