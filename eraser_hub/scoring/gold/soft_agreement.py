"""Agreement of soft scores with soft gold, a chunk of predictions at a time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eraser_hub.metrics.agreement import Agreement, AgreementSettings, fill_zeros
from eraser_hub.metrics.joining import MatchedChunk
from eraser_hub.metrics.matching import Matcher
from eraser_hub.metrics.rankings import AUPRC_POLICIES
from eraser_hub.metrics.score_levels import LEVELS
from eraser_hub.metrics.soft_gold import PROBABILISTIC, SCORES, compare_shares, compute_weighted_auprc
from eraser_hub.metrics.statistics_builder import StatisticsBuilder

# settings of agreement that scores of soft gold depend on
SOFT_SETTINGS = ("auprc_no_positives", "unmarked", "marked_rows", "unmarked_rows", "scored", "answered")
Shares = Mapping[tuple[int, int], np.ndarray]


class SoftAgreement(Agreement):
    """Collects the statistics of soft gold, a chunk at a time, beside those of the tokens that any annotator marks.

    The latter check the chunks and count the gold; their scores are left out.

    Args:
        matcher: the matcher of the chunks.
        settings: the settings of the scores.
        shares: (annotation, number of the document) -> share of annotators per token; other documents have none.
    """

    def __init__(self, matcher: Matcher, settings: AgreementSettings, shares: Shares) -> None:
        super().__init__(matcher, settings)
        self.shares, self.outside = shares, 0
        self.soft = StatisticsBuilder(self.marked.size)

    def add(self, chunk: MatchedChunk, waits: bool = True) -> None:
        """Check a chunk, and add its statistics if there are no issues so far."""
        super().add(chunk, waits)
        used = self.matcher.fields.used
        if not waits or self.rules.collect() or "soft" not in used:
            return
        if not chunk.p.answered.all():
            chunk = fill_zeros(chunk, used)
        p, no_positives = chunk.p, AUPRC_POLICIES[self.settings.auprc_policy]
        ends = np.cumsum(np.maximum(p.soft, 0))
        chosen = np.flatnonzero(p.soft > 0)
        values = np.full((chosen.size, 1 + len(SCORES)), np.nan)
        for at, rationale in enumerate(chosen.tolist()):
            scores = p.soft_scores[ends[rationale] - p.soft[rationale] : ends[rationale]]
            owner, doc = int(chunk.rows[chunk.owner[rationale]]), int(chunk.doc[rationale])
            shares = self.shares.get((owner, doc), np.zeros(scores.size))
            own = compare_shares(shares, scores)
            self.outside += int(np.isnan(own[PROBABILISTIC[0]]))
            values[at] = compute_weighted_auprc(shares, scores, no_positives), *own.values()
        self.soft.rows = chunk.rows
        for key, column in zip(("auprc", *SCORES), values.T, strict=True):
            self.soft.add_mean(key, column, chunk.owner[chosen])

    def finish(self) -> None:
        """Take the columns of soft gold; without scores of probabilities if some documents have none.

        The other documents would be no fair sample.
        """
        super().finish()
        self.builder = self.soft
        for key in PROBABILISTIC if self.outside else ():
            self.builder.remove_mean(key)

    def signature_settings(self) -> dict[str, object]:
        """Return the settings that scores of soft gold depend on."""
        return {key: value for key, value in super().signature_settings().items() if key in SOFT_SETTINGS}

    def compute_levels(self) -> dict[str, dict[str, float]]:
        """Return no levels: those of hard gold are none of soft gold's."""
        return {level: {} for level in LEVELS}

    def extra(self) -> dict[str, object]:
        """Return no scores of all annotations."""
        return {}

    def notes(self) -> list[str]:
        """Return also a line on scores that are left out because predictions are no probabilities."""
        words = f"left out: {' and '.join(PROBABILISTIC)} ({self.outside:,} documents have scores outside 0 .. 1)"
        return [*super().notes(), *([words] if self.outside else [])]
