"""Scores of predictions on a split of a dataset: `score`, for data of every sort.

ERASER instances are read in chunks, and the statistics of each chunk are added. The path is the same whether rows per
annotation or only their sums are kept. Records of the perturbation benchmark are scored by `pairs`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from eraser_hub.metrics.agreement import Agreement, AgreementSettings
from eraser_hub.metrics.agreement_scores import PRF, SOFT, describe_scores, format_iou_suffix
from eraser_hub.metrics.checks import name_labels
from eraser_hub.metrics.clusters import AUTO, NONE, add_clusters
from eraser_hub.metrics.erasure import SCORE_INFO, classification_report
from eraser_hub.metrics.faithfulness import Faithfulness
from eraser_hub.metrics.intervals import cautions
from eraser_hub.metrics.issues import Issues, IssuesByRule, check_choice
from eraser_hub.metrics.matching import (
    DOCUMENTS,
    FIELDS,
    LENGTHS,
    THRESHOLDS,
    Matcher,
    describe_fields,
    describe_left_out,
)
from eraser_hub.metrics.quotes import SCORES as OF_QUOTES
from eraser_hub.metrics.rankings import AUPRC_POLICIES
from eraser_hub.metrics.results import describe_breakdown, report
from eraser_hub.metrics.statistics_builder import Statistics, make_info
from eraser_hub.metrics.unknown_fields import UnknownFields
from eraser_hub.records.errors import DataError
from eraser_hub.records.predictions import instances
from eraser_hub.records.predictions import read_chunks as parts_of
from eraser_hub.records.run_record import read_signature
from eraser_hub.records.splits import dataset_split
from eraser_hub.schema.instance import AOPC_THRESHOLDS, SCORE_FIELDS

from .gold.forms import EVIDENCE, MAJORITY, choose_gold
from .identity import Identity
from .modules import LEVELS, module_result, score_records
from .quotes import BLOCK as QUOTES
from .quotes import BlockScores, score_by_rows
from .references import Gold, describe_backup, make_issue_error, read_gold, read_split_ids
from .runs import System
from .scored_split import Row, Rows, ScoredSplit
from .scores import Scores, average_runs
from .settings import ScoreSettings
from .tables import BLOCK_TITLES
from .uncertainty.tied_rankings import describe_ties

FLAT_BLOCKS = ("agreement", "faithfulness")  # scored by columns; the others are modules that score row by row
_TABLES = (describe_scores(), SCORE_INFO, OF_QUOTES)
RANGES = {name: make_info(table)[1] for name, table in zip((*FLAT_BLOCKS, QUOTES), _TABLES, strict=True)}


def score(source: ScoredSplit, predictions: Path, settings: ScoreSettings | None = None, num_proc: int = 0) -> Scores:
    """Score a file of predictions (jsonl or Parquet).

    Args:
        source: the split that the predictions answer.
        predictions: ERASER instances, or for ``bilingual_perturbation`` its records.
        settings: how they are scored.
        num_proc: processes that read a jsonl file of instances; 0: one, or more for a large file on several cores.

    Raises:
        DataError: bad data, with file and line; at most ten issues, and their number.
        ValueError: settings out of range.
    """
    settings = settings or ScoreSettings()
    check_choice(settings.auprc_policy, AUPRC_POLICIES, "auprc_policy")
    if source.kind == "perturbation":
        return score_records(source, predictions, settings)
    if settings.paper not in (None, "eraser"):
        message = f"expected eraser for an ERASER corpus, found {settings.paper}"
        raise DataError(message, rule="option-value", argument="paper")
    return _Instances(source, predictions, settings).score(num_proc)


def score_without(source: ScoredSplit, predictions: Path, settings: ScoreSettings, annotator: str) -> Scores:
    """Score predictions against the majority of all annotators but one; arguments and errors as of `score`."""
    return _Instances(source, predictions, settings, without=annotator).score(0)


def score_system(source: ScoredSplit, system: System, settings: ScoreSettings) -> Scores:
    """Score a system: the mean of its runs, where it has several; errors as of `score`."""
    runs = [score(source, path, settings) for path in system.paths]
    return replace(average_runs(runs), name=system.name)


class _Instances:
    """ERASER instances on their way from a file to scores."""

    def __init__(
        self,
        source: ScoredSplit,
        predictions: Path,
        settings: ScoreSettings,
        without: str | None = None,
    ) -> None:
        self.rows: list[dict[str, Any]] = []
        if settings.fidelity or settings.aopc_thresholds is None:
            self.rows = [msgspec.to_builtins(row) for _, row in instances(predictions)]
        if settings.aopc_thresholds is None:
            settings = replace(settings, aopc_thresholds=_thresholds(self.rows))
        if settings.unmarked is None:
            settings = replace(settings, unmarked="score" if source.is_shipped else "skip")
        self.source, self.path, self.settings = source, predictions, settings
        listed = settings.fidelity or settings.gold != EVIDENCE or without is not None
        form = MAJORITY if without is not None else settings.gold
        clusters = None if settings.cluster_by in (AUTO, NONE) else settings.cluster_by
        columns = tuple(dict.fromkeys(name for name in (settings.by, clusters) if name is not None))
        gold = read_gold(source, columns, listed)
        self.gold = gold = gold if form == EVIDENCE else choose_gold(gold, source, form, without)
        self.rules = rules = IssuesByRule(("predictions", *LENGTHS), FIELDS, (*DOCUMENTS, "strict"), THRESHOLDS)
        name_labels(gold.references, gold.label_names, rules["label names"])
        self.parts = Matcher(gold.references, rules, gold.lines, settings.only_predicted, gold.documents)
        self.parts.option = "`only_predicted`"
        thresholds = tuple(dict.fromkeys(settings.iou_thresholds))
        own = AgreementSettings(
            thresholds,
            0.5 if 0.5 in thresholds else thresholds[0],
            settings.auprc_policy,
            settings.random_baseline,
            settings.sentence_threshold,
            settings.unmarked or "score",
        )
        self.agreement = Agreement(self.parts, own, settings.totals)
        n, bins = len(gold.references.ids), settings.aopc_thresholds or ()
        self.faithfulness = Faithfulness(self.parts, n, gold.label_names, bins, settings.totals)
        self.unknown, self.row_fields = UnknownFields(), frozenset[str]()

    def score(self, num_proc: int) -> Scores:
        """Read the file, and score what it holds."""
        self._read(num_proc)
        gold, s, agreement, used = self.gold, self.settings, self.agreement, self.parts.fields.used
        left_out = {**agreement.left_out(), **self.faithfulness.left_out()}
        has_gold = agreement.counts[0] > 0 or s.unmarked == "score"
        if agreement.builder.columns and not has_gold:
            left_out["agreement"] = "gold rationales in any annotation"
        blocks = dict[str, BlockScores]()
        if agreement.builder.columns and has_gold:
            blocks["agreement"] = self._make_block(agreement, agreement.rows, agreement.extra())
        if self.faithfulness.builder.columns:
            extra = {"aopc_thresholds": sorted({*(s.aopc_thresholds or ())})} if "thresholds" in used else {}
            blocks["faithfulness"] = self._make_block(self.faithfulness, self.parts.scored, extra)
        by_rows = score_by_rows(self.path, gold) if self.row_fields else {}
        for name, one in by_rows.items():
            blocks[name] = one._replace(statistics=_add_rows(one.statistics, gold, s), rows=self.parts.scored)
        if not blocks:
            lacking = f"nothing to score: expected {describe_fields(left_out)}, found none of them"
            raise DataError(lacking, rule="score-missing", file=self.path)
        statistics = {name: one.statistics for name, one in blocks.items()}
        notes = [self.unknown.describe(), *describe_left_out(left_out), *agreement.notes(), *gold.notes]
        notes += [note for one in blocks.values() for note in one.notes]
        if (scored := self.parts.scored) is not None:
            shares = f"scored:{scored.size}/{len(self.parts.whole.ids)}"
            notes.append(f"{shares} (annotations without an instance are left out)")
        notes += describe_breakdown(s.by, statistics["faithfulness"]) if s.by and "faithfulness" in statistics else []
        notes += [*self.parts.plausibility.notes(), *describe_ties(statistics.values())]
        answered = self.parts.signature_settings().get("answered")
        scores = Scores(
            names=self.source.names,
            ids=gold.references.ids,
            statistics=statistics,
            against_chance=self.faithfulness.against_chance(s.per_instance),
            run=read_signature(self.path),
            identity=Identity(gold.digest, dataset_split(self.source.split)),
            files=[self.path],
            notes=[note for note in notes if note],
            lacking=frozenset(key for one in blocks.values() for key in one.lacking),
            answered=f"answered:{answered} (the others count as wrong, without a rationale)" if answered else "",
            by=s.by,
        )
        results = {name: self._make_result(name, one) for name, one in blocks.items()}
        for name, result in results.items():
            scores.add(result, name)
        if "agreement" in blocks:
            facts = {"split": scores.names["split"], "comprehensive": self.source.is_comprehensive()}
            scores.gold = {**agreement.describe_gold(), **facts}
            scores.chance = agreement.compute_chance()
        if s.confidence_level is not None or s.n_resamples is not None:
            scores.cautions = _describe_cautions(statistics)
        if s.fidelity and used >= {"classification", *SCORE_FIELDS}:
            self._add_fidelity(scores)
        scores.signatures += [scores.run] if scores.run else []
        scores.reference = self._reference_keys(scores)
        return scores

    def _read(self, num_proc: int) -> None:
        """Read the file, a chunk at a time.

        Raises:
            DataError: what is wrong with it.
        """
        parts, rules = self.parts, self.rules
        for own in parts_of(self.path, num_proc):
            self.row_fields |= own.row_fields
            rules["predictions"].take(own.issues)
            self.unknown.update(own.unknown)
            part = parts.match(own.predictions, own.lines)
            self.agreement.add(part)
            self.faithfulness.add(part)
        self.agreement.finish()
        self.faithfulness.finish()
        parts.finish()
        if self.settings.strict:
            _check_strict(parts.fields.used, rules["strict"])
        if rules["unknown ids"].total:
            _name_fitting_split(self.source, parts, rules["unknown ids"])
        if (issues := rules.collect()).total:
            raise make_issue_error(issues, {"reference": self.gold.path, "prediction": self.path})

    def _make_block(
        self, own: Agreement | Faithfulness, rows: np.ndarray | None, extra: Mapping[str, object]
    ) -> BlockScores:
        """Return the statistics of a block: a row per annotation that it scores, or their sums."""
        gold, s, builder = self.gold, self.settings, own.builder
        if s.totals:
            values = builder.values()[-1:] if own is self.agreement and s.unmarked == "skip" else builder.values()
            sums = values.sum(axis=0, keepdims=True)
            statistics = Statistics(["all"], sums, builder.finalize, {}, list(builder.columns))
        else:
            statistics = add_clusters(builder.statistics(gold.references.ids, s.per_instance), gold, s.cluster_by)
            statistics = statistics if rows is None else statistics.take(rows)
        return BlockScores(statistics, extra, own.signature_settings(), rows=rows)

    def _make_result(self, name: str, block: BlockScores) -> dict[str, object]:
        """Return a block's flat result, as the evaluate module returns it."""
        s, rows = self.settings, block.rows
        common = {"n": len(self.parts.whole.ids) if rows is None else rows.size, **block.settings}
        by_values = None if s.by is None else self.gold(s.by)
        if by_values is not None and rows is not None:
            by_values = [by_values[row] for row in rows.tolist()]
        if name == "agreement" and s.gold != EVIDENCE:
            common["gold"] = s.gold
        is_flat = name in FLAT_BLOCKS
        if is_flat:
            common |= ({"strict": True} if s.strict else {}) | ({"paper": s.paper} if s.paper else {})
        result = report(
            block.statistics,
            f"eraser_{name}" if is_flat else name,
            common,
            by_values=by_values,
            extra=block.counts,
            per_instance=s.per_instance,
            confidence_level=s.confidence_level,
            n_resamples=s.n_resamples,
            seed=s.seed,
            by=s.by,
            ranges=RANGES[name],
        )
        return result

    def _add_fidelity(self, scores: Scores) -> None:
        """Add normalised fidelity."""
        options = self.settings.of_module(*LEVELS, "by")
        result, notes = module_result("normalized_fidelity", self.rows, self.gold.rows(), self.path, options)
        scores.add(result, "normalized_fidelity")
        scores.cautions += notes

    def _reference_keys(self, scores: Scores) -> dict[str, object]:
        """Return the reference scorer's nested keys, without sections that the predictions have no fields for."""
        result: dict[str, object] = {}
        used = self.parts.fields.used
        a, f = (scores.blocks.get(name, {}) for name in FLAT_BLOCKS)
        per_label = classification_report(self.faithfulness.builder)
        if "classification" in used and ("full" in used or per_label is not None):
            part: dict[str, object] = {"accuracy": f.get("accuracy"), "prf": per_label}
            for side in ("comprehensiveness", "sufficiency"):
                for end in ("", "_entropy", "_kl", "_aopc", "_aopc_points"):
                    part[f"{side}{end}"] = f.get(f"{side}{end}")
            part["aopc_thresholds"] = f.get("aopc_thresholds")
            result["classification_scores"] = part
        if "hard" in used and a:
            own = self.agreement.settings
            suffixes = {value: format_iou_suffix(value, own.main_iou) for value in own.iou_thresholds}
            result["iou_scores"] = [
                {"threshold": value}
                | {kind: {part: a[f"iou_{kind}_{part}{end}"] for part in PRF} for kind in ("micro", "macro", "matched")}
                for value, end in suffixes.items()
            ]
            for name, key in (("rationale_prf", "exact"), ("token_prf", "token")):
                kinds = {kind: {part: a[f"{key}_{kind}_{part}"] for part in PRF} for kind in ("micro", "macro")}
                result[name] = {f"instance_{kind}": values for kind, values in kinds.items()}
        for name, prefix, there in (
            ("token_soft_metrics", "", "soft" in used and a),
            ("sentence_soft_metrics", "sentence_", "sentence" in used and a),
        ):
            if there:
                result[name] = {key: a[f"{prefix}{key}"] for key in SOFT}
        return result


