"""A prediction file against a corpus folder or a built dataset -> statistics, or their sums.

Predictions come in parts, and a part's statistics are added to those before it: whether rows per annotation are kept or
their sums alone, the path is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from eraser_hub.metrics.agreement import Agreement
from eraser_hub.metrics.checks import Used, name_labels
from eraser_hub.metrics.clusters import clustered
from eraser_hub.metrics.erasure import classification_report
from eraser_hub.metrics.faithfulness import Faithfulness
from eraser_hub.metrics.offences import Offences, Rules
from eraser_hub.metrics.parts import DOCUMENTS, FIELDS, LENGTHS, THRESHOLDS, Parts, fields_of, left_out_said
from eraser_hub.metrics.pool import Pool, Statistics
from eraser_hub.metrics.rankings import check_policy
from eraser_hub.metrics.resampling import cautions, intervals
from eraser_hub.metrics.results import assemble, breakdown_note, plain, resampling_settings, signature
from eraser_hub.metrics.unknown_fields import UnknownFields
from eraser_hub.records.errors import DataError
from eraser_hub.records.predictions import parts as parts_of

from .leaks import MaskLeak, Masks
from .quotes import BLOCK as QUOTES
from .quotes import score_quotes
from .references import Gold, backup_said, ids_of_splits, raise_offences, read_gold
from .settings import Inputs, ScoreSettings


@dataclass
class Scored:
    """Scores and the statistics they are sums of.

    Attributes:
        statistics: of "agreement", "faithfulness" and "quote_faithfulness", as far as the predictions have such fields;
            additive, per annotation.
        report: precision, recall, F1 per label; None without labels.
        chance: scores against random rationales.
        used: the optional fields there are.
        settings: what made the numbers.
        made_by: what made the numbers of either, for the signature.
        by_values: the value of the column ``settings.by`` per annotation.
        extra: further entries of the score file.
        notes: lines for whoever reads the scores: what was left out, or guessed.
        counts: of quotes, beside their scores.
        leak: how well masks tell labels, where it was asked for and can be told.
    """

    statistics: dict[str, Statistics]
    report: dict[str, object] | None
    chance: dict[str, dict[str, object]]
    used: Used
    settings: ScoreSettings
    made_by: dict[str, dict[str, object]]
    by_values: list[object] | None = None
    extra: dict[str, object] = field(default_factory=dict)
    notes: Sequence[str] = ()
    counts: dict[str, object] = field(default_factory=dict)
    leak: MaskLeak | None = None

    def signature_of(self, name: str) -> str:
        """That of a block of statistics."""
        s = self.settings
        strict = ({"strict": True} if s.strict else {}) | ({"paper": s.paper} if s.paper else {})
        statistics = self.statistics[name]
        common = resampling_settings(statistics, s.confidence_level, s.n_resamples, s.seed, s.ci_method, s.by)
        if name == QUOTES:
            return signature(name, self.made_by[name] | common)
        return signature(f"eraser_{name}", self.made_by[name] | strict | common)

    def cautions(self) -> list[str]:
        """What whoever reads the intervals should know; nothing where there are none."""
        if self.settings.confidence_level is None and self.settings.n_resamples is None:
            return []
        return [line for statistics in self.statistics.values() for line in cautions(statistics)]

    def flat(self, name: str) -> dict[str, object]:
        """The flat result of a block of statistics, as the evaluate module returns it; {} where there is none."""
        if name not in self.statistics:
            return {}
        statistics, s = self.statistics[name], self.settings
        bounds = intervals(statistics, s.confidence_level, s.n_resamples, s.seed, s.ci_method)
        extra: dict[str, object] = dict(self.counts) if name == QUOTES else {}
        if name == "faithfulness" and self.used.thresholds:
            extra["aopc_thresholds"] = sorted({*s.aopc_thresholds})
        return assemble(
            statistics,
            signature=self.signature_of(name),
            per_instance=s.per_instance,
            by_values=self.by_values,
            by=s.by,
            bounds=bounds,
            extra=extra,
        )


def score(inputs: Inputs, settings: ScoreSettings | None = None, num_proc: int = 0) -> Scored:
    """Score a prediction file (jsonl or Parquet).

    Args:
        inputs: the file, and what it is scored against.
        settings: what makes the numbers.
        num_proc: processes that read a jsonl file of predictions; 0: one, or more for a large file on several cores.

    Raises:
        DataError: bad data, with file and line; at most ten offences, and their number.
        ValueError: settings out of range.
    """
    settings = settings or ScoreSettings()
    _check_settings(settings)
    gold = read_gold(inputs, settings.columns, settings.mask_leak)
    references = gold.references
    rules = Rules(("predictions", *LENGTHS), FIELDS, (*DOCUMENTS, "strict"), THRESHOLDS)
    name_labels(references, gold.label_names, rules["label names"])
    parts = Parts(references, gold.documents, rules, gold.lines, settings.only_predicted)
    parts.option = "--only-predicted"
    unknown = UnknownFields()
    agreement = Agreement(parts, settings.agreement, settings.totals)
    faithfulness = Faithfulness(parts, len(references.ids), gold.label_names, settings.aopc_thresholds, settings.totals)
    masks = Masks(gold) if settings.mask_leak else None
    quoted = False
    for own in parts_of(inputs.results, num_proc):
        quoted |= own.quoted
        rules["predictions"].take(own.offences)
        unknown.update(own.unknown)
        part = parts.match(own.predictions, own.lines)
        agreement.add(part)
        faithfulness.add(part)
        if masks is not None and not rules.broken():
            masks.add(part)
    agreement.finish()
    faithfulness.finish()
    parts.finish()
    if settings.strict:
        _check_strict(parts.fields.used, rules["strict"])
    if rules["unknown ids"].total:
        _name_fitting_split(inputs, parts, rules["unknown ids"])
    raise_offences(rules.told(), {"reference": gold.path, "prediction": inputs.results})
    gathered: dict[str, Agreement | Faithfulness] = {"agreement": agreement, "faithfulness": faithfulness}
    left_out = [*agreement.left_out(), *faithfulness.left_out()]
    statistics = {
        name: _statistics(own.pool, gold, settings, parts.scored) for name, own in gathered.items() if own.pool.columns
    }
    made_by = {name: own.signature_settings() for name, own in gathered.items()}
    quotes = score_quotes(inputs.results, gold) if quoted else None
    if quotes is not None:
        statistics[QUOTES], made_by[QUOTES] = _of_quotes(quotes.statistics, gold, settings), quotes.settings
    if not statistics:
        lacking = f"nothing to score: expected {fields_of(left_out)}, found none of them"
        raise DataError(lacking, rule="score-missing", file=inputs.results)
    told = [unknown.note(), *left_out_said(left_out), *agreement.notes(), gold.note]
    leak, leak_note = (None, "") if masks is None else masks.leak(settings)
    notes = [*told, leak_note, "" if quotes is None else quotes.note, *_notes(parts, statistics, settings)]
    return Scored(
        statistics=statistics,
        report=classification_report(faithfulness.pool),
        chance=_chance(faithfulness, settings),
        used=parts.fields.used,
        settings=settings,
        made_by=made_by,
        by_values=_by_values(gold, settings, parts),
        notes=[note for note in notes if note],
        counts={} if quotes is None else quotes.counts,
        leak=leak,
    )


def _check_settings(settings: ScoreSettings) -> None:
    check_policy(settings.auprc_policy)
    if settings.paper not in (None, "eraser"):
        message = f"expected eraser for an ERASER corpus, found {settings.paper}"
        raise DataError(message, rule="option-value", field="--paper")


def _statistics(pool: Pool, gold: Gold, settings: ScoreSettings, rows: np.ndarray | None) -> Statistics:
    if settings.totals:
        return pool.statistics(["all"], settings.per_instance)
    statistics = clustered(pool.statistics(gold.references.ids, settings.per_instance), gold, settings.cluster_by)
    return statistics if rows is None else statistics.take(rows)


def _by_values(gold: Gold, settings: ScoreSettings, parts: Parts) -> list[object] | None:
    """The value of each scored annotation in the column to break scores down by."""
    if settings.by is None:
        return None
    values = gold(settings.by)
    return values if parts.scored is None else [values[row] for row in parts.scored.tolist()]


def _of_quotes(statistics: Statistics, gold: Gold, settings: ScoreSettings) -> Statistics:
    """The statistics with their clusters: those of all annotations, of which some may have no instance."""
    if settings.totals:
        return statistics
    place = {name: row for row, name in enumerate(gold.references.ids)}
    values = np.zeros((len(place), statistics.values.shape[1]))
    rows = np.array([place[name] for name in statistics.ids], dtype=np.int64)
    values[rows] = statistics.values
    whole = clustered(
        Statistics(list(place), values, statistics.finalize, {}, statistics.columns), gold, settings.cluster_by
    )
    return replace(whole.take(rows), per_instance=statistics.per_instance if settings.per_instance else {})


def _notes(parts: Parts, statistics: dict[str, Statistics], settings: ScoreSettings) -> list[str]:
    """Which annotations were scored, and what a breakdown leaves out."""
    told = []
    if parts.scored is not None:
        told.append(f"scored:{parts.scored.size}/{len(parts.whole.ids)} (annotations without an instance are left out)")
    if settings.by and "faithfulness" in statistics:
        told += breakdown_note(settings.by, statistics["faithfulness"])
    return told


def _name_fitting_split(inputs: Inputs, parts: Parts, offences: Offences) -> None:
    """Say which other split has ids of the predictions, or the split's backup file, if one has."""
    held = {split: len(parts.unknown & ids) for split, ids in ids_of_splits(inputs)}
    best = max(held, key=held.__getitem__, default=None)
    if best is not None and held[best]:
        told = f"{held[best]:,} of them are those of the split {best}: --split {best}"
    else:
        told = backup_said(inputs, parts.unknown)
    if told:
        offences[0] = offences[0]._replace(message=f"{offences[0].message} ({told})")


def _check_strict(used: Used, offences: Offences) -> None:
    for name, field_name in (
        ("classification", "classification"),
        ("full", "classification_scores"),
        ("comprehensiveness", "comprehensiveness_classification_scores"),
    ):
        if not getattr(used, name):
            message = "strict scoring expects it in every instance, found none"
            offences.say("prediction", 0, field_name, message, "key-missing")


def _chance(faithfulness: Faithfulness, settings: ScoreSettings) -> dict[str, dict[str, object]]:
    chance: dict[str, dict[str, object]] = {}
    for side, (overall, each) in faithfulness.against_chance().items():
        chance[side] = {key: plain(value) for key, value in overall.items()}
        if settings.per_instance:
            chance[side]["per_instance"] = {key: plain(value) for key, value in each.items()}
    return chance
