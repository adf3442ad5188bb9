"""Findings of a comparison in words: which system is better in what, what is equal, what stays open."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from eraser_hub.scoring.compare import BETTER, EQUIVALENT, SWAPPED, UNDECIDED, WORSE

from .catalogue import AGREEMENT, FAITHFULNESS, PERFORMANCE, format_number, metric

# what one system, and several, do that are better in a family's scores; what the family is called
CLAIMS = {
    FAITHFULNESS: ("explains the model more faithfully than", "explain the model more faithfully than", "faithfulness"),
    AGREEMENT: (
        "agrees with people's rationales more closely than",
        "agree with people's rationales more closely than",
        "agreement with people's rationales",
    ),
    PERFORMANCE: ("answers better than", "answer better than", "performance"),
}
SHOWN = 5  # names in a row


class Test(NamedTuple):
    """A test, seen from a system: positive differences are its own."""

    system: str
    other: str
    key: str
    verdict: str
    difference: float
    low: float
    high: float
    p: float | None = None  # corrected
    minimum: float | None = None  # effect that matters; None: unknown


def list_tests(comparison: Mapping[str, Any], exploratory: bool = False) -> Iterator[Test]:
    """Yield each headline test of a comparison, as of `scoring.compare.compare`, from both sides.

    Args:
        comparison: the result of a comparison.
        exploratory: also the tests of systems that explain different models.
    """
    for pair in comparison["comparisons"]:
        for key in comparison["family"]:
            test = pair["keys"].get(key)
            if test is None or (test.get("exploratory") and not exploratory):
                continue  # the systems lack it, or explain different models
            # null in a file is NaN: no interval, or no difference
            numbers = (test["difference"], *test["ci"])
            difference, low, high = (float("nan") if number is None else number for number in numbers)
            verdict, rest = str(test["verdict"]), (test.get("p_holm"), test.get("minimum_effect"))
            yield Test(pair["first"], pair["second"], key, verdict, difference, low, high, *rest)
            other = SWAPPED.get(verdict, verdict)
            yield Test(pair["second"], pair["first"], key, other, -difference, -high, -low, *rest)


def describe_findings(
    comparison: Mapping[str, Any], chance: Sequence[str] = (), models: Mapping[str, str] | None = None
) -> list[str]:
    """Return sentences on the families of headline scores, made of the verdicts.

    Args:
        comparison: the result of a comparison.
        chance: names of systems that are drawn by chance, which lead nothing.
        models: the model that each system explains; faithfulness is compared within a model alone, since it grows with
            a model's confidence. None: all systems explain one model.
    """
    tests, models = list(list_tests(comparison)), models or {}
    different = list(dict.fromkeys(models.values()))
    lines = []
    for family in CLAIMS:
        own = [one for one in tests if metric(one.key).family == family]
        if family == PERFORMANCE:  # methods that explain one model share its answers
            own = [one for one in own if one.difference or not math.isnan(one.low)]
        if family == FAITHFULNESS and len(different) > 1:
            for model in different:
                within = [one for one in own if models[one.system] == models[one.other] == model]
                short = {name: name.removeprefix(f"{model} ") for name in (*models, *chance)}
                if within:
                    named = [one._replace(system=short[one.system], other=short[one.other]) for one in within]
                    lines.append(f"{model}: {_describe_family(named, family, {short[name] for name in chance})}")
        elif own:
            lines.append(_describe_family(own, family, set(chance)))
    if len(different) > 1:
        lines.append(
            "Faithfulness of different models is not compared: it grows with a model's confidence. Compare the order "
            "of methods within each model."
        )
    return lines


def _describe_family(tests: Sequence[Test], family: str, chance: set[str]) -> str:
    """Return the sentence on a family of scores."""
    one_leads, several_lead, name_of_family = CLAIMS[family]
    beaten: dict[str, set[str]] = {}
    lost = {one.system for one in tests if one.verdict == WORSE}
    wins = [one for one in tests if one.verdict == BETTER and one.system not in chance]
    for one in wins:
        beaten.setdefault(one.system, set()).add(one.other)
    ahead = [name for name in beaten if name not in lost]
    if ahead:
        most = max(len(beaten[name]) for name in ahead)
        leaders = [name for name in ahead if len(beaten[name]) == most]
        shared = set.intersection(*(beaten[name] for name in leaders))
        others = list(dict.fromkeys(one.other for one in wins if one.other in (shared or beaten[leaders[0]])))
        relevant = [one for one in wins if one.system in leaders and one.other in others]
        claim = one_leads if len(leaders) == 1 else several_lead
        words = f"{_list(leaders)} {claim} {_list(others)}: {describe_wins(relevant)}"
        return f"{words}{'; among themselves nothing is decided' if len(leaders) > 1 else ''}."
    if beaten:
        mixed = max(beaten, key=lambda name: len(beaten[name]))
        labels = sorted({metric(one.key).label for one in wins if one.system == mixed})
        return f"In {name_of_family} no system leads: {mixed} is better in {_list(labels)}, and worse elsewhere."
    verdicts = [one.verdict for one in tests][::2]  # each test is seen from both sides
    equal = verdicts.count(EQUIVALENT)
    if equal == len(verdicts):
        return f"In {name_of_family} the systems are equivalent: all {equal} differences are too small to matter."
    undecided = verdicts.count(UNDECIDED)
    chance_alone = len(verdicts) - equal - undecided
    more = f", {chance_alone} are in favour of chance" if chance_alone else ""
    return (
        f"In {name_of_family} no system is shown to be better: {undecided} of {len(verdicts)} differences are "
        f"undecided{more}."
    )


def describe_wins(wins: Sequence[Test]) -> str:
    """Return the smallest difference of one score, with its interval.

    The score is the one by which most pairs of systems differ, the first of several.

    >>> describe_wins([Test("a", "b", "sufficiency_aopc", "better", 0.12, 0.1, 0.14)])
    'Sufficiency (AOPC) is better by 0.120 [0.100, 0.140]'
    """
    by_key: dict[str, list[Test]] = {}
    for one in wins:
        by_key.setdefault(one.key, []).append(one)
    tests = max(by_key.values(), key=len)
    closest = min(tests, key=lambda one: abs(one.difference))
    low, high = format_number(closest.low), format_number(closest.high)
    numbers = f"{format_number(closest.difference)} [{low}, {high}]"
    details = [f"{closest.system} against {closest.other}"] * (len({(one.system, one.other) for one in wins}) > 1)
    details += ["the smallest difference"] * (len(tests) > 1)
    details += ["no minimum effect is set: any significant difference counts"] * (closest.minimum == 0)
    more = f" ({', '.join(details)})" if details else ""
    return f"{metric(closest.key).label} is better by {numbers}{more}"


def _list(names: Sequence[str]) -> str:
    """Return names joined in words; many are counted."""
    if len(names) > SHOWN + 1:
        return f"{', '.join(names[:SHOWN])} and {len(names) - SHOWN} others"
    return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), *names[-1:]])
