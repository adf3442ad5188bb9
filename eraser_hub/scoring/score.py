"""Scores of predictions on a split: files are read in chunks, and of each chunk only additive columns stay."""

from __future__ import annotations

import gc
import hashlib
import importlib.util
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import numpy as np

from eraser_hub.metrics.erasure import (
    ERASURE_SCORES,
    describe_erasure,
    erasure_scores,
    measure_erasure,
    report_labels,
)
from eraser_hub.metrics.errors import DataError, check_choice, cut
from eraser_hub.metrics.fidelity import describe_fidelity, fidelity_columns, fidelity_scores, read_fidelity
from eraser_hub.metrics.gold import Gold
from eraser_hub.metrics.match import Matcher
from eraser_hub.metrics.plain import is_plain, to_instances
from eraser_hub.metrics.predictions import ERASED, read_predictions
from eraser_hub.metrics.ranking import (
    AGREEMENT_SCORES,
    AUPRC_POLICIES,
    AgreementSettings,
    agreement_columns,
    agreement_extra,
    agreement_scores,
    describe_agreement,
)
from eraser_hub.metrics.statistics import (
    DEFAULT_LEVEL,
    DEFAULT_RESAMPLES,
    NORMAL,
    Measured,
    Score,
    Statistics,
    check_inference,
    concatenate,
    mean,
    mean_columns,
)
from eraser_hub.records.arguments import GoldForm
from eraser_hub.records.files import compute_file_digest
from eraser_hub.records.predictions import read_chunks, read_signature

from .gold import find_split, list_rows, locate, read_column, read_gold
from .people import choose_gold, score_people
from .result import NO_COVERAGE, Scores, average_runs
from .scored_split import ScoredSplit, read_flat_rows

if TYPE_CHECKING:
    from .runs import System

Rows = Sequence[Mapping[str, Any]]
Chunk = tuple[Rows, Sequence[int]]
CustomMetric = Callable[[Mapping[str, Any], Mapping[str, Any]], float]
READ = ("annotation_id", "rationales", "classification", "classification_scores")  # of plain rows of a table
EXCHANGED = 0.3  # sufficiency so far above comprehensiveness is asked about
METRICS = ("eraser_agreement", "eraser_faithfulness", "normalized_fidelity", "custom")


@dataclass(frozen=True)
class ScoreSettings:
    """How predictions are scored.

    Attributes:
        iou_thresholds: of IOU, in (0, 1]; keys of .5 (else of the first) have no suffix.
        aopc_thresholds: those that every instance must have; None: those of the first.
        auprc_policy: AUPRC of a document without evidence: reference (0.5), skip, zero or one.
        sentence_threshold: the least score of a predicted sentence.
        unmarked: "score" or "skip" annotations without gold rationale in agreement; None: skip them, but score those of
            the configs that this package builds.
        gold: gold rationales: evidence, or the majority or union of the annotators' marks.
        only_predicted: score only annotations with an instance.
        by: break the scores down by this field of the annotations.
        cluster_by: what intervals and tests draw together: "auto" (annotations that share a document), "none", or a
            field of the annotations.
        per_instance: keep every score of every annotation.
        confidence_level, n_resamples, seed: of intervals; None for both: no intervals.
        paper: make the choices of this paper's code: eraser or wang2022.
        people: score each annotator against the majority of the others, where annotators are known.
        keep_rows: keep the columns of every annotation, for `compare`.

    Raises:
        DataError: a setting out of its range.
    """

    iou_thresholds: Sequence[float] = (0.5,)
    aopc_thresholds: Sequence[float] | None = None
    auprc_policy: str = "reference"
    sentence_threshold: float = 0.5
    unmarked: str | None = None
    gold: GoldForm = "evidence"
    only_predicted: bool = False
    by: str | None = None
    cluster_by: str = "auto"
    per_instance: bool = False
    confidence_level: float | None = None
    n_resamples: int | None = None
    seed: int = 0
    paper: str | None = None
    people: bool = True
    keep_rows: bool = False

    def __post_init__(self) -> None:
        for name, least, end in (("iou_thresholds", 1e-300, "(0"), ("aopc_thresholds", 0.0, "[0")):
            values = getattr(self, name)
            if values is not None and not (len(values) and all(least <= value <= 1 for value in values)):
                raise DataError(f"expected numbers in {end}, 1], found {cut(list(values))}", argument=name)
        check_choice(self.auprc_policy, AUPRC_POLICIES, "auprc_policy")
        check_choice(self.unmarked or "score", ("score", "skip"), "unmarked")
        check_choice(self.gold, get_args(GoldForm), "gold")
        check_choice(self.paper or "eraser", ("eraser", "wang2022"), "paper")
        level = DEFAULT_LEVEL if self.confidence_level is None else self.confidence_level
        resamples = DEFAULT_RESAMPLES if self.n_resamples is None else self.n_resamples
        check_inference(level, resamples, self.seed, "resamples")

    @property
    def by_rows(self) -> bool:
        """Whether the columns of every annotation are needed; else their sums are kept alone."""
        with_intervals = self.confidence_level is not None or self.n_resamples is not None
        return self.keep_rows or self.per_instance or with_intervals or self.by is not None

    @property
    def agreement(self) -> AgreementSettings:
        """The settings of agreement scores."""
        thresholds = list(dict.fromkeys(map(float, self.iou_thresholds)))
        main = 0.5 if 0.5 in thresholds else thresholds[0]
        unmarked = self.unmarked or "score"
        return AgreementSettings(main, thresholds, self.auprc_policy, self.sentence_threshold, unmarked, chance=True)


