"""The arguments of `report`, `board` and `highlight`, declared once for Python and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from eraser_hub.records.arguments import Revision, Split
from eraser_hub.records.options import AtLeastOne, Option, Options, Seed, UsageError
from eraser_hub.scoring.options import ClusterBy, OnlyPredicted

Several = str | Sequence[str] | None


@dataclass(frozen=True)
class ReportArguments(Options):
    """What a report is about.

    Attributes:
        dataset: A built dataset: its folder, or its id on the Hub.
        out: Folder to write index.html and the score files to.
        predictions: A system's predictions, FILE or NAME=FILE (https:// and hf:// too), several runs (seeds) as
            NAME=FILE,FILE,..; repeat it for further systems.
        config: Config; the card's default if not given.

    Curves and columns:
        baseline: Predictions of random rationales for the curves; several are averaged.
        evaluator: NAME=FILE: what `explain --model EVALUATOR --rationales` wrote of system NAME (EVAL-X).

    Page:
        title: The page's title.
        figures: Also write the figures here, as PNG, SVG and PDF.

    Uncertainty:
        confidence_level: Level of the confidence intervals.
        resamples: Bootstrap resamples.
    """

    dataset: Path
    out: Path
    predictions: Several = None
    config: str | None = None
    split: Split = "test"
    baseline: Several = None
    evaluator: Several = None
    title: str = ""
    figures: Path | None = None
    confidence_level: float = 0.95
    resamples: AtLeastOne = 1000
    seed: Seed = 0
    cluster_by: ClusterBy = "auto"
    only_predicted: OnlyPredicted = False
    revision: Revision = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.confidence_level < 1:
            message = "expected a number between 0 and 1"
            raise UsageError(message, rule="option-value", argument="confidence_level")


@dataclass(frozen=True)
class BoardArguments(Options):
    """What stands on a board, and where it is written.

    Attributes:
        out: Folder to write index.html and board.json to.
        scores: A score file with its signature, FILE or SYSTEM@DATASET=FILE; repeatable, draws are averaged.
        submission: A predictions file, SYSTEM=FILE (https:// and hf:// too), scored here against `dataset`; repeatable,
            draws are averaged.

    Submissions:
        dataset: The built dataset that submissions answer: its folder, or its id on the Hub.
        config: Config of the submissions; the default if not given.
        split: Split of the submissions; test by default.

    Page:
        published: Also the papers' printed results.
        space: Also write the board as a gradio Space to this folder.
        title: The board's title.
    """

    out: Path | None = None
    scores: Several = None
    submission: Several = None
    dataset: Path | None = None
    config: str | None = None
    split: str | None = None
    revision: Revision = None
    only_predicted: OnlyPredicted = False
    published: bool = True
    space: Path | None = None
    title: str = "Results board"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.submission and self.dataset is None:
            message = "submissions are scored against a dataset: give `dataset`"
            raise UsageError(message, rule="option-missing", argument="submission")


@dataclass(frozen=True)
class HighlightArguments(Options):
    """Which instance is shown, and how.

    Attributes:
        dataset: A built dataset: its folder, or its id on the Hub.
        config: Config; the card's default if not given.
        id: The instance's id; the split's first if not given.
        predictions: A model's output, jsonl or Parquet: a file, https:// or hf://.
        whole: Show whole documents, nothing folded away.
    """

    dataset: Path
    config: str | None = None
    split: Split = "test"
    revision: Revision = None
    id: Annotated[str | None, Option()] = None
    predictions: str | None = None
    whole: bool = False
