"""What a run costs, said before it begins: how many inputs at most, and how long they take at the rate of the model."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from eraser_hub.attribution.adapter import Notes
from eraser_hub.attribution.erasure import full
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.runner import Runner
from eraser_hub.attribution.settings import ERASING_METHODS, GIVEN, SPANS, ExplainSettings
from eraser_hub.records.errors import DataError
from eraser_hub.records.operators import INFILL

from . import orderings, shapley, soft
from .play import EXACT_UNITS
from .units import unit_bounds

FILLED = "--infill"  # texts that the masked language model reads
PROBED = 4  # texts by which the rate is measured, each twice: the first time warms the model up


def inputs_of(one: Instance, settings: ExplainSettings, kind: str) -> Counter[str]:
    """The most inputs of an instance, by what asks for them; equal ones run once, so that there may be fewer.

    Gradients and attention count as one input, integrated gradients as their steps.
    """
    tokens, units = one.bounds[-1], len(unit_bounds(one, settings.units)) - 1
    method = _of_method(tokens, units, settings)
    counts = Counter({f"--method {settings.method}": method} if settings.method not in (GIVEN, SPANS) else {})
    ways = len(settings.operators)
    by_way = _of_erasure(one, units, settings, kind)
    counts.update({name: ways * number for name, number in by_way.items()})
    counts["erasure"] += 1  # the whole input
    counts["--distribution"] = 3 * ways * bool(settings.distribution_texts)
    counts["--sensitivity"] = settings.sensitivity_draws * (1 + method)
    if INFILL in settings.operators:
        counts[FILLED] += by_way.total() + 2 * bool(settings.distribution_texts)
    if settings.method in ERASING_METHODS and (settings.scores_erase or settings.erase) == INFILL:
        counts[FILLED] += method + counts["--sensitivity"]
    return +counts


def _of_erasure(one: Instance, units: int, settings: ExplainSettings, kind: str) -> Counter[str]:
    """The most erased inputs of an instance by one way of erasing."""
    known = one.aopc_bounds is not None
    erased = 3 if kind == "perturbation" else 3 + 2 * (len(settings.bins) + settings.random_draws)
    erased += 2 * settings.fidelity_trials * len(settings.fidelity_rates)
    counts = Counter({"erasure": erased + (one.bounds[-1] if settings.tokens_to_flip else 0)})
    if settings.aopc_bounds:
        counts["--aopc-bounds"] = orderings.most_inputs(units, settings.beam, EXACT_UNITS, known)
    if settings.soft_draws:
        counts["--soft-draws"] = soft.most_inputs(units, settings.soft_draws, settings.soft_masks)
    if settings.leave_one_out:
        counts["--leave-one-out"] = units
    counts["--infidelity"] = settings.infidelity_draws
    return counts


def _of_method(tokens: int, units: int, settings: ExplainSettings) -> int:
    method = settings.method
    if method in ("shapley", "kernel-shap"):
        return shapley.most_inputs(method, units, settings.shapley_draws, settings.shap_samples)
    by_method = {
        "random": 0,
        "occlusion": tokens,
        "lime": settings.lime_samples,
        "integrated-gradients": settings.steps,
    }
    return by_method.get(method, 1)


def inputs_of_all(instances: Iterable[Instance], settings: ExplainSettings, kind: str) -> Counter[str]:
    """The most inputs of several instances, by what asks for them."""
    counts: Counter[str] = Counter()
    for one in instances:
        counts.update(inputs_of(one, settings, kind))
    return counts


def seconds_of(counts: Counter[str], runner: Runner, instances: Sequence[Instance]) -> float:
    """How long so many inputs take, told by a few texts; erased ones are shorter, and go faster."""
    model = runner.model
    notes, model.notes = model.notes, Notes()  # what is told of these texts is told again in the run
    encoded = [model.encode(model.seen(one)) for one in instances]
    each = _seconds_each(
        lambda: runner.run(encoded, [full(number) for number in range(len(encoded))]), runner, len(encoded)
    )
    seconds = each * (counts.total() - counts[FILLED])
    if counts[FILLED] and runner.infiller is not None:
        fill, texts = runner.infiller.fill, [one.instance for one in encoded]
        half = [np.arange(one.bounds[-1]) % 2 == 0 for one in texts]
        seconds += counts[FILLED] * _seconds_each(lambda: fill(texts, half), runner, len(texts))
    model.notes = notes
    return seconds


def _seconds_each(work: Callable[[], object], runner: Runner, texts: int) -> float:
    """Seconds for each of so many texts: the first time warms up, the second counts."""
    seconds = 0.0
    for _ in range(2):
        runner.forget()
        start = time.perf_counter()
        work()
        seconds = time.perf_counter() - start
    return max(seconds, 1e-9) / texts


def cost_in_words(counts: Counter[str], seconds: float | None, most: int | None) -> str:
    """One line on what a run costs.

    Args:
        seconds: how long they take; None where no model is at hand to measure it.
        most: how many inputs are allowed; None: any number.

    Raises:
        DataError: there may be more.
    """
    total = counts.total()
    parts = ", ".join(f"{name} {count:,}" for name, count in counts.most_common())
    if most is not None and total > most:
        raise DataError(
            f"--max-inputs: expected at most {most:,} inputs, found up to {total:,} ({parts}); --limit, "
            "--units sentences, fewer draws or a narrower --beam take fewer",
            rule="size-limit",
        )
    time_taken = "" if seconds is None else f", about {_duration(seconds)} at {total / seconds:,.0f} inputs/s"
    return f"cost: at most {total:,} inputs ({parts}){time_taken}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:,.0f} min"
