"""``eraser-hub train``: the systems of the papers, and fine-tuned transformers, on a config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from eraser_hub.records.options import Option
from eraser_hub.systems.system import SYSTEMS
from eraser_hub.systems.train_config import TrainArguments

from .usage import print_line, print_note, spell_arguments, with_options


@dataclass(frozen=True, kw_only=True)
class TrainOptions(TrainArguments):
    """The options of ``eraser-hub train``."""

    model: Annotated[str, Option(help=f"{', '.join(SYSTEMS)}; or a transformers folder or Hub id to fine-tune.")]


@with_options(TrainOptions)
def train(options: TrainOptions) -> None:
    """Train a classifier on a config, for `eraser-hub explain`.

    Baselines choose their hyperparameter by five folds of the training split; the same data and seed give the same
    bytes. The three regimes of Carton 2020: trained and evaluated on full text, trained on full text and evaluated on
    rationales, trained and evaluated on rationales.

    **Examples**

        eraser-hub train --dataset hub/eraser --config movies --model logistic-regression --out model/

        eraser-hub train --dataset hub/eraser --config movies --model random-forest --train-on rationale --out model/

        eraser-hub train --dataset hub/eraser --config movies --model bert-base-uncased --max-steps 300 --out model/

        eraser-hub train --dataset hub/eraser --config movies --model logistic-regression --regimes --out model/

        eraser-hub train --dataset hub/eraser --config movies --model lstm-attention --seeds 3 --out models/

        eraser-hub train --dataset hub/eraser --config movies --model lei --encoder bert-base-uncased --out model/ \
--resume
    """
    from eraser_hub.experiments.folder import train_seeds

    for line in train_seeds(options, print_note):
        print_line(spell_arguments(line))
