"""Score curves of a report as figures: AOPC points, fidelity under occlusion, distributions of per-instance scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TypeAlias

from eraser_hub.scoring.result import Scores

from .catalogue import metric
from .figures import Figure, Series, compute_histogram

Keys: TypeAlias = Mapping[str, object]
MAX_NAMED = 4  # systems whose medians a caption lists
BINS = 20


def make_aopc_figures(systems: Sequence[Scores], baselines: Sequence[Scores]) -> list[Figure]:
    """Draw comprehensiveness and sufficiency against the share of tokens, with the random baseline.

    Several baselines are draws of one: their points are averaged, and the band spans the lowest and the highest draw.
    A baseline that is one of the systems is drawn once.
    """
    names = {system.name for system in systems}
    figures = []
    for name, better in (("comprehensiveness", "higher is better"), ("sufficiency", "lower is better")):
        series = [line for k, system in enumerate(systems) if (line := _aopc(system, name, k)) is not None]
        if not series:
            continue
        draws = [line for system in baselines if system.name not in names and (line := _aopc(system, name))]
        series.extend(_chance(draws))
        figures.append(
            Figure(
                name=f"aopc_{name}",
                title=name.capitalize(),
                x_label="share of tokens, highest-scored first (%)",
                y_label=f"{name} ({better})",
                series=tuple(series),
                caption=f"Mean {name} per threshold; AOPC is the mean of a line's points."
                + (" Bands: confidence intervals." if any(line.low for line in series if not line.chance) else ""),
                x_log=all(x > 0 for line in series for x in line.x),
                key=f"{name}_aopc",
            )
        )
    return figures


def _aopc(system: Scores, name: str, place: int | None = None) -> Series | None:
    thresholds, points = system.scores.get("aopc_thresholds"), system.scores.get(f"{name}_aopc_points")
    if not isinstance(thresholds, Sequence) or not isinstance(points, Sequence) or not points:
        return None
    intervals = system.point_intervals.get(f"{name}_aopc_points")
    low, high = zip(*intervals, strict=True) if intervals else (None, None)
    x = tuple(round(100 * float(t), 9) for t in thresholds)
    y = tuple(float(point) if point is not None else math.nan for point in points)
    return Series(system.name, x, y, low, high, place=place)


def _chance(draws: Sequence[Series]) -> list[Series]:
    if not draws:
        return []
    same = [draw for draw in draws if draw.x == draws[0].x]
    columns = list(zip(*(draw.y for draw in same), strict=True))
    mean = tuple(sum(column) / len(column) for column in columns)
    several = len(same) > 1
    name = f"random (mean of {len(same)} draws)" if several else "random"
    low, high = (tuple(map(end, columns)) if several else None for end in (min, max))
    return [Series(name, draws[0].x, mean, low, high, chance=True)]


def make_fidelity_figures(systems: Sequence[Scores]) -> list[Figure]:
    """Draw normalised sufficiency and comprehensiveness as tokens of the rationale are occluded at random.

    Those of all systems; then of each system alone, a line for each gold class, where there are several.

    Source: Carton, Rathore and Tan (2020), section 5.2 and figures 2 to 4 and 7 to 11.
    """
    figures = _fidelity("", "", [(system.name, system.scores, system.scores) for system in systems])
    for number, system in enumerate(systems, 1):
        lines = [(label, system.scores, system.by_class[label]) for label in sorted(system.by_class)]
        if len(lines) > 1:
            figures += _fidelity(f"_by_class_{number}", f", {system.name} by class", lines)
    return figures


def _fidelity(name: str, title: str, lines: Sequence[tuple[str, Keys, Keys]]) -> list[Figure]:
    """Return both figures; a line is (its name, the occlusion rates' holder, the curves' holder)."""
    figures = []
    for key in ("sufficiency", "comprehensiveness"):
        series = [curve for place, line in enumerate(lines) if (curve := _curve(*line, key, place)) is not None]
        if series:
            figures.append(
                Figure(
                    name=f"fidelity_{key}{name}",
                    title=f"Normalised {key}{title}",
                    x_label="share of the rationale's tokens occluded",
                    y_label=f"normalised {key}",
                    series=tuple(series),
                    caption="Mean over instances and trials."
                    + (" Bands: one standard deviation over trials." if any(line.low for line in series) else ""),
                )
            )
    return figures


def _curve(name: str, series_of_all: Keys, scores: Keys, key: str, place: int) -> Series | None:
    rates, points = series_of_all.get("occlusion_rates"), scores.get(f"{key}_curve")
    if not isinstance(rates, Sequence) or not isinstance(points, Sequence):
        return None
    spread = scores.get(f"{key}_curve_std")
    y = tuple(math.nan if point is None else float(point) for point in points)
    low = high = None
    if isinstance(spread, Sequence) and all(s is not None and math.isfinite(s) for s in spread) and any(spread):
        low = tuple(point - s for point, s in zip(y, spread, strict=True))
        high = tuple(point + s for point, s in zip(y, spread, strict=True))
    return Series(name, tuple(map(float, rates)), y, low, high, place=place)


def make_distribution_figures(systems: Sequence[Scores], keys: Sequence[str]) -> list[Figure]:
    """Draw the share of instances per bin for each score, one outline a system, over a common range."""
    figures = []
    for key in keys:
        present = [
            (k, system.name, [v for v in values if v is not None and math.isfinite(v)])
            for k, system in enumerate(systems)
            if (values := system.per_instance.get(key))
        ]
        every = [value for _, _, values in present for value in values]
        if not every:
            continue
        low, high = min(every), max(every)
        if low >= 0 and high <= 1:
            low, high = 0.0, 1.0
        elif not high > low:
            low, high = low - 0.5, high + 0.5
        edges = tuple(low + (high - low) * i / BINS for i in range(BINS + 1))
        figures.append(
            Figure(
                name=f"distribution_{key.replace('@', '_at_').replace('.', '_')}",
                title=metric(key).label,
                x_label=f"{metric(key).label} of an instance",
                y_label="share of instances",
                series=tuple(
                    Series(name, edges, compute_histogram(values, low, high, BINS), place=k)
                    for k, name, values in present
                ),
                caption=_describe_medians([(name, values) for _, name, values in present if values]),
                kind="bars",
                key=key,
            )
        )
    return figures


def _describe_medians(columns: Sequence[tuple[str, Sequence[float]]]) -> str:
    """Return each system's count and median in words; of many systems the least and the greatest."""
    if len(columns) <= MAX_NAMED:
        return ", ".join(f"{name}: {len(own)} instances, median {median(own):.3f}" for name, own in columns) + "."
    counts, medians = {len(own) for _, own in columns}, sorted((median(own), name) for name, own in columns)
    (low, lowest), (high, highest) = medians[0], medians[-1]
    instances = " to ".join(str(count) for count in sorted({min(counts), max(counts)}))
    return f"{instances} instances each; medians from {low:.3f} ({lowest}) to {high:.3f} ({highest})."
