"""Train one of the papers' networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.transformers.devices import device_for, doubled
from eraser_hub.records.errors import DataError
from eraser_hub.systems.networks.answers import best_answer
from eraser_hub.systems.networks.files import CLASSES, VectorSource, embedders_from, network_of, save_network
from eraser_hub.systems.networks.readings import batch_of, read
from eraser_hub.systems.networks.systems import LeiHyper, NetworkHyper, hyper_of
from eraser_hub.systems.networks.token_network import Shape, TaughtReading, TokenNetwork

from .baselines import write_facts
from .data import Data, span_of
from .evaluation import figures_of
from .fitting import Objective, Progress, fit
from .grid import Judged, best_of_grid
from .recipe import Recipe, Say
from .unfinished import saving


class NetworkObjective(Objective[TaughtReading]):
    """A network over words, trained on labelled instances by its own loss.

    Args:
        batch_size: of validation.
    """

    def __init__(self, network: TokenNetwork, data: Data, device: torch.device, batch_size: int) -> None:
        self.network = self.model = network.to(device)
        self.device, self.batch_size, self.draw = device, batch_size, data.draw
        self.training, self.validation = (
            [self._example(one, label, data) for one, label in zip(*part, strict=True)]
            for part in (data.train, data.validation)
        )

    def _example(self, one: Instance, label: str, data: Data) -> TaughtReading:
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
        order = sorted(self.validation, key=lambda one: -self.size(one))
        logits, penalties = [], []
        for start in range(0, len(order), self.batch_size):
            batch = batch_of([one.reading for one in order[start : start + self.batch_size]], self.device)
            logits.append(self.model(batch).float())
            penalties.append(self.model.penalty(batch))
        if not logits:
            return {}
        labels, whole = torch.tensor([one.label for one in order], device=self.device), torch.cat(logits)
        loss = float(functional.cross_entropy(whole, labels) + torch.cat(penalties).mean())
        return {**figures_of(labels.tolist(), whole.argmax(dim=1).tolist()), "loss": loss}


class AnswerObjective(NetworkObjective):
    """A network that points to an answer, trained by the place where the gold one stands.

    On validation ``accuracy`` is the share of instances whose best answer is at that place, ``loss`` minus the
    logarithm of p(start) p(end) there.
    """

    def _example(self, one: Instance, label: str, data: Data) -> TaughtReading:
        span = span_of(one.tokens, label)
        assert span is not None  # the others were left out
        return TaughtReading(read(one, self.model.embedder.lexicon, True, True).reading, span=span)

    def validate(self) -> dict[str, float]:
        order = sorted(self.validation, key=lambda one: -self.size(one))
        losses, hits = list[float](), 0
        for start in range(0, len(order), self.batch_size):
            some = order[start : start + self.batch_size]
            logits = doubled(self.model(batch_of([one.reading for one in some], self.device)))
            for one, rows in zip(some, torch.log_softmax(logits, dim=-1).cpu().numpy(), strict=True):
                losses.append(-float(rows[0, one.span[0]] + rows[1, one.span[1]]))
                best = best_answer(*np.exp(rows))
                hits += (best.first, best.last) == one.span
        return {"accuracy": hits / len(order), "loss": float(np.mean(losses))} if order else {}


def train_network(
    recipe: Recipe, data: Data, facts: dict[str, Any], out: Path, folder: Path, say: Say
) -> dict[str, float]:
    """Train and save a network that ``eraser-hub explain`` opens.

    Args:
        facts: what ``model.json`` says of the data.
        folder: of :func:`unfinished.unfinished`.

    Returns:
        The figures of what was kept on the validation split; none without one.

    Raises:
        DataError: options that the system does not take, an encoder or embeddings that cannot be read, no human
            rationales for a system that learns from them, a grid without anything to choose by.
    """

    def train(one: Recipe, place: Path, say: Say) -> tuple[TokenNetwork, Progress]:
        return fit_network(one, data, place, say)

    (network, progress), rows = best_of_grid(recipe, data, folder, train, _judged, say)
    grid = {"grid": rows} if rows else {}
    config = {
        "system": recipe.model,
        "label_names": list(data.label_names),
        "uses_query": data.uses_query,
        "encoder": Path(recipe.encoder).name,
        "embeddings": Path(recipe.embeddings).name,
        "seed": recipe.seed,
    }
    with saving(out):
        save_network(network, config, out)
        kept = {"best_epoch": progress.best_epoch + 1} if progress.best_epoch >= 0 else {}
        training = {
            "network": recipe.model,
            "steps": progress.step,
            **kept,
            "seed": recipe.seed,
            "epochs": progress.history,
        }
        write_facts({**facts, **grid, **training}, out)
    return progress.history[progress.best_epoch] if kept else {}


def _judged(trained: tuple[TokenNetwork, Progress]) -> Judged:
    network, progress = trained
    return Judged((progress.best, -progress.best_loss), {network.hyper.monitor: abs(progress.best)})


def fit_network(recipe: Recipe, data: Data, folder: Path, say: Say) -> tuple[TokenNetwork, Progress]:
    """Make a recipe's network and train it."""
    hyper = network_hyper(recipe)
    if data.answers and hyper.monitor == "macro_f1":
        words = "--set monitor: expected accuracy or loss where answers are learned, found 'macro_f1'"
        raise DataError(words, rule="option-value")
    instances = data.train[0]
    _check_rationales(recipe.model, hyper, instances, say)
    torch.manual_seed(recipe.seed)
    source = VectorSource(
        recipe.encoder, Path(recipe.embeddings) if recipe.embeddings else None, recipe.trust_remote_code
    )
    new_embedder = embedders_from(source, hyper, instances, recipe.seed, say)
    network = network_of(recipe.model, hyper, shape_of(recipe.model, data), new_embedder)
    if not data.validation[0]:
        say("no validation split: the last weights are kept, and nothing stops the training early")
    kind = AnswerObjective if data.answers else NetworkObjective
    objective = kind(network, data, device_for(None), hyper.batch_size)
    trained = sum(weights.numel() for weights in network.parameters() if weights.requires_grad)
    say(f"{recipe.model}: {trained:,} weights to train, {len(instances)} instances, on {objective.device}")
    return network, fit(objective, hyper, recipe.seed, folder, say)


