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
from eraser_hub.records.errors import UsageError
from eraser_hub.systems.data import Data, Training, find_answer_span
from eraser_hub.systems.evaluation import Evaluation, compute_figures
from eraser_hub.systems.fitting import Objective, Progress, fit
from eraser_hub.systems.folder import mark_saving, write_facts
from eraser_hub.systems.grid import TrialScore, train_grid
from eraser_hub.systems.system import NetworkSystem

from .classifiers import Shape, TaughtReading, TokenNetwork
from .files import build_network, make_embedder_factory, save_network
from .network_model import find_best_answer
from .readings import pad_readings, read_instance


class NetworkObjective(Objective[TaughtReading]):
    """The training of a network over words on labelled instances, by the network's own loss.

    Args:
        network: The network.
        data: The instances.
        device: The device.
        batch_size: Size of validation batches.
    """

    def __init__(self, network: TokenNetwork, data: Data, device: torch.device, batch_size: int) -> None:
        self.network = self.model = network.to(device)
        self.device, self.batch_size, self.draw = device, batch_size, data.draw
        self.training = [self._make_example(data, *pair) for pair in zip(*data.train, strict=True)]
        self.validation = [self._make_example(data, *pair) for pair in zip(*data.validation, strict=True)]

    def _make_example(self, data: Data, one: Instance, label: str) -> TaughtReading:
        reading = read_instance(one, self.model.embedder.lexicon, data.uses_query, self.model.shape.apart).reading
        number = data.label_names.index(label)
        if not one.has_rationale:
            return TaughtReading(reading, number)
        flags = np.asarray([flag for document in one.rationale or () for flag in document] + [False])
        return TaughtReading(reading, number, flags[reading.token])

    def examples(self, epoch: int) -> Sequence[TaughtReading]:
        """Return the examples of an epoch."""
        self.model.epoch = epoch
        return self.training if self.draw is None else [self.training[number] for number in self.draw(epoch)]

    def size(self, example: TaughtReading) -> int:
        """Return the number of places of an example."""
        return len(example.reading.words)

    def loss(self, batch: Sequence[TaughtReading]) -> Tensor:
        """Return the loss of a batch."""
        return self.model.loss(pad_readings([one.reading for one in batch], self.device), batch)

    def validate(self) -> dict[str, float]:
        """Return the validation figures."""
        numbers, logits, penalties = list[int](), [], []
        for some in self.batches(self.validation, self.batch_size):
            batch = pad_readings([one.reading for one in some], self.device)
            numbers += [one.label for one in some]
            logits.append(self.model(batch).float())
            penalties.append(self.model.penalty(batch))
        if not logits:
            return {}
        labels, whole = torch.tensor(numbers, device=self.device), torch.cat(logits)
        loss = float(functional.cross_entropy(whole, labels) + torch.cat(penalties).mean())
        return {**compute_figures(numbers, whole.argmax(dim=1).tolist()), "loss": loss}


class AnswerObjective(NetworkObjective):
    """The training of a network that points to an answer, by the position of the gold answer.

    In validation, ``accuracy`` is the share of instances whose best answer is at that position, and ``loss`` is the
    mean of -log p(start) p(end) there.
    """

    def _make_example(self, data: Data, one: Instance, label: str) -> TaughtReading:
        span = find_answer_span(one.tokens, label)
        assert span is not None  # the others were left out
        return TaughtReading(read_instance(one, self.model.embedder.lexicon, True, True).reading, span=span)

    def validate(self) -> dict[str, float]:
        """Return the validation figures."""
        losses, hits = list[float](), 0
        for some in self.batches(self.validation, self.batch_size):
            logits = to_float64(self.model(pad_readings([one.reading for one in some], self.device)))
            for one, rows in zip(some, torch.log_softmax(logits, dim=-1).cpu().numpy(), strict=True):
                losses.append(-float(rows[0, one.span[0]] + rows[1, one.span[1]]))
                hits += find_best_answer(*np.exp(rows))[:2] == one.span
        return {"accuracy": hits / len(losses), "loss": float(np.mean(losses))} if losses else {}


def train_network(system: NetworkSystem, training: Training) -> Evaluation | None:
    """Train and save a network that ``explain`` opens.

    Returns:
        The validation figures of the saved weights; None without a validation split.

    Raises:
        DataError: Options that the system does not take, an encoder or embeddings that cannot be read, no human
            rationales for a system that learns from them, or a grid without a validation split.
    """
    config, data, out = training.config, training.data, training.out
    (network, progress), rows = train_grid(training, partial(fit_network, system), _judge)
    best_epoch = {"best_epoch": progress.best_epoch + 1} if progress.best_epoch >= 0 else {}
    facts = {**training.facts, **({"grid": rows} if rows else {}), "network": config.model, "steps": progress.step}
    with mark_saving(out):
        save_network(network, training.describe(), out)
        write_facts({**facts, **best_epoch, "seed": config.seed, "epochs": progress.history}, out)
    figures = progress.history[progress.best_epoch] if best_epoch else {}
    if "macro_f1" not in figures:
        return None
    return Evaluation(figures["accuracy"], figures["macro_f1"], len(data.validation[0]))


def _judge(trained: tuple[TokenNetwork, Progress]) -> TrialScore:
    network, progress = trained
    return TrialScore((progress.best, -progress.best_loss), {network.hyper.monitor: abs(progress.best)})


def fit_network(system: NetworkSystem, training: Training) -> tuple[TokenNetwork, Progress]:
    """Build the network of a training and train it."""
    config, data, say = training.config, training.data, training.say
    hyper: Any = system.make_hyper(config)
    if data.answers and hyper.monitor == "macro_f1":
        words = "monitor: expected accuracy or loss where answers are learned, found 'macro_f1'"
        raise UsageError(words, argument="model")
    system.check_data(config, hyper, data, say)
    torch.manual_seed(config.seed)
    new_embedder = make_embedder_factory(config, hyper, data.train[0], say)
    shape = Shape(len(data.label_names), system.reads_apart and data.has_pairs, data.answers)
    network = build_network(config.model, hyper, shape, new_embedder)
    if not data.validation[0]:
        say("no validation split: the last weights are kept, and nothing stops the training early")
    kind = AnswerObjective if data.answers else NetworkObjective
    objective = kind(network, data, find_device(None), hyper.batch_size)
    weights = sum(each.numel() for each in network.parameters() if each.requires_grad)
    say(f"{config.model}: {weights:,} weights to train, {len(data.train[0])} instances, on {objective.device}")
    return network, fit(objective, hyper, config.seed, training.folder, say)
