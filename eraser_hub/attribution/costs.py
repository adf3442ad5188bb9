"""What a run costs, said before it begins: how many inputs at most, and how long they take at the rate of the model."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from eraser_hub.records.errors import DataError
from eraser_hub.records.operators import INFILL

from .adapter import Notes
from .chunk import unit_bounds
from .erasure import full
from .instances import Instance
from .runner import Runner
from .settings import ExplainSettings

FILLED = "`infill`"  # texts that the masked language model reads
PROBED = 4  # texts by which the rate is measured, each twice: the first time warms the model up


def inputs_of(one: Instance, settings: ExplainSettings, kind: str) -> Counter[str]:
    """Return the most inputs of an instance, by what asks for them; equal ones run once, so there may be fewer.

    Gradients and attention count as one input, integrated gradients as their steps.
    """
    units = len(unit_bounds(one, settings.units)) - 1
    own = settings.own_method
    method = 0 if own is None else own.most_inputs(one, units, settings)
    counts = Counter({f"`method` {settings.method}": method})
    ways, erased = len(settings.operators), 3
    if kind != "perturbation":
        erased += 2 * (len(settings.bins) + settings.random_draws)
    counts["erasure"] = ways * (erased + 2 * settings.fidelity_trials * len(settings.fidelity_rates))
    filled, anew = counts["erasure"] // ways, 0
    for measure in sorted(settings.measures, key=lambda one: (not one.by_way, not one.ranks)):
        inputs = measure.most_inputs(one, units, settings)
        counts[f"`{measure.asked}`" if measure.costly else "erasure"] += inputs * (ways if measure.by_way else 1)
        filled += measure.most_infilled(one, units, settings) if measure.by_way else 0
        anew += 0 if measure.by_way else inputs
    counts["erasure"] += 1  # the whole input
    if INFILL in settings.operators:
        counts[FILLED] += filled
    if settings.scores_erased and (settings.scores_erase or settings.erase) == INFILL:
        counts[FILLED] += method + anew
    return +counts


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
            f"expected at most {most:,} inputs, found up to {total:,} ({parts}); `limit`, `units` sentences, fewer "
            "draws or a narrower `beam` take fewer",
            argument="max_inputs",
            rule="size-limit",
        )
    time_taken = "" if seconds is None else f", about {_duration(seconds)} at {total / seconds:,.0f} inputs/s"
    return f"cost: at most {total:,} inputs ({parts}){time_taken}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:,.0f} min"
