"""The papers' networks as systems: their settings, their training, and their folders.

out/model.json            the system, its settings, what the data decided
out/weights.safetensors   all weights, those of an encoder too
out/vocabulary.json       the words of a network without encoder
out/encoder/              an encoder's configuration and tokenizer
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import transformers
from msgspec import MsgspecError, convert
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import Tensor

from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.models.devices import find_device, to_float64
from eraser_hub.attribution.models.loading import load_tokenizer, silence
from eraser_hub.attribution.models.opening import ModelSettings
from eraser_hub.attribution.models.subwords import SubwordTokenizer
from eraser_hub.records.errors import DataError, UsageError, show
from eraser_hub.records.readers import read_json
from eraser_hub.records.registry import make_settings

from .data import Data, Training, find_answer_span
from .embedders import Embedder, EncoderEmbedder, WordEmbedder, load_pretrained, read_embeddings
from .fitting import Objective, fit
from .lei import Lei
from .network_model import AnswerNetwork, NetworkModel, find_best_answer
from .networks import AnswerPointer, Form, LstmClassifier, MatchLstm, Shape, TokenNetwork
from .readings import SPECIAL, Example, SubwordLexicon, Vocabulary, pad_readings, read_instance
from .system import SYSTEMS, Count, Optimised, Positive, Share, Size, Weight, check_rationales

WEIGHTS, VOCABULARY, ENCODER = "weights.safetensors", "vocabulary.json", "encoder"
log = logging.getLogger("eraser_hub")


@dataclass(frozen=True, kw_only=True)
class NetworkSystem(Optimised):
    """A network over words.

    Attributes:
        encoder: a transformers folder or Hub id whose states stand for the words; "" for none.
        embeddings: a file of word vectors (GloVe's, or word2vec's text); "" for learned ones.
        embedding_size: width of learned embeddings; a file and an encoder have their own widths.
        hidden_size: width of the LSTM, in each direction.
        dropout: share of values that are dropped in training.
        lowercase: lower-case words before they are looked up.
        window: sub-words that an encoder reads together; a longer text is cut into windows.
        trained_layers: number of the encoder's last layers that are trained; the others stay frozen.
        trust_remote_code: run the code that an encoder brings.
        form: how an LSTM sums a text up.
        network: its class; :meth:`build` makes it.
        reads_apart: whether texts in pairs are read as two segments.
        encoders: whether it takes an encoder.
        min_count: occurrences in the training texts that give a word a learned vector of its own.
    """

    encoder: str = ""
    embeddings: str = ""
    embedding_size: Size = 300
    hidden_size: Size = 128
    dropout: Share = 0.2
    lowercase: bool = True
    window: Size = 512
    trained_layers: Count = 2
    trust_remote_code: bool = False
    files: ClassVar[tuple[str, ...]] = ("encoder", "embeddings")
    form: ClassVar[Form] = Form()
    network: ClassVar[type[TokenNetwork]] = LstmClassifier
    reads_apart: ClassVar[bool] = False
    encoders: ClassVar[Literal["no", "optional", "required"]] = "no"
    min_count: ClassVar[int] = 1

    @property
    def name(self) -> str:
        """The system's name."""
        return SYSTEMS.name_of(type(self))

    def check(self, paper: str) -> None:
        """Refuse an encoder beside embeddings, one that the system cannot use, or none where it needs one."""
        if self.encoders == "required" and not self.encoder:
            raise DataError(f"{self.name} needs an encoder, a transformers folder or Hub id", argument="model")
        if self.encoder and (self.embeddings or self.encoders == "no"):
            why = "expected embeddings or an encoder, found both" if self.embeddings else "it has no encoder"
            raise DataError(f"{self.name}, encoder: {why}", argument="model")

    def check_data(self, data: Data) -> None:
        """Refuse data that lack what the system needs, and say what some instances lack.

        Raises:
            DataError: the data lack what the system needs.
        """

    def build(self, new_embedder: Callable[[], Embedder], shape: Shape) -> TokenNetwork:
        """Return an untrained network."""
        return self.network(new_embedder(), self, shape)

    def fit(self, training: Training) -> dict[str, Any]:
        """Train and save the network."""
        data = training.data
        self.check_data(data)
        torch.manual_seed(training.seed)
        new_embedder = self._make_embedders(data.train[0], training.seed)
        shape = Shape(len(data.label_names), self.reads_apart and data.has_pairs, data.answers)
        network = self.build(new_embedder, shape)
        if not data.validation[0]:
            log.info("no validation split: the last weights are kept, and nothing stops the training early")
        kind = AnswerObjective if data.answers else NetworkObjective
        objective = kind(network, data, find_device(None), self.batch_size)
        weights = sum(each.numel() for each in network.parameters() if each.requires_grad)
        log.info(f"{self.name}: {weights:,} weights to train, {len(data.train[0])} instances, on {objective.device}")
        progress = fit(objective, self, training.seed, training.folder)
        embedder = network.embedder
        if isinstance(embedder, EncoderEmbedder):
            embedder.encoder.config.save_pretrained(training.folder / ENCODER)
            embedder.subwords.words.tokenizer.save_pretrained(training.folder / ENCODER)
        elif isinstance(embedder.lexicon, Vocabulary):
            words = json.dumps(embedder.lexicon.words[len(SPECIAL) :], ensure_ascii=False, indent=0)
            (training.folder / VOCABULARY).write_text(words + "\n", "utf-8")
        save_model(network, str(training.folder / WEIGHTS))
        best = progress.history[progress.best_epoch] if progress.best_epoch >= 0 else {}
        figures = {name: value for name, value in best.items() if name in ("accuracy", "macro_f1", "loss")}
        facts = {"kind": "network", "shape": asdict(shape), "width": embedder.width, **progress.facts()}
        return {**facts, "validation": figures} if figures else facts

    def _make_embedders(self, instances: Sequence[Instance], seed: int) -> Callable[[], Embedder]:
        """Return a factory of embedders for the words of the training instances.

        Raises:
            DataError: an encoder that cannot be opened, embeddings that cannot be read.
        """
        if self.encoder:
            load = partial(load_pretrained, "AutoModel", self.encoder, self.trust_remote_code)
            lexicon = SubwordLexicon(SubwordTokenizer(load()[1]))
            return lambda: EncoderEmbedder(load()[0], lexicon, self.window, self.trained_layers)
        texts = [words for one in instances for words in (one.query, *one.documents)]
        vocabulary = Vocabulary.build(texts, self.lowercase, 1 if self.embeddings else self.min_count)
        vectors = read_embeddings(Path(self.embeddings), vocabulary, seed) if self.embeddings else None
        width = self.embedding_size if vectors is None else vectors.shape[1]
        return lambda: WordEmbedder(vocabulary, width, vectors)


