"""Opening a model: by the kind that its folder names, by its files, or by what an object can do."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec
from msgspec import Meta

from eraser_hub.conversion.readers import describe_value
from eraser_hub.records.errors import DataError, hide_credentials
from eraser_hub.records.extras import need
from eraser_hub.records.predictions import SEED
from eraser_hub.records.readers import read_json_object
from eraser_hub.records.registry import describe_expected, make_settings, parse_call

from .labels import align_labels
from .loading import hint
from .model import Model

# a folder in a model's while it is trained, and a file there while it is written
CHECKPOINT_DIR, SAVING = ".training", "saving"
FACTS = "model.json"
# kinds of model.json, and the modules that open them; a higher layer's is found by name alone
KINDS = {
    "transformers": "eraser_hub.attribution.models.loading",
    "scikit-learn": "eraser_hub.attribution.models.scikit_learn",
    "network": "eraser_hub.systems.network_systems",
    "pipeline": "eraser_hub.systems.pipeline",
}
PLUGINS = "eraser_hub.models"  # entry points: objects with opens(path, facts) and open(path, facts, settings)
PROMPTING = ("prompt", "label_words", "label_score", "dtype", "device_map")  # settings of prompted models
USER = re.compile(r"[^/@]*:[^/]*@")  # a user name and a password without a scheme before them
Count = Annotated[int, Meta(ge=1, lt=1 << 31)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Settings that a model's string may have: ``models/mine(window=256, labels=[NEG,POS])``.

    Attributes:
        task: of a transformers model; auto: by its architecture.
        labels: names of the model's outputs, in its order, if the model lacks them.
        query: show the query to the model; None: as in training.
        window: longest input of a transformers model or a network, in sub-words or words.
        threads: processor threads; 0 leaves their number to the libraries.
        device: torch device; None: cuda, if available.
        device_map: where a language model's layers go, as transformers' from_pretrained takes it: auto, balanced ..
        precision: of a transformers model; auto: bfloat16 on GPUs that have it.
        dtype: type of a language model's weights, and of its passes.
        prompt: prompt of a language model: a jinja2 file.
        label_words: its answers: ``NEG=negative``, ``POS=positive``.
        label_score: log-probability of its answer: its sub-words' sum or mean, or the first one's.
        trust_pickle: open joblib and pickle files, which run code.
        trust_remote_code: run the code that a transformers model brings.
    """

    task: Literal["auto", "classification", "multiple-choice", "question-answering", "generation"] = "auto"
    labels: tuple[str, ...] = ()
    query: bool | None = None
    window: Annotated[int, Meta(ge=8, lt=1 << 31)] | None = None
    threads: Annotated[int, Meta(ge=0)] = 0
    device: str | None = None
    device_map: str = ""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    prompt: str = ""
    label_words: tuple[str, ...] = ()
    label_score: Literal["sum", "mean", "first"] = "sum"
    trust_pickle: bool = False
    trust_remote_code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening(ModelSettings):
    """Settings of a model, and the dataset's config, which chooses a prompt."""

    config: str = ""


class Facts(TypedDict, total=False):
    """What a model.json may say of how a model is opened."""

    kind: Literal["scikit-learn", "transformers", "network", "pipeline"]
    label_names: list[str]
    window: Count | None
    longest: Count | None
    uses_query: bool | None
    query_last: bool | None
    joiner: str | None


