"""Prediction files and a corpus folder -> scores, in the reference scorer's nested keys and the modules' flat ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from eraser_hub.conversion.eraser.configs import CONFIGS
from eraser_hub.metrics import erasure
from eraser_hub.metrics.agreement_scores import suffix, thresholds_said
from eraser_hub.metrics.checks import Used, check_classes, check_documents, check_fields, check_thresholds, name_labels
from eraser_hub.metrics.flat import Predictions, References
from eraser_hub.metrics.joining import Documents, join, says_sentences
from eraser_hub.metrics.offences import Offences
from eraser_hub.metrics.pool import Statistics
from eraser_hub.metrics.rankings import check_policy
from eraser_hub.metrics.resampling import against_chance, check_settings, intervals
from eraser_hub.metrics.results import assemble, plain, resampling_settings, signature
from eraser_hub.records.errors import DataError

from .corpus import CorpusDocuments, annotation_file, check_there, raise_offences, read_annotations, with_documents
from .gold import Unclear, of_references, read_gold
from .labels import LabelNames, labels_of_corpus
from .names import Names
from .pools import pool_agreement
from .predictions import parts_of_file, read_predictions
from .shares import Share, helpers, result_of, shares_of
from .soft import Ranking
from .totals import Totals, add_all


@dataclass(frozen=True)
class Settings:
    """What makes the numbers.

    Attributes:
        iou_thresholds: as asked for; the flat keys of the first (or of 0.5, where it is among them) have no suffix.
        aopc_thresholds: those that every instance must have.
        strict: demand labels, class scores and comprehensiveness scores.
        auprc_policy: what a document without positives counts, see `rankings.AUPRC_POLICIES`.
        random_baseline: shuffles of the soft scores to average; 0: none.
        sentence_threshold: a sentence is predicted from this score on.
        by: a column of the annotations to break scores down by.
        totals_only: keep no row per annotation where the rest of the settings does not need any: less memory.
    """

    iou_thresholds: tuple[float, ...] = (0.5,)
    aopc_thresholds: tuple[float, ...] = erasure.AOPC_THRESHOLDS
    strict: bool = False
    auprc_policy: str = "reference"
    random_baseline: int = 0
    sentence_threshold: float = 0.5
    per_instance: bool = False
    confidence_level: float | None = None
    n_resamples: int | None = None
    seed: int = 0
    ci_method: str = "percentile"
    by: str | None = None
    totals_only: bool = False

    @property
    def totals(self) -> bool:
        """Whether sums over all annotations are enough, and no row per annotation need be kept."""
        wanted = self.per_instance or self.by is not None
        return self.totals_only and not wanted and self.confidence_level is None and self.n_resamples is None

    def check(self) -> None:
        """Raise a ValueError for a setting out of its range."""
        for name, low in (("iou_thresholds", False), ("aopc_thresholds", True)):
            values = getattr(self, name)
            if not values:
                raise ValueError(f"{name}: expected at least one")
            for value in values:
                if not (0 <= value <= 1 if low else 0 < value <= 1):
                    raise ValueError(f"{name}: expected a number in {'[0, 1]' if low else '(0, 1]'}, found {value}")
        check_policy(self.auprc_policy)
        if self.random_baseline < 0:
            raise ValueError(f"random_baseline: expected a number of shuffles, found {self.random_baseline}")
        check_settings(
            0.95 if self.confidence_level is None else self.confidence_level,
            1000 if self.n_resamples is None else self.n_resamples,
            self.ci_method,
        )

    @property
    def main_iou(self) -> float:
        return 0.5 if 0.5 in self.iou_thresholds else self.iou_thresholds[0]


@dataclass(frozen=True)
class Inputs:
    """What to score: a corpus folder with its split (or another annotation file), and the predictions.

    Instead of the corpus folder a built dataset (a folder of Parquet files) and its config.
    """

    data_dir: Path | None
    split: str
    results: Path
    annotations: Path | None = None
    label_names: tuple[str, ...] | None = None
    dataset: Path | None = None
    config: str | None = None

    @property
    def annotation_file(self) -> Path:
        """The file of annotations of a corpus folder."""
        if self.data_dir is None:
            raise ValueError("expected a corpus folder or a dataset, found neither")
        return self.annotations or annotation_file(self.data_dir, self.split)

    def named(self) -> LabelNames:
        """The labels: as given, else as `labels.labels_of_corpus` or a built dataset's config has them."""
        if self.label_names is not None:
            return LabelNames(self.label_names)
        if self.dataset is not None:
            config = CONFIGS.get(self.config or "")
            return LabelNames(config.label_names if config else None)
        return labels_of_corpus(self.data_dir or Path(), self.config, self.annotation_file)


