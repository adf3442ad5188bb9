"""The arguments of `score` and `compare`, declared once for Python and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from eraser_hub.records.arguments import Revision, Split
from eraser_hub.records.hub import at_revision
from eraser_hub.records.options import AtLeastOne, NotNegative, Option, Options, Seed, UsageError

if TYPE_CHECKING:  # the command line reads the declarations without waiting for numpy
    from .comparison import Inference
    from .scored_split import ScoredSplit
    from .settings import ScoreSettings

OnlyPredicted = Annotated[bool, Option(help="Leave out annotations without an instance, and say how many were scored.")]
_CLUSTERS = "What intervals and tests draw together: auto (annotations that share a document), none, or a field of "
ClusterBy = Annotated[str, Option(help=f"{_CLUSTERS}the annotations.")]
# settings that records of the perturbation benchmark are scored by
_OF_PAIRS = ("confidence_level", "n_resamples", "seed", "only_predicted", "cluster_by", "paper", "totals_only")


@dataclass(frozen=True, kw_only=True)
class AgainstArguments(Options):
    """What predictions are scored against, and how.

    Attributes:
        data_dir: The corpus as released: SPLIT.jsonl, docs/ or docs.jsonl.
        dataset: Instead of `data_dir`: a built dataset, e.g. hub/eraser.
        config: The configuration of `dataset`, e.g. movies; with `data_dir` the one whose labels count.
        annotations: An annotation file other than SPLIT.jsonl.
        iou_thresholds: IOU threshold; repeat for several.
        aopc_thresholds: AOPC threshold; repeat for several.
    """

    data_dir: Path | None = None
    dataset: Path | None = None
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
        if (self.data_dir is None) == (self.dataset is None):
            raise UsageError("give either `data_dir`, or `dataset` with `config`", rule="option-missing")
        if self.dataset is not None and self.config is None:
            raise UsageError("`dataset` needs `config`", rule="option-missing")
        if self.dataset is not None and self.annotations is not None:
            raise UsageError("`annotations` goes with `data_dir`", rule="option-conflict")

    @property
    def source(self) -> ScoredSplit:
        """The split that predictions answer."""
        from .scored_split import ScoredSplit

        dataset = self.dataset and Path(at_revision(str(self.dataset), self.revision))
        return ScoredSplit(self.data_dir, self.split, self.annotations, dataset=dataset, config=self.config)

    def settings(self) -> ScoreSettings:
        """Return how predictions are scored.

        Raises:
            UsageError: a setting out of its range.
        """
        from .settings import ScoreSettings

        names = {one.name for one in fields(self)} & {one.name for one in fields(ScoreSettings)}
        values = {name: getattr(self, name) for name in names}
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
        results: Predictions, jsonl or Parquet: a file, https:// or hf://.
        strict: Demand IOU thresholds, labels, class scores and comprehensiveness scores.
        auprc_policy: AUPRC of a document without evidence: reference (0.5), skip, zero or one.
        random_baseline: Also score this many shuffles of the soft scores (the papers: 10).
        sentence_threshold: A sentence is predicted from this score on.
        confidence_level: Adds bootstrap intervals, e.g. 0.95.
        n_resamples: Bootstrap resamples (1000).
        ci_method: bca or percentile.
        per_instance: Add every score of every instance.
        by: Break the scores down by this field of the annotations.
        mask_leak: Also how well the places and number of selected tokens alone tell the model's labels.
        paper: Make all choices of this paper's code: eraser, wang2022.
        num_proc: Processes that read predictions (0: more than one for large files).
    """

    results: str
    strict: bool = False
    auprc_policy: str = "reference"
    random_baseline: NotNegative = 0
    sentence_threshold: float = 0.5
    confidence_level: float | None = None
    n_resamples: int | None = None
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
        results: A system's predictions, FILE or NAME=FILE (a file, https:// or hf://); several runs of one (seeds) as
            NAME=FILE,FILE,..; files of several ways of erasing are told apart by their run records; give two systems or
            more.
        n_resamples: Resamples of either test.
        confidence_level: Of the differences' intervals, in (0, 1).
        adjust: Correction of p over the family; bh: Benjamini and Hochberg.
        primary: A score declared in advance: the family, in place of the headline scores; repeat for several.
        equivalence: Also test whether systems differ by less than this, either way (TOST).
    """

    results: Sequence[str]
    n_resamples: AtLeastOne = 10_000
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

        values: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(Inference)}
        values["primary"] = tuple(as_list(self.primary) or ())
        inference = Inference(**values)
        try:
            inference.check()
        except ValueError as error:
            raise UsageError(str(error), rule="option-value") from None
        return inference
