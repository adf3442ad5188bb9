"""Models that decide by planted words: in closed form, or networks that learn the rule from planted texts.

A family holds models that differ by their number. Those in closed form differ by the slope and the bias of
``p(POS) = 1 / (1 + exp(-(slope judge + bias)))``. Networks differ by weights, batches and training texts. Networks of
even numbers are trained on whole texts alone; those of odd numbers read each training text a second time with some of
the tokens masked that do not decide. A network judges scores only if it learned its rule: without the deciding words a
text says nothing about its label, so that a network with accuracy a decides at least 2 a - 1 of the texts by them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import Adapter, align_labels
from eraser_hub.attribution.adapters.plain import PlainModel
from eraser_hub.attribution.instances import Instance
from eraser_hub.records.extras import need
from eraser_hub.samples.plant import LABELS
from eraser_hub.systems.data import Data, say_nothing
from eraser_hub.systems.evaluation import find_hits

from .configs import CLOSED, ENCODER
from .plantings import KINDS, PlantedText, make_planted_texts

MASK = "[MASK]"
SLOPE, BIAS = 3.0, 0.0  # of the first model in closed form
SLOPES, BIASES = (1.5, 4.5), (-1.0, 1.0)  # of the others; |bias| < slope, so that whole texts are labelled right
LEARNED = 0.98  # of the held-out texts, from which share on a network has learned its rule
VALIDATION, HELD_OUT = 100, 200


class PlantedModel:
    """The rule of one kind of planting as a model: ``predict_proba(list of token lists)``.

    Args:
        kind: The kind of planting.
        number: The model's number in its family; 0 is the plain one, of slope 3 and without bias.
        seed: Seed of the others' slope and bias.
    """

    label_names = LABELS
    mask_token = MASK

    def __init__(self, kind: str, number: int = 0, seed: int = 1) -> None:
        random = np.random.default_rng([seed, number, *kind.encode()])
        self.judge = KINDS[kind].judge
        self.slope, self.bias = (random.uniform(*SLOPES), random.uniform(*BIASES)) if number else (SLOPE, BIAS)

    def predict_proba(self, token_lists: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Return probabilities of NEG and POS, shape (texts, 2)."""
        z = self.slope * np.array([self.judge(tokens) for tokens in token_lists], dtype=np.float64) + self.bias
        p = 1 / (1 + np.exp(-z))
        return np.stack([1 - p, p], axis=1)


@dataclass(frozen=True, slots=True)
class Judge:
    """A model that judges scores.

    Attributes:
        adapter: The model.
        accuracy: The share of held-out texts whose label it predicts.
        masked_accuracy: The same share with random tokens masked that do not decide.
        digest: SHA-256 of its weights, or of kind, slope and bias.
        erased_inputs: True if it was trained on masked texts too; None in closed form.
    """

    adapter: Adapter
    accuracy: float
    masked_accuracy: float
    digest: str
    erased_inputs: bool | None

    @property
    def judges(self) -> bool:
        """True if the model knows the rule well enough to judge scores."""
        return self.accuracy >= LEARNED


