"""Comparison of two systems or more on the same annotations: one verdict on each pair and score, with its reason.

Sums of columns decide everything, so that nothing is scored again. With one run of each system p is that of the
exchange of documents; with several runs it is that of the model of documents crossed with runs, which gives all
intervals, see `statistics`. Only headline scores (or ``primary``) can be better or worse, after Holm's correction over
these scores and the pairs of systems. Let d be the difference, positive where the first system is better, p the
corrected p-value, and X the minimum effect:

    better, worse   p < .05 and abs(d) >= X
    equivalent      else X > 0 and the 90 % interval of d lies within [-X, X]
    undecided       else

A star, bold print and every other marker mean `better`, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from eraser_hub.metrics.errors import VERSION, DataError, cut
from eraser_hub.metrics.statistics import (
    DEFAULT_LEVEL,
    MIN_CLUSTERS,
    TIE,
    Score,
    Statistics,
    check_inference,
    find_counted,
    number_values,
    sign,
)
from eraser_hub.records.errors import UsageError, describe_choice
from eraser_hub.records.predictions import read_model_digest
from eraser_hub.records.tables import Cell, Table, Tables

from .result import DIGITS, Scores, choose_headline, save_json
from .runs import System, describe_unlike_operators
from .statistics import (
    ALPHA,
    DRAWS,
    EXACT_CLUSTERS,
    MIN_DF,
    POWER,
    compute_influences,
    compute_p_value,
    compute_scores,
    exchange_systems,
    find_attainable_level,
    find_columns,
    find_differing,
    find_t_quantile,
    fit_difference,
    holm,
    import_scipy,
)

if TYPE_CHECKING:
    import pandas as pd

    from .score import ScoreSettings
    from .scored_split import ScoredSplit

VERDICTS = BETTER, WORSE, EQUIVALENT, UNDECIDED = "better", "worse", "equivalent", "undecided"
SWAPPED = {BETTER: WORSE, WORSE: BETTER}  # the verdicts that change when a pair is swapped
EQUIVALENCE_LEVEL = 0.9  # two one-sided tests at .05
GROWING = ("comprehensiveness", "sufficiency", "soft_")  # scores that grow with a model's confidence begin so
LABELS = ("accuracy", "macro_f1")  # scores of the label alone
FULL_INPUT = "full_input"  # the column of the predicted label's probability
SAME_PROBABILITY = 1e-6
SHOWN = 3  # pairs in a note
COLUMNS = ("difference", "detectable", "p", "p Holm", "variance", "verdict", "reason")  # of a table, behind the systems

Run = Mapping[str, Statistics]
Test = dict[str, Any]
Pair = tuple[str, str]


class Comparison(dict[str, Any]):
    """The result of a comparison: a dictionary, see `compare`, with further forms.

    Attributes:
        inputs: the files and folders that were read; `save` never replaces them.
        shown: the scores that tables show, in this order; by default those that are tested.
    """

    inputs: Sequence[Path] = ()
    shown: Sequence[str] = ()

    @property
    def notes(self) -> list[str]:
        """What to know of the systems' scores."""
        return list(self.get("score_notes", ()))

    @property
    def signatures(self) -> list[str]:
        """The signatures of the comparison and of the scores."""
        return [self["signature"], *self.get("score_signatures", ())]

    def as_json(self) -> dict[str, Any]:
        """Return the content of the file that `save` writes."""
        return dict(self)

    def show(self, scores: Sequence[str]) -> None:
        """Let tables show these scores, in this order.

        Raises:
            DataError: a score that no pair of systems has.
        """
        known = list(dict.fromkeys(key for pair in self["comparisons"] for key in pair["keys"]))
        for key in scores:
            if key not in known:
                raise UsageError(describe_choice(key, known), argument="scores")
        self.shown = scores

    def save(self, path: str | PathLike[str], force: bool = False) -> None:
        """Write the result as JSON; NaN and infinity become null. Arguments and errors are those of `save_json`."""
        save_json(path, self, self.inputs, force)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each pair of systems and score; ``low`` and ``high`` are the ends of ``ci``."""
        import pandas as pd

        rows = [
            {"first": pair["first"], "second": pair["second"], "score": key}
            | {f"{side}_value": self["scores"][pair[side]][key] for side in ("first", "second")}
            | {"difference": test["difference"], "low": test["ci"][0], "high": test["ci"][1], **test}
            for pair in self["comparisons"]
            for key, test in pair["keys"].items()
        ]
        frame: pd.DataFrame = pd.DataFrame(rows)
        return frame

    def table(self, whole: bool = False) -> Tables:
        """Return a table for each pair of systems, one of chance where it is known, and the notes.

        Args:
            whole: all scores; by default those to `show`, else those that are tested.
        """
        tables = Tables("compare", [self._make_table(pair, whole) for pair in self["comparisons"]])
        if any(self.get("chance", {}).values()) and not self.shown:
            columns = tuple(f"{name}, chance" for name in self["chance"])
            chance = Table("chance", "Chance of agreement", ("score",), columns, is_verbatim=True)
            for key in self["family"]:
                cells = {
                    f"{name}, chance": Cell(of[key], digits=DIGITS) for name, of in self["chance"].items() if key in of
                }
                if cells:
                    chance.add(key, **cells)
            tables.tables += [chance] if chance.rows else []
        tables.tables[-1].notes += [
            f"not compared, {name} alone has them: {', '.join(keys)}" for name, keys in self["left_out"].items()
        ]
        tables.tables[-1].notes += self["notes"]
        return tables

    def _make_table(self, pair: Mapping[str, Any], whole: bool) -> Table:
        names = (pair["first"], pair["second"])
        heads = {name: f"{name} (system)" if name in COLUMNS else name for name in names}
        spreads = {f"{heads[name]} ±": name for name in names if name in self["spread"]}
        columns = [*heads.values(), *spreads, *COLUMNS]
        if not self["spread"]:
            columns.remove("variance")
        if not whole:
            columns.remove("p")  # verdicts go by the corrected one
        clusters = f" in {self['clusters']} clusters" if self["clusters"] < self["instances"] else ""
        title = f"{names[0]} against {names[1]}, {self['instances']} instances{clusters}"
        table = Table(f"{names[0]}-{names[1]}", title, ("score",), tuple(columns), is_verbatim=True)
        chosen = self.shown or [key for key in pair["keys"] if whole or key in self["family"]]
        for key in (key for key in chosen if key in pair["keys"]):
            test = pair["keys"][key]
            winner = {BETTER: names[0], WORSE: names[1]}.get(test["verdict"])
            cells = {
                heads[name]: Cell(self["scores"][name][key], digits=DIGITS, better=name == winner) for name in names
            }
            cells |= {head: Cell(self["spread"][name][key], digits=DIGITS) for head, name in spreads.items()}
            cells["difference"] = Cell(test["difference"], digits=DIGITS, low=test["ci"][0], high=test["ci"][1])
            cells |= {head: Cell(test[head.lower().replace(" ", "_")], digits=DIGITS) for head in COLUMNS[1:4]}
            total = sum(test["components"].values())
            shares = {source: part / total for source, part in test["components"].items() if part > total / 200}
            ordered = sorted(shares, key=lambda source: -shares[source])
            cells["variance"] = Cell(", ".join(f"{source} {100 * shares[source]:.0f} %" for source in ordered) or None)
            table.add(key, **cells, verdict=Cell(test["verdict"]), reason=Cell("" if winner else test["reason"]))
        return table

    def __repr__(self) -> str:
        """Return the tested scores as tables, and the notes: what a Python session shows."""
        return f"{self.table()}\nall scores: .table(whole=True), .to_frame()"

    def _repr_html_(self) -> str:
        frame = self.to_frame()
        columns = ["first", "second", "score", "first_value", "second_value", "difference", "low", "high"]
        shown = frame[frame["score"].isin(self["family"])][[*columns, "p_holm", "verdict", "reason"]]
        return str(shown.to_html(float_format=f"{{:.{DIGITS}f}}".format, na_rep="", index=False))


class MeasuredRuns:
    """A system's runs, measured by one metric.

    Args:
        runs: their statistics.
        scores: key -> score, a single number.
        names: the columns of the scores.
        trainings: the number of each run's training (runs,): runs of one training are draws of a method.

    Attributes:
        sums: the sums of columns in each cluster, the mean over runs: {name: (n, ..)}.
        values: key -> the score of each run (runs,).
        left_out: key -> the scores without each cluster (n, runs).
        alone: key -> the scores of each cluster (n, runs).
    """

    def __init__(
        self, runs: Sequence[Statistics], scores: Mapping[str, Score], names: Collection[str], trainings: np.ndarray
    ) -> None:
        sums = [{name: column for name, column in run.cluster_sums().items() if name in names} for run in runs]
        totals = [{name: column.sum(axis=0) for name, column in own.items()} for own in sums]
        without = [{name: total[name] - own[name] for name in names} for total, own in zip(totals, sums, strict=True)]
        self.values, self.left_out, self.alone = (
            {key: np.stack([own[key] for own in computed], axis=-1) for key in scores}
            for computed in ([compute_scores(scores, own) for own in kind] for kind in (totals, without, sums))
        )
        self.sums = {name: np.mean([own[name] for own in sums], axis=0) for name in names}
        self.trainings = trainings

    def find_counted(self, key: str) -> np.ndarray:
        """Return the clusters that a score counts in any run: bool (n,)."""
        counted = find_counted(self.values[key], self.left_out[key], self.alone[key])
        return np.asarray(counted.any(axis=1))

    def compute_influences(self, key: str, counted: np.ndarray) -> np.ndarray:
        """Return the influences of clusters (n, runs); of several trainings the means over each one's draws."""
        influences = compute_influences(self.values[key], self.left_out[key][counted])
        numbers = np.unique(self.trainings)
        if len(numbers) == 1:
            return influences
        return np.stack([influences[:, self.trainings == number].mean(axis=1) for number in numbers], axis=1)


