"""What a language model is asked, and what it answers: messages, changed texts, answers and their probabilities."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.prompts import QUOTES, Prompt
from eraser_hub.conversion.readers import has_half_character
from eraser_hub.metrics.errors import VERSION
from eraser_hub.metrics.tokens import spans_from_mask
from eraser_hub.records.errors import show

# What a text may be changed to before the model is asked again: without the quotes, with them alone, and without random
# spans. Source: Madsen, Chandar and Reddy, "Are self-explanations from Large Language Models faithful?" (Findings of
# ACL 2024): an explanation is consistent with its model if the label changes once the text that it names is redacted.
CHANGES = ("redacted", "removed", "alone", "random")
REDACTED = {" ": "[REDACTED]", "": "█"}  # by what stands between two tokens
ANSWERED, REFUSAL, CUT, BROKEN = "answered", "refusal", "cut", "broken"
MAX_CHARACTERS = 1 << 20  # of an answer; label and quotes take far less
MAX_QUOTES = 1000
MAX_ATTEMPTS = 64  # at parsing an object that turns out to be none: each may read the whole answer
OBJECT, LABEL = re.compile(r'\{\s*"'), re.compile(r'"label"\s*:\s*"?')
THOUGHTS = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
REFUSALS = re.compile(
    r"\b(?:I(?:'|’)?m (?:sorry|unable|not able)|I am (?:sorry|unable|not able)"
    r"|I (?:cannot|can(?:'|’)t|can not|won(?:'|’)t) |as an AI)"
    r"|抱歉|对不起|无法(?:回答|提供|协助)|不能(?:回答|提供|协助)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class AskSettings:
    """The settings that decide the answers, apart from the data; `eraser_hub.ask` says what each means.

    Attributes:
        prompt: The name of the prompt, and its digest.
    """

    model: str
    prompt: str
    shots: int
    temperature: float
    seed: int
    max_tokens: int
    structured: str
    threshold: float
    several: str
    consistency: tuple[str, ...]
    samples: int
    sample_temperature: float

    @property
    def signature(self) -> str:
        """Every setting in one line."""
        parts = [
            f"model:{self.model}|prompt:{self.prompt}|shots:{self.shots}|temperature:{self.temperature:g}",
            f"seed:{self.seed}|max_tokens:{self.max_tokens}|structured:{self.structured}",
            f"quotes:{self.threshold:g},{self.several}",
        ]
        if self.consistency:
            sampled = f",samples:{self.samples}@{self.sample_temperature:g}" if self.samples else ""
            parts.append(f"again:{','.join(self.consistency)}{sampled}")
        return "|".join([*parts, f"eraser-hub:{VERSION}"])


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of a language model.

    Attributes:
        outcome: "answered", "refusal", "cut" or "broken".
        label: One of the labels; None without an answer.
        quotes: The quotes, the most important first.
        reason: Why the outcome is not "answered".
        probabilities: The probability of each label; None if the server gives no log-probabilities.
    """

    outcome: str
    label: str | None = None
    quotes: tuple[str, ...] = ()
    reason: str = ""
    probabilities: Mapping[str, float] | None = None


# -- questions --------------------------------------------------------------------------------------------------------


def make_texts(
    instance: Instance, blank: str, change: str = "", marked: Sequence[bool] | NDArray[np.bool_] = ()
) -> list[str]:
    """Return the text of each document, a sentence a line, as it is or with the marked tokens changed.

    Args:
        instance: The instance.
        blank: What stands between two tokens: " ", or "" in Chinese.
        change: One of `CHANGES`; "" for the text as it is.
        marked: A flag for each token of the documents.
    """
    pairs = zip(instance.tokens, marked if change else repeat(False), strict=False)
    texts = []
    for sizes in instance.sentence_sizes:
        lines = []
        for size in sizes:
            sentence = islice(pairs, size)
            if change in ("removed", "alone"):
                line = blank.join(token for token, flag in sentence if flag == (change == "alone"))
            else:
                line = blank.join(REDACTED[blank] if flag else token for token, flag in sentence)
            if line:
                lines.append(line)
        texts.append("\n".join(lines))
    return texts


def make_messages(
    prompt: Prompt,
    instance: Instance,
    texts: Sequence[str],
    labels: Sequence[str],
    blank: str,
    shots: Sequence[Instance],
) -> list[dict[str, str]]:
    """Return the messages that ask for the label of a text and for quotes.

    Args:
        prompt: The prompt.
        instance: The names of the documents, and the query.
        texts: The text of each document.
        labels: The labels.
        blank: What stands between two tokens.
        shots: Examples, which are answered by their gold label and their human rationale.
    """

    def render(part: str, shown: Instance, texts: Sequence[str]) -> str:
        documents = [{"docid": docid, "text": text} for docid, text in zip(shown.names, texts, strict=True)]
        return prompt.render(part, documents, " ".join(shown.query), labels, QUOTES)

    messages = [{"role": "system", "content": render("system", instance, texts)}]
    for shot in shots:
        masks = zip(shot.documents, shot.rationale or (), strict=True)
        quotes = [blank.join(tokens[start:end]) for tokens, mask in masks for start, end in spans_from_mask(mask)]
        answer = json.dumps({"label": shot.label, "quotes": quotes}, ensure_ascii=False)
        messages.append({"role": "user", "content": render("user", shot, make_texts(shot, blank))})
        messages.append({"role": "assistant", "content": answer})
    return [*messages, {"role": "user", "content": render("user", instance, texts)}]


