"""EVAL-X: the share of gold labels that an evaluator tells from a system's rationales alone (Jethani et al. 2021)."""

from __future__ import annotations

import hashlib

import numpy as np

from eraser_hub.records.digests import compute_file_digest
from eraser_hub.records.errors import DataError
from eraser_hub.records.run_record import read_signature
from eraser_hub.schema.instance import SCORE_FIELDS

from .mask_leaks import compute_document_interval
from .modules import read_predictions
from .runs import System
from .scored_split import ScoredSplit
from .scores import Scores
from .settings import ScoreSettings

EVALUATED = "eval_x"
ON_RATIONALE = SCORE_FIELDS["sufficiency"]


def add_evaluator(
    scores: Scores, system: System, evaluator: System, source: ScoredSplit, settings: ScoreSettings
) -> None:
    """Add the share of gold labels that an evaluator predicts from a system's rationales alone.

    Args:
        scores: the system's scores, which get the new ones.
        system: the system, with its predictions.
        evaluator: predictions of ``explain --model EVALUATOR --rationales SYSTEM``; its labels of the rationale count.
        source: the split.
        settings: of the interval.

    Raises:
        DataError: an annotation that it does not answer or has no such scores for, another system's rationales.
    """
    signature = read_signature(evaluator.path)
    digest = compute_file_digest(system.path, hashlib.blake2b(digest_size=6))
    if signature and f"rationales:{digest}|" not in signature:  # as far as the run's record says whose they are
        name = system.path.name
        words = f"expected an evaluator of the rationales of {name} (explain --rationales {name}), found {signature}"
        raise DataError(words, rule="file-changed", file=evaluator.path)
    answers, hits, docids = read_predictions(source, evaluator.path), list[bool](), list[list[str]]()
    for identity, row in zip(source.ids, source.labelled, strict=True):
        answer = answers.get(identity)
        if answer is None and settings.only_predicted:
            continue
        alone: dict[str, float] | None = None if answer is None else answer.get(ON_RATIONALE)
        if not alone:
            words = f"expected an evaluator's {ON_RATIONALE} for each annotation, found none"
            raise DataError(words, rule="score-missing", file=evaluator.path, instance=identity)
        hits.append(max(alone, key=alone.__getitem__) == row["classification"])
        docids.append([document["docid"] for document in row["documents"]])
    if not hits:
        return
    flags = np.array(hits)
    scores.scores[EVALUATED] = float(flags.mean())
    interval = compute_document_interval(flags, docids, settings)
    if interval is not None:
        scores.intervals[EVALUATED] = interval
