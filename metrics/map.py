"""MAP of original/perturbed pairs: how far the ranking of an input's tokens is kept when the input is perturbed.

Also what the two scores of the bilingual perturbation benchmark read alike: checked rows, and their clusters.

Source: Wang et al. (2022), "A Fine-grained Interpretability Evaluation Benchmark for Neural NLP", equation 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from .errors import DataError, check_choice, cut
from .rows import find_fault, index_rows, join_rows, simplify
from .statistics import Measured, Score, Statistics, find_components, mean, mean_columns, number_values

WANG2022 = """\
@inproceedings{wang2022finegrained,
  title = {A Fine-grained Interpretability Evaluation Benchmark for Neural {NLP}},
  author = {Wang, Lijie and others},
  booktitle = {Proceedings of the 26th Conference on Computational Natural Language Learning (CoNLL)},
  year = {2022},
  url = {https://aclanthology.org/2022.conll-1.6/}
}
"""
PAPERS = ("wang2022",)  # whose denominators the setting ``paper`` takes
# the rankings of a row of predictions, and the scores of each
RANKINGS = {"rationale_tokens": ("map", "map_prefix_hits"), "ranked_tokens": ("map_full_ranking",)}
MAP_SCORES = {key: Score(mean(key)) for key in chain(*RANKINGS.values())}
# fields of the rows and what they hold; (): several types, checked where they are read
PERTURBATION_ROW: dict[str, Any] = {
    "kd": [float],
    "pred_label": (str, int),
    "rationale": [[(str, int)]],
    **{field: [[str]] for field in RANKINGS},
    **dict.fromkeys(("answer", "rationale_pred_label", "non_rationale_pred_label"), str),
    **dict.fromkeys(("pred_proba", "rationale_pred_proba", "non_rationale_pred_proba", "empty_pred_proba"), ()),
}
PERTURBATION_RECORD = {"sample_type": str, "rel_ids": [(str, int)]}


def compare_rankings(original: Sequence[str], perturbed: Sequence[str]) -> tuple[float, float]:
    """Return both forms of the average precision of a perturbed input's ranking; time is linear in the tokens.

    ``map`` = (1/n) sum_i #{j <= i : x_j in original[1..i]} / i, with n = len(perturbed) and repeated tokens each
    counting. ``map_prefix_hits`` = (1/n) sum_i #{j <= i : x_j in original[1..j]} / i.

    Args:
        original: tokens of the original input, most important first.
        perturbed: tokens of the perturbed input, most important first.

    Returns:
        (map, map_prefix_hits), each in [0, 1]; 0 for an empty ``perturbed``.

    >>> compare_rankings(["good", "film"], ["good", "movie"])
    (0.75, 0.75)
    """
    n = len(perturbed)
    if not n:
        return 0.0, 0.0
    first = dict(zip(reversed(original), range(len(original), 0, -1), strict=True))  # the first rank of equal tokens
    ranks, prefixes = np.array([first.get(token, n + 1) for token in perturbed]), np.arange(1, n + 1)
    # token j counts in every prefix from max(j, its rank in the original) on; from n + 1 on: in none
    enters = np.minimum(np.maximum(ranks, prefixes), n + 1)
    hits = np.cumsum(np.bincount(enters, minlength=n + 2)[1 : n + 1])
    return float((hits / prefixes).mean()), float((np.cumsum(ranks <= prefixes) / prefixes).mean())


def check_rows(rows: Mapping[str, Any], fields: Mapping[str, Any], optional: Iterable[str] = ()) -> dict[str, Any]:
    """Return rows by id in plain Python, without fields that are null.

    Args:
        rows: the rows by id; at least one.
        fields: what they hold, as of `find_fault`.
        optional: fields that all rows have, or none.

    Raises:
        DataError: a field that holds something else, a misspelt one, or one that only some rows have.
    """
    plain = {name: simplify(row) for name, row in rows.items()}
    faults = {name: fault for name, row in plain.items() if (fault := find_fault(row, fields))}
    for name, (field, message) in faults.items():
        more = f" (and {len(faults) - 1:,} more)" if len(faults) > 1 else ""
        raise DataError(message + more, instance=name, field=field)
    for field in optional:
        has = [field in row for row in plain.values()]
        if len(set(has)) > 1:
            found = "none, where the rows before have it" if has[0] else "it, where the rows before have none"
            message = f"expected it in all rows or in none, found {found}"
            raise DataError(message, instance=list(plain)[has.index(not has[0])], field=field)
    return plain


def cluster_originals(records: Mapping[str, Mapping[str, Any]]) -> tuple[np.ndarray | None, str]:
    """Return the clusters of records, and their kind: an original and its perturbed records (``rel_ids``) are one."""
    if not any("rel_ids" in record for record in records.values()):
        return None, "none"
    names = [[name, *map(str, record.get("rel_ids") or ())] for name, record in records.items()]
    owner = np.repeat(np.arange(len(names)), list(map(len, names)))
    return find_components(owner, number_values(chain(*names)), len(names)), "original"


def read_pairs(references: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the records by id, and the ids of each original and each of its perturbed records.

    Raises:
        DataError: a record that is neither, or perturbed records that are no ids or not distinct.
    """
    listed = index_rows(references, "references")
    cells = {name: {field: row.get(field) for field in PERTURBATION_RECORD} for name, row in listed.items()}
    records, pairs = check_rows(cells, PERTURBATION_RECORD), []
    for name, record in records.items():
        kind, related = record.get("sample_type"), list(map(str, record.get("rel_ids", ())))
        if kind not in ("ori", "disturb"):
            raise DataError(f"expected 'ori' or 'disturb', found {cut(kind)}", instance=name, field="sample_type")
        if len({name, *related}) <= len(related):
            message = f"expected each perturbed record once and not the record itself, found {cut(related)}"
            raise DataError(message, instance=name, field="rel_ids")
        pairs += [(name, other) for other in related if kind == "ori"]
    return records, pairs


def measure_map(
    predictions: Sequence[Mapping[str, Any]],
    references: Sequence[Mapping[str, Any]],
    only_predicted: bool = False,
    paper: str | None = None,
) -> Measured:
    """Measure MAP: an annotation is an original record with its perturbed ones, its score the mean over its pairs.

    A pair's score is the mean over the sequences of the input.

    Args:
        predictions: rows {id, rationale_tokens}, optionally with kd and ranked_tokens.
        references: rows {id, sample_type, rel_ids}; a perturbed record needs no row of its own.
        only_predicted: leave out pairs of which a record has no prediction.
        paper: "wang2022": the mean is over all perturbed records; those that are in no pair count 0.

    Returns:
        A further entry is "pairs": how many are scored.

    Raises:
        DataError: wrong rows, a prediction that is missing, or no pair.
    """
    settings: dict[str, object] = {} if paper is None else {"paper": check_choice(paper, PAPERS, "paper")}
    records, pairs = read_pairs(references)
    wanted = [{"id": name} for name in dict.fromkeys([*records, *(other for _, other in pairs)])]
    joined = join_rows(predictions, wanted, only_predicted or paper is not None)
    rows = check_rows({name: row for name, row, _ in joined}, PERTURBATION_ROW, ("ranked_tokens", "kd"))
    scored = [pair for pair in pairs if pair[0] in rows and pair[1] in rows]
    missed: Counter[str] = Counter()
    if paper is not None:
        original, counted = {other: name for name, other in reversed(pairs)}, {other for _, other in scored}
        perturbed = (name for name, record in records.items() if record["sample_type"] == "disturb")
        missed.update(original.get(name, name) for name in perturbed if name not in counted)
    elif len(scored) < len(pairs):
        settings["scored"] = f"{len(scored)}/{len(pairs)}"
    if not scored and not missed:
        raise DataError("expected originals (sample_type 'ori') with rel_ids, found no pair", argument="references")
    ids = list(dict.fromkeys([*(name for name, _ in scored), *missed]))
    owner = number_values([*(name for name, _ in scored), *missed])[: len(scored)]
    columns: dict[str, np.ndarray] = {}
    width = len(rows[joined[0][0]].get("rationale_tokens", ())) or 1
    for field, keys in RANKINGS.items():
        if field == "ranked_tokens" and field not in rows[joined[0][0]]:
            continue
        for name, row in rows.items():
            if len(row.get(field, ())) != width:
                message = f"expected tokens, most important first, of {width} sequences, found {cut(row.get(field))}"
                raise DataError(message, instance=name, field=field)
        both = [[*map(compare_rankings, rows[name][field], rows[other][field])] for name, other in scored]
        means = np.array(both, float).reshape(-1, width, 2).mean(axis=1).T
        for key, values in zip(keys, means, strict=False):
            columns |= mean_columns(key, values, owner, len(ids))
            columns[f"{key}.count"] += [missed[name] for name in ids]
    scores = {key: score for key, score in MAP_SCORES.items() if f"{key}.count" in columns}
    clusters = cluster_originals({name: records.get(name, {}) for name in ids})
    for name, row in rows.items():
        if not all(0 < share <= 1 and share is not True for share in row.get("kd", ())):
            raise DataError(f"expected shares in (0, 1], found {cut(row['kd'])}", instance=name, field="kd")
    shares = [",".join(f"{share:g}" for share in dict.fromkeys(row["kd"])) for row in rows.values() if "kd" in row]
    settings["kd"] = " or ".join(dict.fromkeys(shares)) or "unknown"
    notes = ["MAP ranks what is given: the predictions have no kd"] if settings["kd"] == "unknown" else []
    return Measured(Statistics(ids, columns, scores, *clusters), settings, {"pairs": len(scored)}, notes)
