"""Kendall's rank correlation of two rankings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def kendall_tau(left: npt.ArrayLike, right: npt.ArrayLike) -> float:
    """Compute Kendall's tau-b of two lists of scores for the same items, in [-1, 1]; NaN if one of them is constant.

    ``(concordant - discordant) / sqrt((pairs - ties in left) (pairs - ties in right))``; scipy's ``kendalltau``, in
    O(n log^2 n).

    >>> kendall_tau([1, 2, 3], [1, 3, 2]), kendall_tau([1, 1], [0, 5])
    (0.3333333333333333, nan)
    """
    a, b = (np.unique(np.asarray(side, dtype=np.float64), return_inverse=True)[1].ravel() for side in (left, right))
    n = a.size
    pairs = n * (n - 1) // 2
    tied_a, tied_b = _tied(a), _tied(b)
    if pairs in (tied_a, tied_b):
        return float("nan")
    both = _tied(np.unique(np.stack([a, b]), axis=1, return_inverse=True)[1].ravel())
    discordant = _inversions(b[np.lexsort((b, a))])
    concordant = pairs - tied_a - tied_b + both - discordant
    return float((concordant - discordant) / np.sqrt(float(pairs - tied_a) * float(pairs - tied_b)))


def _tied(ranks: np.ndarray) -> int:
    """Count the pairs of equal items."""
    counts = np.bincount(ranks)
    return int((counts * (counts - 1) // 2).sum())


def _inversions(ranks: np.ndarray) -> int:
    """Count the pairs with the larger number first, while merging runs of 1, 2, 4, .."""
    size = 1 << max(int(ranks.size - 1).bit_length(), 0)
    beyond = int(ranks.max(initial=0)) + 1
    rows = np.full(size, beyond, dtype=np.int64)  # the padding is last and largest: no inversion
    rows[: ranks.size] = ranks
    count, width = 0, 1
    while width < size:
        runs = rows.reshape(-1, 2, width)
        offsets = np.arange(len(runs))[:, None] * (beyond + 1)
        left, right = (runs[:, 0] + offsets).ravel(), (runs[:, 1] + offsets).ravel()
        # left ones that are not larger: those of the runs before, and of this run up to the right one
        smaller = np.searchsorted(left, right, side="right") - np.repeat(np.arange(len(runs)) * width, width)
        count += int((width - smaller).sum())
        rows = np.sort(runs.reshape(len(runs), 2 * width), axis=1).ravel()
        width *= 2
    return count
