"""Which adapter a ``transformers`` model gets: its architecture says what it computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eraser_hub.records.errors import DataError

from .multiple_choice import ChoiceModel
from .question_answering import AnswerModel
from .sequence_model import SequenceModel
from .words import load_tokenizer, not_opened, silence

# the end of an architecture's name -> what it computes
TASKS = {
    "ForSequenceClassification": "classification",
    "ForMultipleChoice": "multiple-choice",
    "ForQuestionAnswering": "question-answering",
}


def open_transformer(
    name: str,
    *,
    task: str = "auto",
    uses_query: bool = False,
    window: int | None = None,
    device: str | None = None,
    precision: str = "auto",
    trust_remote_code: bool = False,
    query_last: bool = False,
) -> SequenceModel:
    """Open a local folder or Hub id as the adapter that its architecture asks for.

    Args:
        name, task, window, device, precision, trust_remote_code: as for :func:`eraser_hub.attribution.open_model`.
        query_last: a classifier reads it behind the text, as it was trained.
        uses_query: show the query to a classifier; the other tasks have the query as a part of their input.

    Raises:
        DataError: cannot be opened, or an architecture that classifies nothing.
    """
    import transformers

    silence()
    try:
        config = transformers.AutoConfig.from_pretrained(name, trust_remote_code=trust_remote_code)
        tokenizer = load_tokenizer(name, trust_remote_code)
        architecture = (config.architectures or ["an encoder without a task"])[0]
        if task == "auto":
            task = next((task for ending, task in TASKS.items() if architecture.endswith(ending)), "")
        if not task:
            raise DataError(
                f"expected a model for sequence classification, multiple choice or question answering, found "
                f"{architecture}; fine-tune it first (eraser-hub train --model {name})",
                rule="model",
            )
        ending = next(ending for ending, name_of_task in TASKS.items() if name_of_task == task)
        network = getattr(transformers, f"AutoModel{ending}").from_pretrained(name, trust_remote_code=trust_remote_code)
    except DataError:
        raise
    except Exception as error:  # transformers raises many kinds; its first line names what is missing
        raise not_opened(error, name) from error
    more: dict[str, Any] = {
        "window": window,
        "device": device,
        "precision": precision,
        "description": f"{architecture} {Path(name).name}",
    }
    if task == "multiple-choice":
        return ChoiceModel(network, tokenizer, **more)
    if task == "question-answering":
        return AnswerModel(network, tokenizer, **more)
    return SequenceModel(network, tokenizer, uses_query=uses_query, query_last=query_last, **more)
