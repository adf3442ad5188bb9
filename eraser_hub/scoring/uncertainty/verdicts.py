"""Verdicts: one word on the difference of two systems in a score.

A verdict weighs a test and the size that matters. Let d be the difference, positive where the first system is better,
p the corrected p-value, and X the minimum effect:

    better, worse   p <= .05 and abs(d) >= X
    equivalent      else the 90 % interval of d lies within [-X, X]
    undecided       else

A star, bold print and every other marker mean `better`, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, get_args

from eraser_hub.metrics.agreement_scores import describe_scores
from eraser_hub.metrics.annotators import SCORES as OF_ANNOTATORS
from eraser_hub.metrics.erasure import SCORE_INFO as OF_ERASURE
from eraser_hub.metrics.fidelity import SCORES as OF_FIDELITY
from eraser_hub.metrics.intervals import MINIMUM_CLUSTERS
from eraser_hub.metrics.quotes import SCORES as OF_QUOTES
from eraser_hub.metrics.rank_consistency import SCORES as OF_RANKS
from eraser_hub.metrics.rationale_sets import SCORES as OF_SETS
from eraser_hub.metrics.statistics_builder import ScoreInfo
from eraser_hub.schema.instance import ERASED

from .mixed_model import MINIMUM_EFFECTIVE

Verdict = Literal["better", "worse", "equivalent", "undecided"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
BETTER, WORSE, EQUIVALENT, UNDECIDED = VERDICTS
SWAPPED: dict[str, str] = {BETTER: WORSE, WORSE: BETTER}  # the verdicts that change when a pair is swapped
ALPHA = 0.05
# level of the interval that must lie within the minimum effect: two one-sided tests at .05
EQUIVALENCE_LEVEL = 0.9


@cache
def _scores() -> ScoreInfo:
    of_rows = (OF_ANNOTATORS, OF_SETS, OF_RANKS, OF_QUOTES, OF_FIDELITY)
    tables = (*of_rows, OF_ERASURE, describe_scores())
    return {key: info for table in tables for key, info in table.items()}


def find_range(key: str) -> tuple[float | None, float | None]:
    """Return the lowest and the highest value of a score; None: no end, or not known.

    Scores of erased texts have no such end.
    """
    return (None, None) if key.startswith(ERASED) else _scores().get(key.partition("@")[0], (None, None, None))[1:]


def clip_interval(key: str, interval: tuple[float, float]) -> list[float]:
    """Return an interval of a difference within the greatest possible difference of this score.

    >>> clip_interval("auprc", (0.25, 1.25)), clip_interval("sufficiency", (0.25, 1.25))
    ([0.25, 1.0], [0.25, 1.25])
    """
    low, high = find_range(key)
    if low is None or high is None:
        return list(interval)
    return [max(interval[0], low - high), min(interval[1], high - low)]


def is_known_score(key: str) -> bool:
    """Return True for a score of this project's modules."""
    return key.partition("@")[0] in _scores()


def find_direction(key: str) -> int:
    """Return 1 where a higher score is better, -1 where a lower one is, 0 where neither is.

    A score that no module of this project has counts as better where it is higher.
    """
    up = _scores().get(key.partition("@")[0], (True,))[0]
    return 0 if up is None else 1 if up else -1


def has_same_differences(test: Mapping[str, Any]) -> bool:
    """Return True if all clusters differ by the same: the exchange of clusters decides, and there is no interval."""
    return bool(test["standard_error"] == 0 and test["effective_clusters"] >= MINIMUM_EFFECTIVE)


def is_reached(p: float | None) -> bool:
    """Return True for a p-value of at most .05."""
    return p is not None and p <= ALPHA * (1 + 1e-9)  # m / (20 m) is .05


