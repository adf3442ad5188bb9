"""Messages of a question: a prompt's, with examples that were answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from eraser_hub.attribution.prompts import QUOTES, Prompt

from .questions import Question


def make_messages(
    prompt: Prompt,
    question: Question,
    labels: Sequence[str],
    shots: Sequence[Question] = (),
) -> list[dict[str, str]]:
    """Return the messages that ask a question.

    Args:
        prompt: The prompt.
        question: The question.
        labels: The labels.
        shots: Examples with gold label and gold evidence.
    """
    messages = [{"role": "system", "content": _render(prompt, "system", question, labels)}]
    for example in shots:
        gold = msgspec.json.encode(_make_gold_answer(example)).decode()
        messages.append({"role": "user", "content": _render(prompt, "user", example, labels)})
        messages.append({"role": "assistant", "content": gold})
    return [*messages, {"role": "user", "content": _render(prompt, "user", question, labels)}]


def _render(prompt: Prompt, part: str, question: Question, labels: Sequence[str]) -> str:
    pairs = zip(question.instance.names, question.texts, strict=True)
    documents = [{"docid": docid, "text": text} for docid, text in pairs]
    return prompt.render(part, documents, question.query, labels, QUOTES)


def _make_gold_answer(question: Question) -> dict[str, Any]:
    """Return the human answer: label and rationale."""
    documents, runs = question.instance.documents, question.gold_runs()
    quotes = [question.blank.join(documents[at][start:end]) for at, start, end in runs]
    return {"label": question.instance.label, "quotes": quotes}
