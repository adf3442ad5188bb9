"""Additive columns of the agreement of annotators, and the scores of their sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .annotator_rows import AnnotatedText
from .annotators import KEYS, agreement
from .nominal_agreement import NominalAgreement, get_expected_kappa
from .statistics_builder import divide

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


class AnnotatorColumns:
    """Columns of all scores, and the scores of their sums.

    Args:
        texts: the texts; scores of tokens count those with the marks of two annotators or more.

    Attributes:
        values: a row of columns per text, float64 (texts, columns).
        means: the means of `annotators.KEYS` over each text's annotators, float64 (texts, 4).
    """

    def __init__(self, texts: Sequence[AnnotatedText]) -> None:
        self.texts = [text if len(text.names) > 1 else AnnotatedText(text.row, labels=text.labels) for text in texts]
        self.tokens = NominalAgreement([text.names for text in self.texts], 2, strict=True)
        codes = dict.fromkeys(label for text in texts for label in text.labels.values())
        self.codes = {label: code for code, label in enumerate(sorted(codes))}
        people = [[*text.labels] for text in texts]
        has_labels = any(len(own) > 1 for own in people)
        self.labels = NominalAgreement(people, len(codes), strict=False, prefix="label_") if has_labels else None
        self.sizes = sorted({len(text.names) for text in self.texts if len(text.names) > 1})
        labels = self.labels.width if self.labels else 0
        # the last: marks, tokens times annotators, and the comparisons of each number of annotators
        widths = (10, self.tokens.width, labels, 2 + len(self.sizes))
        bounds = np.cumsum([0, *widths])
        self._places = [slice(*bounds[at : at + 2]) for at in range(len(widths))]
        self.values, self.means = np.zeros((len(texts), bounds[-1])), np.full((len(texts), len(KEYS)), np.nan)
        for at in range(len(texts)):
            self._count(at)

    def _count(self, at: int) -> None:
        """Fill a text's columns and means."""
        text, values, means = self.texts[at], self.values[at], self.means[at]
        own, tokens, labels, random = self._places
        if len(text.names) > 1:
            m = len(text.names)
            values[random] = text.marks.sum(), text.marks.size, *(m * (size == m) for size in self.sizes)
            values[own] = _sum_agreement(text.marks, means)
            values[tokens] = self.tokens.count(text.marks.astype(int), text.names)
        if self.labels is not None:
            codes = np.array([[self.codes[label]] for label in text.labels.values()], int)
            values[labels] = self.labels.count(codes, [*text.labels])

    def finalize(self, sums: np.ndarray) -> Mapping[str, np.ndarray]:
        """Return the scores of sums of columns."""
        own, tokens, labels, random = (sums[..., place] for place in self._places)
        share = divide(random[..., 0], random[..., 1], np.nan)
        by_size = {size: random[..., 2 + at] for at, size in enumerate(self.sizes)}
        scores = _finalize(own) | {"cohen_kappa_random": get_expected_kappa(share, by_size)}
        scores |= self.tokens.finalize(tokens)
        return scores if self.labels is None else scores | self.labels.finalize(labels)

    def notes(self) -> list[str]:
        """Return a line on texts and kappas that are left out."""
        lines = []
        if single := sum(len(text.names) < 2 for text in self.texts):
            lines.append(
                f"texts with the marks of fewer than two annotators, which no score of tokens counts: {single:,}"
            )
        for measure in (self.tokens, self.labels):
            if measure is not None and measure.left_out:
                keys = " and ".join(f"{measure.prefix}{key}" for key in ("pairwise_kappa", "leave_one_out_kappa"))
                lines.append(f"{keys} are left out: too many annotators; {measure.prefix}krippendorff_alpha takes them")
        return lines


def _sum_agreement(marks: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return the sums over annotators of each score and of its square, and the counts of kappas and comparisons."""
    values, scores = np.zeros(10), agreement(marks)
    defined = ~np.isnan(scores["cohen_kappa"])
    for number, key in enumerate(KEYS):
        one = scores[key][defined] if key == "cohen_kappa" else scores[key]
        values[2 * number : 2 * number + 2] = one.sum(), (one**2).sum()
        means[number] = one.mean() if len(one) else np.nan
    values[8:] = defined.sum(), len(marks)
    return values
