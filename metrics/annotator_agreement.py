"""Agreement of annotators with their majority: Cohen's kappa, precision, recall and F1, each with its spread."""

from __future__ import annotations

from collections.abc import Sequence

import evaluate
import numpy as np

from eraser_hub.schema.rows import ANNOTATOR_ROW

from .annotators import KEYS, SCORES, agreement
from .batches import Batches, Measured
from .cells import Row, as_list, as_scalar
from .issues import InputError, Issues
from .results import describe_scored
from .rows import CellReader, RowColumns, check_partners, index_by_id
from .sources import ERASER
from .statistics_builder import Statistics, divide, make_info

# variances below this (some spacings of numbers below 1) are rounding
LEAST_VARIANCE = 1e-14


def _finalize(sums: np.ndarray) -> dict[str, np.ndarray]:
    """Return the scores from sums of x, of x squared, and counts (of kappas, of comparisons)."""
    scores = {}
    for at, key in enumerate(KEYS):
        count = sums[..., 8 if key == "cohen_kappa" else 9]
        mean = divide(sums[..., 2 * at], count, np.nan)
        variance = divide(sums[..., 2 * at + 1], count, np.nan) - mean**2
        scores[key] = mean
        scores[f"{key}_std"] = np.sqrt(np.where(variance < LEAST_VARIANCE, 0 * variance, variance))
    return scores


def _read_annotations(reader: CellReader) -> np.ndarray | None:
    """Return the marks as bool (annotators, tokens); None, and an issue, if they are no marks."""
    value = reader.row.get("annotators")
    several = as_list(value) or []
    if not reader.expect(len(several) > 1, "annotators", "at least two annotators' lists", value, "length"):
        return None
    lists = [[as_scalar(mark) for mark in as_list(marks) or ()] for marks in several]
    width = len(lists[0])
    for at, marks in enumerate(lists):
        field, what = f"annotators[{at}]", f"{width or 'a list of'} marks"
        if not reader.expect(bool(marks) and len(marks) == width, field, what, several[at], "length"):
            return None
        wrong = [mark for mark in marks if type(mark) not in (int, bool) or mark not in (0, 1)]
        if wrong:
            reader.expect(False, field, "0 or 1", next((mark for mark in wrong if mark is not None), None), "choice")
            return None
    return np.array(lists, dtype=bool)


class AnnotatorAgreement(Batches, evaluate.Metric):  # type: ignore[misc]  # evaluate is untyped
    """Agreement of human annotators on the tokens of a rationale.

    Each annotator of each text is compared with the majority of that text's annotators, by Cohen's kappa, precision,
    recall and F1, with the standard deviation over all of these.

    Args:
        references: rows {annotation_id, annotators}; annotators holds one list of 0/1 per annotator, one number
            per token: [[0, 1, ..], ..], at least two of one length. The rows may be given as predictions
            instead; if both are given, predictions hold the annotators and references further columns for by.
        only_predicted: leave out references without an instance; the signature has the number of scored ones.
            By default they are an error.
        per_instance: adds each text's means over its annotators.
        confidence_level, n_resamples, seed, ci_method: add KEY_ci, by the bootstrap over texts; ci_method is
            "bca" or "percentile".
        cluster_by: the rows that are drawn together: "auto" (those that share documents, or an original with its
            perturbed records), "none", or a column of the rows.
        by: a column of the rows; adds the scores per value of it.
        label_names: names of the class numbers in that column.

    Returns:
        cohen_kappa in [-1, 1], p, r, f1 in [0, 1]: means over all (text, annotator), higher is better;
        cohen_kappa_std, p_std, r_std, f1_std: their standard deviations; comparisons: how many (text,
        annotator) there are; undefined_kappas: how many of them have no kappa, because annotator and majority
        both mark everything or both nothing (they are left out of cohen_kappa alone; p, r and f1 are 0 where a
        side is empty); signature.

    Raises:
        ValueError: wrong input; it names the instance and the field.

    Example:
        >>> import evaluate
        >>> metric = evaluate.load("annotator_agreement")
        >>> result = metric.compute(references=[
        ...     {"annotation_id": "a", "annotators": [[0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 1, 0]]},
        ...     {"annotation_id": "b", "annotators": [[1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]}])
        >>> round(result["cohen_kappa"], 4), round(result["f1"], 4), round(result["f1_std"], 4)
        (0.9167, 0.9444, 0.1242)
    """

    SOURCE = ERASER
    INPUTS = ((ANNOTATOR_ROW, ("annotation_id", "annotators")), (ANNOTATOR_ROW, ("annotation_id", "annotators")))
    HIGHER_IS_BETTER, RANGES = make_info(SCORES)

    def _measure(
        self, predictions: Sequence[Row] | None, references: Sequence[Row] | None, only_predicted: bool = False
    ) -> Measured:
        """Compute per text the sums over its annotators of each score and of its square, and the counts."""
        issues = Issues()
        sides = (("prediction", predictions), ("reference", references))
        tables = {side: index_by_id(rows, side, issues) for side, rows in sides if rows}
        if not tables:
            raise InputError("expected rows with annotators, found none", "empty")
        (side, rows), *more = tables.items()
        further = more[0][1] if more else {}
        if further:
            check_partners(rows, further, issues, only_predicted)
        values, means = np.zeros((len(rows), 10)), np.full((len(rows), 4), np.nan)
        for at, (name, row) in enumerate(rows.items()):
            marks = _read_annotations(CellReader(row, name, issues, side))
            if marks is None:
                continue
            scores = agreement(marks)
            defined = ~np.isnan(scores["cohen_kappa"])
            for number, key in enumerate(KEYS):
                one = scores[key][defined] if key == "cohen_kappa" else scores[key]
                values[at, 2 * number : 2 * number + 2] = one.sum(), (one**2).sum()
                means[at, number] = one.mean() if len(one) else np.nan
            values[at, 8:] = defined.sum(), len(marks)
        issues.raise_if_any()
        per_instance = {key: means[:, number] for number, key in enumerate(KEYS)}
        kappas, comparisons = values[:, 8:].sum(axis=0)
        return Measured(
            Statistics(list(rows), values, _finalize, per_instance),
            RowColumns([[row, further.get(name)] for name, row in rows.items()]),
            {"majority": "strict", "std": "population", **describe_scored(len(rows), max(len(rows), len(further)))},
            {"comparisons": int(comparisons), "undefined_kappas": int(comparisons - kappas)},
        )
