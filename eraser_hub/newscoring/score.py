"""Scores of predictions on a split: files are read in chunks, and of each chunk only additive columns stay."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eraser_hub.newmetrics.erasure import erasure_scores, measure_erasure, report_labels
from eraser_hub.newmetrics.errors import VERSION, DataError, check_choice, cut
from eraser_hub.newmetrics.ranking import AUPRC_POLICIES, measure_rankings, ranking_scores
from eraser_hub.newmetrics.rows import Gold, Match, Matcher, read_predictions
from eraser_hub.newmetrics.spans import measure_spans, span_scores
from eraser_hub.newmetrics.statistics import (
    DEFAULT_LEVEL,
    Columns,
    Score,
    Statistics,
    check_inference,
    concatenate,
    mean,
    number_values,
    sign,
)

from .gold import read_column, read_gold
from .predictions import read_chunks
from .result import Scores

if TYPE_CHECKING:
    from eraser_hub.scoring.scored_split import ScoredSplit

Instance = Mapping[str, Any]
CustomMetric = Callable[[Instance, Mapping[str, Any]], float]
