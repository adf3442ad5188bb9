"""The training loop of PyTorch networks: AdamW, early stopping, the best epoch kept, checkpoints, the time left.

The same data, seed and settings give the same weights on one machine. A stopped training resumes after its last
finished epoch.
"""

from __future__ import annotations

import logging
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from eraser_hub.attribution.models.devices import supports_bf16
from eraser_hub.attribution.models.inputs import is_out_of_memory
from eraser_hub.records.errors import DataError
from eraser_hub.records.files import replace_file

from .evaluation import compute_figures
from .system import CHECKPOINTS, Optimised

Example = TypeVar("Example", bound=Any)
CHECKPOINT, BEST = CHECKPOINTS
QUIET_SECONDS = 10.0  # between two lines of progress
POOL = 50  # batches whose examples are sorted by length together
log = logging.getLogger("eraser_hub")


class Countdown:
    """The time that a piece of work still takes, every ten seconds.

    Args:
        total: number of steps.
        done: number of steps that were done before.
    """

    def __init__(self, total: int, done: int = 0) -> None:
        self.total, self.done = total, done
        self.start = self.last = time.monotonic()

    def is_due(self) -> bool:
        """Return True if nothing was said for ten seconds."""
        now = time.monotonic()
        due = now - self.last >= QUIET_SECONDS
        self.last = now if due else self.last
        return due

    def describe(self, done: int) -> str:
        """Return the time that is left when so many steps are done, ``0:03:20 left``."""
        per_step = (time.monotonic() - self.start) / max(1, done - self.done)
        return f"{timedelta(seconds=round(per_step * (self.total - done)))} left"


class Objective(ABC, Generic[Example]):
    """A network, its training examples and its loss.

    Attributes:
        network: the module whose weights are trained, on its device.
        device: the device.
        validation: examples of the validation split.
        batch_size: of validation.
    """

    network: nn.Module
    device: torch.device
    validation: Sequence[Example]
    batch_size: int

    @abstractmethod
    def examples(self, epoch: int) -> Sequence[Example]:
        """Return the examples of an epoch; they may be drawn anew in each epoch, by their own seed."""

    @abstractmethod
    def size(self, example: Example) -> int:
        """Return the length of an example: examples of similar length form a batch."""

    @abstractmethod
    def loss(self, batch: Sequence[Example]) -> Tensor:
        """Return the loss of a batch."""

    def predict(self, batch: Sequence[Example]) -> tuple[Tensor, Tensor]:
        """Return logits of examples with a ``label``, (batch, labels), and the loss beside that of labels, (batch,)."""
        raise DataError(f"expected an objective with `predict` or `validate`, found neither in {type(self).__name__}")

    def batches(self) -> list[list[Example]]:
        """Return batches of validation examples of similar length, the longest first."""
        order, size = sorted(self.validation, key=self.size, reverse=True), self.batch_size
        return [order[start : start + size] for start in range(0, len(order), size)]

    def validate(self) -> dict[str, float]:
        """Return ``accuracy``, ``macro_f1`` and ``loss`` on the validation split; nothing without one."""
        if not self.validation:
            return {}
        logits, penalties = map(torch.cat, zip(*map(self.predict, self.batches()), strict=True))
        numbers = [example.label for batch in self.batches() for example in batch]
        loss = functional.cross_entropy(logits.float(), torch.tensor(numbers, device=logits.device)) + penalties.mean()
        return {**compute_figures(numbers, logits.argmax(dim=1).tolist()), "loss": float(loss)}


@dataclass(slots=True)
class Progress:
    """The progress of a training; a checkpoint holds it beside the weights.

    Attributes:
        step: number of steps done in all epochs.
        best_epoch: the epoch of the best validation score; -1 for none.
        best: that score, and minus its loss: of equal scores the smaller loss is better, since few instances give few
            different accuracies.
        history: the figures of each finished epoch.
    """

    step: int = 0
    best_epoch: int = -1
    best: list[float] = field(default_factory=list)
    history: list[dict[str, float]] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        """Return what ``model.json`` says of the training."""
        best = {"best_epoch": self.best_epoch + 1} if self.best_epoch >= 0 else {}
        return {"steps": self.step, **best, "epochs": self.history}


