"""Agreement of annotators with each other (alpha, Fleiss' kappa) and with a majority (Cohen's kappa, P, R, F1).

Two forms of rows are read: one a text, {annotation_id, annotators: [[0, 1, ..], ..]}, with or without ``labels`` and
``annotator_names``; and one a text and person, {annotation_id, annotator, label, rationale_positions, num_tokens}, as
imported corpora hold them in ``annotators/NAME.parquet``.

Sources: DeYoung et al. (2020), Table 2; Krippendorff (2004), Content Analysis, 11.3; Fleiss (1971); Cohen (1960).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from .errors import DataError, cut
from .rows import find_fault, join_rows, row_id, simplify
from .statistics import Columns, Measured, Score, Statistics, divide, find_components, mean, mean_columns, number_values

ANNOTATOR_ROW: dict[str, Any] = {
    "annotators": [()],
    "labels": [()],
    "rationale_positions": [[int]],
    "num_tokens": [int],
    "annotator_names": [(str, int)],
    **dict.fromkeys(("annotator", "label", "split"), (str, int)),
}
MAJORITY_KEYS = ("cohen_kappa", "p", "r", "f1")
MIN_VARIANCE = 1e-14  # variances below it (some spacings of numbers below 1) are rounding


@dataclass
class AnnotatedText:
    """The marks and labels of a text's annotators.

    Attributes:
        id: of the text.
        row: its first row, for further columns.
        names: the annotators whose marks are known.
        masks: of each of them, the tokens of all documents that are marked: bool (tokens,).
        lengths: number of tokens of each document.
        labels: annotator -> label; those whose label is known.
    """

    id: str
    row: Mapping[str, Any]
    names: list[str] = field(default_factory=list)
    masks: list[np.ndarray] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def marks(self) -> np.ndarray:
        """The masks as one array: bool (annotators, tokens)."""
        return np.array(self.masks, bool).reshape(len(self.names), sum(self.lengths))

    def documents(self) -> list[np.ndarray]:
        """Return the marks of each document: bool (annotators, tokens)."""
        return np.split(self.marks, np.cumsum(self.lengths)[:-1], axis=1)


def read_annotated_texts(rows: Sequence[Mapping[str, Any]]) -> list[AnnotatedText]:
    """Return the texts of rows of either form, in the rows' order.

    Equal ids of two splits are two texts, SPLIT/ID.

    Raises:
        DataError: marks that are no marks, of another length, or of one person twice.
    """
    texts: dict[tuple[str, str], AnnotatedText] = {}
    for number, raw in enumerate(rows):
        name, row = row_id(raw), simplify(raw)
        if name is None:
            raise DataError("expected an id (string or integer), found none", field=f"rows[{number}]")
        if fault := find_fault(row, ANNOTATOR_ROW):
            raise DataError(fault[1], instance=name, field=fault[0])
        text = texts.setdefault((str(row.get("split", "")), name), AnnotatedText(name, raw))
        for person, label, marks, lengths in read_people(row, name):
            if person in text.names or person in text.labels:
                message = f"expected each annotator of a text once, found {person!r} again"
                raise DataError(message, instance=name, field="annotator")
            if marks is not None and text.names and lengths != text.lengths:
                message = f"expected the tokens of the annotators before, {cut(text.lengths)}, found {cut(lengths)}"
                raise DataError(message, instance=name, field="annotators" if "annotators" in row else "num_tokens")
            text.labels |= {} if label is None else {person: str(label)}
            if marks is not None:
                text.lengths = lengths
                text.names.append(person)
                text.masks.append(marks)
    counts = Counter(name for _, name in texts)
    for (split, name), text in texts.items():
        text.id = name if counts[name] == 1 else f"{split}/{name}"
    return list(texts.values())


def read_people(row: Mapping[str, Any], name: str) -> Iterator[tuple[str, Any, np.ndarray | None, list[int]]]:
    """Yield each annotator of a row: name, label and marks (None: unknown), number of tokens of each document.

    Raises:
        DataError: marks or names that do not fit.
    """
    if "annotators" in row:
        several = row["annotators"]
        names = row.get("annotator_names", range(1, len(several) + 1))
        labels = row.get("labels", [None] * len(several))
        for field, found in (("annotator_names", names), ("labels", labels)):
            if len(found) != len(several):
                message = f"expected {len(several)} values, one per annotator, found {cut(found)}"
                raise DataError(message, instance=name, field=field)
        for number, (person, label, marks) in enumerate(zip(names, labels, several, strict=True)):
            if marks is not None and not (isinstance(marks, list) and marks and all(mark in (0, 1) for mark in marks)):
                message = f"expected a list of 0 and 1, one per token, found {cut(marks)}"
                raise DataError(message, instance=name, field=f"annotators[{number}]")
            yield str(person), label, None if marks is None else np.array(marks, bool), [len(marks or ())]
        return
    if "annotator" not in row:
        raise DataError("expected annotators, or the name of one, found neither", instance=name, field="annotators")
    positions, lengths = row.get("rationale_positions"), row.get("num_tokens", [])
    if positions is None:
        yield str(row["annotator"]), row.get("label"), None, []
        return
    if len(positions) != len(lengths):
        message = f"expected the number of tokens of {len(positions)} documents, found {cut(lengths)}"
        raise DataError(message, instance=name, field="num_tokens")
    for number, (marked, size) in enumerate(zip(positions, lengths, strict=True)):
        if not all(0 <= position < size for position in marked):
            message = f"expected token positions from 0 to {size - 1}, found {cut(marked)}"
            raise DataError(message, instance=name, field=f"rationale_positions[{number}]")
    parts = [np.isin(np.arange(size), marked) for marked, size in zip(positions, lengths, strict=True)]
    yield str(row["annotator"]), row.get("label"), np.concatenate([np.zeros(0, bool), *parts]), lengths


def majority(marks: np.ndarray) -> np.ndarray:
    """Return the tokens that more than half of the annotators mark: bool (tokens,).

    A tie is no majority: the majority of two annotators marks the tokens that both mark.

    Args:
        marks: bool (annotators, tokens).
    """
    return np.asarray(2 * marks.sum(axis=0) > len(marks))


def majority_of_others(marks: np.ndarray) -> np.ndarray:
    """Return for each annotator the tokens that more than half of the others mark: bool (annotators, tokens)."""
    return np.asarray(2 * (marks.sum(axis=0) - marks) > len(marks) - 1)


def compare_marks(marks: np.ndarray, truth: np.ndarray) -> dict[str, np.ndarray]:
    """Compare the marks of each annotator with a truth.

    Args:
        marks: bool (annotators, tokens).
        truth: bool (tokens,), or (annotators, tokens).

    Returns:
        {"cohen_kappa", "p", "r", "f1"}: (annotators,). kappa in [-1, 1], NaN where both sides mark everything or both
        nothing (chance agreement is then complete); p, r and f1 in [0, 1], 0 where a side is empty.

    >>> marks = np.array([[1, 1, 0, 0], [1, 0, 0, 0]], bool)
    >>> {key: value.round(3).tolist() for key, value in compare_marks(marks, majority(marks)).items()}
    {'cohen_kappa': [0.5, 1.0], 'p': [0.5, 1.0], 'r': [1.0, 1.0], 'f1': [0.667, 1.0]}
    """
    n, marked, gold = max(marks.shape[1], 1), marks.sum(axis=1), truth.sum(axis=-1)
    both, agreed = (marks & truth).sum(axis=1), (marks == truth).sum(axis=1)
    by_chance = (marked * gold + (n - marked) * (n - gold)) / n**2
    return {
        "cohen_kappa": divide(agreed / n - by_chance, 1 - by_chance, np.nan),
        "p": divide(both, marked),
        "r": divide(both, gold),
        "f1": divide(2 * both, marked + gold),
    }


def count_coincidences(prefix: str, codes: Sequence[np.ndarray], n_codes: int) -> dict[str, np.ndarray]:
    """Return the columns of alpha and Fleiss' kappa.

    Args:
        prefix: of the columns' names.
        codes: of each text the codes, from 0, that annotators gave to its items: int (annotators, items).
        n_codes: the number of codes.

    Returns:
        coincidences: the pairs of codes of an item, each weighted by 1 / (annotators - 1): (texts, codes^2); agreeing:
        the sum over items of the share of agreeing pairs of annotators; items: of two annotators or more.
    """
    coincidences, agreeing, items = np.zeros((len(codes), n_codes, n_codes)), np.zeros(len(codes)), np.zeros(len(codes))
    for at, given in enumerate(codes):
        m = len(given)
        if m > 1:
            counts = (given[:, :, None] == np.arange(n_codes)).sum(axis=0)
            coincidences[at] = (counts.T @ counts - np.diag(counts.sum(axis=0))) / (m - 1)
            agreeing[at], items[at] = np.trace(coincidences[at]) / m, len(counts)
    flat = coincidences.reshape(len(codes), -1)
    return {f"{prefix}coincidences": flat, f"{prefix}agreeing": agreeing, f"{prefix}items": items}


def make_nominal_scores(prefix: str) -> dict[str, Score]:
    """Return Krippendorff's alpha (nominal) and Fleiss' kappa of the columns of `count_coincidences`.

    With o the share of coincidences of equal codes, e the expected one (the sum of squared shares of codes) and n the
    number of codes given: alpha = 1 - (n - 1) / n (1 - o) / (1 - e); kappa = (agreeing / items - e) / (1 - e), in which
    items count alike, however many annotators they have. NaN where only one code occurs.
    """

    def expect(sums: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        flat = sums[f"{prefix}coincidences"]
        side = math.isqrt(flat.shape[-1])
        table = flat.reshape(*flat.shape[:-1], side, side)
        n = table.sum(axis=(-2, -1))
        by_chance = 1 - (divide(table.sum(axis=-1), n[..., None], np.nan) ** 2).sum(axis=-1)
        # the tolerance is for sums of thirds: with one code the difference is rounding
        return n, np.trace(table, axis1=-2, axis2=-1), np.where(by_chance <= 1e-9, 0.0, by_chance)

    def alpha(sums: Columns) -> np.ndarray:
        n, equal, by_chance = expect(sums)
        return 1 - divide((n - 1) * divide(n - equal, n**2, np.nan), by_chance, np.nan)

    def fleiss(sums: Columns) -> np.ndarray:
        observed, by_chance = divide(sums[f"{prefix}agreeing"], sums[f"{prefix}items"], np.nan), expect(sums)[2]
        return divide(observed - 1 + by_chance, by_chance, np.nan)

    return {f"{prefix}krippendorff_alpha": Score(alpha, low=-1.0), f"{prefix}fleiss_kappa": Score(fleiss, low=-1.0)}


def deviation(key: str) -> Callable[[Columns], np.ndarray]:
    """Return the function that computes the standard deviation (population) over all (text, annotator) of a score."""

    def compute(sums: Columns) -> np.ndarray:
        count = sums[f"{key}.count"]
        variance = divide(sums[f"{key}.squares"], count, np.nan) - divide(sums[f"{key}.sum"], count, np.nan) ** 2
        return np.asarray(np.sqrt(np.where(variance < MIN_VARIANCE, 0 * variance, variance)))

    return compute


TOKEN_SCORES: dict[str, Score] = {
    **make_nominal_scores(""),
    "leave_one_out_f1": Score(mean("leave_one_out_f1")),
    **{key: Score(mean(key), low=-1.0 if key == "cohen_kappa" else 0.0) for key in MAJORITY_KEYS},
    **{f"{key}_std": Score(deviation(key), higher_is_better=None) for key in MAJORITY_KEYS},
}
LABEL_SCORES = make_nominal_scores("label_")


def compute_annotator_statistics(texts: Sequence[AnnotatedText]) -> Statistics:
    """Return the columns and scores of texts; scores of tokens count those with the marks of two annotators or more.

    Clusters are the texts that share documents (``docids``, or ``documents``, of their rows).

    Raises:
        DataError: no text has the marks or the labels of two annotators.
    """
    n = len(texts)
    columns: dict[str, np.ndarray] = {}
    scores: dict[str, Score] = {}
    several = [at for at, text in enumerate(texts) if len(text.names) > 1]
    if several:
        marks = [texts[at].marks for at in several]
        owner = np.repeat(several, list(map(len, marks)))
        compared = [compare_marks(each, majority(each)) for each in marks]
        left_out = [(each, majority_of_others(each)) for each in marks]
        # nothing marked on both sides is no document of token_macro_f1 either
        f1 = [np.where((a | b).any(axis=1), compare_marks(a, b)["f1"], np.nan) for a, b in left_out]
        columns |= mean_columns("leave_one_out_f1", np.concatenate(f1), owner, n)
        for key in MAJORITY_KEYS:
            values = np.concatenate([each[key] for each in compared])
            columns |= mean_columns(key, values, owner, n)
            columns[f"{key}.squares"] = mean_columns(key, values**2, owner, n)[f"{key}.sum"]
        columns |= count_coincidences("", [text.marks.astype(int) for text in texts], 2)
        scores |= TOKEN_SCORES
    labels = sorted({label for text in texts for label in text.labels.values()})
    if any(len(text.labels) > 1 for text in texts):
        codes = [np.array([[labels.index(label)] for label in text.labels.values()]) for text in texts]
        columns |= count_coincidences("label_", codes, len(labels))
        scores |= LABEL_SCORES
    if not scores:
        raise DataError("nothing to score: expected a text with the marks of two annotators", field="annotators")
    docids = [
        simplify(text.row.get("docids")) or [document["docid"] for document in text.row.get("documents") or ()]
        for text in texts
    ]
    clusters = find_components(np.repeat(np.arange(n), list(map(len, docids))), number_values(chain(*docids)), n)
    return Statistics([text.id for text in texts], columns, scores, clusters, "documents" if any(docids) else "none")


def measure_annotators(
    predictions: Sequence[Mapping[str, Any]],
    references: Sequence[Mapping[str, Any]],
    only_predicted: bool = False,
) -> Measured:
    """Measure agreement of annotators.

    Args:
        predictions: rows of annotators; or none, and they are the references.
        references: with predictions: rows with further columns, one a text.
        only_predicted: leave out references without a text, in place of an error.

    Returns:
        Further entries are "comparisons", the number of (text, annotator), and "undefined_kappas", those without one.

    Raises:
        DataError: wrong rows, or nothing to score.
    """
    texts = read_annotated_texts(predictions or references)
    settings: dict[str, object] = {}
    if predictions and references:
        by_id = {text.id: text for text in texts}
        joined = join_rows([{"id": text.id} for text in texts], references, only_predicted)
        texts = [replace(by_id[name], row={**reference, **by_id[name].row}) for name, _, reference in joined]
        if len(joined) < len(references):
            settings["scored"] = f"{len(joined)}/{len(references)}"
    statistics = compute_annotator_statistics(texts)
    counts = {key: int(statistics.columns.get(f"{key}.count", np.zeros(0)).sum()) for key in ("f1", "cohen_kappa")}
    extra: dict[str, object] = {"comparisons": counts["f1"], "undefined_kappas": counts["f1"] - counts["cohen_kappa"]}
    few = sum(len(text.names) < 2 for text in texts)
    notes = [f"scores of tokens leave out texts with the marks of fewer than two annotators: {few:,}"] if few else []
    return Measured(statistics, settings, extra, notes)
