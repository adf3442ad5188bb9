"""Messages of a question: a prompt's, with examples that were answered."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from eraser_hub.attribution.prompts import Prompt
from eraser_hub.metrics.tokens import split_tokens

from .answers import QUOTED, TOKENS
from .formats import make_gold_answer
from .questions import Question


def make_messages(
    prompt: Prompt,
    question: Question,
    labels: Sequence[str],
    shots: Sequence[Question] = (),
    answer: str = QUOTED,
) -> list[dict[str, str]]:
    """Return the messages that ask a question.

    Args:
        prompt: The prompt.
        question: The question.
        labels: The labels.
        shots: Examples with gold label and gold evidence.
        answer: The format of the answer, one of `answers.FORMATS`.
    """
    messages = [{"role": "system", "content": _render(prompt, "system", question, labels, answer)}]
    for example in shots:
        gold = orjson.dumps(make_gold_answer(example, answer)).decode()
        messages.append({"role": "user", "content": _render(prompt, "user", example, labels, answer)})
        messages.append({"role": "assistant", "content": gold})
    return [*messages, {"role": "user", "content": _render(prompt, "user", question, labels, answer)}]


def _render(prompt: Prompt, part: str, question: Question, labels: Sequence[str], answer: str) -> str:
    pairs = zip(question.instance.names, _show_texts(question, answer), strict=True)
    documents = [{"docid": docid, "text": text} for docid, text in pairs]
    return prompt.render(part, documents, question.query, labels, answer)


def _show_texts(question: Question, answer: str) -> Sequence[str]:
    """Return the texts; if tokens are requested by number, each token after its number."""
    if answer != TOKENS:
        return question.texts
    shown = []
    for text, document in zip(question.texts, question.instance.documents, strict=True):
        whole = text == question.blank.join(document)  # of a changed question there are no tokens without blanks
        tokens = document if whole else split_tokens(text) if question.blank else list(text)
        shown.append(" ".join(f"[{number}]{token}" for number, token in enumerate(tokens)))
    return shown