def fit(objective: Objective[Example], settings: Optimised, seed: int, folder: Path) -> Progress:
    """Train a network; it ends with its best weights by the validation split, or the last weights without one.

    Args:
        objective: the network, its examples and its loss.
        settings: how it is trained.
        seed: of the batches and of torch.
        folder: of the checkpoint, from which a stopped training resumes.

    Raises:
        DataError: out of memory, a loss that is not finite, or a damaged checkpoint.
    """
    network, progress = objective.network, Progress()
    optimizer = torch.optim.AdamW(
        [weights for weights in network.parameters() if weights.requires_grad],
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
    )
    torch.manual_seed(seed)
    _load_checkpoint(folder / CHECKPOINT, network, optimizer, progress)
    per_epoch = max(1, math.ceil(len(objective.examples(0)) / settings.batch_size))
    total = settings.max_steps or math.ceil(settings.epochs * per_epoch)
    countdown = Countdown(total, progress.step)
    while progress.step < total and not _is_patience_over(progress, settings):
        epoch = len(progress.history)
        examples, losses = objective.examples(epoch), list[float]()
        sizes, random = [objective.size(one) for one in examples], np.random.default_rng([seed, epoch])
        network.train()
        for numbers in batch_by_length(sizes, settings.batch_size, random)[: total - progress.step]:
            batch = [examples[number] for number in numbers]
            losses.append(_take_step(objective, optimizer, batch, settings, progress.step, total))
            progress.step += 1
            if countdown.is_due():
                loss = f"loss {np.mean(losses):.4f}"
                log.info(f"step {progress.step} of {total}: {loss}, {countdown.describe(progress.step)}")
        network.eval()
        with torch.inference_mode():
            figures = objective.validate()
        described = [f"epoch {epoch + 1}, step {progress.step} of {total}: loss {np.mean(losses):.4f}"]
        described += [f"validation {name.replace('_', ' ')} {value:.4f}" for name, value in figures.items()]
        if figures:
            score = figures[settings.monitor] * (-1 if settings.monitor == "loss" else 1)
            if [score, -figures["loss"]] > progress.best:
                progress.best, progress.best_epoch = [score, -figures["loss"]], epoch
                _save(_get_trained_weights(network), folder / BEST)
                described[-1] += " (best)"
        progress.history.append({"step": progress.step, "training_loss": float(np.mean(losses)), **figures})
        log.info(", ".join([*described, countdown.describe(progress.step)]))
        content = {"weights": _get_trained_weights(network), "optimizer": optimizer.state_dict()}
        _save({**content, "progress": asdict(progress)}, folder / CHECKPOINT)
    if progress.best_epoch >= 0:
        network.load_state_dict(torch.load(folder / BEST, weights_only=True), strict=False)
    network.eval()
    return progress


def _take_step(
    objective: Objective[Example],
    optimizer: torch.optim.Optimizer,
    batch: Sequence[Example],
    settings: Optimised,
    step: int,
    total: int,
) -> float:
    """Take one step and return its loss."""
    for group in optimizer.param_groups:
        group["lr"] = settings.learning_rate * compute_rate(step, total, settings)
    optimizer.zero_grad()
    try:
        with torch.autocast(objective.device.type, torch.bfloat16, enabled=supports_bf16(objective.device)):
            loss = objective.loss(batch)
        loss.backward()  # type: ignore[no-untyped-call]
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        message = f"out of memory in a step of {len(batch)} examples; a smaller `batch_size` or `window` needs less"
        raise DataError(message) from error
    value = float(loss.detach())
    if not math.isfinite(value):
        message = f"step {step + 1}: expected a finite loss, found {value}; a smaller `learning_rate` may help"
        raise DataError(message)
    if settings.clip:
        nn.utils.clip_grad_norm_(objective.network.parameters(), settings.clip)
    optimizer.step()
    return value


def _is_patience_over(progress: Progress, settings: Optimised) -> bool:
    since = len(progress.history) - 1 - progress.best_epoch
    if not settings.patience or progress.best_epoch < 0 or since < settings.patience:
        return False
    best = progress.best_epoch + 1
    log.info(f"stopped early: no better {settings.monitor} for {since} epochs than in epoch {best}")
    return True


def _get_trained_weights(network: nn.Module) -> dict[str, Tensor]:
    """Return the weights that training changes."""
    frozen = {name for name, weights in network.named_parameters() if not weights.requires_grad}
    return {name: value for name, value in network.state_dict().items() if name not in frozen}


def _save(content: Mapping[str, Any], path: Path) -> None:
    with replace_file(path) as beside:
        torch.save(content, beside)


def _load_checkpoint(path: Path, network: nn.Module, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
    if not path.is_file():
        return
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        network.load_state_dict(content["weights"], strict=False)
        optimizer.load_state_dict(content["optimizer"])
        for name, value in content["progress"].items():
            setattr(progress, name, value)
    except Exception as error:  # torch raises errors of many types
        message = f"the checkpoint cannot be read; delete it to start anew: {error}"
        raise DataError(message, file=path, argument="resume") from error


def batch_by_length(sizes: Sequence[int], batch_size: int, random: np.random.Generator) -> list[list[int]]:
    """Return batches of example numbers of similar length, in random order; each number occurs once."""
    order = random.permutation(len(sizes)).tolist()
    pool = batch_size * POOL
    batches = []
    for start in range(0, len(order), pool):
        some = sorted(order[start : start + pool], key=lambda number: sizes[number])
        batches += [some[place : place + batch_size] for place in range(0, len(some), batch_size)]
    return [batches[number] for number in random.permutation(len(batches)).tolist()]


def compute_rate(step: int, total: int, settings: Optimised) -> float:
    """Return the factor of the learning rate at a step: it grows over the warmup, then falls if it decays."""
    if step < settings.warmup_steps:
        return step / settings.warmup_steps
    return (total - step) / max(1, total - settings.warmup_steps) if settings.linear_decay else 1.0
