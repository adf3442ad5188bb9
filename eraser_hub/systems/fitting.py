"""The training loop of PyTorch networks: Adam, early stopping, checkpoints, progress with the time left.

The same data, seed and hyper-parameters give the same weights on one machine. A stopped training resumes after its last
finished epoch.
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
from eraser_hub.records.errors import DataError
from eraser_hub.records.files import replace_file

from .evaluation import format_duration
from .folder import CHECKPOINT
from .hyper import Hyper
from .train_config import Say

Example = TypeVar("Example")
SAY_SECONDS = 10.0
POOL = 50  # batches whose examples are sorted by length together
BEST = "best.pt"


class Objective(ABC, Generic[Example]):
    """A network, its training examples and its loss.

    Attributes:
        network: The module whose weights are trained, on its device.
        device: The device.
    """

    network: nn.Module
    device: torch.device

    @abstractmethod
    def examples(self, epoch: int) -> Sequence[Example]:
        """Return the examples of an epoch; they may be drawn anew in each epoch, by their own seed."""

    @abstractmethod
    def size(self, example: Example) -> int:
        """Return the length of an example: examples of similar length form a batch."""

    @abstractmethod
    def loss(self, batch: Sequence[Example]) -> Tensor:
        """Return the loss of a batch."""

    def batches(self, examples: Iterable[Example], batch_size: int) -> Iterator[list[Example]]:
        """Return batches of examples of similar length, the longest first, for validation."""
        order = sorted(examples, key=self.size, reverse=True)
        return (order[start : start + batch_size] for start in range(0, len(order), batch_size))

    def validate(self) -> dict[str, float]:
        """Return ``accuracy``, ``macro_f1`` and ``loss`` on the validation split; an empty dictionary without one.

        The loss breaks ties between equal scores.
        """
        return {}


@dataclass(slots=True)
class Progress:
    """The progress of a training; a checkpoint holds it beside the weights.

    Attributes:
        step: Number of steps done in all epochs.
        epoch: The current epoch.
        best: The best validation score.
        best_loss: The loss of the best epoch.
        best_epoch: The epoch of the best score; -1 for none.
        history: The figures of each epoch.
    """

    step: int = 0
    epoch: int = 0
    best: float = -math.inf
    best_loss: float = math.inf
    best_epoch: int = -1
    history: list[dict[str, float]] = field(default_factory=list)


def fit(objective: Objective[Example], hyper: Hyper, seed: int, folder: Path, say: Say) -> Progress:
    """Train a network; it ends with its best weights by the validation split, or the last weights without one.

    Args:
        objective: The network, its examples and its loss.
        hyper: The hyper-parameters.
        seed: Seed of the batches and of torch.
        folder: The folder of :func:`folder.checkpoint_dir`; training resumes from a checkpoint in it.
        say: Receives lines of progress.

    Raises:
        DataError: Out of memory, or a loss that is not finite.
    """
    return _Fit(objective, hyper, seed, folder, say).run()


class _Fit(Generic[Example]):
    """One training in progress."""

    def __init__(
        self,
        objective: Objective[Example],
        hyper: Hyper,
        seed: int,
        folder: Path,
        say: Say,
    ) -> None:
        self.objective, self.hyper, self.seed, self.folder, self.say = objective, hyper, seed, folder, say
        self.network, self.progress = objective.network, Progress()
        weights = [one for one in self.network.parameters() if one.requires_grad]
        self.optimizer = torch.optim.AdamW(weights, lr=hyper.learning_rate, weight_decay=hyper.weight_decay)
        self.half = supports_bf16(objective.device)
        per_epoch = max(1, math.ceil(len(objective.examples(0)) / hyper.batch_size))
        self.first, self.total = 0, hyper.max_steps or math.ceil(hyper.epochs * per_epoch)
        self.losses: list[float] = []
        self.reported_at = self.started_at = time.monotonic()

    def run(self) -> Progress:
        """Train to the end and return the progress."""
        progress = self.progress
        torch.manual_seed(self.seed)
        self._load_checkpoint()
        self.first = progress.step
        while progress.step < self.total and not self._is_patience_over():
            self._train_epoch()
        if progress.best_epoch >= 0:
            self.network.load_state_dict(torch.load(self.folder / BEST, weights_only=True), strict=False)
        self.network.eval()
        return progress

    def _is_patience_over(self) -> bool:
        progress, patience = self.progress, self.hyper.patience
        since = progress.epoch - 1 - progress.best_epoch
        if not patience or progress.best_epoch < 0 or since < patience:
            return False
        best = progress.best_epoch + 1
        self.say(f"stopped early: no better {self.hyper.monitor} for {since} epochs than in epoch {best}")
        return True

    def _train_epoch(self) -> None:
        progress = self.progress
        examples = self.objective.examples(progress.epoch)
        random = np.random.default_rng([self.seed, progress.epoch])
        batches = batch_by_length([self.objective.size(one) for one in examples], self.hyper.batch_size, random)
        self.network.train()
        for numbers in batches:
            if progress.step == self.total:
                break
            self.losses.append(self._train_step([examples[number] for number in numbers]))
            progress.step += 1
            self._report_progress()
        self.network.eval()
        self._validate()
        progress.epoch += 1
        self._save_checkpoint()

    def _train_step(self, batch: Sequence[Example]) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = self.hyper.learning_rate * compute_rate(self.progress.step, self.total, self.hyper)
        self.optimizer.zero_grad()
        try:
            with torch.autocast(self.objective.device.type, torch.bfloat16, enabled=self.half):
                loss = self.objective.loss(batch)
            loss.backward()  # type: ignore[no-untyped-call]
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            words = f"out of memory in a step of {len(batch)} examples; a smaller `batch_size` or `window` needs less"
            raise DataError(words) from error
        value = float(loss.detach())
        if not math.isfinite(value):
            words = f"step {self.progress.step + 1}: expected a finite loss, found {value}"
            raise DataError(f"{words}; a smaller `learning_rate` may help")
        if self.hyper.clip:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.hyper.clip)
        self.optimizer.step()
        return value

    def _report_progress(self) -> None:
        now = time.monotonic()
        if now - self.reported_at >= SAY_SECONDS:
            self.reported_at = now
            step = f"step {self.progress.step} of {self.total}"
            self.say(f"{step}: loss {self._compute_mean_loss():.4f}, {self._describe_time_left()}")

    def _describe_time_left(self) -> str:
        per_step = (time.monotonic() - self.started_at) / max(1, self.progress.step - self.first)
        return f"{format_duration(per_step * (self.total - self.progress.step))} left"

    def _compute_mean_loss(self) -> float:
        return float(np.mean(self.losses)) if self.losses else math.nan

    def _validate(self) -> None:
        """Validate, keep the weights if they are the best so far, and report."""
        progress, loss = self.progress, self._compute_mean_loss()
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
                self._save(BEST, self._get_trained_weights())
                words[-1] += " (best)"
        progress.history.append({"step": progress.step, "loss": loss, **figures})
        self.reported_at = time.monotonic()
        self.say(", ".join([*words, self._describe_time_left()]))

    def _get_trained_weights(self) -> dict[str, Tensor]:
        """Return the weights that training changes."""
        frozen = {name for name, weights in self.network.named_parameters() if not weights.requires_grad}
        return {name: value for name, value in self.network.state_dict().items() if name not in frozen}

    def _save(self, name: str, content: Mapping[str, Any]) -> None:
        with replace_file(self.folder / name) as temporary_file:
            torch.save(content, temporary_file)

    def _save_checkpoint(self) -> None:
        content = {"weights": self._get_trained_weights(), "optimizer": self.optimizer.state_dict()}
        self._save(CHECKPOINT, {**content, "progress": asdict(self.progress)})

    def _load_checkpoint(self) -> None:
        path = self.folder / CHECKPOINT
        if not path.is_file():
            return
        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
            self.network.load_state_dict(content["weights"], strict=False)
            self.optimizer.load_state_dict(content["optimizer"])
            for name, value in content["progress"].items():
                setattr(self.progress, name, value)
        except Exception as error:  # torch raises errors of many types
            words = f"the checkpoint cannot be read; delete it to start anew: {error}"
            raise DataError(words, file=path, argument="resume") from error


def batch_by_length(sizes: Sequence[int], batch_size: int, random: np.random.Generator) -> list[list[int]]:
    """Return batches of example numbers of similar length, in random order; each number occurs once."""
    order = random.permutation(len(sizes)).tolist()
    pool = batch_size * POOL
    batches = []
    for start in range(0, len(order), pool):
        some = sorted(order[start : start + pool], key=lambda number: sizes[number])
        batches += [some[place : place + batch_size] for place in range(0, len(some), batch_size)]
    return [batches[number] for number in random.permutation(len(batches)).tolist()]


def compute_rate(step: int, total: int, hyper: Hyper) -> float:
    """Return the factor of the learning rate at a step: it grows over the warmup, then falls if it decays."""
    if step < hyper.warmup_steps:
        return step / hyper.warmup_steps
    return (total - step) / max(1, total - hyper.warmup_steps) if hyper.linear_decay else 1.0
