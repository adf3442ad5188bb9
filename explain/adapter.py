"""What a model is here, and how one is opened.

Anything with ``predict_proba(list of token lists) -> array (n, classes)`` is a model. Adapters say how an instance is
encoded once and how its erased variants are cut from that encoding, so that a thousand erased inputs of one document
cost a thousand forward passes and nothing beside.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError, shown

from .erasure import Erased
from .instances import Instance

TASKS = ("auto", "classification", "multiple-choice", "question-answering")


@runtime_checkable
class ProbabilityModel(Protocol):
    """The least a model must do."""

    def predict_proba(self, token_lists: list[list[str]]) -> NDArray[np.float64]:
        """Probabilities, shape (number of token lists, number of classes), each row summing to 1."""


@dataclass(slots=True)
class View:
    """One erased input, ready for the model.

    Attributes:
        keys: for each unit bytes that are equal exactly when the model's inputs are; a document longer than the
            model's window has several units.
        sizes: length of each unit.
        data: what :meth:`Adapter.forward` reads.
    """

    keys: tuple[bytes, ...]
    sizes: tuple[int, ...]
    data: Any


@dataclass(slots=True)
class Notes:
    """What happened on the way that a reader of the results must know; counted, printed, written beside the results."""

    counts: dict[str, int] = field(default_factory=dict)
    maxima: dict[str, float] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)

    def count(self, name: str, number: int = 1) -> None:
        """Add to a counter."""
        self.counts[name] = self.counts.get(name, 0) + number

    def largest(self, name: str, value: float) -> None:
        """Keep the largest of a value."""
        self.maxima[name] = max(value, self.maxima.get(name, value))

    def take(self) -> tuple[dict[str, int], dict[str, float], list[str]]:
        """What has gathered since the last call, and start anew (each chunk carries its own)."""
        taken = self.counts, self.maxima, self.words
        self.counts, self.maxima, self.words = {}, {}, []
        return taken

    def add(self, counts: dict[str, int], maxima: dict[str, float], words: Sequence[str]) -> None:
        """Add what another part of the work has gathered."""
        for name, number in counts.items():
            self.count(name, number)
        for name, value in maxima.items():
            self.largest(name, value)
        for sentence in words:
            self.say(sentence)

    def say(self, words: str) -> None:
        """Keep a sentence, once."""
        if words not in self.words:
            self.words.append(words)


class Encoded(ABC):
    """An instance as one model sees it; erased variants are cut from it."""

    instance: Instance

    def alike(self, positions: NDArray[np.int64]) -> bytes:
        """Bytes that are equal only for token positions whose erasure (or keeping) gives the same input.

        Cheaper than :meth:`view`, which is made once for each. By default the positions themselves.
        """
        return positions.tobytes()

    @abstractmethod
    def view(self, kept: NDArray[np.bool_], erase: str) -> View:
        """The input with the tokens that are not ``kept`` erased as ``erase`` says (remove, mask or pad)."""

    def views(self, erased: Sequence[Erased], erase: str) -> Iterator[View]:
        """A view of each of several erased inputs of this instance, in order."""
        tokens = self.instance.bounds[-1]
        return (self.view(one.kept(tokens), erase) for one in erased)


class Adapter(ABC):
    """A model behind one interface.

    Attributes:
        label_names: class names in the dataset's order.
        order: column of the model's output for each of ``label_names``.
        uses_query: whether the query is part of the input.
        pads: whether inputs unlike in length may go together; False for a network that sees its padding.
        has_labels: whether the outputs are labels, which may be named and ordered otherwise than the dataset's.
        notes: counters and sentences for the report.
    """

    label_names: tuple[str, ...] = ()
    own_names: tuple[str, ...] | None = None  # the model's own, in its own order, kept by align_labels
    order: NDArray[np.int64] | None = None
    uses_query = False
    pads = True
    has_labels = True  # False: answers, which are the dataset's own, stand in the labels' place
    description = ""

    def __init__(self) -> None:
        self.notes = Notes()

    @abstractmethod
    def encode(self, instance: Instance) -> Encoded:
        """Read an instance once."""

    @abstractmethod
    def forward(self, units: Sequence[tuple[View, int]]) -> NDArray[np.float64]:
        """Probabilities of (view, number of its unit), shape (len(units), classes), in the model's own order."""

    def start(self, units: Sequence[tuple[View, int]]) -> Any:
        """Begin :meth:`forward` and give what :meth:`finish` takes; on a GPU the next batch is made ready meanwhile."""
        return self.forward(units)

    def finish(self, started: Any) -> NDArray[np.float64]:
        """The probabilities of a batch that was started."""
        return started  # type: ignore[no-any-return]

    def rows_for(self, size: int, batch_size: int) -> int:
        """How many units whose longest has ``size`` go through together."""
        return batch_size

    def supports(self, method: str) -> bool:
        """Whether the attribution method can be computed for this model."""
        return method in ("random", "occlusion", "lime")

    def scores(
        self, method: str, encoded: Sequence[Encoded], targets: Sequence[int], steps: int
    ) -> list[NDArray[np.float64]]:
        """Token scores of a method that looks inside the model (gradients, attention, coefficients).

        Args:
            targets: the class to explain, as an index into ``label_names``.
            steps: integration steps of integrated gradients.
        """
        raise DataError(f"--method {method}: {self.description} has nothing to compute it from")

    def column(self, target: int) -> int:
        """The model's own output column of a label."""
        return int(self.order[target]) if self.order is not None else target


