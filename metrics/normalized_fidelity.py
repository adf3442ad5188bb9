"""Clipped, null-normalised sufficiency and comprehensiveness, and fidelity curves under random occlusion."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import evaluate
import numpy as np

from eraser_hub.schema.instance import INSTANCE, OCCLUDED_FIELD, PROBABILITY_SLACK, SCORE_FIELDS
from eraser_hub.schema.record import Record
from eraser_hub.schema.rows import FIDELITY_FIELDS, FIDELITY_ROW, ID_FIELDS

from .batches import Batches, Measured
from .cells import Row, as_list, as_number, as_scalar
from .fidelity import (
    CURVES,
    FAST_SLOPE,
    KEYS,
    SCORES,
    SLOPES,
    SMALLEST_NULL_DIFFERENCE,
    drop_slope,
    normalized_fidelity,
    reading,
)
from .issues import InputError, Issues
from .results import describe_scored
from .rows import CellReader, RowColumns, check_partners, find_optional_fields, index_by_id
from .sources import HUMAN_RATIONALES
from .statistics_builder import Statistics, divide, make_info

Place = tuple[float | None, int]  # occlusion rate and trial; rate None: nothing is occluded
Grid = list[tuple[float, int]]
Points = list[tuple[Place, tuple[float, ...]]]  # of an instance: the probabilities of `FIDELITY_FIELDS` at each place


def _read_probability(value: Any, field: str, reader: CellReader) -> float:
    number = as_number(value)
    sound = number is not None and 0 <= number <= 1
    return number or 0.0 if reader.expect(sound, field, "a probability in [0, 1]", value, "range") else 0.0


def _read_label_probability(scores: Any, label: Any, field: str, reader: CellReader) -> float:
    """Return the label's probability in {label: probability}; add an issue if it is wrong or missing."""
    there = isinstance(scores, Mapping) and scores.get(label) is not None
    if not reader.expect(there, field, f"a probability of the label {label!r}", scores, "score-missing"):
        return 0.0
    before = reader.issues.total
    total = sum(_read_probability(p, field, reader) for p in scores.values() if p is not None)
    if reader.issues.total == before and abs(total - 1) > PROBABILITY_SLACK:
        reader.add(field, f"expected probabilities that sum to 1, found a sum of {total:g}", "probabilities")
    return as_number(scores[label]) or 0.0


def _read_place(row: Row, where: str, reader: CellReader) -> tuple[float, int]:
    """Return the occlusion rate (to nine digits: 0.1 + 0.2 is 0.3) and the trial of a row."""
    value, trial = row.get("occlusion_rate"), as_scalar(row.get("trial", 0))
    rate = as_number(value)
    sound = rate is not None and 0 <= rate <= 1
    reader.expect(sound, f"{where}occlusion_rate", "a rate in [0, 1]", value, "range")
    whole = isinstance(trial, int) and not isinstance(trial, bool)
    return round(rate or 0.0, 9), trial if reader.expect(whole, f"{where}trial", "a whole number", trial) else 0


def _read_instance_points(reader: CellReader) -> Points:
    """Return the points of an ERASER instance: its scores, and its occluded scores."""
    row = reader.row
    label, occluded = row.get("classification"), row.get(OCCLUDED_FIELD)
    if not reader.expect(isinstance(label, str), "classification", "a label", label):
        return []
    whole = {
        key: _read_label_probability(row.get(field), label, field, reader) for key, field in FIDELITY_FIELDS.items()
    }
    points: Points = [((None, 0), tuple(whole.values()))]
    scores = () if occluded is None else as_list(occluded)
    sound = scores is not None and all(isinstance(one, Mapping) for one in scores)
    if not reader.expect(sound, OCCLUDED_FIELD, "a list of objects", occluded):
        return points
    for at, one in enumerate(scores or ()):
        where = f"{OCCLUDED_FIELD}[{at}]."
        place = _read_place(one, where, reader)
        fields = [FIDELITY_FIELDS[key] for key in ("p_rationale", "p_complement")]
        alone, rest = (_read_label_probability(one.get(field), label, where + field, reader) for field in fields)
        points.append((place, (whole["p_full"], alone, rest, whole["p_empty"])))
    return points


