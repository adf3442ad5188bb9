"""Does a selector's mask tell its label by shape alone? A classifier that sees where tokens were selected, and no word.

A model that selects its rationale can write the label into the selection: the first token for one label, the last for
another. Sufficiency is perfect then, and says nothing of the text (Jethani et al. 2021, "Have We Learned to Explain?").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.metrics.clusters import AUTO, NONE, cluster_by_items, number_values
from eraser_hub.metrics.intervals import intervals
from eraser_hub.metrics.joining import MatchedChunk
from eraser_hub.metrics.statistics_builder import StatisticsBuilder

if TYPE_CHECKING:
    from .references import Gold
    from .settings import ScoreSettings

SHAPE, CHANCE = "mask_leak", "mask_leak_chance"
FIFTHS, FOLDS, RIDGE = 5, 5, 1.0
Mask = NDArray[np.bool_]


def describe_leak(leak: Mapping[str, Any]) -> str:
    """Return a sentence that explains the scores of `compute_mask_leak`."""
    text = f"{SHAPE}: the places and the number of the selected tokens, and no word, tell the model's label that often"
    leaks = f"{SHAPE}_ci" in leak and leak[f"{SHAPE}_ci"][0] > leak[CHANCE]
    more = " The whole interval lies above: the masks give labels away." if leaks else ""
    return f"{text}; {CHANCE}: the most frequent label's share.{more}"


def compute_mask_shape(mask: Mask) -> NDArray[np.float64]:
    """Compute the features of a mask's shape, float64 (11,).

    The number selected (its logarithm) and its share of the text; the number of spans (logarithm); the first, mean and
    last selected place, as shares of the text; and the share of the selected that lies in each fifth of the text. Of an
    empty mask all are 0.
    """
    places = np.flatnonzero(mask)
    if not len(places):
        return np.zeros(6 + FIFTHS)
    at = (places + 0.5) / len(mask)
    spans = 1 + int((np.diff(places) > 1).sum())
    fifths = np.bincount((at * FIFTHS).astype(np.int64), minlength=FIFTHS) / len(places)
    first = [np.log1p(len(places)), len(places) / len(mask), np.log1p(spans), at[0], at.mean(), at[-1]]
    return np.concatenate([first, fifths])


def find_leaked_labels(
    shapes: NDArray[np.float64], labels: Sequence[str], clusters: NDArray[np.int64], seed: int = 0
) -> NDArray[np.bool_]:
    """Return True for each instance whose label a classifier predicts from the shape of its mask.

    Each instance is classified by the folds (five, of whole clusters) that do not hold it.

    The classifier is least squares on one column a label with a ridge of 1, in closed form: ``W = (X'X + I)^-1 X'Y``
    with the columns of X standardised by the training folds, and an intercept that is not shrunk.

    Args:
        shapes: features of the masks, float64 (n, features).
        labels: the label of each instance.
        clusters: int64 (n,); instances of a cluster are always in the same fold.
        seed: seed of the folds.
    """
    names = sorted(set(labels))
    gold = np.array([names.index(label) for label in labels])
    groups = np.unique(clusters)
    fold_numbers = dict(
        zip(np.random.default_rng(seed).permutation(groups).tolist(), np.arange(len(groups)) % FOLDS, strict=True)
    )
    folds = np.array([fold_numbers[number] for number in clusters.tolist()])
    predicted = np.zeros(len(gold), dtype=bool)
    for fold in range(min(FOLDS, len(groups))):
        test = folds == fold
        if test.all():
            continue
        guesses = _fitted(shapes[~test], np.eye(len(names))[gold[~test]], shapes[test]).argmax(axis=1)
        predicted[test] = guesses == gold[test]
    return predicted


def _fitted(x: NDArray[np.float64], y: NDArray[np.float64], unseen: NDArray[np.float64]) -> NDArray[np.float64]:
    mean, spread = x.mean(axis=0), x.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    z, level = (x - mean) / spread, y.mean(axis=0)
    weights = np.linalg.solve(z.T @ z + RIDGE * np.eye(z.shape[1]), z.T @ (y - level))
    return np.asarray((unseen - mean) / spread @ weights + level)


def compute_mask_leak(
    shapes: Sequence[NDArray[np.float64]], labels: Sequence[str], clusters: NDArray[np.int64], settings: ScoreSettings
) -> dict[str, Any]:
    """Measure how well the shapes of masks predict the labels that the model gave.

    Args:
        shapes: of each instance's mask, see `compute_mask_shape`.
        labels: the label that the model gave.
        clusters: instances that share documents have one number, int64 (n,).
        settings: the seed of the folds, and how the interval is made.

    Returns:
        ``mask_leak``: the share of instances whose label is predicted, by folds without its cluster;
        ``mask_leak_ci``: its interval over clusters, where one is asked for; ``mask_leak_chance``: the
        share of the most frequent label. Empty where there is nothing to tell: a single label, or a single cluster.
    """
    if len(set(labels)) < 2 or len(np.unique(clusters)) < 2:
        return {}
    predicted = find_leaked_labels(np.stack(shapes), labels, clusters, settings.seed)
    chance = max(map(list(labels).count, set(labels))) / len(labels)
    bounds = compute_share_interval(predicted, clusters, settings)
    return {SHAPE: float(predicted.mean()), **({f"{SHAPE}_ci": list(bounds)} if bounds else {}), CHANCE: chance}


def compute_share_interval(
    hits: NDArray[np.bool_] | NDArray[np.float64],
    clusters: NDArray[np.int64],
    settings: ScoreSettings,
    lowest: float = 0.0,
) -> tuple[float, float] | None:
    """Return the interval of a mean over clusters of values from ``lowest`` to 1; None without level and resamples."""
    s = settings
    if s.confidence_level is None and s.n_resamples is None:
        return None
    builder = StatisticsBuilder(len(hits))
    key = "accuracy" if hits.dtype == np.bool_ else "share"  # a share of right and wrong has exact bounds
    builder.add_mean(key, hits.astype(np.float64))
    statistics = builder.statistics(list(map(str, range(len(hits)))))
    statistics = replace(statistics, clusters=clusters, clustering="documents")
    bounds = intervals(statistics, s.confidence_level, s.n_resamples, s.seed, s.ci_method, {key: (lowest, 1.0)})
    return float(bounds[key][0]), float(bounds[key][1])


def find_document_clusters(docids: Sequence[Sequence[str | int]]) -> NDArray[np.int64]:
    """Return a number for each instance, equal for instances that share documents, directly or through others.

    Args:
        docids: names or numbers of each instance's documents.
    """
    numbers = cluster_by_items("documents", docids).numbers
    return np.arange(len(docids)) if numbers is None else numbers


def compute_document_interval(
    values: NDArray[np.bool_] | NDArray[np.float64],
    docids: Sequence[Sequence[str]],
    settings: ScoreSettings,
    lowest: float = 0.0,
) -> tuple[float, float] | None:
    """Return the interval of the mean of values from ``lowest`` to 1; instances that share documents count together.

    None if the settings ask for no interval, or if a single cluster leaves nothing to draw.
    """
    clusters = find_document_clusters(docids) if settings.cluster_by == AUTO else np.arange(len(docids))
    if len(np.unique(clusters)) < 2:
        return None
    return compute_share_interval(values, clusters, settings, lowest)


class Masks:
    """Gathers the hard rationales of instances, each one mask over its annotation's documents, and their labels.

    Args:
        gold: the annotations, with the documents that each has.
    """

    def __init__(self, gold: Gold) -> None:
        if gold.listed is None:
            raise ValueError("expected the documents of each annotation, found none")
        self.gold = gold
        owner, number = gold.listed
        lengths = gold.documents.lengths(owner, number)[0]
        # of each annotation: number of a document -> where its tokens start and end
        self.documents: dict[int, dict[int, tuple[int, int]]] = {}
        for annotation, document, length in zip(owner.tolist(), number.tolist(), lengths.tolist(), strict=True):
            own = self.documents.setdefault(annotation, {})
            start = max((end for _, end in own.values()), default=0)
            own[document] = (start, start + length)
        self.shapes: list[NDArray[np.float64]] = []
        self.labels: list[str] = []
        self.rows: list[int] = []
        self.selected = False

    def add(self, part: MatchedChunk) -> None:
        """Add instances that have a label. Rationales in documents that the annotation does not list are ignored."""
        p, annotation = part.p, part.rows[part.reference]
        labelled = np.flatnonzero(p.classification >= 0).tolist()
        of = {at: self.documents.get(int(annotation[at]), {}) for at in labelled}
        masks = {at: np.zeros(max((end for _, end in own.values()), default=0), dtype=bool) for at, own in of.items()}
        rationale = np.repeat(np.arange(p.hard.size), np.maximum(p.hard, 0))
        spans = (p.instance[rationale], part.doc[rationale], p.start, p.end)
        for at, document, start, end in zip(*(column.tolist() for column in spans), strict=True):
            place = of.get(at, {}).get(document)
            if place is not None:
                masks[at][place[0] + start : place[0] + end] = True
        self.selected |= bool(len(rationale))
        self.shapes += [compute_mask_shape(mask) for mask in masks.values()]
        codes: list[int] = p.classification[labelled].tolist()
        self.labels += [p.labels[code] for code in codes]
        self.rows += annotation[labelled].tolist()

    def leak(self, settings: ScoreSettings) -> tuple[dict[str, Any], str]:
        """Return how well the masks predict the labels, or a line that says why this cannot be measured.

        Args:
            settings: clusters, and how intervals are made.
        """
        if not self.selected or not self.labels:
            lacking = "label" if self.selected else "rationale"
            return {}, f"no mask_leak: expected hard rationales and labels, found no {lacking}"
        if settings.cluster_by == AUTO:
            clusters = find_document_clusters([list(self.documents.get(row, ())) for row in self.rows])
        elif settings.cluster_by == NONE:
            clusters = np.arange(len(self.rows))
        else:
            values = self.gold(settings.cluster_by)
            clusters = number_values((row,) if values[row] is None else values[row] for row in self.rows)
        leak = compute_mask_leak(self.shapes, self.labels, clusters, settings)
        why = "no mask_leak: expected several labels and clusters, found one: there is nothing to tell"
        return leak, "" if leak else why
