"""Cost of a run before it begins: the largest number of inputs, and the time that they take."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from eraser_hub.records.errors import DataError

from .chunk import compute_unit_bounds
from .instances import Instance
from .measure import MEASURES
from .runner import Runner
from .settings import ExplainSettings

PROBE_TEXTS = 4  # texts by which the rate is measured, each twice: the first time warms the model up


def count_inputs(one: Instance, settings: ExplainSettings, kind: str) -> Counter[str]:
    """Return the most inputs of an instance, by what asks for them; equal ones run once, so there may be fewer.

    Gradients and attention count as one input, integrated gradients as their steps.
    """
    units = len(compute_unit_bounds(one, settings.units)) - 1
    own = settings.method_class
    method = 0 if own is None else own.most_inputs(one, units, settings)
    counts = Counter({f"`method` {settings.method}": method})
    erased = 3
    if kind != "perturbation":
        erased += 2 * (len(settings.bins) + settings.random_draws)
    counts["erasure"] = erased + 2 * settings.fidelity_trials * len(settings.fidelity_rates)
    names = {measure: name for name, measure in MEASURES.items()}
    for measure in settings.measures:
        asked_by = f"`measure` {names[measure]}" if measure.costly else "erasure"
        counts[asked_by] += measure.most_inputs(one, units, settings)
    counts["erasure"] += 1  # the whole input
    return +counts


def measure_seconds(counts: Counter[str], runner: Runner, instances: Sequence[Instance]) -> float:
    """Estimate the seconds for so many inputs from a few whole texts; erased ones are shorter and faster."""
    model = runner.model
    with model.uncounted():
        encoded = [model.encode(model.seen(one)) for one in instances]
        seconds = 0.0
        for _ in range(2):  # the first pass warms up, the second counts
            runner.forget()
            start = time.perf_counter()
            runner.run(encoded)
            seconds = time.perf_counter() - start
    return max(seconds, 1e-9) / len(encoded) * counts.total()


def describe_cost(counts: Counter[str], seconds: float | None, most: int | None) -> str:
    """Describe the cost of a run in one line.

    Args:
        counts: number of inputs by what asks for them.
        seconds: how long they take; None where no model is at hand to measure it.
        most: how many inputs are allowed; None: any number.

    Raises:
        DataError: there may be more.
    """
    total = counts.total()
    parts = ", ".join(f"{name} {count:,}" for name, count in counts.most_common())
    if most is not None and total > most:
        raise DataError(
            f"expected at most {most:,} inputs, found up to {total:,} ({parts}); `limit`, `units` sentences, fewer "
            "draws or a narrower `beam` take fewer",
            argument="max_inputs",
        )
    cost = f"cost: at most {total:,} inputs ({parts})"
    if seconds is None:
        return cost
    duration = f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:,.0f} min"
    return f"{cost}, about {duration} at {total / seconds:,.0f} inputs/s"
