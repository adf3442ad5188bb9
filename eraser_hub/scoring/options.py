"""The arguments of `score` and `compare`, declared once for Python and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from eraser_hub.records.arguments import GOLD_FORMS, Gold, Split
from eraser_hub.records.errors import UsageError, show
from eraser_hub.records.options import NamedFiles, Option, Options, Seed

if TYPE_CHECKING:  # the command line reads the declarations without waiting for numpy
    from .scored_split import ScoredSplit
    from .settings import ScoreSettings

OnlyPredicted = Annotated[
    bool,
    Option(group="Settings of scores", help="Score only annotations with an instance, and print their number."),
]
MinimumEffect = Annotated[
    float,
    Option(
        min=0,
        group="Uncertainty",
        help="Smallest difference that matters, in the scores' units; 0 by default.",
    ),
]
_UNMARKED = (
    "Annotations without gold rationale in agreement: score or skip; by default skip, but score released configs."
)
Unmarked = Annotated[Literal["score", "skip"] | None, Option(group="Settings of scores", help=_UNMARKED)]
_CLUSTERS = "Clusters of intervals and tests: auto (annotations that share a document), none, or a field of "
ClusterBy = Annotated[str, Option(group="Uncertainty", help=f"{_CLUSTERS}the annotations.")]


@dataclass(frozen=True, kw_only=True)
class AgainstArguments(Options):
    """References of the predictions, and settings of the scores.

    Attributes:
        dataset: Built dataset (hub/eraser, or an id on the Hub), a corpus as released, or a file of gold rationales.
        source: Corpus as released, in place of `dataset`: a folder with SPLIT.jsonl, and docs/ or docs.jsonl.
        config: Configuration of `dataset`, e.g. movies; with `source` the one that gives the labels.
        annotations: Annotation file of `source`, in place of SPLIT.jsonl.

    Settings of scores:
        iou_thresholds: IOU threshold; repeat it for several.
        aopc_thresholds: AOPC threshold; repeat it for several.
    """

    dataset: Path | None = None
    source: Path | None = None
    config: str | None = None
    split: Split = "test"
    annotations: Path | None = None
    iou_thresholds: Sequence[float] | None = None
    aopc_thresholds: Sequence[float] | None = None
    cluster_by: ClusterBy = "auto"
    only_predicted: OnlyPredicted = False
    unmarked: Unmarked = None
    seed: Seed = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gold_file is not None:
            if self.source is not None or self.dataset not in (None, self.gold_file):
                expected = f"expected one of {', '.join(GOLD_FORMS)}, found {show(str(self.gold_file))}"
                message = f"{expected}; a file of gold rationales stands in place of `dataset` and `source`"
                raise UsageError(message, argument="gold")
            return
        if (self.source is None) == (self.dataset is None):
            also = ", or `gold`, a file" if isinstance(self, ScoreArguments) else ""
            raise UsageError(f"give either `dataset` with `config`, or `source`{also}")
        if self.dataset is not None and self.config is None and not is_corpus(self.dataset):
            raise UsageError("`dataset` needs `config`")
        if self.dataset is not None and self.annotations is not None:
            raise UsageError("`annotations` goes with `source`")

    @property
    def gold_file(self) -> Path | None:
        """The flat file of gold rationales that the predictions answer; None: they answer a dataset."""
        return self.dataset if self.dataset is not None and self.dataset.is_file() else None

    @property
    def inputs(self) -> tuple[Path, ...]:
        """The files and folders to read, which no output may replace."""
        from eraser_hub.records.outputs import find_inputs

        return find_inputs(
            getattr(self, "predictions", None), self.gold_file, self.dataset, self.source, self.annotations
        )

    @property
    def scored_split(self) -> ScoredSplit:
        """The split that predictions answer."""
        from .scored_split import ScoredSplit

        place, dataset = self.source or Path(), self.dataset
        if dataset is not None and is_corpus(dataset):
            place, dataset = dataset, None
        return ScoredSplit(place, self.split, self.annotations, dataset=dataset, config=self.config)

    def settings(self) -> ScoreSettings:
        """Return how predictions are scored.

        Raises:
            UsageError: a setting out of its range.
        """
        from .settings import ScoreSettings

        names = {one.name for one in fields(self)} & {one.name for one in fields(ScoreSettings)}
        values = {name: getattr(self, name) for name in names}
        values["n_resamples"] = getattr(self, "resamples", None)
        values["iou_thresholds"] = tuple(self.iou_thresholds or (0.5,))
        values["gold"] = values.get("gold") if values.get("gold") in GOLD_FORMS else GOLD_FORMS[0]
        settings = ScoreSettings(**values)
        try:
            settings.check()
        except ValueError as error:
            raise _make_usage_error(error) from None
        return settings


@dataclass(frozen=True)
class ScoreArguments(AgainstArguments):
    """Predictions to score, their references, and settings.

    Attributes:
        predictions: Predictions, jsonl or Parquet: a file, https:// or hf://.
        gold: Gold rationales: evidence, or the majority or union of the annotators' marks; or a file of rows {id,
            tokens, rationale}, a form that `predictions` may have, too.
        paper: Make all choices of this paper's code: eraser, wang2022.
        by: Break the scores down by this field of the annotations.

    Settings of scores:
        auprc_policy: AUPRC of a document without evidence: reference (0.5), skip, zero or one.
        sentence_threshold: Lowest score of a predicted sentence.
        per_instance: Add every score of every instance.
        people: Also score each annotator against the majority of the others, where annotators are known.
        metric: A score of your own, FILE.py:FUNCTION, of (row of the dataset, instance) to a number; repeat it for
            several.

    Uncertainty:
        confidence_level: Confidence level of the intervals, e.g. 0.95; no intervals by default.
        resamples: Bootstrap resamples; 1000 by default.
    """

    predictions: str
    gold: str = "evidence"
    auprc_policy: str = "reference"
    sentence_threshold: float = 0.5
    confidence_level: float | None = None
    resamples: int | None = None
    per_instance: bool = False
    by: str | None = None
    people: bool = True
    paper: str | None = None
    metric: Annotated[Sequence[str] | None, Option(group="Settings of scores")] = None

    @property
    def gold_file(self) -> Path | None:
        """The flat file of gold rationales that the predictions answer; None: they answer a dataset."""
        return super().gold_file if self.gold in GOLD_FORMS else Path(self.gold)


@dataclass(frozen=True, kw_only=True)
class CompareArguments(AgainstArguments):
    """Systems to compare, and settings.

    Attributes:
        predictions: Predictions of a system, FILE or NAME=FILE (a file, https:// or hf://), or NAME=FILE,FILE,.. for
            several runs (seeds); repeat it for each system.
        primary: Score to test, declared in advance, in place of the headline scores; repeat it for several.

    Uncertainty:
        resamples: Exchanges of documents of the test, where more than 12 differ; 10,000 by default.
        confidence_level: Confidence level of the intervals of differences, in (0, 1).
    """

    predictions: NamedFiles
    resamples: Annotated[int | None, Option(min=1)] = None
    confidence_level: float = 0.95
    primary: str | Sequence[str] | None = None
    minimum_effect: MinimumEffect = 0.0
    gold: Gold = "evidence"

    def settings(self) -> ScoreSettings:
        """Return the settings of the scores that are compared."""
        from dataclasses import replace

        # the tests' level and resamples are no intervals of scores, and every annotation's row is needed
        level = {"confidence_level": None, "n_resamples": None, "seed": 0}
        return replace(super().settings(), **level, people=False, keep_rows=True)  # type: ignore[arg-type]

    def inference(self) -> dict[str, Any]:
        """Return how differences are tested: the keyword arguments of `compare.compare`."""
        from eraser_hub.records.options import as_list

        values = {"confidence_level": self.confidence_level, "minimum_effect": self.minimum_effect, "seed": self.seed}
        resamples = {} if self.resamples is None else {"resamples": self.resamples}
        return {**values, **resamples, "primary": tuple(as_list(self.primary) or ())}


def is_corpus(place: Path) -> bool:
    """Return True for a corpus folder as released (with its documents), or a file of gold rationales."""
    return place.is_file() or any((place / name).exists() for name in ("docs", "docs.jsonl"))


def _make_usage_error(error: ValueError) -> UsageError:
    """Return the error of a setting as one of the argument, whose name opens the message."""
    name, colon, message = str(error).partition(": ")
    if colon and name.isidentifier():
        names = {"n_resamples": "resamples"}
        return UsageError(message, argument=names.get(name, name))
    return UsageError(str(error))
