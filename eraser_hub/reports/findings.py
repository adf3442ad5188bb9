"""Findings in words: which system is better and by how much, what is equal, what stays open.

Each sentence is made of a comparison's verdicts, one for each family of headline scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from eraser_hub.metrics.statistics import MIN_CLUSTERS
from eraser_hub.scoring.compare import BETTER, EQUIVALENT, SWAPPED, UNDECIDED, WORSE
from eraser_hub.scoring.result import Scores

from .catalogue import AGREEMENT, FAITHFULNESS, PERFORMANCE, format_interval, format_number, metric

# of each family: its name, and what one system and several do that are better
CLAIMS = {
    FAITHFULNESS: (
        "faithfulness",
        "explains the model more faithfully than",
        "explain the model more faithfully than",
    ),
    AGREEMENT: (
        "agreement with people's rationales",
        "agrees with people's rationales more closely than",
        "agree with people's rationales more closely than",
    ),
    PERFORMANCE: ("performance", "answers better than", "answer better than"),
}
ALONE = {AGREEMENT: "agrees with people's rationales", FAITHFULNESS: "explains the model", PERFORMANCE: "answers"}
MAX_NAMES = 5  # systems that a sentence names


class Test(NamedTuple):
    """A test, seen from a system: positive differences are in its favour."""

    system: str
    other: str
    key: str
    verdict: str
    difference: float
    low: float
    high: float


def list_tests(comparison: Mapping[str, Any]) -> list[Test]:
    """Return each test of a headline score in a comparison, see `scoring.compare.compare`, from both sides."""
    tests = []
    for pair in comparison["comparisons"]:
        for key in comparison["family"]:
            found = pair["keys"].get(key)
            if found is None or found.get("exploratory"):
                continue  # the systems lack it, or explain different models
            # null in a file is NaN: no interval, or no difference
            d, low, high = (math.nan if number is None else number for number in (found["difference"], *found["ci"]))
            verdict = str(found["verdict"])
            tests.append(Test(pair["first"], pair["second"], key, verdict, d, low, high))
            swapped = SWAPPED.get(verdict, verdict)
            tests.append(Test(pair["second"], pair["first"], key, swapped, -d, -high, -low))
    return tests


def describe_findings(
    comparison: Mapping[str, Any], chance: Sequence[str] = (), models: Mapping[str, str] | None = None
) -> list[str]:
    """Return a sentence on each family of headline scores.

    Args:
        comparison: the result of a comparison.
        chance: names of systems that are drawn by chance, which lead nothing.
        models: the model that each system explains; faithfulness is compared within a model alone, since it grows with
            a model's confidence. None: all systems explain one model.
    """
    tests, models = list_tests(comparison), models or {}
    different = list(dict.fromkeys(models.values()))
    sentences = []
    for family in CLAIMS:
        found = [test for test in tests if metric(test.key).family == family]
        varying = [test for test in found if test.difference or not math.isnan(test.low)]
        if found and not varying and family != PERFORMANCE:  # methods that explain one model share its answers
            sentences.append(f"In {CLAIMS[family][0]} the systems are equal in every text.")
        found = varying
        if family != FAITHFULNESS or len(different) < 2:
            sentences += [_describe_family(found, family, chance)] if found else []
            continue
        for model in different:
            within = [test for test in found if models[test.system] == models[test.other] == model]
            short = {name: name.removeprefix(f"{model} ") for name in models}
            within = [test._replace(system=short[test.system], other=short[test.other]) for test in within]
            if within:
                words = _describe_family(within, family, [short.get(name, name) for name in chance])
                sentences.append(f"{model}: {words}")
    if len(different) > 1:
        words = "Faithfulness of different models is not compared: it grows with a model's confidence."
        sentences.append(f"{words} Compare the order of methods within each model.")
    return sentences


def _describe_family(tests: Sequence[Test], family: str, chance: Sequence[str]) -> str:
    name, one_leads, several_lead = CLAIMS[family]
    wins = [test for test in tests if test.verdict == BETTER and test.system not in chance]
    losers = {test.system for test in tests if test.verdict == WORSE}
    beaten: dict[str, set[str]] = {}
    for test in wins:
        beaten.setdefault(test.system, set()).add(test.other)
    ahead = {system: others for system, others in beaten.items() if system not in losers}
    if ahead:
        most = max(map(len, ahead.values()))
        leaders = [system for system, others in ahead.items() if len(others) == most]
        if not (shared := set.intersection(*(ahead[system] for system in leaders))):
            leaders, shared = leaders[:1], ahead[leaders[0]]
        others = list(dict.fromkeys(test.other for test in wins if test.other in shared))
        by = describe_wins([test for test in wins if test.system in leaders and test.other in others])
        claim = one_leads if len(leaders) == 1 else several_lead
        tie = "; among themselves nothing is decided" if len(leaders) > 1 else ""
        return f"{_join(leaders)} {claim} {_join(others)}: {by}{tie}."
    if beaten:
        mixed = max(beaten, key=lambda system: len(beaten[system]))
        labels = sorted({metric(test.key).label for test in wins if test.system == mixed})
        return f"In {name} no system leads: {mixed} is better in {_join(labels)}, and worse elsewhere."
    verdicts = [test.verdict for test in tests][::2]  # each test is seen from both sides
    undecided, equal = verdicts.count(UNDECIDED), verdicts.count(EQUIVALENT)
    if equal == len(verdicts):
        return f"In {name} the systems are equivalent: all {equal} differences are too small to matter."
    rest = len(verdicts) - equal - undecided
    more = f", {rest} are in favour of chance" if rest else ""
    return f"In {name} no system is shown to be better: {undecided} of {len(verdicts)} differences are undecided{more}."


def describe_wins(wins: Sequence[Test]) -> str:
    """Return the smallest difference, with its interval, in the score by which most pairs of systems differ.

    >>> describe_wins([Test("a", "b", "sufficiency_aopc", "better", 0.12, 0.1, 0.14)])
    'Sufficiency (AOPC) is better by 0.120 [0.100, 0.140]'
    """
    by_key: dict[str, list[Test]] = {}
    for test in wins:
        by_key.setdefault(test.key, []).append(test)
    tests = max(by_key.values(), key=len)
    least = min(tests, key=lambda test: abs(test.difference))
    details = []
    if len({(test.system, test.other) for test in wins}) > 1:
        details.append(f"{least.system} against {least.other}")
    if len(tests) > 1:
        details.append("the smallest difference")
    more = f" ({', '.join(details)})" if details else ""
    digits = 3 if abs(least.difference) >= 0.0005 else 6
    numbers = f"{format_number(least.difference, digits)} {format_interval((least.low, least.high), digits)}"
    return f"{metric(least.key).label} is better by {numbers}{more}"


def describe_alone(system: Scores) -> list[str]:
    """Return a sentence on the headline scores of each family; the first stands beside chance, where it is known.

    Intervals of few clusters are too short for a verdict.
    """
    sentences, has_few = [], any(one.n_clusters < MIN_CLUSTERS for one in system.statistics.values())
    for family, claim in ALONE.items():
        keys = [key for key in system.headline if metric(key).family == family]
        numbers = []
        for key in keys:
            interval = format_interval(system.intervals.get(key))
            numbers.append(f"{metric(key).label} {format_number(system.number(key))} {interval}".strip())
        if not keys:
            continue
        key = keys[0]
        low, high = system.intervals.get(key, (math.nan, math.nan))
        chance = system.chance.get(key)
        if chance is None or has_few or math.isnan(low) or math.isnan(high):
            sentences.append(f"{system.name}: {', '.join(numbers)}.")
            continue
        above, below = low > chance, high < chance
        if metric(key).better == "lower":
            above, below = below, above
        verb = "better than" if above else "worse than" if below else "no better than"
        sentences.append(f"{system.name} {claim} {verb} chance: {numbers[0]}, by chance {format_number(chance)}.")
    return sentences


def describe_tests(comparison: Mapping[str, Any]) -> str:
    """Return how the findings were tested, and what they leave open."""
    pairs, family, runs = len(comparison["comparisons"]), comparison["family"], comparison["runs"]
    clusters = f" in {comparison['clusters']} documents" if comparison["clusters"] != comparison["instances"] else ""
    alone = sum(count == 1 for count in runs.values())
    scores = "headline score" if len(family) == 1 else "headline scores"
    words = (
        f"Tested on {comparison['instances']} texts{clusters}, {'one run of a system' if alone else 'several runs'}, "
        f"with Holm's correction over {len(family)} {scores} of {pairs} {'pair' if pairs == 1 else 'pairs'}"
    )
    faithfulness = [key for key in family if metric(key).family == FAITHFULNESS]
    tests = [pair["keys"].get(key, {}) for pair in comparison["comparisons"] for key in faithfulness]
    words += ", faithfulness only within a model." if any(test.get("exploratory") for test in tests) else "."
    # a warning that the tests cannot find anything belongs beside what they found
    words += "".join(
        f" {note[0].upper()}{note[1:]}." for note in comparison["notes"] if note.startswith("no star is possible")
    )
    minimum = [test["minimum_effect"] for pair in comparison["comparisons"] for test in pair["keys"].values()]
    words += " No minimum effect is set: any significant difference counts." * (not any(minimum))
    return words + " A system trained anew may differ more than its interval says." * bool(alone)


def merge_notes(notes: Sequence[tuple[str, str]], systems: Sequence[str]) -> list[str]:
    """Return a line for each text, with the systems that it is about.

    >>> merge_notes([("a", "no curve"), ("b", "no curve"), ("a", "one run")], ["a", "b"])
    ['all 2 systems: no curve', 'a: one run']
    """
    named: dict[str, list[str]] = {}
    for system, text in notes:
        if system not in named.setdefault(text, []):
            named[text].append(system)
    lines = []
    for text, names in named.items():
        all_of_several = len(names) == len(systems) > 1
        lines.append(f"{f'all {len(systems)} systems' if all_of_several else _join(names)}: {text}")
    return lines


def _join(names: Sequence[str]) -> str:
    """Return names joined in words; the last of many are counted."""
    if len(names) > MAX_NAMES + 1:
        return f"{', '.join(names[:MAX_NAMES])} and {len(names) - MAX_NAMES} others"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
