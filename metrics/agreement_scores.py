"""Agreement, pooled: counts per (annotation, document) key become additive statistics per annotation, and scores.

`precision_recall_f1` divides, for spans, tokens and sentences alike. A macro average over keys is a sum of per-key
values beside the number of keys, so that sums over any set of annotations give that set's score.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .rankings import Rankings
from .statistics_builder import Column, Score, ScoreInfo, StatisticsBuilder, divide

PRF = ("p", "r", "f1")
SOFT = Rankings._fields
Counts = tuple[np.ndarray, np.ndarray, np.ndarray]  # truth, predicted, both


def precision_recall_f1(n_truth: np.ndarray, n_predicted: np.ndarray, hits: np.ndarray) -> Counts:
    """Return elementwise precision, recall and F1 of counts of any shape; each 0 where its denominator is 0."""
    p, r = divide(hits, n_predicted), divide(hits, n_truth)
    return p, r, divide(2 * p * r, p + r)


def format_iou_suffix(threshold: float, main: float) -> str:
    """Return the suffix of the keys of an IOU threshold: "" for the main one, ``@0.1`` for a further one."""
    return "" if threshold == main else f"@{float(threshold)!r}"


# prefix of the columns of sentence counts that come from spans
SENTENCES_BY_SPANS = "sentence_by_spans"


def compute_prf(column: Column, name: str, source: str) -> dict[str, np.ndarray]:
    """Return micro and macro precision, recall and F1 (``NAME_micro_p`` ..) of the columns ``SOURCE.truth`` ..

    Macro scores are means over the keys that have truth or prediction. Without such a key all are 0, as in the
    reference scorer; sentence scores, which that scorer does not have, are NaN then.
    """
    p, r, f1 = precision_recall_f1(*(column(f"{source}.{part}") for part in ("truth", "predicted", "hits")))
    scores = {f"{name}_micro_p": p, f"{name}_micro_r": r, f"{name}_micro_f1": f1}
    for part in PRF:
        scores[f"{name}_macro_{part}"] = divide(column(f"{source}.sum_{part}"), column(f"{source}.keys"))
    if name == "sentence":
        none = np.asarray(column(f"{source}.keys")) == 0
        scores = {key: np.where(none, np.nan, score) for key, score in scores.items()}
    return scores


def compute_iou(column: Column, end: str) -> dict[str, np.ndarray]:
    """Return IOU at one threshold: micro, macro (F1 of the mean p and r), and the one-to-one matched variant."""
    name = f"iou{end}"
    scores: dict[str, np.ndarray] = {}
    for kind, hits in (("micro", "hits"), ("matched", "matched")):
        p, r, f1 = precision_recall_f1(*(column(f"{name}.{part}") for part in ("truth", "predicted", hits)))
        scores |= {f"iou_{kind}_p{end}": p, f"iou_{kind}_r{end}": r, f"iou_{kind}_f1{end}": f1}
    p, r = (divide(column(f"{name}.sum_{part}"), column(f"{name}.keys_{part}")) for part in ("p", "r"))
    return scores | {f"iou_macro_p{end}": p, f"iou_macro_r{end}": r, f"iou_macro_f1{end}": divide(2 * p * r, p + r)}


def add_prf(
    builder: StatisticsBuilder, name: str, counts: Counts, owner: np.ndarray, source: str | None = None
) -> None:
    """Add precision, recall and F1 of counts per key.

    Args:
        builder: the columns to extend.
        name: the prefix of the scores' keys.
        counts: per key the truth, the predicted and the hits: int (keys,) each.
        owner: the annotation of each key.
        source: the prefix of the columns' names; None: ``name``.
    """
    n_truth, n_predicted, hits = counts
    p, r, f1 = precision_recall_f1(n_truth, n_predicted, hits)
    used = (n_truth > 0) | (n_predicted > 0)
    columns = {"truth": n_truth, "predicted": n_predicted, "hits": hits, "keys": used}
    columns |= {"sum_p": p * used, "sum_r": r * used, "sum_f1": f1 * used}
    builder.add(Score(0, compute_prf, (name, source or name)), columns, owner, source or name)


def add_iou(builder: StatisticsBuilder, end: str, counts: Sequence[np.ndarray], owner: np.ndarray) -> None:
    """Add IOU at one threshold; counts per key: truth, predicted, hits and one-to-one matches. See `add_prf`."""
    n_truth, n_predicted, hits, matched = counts
    columns = {"truth": n_truth, "predicted": n_predicted, "hits": hits, "matched": matched}
    columns |= {"sum_p": divide(hits, n_predicted), "keys_p": n_predicted > 0}
    columns |= {"sum_r": divide(hits, n_truth), "keys_r": n_truth > 0}
    builder.add(Score(1, compute_iou, (end,)), columns, owner, f"iou{end}")


def describe_scores() -> ScoreInfo:
    """Return direction and range of the scores of predictions with every field, and of the random baseline.

    IOU recall divides hits of predicted spans by truth spans: two predicted spans may hit one truth span. The random
    baseline has no direction.
    """
    families = [f"{name}_{kind}" for name in ("exact", "token", "iou") for kind in ("micro", "macro")]
    prf = [f"{family}_{part}" for family in (*families, "iou_matched") for part in PRF]
    sentences = [f"sentence_{kind}_{part}" for kind in ("micro", "macro") for part in PRF]
    soft = [f"{prefix}{key}" for prefix in ("", "sentence_") for key in SOFT]
    highest: dict[str, float | None] = {f"iou_{kind}_r": None for kind in ("micro", "macro")}
    highest |= {f"iou_{kind}_f1": 2.0 for kind in ("micro", "macro")}
    keys = (*prf, "any_group_coverage", "best_group_recall", *sentences, *soft)
    scores: ScoreInfo = {key: (True, 0.0, highest.get(key, 1.0)) for key in keys}
    return scores | {f"{key}_random": (None, 0.0, 1.0) for key in soft}