def open_network(folder: Path, facts: Mapping[str, Any], window: int | None, trust_remote_code: bool) -> TokenNetwork:
    """Return the trained network of a folder.

    Raises:
        DataError: a file that is missing or damaged, or was written by another version.
    """
    try:
        kind: Any = SYSTEMS.find(facts["system"])
        settings = facts["settings"] | ({} if window is None else {"window": window})
        system: NetworkSystem = make_settings(kind, settings, facts["system"], "model")
        if system.encoder:
            silence()
            config = transformers.AutoConfig.from_pretrained(folder / ENCODER, trust_remote_code=trust_remote_code)
            options = {"trust_remote_code": trust_remote_code}
            lexicon = SubwordLexicon(SubwordTokenizer(load_tokenizer(str(folder / ENCODER), options)))
            new: Any = partial(transformers.AutoModel.from_config, config, trust_remote_code=trust_remote_code)

            def new_embedder() -> Embedder:
                return EncoderEmbedder(new(), lexicon, system.window, system.trained_layers)
        else:
            vocabulary = Vocabulary(convert(read_json(folder / VOCABULARY), list[str]), system.lowercase)

            def new_embedder() -> Embedder:
                return WordEmbedder(vocabulary, facts["width"])

        network = system.build(new_embedder, convert(facts["shape"], Shape))
        load_model(network, str(folder / WEIGHTS))
    except DataError:
        raise
    except (KeyError, TypeError, ValueError, OSError, RuntimeError, MsgspecError, SafetensorError) as error:
        raise DataError(f"cannot be opened as a network of `train`: {show(str(error))}", file=folder) from error
    return network


