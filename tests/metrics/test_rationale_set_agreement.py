"""Agreement with the best of several gold sets."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.rationale_set_agreement import RationaleSetAgreement
from eraser_hub.metrics.rationale_sets import f1, find_truth, iou, score_against_sets

from ..refusals import refused

index_sets = st.sets(st.integers(0, 9), min_size=1, max_size=5)


def compute(predictions, references, **settings) -> Any:
    return RationaleSetAgreement().compute(predictions=predictions, references=references, **settings)


def test_golden_values(golden):
    # golden/small/perturbation.json: 80 cases of the benchmark's scorer
    cases = json.loads((golden / "small" / "perturbation.json").read_text())["cases"]
    for case in cases:
        found = compute(case["predictions"], case["golden"])
        for key in ("token_f1", "iou_f1", "sufficiency", "comprehensiveness"):
            assert found[key] == pytest.approx(case["expected"][key], abs=1e-9)


@given(st.lists(index_sets, min_size=1, max_size=4), index_sets)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_truth_is_between_the_best_single_set_and_the_best_union(golds, predicted):
    truth = find_truth(golds, predicted)
    score, single, hit = score_against_sets(golds, predicted)
    assert score == f1(truth, predicted) and hit == (iou(truth, predicted) >= 0.5)
    assert single == max(f1(gold, predicted) for gold in golds)
    if len(golds) == 1:
        assert truth == golds[0]
        return
    assert score >= max(f1(gold, predicted) for gold in golds)
    unions = [set().union(*some) for size in range(1, 5) for some in combinations(golds, size)]
    assert score <= max(f1(union, predicted) for union in unions)
    assert not truth or truth in unions
    if not any(gold & predicted for gold in golds):
        assert truth == frozenset()


@given(st.lists(index_sets, min_size=1, max_size=4), st.data())
@settings(max_examples=50, deadline=None, derandomize=True)
def test_a_gold_set_predicted_scores_one(golds, data):
    assert score_against_sets(golds, data.draw(st.sampled_from(golds))) == (1.0, 1.0, True)


@pytest.mark.parametrize(
    ("golds", "predicted", "truth"),
    [
        ([{1, 2}, {1, 3}], {1}, {1, 2}),  # the first of equals
        ([{1, 2}, {3, 4}], {1, 2, 3, 4}, {1, 2, 3, 4}),  # a union
        ([{1, 2}, {7, 8, 9, 3}, {3, 4}], {1, 2, 3, 4}, {1, 2, 3, 4}),  # what is skipped stays out
        ([{9}, {1}], {9, 1}, {9, 1}),
        ([{5}, {6}], {7}, set()),
        ([{5}], {7}, {5}),
        ([set(), {1}], {1}, {1}),
    ],
)
def test_which_truth(golds, predicted, truth):
    assert find_truth([frozenset(gold) for gold in golds], frozenset(predicted)) == truth


def test_iou_of_one_half_is_a_hit():
    assert score_against_sets([{1, 2, 3}], {1, 2, 4}) == (pytest.approx(2 / 3), pytest.approx(2 / 3), True)  # 2 of 4
    assert score_against_sets([{1, 2, 3}], {1, 2, 4}, 0.51)[2] is False
    assert score_against_sets([{1, 2, 3}], {1, 4})[2] is False  # 1 of 4


def test_empty_sides_count_nothing():
    found = compute(
        [{"id": 1, "rationale": [[]]}, {"id": 2, "rationale": [[]]}],
        [{"id": 1, "rationale_ids": [[[1]]]}, {"id": 2, "rationale_ids": [[[]]]}],
    )
    assert (found["token_f1"], found["iou_f1"]) == (0.0, 0.0)


def test_strings_integers_repeated_indices_and_sequences():
    found = compute(
        [{"id": "1", "rationale": [["3", 3, 4], [0]]}],
        [{"id": 1, "rationale_ids": [[["3", "4"]], [["1"], [2]]]}],
        per_instance=True,
    )
    assert found["token_f1"] == 0.5 and found["iou_f1"] == 0.5
    assert set(found) == {"token_f1", "token_f1_single", "iou_f1", "signature", "per_instance"}


def labelled(label, full, alone, rest, name: Any = 1):
    probabilities = {"pred_proba": full, "rationale_pred_proba": alone, "non_rationale_pred_proba": rest}
    return {"id": name, "rationale": [[1]], "pred_label": label, **probabilities}


GOLD = [{"id": 1, "rationale_ids": [[[1]]]}]


def test_label_scores_from_lists_and_from_dicts():
    lists = compute([labelled(1, [0.1, 0.9], [0.25, 0.75], [0.6, 0.4])], GOLD)
    assert lists["sufficiency"] == pytest.approx(0.15) and lists["comprehensiveness"] == pytest.approx(0.5)
    assert lists["new_p"] == 1.0
    named = [{"no": one[0], "yes": one[1], "other": None} for one in ([0.1, 0.9], [0.25, 0.75], [0.6, 0.4])]
    dicts = compute([labelled("yes", *named)], GOLD)
    assert {key: dicts[key] for key in lists if key != "signature"} == {
        key: lists[key] for key in lists if key != "signature"
    }


@pytest.mark.parametrize(
    ("alone", "rest", "expected"),
    [
        ([0.2, 0.8], [0.8, 0.2], 1.0),
        ([0.2, 0.8], [0.2, 0.8], 0.0),
        ([0.8, 0.2], [0.8, 0.2], 0.0),
        ([0.8, 0.2], [0.2, 0.8], 0.0),
    ],
)
def test_new_p_wants_the_label_from_the_rationale_alone(alone, rest, expected):
    assert compute([labelled(1, [0.1, 0.9], alone, rest)], GOLD)["new_p"] == expected


def test_only_what_the_fields_allow():
    row = labelled(1, [0.1, 0.9], [0.25, 0.75], None)
    assert set(compute([row], GOLD)) == {"token_f1", "token_f1_single", "iou_f1", "sufficiency", "signature"}
    # a label without probabilities is the benchmark's plain prediction
    plain = set(compute([{"id": 1, "rationale": [[1]], "pred_label": 1}], GOLD))
    assert plain == {"token_f1", "token_f1_single", "iou_f1", "signature"}


def test_answers():
    gold = [{**GOLD[0], "answers": ["north of France", "the north"]}]
    found = compute([{"id": 1, "rationale": [[1]], "answer": "in the north"}], gold)
    assert found["answer_f1"] == pytest.approx(2 / 3)
    assert "answers:by text" in found["signature"]
    label = compute([{"id": 1, "rationale": [[1]], "pred_label": "in the north"}], gold)
    assert label["answer_f1"] == found["answer_f1"]
    none = compute([{"id": 1, "rationale": [[1]], "answer": ""}], [{**GOLD[0], "answer": ""}], language="zh")
    assert none["answer_f1"] == 1.0


HALVES = [0.5, 0.5]
FULL, ALONE, REST = "pred_proba", "rationale_pred_proba", "non_rationale_pred_proba"


@pytest.mark.parametrize(
    ("prediction", "rule", "field", "found"),
    [
        ({"rationale": 3}, "length", "rationale", "3"),
        ({"rationale": [[1], [2]]}, "length", "rationale", "[[1], [2]]"),
        ({"rationale": [1]}, "type", "rationale[0]", "1"),
        ({"rationale": [[-1]]}, "type", "rationale[0]", "-1"),
        ({"rationale": [[1.0]]}, "type", "rationale[0]", "1.0"),
        ({"rationale": [[True]]}, "type", "rationale[0]", "True"),
        ({"rationale": [["a"]]}, "type", "rationale[0]", "'a'"),
        ({"rationale": [[10**30]]}, "type", "rationale[0]", 10**30),
        ({"rationale": [["٣"]]}, "type", "rationale[0]", "'٣'"),
        ({FULL: HALVES}, "key-missing", "pred_label", "none"),
        ({"pred_label": 1, ALONE: HALVES}, "key-missing", FULL, "none"),
        (labelled(2, HALVES, HALVES, HALVES), "score-missing", FULL, "[0.5, 0.5]"),
        (labelled("a", HALVES, HALVES, HALVES), "score-missing", FULL, "[0.5, 0.5]"),
        (labelled(1.0, HALVES, HALVES, HALVES), "type", "pred_label", "1.0"),
        (labelled(1, [0.5, 0.6], HALVES, HALVES), "probabilities", FULL, "a sum of 1.1"),
        (labelled(1, HALVES, [-0.5, 1.5], HALVES), "probabilities", ALONE, "-0.5"),
        (labelled(1, HALVES, [0.5, float("nan")], HALVES), "probabilities", ALONE, "nan"),
        (labelled(1, HALVES, HALVES, "x"), "probabilities", REST, "'x'"),
        ({"answer": 3}, "type", "answer", "3"),
    ],
)
def test_wrong_predictions_are_named(prediction, rule, field, found):
    shown = {"length": ["1 sequences"], "score-missing": [f"label {prediction.get('pred_label')!r}"]}.get(rule, [])
    with refused(rule, "prediction '1'", f"found {found}", *shown, instance="1", field=field):
        compute([{"id": 1, "rationale": [[1]], **prediction}], [{**GOLD[0], "answer": "a"}])


@pytest.mark.parametrize(
    ("prediction", "reference", "rule", "field", "found"),
    [
        ({}, {"rationale_ids": [[["9"]]], "tokens": [["a", "b"]]}, "range", "rationale_ids[0][0]", "9"),
        ({}, {"rationale_ids": []}, "span-missing", "rationale_ids", "[]"),
        ({}, {"rationale_ids": None}, "span-missing", "rationale_ids", "None"),
        ({}, {"rationale_ids": [[]]}, "span-missing", "rationale_ids[0]", "[]"),
        ({}, {"rationale_ids": [["1"]]}, "type", "rationale_ids[0][0]", "'1'"),
        ({"answer": "a"}, {}, "type", "answers", "None"),
        ({"answer": "a"}, {"answers": [1]}, "type", "answers", "[1]"),
    ],
)
def test_wrong_references_are_named(prediction, reference, rule, field, found):
    with refused(rule, "reference '1'", f"found {found}", instance="1", field=field):
        compute([{"id": 1, "rationale": [[1]], **prediction}], [{**GOLD[0], **reference}])


def test_a_predicted_index_past_the_tokens_is_named():
    with refused("range", "prediction '1'", "2 tokens", "found 5", instance="1", field="rationale[0]"):
        compute([{"id": 1, "rationale": [[5]]}], [{**GOLD[0], "tokens": [["a", "b"]]}])


def test_references_without_any_gold_set_are_named():
    with refused("empty", "references", "rationale_ids"):
        compute([{"id": 1, "rationale": [[0]]}], [{"id": 1, "rationale_ids": None, "has_gold": False}])


def test_an_optional_field_in_some_rows_is_refused_at_the_first_that_deviates():
    rows = [labelled(1, [0.1, 0.9], [0.2, 0.8], [0.5, 0.5], name) for name in range(3)]
    rows[2]["pred_proba"] = None
    gold = [{"id": name, "rationale_ids": [[[1]]]} for name in range(3)]
    with refused("key-missing", "prediction '2'", "found none", instance="2", field="pred_proba"):
        compute(rows, gold)


@pytest.mark.parametrize(
    "wrong", [{"iou_threshold": 0}, {"iou_threshold": 1.5}, {"iou_threshold": "a"}, {"language": "fr"}]
)
def test_settings_out_of_range(wrong):
    ((name, value),) = wrong.items()
    with refused("option-value", f"{name}: ", f"found {value!r}", field=name):
        compute([{"id": 1, "rationale": [[1]]}], GOLD, **wrong)


def answer_row(name, full, alone, rest):
    return {"id": name, "pred_label": full, "rationale_pred_label": alone, "non_rationale_pred_label": rest}


def test_new_p_compares_answers_as_strings():
    rows = [
        answer_row("1", "in May", "in May", "in June"),
        answer_row("2", "in May", "in May", "in May"),
        answer_row("3", "in May", "In May", ""),
        answer_row("4", "", "", "in May"),
    ]
    references = [{"id": row["id"], "rationale_ids": [[[0]]], "answers": ["in May"]} for row in rows]
    result: Any = RationaleSetAgreement().compute(predictions=rows, references=references, per_instance=True)
    assert result["new_p"] == 0.5 and result["per_instance"]["new_p"] == [1, 0, 0, 1]
    part: Any = RationaleSetAgreement().compute(predictions=rows[:1], references=references, paper="wang2022")
    assert part["new_p"] == 0.25  # of all gold records
    with refused("type", "found 3", instance="1", field="non_rationale_pred_label"):
        RationaleSetAgreement().compute(predictions=[answer_row("1", "a", "a", 3)], references=references[:1])
