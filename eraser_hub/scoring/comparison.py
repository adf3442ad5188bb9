"""Comparison of two or more systems on the same instances.

The tests use the additive statistics of the scores, so nothing is scored again. One model of documents and runs gives
intervals and tests (`uncertainty.mixed_model`), beside the exchange of documents, per key and pair of systems. With one
run each the exchange decides, with several runs the model. Only headline scores can be better or worse, after Holm's
correction over the headline scores times the pairs. All other scores are exploratory. `uncertainty.verdicts` has the
words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np

from eraser_hub.metrics.agreement_scores import SENTENCES_BY_SPANS
from eraser_hub.metrics.clusters import AUTO, NONE, number_values
from eraser_hub.metrics.intervals import describe_small_counts, intervals
from eraser_hub.metrics.resampling import DEFAULT_LEVEL, check_settings
from eraser_hub.metrics.results import HEADLINE, signature
from eraser_hub.metrics.statistics_builder import Finalize, Statistics, StatisticsBuilder
from eraser_hub.records.errors import MOST_SHOWN, DataError, describe_choice, show

from .paired_tests import (
    RESAMPLES,
    Pair,
    choose_resamples,
    count_needed_resamples,
    find_differing,
    holm,
    is_exact,
    randomisation,
)
from .quotes import BLOCK as QUOTES
from .runs import System, describe_unlike_operators
from .score import RANGES, score
from .scored_split import ScoredSplit
from .scores import Scores, average_runs
from .settings import ScoreSettings
from .uncertainty.mixed_model import DifferenceModel, find_attainable_level
from .uncertainty.same_model import (
    NORMALISED,
    UNNORMALISED,
    describe_different_models,
    describe_shared_trainings,
    find_different_models,
    number_trainings,
    share_trainings,
)
from .uncertainty.verdicts import (
    ALPHA,
    BETTER,
    EQUIVALENCE_LEVEL,
    clip_interval,
    decide,
    describe_doubts,
    describe_one_run,
    describe_undefined,
    is_known_score,
)

Result = Statistics | Mapping[str, Any] | Scores


@dataclass(frozen=True)
class Inference:
    """Settings of the tests of differences.

    Attributes:
        n_resamples: exchanges of documents of the randomisation test; None: 10,000, and so many that a star is
            possible, see `paired_tests.choose_resamples`.
        seed: seed of all random draws.
        confidence_level: confidence level of the intervals of differences.
        primary: the scores of the family, times the pairs of systems; none: the headline scores, see `HEADLINE`.
        minimum_effect: smallest difference that matters, in the scores' units.
    """

    n_resamples: int | None = None
    seed: int = 0
    confidence_level: float = DEFAULT_LEVEL
    primary: tuple[str, ...] = ()
    minimum_effect: float = 0.0

    def check(self) -> None:
        """Raise a ValueError for a setting out of its range."""
        check_settings(self.confidence_level, RESAMPLES if self.n_resamples is None else self.n_resamples)
        if not (math.isfinite(self.minimum_effect) and self.minimum_effect >= 0):
            words = f"minimum_effect: expected a difference of at least 0, found {self.minimum_effect!r}"
            raise DataError(words, rule="option-value")

    def family(self, keys: Sequence[str], between_models: bool = False) -> list[str]:
        """Return the scores of a pair of systems that are tested for a star.

        Args:
            keys: the scores that the systems share.
            between_models: the systems explain different models: the headline is normalised.

        Raises:
            DataError: a primary score that the systems do not share.
        """
        for key in self.primary:
            if key not in keys:
                raise DataError(describe_choice(key, keys), rule="option-value", field="primary")
        headline = {key for own in HEADLINE.values() for key in own}
        if between_models:
            headline = (headline - UNNORMALISED) | set(NORMALISED)
        return list(self.primary) or [key for key in keys if key in headline] or list(keys)


def from_result(result: Mapping[str, Any], name: str = "result") -> Statistics:
    """Build statistics from a result with ``per_instance=True``, or from a score file read as JSON.

    A key is used if the mean of its per-instance values is the score itself (to 1e-9; NaN and null do not count). Micro
    averages and other scores that are no such mean are not used.

    Raises:
        DataError: no per-instance values, or columns that do not fit the ids.
    """
    if not isinstance(result, Mapping):
        raise DataError(f"expected a result or statistics, found {type(result).__name__}", rule="type", field=name)
    columns = result.get("per_instance")
    if not isinstance(columns, Mapping) or "annotation_id" not in columns:
        message = "expected per-instance values (per_instance=True), found none"
        raise DataError(message, rule="key-missing", field=f"{name}.per_instance")
    ids = [str(one) for one in columns["annotation_id"]]
    if not ids or len(set(ids)) != len(ids):
        message = "expected each id once, and at least one"
        raise DataError(message, rule="id-twice", field=f"{name}.per_instance.annotation_id")
    builder = StatisticsBuilder(len(ids))
    for key, values in columns.items():
        score = result.get(key)
        if key in ("annotation_id", "cluster") or isinstance(score, bool) or not isinstance(score, (int, float)):
            continue
        column = np.array([math.nan if value is None else value for value in values], dtype=float)
        if column.shape != (len(ids),):
            where = f"{name}.per_instance.{key}"
            message = f"expected {len(ids)} numbers, one per id, found {column.shape}"
            raise DataError(message, rule="length", field=where)
        defined = column[~np.isnan(column)]
        if len(defined) and np.isclose(defined.mean(), score, rtol=1e-9, atol=1e-9):
            builder.add_mean(key, column)
    statistics = builder.statistics(ids)
    if not statistics.per_instance:
        message = "expected a score that is the mean of its per-instance values, found none"
        raise DataError(message, rule="score-missing", field=name)
    clusters = columns.get("cluster")
    if clusters is None:
        return statistics
    if len(clusters) != len(ids):
        where = f"{name}.per_instance.cluster"
        raise DataError(f"expected {len(ids)} clusters, one per id, found {len(clusters)}", rule="length", field=where)
    kind = re.search(r"\|cluster:([^|]*)", str(result.get("signature", "")))
    return replace(statistics, clusters=number_values(clusters), clustering=kind[1] if kind else "results")


def align_systems(systems: Mapping[str, Sequence[Statistics]]) -> dict[str, list[Statistics]]:
    """Return the statistics of all runs in the order of the first system's ids, with equal clusters.

    Raises:
        DataError: fewer than two systems; other ids than the first one's (ten of them are named, and their number);
            other clusters.
    """
    if len(systems) < 2:
        raise DataError(
            f"expected at least two systems, found {len(systems)} (each is an argument of its own, compare(a, b); "
            "a list holds the runs of one system)",
            rule="length",
        )
    names = list(systems)
    first = systems[names[0]][0]
    known = set(first.ids)
    result: dict[str, list[Statistics]] = {name: [] for name in names}
    for name, run in ((name, run) for name, runs in systems.items() for run in runs):
        rows = {one: row for row, one in enumerate(run.ids)}
        unmatched = sorted(known ^ rows.keys())
        if unmatched:
            some = ", ".join(show(one) for one in unmatched[:MOST_SHOWN]) + (
                ", …" if len(unmatched) > MOST_SHOWN else ""
            )
            message = f"expected the instances of {names[0]}, found {len(unmatched)} on one side alone: {some}"
            raise DataError(message, rule="id-missing", field=name)
        result[name].append(run.take([rows[one] for one in first.ids]))
    return _with_clusters(result)


def _with_clusters(systems: dict[str, list[Statistics]]) -> dict[str, list[Statistics]]:
    """Return the systems, each run with the clusters that any run knows."""
    numbers, clustering = None, NONE
    for name, run in ((name, run) for name, runs in systems.items() for run in runs):
        if run.clusters is None:
            clustering = run.clustering if clustering == NONE else clustering
            continue
        own = number_values(run.clusters.tolist())
        if numbers is not None and (own != numbers).any():
            message = "expected the same clusters of every system (cluster_by), found others"
            raise DataError(message, rule="constant", field=name)
        numbers, clustering = own, run.clustering
    return {
        name: [replace(run, clusters=numbers, clustering=clustering) for run in runs] for name, runs in systems.items()
    }


def compare(
    *systems: Result | Sequence[Result],
    names: Sequence[str] | None = None,
    n_resamples: int | None = None,
    seed: int = 0,
    confidence_level: float = DEFAULT_LEVEL,
    primary: str | Sequence[str] = (),
    minimum_effect: float = 0.0,
    cluster_by: str = AUTO,
) -> dict[str, Any]:
    """Compare systems pairwise on every score that they share.

    Args:
        systems: two or more, each ``Statistics`` (a metric module's ``statistics(..)``), a result of ``compute(..,
            per_instance=True)``, ``Scores``, or a list of those: runs of one system. All are on the same instances.
        names: of the systems, by default "A", "B", ..
        n_resamples: see `Inference`.
        seed: see `Inference`.
        confidence_level: see `Inference`.
        primary: see `Inference`.
        minimum_effect: see `Inference`.
        cluster_by: "auto": the clusters that the statistics and results bring; "none": each instance stands for itself.

    Returns:
        ``scores``: {name: {key: score, the mean over its runs}}, and where a system has several runs ``spread``: {name:
        {key: standard deviation over runs}}; ``comparisons``: one dict per pair of systems with ``first``, ``second``
        and ``keys``: {key: {

        - ``difference`` (first - second); ``ci`` [low, high] and ``ci_90``, ``standard_error`` and ``df`` of the
          model of documents and runs; NaN where `mixed_model.is_refused`;
        - ``components``: its squared standard error by source, {``documents``, ``runs``, ``interaction``, ``draws``};
          ``clusters``: how many the score counts; ``effective_clusters``: how many carry the difference;
          ``differing_clusters``: in how many the systems differ at all;
        - ``detectable``: the difference that a test at .05 finds with power .8;
        - ``p``: with one run each that of the exchange of documents, which is about these runs alone, else that of the
          model; ``p_holm``: p corrected over ``family`` times the pairs; None outside the family;
        - ``minimum_effect``; ``verdict`` on the first system, see `uncertainty.verdicts`; ``star``: better;
          ``exploratory``: no family}};

        ``family``; ``instances``, ``clusters``, ``runs``: how many; ``left_out``: {name: scores that another lacks};
        ``notes``: how to read the verdicts; ``signature``. Keys that are lists of scores are left out.

    Raises:
        DataError: see ``aligned`` and ``from_result``.
        ValueError: settings out of range.

    >>> one = {"f1": 0.75, "per_instance": {"annotation_id": ["a", "b"], "f1": [1.0, 0.5]}}
    >>> two = {"f1": 0.25, "per_instance": {"annotation_id": ["b", "a"], "f1": [0.0, 0.5]}}
    >>> compare(one, two, n_resamples=100)["comparisons"][0]["keys"]["f1"]["difference"]
    0.5
    """
    names = [chr(ord("A") + at) for at in range(len(systems))] if names is None else list(names)
    if len(names) != len(systems) or len(set(names)) != len(names):
        raise DataError(f"expected {len(systems)} different names, found {names}", rule="option-value")
    if cluster_by not in (AUTO, NONE):
        words = "cluster_by: expected 'auto' or 'none' (a column is named where the scores are made)"
        raise DataError(f"{words}, found {cluster_by!r}", rule="option-value")
    primary = (primary,) if isinstance(primary, str) else tuple(primary)
    run_lists = [one if isinstance(one, Sequence) else [one] for one in systems]
    named = dict(zip(names, run_lists, strict=True))
    inference = Inference(n_resamples, seed, confidence_level, primary, minimum_effect)
    if any(isinstance(run, Scores) for own in run_lists for run in own):
        return _compare_scored(named, inference, cluster_by)
    runs = {name: [[_statistics(run, name, cluster_by)] for run in own] for name, own in named.items()}
    return compare_blocks(runs, inference)


def _compare_scored(systems: Mapping[str, Sequence[Result]], inference: Inference, cluster_by: str) -> dict[str, Any]:
    """Compare what `score` gave.

    Raises:
        DataError: something else among it, sums without a row for each annotation, or no score that all have.
    """
    scored: dict[str, Scores] = {}
    for name, runs in systems.items():
        own = list[Scores]()
        for run in runs:
            if not isinstance(run, Scores) or any(list(each.ids) == ["all"] for each in run.statistics.values()):
                message = "expected scores with a row for each annotation, `score(.., per_instance=True)`, found "
                found = "sums" if isinstance(run, Scores) else type(run).__name__
                raise DataError(message + found, rule="key-missing", field=name)
            blocks = {block: _statistics(each, name, cluster_by) for block, each in run.statistics.items()}
            own.append(replace(run, statistics=blocks))
        scored[name] = replace(average_runs(own), name=name)
    places = {name: f"{one.identity.data[:12]} {one.identity.split}" for name, one in scored.items() if one.identity}
    if len(set(places.values())) > 1:
        found = ", ".join(f"{name}: {place}" for name, place in places.items())
        raise DataError(f"expected scores of the same split of the same data, found {found}", rule="constant")
    if len(scored) < 2 or (result := compare_scores(scored, inference)) is None:
        raise DataError("expected two systems or more that share a score, found none", rule="score-missing")
    return result


def _statistics(run: Any, name: str, cluster_by: str) -> Statistics:
    statistics = run if isinstance(run, Statistics) else from_result(run, name)
    return replace(statistics, clusters=None, clustering=NONE) if cluster_by == NONE else statistics


def compare_blocks(
    systems: Mapping[str, Sequence[Sequence[Statistics]]],
    inference: Inference | None = None,
    draws: Mapping[str, Sequence[int]] | None = None,
    different: Collection[tuple[str, str]] = (),
) -> dict[str, Any]:
    """Compare systems whose runs have several blocks of statistics each (agreement, faithfulness, ..).

    Args:
        systems: {name: its runs}. Block i of every run is the same metric with the same settings; blocks need not have
            the same instances.
        inference: how differences are tested.
        draws: {name: the training of each of its runs}: runs with one number are draws of a random method, and systems
            that share their numbers explain the same trainings; None: each run is a training of its own.
        different: the pairs of systems that explain different models, see `same_model`: their headline is normalised.
    """
    inference = inference or Inference()
    inference.check()
    names, levels = list(systems), _align_blocks(systems)
    pairs = list(combinations(names, 2))
    scores: dict[str, dict[str, float]] = {name: {} for name in names}
    spread: dict[str, dict[str, float]] = {name: {} for name, runs in systems.items() if len(runs) > 1}
    keys: dict[tuple[str, str], dict[str, dict[str, Any]]] = {pair: {} for pair in pairs}
    left_out: dict[str, list[str]] = {name: [] for name in names}
    shared_keys = [_single_keys([run for runs in level.values() for run in runs]) for level in levels]
    all_keys = list(dict.fromkeys(chain(*shared_keys)))
    families = {pair: inference.family(all_keys, pair in different) for pair in pairs}
    family = list(dict.fromkeys(chain(*families.values())))
    exchanges = _count_exchanges(inference, sum(map(len, families.values())), systems)
    for level, shared in zip(levels, shared_keys, strict=True):
        for name, runs in level.items():
            table = [run.scores() for run in runs]
            left_out[name] += [key for key, value in table[0].items() if value.ndim == 0 and key not in shared]
            scores[name] |= {key: float(np.mean([own[key] for own in table])) for key in shared}
            if len(runs) > 1:
                spread[name] |= {key: float(np.std([own[key] for own in table], ddof=1)) for key in shared}
        for first, second in pairs:
            runs_of_files = [None if draws is None else draws[name] for name in (first, second)]
            keys[first, second] |= _pair(level[first], level[second], shared, inference, exchanges, runs_of_files)
    tests = _correct(keys, families, inference)
    few_clusters = [
        f"{name}: {line}"
        for level in levels
        for name, runs in level.items()
        for run in runs
        for line in describe_small_counts(run)
    ]
    whole = max((level[names[0]][0] for level in levels), key=lambda statistics: len(statistics.ids))
    return {
        "instances": len(whole.ids),
        "clusters": whole.n_clusters,
        "runs": {name: len(runs) for name, runs in systems.items()},
        "family": family,
        "scores": scores,
        **({"spread": spread} if spread else {}),
        "comparisons": [{"first": first, "second": second, "keys": keys[first, second]} for first, second in pairs],
        "left_out": {name: own for name, own in left_out.items() if own},
        "notes": [
            *_notes(whole.n_clusters, tests, inference, exchanges, bool(spread)),
            *describe_shared_trainings(draws or {}),
            *_describe_verdicts(systems, keys, families, whole.n_clusters, draws),
            *describe_undefined(scores),
            *dict.fromkeys(few_clusters),
        ],
        "signature": _signature(whole, family, tests, names, inference, exchanges),
    }


def _align_blocks(systems: Mapping[str, Sequence[Sequence[Statistics]]]) -> list[dict[str, list[Statistics]]]:
    """Return the statistics of each block by system, see `align_systems`."""
    counts = {len(run) for runs in systems.values() for run in runs}
    if len(counts) > 1 or not all(systems.values()):
        raise DataError(f"expected the same scores of every system, found {sorted(counts)} blocks", rule="length")
    return [
        align_systems({name: [run[block] for run in runs] for name, runs in systems.items()})
        for block in range(max(counts))
    ]


def _count_exchanges(inference: Inference, tests: int, systems: Mapping[str, Sequence[object]]) -> int:
    """Return the number of exchanges; where fewer than two systems have one run, the model decides and not these."""
    if inference.n_resamples is not None:
        return inference.n_resamples
    decides = sum(len(runs) == 1 for runs in systems.values()) > 1
    return choose_resamples(tests) if decides else RESAMPLES


def _correct(
    keys: Mapping[tuple[str, str], dict[str, dict[str, Any]]],
    families: Mapping[tuple[str, str], Sequence[str]],
    inference: Inference,
) -> int:
    """Correct the p-values of each pair's family over all pairs and decide on each score; how many tests there are."""
    for test in (test for own in keys.values() for test in own.values()):
        test |= {"p_holm": None, "minimum_effect": inference.minimum_effect}
    tested = [own[key] for pair, own in keys.items() for key in families[pair]]
    for test, p in zip(tested, holm([test["p"] for test in tested]), strict=True):
        test["p_holm"] = None if math.isnan(p) else p
    for pair, key, test in ((pair, key, test) for pair, own in keys.items() for key, test in own.items()):
        test["exploratory"] = key not in families[pair]
        test["verdict"] = decide(key, test, None if test["exploratory"] else test["p_holm"])
        test["star"] = test["verdict"] == BETTER
    return sum(not math.isnan(test["p"]) for test in tested)


