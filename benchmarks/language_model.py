"""A prompted language model on real texts: how well it answers, and the scores of its attributions, quotes and steps.

    python -m benchmarks.language_model MODEL          a folder, a GGUF file, or a Hub id

Real corpora are read from ERASER_CORPORA. Of movies, boolq, multirc and fever the rows are taken whose evidence lies in
the first ``--tokens`` tokens of their documents, at most ``--rows`` of them in the file's order, both labels in turn;
documents are cut there, after a whole line. Gradients and attention explain all rows; integrated gradients, occlusion
and LIME, which take many passes, the first ``--few``.
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

CONFIGS = {"movies": "NEG=negative,POS=positive", "boolq": "False=no,True=yes", "multirc": "", "fever": ""}
WHOLE = ["gradient", "input-x-gradient", "attention", "random"]
FEW = ["integrated-gradients", "occlusion", "lime"]
TESTS = "early_answering,filler,suggested_answer,insertion"
QUOTE_KEYS = ("answered", "in_text", "invented", "label_flip_redacted", "label_flip_random", "citation_sentence_f1")
STEP_KEYS = ("reasoned", "steps_per_instance", "early_answering_aoc", "flip_filler", "flip_suggested_answer")
STEP_KEYS += ("flip_insertion",)
KEYS = {
    "agreement": "auprc token_macro_f1",
    "faithfulness": "comprehensiveness sufficiency",
}


def find_documents(row: dict[str, Any]) -> list[str]:
    """The documents of a row, as the release names them."""
    named = row.get("docids") or [part["docid"] for group in row["evidences"] for part in group]
    return list(dict.fromkeys(named or [row["annotation_id"]]))


def cut(corpus: Path, target: Path, tokens: int, rows: int) -> int:
    """Write a corpus folder of cut documents; how many rows it holds."""
    (target / "docs").mkdir(parents=True, exist_ok=True)
    by_label: dict[str, list[dict[str, Any]]] = {}
    for line in (corpus / "val.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        texts = {name: shorten((corpus / "docs" / name).read_text("utf-8"), tokens) for name in find_documents(row)}
        sizes = {name: len(text.split()) for name, text in texts.items()}
        ends = [part["end_token"] <= sizes[part["docid"]] for group in row["evidences"] for part in group]
        if ends and all(ends) and all(sizes.values()) and len(sizes) == 1:
            by_label.setdefault(row["classification"], []).append(row)
            for name, text in texts.items():
                (target / "docs" / name).write_text(text, "utf-8")
    kept = [row for row in chain.from_iterable(zip_longest(*by_label.values())) if row is not None][:rows]
    (target / "val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept), "utf-8")
    return len(kept)


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


def measure(work: Path, config: str, words: str, options: argparse.Namespace) -> Iterator[str]:
    """Explain and score a corpus; a line of the table each method."""
    model = f"--model {options.model} --threads {options.threads}" + (f" --label-words {words}" if words else "")
    if options.calibrate:
        model += " --set calibrate=true"
    for method in [*WHOLE, *FEW]:
        limit = f" --limit {options.few}" if method in FEW else ""
        out = work / f"{config}.{method}.jsonl"
        started = time.perf_counter()
        own = {"integrated-gradients": " --set steps=10", "lime": " --set lime_samples=100"}.get(method, "")
        data = f"--dataset {work / 'hub' / 'eraser'} --config {config} --split validation"
        call(f"explain {data} {model} --method {method}{own} --quiet --resume{limit} --out {out}")
        seconds = time.perf_counter() - started
        scores = work / f"{config}.{method}.scores.json"
        few = " --only-predicted" if method in FEW else ""
        call(f"score {data} --predictions {out} --score-file {scores} --force{few}")
        found = json.loads(scores.read_text("utf-8"))
        numbers = [found[part][key] for part, keys in KEYS.items() for key in keys.split()]
        accuracy = found["faithfulness"]["accuracy"]
        rows = sum(1 for _ in out.open("rb"))
        yield (
            f"| {config} | {method} | {rows} | {accuracy:.2f} | "
            + " | ".join(f"{n:.3f}" for n in numbers)
            + (f" | {seconds / rows:.1f} |")
        )


def measure_asking(work: Path, config: str, options: argparse.Namespace) -> str:
    """Ask for quotes of some rows and for tested reasoning of fewer; a line of the second table."""
    data = f"--dataset {work / 'hub' / 'eraser'} --config {config} --split validation"
    model = f"--model {options.model} --threads {options.threads} --cache {work / 'answers'} --quiet --force"
    asked = {
        "ask": f"--max-tokens 200 --limit {2 * options.few_asked} --consistency redacted,random",
        "steps": f"--max-tokens 160 --limit {options.few_asked} --reasoning-tests {TESTS}",
    }
    numbers: list[float | None] = []
    for name, how in asked.items():
        out, scores = work / f"{config}.{name}.jsonl", work / f"{config}.{name}.scores.json"
        call(f"ask {data} {model} {how} --out {out}")
        call(f"score {data} --predictions {out} --score-file {scores} --force --only-predicted")
        found = json.loads(scores.read_text("utf-8"))
        numbers += [found.get(key) for key in (QUOTE_KEYS if name == "ask" else STEP_KEYS)]
    return f"| {config} | " + " | ".join("–" if n is None else f"{n:.2f}" for n in numbers) + " |"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "language_model")
    parser.add_argument("--configs", default=",".join(CONFIGS))
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--few", type=int, default=10)
    parser.add_argument("--few-asked", type=int, default=0, help="ask for the reasoning of so many, quotes of twice")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--calibrate", action="store_true")
    options = parser.parse_args()
    corpora = Path(os.environ.get("ERASER_CORPORA", ROOT.parent / "shared" / "corpora")).resolve()
    if not (corpora / "movies" / "val.jsonl").is_file():
        print(f"skipped: no movies corpus in {corpora} (set ERASER_CORPORA)", file=sys.stderr)
        return 1
    head = ("config", "method", "texts", "accuracy", "AUPRC", "token F1", "comprehensiveness", "sufficiency", "s/text")
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for config in options.configs.split(","):
        count = cut(corpora / config, options.work / "raw" / config, options.tokens, options.rows)
        print(f"{config}: {count} rows", flush=True)
        call(f"build eraser --source {options.work / 'raw'} --config {config} --out {options.work / 'hub'}")
        for line in measure(options.work, config, CONFIGS[config], options):
            lines.append(line)
            print(line, flush=True)
    print("\n".join(lines))
    if options.few_asked:
        asked_head = ("config", *QUOTE_KEYS, *STEP_KEYS)
        asked = ["| " + " | ".join(asked_head) + " |", "|---" * len(asked_head) + "|"]
        asked += [measure_asking(options.work, config, options) for config in options.configs.split(",")]
        print("\n".join(asked))
    return 0


if __name__ == "__main__":
    sys.exit(main())