@dataclass
class Scored:
    """Scores and the statistics they are sums of.

    Attributes:
        agreement, faithfulness: additive statistics per annotation; None where the predictions have no such field.
        report: precision, recall, F1 per label; None without labels.
        chance: scores against random rationales.
        used: the optional fields there are.
        settings: what made the numbers.
        by_values: the value of the column ``settings.by`` per annotation.
        note: a line for whoever reads the scores, see `labels.LabelNames`.
    """

    agreement: Statistics | None
    faithfulness: Statistics | None
    report: dict[str, object] | None
    chance: dict[str, dict[str, object]]
    used: Used
    settings: Settings
    signatures: dict[str, str]
    by_values: list[object] | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    note: str = ""

    def flat(self, name: str) -> dict[str, object]:
        """The flat result of ``agreement`` or ``faithfulness``, as the evaluate module returns it."""
        statistics: Statistics | None = getattr(self, name)
        if statistics is None:
            return {}
        s = self.settings
        bounds = intervals(
            statistics.values, statistics.finalize, s.confidence_level, s.n_resamples, s.seed, s.ci_method
        )
        extra: dict[str, object] = {}
        if name == "faithfulness" and self.used.thresholds:
            extra["aopc_thresholds"] = sorted(s.aopc_thresholds)
        return assemble(
            statistics,
            signature=self.signatures[name],
            per_instance=s.per_instance,
            by_values=self.by_values,
            bounds=bounds,
            extra=extra,
        )


def score(inputs: Inputs, settings: Settings | None = None, num_proc: int = 0) -> Scored:
    """Score a prediction file (jsonl or Parquet) against a corpus folder.

    Args:
        num_proc: processes that read a jsonl file of predictions where no value per instance is asked for; 0: one, and
            more for a large file where there are cores (see `shares.shares_of`).

    Raises:
        DataError: bad data, with file and line; at most ten offences, and their number.
    """
    settings = settings or Settings()
    labels, note = inputs.named()
    scored = _score(replace(inputs, label_names=labels), settings, num_proc)
    scored.note = note
    return scored


def _score(inputs: Inputs, settings: Settings, num_proc: int) -> Scored:
    """`score` with the labels settled."""
    ranking = _ranking(settings)
    if settings.totals:
        try:
            return _score_totals(inputs, settings, num_proc)
        except Unclear:  # something is wrong, or out of the ordinary: below it is told, or scored
            pass
    offences = Offences()
    documents: Any
    columns: list[object] | None
    if inputs.dataset is not None:
        from .tables import RowDocuments, dataset_files, read_dataset

        files = dataset_files(inputs.dataset, inputs.config or "", inputs.split)
        path, numbers = files[0], None
        r, columns = read_dataset(files, inputs.label_names, settings.by, offences)
        documents, names = RowDocuments(r), {"reference": r.ids, "prediction": []}
    else:
        path = inputs.annotation_file
        flattener, numbers, columns = read_annotations(path, inputs.label_names, offences, settings.by)
        names = {"reference": flattener.ids, "prediction": []}
        check_there(inputs.data_dir or Path())
    places: dict[str, tuple[Path, Any]] = {
        "reference": (path, range(1, len(names["reference"]) + 1) if numbers is None else numbers),
        "prediction": (inputs.results, ()),
    }
    raise_offences(offences, places, names)
    if inputs.dataset is None and inputs.data_dir is not None:
        r = flattener.finish()
        del flattener  # its vocabulary is large
        documents = CorpusDocuments(inputs.data_dir, Names(r.docids), says_sentences(r))

    p, soft, lines = read_predictions(inputs.results, r, documents, offences, ranking)
    places["prediction"] = (inputs.results, lines)
    if inputs.dataset is None:
        with_documents(r, documents)
    p.docids = r.docids = documents.docs  # one vocabulary: join need not look docids up
    del documents
    if p.ids == r.ids:  # often they come in the same order: one list will do
        p.ids = r.ids
    names = {"reference": r.ids, "prediction": p.ids}
    raise_offences(offences, places, names)
    return assess(
        p, r, soft, settings, inputs.label_names, offences, lambda: raise_offences(offences, places, names), columns
    )


