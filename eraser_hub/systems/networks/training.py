"""Train one of the papers' networks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.transformers.devices import find_device, to_float64
from eraser_hub.records.errors import DataError
from eraser_hub.systems.data import Data, Training, is_marked, span_of
from eraser_hub.systems.evaluation import Evaluation, figures_of
from eraser_hub.systems.fitting import Objective, Progress, fit
from eraser_hub.systems.folder import saving, write_facts
from eraser_hub.systems.grid import Judged, best_of_grid
from eraser_hub.systems.system import NetworkSystem

from .classifiers import Shape, TaughtReading, TokenNetwork
from .files import embedders_from, network_of, save_network
from .network_model import best_answer
from .readings import batch_of, read


class NetworkObjective(Objective[TaughtReading]):
    """A network over words, trained on labelled instances by its own loss.

    Args:
        batch_size: of validation.
    """

    def __init__(self, network: TokenNetwork, data: Data, device: torch.device, batch_size: int) -> None:
        self.network = self.model = network.to(device)
        self.device, self.batch_size, self.draw = device, batch_size, data.draw
        self.training = [self._example(data, *pair) for pair in zip(*data.train, strict=True)]
        self.validation = [self._example(data, *pair) for pair in zip(*data.validation, strict=True)]

    def _example(self, data: Data, one: Instance, label: str) -> TaughtReading:
        reading = read(one, self.model.embedder.lexicon, data.uses_query, self.model.shape.apart).reading
        number = data.label_names.index(label)
        if not is_marked(one):
            return TaughtReading(reading, number)
        flags = np.asarray([flag for document in one.rationale or () for flag in document] + [False])
        return TaughtReading(reading, number, flags[reading.token])

    def examples(self, epoch: int) -> Sequence[TaughtReading]:
        self.model.epoch = epoch
        return self.training if self.draw is None else [self.training[number] for number in self.draw(epoch)]

    def size(self, example: TaughtReading) -> int:
        return len(example.reading.words)

    def loss(self, batch: Sequence[TaughtReading]) -> Tensor:
        return self.model.loss(batch_of([one.reading for one in batch], self.device), batch)

    def validate(self) -> dict[str, float]:
        numbers, logits, penalties = list[int](), [], []
        for some in self.batches(self.validation, self.batch_size):
            batch = batch_of([one.reading for one in some], self.device)
            numbers += [one.label for one in some]
            logits.append(self.model(batch).float())
            penalties.append(self.model.penalty(batch))
        if not logits:
            return {}
        labels, whole = torch.tensor(numbers, device=self.device), torch.cat(logits)
        loss = float(functional.cross_entropy(whole, labels) + torch.cat(penalties).mean())
        return {**figures_of(numbers, whole.argmax(dim=1).tolist()), "loss": loss}


class AnswerObjective(NetworkObjective):
    """A network that points to an answer, trained by the place where the gold one stands.

    On validation ``accuracy`` is the share of instances whose best answer is at that place, ``loss`` minus the
    logarithm of p(start) p(end) there.
    """

    def _example(self, data: Data, one: Instance, label: str) -> TaughtReading:
        span = span_of(one.tokens, label)
        assert span is not None  # the others were left out
        return TaughtReading(read(one, self.model.embedder.lexicon, True, True).reading, span=span)

    def validate(self) -> dict[str, float]:
        losses, hits = list[float](), 0
        for some in self.batches(self.validation, self.batch_size):
            logits = to_float64(self.model(batch_of([one.reading for one in some], self.device)))
            for one, rows in zip(some, torch.log_softmax(logits, dim=-1).cpu().numpy(), strict=True):
                losses.append(-float(rows[0, one.span[0]] + rows[1, one.span[1]]))
                hits += best_answer(*np.exp(rows))[:2] == one.span
        return {"accuracy": hits / len(losses), "loss": float(np.mean(losses))} if losses else {}


def train_network(system: NetworkSystem, training: Training) -> Evaluation | None:
    """Train and save a network that ``explain`` opens.

    Returns:
        How well what was kept does on the validation split; None without one.

    Raises:
        DataError: options that the system does not take, an encoder or embeddings that cannot be read, no human
            rationales for a system that learns from them, a grid without anything to choose by.
    """
    recipe, data, out = training.recipe, training.data, training.out
    (network, progress), rows = best_of_grid(training, partial(fit_network, system), _judged)
    kept = {"best_epoch": progress.best_epoch + 1} if progress.best_epoch >= 0 else {}
    facts = {**training.facts, **({"grid": rows} if rows else {}), "network": recipe.model, "steps": progress.step}
    with saving(out):
        save_network(network, training.config(), out)
        write_facts({**facts, **kept, "seed": recipe.seed, "epochs": progress.history}, out)
    figures = progress.history[progress.best_epoch] if kept else {}
    if "macro_f1" not in figures:
        return None
    return Evaluation(figures["accuracy"], figures["macro_f1"], len(data.validation[0]))


def _judged(trained: tuple[TokenNetwork, Progress]) -> Judged:
    network, progress = trained
    return Judged((progress.best, -progress.best_loss), {network.hyper.monitor: abs(progress.best)})


def fit_network(system: NetworkSystem, training: Training) -> tuple[TokenNetwork, Progress]:
    """Make a recipe's network and train it."""
    recipe, data, say = training.recipe, training.data, training.say
    hyper: Any = system.hyper_of(recipe)
    if data.answers and hyper.monitor == "macro_f1":
        words = "`hyper` monitor: expected accuracy or loss where answers are learned, found 'macro_f1'"
        raise DataError(words, rule="option-value")
    system.check_data(recipe, hyper, data, say)
    torch.manual_seed(recipe.seed)
    new_embedder = embedders_from(recipe, hyper, data.train[0], say)
    shape = Shape(len(data.label_names), system.reads_apart and data.in_pairs, data.answers)
    network = network_of(recipe.model, hyper, shape, new_embedder)
    if not data.validation[0]:
        say("no validation split: the last weights are kept, and nothing stops the training early")
    kind = AnswerObjective if data.answers else NetworkObjective
    objective = kind(network, data, find_device(None), hyper.batch_size)
    weights = sum(each.numel() for each in network.parameters() if each.requires_grad)
    say(f"{recipe.model}: {weights:,} weights to train, {len(data.train[0])} instances, on {objective.device}")
    return network, fit(objective, hyper, recipe.seed, training.folder, say)