def score(
    source: ScoredSplit,
    predictions: Path,
    settings: ScoreSettings | None = None,
    metrics: Sequence[str | CustomMetric] = (),
) -> Scores:
    """Score a file of predictions: ERASER instances, plain rows, or records of pairs.

    Args:
        source: what they answer.
        predictions: JSON Lines or Parquet; beside a file of gold rationales also json, csv or tsv.
        settings: how they are scored.
        metrics: further scores: a function of (row of the dataset, instance) to a number, or ``FILE.py:FUNCTION``.

    Raises:
        DataError: bad data, with file and line; nothing that can be scored.
    """
    settings = settings or ScoreSettings()
    if source.kind == "perturbation":
        from .pairs import score_pairs

        return score_pairs(source, predictions, settings)
    if settings.paper not in (None, "eraser"):
        raise DataError(f"expected eraser for an ERASER corpus, found {settings.paper}", argument="paper")
    if settings.unmarked is None:
        settings = replace(settings, unmarked="score" if source.is_shipped else "skip")
    whole, notes = read_gold(source)
    gold, of_form = choose_gold(whole, source, settings.gold)
    scorer, digest = Scorer(source, gold, settings, metrics), hashlib.sha256()
    scores = Scores(names=source.names, by=settings.by, paper=settings.paper, iou_thresholds=settings.iou_thresholds)
    collecting = gc.isenabled()
    gc.disable()  # rows of JSON have no cycles, and to look for some takes a quarter of the time
    try:
        chunks, changes = read_answers(source, predictions, digest, has_labels=bool(gold.labels))
        for rows, lines in chunks:
            scorer.add(rows, lines)
        scores.notes += [note for note in (source.labels.note, *notes, *of_form, *changes) if note]
        scorer.finish(scores)
    except DataError as error:
        if error.field == "annotation_id" and error.file in (None, predictions):
            error.message += find_split(source, predictions, gold.ids)
        error.file = error.file if error.argument else error.file or predictions
        raise
    finally:
        if collecting:
            gc.enable()
    if scores.gold and scores.names:
        scores.gold |= {"split": scores.names["split"], "comprehensive": source.is_comprehensive()}
    scores.notes += ask_about(scores, scorer.gaps)
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


