"""Consistency: ask the same question without the quotes, with them alone, and without random spans.

Source: Madsen, Chandar and Reddy, "Are self-explanations from Large Language Models faithful?" (Findings of ACL 2024):
an explanation is consistent with its model if the label changes as soon as the text that it names is redacted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from eraser_hub.attribution.erasure import draw_shifted_rationale, make_generator
from eraser_hub.metrics.plain import mask_from_spans, split_sentences
from eraser_hub.metrics.quotes import Quote

from .answers import Answer
from .prediction_rows import merge_spans
from .questions import Question
from .settings import CONSISTENCY_CHECKS

# of each language, in the place of a token
REDACTED = {" ": "[REDACTED]", "": "█"}
REMOVED, ALONE = "removed", "alone"
Probabilities = Mapping[str, float]


def flag_quotes(question: Question, quotes: Sequence[Quote]) -> list[list[bool]]:
    """Return for each document True at the tokens that the quotes cover."""
    pairs = zip(question.instance.names, question.instance.documents, strict=True)
    return [list(map(bool, mask_from_spans(merge_spans(quotes, docid), len(tokens)))) for docid, tokens in pairs]


def draw_random_flags(question: Question, flags: Sequence[Sequence[bool]], seed: int) -> list[list[bool]]:
    """Return spans of the same lengths elsewhere: each document's spans are shifted by one random step."""
    bounds = question.instance.bounds
    flat = np.flatnonzero([flag for document in flags for flag in document])
    random = make_generator(seed, question.instance.id, "ask: random spans")
    shifted = set(draw_shifted_rationale(random, flat, bounds).tolist())
    return [[at in shifted for at in range(start, end)] for start, end in pairwise(bounds)]


def change_question(question: Question, flags: Sequence[Sequence[bool]], kind: str) -> Question:
    """Return the question with the flagged tokens redacted or removed, or with them alone; lines stay lines.

    A redacted token becomes a mark. ``kind`` is one of `CONSISTENCY_CHECKS`.
    """
    texts = []
    for text, tokens, marked in zip(question.texts, question.instance.documents, flags, strict=True):
        lines, at = [], 0
        sentences = split_sentences(text) if question.blank else [[*tokens]]
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


def compute_shares(counts: Counter[str], labels: Sequence[str]) -> dict[str, float]:
    """Return the share of each label; equal shares if none was counted."""
    total = counts.total()
    return {label: counts[label] / total if total else 1 / len(labels) for label in labels}


def compute_standard_error(samples: int) -> float:
    """Return the largest standard error of a share of so many samples (at probability 1/2).

    >>> compute_standard_error(25)
    0.1
    """
    return math.sqrt(0.25 / samples)


def find_erased_probabilities(answers: Mapping[str, Answer]) -> dict[str, Probabilities]:
    """Return the probabilities without the rationale (removed, else redacted), and with it alone."""
    known = {kind: one.probabilities for kind, one in answers.items() if one.probabilities is not None}
    without = known.get(REMOVED, known.get(CONSISTENCY_CHECKS[0]))
    return {side: p for side, p in (("comprehensiveness", without), ("sufficiency", known.get(ALONE))) if p is not None}
