"""Asking again: answers without the quotes, with them alone, without random spans, and what another model reads there.

Source: Madsen, Chandar and Reddy, "Are self-explanations from Large Language Models faithful?" (Findings of ACL 2024):
an explanation is consistent with its model where the label changes as soon as what it names is redacted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from eraser_hub.attribution.erasure import generator, shifted_rationale
from eraser_hub.metrics.tokens import mask, sentences_of

from .alignment import Quote
from .answers import ANSWERED, Answer
from .client import Client
from .lines import spans
from .prompts import Prompt
from .questions import Question
from .settings import AGAIN, AskSettings

SIMULATED = "simulated"
# of each language, in the place of a token
REDACTED = {" ": "[REDACTED]", "": "█"}
REMOVED, ALONE = "removed", "alone"
Probabilities = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Again:
    """A further answer.

    Attributes:
        kind: one of `settings.AGAIN`, or "simulated".
        label: the label; None where there was no answer.
        outcome: of the answer.
        probabilities: of each label; None where they are not asked for, or not known.
    """

    kind: str
    label: str | None
    outcome: str
    probabilities: Probabilities | None = None


def flags_of(question: Question, quotes: Sequence[Quote]) -> list[list[bool]]:
    """Of each document which tokens the quotes cover."""
    pairs = zip(question.instance.names, question.instance.documents, strict=True)
    return [mask(spans(quotes, docid), len(tokens)) for docid, tokens in pairs]


def random_flags(question: Question, flags: Sequence[Sequence[bool]], seed: int) -> list[list[bool]]:
    """Spans of the same lengths elsewhere in the same documents: each document's are shifted by one random step."""
    bounds = question.instance.bounds
    flat = np.flatnonzero([flag for document in flags for flag in document])
    random = generator(seed, question.instance.id, "ask: random spans")
    shifted = set(shifted_rationale(random, flat, bounds).tolist())
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


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks for the labels of changed questions.

    Attributes:
        client: of the model.
        settings: which questions, and how many samples.
        prompt, shots, labels: of the questions.
        simulator: the client of another model; None for none.
    """

    client: Client
    settings: AskSettings
    prompt: Prompt
    shots: Sequence[Question]
    labels: Sequence[str]
    simulator: Client | None = None

    async def ask(self, question: Question, answer: Answer, quotes: Sequence[Quote]) -> tuple[Answer, list[Again]]:
        """The first answer with its probabilities, and the further ones.

        Args:
            answer: the first answer, to the whole question.
            quotes: its quotes with their places.
        """
        if answer.outcome != ANSWERED:
            return answer, []
        first = await self._completed(question, answer)
        flags = flags_of(question, quotes) if self.settings.again else []
        again: list[Again] = []
        for kind in self.settings.again:
            at = random_flags(question, flags, self.settings.seed) if kind == "random" else flags
            other = changed(question, at, kind)
            told = await self._completed(other, await self._one(self.client, other))
            again.append(Again(kind, told.label, told.outcome, told.probabilities))
        if self.simulator is not None:
            told = await self._one(self.simulator, with_quotes_alone(question, quotes))
            again.append(Again(SIMULATED, told.label, told.outcome))
        return first, again

    async def _one(self, client: Client, question: Question, sample: int = 0) -> Answer:
        messages = self.prompt.messages(question, self.labels, self.shots, self.settings.answer)
        return await client.ask(messages, self.labels, sample)

    async def _completed(self, question: Question, answer: Answer) -> Answer:
        """The answer with probabilities: the server's, else the share of each label among samples, else none.

        Where a server gives log-probabilities and none of one answer's label can be read, the label counts as certain;
        where there is no label, all are alike. Both are counted in the notes.
        """
        if answer.probabilities is not None or not self.settings.again:
            return answer
        if self.settings.samples:
            samples = [await self._one(self.client, question, number + 1) for number in range(self.settings.samples)]
            counts = Counter(one.label for one in samples if one.label is not None)
            if not counts:
                self.client.bill.note("none of an input's samples is an answer: all its labels count as alike")
            return replace(answer, probabilities=shares(counts, self.labels))
        if not self.client.gives_probabilities:
            self.client.bill.note("the server gives no log-probabilities: label flips alone (`samples` N asks N times)")
            return answer
        words = "log-probabilities without the label's: the label counts as certain, no label as all alike"
        self.client.bill.note(words)
        return replace(answer, probabilities=shares(Counter(filter(None, [answer.label])), self.labels))


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


def erased_fields(again: Sequence[Again]) -> dict[str, Probabilities]:
    """Which further answer says p without the rationale (removed, else redacted), and with it alone."""
    known = {one.kind: one.probabilities for one in again if one.probabilities is not None}
    without = known.get(REMOVED, known.get(AGAIN[0]))
    return {side: p for side, p in (("comprehensiveness", without), ("sufficiency", known.get(ALONE))) if p is not None}


def as_json(again: Sequence[Again]) -> list[dict[str, Any]]:
    """As a prediction's ``asked_again``."""
    return [{"kind": one.kind, "classification": one.label, "outcome": one.outcome} for one in again]
