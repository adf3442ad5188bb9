"""Faithfulness from erased inputs: what the model says without the rationale, and on the rationale alone.

Sources: DeYoung et al., ERASER (ACL 2020), section 4 (comprehensiveness, sufficiency, AOPC); Edin et al. 2025
(normalised AOPC); Zhao and Aletras 2023 (soft scores); Yeh et al. 2019 (infidelity, sensitivity).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set

import numpy as np

from .gold import describe_label
from .match import Match, Matcher
from .predictions import ERASED, NUMBERS, PATHS, SIDES
from .rows import PROBABILITY_SLACK, check
from .statistics import Columns, Score, divide, mean, mean_columns

SAME_BOUNDS = 1e-9  # bounds of an AOPC this close are equal: their difference is rounding
BOUND_SLACK, SAME_THRESHOLD = 1e-9, 1e-9
# numbers of instances whose mean is the score
MEAN_NUMBERS = ("soft_comprehensiveness", "soft_sufficiency", "sensitivity_max", "infidelity", "infidelity_normalized")


def compute_drop(full: np.ndarray, erased: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Return ``p(full)[label] - p(erased)[label]`` of each instance, in [-1, 1], and of each threshold.

    With the rationale erased this is comprehensiveness (high is good), with all but the rationale erased it is
    sufficiency (low is good). AOPC (area over the perturbation curve) is its mean over instances and thresholds.

    Args:
        full: probabilities on the full input: float64 (n, labels).
        erased: probabilities on the erased input: float64 (n, labels) or (n, thresholds, labels).
        label: the predicted label of each instance: int (n,).

    >>> compute_drop(np.array([[.75, .25]]), np.array([[.5, .5]]), np.array([0])).tolist()
    [0.25]
    """
    instances = np.arange(label.size)
    before, after = full[instances, label], erased[instances, ..., label]
    drop: np.ndarray = before.reshape(-1, *[1] * (erased.ndim - 2)) - after
    return drop


def compute_entropy(p: np.ndarray) -> np.ndarray:
    """Return the entropy of each row in nats, rows renormalised, 0 log 0 = 0: float64 (n,) in [0, log labels]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        q = p / p.sum(axis=1, keepdims=True)
    entropy: np.ndarray = -(q * np.log(q, out=np.zeros_like(q), where=q > 0)).sum(axis=1)
    return entropy


def compute_kl(erased: np.ndarray, full: np.ndarray) -> np.ndarray:
    """Return ``KL(erased || full)`` of each row in nats, rows renormalised: float64 (n,) in [0, inf].

    It is infinite where a label has probability 0 on the full input and more on the erased one, as in the reference.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        p, q = (rows / rows.sum(axis=1, keepdims=True) for rows in (erased, full))
        # where p is not above 0 the term is p itself: 0, or NaN
        kl: np.ndarray = np.where(p > 0, np.where(q > 0, p * (np.log(p) - np.log(q)), np.inf), p).sum(axis=1)
    return kl


