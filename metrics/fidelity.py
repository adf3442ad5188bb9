"""Clipped fidelity, normalised by the null difference, and its curves under occlusion of the rationale's tokens.

Source: Carton, Rathore and Tan (2020), "Evaluating and Characterizing Human Rationales", equations 1 to 5, section 5.2
and Table 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from .errors import DataError, cut
from .rows import PROBABILITY_SLACK, Row, find_fault, find_near, join_rows, row_id, simplify
from .statistics import Columns, Measured, Score, Statistics, divide, find_components, mean, mean_columns, number_values

# (occlusion rate, trial) -> probabilities, in the order of `FIDELITY_FIELDS`
Points = dict[tuple[float, int], list[float]]

# where an ERASER instance holds the four probabilities
FIDELITY_FIELDS = {
    "p_full": "classification_scores",
    "p_rationale": "sufficiency_classification_scores",
    "p_complement": "comprehensiveness_classification_scores",
    "p_empty": "null_classification_scores",
}
CURVES = {f"{side}_curve": f"normalized_{side}" for side in ("sufficiency", "comprehensiveness")}
# what rows of probabilities hold, and what is read of ERASER instances
FIDELITY_ROW: dict[str, Any] = {**dict.fromkeys(FIDELITY_FIELDS, float), "occlusion_rate": float, "trial": int}
FIDELITY_INSTANCE: dict[str, Any] = {"classification": str, **{field: {} for field in FIDELITY_FIELDS.values()}}
FIDELITY_INSTANCE["occluded_scores"] = [
    {"occlusion_rate": float, "trial": int, **{FIDELITY_FIELDS[key]: {} for key in ("p_rationale", "p_complement")}}
]
MIN_NULL_DIFFERENCE = 1e-5
SMALL_NULL_DIFFERENCE = 0.01  # below it normalised scores say little, see `describe_fidelity`


def normalized_fidelity(p: np.ndarray, smallest: float = MIN_NULL_DIFFERENCE) -> dict[str, np.ndarray]:
    """Return the five scores of each instance.

    ``sufficiency`` = 1 - max(0, p_full - p_rationale) (equation 1), ``comprehensiveness`` = max(0, p_full -
    p_complement) (2), ``null_difference`` = max(0, p_full - p_empty) (3), ``normalized_sufficiency`` = (sufficiency -
    (1 - null_difference)) / null_difference (4) and ``normalized_comprehensiveness`` = comprehensiveness /
    null_difference (5), both clipped to [0, 1] and 0 below the smallest null difference.

    Args:
        p: probabilities of the class predicted on the full input, given the full input, the rationale alone, all but
            the rationale, and the empty input: (..., 4), each in [0, 1].
        smallest: the smallest null difference, see above.

    Returns:
        {key: (...)}, each in [0, 1].

    >>> {key: round(float(value), 6) for key, value in normalized_fidelity(np.array([0.9, 0.8, 0.6, 0.5])).items()}
    ... # doctest: +NORMALIZE_WHITESPACE
    {'sufficiency': 0.9, 'comprehensiveness': 0.3, 'null_difference': 0.4, 'normalized_sufficiency': 0.75,
     'normalized_comprehensiveness': 0.75}
    """
    p_full, p_rationale, p_complement, p_empty = np.moveaxis(p, -1, 0)
    sufficiency = 1 - np.maximum(0, p_full - p_rationale)
    comprehensiveness = np.maximum(0, p_full - p_complement)
    null = np.maximum(0, p_full - p_empty)
    divisor = np.where(null >= smallest, null, 0.0)
    return {
        "sufficiency": sufficiency,
        "comprehensiveness": comprehensiveness,
        "null_difference": null,
        "normalized_sufficiency": np.clip(divide(sufficiency - (1 - null), divisor), 0, 1),
        "normalized_comprehensiveness": np.clip(divide(comprehensiveness, divisor), 0, 1),
    }


def expand_instance(row: Row, name: str) -> Iterator[dict[str, Any]]:
    """Yield an ERASER instance as rows of probabilities: its own scores, and its occluded scores.

    Raises:
        DataError: no probability of the label, or probabilities that do not sum to 1.
    """
    label = row.get("classification")

    def read(holder: Row, keys: Iterable[str], path: str = "") -> dict[str, float]:
        scores = {key: holder.get(FIDELITY_FIELDS[key], {}) for key in keys}
        for key, p in scores.items():
            if p.get(label) is None or min(p.values()) < 0 or not abs(sum(p.values()) - 1) <= PROBABILITY_SLACK:
                message = f"expected probabilities that sum to 1, one of them of the label {cut(label)}, found {cut(p)}"
                raise DataError(message, instance=name, field=path + FIDELITY_FIELDS[key])
        return {key: p[label] for key, p in scores.items()}

    whole = read(row, FIDELITY_FIELDS)
    yield {**whole, "occlusion_rate": 0.0}
    for number, entry in enumerate(row.get("occluded_scores", ())):
        if entry.get("occlusion_rate") != 0:  # nothing is occluded at rate 0: the scores are the instance's own
            yield {**entry, **whole, **read(entry, ("p_rationale", "p_complement"), f"occluded_scores[{number}].")}


def read_fidelity(rows: Sequence[Row]) -> dict[str, Points]:
    """Return the probabilities of each instance, at the rates and trials that all have alike.

    Args:
        rows: ERASER instances with the four ``classification_scores``; or rows of probabilities with ids, one an
            instance, or one an instance, ``occlusion_rate`` and ``trial``. Where no row has an id its number is its id.

    Raises:
        DataError: no row; a value that is no probability; an id, or a rate and trial of it, twice; an instance without
            a rate or trial of the first one.
    """
    if not rows:
        raise DataError("expected at least one row, found none", argument="predictions")
    strange = [row for row in rows if not isinstance(row, Mapping)]
    if strange:
        raise DataError(f"expected rows of probabilities, found {cut(strange[0])}", argument="predictions")
    is_instance = any(FIDELITY_FIELDS["p_full"] in row for row in rows)
    fields = FIDELITY_INSTANCE if is_instance else FIDELITY_ROW
    curves = is_instance or any(row.get("occlusion_rate") is not None for row in rows)
    unnamed = not curves and all(row_id(row) is None for row in rows)
    points: dict[str, Points] = {}
    known = () if is_instance else (*fields,)
    for number, cells in enumerate(rows):
        name = str(number) if unnamed else row_id(cells)
        if name is None:
            raise DataError("expected an id, found none", field=f"predictions[{number}]")
        for field in cells:
            if (near := find_near(field, known)) and near not in cells:
                raise DataError(f"no field of this format: did you mean {near!r}?", instance=name, field=field)
        row = simplify({field: cells.get(field) for field in fields})
        if fault := find_fault(row, fields):
            raise DataError(fault[1], instance=name, field=fault[0])
        for point in expand_instance(row, name) if is_instance else [row if curves else {**row, "occlusion_rate": 0.0}]:
            for key in (*FIDELITY_FIELDS, "occlusion_rate"):
                if not 0 <= point.get(key, np.nan) <= 1:
                    message = f"expected a number in [0, 1], found {point.get(key)}"
                    raise DataError(message, instance=name, field=key)
            # to nine digits: 0.1 + 0.2 is 0.3
            place, own = (round(point["occlusion_rate"], 9), point.get("trial", 0)), points.setdefault(name, {})
            if place in own:
                message = f"expected each id, rate and trial once, found rate {place[0]:g}, trial {place[1]} again"
                raise DataError(message, instance=name, field="occlusion_rate")
            own[place] = [point[key] for key in FIDELITY_FIELDS]
    check_trials(points)
    return points


def check_trials(points: Mapping[str, Points]) -> None:
    """Raise a `DataError` if no rate is 0, or at the first instance without a rate or trial of the first one."""
    first = next(iter(points.values()))
    if min(first)[0] > 0:
        raise DataError("expected rows at rate 0 (nothing occluded), found none", field="occlusion_rate")
    for name, known in points.items():
        if known.keys() != first.keys():
            rate, trial = min(known.keys() ^ first.keys())
            found = f"{'more' if (rate, trial) in known else 'none'} at rate {rate:g}, trial {trial}"
            message = f"expected the rates and trials of the first instance, found {found}"
            raise DataError(message, instance=name, field="occlusion_rate")


def fidelity_columns(
    points: Mapping[str, Points], smallest: float = MIN_NULL_DIFFERENCE
) -> tuple[dict[str, np.ndarray], list[float]]:
    """Return the columns of the scores, and the occlusion rate of each trial for `fidelity_scores`.

    Scores are means over the trials at rate 0; curves have a value at each rate and trial, if any rate is above 0.

    Args:
        points: of `read_fidelity`, n instances.
        smallest: the smallest null difference, see `normalized_fidelity`.
    """
    places = sorted(next(iter(points.values())))
    scores = normalized_fidelity(np.array([[own[place] for place in places] for own in points.values()]), smallest)
    rates = [rate for rate, _ in places]
    columns: dict[str, np.ndarray] = {}
    for key, values in scores.items():
        columns |= mean_columns(key, values[:, : rates.count(0)].mean(axis=1))
    null = columns["null_difference.sum"]
    columns["null_difference.used"] = (null >= smallest).astype(float)
    columns["null_difference.small"] = ((null >= smallest) & (null < SMALL_NULL_DIFFERENCE)).astype(float)
    if rates[-1] > 0:
        columns |= {f"{curve}.sum": scores[key] for curve, key in CURVES.items()}
    return columns, rates


def describe_fidelity(columns: Columns) -> list[str]:
    """Return a line if most of the normalised scores are quotients of two numbers near 0.

    Carton et al. find high scores of a model that is never sure, and that its small null differences make them.

    Args:
        columns: of `fidelity_columns`, per instance or summed over groups.
    """
    small, used = (int(columns[f"null_difference.{part}"].sum()) for part in ("small", "used"))
    if 2 * small <= used:
        return []
    share = f"in {small:,} of the {used:,} instances that have one"
    meaning = "the model hardly reads them, and their normalised scores say little"
    return [f"the null difference is below {SMALL_NULL_DIFFERENCE:g} {share}: {meaning}"]


def compute_trials(curve: str, sums: Columns) -> np.ndarray:
    """Return a curve's mean over instances at each rate and trial: (..., trials)."""
    return divide(sums[f"{curve}.sum"], sums[f"{CURVES[curve]}.count"][..., None], np.nan)


