"""Networks of transformers: a folder, or a Hub id."""

from __future__ import annotations

from eraser_hub.records.errors import DataError
from eraser_hub.records.extras import need

from ..adapter import Adapter
from ..open import Opener, Opening, looks_like_a_path
from ..transformers.architectures import open_transformer


class TransformerOpener(Opener):
    """A network of transformers for classification, multiple choice or question answering."""

    last = True

    @classmethod
    def opens(cls, opening: Opening) -> bool:
        return opening.path is not None

    @classmethod
    def open(cls, opening: Opening) -> Adapter:
        path, facts, name = opening.path, opening.facts, str(opening.model)
        if path is not None and path.is_dir() and not (path / "config.json").is_file():
            words = "expected model.skops (eraser-hub train) or config.json (transformers), found neither"
            raise DataError(words, rule="file-missing", file=path)
        if path is not None and not path.is_dir() and looks_like_a_path(name):
            raise DataError("no such model file or folder", rule="file-missing", file=path)
        need("torch", "transformers")
        return open_transformer(
            name,
            task=opening.task,
            uses_query=bool(opening.uses_query),
            # a model of `train` reads as much at a time as it did in training
            window=facts.get("window") if opening.window is None else opening.window,
            device=opening.device,
            precision=opening.precision,
            trust_remote_code=opening.trust_remote_code,
            query_last=bool(facts.get("query_last")),
        )
