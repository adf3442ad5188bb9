"""What a system is that ``train`` trains: a dataclass of its settings, ``lstm(hidden_size=200, epochs=3)``, that fits.

Third parties add their own by entry points of the group ``eraser_hub.systems``.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from eraser_hub.records.errors import DataError
from eraser_hub.records.files import atomic_write, to_json_bytes
from eraser_hub.records.readers import read_json_object
from eraser_hub.records.registry import Registry
from eraser_hub.version import __version__

from .data import Data, Training

FACTS = "model.json"  # what a model is and how it was trained; it is written last
CHECKPOINTS = ("checkpoint.pt", "best.pt")  # of a stopped training, see :mod:`fitting`
# above it no number trains, and none below it overflows float32
LARGEST = 1e12
Size = Annotated[int, Meta(ge=1, le=10**9)]
Count = Annotated[int, Meta(ge=0, le=10**9)]
Share = Annotated[float, Meta(ge=0, lt=1)]
Weight = Annotated[float, Meta(ge=0, le=LARGEST)]
Positive = Annotated[float, Meta(gt=0, le=LARGEST)]
Fit = Callable[[Training], dict[str, Any]]
log = logging.getLogger("eraser_hub")


@dataclass(frozen=True, kw_only=True)
class System(ABC):
    """A kind of model that ``train`` trains; its fields are its settings.

    Attributes:
        query: whether the model sees the query; None: if the queries of the data differ.
        validates: whether its training reads the validation split.
        files: fields that name files or folders; the record of a model keeps their names alone.
    """

    query: bool | None = None
    validates: ClassVar[bool] = True
    files: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def defaults(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the defaults that depend on the given settings."""
        return {}

    def check(self, paper: str) -> None:  # noqa: B027  # most have nothing to refuse
        """Refuse, before any data are read, settings that do not go together, or with a paper's preset.

        Raises:
            DataError: such settings.
        """

    def learns_answers(self) -> bool | None:
        """Return whether it learns to answer with words of the text; None: if the data hold answers."""
        return False

    @abstractmethod
    def fit(self, training: Training) -> dict[str, Any]:
        """Train, write the model's files into the training's folder, and return what its ``model.json`` says of it.

        The figures of the validation split, where the training computes them, are ``validation``.
        """

    def record(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        values = asdict(self)
        return {**values, **{name: name_source(values[name]) for name in self.files}}


def name_source(source: str) -> str:
    """Return a Hub id as it is, and the last part of a path: a record names no folder of this machine."""
    return Path(source).name if Path(source).exists() else source


@dataclass(frozen=True, kw_only=True)
class Optimised(System):
    """A system that is trained by :func:`fitting.fit`.

    Attributes:
        epochs: largest number of epochs.
        max_steps: largest number of steps; 0: as many as ``epochs`` needs.
        batch_size: examples in a step.
        learning_rate: of AdamW.
        weight_decay: decoupled weight decay; 0 gives Adam.
        warmup_steps: steps over which the learning rate grows.
        linear_decay: lower the learning rate linearly to 0 at the last step.
        patience: epochs without a better validation score before training stops; 0: never stop early.
        monitor: the validation score that chooses the best weights.
        clip: largest norm of the gradient; 0: any.
    """

    epochs: Positive = 20.0
    max_steps: Count = 0
    batch_size: Size = 16
    learning_rate: Positive = 1e-3
    weight_decay: Weight = 0.0
    warmup_steps: Count = 0
    linear_decay: bool = False
    patience: Count = 5
    monitor: Literal["accuracy", "macro_f1", "loss"] = "accuracy"
    clip: Weight = 10.0


_HERE = "eraser_hub.systems"
SYSTEMS = Registry(
    "eraser_hub.systems",
    "system",
    System,  # type: ignore[type-abstract]
    places={
        "bert-lstm": f"{_HERE}.network_systems:BertLstmSystem",
        "bert-to-bert": f"{_HERE}.pipeline:BertToBertSystem",
        "bilstm": f"{_HERE}.network_systems:BilstmSystem",
        "glove-lstm": f"{_HERE}.network_systems:GloveLstmSystem",
        "lehman": f"{_HERE}.pipeline:LehmanSystem",
        "lei": f"{_HERE}.network_systems:LeiSystem",
        "lei-unsupervised": f"{_HERE}.network_systems:UnsupervisedLeiSystem",
        "logistic-regression": f"{_HERE}.baselines:LogisticRegressionSystem",
        "lstm": f"{_HERE}.network_systems:LstmSystem",
        "match-lstm": f"{_HERE}.network_systems:MatchLstmSystem",
        "random-forest": f"{_HERE}.baselines:RandomForestSystem",
    },
)
BASELINES = ("logistic-regression", "random-forest")  # which need no torch


def train_into(training: Training, fit: Fit) -> dict[str, Any]:
    """Fit into the training's folder, write its ``model.json``, and return that; what was finished before is kept."""
    record = training.folder / FACTS
    if record.is_file():
        log.info(f"{training.folder.name}: trained before the stop")
        return read_json_object(record)
    training.folder.mkdir(parents=True, exist_ok=True)
    facts = {"eraser_hub": __version__, **training.facts, **fit(training), "seed": training.seed}
    atomic_write(record, to_json_bytes(facts))
    for name in CHECKPOINTS:
        (training.folder / name).unlink(missing_ok=True)
    return facts


def check_rationales(name: str, data: Data) -> None:
    """Say how many instances to train on have no human rationale.

    Raises:
        DataError: none has one.
    """
    instances = data.train[0]
    without = sum(not one.has_rationale for one in instances)
    if without == len(instances):
        raise DataError(f"{name} learns from rationales, found none in {without} instances", argument="model")
    if without:
        log.info(f"{without} of {len(instances)} instances have no human rationale")