def read_answers(
    source: ScoredSplit, predictions: Path, digest: hashlib._Hash, has_labels: bool
) -> tuple[Iterator[Chunk], list[str]]:
    """Return instances and their lines, some at a time, and notes; plain rows become instances.

    Args:
        source: what they answer.
        predictions: the file.
        digest: updated with the bytes of the file.
        has_labels: whether the annotations have labels; labels of rows of a table are left out where they have none.
    """
    if source.kind == "file":
        table = read_flat_rows(predictions)
        compute_file_digest(predictions, digest)
        chunks: Iterator[Chunk] = iter([(table, range(1, len(table) + 1))])
    else:
        chunks = read_chunks(predictions, digest)
    first = next(chunks)
    if "evidences" in first[0][0] and first[0][0].keys().isdisjoint(("rationales", "rationale", "probabilities")):
        message = "expected predictions, found annotations with their evidences: the gold, which `dataset` takes"
        raise DataError(message, line=first[1][0])
    if not is_plain(first[0][0]):
        return chain([first], chunks), []
    rows = [*first[0], *chain.from_iterable(rows for rows, _ in chunks)]
    with locate(predictions, rows):
        instances, _, notes = to_instances(rows, list_rows(source))
    if source.kind == "file":  # further columns of a table are no fields of an instance
        fields = READ if has_labels else READ[:2]
        instances = [{name: row[name] for name in fields if name in row} for row in instances]
    return iter([(instances, range(1, len(instances) + 1))]), notes


