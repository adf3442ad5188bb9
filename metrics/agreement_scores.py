"""Agreement, pooled: counts per (annotation, document) key become additive statistics per annotation, and scores.

`Pool` gathers columns of statistics, one row per annotation; `Pool.finalize` turns their sums into the scores of
`eraser_agreement`. A macro average over keys is a sum of per-key values beside the number of keys, so that sums over
any set of annotations give that set's score.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

PRF = ("p", "r", "f1")
SOFT = ("auprc", "average_precision", "roc_auc_score")


def divide(numerator: np.ndarray, denominator: np.ndarray, empty: float = 0.0) -> np.ndarray:
    """``numerator / denominator``; ``empty`` where the denominator is 0."""
    numerator, denominator = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    out = np.full(np.broadcast(numerator, denominator).shape, empty)
    return np.divide(numerator, denominator, out=out, where=denominator != 0)


def f1_of(p: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Harmonic mean; 0 where either is 0."""
    return np.where((p == 0) | (r == 0), 0.0, divide(2 * p * r, p + r))


def precision_recall_f1(
    n_truth: np.ndarray, n_predicted: np.ndarray, hits: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Elementwise precision, recall and F1 of counts, of any shape; each 0 where its denominator is 0."""
    p, r = divide(hits, n_predicted), divide(hits, n_truth)
    return p, r, f1_of(p, r)


def suffix(threshold: float, main: float) -> str:
    """What stands behind the keys of an IOU threshold: nothing for the main one, ``@0.1`` for a further one."""
    return "" if threshold == main else f"@{float(threshold)!r}"


def thresholds_said(thresholds: Sequence[float], main: float) -> list[float]:
    """IOU thresholds as a signature has them: the main one, then the others in ascending order, each once."""
    return [float(main), *sorted({float(value) for value in thresholds} - {float(main)})]


# what the columns of sentences' counts begin with where they come from spans
SENTENCES_BY_SPANS = "sentence_by_spans"


class Pool:
    """Columns of additive statistics, one row per annotation.

    Args:
        owner: the annotation of each key, int (keys,).
        n: how many annotations there are.
        totals: keep one row, the sums over all annotations.
    """

    def __init__(self, owner: np.ndarray, n: int, totals: bool = False) -> None:
        self.owner, self.n, self.totals = owner, n, totals
        self.columns: list[np.ndarray] = []
        self.place: dict[str, int] = {}
        self.prf_names: dict[str, str] = {}  # name -> what its columns begin with
        self.iou_names: list[str] = []
        self.means: dict[str, str] = {}

    def _add(self, name: str, per_key: np.ndarray, owner: np.ndarray | None = None) -> None:
        owner = self.owner if owner is None else owner
        if self.totals:
            self.add_row(name, np.asarray([per_key.sum()]))
            return
        self.add_row(name, np.bincount(owner, weights=per_key, minlength=self.n))

    def add_row(self, name: str, per_annotation: np.ndarray) -> None:
        self.place[name] = len(self.columns)
        self.columns.append(np.asarray(per_annotation, dtype=np.float64))

    def add_spans(self, counts: Any, main: float) -> None:
        """Everything that `spans.count_spans` counted; ``main`` is the IOU threshold whose keys have no suffix."""
        self.add_prf("exact", counts.exact)
        self.add_prf("token", counts.token)
        n_truth, n_predicted, _ = counts.exact
        for threshold, hits, matched in counts.iou:
            self.add_iou(suffix(threshold, main), n_truth, n_predicted, hits, matched)

    def add_coverage(self, whole: np.ndarray, best: np.ndarray) -> None:
        """What `group_coverage` found, per annotation."""
        everyone = np.arange(self.n)
        self.add_mean("any_group_coverage", whole, everyone)
        self.add_mean("best_group_recall", best, everyone)

    def add_ranked(
        self, ranked: Any, chosen: np.ndarray, owner: np.ndarray, prefix: str = "", decided: bool = True
    ) -> None:
        """Means of a `rankings.Ranked` over documents; sentences' decisions as well.

        Args:
            chosen: the rationales that have scores.
            owner: the annotation of each of those.
            prefix: "" for tokens, "sentence_" for sentences.
            decided: whether sentences' precision and recall mean something: the evidence says its sentences.
        """
        if prefix and decided:
            truth, predicted, hits = ranked.decided[chosen].T
            self.add_prf(prefix.rstrip("_"), (truth, predicted, hits), owner)
        self._add_rankings(ranked.rankings(chosen), owner, prefix, "")
        if ranked.random.shape[0]:
            self._add_rankings(ranked.rankings(chosen, random=True), owner, prefix, "_random")

    def _add_rankings(self, rankings: Any, owner: np.ndarray, prefix: str, suffix: str) -> None:
        for key in SOFT:
            self.add_mean(f"{prefix}{key}{suffix}", getattr(rankings, key), owner)

    def add_prf(
        self,
        name: str,
        counts: tuple[np.ndarray, np.ndarray, np.ndarray],
        owner: np.ndarray | None = None,
        columns: str | None = None,
    ) -> None:
        """Micro and macro precision, recall and F1 of counts per key (``NAME_micro_p`` ..).

        Macro: the mean of each key's own values, over the keys with anything on either side.

        Args:
            columns: what the columns' names begin with, where the counts are made otherwise than those named ``name``.
        """
        source = name if columns is None else columns
        n_truth, n_predicted, hits = counts
        p, r, f1 = precision_recall_f1(n_truth, n_predicted, hits)
        used = (n_truth > 0) | (n_predicted > 0)
        values = (n_truth, n_predicted, hits, used, p * used, r * used, f1 * used)
        parts = ("truth", "predicted", "hits", "keys", "sum_p", "sum_r", "sum_f1")
        for part, column in zip(parts, values, strict=True):
            self._add(f"{source}.{part}", column, owner)
        self.prf_names[name] = source

    def add_iou(
        self, end: str, n_truth: np.ndarray, n_predicted: np.ndarray, hits: np.ndarray, matched: np.ndarray
    ) -> None:
        """IOU at one threshold: micro, macro (F1 of the mean p and r), and the one-to-one matched variant."""
        name = f"iou{end}"
        columns = (
            n_truth, n_predicted, hits, matched,
            divide(hits, n_predicted), n_predicted > 0, divide(hits, n_truth), n_truth > 0,
        )  # fmt: skip
        parts = ("truth", "predicted", "hits", "matched", "sum_p", "keys_p", "sum_r", "keys_r")
        for part, column in zip(parts, columns, strict=True):
            self._add(f"{name}.{part}", column)
        self.iou_names.append(end)

    def add_mean(self, key: str, values: np.ndarray, owner: np.ndarray | None = None) -> None:
        """The mean of one value per key (or per ``owner``), NaN values left out; NaN where none is left."""
        real = ~np.isnan(values)
        self._add(f"{key}.sum", np.where(real, values, 0.0), owner)
        self._add(f"{key}.count", real, owner)
        self.means[key] = key

    @property
    def names(self) -> list[str]:
        """What each column is."""
        return list(self.place)

    def values(self) -> np.ndarray:
        """float64 (annotations, statistics)."""
        return np.stack(self.columns, axis=1) if self.columns else np.zeros((1 if self.totals else self.n, 0))

    def finalize(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        """Scores of sums (..., statistics): {key: (...)}."""

        def get(name: str) -> np.ndarray:
            return sums[..., self.place[name]]

        scores: dict[str, np.ndarray] = {}
        for name, source in self.prf_names.items():
            p, r, f1 = precision_recall_f1(get(f"{source}.truth"), get(f"{source}.predicted"), get(f"{source}.hits"))
            scores |= {f"{name}_micro_p": p, f"{name}_micro_r": r, f"{name}_micro_f1": f1}
            for part in PRF:
                scores[f"{name}_macro_{part}"] = divide(get(f"{source}.sum_{part}"), get(f"{source}.keys"))
        for end in self.iou_names:
            name = f"iou{end}"
            truth, predicted = get(f"{name}.truth"), get(f"{name}.predicted")
            for kind, hits in (("micro", get(f"{name}.hits")), ("matched", get(f"{name}.matched"))):
                p, r, f1 = precision_recall_f1(truth, predicted, hits)
                scores |= {f"iou_{kind}_p{end}": p, f"iou_{kind}_r{end}": r, f"iou_{kind}_f1{end}": f1}
            p, r = (
                divide(get(f"{name}.sum_p"), get(f"{name}.keys_p")),
                divide(get(f"{name}.sum_r"), get(f"{name}.keys_r")),
            )
            scores |= {f"iou_macro_p{end}": p, f"iou_macro_r{end}": r, f"iou_macro_f1{end}": f1_of(p, r)}
        for key in self.means:
            scores[key] = divide(get(f"{key}.sum"), get(f"{key}.count"), empty=np.nan)
        return scores


def group_coverage(
    group_annotation: np.ndarray, tokens: np.ndarray, covered: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Per annotation: does the prediction cover ANY one evidence group (1 or 0), and the best group's token recall.

    Groups without tokens do not count; an annotation without a group that has tokens gives NaN for both.
    """
    real = tokens > 0
    whole, best = np.full(n, np.nan), np.full(n, np.nan)
    recall = divide(covered, tokens)[real]
    owner = group_annotation[real]
    whole[owner], best[owner] = 0.0, 0.0
    np.maximum.at(best, owner, recall)
    whole[owner[recall >= 1.0]] = 1.0
    return whole, best


def keys_of() -> list[str]:
    """The keys that predictions with every field give."""
    spans = [
        f"{name}_{kind}_{part}" for name in ("exact", "token", "iou") for kind in ("micro", "macro") for part in PRF
    ]
    matched = [f"iou_matched_{part}" for part in PRF]
    sentences = [f"sentence_{kind}_{part}" for kind in ("micro", "macro") for part in PRF]
    soft = [f"{prefix}{key}" for prefix in ("", "sentence_") for key in SOFT]
    return [*spans, *matched, "any_group_coverage", "best_group_recall", *sentences, *soft]


def info_of(keys: Sequence[str]) -> tuple[dict[str, bool | None], dict[str, tuple[float, float | None]]]:
    """Per key whether higher is better, and its range; None where there is no direction, or no upper end.

    IOU recall counts hits of predicted spans over truth spans: two predicted spans may hit one truth span. The random
    baseline says what chance gives: it has no better end.
    """
    up: dict[str, bool | None] = dict.fromkeys(keys, True)
    up |= {f"{prefix}{key}_random": None for prefix in ("", "sentence_") for key in SOFT}
    recall, f1 = ("iou_micro_r", "iou_macro_r"), ("iou_micro_f1", "iou_macro_f1")
    return up, {key: (0.0, None if key in recall else 2.0 if key in f1 else 1.0) for key in up}
