"""A prompted language model on real texts: how well it answers, and the scores of its attributions.

    python -m benchmarks.language_model MODEL          a folder, a GGUF file, or a Hub id

Real corpora are read from ERASER_CORPORA. Rows of one document are taken that have evidence in its first ``--tokens``
tokens, at most ``--rows`` of them in the file's order, the labels in turn; documents are cut there, and groups of
evidence that do not lie in them whole are left out. Gradients and random scores explain all rows; occlusion and LIME,
which take many passes, the first ``--few``, with the contributions of the prompt's parts. Stages come
one after the other, each for all configs; what is finished is not done again.
Seconds are those of the processor, with ``--device`` those that pass.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from .explain_table import ROOT, call

CONFIGS = {
    "movies": "NEG=negative,POS=positive",
    "boolq": "False=no,True=yes",
    "multirc": "",
    "fever": "",
    "evidence_inference": "",
}
WHOLE = "gradient,input-x-gradient,random"
FEW = ["occlusion", "lime"]
EXAMPLES = 30  # rows behind those, as a training split: examples of the prompts
KEYS = {
    "agreement": "auprc token_macro_f1",
    "faithfulness": "comprehensiveness sufficiency",
}


def find_documents(row: dict[str, Any]) -> list[str]:
    """The documents of a row, as the release names them."""
    named = row.get("docids") or [part["docid"] for group in row["evidences"] for part in group]
    return list(dict.fromkeys(named or [row["annotation_id"]]))


def cut(corpus: Path, target: Path, tokens: int, rows: int) -> int:
    """Write a corpus folder of cut documents; how many rows its validation split holds."""
    (target / "docs").mkdir(parents=True, exist_ok=True)
    by_label: dict[str, list[dict[str, Any]]] = {}
    for line in (corpus / "val.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        texts = {name: shorten((corpus / "docs" / name).read_text("utf-8"), tokens) for name in find_documents(row)}
        sizes = {name: len(text.split()) for name, text in texts.items()}
        inside = [group for group in row["evidences"] if all(at["end_token"] <= sizes[at["docid"]] for at in group)]
        if inside and all(sizes.values()) and len(sizes) == 1:
            by_label.setdefault(row["classification"], []).append({**row, "evidences": inside})
            for name, text in texts.items():
                (target / "docs" / name).write_text(text, "utf-8")
    mixed = [row for row in chain.from_iterable(zip_longest(*by_label.values())) if row is not None]
    for split, own in (("val", mixed[:rows]), ("train", mixed[rows : rows + EXAMPLES] or mixed[:1])):
        (target / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in own), "utf-8")
    return min(len(mixed), rows)


def shorten(text: str, tokens: int) -> str:
    """The lines of a text that begin within the first tokens, the last one cut there."""
    lines, left = [], tokens
    for line in text.split("\n"):
        words = line.split()[:left]
        lines.append(" ".join(words))
        left -= len(words)
        if left <= 0:
            break
    return "\n".join(lines)


def explain(work: Path, config: str, methods: list[str], rows: int, options: argparse.Namespace) -> Iterator[str]:
    """Explain and score the first rows of a corpus; a line of the table each method."""
    how = f"--model {options.model} --threads {options.threads} --precision {options.precision} --bins 50 --chunk 5"
    how += f" --label-words {CONFIGS[config]}" if CONFIGS[config] else ""
    how += f" --device {options.device}" if options.device else ""
    how += " --set calibrate=true" if options.calibrate else ""
    how += " --set lime_samples=100 --measure prompt-parts" if methods is FEW else ""
    data, out = f"--dataset {work / 'hub' / 'eraser'} --config {config} --split validation", work / f"{config}.{rows}.x"
    files = {method: out.with_suffix(f".{method}.jsonl") for method in methods}
    spent = 0.0
    if not all(file.exists() for file in files.values()):
        spent = measure_seconds(options)
        listed = ",".join(methods)
        call(
            f"explain {data} {how} --method {listed} --quiet --resume --limit {rows} --out {out.with_suffix('.jsonl')}"
        )
        spent = measure_seconds(options) - spent
    for method, file in files.items():
        scores = file.with_suffix(".scores.json")
        call(f"score {data} --predictions {file} --score-file {scores} --force --only-predicted --aopc-thresholds 0.5")
        found = json.loads(scores.read_text("utf-8"))
        numbers = [found[part][key] for part, keys in KEYS.items() for key in keys.split()]
        accuracy, count = found["faithfulness"]["accuracy"], sum(1 for _ in file.open("rb"))
        cells = [config, method, str(count), f"{accuracy:.2f}", *(f"{n:.3f}" for n in numbers)]
        cells.append(f"{spent / count:.1f} s (all methods)" if spent else "–")
        yield f"| {' | '.join(cells)} |"


def measure_seconds(options: argparse.Namespace) -> float:
    """Seconds of processor time of the finished commands; with a device, where processors wait, those of the clock."""
    if options.device:
        return time.perf_counter()
    times = os.times()
    return times.children_user + times.children_system


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "language_model")
    parser.add_argument("--configs", default=",".join(CONFIGS))
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--whole", type=int, help="rows that gradients explain; by default all")
    parser.add_argument("--few", type=int, default=10)
    parser.add_argument("--stages", default="whole,few")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="auto", help="as of explain; bfloat16 is faster on some processors")
    parser.add_argument("--device", default="", help="as of explain")
    parser.add_argument("--methods", default=WHOLE, help="of the stage whole")
    parser.add_argument("--calibrate", action="store_true")
    options = parser.parse_args()
    corpora = Path(os.environ.get("ERASER_CORPORA", ROOT.parent / "shared" / "corpora")).resolve()
    if not (corpora / "movies" / "val.jsonl").is_file():
        print(f"skipped: no movies corpus in {corpora} (set ERASER_CORPORA)", file=sys.stderr)
        return 1
    configs = options.configs.split(",")
    for config in configs:
        count = cut(corpora / config, options.work / "raw" / config, options.tokens, options.rows)
        print(f"{config}: {count} rows", flush=True)
        call(f"build eraser --source {options.work / 'raw'} --config {config} --out {options.work / 'hub'}")
    lines: list[str] = []
    for stage in options.stages.split(","):
        for config in configs:
            wanted = options.methods.split(","), options.whole or options.rows
            methods, rows = wanted if stage == "whole" else (FEW, options.few)
            new = explain(options.work, config, methods, rows, options)
            for line in new:
                lines.append(line)
                print(line, flush=True)
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