# -- answers ----------------------------------------------------------------------------------------------------------


def make_schema(labels: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of an answer."""
    properties = {
        "label": {"type": "string", "enum": list(labels)},
        "quotes": {"type": "array", "items": {"type": "string"}},
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_answer(choice: object, labels: Sequence[str]) -> Answer:
    """Read the answer out of a choice of a chat completion, whatever a model or a server may have written there.

    Args:
        choice: ``choices[0]`` of the completion: ``message``, ``finish_reason`` and perhaps ``logprobs``.
        labels: The labels.
    """
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return Answer(BROKEN, reason=f"expected a message, found {show(choice)}")
    content, finish = message.get("content"), choice.get("finish_reason")
    if message.get("refusal") or finish == "content_filter":
        return Answer(REFUSAL, reason=show(message.get("refusal") or finish))
    words = content if isinstance(content, str) and len(content) <= MAX_CHARACTERS else ""
    fields = find_object(words)
    if fields is None:
        if finish == "length":
            return Answer(CUT, reason="the answer ends at the most tokens allowed")
        outcome = REFUSAL if REFUSALS.search(words[:300]) else BROKEN
        return Answer(outcome, reason=f"expected an object with label and quotes, found {show(content)}")
    label, quotes = fields["label"], fields.get("quotes")
    # models write labels in another case, and true, false and numbers without quotation marks
    name = str(label).strip().casefold() if isinstance(label, str | int) else None
    named = [known for known in labels if known == label] or [known for known in labels if known.casefold() == name]
    if len(named) != 1:
        return Answer(BROKEN, reason=f"label: expected one of {', '.join(labels)}, found {show(label)}")
    quotes = [quotes] if isinstance(quotes, str) else quotes
    if not isinstance(quotes, list) or len(quotes) > MAX_QUOTES or not all(isinstance(one, str) for one in quotes):
        return Answer(BROKEN, reason=f"quotes: expected a list of up to {MAX_QUOTES:,} strings, found {show(quotes)}")
    if has_half_character(quotes):
        return Answer(BROKEN, reason=f"quotes: expected characters, found half of one in {show(quotes)}")
    return Answer(ANSWERED, named[0], tuple(quotes), probabilities=compute_label_probabilities(choice, labels))


def find_object(words: str) -> dict[str, Any] | None:
    """Return the last JSON object with a label in a text, whatever surrounds it; None if there is none."""
    words, decoder, last, at = THOUGHTS.sub("", words), json.JSONDecoder(), None, 0
    attempts = 0
    while attempts < MAX_ATTEMPTS and (start := OBJECT.search(words, at)):
        try:
            value, at = decoder.raw_decode(words, start.start())
            last = value if "label" in value else last
        except (ValueError, RecursionError):
            at, attempts = start.end(), attempts + 1
    return last


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
    steps = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        return None
    tokens = [str(step.get("token", "")) for step in steps]
    text = "".join(tokens)
    starts = [found.end() for found in LABEL.finditer(text)]
    if not starts:
        return None
    first, start, mass, p = starts[-1], 0, 1.0, dict.fromkeys(labels, 0.0)
    for step, token in zip(steps, tokens, strict=True):
        end, chosen = start + len(token), 0.0
        if end > first:
            before = token[: max(first - start, 0)]  # what stands before the label in its first token
            for alternative, share in list_alternatives(step):
                meant = match_labels(text[first:start] + alternative[len(before) :], labels)
                if not alternative.startswith(before):
                    continue
                if len(meant) == 1:
                    p[meant[0]] += mass * share
                elif meant and alternative == token:
                    chosen = share
            if len(match_labels(text[first:end], labels)) < 2:
                break
            mass *= chosen
        start = end
    total = sum(p.values())
    return {label: value / total for label, value in p.items()} if total > 0 else None


def list_alternatives(step: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield (token, probability) of the alternatives at a token, the token itself included, each once."""
    top, seen = step.get("top_logprobs"), set[str]()
    for entry in (*(top if isinstance(top, list) else ()), step):
        token, value = (entry.get("token"), entry.get("logprob")) if isinstance(entry, dict) else (None, None)
        if isinstance(token, str) and token not in seen and isinstance(value, int | float) and value <= 0:
            seen.add(token)
            yield token, math.exp(value)


def match_labels(spelt: str, labels: Sequence[str]) -> list[str]:
    """Return the longest label that a text begins with, and the labels that begin with it, in any case.

    >>> match_labels("not", ["not", "not sure", "yes"]), match_labels('not"', ["not", "not sure", "yes"])
    (['not', 'not sure'], ['not'])
    """
    spelt = spelt.casefold().lstrip()
    whole = [label for label in labels if re.match(rf"{re.escape(label.casefold())}(?!\w)", spelt)]
    longer = [label for label in labels if label.casefold().startswith(spelt) and label not in whole]
    return [*sorted(whole, key=len)[-1:], *longer]
