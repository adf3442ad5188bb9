"""What a language model's words say: a label and quotes, or why there is no answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from eraser_hub.records.errors import shown

from .probabilities import label_probabilities

ANSWERED, REFUSAL, CUT, BROKEN = "answered", "refusal", "cut", "broken"
OUTCOMES = (ANSWERED, REFUSAL, CUT, BROKEN)
# how an answer names what it rests on, see `formats`
QUOTED, OFFSETS, TOKENS, HIGHLIGHTED = FORMATS = ("quotes", "offsets", "tokens", "highlighted")
Place: TypeAlias = tuple[int, int, int]  # of a span: the text's number from 1, its start, its end
# more characters than any label and quotes take; what is longer is not looked through
LONGEST = 1 << 20
MOST_QUOTES = 1000
_DECODER = json.JSONDecoder()
_THOUGHTS = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_REFUSAL = re.compile(
    r"\b(?:I(?:'|’)?m (?:sorry|unable|not able)|I am (?:sorry|unable|not able)"
    r"|I (?:cannot|can(?:'|’)t|can not|won(?:'|’)t) |as an AI)"
    r"|抱歉|对不起|无法(?:回答|提供|协助)|不能(?:回答|提供|协助)",
    re.IGNORECASE,
)


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object that has all of its properties, and no other."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_SPAN = _object(text={"type": "integer"}, start={"type": "integer"}, end={"type": "integer"})
# the field of each format, and what its list holds
_FIELDS: dict[str, tuple[str, dict[str, Any]]] = {
    QUOTED: ("quotes", {"type": "string"}),
    **dict.fromkeys((OFFSETS, TOKENS), ("spans", _SPAN)),
    HIGHLIGHTED: ("texts", {"type": "string"}),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer.

    Attributes:
        outcome: one of `OUTCOMES`.
        label: one of the labels; None without an answer.
        quotes: most important first; of highlighted answers the copies of the texts.
        places: in the place of quotes, by characters or tokens; most important first.
        reason: of an outcome other than "answered", in words.
        probabilities: of each label, where the server gave log-probabilities.
    """

    outcome: str
    label: str | None = None
    quotes: tuple[str, ...] = ()
    reason: str = ""
    probabilities: Mapping[str, float] | None = None
    places: tuple[Place, ...] = ()


def schema(labels: Sequence[str], answer: str = QUOTED) -> dict[str, Any]:
    """The JSON schema of an answer in that format."""
    label: dict[str, Any] = {"type": "string"}
    name, item = _FIELDS[answer]
    label |= {"enum": list(labels)} if labels else {}
    return _object(**{"label": label, name: {"type": "array", "items": item}})


def read_answer(choice: object, labels: Sequence[str], form: str = QUOTED) -> Answer:
    """The answer in a choice of a chat completion.

    Args:
        choice: ``choices[0]`` of the server's answer: ``message`` and ``finish_reason``.
        labels: those there are; () for any.
        form: one of `FORMATS`.
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
    answer = _checked(said, labels, form)
    return replace(answer, probabilities=label_probabilities(choice, labels)) if answer.label else answer


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


def _checked(said: dict[str, Any], labels: Sequence[str], form: str) -> Answer:
    field, item = _FIELDS[form]
    label, quotes = said["label"], said.get(field)
    quotes = [quotes] if isinstance(quotes, str) and item is not _SPAN else quotes
    places = [_place(one) for one in quotes] if isinstance(quotes, list) and item is _SPAN else []
    sound = all(places) if item is _SPAN else isinstance(quotes, list) and all(isinstance(one, str) for one in quotes)
    if not isinstance(quotes, list) or not sound:
        expected = "spans {text, start, end} of whole numbers" if item is _SPAN else "strings"
        return Answer(BROKEN, reason=f"{field}: expected a list of {expected}, found {shown(quotes)}")
    if len(quotes) > MOST_QUOTES:
        return Answer(BROKEN, reason=f"{field}: expected at most {MOST_QUOTES}, found {len(quotes)}")
    name = _label(label, labels)
    if name is None:
        return Answer(BROKEN, reason=f"label: expected one of {', '.join(labels)}, found {shown(label)}")
    if item is _SPAN:
        return Answer(ANSWERED, name, places=tuple(filter(None, places)))
    return Answer(ANSWERED, name, tuple(quotes))


def _place(span: object) -> Place | None:
    """A span's numbers; None where it has none."""
    numbers = [span.get(name) for name in ("text", "start", "end")] if isinstance(span, dict) else []
    sound = [one for one in numbers if isinstance(one, int) and not isinstance(one, bool)]
    return (sound[0], sound[1], sound[2]) if len(sound) == 3 else None


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
