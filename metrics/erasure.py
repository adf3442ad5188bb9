"""Faithfulness from class probabilities: loss without the rationale, and on the rationale alone.

Probabilities are matrices (instances, labels), with 0 for a label that an instance's scores lack. Every function
returns one value per instance; means are taken last, from the columns of a `StatisticsBuilder`.

Source: DeYoung et al., ERASER (ACL 2020), section 4 (comprehensiveness, sufficiency, AOPC).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from eraser_hub.schema.instance import ERASED

from .statistics_builder import Column, Score, ScoreInfo, StatisticsBuilder, divide

Floats = npt.NDArray[np.float64]

# thresholds this close are equal: 0.1 + 0.2 is 0.3
SAME_THRESHOLD = 1e-9
# so are bounds of an AOPC: the difference is rounding
SAME_BOUNDS = 1e-9


def drop(full: Floats, erased: Floats, label: np.ndarray) -> Floats:
    """Return ``p(full)[label] - p(erased)[label]`` per instance, and per threshold if there are several.

    With the rationale erased this is comprehensiveness (high is good), with all but the rationale erased it is
    sufficiency (low is good); both in [-1, 1]. AOPC (area over the perturbation curve) is its mean over instances and
    thresholds; the means per threshold are the points of the curve.

    Args:
        full: probabilities on the full input, float64 (n, labels).
        erased: probabilities on the erased input, float64 (n, labels) or (n, thresholds, labels).
        label: the predicted label of each instance, int (n,).

    >>> import numpy as np
    >>> drop(np.array([[.75, .25]]), np.array([[.5, .5]]), np.array([0])).tolist()
    [0.25]
    """
    further = [1] * (erased.ndim - 2)  # axes beside instances and labels
    left = np.take_along_axis(erased, label.reshape(-1, *further, 1), axis=-1)[..., 0]
    change: Floats = full[np.arange(label.size), label].reshape(-1, *further) - left
    return change


def entropy(p: Floats) -> Floats:
    """Return the entropy of each row in nats, rows renormalised, 0 log 0 = 0: float64 (n,) in [0, log labels]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        q = p / p.sum(axis=1, keepdims=True)
    logs = np.log(q, out=np.zeros_like(q), where=q > 0)
    sums: Floats = (q * logs).sum(axis=1)
    return -sums


def kl_divergence(erased: Floats, full: Floats) -> Floats:
    """Return ``KL(erased || full)`` per instance in nats, rows renormalised: in [0, inf].

    Infinite if a label has probability 0 on the full input and not on the erased one.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        p, q = (rows / rows.sum(axis=1, keepdims=True) for rows in (erased, full))
        terms = np.where(p > 0, np.where(q > 0, p * (np.log(p) - np.log(q)), np.inf), 0.0)
    return np.asarray(terms.sum(axis=1))


def normalised_aopc(area: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return ``(AOPC - lower) / (upper - lower)`` per instance: float64 (n,); NaN if the bounds are equal within 1e-9.

    In [0, 1] if the bounds are those of all orders; a beam search may miss them by a little.

    Source: Edin et al. 2025, normalised AOPC.
    """
    span = upper - lower
    return divide(area - lower, np.where(span > SAME_BOUNDS, span, 0.0), empty=np.nan)


