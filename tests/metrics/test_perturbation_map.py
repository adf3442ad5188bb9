"""MAP of original/perturbed pairs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.perturbation_map import PerturbationMap
from eraser_hub.metrics.rank_consistency import average_precision, find_first_ranks

from ..refusals import refused

tokens = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=15)


def plain_map(original, perturbed):
    """Equation 2, read aloud."""
    return sum(sum(token in original[:i] for token in perturbed[:i]) / i for i in range(1, len(perturbed) + 1)) / len(
        perturbed
    )


def plain_prefix_hits(original, perturbed):
    """The earlier form: a running precision of hits, token j a hit if it is in the original's first j."""
    hits, total = 0, 0.0
    for i, token in enumerate(perturbed, 1):
        hits += token in original[:i]
        total += hits / i
    return total / len(perturbed)


@given(tokens, tokens)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_kernel_is_the_formula(original, perturbed):
    found = average_precision(original, perturbed)
    assert found == pytest.approx((plain_map(original, perturbed), plain_prefix_hits(original, perturbed)), abs=1e-12)
    assert 0 <= found[1] <= found[0] <= 1


@given(tokens)
@settings(max_examples=50, deadline=None, derandomize=True)
def test_an_unchanged_ranking_scores_one_and_a_foreign_one_nothing(ranking):
    assert average_precision(ranking, ranking) == (1.0, 1.0)
    assert average_precision(ranking, [f"other {token}" for token in ranking]) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("original", "perturbed", "expected"),
    [
        (["a", "b"], ["b", "a"], (0.5, 0.25)),  # by hand: (0/1 + 2/2)/2; (0/1 + 1/2)/2
        (["a"], ["a", "a", "a"], (1.0, 1.0)),  # repeated tokens each count
        (["a", "b", "c"], ["c"], (0.0, 0.0)),
        (["a"], ["b", "a"], (0.25, 0.25)),
        ([], ["a"], (0.0, 0.0)),
        (["a"], [], (0.0, 0.0)),
        ([], [], (0.0, 0.0)),
    ],
)
def test_small_cases_by_hand(original, perturbed, expected):
    assert average_precision(original, perturbed) == pytest.approx(expected, abs=1e-12)


def test_first_ranks():
    assert find_first_ranks(["a", "b", "a"], ["a", "b"]).tolist() == [1, 2]
    assert find_first_ranks(["a"], ["z"])[0] > 10**12


def test_long_pairs_keep_their_precision():
    random = np.random.default_rng(0)
    original = [f"t{k}" for k in random.permutation(3000)]
    perturbed = [f"t{k}" for k in random.permutation(3000)]
    ranks = {token: rank for rank, token in enumerate(original, 1)}
    enters = np.maximum([ranks[token] for token in perturbed], np.arange(1, 3001))
    counts = np.array([(enters <= i).sum() for i in range(1, 3001)])
    assert average_precision(original, perturbed)[0] == pytest.approx((counts / np.arange(1, 3001)).mean(), abs=1e-12)


def test_golden_values(golden):
    # golden/small/perturbation.json: 80 cases of the benchmark's scorer
    cases = json.loads((golden / "small" / "perturbation.json").read_text())["cases"]
    assert len(cases) == 80
    for case in cases:
        found = PerturbationMap().compute(predictions=case["predictions"], references=case["golden"])
        assert found["map"] == pytest.approx(case["expected"]["map"], abs=1e-9)


def rows():
    return (
        [
            {"id": 1, "rationale_tokens": [["a", "b"], ["x"]]},
            {"id": "2", "rationale_tokens": [["b", "a"], ["x"]]},
            {"id": 3, "rationale_tokens": [["a", "b"], ["y"]]},
        ],
        [
            {"id": "1", "sample_type": "ori", "rel_ids": [2, "3"]},
            {"id": 2, "sample_type": "disturb", "rel_ids": []},
            {"id": 3, "sample_type": "disturb"},
        ],
    )


def test_pairs_and_sequences_are_averaged_and_an_original_is_one_instance():
    predictions, references = rows()
    found = PerturbationMap().compute(predictions=predictions, references=references, per_instance=True)
    # pair (1, 2): (0.5 + 1) / 2; pair (1, 3): (1 + 0) / 2
    assert found["map"] == pytest.approx((0.75 + 0.5) / 2) and found["pairs"] == 2
    scores = {"map": [0.625], "map_prefix_hits": [(0.625 + 0.5) / 2]}
    assert found["per_instance"] == {**scores, "annotation_id": ["1"], "cluster": [0]}


