"""Figures: the same data give the same bytes; systems look alike everywhere; any name and number is drawn."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import pytest

from eraser_hub.reports.catalogue import METRICS, find_range
from eraser_hub.reports.figures import (
    ERASURE,
    draw_aopc,
    draw_boxes,
    draw_classes,
    draw_fidelity,
    draw_figures,
    draw_intervals,
    find_style,
)
from eraser_hub.scoring.result import Scores

pytest.importorskip("matplotlib", reason="skipped: no matplotlib")

HOSTILE = "<script>&\u202e$a_b^ \ud800 评"


def make_system(name="a", factor=1.0, **more):
    points = [0.1 * factor, 0.2 * factor, 0.4 * factor]
    curves = {"occlusion_rates": [0.0, 0.5, 1.0], "sufficiency_curve": [0.9, None, 0.0]}
    scores = {"aopc_thresholds": [0.01, 0.1, 0.5], "comprehensiveness_aopc_points": points, "sufficiency": 0.1}
    return Scores(name, scores={**scores, **curves, "token_macro_f1": 0.5 * factor}, **more)


def test_curves_have_the_points_and_the_mean_of_random_draws():
    systems, random = [make_system(), make_system("b", 2.0)], [make_system("r0", 0.1), make_system("r1", 0.3)]
    (figure,) = draw_aopc(systems, [*random, systems[0]], {})
    lines = {line.get_label(): line for line in figure.axes.lines}
    assert list(lines["b"].get_xdata()) == [1.0, 10.0, 50.0]
    assert list(lines["b"].get_ydata()) == pytest.approx([0.2, 0.4, 0.8])
    assert list(lines["random (2 draws)"].get_ydata()) == pytest.approx([0.02, 0.04, 0.08])
    apart = draw_aopc(systems, [], {"a": "model of a", "b": "model of b"})
    assert [one.name for one in apart] == ["aopc_comprehensiveness_model_of_a", "aopc_comprehensiveness_model_of_b"]


def test_axes_of_one_kind_are_shared_and_stay_in_the_range_of_a_score():
    one = make_system(intervals={"sufficiency": (-0.4, 0.99), "token_macro_f1": (0.4, 1.0)})
    one.scores["comprehensiveness"] = 0.9
    keys = ["token_macro_f1", "comprehensiveness", "sufficiency"]
    agreement, first, second = (figure.axes.get_xlim() for figure in draw_intervals([one], keys, {}, {}))
    assert agreement == (-0.02, 1.02) and first == second
    assert -1.02 <= first[0] < -0.4 and 0.99 < first[1] <= 1.02


def test_a_system_keeps_its_look_where_another_is_missing():
    assert len({find_style(place) for place in range(49)}) == 49
    second = make_system("b", per_instance={"auprc": [0.5, 0.7]})
    (curve,) = draw_aopc([Scores("none"), second], [], {})
    assert curve.axes.lines[0].get_color() == "#c05400"
    (box,) = draw_boxes([Scores("none"), second])
    assert [patch.get_edgecolor()[:2] for patch in box.axes.patches] == [(0xC0 / 255, 0x54 / 255)]


def test_fidelity_curves_and_bars_by_class():
    one = make_system(by_class={"POS": {"token_macro_f1": 0.25}, "NEG": {"token_macro_f1": math.nan}})
    one.scores["sufficiency_curve_std"] = [0.0, 0.1, 0.0]
    (fidelity,) = draw_fidelity([Scores("none"), one])
    (line,) = fidelity.axes.lines
    assert line.get_color() == "#c05400" and list(line.get_ydata()) == pytest.approx([0.9, math.nan, 0.0], nan_ok=True)
    (bars,) = draw_classes([one], ["token_macro_f1", "auprc"])
    assert bars.axes.patches[0].get_width() == 0.25


@pytest.mark.filterwarnings("error::UserWarning")
def test_files_are_deterministic_and_any_name_is_drawn(tmp_path):
    one = make_system(HOSTILE, intervals={"token_macro_f1": (math.nan, math.inf)}, by_class={HOSTILE: {}, "b": {}})
    one.per_instance["auprc"] = [0.1, None, math.inf, 0.9]
    with pytest.warns(UserWarning, match="missing from font"):
        inline, files = draw_figures([one], ["token_macro_f1"], [], {"token_macro_f1": 0.1}, {}, tmp_path)
        again = draw_figures([one], ["token_macro_f1"], [], {"token_macro_f1": 0.1}, {}, tmp_path)
    assert files == again[1] and not list(tmp_path.iterdir()), "the caller writes them"
    figures = [figure for section in inline.values() for figure in section]
    assert [svg for _, svg in figures] == [svg for section in again[0].values() for _, svg in section]
    assert draw_figures([one], ["auprc"], [], {}, {})[1] == {}, "the browser has more fonts: nothing is warned of"
    assert {path.suffix for path in files} == {".png", ".svg", ".pdf"} and len(files) == 3 * len(figures)
    for _, svg in figures:
        ET.fromstring(svg.replace("xlink:", ""))
        assert (
            "<script" not in svg and "<style" not in svg and "\u202e" not in svg and not re.search(r"#[0-9a-f]{6}", svg)
        ), "the page's colours"


def test_only_scores_without_bounds_have_an_endless_axis():
    endless = {key for key in METRICS if find_range(key) == (-math.inf, math.inf)} - {"pairwise_kappa"}
    assert endless == {f"{side}_entropy" for side in ERASURE} | {f"naopc_{side}" for side in ERASURE}