class NetworkObjective(Objective[Example]):
    """The training of a network over words on labelled instances, by the network's own loss.

    Args:
        network: the network.
        data: the instances.
        device: the device.
        batch_size: size of validation batches.
    """

    def __init__(self, network: TokenNetwork, data: Data, device: torch.device, batch_size: int) -> None:
        self.network = self.model = network.to(device)
        self.device, self.batch_size, self.draw = device, batch_size, data.draw
        self.training = [self._make_example(data, *pair) for pair in zip(*data.train, strict=True)]
        self.validation = [self._make_example(data, *pair) for pair in zip(*data.validation, strict=True)]

    def _make_example(self, data: Data, one: Instance, label: str) -> Example:
        reading = read_instance(one, self.model.embedder.lexicon, data.uses_query, self.model.shape.apart).reading
        number = data.label_names.index(label)
        if not one.has_rationale:
            return Example(reading, number)
        flags = np.asarray([flag for document in one.rationale or () for flag in document] + [False])
        return Example(reading, number, flags[reading.token])

    def examples(self, epoch: int) -> Sequence[Example]:
        """Return the examples of an epoch."""
        self.model.epoch = epoch
        return self.training if self.draw is None else [self.training[number] for number in self.draw(epoch)]

    def size(self, example: Example) -> int:
        """Return the number of places of an example."""
        return len(example.reading.words)

    def loss(self, batch: Sequence[Example]) -> Tensor:
        """Return the loss of a batch."""
        return self.model.loss(pad_readings([one.reading for one in batch], self.device), batch)

    def predict(self, batch: Sequence[Example]) -> tuple[Tensor, Tensor]:
        """Return logits, and the loss beside that of the labels."""
        padded = pad_readings([one.reading for one in batch], self.device)
        return self.model(padded), self.model.penalty(padded)


class AnswerObjective(NetworkObjective):
    """The training of a network that points to an answer, by the position of the gold answer.

    In validation, ``accuracy`` is the share of instances whose best answer is at that position, and ``loss`` is the
    mean of -log p(start) p(end) there.
    """

    def _make_example(self, data: Data, one: Instance, label: str) -> Example:
        span = find_answer_span(one.tokens, label)
        assert span is not None  # the others were left out
        return Example(read_instance(one, self.model.embedder.lexicon, True, True).reading, span=span)

    def validate(self) -> dict[str, float]:
        """Return the validation figures."""
        losses, hits = list[float](), 0
        for some in self.batches():
            logits = to_float64(self.model(pad_readings([one.reading for one in some], self.device)))
            for one, rows in zip(some, torch.log_softmax(logits, dim=-1).cpu().numpy(), strict=True):
                losses.append(-float(rows[0, one.span[0]] + rows[1, one.span[1]]))
                hits += find_best_answer(*np.exp(rows))[:2] == one.span
        return {"accuracy": hits / len(losses), "loss": float(np.mean(losses))} if losses else {}


@dataclass(frozen=True, kw_only=True)
class GloveLstmSystem(NetworkSystem):
    """Word embeddings, a bidirectional LSTM, additive attention (DeYoung et al., 2020)."""

    learning_rate: Positive = 1e-2


@dataclass(frozen=True, kw_only=True)
class BertLstmSystem(NetworkSystem):
    """An encoder, a bidirectional LSTM, additive attention (DeYoung et al., 2020)."""

    learning_rate: Positive = 2e-5
    encoders = "required"


@dataclass(frozen=True, kw_only=True)
class BilstmSystem(NetworkSystem):
    """A bidirectional LSTM, classified by its last states (Carton et al., 2020)."""

    hidden_size: Size = 200
    dropout: Share = 0.0
    epochs: Positive = 10.0
    patience: Count = 0
    form = Form("last")


@dataclass(frozen=True, kw_only=True)
class LstmSystem(NetworkSystem):
    """An LSTM for each text, its last states through a layer whose product with each state is the attention.

    (Wang et al., 2022.)
    """

    hidden_size: Size = 300
    dropout: Share = 0.0
    batch_size: Size = 64
    epochs: Positive = 10.0
    patience: Count = 3
    clip: Weight = 5.0
    form = Form("product", both=False)
    reads_apart = True


