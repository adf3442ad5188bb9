"""Convert an answer to a row of predictions: quotes as hard rationales, their order as soft ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np

from eraser_hub.attribution.erasure import rank_tokens
from eraser_hub.attribution.instances import Instance
from eraser_hub.metrics.match import SIDES
from eraser_hub.metrics.quotes import Quote

from .answers import ANSWERED, Answer

Erased: TypeAlias = Mapping[str, Mapping[str, float]]
PAIR_FIELDS = {"sufficiency": "rationale_pred_proba", "comprehensiveness": "non_rationale_pred_proba"}


def compute_token_scores(quotes: Sequence[Quote], docid: str, size: int) -> list[float]:
    """Return each token's score: (n - k + 1) / n for the k-th of n quotes, the best if several cover it."""
    scores = [0.0] * size
    for rank, quote in reversed(list(enumerate(quotes))):
        if quote.docid == docid and quote.start_token is not None and quote.end_token is not None:
            length = quote.end_token - quote.start_token
            scores[quote.start_token : quote.end_token] = [1 - rank / len(quotes)] * length
    return scores


def merge_spans(quotes: Sequence[Quote], docid: str) -> list[tuple[int, int]]:
    """Return the tokens of a document that quotes cover, as disjoint spans."""
    disjoint: list[tuple[int, int]] = []
    token_spans = [(q.start_token, q.end_token) for q in quotes if q.docid == docid]
    for start, end in sorted((start, end) for start, end in token_spans if start is not None and end):
        if disjoint and start < disjoint[-1][1]:
            first, last = disjoint.pop()
            start, end = first, max(end, last)
        disjoint.append((start, end))
    return disjoint


def make_eraser_row(instance: Instance, answer: Answer, quotes: Sequence[Quote], erased: Erased) -> dict[str, Any]:
    """Return a row of ERASER's results format, with ``quotes`` and ``outcome``; `erased`: probabilities by side."""
    rationales = []
    for docid, tokens in zip(instance.names, instance.documents, strict=True):
        hard = [{"start_token": start, "end_token": end} for start, end in merge_spans(quotes, docid)]
        soft = compute_token_scores(quotes, docid, len(tokens))
        rationales.append({"docid": docid, "hard_rationale_predictions": hard, "soft_rationale_predictions": soft})
    return {
        "annotation_id": instance.id,
        "rationales": rationales if answer.outcome == ANSWERED else [],
        "classification": answer.label,
        **({SIDES["full"]: answer.probabilities} if answer.probabilities is not None else {}),
        **{SIDES[side]: p for side, p in erased.items()},
        "quotes": [asdict(quote) for quote in quotes],
        "outcome": answer.outcome,
    }


def make_pair_row(
    instance: Instance, answer: Answer, quotes: Sequence[Quote], erased: Erased, label_names: Sequence[str]
) -> dict[str, Any]:
    """Return a row of the perturbation benchmark's results, with ``quotes`` and ``outcome``."""
    sides = {"pred_proba": answer.probabilities} | {PAIR_FIELDS[side]: p for side, p in erased.items()}
    rationale, words = [], []
    for docid, tokens in zip(instance.names, instance.documents, strict=True):
        scores = compute_token_scores(quotes, docid, len(tokens))
        rationale.append([at for at, score in enumerate(scores) if score])
        words.append([tokens[at] for at in rank_tokens(np.array(scores)) if scores[at]])
    return {
        "id": instance.id,
        "pred_label": None if answer.label is None else list(label_names).index(answer.label),
        "rationale": rationale,
        "rationale_tokens": words,
        **{field: [p[label] for label in label_names] for field, p in sides.items() if p is not None},
        "quotes": [asdict(quote) for quote in quotes],
        "outcome": answer.outcome,
    }
