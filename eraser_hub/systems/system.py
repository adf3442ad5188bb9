"""The systems that ``train`` makes: what each is, what it takes and needs, and how it is trained.

A system is a class in a module of its own in :mod:`eraser_hub.systems.models`, or a third party's entry point of the
group ``eraser_hub.systems``. Such a module imports neither PyTorch nor scikit-learn: names and arguments are read
without them. What a system is made of is named by its place, ``package.module:name``, and imported when needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from eraser_hub.records.errors import DataError
from eraser_hub.records.extras import need
from eraser_hub.records.registry import Registry

from .hyper import Hyper, NetworkHyper, Value, grid_of
from .recipe import ANSWERS, MULTIPLE_CHOICE, SUBSETS, Recipe, Say

if TYPE_CHECKING:
    from .data import Data, Training
    from .evaluation import Evaluation

CARTON = "carton2020"  # the paper whose code fits baselines in a way of its own
_OF_SOME = ("encoder", "embeddings", "hyper", "grid")  # arguments that not every system takes


class TrainedSystem(ABC):
    """One of the models that ``train`` makes; the first line of a subclass's docstring says what it is.

    Attributes:
        paper: where it stands.
        packages: that its training needs.
        takes: arguments of a recipe that it takes and others do not.
        needs: what the data have to hold: ``rationales``, ``pairs`` (of a text and a query, or of two texts).
        tasks: what it can learn beside classification.
        selects: whether it comes with hard rationales of its own.
        trainer: the place of the function that trains it: (system, :class:`Training`) -> the figures of the validation
            split, or None where they were not found.
    """

    paper: ClassVar[str] = ""
    packages: ClassVar[tuple[str, ...]] = ("torch", "transformers")
    takes: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()
    tasks: ClassVar[tuple[str, ...]] = ()
    selects: ClassVar[bool] = False
    trainer: ClassVar[str]

    def check(self, recipe: Recipe) -> None:
        """Refuse, before anything is read, what the system would not use.

        Raises:
            DataError: says what.
        """
        for name in _OF_SOME:
            if getattr(recipe, name) and name not in self.takes:
                takers = ", ".join(other for other in SYSTEMS if name in SYSTEMS[other].takes)
                words = f"only {takers} take it, not {recipe.model}"
                raise DataError(words, rule="unsupported", argument=name)
        if recipe.task == MULTIPLE_CHOICE and MULTIPLE_CHOICE not in self.tasks:
            words = f"`task` {MULTIPLE_CHOICE}: transformers models alone learn to choose, not {recipe.model}"
            raise DataError(words, rule="unsupported")
        if recipe.tokenizer and not (recipe.paper == CARTON and "tokenizer" in self.takes):
            words = f"only the baselines of `paper` {CARTON} count sub-words"
            raise DataError(words, rule="option-conflict", argument="tokenizer")
        if recipe.train_on == SUBSETS and self.selects:
            words = f"expected a model that reads all it is given, {recipe.model} selects for itself"
            raise DataError(f"`train_on` {SUBSETS}: {words}", rule="unsupported")

    def validation_limit(self, recipe: Recipe) -> int | None:
        """Return how many instances of the validation split its training looks at; None for all."""
        return 0

    def fit(self, training: Training) -> Evaluation | None:
        """Train and save; give how well the model does on the validation split, where training found that out."""
        need(*self.packages)
        figures: Evaluation | None = resolve_name(self.trainer)(self, training)
        return figures


class Baseline(TrainedSystem):
    """A scikit-learn classifier over counted words, whose size is chosen from a grid.

    Attributes:
        size: the estimator's parameter that is chosen.
        sizes: its values, the one of strongest regularisation first.
        words: what lines of progress call it.
    """

    packages = ("sklearn", "skops")
    takes = ("tokenizer",)
    trainer = "eraser_hub.systems.baselines:train_baseline"
    size: ClassVar[str]
    sizes: ClassVar[tuple[float, ...]]
    words: ClassVar[str]

    @abstractmethod
    def estimator(self, size: float, seed: int, warm: bool = False) -> Any:
        """Return an unfitted estimator; ``warm``: a further fit goes on from the one before."""

    @abstractmethod
    def paper_estimator(self, size: float, seed: int) -> Any:
        """Return an unfitted estimator as the code of Carton et al. (2020) makes it."""

    def check(self, recipe: Recipe) -> None:
        super().check(recipe)
        if recipe.train_on == SUBSETS and recipe.paper == CARTON:
            words = f"`train_on` {SUBSETS}: not with `paper` {CARTON}, which trains on whole texts"
            raise DataError(words, rule="option-conflict")

    def validation_limit(self, recipe: Recipe) -> int | None:
        return None if recipe.paper == CARTON else 0


class NetworkSystem(TrainedSystem):
    """One of the papers' networks, or a pipeline of them.

    Attributes:
        hyper: its hyper-parameters by the paper.
        with_encoder: those that differ with an encoder.
        encoder: whether it reads an encoder's states.
        network, pointer: the places of the network's class, and of that which answers questions.
        reads_apart: texts that come in twos are read as two segments.
        stages: of a pipeline, the models that are trained one after the other; the last is the classifier.
    """

    takes = _OF_SOME
    trainer = "eraser_hub.systems.networks.training:train_network"
    hyper: ClassVar[Hyper] = NetworkHyper()
    with_encoder: ClassVar[Mapping[str, Value]] = MappingProxyType({})
    encoder: ClassVar[Literal["no", "optional", "required"]] = "no"
    network: ClassVar[str] = ""
    pointer: ClassVar[str] = ""
    reads_apart: ClassVar[bool] = False
    stages: ClassVar[tuple[str, ...]] = ()

    def hyper_of(self, recipe: Recipe) -> Hyper:
        """Return the hyper-parameters: the paper's, with the recipe's in their place.

        Raises:
            DataError: a name that the system does not have (it lists those that it has), a value of another type or
                range; an encoder that is missing, or that nothing would use.
        """
        if self.encoder == "required" and not recipe.encoder:
            words = f"{recipe.model} needs one, a transformers folder or Hub id; there is no default"
            raise DataError(words, rule="option-missing", argument="encoder")
        if self.encoder == "no" and recipe.encoder:
            words = f"{recipe.model} has none; it reads word embeddings (`embeddings`)"
            raise DataError(words, rule="option-conflict", argument="encoder")
        hyper: Any = replace(self.hyper, **self.with_encoder if recipe.encoder else {})  # type: ignore[arg-type]
        window = {} if recipe.window is None else {"window": recipe.window}
        made: Hyper = replace(hyper, **{**recipe.options(), **window, **hyper.with_settings(recipe.hyper)})
        return made

    def check(self, recipe: Recipe) -> None:
        for trial in grid_of(recipe.grid):
            self.hyper_of(replace(recipe, hyper=(*recipe.hyper, *trial)))
        if recipe.encoder and recipe.embeddings:
            words = "expected `embeddings` or `encoder`, found both"
            raise DataError(words, rule="option-conflict", argument="embeddings")
        super().check(recipe)

    def check_data(self, recipe: Recipe, hyper: Any, data: Data, say: Say) -> None:
        """Refuse data that lack what the system needs, and say what some of them lack.

        Raises:
            DataError: says what.
        """

    def validation_limit(self, recipe: Recipe) -> int | None:
        return recipe.limit


class FineTuning(TrainedSystem):
    """A transformers encoder, fine-tuned as a classifier: what is trained where the model is no system's name."""

    paper = "Carton et al. (2020), appendix A"
    tasks = (MULTIPLE_CHOICE,)
    trainer = "eraser_hub.systems.finetuning:train_encoder"
    # the paper's batch, warmup and learning rate; AdamW with a linear decay
    hyper = Hyper(epochs=3.0, learning_rate=2e-5, warmup_steps=50, linear_decay=True, patience=0, clip=1.0)

    def fit(self, training: Training) -> Evaluation | None:
        from eraser_hub.attribution.open import is_path_like

        model = training.recipe.model
        if is_path_like(model) and not Path(model).is_dir():
            words = f"expected {', '.join(SYSTEMS)}, or a transformers folder or Hub id"
            raise DataError(words, rule="option-value", argument="model", file=model)
        return super().fit(training)


SYSTEMS: Registry[TrainedSystem] = Registry("eraser_hub.systems", "system", TrainedSystem, "eraser_hub.systems.models")


def find_system(model: str) -> TrainedSystem:
    """Return the system of that name; fine-tuning for other names, which are those of transformers models."""
    return SYSTEMS[model]() if model in SYSTEMS else FineTuning()


def answering_systems() -> list[str]:
    """Return the names of the systems that learn to answer with words of the text."""
    return [name for name in SYSTEMS if ANSWERS in SYSTEMS[name].tasks]
