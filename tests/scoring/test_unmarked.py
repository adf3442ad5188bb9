"""Annotations without gold rationale in `score`: what is skipped and said; chance of the scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.errors import DataError
from eraser_hub.scoring.score import ScoreSettings, score
from tests.metrics.eraser_rows import random_case

from .small_corpora import Inputs, written

pytestmark = pytest.mark.filterwarnings("ignore")


def draw_rows(step: int) -> tuple[list[dict], list[dict]]:
    """Six predictions and annotations; one annotation of ``step`` has no gold rationale."""
    predictions, references = random_case(2)
    for row in references[::step]:
        row["evidences"] = []
    return predictions, references


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    """Six annotations; the first and the fourth have no gold rationale."""
    return written(tmp_path, *draw_rows(3))


@pytest.mark.parametrize("by_rows", [True, False])
def test_a_corpus_of_ones_own_is_scored_where_it_is_marked(inputs: Inputs, by_rows: bool):
    skipped, scored, marked = (
        score(*inputs, ScoreSettings(per_instance=by_rows, unmarked=unmarked)) for unmarked in (None, "score", "skip")
    )
    assert skipped.as_json() == marked.as_json()
    assert "|unmarked:skip|marked_rows:4|unmarked_rows:2|" in skipped.signature
    assert "|unmarked:score|marked_rows:4|unmarked_rows:2|" in scored.signature
    assert "|n:4|" in skipped.signatures[0] and "|n:6|" in skipped.signatures[1]
    for key in ("token_macro_f1", "iou_micro_f1", "auprc", "sentence_auprc"):
        for found in (skipped, scored):
            assert found.subsets["marked"][key] == pytest.approx(skipped[key])
            assert found.subsets["all"][key] == pytest.approx(scored[key])
    assert skipped["comprehensiveness"] == scored["comprehensiveness"]
    assert "agreement leaves out 2 of 6 annotations without gold rationale" in skipped.notes
    assert not [note for note in scored.notes if "without gold" in note]


def test_a_released_config_is_scored_as_the_papers_do(inputs: Inputs):
    found = score(replace(inputs.source, config="movies"), inputs.results)
    assert "|unmarked:score|" in found.signature and found.gold["comprehensive"] is False
    (line, *_) = found.describe_gold()
    assert line.startswith("gold of validation: ") and "; not comprehensive; " in line


def test_chance_is_the_modules_and_stands_beside_the_scores(inputs: Inputs):
    predictions, references = draw_rows(3)
    options: Any = {"unmarked": "skip", "chance": True, "label_names": ["NEG", "POS"]}
    module = EraserAgreement().compute(predictions=predictions, references=references, **options)
    found = score(*inputs)
    assert found.chance == pytest.approx(module["chance"])
    assert found.gold == module["gold"] | {"split": "validation", "comprehensive": None}
    cells = {left[0]: row for left, row in found.table().tables[0].rows}
    assert cells["token_macro_f1"]["chance"].value == found.chance["token_macro_f1"]
    assert "gold of validation: 4 annotations with gold rationale, 2 without" in found.table().written("markdown")


@pytest.mark.parametrize("by_rows", [True, False])
def test_without_any_gold_agreement_is_left_out(tmp_path: Path, by_rows: bool):
    predictions, references = draw_rows(1)
    inputs = written(tmp_path, predictions, references)
    found = score(*inputs, ScoreSettings(per_instance=by_rows))
    assert list(found.statistics) == ["eraser_faithfulness"] and "token_macro_f1" not in found
    assert not found.gold and found.to_eraser().keys() == {"classification_scores"}
    assert "agreement leaves out 6 of 6 annotations without gold rationale" in found.notes
    scored = score(*inputs, ScoreSettings(unmarked="score", per_instance=by_rows))
    assert scored["token_macro_f1"] == 0 and scored["auprc"] == 0.5  # as the papers' scorer
    assert "no annotation has a gold rationale: scores of agreement are conventions" in "; ".join(scored.notes)
    bare = [{key: one[key] for key in ("annotation_id", "rationales")} for one in predictions]
    with pytest.raises(DataError, match="nothing to score"):
        score(*written(tmp_path, bare, references))
