"""Every score that a module returns has its direction and its range in the module's info."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness
from eraser_hub.metrics.results import HEADLINE

from .eraser_rows import random_case
from .family import MODULES, made_up

# what is no score: settings, counts, words
OTHERS = {
    "signature",
    "aopc_thresholds",
    "pairs",
    "comparisons",
    "undefined_kappas",
    "quotes",
    "empty",
    "occlusion_rates",
    "reading",
}
SCORES_PAGE = Path(__file__).resolve().parents[2] / "docs" / "scores.md"
CURVE = [
    {"annotation_id": name, "occlusion_rate": rate, "trial": trial, "p_full": 0.9, "p_rationale": 0.8 - rate / 3}
    | {"p_complement": 0.3 + rate / 5, "p_empty": 0.4}
    for name in "ab"
    for rate in (0, 0.25, 0.5, 1)
    for trial in (0, 1)
]


def results() -> list[tuple[str, Any, dict[str, Any]]]:
    predictions, references = random_case(4)
    found = [
        (type(module).__name__, module, module.compute(predictions=predictions, references=references, **settings))
        for module, settings in ((EraserAgreement(), {"random_baseline": 2}), (EraserFaithfulness(), {}))
    ]
    for name, kind in MODULES.items():
        rows = made_up(name)
        found.append((name, kind(), kind().compute(predictions=rows[0], references=rows[1])))
    found.append(
        ("curves", MODULES["normalized_fidelity"](), MODULES["normalized_fidelity"]().compute(predictions=CURVE))
    )
    return found


@pytest.mark.parametrize(("name", "module", "found"), [pytest.param(*one, id=one[0]) for one in results()])
def test_every_score_has_direction_and_range(name: str, module: Any, found: dict[str, Any]) -> None:
    info = module.info
    assert set(info.higher_is_better) == set(info.ranges)
    assert set(info.headline) <= set(info.ranges)
    assert info.headline == HEADLINE.get(module.name, ())
    scores = {key: value for key, value in found.items() if key not in OTHERS}
    assert len(scores) > 1 and set(scores) <= set(info.ranges)
    assert set(info.higher_is_better.values()) <= {True, False, None}
    for key, value in scores.items():
        low, high = info.ranges[key]
        for number in value if isinstance(value, list) else [value]:
            assert math.isnan(number) or ((low is None or number >= low) and (high is None or number <= high))


def named_in(cell: str) -> Iterator[str]:
    """The keys in a cell of the table: ``{a,b}_c`` names two, ``*`` stands for any."""
    for words in re.findall(r"`([^`]+)`", cell):
        parts = [part.split(",") for part in re.split(r"[{}]", words)]
        yield from ("".join(parts) for parts in product(*parts))


def test_each_score_has_its_line_in_the_documents():
    lines = [line for line in SCORES_PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    keys = [key for line in lines for key in named_in(line.split("|")[1])]
    modules = (EraserAgreement(), EraserFaithfulness(), *(kind() for kind in MODULES.values()))
    wanted = {key.removesuffix("_std") for module in modules for key in module.info.higher_is_better}
    assert [key for key in sorted(wanted) if not any(fnmatch(key, known) for known in keys)] == []