def _thresholds(rows: Rows) -> tuple[float, ...]:
    """Return the thresholds of most instances. Invalid and repeated ones are left for the scorer to report."""
    counts = Counter(_thresholds_of(row) for row in rows)
    return max(counts, key=counts.__getitem__, default=()) or AOPC_THRESHOLDS


def _thresholds_of(row: Row) -> tuple[float, ...]:
    named = [part.get("threshold") for part in row.get("thresholded_scores") or ()]
    thresholds = {float(t) for t in named if isinstance(t, int | float) and not isinstance(t, bool) and 0 <= t <= 1}
    return tuple(sorted(thresholds)) if len(thresholds) == len(named) else ()


def _add_rows(statistics: Statistics, gold: Gold, settings: ScoreSettings) -> Statistics:
    """Return the statistics with the clusters of all annotations, including those without an instance."""
    if settings.totals:
        return statistics
    place = {name: row for row, name in enumerate(gold.references.ids)}
    values = np.zeros((len(place), statistics.values.shape[1]))
    rows = np.array([place[name] for name in statistics.ids], dtype=np.int64)
    values[rows] = statistics.values
    whole = add_clusters(
        Statistics(list(place), values, statistics.finalize, {}, statistics.columns), gold, settings.cluster_by
    )
    return replace(whole.take(rows), per_instance=statistics.per_instance if settings.per_instance else {})


