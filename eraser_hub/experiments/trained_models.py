"""Networks of `train` that learn the planted rules from texts; a network judges scores only where it learned its rule.

Without all the words that decide nothing in a planted text says more of its label than a coin (:mod:`samples.plant`):
who tells a share a of new texts decides at least 2 a - 1 of them by these words. Unlike a model in closed form a
network may lean on other words besides, answers erased inputs that no training text looked like, and may hold one label
for what is left when nothing decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eraser_hub.attribution.adapter import Adapter, align_labels
from eraser_hub.records.extras import need
from eraser_hub.samples.plant import LABELS
from eraser_hub.systems.data import Data, Labelled, Training
from eraser_hub.systems.evaluation import hits_of
from eraser_hub.systems.recipe import Recipe
from eraser_hub.systems.system import SYSTEMS

from .planted import planted_instances, planted_rows

SYSTEM = "glove-lstm"
SETTINGS = ("embedding_size=32", "hidden_size=32", "dropout=0", "batch_size=32", "learning_rate=0.005", "patience=0")
TRAIN, VALIDATION, HELD_OUT = 1000, 200, 400  # texts of each kind, at least
EPOCHS = 4
LEARNED = 0.98  # of the held-out texts, from which share on a network has learned its rule


@dataclass(frozen=True, slots=True)
class Learned:
    """What a network learned of one kind of planting.

    Attributes:
        adapter: asks it.
        accuracy: the share of held-out texts that it tells.
        texts: how many these are.
    """

    adapter: Adapter
    accuracy: float
    texts: int

    @property
    def judges(self) -> bool:
        """Whether it knows the rule well enough to judge scores."""
        return self.accuracy >= LEARNED

    @property
    def facts(self) -> dict[str, Any]:
        """All this for JSON."""
        return {"model": SYSTEM, "accuracy": self.accuracy, "texts": self.texts, "judges": self.judges}


def said_of(facts: Mapping[str, Any]) -> str:
    """:attr:`Learned.facts` as a sentence."""
    words = f"{facts['model']} tells {facts['accuracy']:.1%} of {facts['texts']} held-out texts"
    less = f", less than {LEARNED:.0%}: it did not learn the rule, and does not judge"
    return words if facts["judges"] else words + less


def learned(kind: str, seed: int, texts: int = TRAIN, epochs: float = EPOCHS) -> Learned:
    """Train a network on planted texts, and see how many new ones it tells.

    It reads each training text twice, whole and as its rationale alone: of whole texts it would learn no conjunction,
    whose words say nothing one by one.

    Args:
        kind: of planting.
        seed: of the texts, the weights and their training.
        texts: to train on, at least.
        epochs: of training; the best by the validation texts is kept.

    Raises:
        DataError: packages of the extra ``explain`` are missing.
    """
    need("torch", "transformers")
    from eraser_hub.systems.networks.network_model import NetworkModel
    from eraser_hub.systems.networks.training import fit_network

    whole, labels = _texts(kind, "train", texts, seed)
    alone = [one.rationale_only() for one in whole]
    unseen = _texts(kind, "validation", VALIDATION, seed)
    data = Data(([*alone, *whole], [*labels, *labels]), unseen, LABELS, uses_query=False)
    recipe = Recipe(dataset="planted", config=kind, model=SYSTEM, seed=seed, hyper=SETTINGS, epochs=epochs)
    system: Any = SYSTEMS[SYSTEM]()
    with TemporaryDirectory() as folder:
        place = Path(folder)
        network, _ = fit_network(system, Training(recipe, data, place, place, lambda line: None))
    adapter = NetworkModel(network, LABELS, description=f"{SYSTEM} {kind}")
    align_labels(adapter, LABELS)
    new, _ = _texts(kind, "held-out", HELD_OUT, seed)
    hits = hits_of(adapter, new)
    return Learned(adapter, sum(hits) / len(hits), len(hits))


def _texts(kind: str, split: str, size: int, seed: int) -> Labelled:
    instances = planted_instances(planted_rows(kind, split, size, seed))
    return instances, [str(one.label) for one in instances]
