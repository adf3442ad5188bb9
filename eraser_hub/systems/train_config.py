"""The settings of a training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final, Literal

from eraser_hub.metrics.errors import check_choice, check_number
from eraser_hub.records.errors import DataError, show

Task = Literal["auto", "classification", "multiple-choice", "question-answering"]
MULTIPLE_CHOICE: Final = "multiple-choice"
ANSWERS: Final = "question-answering"
MAX_SEED = 2**32 - 1  # scikit-learn's and numpy's
Say = Callable[[str], None]  # called with lines of progress

# settings of systems, which stand in the model's string
CHOICES = {
    "features": ("words", "characters"),
    "folds": ("documents", "instances"),
    "task": ("auto", "classification", MULTIPLE_CHOICE, ANSWERS),
}
MINIMA = {"epochs": 0, "learning_rate": 0, "max_steps": 0, "batch_size": 1, "window": 8}


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Model, data and hyper-parameters of a training.

    Attributes:
        dataset: Dataset folder or Hub id.
        config: Config; by default the dataset's default config.
        split: Split to train on.
        eval_split: Split to evaluate on; default: validation, if it has labels and is not trained on; "" for none.
        model: A registered system, or a transformers folder or Hub id to fine-tune.
        query: Show the query to the model; default: if queries differ.
        features: Features of baselines: words, or characters (1- and 2-grams).
        folds: Folds by which baselines choose: documents (rows that share one are in one fold), or instances.
        joiner: String between two tokens; default: a blank, or nothing for characters.
        seed: Seed of all random draws.
        limit: Number of instances to train and evaluate on, stratified by label.
        epochs: Epochs of a network, more than 0 without ``max_steps``; default: the paper's, or 3 for fine-tuning.
        max_steps: Largest number of steps of a network; 0: by epochs.
        batch_size: Texts or windows in a step of a network.
        learning_rate: Learning rate of a network.
        window: Longest input of an encoder, in sub-words.
        hyper: Further hyper-parameters of a network, NAME=VALUE.
        grid: Hyper-parameters with several values, NAME=VALUE,VALUE,..; the validation split chooses the best.
        encoder: Encoder of systems that use one: a transformers folder or Hub id; no default.
        embeddings: File of word vectors (GloVe or word2vec text, gensim .kv); default: learned embeddings.
        resume: Resume a stopped training of a network.
        task: classification, multiple-choice (fine-tuning), question-answering (match-lstm), or auto: by the data.
        trust_remote_code: Run code that comes with the model (fine-tuning).
        paper: Train as a paper's code does: eraser, wang2022 or carton2020 (baselines over sub-words).
        tokenizer: Tokenizer for ``paper`` carton2020: a folder or Hub id; default: roberta-base.
        train_on: Text to train on: full, or rationale (human rationales alone).
        regimes: Train on full texts and on rationales, for the three regimes of Carton et al. (2020).
    """

    dataset: str
    config: str | None = None
    split: str = "train"
    eval_split: str | None = None
    model: str
    query: bool | None = None
    features: str = "words"
    folds: str = "documents"
    joiner: str | None = None
    seed: int = 1
    limit: int | None = None
    epochs: float | None = None
    max_steps: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    window: int | None = None
    hyper: tuple[str, ...] = ()
    grid: tuple[str, ...] = ()
    encoder: str = ""
    embeddings: str = ""
    resume: bool = False
    task: Task = "auto"
    trust_remote_code: bool = False
    paper: str = ""
    tokenizer: str = ""
    train_on: Literal["full", "rationale"] = "full"
    regimes: bool = False

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            self._check(name, getattr(self, name) in known, f"one of {', '.join(known)}")
        for name, least in MINIMA.items():
            value, whole = getattr(self, name), name not in ("epochs", "learning_rate")
            fits = isinstance(value, int if whole else int | float) and not isinstance(value, bool) and value >= least
            noun = "a whole number" if whole else "a number"
            self._check(name, value is None or fits, f"{noun} of at least {least}")
        for name in ("query", "trust_remote_code"):
            self._check(name, getattr(self, name) in (None, True, False), "True or False")
        check_choice(self.train_on, ("full", "rationale"), "train_on")
        check_number(self.seed, "seed", 0, MAX_SEED)
        if self.limit is not None:
            check_number(self.limit, "limit", 1)

    def _check(self, name: str, fits: bool, expected: str) -> None:
        if not fits:
            raise DataError(f"{name}: expected {expected}, found {show(getattr(self, name))}", argument="model")

    def options(self) -> dict[str, int | float]:
        """Return the hyper-parameters that are options of their own and that are set."""
        values = {name: getattr(self, name) for name in ("epochs", "max_steps", "batch_size", "learning_rate")}
        return {name: value for name, value in values.items() if value is not None}

    def identity(self) -> dict[str, object]:
        """Return the settings that must agree for a stopped training to resume."""
        loose = ("resume", "train_on", "regimes")
        values = {field.name: getattr(self, field.name) for field in fields(TrainConfig) if field.name not in loose}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
