"""Parse a language model's answer: a label, its probability and quotes, or the reason for no answer."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from eraser_hub.conversion.readers import has_half_character
from eraser_hub.records.errors import show

ANSWERED, REFUSAL, CUT, BROKEN = "answered", "refusal", "cut", "broken"
OUTCOMES = (ANSWERED, REFUSAL, CUT, BROKEN)
# more characters than any label and quotes take; what is longer is not looked through
LONGEST = 1 << 20
MAX_QUOTES = 1000
MAX_ATTEMPTS = 64  # at parsing an object that turns out to be none: each may read the whole text
_LABEL = re.compile(r'"label"\s*:\s*"?')
_OBJECT = re.compile(r'\{\s*"')
_DECODER = json.JSONDecoder()
_THOUGHTS = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_REFUSAL = re.compile(
    r"\b(?:I(?:'|’)?m (?:sorry|unable|not able)|I am (?:sorry|unable|not able)"
    r"|I (?:cannot|can(?:'|’)t|can not|won(?:'|’)t) |as an AI)"
    r"|抱歉|对不起|无法(?:回答|提供|协助)|不能(?:回答|提供|协助)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer.

    Attributes:
        outcome: One of `OUTCOMES`.
        label: One of the labels; None without an answer.
        quotes: Quotes, the most important first.
        reason: The reason for an outcome other than "answered".
        probabilities: The probability of each label if the server returned log-probabilities.
    """

    outcome: str
    label: str | None = None
    quotes: tuple[str, ...] = ()
    reason: str = ""
    probabilities: Mapping[str, float] | None = None


