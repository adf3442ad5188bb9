"""MAP and New-P by the authors' own denominators, and what they are of. Golden values: golden/presets (synthetic)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.perturbation_map import PerturbationMap
from eraser_hub.metrics.rationale_set_agreement import RationaleSetAgreement

from ..refusals import refused

Rows = list[dict[str, Any]]


def map_rows(case: dict[str, Any]) -> tuple[Rows, Rows]:
    """Predictions with the top ceil(kd n) of each ranking, and the gold records."""
    predictions = []
    for row in case["rankings"]:
        full = [[token for _, token in sequence] for sequence in row["ranking"]]
        ratios = case["ratios"] * len(full) if len(case["ratios"]) == 1 else case["ratios"]
        tops = [sequence[: math.ceil(kd * len(sequence))] for sequence, kd in zip(full, ratios, strict=True)]
        predictions.append({"id": row["id"], "rationale_tokens": tops, "ranked_tokens": full, "kd": case["ratios"]})
    references = [
        {"id": row["sent_id"], "sample_type": row["sample_type"], "rel_ids": row.get("rel_ids", [])}
        for row in case["records"]
    ]
    return predictions, references


def test_map_is_that_of_the_authors_code(golden: Path) -> None:
    """map_top.json: MAP of top tokens and of whole rankings, divided by the perturbed gold records, scored or not."""
    cases = json.loads((golden / "presets" / "map_top.json").read_text("utf-8"))["cases"]
    partly = 0
    for case in cases:
        predictions, references = map_rows(case)
        found = PerturbationMap().compute(predictions=predictions, references=references, paper="wang2022")
        assert found["map"] == pytest.approx(case["expected"]["map_top_ceil"], abs=1e-9)
        assert found["map_full_ranking"] == pytest.approx(case["expected"]["map_full"], abs=1e-9)
        shares = ",".join(f"{share:g}" for share in dict.fromkeys(case["ratios"]))
        assert f"|ranked:kd {shares}|paper:wang2022|" in found["signature"]
        partly += found["pairs"] < sum(row["sample_type"] == "disturb" for row in references)
    assert partly > 3  # what the denominator is about


def test_without_the_preset_map_is_over_the_pairs_scored(golden: Path) -> None:
    for case in json.loads((golden / "presets" / "map_top.json").read_text("utf-8"))["cases"]:
        predictions, references = map_rows(case)
        held = {str(row["id"]) for row in predictions}
        if not any({str(row["id"]), str(other)} <= held for row in references for other in row["rel_ids"]):
            with refused("empty", "rel_ids", "pair"):
                PerturbationMap().compute(predictions=predictions, references=references, only_predicted=True)
            continue
        found = PerturbationMap().compute(predictions=predictions, references=references, only_predicted=True)
        perturbed = sum(row["sample_type"] == "disturb" for row in references)
        assert found["map"] * found["pairs"] / perturbed == pytest.approx(case["expected"]["map_top_ceil"], abs=1e-9)


def set_rows(case: dict[str, Any]) -> tuple[Rows, Rows]:
    predictions = [
        {
            "id": row["id"],
            "rationale": row["expected"]["rationale"],
            "pred_label": row["expected"]["pred_label"],
            "pred_proba": row["expected"]["p_full"],
            "rationale_pred_proba": row["expected"]["p_rationale"],
            "non_rationale_pred_proba": row["expected"]["p_rest"],
        }
        for row in case["records"]
    ]
    ids = [row["id"] for row in case["records"]]
    ids += [f"missing {number}" for number in range(case["gold_records"] - len(ids))]
    width = len(case["records"][0]["ranking"])
    return predictions, [{"id": name, "rationale_ids": [[[0]]] * width} for name in ids]


def test_new_p_is_that_of_the_authors_code(golden: Path) -> None:
    """wang2022.json: New-P, sufficiency and comprehensiveness of ranked texts; New-P is a share of the gold records."""
    cases = json.loads((golden / "presets" / "wang2022.json").read_text("utf-8"))["cases"]
    for case in cases:
        predictions, references = set_rows(case)
        found = RationaleSetAgreement().compute(predictions=predictions, references=references, paper="wang2022")
        for key in ("new_p", "sufficiency", "comprehensiveness"):
            assert found[key] == pytest.approx(case["expected"][key], abs=1e-9)
        assert "|paper:wang2022|" in found["signature"]
        if len(predictions) < len(references):
            alone = RationaleSetAgreement().compute(predictions=predictions, references=references, only_predicted=True)
            assert alone["new_p"] * len(predictions) == pytest.approx(found["new_p"] * len(references), abs=1e-9)
    assert any(case["gold_records"] > len(case["records"]) for case in cases)


def test_a_paper_that_says_nothing_of_a_score_is_refused() -> None:
    rows = [{"id": 1, "rationale_tokens": [["a"]]}, {"id": 2, "rationale_tokens": [["a"]]}]
    with refused("option-value", "'wang2022'", "found 'eraser'", field="paper"):
        PerturbationMap().compute(predictions=rows, references=rows, paper="eraser")
    with pytest.raises(TypeError, match="'paper'"):
        EraserAgreement().compute(predictions=rows, references=rows, paper="wang2022")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([{"kd": 0.25}, {"kd": 0.25}], "kd 0.25"),
        ([{"kd": [0.5, 0.25]}, {"kd": [0.5, 0.25]}], "kd 0.5,0.25"),
        ([{"kd": 0.25}, {"kd": 0.5}], "kd 0.25 or 0.5"),
        ([{}, {}], "0.333 of the tokens"),
    ],
)
def test_the_signature_says_what_was_ranked(more: Rows, said: str) -> None:
    predictions = [{"id": at, "rationale_tokens": [["a"], ["b"]], **more[at]} for at in (0, 1)]
    tokens = [["a", "b", "c"]] * 2
    references = [
        {"id": 0, "sample_type": "ori", "rel_ids": [1], "tokens": tokens},
        {"id": 1, "sample_type": "disturb", "tokens": tokens},
    ]
    found = PerturbationMap().compute(predictions=predictions, references=references)
    assert f"|ranked:{said}|" in found["signature"]


@pytest.mark.parametrize("wrong", [0, 1.5, "x", [0.5, None], [], True])
def test_a_kd_that_is_no_share_is_refused(wrong: Any) -> None:
    predictions = [{"id": at, "rationale_tokens": [["a"]], "kd": wrong} for at in (0, 1)]
    references = [{"id": 0, "sample_type": "ori", "rel_ids": [1]}, {"id": 1, "sample_type": "disturb"}]
    with refused("range", f"found {wrong!r}", instance="0", field="kd"):
        PerturbationMap().compute(predictions=predictions, references=references)


def test_single_sets_unions_and_accuracies() -> None:
    """By hand: two gold sets, both predicted; the union scores 1, the better one alone 2 * 2 / (2 + 3)."""
    row = {"id": 1, "rationale": [[1, 2, 4]], "pred_label": 1, "pred_proba": [0.2, 0.8]}
    row |= {"rationale_pred_proba": [0.4, 0.6], "non_rationale_pred_proba": [0.7, 0.3]}
    other = {**row, "id": 2, "rationale_pred_proba": [0.6, 0.4]}
    references = [{"id": name, "rationale_ids": [[[1, 2], [4]]], "label": 1} for name in (1, 2)]
    found = RationaleSetAgreement().compute(predictions=[row, other], references=references)
    assert found["token_f1"] == 1 and found["token_f1_single"] == pytest.approx(0.8)
    assert found["accuracy_rationale"] == 0.5 and found["accuracy_no_rationale"] == 0
    references[1]["label"] = -1  # no label
    found = RationaleSetAgreement().compute(predictions=[row, other], references=references)
    assert found["accuracy_rationale"] == 1


def test_rows_without_gold_count_where_they_can() -> None:
    row = {"rationale": [[1]], "pred_label": 1, "pred_proba": [0.2, 0.8], "rationale_pred_proba": [0.4, 0.6]}
    predictions = [{**row, "id": name} for name in (1, 2)]
    references = [
        {"id": 1, "rationale_ids": [[[1]]], "has_gold": True},
        {"id": 2, "rationale_ids": None, "has_gold": False},
    ]
    with pytest.warns(UserWarning, match="token F1 and IOU F1 .* 1 references"):
        found = RationaleSetAgreement().compute(predictions=predictions, references=references)
    assert found["token_f1"] == 1 and found["sufficiency"] == pytest.approx(0.2)
    with pytest.warns(UserWarning, match=r"token F1, IOU F1 \(no rationale_ids in the references\)"):
        found = RationaleSetAgreement().compute(predictions=predictions[1:], references=references[1:])
    assert "token_f1" not in found and found["sufficiency"] == pytest.approx(0.2)
