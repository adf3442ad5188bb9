"""MAP of original/perturbed pairs: does a saliency method rank the same tokens first when the input is perturbed?"""

from __future__ import annotations

from typing import Any

import evaluate
import numpy as np

from .batches import Measured, info
from .clusters import connected as connected
from .fields import HEADLINE
from .offences import Offences, cut
from .pool import Statistics, divide
from .rank_consistency import average_precisions
from .resampling import intervals as intervals
from .results import report as report
from .rows import RowBatches, RowColumns, as_list, by_id, check_partners, rows_of
from .sources import FINE_GRAINED

HIGHER_IS_BETTER = {"map": True, "map_prefix_hits": True}
RANGES = {"map": (0.0, 1.0), "map_prefix_hits": (0.0, 1.0)}

_DESCRIPTION = """\
Mean average precision (MAP) of original/perturbed pairs: how far the ranking of an input's tokens by importance is
kept when the input is perturbed in a way that should not change the model's decision. Faithfulness without erasing.
"""

_INPUTS_DESCRIPTION = """
Args:
    predictions: rows {id, rationale_tokens}; rationale_tokens holds, per sequence of the input, ALL its tokens, most
        important first: [[token, ..], ..].
    references: rows {id, sample_type, rel_ids}; sample_type is "ori" or "disturb"; rel_ids names the perturbed records
        of an original one.
    per_instance: adds the scores of each original record (the mean over its pairs).
    confidence_level, n_resamples, seed, ci_method: add KEY_ci, by the bootstrap over original records; ci_method is "bca"
        or "percentile".
    cluster_by: what is drawn together: "auto" (what shares documents, or an original with its perturbed records), "none",
        or a column of the rows.
    by: a column of the rows; adds the scores per value of it.
    label_names: names of the class numbers in that column.

Returns:
    map: equation 2; map_prefix_hits: the earlier form, in which token j counts if it stands among the original's
    first j; both in [0, 1], higher is better; pairs: how many; signature.

Raises:
    ValueError: wrong input; it names the instance and the field.

Example:

    >>> import evaluate
    >>> metric = evaluate.load("perturbation_map")
    >>> predictions = [{"id": 1, "rationale_tokens": [["fine", "film", "a"]]},
    ...                {"id": 2, "rationale_tokens": [["fine", "movie", "a"]]}]
    >>> references = [{"id": 1, "sample_type": "ori", "rel_ids": [2]},
    ...               {"id": 2, "sample_type": "disturb", "rel_ids": []}]
    >>> result = metric.compute(predictions=predictions, references=references)
    >>> round(result["map"], 4), result["pairs"]
    (0.7222, 1)
"""


def _finalize(sums: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "map": divide(sums[..., 0], sums[..., 2], np.nan),
        "map_prefix_hits": divide(sums[..., 1], sums[..., 2], np.nan),
    }


def _sequences(row: Any, name: str, offences: Offences) -> list[list[str]] | None:
    """The row's ranked tokens per sequence, or None and a fault."""
    value = row.get("rationale_tokens")
    sequences = as_list(value)
    if not sequences:
        offences.say_of("prediction", name, "rationale_tokens", f"expected lists of tokens, found {cut(value)}")
        return None
    checked = []
    for at, sequence in enumerate(sequences):
        tokens = as_list(sequence)
        if tokens is None or not set(map(type, tokens)) <= {str}:
            wrong = sequence if tokens is None else next(token for token in tokens if type(token) is not str)
            what = "a list of tokens" if tokens is None else "tokens (strings)"
            offences.say_of("prediction", name, f"rationale_tokens[{at}]", f"expected {what}, found {cut(wrong)}")
            return None
        checked.append(tokens)
    return checked


