"""The papers' systems that ``eraser-hub train --model NAME`` makes, and every hyper-parameter with its paper's default.

Nothing here needs PyTorch: the command line reads the names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product

from eraser_hub.records.errors import DataError, shown

MONITORS = ("accuracy", "macro_f1", "loss")  # of the validation split, by which the best weights are chosen
SIZES = ("hidden_size", "embedding_size", "batch_size", "window", "min_count", "sentences", "draws")  # at least 1
CHOICES = {"monitor": MONITORS, "cell": ("gru", "lstm"), "extractor": ("top-k", "contiguous")}
SHARES = ("dropout", "warmup")
MOST_TRIALS = 100
LARGEST = 1e12  # of a number: far above what trains, and far below what float32 cannot multiply
Value = int | float | str | bool


@dataclass(frozen=True, slots=True)
class Hyper:
    """How a system is trained; each paper's system has a class with its own additions.

    Attributes:
        epochs: at most so many.
        max_steps: at most so many steps; 0: as many as ``epochs`` ask for.
        batch_size: examples a step.
        learning_rate: Adam's.
        weight_decay: AdamW's, decoupled; 0 gives Adam.
        warmup_steps: the learning rate grows over so many steps.
        linear_decay: and falls in a line to 0 at the last.
        patience: epochs without a better validation score after which training stops; 0: none stops it.
        monitor: the validation score that chooses the best weights, one of :data:`MONITORS`.
        clip: largest norm of the gradient; 0: any.
    """

    epochs: float = 20.0
    max_steps: int = 0
    batch_size: int = 16
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    warmup_steps: int = 0
    linear_decay: bool = False
    patience: int = 5
    monitor: str = "accuracy"
    clip: float = 10.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in SIZES and value < 1:
                raise DataError(f"{field.name}: expected at least 1, found {shown(value)}", rule="option-value")
            if field.name in SHARES and not 0 <= value < 1:
                words = f"{field.name}: expected a share from 0 to below 1, found {shown(value)}"
                raise DataError(words, rule="option-value")
            if isinstance(value, (int, float)) and not isinstance(value, bool) and not 0 <= value <= LARGEST:
                words = f"{field.name}: expected a number from 0 to {LARGEST:g}, found {shown(value)}"
                raise DataError(words, rule="option-value")
            if field.name in CHOICES and value not in CHOICES[field.name]:
                words = f"{field.name}: expected one of {', '.join(CHOICES[field.name])}; found {shown(value)}"
                raise DataError(words, rule="option-value")


@dataclass(frozen=True, slots=True)
class NetworkHyper(Hyper):
    """Of networks over words.

    Attributes:
        embedding_size: width of learned embeddings; ``--embeddings`` and ``--encoder`` have widths of their own.
        hidden_size: of the LSTM, in each direction.
        dropout: share of values that are dropped in training.
        lowercase: words are lower-cased before they are looked up.
        min_count: words that occur less often in the training text are unknown words.
        window: sub-words that go through an encoder together; a longer text begins anew there.
        trained_layers: so many of the encoder's last layers are trained, the others stay as they are.
    """

    embedding_size: int = 300
    hidden_size: int = 128
    dropout: float = 0.2
    lowercase: bool = True
    min_count: int = 1
    window: int = 512
    trained_layers: int = 2


@dataclass(frozen=True, slots=True)
class LeiHyper(NetworkHyper):
    """Of Lei et al. (2016) as paper 000 trains it.

    Attributes:
        sparsity: weight of the share of tokens that are selected.
        contiguity: weight, in multiples of ``sparsity``, of the share of neighbours of which one is selected.
        draws: selections that are drawn of each text in a step; with several, each is judged by the text's others,
            which makes the estimate less noisy.
        free_epochs: so many epochs at the start without ``sparsity`` and ``contiguity``: a generator that learns to
            select nothing before the encoder has learned anything never gets out of it. With ``random_selections`` the
            generator waits that long.
        entropy: weight of the selection's entropy, a mean over tokens (Williams and Peng, 1991): a generator that is
            certain draws nothing else any more, and learns nothing more.
        reinforce: weight of the generator's REINFORCE loss.
        supervision: weight of the generator's cross entropy against the human rationale; 0: unsupervised.
        random_selections: the encoder learns from selections that are drawn blindly (Jethani et al., 2021), not from
            the generator's: that of a text nothing is selected then says nothing of its label.
        generator_layers: as ``trained_layers``, of the generator's own encoder.
    """

    sparsity: float = 0.01
    contiguity: float = 2.0
    draws: int = 1
    free_epochs: int = 0
    entropy: float = 0.0
    reinforce: float = 1.0
    supervision: float = 1.0
    random_selections: bool = False
    generator_layers: int = 2


@dataclass(frozen=True, slots=True)
class LehmanHyper(NetworkHyper):
    """Of both stages of Lehman et al. (2019) as paper 000 trains them.

    Attributes:
        cell: ``gru`` or ``lstm``.
        sentences: so many are selected.
        negatives: other sentences for each evidence sentence in an epoch of the identifier's training.
    """

    cell: str = "gru"
    sentences: int = 1
    negatives: float = 1.0


@dataclass(frozen=True, slots=True)
class BertToBertHyper(Hyper):
    """Of both stages of paper 000's BERT-to-BERT.

    Attributes:
        window: sub-words that go through the encoder together.
        sentences, negatives: as in :class:`LehmanHyper`.
    """

    window: int = 512
    sentences: int = 1
    negatives: float = 1.0


@dataclass(frozen=True, slots=True)
class FreshHyper(Hyper):
    """Of explainer and classifier of Jain et al. (2020).

    Attributes:
        window: sub-words that go through the encoder together.
        share: of a text's tokens that are extracted; 0: the config's average rationale length.
        extractor: ``top-k`` (single tokens) or ``contiguous`` (neighbours).
    """

    window: int = 512
    share: float = 0.0
    extractor: str = "top-k"


@dataclass(frozen=True, slots=True)
class NetworkSystem:
    """One of the papers' systems.

    Attributes:
        paper: where it stands.
        words: what it is.
        hyper: its hyper-parameters by the paper.
        with_encoder: those that differ where ``--encoder`` is given.
        encoder: ``no``, ``optional`` or ``required``.
        selects: whether it comes with hard rationales of its own.
        stages: of a pipeline, the models that are trained one after the other; the last is the classifier.
    """

    paper: str
    words: str
    hyper: Hyper
    with_encoder: Mapping[str, Value] | None = None
    encoder: str = "no"
    selects: bool = False
    stages: tuple[str, ...] = ()


SYSTEMS: Mapping[str, NetworkSystem] = {
    "lstm": NetworkSystem(
        "Wang et al. (2022)",
        "an LSTM for each text, its last states through a layer whose product with each state is the attention",
        NetworkHyper(hidden_size=300, dropout=0.0, batch_size=64, epochs=10, patience=3, clip=5.0),
    ),
    "match-lstm": NetworkSystem(
        "Wang et al. (2022), after Wang and Jiang (2016)",
        "each word of the text matched with the question by attention, read by an LSTM",
        NetworkHyper(hidden_size=150, dropout=0.0, batch_size=32, epochs=10, patience=3, clip=5.0),
    ),
    "bilstm": NetworkSystem(
        "Carton et al. (2020)",
        "a bidirectional LSTM, classified by its last states",
        NetworkHyper(hidden_size=200, dropout=0.0, epochs=10, patience=0),
    ),
    "glove-lstm": NetworkSystem(
        "DeYoung et al. (2020), Table 4",
        "word embeddings, a bidirectional LSTM, additive attention",
        NetworkHyper(learning_rate=1e-2),
    ),
    "bert-lstm": NetworkSystem(
        "DeYoung et al. (2020), Table 4",
        "an encoder, a bidirectional LSTM, additive attention",
        NetworkHyper(learning_rate=2e-5),
        encoder="required",
    ),
    "lei": NetworkSystem(
        "DeYoung et al. (2020), Table 3, after Lei et al. (2016)",
        "a generator of masks that human rationales train too, and an encoder of what it keeps",
        LeiHyper(),
        {"learning_rate": 2e-5},
        "optional",
        selects=True,
    ),
    "lei-unsupervised": NetworkSystem(
        "DeYoung et al. (2020), Table 3 (u), after Lei et al. (2016)",
        "the same, trained by labels alone",
        LeiHyper(supervision=0.0),
        {"learning_rate": 2e-5},
        "optional",
        selects=True,
    ),
    "lehman": NetworkSystem(
        "DeYoung et al. (2020), Table 3, after Lehman et al. (2019)",
        "a sentence identifier and a classifier of its sentences, GRUs with attention",
        LehmanHyper(embedding_size=200, dropout=0.05, batch_size=32, epochs=50, patience=10, monitor="loss"),
        selects=True,
        stages=("identifier", "classifier"),
    ),
    "bert-to-bert": NetworkSystem(
        "DeYoung et al. (2020), Table 3",
        "the same pipeline of two encoders",
        BertToBertHyper(
            learning_rate=1e-5,
            batch_size=32,
            epochs=10,
            patience=10,
            monitor="loss",
            warmup_steps=50,
            linear_decay=True,
            clip=1.0,
        ),
        encoder="required",
        selects=True,
        stages=("identifier", "classifier"),
    ),
    "fresh": NetworkSystem(
        "Jain et al. (2020)",
        "an explainer whose attention selects tokens, and a classifier of these alone",
        FreshHyper(learning_rate=2e-5, epochs=20, patience=5, warmup_steps=50, linear_decay=True, clip=1.0),
        encoder="required",
        selects=True,
        stages=("explainer", "classifier"),
    ),
}


def hyper_of(name: str, encoder: str, options: Mapping[str, Value | None], settings: Sequence[str] = ()) -> Hyper:
    """The hyper-parameters of a system: its paper's, with options in their place.

    Args:
        encoder: what ``--encoder`` says; "" for none.
        options: name -> value, None where the paper decides.
        settings: ``NAME=VALUE``, as ``--set`` takes them; they go before ``options``.

    Raises:
        DataError: a name that the system does not have (it lists those that it has), a value of another type or range;
            an encoder that is missing, or that nothing would use.
    """
    system = SYSTEMS[name]
    if system.encoder == "required" and not encoder:
        words = f"--encoder: {name} needs one, a transformers folder or Hub id; there is no default"
        raise DataError(words, rule="option-missing")
    if system.encoder == "no" and encoder:
        raise DataError(f"--encoder: {name} has none; it reads word embeddings (--embeddings)", rule="option-conflict")
    hyper = replace(system.hyper, **(system.with_encoder or {}) if encoder else {})  # type: ignore[arg-type]
    names = [field.name for field in fields(hyper)]
    values = {name: value for name, value in options.items() if value is not None}
    for setting in settings:
        key, _, text = setting.partition("=")
        if key not in names:
            words = f"--set: expected NAME=VALUE with a name among {', '.join(names)}; found {shown(setting)}"
            raise DataError(words, rule="option-value")
        values[key] = value_of(key, text, getattr(hyper, key))
    return replace(hyper, **values)  # type: ignore[arg-type]


def grid_of(grid: Sequence[str]) -> list[tuple[str, ...]]:
    """Every combination of a grid's values as ``NAME=VALUE``, the last name changing fastest; an empty one of no grid.

    >>> grid_of(["hidden_size=100,200", "clip=5"])
    [('hidden_size=100', 'clip=5'), ('hidden_size=200', 'clip=5')]

    Args:
        grid: ``NAME=VALUE,VALUE,..``, as ``--grid`` takes them.

    Raises:
        DataError: not of that form, a name or a value twice, more than :data:`MOST_TRIALS` combinations.
    """
    rows, names = list[list[str]](), set[str]()
    for one in grid:
        name, _, text = one.partition("=")
        values = text.split(",")
        if not name or not all(values) or name in names or len(set(values)) < len(values):
            words = f"--grid: expected each NAME=VALUE,VALUE,.. once and different values, found {shown(one)}"
            raise DataError(words, rule="option-value")
        names.add(name)
        rows.append([f"{name}={value}" for value in values])
    trials = list(product(*rows))
    if len(trials) > MOST_TRIALS:
        words = f"--grid: expected at most {MOST_TRIALS} combinations, found {len(trials)}"
        raise DataError(words, rule="option-value")
    return trials


def value_of(name: str, text: str, like: Value) -> Value:
    """A hyper-parameter's value from its text, of the type of ``like``.

    Raises:
        DataError: not of that type.
    """
    try:
        if isinstance(like, bool):
            return {"true": True, "false": False}[text.lower()]
        return type(like)(text)
    except (KeyError, ValueError):
        kind = "true or false" if isinstance(like, bool) else {int: "an integer", float: "a number"}[type(like)]
        raise DataError(f"--set {name}: expected {kind}, found {shown(text)}", rule="option-value") from None