def _describe_verdicts(
    systems: Mapping[str, Sequence[object]],
    keys: Mapping[tuple[str, str], dict[str, dict[str, Any]]],
    families: Mapping[tuple[str, str], Sequence[str]],
    clusters: int,
    draws: Mapping[str, Sequence[int]] | None,
) -> list[str]:
    """Return notes on what the verdicts are about, and on the doubtful ones."""
    trainings = {name: len(runs if draws is None else set(draws[name])) for name, runs in systems.items()}
    single = [name for name, count in trainings.items() if count == 1]
    lines = [describe_one_run(single, len(systems))] if single else []
    for (first, second), own in keys.items():
        lines += describe_doubts(f"{first} and {second}", own, families[first, second], clusters)
    family = list(dict.fromkeys(chain(*families.values())))
    if assumed := [key for key in family if not is_known_score(key)]:
        lines.append(f"higher is taken as better in {', '.join(assumed)}, which no module of this project has")
    return lines


def _notes(clusters: int, tests: int, inference: Inference, exchanges: int, several: bool) -> list[str]:
    """Return notes on tests that cannot reach significance; with ``several`` runs the model decides: it can."""
    if several:
        return []
    if is_exact(clusters, exchanges):
        least = 2 ** (1 - clusters)
        if tests * least > ALPHA:
            words = f"no star is possible: of {clusters} clusters the smallest p is {least:.3g}"
            return [f"{words}, and there are {tests} tests"]
    elif tests / (exchanges + 1) > ALPHA:
        needed = count_needed_resamples(tests)
        most = "" if inference.n_resamples else ", the most that are taken unasked"
        return [f"no star is possible: {tests} tests need {needed} resamples or more, not {exchanges}{most}"]
    return []


