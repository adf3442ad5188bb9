"""Which adapter a model gets: told by the object, or by the files that lie there."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.extras import need

from .adapter import Adapter
from .models.plain_model import PlainModel, ProbabilityModel
from .models.sklearn_model import PipelineModel, load_pipeline, wants_strings
from .models.subwords import subwords_of
from .transformers.architectures import open_transformer

UNFINISHED, SAVING = (
    ".training",
    "saving",
)  # folder in a model's while it is trained, and a file there while it is written
TOKENIZER = "tokenizer"  # folder in a model's of `train`, where it counts sub-words
TASKS = ("auto", "classification", "multiple-choice", "question-answering")


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

    Raises:
        DataError: an unknown task, nothing there, an unknown file, a pickle without ``trust_pickle``, missing packages.
    """
    if task not in TASKS:
        raise DataError(f"expected one of {', '.join(TASKS)}; found {shown(task)}", rule="option-value", field="task")
    if isinstance(model, Adapter):
        return model
    if not isinstance(model, (str, Path)):
        kind = PipelineModel if wants_strings(model) else PlainModel
        return kind(model, uses_query=bool(uses_query))
    how: dict[str, Any] = {"device": device, "precision": precision, "trust_remote_code": trust_remote_code}
    path = Path(model)
    facts = training_facts(path)
    if uses_query is None:
        uses_query = facts.get("uses_query")
    if (path / UNFINISHED / SAVING).exists():
        words = "expected a model, found one whose training was stopped while it was written: train again"
        raise DataError(words, rule="model", file=path)
    if "network" in facts:
        return _open_system(path, facts, uses_query, window=window, **how)
    pipeline = _pipeline_file(path)
    if pipeline is not None:
        need("sklearn", "skops")
        joiner = facts.get("joiner", " ")
        longest = facts.get("longest")
        subwords = None if longest is None else subwords_of(pipeline.parent / TOKENIZER, longest)
        opened = load_pipeline(pipeline, trust_pickle)
        return PipelineModel(opened, uses_query=bool(uses_query), joiner=joiner, subwords=subwords)
    if path.is_dir() and not (path / "config.json").is_file():
        words = "expected model.skops (eraser-hub train) or config.json (transformers), found neither"
        raise DataError(words, rule="file-missing", file=path)
    if not path.is_dir() and looks_like_a_path(str(model)):
        raise DataError("no such model file or folder", rule="file-missing", file=path)
    need("torch", "transformers")
    # a model of `train` reads as much at a time as it did in training
    window = facts.get("window") if window is None else window
    how |= {"window": window, "query_last": bool(facts.get("query_last"))}
    return open_transformer(str(model), task=task, uses_query=bool(uses_query), **how)


def _open_system(path: Path, facts: dict[str, Any], uses_query: bool | None, **how: Any) -> Adapter:
    """One of the papers' systems; of a pipeline each stage is a model's folder.

    Args:
        how: ``window``, ``device``, ``precision`` and ``trust_remote_code`` of :func:`open_model`.
    """
    need("torch", "transformers")
    if "stages" in facts:
        pipelines = import_module("eraser_hub.systems.pipelines.files")
        stages = {str(name): open_model(path / str(name), **how) for name in facts["stages"]}
        pipeline: Adapter = pipelines.pipeline_of(path, stages, uses_query=uses_query)
        return pipeline
    opened: Adapter = import_module("eraser_hub.systems.networks.files").open_network(
        path, uses_query=uses_query, **how
    )
    return opened


def _pipeline_file(model: Path) -> Path | None:
    """The file of a scikit-learn pipeline; None for a transformers model."""
    path = model / "model.skops" if (model / "model.skops").is_file() else model
    return path if path.is_file() else None


def has_embeddings(model: str | Path) -> bool:
    """Whether what lies there embeds its tokens, told without opening it."""
    return _pipeline_file(Path(model)) is None


def selects(model: str | Path) -> bool:
    """Whether what lies there comes with hard rationales of its own, told without opening it."""
    network = training_facts(Path(model)).get("network")
    systems = import_module("eraser_hub.systems.networks.systems").SYSTEMS
    return isinstance(network, str) and network in systems and bool(systems[network].selects)


def training_facts(model: Path) -> dict[str, Any]:
    """What ``train`` wrote beside a model; nothing where another wrote it."""
    path = model / "model.json" if model.is_dir() else model.with_name("model.json")
    if not path.is_file():
        return {}
    try:
        facts: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return facts
    except ValueError as error:
        raise DataError(f"not JSON: {error}", rule="syntax", file=path) from error


def looks_like_a_path(name: str) -> bool:
    """True for what cannot be a Hub id (``org/name`` or ``name``)."""
    return name.startswith((".", "/", "~")) or name.count("/") > 1 or name.endswith(("/", ".skops", ".joblib", ".pkl"))
