"""A prediction file against a corpus folder or a built dataset -> statistics, or their sums.

Predictions come in parts, and a part's statistics are added to those before it: whether rows per annotation are kept or their
sums alone, the path is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from eraser_hub.metrics.agreement import Agreement
from eraser_hub.metrics.checks import Used, name_labels
from eraser_hub.metrics.erasure import classification_report
from eraser_hub.metrics.faithfulness import Faithfulness
from eraser_hub.metrics.offences import Offences, Rules
from eraser_hub.metrics.parts import DOCUMENTS, FIELDS, LENGTHS, THRESHOLDS, Parts
from eraser_hub.metrics.pool import Pool, Statistics
from eraser_hub.metrics.rankings import check_policy
from eraser_hub.metrics.resampling import intervals
from eraser_hub.metrics.results import assemble, plain, resampling_settings, signature
from eraser_hub.records.predictions import parts as parts_of

from .references import raise_offences, read_gold
from .settings import Inputs, ScoreSettings


@dataclass
class Scored:
    """Scores and the statistics they are sums of.

    Attributes:
        agreement, faithfulness: additive statistics per annotation; None where the predictions have no such field.
        report: precision, recall, F1 per label; None without labels.
        chance: scores against random rationales.
        used: the optional fields there are.
        settings: what made the numbers.
        signatures: of agreement and faithfulness.
        by_values: the value of the column ``settings.by`` per annotation.
        extra: further entries of the score file.
        note: a line for whoever reads the scores, see `labels.LabelNames`.
    """

    agreement: Statistics | None
    faithfulness: Statistics | None
    report: dict[str, object] | None
    chance: dict[str, dict[str, object]]
    used: Used
    settings: ScoreSettings
    signatures: dict[str, str]
    by_values: list[object] | None = None
    extra: dict[str, object] = field(default_factory=dict)
    note: str = ""

    @property
    def statistics(self) -> dict[str, Statistics]:
        """Those there are, by name."""
        both = {"agreement": self.agreement, "faithfulness": self.faithfulness}
        return {name: statistics for name, statistics in both.items() if statistics is not None}

    def flat(self, name: str) -> dict[str, object]:
        """The flat result of ``agreement`` or ``faithfulness``, as the evaluate module returns it."""
        if name not in self.statistics:
            return {}
        statistics, s = self.statistics[name], self.settings
        bounds = intervals(
            statistics.values, statistics.finalize, s.confidence_level, s.n_resamples, s.seed, s.ci_method
        )
        extra: dict[str, object] = {}
        if name == "faithfulness" and self.used.thresholds:
            extra["aopc_thresholds"] = sorted({*s.aopc_thresholds})
        return assemble(
            statistics,
            signature=self.signatures[name],
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
    gold = read_gold(inputs, settings.by)
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
    return Scored(
        agreement=_statistics(agreement.pool, gold.references.ids, settings),
        faithfulness=_statistics(faithfulness.pool, gold.references.ids, settings),
        report=classification_report(faithfulness.pool),
        chance=_chance(faithfulness, settings),
        used=parts.fields.used,
        settings=settings,
        signatures=_signatures(settings, agreement, faithfulness),
        by_values=gold.by_values,
        note=gold.note,
    )


def _statistics(pool: Pool, ids: Sequence[str], settings: ScoreSettings) -> Statistics | None:
    if not pool.columns:
        return None
    return pool.statistics(["all"] if settings.totals else ids, settings.per_instance)


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


def _signatures(s: ScoreSettings, agreement: Agreement, faithfulness: Faithfulness) -> dict[str, str]:
    strict = {"strict": True} if s.strict else {}
    common = strict | resampling_settings(s.confidence_level, s.n_resamples, s.seed, s.ci_method, s.by)
    return {
        "agreement": signature("eraser_agreement", agreement.signature_settings() | common),
        "faithfulness": signature("eraser_faithfulness", faithfulness.signature_settings() | common),
    }