def normalise_aopc(area: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return ``(AOPC - lower) / (upper - lower)`` of each instance: float64 (n,); NaN where the bounds are equal.

    It is in [0, 1] if the bounds are those of all orders of erasing; a beam search may miss them by a little.
    """
    span = upper - lower
    return divide(area - lower, np.where(span > SAME_BOUNDS, span, 0.0), np.nan)


def measure_erasure(match: Match) -> dict[str, np.ndarray]:
    """Return the columns of all faithfulness scores whose fields a chunk has; see `erasure_scores`.

    Without answer an instance has no column but those of its label. ``full_input``, the probability of the predicted
    label, belongs to no score: by it `compare` sees whether two systems explain one model.

    Raises:
        DataError: at the first instance of the first kind of fault.
    """
    columns, answered, label = dict[str, np.ndarray](), match.answered, read_labels(match)
    if (label >= 0).any() or not answered.all():
        columns |= measure_labels(match, label)
    p = {side: read_probabilities(match, side, label) for side in match.predictions.scores}
    numbers = read_number_columns(match)
    if "full" in p:
        columns["full_input"] = np.nan_to_num(p["full"][np.arange(label.size), label])
    for side in ERASED:
        area = None
        if side in p:
            columns |= mean_columns(side, compute_drop(p["full"], p[side], label))
            columns |= mean_columns(f"{side}_entropy", compute_entropy(p["full"]) - compute_entropy(p[side]))
            columns |= mean_columns(f"{side}_kl", compute_kl(p[side], p["full"]))
        if f"threshold_{side}" in p:
            drops = compute_drop(p["full"], p[f"threshold_{side}"], label)
            columns[f"{side}_aopc.sum"] = np.where(answered[:, None], drops, 0.0)
            columns[f"{side}_aopc.count"] = answered.astype(float)
            area = drops.mean(axis=1)
        # bounds over all lengths have an AOPC of their own beside them
        area = numbers.get(f"{side}_bounded", area)
        if area is not None and {f"{side}_lower", f"{side}_upper"} <= numbers.keys():
            bounds = numbers[f"{side}_lower"], numbers[f"{side}_upper"]
            columns |= mean_columns(f"naopc_{side}", normalise_aopc(area, *bounds))
    if "tokens_to_flip" in numbers and match.gold is not None:
        size = match.gold.evidence_tokens[match.rows]
        if size.any():
            columns |= mean_columns("tokens_to_flip_ratio", divide(numbers["tokens_to_flip"], size, np.nan))
    for name in MEAN_NUMBERS:
        if name in numbers:
            columns |= mean_columns(name, numbers[name])
    return columns


def read_labels(match: Match) -> np.ndarray:
    """Return the predicted label of each instance, int64 (n,) into ``match.labels``; -1: none."""
    p, codes = match.predictions, {label: code for code, label in enumerate(match.labels)}
    label = np.array([codes.get(name or "", -1) for name in p.classification], np.int64)
    if match.present.get("classification") and codes:
        strange = p.answered & (label < 0)
        first = str(p.classification[int(np.argmax(strange))])
        meant = [describe_label(first, match.labels)] * label.size if strange.any() else ()
        check(strange, p.error, None, "classification", "{}", meant)
    return label


def read_probabilities(match: Match, side: str, label: np.ndarray) -> np.ndarray:
    """Return the probabilities of a side, float64 (n, labels), or at each threshold, (n, T, labels), checked.

    They are 0 for a label that an instance does not score, and NaN for an instance without answer.

    Args:
        match: the chunk.
        side: of `Predictions.scores`.
        label: of `read_labels`.
    """
    p, n, full = match.predictions, label.size, match.predictions.scores.get("full")
    owner, table = p.scores[side]
    path = SIDES.get(side) or f"thresholded_scores.{SIDES[side.removeprefix('threshold_')]}"
    named, codes = ~np.isnan(table), {name: code for code, name in enumerate(match.labels)}
    for column, name in enumerate(p.labels):
        if name not in codes and named[:, column].any():
            meant = [describe_label(name, match.labels)] * owner.size
            check(named[:, column], p.error, owner, path, "{}", meant)
    matrix, known = np.full((owner.size, len(codes)), np.nan), [name in codes for name in p.labels]
    matrix[:, [codes[name] for name in p.labels if name in codes]] = table[:, known]
    lacks = (label[owner] >= 0) & np.isnan(matrix[np.arange(owner.size), label[owner]])
    predicted = [p.classification[row] for row in owner] if lacks.any() else ()
    check(lacks, p.error, owner, path, "expected a probability of {!r}, found none", predicted)
    if full is not None:
        scored = np.zeros((n, len(p.labels)), dtype=bool)
        scored[full.owner] = ~np.isnan(full.table)
        other = (named != scored[owner]).any(axis=1)
        check(other, p.error, owner, path, f"expected the labels of {SIDES['full']}, found others")
    with np.errstate(invalid="ignore"):
        unsound = (named & ~((table >= 0) & (table < np.inf))).any(axis=1)
    check(unsound, p.error, owner, path, "expected probabilities, found {}", matrix)
    matrix = np.where(np.isnan(matrix), 0.0, matrix)
    total = matrix.sum(axis=1)
    off = np.abs(total - 1) > PROBABILITY_SLACK
    check(off, p.error, owner, path, "expected probabilities that sum to 1, found a sum of {:g}", total)
    if side in SIDES:
        found, rows = np.full((n, len(codes)), np.nan), owner
    else:
        rows, order = np.flatnonzero(p.answered), sort_thresholds(match, side)
        found = np.full((n, *order.shape[1:], len(codes)), np.nan)
        matrix = np.take_along_axis(matrix.reshape(rows.size, order.shape[1], -1), order[:, :, None], axis=1)
    found[rows] = matrix
    found[~p.answered] = np.nan
    return found


def sort_thresholds(match: Match, side: str) -> np.ndarray:
    """Return the places of the thresholds of each answered instance in ascending order, int64 (answered, T), checked.

    Args:
        match: the chunk.
        side: ``threshold_SIDE``, which every instance has at every threshold.
    """
    p, wanted, rows = match.predictions, match.thresholds, np.flatnonzero(match.answered)
    assert wanted is not None, "set with the first scores at thresholds"
    sizes, path = np.maximum(p.thresholds.size, 0)[rows], "thresholded_scores"
    expected = f"expected the thresholds {', '.join(f'{x:g}' for x in wanted)}, each once, found "
    check(sizes != wanted.size, p.error, rows, f"{path}.threshold", expected + "{}", sizes)
    table = p.thresholds.values.reshape(rows.size, wanted.size)
    order = np.argsort(table, axis=1, kind="stable")
    bad = (np.abs(np.take_along_axis(table, order, axis=1) - wanted) > SAME_THRESHOLD).any(axis=1)
    check(bad, p.error, rows, f"{path}.threshold", expected + "{}", table)
    there = np.bincount(p.scores[side].owner, minlength=match.rows.size)[rows]
    message = "expected it at every threshold of every instance or nowhere, found it at some"
    check(there != wanted.size, p.error, rows, f"{path}.{SIDES[side.removeprefix('threshold_')]}", message)
    return order


def read_number_columns(match: Match) -> dict[str, np.ndarray]:
    """Return name of `NUMBERS` -> float64 (n,), checked; NaN for an instance without answer."""
    p, numbers = match.predictions, dict[str, np.ndarray]()
    for name, column in p.numbers.items():
        if match.present.get(name):
            low, high = NUMBERS[name][2:]
            within = (column >= low - BOUND_SLACK) & (column <= high + BOUND_SLACK) & (column < np.inf)
            message = f"expected a number from {low:g} to {high:g}, found {{}}"
            check(p.answered & ~within, p.error, None, PATHS[name], message, column)
            numbers[name] = np.where(p.answered, column, np.nan)
    for side in ERASED:
        if {f"{side}_lower", f"{side}_upper"} <= numbers.keys():
            lower, upper = numbers[f"{side}_lower"], numbers[f"{side}_upper"]
            check(lower > upper, p.error, None, "aopc_bounds", "expected lower <= upper, found {} and {}", lower, upper)
    return numbers


def measure_labels(match: Match, label: np.ndarray) -> dict[str, np.ndarray]:
    """Return the counts of labels: ``labels.truth``, ``.predicted``, ``.hits`` (n, labels), ``labels.count`` (n,).

    An instance without answer has no predicted label, and so counts as wrong.
    """
    gold, codes = np.full(label.size, -1), np.arange(len(match.labels))
    gold = gold if match.gold is None else match.gold.label[match.rows]
    truth, predicted = (each[:, None] == codes for each in (gold, label))
    counts = {"truth": truth, "predicted": predicted, "hits": truth & predicted, "count": np.ones(label.size)}
    # a byte each: corpora have half a million annotations
    return {f"labels.{name}": values.astype(np.int8) for name, values in counts.items()}


def compute_points(side: str, sums: Columns) -> np.ndarray:
    """Return the mean drop at each threshold, ascending: (..., thresholds)."""
    return divide(sums[f"{side}_aopc.sum"], sums[f"{side}_aopc.count"][..., None], np.nan)


def compute_label_scores(sums: Columns) -> dict[str, np.ndarray]:
    """Return precision, recall, f1-score and support of each label: (..., labels)."""
    truth, predicted, hits = (sums[f"labels.{name}"] for name in ("truth", "predicted", "hits"))
    # 2PR / (P + R) is 2 hits / (support + predicted): the same number, and 0 where nothing is there
    f1 = divide(2 * hits, truth + predicted)
    return {"precision": divide(hits, predicted), "recall": divide(hits, truth), "f1-score": f1, "support": truth}


def compute_accuracy(sums: Columns) -> np.ndarray:
    """Return the share of annotations whose label is predicted: (...)."""
    return divide(sums["labels.hits"].sum(axis=-1), sums["labels.count"], np.nan)


def compute_macro_f1(sums: Columns) -> np.ndarray:
    """Return the mean F1 of the labels that are true or predicted somewhere, as scikit-learn does: (...)."""
    used = (sums["labels.truth"] + sums["labels.predicted"]) > 0
    return divide((compute_label_scores(sums)["f1-score"] * used).sum(axis=-1), used.sum(axis=-1), np.nan)


# sufficiency is a loss: lower is better
ERASURE_SCORES = {
    "comprehensiveness": Score(mean("comprehensiveness"), True, -1.0, 1.0),
    "comprehensiveness_entropy": Score(mean("comprehensiveness_entropy"), None, None, None),
    "comprehensiveness_kl": Score(mean("comprehensiveness_kl"), True, 0.0, None),
    "sufficiency": Score(mean("sufficiency"), False, -1.0, 1.0),
    "sufficiency_entropy": Score(mean("sufficiency_entropy"), None, None, None),
    "sufficiency_kl": Score(mean("sufficiency_kl"), False, 0.0, None),
    "tokens_to_flip_ratio": Score(mean("tokens_to_flip_ratio"), False, 0.0, None),
    "soft_comprehensiveness": Score(mean("soft_comprehensiveness")),
    "soft_sufficiency": Score(mean("soft_sufficiency")),
    "sensitivity_max": Score(mean("sensitivity_max"), False, 0.0, None),
    "infidelity": Score(mean("infidelity"), False, 0.0, None),
    "infidelity_normalized": Score(mean("infidelity_normalized"), False, 0.0, None),
    "naopc_comprehensiveness": Score(mean("naopc_comprehensiveness"), True, None, None),
    "naopc_sufficiency": Score(mean("naopc_sufficiency"), False, None, None),
    "comprehensiveness_aopc": Score(lambda sums: compute_points(ERASED[0], sums).mean(axis=-1), True, -1.0, 1.0),
    "comprehensiveness_aopc_points": Score(lambda sums: compute_points(ERASED[0], sums), True, -1.0, 1.0),
    "sufficiency_aopc": Score(lambda sums: compute_points(ERASED[1], sums).mean(axis=-1), False, -1.0, 1.0),
    "sufficiency_aopc_points": Score(lambda sums: compute_points(ERASED[1], sums), False, -1.0, 1.0),
    "accuracy": Score(compute_accuracy, units="labels.count"),
    "macro_f1": Score(compute_macro_f1),
}


def erasure_scores(columns: Columns) -> dict[str, Score]:
    """Return the table of the scores that have columns; labels count where some are true and some predicted."""
    labelled = all(columns.get(f"labels.{name}", np.zeros(0)).any() for name in ("truth", "predicted"))
    found = {name.removesuffix(".sum") for name in columns} | ({"accuracy", "macro_f1"} if labelled else set())
    return {key: score for key, score in ERASURE_SCORES.items() if key.removesuffix("_points") in found}


def find_lacking(scores: Collection[str], used: Set[str], with_gold: bool) -> dict[str, list[str]]:
    """Return the fields that are missing, each with the scores that need it.

    Args:
        scores: the keys of `erasure_scores`.
        used: the fields that instances have, see `match.Matcher`.
        with_gold: there are references.
    """
    needs = {side: SIDES[side] for side in ERASED} | {f"{side}_aopc": PATHS["thresholds"] for side in ERASED}
    if with_gold:
        label = "classification of the references" if "classification" in used else "classification"
        size = "evidences of the references" if "tokens_to_flip" in used else "tokens_to_flip"
        needs |= {"accuracy": label, "macro_f1": label, "tokens_to_flip_ratio": size}
    for side in ERASED:  # naopc is spoken of only where there is a part of what it needs
        parts = [f"{side}_{part}" for part in ("lower", "upper", "bounded")]
        if not used.isdisjoint(parts):
            needs[f"naopc_{side}"] = PATHS[next((part for part in parts if part not in used), parts[0])]
    lacking: dict[str, list[str]] = {}
    for key, field in needs.items():
        if key not in scores:
            lacking.setdefault(field, []).append(key)
    return lacking


def describe_erasure(
    scores: Collection[str], columns: Columns, matcher: Matcher
) -> tuple[dict[str, object], dict[str, object], dict[str, list[str]]]:
    """Return what the signature says, further entries of the result, and the fields that are missing.

    Args:
        scores: the keys of `erasure_scores`.
        columns: of all chunks, per instance or summed over groups.
        matcher: of these chunks.
    """
    answered, aopc = matcher.answered, f"{ERASED[0]}_aopc" in scores or f"{ERASED[1]}_aopc" in scores
    thresholds = matcher.thresholds.tolist() if aopc and matcher.thresholds is not None else []
    facts: dict[str, object] = {"aopc": thresholds} if thresholds else {}
    for key in (f"naopc_{side}" for side in ERASED):  # where bounds are equal there is no normalised AOPC
        bounded = int(columns[f"{key}.count"].sum()) if key in scores else answered
        facts |= {key: f"{bounded}/{answered}"} if bounded < answered else {}
    extra: dict[str, object] = {"aopc_thresholds": thresholds} if thresholds else {}
    return facts, extra, find_lacking(scores, matcher.used, matcher.gold is not None)


def report_labels(columns: Columns, labels: Sequence[str]) -> dict[str, dict[str, float] | float]:
    """Return precision, recall, F1 and support per label and averaged, as scikit-learn's ``classification_report``.

    Args:
        columns: those of `measure_labels`.
        labels: the names of the labels; one that is neither true nor predicted anywhere is left out.
    """
    sums = {name: values.sum(axis=0) for name, values in columns.items() if name.startswith("labels.")}
    scores, used = compute_label_scores(sums), (sums["labels.truth"] + sums["labels.predicted"]) > 0
    report: dict[str, dict[str, float] | float] = {
        label: {name: float(values[code]) for name, values in scores.items()}
        for label, code in sorted(zip(labels, range(len(labels)), strict=True))
        if used[code]
    }
    report["accuracy"] = float(compute_accuracy(sums))
    support = scores.pop("support")[used]
    for name, weights in (("macro avg", np.ones(support.size)), ("weighted avg", support)):
        means = {part: float(divide(values[used] @ weights, weights.sum())) for part, values in scores.items()}
        report[name] = {**means, "support": float(support.sum())}
    return report
