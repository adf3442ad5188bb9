"""The arguments of `report`, `bench` and `board`, declared once for Python and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from eraser_hub.records.arguments import Force, Gold, Progress, Split
from eraser_hub.records.errors import UsageError
from eraser_hub.records.options import AtLeastOne, NamedFiles, Option, Options, Seed, as_list
from eraser_hub.records.outputs import OutputWriter, find_inputs
from eraser_hub.scoring.options import ClusterBy, MinimumEffect, OnlyPredicted

Several = str | Sequence[str] | None


@dataclass(frozen=True)
class ReportArguments(Options):
    """Content and place of a report.

    Attributes:
        dataset: Built dataset: a folder, or an id on the Hub.
        out: Folder to write index.html and the score files to.
        predictions: Predictions of a system, FILE or NAME=FILE (a file, https:// or hf://), or NAME=FILE,FILE,.. for
            several runs (seeds); repeat it for each system.
        config: Configuration; by default that of the card.

    Curves and columns:
        baseline: Predictions of random rationales for the curves; several are averaged.

    Page:
        title: Title of the page.
        figures: Folder to write the figures to, as PNG, SVG and PDF.

    Uncertainty:
        confidence_level: Level of the confidence intervals.
        resamples: Resamples of intervals and tests; by default 1,000 for the intervals of scores, and for tests as many
            as `compare` takes.
    """

    dataset: Path
    out: Path
    predictions: NamedFiles = None
    config: str | None = None
    split: Split = "test"
    baseline: NamedFiles = None
    title: str = ""
    figures: Path | None = None
    confidence_level: float = 0.95
    resamples: AtLeastOne | None = None
    seed: Seed = 0
    cluster_by: ClusterBy = "auto"
    minimum_effect: MinimumEffect = 0.0
    gold: Gold = "evidence"
    only_predicted: OnlyPredicted = False
    force: Force = False

    @property
    def writer(self) -> OutputWriter:
        """The writer of the report's files."""
        return OutputWriter(find_inputs(self.dataset, *map(as_list, (self.predictions, self.baseline))), self.force)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.confidence_level < 1:
            message = "expected a number between 0 and 1"
            raise UsageError(message, argument="confidence_level")


@dataclass(frozen=True, kw_only=True)
class BenchArguments(Options):
    """Models, data and methods of a bench, and the folder of its results.

    Attributes:
        dataset: Built dataset: a folder, a Hub id or hf:// path.
        config: Configuration; by default the dataset's default one.
        model: PLACE or NAME=PLACE: a model as in `explain`, or a system of `train`, which is trained first; repeat it
            for several.
        method: Attribution methods, comma-separated; all: each that the model supports; by default those that take
            few inputs.
        out: Folder of all results; a second run does only what is missing.
        quick: Explain 50 texts, each label by its share.
        plan: YAML file with these arguments; arguments beside it replace its own, unless they have the default value.
        dry_run: Print the plan and its cost, and stop.

    Data:
        sample: Number of texts to explain, each label by its share.

    Explanations:
        more: Setting of a method or measure, NAME=VALUE, as in `explain`; repeat it for several.
        seeds: Number of trainings of a system, and of draws of methods that draw.
        seed: The first seed.
        paper: Make all choices of this paper's code: eraser, wang2022, carton2020.

    Uncertainty:
        resamples: Resamples of intervals and tests; by default 1,000 for the intervals of scores, and for tests as many
            as `compare` takes.

    Run:
        engine: Where explanations run.
        workers: Workers of `engine` ray, each with a model.
    """

    dataset: str | None = None
    config: str | None = None
    split: Split = "test"
    model: Several = None
    method: Annotated[tuple[str, ...], Option(commas=True)] = ()
    out: Path | None = None
    quick: bool = False
    sample: AtLeastOne | None = None
    more: Annotated[tuple[str, ...], Option(name="set")] = ()
    seeds: AtLeastOne = 1
    seed: Seed = 1
    paper: str = ""
    minimum_effect: MinimumEffect = 0.0
    resamples: AtLeastOne | None = None
    engine: Literal["local", "ray"] = "local"
    workers: AtLeastOne = 2
    plan: Path | None = None
    dry_run: bool = False
    say: Progress = None


@dataclass(frozen=True)
class BoardArguments(Options):
    """Content and place of a results board.

    Attributes:
        out: Folder to write index.html and board.json to.
        scores: Score file with a signature, FILE or SYSTEM@DATASET=FILE; repeat it for several. Draws are averaged.
        published: Show the papers' printed results, too; the option leaves them out.
        title: Title of the board.
    """

    out: Path | None = None
    scores: Several = None
    published: bool = True
    title: str = "Results board"
    force: Force = False

    @property
    def writer(self) -> OutputWriter:
        """The writer of the board's files."""
        return OutputWriter(find_inputs(self.scores), self.force)