def make_judge(
    kind: str,
    family: str,
    number: int,
    seed: int,
    texts: int,
    sentences: Sequence[Sequence[str]] = (),
    encoder: str = "",
) -> Judge:
    """Make a model of a family, and test it on new texts.

    Args:
        kind: The kind of planting.
        family: ``closed-form``, ``recurrent``, ``transformer`` or ``encoder``.
        number: The model's number in its family, from 0.
        seed: Seed of the study.
        texts: Number of training texts.
        sentences: Sentences of real text.
        encoder: A transformers folder or Hub id, for the family ``encoder``.

    Raises:
        DataError: Packages of the extra ``explain`` are missing; the encoder cannot read planted texts.
    """
    mask, erased = MASK, None if family == CLOSED else bool(number % 2)
    if family == CLOSED:
        model = PlantedModel(kind, number, seed)
        adapter: Adapter = PlainModel(model)
        digest = hashlib.sha256(f"{kind} {model.slope!r} {model.bias!r}".encode()).hexdigest()
    else:
        need("torch", "transformers")
        run_seed = int(np.random.default_rng([seed, number, *f"{kind} {family}".encode()]).integers(2**31))
        learn: Callable[[Data, int], Any] = partial(_train, kind, family)
        if family == ENCODER:
            from .planted_encoders import check_encoder, finetune_encoder

            mask, learn = check_encoder(encoder, (kind,)), partial(finetune_encoder, encoder)
        adapter = learn(_make_data(kind, number, seed, texts, sentences, mask if erased else ""), run_seed)
        network: Any = adapter
        weights = hashlib.sha256()
        for name, own in sorted(network.network.state_dict().items()):
            weights.update(name.encode() + own.cpu().numpy().tobytes())
        digest = weights.hexdigest()
    align_labels(adapter, LABELS)
    held_out = make_planted_texts(kind, f"held-out {number}", HELD_OUT, seed, sentences)
    random = np.random.default_rng([seed, number])
    accuracy = float(np.mean(find_hits(adapter, [one.instance for one in held_out])))
    masked_accuracy = float(np.mean(find_hits(adapter, [mask_others(one, random, mask) for one in held_out])))
    return Judge(adapter, accuracy, masked_accuracy, digest, erased)


def mask_others(one: PlantedText, random: np.random.Generator, mask: str = MASK) -> Instance:
    """Return a text with a random share of the tokens masked that do not decide."""
    gone = (random.random(len(one.importance)) < random.random()) & ~one.deciding
    tokens, bounds = one.instance.tokens, one.instance.bounds
    words = [mask if away else token for away, token in zip(gone, tokens, strict=True)]
    documents = tuple(tuple(words[start:end]) for start, end in pairwise(bounds))
    return replace(one.instance, documents=documents)


def _make_data(kind: str, number: int, seed: int, texts: int, sentences: Sequence[Sequence[str]], mask: str) -> Data:
    """Return the training texts, each twice: as it is, then with this mask at other tokens, if there is one."""
    train = make_planted_texts(kind, f"train {number}", texts, seed, sentences, every=True)
    validation = make_planted_texts(kind, f"validation {number}", VALIDATION, seed, sentences)
    random = np.random.default_rng([seed, number, 1])
    inputs = [one.instance for one in train]
    # the same number of examples for both, so that the factor is what they hold
    inputs += [mask_others(one, random, mask) if mask else one.instance for one in train]
    labels = [str(one.label) for one in inputs]
    held = [one.instance for one in validation]
    return Data((inputs, labels), (held, [str(one.label) for one in held]), LABELS, uses_query=False)


def _train(kind: str, family: str, data: Data, seed: int) -> Any:
    """Train a small network."""
    import torch

    from eraser_hub.systems.fitting import fit
    from eraser_hub.systems.networks.classifiers import Shape
    from eraser_hub.systems.networks.embedders import WordEmbedder
    from eraser_hub.systems.networks.network_model import NetworkModel
    from eraser_hub.systems.networks.readings import Vocabulary
    from eraser_hub.systems.networks.training import NetworkObjective

    from .planted_networks import FAMILIES, is_rule_learned

    build, hyper = FAMILIES[family]
    torch.manual_seed(seed)
    inputs, _ = data.train
    whole = inputs[: len(inputs) // 2]
    vocabulary = Vocabulary.build([one.tokens for one in whole], hyper.lowercase, hyper.min_count)
    network = build(WordEmbedder(vocabulary, hyper.embedding_size, None), hyper, Shape(len(LABELS), apart=False))
    device = torch.device("cpu")  # the same weights everywhere
    with TemporaryDirectory() as folder:
        fit(NetworkObjective(network, data, device, 128), hyper, seed, Path(folder), say_nothing, is_rule_learned)
    network.eval()
    return NetworkModel(network, LABELS, device="cpu", description=f"{family} {kind}")
