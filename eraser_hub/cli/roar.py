"""``eraser-hub roar``: remove what a method ranks first, and train anew."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from .explain import percents
from .train import MaxSteps
from .train import Split as TrainSplit
from .usage import Config, Dataset, Format, Revision, Seed, Split, at_revision, chosen, print_tables, say, takes


@dataclass(frozen=True, slots=True)
class RoarOptions:
    """The options of ``eraser-hub roar``, and their help.

    Attributes:
        model: What to train, as of `train`: logistic-regression, bilstm, an encoder, ..
        method: Whose scores rank the tokens, as of `explain`.
        out: Folder for models, predictions and reduced texts; a stopped run goes on there.
        bins: Shares of the tokens to remove, in per cent.
        limit: So many texts of either split, drawn by seed with each label's share.
        epochs: Networks: epochs.
    """

    dataset: Dataset
    model: str
    method: str
    out: Path
    config: Config = None
    split: Split = "test"
    train_split: TrainSplit = "train"
    bins: str = "1,5,10,20,50"
    limit: Annotated[int | None, typer.Option(min=2)] = None
    epochs: Annotated[float | None, typer.Option(min=0.0)] = None
    max_steps: MaxSteps = None
    seed: Seed = 1
    revision: Revision = None
    format: Format = "text"


@takes(RoarOptions)
def roar(options: RoarOptions) -> None:
    """Remove the tokens that a method ranks first from training and test texts, train anew, and tell the accuracy
    (ROAR).

    Beside each share removed stands the accuracy where as many random tokens were removed.

    Examples:

        eraser-hub roar --dataset hub/eraser --config movies --model logistic-regression --method occlusion --out roar
    """
    from eraser_hub.experiments.roar import RoarPlan, roar_tables
    from eraser_hub.experiments.roar import roar as run
    from eraser_hub.systems.train.recipe import Recipe

    dataset = at_revision(options.dataset, options.revision)
    how = chosen(options, "config model seed epochs max_steps")
    recipe = Recipe(dataset=dataset, split=options.train_split, eval_split="", **how)
    bins = percents(options.bins, "--bins")
    plan = RoarPlan(dataset, options.config, options.split, recipe, options.method, bins, options.limit)
    result = run(plan, options.out, say)
    print_tables(roar_tables(result), options.format, result, [result["signature"]])