def _read_points(rows: Sequence[Row], issues: Issues) -> tuple[dict[str, Points], dict[str, Row]]:
    """Return each instance's points, and its first row."""
    if any(SCORE_FIELDS["full"] in row for row in rows):
        named = index_by_id(rows, "prediction", issues)
        find_optional_fields(list(named.items()), (OCCLUDED_FIELD,), issues)
        return {name: _read_instance_points(CellReader(row, name, issues)) for name, row in named.items()}, named
    curves = any(row.get("occlusion_rate") is not None for row in rows)
    identified = any(row.get(field) is not None for row in rows for field in ID_FIELDS)
    if curves and not identified:
        raise InputError("expected annotation_id in rows with an occlusion_rate, found none", "key-missing")
    flat: list[tuple[str, Row, Place]] = []
    if curves:
        for at, row in enumerate(rows):
            named = index_by_id([row], "prediction", issues)
            flat += [(name, row, _read_place(row, f"row {at}: ", CellReader(row, name, issues))) for name in named]
    else:
        named = index_by_id(rows, "prediction", issues) if identified else {str(at): row for at, row in enumerate(rows)}
        flat = [(name, row, (None, 0)) for name, row in named.items()]
    points: dict[str, Points] = {}
    for name, row, place in flat:
        p = tuple(_read_probability(row.get(key), key, CellReader(row, name, issues)) for key in FIDELITY_FIELDS)
        points.setdefault(name, []).append((place, p))
    return points, {name: row for name, row, _ in reversed(flat)}


def _find_grid(points: Mapping[str, Points], issues: Issues) -> Grid:
    """Return the (rate, trial) pairs of all instances, ascending; add an issue for each instance that deviates.

    Where a grid has none at rate 0, the unoccluded scores are there, if every instance has some.
    """
    first: Grid | None = None
    for name, own in points.items():
        places = sorted((rate, trial) for (rate, trial), _ in own if rate is not None)
        twice = next((one for one, other in pairwise(places) if one == other), None)
        if twice is not None:
            message = f"expected each rate and trial once, found rate {twice[0]:g}, trial {twice[1]} twice"
            issues.add_by_id("prediction", name, "occlusion_rate", message, "id-twice")
        elif first is None:
            first = places
        elif places != first:
            rate, trial = sorted(set(places) ^ set(first))[0]
            found = f"{'none' if (rate, trial) in first else 'more'} at rate {rate:g}, trial {trial}"
            message = f"expected the rates and trials of the first instance, found {found}"
            issues.add_by_id("prediction", name, "occlusion_rate", message, "constant")
    whole = all(any(rate is None for (rate, _), _ in own) for own in points.values())
    return [(0.0, 0), *first] if first and first[0][0] > 0 and whole else first or []


class NormalizedFidelity(Batches, evaluate.Metric):  # type: ignore[misc]  # evaluate is untyped
    """Sufficiency and comprehensiveness of rationales, clipped to [0, 1] and normalised.

    The model's output on the empty input normalises them, so that models, classes and datasets compare. With scores at
    several occlusion rates also fidelity curves, their slopes, and a reading of these: brevity, redundancy,
    irrelevance or dependency.

    Args:
        predictions: rows {p_full, p_rationale, p_complement, p_empty}: the probability of the class predicted
            on the full input, given the full input, the rationale alone, all but the rationale, the empty
            input. Optional: annotation_id (or id). For curves one row per instance, occlusion rate and trial,
            with annotation_id, occlusion_rate (0 among them) and trial. ERASER instances with classification,
            classification_scores, sufficiency_, comprehensiveness_ and null_classification_scores, and for
            curves occluded_scores, are accepted as they are.
        references: optional rows with the same ids, for their columns (by).
        smallest_null_difference: 1e-5; below it the normalised scores are 0.
        fast_slope: -1.0; a curve that drops at this slope or steeper drops fast.
        only_predicted: leave out references without an instance; the signature has the number of scored ones.
            By default they are an error.
        per_instance: adds the scores of each instance.
        confidence_level, n_resamples, seed: add KEY_ci: [low, high], the BCa interval over instances.
        cluster_by: the rows that are drawn together: "auto" (those that share documents, or an original with its
            perturbed records), "none", or a column of the rows.
        by: a column of the rows; adds the scores per value of it.
        label_names: names of the class numbers in that column.

    Returns:
        sufficiency, comprehensiveness, null_difference, normalized_sufficiency, normalized_comprehensiveness:
        means, in [0, 1], higher is better (null_difference is the model's, neither good nor bad); signature.
        With occlusion rates also occlusion_rates, sufficiency_curve, comprehensiveness_curve (of the normalised
        scores, a mean per rate), each with _std (spread over trials), sufficiency_slope,
        comprehensiveness_slope (share of the start lost per share of tokens, -1: in proportion) and reading.

    Raises:
        ValueError: wrong input; it names the instance and the field.

    Example:
        >>> import evaluate
        >>> metric = evaluate.load("normalized_fidelity")
        >>> result = metric.compute(
        ...     predictions=[{"p_full": 0.9, "p_rationale": 0.8, "p_complement": 0.6, "p_empty": 0.5}])
        >>> round(result["normalized_sufficiency"], 6), round(result["null_difference"], 6)
        (0.75, 0.4)
    """

    SOURCE = HUMAN_RATIONALES
    INPUTS = (
        (FIDELITY_ROW, ("annotation_id", *FIDELITY_FIELDS, "occlusion_rate", "trial")),
        (FIDELITY_ROW, ("annotation_id",)),
    )
    HIGHER_IS_BETTER, RANGES = make_info(SCORES)

    def _get_record(self, rows: Sequence[Row]) -> Record:
        return INSTANCE if any(SCORE_FIELDS["full"] in row for row in rows) else FIDELITY_ROW

    def _measure(
        self,
        predictions: Sequence[Row] | None,
        references: Sequence[Row] | None,
        smallest_null_difference: float = SMALLEST_NULL_DIFFERENCE,
        fast_slope: float = FAST_SLOPE,
        only_predicted: bool = False,
    ) -> Measured:
        """Compute per instance its scores, those of each rate and trial, and the count 1."""
        steep, smallest = float(fast_slope), float(smallest_null_difference)
        if not 0 < smallest <= 1:
            message = f"expected a number in (0, 1], found {smallest_null_difference!r}"
            raise InputError(message, "option-value", "smallest_null_difference")
        if not predictions:
            raise InputError("expected predictions, found none", "empty")
        issues = Issues()
        points, named = _read_points(predictions, issues)
        further = index_by_id(references or (), "reference", issues)
        if further:
            check_partners(points, further, issues, only_predicted)
        grid = _find_grid(points, issues)
        issues.raise_if_any()
        statistics = _make_statistics(points, grid, smallest)
        settings = {
            "smallest_null_difference": smallest,
            **describe_scored(len(points), max(len(points), len(further))),
        }
        extra: dict[str, object] = {}
        if grid:
            rates = sorted({rate for rate, _ in grid})
            settings |= {"rates": len(rates), "fast_slope": steep}
            scores = statistics.scores()
            slopes = float(scores[SLOPES[0]]), float(scores[SLOPES[1]])
            extra = {"occlusion_rates": rates, "reading": reading(*slopes, steep)}
        return Measured(statistics, RowColumns([[further.get(name), named[name]] for name in points]), settings, extra)

    def _make_result(
        self, predictions: Sequence[Any], references: Sequence[Any], settings: dict[str, Any]
    ) -> dict[str, Any]:
        result = super()._make_result(predictions, references, settings)
        if "reading" in result:
            steep = settings.get("fast_slope", FAST_SLOPE)
            for group in result.get("by", {}).values():
                group["reading"] = reading(group[SLOPES[0]], group[SLOPES[1]], steep)
        return result


