"""One verdict, and one meaning of a star: the same in compare, its tables and the report."""

from __future__ import annotations

import html
import json
import re

import pytest

import eraser_hub
from eraser_hub.reports.catalogue import is_precision_or_recall
from eraser_hub.reports.documents import unpack
from eraser_hub.reports.findings import describe_findings
from eraser_hub.scoring.compare import VERDICTS

SETTINGS = {"config": "movies", "split": "val", "minimum_effect": 0.36}


@pytest.fixture(scope="module")
def systems(samples, tmp_path_factory):
    """Two systems and a copy of the second that misses the rationale of one text."""
    folder, copy = samples / "predictions" / "eraser", tmp_path_factory.mktemp("systems") / "near.jsonl"
    ours, theirs = folder / "movies.val.jsonl", folder / "movies.val.baseline.jsonl"
    lines = [json.loads(line) for line in theirs.read_text(encoding="utf-8").splitlines()]
    lines[0]["rationales"][0]["hard_rationale_predictions"] = []
    copy.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return [f"ours={ours}", f"theirs={theirs}", f"near={copy}"]


@pytest.fixture(scope="module")
def compared(hub, systems):
    return eraser_hub.compare(*systems, dataset=hub / "eraser", **SETTINGS)


def find(pattern, text):
    """The first group of a pattern's first match."""
    match = re.search(pattern, text)
    assert match is not None, pattern
    return match[1]


def test_words_are_the_four_and_a_star_is_better(compared):
    tests = [(pair, key, test) for pair in compared["comparisons"] for key, test in pair["keys"].items()]
    words = {test["verdict"] for _, _, test in tests}
    assert words <= set(VERDICTS) and "better" in words
    assert all(test["star"] == (test["verdict"] == "better") for _, _, test in tests)
    assert not {"better", "worse"} & {test["verdict"] for _, _, test in tests if test["exploratory"]}
    small = compared["comparisons"][0]["keys"]["token_macro_f1"]
    assert small["p_holm"] < 0.05 and small["verdict"] == "undecided", "significant, and below the minimum effect"


def test_the_tables_star_the_score_of_the_better_system(compared):
    for pair, table in zip(compared["comparisons"], compared.table().tables, strict=False):
        for (key,), cells in table.rows:
            verdict = pair["keys"][key]["verdict"]
            starred = [name for name in (pair["first"], pair["second"]) if cells[name].better]
            assert starred == {"better": [pair["first"]], "worse": [pair["second"]]}.get(verdict, [])
            assert str(cells["verdict"]) == verdict


def test_the_report_has_the_same_words_and_stars(compared, hub, systems, tmp_path):
    """Its matrix of differences, for every baseline, and its findings."""
    page = eraser_hub.report(hub / "eraser", systems, out=tmp_path / "report", **SETTINGS).page
    text = page.read_text(encoding="utf-8")
    packed = unpack(find(r'id="comparison">([^<]*)<', text))
    assert packed["names"] == list(compared["scores"]) and packed["verdicts"] == list(VERDICTS)
    assert packed["keys"][: packed["headline"]] == compared["family"]
    assert set(packed["keys"]) == {key for key in compared["comparisons"][0]["keys"] if not is_precision_or_recall(key)}
    for pair, tests in zip(compared["comparisons"], packed["tests"], strict=True):
        for key, test in zip(packed["keys"], tests, strict=True):
            own = pair["keys"][key]
            assert VERDICTS[test[5]] == own["verdict"], key
            assert test[0] == pytest.approx(own["difference"], abs=1e-6)
    table = find(r'(?s)(<table id="differences".*?</table>)', text)
    for name in ("ours", "theirs"):
        (pair,) = [one for one in compared["comparisons"] if (one["first"], one["second"]) == (name, "near")]
        for key in compared["family"]:
            cell = find(rf'data-system="{name}" data-key="{key}">(.*?)</td>', table)
            assert cell.startswith("★") == (pair["keys"][key]["verdict"] == "better")
            assert cell.endswith(f"{pair['keys'][key]['verdict']}</small>")
    first = find(r'<ul class="findings">\s*<li>(.*?)</li>', text)
    assert html.unescape(first).endswith(describe_findings(compared)[0]), "perhaps after the name of a model"
