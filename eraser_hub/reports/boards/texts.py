"""A few texts of a split with each verified system's rationales, for the page of a board."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from eraser_hub.metrics.tokens import split_tokens
from eraser_hub.records.arguments import GoldForm
from eraser_hub.scoring.gold.forms import choose_evidences
from eraser_hub.scoring.runs import System
from eraser_hub.scoring.scored_split import ScoredSplit

from ..documents import index_documents, pack
from ..marked_instances import MarkedInstance, mark_for_systems, mark_instance

MOST_TOKENS = 1_000  # of a text

Answers = Mapping[str, Mapping[str, Any]]


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


def mark_texts(
    split: ScoredSplit, rows: Sequence[Mapping[str, Any]], system: System, answers: Answers, gold: GoldForm
) -> tuple[MarkedInstance, ...]:
    """Mark texts with a system's rationales; a text without an answer has the gold alone.

    Args:
        split: the split.
        rows: its texts, see `choose_texts`.
        system: the system, whose first file errors name.
        answers: its predictions by id.
        gold: the form of the gold.

    Raises:
        DataError: a prediction that does not fit its text.
    """
    evidences, _ = choose_evidences(split, gold) if rows else ({}, "")

    def mark(row: Mapping[str, Any], own: Answers | None) -> MarkedInstance:
        identity = str(row["annotation_id"])
        chosen = {**row, "evidences": evidences.get(identity, row["evidences"])}
        return mark_instance(chosen, (own or {}).get(identity), label_names=split.labels.names)

    return tuple(own for (own,) in mark_for_systems([system], [answers], rows, mark))


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