def decide(key: str, test: Mapping[str, Any], corrected: float | None) -> Verdict:
    """Return the verdict on the first system.

    Args:
        key: the score.
        test: ``difference``, ``minimum_effect``, ``ci_90`` (NaN where refused), ``standard_error`` and
            ``effective_clusters``.
        corrected: the corrected p-value; None for an exploratory score, which is never better or worse.
    """
    (low, high), margin, difference = test["ci_90"], test["minimum_effect"], test["difference"]
    if low != low and not has_same_differences(test):
        return UNDECIDED
    slack = 1e-12 * max(1.0, margin)
    oriented = find_direction(key) * difference
    if is_reached(corrected) and oriented and abs(difference) >= margin - slack:
        return BETTER if oriented > 0 else WORSE
    if -margin - slack <= low and high <= margin + slack:
        return EQUIVALENT
    return UNDECIDED


def describe_components(components: Mapping[str, float]) -> str:
    """Return the sources of a difference's variance in per cent, largest first; "" where there is none.

    >>> describe_components({"documents": 0.003, "runs": 0.001, "interaction": 0.0, "draws": 0.0})
    'documents 75 %, runs 25 %'
    """
    total = sum(components.values())
    if not total > 0:
        return ""
    parts = sorted(((value / total, name) for name, value in components.items() if value > 0), key=lambda one: -one[0])
    return ", ".join(f"{name} {100 * share:.0f} %" for share, name in parts)


def describe_one_run(names: Sequence[str], systems: int) -> str:
    """Return the note on systems with one run each."""
    whose = "each system has one run" if len(names) == systems else f"one run of {', '.join(names)}"
    return (
        f"{whose}: a verdict is about these files, and another seed may give another; several runs are NAME=FILE,FILE"
    )


def describe_doubts(
    pair: str, keys: Mapping[str, Mapping[str, Any]], family: Sequence[str], clusters: int
) -> list[str]:
    """Return notes on the tests of a pair: refused ones, and those that few clusters carry."""
    lines = []
    refused = [key for key in family if math.isnan(keys[key]["ci"][0]) and not math.isnan(keys[key]["difference"])]
    equal = [key for key in refused if keys[key]["effective_clusters"] == 0]
    if equal:
        lines.append(f"{pair}: no interval and no verdict of {', '.join(equal)}: no cluster differs")
    same = [key for key in refused if clusters >= MINIMUM_CLUSTERS and has_same_differences(keys[key])]
    if same:
        lines.append(f"{pair}: no interval of {', '.join(same)}: all {clusters} clusters differ by the same")
    reasons: dict[str, list[str]] = {}
    for key in (key for key in refused if key not in (*equal, *same)):
        counted = keys[key].get("clusters", clusters)
        why = f"fewer than {MINIMUM_EFFECTIVE} of {counted} clusters carry the difference"
        if counted < MINIMUM_CLUSTERS:
            why = f"there are fewer than {MINIMUM_CLUSTERS} clusters"
        if counted < MINIMUM_CLUSTERS <= clusters:
            why = f"{counted} of {clusters} clusters count, fewer than {MINIMUM_CLUSTERS}"
        reasons.setdefault(why, []).append(key)
    lines += [f"{pair}: no interval and no verdict of {', '.join(own)}: {why}" for why, own in reasons.items()]
    for key in family:
        test = keys[key]
        carried = min(test["effective_clusters"], test["differing_clusters"])
        if test["verdict"] in (BETTER, WORSE) and carried < clusters / 2:
            lines.append(f"{pair}: about {carried:.0f} of {clusters} clusters carry the difference in {key}")
    return lines


def describe_undefined(scores: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return notes on scores without a number, one for each group of systems.

    Args:
        scores: {system: {key: score}}.
    """
    keys = {key: [name for name, own in scores.items() if own[key] != own[key]] for key in next(iter(scores.values()))}
    groups: dict[str, list[str]] = {}
    for key, names in keys.items():
        if names:
            groups.setdefault("all systems" if len(names) == len(scores) else ", ".join(names), []).append(key)
    reason = "a mean over nothing has no number, and there is no verdict"
    return [f"undefined in {names}: {', '.join(own)} ({reason})" for names, own in groups.items()]
