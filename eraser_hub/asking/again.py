"""Asking again: answers without the quotes, with them alone, without random spans, and what another model reads there.

Source: Madsen, Chandar and Reddy, "Are self-explanations from Large Language Models faithful?" (Findings of ACL 2024):
an explanation is consistent with its model where the label changes as soon as what it names is redacted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from eraser_hub.attribution.erasure import draw_shifted_rationale, make_generator
from eraser_hub.metrics.tokens import mask, sentences_of

from .alignment import Quote
from .answers import Answer
from .lines import spans
from .questions import Question
from .settings import AGAIN

SIMULATED = "simulated"
# of each language, in the place of a token
REDACTED = {" ": "[REDACTED]", "": "█"}
REMOVED, ALONE = "removed", "alone"
Probabilities = Mapping[str, float]


def flags_of(question: Question, quotes: Sequence[Quote]) -> list[list[bool]]:
    """Of each document which tokens the quotes cover."""
    pairs = zip(question.instance.names, question.instance.documents, strict=True)
    return [mask(spans(quotes, docid), len(tokens)) for docid, tokens in pairs]


def random_flags(question: Question, flags: Sequence[Sequence[bool]], seed: int) -> list[list[bool]]:
    """Spans of the same lengths elsewhere in the same documents: each document's are shifted by one random step."""
    bounds = question.instance.bounds
    flat = np.flatnonzero([flag for document in flags for flag in document])
    random = make_generator(seed, question.instance.id, "ask: random spans")
    shifted = set(draw_shifted_rationale(random, flat, bounds).tolist())
    return [[at in shifted for at in range(start, end)] for start, end in pairwise(bounds)]


def changed(question: Question, flags: Sequence[Sequence[bool]], kind: str) -> Question:
    """The question with the flagged tokens redacted (a mark each) or removed, or with them alone; lines stay lines."""
    texts = []
    for text, tokens, marked in zip(question.texts, question.instance.documents, flags, strict=True):
        lines, at = [], 0
        sentences = sentences_of(text) if question.blank else [[*tokens]]
        for sentence in sentences if sum(map(len, sentences)) == len(tokens) else [[*tokens]]:
            pairs = [*zip(sentence, marked[at : at + len(sentence)], strict=True)]
            at += len(sentence)
            if kind in (REMOVED, ALONE):
                words = [token for token, flag in pairs if flag == (kind == ALONE)]
            else:
                words = [REDACTED[question.blank] if flag else token for token, flag in pairs]
            lines += [question.blank.join(words)] if words else []
        texts.append("\n".join(lines))
    return replace(question, texts=tuple(texts))


def with_quotes_alone(question: Question, quotes: Sequence[Quote]) -> Question:
    """The question with the quotes, in the model's words and order, in place of the documents they lie in (of the
    first, where they lie in none)."""
    names = question.instance.names
    places = [quote.docid if quote.docid in names else names[0] for quote in quotes]
    texts = ("\n".join(q.text for q, place in zip(quotes, places, strict=True) if place == docid) for docid in names)
    return replace(question, texts=tuple(texts))


def shares(counts: Counter[str], labels: Sequence[str]) -> dict[str, float]:
    """The share of each label; all alike where none was counted."""
    total = counts.total()
    return {label: counts[label] / total if total else 1 / len(labels) for label in labels}


def standard_error(samples: int) -> float:
    """Of a share of so many samples, at most (where the probability is 1/2).

    >>> standard_error(25)
    0.1
    """
    return math.sqrt(0.25 / samples)


def erased_fields(again: Mapping[str, Answer]) -> dict[str, Probabilities]:
    """Which further answer says p without the rationale (removed, else redacted), and with it alone."""
    known = {kind: one.probabilities for kind, one in again.items() if one.probabilities is not None}
    without = known.get(REMOVED, known.get(AGAIN[0]))
    return {side: p for side, p in (("comprehensiveness", without), ("sufficiency", known.get(ALONE))) if p is not None}
