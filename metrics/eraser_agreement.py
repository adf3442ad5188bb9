"""Agreement of predicted rationales with human ones (ERASER): spans, tokens, sentences, rankings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import evaluate
import numpy as np

from .erasure import measure_erasure
from .errors import DataError
from .gold import read_gold
from .match import Matcher
from .module import DEYOUNG2020, RationaleMetric
from .plain import to_instances
from .predictions import read_predictions
from .ranking import (
    AGREEMENT_SCORES,
    AgreementSettings,
    agreement_columns,
    agreement_extra,
    agreement_scores,
    describe_agreement,
)
from .statistics import Measured, Statistics


class EraserAgreement(RationaleMetric, evaluate.Metric):  # type: ignore[misc]  # evaluate is untyped
    """Agreement of a model's rationales with those that humans marked (plausibility), as in the ERASER benchmark.

    Exact match, token and intersection-over-union (IOU) precision, recall and F1 of hard rationales (spans); AUPRC,
    average precision and ROC-AUC of soft rationales (a score per token); the same over sentences.

    Args:
        predictions: ERASER instances (list of dicts, Dataset or Arrow table), in any order: {"annotation_id",
            "rationales": [{"docid", "hard_rationale_predictions": [{"start_token", "end_token"}],
            "soft_rationale_predictions": [float per token], "soft_sentence_predictions": [float per
            sentence]}]}. Each of the three fields is in all rationales or in none; its scores are computed
            or left out. Token offsets count the document's tokens; start inclusive, end exclusive. Or a row for each
            text: a 0/1 mask, float scores, spans or quotes, or {"id", "rationale", "scores", "text" or "tokens"}.
        references: dataset rows with annotation_id, documents [{"docid", "text"}] and evidences [[{"docid",
            "start_token", "end_token", "start_sentence", "end_sentence"}]], in any order; ids are compared as
            strings. Rows of human_rationales (id, tokens, rationale_mask, label) are accepted as they are:
            the text is a document named like the row. Or a row for each text, as for predictions: a mask, or
            {"id", "rationale", "text" or "tokens"}; without ids rows belong together by their place.
        iou_threshold: threshold of the keys iou_micro_f1 ..; in (0, 1].
        iou_thresholds: further thresholds, with keys iou_micro_f1@0.1 ..
        auprc_policy: AUPRC of a document without evidence: "reference" (0.5), "skip", "zero" or "one".
        sentence_threshold: the least score of a predicted sentence. If no prediction has sentence scores, hard
            rationales predict sentences: those of which a span covers at least one token
            (signature: sentences_from:spans).
        unmarked: "score" references without a gold token, as the papers' scorer does, or "skip" them: F1, IOU, AUPRC
            and all others (signature: unmarked, and the number of rows with and without gold).
        chance: adds gold and chance, see below.
        only_predicted: leave out references without an instance; the signature has the number of scored ones.
            By default they are an error.
        label_names: names of the integers in the references' classification, where no Dataset brings them.
        per_instance: adds per_instance: {key: [score per annotation], "annotation_id": [..], "cluster": [..]}.
        confidence_level, n_resamples, seed: add KEY_ci: [low, high], the BCa interval over clusters.
        cluster_by: the annotations that are drawn together: "auto" (those that share a document, directly or
            through others), "none", or a column of the references or of the predictions.
        by: "classification" or another column of the references; adds by: {value: {key: score}}.

    Returns:
        exact_, token_, iou_, sentence_ micro_/macro_ p, r, f1; iou_matched_p, _r, _f1 (one-to-one);
        any_group_coverage (share of annotations of which one whole evidence group is covered),
        best_group_recall; auprc, average_precision, roc_auc_score and sentence_auprc ..; signature. All in [0,
        1], but IOU recall: hits over truth spans, with no upper end, because two predicted spans may hit one
        truth span. Higher is better. NaN if a score is undefined. If some references have no gold token: marked
        and all, the scores of those with gold and of all of them. Then, and with chance, gold: {"marked_rows",
        "unmarked_rows", "density" (mean share of gold tokens where there are any)}. With chance also chance: {key:
        score of random rationales of the same size}, of token p, r and f1 and of rankings.

    Raises:
        ValueError: wrong input; it names the instance and the field.

    Examples:
        >>> import evaluate
        >>> metric = evaluate.load("eraser_agreement")
        >>> references = [{"annotation_id": "a1",
        ...                "documents": [{"docid": "d1", "text": "a fine film .\\nit drags a little ."}],
        ...                "evidences": [[{"docid": "d1", "start_token": 1, "end_token": 3,
        ...                                "start_sentence": 0, "end_sentence": 1}]]}]
        >>> predictions = [{"annotation_id": "a1", "rationales": [{"docid": "d1",
        ...     "hard_rationale_predictions": [{"start_token": 1, "end_token": 2}],
        ...     "soft_rationale_predictions": [.1, .9, .6, .2, .1, .7, .1, .1, .1]}]}]
        >>> scores = metric.compute(predictions=predictions, references=references)
        >>> scores["token_micro_p"], scores["token_micro_r"], scores["iou_micro_f1"]
        (1.0, 0.5, 1.0)
        >>> round(scores["average_precision"], 4), round(scores["roc_auc_score"], 4)
        (0.8333, 0.9286)
        >>> metric.compute(predictions=[[0, 1, 0]], references=[[0, 1, 1]])["token_micro_r"]
        0.5
    """

    CITATION = DEYOUNG2020
    SCORES = AGREEMENT_SCORES
    HEADLINE = ("token_macro_f1", "iou_macro_f1", "average_precision")

    def measure(
        self,
        predictions: list[Any],
        references: list[Any] | None,
        iou_threshold: float = 0.5,
        iou_thresholds: Sequence[float] = (),
        auprc_policy: str = "reference",
        sentence_threshold: float = 0.5,
        only_predicted: bool = False,
        unmarked: str = "score",
        chance: bool = False,
        label_names: Sequence[str] | None = None,
    ) -> Measured:
        """Return the agreement of all instances with their references; see the class."""
        settings = AgreementSettings(iou_threshold, iou_thresholds, auprc_policy, sentence_threshold, unmarked, chance)
        instances, rows, notes = to_instances(predictions or [], references or [])
        rows = rows or []
        if not label_names:  # numbers of labels need names, and agreement needs no labels
            numbered = [isinstance(row, dict) and type(row.get("classification")) is int for row in rows]
            rows = [{**row, "classification": None} if n else row for row, n in zip(rows, numbered, strict=True)]
        gold = read_gold(rows, label_names, ("documents", "evidences"))
        matcher = Matcher(gold, only_predicted)
        match = matcher.add(read_predictions(instances))
        columns = agreement_columns(match, settings)
        measure_erasure(match)  # labels and probabilities are checked, as `score` does
        matcher.finish()
        scores = agreement_scores(columns, settings, matcher.used)
        facts, lines = describe_agreement(columns, settings, matcher.used)
        if not scores:
            fields = "hard_rationale_predictions, soft_rationale_predictions or soft_sentence_predictions"
            message = f"nothing to score: expected rationales with {fields}, found none of them"
            raise DataError(message, argument="predictions")
        clusters = gold.clusters()
        statistics = Statistics(match.ids, columns, scores, None if clusters is None else clusters[match.rows])
        statistics, extra = agreement_extra(statistics.take(np.argsort(match.rows)), settings)
        if statistics.clusters is not None:
            statistics.set_clusters("documents", statistics.clusters.tolist())
        facts = {"data": gold.digest()[:12], **facts, **matcher.facts()}
        return Measured(statistics, facts, extra, [*lines, *notes, *matcher.notes()])
