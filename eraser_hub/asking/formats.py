"""Answer formats: quotes, positions by characters or tokens, or marked copies of the texts; all become `Quote`s.

"offsets" and "tokens" are spans {text, start, end}: the number of the text from 1, its first character (token) from 0,
and the one behind its last. "highlighted" is a copy of each text with ``<r>`` and ``</r>`` around the evidence.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

from eraser_hub.metrics.quote_alignment import Document, Quote, align, make_key

from .answers import HIGHLIGHTED, OFFSETS, QUOTED, Answer, Place
from .questions import Question
from .settings import AskSettings

_TAG = re.compile(r"(</?r>)")


def locate_quotes(answer: Answer, question: Question, settings: AskSettings) -> list[Quote]:
    """Return the quotes of an answer in any format; a position outside the texts is "not_found"."""
    documents = question.documents
    if settings.answer == OFFSETS:
        return [_locate_characters(place, question, documents) for place in answer.places]
    if settings.answer == HIGHLIGHTED:
        return [one for at, copy in enumerate(answer.quotes) for one in _locate_marked(at, copy, documents, settings)]
    if answer.places:
        return [_locate_tokens(place, documents) for place in answer.places]
    return align(answer.quotes, documents, threshold=settings.threshold, several=settings.several)


def _locate_tokens(place: Place, documents: Sequence[Document]) -> Quote:
    number, start, end = place
    if not (0 < number <= len(documents) and 0 <= start < end <= len(documents[number - 1].tokens)):
        return Quote(f"{number}:{start}-{end}", "not_found")
    document = documents[number - 1]
    return Quote(document.text(start, end), "exact", document.docid, start, end, 1.0)


def _locate_characters(place: Place, question: Question, documents: Sequence[Document]) -> Quote:
    """Return the tokens that hold the characters; "normalised" if they start or end inside a token."""
    number, start, end = place
    if not (0 < number <= len(documents) and 0 <= start < end <= len(question.texts[number - 1])):
        return Quote(f"{number}:{start}-{end}", "not_found")
    text, document = question.texts[number - 1], documents[number - 1]
    words, bounds = text[start:end], _find_characters(text, document.tokens)
    first = bisect_right([last for _, last in bounds], start)
    behind = bisect_left([low for low, _ in bounds], end)
    if not words.strip() or first >= behind:
        return Quote(words, "empty")
    begins, ends = start + len(words) - len(words.lstrip()), end - len(words) + len(words.rstrip())
    status = "exact" if (begins, ends) == (bounds[first][0], bounds[behind - 1][1]) else "normalised"
    return Quote(words, status, document.docid, first, behind, 1.0)


def _find_characters(text: str, tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Return the characters [start, end) of each token in the text."""
    bounds, at = [], 0
    for token in tokens:
        at = text.index(token, at)
        bounds.append((at, at + len(token)))
        at += len(token)
    return bounds


def make_gold_answer(question: Question, form: str) -> dict[str, Any]:
    """Return the human answer in that format: label and rationale; `locate_quotes` reads it back."""
    label, runs = question.instance.label, question.gold_runs()
    documents = question.instance.documents
    if form == QUOTED:
        return {"label": label, "quotes": [question.blank.join(documents[at][start:end]) for at, start, end in runs]}
    places = [_find_characters(text, tokens) for text, tokens in zip(question.texts, documents, strict=True)]
    if form == HIGHLIGHTED:
        copies = [*question.texts]
        for at, start, end in reversed(runs):  # from the end, so that earlier positions stay valid
            first, behind = places[at][start][0], places[at][end - 1][1]
            copies[at] = f"{copies[at][:first]}<r>{copies[at][first:behind]}</r>{copies[at][behind:]}"
        return {"label": label, "texts": copies}
    if form == OFFSETS:
        runs = [(at, places[at][start][0], places[at][end - 1][1]) for at, start, end in runs]
    return {"label": label, "spans": [{"text": at + 1, "start": start, "end": end} for at, start, end in runs]}


def _locate_marked(at: int, copy: str, documents: Sequence[Document], settings: AskSettings) -> list[Quote]:
    """Return the marked passages of a copy: by position if its key is the text's, else as quotes."""
    passages = _TAG.split(copy)
    plain = make_key("".join(part for part in passages if not _TAG.fullmatch(part)))
    same = at < len(documents) and plain == documents[at].key
    quotes: list[Quote] = []
    inside, before = False, ""
    for part in passages:
        if _TAG.fullmatch(part):
            inside = part == "<r>"
            continue
        start, before = len(make_key(before)), before + part
        if not inside or not make_key(part):
            continue
        if same:
            document, end = documents[at], len(make_key(before))
            first = bisect_right(document.starts, start) - 1
            behind = bisect_left(document.starts, end)
            verbatim = document.text(first, behind) == document.blank.join(part.split())
            quotes.append(Quote(part, "exact" if verbatim else "normalised", document.docid, first, behind, 1.0))
        else:
            near = documents[at : at + 1] or documents
            quotes += align([part], near, threshold=settings.threshold, several=settings.several)
    return quotes