def assess(
    p: Predictions,
    r: References,
    soft: Any,
    settings: Settings,
    label_names: Sequence[str] | None,
    offences: Offences,
    stop: Any,
    by_values: list[object] | None = None,
) -> Scored:
    """Join, check and pool; ``stop`` raises the offences gathered so far, if there are any."""
    used = check_fields(p, offences)
    name_labels(r, label_names, offences)
    joined = join(p, r, offences)
    stop()
    documents = Documents(r, joined.docs)
    check_documents(p, r, joined, used, documents, offences)
    known = check_classes(p, r, used, label_names, offences)
    if settings.strict:
        _check_strict(used, offences)
    stop()
    rows = joined.row
    agreement = pool_agreement(
        p, r, joined, used, soft, documents, settings.iou_thresholds, settings.main_iou, settings.totals
    )
    evidence = documents.evidence_tokens(r) if used.tokens_to_flip else None
    faithfulness, good = erasure.pool(p, r, rows, known, settings.aopc_thresholds, evidence, settings.totals)
    if used.thresholds:
        check_thresholds(good, sorted(settings.aopc_thresholds), p, offences)
    stop()
    chance: dict[str, dict[str, object]] = {}
    for side, (observed, draws) in erasure.random_draws(p, rows).items():
        up = side == "comprehensiveness"
        own = against_chance(observed, draws, up)
        overall = against_chance(np.asarray(observed.mean()), draws.mean(axis=0), up)
        chance[side] = {key: float(value) for key, value in overall.items()}
        chance[side] |= {"draws": draws.shape[1], "mean_win_rate": float(own["win_rate"].mean())}
        if settings.per_instance:
            chance[side]["per_instance"] = {key: plain(value) for key, value in own.items()}
    return _scored(agreement, faithfulness, r.ids, used, settings, chance, by_values)


def _ranking(settings: Settings) -> Ranking:
    return Ranking(check_policy(settings.auprc_policy), settings.random_baseline, settings.sentence_threshold)


def _score_totals(inputs: Inputs, settings: Settings, num_proc: int) -> Scored:
    """Scores alone, in one pass and little memory.

    Raises:
        Unclear: something is wrong, or out of the ordinary.
    """
    try:
        first, *others = shares_of(inputs.results, num_proc)
    except OSError:  # told where the file is read
        raise Unclear from None
    with helpers(inputs, settings, others) as at_work:
        totals = add_share(inputs, settings, first)
        for process in at_work:
            totals.merge(result_of(process))
    used, agreement, faithfulness = totals.finish()
    if settings.strict:
        offences = Offences()
        _check_strict(used, offences)
        if offences.total:
            raise Unclear
    return _scored(agreement, faithfulness, [], used, settings, {}, None)


def add_share(inputs: Inputs, settings: Settings, share: Share) -> Totals:
    """The sums over a share of the predictions.

    Raises:
        Unclear: something is wrong, or out of the ordinary.
    """
    offences = Offences()
    documents: Any
    if inputs.dataset is not None:
        from .tables import RowDocuments, dataset_files, read_dataset

        r, _ = read_dataset(
            dataset_files(inputs.dataset, inputs.config or "", inputs.split), inputs.label_names, None, offences
        )
        name_labels(r, inputs.label_names, offences)
        if offences.total or (np.diff(np.sort(r.document_instance * len(r.docids) + r.document)) == 0).any():
            raise Unclear
        gold, documents = of_references(r), RowDocuments(r)
        del r
    else:
        gold = read_gold(inputs.annotation_file, inputs.label_names)
        documents = CorpusDocuments(inputs.data_dir or Path(), gold.docids, gold.start_sentence is not None)
    totals = Totals(
        gold,
        documents,
        inputs.label_names,
        _ranking(settings),
        settings.iou_thresholds,
        settings.main_iou,
        settings.aopc_thresholds,
    )
    add_all(totals, parts_of_file(inputs.results, offences, *share), offences)
    return totals


def _scored(
    agreement: Any,
    faithfulness: Any,
    ids: Sequence[str],
    used: Used,
    settings: Settings,
    chance: dict[str, dict[str, object]],
    by_values: list[object] | None,
) -> Scored:
    return Scored(
        agreement=_statistics(agreement, ids, settings),
        faithfulness=_statistics(faithfulness, ids, settings),
        report=erasure.classification_report(faithfulness),
        chance=chance,
        used=used,
        settings=settings,
        signatures=_signatures(
            settings,
            used,
            any(name.startswith("sentence_by_spans") or name == "sentence.hits" for name in agreement.columns),
        ),
        by_values=by_values,
    )


def _statistics(pool: Any, ids: Sequence[str], settings: Settings) -> Statistics | None:
    if not pool.columns:
        return None
    values = pool.values()
    ids = ids if len(values) == len(ids) else ["all"]
    per_instance = pool.finalize(values) if settings.per_instance else {}
    return Statistics(ids, values, pool.finalize, per_instance, list(pool.columns))