def find_threshold_columns(
    thresholds: np.ndarray, offsets: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find the position of each instance's entry for each wanted threshold.

    Args:
        thresholds: the thresholds of all instances, flat: float64 (m,).
        offsets: int (n + 1,); instance i's are at ``[offsets[i], offsets[i + 1])``.
        wanted: the wanted thresholds, ascending, distinct: float64 (t,).

    Returns:
        (positions (n, t) into the flat array, good (n,)): ``good`` is True if the instance has each wanted
        threshold once and no other, compared within 1e-9.
    """
    n, t = offsets.size - 1, wanted.size
    sizes = np.diff(offsets)
    positions = np.zeros((n, t), dtype=np.int64)
    good = sizes == t
    if t and good.any():
        place = offsets[:-1][good][:, None] + np.arange(t)
        order = np.argsort(thresholds[place], axis=1, kind="stable")
        place = np.take_along_axis(place, order, axis=1)
        positions[good] = place
        good[good] = (np.abs(thresholds[place] - wanted) <= SAME_THRESHOLD).all(axis=1)
    return positions, good


def compute_curve(column: Column, key: str, size: int) -> dict[str, np.ndarray]:
    """Return AOPC: ``KEY_points``, the mean per threshold, and ``KEY``, the mean of the points."""
    sums = np.stack([column(f"{key}.sum{number}") for number in range(size)], axis=-1)
    points = divide(sums, column(f"{key}.count")[..., None], empty=np.nan)
    return {key: points.mean(axis=-1), f"{key}_points": points}


def compute_label_scores(column: Column, *labels: str) -> dict[str, np.ndarray]:
    """Return accuracy and macro F1, from the counts per label."""
    accuracy = divide(column("labels.hits"), column("labels.count"), empty=np.nan)
    report = report_labels(column, labels)
    total = (report["f1-score"] * report["used"]).sum(axis=-1)
    return {"accuracy": accuracy, "macro_f1": divide(total, report["used"].sum(axis=-1), empty=np.nan)}


def report_labels(column: Column, labels: Sequence[str]) -> dict[str, np.ndarray]:
    """Return ``precision recall f1-score support used`` per label: each (..., labels)."""
    count = column("labels.count")
    support, predicted, hits = (
        np.stack([column(f"label {label}.{part}") for label in labels], axis=-1)
        if labels
        else np.zeros((*count.shape, 0))
        for part in ("truth", "predicted", "hits")
    )
    # 2PR / (P + R), as 2 hits / (support + predicted): the same number, and 0 where nothing is there
    return {
        "precision": divide(hits, predicted),
        "recall": divide(hits, support),
        "f1-score": divide(2 * hits, support + predicted),
        "support": support,
        "used": (support + predicted) > 0,
    }


def add_labels(builder: StatisticsBuilder, labels: Sequence[str], *sides: tuple[Sequence[str], np.ndarray]) -> None:
    """Add the counts of accuracy, macro F1 and a report per label; `count_labels` selects the labels.

    Args:
        builder: the columns to extend.
        labels: the names of the labels.
        *sides: the gold labels, then the predicted ones: (names, codes into these, int (n,)); -1: absent.
    """
    places = {label: code for code, label in enumerate(labels)}
    truth, predicted = (np.array([*(places.get(name, -1) for name in names), -1])[codes] for names, codes in sides)
    for code, label in enumerate(labels):
        true, chosen = truth == code, predicted == code
        builder.add(None, {"truth": true, "predicted": chosen, "hits": true & chosen}, source=f"label {label}")
    builder.add(None, {"hits": truth == predicted, "count": np.ones(truth.size)}, source="labels")


def count_labels(builder: StatisticsBuilder, labels: Sequence[str]) -> None:
    """Add accuracy and macro F1 over these labels, if there are counts of them."""
    if "labels.count" not in builder.columns:
        return
    kept = {f"label {label}.{part}": None for label in labels for part in ("truth", "predicted", "hits")}
    for name in [name for name in builder.columns if name.startswith("label ") and name not in kept]:
        del builder.columns[name]
    builder.add(
        Score(4, compute_label_scores, tuple(labels)),
        {name: np.zeros(1) for name in kept if name not in builder.columns},
    )


def classification_report(builder: StatisticsBuilder) -> dict[str, object] | None:
    """Return precision, recall, F1 and support per label and averaged, in the shape of scikit-learn's report.

    Labels without truth and prediction are left out; None if the builder has no labels.
    """
    score = next((score for score in builder.scores if score.compute is compute_label_scores), None)
    if score is None:
        return None
    sums = {name: np.asarray(column.sum()) for name, column in builder.columns.items()}
    labels = list(map(str, score.settings))
    table = report_labels(sums.__getitem__, labels)
    used = table.pop("used")
    report: dict[str, object] = {
        label: {part: float(column[code]) for part, column in table.items()}
        for code, label in sorted(enumerate(labels), key=lambda pair: pair[1])
        if used[code]
    }
    support = table.pop("support")[used]
    report["accuracy"] = float(score.compute(sums.__getitem__, *labels)["accuracy"])
    for name, weights in (("macro avg", np.ones(support.size)), ("weighted avg", support)):
        means = {part: float(divide((column[used] * weights).sum(), weights.sum())) for part, column in table.items()}
        report[name] = {**means, "support": float(support.sum())}
    return report


# key -> (higher is better, lowest, highest); sufficiency is a loss: lower is better. None: no bound, or no direction
SCORE_INFO: ScoreInfo = {
    "comprehensiveness": (True, -1.0, 1.0),
    "sufficiency": (False, -1.0, 1.0),
    **dict.fromkeys(("comprehensiveness_entropy", "sufficiency_entropy"), (None, None, None)),
    "comprehensiveness_kl": (True, 0.0, None),
    "sufficiency_kl": (False, 0.0, None),
    **{f"{side}_aopc{end}": (side == ERASED[0], -1.0, 1.0) for end in ("", "_points") for side in ERASED},
    **dict.fromkeys(("accuracy", "macro_f1"), (True, 0.0, 1.0)),
    "tokens_to_flip_ratio": (False, 0.0, None),
    **{f"naopc_{side}": (side == ERASED[0], None, None) for side in ERASED},
    **{f"soft_{side}": (True, 0.0, 1.0) for side in ERASED},
    **dict.fromkeys(("sensitivity_max", "infidelity", "infidelity_normalized"), (False, 0.0, None)),
}
