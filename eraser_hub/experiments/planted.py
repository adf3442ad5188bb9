"""Planted texts, models that decide by the planted rationale, and explanations to tell from the true one.

For each kind there is a model in closed form that decides by the planted rationale and by nothing else. It reads the
words that decide (:mod:`samples.plant`) and puts p(POS) to 1 / (1 + exp(-z)), z = +3 or -3; where the words that decide
are not all there it knows nothing, and z is 0. Erasing any token that does not decide leaves p as it is, by
construction: what a score says of a rationale can be held against what is true of it. Beside the true explanation of a
text stand those that a good score must put below it.

Networks of `train` learn the rules from texts, too; a network judges scores only where it learned its rule. Without all
the words that decide nothing in a planted text says more of its label than a coin (:mod:`samples.plant`): who tells a
share a of new texts decides at least 2 a - 1 of them by these words. Unlike a model in closed form a network may lean
on other words besides, answers erased inputs that no training text looked like, and may hold one label for what is
left when nothing decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import Adapter, align_labels
from eraser_hub.attribution.instances import Instance, read_eraser_row
from eraser_hub.attribution.measures.infidelity import draw_perturbations
from eraser_hub.attribution.measures.sensitivity import compute_max_sensitivity
from eraser_hub.records.extras import need
from eraser_hub.samples.plant import CUES, FIRST, LABELS, MODIFIERS, SECOND, planted
from eraser_hub.systems.data import Data, Labelled, Training
from eraser_hub.systems.evaluation import hits_of
from eraser_hub.systems.recipe import Recipe
from eraser_hub.systems.system import SYSTEMS

Scores = NDArray[np.float64]
Purposes = Callable[[str], np.random.Generator]  # the random numbers of a purpose
Maker = Callable[[NDArray[np.bool_], str, np.random.Generator], Scores]

NOISE = 0.01  # of scores that are to be equal but for ties
PERTURBED = "perturbed"  # purpose of the random numbers that say which tokens are gone, as in `explain`
PADDING = 4  # tokens beside each one that decides, in a longer explanation and in one of the wrong order
LOGIT = 3.0
SIGN = {word: sign for label, sign in zip(LABELS, (-1, 1), strict=True) for word in CUES[label]}
TURN = {word: sign for way, sign in (("turned", -1), ("kept", 1)) for word in MODIFIERS[way]}
SIDES = [{word: side for side, words in family.items() for word in words} for family in (FIRST, SECOND)]


def by_word(tokens: Sequence[str]) -> int:
    """The judgement, wherever it stands."""
    return next((SIGN[token] for token in tokens if token in SIGN), 0)


def by_conjunction(tokens: Sequence[str]) -> int:
    """POS where the words of both families are of the same side; 0 where one of them lacks."""
    first, second = (next((side[token] for token in tokens if token in side), None) for side in SIDES)
    return 0 if first is None or second is None else 1 if first == second else -1


def by_negation(tokens: Sequence[str]) -> int:
    """The judgement as the word right before it turns or keeps it; 0 without such a word."""
    places = range(1, len(tokens))
    return next((SIGN[tokens[at]] * TURN.get(tokens[at - 1], 0) for at in places if tokens[at] in SIGN), 0)


def by_position(tokens: Sequence[str]) -> int:
    """The last sentence's judgement: behind the last full stop but the one that ends the text."""
    body = tokens[:-1]
    start = max((at + 1 for at, token in enumerate(body) if token == "."), default=0)
    return next((SIGN[token] for token in reversed(body[start:]) if token in SIGN), 0)


RULES = {rule.__name__.removeprefix("by_"): rule for rule in (by_word, by_conjunction, by_negation, by_position)}


def planted_rows(kind: str, split: str, size: int, seed: int) -> list[dict[str, Any]]:
    """Planted texts as rows of a built dataset; arguments as of :func:`samples.plant.planted`."""
    texts = planted(kind, split, size, seed)
    return [{**record, "documents": [{"docid": record["docids"][0], "text": text}]} for record, text in texts]


