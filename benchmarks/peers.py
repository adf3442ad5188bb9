"""``explain``'s token scores beside other libraries': one MiniLM, the same texts and passes, one thread, CPU seconds.

python -m benchmarks.peers          whichever of captum, ferret, ICE, interpreto, lime, shap and
                                    transformers-interpret are installed
python -m benchmarks.peers lime     the rows of some methods, printed only

Each side scores every text for the label that the model predicts, which it has to find out itself. Texts are made here,
of common English words. The others take one text at a time; `explain` takes them as a chunk, as it always does.
"""

from __future__ import annotations

import importlib.metadata
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.explain import common_words, network_and_tokenizer

os.environ.setdefault("HF_HUB_OFFLINE", "1")
STEPS, SAMPLES, BATCH, RUNS = 20, 50, 16, 3
SLOW = 10  # times as long as ours: such a side explains one text of a row, once
# words of a text, a sub-word each, and texts
LENGTHS = {"short": (20, 6), "long": (330, 2)}
RESULTS = Path(__file__).with_name("results_peers.md")
Explain = Callable[[Sequence[str]], None]
# what cannot stand in the table, and why
ABSENT = {
    "inseq": "explains what a model generates; takes no sequence classifier",
    "EvalxNLP": "the package index has none of the name",
}


class Model(NamedTuple):
    """A classifier with its tokenizer."""

    network: Any
    tokenizer: Any


def each(explain: Callable[[str], object]) -> Explain:
    """A library that takes one text at a time."""

    def explain_all(texts: Sequence[str]) -> None:
        for text in texts:
            explain(text)

    return explain_all


def label_of(model: Model, inputs: Any) -> int:
    """The label that the model predicts."""
    import torch

    with torch.no_grad():
        return int(model.network(**inputs).logits.argmax())


def ours(model: Model, method: str) -> Explain:
    """`explain` without the erased inputs that it makes of the scores."""
    from eraser_hub.attribution import build_settings, open_model
    from eraser_hub.attribution.engine import Engine
    from eraser_hub.attribution.instances import make_text_instance
    from eraser_hub.attribution.predictions import compute_scores
    from eraser_hub.attribution.text import Text

    opened = open_model((model.network, model.tokenizer), device="cpu", precision="float32")
    # of kernel SHAP the text with all its words and with none come beside its samples: captum counts them in
    calls = {"integrated-gradients": f"(steps={STEPS})", "lime": f"(samples={SAMPLES})"}
    calls["kernel-shap"] = f"(samples={SAMPLES - 1})"
    settings = build_settings(method=method + calls.get(method, ""), erase="mask")

    def explain(texts: Sequence[str]) -> None:
        readings = [opened.read(make_text_instance(str(at), text)) for at, text in enumerate(texts)]
        engine = Engine(opened, readings, settings.erase, settings.batch_size)
        chunk = [Text(reading.instance, reading, settings, opened.notes) for reading in readings]
        for text, p in zip(chunk, engine.proba_of_whole(readings), strict=True):
            text.p, text.label = p, int(p.argmax())
        compute_scores(opened, chunk, engine)

    return explain


def by_captum(model: Model, method: str) -> Explain:
    """The loop of captum's tutorials: embeddings in, a probability out; words as features to perturb inputs."""
    import torch
    from captum import attr

    def explain(text: str) -> None:
        inputs = model.tokenizer(text, return_tensors="pt")
        ids, visible, label = inputs["input_ids"], inputs["attention_mask"], label_of(model, inputs)
        with torch.no_grad():
            vectors = model.network.get_input_embeddings()(ids)

        def p_of(points: Any, **inputs: Any) -> Any:
            return model.network(attention_mask=visible.expand(len(points), -1), **inputs).logits.softmax(-1)[:, label]

        def of_vectors(points: Any) -> Any:
            return p_of(points, inputs_embeds=points)

        def of_ids(points: Any) -> Any:
            with torch.no_grad():
                return p_of(points, input_ids=points)

        words = torch.tensor([[0 if word is None else word + 1 for word in inputs.word_ids()]])
        erased = torch.full_like(ids, model.tokenizer.mask_token_id)
        features: dict[str, Any] = {"baselines": erased, "feature_mask": words, "perturbations_per_eval": BATCH}
        if method == "gradient":
            attr.Saliency(of_vectors).attribute(vectors, abs=False).norm(dim=-1)
        elif method == "input-x-gradient":
            attr.InputXGradient(of_vectors).attribute(vectors).sum(-1)
        elif method == "integrated-gradients":
            how: dict[str, Any] = {"n_steps": STEPS, "internal_batch_size": BATCH, "return_convergence_delta": True}
            products, _ = attr.IntegratedGradients(of_vectors).attribute(vectors, **how)
            products.sum(-1)
        elif method == "occlusion":
            attr.FeatureAblation(of_ids).attribute(ids, **features)
        elif method == "lime":
            attr.Lime(of_ids).attribute(ids, n_samples=SAMPLES, **features)
        else:
            attr.KernelShap(of_ids).attribute(ids, n_samples=SAMPLES, **features)

    return each(explain)