@dataclass(slots=True)
class _Tokens(Encoded):
    instance: Instance
    tokens: list[str]
    query: list[str]
    mask_token: str | None
    pad_token: str | None

    def view(self, kept: NDArray[np.bool_], erase: str) -> View:
        tokens = erase_tokens(self.tokens, kept, erase, self.mask_token, self.pad_token)
        key = hashlib.blake2b("\x1f".join(tokens).encode("utf-8", "surrogatepass"), digest_size=16)
        key.update(b"\x1d" + "\x1f".join(self.query).encode("utf-8", "surrogatepass") + bytes(min(len(tokens), 1)))
        return View((key.digest(),), (len(tokens) + len(self.query),), (tokens, self.query))


def erase_tokens(
    tokens: Sequence[str], kept: NDArray[np.bool_], erase: str, mask: str | None, pad: str | None
) -> list[str]:
    """Tokens with those not kept removed, or replaced by the mask or padding token."""
    if erase == "remove":
        return [token for token, stays in zip(tokens, kept, strict=True) if stays]
    substitute = mask if erase == "mask" else pad
    if substitute is None:
        raise DataError(f"--erase {erase}: the model has no {erase} token; use --erase remove")
    return [token if stays else substitute for token, stays in zip(tokens, kept, strict=True)]


class PlainModel(Adapter):
    """Any object with ``predict_proba(list of token lists)``.

    Attributes ``mask_token`` and ``pad_token`` of the object are used for erasing, ``label_names`` (or scikit-learn's
    ``classes_``) for its labels. A ``predict_proba`` with a second parameter named ``queries`` is given the queries;
    any other gets the query's tokens before the document's when the query is used.
    """

    def __init__(self, model: ProbabilityModel, *, uses_query: bool = False) -> None:
        super().__init__()
        if not callable(getattr(model, "predict_proba", None)):
            raise DataError(f"expected a model with predict_proba(token lists), found {type(model).__name__}")
        self.model, self.uses_query = model, uses_query
        self.description = type(model).__name__
        names: Any = getattr(model, "label_names", None)
        names = getattr(model, "classes_", ()) if names is None else names
        if callable(names) or isinstance(names, str):
            raise DataError(f"{self.description}.label_names: expected a list of names, found {shown(names)}")
        self.label_names = tuple(map(str, names))
        self._separate = "queries" in inspect.signature(model.predict_proba).parameters

    def encode(self, instance: Instance) -> Encoded:
        query = list(instance.query) if self.uses_query else []
        mask, pad = getattr(self.model, "mask_token", None), getattr(self.model, "pad_token", None)
        return _Tokens(instance, instance.tokens, query, mask, pad)

    def forward(self, units: Sequence[tuple[View, int]]) -> NDArray[np.float64]:
        if self._separate:
            texts = [list(view.data[0]) for view, _ in units]
            return self.model.predict_proba(texts, queries=[list(view.data[1]) for view, _ in units])  # type: ignore[call-arg]
        return self.model.predict_proba([view.data[1] + view.data[0] for view, _ in units])