def _reduce_by_rate(grid: Grid, values: np.ndarray, reduce: Callable[..., np.ndarray] = np.mean) -> np.ndarray:
    """Reduce values (..., grid) over the trials of each rate: (..., rates)."""
    rates = np.array([rate for rate, _ in grid])
    return np.stack([reduce(values[..., np.flatnonzero(rates == rate)], axis=-1) for rate in np.unique(rates)], axis=-1)


def _make_statistics(points: Mapping[str, Points], grid: Grid, smallest: float) -> Statistics:
    if grid and grid[0][0] != 0:
        raise InputError("expected rows at rate 0 (nothing occluded), found none", "score-missing", "occlusion_rate")
    table: dict[Place, np.ndarray] = {}
    for at, own in enumerate(points.values()):
        for place, p in own:
            if place not in table:
                table[place] = np.full((len(points), 4), np.nan)
            table[place][at] = p
    if (None, 0) in table and grid:
        table.setdefault((0.0, 0), table[None, 0])
    scored = {place: normalized_fidelity(p[:, 0], p[:, 1], p[:, 2], p[:, 3], smallest) for place, p in table.items()}
    # the scores on the untouched rationale, or their mean over the trials at rate 0
    starts = [scored[None, 0]] if (None, 0) in scored else [scored[place] for place in grid if place[0] == 0]
    per_instance = {key: np.mean([start[key] for start in starts], axis=0) for key in KEYS}
    columns = [*per_instance.values(), np.ones(len(points))]
    for curve, key in zip(CURVES, ("normalized_sufficiency", "normalized_comprehensiveness"), strict=True):
        if grid:
            trials = np.stack([scored[place][key] for place in grid], axis=1)
            columns += [*trials.T]
            per_instance[curve] = _reduce_by_rate(grid, trials)
    return Statistics(list(points), np.column_stack(columns), partial(_finalize, grid), per_instance)


def _finalize(grid: Grid, sums: np.ndarray) -> dict[str, np.ndarray]:
    count = sums[..., len(KEYS)]
    scores = {key: divide(sums[..., at], count, np.nan) for at, key in enumerate(KEYS)}
    for number, (curve, slope) in enumerate(zip(CURVES, SLOPES, strict=True) if grid else ()):
        first = len(KEYS) + 1 + number * len(grid)
        means = divide(sums[..., first : first + len(grid)], count[..., None], np.nan)
        scores[curve], scores[f"{curve}_std"] = _reduce_by_rate(grid, means), _reduce_by_rate(grid, means, np.std)
        scores[slope] = drop_slope(np.unique([rate for rate, _ in grid]), scores[curve])
    return scores