@dataclass(frozen=True, kw_only=True)
class MatchLstmSystem(NetworkSystem):
    """A text read word by word, matched with the question by attention; it may learn to answer (Wang et al., 2022).

    Attributes:
        task: classification, question-answering, or auto: answers where the data have any.
    """

    hidden_size: Size = 150
    dropout: Share = 0.0
    batch_size: Size = 32
    epochs: Positive = 10.0
    patience: Count = 3
    clip: Weight = 5.0
    task: Literal["auto", "classification", "question-answering"] = "auto"
    reads_apart = True

    def learns_answers(self) -> bool | None:
        """Return whether it learns to answer."""
        return None if self.task == "auto" else self.task == "question-answering"

    def check_data(self, data: Data) -> None:
        """Refuse data without pairs of texts."""
        if not data.has_pairs:
            message = "match-lstm matches a text with a question: expected query=True or pairs of texts, found neither"
            raise UsageError(message, argument="model")
        if data.answers and self.monitor == "macro_f1":
            message = "monitor: expected accuracy or loss where answers are learned, found 'macro_f1'"
            raise UsageError(message, argument="model")

    def build(self, new_embedder: Callable[[], Embedder], shape: Shape) -> TokenNetwork:
        """Return an untrained network."""
        return (AnswerPointer if shape.answers else MatchLstm)(new_embedder(), self, shape)


@dataclass(frozen=True, kw_only=True)
class LeiSystem(NetworkSystem):
    """A generator of masks, trained by human rationales too, and an encoder of the selected tokens.

    (Lei et al., 2016, as DeYoung et al., 2020, train it.)

    Attributes:
        sparsity: weight of the share of tokens that are selected.
        contiguity: weight, in multiples of ``sparsity``, of the share of neighbours of which only one is selected.
        draws: selections that are drawn of each text in a step. With several, each one is compared with the text's
            other draws, which makes the estimate less noisy.
        free_epochs: epochs at the start without ``sparsity`` and ``contiguity``: a generator that learns to select
            nothing before the encoder has learned anything never recovers. With ``random_selections`` the generator
            waits that long.
        entropy: weight of the selection's entropy, a mean over tokens (Williams and Peng, 1991): a generator that is
            certain draws nothing else any more and stops learning.
        supervision: weight of the generator's cross entropy against the human rationale; 0: unsupervised.
        random_selections: train the encoder on random selections (Jethani et al., 2021) instead of the generator's: an
            empty selection then carries no information on the label.
    """

    sparsity: Weight = 0.01
    contiguity: Weight = 2.0
    draws: Size = 1
    free_epochs: Count = 0
    entropy: Weight = 0.0
    supervision: Weight = 1.0
    random_selections: bool = False
    encoders = "optional"

    @classmethod
    def defaults(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the learning rate of an encoder where there is one."""
        return {"learning_rate": 2e-5} if given.get("encoder") else {}

    def check_data(self, data: Data) -> None:
        """Refuse data without human rationales if the system learns from them."""
        if self.supervision:
            check_rationales(self.name, data)

    def build(self, new_embedder: Callable[[], Embedder], shape: Shape) -> TokenNetwork:
        """Return an untrained network."""
        return Lei(new_embedder(), self, shape, new_embedder())


@dataclass(frozen=True, kw_only=True)
class UnsupervisedLeiSystem(LeiSystem):
    """A generator of masks and an encoder of the selected tokens, trained by labels alone."""

    supervision: Weight = 0.0
    min_count = 2  # a word of one text alone tells its label, and labels would teach to select such words


def open_folder(place: Path, facts: Mapping[str, Any], settings: ModelSettings) -> NetworkModel:
    """Open a network of ``train``.

    Raises:
        DataError: a file that is missing or damaged, or was written by another version.
    """
    network = open_network(place, facts, settings.window, settings.trust_remote_code)
    return (AnswerNetwork if network.shape.answers else NetworkModel)(
        network,
        facts["label_names"],
        uses_query=bool(facts.get("uses_query") if settings.query is None else settings.query),
        device=settings.device,
        description=f"{facts['system']} {place.name}",
    )
