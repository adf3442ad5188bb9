"""Clipped fidelity, normalised by the null difference, and its curves under occlusion of tokens.

Source: Carton, Rathore and Tan (2020), "Evaluating and Characterizing Human Rationales", equations 1 to 5, section 5.2
and Table 4.
"""

from __future__ import annotations

import math

import numpy as np

from .statistics_builder import ScoreInfo

KEYS = ("sufficiency", "comprehensiveness", "null_difference", "normalized_sufficiency", "normalized_comprehensiveness")
CURVES = ("sufficiency_curve", "comprehensiveness_curve")
SLOPES = ("sufficiency_slope", "comprehensiveness_slope")
# null differences, curves and slopes characterise a model and its rationales: none of their ends is the better one
SCORES: ScoreInfo = {key: (True if key != "null_difference" else None, 0.0, 1.0) for key in KEYS}
SCORES |= dict.fromkeys((*CURVES, *(f"{key}_std" for key in CURVES)), (None, 0.0, 1.0))
SCORES |= dict.fromkeys(SLOPES, (None, None, None))
# below this the model's output hardly differs from that on the empty input, and the normalised scores are 0
SMALLEST_NULL_DIFFERENCE = 1e-5
# a fast drop loses score at least in proportion to the rationale's tokens
FAST_SLOPE = -1.0
# the slope is read where the rationale has lost up to half of its tokens
SLOPE_RATES = 0.5
# Table 4: (sufficiency drops fast, comprehensiveness drops fast) -> the reading
READINGS = {
    (True, True): "brevity",
    (False, True): "redundancy",
    (False, False): "irrelevance",
    (True, False): "dependency",
}


def normalized_fidelity(
    p_full: np.ndarray,
    p_rationale: np.ndarray,
    p_complement: np.ndarray,
    p_empty: np.ndarray,
    smallest_null_difference: float = SMALLEST_NULL_DIFFERENCE,
) -> dict[str, np.ndarray]:
    """Compute the five scores of each instance.

    ``sufficiency`` = 1 - max(0, p_full - p_rationale) (equation 1), ``comprehensiveness`` = max(0, p_full -
    p_complement) (2), ``null_difference`` = max(0, p_full - p_empty) (3), ``normalized_sufficiency`` = (sufficiency -
    (1 - null_difference)) / null_difference (4) and ``normalized_comprehensiveness`` = comprehensiveness /
    null_difference (5), both clipped to [0, 1] and 0 below the smallest null difference.

    Args:
        p_full: probability of the class predicted on the full input, given the full input; in [0, 1], of any shape.
        p_rationale: its probability given the rationale alone, likewise.
        p_complement: its probability given all but the rationale, likewise.
        p_empty: its probability given the empty input, likewise.
        smallest_null_difference: see above.

    Returns:
        {key: array of that shape}, each in [0, 1].

    >>> scores = normalized_fidelity(np.array([0.9]), np.array([0.8]), np.array([0.6]), np.array([0.5]))
    >>> {key: round(float(value[0]), 6) for key, value in scores.items()}  # doctest: +NORMALIZE_WHITESPACE
    {'sufficiency': 0.9, 'comprehensiveness': 0.3, 'null_difference': 0.4, 'normalized_sufficiency': 0.75,
     'normalized_comprehensiveness': 0.75}
    """
    sufficiency = 1 - np.maximum(0, p_full - p_rationale)
    comprehensiveness = np.maximum(0, p_full - p_complement)
    null = np.maximum(0, p_full - p_empty)
    informative = null >= smallest_null_difference
    divisor = np.where(informative, null, 1.0)
    return {
        "sufficiency": sufficiency,
        "comprehensiveness": comprehensiveness,
        "null_difference": null,
        "normalized_sufficiency": np.where(informative, np.clip((sufficiency - (1 - null)) / divisor, 0, 1), 0.0),
        "normalized_comprehensiveness": np.where(informative, np.clip(comprehensiveness / divisor, 0, 1), 0.0),
    }


def drop_slope(rates: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """Compute the slope of a curve, in shares of its start per share of the rationale's tokens.

    The least-squares slope, through the start, of curve(r) / curve(0) over the rates 0 < r <= `SLOPE_RATES`: -1 loses
    score in proportion to tokens, -2 twice as fast, 0 does not drop.

    Args:
        rates: occlusion rates, ascending, the first 0, (T,).
        curve: (..., T).

    Returns:
        (...,); NaN if the curve starts at 0 or no rate is in that range.
    """
    chosen = (rates > 0) & (rates <= SLOPE_RATES + 1e-9)
    curve = np.asarray(curve, dtype=float)
    if len(rates) == 0 or rates[0] != 0 or not chosen.any():
        return np.full(curve.shape[:-1], np.nan)
    start = curve[..., 0]
    r = rates[chosen]
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = curve[..., chosen] / np.where(start > 0, start, np.nan)[..., None]
    return np.asarray(((relative - 1) * r).sum(axis=-1) / (r**2).sum())


def reading(sufficiency_slope: float, comprehensiveness_slope: float, fast_slope: float = FAST_SLOPE) -> str:
    """Return the reading of Table 4: brevity, redundancy, irrelevance or dependency; "undefined" if a slope is NaN.

    >>> reading(-1.6, -0.4)
    'dependency'
    """
    if math.isnan(sufficiency_slope) or math.isnan(comprehensiveness_slope):
        return "undefined"
    # a linear drop is fast, despite rounding
    fast = fast_slope + 1e-9
    return READINGS[bool(sufficiency_slope <= fast), bool(comprehensiveness_slope <= fast)]
