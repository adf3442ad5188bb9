"""A selector of sentences and a classifier of its selection: Lehman et al. (2019), BERT-to-BERT.

Both are trained apart, by human rationales, and each is a model of its own in a folder of the pipeline's. In use the
classifier reads the extract of every text and nothing else.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.erasure import NO_POSITIONS, rank_tokens
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.models.inputs import ModelInput
from eraser_hub.attribution.models.labels import align_labels
from eraser_hub.attribution.models.model import Model, Selection
from eraser_hub.attribution.models.opening import open_model
from eraser_hub.records.errors import DataError, show

from .data import Data, Labelled, Training
from .evaluation import TextProbabilities
from .finetuning import FineTuning
from .network_systems import NetworkSystem
from .networks import Form
from .system import SYSTEMS, Count, Fit, Optimised, Positive, Share, Size, Weight, check_rationales, train_into

if TYPE_CHECKING:
    from eraser_hub.attribution.models.opening import ModelSettings

OTHER, EVIDENCE = SENTENCE_LABELS = ("other", "evidence")
log = logging.getLogger("eraser_hub")
IDENTIFIER, CLASSIFIER = STAGES = ("identifier", "classifier")


# --- sentences ---------------------------------------------------------------------------------------------------


def find_sentence_bounds(instance: Instance) -> list[tuple[int, int]]:
    """Return the start and end of each sentence, in flat token positions."""
    return list(pairwise(accumulate(chain.from_iterable(instance.sentence_sizes), initial=0)))


def make_sentence_instances(instance: Instance) -> list[Instance]:
    """Return each sentence as a text of one document, with the query."""
    tokens = instance.tokens
    return [
        Instance(f"{instance.id}[{start}:{end}]", instance.query, ("sentence",), (tuple(tokens[start:end]),))
        for start, end in find_sentence_bounds(instance)
    ]


def find_evidence_sentences(instance: Instance) -> list[int]:
    """Return the ascending numbers of the sentences that hold a token of the human rationale."""
    flags = [flag for document in instance.rationale or () for flag in document]
    return [number for number, (start, end) in enumerate(find_sentence_bounds(instance)) if any(flags[start:end])]


def keep_tokens(instance: Instance, positions: Sequence[int] | NDArray[np.int64]) -> Instance:
    """Return the instance reduced to the tokens at these positions, with the query."""
    kept = np.zeros(instance.bounds[-1], dtype=bool)
    kept[positions] = True
    return instance.only(kept)


def make_sentence_examples(instances: Sequence[Instance]) -> Labelled:
    """Return the sentences of instances with a human rationale, labelled as evidence or other."""
    sentences, labels = list[Instance](), list[str]()
    for one in instances:
        if gold := find_evidence_sentences(one):
            own = make_sentence_instances(one)
            sentences += own
            labels += [EVIDENCE if number in gold else OTHER for number in range(len(own))]
    return sentences, labels


def make_extract_examples(instances: Sequence[Instance], labels: Sequence[str], number: int) -> Labelled:
    """Return the human rationale's sentences in groups of ``number``, with the instance's label."""
    extracts, extract_labels = list[Instance](), list[str]()
    for one, label in zip(instances, labels, strict=True):
        bounds, gold = find_sentence_bounds(one), find_evidence_sentences(one)
        for start in range(0, len(gold), number):
            positions = [place for sentence in gold[start : start + number] for place in range(*bounds[sentence])]
            extracts.append(keep_tokens(one, positions))
            extract_labels.append(label)
    return extracts, extract_labels


def make_sampler(labels: Sequence[str], negatives: float, seed: int) -> Callable[[int], NDArray[np.int64]]:
    """Return a function that samples an epoch: all evidence sentences, and ``negatives`` times as many others.

    Returns:
        epoch -> ascending numbers among ``labels``; the others are drawn anew in each epoch.
    """
    marked = np.array([label == EVIDENCE for label in labels], dtype=bool)
    evidence, others = np.flatnonzero(marked), np.flatnonzero(~marked)
    size = min(len(others), max(1, round(negatives * len(evidence))))

    def draw(epoch: int) -> NDArray[np.int64]:
        random = np.random.default_rng([seed, epoch])
        return np.sort(np.concatenate([evidence, random.choice(others, size=size, replace=False)]))

    return draw


# --- training ----------------------------------------------------------------------------------------------------


def fit_stages(system: LehmanSystem | BertToBertSystem, fit: Fit, training: Training) -> dict[str, Any]:
    """Train an identifier of evidence sentences, and a classifier of human rationales (teacher forcing).

    Args:
        system: the pipeline.
        fit: trains a stage.
        training: of the pipeline.

    Returns:
        What ``model.json`` says of the pipeline.
    """
    data = training.data
    check_rationales(SYSTEMS.name_of(type(system)), data)
    sentences, labels = make_sentence_examples(data.train[0])
    validation = make_sentence_examples(data.validation[0])
    if validation[0]:
        some: list[int] = make_sampler(validation[1], system.negatives, training.seed)(0).tolist()
        validation = [validation[0][number] for number in some], [validation[1][number] for number in some]
    draw = make_sampler(labels, system.negatives, training.seed)
    extracts = [make_extract_examples(*part, system.sentences) for part in (data.train, data.validation)]
    stages = {
        IDENTIFIER: Data((sentences, labels), validation, SENTENCE_LABELS, data.uses_query, draw=draw),
        CLASSIFIER: replace(data, train=extracts[0], validation=extracts[1]),
    }
    for key, own in stages.items():
        log.info(f"{key}: {len(own.train[0])} texts")
        facts = {**training.facts, "label_names": list(own.label_names)}
        train_into(replace(training, data=own, folder=training.folder / key, facts=facts), fit)
    return {"kind": "pipeline"}


@dataclass(frozen=True, kw_only=True)
class LehmanSystem(NetworkSystem):
    """A sentence identifier and a classifier of its sentences, GRUs with attention.

    (Lehman et al., 2019, as DeYoung et al., 2020, train it.)

    Attributes:
        cell: kind of the recurrent layers.
        sentences: number of sentences that are selected.
        negatives: other sentences per evidence sentence in an epoch of the identifier's training.
    """

    embedding_size: Size = 200
    dropout: Share = 0.05
    batch_size: Size = 32
    epochs: Positive = 50.0
    patience: Count = 10
    monitor: Literal["accuracy", "macro_f1", "loss"] = "loss"
    cell: Literal["gru", "lstm"] = "gru"
    sentences: Size = 1
    negatives: Weight = 1.0
    form = Form(drops_words=True)
    reads_apart = True

    def fit(self, training: Training) -> dict[str, Any]:
        """Train both stages."""
        return fit_stages(self, super().fit, training)


@dataclass(frozen=True, kw_only=True)
class BertToBertSystem(Optimised):
    """A sentence identifier and a classifier of its sentences, two encoders (DeYoung et al., 2020).

    Attributes:
        encoder: a transformers folder or Hub id.
        window: sub-words that the encoder reads together.
        sentences: number of sentences that are selected.
        negatives: other sentences per evidence sentence in an epoch of the identifier's training.
        trust_remote_code: run the code that the encoder brings.
    """

    epochs: Positive = 10.0
    batch_size: Size = 32
    learning_rate: Positive = 1e-5
    warmup_steps: Count = 50
    linear_decay: bool = True
    patience: Count = 10
    monitor: Literal["accuracy", "macro_f1", "loss"] = "loss"
    clip: Weight = 1.0
    encoder: str = ""
    window: Size = 512
    sentences: Size = 1
    negatives: Weight = 1.0
    trust_remote_code: bool = False
    files: ClassVar[tuple[str, ...]] = ("encoder",)

    def check(self, paper: str) -> None:
        """Refuse a pipeline without encoder."""
        if not self.encoder:
            raise DataError("bert-to-bert needs an encoder, a transformers folder or Hub id", argument="model")

    def fit(self, training: Training) -> dict[str, Any]:
        """Train both stages."""
        own = {name: value for name, value in asdict(self).items() if name not in ("encoder", "sentences", "negatives")}
        return fit_stages(self, FineTuning(base=self.encoder, task="classification", **own).fit, training)


# --- the model ---------------------------------------------------------------------------------------------------


class SentenceSelector:
    """A selector of the sentences that are most probably evidence (Lehman et al., 2019); the first of equal ones wins.

    Args:
        identifier: a classifier of single sentences by :data:`SENTENCE_LABELS`.
        number: number of sentences.
    """

    def __init__(self, identifier: Model, number: int) -> None:
        self.model, self.number = identifier, number
        self._probabilities, self._column = TextProbabilities(identifier), identifier.label_names.index(EVIDENCE)

    def select(self, instances: Sequence[Instance]) -> list[Selection]:
        """Return the selected sentences of each text."""
        sentences = [make_sentence_instances(one) for one in instances]
        flat = [sentence for each in sentences for sentence in each]
        scores = self._probabilities.compute(flat)[:, self._column] if flat else np.zeros(0)
        parts = np.split(scores, np.cumsum([len(each) for each in sentences])[:-1])
        return [self._select_best(one, part) for one, part in zip(instances, parts, strict=True)]

    def _select_best(self, one: Instance, scores: NDArray[np.float64]) -> Selection:
        bounds = find_sentence_bounds(one)
        chosen = [np.arange(*bounds[number]) for number in sorted(rank_tokens(scores)[: self.number].tolist())]
        values = iter(scores.tolist())
        by_document = tuple(tuple(next(values) for _ in sizes) for sizes in one.sentence_sizes)
        return Selection(np.concatenate([NO_POSITIONS, *chosen]), by_document)


class PipelineReading(NamedTuple):
    """An instance as a pipeline reads it."""

    instance: Instance


class RationalePipeline(Model):
    """A pipeline whose classifier reads only the extract of every text, erased texts included.

    Args:
        selector: the selector of the extract.
        classifier: the classifier; its labels are the pipeline's.
        uses_query: whether any of the two sees the query.
        description: the name of the model in messages.
    """

    selects = True

    def __init__(self, selector: SentenceSelector, classifier: Model, *, uses_query: bool, description: str) -> None:
        super().__init__()
        align_labels(classifier, ())
        self.selector, self._classifier = selector, TextProbabilities(classifier)
        self.label_names, self.uses_query, self.description = classifier.label_names, uses_query, description
        for stage in (selector.model, classifier):
            stage.notes = self.notes  # what happens in a stage happens in the pipeline

    def read(self, instance: Instance) -> PipelineReading:
        """Return the instance as the pipeline reads it."""
        return PipelineReading(instance)

    def cut(self, reading: PipelineReading, kept: NDArray[np.bool_], erase: str) -> Iterator[list[ModelInput]]:
        """Yield the instance without the tokens that are not kept; the selector selects anew."""
        if erase != "remove":
            message = f"`erase` {erase}: a pipeline cuts its extract out of the text; use `erase` remove"
            raise DataError(message, argument="erase")
        for flags in kept:
            rest = reading.instance.only(flags)
            content = repr((rest.query, rest.documents, rest.sentences)).encode()
            key = hashlib.blake2b(content, digest_size=16).digest()
            yield [ModelInput(key, len(rest.query) + rest.bounds[-1], rest)]

    def forward(self, inputs: Sequence[Instance]) -> NDArray[np.float64]:
        """Return probabilities of shape (inputs, labels)."""
        pairs = zip(inputs, self.selector.select(inputs), strict=True)
        return self._classifier.compute([keep_tokens(one, selection.positions) for one, selection in pairs])

    def select(self, readings: Sequence[PipelineReading]) -> list[Selection]:
        """Return the extract of each instance."""
        return self.selector.select([one.instance for one in readings])


def open_folder(place: Path, facts: Mapping[str, Any], settings: ModelSettings) -> RationalePipeline:
    """Open a pipeline of ``train``.

    Raises:
        DataError: a stage that is missing or damaged, or was written by another version.
    """
    options = {name: getattr(settings, name) for name in ("window", "device", "precision", "trust_remote_code")}
    identifier, classifier = (open_model(place / stage, **options) for stage in STAGES)
    try:
        selector = SentenceSelector(identifier, facts["settings"]["sentences"])
        uses_query = bool(facts["uses_query"] if settings.query is None else settings.query)
        description = f"{facts['system']} {place.name}"
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"cannot be opened as a pipeline of `train`: {show(str(error))}", file=place) from error
    return RationalePipeline(selector, classifier, uses_query=uses_query, description=description)