class Scorer:
    """Adds columns of all metrics, a chunk at a time: a row per annotation, or sums of those without and with gold.

    Args:
        source: the split.
        gold: its annotations.
        settings: how they are scored.
        metrics: further scores, as of `score`.
    """

    def __init__(
        self, source: ScoredSplit, gold: Gold, settings: ScoreSettings, metrics: Sequence[str | CustomMetric]
    ) -> None:
        self.source, self.gold, self.settings, self.agreement = source, gold, settings, settings.agreement
        self.functions = dict(map(load_metric, metrics))
        if known := (AGREEMENT_SCORES.keys() | ERASURE_SCORES.keys()) & self.functions.keys():
            raise DataError(f"expected names that no score has, found {', '.join(known)}", argument="metric")
        self.rows_by_id = dict(zip(gold.ids, list_rows(source), strict=True)) if self.functions else {}
        self.groups: dict[str, Any] = {}
        if settings.by is not None:
            self.groups = dict(zip(gold.ids, read_column(source, settings.by), strict=True))
        self.clusters: tuple[str, Sequence[Any] | None] = "none", None
        if settings.cluster_by not in ("auto", "none"):
            self.clusters = settings.cluster_by, read_column(source, settings.cluster_by)
        elif settings.by_rows and settings.cluster_by == "auto" and (found := gold.clusters()) is not None:
            self.clusters = "documents", found.tolist()
        self.matcher = Matcher(gold, settings.only_predicted, thresholds=settings.aopc_thresholds)
        self.layouts: set[tuple[str, ...]] = set()
        self.parts: list[dict[str, dict[str, np.ndarray]]] = []
        self.sizes: list[int] = []
        self.places: list[np.ndarray] = []
        self.gaps: list[np.ndarray] = []  # average precision above chance, and the documents that it counts
        self.rates: Sequence[float] = ()
        self.quoted: dict[str, tuple[Mapping[str, Any], int]] = {}
        self.unquoted: tuple[str, int] | None = None

    def add(self, rows: Rows, lines: Sequence[int]) -> None:
        """Add instances and their lines.

        Raises:
            DataError: the first instance at fault, with its line.
        """
        match = self.matcher.add(read_predictions(rows, lines, parsed=True, known=self.layouts))
        agreement = agreement_columns(match, self.agreement)
        found = {"eraser_agreement": agreement, "eraser_faithfulness": measure_erasure(match)}
        if "null" in self.matcher.used and match.answered.any():
            found["normalized_fidelity"], self.rates = measure_nulls(rows, match.answered, self.rates)
        if self.functions:
            found["custom"] = measure_functions(self.functions, self.rows_by_id, rows)
        marked, ranked = agreement["gold.marked"] > 0, "average_precision"
        if f"{ranked}.sum" in agreement:
            gap = agreement[f"{ranked}.sum"] - agreement[f"chance.{ranked}.sum"]
            self.gaps.append(np.stack([gap, agreement[f"{ranked}.count"]], axis=1)[marked])
        if not self.settings.by_rows:
            found = {
                metric: {name: np.stack([v[~marked].sum(0), v[marked].sum(0)]) for name, v in columns.items()}
                for metric, columns in found.items()
            }
        self.parts.append(found)
        self.places.append(match.rows)
        self.sizes.append(marked.size if self.settings.by_rows else 2)
        quotes = [row.get("quotes") is not None for row in rows]
        for row, line, name, has_quotes in zip(rows, lines, match.ids, quotes, strict=True) if any(quotes) else ():
            if has_quotes:
                self.quoted[name] = row, line
        if self.unquoted is None and not all(quotes):
            self.unquoted = match.ids[quotes.index(False)], lines[quotes.index(False)]

    def finish(self, scores: Scores) -> None:
        """Put what the instances give into ``scores``.

        Raises:
            DataError: an annotation without an instance; nothing that can be scored.
        """
        gold, settings, matcher = self.gold, self.settings, self.matcher
        matcher.finish()
        places = np.concatenate(self.places)
        order = np.argsort(places, kind="stable")
        kept = places[order]
        scores.ids, scores.data_digest = [gold.ids[int(row)] for row in kept], gold.digest()
        scores.notes += matcher.notes()
        if kept.size < len(gold.ids):
            scores.notes.append(f"{kept.size:,} of {len(gold.ids):,} annotations have an instance, and are scored")
        facts = matcher.facts() | ({"gold": settings.gold} if settings.gold != "evidence" else {})
        for metric in METRICS:
            parts = [part.get(metric, {}) for part in self.parts]
            if not any(parts):
                continue
            columns = concatenate(parts, self.sizes)
            if settings.by_rows:
                columns = {name: values[order] for name, values in columns.items()}
                statistics = Statistics(scores.ids, columns, {})
                self.cluster(statistics, kept)
            else:
                columns = {name: v.reshape(-1, 2, *v.shape[1:]).sum(axis=0) for name, v in columns.items()}
                statistics = Statistics(["without gold", "with gold"], columns, {})
            measured = self.measure(metric, statistics)
            if statistics.scores:
                measured.settings = {**facts, **measured.settings}
                n = measured.statistics.columns["gold.rows"].sum() if metric == "eraser_agreement" else kept.size
                scores.add_measured(metric, measured, settings, self.groups, int(n))
            else:
                scores.notes += measured.notes
            if "accuracy" in statistics.scores:
                scores.label_report = report_labels(columns, matcher.labels)
        if self.quoted:
            measured = self.measure_quotes()
            measured.settings = {**matcher.facts(), **measured.settings}
            ids = measured.statistics.ids
            self.cluster(measured.statistics, np.array([matcher.index[name] for name in ids]))
            scores.add_measured("quote_faithfulness", measured, settings, self.groups, len(ids))
        if not scores.scores:
            fields = "hard_rationale_predictions, soft_rationale_predictions, soft_sentence_predictions, classification"
            raise DataError(f"nothing to score: expected one of {fields}, classification_scores, found none of them")

    def cluster(self, statistics: Statistics, rows: np.ndarray) -> None:
        """Set the clusters of some annotations, unless sums are all that is kept of them."""
        name, values = self.clusters
        if self.settings.by_rows:
            statistics.set_clusters(name, None if values is None else [values[row] for row in rows.tolist()])

    def measure(self, metric: str, statistics: Statistics) -> Measured:
        """Set the scores of a metric, none where nothing can be scored; return them with settings and notes."""
        table, matcher, used = statistics.columns, self.matcher, self.matcher.used
        if metric == "custom":
            statistics.scores = {name: Score(mean(name), None, None, None) for name in self.functions}
            return Measured(statistics, {"functions": ",".join(self.functions)})
        if metric == "normalized_fidelity":
            statistics.scores, rates = fidelity_scores(self.rates), sorted(set(self.rates))
            curve = {"occlusion_rates": rates} if rates[-1] > 0 else {}
            return Measured(statistics, extra=curve, notes=describe_fidelity(table))
        if metric == "eraser_faithfulness":
            statistics.scores = erasure_scores(table)
            facts, aopc, lacking = describe_erasure(statistics.scores, table, matcher)
            words = [f"{', '.join(keys)} (no {name})" for name, keys in lacking.items()]
            notes = [f"left out: {'; '.join(words)}"] if words and not used.isdisjoint(ERASED) else []
            return Measured(statistics, facts, aopc, notes)
        facts, notes = describe_agreement(table, self.agreement, used)
        if self.agreement.unmarked == "score" or table["gold.marked"].any():
            statistics.scores = agreement_scores(table, self.agreement, used)
        if not statistics.scores:
            return Measured(statistics, facts, notes=notes)
        if self.source.labels.sentence_end_inclusive and "sentence_micro_f1" in statistics.scores:
            facts["sentences"] = "[start,end)"  # they are read as exclusive ones, as the reference scorer does
        scored, extra = agreement_extra(statistics, self.agreement)
        return Measured(scored, facts, extra, notes)

    def measure_quotes(self) -> Measured:
        """Return what a language model's quotes give; a corpus folder does not say which documents it read.

        Raises:
            DataError: an instance without quotes, or with faulty ones.
        """
        from eraser_hub.metrics.quotes import measure_quotes

        if self.unquoted is not None:
            name, line = self.unquoted
            raise DataError("expected quotes, as in others, found none", line=line, instance=name, field="quotes")
        gold, whole = self.gold, self.gold.documents.packed.size > 0
        sizes: dict[str, dict[str, int]] = {name: {} for name in self.quoted}
        if whole:
            tokens = gold.documents.lengths(*gold.listed)[0]
            for row, doc, count in zip(*gold.listed, tokens, strict=True):
                if (name := gold.ids[int(row)]) in sizes:
                    sizes[name][gold.docids[int(doc)]] = int(count)
        try:
            statistics, counts = measure_quotes({name: row for name, (row, _) in self.quoted.items()}, sizes)
        except DataError as error:
            error.line = self.quoted[str(error.instance)][1]
            raise
        return Measured(statistics, {"coverage": "documents"} if whole else {}, counts, [] if whole else [NO_COVERAGE])