class PerturbationMap(RowBatches, evaluate.Metric):
    """MAP of original/perturbed pairs; see ``inputs_description``."""

    def _info(self) -> evaluate.MetricInfo:
        return info(
            _DESCRIPTION, FINE_GRAINED, _INPUTS_DESCRIPTION, HIGHER_IS_BETTER, RANGES, HEADLINE["perturbation_map"]
        )

    def _measure(self, predictions: Any, references: Any) -> Measured:
        """Per original record that has perturbed ones: sums of both scores over its pairs, and how many pairs.

        A pair's score is the mean over its sequences.
        """
        offences = Offences()
        if predictions is None or references is None:
            raise ValueError(f"expected {'predictions' if predictions is None else 'references'}, found none")
        rows = by_id(rows_of(predictions, "prediction"), "prediction", offences)
        records = by_id(rows_of(references, "reference"), "reference", offences)
        if not rows or not records:
            offences.stop()
            raise ValueError(f"expected {'predictions' if not rows else 'references'}, found an empty list")
        pairs: list[tuple[str, str]] = []
        for name, record in records.items():
            pairs += [(name, other) for other in self._perturbed(name, record, offences)]
        check_partners("prediction", rows, records.keys() | {other for _, other in pairs}, offences)
        check_partners("reference", records, rows, offences)
        for name, other in pairs:
            if other not in rows and other not in records:
                message = f"expected a prediction for the perturbed {other!r}, found none"
                offences.say_of("reference", name, "rel_ids", message)
        tokens = {name: _sequences(row, name, offences) for name, row in rows.items()}
        offences.stop()
        if not pairs:
            raise ValueError("expected original records (sample_type 'ori') with rel_ids, found no pair")
        statistics = self._score_pairs(pairs, tokens, offences)
        sources = [[records[name], rows[name]] for name in statistics.ids]
        return Measured(statistics, RowColumns(sources), extra={"pairs": int(statistics.values[:, 2].sum())})

    @staticmethod
    def _perturbed(name: str, record: Any, offences: Offences) -> list[str]:
        kind = record.get("sample_type")
        if kind not in ("ori", "disturb"):
            offences.say_of("reference", name, "sample_type", f"expected 'ori' or 'disturb', found {cut(kind)}")
            return []
        value = record.get("rel_ids")
        if kind == "disturb" or value is None:
            return []
        others = as_list(value)
        if others is None or any(isinstance(other, bool) or not isinstance(other, (int, str)) for other in others):
            offences.say_of("reference", name, "rel_ids", f"expected a list of ids, found {cut(value)}")
            return []
        names = [str(other) for other in others]
        if len(set(names)) != len(names) or name in names:
            message = f"expected each perturbed record once and not the record itself, found {cut(names)}"
            offences.say_of("reference", name, "rel_ids", message)
            return []
        return names

    @staticmethod
    def _score_pairs(
        pairs: list[tuple[str, str]], tokens: dict[str, list[list[str]] | None], offences: Offences
    ) -> Statistics:
        width = len(tokens[pairs[0][0]] or ())
        for name in dict.fromkeys(name for pair in pairs for name in pair):
            if len(tokens[name] or ()) != width:
                message = f"expected {width} sequences as in the first record, found {len(tokens[name] or ())}"
                offences.say_of("prediction", name, "rationale_tokens", message)
        offences.stop()
        flat = [((tokens[name] or [])[at], (tokens[other] or [])[at]) for name, other in pairs for at in range(width)]
        scores = average_precisions([first for first, _ in flat], [second for _, second in flat])
        means = np.stack([score.reshape(-1, width).mean(axis=1) for score in scores] + [np.ones(len(pairs))], axis=1)
        originals = [name for name, _ in pairs]  # the pairs of a record stand together
        firsts = [at for at, name in enumerate(originals) if at == 0 or originals[at - 1] != name]
        values = np.add.reduceat(means, firsts, axis=0)
        per_instance = {key: values[:, at] / values[:, 2] for at, key in enumerate(HIGHER_IS_BETTER)}
        return Statistics([originals[at] for at in firsts], values, _finalize, per_instance)