def _signature(
    whole: Statistics, family: Sequence[str], tests: int, names: Sequence[str], inference: Inference, exchanges: int
) -> str:
    settings: dict[str, object] = {"n": len(whole.ids), "test": "randomisation,mixed model", "ci": "mixed model"}
    settings |= {"level": inference.confidence_level, "resamples": exchanges, "seed": inference.seed}
    settings |= {"systems": len(names), "cluster": whole.clustering, "clusters": whole.n_clusters}
    settings |= {"family": list(family), "tests": tests}
    if inference.minimum_effect:
        settings["minimum_effect"] = inference.minimum_effect
    return signature("compare", settings)


def _single_keys(runs: Sequence[Statistics]) -> list[str]:
    """Return the keys of single scores that all runs have, in the first one's order.

    Sentences that one system predicts by scores and another by spans are not the same decision: they are not compared.
    """
    tables = [statistics.scores() for statistics in runs]
    shared = [key for key, value in tables[0].items() if value.ndim == 0 and all(key in table for table in tables)]
    by_spans = {f"{SENTENCES_BY_SPANS}.hits" in (statistics.columns or ()) for statistics in runs}
    if len(by_spans) > 1:
        shared = [key for key in shared if not key.startswith(("sentence_micro_", "sentence_macro_"))]
    return shared


