"""The documents of a report show the gold that `--gold` chooses, and the report says what the gold is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import eraser_hub
from eraser_hub.reports.documents import unpack
from eraser_hub.reports.report_page import make_report
from eraser_hub.scoring.runs import System
from eraser_hub.scoring.settings import ScoreSettings

TOKENS = ["a", "very", "good", "film", "indeed"]
MARKS = {"Ana": [0, 0, 1, 0, 0], "Boris": [0, 1, 1, 0, 0], "Chai": [0, 0, 1, 0, 1]}
SHOWN = {
    "evidence": [[0, 1, 3, 1], [0, 2, 3, 0], [0, 2, 3, 2], [0, 4, 5, 2]],
    "majority": [[0, 2, 3, 0]],
    "union": [[0, 1, 3, 0], [0, 4, 5, 0]],
}
WORDS = {"evidence": "gold evidence, group 1", "majority": "gold: more than half of the annotators",
         "union": "gold: any annotator"}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A post that three people marked, and one without people's marks in a corpus of its own file."""
    folder = tmp_path_factory.mktemp("forms")
    rows = [
        {"id": "one", "tokens": TOKENS, "who": who, "marked": marks, "label": "good"} for who, marks in MARKS.items()
    ]
    columns: dict[str, Any] = {"tokens": "tokens", "mask": "marked", "label": "label", "id": "id", "annotator": "who"}
    eraser_hub.import_corpus({"test": rows}, "posts", out=folder / "corpora", **columns)
    eraser_hub.build("own", source=folder / "corpora", out=folder / "hub")
    answer = {"annotation_id": "one", "classification": "good", "classification_scores": {"good": 1.0}}
    spans = [{"start_token": 2, "end_token": 3}]
    answer["rationales"] = [{"docid": "one", "hard_rationale_predictions": spans,
                             "soft_rationale_predictions": [0.1, 0.4, 0.9, 0.2, 0.3]}]  # fmt: skip
    (folder / "ours.jsonl").write_text(json.dumps(answer) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("form", SHOWN)
def test_the_documents_show_the_chosen_gold(place: Path, form: Any, tmp_path: Path) -> None:
    made = make_report(
        place / "hub" / "posts",
        config="posts",
        split="test",
        systems=[System("ours", (place / "ours.jsonl",))],
        out=tmp_path,
        settings=ScoreSettings(gold=form),
    )
    page = made.page.read_text(encoding="utf-8")
    (row,) = unpack(re.search(r'id="chunk-0">([^<]*)<', page).group(1))["rows"]  # type: ignore[union-attr]
    assert sorted(row["gold"]) == SHOWN[form]
    assert WORDS[form] in page
    assert (
        "gold of test: 1 annotations with gold rationale, 0 without" in page and "comprehensive or not: unknown" in page
    )
    density = {"evidence": "60.0%", "union": "60.0%"}.get(form, "20.0%")
    assert f"{density} of the tokens are gold where there is any" in page
