"""Probabilities of labels, from the log-probabilities that a server gives with its words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

_LABEL = re.compile(r'"label"\s*:\s*"?')


def label_probabilities(choice: Mapping[str, Any], labels: Sequence[str]) -> dict[str, float] | None:
    """p of each label, from the alternatives at the tokens that spell the answer's label.

    An alternative belongs to the label that it begins, or that begins it; where it begins several (``un`` of "unknown"
    and "unlike"), the next token's alternatives share its probability as far as it was chosen, and the rest is left
    out. What belongs to the labels is made to sum to 1.

    Args:
        choice: ``choices[0]`` of a chat completion, with ``logprobs.content``.
        labels: those there are.

    Returns:
        None where there are no log-probabilities, or none that says anything of a label.
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
    for step, token, start in zip(steps, tokens, _starts(tokens), strict=True):
        if start + len(token) <= place:
            continue
        before, chosen = token[: max(place - start, 0)], 0.0
        for alternative, share in _alternatives(step):
            if alternative.startswith(before):
                meant = _meant(spelt + alternative[len(before) :], labels)
                if len(meant) == 1:
                    p[meant[0]] += mass * share
                elif alternative == token and meant:
                    chosen = share
        spelt += token[len(before) :]
        if len(_meant(spelt, labels)) < 2:
            break
        mass *= chosen
    total = sum(p.values())
    return {label: value / total for label, value in p.items()} if total > 0 else None


def _starts(tokens: Sequence[str]) -> list[int]:
    starts = [0]
    for token in tokens[:-1]:
        starts.append(starts[-1] + len(token))
    return starts


def _alternatives(step: Mapping[str, Any]) -> list[tuple[str, float]]:
    """(token, p) of what might have stood in a token's place, itself among them."""
    top = step.get("top_logprobs")
    entries = [*(top if isinstance(top, list) else ()), step]
    tokens: dict[str, float] = {}
    for entry in entries:
        token, value = (entry.get("token"), entry.get("logprob")) if isinstance(entry, Mapping) else (None, None)
        if isinstance(token, str) and isinstance(value, (int, float)) and value <= 0:
            tokens.setdefault(token, math.exp(value))
    return list(tokens.items())


def _meant(spelt: str, labels: Sequence[str]) -> list[str]:
    """The labels that begin so, or that what is spelt begins with, whatever the case; the longest of the latter."""
    said = spelt.casefold().lstrip()
    if not said:
        return list(labels)
    whole = [
        label
        for label in labels
        if said.startswith(label.casefold()) and not said[len(label) : len(label) + 1].isalnum()
    ]
    longer = [label for label in labels if label.casefold().startswith(said) and label not in whole]
    return longer if longer and not whole else [max(whole, key=len)] if whole and not longer else whole + longer