def numbers_of(found: Any, whose: str) -> NDArray[np.float64]:
    """A model's output as an array: nested lists, any array, a data frame, a torch tensor.

    Raises:
        DataError: what is none of them, ragged lists, other than real numbers.
    """
    kind = type(found).__name__
    if callable(getattr(found, "detach", None)):  # a torch tensor, which may carry a gradient or be bf16
        found = found.detach().cpu().double().numpy()
    try:
        values = np.asarray(found)
        if values.dtype.kind in "biufO" and values.ndim:
            return values.astype(np.float64)
    except (TypeError, ValueError):
        pass
    raise DataError(f"{whose}: expected an array of numbers (inputs, labels), found {kind}")


def check_probabilities(found: Any, rows: int, classes: int, whose: str) -> NDArray[np.float64]:
    """A model's output, or clear words about what is wrong with it.

    Raises:
        DataError: no array of numbers, wrong shape, another number of labels, NaN, infinite or negative values, rows that
            do not sum to 1.
    """
    values = numbers_of(found, whose)
    if values.ndim != 2 or len(values) != rows:
        raise DataError(f"{whose}: expected probabilities of shape ({rows}, {classes}), found {values.shape}")
    if values.shape[1] != classes:
        raise DataError(f"{whose}: expected {classes} labels as in the dataset, found {values.shape[1]} in its output")
    if not np.isfinite(values).all():
        bad = int(np.count_nonzero(~np.isfinite(values).all(axis=1)))
        raise DataError(f"{whose}: its output holds NaN or infinite values for {bad} of {rows} inputs of a batch")
    sums = values.sum(axis=1)
    for wrong, told in (
        ((values < 0).any(axis=1), lambda row: f"{row.min():.4g}"),
        (np.abs(sums - 1) > 1e-3, lambda row: f"a row that sums to {row.sum():.4g}"),
    ):
        if np.any(wrong):
            first = told(values[int(np.argmax(wrong))])
            raise DataError(f"{whose}: expected non-negative probabilities that sum to 1, found {first}")
    return values


def align_labels(adapter: Adapter, dataset_names: Sequence[str], given: Sequence[str] = ()) -> None:
    """Bring a model's labels into the dataset's order, by name.

    Args:
        dataset_names: the dataset's ClassLabel names; () where it has none, then the model's own order stays.
        given: names stated by hand for the model's outputs (``--labels``).

    Raises:
        DataError: another number of labels, or names that are not the dataset's.
    """
    if adapter.own_names is None:
        adapter.own_names = adapter.label_names
    names = tuple(given) or adapter.own_names
    if len(set(names)) < len(names):
        raise DataError(f"{adapter.description}: expected different labels, found {', '.join(names[:10])}")
    if not names and not dataset_names and adapter.has_labels:
        raise DataError(
            f"{adapter.description} does not name its labels, nor does the dataset: state them, in the model's order, with "
            "--labels"
        )
    if adapter.own_names and len(names) != len(adapter.own_names):
        raise DataError(f"--labels: expected {len(adapter.own_names)} names (the model's outputs), found {len(names)}")
    if not dataset_names:
        adapter.label_names = names
        adapter.order = np.arange(len(names)) if names else None
        return
    if not names:
        adapter.label_names, adapter.order = tuple(dataset_names), np.arange(len(dataset_names))
        if adapter.has_labels:
            adapter.notes.say(
                f"the model does not name its labels: taken in the dataset's order {', '.join(dataset_names)}"
            )
        return
    if len(names) != len(dataset_names):
        raise DataError(
            f"{adapter.description}: expected {len(dataset_names)} labels ({', '.join(dataset_names)}), "
            f"found {len(names)} ({', '.join(names[:10])})"
        )
    lowered = {name.casefold(): place for place, name in enumerate(names)}
    wanted = [name.casefold() for name in dataset_names]
    if sorted(lowered) == sorted(wanted):
        adapter.order = np.asarray([lowered[name] for name in wanted])
        if list(adapter.order) != list(range(len(wanted))):
            adapter.notes.say(
                f"the model's labels stand in another order ({', '.join(names)}): matched by name to {', '.join(dataset_names)}"
            )
    elif all(name.upper() == f"LABEL_{place}" for place, name in enumerate(names)):
        adapter.order = np.arange(len(names))
        adapter.notes.say(
            f"the model names its labels {names[0]}, ..: taken in the dataset's order {', '.join(dataset_names)}; "
            "say --labels if it is another"
        )
    else:
        raise DataError(
            f"{adapter.description}: expected the labels {', '.join(dataset_names)}, found {', '.join(names[:10])}; "
            "state the dataset's name of each output, in the model's order, with --labels"
        )
    adapter.label_names = tuple(dataset_names)


