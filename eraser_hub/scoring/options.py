"""The arguments of `score` and `compare`, declared once for Python and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from eraser_hub.records.arguments import Revision, Split
from eraser_hub.records.hub import at_revision
from eraser_hub.records.options import NotNegative, Option, Options, Seed, UsageError

if TYPE_CHECKING:  # the command line reads the declarations without waiting for numpy
    from .comparison import Inference
    from .scored_split import ScoredSplit
    from .settings import ScoreSettings

OnlyPredicted = Annotated[
    bool,
    Option(group="Settings of scores", help="Leave out annotations without an instance; the number scored is printed."),
]
_CLUSTERS = "What intervals and tests draw together: auto (annotations that share a document), none, or a field of "
ClusterBy = Annotated[str, Option(group="Uncertainty", help=f"{_CLUSTERS}the annotations.")]
# settings that records of the perturbation benchmark are scored by
_OF_PAIRS = ("confidence_level", "n_resamples", "seed", "only_predicted", "cluster_by", "paper", "totals_only")


@dataclass(frozen=True, kw_only=True)
class AgainstArguments(Options):
    """What predictions are scored against, and how.

    Attributes:
        dataset: A built dataset, e.g. hub/eraser: its folder, or its id on the Hub.
        source: Instead of `dataset`: the corpus as released, with SPLIT.jsonl, and docs/ or docs.jsonl.
        config: The configuration of `dataset`, e.g. movies; with `source` the one whose labels count.
        annotations: An annotation file of `source` other than SPLIT.jsonl.

    Settings of scores:
        iou_thresholds: IOU threshold; repeat it for several.
        aopc_thresholds: AOPC threshold; repeat it for several.
    """

    dataset: Path | None = None
    source: Annotated[Path | None, Option(aliases=("data-dir", "data_dir"))] = None
    config: str | None = None
    split: Split = "test"
    revision: Revision = None
    annotations: Path | None = None
    iou_thresholds: Sequence[float] | None = None
    aopc_thresholds: Sequence[float] | None = None
    cluster_by: ClusterBy = "auto"
    only_predicted: OnlyPredicted = False
    seed: Seed = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.source is None) == (self.dataset is None):
            raise UsageError("give either `dataset` with `config`, or `source`", rule="option-missing")
        if self.dataset is not None and self.config is None:
            raise UsageError("`dataset` needs `config`", rule="option-missing")
        if self.dataset is not None and self.annotations is not None:
            raise UsageError("`annotations` goes with `source`", rule="option-conflict")

    @property
    def scored_split(self) -> ScoredSplit:
        """The split that predictions answer."""
        from .scored_split import ScoredSplit

        dataset = self.dataset and Path(at_revision(str(self.dataset), self.revision))
        return ScoredSplit(self.source, self.split, self.annotations, dataset=dataset, config=self.config)

    def settings(self) -> ScoreSettings:
        """Return how predictions are scored.

        Raises:
            UsageError: a setting out of its range.
        """
        from .settings import ScoreSettings

        names = {one.name for one in fields(self)} & {one.name for one in fields(ScoreSettings)}
        values = {name: getattr(self, name) for name in names}
        values["n_resamples"] = getattr(self, "resamples", None)
        for name in ("iou_thresholds", "aopc_thresholds"):
            if values[name]:
                values[name] = tuple(values[name])
            else:
                del values[name]
        try:
            settings = ScoreSettings(**values, totals_only=True)
            settings.check()
        except ValueError as error:
            raise UsageError(str(error), rule="option-value") from None
        return settings


@dataclass(frozen=True)
class ScoreArguments(AgainstArguments):
    """What is scored, against what and how.

    Attributes:
        predictions: Predictions, jsonl or Parquet: a file, https:// or hf://.
        paper: Make all choices of this paper's code: eraser, wang2022.
        by: Break the scores down by this field of the annotations.

    Settings of scores:
        strict: Demand IOU thresholds, labels, class scores and comprehensiveness scores.
        auprc_policy: AUPRC of a document without evidence: reference (0.5), skip, zero or one.
        random_baseline: Also score this many shuffles of the soft scores (the papers: 10).
        sentence_threshold: A sentence is predicted from this score on.
        per_instance: Add every score of every instance.
        mask_leak: Also score how well the places and number of selected tokens alone predict the model's labels.

    Uncertainty:
        confidence_level: Level of the bootstrap intervals, e.g. 0.95; without it there are none.
        resamples: Bootstrap resamples; 1000 by default.
        ci_method: Bootstrap intervals: bca or percentile.

    Run:
        num_proc: Processes that read predictions (0: more than one for large files).
    """

    predictions: Annotated[str, Option(aliases=("results",))]
    strict: bool = False
    auprc_policy: str = "reference"
    random_baseline: NotNegative = 0
    sentence_threshold: float = 0.5
    confidence_level: float | None = None
    resamples: Annotated[int | None, Option(old=("n-resamples",))] = None
    ci_method: str = "bca"
    per_instance: bool = False
    by: str | None = None
    mask_leak: bool = False
    paper: str | None = None
    num_proc: NotNegative = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.strict and not self.iou_thresholds:
            raise UsageError("`strict` needs `iou_thresholds`", rule="option-missing")

    def refuse_odd(self, settings: ScoreSettings) -> None:
        """Refuse settings that records of the perturbation benchmark are not scored by.

        Raises:
            UsageError: names them.
        """
        own = [one for one in fields(settings) if one.name not in _OF_PAIRS]
        if odd := [one.name for one in own if getattr(settings, one.name) != one.default]:
            raise UsageError(f"{', '.join(odd)}: not for bilingual_perturbation", rule="unsupported")


@dataclass(frozen=True, kw_only=True)
class CompareArguments(AgainstArguments):
    """Which systems are compared, and how.

    Attributes:
        predictions: A system's predictions, FILE or NAME=FILE (a file, https:// or hf://), or NAME=FILE,FILE,.. for
            several runs (seeds) of a system; give two systems or more. Files of several erase operators are
            distinguished by their run records.
        primary: A score declared in advance: the family, in place of the headline scores; repeat for several.

    Uncertainty:
        resamples: Resamples of the randomisation test and of the bootstrap.
        confidence_level: Confidence level of the intervals of differences, in (0, 1).
        adjust: Correction of p over the family; bh: Benjamini and Hochberg.
        equivalence: Also test whether systems differ by less than this, either way (TOST).
    """

    predictions: Annotated[Sequence[str], Option(aliases=("results",))]
    resamples: Annotated[int, Option(min=1, old=("n-resamples",))] = 10_000
    confidence_level: float = 0.95
    adjust: Literal["holm", "bh", "none"] = "holm"
    primary: str | Sequence[str] | None = None
    equivalence: float | None = None

    def settings(self) -> ScoreSettings:
        from dataclasses import replace

        # the tests' level and resamples are no intervals of scores, and every annotation's row is needed
        return replace(super().settings(), confidence_level=None, n_resamples=None, seed=0, totals_only=False)

    def inference(self) -> Inference:
        """Return how differences are tested.

        Raises:
            UsageError: a setting out of its range.
        """
        from eraser_hub.records.options import as_list

        from .comparison import Inference

        own = {"n_resamples": self.resamples}
        values: dict[str, Any] = {each.name: getattr(self, each.name, None) for each in fields(Inference)} | own
        values["primary"] = tuple(as_list(self.primary) or ())
        inference = Inference(**values)
        try:
            inference.check()
        except ValueError as error:
            raise UsageError(str(error), rule="option-value") from None
        return inference