def restrict_finalize(statistics: Statistics, keys: Sequence[str]) -> Finalize:
    """Return a finalize function of these keys alone."""

    def finalize(sums: np.ndarray) -> dict[str, np.ndarray]:
        scores = statistics.finalize(sums)
        return {key: scores[key] for key in keys}

    return finalize


def _laid_out(statistics: Statistics, like: Statistics) -> np.ndarray | None:
    """Return the values of the statistics with the columns of ``like``, or None if the columns do not match.

    A column that one system lacks (it has no soft scores, say) belongs to scores that are not compared.
    """
    if statistics.columns is None or like.columns is None:
        return statistics.values if statistics.values.shape[1] == like.values.shape[1] else None
    place = {name: at for at, name in enumerate(statistics.columns)}
    values = np.zeros((len(statistics.ids), len(like.columns)))
    for at, name in enumerate(like.columns):
        if name in place:
            values[:, at] = statistics.values[:, place[name]]
    return values


def _reads_alike(finalize: Finalize, values: np.ndarray, statistics: Statistics) -> bool:
    """Return True if the first system's finalize gives the second's scores: their columns mean the same."""
    own = statistics.scores()
    with np.errstate(invalid="ignore"):
        read = finalize(values.sum(axis=0))
    return all(np.allclose(value, own[key], rtol=1e-9, atol=1e-12, equal_nan=True) for key, value in read.items())