def compute_curve(curve: str, weights: np.ndarray, sums: Columns) -> np.ndarray:
    """Return a curve: the mean of the trials at each rate: (..., rates).

    Args:
        curve: a key of `CURVES`.
        weights: 1 over the trials of the rate, where the trial is one of it, else 0: (trials, rates).
        sums: of the columns of `fidelity_columns`.
    """
    means: np.ndarray = compute_trials(curve, sums) @ weights
    return means


def compute_spread(curve: str, weights: np.ndarray, sums: Columns) -> np.ndarray:
    """Return the standard deviation of the trials at each rate: (..., rates); arguments of `compute_curve`."""
    trials = compute_trials(curve, sums)
    spread: np.ndarray = np.sqrt((trials - trials @ weights @ (weights > 0).T) ** 2 @ weights)
    return spread


def fidelity_scores(rates: Sequence[float]) -> dict[str, Score]:
    """Return the table of scores; with the occlusion rate of each trial, ascending, also those of curves.

    Null differences and curves characterise a model and its rationales: none of their ends is the better one.
    """
    keys = ("sufficiency", "comprehensiveness", "null_difference", *CURVES.values())
    table = {key: Score(mean(key), None if key == "null_difference" else True) for key in keys}
    distinct, place = np.unique(np.array(rates), return_inverse=True)
    weights = (place[:, None] == np.arange(distinct.size)) / np.bincount(place)
    for curve in CURVES if distinct.size > 1 else ():
        table[curve] = Score(partial(compute_curve, curve, weights), None)
        table[f"{curve}_std"] = Score(partial(compute_spread, curve, weights), None)
    return table


