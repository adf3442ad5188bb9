"""Alpha and kappas between annotators, with krippendorff, statsmodels and scikit-learn as the second opinion."""

from __future__ import annotations

from itertools import combinations

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from eraser_hub.metrics.annotator_agreement import AnnotatorAgreement
from eraser_hub.metrics.annotators import majority
from eraser_hub.metrics.nominal_agreement import get_expected_kappa

from ..refusals import refused

PEOPLE = ("ann", "bob", "cid", "dot")


def compute(rows, **settings):
    return AnnotatorAgreement().compute(references=rows, **settings)


def draw(seed, texts=12, people=3, density=0.3, labels=3):
    """Texts of people who agree in part: each copies a common mask and a common label, and errs."""
    random = np.random.default_rng(seed)
    rows = []
    for at in range(texts):
        size = int(random.integers(4, 15))
        common, label = random.random(size) < density, int(random.integers(labels))
        marks = np.where(random.random((people, size)) < 0.25, random.random((people, size)) < density, common)
        chosen = [int(random.integers(labels)) if random.random() < 0.3 else label for _ in range(people)]
        rows.append(
            {"annotation_id": at, "annotators": marks.astype(int).tolist(), "labels": [f"l{one}" for one in chosen]}
        )
    return rows


def as_person_rows(rows, names=PEOPLE):
    return [
        {
            "annotation_id": row["annotation_id"],
            "annotator": name,
            "label": label,
            "rationale_positions": [np.flatnonzero(marks).tolist()],
            "num_tokens": [len(marks)],
        }
        for row in rows
        for name, marks, label in zip(names, row["annotators"], row["labels"], strict=False)
    ]


def check_against_the_libraries(found, codes, prefix="", leave_one_out=True):
    """``codes``: (annotators, items)."""
    alpha = krippendorff.alpha(codes, level_of_measurement="nominal")
    assert found[f"{prefix}krippendorff_alpha"] == pytest.approx(alpha, abs=1e-9)
    fleiss = fleiss_kappa(aggregate_raters(codes.T)[0])
    assert found[f"{prefix}fleiss_kappa"] == pytest.approx(fleiss, abs=1e-9)
    pairs = [cohen_kappa_score(one, other) for one, other in combinations(codes, 2)]
    assert found[f"{prefix}pairwise_kappa"] == pytest.approx(np.mean(pairs), abs=1e-9)
    if leave_one_out:
        others = [cohen_kappa_score(own, majority(np.delete(codes, at, 0))) for at, own in enumerate(codes)]
        assert found[f"{prefix}leave_one_out_kappa"] == pytest.approx(np.mean(others), abs=1e-9)


