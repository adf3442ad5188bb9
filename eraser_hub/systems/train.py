"""The public function `train`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from eraser_hub.metrics.errors import check_number
from eraser_hub.records.arguments import Place

TEXT, RUN = Parameter(group="Text"), Parameter(group="Run")


@dataclass(frozen=True, slots=True)
class TrainResult:
    """Result of a training, printed as its lines.

    Attributes:
        folder: the model's, as ``explain`` takes it; with ``seeds`` that of all trainings.
        lines: a description of the training, and the figures of each regime.
    """

    folder: Path
    lines: list[str]

    def __str__(self) -> str:
        return "\n".join(self.lines)


def train(
    dataset: Place,
    model: str,
    *,
    out: Place,
    config: str | None = None,
    split: str = "train",
    eval_split: str | None = None,
    train_on: Annotated[Literal["full", "rationale"], TEXT] = "full",
    regimes: Annotated[bool, TEXT] = False,
    paper: Annotated[str, TEXT] = "",
    seed: Annotated[int, RUN] = 1,
    seeds: Annotated[int, RUN] = 1,
    limit: Annotated[int | None, RUN] = None,
    resume: Annotated[bool, RUN] = False,
) -> TrainResult:
    """Train a classifier on a config, for `explain`.

    Baselines choose their size by five folds of the training split. Networks keep the epoch that is best on the
    evaluation split. Of several values of a setting, `lstm(hidden_size=[100,200])`, the best there is kept. The same
    data and seed give the same bytes.

    Args:
        dataset: Dataset folder (hub/eraser), Hub id or hf:// path.
        model: A system, with settings as in lstm(hidden_size=200): bert-lstm, bert-to-bert, bilstm, glove-lstm, lehman,
            lei, lei-unsupervised, logistic-regression, lstm, match-lstm, random-forest; or a transformers folder or
            Hub id to fine-tune.
        out: Folder of the model; with several seeds of seed-1, seed-2 ..
        config: Config; by default the only or the default one.
        split: Split to train on.
        eval_split: Split to evaluate on; by default validation, if it has labels; '' for none.
        train_on: Text to train on: all of it, or the human rationales alone.
        regimes: Train on both, and evaluate the three regimes of Carton et al. (2020).
        paper: Train as this paper's code does: eraser, wang2022, carton2020.
        seed: Seed of all random draws.
        seeds: Trainings, by the seed and those after it; finished ones in the folder are kept.
        limit: Instances to train and to evaluate on, drawn with each label's share.
        resume: Go on with a stopped training of a network.

    Returns:
        The model's folder, and how well it does.

    Raises:
        DataError: unknown data or model, no labels, missing rationales, a setting that the model does not have.

    Examples:
        >>> from eraser_hub import train
        >>> trained = train("hub/eraser", "logistic-regression", config="movies", out="model")
        >>> trained.folder.name, len(trained.lines)
        ('model', 3)

        $ eraser-hub train --dataset hub/eraser --config movies --model logistic-regression --out model
        $ eraser-hub train --dataset hub/eraser --config movies --model "lstm(hidden_size=200, epochs=3)" --seeds 3 \
          --out models
        $ eraser-hub train --dataset hub/eraser --config movies --model "roberta-base(max_steps=300)" --out roberta
    """
    from .training import TrainSettings, train_model, train_seeds

    check_number(seeds, "seeds", 1)
    settings = TrainSettings(
        dataset=os.fspath(dataset),
        model=model,
        config=config,
        split=split,
        eval_split=eval_split,
        train_on=train_on,
        regimes=regimes,
        paper=paper,
        seed=seed,
        limit=limit,
    )
    folder = Path(out)
    lines = train_model(settings, folder, resume) if seeds == 1 else train_seeds(settings, folder, seeds)
    return TrainResult(folder, list(lines))
