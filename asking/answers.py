"""What a language model's words say: a label and quotes, or why there is no answer."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eraser_hub.records.errors import shown

ANSWERED, REFUSAL, CUT, BROKEN = "answered", "refusal", "cut", "broken"
OUTCOMES = (ANSWERED, REFUSAL, CUT, BROKEN)
# more characters than any label and quotes take; what is longer is not looked through
LONGEST = 1 << 20
MOST_QUOTES = 1000
_DECODER = json.JSONDecoder()
_THOUGHTS = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_REFUSAL = re.compile(
    r"\b(?:I(?:'|’)?m (?:sorry|unable|not able)|I am (?:sorry|unable|not able)|I (?:cannot|can(?:'|’)t|can not|won(?:'|’)t) "
    r"|as an AI)|抱歉|对不起|无法(?:回答|提供|协助)|不能(?:回答|提供|协助)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer.

    Attributes:
        outcome: one of `OUTCOMES`.
        label: one of the labels; None without an answer.
        quotes: most important first.
        reason: of an outcome other than "answered", in words.
    """

    outcome: str
    label: str | None = None
    quotes: tuple[str, ...] = ()
    reason: str = ""


def schema(labels: Sequence[str]) -> dict[str, Any]:
    """The JSON schema of an answer."""
    label: dict[str, Any] = {"type": "string"}
    return {
        "type": "object",
        "properties": {
            "label": label | ({"enum": list(labels)} if labels else {}),
            "quotes": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["label", "quotes"],
        "additionalProperties": False,
    }


def read_answer(choice: object, labels: Sequence[str]) -> Answer:
    """The answer in a choice of a chat completion.

    Args:
        choice: ``choices[0]`` of the server's answer: ``message`` and ``finish_reason``.
        labels: those there are; () for any.
    """
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return Answer(BROKEN, reason=f"expected a message, found {shown(choice)}")
    reason, content = choice.get("finish_reason"), message.get("content")
    if message.get("refusal") or reason == "content_filter":
        return Answer(REFUSAL, reason=shown(message.get("refusal") or reason))
    if not isinstance(content, str):
        return Answer(CUT if reason == "length" else BROKEN, reason=f"expected words, found {shown(content)}")
    if len(content) > LONGEST:
        return Answer(BROKEN, reason=f"expected at most {LONGEST} characters, found {len(content)}")
    said = _object_in(content)
    if said is None:
        if reason == "length":
            return Answer(CUT, reason="the answer ends at the most tokens allowed")
        outcome = REFUSAL if _REFUSAL.search(content[:300]) else BROKEN
        return Answer(outcome, reason=f"expected an object with label and quotes, found {shown(content)}")
    return _checked(said, labels)


def _object_in(content: str) -> dict[str, Any] | None:
    """The last object with a label among the words, whatever stands around it."""
    content, at = _THOUGHTS.sub("", content), 0
    objects: list[dict[str, Any]] = []
    while (at := content.find("{", at)) >= 0 and len(objects) < MOST_QUOTES:
        try:
            value, at = _DECODER.raw_decode(content, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        if isinstance(value, dict) and "label" in value:
            objects.append(value)
    return objects[-1] if objects else None


def _checked(said: dict[str, Any], labels: Sequence[str]) -> Answer:
    label, quotes = said["label"], said.get("quotes")
    quotes = [quotes] if isinstance(quotes, str) else quotes
    if not isinstance(quotes, list) or not all(isinstance(quote, str) for quote in quotes):
        return Answer(BROKEN, reason=f"quotes: expected a list of strings, found {shown(quotes)}")
    if len(quotes) > MOST_QUOTES:
        return Answer(BROKEN, reason=f"quotes: expected at most {MOST_QUOTES}, found {len(quotes)}")
    name = _label(label, labels)
    if name is None:
        return Answer(BROKEN, reason=f"label: expected one of {', '.join(labels)}, found {shown(label)}")
    return Answer(ANSWERED, name, tuple(quotes))


def _label(label: object, labels: Sequence[str]) -> str | None:
    """The name that is meant, in whatever case; None where there is none."""
    if isinstance(label, bool):  # true and false stand unquoted where the labels are True and False
        label = str(label)
    if not isinstance(label, str):
        return None
    if not labels or label in labels:
        return label
    near = [name for name in labels if name.casefold() == label.strip().casefold()]
    return near[0] if len(near) == 1 else None
