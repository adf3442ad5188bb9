"""Predictions and references, checked and joined, become the per-instance statistics that scores are sums of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eraser_hub.metrics.agreement_scores import (
    SENTENCES_BY_SPANS,
    add_coverage,
    add_prf,
    add_ranked,
    add_spans,
    group_coverage,
)
from eraser_hub.metrics.checks import Used
from eraser_hub.metrics.flat import Predictions, References
from eraser_hub.metrics.joining import Join, has_sentences, number_keys, says_sentences, touched_sentences
from eraser_hub.metrics.pool import Pool
from eraser_hub.metrics.spans import as_spans, count_spans, group_counts, token_counts

from .soft import SoftScores


def pool_agreement(
    p: Predictions,
    r: References,
    joined: Join,
    used: Used,
    soft: SoftScores,
    documents: Any,
    iou_thresholds: Sequence[float],
    main: float,
    totals: bool = False,
    sentences: bool | None = None,
) -> Pool:
    """The statistics of `eraser_agreement`, one row per annotation in the references' order.

    Args:
        documents: a `joining.Documents`.
        totals: keep one row, the sums over all annotations.
        sentences: whether evidences say their sentences; None: as the references do.
    """
    keys = number_keys(r, p, joined)
    pool = Pool(len(r.ids), totals)
    if used.hard:
        truth, predicted = as_spans(keys.evidence, r.start, r.end), as_spans(keys.span, p.start, p.end)
        add_spans(pool, count_spans(truth, predicted, keys.owner.size, iou_thresholds), main, keys.owner)
        tokens, covered = group_counts(r.group, truth, predicted, r.group_instance.size)
        add_coverage(pool, *group_coverage(r.group_instance, tokens, covered, len(r.ids)))
        if not used.sentence and (says_sentences(r) if sentences is None else sentences):
            gold, touched = touched_sentences(r, p, joined, keys, documents)
            counts = token_counts(as_spans(*gold), as_spans(*touched), keys.owner.size)
            add_prf(pool, "sentence", counts, keys.owner, SENTENCES_BY_SPANS)
    decided = has_sentences(r) if sentences is None else sentences or not r.start.size
    owner = joined.reference[p.instance]
    for ranked, sizes, prefix in ((soft.token, p.soft, ""), (soft.sentence, p.sentence, "sentence_")):
        chosen = np.flatnonzero(sizes >= 0)
        if chosen.size:
            add_ranked(pool, ranked, chosen, owner[chosen], prefix, decided)
    return pool
