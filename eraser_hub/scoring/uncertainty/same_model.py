"""Models behind systems: which files are draws of one trained model, and which systems explain the same one.

Comprehensiveness, sufficiency and their kin are differences of a model's probabilities, so they grow with the model's
confidence. They compare explanations of one model. Between models normalised scores compare: NAOPC (Edin et al. 2025)
and normalised fidelity (Carton et al. 2020).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from eraser_hub.metrics.clusters import number_values
from eraser_hub.metrics.faithfulness import FULL_INPUT
from eraser_hub.metrics.statistics_builder import Statistics
from eraser_hub.records.run_record import read_model_digest
from eraser_hub.schema.instance import ERASED

from ..scores import Scores

# scores that grow with a model's confidence
UNNORMALISED = frozenset(f"{side}{end}" for side in ERASED for end in ("", "_aopc", "_entropy", "_kl"))
# headline scores between different models, in place of those
NORMALISED = tuple(f"{prefix}_{side}" for prefix in ("naopc", "normalized") for side in ERASED)
SAME_SCORES = 1e-6
NAMED = 3  # pairs in a note


def number_trainings(systems: Mapping[str, Scores]) -> dict[str, list[int]]:
    """Return the trained model of each file of each system: files with one model have one number.

    Files of one system with one model are draws of a method. A file without a digest is a training of its own.
    """
    digests: dict[str, list[str]] = {}
    for name, system in systems.items():
        own = [read_model_digest(path) for path in system.files]
        known = len(own) == len(system.runs) and all(own)
        digests[name] = own if known else [f"{name} {place}" for place in range(len(system.runs))]
    numbers = iter(number_values([one for own in digests.values() for one in own]).tolist())
    return {name: [int(next(numbers)) for _ in own] for name, own in digests.items()}


def share_trainings(first: Sequence[int], second: Sequence[int]) -> bool:
    """Return True if two systems have the same several trainings, each as often as the others: runs to be paired.

    Args:
        first: the training of each file of one system, see `number_trainings`.
        second: likewise of the other.
    """
    counts = [Counter(first), Counter(second)]
    return (
        counts[0].keys() == counts[1].keys() and len(counts[0]) > 1 and all(len({*own.values()}) == 1 for own in counts)
    )


def describe_shared_trainings(trainings: Mapping[str, Sequence[int]]) -> list[str]:
    """Return the note on pairs of systems whose runs are paired; none where there is no such pair."""
    pairs = [pair for pair in combinations(trainings, 2) if share_trainings(*(trainings[name] for name in pair))]
    if not pairs:
        return []
    several = len(trainings) > 2 and len(pairs) == math.comb(len(trainings), 2)
    whose = "all systems" if several else "; ".join(f"{first} and {second}" for first, second in pairs)
    return [f"{whose} explain the same trainings: their runs are paired"]


def explain_same_model(first: Scores, second: Scores) -> bool:
    """Return True if two systems explain the same models: equal digests, else equal scores of the full inputs.

    Full inputs are equal if each instance's probability of its predicted label is, to 1e-6. Systems without
    probabilities are taken as explanations of one model.
    """
    digests = [{read_model_digest(path) for path in system.files} for system in (first, second)]
    if all(digests) and "" not in digests[0] | digests[1]:
        return digests[0] == digests[1]
    pairs = zip(first.runs, second.runs, strict=False)
    return all(
        _has_equal_scores(one["faithfulness"], two["faithfulness"]) for one, two in pairs if _have_both(one, two)
    )


def _have_both(*runs: Mapping[str, Statistics]) -> bool:
    return all("faithfulness" in run and FULL_INPUT in (run["faithfulness"].columns or ()) for run in runs)


def _has_equal_scores(first: Statistics, second: Statistics) -> bool:
    places = {identity: row for row, identity in enumerate(second.ids)}
    rows = [(row, places[identity]) for row, identity in enumerate(first.ids) if identity in places]
    own, other = (one.values[:, list(one.columns or ()).index(FULL_INPUT)] for one in (first, second))
    left, right = np.array(rows, dtype=int).reshape(-1, 2).T
    return bool((np.abs(own[left] - other[right]) <= SAME_SCORES).all())


def group_by_model(systems: Mapping[str, Scores]) -> list[list[str]]:
    """Return the names of the systems that explain each model."""
    groups: list[list[str]] = []
    for name, system in systems.items():
        own = next((group for group in groups if explain_same_model(systems[group[0]], system)), None)
        if own is None:
            groups.append([name])
        else:
            own.append(name)
    return groups


def find_different_models(systems: Mapping[str, Scores]) -> list[tuple[str, str]]:
    """Return the pairs of systems that explain different models."""
    return [
        (first, second)
        for first, second in combinations(systems, 2)
        if not explain_same_model(systems[first], systems[second])
    ]


def describe_different_models(pairs: Sequence[tuple[str, str]], keys: Sequence[str]) -> list[str]:
    """Return the note on scores that do not compare between models; none where the systems have no such score."""
    unnormalised = [key for key in keys if key in UNNORMALISED]
    if not pairs or not unnormalised:
        return []
    more = f"; and {len(pairs) - NAMED} more pairs" if len(pairs) > NAMED else ""
    whose = "; ".join(f"{first} and {second}" for first, second in pairs[:NAMED]) + more
    fair = [key for key in keys if key in NORMALISED]
    instead = f"{', '.join(fair)} are headline scores instead" if fair else "NAOPC and normalised fidelity do compare"
    return [
        f"different models ({whose}): {', '.join(unnormalised)} grow with a model's confidence and are not compared "
        f"between models; {instead}"
    ]
