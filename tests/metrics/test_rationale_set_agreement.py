"""Agreement with the best of several gold sets."""

from __future__ import annotations

import json
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.rationale_set_agreement import RationaleSetAgreement
from eraser_hub.metrics.rationale_sets import f1, iou, set_scores, truth_for

index_sets = st.sets(st.integers(0, 9), min_size=1, max_size=5)


def compute(predictions, references, **settings):
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
    truth = truth_for(golds, predicted)
    score, single, hit = set_scores(golds, predicted)
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
    assert set_scores(golds, data.draw(st.sampled_from(golds))) == (1.0, 1.0, True)


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
    assert truth_for([frozenset(gold) for gold in golds], frozenset(predicted)) == truth


def test_iou_of_one_half_is_a_hit():
    assert set_scores([{1, 2, 3}], {1, 2, 4}) == (pytest.approx(2 / 3), pytest.approx(2 / 3), True)  # 2 of 4
    assert set_scores([{1, 2, 3}], {1, 2, 4}, 0.51)[2] is False
    assert set_scores([{1, 2, 3}], {1, 4})[2] is False  # 1 of 4


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


def labelled(label, full, alone, rest, name=1):
    return {
        "id": name, "rationale": [[1]], "pred_label": label, "pred_proba": full,
        "rationale_pred_proba": alone, "non_rationale_pred_proba": rest,
    }  # fmt: skip


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
    assert set(compute([{"id": 1, "rationale": [[1]], "pred_label": 1}], GOLD)) == {
        "token_f1", "token_f1_single", "iou_f1", "signature",
    }  # fmt: skip


def test_answers():
    gold = [{**GOLD[0], "answers": ["north of France", "the north"]}]
    found = compute([{"id": 1, "rationale": [[1]], "answer": "in the north"}], gold)
    assert found["answer_f1"] == pytest.approx(2 / 3)
    assert "answers:by text" in found["signature"]
    label = compute([{"id": 1, "rationale": [[1]], "pred_label": "in the north"}], gold)
    assert label["answer_f1"] == found["answer_f1"]
    none = compute([{"id": 1, "rationale": [[1]], "answer": ""}], [{**GOLD[0], "answer": ""}], language="zh")
    assert none["answer_f1"] == 1.0


@pytest.mark.parametrize(
    ("prediction", "reference", "message"),
    [
        ({"rationale": 3}, {}, r"prediction '1': rationale: expected indices for 1 sequences, found 3"),
        ({"rationale": [[1], [2]]}, {}, r"rationale: expected indices for 1 sequences"),
        ({"rationale": [1]}, {}, r"rationale\[0\]: expected a list of token indices, found 1"),
        ({"rationale": [[-1]]}, {}, r"rationale\[0\]: expected token indices from 0, found -1"),
        ({"rationale": [[1.0]]}, {}, r"found 1.0"),
        ({"rationale": [[True]]}, {}, r"found True"),
        ({"rationale": [["a"]]}, {}, r"found 'a'"),
        ({"rationale": [[10**30]]}, {}, r"expected token indices"),
        ({"rationale": [["٣"]]}, {}, r"expected token indices"),
        (
            {"rationale": [[5]]},
            {"tokens": [["a", "b"]]},
            r"rationale\[0\]: expected an index within the 2 tokens, found 5",
        ),
        (
            {},
            {"rationale_ids": [[["9"]]], "tokens": [["a", "b"]]},
            r"reference '1': rationale_ids\[0\]\[0\]: .*within the 2",
        ),
        ({}, {"rationale_ids": []}, r"reference '1': rationale_ids: expected gold sets per sequence"),
        ({}, {"rationale_ids": None}, r"rationale_ids"),
        ({}, {"rationale_ids": [[]]}, r"rationale_ids\[0\]: expected at least one gold set"),
        ({}, {"rationale_ids": [["1"]]}, r"rationale_ids\[0\]\[0\]: expected a list of token indices, found '1'"),
        ({"pred_proba": [0.5, 0.5]}, {}, r"pred_label: expected it beside pred_proba"),
        ({"pred_label": 1, "rationale_pred_proba": [0.5, 0.5]}, {}, r"pred_proba: expected it beside"),
        (labelled(2, [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]), {}, r"pred_proba: expected a probability of the label 2"),
        (labelled("a", [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]), {}, r"label 'a'"),
        (labelled(1.0, [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]), {}, r"pred_label: expected a class number or a label"),
        (labelled(1, [0.5, 0.6], [0.5, 0.5], [0.5, 0.5]), {}, r"pred_proba: .*sum to 1"),
        (labelled(1, [0.5, 0.5], [-0.5, 1.5], [0.5, 0.5]), {}, r"rationale_pred_proba: .*found -0.5"),
        (labelled(1, [0.5, 0.5], [0.5, float("nan")], [0.5, 0.5]), {}, r"rationale_pred_proba: .*nan"),
        (labelled(1, [0.5, 0.5], [0.5, 0.5], "x"), {}, r"non_rationale_pred_proba"),
        ({"answer": 3}, {"answer": "a"}, r"prediction '1': answer: expected a string, found 3"),
        ({"answer": "a"}, {}, r"reference '1': answers: expected the gold answers"),
        ({"answer": "a"}, {"answers": [1]}, r"answers"),
    ],
)
def test_wrong_rows_are_named(prediction, reference, message):
    with pytest.raises(ValueError, match=message):
        compute([{"id": 1, "rationale": [[1]], **prediction}], [{**GOLD[0], **reference}])


def test_an_optional_field_in_some_rows_is_refused_at_the_first_that_deviates():
    rows = [labelled(1, [0.1, 0.9], [0.2, 0.8], [0.5, 0.5], name) for name in range(3)]
    rows[2]["pred_proba"] = None
    gold = [{"id": name, "rationale_ids": [[[1]]]} for name in range(3)]
    with pytest.raises(ValueError, match=r"prediction '2': pred_proba: expected it in all rows or in none, found none"):
        compute(rows, gold)


@pytest.mark.parametrize(
    "wrong", [{"iou_threshold": 0}, {"iou_threshold": 1.5}, {"iou_threshold": "a"}, {"language": "fr"}]
)
def test_settings_out_of_range(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
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
    result = RationaleSetAgreement().compute(predictions=rows, references=references, per_instance=True)
    assert result["new_p"] == 0.5 and result["per_instance"]["new_p"] == [1, 0, 0, 1]
    part = RationaleSetAgreement().compute(predictions=rows[:1], references=references, paper="wang2022")
    assert part["new_p"] == 0.25  # of all gold records
    with pytest.raises(ValueError, match=r"'1'.*non_rationale_pred_label: expected an answer \(a string\), found 3"):
        RationaleSetAgreement().compute(predictions=[answer_row("1", "a", "a", 3)], references=references[:1])
