"""Scores as the score file has them: the reference scorer's nested keys, and the modules' flat ones beside them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import orjson

from eraser_hub.metrics.agreement_scores import PRF, SOFT, suffix
from eraser_hub.records.atomic import atomic_write
from eraser_hub.records.errors import DataError
from eraser_hub.records.run_record import signature_of_run

from .quotes import BLOCK as QUOTES
from .score import Scored


def nested(scored: Scored) -> dict[str, object]:
    """The reference scorer's keys, and beside them ours: ``agreement``, ``faithfulness``, ``quote_faithfulness``,
    ``chance``, ``signature``.

    A part that the predictions have no fields for is left out, as the reference does.
    """
    result: dict[str, object] = {}
    s, used = scored.settings, scored.used
    flat = {name: scored.flat(name) for name in ("agreement", "faithfulness", QUOTES)}
    a, f = flat["agreement"], flat["faithfulness"]
    if used.classification and (used.full or scored.report is not None):
        part: dict[str, object] = {"accuracy": f.get("accuracy"), "prf": scored.report}
        for side in ("comprehensiveness", "sufficiency"):
            for end in ("", "_entropy", "_kl", "_aopc", "_aopc_points"):
                part[f"{side}{end}"] = f.get(f"{side}{end}")
        part["aopc_thresholds"] = f.get("aopc_thresholds")
        result["classification_scores"] = part
    if used.hard:
        result["iou_scores"] = [_iou(a, threshold, s.main_iou) for threshold in dict.fromkeys(s.iou_thresholds)]
        for name, key in (("rationale_prf", "exact"), ("token_prf", "token")):
            result[name] = {f"instance_{kind}": _prf(a, f"{key}_{kind}") for kind in ("micro", "macro")}
    for name, prefix, there in (
        ("token_soft_metrics", "", used.soft),
        ("sentence_soft_metrics", "sentence_", used.sentence),
    ):
        if there:
            result[name] = {key: a[f"{prefix}{key}"] for key in SOFT}
    result.update({name: part for name, part in flat.items() if part})
    if scored.leak is not None:
        result.update(scored.leak.flat)
    if scored.chance:
        result["chance"] = scored.chance
    result["signature"] = "; ".join(scored.signature_of(name) for name, part in flat.items() if part)
    result.update(scored.extra)
    return result


def _prf(flat: dict[str, object], start: str, end: str = "") -> dict[str, object]:
    return {part: flat[f"{start}_{part}{end}"] for part in PRF}


def _iou(flat: dict[str, object], threshold: float, main: float) -> dict[str, object]:
    end = suffix(threshold, main)
    kinds = {kind: _prf(flat, f"iou_{kind}", end) for kind in ("micro", "macro", "matched")}
    return {"threshold": threshold, **kinds}


def run_signature(results: Path) -> dict[str, object]:
    """What the run that wrote the predictions says of itself, as score files have it."""
    signature = signature_of_run(results)
    return {"run": signature} if signature else {}


def as_json(scores: Mapping[str, object]) -> bytes:
    """Scores as JSON; NaN and infinity become null."""
    # orjson writes null for both
    return orjson.dumps(scores, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def write_scores(path: Path, scores: dict[str, object]) -> None:
    """Write scores as JSON; NaN and infinity become null, keys are in order.

    Raises:
        DataError: the file cannot be written; nothing half-written stays behind.
    """
    data = as_json(scores)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, data)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", rule="file-unreadable", file=path) from None