def ask_about(scores: Scores, gaps: Sequence[np.ndarray] = ()) -> Iterator[str]:
    """Yield a line for each likely mistake in predictions that no check can find.

    Args:
        scores: of the predictions.
        gaps: average precision above chance in each annotation, summed over its documents, and their number: (n, 2).
    """
    ranking, random = scores.number("average_precision"), scores.chance.get("average_precision")
    if gaps and ranking is not None and random is not None:
        gap, count = np.concatenate(gaps).T
        residuals, n = gap - gap.sum() / max(count.sum(), 1) * count, len(gap)
        error = math.sqrt((residuals**2).sum() * n / max(n - 1, 1))
        if gap.sum() + NORMAL.inv_cdf((1 + DEFAULT_LEVEL) / 2) * error < 0:
            yield f"average precision {ranking:.4f} is far below chance, {random:.4f}: are token scores negated?"
    hidden, kept = scores.number("comprehensiveness"), scores.number("sufficiency")
    if hidden is not None and kept is not None and kept > hidden + EXCHANGED:
        line = f"sufficiency {kept:.4f} is far above comprehensiveness {hidden:.4f}"
        yield f"{line}: rationales that matter little, or were the two exchanged?"
    above = [key for key in scores if key.startswith("iou_") and (scores.number(key) or 0) > 1]
    if above:
        line = f"{above[0]} is {scores[above[0]]:.4f}: several predicted spans hit one of gold"
        yield f"{line}; iou_matched_f1 counts each once"


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
        DataError: a function fails, or returns no number.
    """
    columns: dict[str, np.ndarray] = {}
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
