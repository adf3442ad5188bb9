"""The model and the data of a run."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from eraser_hub.records.errors import DataError, describe_choice, show
from eraser_hub.records.registry import parse_call

if TYPE_CHECKING:
    from .instances import Instance

Task = Literal["auto", "classification", "multiple-choice", "question-answering", "generation"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]
WeightType = Literal["float32", "bfloat16", "float16"]
LabelScore = Literal["sum", "mean", "first"]
# settings of a model's string, by what they hold
CHOICES = {"task": get_args(Task), "precision": get_args(Precision), "dtype": get_args(WeightType)}
CHOICES["label_score"] = get_args(LabelScore)
LEAST = {"window": 8, "threads": 0, "shots": 0}
FLAGS = ("query", "trust_pickle", "trust_remote_code")
LISTS = ("labels", "label_words")
TEXTS = ("device", "device_map", "prompt")


@dataclass(frozen=True, slots=True)
class Prompting:
    """The way a language model is asked for a label; values as of the same names in :class:`ExplainConfig`.

    Attributes:
        config: the dataset's config, which chooses the prompt.
        examples: instances with a label that examples are taken from, one more than ``shots``: an instance is none of
            its own.
    """

    config: str = ""
    prompt: Path | None = None
    label_words: tuple[str, ...] = ()
    label_score: LabelScore = "sum"
    dtype: WeightType = "float32"
    device_map: str = ""
    shots: int = 0
    examples: tuple[Instance, ...] = ()

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options that are not at their defaults."""
        own = [one for one in fields(self) if one.name != "config"]
        return tuple(one.name for one in own if getattr(self, one.name) != one.default)


@dataclass(frozen=True, slots=True)
class ExplainConfig:
    """The model and the data of a run.

    Attributes:
        dataset: built dataset: a folder, a Hub id or hf:// path.
        config: None: the dataset's default config.
        split: the split to explain.
        model: model folder of `eraser-hub train`, .skops file, or transformers id.
        task: of a transformers model; auto: by its architecture.
        trust_pickle: open joblib and pickle files, which run code.
        trust_remote_code: run the code that a transformers model brings.
        labels: label names of the model's outputs, if the model lacks them.
        query: show the query to the model; None: as in training, else if queries differ.
        window: longest input of a transformers model, in sub-words.
        device: torch device; None: cuda, if available.
        precision: of a transformers model; auto: bfloat16 on GPUs that have it.
        prompt: prompt of a language model: a jinja2 file.
        label_words: its answers: NEG=negative, POS=positive.
        label_score: log-probability of a language model's answer: its sub-words' sum or mean, or the first one's.
        dtype: type of a language model's weights, and of its passes.
        device_map: where a language model's layers go, as transformers' from_pretrained takes it: auto, balanced ..
        shots: examples before a language model's question: the first rows of train, the labels in turn.
        limit: number of instances to explain, from the first.
        sample: number of instances to draw, each label by its share.
        sample_seed: by which a sample is drawn, in place of the settings': draws of chance explain the same texts.
        threads: processor threads of a model; 0 leaves it to torch.
        scores: in place of a method: a results file whose soft rationales are the scores.
        rationales: in place of a method: human, model (of a model that selects), or a results file.
    """

    dataset: str
    config: str | None
    split: str
    model: str
    task: Task = "auto"
    trust_pickle: bool = False
    trust_remote_code: bool = False
    labels: tuple[str, ...] = ()
    query: bool | None = None
    window: int | None = None
    device: str | None = None
    precision: Precision = "auto"
    prompt: Path | None = None
    label_words: tuple[str, ...] = ()
    label_score: LabelScore = "sum"
    dtype: WeightType = "float32"
    device_map: str = ""
    shots: int = 0
    limit: int | None = None
    sample: int | None = None
    sample_seed: int | None = None
    threads: int = 0
    scores: Path | None = None
    rationales: str = ""

    @property
    def prompting(self) -> Prompting:
        """The way a language model is asked for a label."""
        named = {one.name: getattr(self, one.name) for one in fields(Prompting) if one.name != "examples"}
        return Prompting(**{**named, "config": self.config or ""})


def parse_model(model: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """Return a model's place or id, and its settings: fields of :class:`ExplainConfig`.

    >>> parse_model("models/mine(labels=[NEG,POS], window=256)")
    ('models/mine', {'labels': ('NEG', 'POS'), 'window': 256})

    Raises:
        DataError: a setting that models do not have, with the nearest, or a value that it cannot have.
    """
    text = os.fspath(model)
    if not isinstance(model, str) or os.path.exists(text):  # a file's name may have brackets, too
        return text, {}
    place, given = parse_call(text, "model")
    settings: dict[str, Any] = {}
    for name, value in given.items():
        if name in CHOICES:
            fault = "" if value in CHOICES[name] else f"one of {', '.join(CHOICES[name])}"
        elif name in LEAST:
            fault = "" if type(value) is int and value >= LEAST[name] else f"a whole number, at least {LEAST[name]}"
        elif name in FLAGS:
            fault = "" if isinstance(value, bool) else "True or False"
        elif name in LISTS:
            value, fault = tuple(map(str, value if isinstance(value, list) else [value])), ""
        elif name in TEXTS:
            value, fault = Path(str(value)) if name == "prompt" else str(value), ""
        else:
            known = [*CHOICES, *LEAST, *FLAGS, *LISTS, *TEXTS]
            raise DataError(f"{place}: {describe_choice(name, known)}", argument="model")
        if fault:
            raise DataError(f"{place}, {name}: expected {fault}, found {show(value)}", argument="model")
        settings[name] = value
    return place, settings
