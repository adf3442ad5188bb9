"""Annotations without gold rationale in `score`: what is skipped and said; chance of the scores."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.records.errors import DataError
from eraser_hub.scoring.comparison import Inference, compare_files
from eraser_hub.scoring.runs import System
from eraser_hub.scoring.score import score
from eraser_hub.scoring.scores import average_runs
from eraser_hub.scoring.settings import ScoreSettings
from eraser_hub.scoring.tables import make_comparison_tables
from tests.metrics.eraser_rows import random_case

from .small_corpora import Inputs, written

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    """Six annotations; the first and the fourth have no gold rationale."""
    predictions, references = random_case(2)
    for row in references[::3]:
        row["evidences"] = []
    return written(tmp_path, predictions, references)


@pytest.mark.parametrize("totals", [True, False])
def test_a_corpus_of_ones_own_is_scored_where_it_is_marked(inputs: Inputs, totals: bool):
    skipped = score(*inputs, ScoreSettings(totals_only=totals))
    scored = score(*inputs, ScoreSettings(totals_only=totals, unmarked="score"))
    marked = score(*inputs, ScoreSettings(totals_only=totals, unmarked="skip"))
    assert skipped.as_json() == marked.as_json()
    assert "|unmarked:skip|marked_rows:4|unmarked_rows:2|" in skipped.signature
    assert "|unmarked:score|marked_rows:4|unmarked_rows:2|" in scored.signature
    assert "|n:4|" in skipped.block_signatures[0] and "|n:6|" in skipped.block_signatures[1]
    for key in ("token_macro_f1", "iou_micro_f1", "auprc", "sentence_auprc"):
        for found in (skipped, scored):
            block = found.blocks["agreement"]
            assert block["marked"][key] == pytest.approx(skipped.scores[key])
            assert block["all"][key] == pytest.approx(scored.scores[key])
    assert skipped.scores["comprehensiveness"] == scored.scores["comprehensiveness"]
    assert "agreement leaves out 2 of 6 annotations without gold rationale" in skipped.notes
    assert not [note for note in scored.notes if "without gold" in note]


def test_sums_and_rows_have_the_same_chance(inputs: Inputs):
    sums, rows = (score(*inputs, ScoreSettings(totals_only=totals)) for totals in (True, False))
    assert sums.chance == pytest.approx(rows.chance) and sums.gold == rows.gold


def test_a_released_config_is_scored_as_the_papers_do(inputs: Inputs):
    released = replace(inputs.source, config="movies")
    found = score(released, inputs.results)
    assert "|unmarked:score|" in found.signature and found.gold["comprehensive"] is False
    assert (
        found.describe_gold()[0].startswith("gold of validation: ")
        and "; not comprehensive; " in found.describe_gold()[0]
    )


def test_the_result_equals_the_modules(inputs: Inputs, tmp_path: Path):
    predictions, references = random_case(2)
    for row in references[::3]:
        row["evidences"] = []
    module = EraserAgreement().compute(
        predictions=predictions, references=references, unmarked="skip", chance=True, label_names=["NEG", "POS"]
    )
    found = score(*inputs)
    assert found.chance == pytest.approx(module["chance"])
    assert found.gold == module["gold"] | {"split": "validation", "comprehensive": None}


def test_chance_stands_beside_the_scores(inputs: Inputs, tmp_path: Path):
    found = score(*inputs)
    scores, table = found.table().tables[:2]
    cells = {left[0]: row for left, row in table.rows}
    assert cells["token_macro_f1"]["chance"].value == found.chance["token_macro_f1"]
    assert scores.columns == ("value",)
    assert table.columns == ("chance",)
    written = found.as_json()
    assert written["chance"]["token_macro_f1"] == found.chance["token_macro_f1"]
    assert written["gold"]["unmarked_rows"] == 2
    frame = found.to_frame()
    assert frame.loc["token_macro_f1", "chance"] == found.chance["token_macro_f1"]
    assert "gold of validation: 4 annotations with gold rationale, 2 without" in found.table().written("markdown")


def test_a_comparison_has_the_chance_of_each_system(inputs: Inputs, tmp_path: Path):
    other = tmp_path / "other.jsonl"
    rows = [json.loads(line) for line in inputs.results.read_text().splitlines()]
    for row in rows:
        for rationale in row["rationales"]:
            rationale["hard_rationale_predictions"] = [{"start_token": 0, "end_token": 2}]
    other.write_text("".join(json.dumps(row) + "\n" for row in rows))
    first = score(*inputs)
    settings = ScoreSettings()
    systems = [System("a", (inputs.results,)), System("b", (other,))]
    result = compare_files(inputs.source, systems, settings, Inference(n_resamples=20))
    assert result["chance"]["a"] == first.chance and result["gold"] == first.gold
    table = next(one for one in make_comparison_tables(result).tables if one.name == "chance")
    assert table.columns == ("a, chance", "b, chance")


def test_chance_of_several_runs_is_their_mean(inputs: Inputs):
    one = score(*inputs)
    other = replace(one, chance={"auprc": 0.0})
    both = average_runs([one, other])
    assert both.chance == {"auprc": one.chance["auprc"] / 2}


@pytest.mark.parametrize("unmarked", ["skip", None])
@pytest.mark.parametrize("totals", [True, False])
def test_without_any_gold_agreement_is_left_out(tmp_path: Path, unmarked: str | None, totals: bool):
    predictions, references = random_case(2)
    for row in references:
        row["evidences"] = []
    inputs = written(tmp_path, predictions, references)
    found = score(*inputs, ScoreSettings(unmarked=unmarked, totals_only=totals))
    assert set(found.blocks) == {"faithfulness"} and "token_macro_f1" not in found.scores
    assert not found.gold and "prf" in found.reference["classification_scores"]
    assert "left out: agreement (no gold rationales in any annotation)" in "; ".join(found.notes)
    scored = score(*inputs, ScoreSettings(unmarked="score", totals_only=totals))
    assert scored.scores["token_macro_f1"] == 0 and scored.scores["auprc"] == 0.5  # as the papers' scorer
    assert "no annotation has a gold rationale: scores of agreement are conventions" in "; ".join(scored.notes)


def test_without_gold_and_without_probabilities_nothing_is_scored(tmp_path: Path):
    predictions, references = random_case(2)
    for row in references:
        row["evidences"] = []
    for one in predictions:
        for key in list(one):
            if key not in ("annotation_id", "rationales"):
                del one[key]
    with pytest.raises(DataError, match="gold rationales in any annotation") as refused:
        score(*written(tmp_path, predictions, references))
    assert refused.value.rule == "score-missing"


def test_a_wrong_switch_is_refused():
    with pytest.raises(ValueError, match="expected one of score, skip, found 'drop'"):
        ScoreSettings(unmarked="drop").check()
