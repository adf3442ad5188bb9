"""What a row of ``eraser`` spells out only as text and spans: its tokens, and the mask of its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eraser_hub.metrics import tokens as token_rule

from .errors import DataError, shown


def tokens(row: Mapping[str, Any]) -> list[list[str]]:
    """The tokens of each document of a row.

    Args:
        row: a row of ``eraser``, with ``documents``.

    >>> tokens({"documents": [{"docid": "d", "text": "a fine film .\\nnothing more"}]})
    [['a', 'fine', 'film', '.', 'nothing', 'more']]
    """
    return [token_rule.tokens_of(document["text"]) for document in row["documents"]]


def mask(row: Mapping[str, Any]) -> list[list[bool]]:
    """For each document of a row, one flag per token: whether any evidence covers it.

    Args:
        row: a row of ``eraser``, with ``documents`` and ``evidences``.

    Raises:
        DataError: an evidence of another document, or one that does not lie within its document.

    >>> mask({"documents": [{"docid": "d", "text": "a fine film"}],
    ...       "evidences": [[{"docid": "d", "start_token": 1, "end_token": 3}]]})
    [[False, True, True]]
    """
    sizes = {document["docid"]: sum(token_rule.sentence_sizes(document["text"])) for document in row["documents"]}
    spans: dict[str, list[tuple[int, int]]] = {docid: [] for docid in sizes}
    for group in row["evidences"]:
        for evidence in group:
            docid, start, end = evidence["docid"], evidence["start_token"], evidence["end_token"]
            if docid not in sizes or not 0 <= start <= end <= sizes[docid]:
                message = f"expected a span of one of the row's documents, found [{start}, {end}) of {shown(docid)}"
                raise DataError(message, instance=row.get("annotation_id"), field="evidences")
            spans[docid].append((start, end))
    return [token_rule.mask(spans[document["docid"]], sizes[document["docid"]]) for document in row["documents"]]