def compare(
    systems: Mapping[str, Sequence[Run]],
    *,
    primary: str | Sequence[str] = (),
    minimum_effect: float = 0.0,
    confidence_level: float = DEFAULT_LEVEL,
    resamples: int = DRAWS,
    seed: int = 0,
    only_predicted: bool = False,
    models: Mapping[str, Sequence[str]] | None = None,
    chance: Mapping[str, Mapping[str, float]] | None = None,
    paper: str | None = None,
) -> Comparison:
    """Compare all pairs of systems on every single score that they share.

    Args:
        systems: {name: its runs}, two or more; a run is {metric: its statistics}, of the same annotations for all.
        primary: the scores that are tested, declared in advance; by default the headline scores.
        minimum_effect: the smallest difference that matters, in the scores' units.
        confidence_level: of the intervals of differences.
        resamples: how many exchanges are drawn where more than 12 clusters differ.
        seed: of all draws.
        only_predicted: compare on the annotations that all systems have; by default others are an error.
        models: {name: the digest of each run's model}: runs of a system with one model are draws of a method, and
            systems with the same models are compared model by model. Without digests each run is a training of its
            own, and systems have one model if their probabilities of the full inputs are equal, or unknown.
        chance: {name: the scores of random rationales}, which are shown.
        paper: the preset, which chooses among headline scores.

    Returns:
        ``scores`` {name: {key: mean over runs}}, ``spread`` {name of several runs: {key: standard deviation}},
        ``comparisons``, a list of ``first``, ``second`` and ``keys`` {key: {

        - ``difference``, positive where the first system is better (first minus second where neither direction is),
          ``ci`` [low, high] and ``ci_90``; NaN where there is no interval;
        - ``p``; ``p_holm``: corrected over the tests of all pairs; None of a score that is not tested;
        - ``verdict`` on the first system; ``reason``; ``star``: better; ``exploratory``: not tested;
        - ``detectable``: the smallest difference that a test at .05 finds with power .8 in this design;
        - ``standard_error``, ``df``, and ``components`` of its square: ``documents``, ``runs``, ``interaction``;
        - ``clusters`` that the score counts, ``differing_clusters``, ``minimum_effect``}};

        ``family``: the scores that are tested; ``instances``, ``clusters``, ``runs`` {name: how many}; ``left_out``
        {name: scores that another lacks}; ``notes``; ``signature``; ``chance`` where it is given.

    Raises:
        DataError: fewer than two systems; other annotations, clusters or settings; no shared score; a setting out of
            its range; several runs without scipy.
    """
    check_inference(confidence_level, resamples, seed, "resamples")
    if isinstance(minimum_effect, bool) or not 0 <= minimum_effect < math.inf:
        raise DataError(f"expected a difference of at least 0, found {cut(minimum_effect)}", argument="minimum_effect")
    models = models or {}
    names, pairs = list(systems), list(combinations(systems, 2))
    trainings = {name: number_trainings(models.get(name, ()), len(systems[name])) for name in names}
    shared = [pair for pair in pairs if share_trainings(*(models.get(name, ()) for name in pair))]
    tests: dict[Pair, dict[str, Test]] = {pair: {} for pair in pairs}
    values: dict[str, dict[str, np.ndarray]] = {name: {} for name in names}
    left_out: dict[str, list[str]] = {name: [] for name in names}
    known: dict[str, Score] = {}
    aligned = align_systems(systems, only_predicted)
    for runs in aligned.values():
        read = find_shared_columns(runs, known)
        scores = {key: runs[names[0]][0].scores[key] for key in read}
        columns = sorted({name for own in read.values() for name in own})
        measured = {name: MeasuredRuns(runs[name], scores, columns, trainings[name]) for name in names}
        for name in names:
            values[name] |= measured[name].values
            single = [key for key, value in runs[name][0].values().items() if value.ndim == 0]
            left_out[name] += [key for key in single if key not in scores and key not in known]
        for first, second in pairs:
            both, is_paired = (measured[first], measured[second]), (first, second) in shared
            tests[first, second] |= compare_pair(*both, scores, read, is_paired, confidence_level, resamples, seed)
        known |= scores
    if not known:
        raise DataError("expected systems that share a score, found none: their fields differ")
    declared = [primary] if isinstance(primary, str) else list(primary)
    for key in declared:
        if key not in known:
            raise UsageError(describe_choice(key, list(known)), argument="primary")
    family = declared or choose_headline(known, paper) or list(known)
    different = [pair for pair in pairs if not have_same_model(pair, aligned.get("eraser_faithfulness"), models)]
    n_tests = correct(tests, known, family, () if declared else different, minimum_effect)
    whole = max((runs[names[0]][0] for runs in aligned.values()), key=lambda statistics: len(statistics.ids))
    several = [name for name, runs in systems.items() if len(runs) > 1]
    signature: dict[str, object] = {"n": len(whole.ids), "test": "documents and runs" if several else "exchange"}
    signature |= {"level": confidence_level, "resamples": resamples, "seed": seed, "systems": len(names)}
    signature |= {"cluster": whole.clustering, "clusters": whole.n_clusters, "family": family, "tests": n_tests}
    signature |= {"minimum_effect": minimum_effect} if minimum_effect else {}
    notes = [*describe_runs(trainings, shared), *describe_tests(tests, family, different, bool(declared))]
    notes += [] if several else describe_power(tests, n_tests, resamples)
    return Comparison(
        instances=len(whole.ids),
        clusters=whole.n_clusters,
        runs={name: len(runs) for name, runs in systems.items()},
        family=family,
        scores={name: {key: float(of.mean()) for key, of in values[name].items()} for name in names},
        spread={n: {key: float(of.std(ddof=1)) for key, of in values[n].items()} for n in several},
        comparisons=[{"first": first, "second": second, "keys": keys} for (first, second), keys in tests.items()],
        left_out={name: keys for name, keys in left_out.items() if keys},
        notes=notes,
        signature=sign("compare", signature | {"version": VERSION}),
        **({"chance": chance} if chance else {}),
    )


