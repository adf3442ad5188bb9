"""Planted texts, models that decide by the planted rationale, and explanations to compare with the true one.

Each kind of planting has a model in closed form that decides by the planted rationale and by nothing else. It reads the
deciding words (:mod:`samples.plant`) and sets p(POS) to 1 / (1 + exp(-z)), z = +3 or -3; if some of the deciding words
are missing, z is 0. Erasing any other token leaves p unchanged by construction, so the scores of a rationale can be
compared with the truth. Beside the true explanation of a text there are explanations that a good score ranks below it.

Networks of `train` learn the rules from texts as well; a network judges scores only if it learned its rule. Without all
deciding words, a planted text carries no information on its label (:mod:`samples.plant`): a network with accuracy a on
new texts decides at least 2 a - 1 of them by these words. Unlike a model in closed form, a network may also rely on
other words, answers erased inputs that resemble no training text, and may prefer one label if nothing decides.
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
from eraser_hub.systems.evaluation import find_hits
from eraser_hub.systems.system import SYSTEMS
from eraser_hub.systems.train_config import TrainConfig

Scores = NDArray[np.float64]
Purposes = Callable[[str], np.random.Generator]  # the random numbers of a purpose
Maker = Callable[[NDArray[np.bool_], str, np.random.Generator], Scores]

NOISE = 0.01  # of scores that are to be equal but for ties
PERTURBED = "perturbed"  # purpose of the random numbers that say which tokens are gone, as in `explain`
PADDING = 4  # tokens beside each one that decides, in a longer explanation and in one of the wrong order
LOGIT = 3.0
SIGN = {word: sign for label, sign in zip(LABELS, (-1, 1), strict=True) for word in CUES[label]}
TURN = {word: sign for direction, sign in (("turned", -1), ("kept", 1)) for word in MODIFIERS[direction]}
SIDES = [{word: side for side, words in family.items() for word in words} for family in (FIRST, SECOND)]


def judge_by_word(tokens: Sequence[str]) -> int:
    """Return the judgement at any position."""
    return next((SIGN[token] for token in tokens if token in SIGN), 0)


def judge_by_conjunction(tokens: Sequence[str]) -> int:
    """Return 1 if the words of both families are on the same side, else -1; 0 if one family is missing."""
    first, second = (next((side[token] for token in tokens if token in side), None) for side in SIDES)
    return 0 if first is None or second is None else 1 if first == second else -1


def judge_by_negation(tokens: Sequence[str]) -> int:
    """Return the judgement, turned or kept by the word before it; 0 without such a word."""
    places = range(1, len(tokens))
    return next((SIGN[tokens[at]] * TURN.get(tokens[at - 1], 0) for at in places if tokens[at] in SIGN), 0)


def judge_by_position(tokens: Sequence[str]) -> int:
    """Return the last sentence's judgement; the full stop that ends the text does not count."""
    body = tokens[:-1]
    start = max((at + 1 for at, token in enumerate(body) if token == "."), default=0)
    return next((SIGN[token] for token in reversed(body[start:]) if token in SIGN), 0)


_RULES = (judge_by_word, judge_by_conjunction, judge_by_negation, judge_by_position)
RULES = {rule.__name__.removeprefix("judge_by_"): rule for rule in _RULES}


def make_planted_rows(kind: str, split: str, size: int, seed: int) -> list[dict[str, Any]]:
    """Return planted texts as rows of a built dataset; arguments as in :func:`samples.plant.planted`."""
    texts = planted(kind, split, size, seed)
    return [{**record, "documents": [{"docid": record["docids"][0], "text": text}]} for record, text in texts]


def make_planted_instances(rows: Sequence[Mapping[str, Any]]) -> list[Instance]:
    """Return rows as instances, with their labels and the deciding tokens."""
    return [read_eraser_row(row, LABELS) for row in rows]


