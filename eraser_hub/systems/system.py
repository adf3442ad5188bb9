"""The systems that ``train`` makes: their options, their needs and their trainers.

A system is a class in its own module in :mod:`eraser_hub.systems.models`, or an entry point of a third party in the
group ``eraser_hub.systems``. Such a module imports neither PyTorch nor scikit-learn: the command line reads names and
options without them. Networks and trainers are named as ``package.module:name`` and imported when needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from eraser_hub.metrics.errors import find_similar
from eraser_hub.records.errors import DataError, UsageError, describe_choice, show
from eraser_hub.records.extras import need
from eraser_hub.records.registry import Registry, parse_call

from .hyper import Hyper, NetworkHyper, Value, parse_grid
from .train_config import ANSWERS, MULTIPLE_CHOICE, Say, TrainConfig

if TYPE_CHECKING:
    from .data import Data, Training
    from .evaluation import Evaluation

CARTON = "carton2020"  # the paper whose code fits baselines in a way of its own


class TrainedSystem(ABC):
    """A model that ``train`` makes; the first line of a subclass's docstring describes it.

    Attributes:
        packages: Packages that its training needs.
        takes: Fields of `TrainConfig` that its settings set, beside its hyper-parameters.
        hyper: Its hyper-parameters; None for none.
        needs: Required parts of the data: ``rationales``, ``pairs`` (of a text and a query, or of two texts).
        tasks: Tasks that it can learn beside classification.
        selects: True if it gives hard rationales of its own.
        trainer: The place of the function that trains it: (system, :class:`Training`) -> the figures of the validation
            split, or None if it has none.
    """

    packages: ClassVar[tuple[str, ...]] = ("torch", "transformers")
    takes: ClassVar[tuple[str, ...]] = ("query",)
    hyper: ClassVar[Any] = None
    needs: ClassVar[tuple[str, ...]] = ()
    tasks: ClassVar[tuple[str, ...]] = ()
    selects: ClassVar[bool] = False
    trainer: ClassVar[str]

    def check(self, config: TrainConfig) -> None:
        """Refuse, before any data are read, options that the system does not use.

        Raises:
            DataError: An option that the system does not use.
        """
        if config.task == MULTIPLE_CHOICE and MULTIPLE_CHOICE not in self.tasks:
            words = f"task {MULTIPLE_CHOICE}: transformers models alone learn to choose, not {config.model}"
            raise DataError(words, argument="model")
        if config.tokenizer and not (config.paper == CARTON and "tokenizer" in self.takes):
            words = f"tokenizer: only the baselines of `paper` {CARTON} count sub-words"
            raise DataError(words, argument="model")

    def validation_limit(self, config: TrainConfig) -> int | None:
        """Return how many instances of the validation split the training reads; None for all."""
        return 0

    def fit(self, training: Training) -> Evaluation | None:
        """Train and save; return the figures of the validation split if the training computes them."""
        need(*self.packages)
        figures: Evaluation | None = resolve_name(self.trainer)(self, training)
        return figures


class Baseline(TrainedSystem):
    """A scikit-learn classifier over word counts, whose size is chosen from a grid.

    Attributes:
        size: The parameter of the estimator that is chosen.
        sizes: Its values, the strongest regularisation first.
        words: Its name in lines of progress.
    """

    packages = ("sklearn", "skops")
    takes = ("query", "features", "folds", "joiner", "tokenizer")
    trainer = "eraser_hub.systems.baselines:train_baseline"
    size: ClassVar[str]
    sizes: ClassVar[tuple[float, ...]]
    words: ClassVar[str]

    @abstractmethod
    def estimator(self, size: float, seed: int, warm: bool = False) -> Any:
        """Return an unfitted estimator; ``warm``: a further fit continues the one before."""

    @abstractmethod
    def paper_estimator(self, size: float, seed: int) -> Any:
        """Return an unfitted estimator with the settings of the code of Carton et al. (2020)."""

    def validation_limit(self, config: TrainConfig) -> int | None:
        """Return how many instances of the validation split the training reads."""
        return None if config.paper == CARTON else 0


class NetworkSystem(TrainedSystem):
    """One of the papers' networks, or a pipeline of them.

    Attributes:
        hyper: The paper's hyper-parameters.
        with_encoder: Hyper-parameters that differ with an encoder.
        encoder: Use of an encoder: ``no``, ``optional`` or ``required``.
        network: The place of the network's class.
        pointer: The place of the network's class for answering questions.
        reads_apart: True if texts in pairs are read as two segments.
        stages: Of a pipeline, the models that are trained one after another; the last one is the classifier.
    """

    takes = ("query", "encoder", "embeddings", "task", "window", "trust_remote_code")
    trainer = "eraser_hub.systems.networks.training:train_network"
    hyper: ClassVar[Hyper] = NetworkHyper()
    with_encoder: ClassVar[Mapping[str, Value]] = MappingProxyType({})
    encoder: ClassVar[Literal["no", "optional", "required"]] = "no"
    network: ClassVar[str] = ""
    pointer: ClassVar[str] = ""
    reads_apart: ClassVar[bool] = False
    stages: ClassVar[tuple[str, ...]] = ()

    def make_hyper(self, config: TrainConfig) -> Hyper:
        """Return the paper's hyper-parameters, overridden by those of the config.

        Raises:
            DataError: A name that the system does not have (the message lists its names), a value of another type or
                range, no step or a learning rate of 0 (the network would be saved untrained), an encoder that is
                missing, or one that the system does not use.
        """
        if self.encoder == "required" and not config.encoder:
            words = f"{config.model} needs an encoder, a transformers folder or Hub id; there is no default"
            raise DataError(words, argument="model")
        if self.encoder == "no" and config.encoder:
            words = f"{config.model} has no encoder; it reads word embeddings (embeddings=FILE)"
            raise DataError(words, argument="model")
        hyper: Any = replace(self.hyper, **self.with_encoder if config.encoder else {})  # type: ignore[arg-type]
        window = {} if config.window is None else {"window": config.window}
        made: Hyper = replace(hyper, **{**config.options(), **window, **hyper.parse_settings(config.hyper)})
        for name in ("epochs", "learning_rate"):
            if not getattr(made, name) and not (name == "epochs" and made.max_steps):
                words = f"{name}: expected more than 0, found {getattr(made, name):g}: the network would stay untrained"
                raise DataError(words, argument="model")
        return made

    def check(self, config: TrainConfig) -> None:
        """Refuse options that the network does not use."""
        for trial in parse_grid(config.grid):
            self.make_hyper(replace(config, hyper=(*config.hyper, *trial)))
        if config.encoder and config.embeddings:
            words = "expected embeddings or an encoder, found both"
            raise DataError(words, argument="model")
        super().check(config)

    def check_data(self, config: TrainConfig, hyper: Any, data: Data, say: Say) -> None:
        """Refuse data that lack what the system needs, and report what some instances lack.

        Raises:
            DataError: The data lack what the system needs.
        """

    def validation_limit(self, config: TrainConfig) -> int | None:
        """Return how many instances of the validation split the training reads."""
        return config.limit


class FineTuning(TrainedSystem):
    """A fine-tuned transformers encoder (Carton et al., 2020, appendix A): for model names that are not registered."""

    tasks = (MULTIPLE_CHOICE,)
    takes = ("query", "task", "window", "trust_remote_code")
    trainer = "eraser_hub.systems.finetuning:train_encoder"
    # the paper's batch, warmup and learning rate; AdamW with a linear decay
    hyper = Hyper(epochs=3.0, learning_rate=2e-5, warmup_steps=50, linear_decay=True, patience=0, clip=1.0)

    def fit(self, training: Training) -> Evaluation | None:
        """Fine-tune and save the encoder."""
        from eraser_hub.attribution.open import is_path_like

        model = training.config.model
        if is_path_like(model) and not Path(model).is_dir():
            words = f"expected {', '.join(SYSTEMS)}, or a transformers folder or Hub id"
            raise UsageError(words, argument="model", file=model)
        return super().fit(training)


_FIELDS = {field.name for field in fields(TrainConfig)}
_TEXTS = ("encoder", "embeddings", "tokenizer", "joiner")  # a folder may be called 7
SYSTEMS: Registry[TrainedSystem] = Registry("eraser_hub.systems", "system", TrainedSystem, "eraser_hub.systems.models")


def find_system(model: str) -> TrainedSystem:
    """Return the system of that name; fine-tuning for other names, which are transformers models."""
    return SYSTEMS[model]() if model in SYSTEMS else FineTuning()


def read_model(text: str) -> dict[str, Any]:
    """Return the fields of `TrainConfig` that a model with its settings sets.

    >>> read_model("lstm(hidden_size=[100,200], epochs=3)")
    {'model': 'lstm', 'grid': ('hidden_size=100,200',), 'epochs': 3}

    Args:
        text: ``NAME(SETTING=VALUE, ..)``; a hyper-parameter with a list of values is searched.

    Raises:
        DataError: a misspelt system, a setting that it does not have, or several values of what is not searched.
    """
    name, settings = parse_call(text, "model")
    if name not in SYSTEMS and find_similar(name, SYSTEMS) and not Path(name).is_dir():
        raise DataError(describe_choice(name, SYSTEMS), argument="model")
    system = find_system(name)
    hyper = [] if system.hyper is None else [field.name for field in fields(system.hyper)]
    searched = hyper if isinstance(system, NetworkSystem) else []
    known = list(dict.fromkeys([*system.takes, *hyper]))
    chosen: dict[str, Any] = {"model": name}
    for key, value in settings.items():
        if key not in known:
            near = find_similar(key, known)
            hint = f": did you mean {near!r}?" if near else ""
            words = f"{name}: expected settings among {', '.join(known)}; found {show(key)}{hint}"
            raise DataError(words, argument="model")
        if isinstance(value, list):
            if key not in searched:
                words = f"{key}: expected one value, found {show(value)}; hyper-parameters of networks are searched"
                raise DataError(words, argument="model")
            chosen["grid"] = (*chosen.get("grid", ()), f"{key}={','.join(map(str, value))}")
        elif key in _FIELDS:
            chosen[key] = str(value) if key in _TEXTS else value
        else:
            chosen["hyper"] = (*chosen.get("hyper", ()), f"{key}={value}")
    return chosen


def list_answering_systems() -> list[str]:
    """Return the names of the systems that learn to answer with words of the text."""
    return [name for name in SYSTEMS if ANSWERS in SYSTEMS[name].tasks]
