"""A few texts of a split with each verified system's rationales, for the page of a board."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from eraser_hub.metrics.tokens import split_tokens
from eraser_hub.scoring.scored_split import ScoredSplit

from ..documents import index_documents, pack
from ..marked_instances import MarkedInstance

MOST_TOKENS = 1_000  # of a text


def choose_texts(split: ScoredSplit, number: int) -> list[Mapping[str, Any]]:
    """Return rows of a split, the same for each system and in each run.

    They are drawn by the SHA-256 of their ids, among those with evidence and at most `MOST_TOKENS` tokens. Of the
    perturbation benchmark none is drawn.
    """
    if split.kind == "perturbation" or not number:
        return []
    digests = [(hashlib.sha256(identity.encode()).digest(), place) for place, identity in enumerate(split.ids)]
    chosen = list[Mapping[str, Any]]()
    for _, place in sorted(digests):
        row = split.rows[place]
        if any(row["evidences"]) and sum(len(split_tokens(one["text"])) for one in row["documents"]) <= MOST_TOKENS:
            chosen.append(row)
            if len(chosen) == number:
                break
    return chosen


def pack_texts(lines: Sequence[tuple[str, tuple[MarkedInstance, ...]]]) -> tuple[str, str]:
    """Return the texts of a group, each stored once, with the marks of all lines, as the page holds them.

    Args:
        lines: the system and the marked texts of each line, all of the same texts.

    Returns:
        `documents.DocumentIndex.index`, and the one chunk.
    """
    instances = list(zip(*(texts for _, texts in lines), strict=True))
    browsed = index_documents(instances, [system for system, _ in lines], most_tokens=None)
    return browsed.index({}), browsed.packed[0] if browsed.packed else pack({})
