"""Plans: the documents and runs that a comparison needs, from a pilot.

A pilot is a comparison of two systems or more. Its variance components say what other numbers of documents and runs
would find, see `power`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from eraser_hub.metrics.data_digest import shorten_digest
from eraser_hub.metrics.statistics_builder import Statistics
from eraser_hub.records.errors import DataError
from eraser_hub.records.json_lines import read_json_object
from eraser_hub.records.options import UsageError, as_list
from eraser_hub.records.tables import Cell, Table, Tables

from ..comparison import Inference, compare_blocks, compare_files, from_result
from ..options import PowerArguments
from ..runs import System, parse_systems
from ..scores import Result, find_minimum_effect
from .power import MOST_DOCUMENTS, POWER, Pilot, make_pilot
from .verdicts import ALPHA, describe_components, find_range

RUNS = (1, 3, 5, 10)
MULTIPLES = (1, 2, 5, 10)  # of the pilot's documents
CURVE = (0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8)
DIGITS = 4
PLANNED = "; planned is the pilot's own difference"
NOT_PLANNED = ", and the pilot's own difference is 0: no documents are planned; `effect` names a difference"


class Plan(Result):
    """The documents and runs that a comparison needs: a dictionary with further forms."""

    def table(self) -> Tables:
        """Return for each pair of systems a table of documents needed, and one of detectable differences."""
        tables = Tables("power")
        for pair in self["pairs"]:
            tables.tables += [_make_needed_table(self, pair), _make_detectable_table(self, pair)]
        tables.tables[-1].notes += self["notes"]
        return tables

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.table().written('text'))}</pre>"


def _describe_runs(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"


def _describe_documents(row: Mapping[str, Any]) -> int | str | None:
    return f"> {MOST_DOCUMENTS:,}" if row.get("lacking") == "documents" else row["documents"]


def _make_needed_table(plan: Mapping[str, Any], pair: Mapping[str, Any]) -> Table:
    names = f"{pair['first']} against {pair['second']}"
    runs = [_describe_runs(count) for count in plan["runs"]]
    title = f"{names}: documents needed to find a difference, power {plan['power']:g} at {plan['alpha']:g}"
    table = Table(f"needed-{pair['first']}-{pair['second']}", title, ("score", "difference"), (*runs, "variance"))
    for key, one in pair["scores"].items():
        for effect in dict.fromkeys(row["difference"] for row in one["needed"]):
            found = [_describe_documents(row) for row in one["needed"] if row["difference"] == effect]
            cells = {head: Cell(value) for head, value in zip(runs, found, strict=True)}
            table.add(key, f"{effect:.{DIGITS}g}", **cells, variance=Cell(one["sources"] or None))
    return table


def _make_detectable_table(plan: Mapping[str, Any], pair: Mapping[str, Any]) -> Table:
    names = f"{pair['first']} against {pair['second']}"
    runs = [_describe_runs(count) for count in plan["runs"]]
    title = f"{names}: difference found by so many documents, power {plan['power']:g} at {plan['alpha']:g}"
    table = Table(f"detectable-{pair['first']}-{pair['second']}", title, ("score", "documents"), tuple(runs))
    for key, one in pair["scores"].items():
        for n in dict.fromkeys(row["documents"] for row in one["detectable"]):
            found = [row["difference"] for row in one["detectable"] if row["documents"] == n]
            table.add(key, f"{n:,}", **{head: Cell(x, digits=DIGITS) for head, x in zip(runs, found, strict=True)})
    return table


def make_plan(
    comparison: Mapping[str, Any],
    keys: Sequence[str] = (),
    effects: Sequence[float] = (),
    documents: Sequence[int] = (),
    runs: Sequence[int] = (),
    power: float = POWER,
    alpha: float = ALPHA,
) -> Plan:
    """Return the documents and runs that a later comparison needs.

    Args:
        comparison: the pilot: what ``compare`` gave, or wrote.
        keys: scores; none: the headline scores that have a pilot.
        effects: differences to find; none: each score's minimum effect, or if that is unknown the pilot's difference.
        documents: numbers of documents whose detectable difference is shown; none: the pilot's, 2, 5 and 10 times it.
        runs: numbers of runs of each system; none: 1, 3, 5 and 10, of a pilot with one run each 1.
        power: probability to find the difference, from .5.
        alpha: level of a test; .05 over the number of tests is the strictest of Holm's.

    Returns:
        ``pairs``: for each pair of systems ``first``, ``second`` and ``scores``: {key: {``difference`` of the pilot,
        ``minimum_effect``, ``variances`` of one document and run each, ``sources`` (them in words), ``needed`` (a
        list of ``difference``, ``runs`` and ``documents``; where ``documents`` is None, ``lacking`` is "runs" if only
        more runs help, else "documents": more than 1,000,000), ``detectable`` (a list of ``documents``, ``runs`` and
        ``difference``)}}; ``instances``, ``clusters`` and ``pilot_runs`` of the pilot;
        ``runs``, ``power``, ``alpha`` and ``notes``.

    Raises:
        DataError: the pilot is none, it lacks a score, or no score has known variances.
    """
    _check_pilot(comparison)
    n, single = comparison["clusters"], [name for name, count in comparison["runs"].items() if count == 1]
    runs = tuple(runs) or ((1,) if len(single) == len(comparison["runs"]) else RUNS)
    documents = tuple(documents) or tuple(n * times for times in MULTIPLES)
    notes, pairs = [], []
    for place, pair in enumerate(comparison["comparisons"]):
        scores = {}
        tested = [key for key in comparison["family"] if not pair["keys"].get(key, {}).get("exploratory")]
        for key in keys or tested:
            try:
                pilot = make_pilot(comparison, key, place)
            except DataError as error:
                if keys:
                    raise
                notes.append(f"{pair['first']} and {pair['second']}, {error.message}")
                continue
            test = pair["keys"][key]
            own = _choose_effects(key, test, effects)
            if not effects and not test["minimum_effect"]:
                notes.append(f"{key}: its minimum effect is unknown{PLANNED if own else NOT_PLANNED}")
            scores[key] = _plan_score(pilot, test, own, documents, runs, power, alpha)
        pairs.append({"first": pair["first"], "second": pair["second"], "scores": scores})
    if not any(pair["scores"] for pair in pairs):
        message = f"expected a pilot with known variances, found none: {'; '.join(notes)}"
        raise DataError(message, rule="score-missing")
    if single and max(runs) > 1:
        words = f"one run of {', '.join(single)}: the pilot does not know how much runs differ, and takes 0"
        notes.append(f"{words}; figures for several runs are too small")
    elif single:
        notes.append(
            "one run of each system: the plan is about these files; a pilot of several runs plans runs as well"
        )
    lacking = {row.get("lacking") for pair in pairs for one in pair["scores"].values() for row in one["needed"]}
    if "runs" in lacking:
        notes.append("– documents: no number of documents suffices, because runs differ too much; more runs do")
    facts = {name: comparison[name] for name in ("instances", "clusters")} | {"pilot_runs": comparison["runs"]}
    chosen = {"runs": list(runs), "power": power, "alpha": alpha}
    signature = _sign(str(comparison.get("signature", "")), power, alpha)
    return Plan({**facts, **chosen, "pairs": pairs, "notes": list(dict.fromkeys(notes)), "signature": signature})


def _choose_effects(key: str, test: Mapping[str, Any], effects: Sequence[float]) -> tuple[float, ...]:
    """Return the differences to plan for: those named, else the minimum effect, else the pilot's difference if any.

    Raises:
        DataError: an effect is wider than the score's range.
    """
    low, high = find_range(key)
    if low is not None and high is not None and max(effects, default=0.0) > high - low:
        message = f"expected at most {high - low:g}, because {key} lies in [{low:g}, {high:g}], found {max(effects):g}"
        raise DataError(message, rule="range", argument="effect")
    return tuple(effects) or tuple(filter(None, [test["minimum_effect"] or abs(test["difference"])]))


def _sign(signature: str, power: float, alpha: float) -> str:
    """Return the signature of a plan by that of its pilot."""
    kept = ("data:", "predicted_on:", "split:", "n:", "cluster:", "clusters:", "version:")
    *own, version = ["", *(part for part in signature.split("|") if part.startswith(kept))]
    return "|".join(["power", *filter(None, own), f"power:{power:g}", f"alpha:{alpha:g}", *filter(None, [version])])


def _check_pilot(comparison: Mapping[str, Any], file: Path | None = None) -> None:
    """Check that a comparison is one of this release.

    Raises:
        DataError: it lacks a part, or has no variance components.
    """
    pairs = comparison.get("comparisons")
    lacking = [name for name in ("comparisons", "clusters", "runs", "family", "instances") if name not in comparison]
    if lacking or not _has_tests(pairs, comparison["runs"]):
        found = f"no {lacking[0]}" if lacking else "no variance components"
        message = f"expected a comparison that `compare` of this release wrote, found {found}"
        raise DataError(message, rule="key-missing", file=file)


def _has_tests(pairs: Any, runs: Any) -> bool:
    """Return True if every pair of a comparison names systems with runs, and any score has all that a plan reads."""
    if not isinstance(pairs, list) or not isinstance(runs, Mapping):
        return False
    for pair in pairs:
        if not isinstance(pair, Mapping) or not isinstance(pair.get("keys"), Mapping):
            return False
        if not all(isinstance(pair.get(side), str) and pair[side] in runs for side in ("first", "second")):
            return False
    tests = [test for pair in pairs for test in pair["keys"].values()]
    return bool(tests) and all(
        isinstance(test, Mapping)
        and test.keys() >= {"effective_clusters", "differing_clusters", "df", "minimum_effect", "difference"}
        and isinstance(test.get("components"), Mapping)
        and test["components"].keys() >= {"documents", "runs", "draws", "interaction"}
        for test in tests
    )


def _plan_score(
    pilot: Pilot,
    test: Mapping[str, Any],
    effects: Sequence[float],
    documents: Sequence[int],
    runs: Sequence[int],
    power: float,
    alpha: float,
) -> dict[str, Any]:
    variances = {"documents": pilot.documents, "runs": pilot.runs, "interaction": pilot.interaction}
    return {
        "difference": test["difference"],
        "minimum_effect": test["minimum_effect"],
        "variances": variances,
        "sources": describe_components(variances),
        "needed": [
            {"difference": effect, "runs": count, **_find_documents(pilot, effect, count, power, alpha)}
            for effect in effects
            for count in runs
        ],
        "detectable": [
            {"documents": n, "runs": count, "difference": pilot.effect(n, count, power, alpha)}
            for n in documents
            for count in runs
        ],
    }


def _find_documents(pilot: Pilot, effect: float, runs: int, power: float, alpha: float) -> dict[str, Any]:
    documents = pilot.documents_for(effect, runs, power, alpha)
    if documents is not None:
        return {"documents": documents}
    return {"documents": None, "lacking": "runs" if pilot.lacks_runs(effect, runs, power, alpha) else "documents"}


def compute_power_curves(comparison: Mapping[str, Any], alpha: float = ALPHA) -> dict[str, dict[str, list[float]]]:
    """Return the power to find each headline score's minimum effect, by documents, with the pilot's numbers of runs.

    Of several pairs of systems it is the lowest power. Scores without a minimum effect or known variances have none.

    Returns:
        {key: {``documents``: numbers of documents, ``power``: the power of each}}.
    """
    sizes = sorted({max(6, round(comparison["clusters"] * times)) for times in CURVE})
    curves: dict[str, dict[str, list[float]]] = {}
    for key in comparison["family"]:
        lines = []
        for place, pair in enumerate(comparison["comparisons"]):
            if pair["keys"].get(key, {}).get("exploratory"):
                continue  # of different models
            try:
                pilot, effect = make_pilot(comparison, key, place), pair["keys"][key]["minimum_effect"]
            except DataError:
                continue
            if effect:
                lines.append([pilot.power(effect, n, pilot.own_runs, alpha) for n in sizes])
        if lines:
            lowest = [min(powers) for powers in zip(*lines, strict=True)]
            curves[key] = {"documents": list(map(float, sizes)), "power": lowest}
    return curves


# ------------------------------------------------------------------------------------------------------------- pilots
def read_comparison(path: Path) -> dict[str, Any]:
    """Return the comparison that ``compare --out`` wrote; its nulls are NaN where a number stands.

    Raises:
        DataError: the file is none, with file.
    """
    content = read_json_object(path)
    _check_pilot(content, path)
    for test in (test for pair in content["comparisons"] for test in pair["keys"].values()):
        for name in ("difference", "effective_clusters", "df"):
            test[name] = math.nan if test.get(name) is None else test[name]
    return content


def compare_score_files(systems: Sequence[System], inference: Inference) -> dict[str, Any]:
    """Compare systems by score files with per-instance scores, see `comparison.from_result`.

    Raises:
        DataError: a file without them, other instances or other data than the first file's.
    """
    contents = {path: read_json_object(path) for system in systems for path in system.paths}
    data = {str(digest): path for path, one in contents.items() if (digest := one.get("data_digest"))}
    if len(data) > 1:
        first, other = list(data)[:2]
        message = (
            f"expected scores of the data {shorten_digest(first)}, found scores of the data {shorten_digest(other)}"
        )
        raise DataError(message, rule="data-mismatch", file=data[other])
    statistics = {path: _read_blocks(content, path) for path, content in contents.items()}
    shared = [name for name in next(iter(statistics.values())) if all(name in own for own in statistics.values())]
    if not shared:
        message = "expected score files that share per-instance scores, found none"
        raise DataError(message, rule="score-missing", file=systems[-1].path)
    blocks = {one.name: [[statistics[path][name] for name in shared] for path in one.paths] for one in systems}
    effects = [_find_effects(content) for content in contents.values()]
    known = {key: min(one[key] for one in effects) for key in effects[0] if all(key in one for one in effects)}
    return compare_blocks(blocks, inference, effects=known)


def _read_blocks(content: Mapping[str, Any], path: Path) -> dict[str, Statistics]:
    """Return the statistics in a score file: metric -> those of its means per instance."""
    results = {name: one for name, one in content.items() if isinstance(one, Mapping) and one.get("per_instance")}
    if content.get("per_instance"):
        results[""] = content
    if not results:
        message = "expected per-instance scores (`per_instance` of `score`), found none"
        raise DataError(message, rule="key-missing", file=path)
    try:
        return {name: from_result(one, name or "result") for name, one in results.items()}
    except DataError as error:
        raise error.at(file=path) from None


def _find_effects(content: Mapping[str, Any]) -> dict[str, float]:
    """Return the minimum effects by the chance levels and ceilings in a score file."""
    levels = content.get("levels")
    if not isinstance(levels, Mapping):
        return {}
    chance, ceiling = levels.get("chance") or {}, levels.get("ceiling") or {}
    effects = {key: find_minimum_effect(chance.get(key), ceiling.get(key)) for key in chance}
    return {key: effect for key, effect in effects.items() if effect is not None}


def plan_from_pilot(arguments: PowerArguments) -> Plan:
    """Return the plan that arguments ask for, from predictions, score files or a comparison.

    Raises:
        DataError: what `compare` refuses, or a pilot that is too small.
    """
    inference = Inference(1, primary=tuple(as_list(arguments.primary) or ()), minimum_effect=arguments.minimum_effect)
    if arguments.comparison is not None:
        comparison = read_comparison(arguments.comparison)
    elif arguments.scores:
        comparison = compare_score_files(_find_systems(arguments.scores, "scores"), inference)
    else:
        systems = _find_systems(arguments.predictions, "predictions")
        settings = replace(arguments.settings(), confidence_level=None, n_resamples=None, totals_only=False)
        comparison = compare_files(arguments.scored_split, systems, settings, inference)
    chosen = arguments.effect, arguments.documents, arguments.runs, arguments.power, arguments.alpha
    plan = make_plan(comparison, inference.primary, *chosen)
    plan.inputs = arguments.inputs
    return plan


def _find_systems(named: Sequence[str | PathLike[str]], argument: str) -> list[System]:
    systems = parse_systems([fspath(one) for one in named], several_operators=argument == "predictions")
    if len(systems) < 2:
        raise UsageError(f"expected the {argument} of at least two systems", rule="option-missing", argument=argument)
    return systems