def open_model(
    model: Any,
    *,
    uses_query: bool | None = None,
    label_names: Sequence[str] = (),
    config: str = "",
    **settings: Any,
) -> Model:
    """Open a model.

    Args:
        model: a folder of ``train``, a skops file, a transformers folder or Hub id, each with settings:
            ``models/mine(window=256)``; an object with ``predict_proba`` over token lists, or over strings where it is
            scikit-learn's; a transformers pipeline, or a network and its tokenizer as a pair; a `Model` (returned).
        uses_query: show the query to the model; None: as in its training, else no.
        label_names: the dataset's labels, in whose order the model's are brought by name; () for the model's own.
        config: the dataset's config, which chooses a language model's prompt.
        **settings: of :class:`ModelSettings`; those of the model's string come before them.

    Raises:
        DataError: nothing there, an unknown file or setting, a pickle without ``trust_pickle``, missing packages,
            labels that are not the dataset's, or that nobody names.
    """
    named = isinstance(model, str | os.PathLike)
    name, given = split_model(model) if named else (type(model).__name__, {})
    facts = read_facts(model) if named else {}
    options = asdict(make_model_settings({**settings, **given}, name))
    for query in (uses_query, facts.get("uses_query")):
        options["query"] = query if options["query"] is None else options["query"]
    chosen = Opening(**options, config=config)
    opened = _open_place(name, facts, chosen) if named else _open_object(model, chosen)
    if not opened.prompted:
        for setting in fields(ModelSettings):
            if setting.name in PROMPTING and options[setting.name] != setting.default:
                message = f"expected a language model that is prompted beside it, found {opened.description}"
                raise DataError(message, argument=setting.name)
    if chosen.threads:
        limit_threads(chosen.threads)
    if opened is not model or label_names or chosen.labels:
        align_labels(opened, label_names, chosen.labels)
    return opened


