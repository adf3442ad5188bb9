"""Systems whose rankings have many equal scores, as quotes have: AUPRC by trapezoids gives them too much.

Between two points of a precision-recall curve the trapezoid rule draws a straight line, above the curve that the equal
scores between them would have in any order (Davis and Goadrich, 2006, section 4). A constant ranking has (1 + d) / 2,
d the share of gold tokens, where random scores have about d. Average precision has no such lines, and it is never
below AUPRC where no scores are equal. So the excess of AUPRC over it shows equal scores.
"""

from __future__ import annotations

from collections.abc import Iterable

from eraser_hub.metrics.statistics_builder import Statistics

TIED, UNTIED = "auprc", "average_precision"
EXCESS = 0.05  # mean excess from which on AUPRC says more of equal scores than of the ranking


def measure_excess(statistics: Statistics) -> float:
    """Return the mean excess of AUPRC over average precision, where all documents of an annotation have both.

    0 where there is none or the block has no rankings.
    """
    place = {column: at for at, column in enumerate(statistics.columns or ())}
    if f"{TIED}.sum" not in place or f"{UNTIED}.sum" not in place:
        return 0.0
    sums, counts = (statistics.values[:, [place[f"{key}.{end}"] for key in (TIED, UNTIED)]] for end in ("sum", "count"))
    both = (counts[:, 0] == counts[:, 1]) & (counts[:, 0] > 0)
    total = float(counts[both, 0].sum())
    return float((sums[both, 0] - sums[both, 1]).sum()) / total if total else 0.0


def describe_ties(blocks: Iterable[Statistics]) -> list[str]:
    """Return the note on one system whose AUPRC is too large; none where it is not."""
    excess = max(map(measure_excess, blocks), default=0.0)
    if excess <= EXCESS:
        return []
    return [f"many tokens have equal scores, which {TIED} rewards: {UNTIED} is {excess:.2f} lower; compare by that"]