def by_ferret(model: Model, method: str) -> Explain:
    """ferret's explainers."""
    from ferret import GradientExplainer, IntegratedGradientExplainer, LIMEExplainer

    arguments: dict[str, Any] = {}
    if method == "integrated-gradients":
        one = IntegratedGradientExplainer(model.network, model.tokenizer, multiply_by_inputs=True)
        arguments = {"call_args": {"n_steps": STEPS, "internal_batch_size": BATCH}}
    elif method == "lime":
        one = LIMEExplainer(model.network, model.tokenizer)
        arguments = {"call_args": {"num_samples": SAMPLES, "batch_size": BATCH}}
    else:
        one = GradientExplainer(model.network, model.tokenizer, multiply_by_inputs=method == "input-x-gradient")

    return each(lambda text: one(text, label_of(model, model.tokenizer(text, return_tensors="pt")), **arguments))


def by_interpreto(model: Model, method: str) -> Explain:
    """interpreto's methods, by words, which find the label by themselves."""
    import interpreto

    how: dict[str, Any] = {"batch_size": BATCH, "granularity": interpreto.Granularity.WORD}
    kinds = {
        "gradient": (interpreto.Saliency, {"input_x_gradient": False}),
        "input-x-gradient": (interpreto.Saliency, {"input_x_gradient": True}),
        "integrated-gradients": (interpreto.IntegratedGradients, {"n_perturbations": STEPS}),
        "occlusion": (interpreto.Occlusion, {}),
        "lime": (interpreto.Lime, {"n_perturbations": SAMPLES}),
        "kernel-shap": (interpreto.KernelShap, {"n_perturbations": SAMPLES}),
    }
    kind, more = kinds[method]
    return each(kind(model.network, model.tokenizer, **how, **more).explain)


def _answers(model: Model) -> Callable[[Any], Any]:
    """Probabilities of texts, in batches."""
    import torch

    def answers(texts: Any) -> Any:
        rows = []
        for start in range(0, len(texts), BATCH):
            inputs = model.tokenizer(
                list(texts[start : start + BATCH]), return_tensors="pt", padding=True, truncation=True
            )
            with torch.inference_mode():
                rows.append(model.network(**inputs).logits.softmax(-1).numpy())
        return np.concatenate(rows)

    return answers


def by_lime(model: Model, method: str) -> Explain:
    """lime's text explainer, all words as features, which replaces words by the mask."""
    from lime.lime_text import LimeTextExplainer

    one = LimeTextExplainer(bow=False, mask_string=model.tokenizer.mask_token, random_state=0, split_expression=r"\s+")

    how = {"num_samples": SAMPLES, "top_labels": 1}
    return each(lambda text: one.explain_instance(text, _answers(model), num_features=len(text.split()), **how))


def by_shap(model: Model, method: str) -> Explain:
    """shap's explainer of texts (Partition), with as many evaluations."""
    import shap

    one = shap.Explainer(_answers(model), shap.maskers.Text(model.tokenizer), output_names=["NEG", "POS"], silent=True)

    def explain(texts: Sequence[str]) -> None:
        one(list(texts), max_evals=SAMPLES, batch_size=BATCH, silent=True)

    return explain


def by_transformers_interpret(model: Model, method: str) -> Explain:
    """transformers-interpret: integrated gradients of the embedding layer."""
    from transformers_interpret import SequenceClassificationExplainer

    one = SequenceClassificationExplainer(model.network, model.tokenizer)

    return each(lambda text: one(text, n_steps=STEPS, internal_batch_size=BATCH))


def by_ice(model: Model, method: str) -> Explain:
    """ICE's extractors, which find the label by themselves; the gradients are the logit's."""
    from ice import get_extractor

    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "gradient": ("gradient", {"multiply_by_input": False}),
        "input-x-gradient": ("gradient", {}),
        "integrated-gradients": ("integrated_gradients", {"n_steps": STEPS}),
        "lime": ("lime", {"n_samples": SAMPLES}),
    }
    kind, more = kinds[method]
    one = get_extractor(kind, model.network, model.tokenizer, device="cpu", **more)

    def explain(text: str) -> None:
        inputs = model.tokenizer(text, return_tensors="pt")
        one.get_importance_scores(inputs["input_ids"], inputs["attention_mask"])

    return each(explain)


