"""What is explained by what."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from .method import Range

Task = Literal["auto", "classification", "multiple-choice", "question-answering"]
Engine = Literal["local", "ray"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]


@dataclass(frozen=True, slots=True)
class Job:
    """What is explained by what.

    Attributes:
        dataset: dataset folder (hub/eraser), Hub id or hf:// path.
        config: config; None: the dataset's default config.
        split: test, validation (or val), train, or a split of the dataset's own.
        model: model folder of `eraser-hub train`, .skops file, or transformers id.
        task: transformers: what the model computes; auto: by its architecture.
        trust_pickle: open joblib and pickle files, which run code.
        trust_remote_code: transformers: run the code that a model brings along.
        labels: the dataset's name of each of the model's outputs, where the model does not say them: 'NEG,POS'.
        query: show the query to the model; by default as it was trained, and for a transformers model without such a
            record when the queries of the split differ.
        window: transformers: longest input in sub-words.
        device: torch device; by default cuda where there is one.
        precision: transformers: of forward passes; auto: bfloat16 on a GPU that has it.
        limit: explain the first so many instances.
        sample: explain so many instances, drawn by seed with each label's share.
        sample_seed: by which a sample is drawn, in place of the settings': draws of chance explain the same texts.
        threads: processor threads of a model (0: as torch sees fit).
        scores: in place of a method: token scores from elsewhere, the soft rationales of a results file.
        aopc_bounds_from: bounds of AOPC that another run of the same model and data found (a results file): they do not
            depend on the method.
        rationales: in place of a method: human, model (its own, the default of a model that selects), or a results
            file's hard ones.
        infill: the masked language model that draws words for erased tokens where they are infilled, a folder or Hub
            id.
        distribution_split: the split that the model was trained on, whose texts its states are fitted on.
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
    window: Annotated[int | None, Range(8)] = None
    device: str | None = None
    precision: Precision = "auto"
    limit: Annotated[int | None, Range(1)] = None
    sample: Annotated[int | None, Range(1)] = None
    sample_seed: int | None = None
    threads: Annotated[int, Range(0)] = 0
    scores: Path | None = None
    aopc_bounds_from: Path | None = None
    rationales: str = ""
    infill: str = ""
    distribution_split: str = "train"