def compare_files(
    source: ScoredSplit, systems: Sequence[System], settings: ScoreSettings, **inference: Any
) -> Comparison:
    """Score systems on a split, and compare them.

    Args:
        source: the split that they answer.
        systems: two or more.
        settings: how they are scored.
        **inference: see `compare`.

    Raises:
        DataError: as of `score` and `compare`.
    """
    from .score import score_system

    scored = {system.name: score_system(source, system, settings) for system in systems}
    models = {system.name: [read_model_digest(path) for path in system.paths] for system in systems}
    comparison = compare(
        {name: scores.runs for name, scores in scored.items()},
        chance={name: scores.chance for name, scores in scored.items()},
        models=models if all(all(digests) for digests in models.values()) else None,
        paper=settings.paper,
        only_predicted=settings.only_predicted,
        **inference,
    )
    notes = {note: None for scores in scored.values() for note in scores.all_notes}
    comparison["score_notes"] = [*notes, *describe_unlike_operators(systems)]
    comparison["score_signatures"] = list(dict.fromkeys(sign for each in scored.values() for sign in each.signatures))
    return comparison


def name_runs(systems: Sequence[Any], names: Sequence[str] | None) -> dict[str, Any]:
    """Return the arguments ``systems`` and ``chance`` of `compare`.

    Args:
        systems: scores (of ``score(.., per_instance=True)``), or the statistics of metric modules.
        names: their names; by default those of the scores.

    Raises:
        DataError: something else, scores of other data, or whose values of single annotations were not kept.
    """
    if names is not None and len(set(names)) != len(systems):
        raise UsageError(f"expected {len(systems)} different names, found {list(names)}", argument="names")
    given = [getattr(system, "name", "") or f"system {number}" for number, system in enumerate(systems, 1)]
    data = {system.data_digest[:12] for system in systems if isinstance(system, Scores)}
    if len(data) > 1:
        raise UsageError(f"expected scores of the same data, found {', '.join(sorted(data))}", argument="systems")
    runs: dict[str, Sequence[Run]] = {}
    for name, system in zip(names or given, systems, strict=True):
        if type(system).__name__ == Statistics.__name__:  # a module that `evaluate` loads has a class of its own
            runs[name] = [{"metric": cast("Statistics", system)}]
        elif not isinstance(system, Scores):
            raise DataError(f"expected files, scores or statistics, found {cut(system)}", argument="systems")
        elif any(len(each.ids) == 2 != len(system.ids) for each in system.statistics.values()):
            raise DataError("expected scores of `score(.., per_instance=True)`, found sums", argument="systems")
        else:
            runs[name] = system.runs
    chance = {name: each.chance for name, each in zip(runs, systems, strict=True) if isinstance(each, Scores)}
    return {"systems": runs, "chance": chance}