def is_marked(one: Instance) -> bool:
    """Whether any of its tokens is in a human rationale."""
    return one.rationale is not None and any(map(any, one.rationale))


def network_hyper(recipe: Recipe) -> NetworkHyper:
    """The hyper-parameters of a recipe's network.

    Raises:
        DataError: see :func:`hyper_of`; embeddings beside an encoder.
    """
    options = {**recipe.options(), "window": recipe.window}
    hyper = hyper_of(recipe.model, recipe.encoder, options, recipe.hyper)
    if recipe.embeddings and recipe.encoder:
        raise DataError("--embeddings: expected --embeddings or --encoder, found both", rule="option-conflict")
    assert isinstance(hyper, NetworkHyper)
    return hyper


def shape_of(system: str, data: Data) -> Shape:
    """Labels, and whether texts come in twos: with a query, or where every instance has two documents."""
    two = data.uses_query or all(len(one.documents) == 2 for one in data.train[0])
    apart = CLASSES[system].reads_apart(two)
    if system == "match-lstm" and not apart:
        words = "match-lstm matches a text with a question: expected a query (--query) or pairs of texts, found neither"
        raise DataError(words, rule="option-missing")
    return Shape(len(data.label_names), apart, data.answers)


def _check_rationales(
    system: str, hyper: NetworkHyper, instances: Sequence[Instance], say: Callable[[str], None]
) -> None:
    if not (isinstance(hyper, LeiHyper) and hyper.supervision):
        return
    without = len(instances) - sum(map(is_marked, instances))
    if without == len(instances):
        words = f"{system} learns from human rationales, found none in {without} instances; lei-unsupervised needs none"
        raise DataError(words, rule="span-missing")
    if without:
        say(f"{without} of {len(instances)} instances have no human rationale: they train by their labels alone")
