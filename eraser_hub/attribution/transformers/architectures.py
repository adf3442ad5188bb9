"""Which adapter a ``transformers`` model gets: its architecture says what it computes."""

from __future__ import annotations

from typing import Any

from eraser_hub.records.errors import DataError

from .multiple_choice import ChoiceModel
from .question_answering import AnswerModel
from .sequence_model import SequenceModel
from .words import open_network

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
    query_last: bool = False,
    trust_remote_code: bool = False,
    **how: Any,
) -> SequenceModel:
    """Open a local folder or Hub id as the adapter that its architecture asks for.

    Args:
        name, task, trust_remote_code: as for :func:`eraser_hub.attribution.open_model`.
        uses_query: show the query to a classifier; the other tasks have the query as a part of their input.
        query_last: a classifier reads it behind the text, as it was trained.
        how: window, device and precision, as for :func:`eraser_hub.attribution.open_model`.

    Raises:
        DataError: cannot be opened, or an architecture that classifies nothing.
    """
    asked = next((ending for ending, computes in TASKS.items() if computes == task), "")

    def class_of(architecture: str) -> str:
        ending = asked or next((ending for ending in TASKS if architecture.endswith(ending)), "")
        if not ending:
            raise DataError(
                f"expected a model for sequence classification, multiple choice or question answering, found "
                f"{architecture}; fine-tune it first (eraser-hub train --model {name})",
                rule="model",
            )
        return f"AutoModel{ending}"

    network, tokenizer, description = open_network(name, trust_remote_code, class_of)
    how |= {"description": description}
    task = task if asked else next(task for ending, task in TASKS.items() if description.split()[0].endswith(ending))
    if task == "multiple-choice":
        return ChoiceModel(network, tokenizer, **how)
    if task == "question-answering":
        return AnswerModel(network, tokenizer, **how)
    return SequenceModel(network, tokenizer, uses_query=uses_query, query_last=query_last, **how)
