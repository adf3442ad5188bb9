"""Conversion of rows of ``human_rationales`` (tokens and their mask) to rows of ``eraser``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import compress, count
from typing import Any

from .cells import as_list

# a row that has these is one of ``human_rationales``
TOKEN_FIELDS = frozenset(("id", "tokens", "rationale_mask"))


def as_eraser_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a row of ``human_rationales`` to one of ``eraser``: one document, named like the row.

    Each run of rationale tokens is an evidence of the one group, because the whole mask is the rationale.
    """
    identity = str(row["id"])
    tokens = [escape_whitespace(str(token)) or "\u200b" for token in as_list(row["tokens"]) or ()]
    spans = find_mask_runs(as_list(row["rationale_mask"]) or ())
    evidences = [
        {
            "docid": identity,
            "text": " ".join(tokens[start:end]),
            "start_token": start,
            "end_token": end,
            "start_sentence": 0,
            "end_sentence": 1,
        }
        for start, end in spans
    ]
    return {
        "annotation_id": identity,
        "query": "",
        "query_type": "",
        "classification": row.get("label"),
        "documents": [{"docid": identity, "text": " ".join(tokens)}],
        "evidences": [evidences] if evidences else [],
    }


def escape_whitespace(text: str) -> str:
    """Replace blanks and line ends in a token, which would split it in a document."""
    return text.replace(" ", "\u00a0").replace("\n", "\u2424")


def find_runs(indices: Iterable[int], offset: int = 0) -> list[tuple[int, int]]:
    """Convert token indices to spans [start, end), neighbours joined; ``offset`` is added to both.

    >>> find_runs([5, 1, 2, 2])
    [(1, 3), (5, 6)]
    """
    spans: list[tuple[int, int]] = []
    for index in sorted(set(indices)):
        if spans and spans[-1][1] == index + offset:
            spans[-1] = (spans[-1][0], index + offset + 1)
        else:
            spans.append((index + offset, index + offset + 1))
    return spans


def find_mask_runs(mask: Iterable[object]) -> list[tuple[int, int]]:
    """Find the runs of marked tokens as spans [start, end).

    >>> find_mask_runs([0, 1, 1, 0, 1])
    [(1, 3), (4, 5)]
    """
    return find_runs(compress(count(), mask))