def split_model(model: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """Return a model's path or Hub id, and the settings in its string; of a path that exists there are none.

    >>> split_model("models/mine(labels=[NEG,POS], window=256)")
    ('models/mine', {'labels': ['NEG', 'POS'], 'window': 256})

    Raises:
        DataError: brackets or settings that cannot be read, a user name and a password (which is not repeated).
    """
    text = os.fspath(model)
    if not isinstance(model, str) or os.path.exists(text):  # a file's name may have brackets, too
        return text, {}
    refuse_credentials(text)
    return parse_call(text, "model")


def refuse_credentials(text: str) -> None:
    """Refuse the address of a model with a user name and a password, or a token, and do not repeat it."""
    if USER.match(text) or hide_credentials(text) != text:
        raise DataError("expected a path or a Hub id, found a user name and a password, or a token", argument="model")


def read_model_settings(model: str | os.PathLike[str]) -> ModelSettings:
    """Return the settings in a model's string; errors as of :func:`split_model` and :func:`make_model_settings`."""
    name, given = split_model(model)
    return make_model_settings(given, name)


def make_model_settings(given: Mapping[str, Any], name: str) -> ModelSettings:
    """Return checked settings of a model; one value where a list is expected is a list of one.

    Raises:
        DataError: a setting that models do not have, with the nearest, or a value that it cannot have.
    """
    values = dict(given)
    for key, value in given.items():
        if key in ("labels", "label_words"):
            values[key] = [str(one) for one in (value if isinstance(value, list | tuple) else [value])]
        elif key in ("device", "device_map", "prompt") and value is not None:
            values[key] = str(value)
    return make_settings(ModelSettings, values, name, "model")


def read_facts(model: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what ``model.json`` says, in a model's folder or beside its file; {} where there is none.

    Raises:
        DataError: no JSON object, a fact of another type.
    """
    place = Path(split_model(model)[0])
    path = place.with_name(FACTS) if place.is_file() else place / FACTS
    if not path.is_file():
        return {}
    facts = read_json_object(path)
    try:
        msgspec.convert(facts, Facts)
    except msgspec.ValidationError as error:
        expected, field = describe_expected(error)
        raise DataError(f"{expected}, found {describe_value(facts[field])}", file=path, field=field) from None
    return facts


def find_trainings(model: str | os.PathLike[str]) -> list[tuple[int, str]]:
    """Return seeds and folders of the trainings in a folder that ``train --seeds`` wrote; none for another model.

    Each folder has the settings of the model's string behind it.

    Raises:
        DataError: one of the trainings is not finished.
    """
    name, given = split_model(model)
    folder, settings = Path(name), os.fspath(model)[os.fspath(model).index("(") :] if given else ""
    if not folder.is_dir() or (folder / FACTS).is_file():
        return []
    seeds = [each.name.removeprefix(SEED) for each in folder.glob(f"{SEED}*") if each.is_dir()]
    trainings = [(seed, folder / f"{SEED}{seed}") for seed in sorted(int(seed) for seed in seeds if seed.isdecimal())]
    for _, training in trainings:
        if not (training / FACTS).is_file() or (training / CHECKPOINT_DIR).is_dir():
            message = "expected a finished training, found a stopped one; the same `train` goes on with it"
            raise DataError(message, file=training)
    return [(seed, f"{training}{settings}") for seed, training in trainings]


def is_path_like(name: str) -> bool:
    """Return True if a name cannot be a Hub id (``org/name`` or ``name``)."""
    return name.startswith((".", "/", "~")) or name.count("/") > 1 or name.endswith(("/", ".skops", ".joblib", ".pkl"))


def limit_threads(threads: int) -> None:
    """Use so many processor threads for linear algebra (results can differ in the last digit with their number)."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads)


def _open_place(name: str, facts: Mapping[str, Any], settings: Opening) -> Model:
    """Open a folder, a file or a Hub id; plug-ins are asked first."""
    place = Path(name)
    if (place / CHECKPOINT_DIR / SAVING).exists():
        message = "expected a model, found one whose training was stopped while it was written: train again"
        raise DataError(message, file=place)
    opened: Model
    for point in entry_points(group=PLUGINS):
        plugin = point.load()
        if plugin.opens(place, facts):
            opened = plugin.open(place, facts, settings)
            return opened
    kind = None if place.is_file() else facts.get("kind")
    if kind is None and (place.is_file() or (place / "model.skops").is_file()):
        kind = "scikit-learn"
    elif kind is None and place.is_dir() and not (place / "config.json").is_file():
        message = "expected model.skops (eraser-hub train) or config.json (transformers), found neither"
        raise DataError(message, file=place)
    elif kind is None and not place.is_dir() and is_path_like(name):
        raise DataError(f"no such model file or folder{hint(name)}", file=place)
    elif kind is None and not place.is_dir() and name in importlib.import_module("eraser_hub.systems.system").SYSTEMS:
        message = "expected a model, found the name of a system: `eraser-hub train` makes a model of it"
        raise DataError(message, file=name)
    if kind in (None, "transformers"):
        need("torch", "transformers")
    opened = importlib.import_module(KINDS[kind or "transformers"]).open_folder(place, facts, settings)
    return opened


def _open_object(model: Any, settings: Opening) -> Model:
    """Open an object by what it can do."""
    if isinstance(model, Model):
        return model
    if callable(getattr(model, "predict_proba", None)):
        if callable(getattr(model, "get_params", None)):
            from . import scikit_learn

            if scikit_learn.takes_strings(model):
                pipeline = scikit_learn.wrap_pipeline(model, uses_query=bool(settings.query))
                pipeline.details = f"steps:{','.join(type(step).__name__ for step in pipeline.steps)}"
                return pipeline
        from .objects import ObjectModel

        return ObjectModel(model, uses_query=bool(settings.query))
    pair = model if isinstance(model, tuple) else (getattr(model, "model", None), getattr(model, "tokenizer", None))
    if len(pair) == 2 and hasattr(pair[0], "parameters") and callable(pair[1]):
        from .loading import from_objects

        return from_objects(*pair, settings)
    message = f"expected a model with predict_proba(token lists), found {type(model).__name__}"
    if isinstance(model, tuple):
        message += ": give a pair as the network, then its tokenizer"
    elif callable(getattr(model, "predict", None)):
        message += ", whose classifier gives no probabilities"
    elif hasattr(model, "save_pretrained"):
        message += ": give it with its tokenizer, as a pair"
    elif callable(model):
        message += ": give an object whose predict_proba calls it, with the labels as label_names"
    raise DataError(message, argument="model")
