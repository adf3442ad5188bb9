"""``eraser-hub roar``: remove what a method ranks first, and train anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .explain import percents
from .train import MaxSteps
from .train import Split as TrainSplit
from .usage import Config, Dataset, Format, Revision, Seed, Split, at_revision, print_tables, say

Model = Annotated[str, typer.Option(help="What to train, as of `train`: logistic-regression, bilstm, an encoder, ..")]
Method = Annotated[str, typer.Option(help="Whose scores rank the tokens, as of `explain`.")]
Out = Annotated[
    Path, typer.Option(help="Folder for models, predictions and reduced texts; a stopped run goes on there.")
]
Bins = Annotated[str, typer.Option(help="Shares of the tokens to remove, in per cent.")]
Limit = Annotated[
    int | None, typer.Option(min=2, help="So many texts of either split, drawn by seed with each label's share.")
]
Epochs = Annotated[float | None, typer.Option(min=0.0, help="Networks: epochs.")]


def roar(
    dataset: Dataset, model: Model, method: Method, out: Out, config: Config = None, split: Split = "test",
    train_split: TrainSplit = "train", bins: Bins = "1,5,10,20,50", limit: Limit = None, epochs: Epochs = None,
    max_steps: MaxSteps = None, seed: Seed = 1, revision: Revision = None, format: Format = "text",
) -> None:  # fmt: skip
    """Remove the tokens that a method ranks first from training and test texts, train anew, and tell the accuracy (ROAR).

    Beside each share removed stands the accuracy where as many random tokens were removed.

    Examples:

        eraser-hub roar --dataset hub/eraser --config movies --model logistic-regression --method occlusion --out roar
    """
    from eraser_hub.experiments.roar import RoarPlan, roar_tables
    from eraser_hub.experiments.roar import roar as run
    from eraser_hub.explain.train.recipe import Recipe

    dataset = at_revision(dataset, revision)
    recipe = Recipe(
        dataset=dataset, config=config, split=train_split, eval_split="", model=model, seed=seed, epochs=epochs,
        max_steps=max_steps,
    )  # fmt: skip
    plan = RoarPlan(dataset, config, split, recipe, method, percents(bins, "--bins"), limit)
    result = run(plan, out, say)
    print_tables(roar_tables(result), format, result, [result["signature"]])
