"""The one loop that trains PyTorch networks: Adam, early stopping, checkpoints, progress with the time that is left.

The same data, seed and hyper-parameters give the same weights on one machine, also where a training was stopped and
goes on: the order of an epoch's examples depends on seed and epoch alone, and a checkpoint holds the state of torch's
random numbers.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from eraser_hub.attribution.adapter import is_out_of_memory
from eraser_hub.attribution.transformers.devices import supports_bf16
from eraser_hub.records.atomic import replacing
from eraser_hub.records.errors import DataError

from .evaluation import in_words
from .folder import CHECKPOINT
from .hyper import Hyper
from .recipe import Say

Example = TypeVar("Example")
SAY_SECONDS, CHECKPOINT_SECONDS = 10.0, 120.0
POOL = 50  # batches whose examples are sorted by length together
BEST = "best.pt"


class Objective(ABC, Generic[Example]):
    """What is trained on what.

    Attributes:
        network: the module whose weights are trained, on its device.
        device: where.
    """

    network: nn.Module
    device: torch.device

    @abstractmethod
    def examples(self, epoch: int) -> Sequence[Example]:
        """The examples of an epoch; they may be drawn anew in each, by a seed of their own."""

    @abstractmethod
    def size(self, example: Example) -> int:
        """Its length: examples of like length go into one batch."""

    @abstractmethod
    def loss(self, batch: Sequence[Example]) -> Tensor:
        """A number that training makes small."""

    def batches(self, examples: Iterable[Example], batch_size: int) -> Iterator[list[Example]]:
        """Examples of like length together, the longest first: what validation runs over."""
        order = sorted(examples, key=self.size, reverse=True)
        return (order[start : start + batch_size] for start in range(0, len(order), batch_size))

    def validate(self) -> dict[str, float]:
        """``accuracy``, ``macro_f1`` and ``loss`` on the validation split; nothing where there is none.

        The loss breaks ties between equal scores.
        """
        return {}


@dataclass(slots=True)
class Progress:
    """How far a training is; what a checkpoint holds beside weights.

    Attributes:
        step, epoch, done: steps in all; the epoch at hand; its steps that are done.
        best, best_loss, best_epoch: the best validation score, the loss beside it and its epoch, -1 for none.
        history: figures of each epoch.
    """

    step: int = 0
    epoch: int = 0
    done: int = 0
    best: float = -math.inf
    best_loss: float = math.inf
    best_epoch: int = -1
    history: list[dict[str, float]] = field(default_factory=list)


def fit(objective: Objective[Example], hyper: Hyper, seed: int, folder: Path, say: Say) -> Progress:
    """Train; the network ends with its best weights by the validation split, or the last where there is none.

    Args:
        folder: of :func:`folder.unfinished`; a checkpoint in it is gone on with.

    Raises:
        DataError: out of memory, a loss that is not finite.
    """
    return _Fit(objective, hyper, seed, folder, say).run()


class _Fit(Generic[Example]):
    """One training on its way."""

    def __init__(self, objective: Objective[Example], hyper: Hyper, seed: int, folder: Path, say: Say) -> None:
        self.objective, self.hyper, self.seed, self.folder, self.say = objective, hyper, seed, folder, say
        self.network, self.progress = objective.network, Progress()
        weights = [one for one in self.network.parameters() if one.requires_grad]
        self.optimizer = torch.optim.AdamW(weights, lr=hyper.learning_rate, weight_decay=hyper.weight_decay)
        self.half = supports_bf16(objective.device)
        per_epoch = max(1, math.ceil(len(objective.examples(0)) / hyper.batch_size))
        self.first, self.total = 0, hyper.max_steps or math.ceil(hyper.epochs * per_epoch)
        self.losses: list[float] = []
        self.said = self.kept = self.began = time.monotonic()

    def run(self) -> Progress:
        progress = self.progress
        torch.manual_seed(self.seed)
        self._load()
        self.first = progress.step
        while progress.step < self.total and not self._waited_enough():
            self._epoch()
        if progress.best_epoch >= 0:
            self.network.load_state_dict(torch.load(self.folder / BEST, weights_only=True), strict=False)
        self.network.eval()
        return progress

    def _waited_enough(self) -> bool:
        progress, patience = self.progress, self.hyper.patience
        since = progress.epoch - 1 - progress.best_epoch
        if not patience or progress.best_epoch < 0 or since < patience:
            return False
        best = progress.best_epoch + 1
        self.say(f"stopped early: no better {self.hyper.monitor} for {since} epochs than in epoch {best}")
        return True

    def _epoch(self) -> None:
        progress = self.progress
        examples = self.objective.examples(progress.epoch)
        random = np.random.default_rng([self.seed, progress.epoch])
        batches = by_length([self.objective.size(one) for one in examples], self.hyper.batch_size, random)
        self.network.train()
        for numbers in batches[progress.done :]:
            if progress.step == self.total:
                break
            self.losses.append(self._step([examples[number] for number in numbers]))
            progress.step, progress.done = progress.step + 1, progress.done + 1
            self._report()
        self.network.eval()
        self._validated()
        progress.epoch, progress.done = progress.epoch + 1, 0
        self._checkpoint()

    def _step(self, batch: Sequence[Example]) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = self.hyper.learning_rate * rate_at(self.progress.step, self.total, self.hyper)
        self.optimizer.zero_grad()
        try:
            with torch.autocast(self.objective.device.type, torch.bfloat16, enabled=self.half):
                loss = self.objective.loss(batch)
            loss.backward()  # type: ignore[no-untyped-call]
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            words = f"out of memory in a step of {len(batch)} examples; a smaller `batch_size` or `window` needs less"
            raise DataError(words, rule="device") from error
        value = float(loss.detach())
        if not math.isfinite(value):
            words = f"step {self.progress.step + 1}: expected a finite loss, found {value}"
            raise DataError(f"{words}; a smaller `learning_rate` may help", rule="model-output")
        if self.hyper.clip:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.hyper.clip)
        self.optimizer.step()
        return value

    def _report(self) -> None:
        now = time.monotonic()
        if now - self.said >= SAY_SECONDS:
            self.said = now
            self.say(f"step {self.progress.step} of {self.total}: loss {self._mean_loss():.4f}, {self._left()}")
        if now - self.kept >= CHECKPOINT_SECONDS:
            self._checkpoint()

    def _left(self) -> str:
        per_step = (time.monotonic() - self.began) / max(1, self.progress.step - self.first)
        return f"{in_words(per_step * (self.total - self.progress.step))} left"

    def _mean_loss(self) -> float:
        return float(np.mean(self.losses)) if self.losses else math.nan

    def _validated(self) -> None:
        """Look at the validation split, keep the weights where they are the best, and say how it stands."""
        progress, loss = self.progress, self._mean_loss()
        self.losses = []
        with torch.inference_mode():
            figures = self.objective.validate()
        score = figures.get(self.hyper.monitor)
        words = [f"epoch {progress.epoch + 1}, step {progress.step} of {self.total}: loss {loss:.4f}"]
        words += [f"validation {name.replace('_', ' ')} {value:.4f}" for name, value in figures.items()]
        if score is not None:
            score = -score if self.hyper.monitor == "loss" else score
            # of equal scores the smaller loss is better: few instances give few different accuracies
            if (score, -figures["loss"]) > (progress.best, -progress.best_loss):
                progress.best, progress.best_loss, progress.best_epoch = score, figures["loss"], progress.epoch
                self._keep(BEST, self._trained())
                words[-1] += " (best)"
        progress.history.append({"step": progress.step, "loss": loss, **figures})
        self.said = time.monotonic()
        self.say(", ".join([*words, self._left()]))

    def _trained(self) -> dict[str, Tensor]:
        """Weights that training changes."""
        still = {name for name, weights in self.network.named_parameters() if not weights.requires_grad}
        return {name: value for name, value in self.network.state_dict().items() if name not in still}

    def _keep(self, name: str, content: Mapping[str, Any]) -> None:
        with replacing(self.folder / name) as beside:
            torch.save(content, beside)

    def _checkpoint(self) -> None:
        self.kept = time.monotonic()
        random = {"random": torch.get_rng_state()}
        if self.objective.device.type == "cuda":
            random["random_there"] = torch.cuda.get_rng_state(self.objective.device)
        content = {"weights": self._trained(), "optimizer": self.optimizer.state_dict(), **random}
        self._keep(CHECKPOINT, {**content, "progress": asdict(self.progress), "losses": self.losses})

    def _load(self) -> None:
        path = self.folder / CHECKPOINT
        if not path.is_file():
            return
        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
            self.network.load_state_dict(content["weights"], strict=False)
            self.optimizer.load_state_dict(content["optimizer"])
            for name, value in content["progress"].items():
                setattr(self.progress, name, value)
            self.losses = content["losses"]
        except Exception as error:  # torch raises errors of many types
            words = f"the checkpoint cannot be read; delete it to begin anew: {error}"
            raise DataError(words, rule="resume", file=path, argument="resume") from error
        torch.set_rng_state(content["random"])
        if "random_there" in content and self.objective.device.type == "cuda":
            torch.cuda.set_rng_state(content["random_there"], self.objective.device)


def by_length(sizes: Sequence[int], batch_size: int, random: np.random.Generator) -> list[list[int]]:
    """Numbers of examples in batches of like length, in random order; each number is in one."""
    order = random.permutation(len(sizes)).tolist()
    pool = batch_size * POOL
    batches = []
    for start in range(0, len(order), pool):
        some = sorted(order[start : start + pool], key=lambda number: sizes[number])
        batches += [some[place : place + batch_size] for place in range(0, len(some), batch_size)]
    return [batches[number] for number in random.permutation(len(batches)).tolist()]


def rate_at(step: int, total: int, hyper: Hyper) -> float:
    """The factor of the learning rate at a step, from 0: it grows over the warmup, and then falls where it decays."""
    if step < hyper.warmup_steps:
        return step / hyper.warmup_steps
    return (total - step) / max(1, total - hyper.warmup_steps) if hyper.linear_decay else 1.0
