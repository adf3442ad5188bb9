"""Networks of transformers: a folder, or a Hub id."""

from __future__ import annotations

from typing import Any

from eraser_hub.records.errors import DataError
from eraser_hub.records.extras import need

from ..adapter import Adapter
from ..open import Opener, Opening, is_path_like
from ..transformers.multiple_choice import ChoiceModel
from ..transformers.prompted import PromptedModel
from ..transformers.question_answering import AnswerModel
from ..transformers.sequence_model import SequenceModel
from ..transformers.words import GENERATOR, GENERATOR_ENDINGS, make_loading, make_open_error, open_network

# what a model computes, the class of transformers that opens it, its adapter, and the ends of its architecture's name
TASKS: tuple[tuple[str, str, type[SequenceModel], tuple[str, ...]], ...] = (
    ("classification", "AutoModelForSequenceClassification", SequenceModel, ("ForSequenceClassification",)),
    ("multiple-choice", "AutoModelForMultipleChoice", ChoiceModel, ("ForMultipleChoice",)),
    ("question-answering", "AutoModelForQuestionAnswering", AnswerModel, ("ForQuestionAnswering",)),
    ("generation", GENERATOR, PromptedModel, GENERATOR_ENDINGS),
)


def check_head(config: Any, description: str) -> None:
    """Refuse a sequence classifier whose outputs are not the probabilities of classes that exclude each other."""
    kind = getattr(config, "problem_type", None)
    if kind not in (None, "single_label_classification") or config.num_labels == 1:
        message = f"{description}: expected a classifier with one label per text, found {kind or 'one output'}"
        raise DataError(message)


class TransformerOpener(Opener):
    """A network of transformers for classification, multiple choice, question answering, or generation by a prompt."""

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
            raise DataError(message, file=path)
        if path is not None and not path.is_dir() and is_path_like(name):
            raise DataError("no such model file or folder", file=path)
        need("torch", "transformers")
        able = [one for one in TASKS if opening.task in ("auto", one[0])]

        def find_class(architecture: str) -> str:
            fitting = [class_name for _, class_name, _, endings in able if architecture.endswith(endings)]
            if not fitting and opening.task in ("auto", "generation"):
                raise DataError(
                    "expected a model for sequence classification, multiple choice, question answering or generation, "
                    f"found {architecture}; fine-tune it first (eraser-hub train --model {name})",
                )
            return fitting[0] if fitting else able[0][1]

        asked = opening.prompting
        loading = make_loading(asked.dtype, asked.device_map, opening.device)
        network, tokenizer, description = open_network(name, opening.trust_remote_code, find_class, loading)
        class_name = find_class(description.split()[0])
        adapter = next(adapter for _, name, adapter, _ in TASKS if name == class_name)
        more: dict[str, Any] = {"prompting": opening.prompting} if adapter is PromptedModel else {}
        if adapter is SequenceModel:
            check_head(network.config, description)
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
                **more,
            )
        except DataError:
            raise
        except Exception as error:  # a tokenizer raises what it likes
            raise make_open_error(error, name) from error
