"""Agreement with the best of several gold sets; labels and answers on the rationale alone and on the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eraser_hub.metrics.errors import DataError
from eraser_hub.metrics.rationale_set_agreement import RationaleSetAgreement
from eraser_hub.metrics.sets import answer_f1, find_truth, split_answer

GOLD = [{"id": 1, "rationale_ids": [[[1]]]}]
MARKED = {"id": 1, "rationale": [[1]]}
HALVES = [0.5, 0.5]
FULL, ALONE, REST = "pred_proba", "rationale_pred_proba", "non_rationale_pred_proba"


def compute(predictions, references, **settings) -> Any:
    return RationaleSetAgreement().compute(predictions=predictions, references=references, **settings)


def labelled(label, full, alone, rest, name: Any = 1):
    return {"id": name, "rationale": [[1]], "pred_label": label, FULL: full, ALONE: alone, REST: rest}


def test_golden_values(golden):
    # golden/small/perturbation.json: 80 cases of the benchmark's scorer
    for case in json.loads((golden / "small" / "perturbation.json").read_text("utf-8"))["cases"]:
        found = compute(case["predictions"], case["golden"])
        for key in ("token_f1", "iou_f1", "sufficiency", "comprehensiveness"):
            assert found[key] == pytest.approx(case["expected"][key], abs=1e-9)


def test_paper_divides_new_p_by_the_gold_records(golden):
    # golden/presets/wang2022.json: the authors' code
    for case in json.loads((golden / "presets" / "wang2022.json").read_text("utf-8"))["cases"]:
        predictions = []
        for row in case["records"]:
            e = row["expected"]
            one = labelled(e["pred_label"], e["p_full"], e["p_rationale"], e["p_rest"], row["id"])
            predictions.append(one | {"rationale": e["rationale"]})
        ids = [row["id"] for row in case["records"]]
        ids += [f"missing {number}" for number in range(case["gold_records"] - len(ids))]
        references = [{"id": name, "rationale_ids": [[[0]]] * len(predictions[0]["rationale"])} for name in ids]
        found = compute(predictions, references, paper="wang2022")
        for key in ("new_p", "sufficiency", "comprehensiveness"):
            assert found[key] == pytest.approx(case["expected"][key], abs=1e-9)
        alone = compute(predictions, references, only_predicted=True)
        assert alone["new_p"] * len(predictions) == pytest.approx(found["new_p"] * len(references), abs=1e-9)


@pytest.mark.parametrize(
    ("golds", "predicted", "truth"),
    [
        ([{1, 2}, {1, 3}], {1}, {1, 2}),  # the first of equals
        ([{1, 2}, {3, 4}], {1, 2, 3, 4}, {1, 2, 3, 4}),  # a union
        ([{1, 2}, {7, 8, 9, 3}, {3, 4}], {1, 2, 3, 4}, {1, 2, 3, 4}),  # what is skipped stays out
        ([{5}, {6}], {7}, set()),
        ([{5}], {7}, {5}),
        ([set(), {1}], {1}, {1}),
    ],
)
def test_which_truth(golds, predicted, truth):
    assert find_truth([frozenset(gold) for gold in golds], frozenset(predicted)) == truth


def test_sequences_repeated_indices_and_unions():
    row = {"id": "1", "rationale": [["3", 3, 4], [0]]}
    found = compute([row], [{"id": 1, "rationale_ids": [[["3", "4"]], [["1"], [2]]]}], per_instance=True)
    assert found["token_f1"] == 0.5 and found["iou_f1"] == 0.5
    assert set(found) == {"token_f1", "token_f1_single", "iou_f1", "signature", "per_instance"}
    found = compute([{"id": 1, "rationale": [[1, 2, 4]]}], [{"id": 1, "rationale_ids": [[[1, 2], [4]]]}])
    assert found["token_f1"] == 1 and found["token_f1_single"] == pytest.approx(0.8)
    half, more = [{"id": 1, "rationale": [[1, 2, 4]]}], [{"id": 1, "rationale_ids": [[[1, 2, 3]]]}]
    assert compute(half, more)["iou_f1"] == 1 and compute(half, more, iou_threshold=0.51)["iou_f1"] == 0


def test_labels_from_lists_and_from_dicts():
    lists = compute([labelled(1, [0.1, 0.9], [0.25, 0.75], [0.6, 0.4])], [{**GOLD[0], "label": 1}])
    assert lists["sufficiency"] == pytest.approx(0.15) and lists["comprehensiveness"] == pytest.approx(0.5)
    assert (lists["new_p"], lists["accuracy_rationale"], lists["accuracy_no_rationale"]) == (1, 1, 0)
    named = [{"no": p[0], "yes": p[1], "other": None} for p in ([0.1, 0.9], [0.25, 0.75], [0.6, 0.4])]
    assert compute([labelled("yes", *named)], [{**GOLD[0], "label": "yes"}]) == lists
    assert "accuracy_rationale" not in compute([labelled("yes", *named)], [{**GOLD[0], "label": -1}])


def test_rows_without_gold_sets_count_where_they_can():
    predictions = [labelled(1, [0.2, 0.8], [0.4, 0.6], HALVES, name) for name in (1, 2)]
    with pytest.warns(UserWarning, match="without rationale_ids: 1"):
        found = compute(predictions, [GOLD[0], {"id": 2, "rationale_ids": None}], per_instance=True)
    assert found["token_f1"] == 1 and found["per_instance"]["sufficiency"] == pytest.approx([0.2, 0.2])
    with pytest.raises(DataError, match="rationale_ids"):
        compute([MARKED], [{"id": 1, "rationale_ids": []}])


def test_answers():
    gold = [{**GOLD[0], "answers": ["north of France", "the north"]}]
    assert compute([{**MARKED, "answer": "in the north"}], gold)["answer_f1"] == pytest.approx(2 / 3)
    keys = ("pred_label", "rationale_pred_label", "non_rationale_pred_label")
    said = [("in May", "in May", "in June"), ("in May",) * 3, ("in May", "In May", ""), ("", "", "in May")]
    rows = [{"id": at, "rationale": [[1]], **dict(zip(keys, each, strict=True))} for at, each in enumerate(said)]
    found = compute(rows, [{**GOLD[0], "id": at, "answer": "in May"} for at in range(4)], per_instance=True)
    assert found["per_instance"]["new_p"] == [1, 0, 0, 1] and found["per_instance"]["answer_f1"] == [1, 1, 1, 0]


@pytest.mark.parametrize(
    ("predicted", "golds", "expected"),
    [
        ("The North!", "north", 1),
        ("to be or not to be", "to be", 2 * 2 / 8),  # words count as often as they stand in both
        ("", [], 1),
        ("north", "", 0),
        ("市北京", "北京，市", 4 / 6),  # the longest common run: 北京
        ("2008年", "2008 年。", 1),
        ("NBA篮球", "nba", 2 / 4),
    ],
)
def test_answers_by_hand(predicted, golds, expected):
    assert answer_f1(predicted, golds) == pytest.approx(expected)


def test_units_of_answers():
    assert split_answer("A dog's, an  owl; the U.S.", "en") == ["dogs", "owl", "us"]
    assert split_answer("在2008年，NBA ok！", "zh") == ["在", "2008", "年", "nba", "ok"]


@pytest.mark.parametrize(
    ("prediction", "reference", "field", "found"),
    [
        ({"rationale": [[1], [2]]}, {}, "rationale", "[[1], [2]]"),
        ({"rationale": [[-1]]}, {}, "rationale[0]", "-1"),
        ({"rationale": [[1.0]]}, {}, "rationale[0][0]", "1.0"),
        ({"rationale": [["٣"]]}, {}, "rationale[0]", "٣"),
        ({"rationale": [[5]]}, {"tokens": [["a", "b"]]}, "rationale[0]", "to 1, found 5"),
        ({FULL: HALVES}, {}, "pred_label", "none"),
        ({"pred_label": 1, ALONE: HALVES}, {}, FULL, "none"),
        (labelled(2, HALVES, HALVES, HALVES), {}, FULL, "'2'"),
        (labelled(1.0, HALVES, HALVES, HALVES), {}, "pred_label", "1.0"),
        (labelled(1, HALVES, [0.5, float("nan")], HALVES), {}, ALONE, "nan"),
        (labelled(1, HALVES, HALVES, "x"), {}, REST, "'x'"),
        ({"answer": "a"}, {}, "answers", "none"),
        ({}, {"rationale_ids": [[]]}, "rationale", "[[]]"),
        ({}, {"rationale_ids": [[["9"]]], "tokens": [["a", "b"]]}, "rationale_ids[0]", "9"),
    ],
)
def test_wrong_rows_are_named(prediction, reference, field, found):
    with pytest.raises(DataError) as caught:
        compute([MARKED | prediction], [{**GOLD[0], **reference}])
    assert (caught.value.instance, caught.value.field) == ("1", field) and found in caught.value.message


@pytest.mark.parametrize(("name", "value"), [("iou_threshold", 0), ("iou_threshold", "a"), ("language", "fr")])
def test_settings_out_of_range(name, value):
    with pytest.raises(DataError, match=repr(value)) as caught:
        compute([MARKED], GOLD, **{name: value})
    assert caught.value.argument == name
