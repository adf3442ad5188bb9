"""MAP of original/perturbed pairs: consistency of token rankings under perturbation of the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import evaluate
import numpy as np

from eraser_hub.schema.rows import PERTURBATION_RECORD, PERTURBATION_ROW

from .batches import Batches, Measured
from .cells import Row, as_list, as_number
from .issues import InputError, Issues
from .rank_consistency import SCORES, average_precision
from .results import describe_scored
from .rows import CellReader, RowColumns, check_partners, find_optional_fields, index_by_id
from .sources import FINE_GRAINED, WANG2022, check_paper
from .statistics_builder import Statistics, StatisticsBuilder, make_info

TOP, FULL = "rationale_tokens", "ranked_tokens"
KEYS = {TOP: ("map", "map_prefix_hits"), FULL: ("map_full_ranking",)}
Ranked = dict[str, list[list[str]]]  # id -> per sequence the tokens, most important first


def _read_sequences(reader: CellReader, field: str) -> list[list[str]]:
    """Return the row's ranked tokens per sequence; an empty list, and an issue, for other values."""
    value, ranked = reader.row.get(field), list[list[str]]()
    sequences = as_list(value) or []
    reader.expect(bool(sequences), field, "lists of tokens", value)
    for at, sequence in enumerate(sequences):
        tokens = as_list(sequence)
        if not reader.expect(tokens is not None, f"{field}[{at}]", "a list of tokens", sequence):
            return []
        ranked.append(tokens or [])
        if not {*map(type, ranked[-1])} <= {str}:
            wrong = next(token for token in ranked[-1] if type(token) is not str)
            reader.expect(False, f"{field}[{at}]", "tokens (strings)", wrong)
            return []
    return ranked


def _read_perturbed_ids(reader: CellReader) -> list[str]:
    """Return the ids of a record's perturbed records."""
    kind, value = reader.row.get("sample_type"), reader.row.get("rel_ids")
    known = isinstance(kind, str) and kind in ("ori", "disturb")
    if (
        not reader.expect(known, "sample_type", "'ori' or 'disturb'", kind, "choice")
        or kind == "disturb"
        or value is None
    ):
        return []
    others = as_list(value)
    sound = others is not None and all(isinstance(other, int | str) and type(other) is not bool for other in others)
    if not reader.expect(sound, "rel_ids", "a list of ids", value):
        return []
    names = [str(other) for other in others or ()]
    once = "each perturbed record once and not the record itself"
    sound = reader.expect(len({*names, reader.name}) > len(names), "rel_ids", once, names, "id-twice")
    return names if sound else []


def _describe_share(rows: Mapping[str, Row], tops: Ranked, records: Mapping[str, Row], issues: Issues) -> str:
    """Return the share of ranked tokens, for the signature: the rows' kd, or as measured, or "unknown"."""
    shares: dict[str, None] = {}
    for name, row in rows.items():
        value = row.get("kd")
        numbers = [as_number(share) for share in (as_list(value) or [value])]
        sound = value is None or all(share is not None and 0 < share <= 1 for share in numbers)
        CellReader(row, name, issues).expect(sound, "kd", "a share in (0, 1], or one per sequence", value, "range")
        shares[",".join(f"{share:g}" for share in dict.fromkeys(numbers) if share is not None)] = None
    if list(shares) != [""]:
        return "kd " + " or ".join(filter(None, shares))
    kept = whole = 0
    for name, sequences in tops.items():
        tokens = as_list(records[name].get("tokens")) if name in records else None
        if not tokens:
            return "unknown"
        kept += sum(map(len, sequences))
        whole += sum(len(as_list(sequence) or ()) for sequence in tokens)
    return f"{kept / whole:.3g} of the tokens" if whole else "unknown"