class PlantedModel:
    """The rule of one kind of planting as a model: ``predict_proba(list of token lists)``."""

    label_names = LABELS
    mask_token = "[MASK]"

    def __init__(self, kind: str) -> None:
        self.rule = RULES[kind]

    def predict_proba(self, token_lists: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Return probabilities of NEG and POS, shape (texts, 2)."""
        z = LOGIT * np.array([self.rule(tokens) for tokens in token_lists], dtype=np.float64)
        p = 1 / (1 + np.exp(-z))
        return np.stack([1 - p, p], axis=1)


def true(deciding: NDArray[np.bool_], label: str, random: np.random.Generator) -> Scores:
    """Score the deciding tokens highest, the others in random order."""
    return deciding + NOISE * random.random(len(deciding))


def random(deciding: NDArray[np.bool_], label: str, random: np.random.Generator) -> Scores:
    """Return uniform scores."""
    return random.random(len(deciding))


def shuffled(deciding: NDArray[np.bool_], label: str, random: np.random.Generator) -> Scores:
    """Return the true explanation's scores on other tokens."""
    return random.permutation(true(deciding, label, random))


def wrong_order(deciding: NDArray[np.bool_], label: str, random: np.random.Generator) -> Scores:
    """Score four other tokens per deciding token above the deciding ones."""
    return true(_pad(deciding, random), label, random) - 0.5 * deciding


def longer(deciding: NDArray[np.bool_], label: str, random: np.random.Generator) -> Scores:
    """Score the deciding tokens and four others per deciding token highest, in random order."""
    return true(_pad(deciding, random), label, random)


def leaking(deciding: NDArray[np.bool_], label: str, random: np.random.Generator) -> Scores:
    """Score as many other tokens as decide: the first of the text for POS, the last for NEG.

    Their position reveals the label, but the model does not read them.
    """
    others = np.flatnonzero(~deciding)
    count = int(deciding.sum())
    chosen = np.zeros(len(deciding), dtype=bool)
    chosen[others[:count] if label == "POS" else others[len(others) - count :]] = True
    return true(chosen, label, random)


def _pad(deciding: NDArray[np.bool_], random: np.random.Generator) -> NDArray[np.bool_]:
    others = np.flatnonzero(~deciding)
    padded: NDArray[np.bool_] = deciding.copy()
    padded[random.choice(others, min(len(others), PADDING * int(deciding.sum())), replace=False)] = True
    return padded


def compute_sensitivity(
    maker: Maker, one: Instance, label: str, scores: Scores, perturbations: int, get_generator: Purposes
) -> float:
    """Return the largest change of an explanation that is recomputed without a random tenth of the tokens.

    See :mod:`eraser_hub.attribution.measures.sensitivity`. The score judges how explanations are made: the true method
    marks the remaining deciding words, and a random method draws anew for each input.

    Args:
        maker: Makes the explanation.
        one: The text.
        label: Its label.
        scores: The explanation of the whole text.
        perturbations: Number of recomputations.
        get_generator: Returns random numbers for a purpose; those for :data:`PERTURBED` are the same for all makers.
    """
    deciding, changed_scores = find_deciding_tokens(one), list[Scores]()
    for number, kept_tokens in enumerate(draw_perturbations(len(scores), perturbations, get_generator(PERTURBED))):
        perturbed_scores = scores.copy()
        perturbed_scores[kept_tokens] = maker(deciding[kept_tokens], label, get_generator(f"anew {number}"))
        changed_scores.append(perturbed_scores)
    return compute_max_sensitivity(scores, changed_scores)


def find_deciding_tokens(one: Instance) -> NDArray[np.bool_]:
    """Return True at the deciding tokens of a planted text, shape (tokens,)."""
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
class PlantedNetwork:
    """A network trained on one kind of planting.

    Attributes:
        adapter: The network's model.
        accuracy: The share of held-out texts whose label it predicts.
        texts: The number of held-out texts.
    """

    adapter: Adapter
    accuracy: float
    texts: int

    @property
    def judges(self) -> bool:
        """True if the network knows the rule well enough to judge scores."""
        return self.accuracy >= LEARNED

    @property
    def facts(self) -> dict[str, Any]:
        """The facts as JSON."""
        return {"model": SYSTEM, "accuracy": self.accuracy, "texts": self.texts, "judges": self.judges}


def describe_network(facts: Mapping[str, Any]) -> str:
    """Describe :attr:`PlantedNetwork.facts` in a sentence."""
    words = f"{facts['model']} predicts {facts['accuracy']:.1%} of {facts['texts']} held-out texts correctly"
    less = f", less than {LEARNED:.0%}: it did not learn the rule and does not judge"
    return words if facts["judges"] else words + less


def train_planted_network(kind: str, seed: int, texts: int = TRAIN, epochs: float = EPOCHS) -> PlantedNetwork:
    """Train a network on planted texts, and test it on new ones.

    It reads each training text twice, whole and as its rationale alone: from whole texts alone it would not learn a
    conjunction, whose words carry no information one by one.

    Args:
        kind: The kind of planting.
        seed: Seed of the texts, the weights and the training.
        texts: Least number of training texts.
        epochs: Number of epochs; the best one by the validation texts wins.

    Raises:
        DataError: Packages of the extra ``explain`` are missing.
    """
    need("torch", "transformers")
    from eraser_hub.systems.networks.network_model import NetworkModel
    from eraser_hub.systems.networks.training import fit_network

    whole, labels = _make_texts(kind, "train", texts, seed)
    alone = [one.rationale_only() for one in whole]
    validation = _make_texts(kind, "validation", VALIDATION, seed)
    data = Data(([*alone, *whole], [*labels, *labels]), validation, LABELS, uses_query=False)
    train_config = TrainConfig(dataset="planted", config=kind, model=SYSTEM, seed=seed, hyper=SETTINGS, epochs=epochs)
    system: Any = SYSTEMS[SYSTEM]()
    with TemporaryDirectory() as folder:
        place = Path(folder)
        network, _ = fit_network(system, Training(train_config, data, place, place, lambda line: None))
    adapter = NetworkModel(network, LABELS, description=f"{SYSTEM} {kind}")
    align_labels(adapter, LABELS)
    new, _ = _make_texts(kind, "held-out", HELD_OUT, seed)
    hits = find_hits(adapter, new)
    return PlantedNetwork(adapter, sum(hits) / len(hits), len(hits))


def _make_texts(kind: str, split: str, size: int, seed: int) -> Labelled:
    instances = make_planted_instances(make_planted_rows(kind, split, size, seed))
    return instances, [str(one.label) for one in instances]
