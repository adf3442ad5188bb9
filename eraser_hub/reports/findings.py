"""Findings in words: which system is better and by how much, what is equal, what stays open.

Each sentence is made of a comparison's verdicts, one for each family of headline scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from eraser_hub.metrics.statistics import MIN_CLUSTERS
from eraser_hub.scoring.compare import BETTER, EQUIVALENT, UNDECIDED, WORSE
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


class Name(str):
    """A system's name in a sentence, to which a page gives the system's look."""


class Sentence(str):
    """A sentence, and the parts that it is made of: words and names."""

    parts: tuple[str, ...]

    def __new__(cls, *parts: str) -> Sentence:
        """Join the parts."""
        sentence = super().__new__(cls, "".join(parts))
        sentence.parts = parts
        return sentence


class Test(NamedTuple):
    """A test of a headline score, seen from a system: positive differences are in its favour."""

    system: str
    other: str
    key: str
    verdict: str
    difference: float
    low: float
    high: float

    def turn(self) -> Test:
        """Return the test as the other system sees it, which won or lost."""
        verdict = BETTER if self.verdict == WORSE else WORSE
        return Test(self.other, self.system, self.key, verdict, -self.difference, -self.high, -self.low)


def list_tests(comparison: Mapping[str, Any]) -> list[Test]:
    """Return the tests of a comparison, see `scoring.compare.compare`, which may come from a file."""
    tests = []
    for pair in comparison["comparisons"]:
        for key in comparison["family"]:
            found = pair["keys"].get(key)
            if found is not None and not found.get("exploratory"):  # else the systems explain different models
                # null in a file is NaN: no interval, or no difference
                numbers = (math.nan if number is None else number for number in (found["difference"], *found["ci"]))
                tests.append(Test(pair["first"], pair["second"], key, str(found["verdict"]), *numbers))
    return tests


def describe_findings(
    comparison: Mapping[str, Any], chance: Sequence[str] = (), models: Mapping[str, str] | None = None
) -> list[Sentence]:
    """Return a sentence on each family of headline scores.

    Args:
        comparison: the result of a comparison.
        chance: names of systems that are drawn by chance, which lead nothing.
        models: the model that each system explains; faithfulness is compared within a model alone, since it grows with
            a model's confidence. None: all systems explain one model.
    """
    tests, models = list_tests(comparison), models or {}
    different = list(dict.fromkeys(models.values()))
    sentences: list[Sentence] = []
    for family, (name, _, _) in CLAIMS.items():
        found = [test for test in tests if metric(test.key).family == family]
        varying = [test for test in found if test.difference or not math.isnan(test.low)]
        if found and not varying and family != PERFORMANCE:  # methods that explain one model share its answers
            sentences.append(Sentence(f"In {name} the systems are equal in every text."))
        elif family != FAITHFULNESS or len(different) < 2:
            sentences += [describe_family(varying, family, chance)] if varying else []
        else:
            for model in different:
                explained = [name for name, other in models.items() if other == model]
                short = {name: name.removeprefix(f"{model} ") for name in explained}
                within = [
                    test._replace(system=short[test.system], other=short[test.other])
                    for test in varying
                    if test.system in short and test.other in short
                ]
                if within:
                    said = describe_family(within, family, [short.get(name, name) for name in chance])
                    sentences.append(Sentence(f"{model}: ", *said.parts))
    if len(different) > 1:
        words = "Faithfulness of different models is not compared: it grows with a model's confidence."
        sentences.append(Sentence(f"{words} Compare the order of methods within each model."))
    return sentences


def describe_family(tests: Sequence[Test], family: str, chance: Sequence[str]) -> Sentence:
    """Return which systems lead in a family of scores: those that beat most others, and that no other beats.

    Args:
        tests: of its scores.
        family: the family.
        chance: systems that lead nothing.
    """
    name, one_leads, several_lead = CLAIMS[family]
    decided = [test if test.verdict == BETTER else test.turn() for test in tests if test.verdict in (BETTER, WORSE)]
    wins, losers = [test for test in decided if test.system not in chance], {test.other for test in decided}
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
        return Sentence(*_join_names(leaders), f" {claim} ", *_join_names(others), ": ", *by, f"{tie}.")
    if beaten:
        mixed = max(beaten, key=lambda system: len(beaten[system]))
        labels = sorted({metric(test.key).label for test in wins if test.system == mixed})
        better = f" is better in {_join(labels)}, and worse elsewhere."
        return Sentence(f"In {name} no system leads: ", Name(mixed), better)
    verdicts = [test.verdict for test in tests]
    total, undecided, equal = len(verdicts), verdicts.count(UNDECIDED), verdicts.count(EQUIVALENT)
    if equal == total:
        words = "the difference is" if total == 1 else f"all {total} differences are"
        return Sentence(f"In {name} the systems are equivalent: {words} too small to matter.")
    said = []
    for words, count in (("undecided", undecided), ("in favour of chance", total - equal - undecided)):
        several = f"{count} of {total} differences {'is' if count == 1 else 'are'}"
        counted = "the difference is" if total == 1 else several
        said += [f"{counted} {words}"] if count else []
    return Sentence(f"In {name} no system is shown to be better: {', '.join(said)}.")


def describe_wins(wins: Sequence[Test]) -> tuple[str, ...]:
    """Return the parts of the smallest difference, with its interval, in the score by which most pairs differ.

    >>> "".join(describe_wins([Test("a", "b", "sufficiency_aopc", "better", 0.12, 0.1, 0.14)]))
    'Sufficiency (AOPC) is better by 0.120 [0.100, 0.140]'
    """
    by_key: dict[str, list[Test]] = {}
    for test in wins:
        by_key.setdefault(test.key, []).append(test)
    tests = max(by_key.values(), key=len)
    least = min(tests, key=lambda test: abs(test.difference))
    pair: tuple[str, ...] = ()
    if len({(test.system, test.other) for test in wins}) > 1:
        pair = Name(least.system), " against ", Name(least.other)
    smallest = ("the smallest difference",) if len(tests) > 1 else ()
    more = (" (", *pair, ", " if pair and smallest else "", *smallest, ")") if pair or smallest else ()
    digits = 3 if abs(least.difference) >= 0.0005 else 6
    numbers = f"{format_number(least.difference, digits)} {format_interval((least.low, least.high), digits)}"
    return f"{metric(least.key).label} is better by {numbers}", *more


def describe_alone(system: Scores) -> list[Sentence]:
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
            sentences.append(Sentence(Name(system.name), f": {', '.join(numbers)}."))
            continue
        above, below = low > chance, high < chance
        if metric(key).better == "lower":
            above, below = below, above
        verb = "better than" if above else "worse than" if below else "no better than"
        words = f" {claim} {verb} chance: {numbers[0]}, by chance {format_number(chance)}."
        sentences.append(Sentence(Name(system.name), words))
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
    return "".join(_join_names(names))


def _join_names(names: Sequence[str]) -> list[str]:
    """Return the parts of an enumeration; the last of many names are counted."""
    known = [*names[:MAX_NAMES], f"{len(names) - MAX_NAMES} others"] if len(names) > MAX_NAMES + 1 else names
    parts: list[str] = []
    for place, name in enumerate(known):
        between = " and " if place == len(known) - 1 else ", "
        parts += [between if place else "", Name(name)]
    return parts
