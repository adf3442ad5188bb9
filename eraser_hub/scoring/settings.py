"""How predictions are scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from eraser_hub.metrics.errors import DataError, check_choice, cut
from eraser_hub.metrics.ranking import AUPRC_POLICIES, AgreementSettings
from eraser_hub.metrics.statistics import DEFAULT_LEVEL, DEFAULT_RESAMPLES, check_inference
from eraser_hub.records.arguments import GoldForm


@dataclass(frozen=True)
class ScoreSettings:
    """How predictions are scored.

    Attributes:
        iou_thresholds: of IOU, in (0, 1]; keys of .5 (else of the first) have no suffix.
        aopc_thresholds: those that every instance must have; None: those of the first.
        auprc_policy: AUPRC of a document without evidence: reference (0.5), skip, zero or one.
        sentence_threshold: the least score of a predicted sentence.
        unmarked: "score" or "skip" annotations without gold rationale in agreement; None: skip them, but score those of
            the configs that this package builds.
        gold: gold rationales: evidence, or the majority or union of the annotators' marks.
        only_predicted: score only annotations with an instance.
        by: break the scores down by this field of the annotations.
        cluster_by: what intervals and tests draw together: "auto" (annotations that share a document), "none", or a
            field of the annotations.
        per_instance: keep every score of every annotation.
        confidence_level, n_resamples, seed: of intervals; None for both: no intervals.
        paper: make the choices of this paper's code: eraser or wang2022.
        people: score each annotator against the majority of the others, where annotators are known.
        keep_rows: keep the columns of every annotation, for `compare`.
    """

    iou_thresholds: Sequence[float] = (0.5,)
    aopc_thresholds: Sequence[float] | None = None
    auprc_policy: str = "reference"
    sentence_threshold: float = 0.5
    unmarked: str | None = None
    gold: GoldForm = "evidence"
    only_predicted: bool = False
    by: str | None = None
    cluster_by: str = "auto"
    per_instance: bool = False
    confidence_level: float | None = None
    n_resamples: int | None = None
    seed: int = 0
    paper: str | None = None
    people: bool = True
    keep_rows: bool = False

    @property
    def with_intervals(self) -> bool:
        """Whether scores have intervals."""
        return self.confidence_level is not None or self.n_resamples is not None

    @property
    def by_rows(self) -> bool:
        """Whether the columns of every annotation are needed; else their sums are kept alone."""
        return self.keep_rows or self.per_instance or self.with_intervals or self.by is not None

    @property
    def agreement(self) -> AgreementSettings:
        """The settings of agreement scores."""
        thresholds = list(dict.fromkeys(map(float, self.iou_thresholds)))
        main = 0.5 if 0.5 in thresholds else thresholds[0]
        unmarked = self.unmarked or "score"
        return AgreementSettings(main, thresholds, self.auprc_policy, self.sentence_threshold, unmarked, chance=True)

    def check(self) -> None:
        """Raise a `DataError` for a setting out of its range."""
        for name, least, end in (("iou_thresholds", 1e-300, "(0"), ("aopc_thresholds", 0.0, "[0")):
            values = getattr(self, name)
            if values is not None and not (len(values) and all(least <= value <= 1 for value in values)):
                raise DataError(f"expected numbers in {end}, 1], found {cut(list(values))}", argument=name)
        check_choice(self.auprc_policy, AUPRC_POLICIES, "auprc_policy")
        check_choice(self.unmarked or "score", ("score", "skip"), "unmarked")
        check_choice(self.gold, get_args(GoldForm), "gold")
        check_choice(self.paper or "eraser", ("eraser", "wang2022"), "paper")
        check_inference(
            DEFAULT_LEVEL if self.confidence_level is None else self.confidence_level,
            DEFAULT_RESAMPLES if self.n_resamples is None else self.n_resamples,
            self.seed,
            "resamples",
        )
