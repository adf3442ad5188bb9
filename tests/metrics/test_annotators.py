"""Agreement of annotators, with krippendorff, statsmodels and scikit-learn as the second opinion."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import cohen_kappa_score, f1_score, precision_recall_fscore_support
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from eraser_hub.metrics.annotator_agreement import AnnotatorAgreement
from eraser_hub.metrics.annotators import compare_marks, majority, majority_of_others, read_annotated_texts
from eraser_hub.metrics.errors import DataError

PEOPLE = ("ann", "bob", "cid", "dot")
GOOD = {"annotation_id": "a", "annotator": "ann", "label": "x", "rationale_positions": [[0]], "num_tokens": [2]}
marks = st.tuples(st.integers(2, 5), st.integers(1, 12)).flatmap(lambda shape: arrays(bool, shape))


def compute(rows, **settings):
    return AnnotatorAgreement().compute(references=rows, **settings)


def draw(seed, texts=12, people=3):
    """Texts of people who agree in part: each copies a common mask and a common label, and errs."""
    random, rows = np.random.default_rng(seed), []
    for at in range(texts):
        size, label = int(random.integers(4, 15)), int(random.integers(3))
        errs, marks = random.random((people, size)) < 0.25, random.random((people, size)) < 0.3
        given = np.where(errs, marks, random.random(size) < 0.3).astype(int).tolist()
        labels = [int(random.integers(3)) if random.random() < 0.3 else label for _ in range(people)]
        rows.append({"annotation_id": at, "annotators": given, "labels": [f"l{one}" for one in labels]})
    return rows


def as_person_rows(rows):
    people = []
    for row in rows:
        for name, own, label in zip(PEOPLE, row["annotators"], row["labels"], strict=False):
            marks = {"rationale_positions": [np.flatnonzero(own).tolist()], "num_tokens": [len(own)]}
            people.append({"annotation_id": row["annotation_id"], "annotator": name, "label": label, **marks})
    return people


@given(marks)
@settings(max_examples=100, deadline=None, derandomize=True)
@pytest.mark.filterwarnings("ignore")
def test_comparison_with_the_majority_agrees_with_scikit_learn(given_marks):
    truth, found = majority(given_marks), compare_marks(given_marks, majority(given_marks))
    for at, own in enumerate(given_marks):
        p, r, f1, _ = precision_recall_fscore_support(truth, own, average="binary", zero_division=0)
        assert (found["p"][at], found["r"][at], found["f1"][at]) == pytest.approx((p, r, f1), abs=1e-12)
        kappa = cohen_kappa_score(truth, own, labels=[False, True])
        one_code = len({*own.tolist(), *truth.tolist()}) == 1
        assert found["cohen_kappa"][at] == pytest.approx(np.nan if one_code else kappa, abs=1e-12, nan_ok=True)
        others = majority(np.delete(given_marks, at, axis=0))
        assert majority_of_others(given_marks)[at].tolist() == others.tolist()


@pytest.mark.parametrize("people", [2, 3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_scores_equal_the_libraries(seed, people):
    rows = draw(seed, people=people)
    found, given_marks = compute(rows), [np.array(row["annotators"]) for row in rows]
    labels = np.array([[int(label[1]) for label in row["labels"]] for row in rows]).T
    for prefix, codes in (("", np.concatenate(given_marks, axis=1)), ("label_", labels)):
        alpha = krippendorff.alpha(codes, level_of_measurement="nominal")
        assert found[f"{prefix}krippendorff_alpha"] == pytest.approx(alpha, abs=1e-9)
        assert found[f"{prefix}fleiss_kappa"] == pytest.approx(fleiss_kappa(aggregate_raters(codes.T)[0]), abs=1e-9)
    for key in ("cohen_kappa", "p", "r", "f1"):
        values = np.concatenate([compare_marks(each, majority(each))[key] for each in given_marks])
        assert found[key] == pytest.approx(np.nanmean(values), abs=1e-9)
        assert found[f"{key}_std"] == pytest.approx(np.nanstd(values), abs=1e-7)
    alone = [
        f1_score(others, own, zero_division=0)
        for each in given_marks
        for own, others in zip(each, majority_of_others(each), strict=True)
        if own.any() or others.any()
    ]
    assert found["leave_one_out_f1"] == pytest.approx(np.mean(alone), abs=1e-9)
    assert found["comparisons"] == people * len(rows)


def test_missing_annotators_equal_krippendorff():
    random, rows = np.random.default_rng(0), as_person_rows(draw(5, texts=20, people=4))
    kept = [row for row in rows if random.random() < 0.7]
    codes = [np.full((4, row["num_tokens"][0]), np.nan) for row in rows[::4]]
    for row in kept:
        own = np.isin(np.arange(row["num_tokens"][0]), row["rationale_positions"][0])
        codes[row["annotation_id"]][PEOPLE.index(row["annotator"])] = own
    with pytest.warns(UserWarning, match="fewer than two annotators"):
        found = compute(kept)
    alpha = krippendorff.alpha(np.concatenate(codes, axis=1), level_of_measurement="nominal")
    assert found["krippendorff_alpha"] == pytest.approx(alpha, abs=1e-9)


def test_both_forms_of_rows_give_the_same_and_equal_ids_of_two_splits_are_two_texts():
    rows = draw(1)
    assert compute(as_person_rows(rows)) == compute(rows)
    both = [{**row, "split": split} for split in ("train", "test") for row in as_person_rows(rows)]
    assert compute(both)["comparisons"] == 2 * 3 * len(rows)
    assert [text.id for text in read_annotated_texts(both)][11:13] == ["train/11", "test/0"]
    (text,) = read_annotated_texts([{**GOOD, "rationale_positions": [[1], [0]], "num_tokens": [2, 3]}])
    assert text.marks.tolist() == [[0, 1, 1, 0, 0]] and [part.shape for part in text.documents()] == [(1, 2), (1, 3)]
    assert (text.names, text.labels) == (["ann"], {"ann": "x"})


def test_undefined_kappas_are_counted_and_one_code_has_no_agreement():
    rows = [
        {"annotation_id": at, "annotators": each} for at, each in enumerate([[[1, 1]] * 2, [[0, 0]] * 2, [[1, 0]] * 2])
    ]
    found = compute(rows, per_instance=True)
    assert (found["undefined_kappas"], found["comparisons"], found["cohen_kappa"]) == (4, 6, 1.0)
    assert found["f1"] == pytest.approx(2 / 3) and found["leave_one_out_f1"] == 1  # who marks nothing with all others
    assert np.isnan(found["per_instance"]["cohen_kappa"]).tolist() == [True, True, False]
    assert np.isnan([compute(rows[:1])[key] for key in ("cohen_kappa", "krippendorff_alpha", "fleiss_kappa")]).all()
    third = compute([{"annotation_id": 1, "annotators": [[0] * 7] * 4}])  # sums of thirds
    assert np.isnan(third["krippendorff_alpha"]) and np.isnan(third["fleiss_kappa"])


def test_intervals_are_drawn_by_document_and_references_lend_columns():
    rows = as_person_rows(draw(2, texts=20))
    shared = [{**row, "docids": [f"d{int(row['annotation_id']) // 2}"]} for row in rows]
    assert "cluster:none|clusters:20" in compute(rows, confidence_level=0.9)["signature"]
    found = compute(shared, confidence_level=0.9)
    low, high = found["krippendorff_alpha_ci"]
    assert low < found["krippendorff_alpha"] < high and "cluster:documents|clusters:10" in found["signature"]
    lent = [{"annotation_id": str(at), "kind": "ab"[at % 2]} for at in range(20)]
    lending = AnnotatorAgreement().compute(predictions=rows, references=lent, by="kind")
    assert set(lending["by"]) == {"a", "b"} and lending["f1"] == found["f1"]


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"annotators": [[0, 1], [0]]}, "annotators"),
        ({"annotators": [[0, 1], [0, 0.5]]}, "annotators[1]"),
        ({"annotators": [[0], [1]], "annotator_names": ["ann", "ann"]}, "annotator"),
        ({"annotators": [[0], [1]], "labels": ["x"]}, "labels"),
        ({"annotators": None}, "annotators"),
        ({**GOOD, "annotator": 1.5}, "annotator"),
        ({**GOOD, "rationale_positions": [[2]]}, "rationale_positions[0]"),
        ({**GOOD, "num_tokens": [2, 3]}, "num_tokens"),
        ({**GOOD, "annotator": "bob"}, "annotator"),
    ],
)
def test_wrong_rows_are_named(row, field):
    before = [] if "annotators" in row else [{**GOOD, "annotator": "bob"}]
    with pytest.raises(DataError) as caught:
        compute([*before, {"annotation_id": "a", **row}])
    assert (caught.value.instance, caught.value.field) == ("a", field)
