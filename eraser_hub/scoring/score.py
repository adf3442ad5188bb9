"""Scores of predictions on a split: files are read in chunks, and of each chunk only additive columns stay."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from eraser_hub.metrics.erasure import (
    ERASURE_SCORES,
    count_bounded,
    erasure_scores,
    find_lacking,
    measure_erasure,
    report_labels,
)
from eraser_hub.metrics.errors import DataError, cut
from eraser_hub.metrics.fidelity import fidelity_columns, fidelity_scores, read_fidelity
from eraser_hub.metrics.match import ERASED, Gold, Matcher, read_predictions
from eraser_hub.metrics.match import read_gold as read_gold_rows
from eraser_hub.metrics.plain import is_plain, to_instances
from eraser_hub.metrics.ranking import (
    AGREEMENT_SCORES,
    AgreementSettings,
    agreement_columns,
    agreement_extra,
    agreement_scores,
)
from eraser_hub.metrics.ranking import describe_agreement as list_facts
from eraser_hub.metrics.rows import row_id
from eraser_hub.metrics.statistics import (
    Measured,
    Score,
    Statistics,
    concatenate,
    mean,
    mean_columns,
)
from eraser_hub.records.files import compute_file_digest
from eraser_hub.records.predictions import read_chunks, read_model_digest, read_rows, read_signature

from .adding import QuotedInstances, add_result, score_quotes
from .gold import choose_gold, find_split, list_rows, read_column, read_flat_rows, read_gold, score_people
from .result import Scores, average_runs
from .settings import ScoreSettings

if TYPE_CHECKING:
    from .compare import Comparison
    from .runs import System
    from .scored_split import ScoredSplit

Rows = Sequence[Mapping[str, Any]]
Chunk = tuple[Rows, Sequence[int]]
CustomMetric = Callable[[Mapping[str, Any], Mapping[str, Any]], float]
OWN = ("auto", "none")  # values of cluster_by that are no column
READ = ("annotation_id", "rationales", "classification", "classification_scores")  # of plain predictions
EXCHANGED = 0.3  # sufficiency so far above comprehensiveness is asked about
METRICS = ("eraser_agreement", "eraser_faithfulness", "normalized_fidelity", "custom")


class Tally:
    """Columns of a metric, added a chunk at a time: a row per annotation, or the sums of those without and with gold.

    Args:
        by_rows: keep a row per annotation.
    """

    def __init__(self, by_rows: bool) -> None:
        self.by_rows = by_rows
        self.parts: list[dict[str, np.ndarray]] = []
        self.sizes: list[int] = []

    def add(self, columns: dict[str, np.ndarray], marked: np.ndarray) -> None:
        """Add the columns of a chunk; ``marked`` tells the annotations with a gold token: bool (n,)."""
        if not self.by_rows:
            summed = {name: np.stack([v[~marked].sum(0), v[marked].sum(0)]) for name, v in columns.items()}
            for part in self.parts:
                zero = np.zeros(1)
                summed = {name: summed.get(name, zero) + part.get(name, zero) for name in {**part, **summed}}
            self.parts, self.sizes = [summed], [2]
        else:
            self.parts.append(columns)
            self.sizes.append(marked.size)

    def columns(self, order: np.ndarray | None) -> dict[str, np.ndarray]:
        """Return all columns, their rows in this order."""
        joined = concatenate(self.parts, self.sizes)
        return joined if order is None else {name: values[order] for name, values in joined.items()}


def score(
    source: ScoredSplit,
    predictions: Path,
    settings: ScoreSettings | None = None,
    metrics: Sequence[str | CustomMetric] = (),
) -> Scores:
    """Score a file of predictions (JSON Lines or Parquet): ERASER instances, plain rows, or records of pairs.

    Args:
        source: the split that they answer.
        predictions: the file.
        settings: how they are scored.
        metrics: further scores: a function of (row of the dataset, instance) to a number, or ``FILE.py:FUNCTION``.

    Raises:
        DataError: bad data, with file and line; a setting out of its range.
    """
    settings = settings or ScoreSettings()
    settings.check()
    if source.kind == "perturbation":
        from .pairs import score_pairs

        return score_pairs(source, predictions, settings)
    if settings.paper not in (None, "eraser"):
        raise DataError(f"expected eraser for an ERASER corpus, found {settings.paper}", argument="paper")
    if settings.unmarked is None:
        settings = replace(settings, unmarked="score" if source.is_shipped else "skip")
    gold, notes = choose_gold(read_gold(source), source, settings.gold)
    digest = hashlib.sha256()
    chunks: Iterable[Chunk] = read_chunks(predictions, digest)
    first = next(iter(chunks))
    if is_plain(first[0][0]):
        rows = [*first[0], *chain.from_iterable(rows for rows, _ in chunks)]
        with locate(predictions, rows):
            instances, _, changes = to_instances(rows, list_rows(source))
        chunks, notes = [(instances, range(1, len(instances) + 1))], [*notes, *changes]
    else:
        chunks = chain([first], chunks)
    scores = Scores(names=source.names, notes=[note for note in (source.labels.note, *notes) if note])
    columns = {
        name: read_column(source, name)
        for name in (settings.by, settings.cluster_by)
        if name not in (None, "auto", "none")
    }
    functions = dict(map(load_metric, metrics))
    rows_by_id = {str(row["annotation_id"]): row for row in list_rows(source)} if functions else {}
    try:
        score_chunks(
            scores, gold, chunks, settings, columns, functions, rows_by_id, source.labels.sentence_end_inclusive
        )
    except DataError as error:
        if error.field == "annotation_id" and error.file is None:
            ids = [str(row.get("annotation_id")) for row in read_rows(predictions)]
            error.message += find_split(source, ids, gold.ids)
        error.file = error.file if error.argument else error.file or predictions
        raise
    scores.gold |= {"split": scores.names["split"], "comprehensive": source.is_comprehensive()} if scores.gold else {}
    scores.notes += ask_about(scores)
    scores.files, scores.predictions_sha256 = [predictions], [digest.hexdigest()]
    scores.run = read_signature(predictions)
    scores.signatures += [scores.run] if scores.run else []
    if settings.people and scores.gold:
        scores.people = score_people(source, gold, settings.agreement)
    return scores


def score_system(
    source: ScoredSplit, system: System, settings: ScoreSettings, metrics: Sequence[str | CustomMetric] = ()
) -> Scores:
    """Score a system: the mean of its runs, where it has several; errors as of `score`."""
    runs = [score(source, path, settings, metrics) for path in system.paths]
    return replace(average_runs(runs), name=system.name)


def get_runs(system: object) -> Sequence[Mapping[str, Statistics]]:
    """Return the statistics of each run of scores (of ``score(.., per_instance=True)``), or those of a metric module.

    Raises:
        DataError: something else, or scores whose values of single annotations were not kept.
    """
    if type(system).__name__ == Statistics.__name__:  # a module that `evaluate` loads has a class of its own
        return [{"metric": cast("Statistics", system)}]
    if not isinstance(system, Scores):
        raise DataError(f"expected files, scores or statistics, found {cut(system)}", argument="systems")
    if any(len(each.ids) == 2 != len(system.ids) for each in system.statistics.values()):
        raise DataError("expected scores of `score(.., per_instance=True)`, found sums", argument="systems")
    return system.runs


def compare_systems(
    source: ScoredSplit, systems: Sequence[System], settings: ScoreSettings, **inference: Any
) -> Comparison:
    """Score systems on a split, and compare them.

    Args:
        source: the split that they answer.
        systems: two or more.
        settings: how they are scored.
        **inference: see `compare.compare`.

    Raises:
        DataError: as of `score` and `compare.compare`.
    """
    from .compare import compare
    from .runs import describe_unlike_operators

    scored = {system.name: score_system(source, system, replace(settings, keep_rows=True)) for system in systems}
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


def score_flat(
    gold_file: Path,
    predictions: Path,
    settings: ScoreSettings | None = None,
    metrics: Sequence[str | CustomMetric] = (),
) -> Scores:
    """Score a file of predictions against a file of gold rationales; each is jsonl, json, csv, tsv or Parquet.

    Args:
        gold_file: rows with ``id``, ``tokens`` or ``text``, and ``rationale``; also ``label``.
        predictions: rows with ``id`` and ``rationale``, ``scores`` or ``quotes``, or instances.
        settings: how they are scored.
        metrics: further scores, as of `score`; a row is one of ``gold_file``.

    Raises:
        DataError: bad data, with its file.
    """
    settings = settings or ScoreSettings()
    settings.check()
    settings = replace(settings, unmarked=settings.unmarked or "skip")
    rows = read_flat_rows(gold_file)
    with locate(gold_file, rows):
        _, references, notes = to_instances([], rows)
        for row in references or ():
            if row.get("classification") is not None:
                row["classification"] = str(row["classification"])  # a number is a name here
        labels = sorted({row["classification"] for row in references or () if row.get("classification") is not None})
        gold = replace(read_gold_rows(references, labels, ("documents", "evidences")), file=gold_file)
        columns: dict[str, Sequence[Any]] = {}
        for name in (name for name in (settings.by, settings.cluster_by) if name is not None and name not in OWN):
            field = "label" if name == "classification" and name not in rows[0] else name
            if any(field not in row for row in rows):
                raise DataError(f"expected the field {name!r} in every row, found none", field=name)
            columns[name] = [row[field] for row in rows]
    scores = Scores(notes=notes)
    if not labels:
        scores.notes.append("labels: none in the gold, so labels and probabilities of predictions are not scored")
    answers = read_flat_rows(predictions)
    with locate(predictions, answers):
        instances, _, changes = to_instances(answers, rows)
        fields = READ if labels else READ[:2]
        if any(map(is_plain, answers)):
            instances = [{name: row[name] for name in fields if name in row} for row in instances]
        scores.notes += changes
        functions = dict(map(load_metric, metrics))
        rows_by_id = dict(zip(gold.ids, rows, strict=True)) if functions else {}
        chunks = [(instances, range(1, len(instances) + 1))]
        score_chunks(scores, gold, chunks, settings, columns, functions, rows_by_id)
    scores.notes += ask_about(scores)
    scores.files, scores.inputs = [predictions], [gold_file, predictions]
    scores.predictions_sha256 = [compute_file_digest(predictions)]
    return scores


@contextmanager
def locate(path: Path, rows: Rows) -> Iterator[None]:
    """Add to an error the file, and the line of the row that it names."""
    try:
        yield
    except DataError as error:
        if error.file is None and error.line is None:
            names = {row_id(row) or str(place): place for place, row in enumerate(rows)}
            error.line = names[str(error.instance)] + 1 if str(error.instance) in names else None
        error.file = error.file or path
        raise


def score_chunks(
    scores: Scores,
    gold: Gold,
    chunks: Iterable[Chunk],
    settings: ScoreSettings,
    columns: Mapping[str, Sequence[Any]] | None = None,
    functions: Mapping[str, CustomMetric] | None = None,
    rows_by_id: Mapping[str, Mapping[str, Any]] | None = None,
    sentence_end_inclusive: bool = False,
) -> None:
    """Score instances, and put what they give into ``scores``.

    Args:
        scores: of the split.
        gold: its annotations.
        chunks: instances and their lines, some at a time.
        settings: how they are scored.
        columns: the columns that ``by`` and ``cluster_by`` name, a value per annotation.
        functions: further scores, by name.
        rows_by_id: the dataset's rows, for these.
        sentence_end_inclusive: ends of gold sentences are inclusive (BoolQ as released): they are read as exclusive
            ones, as the reference scorer does, and the signature says so.

    Raises:
        DataError: at the first instance at fault, with its line; nothing that can be scored.
    """
    own, matcher = settings.agreement, Matcher(gold, settings.only_predicted, thresholds=settings.aopc_thresholds)
    tallies = {metric: Tally(settings.by_rows) for metric in METRICS}
    places: list[np.ndarray] = []
    rates: Sequence[float] = ()
    quoting = QuotedInstances()
    layouts: set[tuple[str, ...]] = set()
    answered, columns, functions = 0, columns or {}, functions or {}
    for rows, lines in chunks:
        match = matcher.add(read_predictions(rows, lines, parsed=True, known=layouts))
        agreement = agreement_columns(match, own)
        marked = agreement["gold.marked"] > 0
        tallies["eraser_agreement"].add(agreement, marked)
        tallies["eraser_faithfulness"].add(measure_erasure(match), marked)
        places.append(match.rows)
        answered += int(match.answered.sum())
        if "null" in matcher.used and match.answered.any():
            fidelity, rates = measure_nulls(rows, match.answered, rates)
            tallies["normalized_fidelity"].add(fidelity, marked)
        quoting.add(rows, lines, match.ids)
        if functions:
            tallies["custom"].add(measure_functions(functions, rows_by_id or {}, rows), marked)
    scored, order = matcher.finish(), np.argsort(np.concatenate(places), kind="stable")
    kept = np.arange(len(gold.ids)) if scored is None else scored
    scores.ids = [gold.ids[row] for row in kept.tolist()]
    scores.by, scores.data_digest, scores.paper = settings.by, gold.digest(), settings.paper
    scores.iou_thresholds = settings.iou_thresholds
    groups = {} if settings.by is None else dict(zip(gold.ids, columns[settings.by], strict=True))
    scores.notes += matcher.notes()
    if kept.size < len(gold.ids):
        scores.notes.append(f"{kept.size:,} of {len(gold.ids):,} annotations have an instance, and are scored")
    facts = matcher.facts() | ({"gold": settings.gold} if settings.gold != "evidence" else {})
    for metric in (metric for metric in METRICS if tallies[metric].parts):
        table = tallies[metric].columns(order if settings.by_rows else None)
        statistics = Statistics(scores.ids if settings.by_rows else ["without gold", "with gold"], table, {})
        cluster(statistics, gold, kept, settings, columns)
        if metric == "eraser_agreement":
            measured = describe_agreement(statistics, own, matcher.used, sentence_end_inclusive)
        elif metric == "eraser_faithfulness":
            measured = describe_erasure(statistics, matcher, answered)
            scores.label_report = report_labels(table, matcher.labels) if "accuracy" in statistics.scores else None
        elif metric == "normalized_fidelity":
            statistics.scores = fidelity_scores(rates)
            measured = Measured(statistics, extra={"occlusion_rates": sorted(set(rates))} if max(rates) > 0 else {})
        else:
            statistics.scores = {name: Score(mean(name), None, None, None) for name in functions}
            measured = Measured(statistics, {"functions": ",".join(functions)})
        if statistics.scores:
            measured.settings = {**facts, **measured.settings}
            n = measured.statistics.columns["gold.rows"].sum() if metric == "eraser_agreement" else kept.size
            add_result(scores, metric, measured, settings, groups, int(n))
        else:
            scores.notes += measured.notes
    if quoting.rows:
        measured = score_quotes(gold, quoting.rows, quoting.lines)
        measured.settings = {**matcher.facts(), **measured.settings}
        rows_of = np.array([matcher.index[name] for name in measured.statistics.ids])
        cluster(measured.statistics, gold, rows_of, settings, columns)
        add_result(scores, "quote_faithfulness", measured, settings, groups, rows_of.size)
    if not scores.scores:
        fields = "hard_rationale_predictions, soft_rationale_predictions, soft_sentence_predictions, classification"
        raise DataError(f"nothing to score: expected one of {fields}, classification_scores, found none of them")


def ask_about(scores: Scores) -> Iterator[str]:
    """Yield a line for each likely mistake in predictions that no check can find."""
    chance, values = scores.chance, {key: scores.number(key) for key in scores}
    ranking, random = values.get("average_precision"), chance.get("average_precision")
    if ranking is not None and random is not None and ranking < random:
        yield f"average precision {ranking:.4f} is below chance, {random:.4f}: are token scores negated?"
    hidden, kept = values.get("comprehensiveness"), values.get("sufficiency")
    if hidden is not None and kept is not None and kept > hidden + EXCHANGED:
        line = f"sufficiency {kept:.4f} is far above comprehensiveness {hidden:.4f}"
        yield f"{line}: rationales that matter little, or were the two exchanged?"
    for key, value in values.items():
        if key.startswith("iou_") and value is not None and value > 1:
            yield f"{key} is {value:.4f}: several predicted spans hit one of gold; iou_matched_f1 counts each once"
            return


def measure_nulls(
    rows: Rows, answered: np.ndarray, rates: Sequence[float]
) -> tuple[dict[str, np.ndarray], Sequence[float]]:
    """Return the columns of normalised fidelity, 0 for instances without an answer, and the occlusion rates.

    Raises:
        DataError: the rates differ from those of earlier chunks.
    """
    there = np.flatnonzero(answered)
    columns, found = fidelity_columns(read_fidelity([rows[at] for at in there.tolist()]))
    if len(rates) and list(found) != list(rates):
        raise DataError("expected the occlusion rates of the first instances, found others", field="occluded_scores")
    whole = {name: np.zeros((answered.size, *values.shape[1:])) for name, values in columns.items()}
    for name, values in columns.items():
        whole[name][there] = values
    return whole, found


def measure_functions(
    functions: Mapping[str, CustomMetric], rows_by_id: Mapping[str, Mapping[str, Any]], rows: Rows
) -> dict[str, np.ndarray]:
    """Return the columns of a user's own scores of some instances.

    Raises:
        DataError: a function has the name of a score, fails, or returns no number.
    """
    columns: dict[str, np.ndarray] = {}
    if known := (AGREEMENT_SCORES.keys() | ERASURE_SCORES.keys()) & functions.keys():
        raise DataError(f"expected names that no score has, found {', '.join(known)}", argument="metric")
    for name, function in functions.items():
        values = []
        for row in rows:
            try:
                values.append(float(function(rows_by_id[str(row["annotation_id"])], row)))
            except Exception as error:  # whatever a user's function raises
                message = f"{name}: expected a number, found {type(error).__name__}: {error}"
                raise DataError(message, instance=row["annotation_id"], argument="metric") from error
        columns |= mean_columns(name, np.array(values))
    return columns


def describe_agreement(
    statistics: Statistics, settings: AgreementSettings, used: Set[str], sentence_end_inclusive: bool
) -> Measured:
    """Return scores of agreement; without scores where all annotations lack gold rationales and are skipped."""
    table = statistics.columns
    statistics.scores = agreement_scores(table, settings, used)
    facts, notes = list_facts(table, settings, used)
    if sentence_end_inclusive and "sentence_micro_f1" in statistics.scores:
        facts["sentences"] = "[start,end)"
    if settings.unmarked == "skip" and not table["gold.marked"].any():
        statistics.scores = {}
    if not statistics.scores:
        return Measured(statistics, facts, notes=notes)
    scored, extra = agreement_extra(statistics, settings)
    return Measured(scored, facts, extra, notes)


def describe_erasure(statistics: Statistics, matcher: Matcher, answered: int) -> Measured:
    """Return scores of faithfulness and of labels, of ``answered`` instances that have an answer."""
    statistics.scores, used = erasure_scores(statistics.columns), matcher.used
    thresholds = matcher.thresholds.tolist() if "thresholds" in used and matcher.thresholds is not None else []
    facts = {**({"aopc": thresholds} if thresholds else {}), **count_bounded(statistics.columns, answered)}
    lacking = find_lacking(statistics.scores, used, with_gold=True) if not used.isdisjoint(ERASED) else {}
    words = [f"{', '.join(keys)} (no {name})" for name, keys in lacking.items()]
    notes = [f"left out: {'; '.join(words)}"] if words else []
    return Measured(statistics, facts, {"aopc_thresholds": thresholds} if thresholds else {}, notes)


def cluster(
    statistics: Statistics,
    gold: Gold,
    kept: np.ndarray,
    settings: ScoreSettings,
    columns: Mapping[str, Sequence[Any]],
) -> None:
    """Set the clusters of the annotations ``kept``, unless sums are all that is kept of them."""
    if not settings.by_rows:
        return
    if settings.cluster_by == "auto":
        clusters = gold.clusters()
        statistics.set_clusters(*(("none", None) if clusters is None else ("documents", clusters[kept].tolist())))
    elif settings.cluster_by != "none":
        statistics.set_clusters(settings.cluster_by, [columns[settings.cluster_by][row] for row in kept.tolist()])


def load_metric(metric: str | CustomMetric) -> tuple[str, CustomMetric]:
    """Return the name of a function, and the function, which ``FILE.py:FUNCTION`` names.

    Raises:
        DataError: there is no such file or function.
    """
    if callable(metric):
        return getattr(metric, "__name__", "metric"), metric
    path = metric
    file, _, name = path.rpartition(":")
    specification = importlib.util.spec_from_file_location(Path(file).stem, file) if file.endswith(".py") else None
    if specification is None or specification.loader is None:
        raise DataError(f"expected FILE.py:FUNCTION, found {cut(path)}", argument="metric")
    if not Path(file).is_file():
        raise DataError("expected a file of Python, found none", file=file, argument="metric")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise DataError(f"expected a function of {file}, found no {cut(name)} there", argument="metric")
    return name, cast("CustomMetric", function)