def align_systems(
    systems: Mapping[str, Sequence[Run]], only_predicted: bool = False
) -> dict[str, dict[str, list[Statistics]]]:
    """Return the runs of each system by metric, all with the annotations of the first one, in its order.

    Args:
        systems: {name: its runs}.
        only_predicted: take the annotations that all runs have.

    Raises:
        DataError: fewer than two systems, a system without runs, other annotations, other clusters.
    """
    runs = [(name, run) for name, own in systems.items() for run in own]
    if len(systems) < 2 or not all(systems.values()):
        raise DataError(f"expected two systems or more, with a run each, found {len(systems)}", argument="predictions")
    aligned: dict[str, dict[str, list[Statistics]]] = {}
    for metric, first in runs[0][1].items():
        if not all(metric in run for _, run in runs):
            continue
        ids = list(first.ids)
        if only_predicted:
            common = set(ids).intersection(*(run[metric].ids for _, run in runs))
            ids = [name for name in ids if name in common]
        aligned[metric], clusters = {name: [] for name in systems}, None
        for name, run in runs:
            rows = {instance: row for row, instance in enumerate(run[metric].ids)}
            unmatched = set(ids) ^ rows.keys()
            if not ids or (unmatched and not only_predicted):
                message = f"expected the annotations of {runs[0][0]}, found {len(unmatched)} on one side alone"
                raise DataError(message, instance=min(unmatched, default=None), field=name)
            statistics = run[metric].take(np.array([rows[instance] for instance in ids]))
            numbers = number_values(range(len(ids)) if statistics.clusters is None else statistics.clusters.tolist())
            if clusters is not None and (numbers != clusters).any():
                raise DataError("expected the same clusters of all systems, found others", field=name)
            clusters = numbers
            aligned[metric][name].append(statistics)
    return aligned


