"""Systems that are trained on planted texts, and what they have learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from eraser_hub.attribution import Instance, explain_instances, open_model
from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.settings import build_settings
from eraser_hub.systems.data import Data, Training
from eraser_hub.systems.pipelines.pipeline import find_sentence_bounds
from eraser_hub.systems.system import SYSTEMS
from eraser_hub.systems.train_config import TrainConfig

LABELS = ("NEG", "POS")


def planted_data(planted: Callable[..., Any], sizes: Sequence[int], query: bool = False) -> Data:
    """So many planted texts of training and of validation."""
    train, validation = (planted(split, size, query) for split, size in zip(("train", "val"), sizes, strict=True))
    return Data(train, validation, LABELS, query)


def train_planted(folder: Path, model: str, data: Data, **options: Any) -> tuple[Any, list[str]]:
    """Train a system into the folder's ``m``, its work beside it; return the opened model and what was said."""
    said: list[str] = []
    recipe = TrainConfig(dataset="planted", config=None, split="train", eval_split=None, model=model, **options)
    (folder / "work").mkdir(parents=True, exist_ok=True)
    SYSTEMS[model]().fit(Training(recipe, data, folder / "m", folder / "work", said.append))
    opened = open_model(folder / "m", device="cpu")
    align_labels(opened, LABELS)
    return opened, said


def explained(model: Any, instances: Sequence[Instance], **options: Any) -> list[dict[str, Any]]:
    """Predictions with the rationales of a method, or the model's own."""
    settings = build_settings("", "", model.has_embeddings, model.selects, **options)
    return list(explain_instances(model, instances, settings.for_kind("eraser")))


def measure_learning(instances: Sequence[Instance], predictions: Sequence[Any], sentences: bool) -> tuple[float, float]:
    """Accuracy, and micro F1 of the rationales' tokens against the marked ones, or those of their sentences."""
    right = hits = marked = 0
    for one, prediction in zip(instances, predictions, strict=True):
        spans = prediction["rationales"][0]["hard_rationale_predictions"]
        tokens = {place for span in spans for place in range(span["start_token"], span["end_token"])}
        flags = one.rationale[0]  # type: ignore[index]
        truth = {place for place, flag in enumerate(flags) if flag}
        if sentences:
            bounds = [range(*ends) for ends in find_sentence_bounds(one)]
            truth = {place for places in bounds if truth & {*places} for place in places}
        right += one.label == prediction["classification"]
        hits, marked = hits + len(tokens & truth), marked + len(tokens) + len(truth)
    return right / len(instances), 2 * hits / marked