GRADIENTS = ("gradient", "input-x-gradient", "integrated-gradients")
METHODS = (*GRADIENTS, "occlusion", "lime", "kernel-shap")
PEERS: dict[str, tuple[Callable[[Model, str], Explain], tuple[str, ...]]] = {
    "captum": (by_captum, METHODS),
    "ferret-xai": (by_ferret, (*GRADIENTS, "lime")),
    "ice-faithfulness": (by_ice, (*GRADIENTS, "lime")),
    "interpreto": (by_interpreto, METHODS),
    "lime": (by_lime, ("lime",)),
    "shap": (by_shap, ("kernel-shap",)),
    "transformers-interpret": (by_transformers_interpret, ("integrated-gradients",)),
}


def texts_of(words: int, count: int) -> list[str]:
    """Texts of common words."""
    random = np.random.default_rng(7)
    vocabulary = common_words()[:2000]
    return [" ".join(random.choice(vocabulary, words)) for _ in range(count)]


def seconds(explain: Explain, texts: Sequence[str]) -> float:
    """CPU seconds of this process for all texts."""
    start = time.process_time()
    explain(texts)
    return time.process_time() - start


def sides(model: Model, method: str, notes: list[str]) -> Iterator[tuple[str, Explain]]:
    """Who takes part in a row; why another does not is noted once."""
    explain = ours(model, method)
    explain(["a quiet film"])
    yield "eraser-hub", explain
    for name, (make, methods) in PEERS.items():
        if method not in methods:
            continue
        try:
            explain = make(model, method)
            explain(["a quiet film"])
        except Exception as error:  # other people's code, of any version: the row goes on without it
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            notes.append(f"{name}, {method}: {type(error).__name__}: {first[:150]}")
        else:
            yield name, explain


def row(model: Model, method: str, length: str, notes: list[str]) -> str:
    """A line of the table: our seconds a text, and each other's as a multiple of them."""
    texts = texts_of(*LENGTHS[length])
    known = dict(sides(model, method, notes))  # each has explained a text: imports and caches are not measured
    first = {name: seconds(explain, texts[:1]) for name, explain in known.items()}
    multiples = {name: f"{one / first['eraser-hub']:.0f} (one text)" for name, one in first.items()}
    times = {name: list[float]() for name, one in first.items() if one <= SLOW * first["eraser-hub"]}
    for _ in range(RUNS):
        for name, runs in times.items():
            runs.append(seconds(known[name], texts))
    base = statistics.median(times["eraser-hub"])
    multiples |= {name: f"{statistics.median(runs) / base:.2f}" for name, runs in times.items()}
    cells = [multiples.get(name, "–") for name in PEERS]
    return f"| {method} | {length} | {base / len(texts):.3f} | " + " | ".join(cells) + " |"


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def head(versions: dict[str, str], load: float) -> list[str]:
    """What stands above the table's lines."""
    (short, shorts), (long, longs) = LENGTHS["short"], LENGTHS["long"]
    return [
        "## peers: token scores beside other libraries",
        "",
        f"`python -m benchmarks.peers`: MiniLM (float32, one thread), {shorts} texts of {short} words and {longs} of "
        f"{long}; {STEPS} steps, {SAMPLES} samples, batches of {BATCH} (ours: its own), words masked; integrated "
        "gradients with their convergence delta where the library tells it (ours, captum). CPU seconds a text of "
        f"eraser-hub, and the others' as multiples of them (above 1: eraser-hub is faster); medians of {RUNS}, in "
        f"turn, of who takes over {SLOW} times as long one text once; load {load:.1f} at the start.",
        "",
        "| method | texts | eraser-hub, s | " + " | ".join(f"{n} {v}".strip() for n, v in versions.items()) + " |",
        "|---|---|---|" + "---|" * len(PEERS),
    ]


def foot(versions: dict[str, str], notes: Sequence[str]) -> list[str]:
    """Who does not stand in the table, and why."""
    absent = {name: "not installed here" for name, version in versions.items() if not version} | ABSENT
    return [
        "",
        *(f"- {name}: {why}." for name, why in absent.items()),
        *(f"- {note}" for note in dict.fromkeys(notes)),
        "",
    ]


def main(methods: Sequence[str]) -> None:
    import torch

    torch.set_num_threads(1)
    unknown = sorted(set(methods) - set(METHODS))
    if unknown:
        sys.exit(f"expected methods of {', '.join(METHODS)}, found {', '.join(unknown)}")
    model, notes = Model(*network_and_tokenizer("MiniLM")), list[str]()
    versions = {name: _installed(name) for name in PEERS}
    lines = head(versions, os.getloadavg()[0])
    for method in methods or METHODS:
        for length in LENGTHS:
            lines.append(row(model, method, length, notes))
            print(lines[-1], flush=True)
    lines += foot(versions, notes)
    if not methods:
        RESULTS.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
