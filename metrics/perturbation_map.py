"""MAP of original/perturbed pairs: consistency of token rankings under perturbation of the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import evaluate

from .map import MAP_SCORES, WANG2022, measure_map
from .module import RationaleMetric
from .statistics import Measured


class PerturbationMap(RationaleMetric, evaluate.Metric):  # type: ignore[misc]  # evaluate is untyped
    """Mean average precision (MAP) of original/perturbed pairs.

    MAP measures how far the ranking of an input's tokens by importance is kept when the input is perturbed in a way
    that should not change the model's decision: faithfulness without erasing.

    Args:
        predictions: rows {id, rationale_tokens}; rationale_tokens holds, per sequence of the input, the tokens
            that make its rationale, most important first: [[token, ..], ..]; the authors cut each ranking to
            its first ceil(kd n) of n tokens. Optional, in all rows or in none: kd, a list of that share (or one
            share per sequence), for the signature; ranked_tokens, all tokens of each sequence, most important first.
        references: rows {id, sample_type, rel_ids}; sample_type is "ori" or "disturb"; rel_ids names the
            perturbed records of an original one. Rows of bilingual_perturbation are accepted as they are.
        only_predicted: leave out pairs of which a record has no prediction; by default they are an error.
        paper: "wang2022": the mean is over all perturbed records of the references, as in the authors' code;
            those without a prediction, or named by no original, count 0.
        per_instance: adds the scores of each original record (the mean over its pairs).
        confidence_level, n_resamples, seed: add KEY_ci: [low, high], the BCa interval over original records.
        cluster_by: the rows that are drawn together: "auto" (an original with its perturbed records), "none", or a
            column of the rows.
        by: a column of the rows; adds the scores per value of it.

    Returns:
        map: equation 2; map_prefix_hits: the earlier form, in which token j counts if it stands among the
        original's first j; map_full_ranking: map of ranked_tokens, where there are some; all in [0, 1], higher
        is better; pairs: how many; signature, with the kd.

    Raises:
        ValueError: wrong input; it names the instance and the field.

    Examples:
        >>> import evaluate
        >>> metric = evaluate.load("perturbation_map")
        >>> predictions = [{"id": 1, "rationale_tokens": [["fine", "film", "a"]], "kd": [0.5]},
        ...                {"id": 2, "rationale_tokens": [["fine", "movie", "a"]], "kd": [0.5]}]
        >>> references = [{"id": 1, "sample_type": "ori", "rel_ids": [2]},
        ...               {"id": 2, "sample_type": "disturb", "rel_ids": []}]
        >>> result = metric.compute(predictions=predictions, references=references)
        >>> round(result["map"], 4), result["pairs"]
        (0.7222, 1)
    """

    CITATION = WANG2022
    SCORES = MAP_SCORES
    HEADLINE = ("map",)

    def measure(
        self,
        predictions: Sequence[Mapping[str, Any]] | None,
        references: Sequence[Mapping[str, Any]] | None,
        only_predicted: bool = False,
        paper: str | None = None,
    ) -> Measured:
        """Measure MAP of all rows; see `measure_map`."""
        return measure_map(predictions or (), references or (), only_predicted, paper)
