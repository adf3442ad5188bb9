"""Student's t distribution in numpy alone, and the interval of a mean that it gives.

The variance of n influences has ``n - 1`` degrees of freedom, and fewer where few influences carry it. An interval
joins that of Student's t with the one that Hall's transformation (1992) corrects for skewness.

Sources: Press et al., Numerical Recipes, 6.4 (t); Hall (1992), Journal of the Royal Statistical Society B 54.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

_STEPS = 300  # of the continued fraction; it converges in O(sqrt(degrees of freedom)) steps


def _log_gamma(values: np.ndarray) -> np.ndarray:
    result: np.ndarray = np.vectorize(math.lgamma, otypes=[float])(values)
    return result


def two_sided_p(t: npt.ArrayLike, df: npt.ArrayLike) -> np.ndarray:
    """Return the probability of a Student t at least as far from 0 as ``t``; NaN where an argument is NaN.

    ``p = I_x(df / 2, 1 / 2)`` with ``x = df / (df + t^2)``, the regularised incomplete beta function by its continued
    fraction (Press et al., Numerical Recipes, 6.4).

    Args:
        t: statistics, any shape; infinite ones have p 0.
        df: degrees of freedom, positive, of a shape that broadcasts.

    >>> [round(float(two_sided_p(t, df)), 6) for t, df in ((2.0, 1), (2.570582, 5), (0.0, 9))]
    [0.295167, 0.05, 1.0]
    """
    t, df = np.broadcast_arrays(np.abs(np.asarray(t, float)), np.asarray(df, float))
    a, b = df / 2, np.full(df.shape, 0.5)
    with np.errstate(all="ignore"):
        x = np.where(np.isinf(t), 0.0, df / (df + t * t))
        rest = np.where(np.isinf(t), 1.0, t * t / (df + t * t))  # 1 - x, without its rounding
        log_front = (
            _log_gamma(a + b) - _log_gamma(a) - _log_gamma(b) + a * np.where(x < 0.5, np.log(x), np.log1p(-rest))
        )
        log_front += b * np.log(rest)
        front = np.where((x <= 0) | (rest <= 0), 0.0, np.exp(log_front))
        swap = x > (a + 1) / (a + b + 2)
        first, second = np.where(swap, b, a), np.where(swap, a, b)
        part = front * _beta_fraction(first, second, np.where(swap, rest, x)) / first
        p = np.clip(np.where(swap, 1 - part, part), 0.0, 1.0)
    return np.where(np.isnan(t) | np.isnan(df), np.nan, p)


def _beta_fraction(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the continued fraction of the incomplete beta function by Lentz's method."""
    tiny = 1e-300

    def away(value: np.ndarray) -> np.ndarray:
        return np.where(np.abs(value) < tiny, tiny, value)

    c, d = np.ones_like(x), 1 / away(1 - (a + b) * x / (a + 1))
    total = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / away(1 + even * d), away(1 + even / c)
        total = total * d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / away(1 + odd * d), away(1 + odd / c)
        total = total * d * c
        if np.all((np.abs(d * c - 1) < 1e-15) | np.isnan(d)):
            break
    return total


@lru_cache(4096)
def quantile(p: float, df: float) -> float:
    """Return the t below which a share ``p`` in [.5, 1) of the distribution lies; NaN for NaN.

    >>> round(quantile(0.975, 5), 6), round(quantile(0.8, 1e6), 4)
    (2.570582, 0.8416)
    """
    if math.isnan(p) or math.isnan(df):
        return math.nan
    # Newton's method from the normal quantile, which lies below: the tail is convex, so no step goes beyond
    t = NormalDist().inv_cdf(p)
    log_density = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    for _ in range(_STEPS):
        density = math.exp(log_density - (df + 1) / 2 * math.log1p(t * t / df))
        step = (float(two_sided_p(t, df)) / 2 - (1 - p)) / density
        t += step
        if abs(step) <= 1e-14 * max(1.0, t):
            break
    return t


def measure_influences(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what the distribution of n influences says of the distribution of their mean.

    Args:
        values: influences that vary, float64 (..., n), n >= 2.

    Returns:
        The degrees of freedom of the influences' variance, ``min(n - 1, 2 / ((kurtosis - 1) / n + 2 / (n (n - 1))))``
        with the unbiased kurtosis where that is larger, and the skewness of their mean: (...) each.
    """
    n = values.shape[-1]
    centred = values - values.mean(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        moment = (centred**2).mean(axis=-1)
        kurtosis = (centred**4).mean(axis=-1) / moment**2
        if n > 3:
            unbiased = 3 + (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * (kurtosis - 3) + 6)
            kurtosis = np.maximum(kurtosis, unbiased)
        skewness = (centred**3).mean(axis=-1) / moment**1.5 / np.sqrt(n)
        return np.minimum(n - 1, 2 / ((kurtosis - 1) / n + 2 / (n * (n - 1)))), skewness


def compute_interval(centre: float, error: float, df: float, skewness: float, level: float) -> tuple[float, float]:
    """Return the interval that joins those of Student's t and of t after Hall's correction of skewness.

    Args:
        centre: the estimate.
        error: its standard error.
        df: degrees of freedom of the error.
        skewness: skewness of the estimate's distribution.
        level: confidence level, in (0, 1).

    >>> [round(end, 4) for end in compute_interval(0.5, 0.1, 9, 0.0, 0.95)]
    [0.2738, 0.7262]
    """
    t = quantile((1 + level) / 2, df)
    ends = [t, -t]
    if abs(skewness) > 1e-6:
        ends = [3 / skewness * (float(np.cbrt(1 + skewness * (end - skewness / 6))) - 1) for end in ends]
    return centre - max(t, ends[0]) * error, centre - min(-t, ends[1]) * error
