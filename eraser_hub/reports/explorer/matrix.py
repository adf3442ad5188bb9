"""The paired comparison of any number of systems as one matrix: differences from a baseline that the reader chooses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from eraser_hub.scoring.compare import BETTER, VERDICTS

from ..catalogue import format_interval, format_number, is_precision_or_recall, metric
from ..documents import pack
from ..findings import Test, list_tests
from ..report_tables import STAR, Block, ShownCell, ShownRow, format_p_value, get_sort_key

CAPTION = "By how much each system is better than "


def pack_comparison(result: Mapping[str, Any]) -> str:
    """Return a comparison for the page, gzip in base64; scores of precision and recall are left out.

    Its JSON has ``names``, ``keys``, ``headline`` (number of the keys in the family), ``verdicts`` (the words),
    ``groups`` (family of each key), and ``tests``: for each pair of names (first before second, row by row) a list of
    [difference, low, high, p, corrected p, verdict's place] or null for each key.
    """
    tested = {key for pair in result["comparisons"] for key in pair["keys"]}
    others = sorted(tested - set(result["family"]), key=get_sort_key)
    keys = [*result["family"], *(key for key in others if not is_precision_or_recall(key))]
    return pack(
        {
            "names": list(result["scores"]),
            "keys": keys,
            "labels": [metric(key).label for key in keys],
            "groups": [metric(key).family for key in keys],
            "headline": len(result["family"]),
            "verdicts": list(VERDICTS),
            "tests": [[_pack_test(pair["keys"].get(key)) for key in keys] for pair in result["comparisons"]],
        }
    )


def _pack_test(test: Mapping[str, Any] | None) -> list[float | int | None] | None:
    numbers = () if test is None else (test["difference"], *test["ci"], test["p"], test["p_holm"])
    known = [None if one is None or math.isnan(one) else round(one, 6) for one in numbers]
    return None if test is None or known[0] is None else [*known, VERDICTS.index(test["verdict"])]


def make_matrix_block(result: Mapping[str, Any], baseline: str) -> Block:
    """Return the differences of all systems from a baseline in the headline scores.

    Args:
        result: of a comparison.
        baseline: the system that is subtracted.
    """
    keys = list(result["family"])
    tests = {(one.system, one.other, one.key): one for one in list_tests(result, exploratory=True)}
    rows = []
    for name in result["scores"]:
        if name != baseline:
            cells = tuple(_make_cell(tests.get((name, baseline, key)), name, key) for key in keys)
            rows.append(ShownRow(name, cells))
    head = ("system", *(metric(key).label for key in keys))
    return Block(head, tuple(rows), f"{CAPTION}{baseline}", "differences", head_keys=("", *keys))


def _make_cell(test: Test | None, system: str, key: str) -> ShownCell:
    if test is None or math.isnan(test.difference):
        return ShownCell("")
    sign = "+" if test.difference > 0 and float(format_number(test.difference)) else ""
    ends = "" if math.isnan(test.low) else format_interval((test.low, test.high))
    words = " · ".join(filter(None, (ends, f"p {format_p_value(test.p)}", test.verdict)))
    return ShownCell(f"{STAR * (test.verdict == BETTER)}{sign}{format_number(test.difference)}", words, system, key)
