"""Fidelity curves: normalised sufficiency and comprehensiveness as tokens of the rationale are occluded at random.

Source: Carton, Rathore and Tan (2020), section 5.2 and Table 4; curves, slopes and reading are those of the metric
module ``normalized_fidelity``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .catalogue import number
from .figures import Figure, Series
from .scores import SystemScores
from .tables import Block, Cell, Note, Row, Section

_MEANING = {
    "brevity": "few tokens, most of them needed",
    "redundancy": "several parts say the same",
    "irrelevance": "many tokens that do not matter",
    "dependency": "tokens that work together",
    "undefined": "the curve starts at 0",
}
_TABLE_4 = (
    "Reading after Carton et al. (2020), Table 4, by how sufficiency and comprehensiveness drop: brevity (fast, fast), "
    "redundancy (slow, fast), irrelevance (slow, slow), dependency (fast, slow). A slope of −1 loses score in "
    "proportion to tokens; that and steeper is read as fast."
)


def fidelity_section(systems: Sequence[SystemScores]) -> Section:
    """The curves of every system whose predictions hold them, with the slopes and the reading of Table 4."""
    section = Section("fidelity-section", "Fidelity curves")
    for key in ("sufficiency", "comprehensiveness"):
        series = [line for k, system in enumerate(systems) if (line := _curve(system, key, k)) is not None]
        if series:
            section.figures.append(
                Figure(
                    name=f"fidelity_{key}",
                    title=f"Normalised {key}",
                    x_label="share of the rationale's tokens occluded",
                    y_label=f"normalised {key}",
                    series=tuple(series),
                    caption="Mean over instances and trials."
                    + (" Bands: one standard deviation over trials." if any(line.low for line in series) else ""),
                )
            )
    rows = []
    for system in systems:
        said = system.scores.get("reading")
        if isinstance(said, str):
            cells = [
                Cell(number(system.number(key)), _small(system, key), system.name, key)
                for key in ("sufficiency_slope", "comprehensiveness_slope")
            ]
            rows.append(Row(system.name, (*cells, Cell(f"{said}: {_MEANING.get(said, '')}"))))
        else:
            section.missing.append(
                f"No curve for {system.name}: the predictions have no occluded_scores or no null_classification_scores "
                "(probabilities on the rationale with tokens occluded, and on the empty input; "
                "`eraser-hub explain --fidelity-trials 5` writes them)."
            )
    if rows:
        head = ("system", "slope, sufficiency", "slope, comprehensiveness", "reading")
        section.blocks.append(Block(head, tuple(rows), "", "fidelity"))
        section.notes.append(Note(_TABLE_4))
    if not systems:
        section.missing.append("No predictions were given.")
    return section


def _small(system: SystemScores, key: str) -> str:
    interval = system.intervals.get(key)
    return "" if interval is None else f"[{number(interval[0])}, {number(interval[1])}]"


def _curve(system: SystemScores, key: str, place: int) -> Series | None:
    rates, points = system.scores.get("occlusion_rates"), system.scores.get(f"{key}_curve")
    if not isinstance(rates, Sequence) or not isinstance(points, Sequence):
        return None
    spread = system.scores.get(f"{key}_curve_std")
    y = tuple(math.nan if point is None else float(point) for point in points)
    low = high = None
    if isinstance(spread, Sequence) and all(s is not None and math.isfinite(s) for s in spread) and any(spread):
        low = tuple(point - s for point, s in zip(y, spread, strict=True))
        high = tuple(point + s for point, s in zip(y, spread, strict=True))
    return Series(system.name, tuple(map(float, rates)), y, low, high, place=place)
