"""The matrix of methods: its numbers, runs on the diagonal, what is missing and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from eraser_hub.reports.sections import make_agreement_section
from eraser_hub.scoring.mask_leaks import compute_document_interval
from eraser_hub.scoring.settings import ScoreSettings

pytestmark = pytest.mark.unit

PLAIN = ScoreSettings(confidence_level=None)


def answers(**scores: list[float]) -> dict[str, dict[str, Any]]:
    """Predictions with these soft scores by instance."""
    return {
        name: {"rationales": [{"docid": name, "soft_rationale_predictions": values}]} for name, values in scores.items()
    }


def test_cells_are_means_over_shared_instances() -> None:
    first = answers(a=[3.0, 2.0, 1.0], b=[1.0, 2.0, 3.0], c=[1.0, 2.0, 3.0])
    second = answers(a=[3.0, 1.0, 2.0], b=[1.0, 2.0, 3.0], c=[1.0, 1.0, 1.0])
    section = make_agreement_section(["x", "y"], [[first], [second]], PLAIN)
    tau, overlap = section.blocks
    # taus 1/3 and 1; the third is undefined, since a ranking without differences is none
    assert [[cell.text for cell in row.cells] for row in tau.rows] == [["–", "0.667"], ["0.667", "–"]]
    assert tau.rows[0].cells[1].small == "n 2"
    # of three tokens the top tenth is one: the same in a and b; the third has none
    assert overlap.rows[0].cells[1].text == "1.000" and overlap.rows[0].cells[1].small == "n 2"


def test_runs_of_one_system_stand_on_the_diagonal() -> None:
    runs = [answers(a=[1.0, 2.0, 3.0]), answers(a=[1.0, 2.0, 3.0]), answers(a=[3.0, 2.0, 1.0])]
    section = make_agreement_section(["x"], [runs], PLAIN)
    assert section.blocks[0].rows[0].cells[0].text == "-0.333"  # 1, -1, -1


def test_what_is_missing_is_said() -> None:
    bare = {"a": {"rationales": [{"docid": "a"}]}}
    section = make_agreement_section(["x", "y"], [[answers(a=[1.0])], [bare]], PLAIN)
    lacking, too_few = section.missing
    assert not section.blocks and lacking.startswith("y: ") and "soft_rationale_predictions" in lacking
    assert "two methods" in too_few


def test_means_have_intervals_over_documents() -> None:
    first = answers(a=[3.0, 2.0, 1.0], b=[1.0, 2.0, 3.0], c=[2.0, 1.0, 3.0])
    second = answers(a=[3.0, 1.0, 2.0], b=[1.0, 2.0, 3.0], c=[1.0, 3.0, 2.0])
    section = make_agreement_section(["x", "y"], [[first], [second]], ScoreSettings(confidence_level=0.5))
    cell = section.blocks[0].rows[0].cells[1]  # taus 1/3, 1 and -1/3
    low, high = map(float, cell.small.removesuffix("] n 3").removeprefix("[").split(", "))
    assert cell.text == "0.333" and -1 <= low < 1 / 3 < high <= 1
    wide = make_agreement_section(["x", "y"], [[first], [second]], ScoreSettings(confidence_level=0.95))
    assert wide.blocks[0].rows[0].cells[1].small == "n 3", "at 95 % it would cover the whole range"


def test_instances_that_share_documents_are_drawn_together() -> None:
    values, settings = np.array([0.0, 0.0, 1.0, 1.0]), ScoreSettings(confidence_level=0.95)
    near, each = 0.4 + values / 10, replace(settings, cluster_by="none")
    apart = compute_document_interval(near, [("a",), ("b",), ("c",), ("d",)], settings)
    assert apart is not None and 0 < apart[0] < 0.45 < apart[1] < 1
    assert apart == compute_document_interval(near, [("a",)] * 4, each)
    # two documents, each with both of its values, do not differ: at most a share of 1 - .025^(1/2) of all does
    bounds = compute_document_interval(values, [("a",), ("b",), ("a",), ("b",)], settings)
    assert bounds == pytest.approx((0.5 * 0.025**0.5, 1 - 0.5 * 0.025**0.5))
    mirrored = compute_document_interval(values - 0.5, [("a",), ("b",), ("a",), ("b",)], settings, -1.0)
    assert mirrored == pytest.approx((0.025**0.5 - 1, 1 - 0.025**0.5))
    assert compute_document_interval(values, [("a",)] * 4, settings) is None
    assert compute_document_interval(values, [("a",)] * 4, PLAIN) is None
