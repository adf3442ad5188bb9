"""Soft gold: the share of annotators who mark each token, and agreement of soft scores with it.

With w the share and s the score of a token, over the tokens of a document:

- auprc: each token counts w times as evidence and 1 - w times as none; the curve and its area as in `rankings`
- soft_cross_entropy: mean of -(w log s + (1 - w) log(1 - s)), natural logarithm, s within [1e-7, 1 - 1e-7]
- soft_jensen_shannon: mean Jensen-Shannon divergence of (w, 1 - w) and (s, 1 - s), base 2, in [0, 1]
- soft_correlation: Pearson's correlation of w and s

Source: Uma et al. (2021), Learning from Disagreement: A Survey, section 4 (cross-entropy and Jensen-Shannon divergence
as soft evaluation).
"""

from __future__ import annotations

import numpy as np

from .statistics_builder import ScoreInfo, divide

PROBABILISTIC = ("soft_cross_entropy", "soft_jensen_shannon")
SCORES: ScoreInfo = {
    "soft_cross_entropy": (False, 0.0, None),
    "soft_jensen_shannon": (False, 0.0, 1.0),
    "soft_correlation": (True, -1.0, 1.0),
}
LEAST = 1e-7  # of a probability in a logarithm


def compute_weighted_auprc(shares: np.ndarray, scores: np.ndarray, no_positives: float) -> float:
    """Return the area under the precision-recall curve of a document (trapezoid), each token weighted by its share.

    Args:
        shares: in [0, 1], (tokens,).
        scores: higher means more likely evidence, (tokens,).
        no_positives: the value where no share is positive.

    >>> round(compute_weighted_auprc(np.array([1.0, 0.5, 0.0]), np.array([0.9, 0.2, 0.5]), 0.5), 4)
    0.8222
    """
    total = shares.sum()
    if not total > 0:
        return no_positives
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), scores.size - 1)  # of each distinct score
    hits, taken = np.cumsum(shares[order])[last], (last + 1).astype(float)
    precision, recall = np.append(1.0, hits / taken), np.append(0.0, hits / total)
    return float((np.diff(recall) * (precision[1:] + precision[:-1]) / 2).sum())


def compare_shares(shares: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Return cross-entropy, Jensen-Shannon divergence and correlation of a document; NaN where undefined.

    Args:
        shares: in [0, 1], (tokens,), at least one.
        scores: (tokens,); for the first two in [0, 1].
    """
    w, s = np.stack([shares, 1 - shares]), np.stack([scores, 1 - scores])
    if s.min() < 0:
        entropy = divergence = np.nan
    else:
        entropy = float(-(w * np.log(np.clip(s, LEAST, 1 - LEAST))).sum(axis=0).mean())
        middle = (w + s) / 2
        # not below 0 by rounding
        divergence = max(float((_sum_information(w, middle) + _sum_information(s, middle)).mean() / 2), 0.0)
    centred = shares - shares.mean(), scores - scores.mean()
    norm = np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum())
    # shares and scores that differ by rounding alone do not vary
    varies = np.ptp(shares) > 1e-12 and np.ptp(scores) > 1e-12
    correlation = float(divide((centred[0] * centred[1]).sum(), norm, np.nan)) if varies else np.nan
    return dict(
        zip(SCORES, (entropy, max(divergence, 0.0) if divergence == divergence else np.nan, correlation), strict=True)
    )


def _sum_information(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the Kullback-Leibler divergence of columns in bits; 0 log 0 is 0."""
    ratio = np.where(p > 0, divide(p, q, 1.0), 1.0)
    return np.asarray((p * np.log2(ratio)).sum(axis=0))
