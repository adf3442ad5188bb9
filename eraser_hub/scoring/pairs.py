"""Scores of records of the bilingual perturbation benchmark: MAP of the pairs, and agreement with gold sets."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eraser_hub.metrics.errors import DataError
from eraser_hub.metrics.gold import digest
from eraser_hub.metrics.map import measure_map
from eraser_hub.metrics.quotes import measure_quotes
from eraser_hub.metrics.rows import index_rows
from eraser_hub.metrics.sets import measure_sets
from eraser_hub.metrics.statistics import Measured
from eraser_hub.records.predictions import read_chunks, read_signature

from .gold import read_column
from .result import NO_COVERAGE, Scores

if TYPE_CHECKING:
    from .score import ScoreSettings
    from .scored_split import ScoredSplit


def score_pairs(source: ScoredSplit, predictions: Path, settings: ScoreSettings) -> Scores:
    """Score records of the perturbation benchmark; arguments and errors as of `score.score`."""
    hashed = hashlib.sha256()
    rows = [row for rows, _ in read_chunks(predictions, hashed) for row in rows]
    records = source.labelled
    scores = Scores(names=source.names | {"config": source.built_config}, ids=source.ids, by=settings.by)
    scores.data_digest = digest_records(source.ids, records)
    scores.files, scores.predictions_sha256 = [predictions], [hashed.hexdigest()]
    scores.run, scores.paper = read_signature(predictions), settings.paper
    options: dict[str, Any] = {"only_predicted": settings.only_predicted, "paper": settings.paper}
    measured: dict[str, Measured] = {}
    try:
        known = {str(row["id"]) for row in records if row.get("rationale_ids")}
        answered = {str(row.get("id")) for row in rows}
        pairs = [
            row for row in records if str(row["id"]) in answered and answered & set(map(str, row.get("rel_ids") or ()))
        ]
        if settings.only_predicted and not pairs:
            scores.notes.append("no MAP: the predictions answer no original together with a perturbed record of it")
        elif any(row.get("rationale_tokens") is not None for row in rows):
            measured["perturbation_map"] = measure_map(rows, records, **options)
        else:
            scores.notes.append(
                "no MAP: the predictions have no rationale_tokens (the rationale's, most important first)"
            )
        if not known:
            scores.notes.append("no token F1 and IOU F1: this release of the benchmark has no gold rationales")
        elif any(row.get("rationale") is not None for row in rows):
            gold = [row for row in records if str(row["id"]) in known]
            answers = [row for row in rows if str(row.get("id")) in known]
            measured["rationale_set_agreement"] = measure_sets(answers, gold, **options)
        else:
            scores.notes.append("no token F1 and IOU F1: the predictions have no rationale (lists of token indices)")
        if any(row.get("quotes") is not None for row in rows):
            named = index_rows(rows, "predictions").items()
            quoted = {name: row for name, row in named if row.get("quotes") is not None}
            statistics, counts = measure_quotes(quoted, {name: {} for name in quoted})
            measured["quote_faithfulness"] = Measured(statistics, {}, counts, [NO_COVERAGE])
    except DataError as error:
        error.file = error.file or predictions
        raise
    if not measured:
        raise DataError("nothing to score: expected rationale_tokens or rationale, found neither", file=predictions)
    groups = dict(zip(source.ids, read_column(source, settings.by or "label"), strict=True))
    clusters: dict[str, Any] = {}
    if settings.cluster_by not in ("auto", "none"):
        clusters = dict(zip(source.ids, read_column(source, settings.cluster_by), strict=True))
    breakdown = any(value is not None for value in groups.values())
    settings = replace(settings, by=settings.by or "label" if breakdown else None)
    scores.by = settings.by
    for metric, each in measured.items():
        if settings.cluster_by != "auto":
            values = [clusters[name] for name in each.statistics.ids] if clusters else None
            each.statistics.set_clusters(settings.cluster_by, values)
        own = replace(settings, by=None) if metric == "quote_faithfulness" else settings
        scores.add_measured(metric, each, own, groups, len(each.statistics.ids))
    scores.signatures += [scores.run] if scores.run else []
    return scores


def digest_records(ids: Sequence[str], records: Sequence[Mapping[str, Any]]) -> str:
    """Return the digest of the records' labels, or answers, and of the tokens of their gold sets."""
    tokens = [
        (place, number, group, int(token))
        for place, row in enumerate(records)
        for number, groups in enumerate(row.get("rationale_ids") or ())
        for group, indices in enumerate(groups or ())
        for token in indices
    ]
    sequences = [str(number) for number in range(1 + max((token[1] for token in tokens), default=0))]
    labels = [row.get("label") or row.get("answer") for row in records]
    return digest(ids, labels, sequences, np.array(tokens, np.int64).reshape(-1, 4))
