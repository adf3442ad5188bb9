"""The arguments of `bench`, declared once for Python and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from eraser_hub.records.arguments import Progress, Split
from eraser_hub.records.options import AtLeastOne, Option, Options, Seed
from eraser_hub.scoring.options import MinimumEffect

Several = str | Sequence[str] | None


@dataclass(frozen=True, kw_only=True)
class BenchArguments(Options):
    """Models, data and methods of a bench, and the folder of its results.

    Attributes:
        dataset: Built dataset: a folder, a Hub id or hf:// path.
        config: Configuration; by default the dataset's default one.
        model: PLACE or NAME=PLACE: a model as in `explain`, or a system of `train`, which is trained first; repeat it
            for several.
        method: Attribution methods, with settings as in `explain`: lime(samples=500); all: each that the model
            supports; by default those that take
            few inputs.
        out: Folder of all results; a second run does only what is missing.
        quick: Explain 50 texts, each label by its share.
        plan: YAML file with these arguments; arguments beside it replace its own, unless they have the default value.
        dry_run: Print the plan and its cost, and stop.

    Data:
        sample: Number of texts to explain, each label by its share.

    Explanations:
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