def find_shared_columns(runs: Mapping[str, Sequence[Statistics]], known: Collection[str]) -> dict[str, list[str]]:
    """Return the single scores that are the same function of the same columns in all runs, and these columns.

    Args:
        runs: the runs of each system, by one metric.
        known: scores that are left out, as another metric has them.

    Raises:
        DataError: the systems were scored with other settings.
    """
    shared: dict[str, list[str]] = {}
    every = [(name, run) for name, own in runs.items() for run in own]
    totals = [{name: column.sum(axis=0) for name, column in run.columns.items()} for _, run in every]
    for key, score in every[0][1].scores.items():
        if key in known or np.ndim(score.compute(totals[0])) or not all(key in run.scores for _, run in every):
            continue
        read = [find_columns(run.scores[key], own) for (_, run), own in zip(every, totals, strict=True)]
        if any(columns != read[0] for columns in read):
            continue  # sentences that one system predicts by scores and another by spans, for example
        shared[key] = list(read[0])
        for (system, run), own in zip(every, totals, strict=True):
            if not np.allclose(score.compute(own), run.scores[key].compute(own), 1e-9, 1e-12, equal_nan=True):
                raise DataError(f"expected systems scored with the same settings, found another {key}", field=system)
    return shared


def compare_pair(
    first: MeasuredRuns,
    second: MeasuredRuns,
    scores: Mapping[str, Score],
    read: Mapping[str, Sequence[str]],
    is_paired: bool,
    level: float,
    draws: int,
    seed: int,
) -> dict[str, Test]:
    """Return the figures of the differences of two systems, before the correction; see `compare`.

    Args:
        first: one system.
        second: the other.
        scores: key -> score.
        read: key -> the columns of the score.
        is_paired: both explain the same trainings.
        level: of intervals.
        draws: the number of exchanges that are drawn.
        seed: of these.
    """
    several = len(first.trainings) + len(second.trainings) > 2
    exchanged = {} if several else exchange_systems(first.sums, second.sums, scores, read, draws, seed)
    tests = {}
    for key, score in scores.items():
        counted = first.find_counted(key) | second.find_counted(key)
        differing = int((find_differing(first.sums, second.sums, read[key]) & counted).sum())
        sides = [system.compute_influences(key, counted) for system in (first, second)]
        n, turn = int(counted.sum()), -1 if score.higher_is_better is False else 1
        difference = float(first.values[key].mean() - second.values[key].mean())
        test: Test = {"difference": turn * difference, "ci": [math.nan] * 2, "ci_90": [math.nan] * 2}
        test |= {"p": exchanged[key] if differing and not several else math.nan, "detectable": math.nan}
        test |= {"standard_error": math.nan, "df": math.nan, "components": {}}
        test |= {"clusters": n, "differing_clusters": differing}
        tests[key] = test
        if n < MIN_CLUSTERS or not differing or not all(np.isfinite(side).all() for side in sides):
            continue
        fit = fit_difference(sides[0], sides[1], is_paired)
        error, df, attainable = float(fit.error), float(fit.df), ALPHA
        parts = {"documents": fit.documents, "runs": fit.runs, "interaction": fit.rest}
        test |= {"standard_error": error, "df": df, "components": {name: float(part) for name, part in parts.items()}}
        if not error or (df < MIN_DF and not several):
            continue  # all clusters differ by the same, or one carries the difference: nothing is known of others
        if several:
            test["p"] = float(compute_p_value(fit)) if differing >= MIN_CLUSTERS else math.nan
        else:
            attainable = find_attainable_level(differing)
        quantile = import_scipy().stdtrit if several else find_t_quantile
        halves = [float(quantile(df, (1 + each) / 2)) * error for each in (level, EQUIVALENCE_LEVEL)]
        ends = [[difference - half, difference + half] for half in halves]
        if attainable:
            test["detectable"] = float(quantile(df, 1 - attainable / 2) + quantile(df, POWER)) * error
        most = math.inf if score.low is None or score.high is None else score.high - score.low
        ends = [[min(max(end, -most), most) for end in each] for each in ends]
        test["ci"], test["ci_90"] = ([-high, -low] if turn < 0 else [low, high] for low, high in ends)
    return tests