class PerturbationMap(Batches, evaluate.Metric):  # type: ignore[misc]  # evaluate is untyped
    """Mean average precision (MAP) of original/perturbed pairs.

    MAP measures how far the ranking of an input's tokens by importance is kept when the input is perturbed in a way
    that should not change the model's decision: faithfulness without erasing.

    Args:
        predictions: rows {id, rationale_tokens}; rationale_tokens holds, per sequence of the input, the tokens
            that make its rationale, most important first: [[token, ..], ..]; the authors cut each ranking to
            its first ceil(kd n) of n tokens. Optional: kd, the share (or one per sequence), and ranked_tokens,
            all tokens of each sequence, most important first.
        references: rows {id, sample_type, rel_ids}; sample_type is "ori" or "disturb"; rel_ids names the
            perturbed records of an original one. Rows of bilingual_perturbation are accepted as they are; of
            their tokens the signature takes the share that was ranked, where rows have no kd.
        only_predicted: leave out pairs of which a record has no prediction; by default they are an error.
        paper: "wang2022": the mean is over all perturbed records of the references, as in the authors' code;
            those without a prediction, or named by no original, count 0.
        per_instance: adds the scores of each original record (the mean over its pairs).
        confidence_level, n_resamples, seed: add KEY_ci: [low, high], the BCa interval over original records.
        cluster_by: the rows that are drawn together: "auto" (those that share documents, or an original with its
            perturbed records), "none", or a column of the rows.
        by: a column of the rows; adds the scores per value of it.
        label_names: names of the class numbers in that column.

    Returns:
        map: equation 2; map_prefix_hits: the earlier form, in which token j counts if it stands among the
        original's first j; map_full_ranking: map of ranked_tokens, where there are some; all in [0, 1], higher
        is better; pairs: how many; signature, with what was ranked.

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

    SOURCE = FINE_GRAINED
    INPUTS = (
        (PERTURBATION_ROW, ("id", "rationale_tokens", "kd", "ranked_tokens")),
        (PERTURBATION_RECORD, ("id", "sample_type", "rel_ids")),
    )
    HIGHER_IS_BETTER, RANGES = make_info(SCORES)

    def _measure(
        self,
        predictions: Sequence[Row] | None,
        references: Sequence[Row] | None,
        only_predicted: bool = False,
        paper: str | None = None,
    ) -> Measured:
        """Compute per original record with perturbed ones the sums of the scores over its pairs, and their number.

        A pair's score is the mean over its sequences.
        """
        check_paper(paper, WANG2022)
        if not predictions or not references:
            raise InputError(f"expected {'references' if predictions else 'predictions'}, found none", "empty")
        issues = Issues()
        rows, records = index_by_id(predictions, "prediction", issues), index_by_id(references, "reference", issues)
        pairs = [
            (name, other)
            for name, record in records.items()
            for other in _read_perturbed_ids(CellReader(record, name, issues, "reference"))
        ]
        wanted = dict.fromkeys([*records, *(other for _, other in pairs)])
        check_partners(rows, wanted, issues, only_predicted or paper == WANG2022)
        present = find_optional_fields([*rows.items()], (FULL, "kd"), issues)
        ranked = {
            field: {name: _read_sequences(CellReader(row, name, issues), field) for name, row in rows.items()}
            for field in (TOP, FULL)
            if field == TOP or field in present
        }
        share = _describe_share(rows, ranked[TOP], records, issues)
        issues.raise_if_any()
        scored = [pair for pair in pairs if pair[0] in rows and pair[1] in rows]
        missed = _count_missed(pairs, scored, records) if paper == WANG2022 else {}
        if not scored and not missed:
            raise InputError("expected original records (sample_type 'ori') with rel_ids, found no pair", "empty")
        statistics = _make_statistics(scored, ranked, missed, issues)
        sources = [[records.get(name), rows.get(name)] for name in statistics.ids]
        settings = {"ranked": share} | ({"paper": paper} if paper else describe_scored(len(scored), len(pairs)))
        note = "MAP ranks what is given: no kd in the predictions, no tokens in the references"
        notes = [note] if share == "unknown" else []
        return Measured(statistics, RowColumns(sources), settings, {"pairs": len(scored)}, notes)


def _count_missed(
    pairs: Sequence[tuple[str, str]], scored: Sequence[tuple[str, str]], records: Mapping[str, Row]
) -> dict[str, int]:
    """Count the perturbed records of each original that are not scored; one without original counts for itself."""
    original = {other: name for name, other in reversed(pairs)}
    counted = {other for _, other in scored}
    missed: dict[str, int] = {}
    for name, record in records.items():
        if record.get("sample_type") == "disturb" and name not in counted:
            owner = original.get(name, name)
            missed[owner] = missed.get(owner, 0) + 1
    return missed


def _make_statistics(
    pairs: Sequence[tuple[str, str]], ranked: Mapping[str, Ranked], missed: Mapping[str, int], issues: Issues
) -> Statistics:
    """Return means per original record of the scores of its pairs; those ``missed`` count 0."""
    places = {name: at for at, name in enumerate(dict.fromkeys([*(name for name, _ in pairs), *missed]))}
    owner = np.array([places[name] for name, _ in pairs], dtype=np.int64)
    builder = StatisticsBuilder(len(places))
    for field, tokens in ranked.items():
        width = len(next(iter(tokens.values())))
        for name in dict.fromkeys(name for pair in pairs for name in pair):
            if len(tokens[name]) != width:
                message = f"expected {width} sequences as in the first record, found {len(tokens[name])}"
                issues.add_by_id("prediction", name, field, message, "length")
        issues.raise_if_any()
        each = [average_precision(tokens[name][at], tokens[other][at]) for name, other in pairs for at in range(width)]
        both = np.array(each, dtype=float).reshape(-1, width, 2).mean(axis=1).T
        for key, score in zip(KEYS[field], both, strict=False):
            builder.add_mean(key, score, owner)
            builder.add(None, {"count": np.array([missed.get(name, 0) for name in places])}, source=key)
    return builder.statistics(list(places))
