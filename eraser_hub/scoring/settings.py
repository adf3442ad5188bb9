"""Settings of scoring."""

from __future__ import annotations

from dataclasses import dataclass, replace

from eraser_hub.metrics.agreement import UNMARKED
from eraser_hub.metrics.clusters import AUTO
from eraser_hub.metrics.issues import check_choice
from eraser_hub.metrics.rankings import AUPRC_POLICIES
from eraser_hub.metrics.resampling import check_settings
from eraser_hub.metrics.sources import PAPERS, check_paper
from eraser_hub.records.arguments import GoldForm
from eraser_hub.records.errors import DataError
from eraser_hub.schema.instance import AOPC_THRESHOLDS


@dataclass(frozen=True)
class ScoreSettings:
    """Settings of scoring.

    Attributes:
        iou_thresholds: as asked for; the flat keys of the first (or of 0.5, where it is among them) have no suffix.
        aopc_thresholds: those that every instance must have; None: those that most instances have.
        strict: demand labels, class scores and comprehensiveness scores.
        auprc_policy: what a document without positives counts, see `rankings.AUPRC_POLICIES`.
        random_baseline: shuffles of the soft scores to average; 0: none.
        sentence_threshold: a sentence is predicted from this score on.
        unmarked: "score" or "skip" annotations without gold rationale in agreement; None: skip them, but score those of
            the configurations that this package builds.
        per_instance: keep every score of every instance.
        confidence_level, n_resamples, seed: of intervals, see `intervals.intervals`.
        minimum_effect: smallest difference that matters where the scores are compared, see `comparison.Inference`.
        by: a column of the annotations to break scores down by.
        cluster_by: what intervals and tests draw together, see `clusters.clustered`.
        only_predicted: leave out annotations without an instance.
        fidelity: also score normalised fidelity, where the predictions have its fields.
        allow_empty: records of the perturbation benchmark may hold nothing that can be scored.
        paper: whose choices are made; see `metrics.sources`.
        gold: form of the gold rationales, see `gold.forms`.
        people: also score each annotator against the others, where annotators are known.
        totals_only: keep no row per annotation where the rest of the settings does not need any: less memory.
    """

    iou_thresholds: tuple[float, ...] = (0.5,)
    aopc_thresholds: tuple[float, ...] | None = AOPC_THRESHOLDS
    strict: bool = False
    auprc_policy: str = "reference"
    random_baseline: int = 0
    sentence_threshold: float = 0.5
    unmarked: str | None = None
    per_instance: bool = False
    confidence_level: float | None = None
    n_resamples: int | None = None
    seed: int = 0
    minimum_effect: float = 0.0
    by: str | None = None
    cluster_by: str = AUTO
    only_predicted: bool = False
    fidelity: bool = False
    allow_empty: bool = False
    paper: str | None = None
    gold: GoldForm = "evidence"
    people: bool = True
    totals_only: bool = False

    @property
    def totals(self) -> bool:
        """True if sums over all annotations suffice, so that no row per annotation is kept."""
        rows = self.per_instance or self.by is not None
        return self.totals_only and not rows and self.confidence_level is None and self.n_resamples is None

    def everything(self, pairs: bool = False) -> ScoreSettings:
        """Return these settings with everything that reports show: per instance, by class, every block."""
        options = {"per_instance": True, "by": None if pairs else "classification", "fidelity": True}
        return replace(self, **options, allow_empty=True, aopc_thresholds=None)  # type: ignore[arg-type]

    def plain(self) -> ScoreSettings:
        """Return these settings for scores alone: no intervals, no values of instances or classes."""
        return replace(self, fidelity=True, aopc_thresholds=None, confidence_level=None, n_resamples=None)

    def of_module(self, *names: str) -> dict[str, object]:
        """Return the keyword arguments of a metric module's statistics, and further settings by name."""
        part = {"only_predicted": True} if self.only_predicted else {}
        return {"cluster_by": self.cluster_by, **part} | {name: getattr(self, name) for name in names}

    def check(self) -> None:
        """Raise a ValueError for a setting out of its range."""
        for name, low in (("iou_thresholds", False), ("aopc_thresholds", True)):
            values = getattr(self, name)
            if values is not None and not values:
                raise DataError(f"{name}: expected at least one", rule="option-value")
            for value in values or ():
                if not (0 <= value <= 1 if low else 0 < value <= 1):
                    expected = "[0, 1]" if low else "(0, 1]"
                    raise DataError(f"{name}: expected a number in {expected}, found {value}", rule="option-value")
        check_choice(self.auprc_policy, AUPRC_POLICIES, "auprc_policy")
        if self.unmarked is not None:
            check_choice(self.unmarked, UNMARKED, "unmarked")
        check_paper(self.paper, *PAPERS)
        if self.random_baseline < 0:
            words = f"random_baseline: expected a number of shuffles, found {self.random_baseline}"
            raise DataError(words, rule="option-value")
        check_settings(self.confidence_level, self.n_resamples, self.seed)
