"""The settings of a training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Final, Literal

from eraser_hub.records.arguments import Config, DatasetPlace, Progress, Revision
from eraser_hub.records.options import AtLeastOne, NotNegative, Option, Options, Seed

Task = Literal["auto", "classification", "multiple-choice", "question-answering"]
CLASSIFICATION: Final = "classification"
MULTIPLE_CHOICE: Final = "multiple-choice"
ANSWERS: Final = "question-answering"
SUBSETS = "subsets"
LARGEST_SEED = 2**32 - 1  # scikit-learn's and numpy's
Say = Callable[[str], None]  # called with lines of progress


@dataclass(frozen=True, kw_only=True)
class TrainConfig(Options):
    """What to train on what.

    Attributes:
        split: Split to train on.
        eval_split: Split to evaluate on; by default validation, if labelled and not trained on; '' for none.
        model: A system of :data:`eraser_hub.systems.system.SYSTEMS`, or a transformers folder or Hub id to fine-tune.
        hyper: Systems: a hyper-parameter, NAME=VALUE; more than one with more `hyper`.
        paper: Train as a paper's code does: eraser (a network reads the document first), wang2022, carton2020
            (baselines over sub-words, chosen by the validation split).

    Text:
        query: Show the query; by default when queries differ.
        features: Baselines: words, or characters (1- and 2-grams of the text).
        joiner: What stands between tokens; by default nothing for characters.
        train_on: full: the whole text; rationale: the human rationale's tokens alone; subsets: random ones (EVAL-X).
        regimes: Train both ways and print Carton 2020's three regimes; the folder holds the model of `train_on`.
        task: Fine-tuning: classification, or multiple-choice (CoS-E: the query holds the answers); match-lstm:
            classification, or question-answering (words of the text); auto: by the data.
        tokenizer: `paper` carton2020: the tokenizer's folder or Hub id; by default roberta-base.

    Networks:
        epochs: Networks: epochs; by default the paper's, fine-tuning: 3.
        max_steps: Networks: stop after so many steps (0: by epochs).
        batch_size: Networks: texts or windows a step.
        learning_rate: Networks: learning rate.
        window: Networks with an encoder: longest window in sub-words.
        encoder: Systems with an encoder: a transformers folder or Hub id; there is no default.
        embeddings: Systems over words: a file of word vectors (GloVe or word2vec text, gensim's .kv); else learned.
        trust_remote_code: Fine-tuning: run the code that the model brings along.

    Search:
        grid: Systems: NAME=VALUE,VALUE,..; the best combination by the validation split is kept.
        workers: `grid`: so many combinations side by side, by Ray Tune (the extra ray).

    Data:
        limit: Train, and evaluate, on so many instances, drawn by seed with each label's share.

    Run:
        resume: Networks: go on with a stopped training.
    """

    dataset: DatasetPlace
    config: Config = None
    split: str = "train"
    eval_split: str | None = None
    model: str
    query: bool | None = None
    features: str = "words"
    joiner: str | None = None
    seed: Seed = 1
    limit: AtLeastOne | None = None
    epochs: Annotated[float | None, Option(min=0)] = None
    max_steps: NotNegative | None = None
    batch_size: AtLeastOne | None = None
    learning_rate: Annotated[float | None, Option(min=0)] = None
    window: Annotated[int | None, Option(min=8)] = None
    hyper: Annotated[tuple[str, ...], Option(name="set")] = ()
    grid: tuple[str, ...] = ()
    workers: AtLeastOne = 1
    encoder: str = ""
    embeddings: str = ""
    resume: bool = False
    task: Task = "auto"
    trust_remote_code: bool = False
    paper: str = ""
    tokenizer: str = ""
    train_on: Literal["full", "rationale", "subsets"] = "full"
    regimes: bool = False

    def options(self) -> dict[str, int | float]:
        """Return the hyper-parameters that are options of their own and that are set."""
        values = {name: getattr(self, name) for name in ("epochs", "max_steps", "batch_size", "learning_rate")}
        return {name: value for name, value in values.items() if value is not None}

    def identity(self) -> dict[str, object]:
        """Return the settings that must agree for a stopped training to resume."""
        loose = ("resume", "workers", "train_on", "regimes")
        values = {field.name: getattr(self, field.name) for field in fields(TrainConfig) if field.name not in loose}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


@dataclass(frozen=True, kw_only=True)
class TrainArguments(TrainConfig):
    """The settings of a training, and the folder of its model.

    Attributes:
        out: Folder for the model.
    """

    out: Path
    revision: Revision = None
    say: Progress = None
