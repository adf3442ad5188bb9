"""Fidelity curves: normalised sufficiency and comprehensiveness as tokens of the rationale are occluded at random.

Source: Carton, Rathore and Tan (2020), section 5.2 and Table 4; the scores and the reading are those of
`eraser_hub.metrics.fidelity`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eraser_hub.errors import DataError
from eraser_hub.metrics.fidelity import READINGS, drop_slope, normalized_fidelity, reading

from .catalogue import number
from .figures import Figure, Series
from .tables import Block, Cell, Note, Row, Section

NEEDED = ("null_classification_scores", "occluded_scores")
_MEANING = {
    "brevity": "few tokens, most of them needed",
    "redundancy": "several parts say the same",
    "irrelevance": "many tokens that do not matter",
    "dependency": "tokens that work together",
    "undefined": "the curve starts at 0",
}


def curves(instances: Sequence[Mapping[str, Any]]) -> tuple[np.ndarray, dict[str, np.ndarray]] | None:
    """Mean normalised scores per trial and occlusion rate.

    Args:
        instances: ERASER instances with ``null_classification_scores`` and ``occluded_scores``.

    Returns:
        The rates (T,), ascending, and {"sufficiency", "comprehensiveness": (trials, T)}; None where a field is absent.

    Raises:
        DataError: instances with other rates or trials than the first, or scores that lack the predicted label.
    """
    if any(instance.get(name) is None for instance in instances for name in NEEDED) or not instances:
        return None
    first = sorted({(float(s["occlusion_rate"]), int(s["trial"])) for s in instances[0]["occluded_scores"]})
    rates, trials = sorted({rate for rate, _ in first}), sorted({trial for _, trial in first})
    if len(first) != len(rates) * len(trials):
        raise DataError(
            "expected every trial at every occlusion rate",
            instance=instances[0].get("annotation_id"),
            field="occluded_scores",
        )
    shape = (len(instances), len(trials), len(rates))
    p = {"full": np.empty(shape), "empty": np.empty(shape), "rationale": np.empty(shape), "complement": np.empty(shape)}
    for i, instance in enumerate(instances):
        found = {(float(s["occlusion_rate"]), int(s["trial"])): s for s in instance["occluded_scores"]}
        if sorted(found) != first or len(instance["occluded_scores"]) != len(first):
            raise DataError(
                "expected the occlusion rates and trials of the first instance, found others",
                instance=instance.get("annotation_id"),
                field="occluded_scores",
            )
        label = instance.get("classification") or _argmax(instance)
        p["full"][i] = _probability(instance, "classification_scores", label)
        p["empty"][i] = _probability(instance, "null_classification_scores", label)
        for t, trial in enumerate(trials):
            for r, rate in enumerate(rates):
                scores = found[rate, trial]
                p["rationale"][i, t, r] = _probability(scores, "sufficiency_classification_scores", label, instance)
                p["complement"][i, t, r] = _probability(
                    scores, "comprehensiveness_classification_scores", label, instance
                )
    scored = normalized_fidelity(p["full"], p["rationale"], p["complement"], p["empty"])
    return np.array(rates), {
        name: scored[f"normalized_{name}"].mean(axis=0) for name in ("sufficiency", "comprehensiveness")
    }


def _argmax(instance: Mapping[str, Any]) -> str:
    scores = {name: p for name, p in (instance.get("classification_scores") or {}).items() if p is not None}
    return max(scores, key=lambda name: scores[name]) if scores else ""


def _probability(scores: Mapping[str, Any], field: str, label: str, instance: Mapping[str, Any] | None = None) -> float:
    value = (scores.get(field) or {}).get(label)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(
            f"expected a probability of {label!r}, found {value!r}",
            instance=(instance or scores).get("annotation_id"),
            field=field,
        )
    return float(value)


def fidelity_section(names: Sequence[str], outputs: Sequence[Sequence[Mapping[str, Any]]]) -> Section:
    """The curves of every system whose predictions hold them, with the slopes and the reading of Table 4."""
    section = Section("fidelity-section", "Fidelity curves")
    lines: dict[str, list[Series]] = {"sufficiency": [], "comprehensiveness": []}
    rows = []
    for name, instances in zip(names, outputs, strict=True):
        found = curves(instances)
        if found is None:
            section.missing.append(
                f"No curve for {name}: the predictions have no occluded_scores or no null_classification_scores "
                "(probabilities on the rationale with tokens occluded, and on the empty input; "
                "`eraser-hub explain` writes them)."
            )
            continue
        rates, scores = found
        slopes = {}
        for key, trials in scores.items():
            mean = trials.mean(axis=0)
            slopes[key] = float(drop_slope(rates, mean))
            spread = len(trials) > 1
            lines[key].append(
                Series(
                    name,
                    tuple(float(rate) for rate in rates),
                    tuple(map(float, mean)),
                    tuple(map(float, trials.min(axis=0))) if spread else None,
                    tuple(map(float, trials.max(axis=0))) if spread else None,
                )
            )
        said = reading(slopes["sufficiency"], slopes["comprehensiveness"])
        rows.append(
            Row(
                name,
                (
                    Cell(number(slopes["sufficiency"])),
                    Cell(number(slopes["comprehensiveness"])),
                    Cell(f"{said}: {_MEANING[said]}"),
                ),
            )
        )
    for key, series in lines.items():
        if series:
            section.figures.append(
                Figure(
                    name=f"fidelity_{key}",
                    title=f"Normalised {key}",
                    x_label="share of the rationale's tokens occluded",
                    y_label=f"normalised {key}",
                    series=tuple(series),
                    caption="Mean over instances and trials; the band spans the trials.",
                )
            )
    if rows:
        section.blocks.append(
            Block(("", "slope, sufficiency", "slope, comprehensiveness", "reading"), tuple(rows), "", "fidelity")
        )
        readings = {value: key for key, value in READINGS.items()}
        words = ", ".join(
            f"{name} ({_speed(readings[name][0])}, {_speed(readings[name][1])})"
            for name in ("brevity", "redundancy", "irrelevance", "dependency")
        )
        section.notes.append(
            Note(
                "Reading after Carton et al. (2020), Table 4, by how fast sufficiency and comprehensiveness drop: "
                f"{words}. A slope of −1 loses score in proportion to tokens; that and steeper is read as fast."
            )
        )
    if not names:
        section.missing.append("No predictions were given.")
    return section


def _speed(fast: bool) -> str:
    return "fast" if fast else "slow"
