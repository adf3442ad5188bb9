"""Opening a model: each kind of model has an opener, which knows it by the object or by its files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, get_args

from eraser_hub.conversion.readers import describe_value
from eraser_hub.records.errors import DataError, UsageError, show
from eraser_hub.records.predictions import SEED
from eraser_hub.records.readers import read_json_object
from eraser_hub.records.registry import Registry

from .adapter import Adapter, ProbabilityModel
from .config import Prompting, Task

# a folder in a model's while it is trained, and a file there while it is written
CHECKPOINT_DIR, SAVING = ".training", "saving"
STAGES = {"identifier", "classifier"}  # folders in a pipeline's, which are models
# what each fact in ``model.json`` has to be that decides how a model is opened
_FACTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("window", "longest"), (lambda n: type(n) is int and 0 < n < 1 << 31, "a number of sub-words")),
    **dict.fromkeys(("uses_query", "query_last"), (lambda flag: isinstance(flag, bool), "true or false")),
    **dict.fromkeys(("joiner", "network"), (lambda text: isinstance(text, str), "a string")),
    "stages": (lambda names: isinstance(names, list) and set(map(str, names)) <= STAGES, "names of stages"),
}
TOKENIZER = "tokenizer"  # folder in a model's of `train`, where it counts sub-words


@dataclass(frozen=True, slots=True)
class Opening:
    """A model to open and the options of :func:`open_model`.

    Attributes:
        model: the object, or what names it.
        path: of the model, or its Hub id; None for an object.
        facts: the ``model.json`` that ``train`` wrote beside it.
    """

    model: Any
    path: Path | None
    facts: Mapping[str, Any]
    task: str = "auto"
    trust_pickle: bool = False
    trust_remote_code: bool = False
    uses_query: bool | None = None
    window: int | None = None
    device: str | None = None
    precision: str = "auto"
    prompting: Prompting = field(default_factory=Prompting)


class Opener(ABC):
    """A kind of model.

    Attributes:
        last: whether it takes what no other kind does.
    """

    last: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def opens(cls, opening: Opening) -> bool:
        """Return True if the model is of this kind; it is not opened for that."""

    @classmethod
    @abstractmethod
    def open(cls, opening: Opening) -> Adapter:
        """Return the model behind the one interface.

        Raises:
            DataError: it cannot be opened.
        """

    @classmethod
    def embeds(cls, opening: Opening) -> bool:
        """Return True if the model embeds its tokens; the model is not opened for that."""
        return True

    @classmethod
    def selects(cls, opening: Opening) -> bool:
        """Return True if the model comes with hard rationales of its own; it is not opened for that."""
        return False


ADAPTERS = Registry(
    "eraser_hub.adapters",
    "model adapter",
    Opener,  # type: ignore[type-abstract]
    "eraser_hub.attribution.adapters",
    "eraser_hub.systems.adapters",
)


def open_model(
    model: str | Path | ProbabilityModel | Adapter,
    *,
    task: str = "auto",
    trust_pickle: bool = False,
    trust_remote_code: bool = False,
    uses_query: bool | None = None,
    window: int | None = None,
    device: str | None = None,
    precision: str = "auto",
    prompting: Prompting | None = None,
) -> Adapter:
    """Open a model: a folder of ``eraser-hub train``, a skops or joblib file, a transformers folder or Hub id.

    Args:
        model: a path, a Hub id, an object with ``predict_proba`` (scikit-learn over strings or token lists), or an
            adapter (returned as it is).
        task: what a transformers model computes; ``auto`` reads it from its architecture.
        trust_pickle: allow joblib and pickle files, which run code when they are opened.
        trust_remote_code: run the code that a transformers folder or Hub id brings along.
        uses_query: show the query to the model; None: as it was trained, else no.
        window: longest input in sub-words; None: as it was trained by ``eraser-hub train``, else the model's own limit.
        device: torch device; None: cuda where there is one.
        precision: float32, bfloat16 or float16 (autocast), or auto: bfloat16 on a GPU that has it.
        prompting: how a language model is asked for a label; None: the generic prompt, with the labels' names.

    Raises:
        DataError: an unknown task, nothing there, an unknown file, a pickle without ``trust_pickle``, missing packages.
    """
    if task not in get_args(Task):
        message = f"expected one of {', '.join(get_args(Task))}; found {show(task)}"
        raise UsageError(message, field="task")
    if isinstance(model, Adapter):
        return model
    opening = make_opening(model)
    asks = opening.facts.get("uses_query") if uses_query is None else uses_query
    options = (task, trust_pickle, trust_remote_code, asks, window, device, precision, prompting or Prompting())
    opening = Opening(model, opening.path, opening.facts, *options)
    if opening.path is not None and (opening.path / CHECKPOINT_DIR / SAVING).exists():
        message = "expected a model, found one whose training was stopped while it was written: train again"
        raise DataError(message, file=opening.path)
    adapter = find_opener(opening).open(opening)
    asked = () if adapter.prompted else opening.prompting.options
    if asked:
        message = f"expected a language model that is prompted beside it, found {adapter.description}"
        raise DataError(message, argument=asked[0])
    return adapter


def make_opening(model: Any) -> Opening:
    """Return a model for the openers, with the facts that ``train`` wrote beside it; other models have none.

    Raises:
        DataError: a fact of another type.
    """
    if not isinstance(model, (str, Path)):
        return Opening(model, None, {})
    folder = Path(model)
    path = folder / "model.json" if folder.is_dir() else folder.with_name("model.json")
    facts = read_json_object(path) if path.is_file() else {}
    for name, (is_sound, words) in _FACTS.items():
        if facts.get(name) is not None and not is_sound(facts[name]):
            found = f"expected {words}, found {describe_value(facts[name])}"
            raise DataError(found, file=path, field=name)
    return Opening(model, folder, facts)


def find_opener(opening: Opening) -> type[Opener]:
    """Return the opener of a model; those of plug-ins are asked first.

    Raises:
        DataError: there is none.
    """
    openers = [ADAPTERS[name] for name in ADAPTERS]
    for opener in sorted(openers, key=lambda one: (one.last, one.__module__.startswith("eraser_hub."))):
        if opener.opens(opening):
            return opener
    raise DataError(f"expected a model, found {show(opening.model)}")


def find_trainings(model: str) -> list[tuple[int, str]]:
    """Return the seeds and folders of the trainings in a folder that ``train --seeds`` wrote; none for another model.

    Raises:
        DataError: one of the trainings is not finished.
    """
    folder = Path(model)
    if not folder.is_dir() or (folder / "model.json").is_file():
        return []
    names = [each.name.removeprefix(SEED) for each in folder.glob(f"{SEED}*") if each.is_dir()]
    trainings = [(seed, folder / f"{SEED}{seed}") for seed in sorted(int(name) for name in names if name.isdecimal())]
    for _, place in trainings:
        if not (place / "model.json").is_file() or (place / CHECKPOINT_DIR).is_dir():
            message = "expected a finished training, found a stopped one; the same `train` goes on with it"
            raise DataError(message, file=place)
    return [(seed, str(place)) for seed, place in trainings]


def is_path_like(name: str) -> bool:
    """Return True if a name cannot be a Hub id (``org/name`` or ``name``)."""
    return name.startswith((".", "/", "~")) or name.count("/") > 1 or name.endswith(("/", ".skops", ".joblib", ".pkl"))
