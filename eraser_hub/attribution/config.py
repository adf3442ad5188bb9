"""Configuration of a run: the model, the data, and the arguments of the command."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from eraser_hub.records.arguments import Config, DatasetPlace, Force, Resume, Split
from eraser_hub.records.options import AtLeastOne, NotNegative, Option, Options

if TYPE_CHECKING:
    from .instances import Instance

Task = Literal["auto", "classification", "multiple-choice", "question-answering", "generation"]
Engine = Literal["local", "ray"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]
WeightType = Literal["float32", "bfloat16", "float16"]
LabelScore = Literal["sum", "mean", "first"]


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
        config: config; None: the dataset's default config.
        model: model folder of `eraser-hub train`, .skops file, or transformers id.

    Model:
        task: Task of a transformers model; auto: by its architecture.
        labels: Label names of the model's outputs, if the model lacks them: NEG,POS.
        query: Show the query to the model; by default as in training, else if queries differ.
        window: Longest input of a transformers model, in sub-words.
        device: Torch device; by default cuda, if available.
        precision: Precision of a transformers model; auto: bfloat16 on GPUs that have it.
        threads: Processor threads of a model; 0 leaves it to torch.
        trust_pickle: Open joblib and pickle files, which run code.
        trust_remote_code: Run the code that a transformers model brings.
        prompt: Prompt of a language model: a jinja2 file.
        label_words: Its answers: NEG=negative,POS=positive.
        label_score: log-probability of a language model's answer: its sub-words' sum or mean, or the first one's.
        dtype: type of a language model's weights, and of its passes: float32, bfloat16 or float16.
        device_map: where a language model's layers go, as transformers' from_pretrained takes it: auto, balanced ..
        shots: examples before a language model's question: the first rows of train, the labels in turn.

    Data:
        limit: Number of instances to explain, from the first.
        sample: Number of instances to draw, each label by its share.
        sample_seed: by which a sample is drawn, in place of the settings': draws of chance explain the same texts.

    Rationales:
        scores: In place of a method: a results file whose soft rationales are the scores.
        rationales: In place of a method: human, model (of a model that selects), or a results file.
    """

    dataset: DatasetPlace
    config: str | None
    split: Split
    model: str
    task: Task = "auto"
    trust_pickle: bool = False
    trust_remote_code: bool = False
    labels: Annotated[tuple[str, ...], Option(commas=True)] = ()
    query: bool | None = None
    window: Annotated[int | None, Option(min=8)] = None
    device: str | None = None
    precision: Precision = "auto"
    prompt: Path | None = None
    label_words: Annotated[tuple[str, ...], Option(commas=True)] = ()
    label_score: Annotated[LabelScore, Option(settable=True)] = "sum"
    dtype: Annotated[WeightType, Option(settable=True)] = "float32"
    device_map: Annotated[str, Option(settable=True)] = ""
    shots: Annotated[int, Option(min=0, settable=True)] = 0
    limit: AtLeastOne | None = None
    sample: AtLeastOne | None = None
    sample_seed: Annotated[int | None, Option(python_only=True)] = None
    threads: NotNegative = 0
    scores: Path | None = None
    rationales: str = ""

    @property
    def prompting(self) -> Prompting:
        """The way a language model is asked for a label."""
        named = {one.name: getattr(self, one.name) for one in fields(Prompting) if one.name != "examples"}
        return Prompting(**{**named, "config": self.config or ""})


@dataclass(frozen=True, kw_only=True)
class ExplainArguments(Options):
    """Arguments of a run beside its :class:`ExplainConfig` and its :class:`settings.ExplainSettings`.

    Attributes:
        model: Folder of `eraser-hub train` (of several seeds: OUT.seed-1.jsonl ..), .skops file, or transformers id.
        out: Predictions: a file ending in .jsonl or .parquet.
        method: Attribution methods, comma-separated, by default occlusion; several write OUT.METHOD.jsonl each.
        measure: Measures, comma-separated, or beginnings of their names: soft,infidelity.
        more: Setting of a method or measure, NAME=VALUE; repeat it for several.

    Run:
        draws: Number of draws of `method` random; several write OUT.draw-01.jsonl and so on.
        max_inputs: Refuse a run that may need more model inputs than this.
        engine: Where the work runs.
        workers: Workers of `engine` ray, each with a model.
    """

    dataset: DatasetPlace
    model: str
    out: Path
    config: Config = None
    split: Split = "test"
    method: Annotated[tuple[str, ...], Option(commas=True)] = ()
    measure: Annotated[tuple[str, ...], Option(commas=True)] = ()
    draws: AtLeastOne = 1
    more: Annotated[tuple[str, ...], Option(name="set")] = ()
    max_inputs: AtLeastOne | None = None
    engine: Engine = "local"
    workers: AtLeastOne = 2
    resume: Resume = False
    force: Force = False