def measure_fidelity(
    predictions: Sequence[Row],
    references: Sequence[Row] | None = None,
    smallest_null_difference: float = MIN_NULL_DIFFERENCE,
    only_predicted: bool = False,
) -> Measured:
    """Measure the fidelity of all rows.

    Args:
        predictions: rows of `read_fidelity`.
        references: rows with the same ids; instances that share a document of theirs, or else of their own rationales,
            are a cluster.
        smallest_null_difference: in (0, 1], see `normalized_fidelity`.
        only_predicted: leave out references without an instance, in place of an error.

    Raises:
        DataError: wrong rows, or a setting out of its range.
    """
    if not 0 < smallest_null_difference <= 1:
        message = f"expected a number in (0, 1], found {smallest_null_difference!r}"
        raise DataError(message, argument="smallest_null_difference")
    points, settings = read_fidelity(predictions), dict[str, object]()
    holders = {row_id(row): row.get("rationales") for row in predictions}
    if references is not None:
        joined = join_rows([{"id": name} for name in points], references, only_predicted)
        holders |= {name: row["documents"] for name, _, row in joined if row.get("documents")}
        points = {name: points[name] for name, _, _ in joined}
        if len(points) < len(references):
            settings["scored"] = f"{len(points)}/{len(references)}"
    documents = [[cell["docid"] for cell in holders.get(name) or ()] for name in points]
    owner = np.repeat(np.arange(len(points)), list(map(len, documents)))
    clusters = find_components(owner, number_values(chain(*documents)), len(points))
    columns, rates = fidelity_columns(points, smallest_null_difference)
    if smallest_null_difference != MIN_NULL_DIFFERENCE:
        settings["smallest_null_difference"] = smallest_null_difference
    extra = {"occlusion_rates": sorted(set(rates))} if rates[-1] > 0 else {}
    clustering = "none" if clusters is None else "documents"
    statistics = Statistics(list(points), columns, fidelity_scores(rates), clusters, clustering)
    return Measured(statistics, settings, extra, describe_fidelity(columns))