def _pair(
    first: Sequence[Statistics],
    second: Sequence[Statistics],
    keys: Sequence[str],
    inference: Inference,
    exchanges: int,
    runs: Sequence[Sequence[int] | None],
) -> dict[str, dict[str, Any]]:
    finalize = restrict_finalize(first[0], keys)
    sums = []
    for run in (*first, *second):
        values = _laid_out(run, first[0])
        if values is None or not _reads_alike(finalize, values, run):
            raise DataError("expected systems scored with the same settings, found others", rule="constant")
        sums.append(replace(run, values=values, columns=None).cluster_sums())
    pair = Pair(sums[: len(first)], sums[len(first) :], finalize)
    p_values = randomisation(pair, exchanges, inference.seed)
    shared = runs[0] is not None and runs[1] is not None and share_trainings(runs[0], runs[1])
    several, models, differing = len(sums) > 2, pair.models(runs[0], runs[1], shared), find_differing(pair)
    return {
        key: _describe_test(key, models[key], p_values[key], int(differing[key].sum()), several, inference)
        for key in keys
    }


def _describe_test(
    key: str, model: DifferenceModel, p_randomisation: float, differing: int, several: bool, inference: Inference
) -> dict[str, Any]:
    """Return the figures of one difference; ``several``: a system has several runs, so that the model decides."""
    differing = min(differing, model.n)
    level = ALPHA if several else find_attainable_level(differing, ALPHA)
    return {
        "difference": float(model.difference),
        "ci": clip_interval(key, model.interval(inference.confidence_level)),
        "ci_90": clip_interval(key, model.interval(EQUIVALENCE_LEVEL)),
        "p": float(model.p_value()) if several else p_randomisation,
        "standard_error": float(model.standard_error),
        "df": float(model.df),
        "components": model.components.as_dict(),
        "clusters": model.n,
        "effective_clusters": float(model.clusters),
        "differing_clusters": differing,
        "detectable": model.detectable(alpha=level),
    }