def open_model(
    model: str | Path | ProbabilityModel | Adapter,
    *,
    task: str = "auto",
    trust_pickle: bool = False,
    uses_query: bool | None = None,
    window: int | None = None,
    device: str | None = None,
    precision: str = "auto",
) -> Adapter:
    """Open a model: a folder of ``eraser-hub train``, a skops or joblib file, a transformers folder or Hub id.

    Args:
        model: a path, a Hub id, an object with ``predict_proba``, or an adapter (returned as it is).
        task: what a transformers model computes; ``auto`` reads it from its architecture.
        trust_pickle: allow joblib and pickle files, which run code when they are opened.
        uses_query: show the query to the model; None: as it was trained, else no.
        window: longest input in sub-words; None: as it was trained by ``eraser-hub train``, else the model's own limit.
        device: torch device; None: cuda where there is one.
        precision: float32, bfloat16 (autocast), or auto: bfloat16 on a GPU that has it.

    Raises:
        DataError: an unknown task, nothing there, an unknown file, a pickle without ``trust_pickle``, missing packages.
    """
    if task not in TASKS:
        raise DataError(f"expected one of {', '.join(TASKS)}; found {shown(task)}", field="task")
    if isinstance(model, Adapter):
        return model
    if not isinstance(model, (str, Path)):
        return PlainModel(model, uses_query=bool(uses_query))
    path = Path(model)
    facts: dict[str, Any] = {}
    card = path / "model.json" if path.is_dir() else path.with_name("model.json")
    if card.is_file():
        try:
            facts = json.loads(card.read_text("utf-8"))
        except ValueError as error:
            raise DataError(f"not JSON: {error}", file=card) from error
    seen = bool(facts.get("uses_query")) if uses_query is None else uses_query
    pipeline = path / "model.skops" if (path / "model.skops").is_file() else path
    if pipeline.is_file():
        need("sklearn", "skops")
        from eraser_hub.explain.models.sklearn_model import PipelineModel, load_pipeline

        return PipelineModel(load_pipeline(pipeline, trust_pickle), uses_query=seen, joiner=facts.get("joiner", " "))
    if path.is_dir() and not (path / "config.json").is_file():
        raise DataError(
            "expected model.skops (eraser-hub train) or config.json (transformers), found neither", file=path
        )
    if not path.is_dir() and looks_like_a_path(str(model)):
        raise DataError("no such model file or folder", file=path)
    need("torch", "transformers")
    from eraser_hub.explain.transformers.sequence_model import open_transformer

    return open_transformer(
        str(model),
        task=task,
        uses_query=uses_query if uses_query is not None else facts.get("uses_query"),
        # a model of `train` reads as much at a time as it did in training
        window=facts.get("window") if window is None else window,
        device=device,
        precision=precision,
    )


def looks_like_a_path(name: str) -> bool:
    """True for what cannot be a Hub id (``org/name`` or ``name``)."""
    return name.startswith((".", "/", "~")) or name.count("/") > 1 or name.endswith(("/", ".skops", ".joblib", ".pkl"))


def need(*packages: str) -> None:
    """Check that the extra's packages are installed.

    Raises:
        DataError: says which is missing and how to install it.
    """
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        names = ", ".join("scikit-learn" if name == "sklearn" else name for name in missing)
        extra = "ray" if "ray" in missing else "explain"
        raise DataError(f"missing package {names}: install the extra with  pip install 'eraser-hub[{extra}]'")