def make_schema(labels: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of an answer."""
    return {
        "type": "object",
        "properties": {
            "label": {"type": "string", "enum": list(labels)},
            "quotes": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["label", "quotes"],
        "additionalProperties": False,
    }


def read_answer(choice: object, labels: Sequence[str]) -> Answer:
    """Read the answer in a choice of a chat completion.

    Args:
        choice: ``choices[0]`` of the server's answer: ``message`` and ``finish_reason``.
        labels: The labels.
    """
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return Answer(BROKEN, reason=f"expected a message, found {show(choice)}")
    reason, content = choice.get("finish_reason"), message.get("content")
    if message.get("refusal") or reason == "content_filter":
        return Answer(REFUSAL, reason=show(message.get("refusal") or reason))
    if not isinstance(content, str):
        return Answer(CUT if reason == "length" else BROKEN, reason=f"expected words, found {show(content)}")
    if len(content) > LONGEST:
        return Answer(BROKEN, reason=f"expected at most {LONGEST} characters, found {len(content)}")
    fields = _find_object(content)
    if fields is None:
        if reason == "length":
            return Answer(CUT, reason="the answer ends at the most tokens allowed")
        outcome = REFUSAL if _REFUSAL.search(content[:300]) else BROKEN
        return Answer(outcome, reason=f"expected an object with label and quotes, found {show(content)}")
    answer = _check_answer(fields, labels)
    return replace(answer, probabilities=compute_label_probabilities(choice, labels)) if answer.label else answer


def _find_object(content: str) -> dict[str, Any] | None:
    """Return the last object with a label in a text, whatever surrounds it; None without one."""
    content, at, attempts = _THOUGHTS.sub("", content), 0, 0
    last = None
    while attempts < MAX_ATTEMPTS and (found := _OBJECT.search(content, at)):
        try:
            value, at = _DECODER.raw_decode(content, found.start())
        except (ValueError, RecursionError):
            at, attempts = found.end(), attempts + 1
            continue
        last = value if "label" in value else last
    return last


def _check_answer(fields: dict[str, Any], labels: Sequence[str]) -> Answer:
    label, quotes = fields["label"], fields.get("quotes")
    if has_half_character([label, quotes]):
        return Answer(BROKEN, reason=f"expected characters, found half of one in {show([label, quotes])}")
    quotes = [quotes] if isinstance(quotes, str) else quotes
    if not isinstance(quotes, list) or not all(isinstance(one, str) for one in quotes):
        return Answer(BROKEN, reason=f"quotes: expected a list of strings, found {show(quotes)}")
    if len(quotes) > MAX_QUOTES:
        return Answer(BROKEN, reason=f"quotes: expected at most {MAX_QUOTES}, found {len(quotes)}")
    name = _find_label(label, labels)
    if name is None:
        return Answer(BROKEN, reason=f"label: expected one of {', '.join(labels)}, found {show(label)}")
    return Answer(ANSWERED, name, tuple(quotes))


def _find_label(label: object, labels: Sequence[str]) -> str | None:
    """Return the label of that name in any case; None if there is none."""
    if isinstance(label, bool):  # models write true and false unquoted if these are the labels
        label = str(label)
    if not isinstance(label, str):
        return None
    if label in labels:
        return label
    near = [name for name in labels if name.casefold() == label.strip().casefold()]
    return near[0] if len(near) == 1 else None


def compute_label_probabilities(choice: Mapping[str, Any], labels: Sequence[str]) -> dict[str, float] | None:
    """Return the probability of each label, from the alternatives at the tokens that spell the answer's label.

    An alternative counts for the label that it begins, or that begins it. If it begins several labels (``un`` of
    "unknown" and "unlike"), the next token's alternatives share its probability as far as it was chosen, and the rest
    is left out. The probabilities of the labels are normalised to sum to 1.

    Args:
        choice: ``choices[0]`` of a chat completion, with ``logprobs.content``.
        labels: The labels.

    Returns:
        None without log-probabilities, or if none of them counts for a label.
    """
    logprobs = choice.get("logprobs")
    steps = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    if not isinstance(steps, list) or not all(isinstance(step, Mapping) for step in steps):
        return None
    tokens = [str(step.get("token", "")) for step in steps]
    starts = [*_LABEL.finditer("".join(tokens))]
    if not starts:
        return None
    p, mass, spelt, place = dict.fromkeys(labels, 0.0), 1.0, "", starts[-1].end()
    for step, token, end in zip(steps, tokens, accumulate(map(len, tokens)), strict=True):
        start = end - len(token)
        if end <= place:
            continue
        before, chosen = token[: max(place - start, 0)], 0.0
        for alternative, share in _list_alternatives(step):
            if alternative.startswith(before):
                meant = _match_labels(spelt + alternative[len(before) :], labels)
                if len(meant) == 1:
                    p[meant[0]] += mass * share
                elif alternative == token and meant:
                    chosen = share
        spelt = (spelt + token[len(before) :]).lstrip()
        if len(_match_labels(spelt, labels)) < 2:
            break
        mass *= chosen
    total = sum(p.values())
    return {label: value / total for label, value in p.items()} if total > 0 else None


def _list_alternatives(step: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return (token, p) of the alternatives of a token, the token itself included."""
    top = step.get("top_logprobs")
    entries = [*(top if isinstance(top, list) else ()), step]
    tokens: dict[str, float] = {}
    for entry in entries:
        token, value = (entry.get("token"), entry.get("logprob")) if isinstance(entry, Mapping) else (None, None)
        if isinstance(token, str) and isinstance(value, (int, float)) and value <= 0:
            tokens.setdefault(token, math.exp(value))
    return list(tokens.items())


def _match_labels(spelt: str, labels: Sequence[str]) -> list[str]:
    """Return the labels that begin with a text, or the longest label that the text begins with, in any case."""
    prefix = spelt.casefold().lstrip()
    if not prefix:
        return list(labels)
    begun = [label for label in labels if prefix.startswith(label.casefold())]
    whole = [label for label in begun if not prefix[len(label) : len(label) + 1].isalnum()]
    longer = [label for label in labels if label.casefold().startswith(prefix) and label not in whole]
    return longer if longer and not whole else [max(whole, key=len)] if whole and not longer else whole + longer