def _name_fitting_split(source: ScoredSplit, parts: Matcher, issues: Issues) -> None:
    """Say which other split has ids of the predictions, or the split's backup file, if one has."""
    shared_ids = {split: len(parts.unknown & ids) for split, ids in read_split_ids(source)}
    best = max(shared_ids, key=shared_ids.__getitem__, default=None)
    if best is not None and shared_ids[best]:
        note_lines = f"{shared_ids[best]:,} of them are those of the split {best}: `split` {best}"
    else:
        note_lines = describe_backup(source, parts.unknown)
    if note_lines:
        issues[0] = issues[0]._replace(message=f"{issues[0].message} ({note_lines})")


def _check_strict(used: Set[str], issues: Issues) -> None:
    for name, field_name in (
        ("classification", "classification"),
        ("full", "classification_scores"),
        ("comprehensiveness", "comprehensiveness_classification_scores"),
    ):
        if name not in used:
            message = "strict scoring expects it in every instance, found none"
            issues.add("prediction", 0, field_name, message, "key-missing")


def _describe_cautions(blocks: Mapping[str, Statistics]) -> list[str]:
    """Return the warnings about intervals, each once; those of some tables of several alone name them."""
    lines: dict[str, list[str]] = {}
    for name, own in blocks.items():
        for line in cautions(own):
            lines.setdefault(line, []).append(BLOCK_TITLES[name].partition(" ")[0])
    return [line if len(names) == len(blocks) else f"{', '.join(names)}: {line}" for line, names in lines.items()]
