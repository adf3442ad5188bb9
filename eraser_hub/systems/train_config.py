"""The settings of a training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Final, Literal

from eraser_hub.records.arguments import Config, DatasetPlace, Progress
from eraser_hub.records.options import AtLeastOne, NotNegative, Option, Options, Seed

Task = Literal["auto", "classification", "multiple-choice", "question-answering"]
MULTIPLE_CHOICE: Final = "multiple-choice"
ANSWERS: Final = "question-answering"
LARGEST_SEED = 2**32 - 1  # scikit-learn's and numpy's
Say = Callable[[str], None]  # called with lines of progress


@dataclass(frozen=True, kw_only=True)
class TrainConfig(Options):
    """Model, data and hyper-parameters of a training.

    Attributes:
        split: Split to train on.
        eval_split: Split to evaluate on; default: validation, if it has labels and is not trained on; '' for none.
        model: A registered system, or a transformers folder or Hub id to fine-tune.
        hyper: Hyper-parameter of a system, NAME=VALUE; repeatable.
        paper: Train as a paper's code does: eraser, wang2022 or carton2020 (baselines over sub-words).

    Text:
        query: Show the query to the model; default: if queries differ.
        features: Features of baselines: words, or characters (1- and 2-grams).
        folds: Folds by which baselines choose: documents (rows that share one are in one fold), or instances.
        joiner: String between two tokens; default: a blank, or nothing for characters.
        train_on: Text to train on: full, or rationale (human rationales alone).
        regimes: Train on full texts and on rationales, and print the three regimes of Carton et al. (2020).
        task: classification, multiple-choice (fine-tuning), question-answering (match-lstm), or auto: by the data.
        tokenizer: Tokenizer for `paper` carton2020: a folder or Hub id; default: roberta-base.

    Networks:
        epochs: Epochs of a network, more than 0 without ``max_steps``; default: the paper's, or 3 for fine-tuning.
        max_steps: Largest number of steps of a network; 0: by epochs.
        batch_size: Texts or windows in a step of a network.
        learning_rate: Learning rate of a network.
        window: Longest input of an encoder, in sub-words.
        encoder: Encoder of systems that use one: a transformers folder or Hub id; no default.
        embeddings: File of word vectors (GloVe or word2vec text, gensim .kv); default: learned embeddings.
        trust_remote_code: Run code that comes with the model (fine-tuning).

    Search:
        grid: Grid search over NAME=VALUE,VALUE,..; the validation split chooses the best; repeatable.
        workers: Trainings of the grid in parallel, by Ray Tune (extra ray).

    Data:
        limit: Number of instances to train and evaluate on, stratified by label.

    Run:
        resume: Resume a stopped training of a network.
    """

    dataset: DatasetPlace
    config: Config = None
    split: str = "train"
    eval_split: str | None = None
    model: str
    query: bool | None = None
    features: str = "words"
    folds: Literal["documents", "instances"] = "documents"
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
    train_on: Literal["full", "rationale"] = "full"
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
        seeds: Number of trainings, by the seed and those after it, into OUT/seed-1 and so on; the same command goes on
            after a stop.
    """

    out: Path
    seeds: AtLeastOne = 1
    say: Progress = None
