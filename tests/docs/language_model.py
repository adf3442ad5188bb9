"""The language model of the pages: it quotes what it knows of a text, in capitals, and invents a quote now and then."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..asking.scripted_server import Reply, answer

ENDPOINT = "http://localhost:8000/v1"  # as the pages name it
PHRASES = {
    "painfully flat": "NEG",
    "no chemistry whatsoever": "NEG",
    "loudly and without mercy": "NEG",
    "explains every joke": "NEG",
    "the film is a waste of an evening": "NEG",
    "most of the film": "NEG",
    "this sharp and this funny": "POS",
    "the photography is gorgeous": "POS",
    "told with grace and real wit": "POS",
    "the theatre": "POS",
}


def reply(request: dict[str, Any], before: int) -> Reply:
    """Return the label of most phrases in the text, and the phrases as quotes."""
    text = request["messages"][-1]["content"]
    found = [phrase for phrase in PHRASES if phrase in text]
    labels = Counter(PHRASES[phrase] for phrase in found) or Counter(["NEG"])
    invented = ["The worst film of the decade"] if len(text) % 4 == 0 else []
    return answer(labels.most_common(1)[0][0], *map(str.capitalize, found), *invented)