# ----------------------------------------------------------------------------------------------------- of scores
def compare_scores(
    systems: Mapping[str, Scores],
    inference: Inference | None = None,
    only_predicted: bool = False,
) -> dict[str, Any] | None:
    """Compare systems on all blocks that each of their runs has; None where there is none.

    Args:
        systems: {name: its scores}, see `scores.average_runs` for several runs.
        inference: how differences are tested.
        only_predicted: systems may answer parts of the annotations; compared are those that all answer, which is noted.
    """
    runs = [run for system in systems.values() for run in system.runs]
    blocks = {block: [run[block] for run in runs] for block in runs[0] if all(block in run for run in runs)}
    if only_predicted:
        blocks = {block: own for block, statistics in blocks.items() if (own := _answered_by_all(statistics))[0].ids}
    if not blocks:
        return None
    by_run = iter([list(own) for own in zip(*blocks.values(), strict=True)])
    different = find_different_models(systems)
    result = compare_blocks(
        {name: [next(by_run) for _ in system.runs] for name, system in systems.items()},
        inference,
        number_trainings(systems),
        different,
    )
    result["notes"] += describe_different_models(different, list(result["comparisons"][0]["keys"]))
    if chance := {name: dict(one.chance) for name, one in systems.items() if one.gold}:
        result |= {"chance": chance, "gold": next(dict(one.gold) for one in systems.values() if one.gold)}
    identity = next(iter(systems.values())).identity
    if identity is not None:
        result["signature"] = identity.sign(result["signature"])
    if only_predicted:
        note = f"compared on the {result['instances']} annotations that all systems answer"
        result["notes"] = [note, *result["notes"]]
    return result