def _check_strict(used: Used, offences: Offences) -> None:
    for name, where in (
        ("classification", "classification"),
        ("full", "classification_scores"),
        ("comprehensiveness", "comprehensiveness_classification_scores"),
    ):
        if not getattr(used, name):
            offences.say("prediction", 0, where, "strict scoring expects it in every instance, found none")


def _signatures(s: Settings, used: Used, sentences: bool) -> dict[str, str]:
    common = resampling_settings(s.confidence_level, s.n_resamples, s.seed, s.ci_method, s.by)
    agreement: dict[str, object] = {"iou": thresholds_said(s.iou_thresholds, s.main_iou)} if used.hard else {}
    if used.soft or used.sentence:
        agreement["auprc_no_positives"] = s.auprc_policy
    if used.sentence:
        agreement["sentence_threshold"] = s.sentence_threshold
    elif sentences:
        agreement["sentences_from"] = "spans"
    if used.sentence or sentences:
        agreement["sentences"] = "[start,end)"
    if s.random_baseline:
        agreement["shuffles"] = s.random_baseline
    faithfulness: dict[str, object] = {"log": "e"}
    if used.thresholds:
        faithfulness["aopc"] = sorted({*s.aopc_thresholds})
    if s.strict:
        agreement["strict"] = faithfulness["strict"] = True
    return {
        "agreement": signature("eraser_agreement", {**agreement, **common}),
        "faithfulness": signature("eraser_faithfulness", {**faithfulness, **common}),
    }


def nested(scored: Scored) -> dict[str, object]:
    """The reference scorer's keys, and beside them ours: ``agreement``, ``faithfulness``, ``chance``, ``signature``.

    A part that the predictions have no fields for is left out, as the reference does.
    """
    result: dict[str, object] = {}
    s, used = scored.settings, scored.used
    flat = {name: scored.flat(name) for name in ("agreement", "faithfulness")}
    a, f = flat["agreement"], flat["faithfulness"]
    if used.classification and (used.full or scored.report is not None):
        part: dict[str, object] = {"accuracy": f.get("accuracy"), "prf": scored.report}
        for side in ("comprehensiveness", "sufficiency"):
            for end in ("", "_entropy", "_kl", "_aopc", "_aopc_points"):
                part[f"{side}{end}"] = f.get(f"{side}{end}")
        part["aopc_thresholds"] = f.get("aopc_thresholds")
        result["classification_scores"] = part
    if used.hard:
        result["iou_scores"] = [_iou(a, threshold, s.main_iou) for threshold in dict.fromkeys(s.iou_thresholds)]
        for name, key in (("rationale_prf", "exact"), ("token_prf", "token")):
            result[name] = {f"instance_{kind}": _prf(a, f"{key}_{kind}") for kind in ("micro", "macro")}
    for name, prefix, there in (
        ("token_soft_metrics", "", used.soft),
        ("sentence_soft_metrics", "sentence_", used.sentence),
    ):
        if there:
            result[name] = {key: a[f"{prefix}{key}"] for key in ("auprc", "average_precision", "roc_auc_score")}
    result.update({name: part for name, part in flat.items() if part})
    if scored.chance:
        result["chance"] = scored.chance
    result["signature"] = "; ".join(scored.signatures[name] for name, part in flat.items() if part)
    result.update(scored.extra)
    return result


def _prf(flat: dict[str, object], start: str, end: str = "") -> dict[str, object]:
    return {part: flat[f"{start}_{part}{end}"] for part in ("p", "r", "f1")}


def _iou(flat: dict[str, object], threshold: float, main: float) -> dict[str, object]:
    end = suffix(threshold, main)
    kinds = {kind: _prf(flat, f"iou_{kind}", end) for kind in ("micro", "macro", "matched")}
    return {"threshold": threshold, **kinds}


def run_signature(results: Path) -> dict[str, object]:
    """What the run that wrote the predictions says of itself, in RESULTS.run.json beside them."""
    import orjson

    path = results.with_name(f"{results.name}.run.json")
    if not path.is_file():
        return {}
    try:
        run = orjson.loads(path.read_bytes())
    except ValueError as error:
        raise DataError(f"not JSON: {error}", file=path) from None
    own = run.get("signature") if isinstance(run, dict) else None
    return {"run": own} if isinstance(own, str) else {}


def statistics_of(data_dir: Path, split: str, results: Path) -> dict[str, Statistics]:
    """The statistics of a prediction file, by name (``agreement``, ``faithfulness``): what `compare` tests.

    Raises:
        DataError: as `score`.
    """
    scored = score(Inputs(Path(data_dir), split, Path(results)), Settings(per_instance=True))
    both = {"agreement": scored.agreement, "faithfulness": scored.faithfulness}
    return {name: statistics for name, statistics in both.items() if statistics is not None}
