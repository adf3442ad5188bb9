"""Predictions and references, checked and joined, become the per-instance statistics that scores are sums of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eraser_hub.metrics.agreement_scores import Pool, group_coverage
from eraser_hub.metrics.input_policy import Used
from eraser_hub.metrics.inputs import Predictions, References
from eraser_hub.metrics.joining import Join, has_sentences, number_keys
from eraser_hub.metrics.spans import as_spans, count_spans, group_counts

from .soft import SoftScores


def pool_agreement(
    p: Predictions,
    r: References,
    joined: Join,
    used: Used,
    soft: SoftScores,
    iou_thresholds: Sequence[float],
    main: float,
    totals: bool = False,
) -> Pool:
    """The statistics of `eraser_agreement`, one row per annotation in the references' order."""
    keys = number_keys(r, p, joined)
    pool = Pool(keys.owner, len(r.ids), totals)
    if used.hard:
        truth, predicted = as_spans(keys.evidence, r.start, r.end), as_spans(keys.span, p.start, p.end)
        pool.add_spans(count_spans(truth, predicted, keys.owner.size, iou_thresholds), main)
        tokens, covered = group_counts(r.group, truth, predicted, r.group_instance.size)
        pool.add_coverage(*group_coverage(r.group_instance, tokens, covered, len(r.ids)))
    owner = joined.reference[p.instance]
    for ranked, sizes, prefix in ((soft.token, p.soft, ""), (soft.sentence, p.sentence, "sentence_")):
        chosen = np.flatnonzero(sizes >= 0)
        if chosen.size:
            pool.add_ranked(ranked, chosen, owner[chosen], prefix, has_sentences(r))
    return pool
