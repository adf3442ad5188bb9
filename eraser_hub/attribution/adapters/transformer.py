"""Networks of transformers: a folder, or a Hub id."""

from __future__ import annotations

from eraser_hub.records.errors import DataError
from eraser_hub.records.extras import need

from ..adapter import Adapter
from ..open import Opener, Opening, is_path_like
from ..transformers.multiple_choice import ChoiceModel
from ..transformers.question_answering import AnswerModel
from ..transformers.sequence_model import SequenceModel
from ..transformers.words import make_open_error, open_network

# the end of an architecture's name -> what it computes, and its adapter
TASKS: dict[str, tuple[str, type[SequenceModel]]] = {
    "ForSequenceClassification": ("classification", SequenceModel),
    "ForMultipleChoice": ("multiple-choice", ChoiceModel),
    "ForQuestionAnswering": ("question-answering", AnswerModel),
}


class TransformerOpener(Opener):
    """A network of transformers for classification, multiple choice or question answering."""

    last = True

    @classmethod
    def opens(cls, opening: Opening) -> bool:
        """Return True if the model is of this kind."""
        return opening.path is not None

    @classmethod
    def open(cls, opening: Opening) -> Adapter:
        """Return the model behind the one interface."""
        path, facts, name = opening.path, opening.facts, str(opening.model)
        if path is not None and path.is_dir() and not (path / "config.json").is_file():
            message = "expected model.skops (eraser-hub train) or config.json (transformers), found neither"
            raise DataError(message, rule="file-missing", file=path)
        if path is not None and not path.is_dir() and is_path_like(name):
            raise DataError("no such model file or folder", rule="file-missing", file=path)
        need("torch", "transformers")
        endings = [ending for ending, (task, _) in TASKS.items() if opening.task in ("auto", task)]

        def find_class(architecture: str) -> str:
            ending = next((one for one in endings if opening.task != "auto" or architecture.endswith(one)), "")
            if not ending:
                raise DataError(
                    f"expected a model for sequence classification, multiple choice or question answering, found "
                    f"{architecture}; fine-tune it first (eraser-hub train --model {name})",
                    rule="model",
                )
            return f"AutoModel{ending}"

        network, tokenizer, description = open_network(name, opening.trust_remote_code, find_class)
        _, adapter = TASKS[find_class(description.split()[0]).removeprefix("AutoModel")]
        try:
            return adapter(
                network,
                tokenizer,
                uses_query=bool(opening.uses_query),
                query_last=bool(facts.get("query_last")),
                # a model of `train` reads as much at a time as it did in training
                window=facts.get("window") if opening.window is None else opening.window,
                device=opening.device,
                precision=opening.precision,
                description=description,
            )
        except DataError:
            raise
        except Exception as error:  # a tokenizer raises what it likes
            raise make_open_error(error, name) from error