def correct(
    tests: Mapping[Pair, Mapping[str, Test]],
    scores: Mapping[str, Score],
    family: Sequence[str],
    different: Collection[Pair],
    minimum_effect: float,
) -> int:
    """Correct the p-values of the family over all pairs, and decide on each score; return the number of tests.

    Args:
        tests: the figures of each pair, to which the rest is added.
        scores: key -> score.
        family: the scores that are tested.
        different: the pairs that explain different models.
        minimum_effect: the smallest difference that matters.
    """
    tested = []
    for pair, own in tests.items():
        for key, test in own.items():
            apart = pair in different and key.startswith(GROWING)
            test |= {"p_holm": None, "minimum_effect": minimum_effect, "exploratory": key not in family or apart}
            test["reason"] = "different models" if apart else "not tested"
            if not test["exploratory"] and not math.isnan(test["p"]):
                tested.append(test)
    for test, p in zip(tested, holm([test["p"] for test in tested]), strict=True):
        test["p_holm"] = p
    for own in tests.values():
        for key, test in own.items():
            test["verdict"], test["reason"] = decide(test, scores[key].higher_is_better is not None)
            test["star"] = test["verdict"] == BETTER
    return len(tested)


def decide(test: Mapping[str, Any], is_directed: bool) -> tuple[str, str]:
    """Return the verdict on the first system and its reason.

    Args:
        test: the figures; ``reason`` is why a score is not tested.
        is_directed: higher is better, or lower is.
    """
    difference, margin, (low, high) = test["difference"], test["minimum_effect"], test["ci_90"]
    slack = TIE * max(1.0, margin)
    p = f"p {test['p_holm']:.2g} after Holm's correction" if test["p_holm"] is not None else ""
    passed = test["p_holm"] is not None and test["p_holm"] < ALPHA
    if math.isnan(difference):
        return UNDECIDED, "undefined"
    if test["exploratory"]:
        return UNDECIDED, test["reason"]
    if passed and is_directed and abs(difference) >= margin - slack:
        return (BETTER if difference > 0 else WORSE), p
    if margin > 0 and -margin - slack <= low and high <= margin + slack:
        return EQUIVALENT, f"90 % interval within ±{margin:g}"
    if not test["differing_clusters"]:
        return UNDECIDED, "equal in every document"
    if passed:
        return UNDECIDED, f"below the minimum effect {margin:g}" if is_directed else "neither direction is better"
    if test["differing_clusters"] < MIN_CLUSTERS:
        return UNDECIDED, f"{test['differing_clusters']} of {test['clusters']} documents differ: too few"
    if not p:
        return UNDECIDED, "all documents differ by the same"
    low, high = test["ci"]
    return UNDECIDED, "interval holds 0" if low <= 0 <= high else p


