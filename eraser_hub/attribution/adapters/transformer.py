"""Networks of transformers: a folder, or a Hub id."""

from __future__ import annotations

from typing import Any

from eraser_hub.records.errors import DataError
from eraser_hub.records.extras import need
from eraser_hub.schema.label_tasks import CLASSIFICATION, MULTI_LABEL, REGRESSION

from ..adapter import Adapter
from ..open import Opener, Opening, is_path_like
from ..transformers.label_heads import MultiLabelModel, RegressionModel
from ..transformers.multiple_choice import ChoiceModel
from ..transformers.prompted import PromptedModel
from ..transformers.question_answering import AnswerModel
from ..transformers.sequence_model import SequenceModel
from ..transformers.words import find_gguf, make_loading, make_open_error, open_network

# the end of an architecture's name -> what it computes, and its adapter
TASKS: dict[str, tuple[str, type[SequenceModel]]] = {
    "ForSequenceClassification": ("classification", SequenceModel),
    "ForMultipleChoice": ("multiple-choice", ChoiceModel),
    "ForQuestionAnswering": ("question-answering", AnswerModel),
    "ForCausalLM": ("generation", PromptedModel),
    "ForConditionalGeneration": ("generation", PromptedModel),
}
# the ends of architectures of another name -> as above
OTHER_NAMES = {"LMHeadModel": "ForCausalLM", "ForSeq2SeqLM": "ForConditionalGeneration"}
CLASSES = {"ForConditionalGeneration": "AutoModelForSeq2SeqLM"}


HEADS: dict[str, type[SequenceModel]] = {
    CLASSIFICATION: SequenceModel,
    MULTI_LABEL: MultiLabelModel,
    REGRESSION: RegressionModel,
}


def find_head(config: Any) -> str:
    """Return what the outputs of a sequence classifier are, by its config.json.

    ``problem_type`` says it; a head of one output without it is a regression, as in transformers.
    """
    known = {"multi_label_classification": MULTI_LABEL, "regression": REGRESSION}
    task = known.get(getattr(config, "problem_type", None) or "", CLASSIFICATION)
    return REGRESSION if task == CLASSIFICATION and config.num_labels == 1 else task


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
        if path is not None and path.is_dir() and not (path / "config.json").is_file() and find_gguf(name) is None:
            message = "expected model.skops (eraser-hub train), config.json (transformers) or a GGUF file, found none"
            raise DataError(message, rule="file-missing", file=path)
        if path is not None and not path.is_dir() and is_path_like(name) and find_gguf(name) is None:
            raise DataError("no such model file or folder", rule="file-missing", file=path)
        need("torch", "transformers")
        wanted: str = CLASSIFICATION if opening.task in HEADS else opening.task
        endings = [ending for ending, (task, _) in TASKS.items() if wanted in ("auto", task)]

        def find_class(architecture: str) -> str:
            own = next((new for old, new in OTHER_NAMES.items() if architecture.endswith(old)), architecture)
            ending = next((one for one in endings if own.endswith(one)), "")
            if not ending and opening.task not in ("auto", "generation"):
                ending = endings[0]
            if not ending:
                raise DataError(
                    "expected a model for sequence classification, multiple choice, question answering or generation, "
                    f"found {architecture}; fine-tune it first (eraser-hub train --model {name})",
                    rule="model",
                )
            return CLASSES.get(ending, f"AutoModel{ending}")

        asked = opening.prompting
        loading = make_loading(asked.dtype, asked.device_map, opening.device)
        network, tokenizer, description = open_network(name, opening.trust_remote_code, find_class, loading)
        class_name = find_class(description.split()[0])
        _, adapter = TASKS.get(class_name.removeprefix("AutoModel"), ("", PromptedModel))
        more: dict[str, Any] = {"prompting": opening.prompting} if adapter is PromptedModel else {}
        if adapter is SequenceModel:
            adapter = HEADS[opening.task if opening.task in HEADS else find_head(network.config)]
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
