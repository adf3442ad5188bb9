"""Does a selector's mask tell its label by shape alone? A classifier that sees where tokens were selected, and no word.

A model that selects its rationale can write the label into the selection: the first token for one label, the last for another.
Sufficiency is perfect then, and says nothing of the text (Jethani et al. 2021, "Have We Learned to Explain?").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.metrics.clusters import by_items
from eraser_hub.metrics.pool import Pool
from eraser_hub.metrics.resampling import DEFAULT_LEVEL, DEFAULT_RESAMPLES, intervals
from eraser_hub.metrics.tokens import mask

FIFTHS, FOLDS, RIDGE = 5, 5, 1.0
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class MaskLeak:
    """How well masks tell labels.

    Attributes:
        accuracy: the share of instances whose label is told, each by folds that its cluster is not in.
        interval: of it, by the bootstrap over clusters; None where none was asked for.
        chance: the share of the most frequent label.
        instances: how many there are.
    """

    accuracy: float
    interval: tuple[float, float] | None
    chance: float
    instances: int

    @property
    def leaks(self) -> bool:
        """Whether the whole interval lies above chance."""
        return self.interval is not None and self.interval[0] > self.chance


def shape_of(mask: Mask) -> NDArray[np.float64]:
    """What a mask's shape is, float64 (11,).

    The number selected (its logarithm) and its share of the text; the number of spans (logarithm); the first, mean and last selected place,
    as shares of the text; and the share of the selected that lies in each fifth of the text. Of an empty mask all are 0.
    """
    places = np.flatnonzero(mask)
    if not len(places):
        return np.zeros(6 + FIFTHS)
    at = (places + 0.5) / len(mask)
    spans = 1 + int((np.diff(places) > 1).sum())
    fifths = np.bincount((at * FIFTHS).astype(np.int64), minlength=FIFTHS) / len(places)
    first = [np.log1p(len(places)), len(places) / len(mask), np.log1p(spans), at[0], at.mean(), at[-1]]
    return np.concatenate([first, fifths])


def told_by_shape(
    shapes: NDArray[np.float64], labels: Sequence[str], clusters: NDArray[np.int64], seed: int = 0
) -> NDArray[np.bool_]:
    """Which instances' labels are told by shape, each by the folds (five, of whole clusters) that it is not in.

    The classifier is least squares on one column a label with a ridge of 1, in closed form: ``W = (X'X + I)^-1 X'Y`` with the columns of X
    standardised by the training folds, and an intercept that is not shrunk.

    Args:
        shapes: float64 (n, features).
        clusters: instances of one number are never in different folds, int64 (n,).
        seed: of the folds.
    """
    names = sorted(set(labels))
    gold = np.array([names.index(label) for label in labels])
    groups = np.unique(clusters)
    fold_of = dict(
        zip(np.random.default_rng(seed).permutation(groups).tolist(), np.arange(len(groups)) % FOLDS, strict=True)
    )
    folds = np.array([fold_of[number] for number in clusters.tolist()])
    told = np.zeros(len(gold), dtype=bool)
    for fold in range(min(FOLDS, len(groups))):
        test = folds == fold
        if test.all():
            continue
        guesses = _fitted(shapes[~test], np.eye(len(names))[gold[~test]], shapes[test]).argmax(axis=1)
        told[test] = guesses == gold[test]
    return told


def _fitted(x: NDArray[np.float64], y: NDArray[np.float64], unseen: NDArray[np.float64]) -> NDArray[np.float64]:
    mean, spread = x.mean(axis=0), x.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    z, level = (x - mean) / spread, y.mean(axis=0)
    weights = np.linalg.solve(z.T @ z + RIDGE * np.eye(z.shape[1]), z.T @ (y - level))
    return np.asarray((unseen - mean) / spread @ weights + level)


def mask_leak(
    masks: Sequence[Mask], labels: Sequence[str], clusters: NDArray[np.int64] | None = None, *,
    confidence_level: float | None = DEFAULT_LEVEL, n_resamples: int = DEFAULT_RESAMPLES, seed: int = 0,
) -> MaskLeak | None:  # fmt: skip
    """How well the shapes of masks tell the labels that a model gave beside them.

    Args:
        masks: for each instance flags of its documents' tokens, selected or not.
        labels: the label that the model gave.
        clusters: instances that share documents have one number, int64 (n,); None: each stands for itself.
        confidence_level, n_resamples, seed: of the interval; a level of None makes none.

    Returns:
        None where there is nothing to tell: a single label, or a single cluster.
    """
    clusters = np.arange(len(masks)) if clusters is None else clusters
    if len(set(labels)) < 2 or len(np.unique(clusters)) < 2:
        return None
    told = told_by_shape(np.stack([shape_of(mask) for mask in masks]), labels, clusters, seed)
    chance = max(map(list(labels).count, set(labels))) / len(labels)
    bounds = interval_of_share(told, clusters, confidence_level, n_resamples, seed)
    return MaskLeak(float(told.mean()), bounds, chance, len(masks))


def interval_of_share(
    hits: NDArray[np.bool_] | NDArray[np.float64], clusters: NDArray[np.int64], confidence_level: float | None,
    n_resamples: int, seed: int,
) -> tuple[float, float] | None:  # fmt: skip
    """The interval of a share of instances, or of another mean over them, over clusters; None without a level."""
    pool = Pool(len(hits))
    pool.add_mean("share", hits.astype(np.float64))
    statistics = replace(pool.statistics(list(map(str, range(len(hits))))), clusters=clusters, clustering="documents")
    bounds = intervals(statistics, confidence_level, n_resamples, seed) if confidence_level is not None else None
    return (float(bounds["share"][0]), float(bounds["share"][1])) if bounds else None


def document_clusters(docids: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """A number for each instance, the same for those that share documents, directly or through others.

    Args:
        docids: of each instance's documents.
    """
    numbers = by_items("documents", docids).numbers
    return np.arange(len(docids)) if numbers is None else numbers


def mask_of(rationales: Sequence[Mapping[str, Any]], lengths: Mapping[str, int], field: str) -> Mask:
    """A prediction's hard rationales as one mask over its documents' tokens, in the documents' order.

    Args:
        rationales: each with ``docid`` and spans under ``field``.
        lengths: tokens of each document, by name.
    """
    spans = {str(one["docid"]): one.get(field) or () for one in rationales}
    flags: list[bool] = []
    for name, length in lengths.items():
        flags += mask(((span["start_token"], span["end_token"]) for span in spans.get(name, ())), length)
    return np.array(flags, dtype=bool)
