"""A pipeline's folder: ``config.json`` with every hyper-parameter, and a folder for each stage, a model of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from eraser_hub.attribution.adapter import Adapter
from eraser_hub.records.errors import DataError, shown

from .pipeline import RationalePipeline
from .selectors import AttentionSelector, Selector, SentenceSelector


def pipeline_of(folder: Path, stages: Mapping[str, Adapter], uses_query: bool | None) -> RationalePipeline:
    """A pipeline of opened stages, as the folder's ``config.json`` says.

    Args:
        uses_query: None: as it was trained.

    Raises:
        DataError: a ``config.json`` that is missing or damaged, or of other stages.
    """
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text("utf-8"))
        hyper = config["hyper"]
        selector: Selector
        if "identifier" in stages:
            selector = SentenceSelector(stages["identifier"], hyper["sentences"])
        else:
            selector = AttentionSelector(stages["explainer"], hyper["share"], hyper["extractor"])
        asks = config["uses_query"] if uses_query is None else uses_query
        return RationalePipeline(
            selector, stages["classifier"], uses_query=asks, description=f"{config['system']} {folder.name}"
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        words = f"expected a pipeline's config.json, found {shown(str(error))}"
        raise DataError(words, rule="model", file=path) from error