def _answered_by_all(block: Sequence[Statistics]) -> list[Statistics]:
    shared = set.intersection(*(set(statistics.ids) for statistics in block))
    return [
        statistics.take([place for place, identity in enumerate(statistics.ids) if identity in shared])
        for statistics in block
    ]


def compare_files(
    source: ScoredSplit,
    systems: Sequence[System],
    settings: ScoreSettings | None = None,
    inference: Inference | None = None,
) -> dict[str, Any]:
    """Compare systems by their files of predictions for one split.

    Args:
        source: the split.
        systems: each with the files of its runs.
        settings: how they are scored, as for ``score``.
        inference: how differences are tested.

    Returns:
        as `compare`. For ERASER instances also ``score_notes`` and ``score_signatures`` (the notes and signatures of
        ``score``), ``quotes`` if files hold a language model's quotes ({name: its scores of them, each with ``KEY_ci``
        if it has one run}), and ``against_chance``.

    Raises:
        DataError: what ``score`` refuses, or files that share no score.
    """
    inference = inference or Inference()
    settings = settings or ScoreSettings()
    scored = {path: score(source, path, settings) for system in systems for path in system.paths}
    averaged = {system.name: average_runs([scored[path] for path in system.paths]) for system in systems}
    result = compare_scores(averaged, inference, settings.only_predicted)
    if result is None:
        message, last = "expected files that share a score, found none: their fields differ", systems[-1].paths[-1]
        raise DataError(message, rule="score-missing", file=None if source.kind == "perturbation" else last)
    return result if source.kind == "perturbation" else result | _of_instances(systems, scored, result, inference)


