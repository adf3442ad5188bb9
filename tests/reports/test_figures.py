"""Figures: the same data give the same bytes, in the page and in the files for a paper."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.reports.curves import make_aopc_figures, make_distribution_figures
from eraser_hub.reports.figures import Figure, Series, get_series_style, render_svg
from eraser_hub.reports.sections import make_fidelity_section
from eraser_hub.scoring.result import Scores

pytestmark = pytest.mark.unit


def system(name="a", factor=1.0, **more):
    points = [0.1 * factor, 0.2 * factor, 0.4 * factor]
    scores = {"aopc_thresholds": [0.01, 0.1, 0.5], "comprehensiveness_aopc_points": points}
    return Scores(name, scores={**scores, **more})


def test_aopc_curves_and_chance():
    (figure,) = make_aopc_figures([system(), system("b", 2.0)], [system("r0", 0.1), system("r1", 0.3)])
    assert figure.series[0].x == (1.0, 10.0, 50.0) and figure.series[0].y == (0.1, 0.2, 0.4)
    chance = figure.series[2]
    assert chance.chance and chance.name == "random (mean of 2 draws)"
    assert chance.y == pytest.approx((0.02, 0.04, 0.08)) and chance.low == pytest.approx((0.01, 0.02, 0.04))
    assert make_aopc_figures([Scores("none")], []) == []


def test_series_are_told_apart_without_colour():
    figure = Figure("f", "t", "x", "y", tuple(Series(str(i), (0, 1), (i, i)) for i in range(6)))
    assert len({style[1:] for style in get_series_style(figure)}) == 6


def test_a_system_looks_alike_where_another_is_missing():
    """The second system keeps its colour, dash and marker in a figure to which the first has nothing to give."""
    more: dict[str, Any] = {
        "occlusion_rates": [0.0, 1.0],
        "sufficiency_curve": [0.9, 0.0],
        "comprehensiveness_curve": [0.9, 0.0],
    }
    first = Scores("a", per_instance={"token_f1": [0.5]})
    second = system("b", **more)
    second.per_instance.update(auprc=[0.5], token_f1=[0.25])
    both, alone = make_distribution_figures([first, second], ["token_f1", "auprc"])
    wanted = get_series_style(both)[1]
    assert wanted != get_series_style(both)[0] and get_series_style(alone) == [wanted]
    assert [get_series_style(f) for f in make_aopc_figures([first, second], [])] == [[wanted]]
    assert [get_series_style(f)[0] for f in make_fidelity_section([first, second]).figures] == [wanted, wanted]


def test_fidelity_with_and_without():
    more = {
        "occlusion_rates": [0.0, 0.5, 1.0],
        "sufficiency_curve": [0.9, 0.5, 0.0],
        "comprehensiveness_curve": [0.9, 0.8, 0.0],
        "sufficiency_curve_std": [0.0, 0.1, 0.0],
        "comprehensiveness_curve_std": [0.0, 0.1, 0.0],
    }
    section = make_fidelity_section([system(**more), system("b")])
    assert [figure.name for figure in section.figures] == ["fidelity_sufficiency", "fidelity_comprehensiveness"]
    assert section.figures[0].series[0].high == pytest.approx((0.9, 0.6, 0.0))
    assert section.missing and "for b" in section.missing[0]


def test_fidelity_of_each_class():
    curves: dict[str, Any] = {f"{key}_curve": [0.9, 0.5, 0.0] for key in ("sufficiency", "comprehensiveness")}
    of_classes = {"POS": curves, "NEG": {**curves, "sufficiency_curve": [0.8, 0.1, None]}}
    split = replace(system(**curves, occlusion_rates=[0.0, 0.5, 1.0]), name="s", by_class=of_classes)
    figures = make_fidelity_section([split]).figures
    assert [figure.name for figure in figures][2:] == [
        "fidelity_sufficiency_by_class_1",
        "fidelity_comprehensiveness_by_class_1",
    ]
    assert figures[2].title == "Normalised sufficiency, s by class"
    assert [line.name for line in figures[2].series] == ["NEG", "POS"] and figures[2].series[0].y[1] == 0.1
    one = replace(split, by_class={"POS": curves})
    assert len(make_fidelity_section([one]).figures) == 2  # the curves of all say it


floats = st.floats(allow_nan=True, allow_infinity=True, width=32)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(floats, min_size=1, max_size=8), st.text(max_size=20))
def test_any_numbers_and_names_make_an_svg(values, name):
    x = tuple(float(i) for i in range(len(values)))
    figure = Figure("f", name, name, name, (Series(name, x, tuple(values), tuple(values), tuple(values)),))
    drawn = render_svg(figure)
    assert drawn == render_svg(figure) and "nan" not in drawn.lower().replace(name.lower(), "")
    printable = "".join(c for c in drawn if c.isprintable())
    ET.fromstring(printable)


def test_files_for_a_paper_are_deterministic(tmp_path):
    pytest.importorskip("matplotlib", reason="skipped: no matplotlib")
    from eraser_hub.reports.plots import draw_figures

    figures = make_aopc_figures([system("$a_b^", 1.0)], [system("r", 0.1)])
    figures += make_distribution_figures([Scores("a", per_instance={"auprc": [0.1, 0.9]})], ["auprc"])
    one, two = (draw_figures(figures, tmp_path) for _ in range(2))
    assert [path.name for path in one] == [
        f"{figure}.{kind}"
        for figure in ("aopc_comprehensiveness", "distribution_auprc")
        for kind in ("png", "svg", "pdf")
    ]
    assert one == two and all(len(content) > 2000 for content in one.values()) and not list(tmp_path.iterdir())


def test_distribution():
    scores = Scores("a", per_instance={"auprc": [0.0, 0.5, 1.0, None, math.nan]})
    (figure,) = make_distribution_figures([scores], ["auprc", "sufficiency"])
    assert sum(figure.series[0].y) == pytest.approx(1.0) and len(figure.series[0].x) == 21
    assert "3 instances, median 0.500" in figure.caption
