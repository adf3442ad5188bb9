"""A report's first screen: findings in words, how they were tested, the headline scores, and one example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from eraser_hub.records.predictions import read_model_digest
from eraser_hub.scoring.compare import align_systems, have_same_model
from eraser_hub.scoring.result import Scores, choose_headline

from ..catalogue import AGREEMENT, FAITHFULNESS, FAMILIES, PERFORMANCE, format_interval, format_number, metric
from ..findings import describe_findings
from .example import TellingExample
from .forest import PEOPLE, ForestPanel, find_systems, make_panels

SENTENCES = 3
NO_STAR = "no star is possible"  # a note of the comparison
PANELS = 6


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison of a report's systems, and what its findings need to know.

    Attributes:
        result: of `scoring.compare.compare`; None where nothing can be compared.
        chance: systems that are drawn by chance.
        models: the model that each system explains; empty: one model.
    """

    result: Mapping[str, Any] | None
    chance: Sequence[str] = ()
    models: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Overview:
    """A report's first screen.

    Attributes:
        findings: sentences; the first three are shown, the others folded.
        trust: how the findings were tested.
        panels: the forest plot.
        example: a text on which systems differ.
    """

    findings: Sequence[str] = ()
    trust: str = ""
    panels: Sequence[ForestPanel] = ()
    example: TellingExample | None = None

    @property
    def lead(self) -> Sequence[str]:
        """The scores that a narrow screen shows at first: the first of each of two families."""
        leads = {metric(one.key).family: one.key for one in reversed(self.panels)}
        return [leads[family] for family in FAMILIES if family in leads][:2]

    @property
    def shown(self) -> Sequence[str]:
        """The findings that are not folded."""
        return self.findings[:SENTENCES]

    @property
    def folded(self) -> Sequence[str]:
        """The findings after the first three."""
        return self.findings[SENTENCES:]


def find_models(scored: Sequence[Scores], only_predicted: bool = False) -> dict[str, str]:
    """Return the model that each system explains, named by its first system; empty where all explain one model."""
    digests = {one.name: [read_model_digest(path) for path in one.files] for one in scored}
    aligned = align_systems({one.name: one.runs for one in scored}, only_predicted).get("eraser_faithfulness")
    leaders, models = list[str](), dict[str, str]()
    for name in digests:
        leader = next((one for one in leaders if have_same_model((one, name), aligned, digests)), name)
        leaders += [name] * (leader == name)
        models[name] = f"model of {leader}"
    return models if len(leaders) > 1 else {}


def list_headline(scored: Sequence[Scores], comparison: Mapping[str, Any] | None = None) -> list[str]:
    """Return the headline scores that any system has: those that a comparison tests, and others."""
    found = dict.fromkeys(key for one in scored for key in one if one.number(key) is not None)
    tested = [key for key in comparison["family"] if key in found] if comparison is not None else []
    return list(dict.fromkeys([*tested, *choose_headline(found, scored[0].paper if scored else None)]))


def make_overview(
    scored: Sequence[Scores], compared: Compared, baselines: Sequence[Scores], example: TellingExample | None
) -> Overview:
    """Make the first screen.

    Args:
        scored: the systems.
        compared: their comparison.
        baselines: draws of random rationales: chance of the scores that have none of their own.
        example: a text on which systems differ.
    """
    result = compared.result
    if result is not None:
        findings = describe_findings(result, compared.chance, compared.models)
        trust = describe_tests(result)
    else:
        findings = [line for one in scored for line in describe_alone(one)]
        trust = ""
    if not scored:
        findings = ["No predictions were given: this page shows the gold rationales alone."]
    by_chance = [*baselines, *(one for one in scored if one.name in compared.chance)]
    chance = {}
    for key in list_headline(scored, result):
        drawn = [value for one in by_chance if (value := one.number(key)) is not None]
        if drawn and metric(key).family != PERFORMANCE:
            chance[key] = fmean(drawn)
    if people := find_systems(scored, PEOPLE):
        words = f"{', '.join(people)}: erased by what people marked, so no agreement with them is drawn."
        trust = " ".join(filter(None, (trust, words)))
    panels = make_panels(scored, list_headline(scored, result)[:PANELS], chance, people)
    return Overview(findings, trust, panels, example)


def describe_tests(result: Mapping[str, Any]) -> str:
    """Return how findings were tested, and what they leave open."""
    pairs, family = len(result["comparisons"]), len(result["family"])
    several = [name for name, count in result["runs"].items() if count > 1]
    runs = "several runs" if len(several) == len(result["runs"]) else "one run of a system"
    clusters = f" in {result['clusters']} documents" if result["clusters"] != result["instances"] else ""
    words = f"Tested on {result['instances']} texts{clusters}, {runs}, with Holm's correction over "
    words += f"{family} headline {'score' if family == 1 else 'scores'} of {pairs} {'pair' if pairs == 1 else 'pairs'}"
    faithfulness = [key for key in result["family"] if metric(key).family == FAITHFULNESS]
    within = any(pair["keys"].get(key, {}).get("exploratory") for pair in result["comparisons"] for key in faithfulness)
    words += ", faithfulness only within a model." if within else "."
    # a warning that the tests cannot find anything belongs beside what they found
    words += "".join(f" {note[0].upper()}{note[1:]}." for note in result["notes"] if note.startswith(NO_STAR))
    if len(several) < len(result["runs"]):
        words += " A system trained anew may differ more than its interval says."
    return words


def describe_alone(system: Scores) -> list[str]:
    """Return a sentence on the first headline score of each family, beside chance where it is known."""
    lines = []
    claims = {
        AGREEMENT: "agrees with people's rationales",
        FAITHFULNESS: "explains the model",
        PERFORMANCE: "answers",
    }
    for family in (name for name in FAMILIES if name in claims):
        keys = [key for key in list_headline([system]) if metric(key).family == family]
        if not keys:
            continue
        key = keys[0]
        value, interval = system.number(key), system.intervals.get(key)
        numbers = f"{metric(key).label} {format_number(value)} {format_interval(interval)}".strip()
        chance = system.chance.get(key)
        if chance is None or interval is None:
            lines.append(f"{system.name}: {numbers}.")
            continue
        up = metric(key).better != "lower"
        above = interval[0] > chance if up else interval[1] < chance
        below = interval[1] < chance if up else interval[0] > chance
        verb = "better than" if above else "worse than" if below else "no better than"
        lines.append(f"{system.name} {claims[family]} {verb} chance: {numbers}, by chance {format_number(chance)}.")
    return lines
