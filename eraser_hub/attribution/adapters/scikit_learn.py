"""Pipelines of scikit-learn: an object, or a skops, joblib or pickle file."""

from __future__ import annotations

from pathlib import Path

from eraser_hub.records.extras import need

from ..adapter import Adapter
from ..models.sklearn_model import PipelineModel, load_pipeline, wants_strings
from ..models.subwords import subwords_of
from ..open import TOKENIZER, Opener, Opening


class PipelineOpener(Opener):
    """A fitted pipeline over strings."""

    @classmethod
    def opens(cls, opening: Opening) -> bool:
        if opening.path is None:
            return wants_strings(opening.model)
        return "network" not in opening.facts and _file(opening.path).is_file()

    @classmethod
    def open(cls, opening: Opening) -> Adapter:
        asks, facts = bool(opening.uses_query), opening.facts
        if opening.path is None:
            return PipelineModel(opening.model, uses_query=asks)
        need("sklearn", "skops")
        file, longest = _file(opening.path), facts.get("longest")
        subwords = None if longest is None else subwords_of(file.parent / TOKENIZER, longest)
        pipeline = load_pipeline(file, opening.trust_pickle)
        return PipelineModel(pipeline, uses_query=asks, joiner=facts.get("joiner", " "), subwords=subwords)

    @classmethod
    def embeds(cls, opening: Opening) -> bool:
        return False


def _file(model: Path) -> Path:
    """Return the file of a pipeline."""
    return model / "model.skops" if (model / "model.skops").is_file() else model