def _of_instances(
    systems: Sequence[System],
    scored: Mapping[Path, Scores],
    result: Mapping[str, Any],
    inference: Inference,
) -> dict[str, Any]:
    """Add the results that only a comparison of ERASER instances has."""
    more: dict[str, Any] = {"notes": [*result["notes"], *describe_unlike_operators(systems)]}
    quotes = {
        system.name: own
        for system in systems
        if (own := _quote_scores([scored[path] for path in system.paths], inference))
    }
    more |= {"quotes": quotes} if quotes else {}
    by_run = {
        system.name if len(system.paths) == 1 else f"{system.name} {path.stem}": scored[path]
        for system in systems
        for path in system.paths
    }
    notes = {name: run.notes for name, run in by_run.items()}
    signatures = {name: run.block_signatures for name, run in by_run.items()}
    for key, note_lines in (("score_notes", notes), ("score_signatures", signatures)):
        runs_by_line: dict[str, list[str]] = {}  # line -> the runs that it is about
        for name, lines in note_lines.items():
            for line in lines:
                runs_by_line.setdefault(line, []).append(name)
        more[key] = [
            line if len(names) == len(by_run) else f"{', '.join(names)}: {line}" for line, names in runs_by_line.items()
        ]
    chance = {name: run.against_chance for name, run in by_run.items()}
    return more | ({"against_chance": correct_chance_tests(chance)} if any(chance.values()) else {})


def _quote_scores(runs: Sequence[Scores], inference: Inference) -> dict[str, Any]:
    """Return the quote scores of a system whose runs all hold quotes: means over runs, or one run with intervals."""
    blocks = [run.statistics[QUOTES] for run in runs if QUOTES in run.statistics]
    if len(blocks) < len(runs):
        return {}
    scores = [block.scores() for block in blocks]
    means = {key: float(np.mean([one[key] for one in scores])) for key in scores[0]}
    known = {key: value for key, value in means.items() if not math.isnan(value)}
    if len(blocks) > 1:
        return known
    bounds = intervals(blocks[0], inference.confidence_level, None, inference.seed, ranges=RANGES[QUOTES])
    return {name: value for key in known for name, value in ((key, known[key]), (f"{key}_ci", bounds[key].tolist()))}


def correct_chance_tests(chance: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return each system's test against random rationales, with p-values corrected by Holm over the systems.

    Args:
        chance: {system: {"comprehensiveness" or "sufficiency": what ``against_chance`` gives}}; a system without draws
            has none and is not counted.

    Returns:
        One dict per side and system: ``system, score, p_value, p_holm, win_rate, mean_win_rate, effect_size, draws``.
    """
    rows = []
    for side in dict.fromkeys(side for own in chance.values() for side in own):
        tested = {name: own[side] for name, own in chance.items() if side in own}
        adjusted = holm([one["p_value"] for one in tested.values()])
        for (name, one), p_holm in zip(tested.items(), adjusted, strict=True):
            figures = {key: one[key] for key in ("win_rate", "mean_win_rate", "effect_size", "draws")}
            rows.append({"system": name, "score": side, "p_value": one["p_value"], "p_holm": p_holm, **figures})
    return rows