@pytest.mark.parametrize("people", [2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_tokens_equal_the_libraries(seed, people):
    rows = draw(seed, people=people)
    codes = np.concatenate([np.array(row["annotators"]) for row in rows], axis=1)
    check_against_the_libraries(compute(rows), codes)


@pytest.mark.parametrize("seed", range(4))
def test_labels_equal_the_libraries(seed):
    rows = draw(seed, texts=30)
    codes = np.array([[int(label[1]) for label in row["labels"]] for row in rows]).T
    found = compute(rows)
    check_against_the_libraries(found, codes, "label_", leave_one_out=False)
    kappas = []
    for at, own in enumerate(codes):  # the two others have a majority where they agree
        first, second = np.delete(codes, at, 0)
        kappas.append(cohen_kappa_score(own[first == second], first[first == second]))
    assert found["label_leave_one_out_kappa"] == pytest.approx(np.mean(kappas), abs=1e-9)


def test_alpha_with_missing_annotators_equals_krippendorff():
    rows = as_person_rows(draw(5, texts=20, people=4))
    random = np.random.default_rng(0)
    kept = [row for row in rows if random.random() < 0.7]
    sizes = {row["annotation_id"]: row["num_tokens"][0] for row in rows}
    tokens, labels = [], []
    for text, size in sizes.items():
        codes, chosen = np.full((4, size), np.nan), np.full((4, 1), np.nan)
        for row in kept:
            if row["annotation_id"] == text:
                at = PEOPLE.index(row["annotator"])
                codes[at] = np.isin(np.arange(size), row["rationale_positions"][0])
                chosen[at] = int(row["label"][1])
        tokens.append(codes)
        labels.append(chosen)
    with pytest.warns(UserWarning, match="fewer than two annotators"):
        found = compute(kept)
    for prefix, parts in (("", tokens), ("label_", labels)):
        alpha = krippendorff.alpha(np.concatenate(parts, axis=1), level_of_measurement="nominal")
        assert found[f"{prefix}krippendorff_alpha"] == pytest.approx(alpha, abs=1e-9)


def test_rows_of_persons_and_rows_of_texts_give_the_same():
    rows = draw(1)
    found, other = compute(as_person_rows(rows)), compute(rows)
    assert found == other


@pytest.mark.parametrize(("people", "expected"), [(2, 0.29), (3, 0.39), (5, 0.21)])
def test_marks_at_random_have_a_kappa_against_their_own_majority_and_none_between(people, expected):
    """Each marks a fifth of the tokens: the bias that the metric's card names."""
    random = np.random.default_rng(people)
    rows = [
        {"annotation_id": at, "annotators": (random.random((people, 2000)) < 0.2).astype(int).tolist()}
        for at in range(20)
    ]
    found = compute(rows)
    assert round(float(get_expected_kappa(0.2, {people: 1})), 2) == expected
    assert found["cohen_kappa"] == pytest.approx(expected, abs=0.015)
    assert found["cohen_kappa_random"] == pytest.approx(found["cohen_kappa"], abs=0.01)
    # standard deviation of a kappa of 40,000 tokens: about 1 / sqrt(40,000) = .005
    for key in ("krippendorff_alpha", "fleiss_kappa", "pairwise_kappa", "leave_one_out_kappa"):
        assert abs(found[key]) < 0.02, key


def test_intervals_are_drawn_by_document():
    rows = as_person_rows(draw(2, texts=20))
    shared = [{**row, "docids": [f"d{int(row['annotation_id']) // 2}"]} for row in rows]
    own, pairs = compute(rows, confidence_level=0.9), compute(shared, confidence_level=0.9)
    assert "cluster:documents|clusters:10" in pairs["signature"] and "cluster:none|clusters:20" in own["signature"]
    low, high = pairs["krippendorff_alpha_ci"]
    assert low < pairs["krippendorff_alpha"] < high and own["krippendorff_alpha_ci"] != [low, high]


def test_one_code_alone_has_no_agreement_and_many_annotators_no_pairs():
    found = compute([{"annotation_id": "a", "annotators": [[0, 0], [0, 0]], "labels": ["x", "x"]}])
    keys = [key for key in found if key.endswith(("kappa", "alpha"))]
    assert len(keys) == 9 and all(np.isnan(found[key]) for key in keys)
    crowd = [
        {
            "annotation_id": at,
            "annotator": f"{at}-{one}",
            "label": "ab"[(at + one) % 2],
            "rationale_positions": [[one]],
            "num_tokens": [3],
        }
        for at in range(300)
        for one in range(2)
    ]
    with pytest.warns(UserWarning, match="too many annotators"):
        found = compute(crowd)
    assert np.isnan(found["pairwise_kappa"]) and not np.isnan(found["krippendorff_alpha"])


def test_a_person_without_marks_or_without_a_label_counts_where_he_has_the_other():
    rows = [
        {"annotation_id": "a", "annotators": [[0, 1], [0, 1], None], "labels": ["x", None, "y"]},
        {"annotation_id": "b", "annotators": [[1, 0], [0, 1], None], "labels": ["x", "x", "y"]},
    ]
    found = compute(rows)
    tokens = np.array([[0, 1, 1, 0], [0, 1, 0, 1]])
    assert found["krippendorff_alpha"] == pytest.approx(krippendorff.alpha(tokens, level_of_measurement="nominal"))
    labels = np.array([[0, 0], [np.nan, 0], [1, 1]])
    assert found["label_krippendorff_alpha"] == pytest.approx(
        krippendorff.alpha(labels, level_of_measurement="nominal")
    )
    assert found["comparisons"] == 4


GOOD = {"annotation_id": "a", "annotator": "ann", "label": "x", "rationale_positions": [[0]], "num_tokens": [2]}


@pytest.mark.parametrize(
    ("change", "rule", "field"),
    [
        ({"annotator": None}, "type", "annotator"),
        ({"annotator": 1.5}, "type", "annotator"),
        ({"label": ["x"]}, "type", "label"),
        ({"rationale_positions": [[2]]}, "span-bounds", "rationale_positions[0]"),
        ({"rationale_positions": [[-1]]}, "span-bounds", "rationale_positions[0]"),
        ({"rationale_positions": [[0.5]]}, "span-bounds", "rationale_positions[0]"),
        ({"rationale_positions": [None]}, "type", "rationale_positions[0]"),
        ({"num_tokens": None}, "length", "num_tokens"),
        ({"num_tokens": [2, 3]}, "length", "num_tokens"),
        ({"num_tokens": [-1]}, "length", "num_tokens"),
        ({"annotator": "ann"}, "id-twice", "annotator"),
        ({"num_tokens": [3]}, "length", "num_tokens"),
    ],
)
def test_wrong_rows_of_persons_are_named(change, rule, field):
    rows = [GOOD, {**GOOD, "annotator": "bob", **change}]
    with refused(rule, instance="a", field=field, total=1):
        compute(rows)


def test_names_that_stand_twice_are_refused():
    row = {"annotation_id": "a", "annotators": [[0], [1]], "annotator_names": ["ann", "ann"]}
    with refused("id-twice", instance="a", field="annotator_names", total=1):
        compute([row])
    with refused("length", instance="a", field="labels", total=1):
        compute([{"annotation_id": "a", "annotators": [[0], [1]], "labels": ["x"]}])


def test_equal_ids_of_two_splits_are_two_texts():
    rows = as_person_rows(draw(3, texts=4))
    both = [{**row, "split": split} for split in ("train", "test") for row in rows]
    found = compute(both, per_instance=True)
    assert len(found["per_instance"]["annotation_id"]) == 8 and found["comparisons"] == 24
