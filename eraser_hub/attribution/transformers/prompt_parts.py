"""The parts of a prompt: its instructions, examples, query and documents, and the prompt without some of them.

Instructions are the words of the prompt's file, in the messages of the system and the user; examples are whole
messages. A part that goes leaves the blanks around it; the tokens of the chat template always stay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError

INSTRUCTIONS, EXAMPLES, QUERY = "instructions", "examples", "query"
QUERY_MARK = "\ue000query\ue001"  # where the query stands in a prompt
_MARK = re.compile("\ue000(?:([0-9]+)|query)\ue001")
_NONE = 0
_CODES = {INSTRUCTIONS: 1, EXAMPLES: 2, QUERY: 3}


class PromptText(NamedTuple):
    """A prompt as one text.

    Attributes:
        text: the text.
        words: the first character and the one behind the last of each token of the documents.
        parts: what each character belongs to, int8 (characters,): 1 the instructions, 2 the examples, 3 the query, 0
            none of them.
    """

    text: str
    words: Sequence[tuple[int, int]]
    parts: NDArray[np.int8]

    @property
    def names(self) -> list[str]:
        """The parts that the prompt has, but for its documents."""
        return [name for name, code in _CODES.items() if (self.parts == code).any()]

    def without(self, names: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
        """Return text and words of the prompt without these parts."""
        keep = ~np.isin(self.parts, [_CODES[name] for name in names])
        places = np.concatenate([[0], keep.cumsum()]).tolist()
        text = "".join(character for character, stays in zip(self.text, keep.tolist(), strict=True) if stays)
        return text, [(places[start], places[end]) for start, end in self.words]


def mark_parts(
    marked: str,
    messages: Sequence[tuple[str, str]],
    query: str,
    documents: Sequence[str],
    words: Sequence[tuple[int, int]],
) -> PromptText:
    """Return the prompt with the part of each character.

    Args:
        marked: the prompt with marks in place of its query and its documents.
        messages: its messages, in order, with the same marks, and the part that each belongs to; the chat template may
            have cut blanks at their ends.
        query: the query.
        documents: the text of each document.
        words: the characters of each of the documents' tokens in the prompt.

    Raises:
        DataError: a chat template that changes the messages.
    """
    codes, behind = np.zeros(len(marked), dtype=np.int8), 0
    for message, part in messages:
        own = message.strip()
        start = marked.find(own, behind)
        if start < 0:
            expected = "expected a chat template that shows each message as it is, found one that changes it"
            raise DataError(expected, argument="prompt_parts", rule="unsupported")
        behind = start + len(own)
        codes[start:behind] = _CODES[part]
    blank = np.asarray([character.isspace() for character in marked], dtype=bool)
    text, parts, behind = "", [np.zeros(0, np.int8)], 0
    for match in [*_MARK.finditer(marked), None]:
        end = len(marked) if match is None else match.start()
        between = codes[behind:end].copy()
        for place in _find_blanks(between, blank[behind:end]):
            between[place] = _NONE
        text, parts = text + marked[behind:end], [*parts, between]
        if match is not None:
            added = query if match[1] is None else documents[int(match[1])]
            text += added
            parts.append(np.full(len(added), _CODES[QUERY] if match[1] is None else _NONE, np.int8))
            behind = match.end()
    return PromptText(text, words, np.concatenate(parts))


def _find_blanks(codes: NDArray[np.int8], blank: NDArray[np.bool_]) -> list[slice]:
    """Return the blanks at both ends of each run of a part."""
    edges = np.flatnonzero(np.diff(np.concatenate([[_NONE], codes, [_NONE]]) != 0)).reshape(-1, 2).tolist()
    slices = list[slice]()
    for start, end in edges:
        letters = np.flatnonzero(~blank[start:end])
        first, last = (int(letters[0]), int(letters[-1]) + 1) if len(letters) else (end - start, end - start)
        slices += [slice(start, start + first), slice(start + last, end)]
    return slices
