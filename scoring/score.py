"""A prediction file against a corpus folder or a built dataset -> statistics, or their sums.

Predictions come in parts, and a part's statistics are added to those before it: whether rows per annotation are kept or their
sums alone, the path is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eraser_hub.metrics.agreement import Agreement
from eraser_hub.metrics.checks import Used, name_labels
from eraser_hub.metrics.clusters import clustered
from eraser_hub.metrics.erasure import classification_report
from eraser_hub.metrics.faithfulness import Faithfulness
from eraser_hub.metrics.offences import Offences, Rules
from eraser_hub.metrics.parts import DOCUMENTS, FIELDS, LENGTHS, THRESHOLDS, Parts
from eraser_hub.metrics.pool import Pool, Statistics
from eraser_hub.metrics.rankings import check_policy
from eraser_hub.metrics.resampling import cautions, intervals
from eraser_hub.metrics.results import assemble, plain, resampling_settings, signature
from eraser_hub.records.predictions import parts as parts_of

from .references import Gold, raise_offences, read_gold
from .settings import Inputs, ScoreSettings


@dataclass
class Scored:
    """Scores and the statistics they are sums of.

    Attributes:
        statistics: of "agreement" and "faithfulness", as far as the predictions have such fields; additive, per annotation.
        report: precision, recall, F1 per label; None without labels.
        chance: scores against random rationales.
        used: the optional fields there are.
        settings: what made the numbers.
        made_by: what made the numbers of either, for the signature.
        by_values: the value of the column ``settings.by`` per annotation.
        extra: further entries of the score file.
        note: a line for whoever reads the scores, see `labels.LabelNames`.
    """

    statistics: dict[str, Statistics]
    report: dict[str, object] | None
    chance: dict[str, dict[str, object]]
    used: Used
    settings: ScoreSettings
    made_by: dict[str, dict[str, object]]
    by_values: list[object] | None = None
    extra: dict[str, object] = field(default_factory=dict)
    note: str = ""

    def signature_of(self, name: str) -> str:
        """That of ``agreement`` or ``faithfulness``."""
        s = self.settings
        strict = {"strict": True} if s.strict else {}
        statistics = self.statistics[name]
        common = resampling_settings(statistics, s.confidence_level, s.n_resamples, s.seed, s.ci_method, s.by)
        return signature(f"eraser_{name}", self.made_by[name] | strict | common)

    def cautions(self) -> list[str]:
        """What whoever reads the intervals should know; nothing where there are none."""
        if self.settings.confidence_level is None and self.settings.n_resamples is None:
            return []
        return [line for statistics in self.statistics.values() for line in cautions(statistics)]

    def flat(self, name: str) -> dict[str, object]:
        """The flat result of ``agreement`` or ``faithfulness``, as the evaluate module returns it."""
        if name not in self.statistics:
            return {}
        statistics, s = self.statistics[name], self.settings
        bounds = intervals(statistics, s.confidence_level, s.n_resamples, s.seed, s.ci_method)
        extra: dict[str, object] = {}
        if name == "faithfulness" and self.used.thresholds:
            extra["aopc_thresholds"] = sorted({*s.aopc_thresholds})
        return assemble(
            statistics,
            signature=self.signature_of(name),
            per_instance=s.per_instance,
            by_values=self.by_values,
            bounds=bounds,
            extra=extra,
        )


def score(inputs: Inputs, settings: ScoreSettings | None = None, num_proc: int = 0) -> Scored:
    """Score a prediction file (jsonl or Parquet).

    Args:
        inputs: the file, and what it is scored against.
        settings: what makes the numbers.
        num_proc: processes that read a jsonl file of predictions; 0: one, and more for a large file where there are cores.

    Raises:
        DataError: bad data, with file and line; at most ten offences, and their number.
        ValueError: settings out of range.
    """
    settings = settings or ScoreSettings()
    check_policy(settings.auprc_policy)
    gold = read_gold(inputs, settings.columns)
    references = gold.references
    rules = Rules(("predictions", *LENGTHS), FIELDS, (*DOCUMENTS, "strict"), THRESHOLDS)
    name_labels(references, gold.label_names, rules["label names"])
    parts = Parts(references, gold.documents, rules, gold.lines)
    agreement = Agreement(parts, settings.agreement, settings.totals)
    faithfulness = Faithfulness(parts, len(references.ids), gold.label_names, settings.aopc_thresholds, settings.totals)
    for own in parts_of(inputs.results, num_proc):
        rules["predictions"].take(own.offences)
        part = parts.match(own.predictions, own.lines)
        agreement.add(part)
        faithfulness.add(part)
    agreement.finish()
    faithfulness.finish()
    parts.finish()
    if settings.strict:
        _check_strict(parts.fields.used, rules["strict"])
    raise_offences(rules.told(), {"reference": gold.path, "prediction": inputs.results})
    gathered = {"agreement": agreement, "faithfulness": faithfulness}
    return Scored(
        statistics={name: _statistics(own.pool, gold, settings) for name, own in gathered.items() if own.pool.columns},
        report=classification_report(faithfulness.pool),
        chance=_chance(faithfulness, settings),
        used=parts.fields.used,
        settings=settings,
        made_by={name: own.signature_settings() for name, own in gathered.items()},
        by_values=None if settings.by is None else gold(settings.by),
        note=gold.note,
    )


def _statistics(pool: Pool, gold: Gold, settings: ScoreSettings) -> Statistics:
    if settings.totals:
        return pool.statistics(["all"], settings.per_instance)
    return clustered(pool.statistics(gold.references.ids, settings.per_instance), gold, settings.cluster_by)


def _check_strict(used: Used, offences: Offences) -> None:
    for name, field_name in (
        ("classification", "classification"),
        ("full", "classification_scores"),
        ("comprehensiveness", "comprehensiveness_classification_scores"),
    ):
        if not getattr(used, name):
            offences.say("prediction", 0, field_name, "strict scoring expects it in every instance, found none")


def _chance(faithfulness: Faithfulness, settings: ScoreSettings) -> dict[str, dict[str, object]]:
    chance: dict[str, dict[str, object]] = {}
    for side, (overall, each) in faithfulness.against_chance().items():
        chance[side] = {key: plain(value) for key, value in overall.items()}
        if settings.per_instance:
            chance[side]["per_instance"] = {key: plain(value) for key, value in each.items()}
    return chance