def planted_instances(rows: Sequence[Mapping[str, Any]]) -> list[Instance]:
    """Rows as instances, with their labels and the tokens that decide."""
    return [read_eraser_row(row, LABELS) for row in rows]


class PlantedModel:
    """The rule of one kind of planting as a model: ``predict_proba(list of token lists)``."""

    label_names = LABELS
    mask_token = "[MASK]"

    def __init__(self, kind: str) -> None:
        self.rule = RULES[kind]

    def predict_proba(self, token_lists: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Probabilities of NEG and POS, shape (texts, 2)."""
        z = LOGIT * np.array([self.rule(tokens) for tokens in token_lists], dtype=np.float64)
        p = 1 / (1 + np.exp(-z))
        return np.stack([1 - p, p], axis=1)


def true(deciding: NDArray[np.bool_], label: str, random: np.random.Generator) -> Scores:
    """The tokens that decide lead, the others follow in no order."""
    return deciding + NOISE * random.random(len(deciding))


def random(deciding: NDArray[np.bool_], label: str, random: np.random.Generator) -> Scores:
    """Uniform scores."""
    return random.random(len(deciding))


def shuffled(deciding: NDArray[np.bool_], label: str, random: np.random.Generator) -> Scores:
    """The true explanation's scores, on other tokens."""
    return random.permutation(true(deciding, label, random))


def wrong_order(deciding: NDArray[np.bool_], label: str, random: np.random.Generator) -> Scores:
    """Among its first tokens are the right ones, behind four others for each."""
    return true(_padded(deciding, random), label, random) - 0.5 * deciding


def longer(deciding: NDArray[np.bool_], label: str, random: np.random.Generator) -> Scores:
    """The right tokens and four others for each, in any order; its hard rationale holds them all."""
    return true(_padded(deciding, random), label, random)


def leaking(deciding: NDArray[np.bool_], label: str, random: np.random.Generator) -> Scores:
    """As many tokens as decide, none of which does: the first of the text for POS, the last for NEG. They tell the
    label by where they stand, and the model does not look at them."""
    others = np.flatnonzero(~deciding)
    count = int(deciding.sum())
    chosen = np.zeros(len(deciding), dtype=bool)
    chosen[others[:count] if label == "POS" else others[len(others) - count :]] = True
    return true(chosen, label, random)


def _padded(deciding: NDArray[np.bool_], random: np.random.Generator) -> NDArray[np.bool_]:
    others = np.flatnonzero(~deciding)
    padded: NDArray[np.bool_] = deciding.copy()
    padded[random.choice(others, min(len(others), PADDING * int(deciding.sum())), replace=False)] = True
    return padded


def sensitivity(
    maker: Maker, one: Instance, label: str, scores: Scores, perturbations: int, random_of: Purposes
) -> float:
    """The largest change of an explanation that is made anew without a random tenth of the tokens.

    See :mod:`explain.games.stability`. What is judged is the way in which explanations are made: the true way marks
    whatever is left of the words that decide, a way that draws draws anew for each input.

    Args:
        scores: of the whole text.
        random_of: the random numbers of a purpose; of :data:`PERTURBED` the same for every maker.
    """
    deciding, moved = deciding_of(one), list[Scores]()
    for number, stands in enumerate(draw_perturbations(len(scores), perturbations, random_of(PERTURBED))):
        anew = scores.copy()
        anew[stands] = maker(deciding[stands], label, random_of(f"anew {number}"))
        moved.append(anew)
    return compute_max_sensitivity(scores, moved)


def deciding_of(one: Instance) -> NDArray[np.bool_]:
    """Which tokens of a planted text decide."""
    return np.array([flag for document in one.rationale or () for flag in document], dtype=bool)


TRUE = "true"
CANDIDATES: Mapping[str, Maker] = {maker.__name__: maker for maker in (random, shuffled, wrong_order, longer, leaking)}

# networks that learn the rules from planted texts
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
