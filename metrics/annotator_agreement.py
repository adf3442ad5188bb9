"""Agreement of annotators with each other (alpha, kappas) and with their majority (kappa, precision, recall, F1)."""

from __future__ import annotations

from collections.abc import Sequence

import evaluate

from eraser_hub.schema.rows import ANNOTATOR_ROW

from .annotator_columns import AnnotatorColumns
from .annotator_rows import is_person_row, read_annotated_texts
from .annotators import KEYS, SCORES
from .batches import Batches, Measured
from .cells import Row
from .issues import InputError, Issues
from .results import describe_scored
from .rows import RowColumns, check_partners, index_by_id
from .sources import ERASER
from .statistics_builder import Statistics, make_info


class AnnotatorAgreement(Batches, evaluate.Metric):  # type: ignore[misc]  # evaluate is untyped
    """Agreement of human annotators on the tokens of a rationale, and on the label.

    Between annotators, corrected for chance: Krippendorff's alpha (nominal, on tokens), Fleiss'
    kappa, Cohen's kappa of each pair of annotators, and of each annotator against the majority of the others. Against
    the majority that holds the annotator himself, as in Table 2 of the ERASER paper: Cohen's kappa, precision, recall
    and F1, with the standard deviation over all (text, annotator). This kappa is biased upwards: of 2, 3 and 5
    annotators who mark a fifth of the tokens at random it is .29, .39 and .21, see cohen_kappa_random.

    Args:
        references: rows {annotation_id, annotators}; annotators holds one list of 0/1 per annotator, one number
            per token: [[0, 1, ..], ..], at least two of one length, null for an annotator without marks; labels
            (one per annotator, or null) and annotator_names may stand beside it, the names are 1, 2, .. without
            it. Or one row per text and person, {annotation_id, annotator, label, rationale_positions, num_tokens}:
            per document the positions of the marked tokens and the number of tokens, as `eraser-hub import` writes
            to annotators/NAME.parquet. The rows may be given as predictions instead; if both are given,
            predictions hold the annotators and references further columns for by.
        only_predicted: leave out references without an instance; the signature has the number of scored ones.
            By default they are an error.
        per_instance: adds each text's means over its annotators.
        confidence_level, n_resamples, seed: add KEY_ci: [low, high], the BCa interval over texts.
        cluster_by: the rows that are drawn together: "auto" (those that share documents, or an original with its
            perturbed records), "none", or a column of the rows.
        by: a column of the rows; adds the scores per value of it.
        label_names: names of the class numbers in that column.

    Returns:
        krippendorff_alpha, fleiss_kappa over all tokens; pairwise_kappa: the mean over pairs of annotators of
        Cohen's kappa on the tokens that both saw; leave_one_out_kappa: the mean over annotators of Cohen's kappa
        against the strict majority of the others; label_krippendorff_alpha,
        label_fleiss_kappa, label_pairwise_kappa, label_leave_one_out_kappa likewise on labels, if there are any
        (a tie of the others is left out). All are at most 1, 0 by chance, NaN where only one code occurs.
        cohen_kappa in [-1, 1], p, r, f1 in [0, 1]: means over all (text, annotator), against the majority that holds
        the annotator, higher is better; cohen_kappa_std, p_std, r_std, f1_std: their standard deviations;
        cohen_kappa_random: the cohen_kappa of as many annotators who mark as many tokens at random; comparisons: how
        many (text, annotator) there are; undefined_kappas: how many of them have no kappa, because annotator and
        majority both mark everything or both nothing (they are left out of cohen_kappa alone; p, r and f1 are 0
        where a side is empty); signature.

    Raises:
        ValueError: wrong input; it names the instance and the field.

    Example:
        >>> import evaluate
        >>> metric = evaluate.load("annotator_agreement")
        >>> result = metric.compute(references=[
        ...     {"annotation_id": "a", "annotators": [[0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 1, 0]]},
        ...     {"annotation_id": "b", "annotators": [[1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]}])
        >>> round(result["krippendorff_alpha"], 4), round(result["leave_one_out_kappa"], 4)
        (0.8203, 0.7143)
        >>> round(result["cohen_kappa"], 4), round(result["f1"], 4), round(result["f1_std"], 4)
        (0.9167, 0.9444, 0.1242)
    """

    SOURCE = ERASER
    INPUTS = ((ANNOTATOR_ROW, ("annotation_id", "annotators")), (ANNOTATOR_ROW, ("annotation_id", "annotators")))
    HIGHER_IS_BETTER, RANGES = make_info(SCORES)

    def _measure(
        self, predictions: Sequence[Row] | None, references: Sequence[Row] | None, only_predicted: bool = False
    ) -> Measured:
        """Compute the columns of each text."""
        issues = Issues()
        sides = [(side, rows) for side, rows in (("prediction", predictions), ("reference", references)) if rows]
        if not sides:
            raise InputError("expected rows with annotators, found none", "empty")
        (side, rows), *more = sides
        texts = read_annotated_texts(rows, side, issues)
        further = index_by_id(more[0][1], more[0][0], issues) if more else {}
        if further:
            names = texts if any(map(is_person_row, rows)) else index_by_id(rows, side, Issues())
            check_partners(names, further, issues, only_predicted)
        issues.raise_if_any()
        columns = AnnotatorColumns([*texts.values()])
        kappas, comparisons = columns.values[:, 8:10].sum(axis=0)
        means = {key: columns.means[:, number] for number, key in enumerate(KEYS)}
        return Measured(
            Statistics(list(texts), columns.values, columns.finalize, means),
            RowColumns([[text.row, further.get(name)] for name, text in texts.items()]),
            {"majority": "strict", "std": "population", **describe_scored(len(texts), max(len(texts), len(further)))},
            {"comparisons": int(comparisons), "undefined_kappas": int(comparisons - kappas)},
            columns.notes(),
        )
