"""The arguments of `report`, `board` and `highlight`, declared once for Python and the command line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from eraser_hub.records.arguments import Force, Gold, Progress, Revision, Split
from eraser_hub.records.options import AtLeastOne, NamedFiles, NotNegative, Option, Options, Seed, UsageError, as_list
from eraser_hub.records.outputs import OutputWriter, find_inputs
from eraser_hub.scoring.options import AllowMismatch, ClusterBy, MinimumEffect, OnlyPredicted

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
        evaluator: NAME=FILE: an evaluator's predictions from system NAME's rationales (EVAL-X), written by
            `explain --model EVALUATOR --rationales`.

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
    evaluator: NamedFiles = None
    title: str = ""
    figures: Path | None = None
    confidence_level: float = 0.95
    resamples: AtLeastOne | None = None
    seed: Seed = 0
    cluster_by: ClusterBy = "auto"
    minimum_effect: MinimumEffect = None
    gold: Gold = "evidence"
    only_predicted: OnlyPredicted = False
    allow_mismatch: AllowMismatch = False
    revision: Revision = None
    force: Force = False

    @property
    def writer(self) -> OutputWriter:
        """The writer of the report's files."""
        return OutputWriter(
            find_inputs(self.dataset, *map(as_list, (self.predictions, self.baseline, self.evaluator))), self.force
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.confidence_level < 1:
            message = "expected a number between 0 and 1"
            raise UsageError(message, rule="option-value", argument="confidence_level")


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
    minimum_effect: MinimumEffect = None
    resamples: AtLeastOne | None = None
    engine: Literal["local", "ray"] = "local"
    workers: AtLeastOne = 2
    plan: Path | None = None
    dry_run: bool = False
    revision: Revision = None
    say: Progress = None


@dataclass(frozen=True)
class BoardArguments(Options):
    """Content and place of a results board.

    Attributes:
        out: Folder to write index.html, board.json and the feeds (feed.xml, feed.json) to.
        scores: Score file with a signature, FILE or SYSTEM@DATASET=FILE; repeat it for several. Draws are averaged.
        submission: Predictions to score against `dataset`, SYSTEM=FILE (a file, https:// or hf://); repeat it for
            several. Draws are averaged.
        verify: Score the predictions of a score file again, SYSTEM=FILE: its line is verified, and a note says what
            differs. Repeat it for several.

    Submissions:
        from_hub: ORG/NAME of the Hub with submissions, or a folder of that form: each sound one is a verified line.
        dataset: Built dataset of the submissions: a folder, or an id on the Hub.
        config: Configuration of the submissions; by default that of the card.
        split: Split of the submissions; test by default.

    Page:
        published: Show the papers' printed results, too; the option leaves them out.
        texts: Number of texts to show with gold and each verified system's rationales. By default none: with the page
            they become public.
        space: Also write the board as a gradio Space to this folder.
        title: Title of the board.
    """

    out: Path | None = None
    scores: Several = None
    submission: NamedFiles = None
    verify: NamedFiles = None
    from_hub: str = ""
    dataset: Path | None = None
    config: str | None = None
    split: str | None = None
    revision: Revision = None
    only_predicted: OnlyPredicted = False
    allow_mismatch: AllowMismatch = False
    minimum_effect: MinimumEffect = None
    gold: Gold = "evidence"
    published: bool = True
    texts: NotNegative = 0
    space: Path | None = None
    title: str = "Results board"
    force: Force = False

    @property
    def writer(self) -> OutputWriter:
        """The writer of the board's files."""
        return OutputWriter(
            find_inputs(self.dataset, self.scores, as_list(self.submission), as_list(self.verify)), self.force
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("submission", "verify", "from_hub"):
            if getattr(self, name) and self.dataset is None:
                message = "predictions are scored against a dataset: give `dataset`"
                raise UsageError(message, rule="option-missing", argument=name)
        if self.texts and not (self.submission or self.verify or self.from_hub):
            message = "texts are shown with rationales of verified lines: give `from_hub`, `submission` or `verify`"
            raise UsageError(message, rule="option-missing", argument="texts")
        for name in ("dataset", "from_hub"):
            place = getattr(self, name)
            if self.out and place and os.path.isdir(place) and os.path.realpath(place) == os.path.realpath(self.out):
                message = f"expected another folder than `{name}`, whose files are other ones"
                raise UsageError(message, rule="option-conflict", argument="out")


@dataclass(frozen=True)
class SubmitArguments(Options):
    """A system to submit to a board.

    Attributes:
        predictions: File of predictions, .jsonl or .parquet.
        system: File that describes the system (system.yaml): name, authors, license, trained_on, ..
        dataset: Built dataset that the predictions answer: a folder, or an id on the Hub.
        config: Configuration; by default that of the card.
        repository: ORG/NAME of the submissions on the Hub.
        dry_run: Check and show the line alone; nothing is asked of the Hub.
    """

    predictions: Annotated[Path, Option(positional=True)]
    system: Path
    dataset: Path = Path("hub/eraser")
    config: str | None = None
    split: Split = "test"
    repository: str = ""
    dry_run: bool = False
    say: Progress = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.repository and not self.dry_run:
            message = "expected ORG/NAME of the submissions on the Hub, or `dry_run`"
            raise UsageError(message, rule="option-missing", argument="repository")