# ---------------------------------------------------------------------------------------------------- models of systems
def number_trainings(digests: Sequence[str], runs: int) -> np.ndarray:
    """Return the number of each run's training: int (runs,); each run is one where a digest is not known.

    Args:
        digests: of the runs' models.
        runs: the number of runs.
    """
    if len(digests) != runs or not all(digests):
        return np.arange(runs)
    return np.unique(list(digests), return_inverse=True)[1]  # equal models have equal numbers in all systems


def share_trainings(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return True if two systems explain the same several trainings, by the digests of their runs' models."""
    return all([*first, *second]) and set(first) == set(second) and len(set(first)) > 1


def have_same_model(
    pair: Pair, faithfulness: Mapping[str, Sequence[Statistics]] | None, models: Mapping[str, Sequence[str]]
) -> bool:
    """Return True if two systems explain the same models, or may do so.

    Args:
        pair: their names.
        faithfulness: the runs of each system, whose column ``full_input`` has the probability of the predicted label;
            None if systems have no probabilities.
        models: {name: the digest of each run's model}.
    """
    digests = [models.get(name, ()) for name in pair]
    if all(own and all(own) for own in digests):
        return set(digests[0]) == set(digests[1])
    for first, second in zip(*(faithfulness[name] for name in pair), strict=False) if faithfulness else ():
        both = [run.columns[FULL_INPUT] for run in (first, second) if FULL_INPUT in run.columns]
        if len(both) == 2 and (np.abs(both[0] - both[1]) > SAME_PROBABILITY).any():
            return False
    return True


# ---------------------------------------------------------------------------------------------------------------- notes
def describe_pairs(pairs: Sequence[Pair], total: int) -> str:
    """Return the names of pairs of systems: "all systems", or at most three pairs and the number of others."""
    if len(pairs) == total > 1:
        return "all systems"
    more = f" and {len(pairs) - SHOWN} more pairs" if len(pairs) > SHOWN else ""
    return "; ".join(" and ".join(pair) for pair in pairs[:SHOWN]) + more


def describe_runs(trainings: Mapping[str, np.ndarray], shared: Sequence[Pair]) -> list[str]:
    """Return notes on what verdicts are about: systems of one training, and pairs that explain the same trainings."""
    notes, single = [], [name for name, numbers in trainings.items() if len(set(numbers.tolist())) == 1]
    if single:
        whose = "each system has one run" if len(single) == len(trainings) else f"one run of {', '.join(single)}"
        about = "a verdict is about these files, and another seed may give another; several runs are NAME=FILE,FILE"
        notes.append(f"{whose}: {about}")
    if shared:
        who = describe_pairs(shared, math.comb(len(trainings), 2))
        notes.append(f"{who} explain the same trainings: their runs are paired")
    return notes


def describe_tests(
    tests: Mapping[Pair, Mapping[str, Test]], family: Sequence[str], different: Sequence[Pair], declared: bool
) -> list[str]:
    """Return notes on differences that are not tested: undefined ones, equal systems, different models.

    Args:
        tests: the figures of each pair.
        family: the scores that are tested.
        different: the pairs that explain different models.
        declared: the family was declared, so that different models are tested as well.
    """
    notes, equal, undefined = [], dict[tuple[str, ...], list[Pair]](), dict[str, None]()
    for pair, own in tests.items():
        undefined |= dict.fromkeys(key for key in family if math.isnan(own[key]["difference"]))
        alike = [key for key in family if key not in undefined and not own[key]["differing_clusters"]]
        for of_labels in (False, True):
            if some := tuple(key for key in alike if (key in LABELS) == of_labels):
                equal.setdefault(some, []).append(pair)
    for keys, pairs in equal.items():
        what = (
            "the same rationales"
            if "token_macro_f1" in keys
            else "the same labels"
            if keys[0] in LABELS
            else "equal scores"
        )
        notes.append(f"{describe_pairs(pairs, len(tests))} give {what}: {', '.join(keys)} not tested")
    growing = [key for key in family if key.startswith(GROWING)]
    if different and growing:
        what = "grow with a model's confidence" + ("" if declared else " and are not tested between them")
        notes.append(f"different models ({describe_pairs(different, len(tests))}): {', '.join(growing)} {what}")
    if undefined:
        notes.append(f"undefined, and not tested: {', '.join(undefined)} (a mean over nothing has no number)")
    return notes


def describe_power(tests: Mapping[Pair, Mapping[str, Test]], n_tests: int, draws: int) -> list[str]:
    """Return the note that no test of one run each can find a difference after Holm's correction, if that is so.

    Args:
        tests: all tests.
        n_tests: the number of those that are corrected.
        draws: the number of exchanges that are drawn of more than 12 clusters.
    """
    most = max(test["differing_clusters"] for own in tests.values() for test in own.values())
    least = 2.0 ** (1 - most) if most <= EXACT_CLUSTERS else 1 / (draws + 1)
    if not n_tests or n_tests * least < ALPHA:
        return []
    words = f"of {most} clusters" if most <= EXACT_CLUSTERS else f"of {draws} exchanges (`resamples`)"
    return [f"no star is possible: the smallest p {words} is {least:.3g}, and there are {n_tests} tests"]