def test_whole_rankings_have_a_score_of_their_own():
    predictions, references = rows()
    whole = [{**row, "ranked_tokens": row["rationale_tokens"]} for row in predictions]
    found = PerturbationMap().compute(predictions=whole, references=references)
    assert found["map_full_ranking"] == found["map"] == pytest.approx(0.625)


def test_perturbed_records_need_no_reference_of_their_own():
    predictions, references = rows()
    only = PerturbationMap().compute(predictions=predictions, references=references[:1])
    assert only["map"] == PerturbationMap().compute(predictions=predictions, references=references)["map"]


def test_an_original_without_perturbed_records_is_no_pair():
    predictions, references = rows()
    predictions.append({"id": 4, "rationale_tokens": [["q"], ["r"]]})
    references.append({"id": 4, "sample_type": "ori", "rel_ids": []})
    assert PerturbationMap().compute(predictions=predictions, references=references)["pairs"] == 2


@pytest.mark.parametrize(
    ("fields", "rule", "place", "found"),
    [
        ({"rationale_tokens": None}, "type", "", "None"),
        ({"rationale_tokens": []}, "type", "", "[]"),
        ({"rationale_tokens": ["a", "b"]}, "type", "[0]", "'a'"),
        ({"rationale_tokens": [["a", 3], ["x"]]}, "type", "[0]", "3"),
        ({"rationale_tokens": [["a", None], ["x"]]}, "type", "[0]", "None"),
        ({"sample_type": None}, "choice", "", "None"),
        ({"sample_type": "original"}, "choice", "", "'original'"),
        ({"rel_ids": 2}, "type", "", "2"),
        ({"rel_ids": [2, True]}, "type", "", "[2, True]"),
        ({"rel_ids": [2, "2", 3]}, "id-twice", "", "['2', '2', '3']"),
        ({"rel_ids": [1, 2, 3]}, "id-twice", "", "['1', '2', '3']"),
    ],
)
def test_wrong_rows_are_named(fields, rule, place, found):
    predictions, references = rows()
    (field,) = fields
    side = "prediction" if field == "rationale_tokens" else "reference"
    (predictions if side == "prediction" else references)[0].update(fields)
    shown = ["'ori'", "'disturb'"] if rule == "choice" else []
    with refused(rule, f"{side} '1'", f"found {found}", *shown, instance="1", field=f"{field}{place}") as seen:
        PerturbationMap().compute(predictions=predictions, references=references)
    assert seen.first.side == side


def test_records_that_do_not_fit_are_named():
    predictions, references = rows()
    predictions[1]["rationale_tokens"] = [["a"]]
    with refused("length", "2 sequences", "found 1", instance="2", field="rationale_tokens"):
        PerturbationMap().compute(predictions=predictions, references=references)
    predictions, references = rows()
    references[0]["rel_ids"] = [2, 3, 77]
    with refused("id-missing", "reference '77'", "1 of 4 ", instance="77"):
        PerturbationMap().compute(predictions=predictions, references=references)
    predictions, references = rows()
    predictions[0]["id"] = 9
    with refused("id-unknown", "prediction '9'", instance="9"):
        PerturbationMap().compute(predictions=predictions, references=references)


def test_no_pair_at_all_is_an_error():
    predictions, references = rows()
    for row in references:
        row["sample_type"] = "disturb"
    with refused("empty", "'ori'", "rel_ids", "pair"):
        PerturbationMap().compute(predictions=predictions, references=references)


def test_offenders_are_told_in_the_order_of_the_rows():
    predictions, references = rows()
    predictions += [{"id": f"x{at}", "rationale_tokens": [["a"], ["b"]]} for at in range(30)]
    with refused("id-unknown", "30 in all", total=30) as seen:
        PerturbationMap().compute(predictions=predictions, references=references)
    assert [line.split("'")[1] for line in str(seen.error).splitlines()[:10]] == [f"x{at}" for at in range(10)]
    assert [one.instance for one in seen.error.errors] == [f"x{at}" for at in range(10)]
