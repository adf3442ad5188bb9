"""What a mask's shape gives away: planted leaks are told, honest masks are not, words are never seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eraser_hub.metrics.tokens import mask, split_tokens
from eraser_hub.scoring.mask_leaks import (
    compute_mask_leak,
    compute_mask_shape,
    describe_leak,
    find_document_clusters,
    find_leaked_labels,
)
from eraser_hub.scoring.score import score
from eraser_hub.scoring.settings import ScoreSettings

from ..refusals import refused
from .small_corpora import lines, written

pytestmark = pytest.mark.unit

ROUNDING = 2.0**-40
GIVEN_AWAY = "the masks give labels away"


def planted(number: int, leaking: bool, seed: int = 0):
    """Masks of texts with 20 to 40 tokens; a leaking one starts the text for POS and ends it for NEG."""
    random = np.random.default_rng(seed)
    masks, labels = [], []
    for at in range(number):
        size = int(random.integers(20, 41))
        mask = np.zeros(size, dtype=bool)
        labels.append(("NEG", "POS")[at % 2])
        count = int(random.integers(1, 4))
        mask[
            (slice(0, count) if at % 2 else slice(size - count, size)) if leaking else random.choice(size, count, False)
        ] = True
        masks.append(mask)
    return masks, labels


def shapes_of(masks):
    return [compute_mask_shape(mask) for mask in masks]


def leak_of(masks, labels, clusters=None, **options):
    clusters = np.arange(len(masks)) if clusters is None else clusters
    settings = ScoreSettings(**{"confidence_level": 0.95, **options})
    return compute_mask_leak(shapes_of(masks), labels, clusters, settings)


def test_shapes_in_closed_form():
    mask = np.array([1, 1, 0, 0, 0, 0, 0, 0, 0, 1], dtype=bool)
    expected = [np.log(4), 0.3, np.log(3), 0.05, (0.05 + 0.15 + 0.95) / 3, 0.95, 2 / 3, 0, 0, 0, 1 / 3]
    np.testing.assert_allclose(compute_mask_shape(mask), expected, rtol=0, atol=ROUNDING)
    assert (
        not compute_mask_shape(np.zeros(4, dtype=bool)).any() and not compute_mask_shape(np.zeros(0, dtype=bool)).any()
    )
    assert compute_mask_shape(np.ones(7, dtype=bool))[1] == 1


def test_a_planted_leak_is_told_and_an_honest_mask_is_not():
    leak = leak_of(*planted(200, True), n_resamples=200)
    assert leak["mask_leak"] == 1 and GIVEN_AWAY in describe_leak(leak) and leak["mask_leak_chance"] == 0.5
    honest = leak_of(*planted(200, False), n_resamples=200)
    assert GIVEN_AWAY not in describe_leak(honest)
    # of 200 fair throws 4 standard deviations are 0.14
    assert abs(honest["mask_leak"] - 0.5) <= 0.15


def test_the_count_alone_can_leak():
    masks = [np.arange(30) % 30 < (5 if at % 2 else 9) for at in range(60)]
    rolled = [np.roll(mask, 7 * at) for at, mask in enumerate(masks)]
    leak = leak_of(rolled, ["a" if at % 2 else "b" for at in range(60)], confidence_level=None)
    assert leak.keys() == {"mask_leak", "mask_leak_chance"} and leak["mask_leak"] == 1
    assert GIVEN_AWAY not in describe_leak(leak)


def test_clusters_stay_together():
    """A document's questions share a mask and a label of their own: inside a fold nothing of it is known."""
    random = np.random.default_rng(1)
    masks, labels, clusters = [], [], []
    for document in range(30):
        mask = random.random(40) < 0.2
        label = ("NEG", "POS")[int(random.integers(0, 2))]
        masks += [mask] * 6
        labels += [label] * 6
        clusters += [document] * 6
    told = find_leaked_labels(np.stack(shapes_of(masks)), labels, np.array(clusters))
    by_document = told.reshape(30, 6)
    assert (by_document.all(axis=1) | ~by_document.any(axis=1)).all(), "equal masks of one fold are guessed alike"
    wide = leak_of(masks, labels, np.array(clusters), n_resamples=300)
    narrow = leak_of(masks, labels, n_resamples=300)
    assert wide["mask_leak_ci"] and narrow["mask_leak_ci"]
    assert narrow["mask_leak"] > wide["mask_leak"], "apart, a document's other questions tell its label"


def test_where_there_is_nothing_to_tell():
    masks, labels = planted(10, True)
    assert leak_of(masks, ["POS"] * 10) == {}
    assert leak_of(masks, labels, np.zeros(10, dtype=np.int64)) == {}
    assert leak_of([], []) == {}
    empty = leak_of([np.zeros(5, dtype=bool)] * 10, labels, confidence_level=None)
    assert empty["mask_leak"] <= 0.5, "masks without a token tell nothing"


@given(st.integers(0, 50), st.integers(2, 4))
def test_names_of_labels_and_order_of_instances_say_nothing(seed, number):
    masks, labels = planted(24, False, seed)
    shapes = np.stack(shapes_of(masks))
    clusters = np.arange(24) // number
    told = find_leaked_labels(shapes, labels, clusters)
    order = np.random.default_rng(seed).permutation(24)
    again = find_leaked_labels(shapes[order], [labels[at] for at in order], clusters[order])
    assert (again == told[order]).all()


def test_clusters_of_documents():
    groups = find_document_clusters([["a"], ["b"], ["b", "c"], ["c"], ["d"]])
    assert groups[1] == groups[2] == groups[3] and len({groups[0], groups[1], groups[4]}) == 3
    assert find_document_clusters([["a"], ["b"]]).tolist() == [0, 1] and find_document_clusters([]).tolist() == []


# --- in `score` ---------------------------------------------------------------------------------------------------


def corpus(folder, number: int = 24, **changes):
    """Annotations of documents "a" (4 tokens or more) and "b" (6); a mask that starts "a" for POS, ends "b" for NEG."""
    references, predictions = [], []
    for at in range(number):
        label, names = ("NEG", "POS")[at % 2], (f"{at}a", f"{at}b")
        texts = ["w " * (4 + at % 5), "v " * 6]
        evidence = [[{"docid": name, "start_token": 0, "end_token": 1} for name in names]]
        documents = [{"docid": name, "text": text.strip()} for name, text in zip(names, texts, strict=True)]
        row = {"annotation_id": str(at), "classification": label, "documents": documents, "evidences": evidence}
        references.append(row)
        name, start = (names[0], 0) if label == "POS" else (names[1], 5)
        span = {"start_token": start, "end_token": start + 1}
        rationale = {"docid": name, "hard_rationale_predictions": [span]}  # the other document is not named at all
        predictions.append({"annotation_id": str(at), "classification": label, "rationales": [rationale], **changes})
    return written(folder, predictions, references), references, predictions


def test_score_tells_a_leak_and_says_it(tmp_path):
    inputs, _, _ = corpus(tmp_path)
    scored = score(*inputs, ScoreSettings(mask_leak=True, confidence_level=0.95, n_resamples=100, totals_only=True))
    content = scored.as_json()
    assert (content["mask_leak"], content["mask_leak_chance"], content["mask_leak_ci"][1]) == (1.0, 0.5, 1.0)
    text = scored.table().written("text")
    assert "Labels told by the mask's shape: " in text and "the masks give labels away" in text
    plain = score(*inputs, ScoreSettings(mask_leak=True)).as_json()
    assert plain["mask_leak"] == 1.0 and "mask_leak_ci" not in plain


def test_score_is_the_same_without_and_beside_it(tmp_path):
    inputs, _, _ = corpus(tmp_path)
    without, beside = score(*inputs).as_json(), score(*inputs, ScoreSettings(mask_leak=True)).as_json()
    assert beside.keys() - without.keys() == {"mask_leak", "mask_leak_chance"}
    assert {key: beside[key] for key in without} == without


def test_a_mask_lies_over_all_documents_of_its_annotation(tmp_path):
    """Also over those that the instance does not name, in the annotation's order."""
    inputs, references, predictions = corpus(tmp_path)
    masks = []
    for row, one in zip(references, predictions, strict=True):
        spans = {each["docid"]: each["hard_rationale_predictions"] for each in one["rationales"]}
        flags = []
        for document in row["documents"]:
            own = [(span["start_token"], span["end_token"]) for span in spans.get(document["docid"], ())]
            flags += mask(own, len(split_tokens(document["text"])))
        masks.append(np.array(flags))
    expected = leak_of(masks, [one["classification"] for one in predictions], confidence_level=None)
    assert score(*inputs, ScoreSettings(mask_leak=True)).leak == expected


def test_clusters_are_those_that_are_asked_for(tmp_path):
    """Two questions of one document are never in different folds: alone, each would tell the other's label."""
    random = np.random.default_rng(1)
    references, predictions = [], []
    for at in range(60):
        docid, label = f"d{at // 6}", ("NEG", "POS")[at // 6 % 2]
        start = int(np.random.default_rng(at // 6).integers(0, 30))
        gold = {"annotation_id": str(at), "classification": ("NEG", "POS")[random.integers(2)]}
        evidence = {"docid": docid, "start_token": 0, "end_token": 1}
        texts = {"documents": [{"docid": docid, "text": "w " * 39 + "w"}], "evidences": [[evidence]]}
        references.append({**gold, "source": f"s{at // 12}", **texts})
        span = {"start_token": start, "end_token": start + 2}
        rationale = {"docid": docid, "hard_rationale_predictions": [span]}
        predictions.append({"annotation_id": str(at), "classification": label, "rationales": [rationale]})
    inputs = written(tmp_path, predictions, references)
    leaks = {by: score(*inputs, ScoreSettings(mask_leak=True, cluster_by=by)).leak for by in ("auto", "none", "source")}
    masks = [np.zeros(40, dtype=bool) for _ in predictions]
    for one, flags in zip(predictions, masks, strict=True):
        start = one["rationales"][0]["hard_rationale_predictions"][0]["start_token"]
        flags[start : start + 2] = True
    labels = [one["classification"] for one in predictions]
    for by, clusters in (("auto", np.arange(60) // 6), ("none", np.arange(60)), ("source", np.arange(60) // 12)):
        assert leaks[by] == leak_of(masks, labels, clusters, confidence_level=None)
    assert leaks["none"]["mask_leak"] > leaks["auto"]["mask_leak"]


@pytest.mark.parametrize(
    ("changes", "found"),
    [({"rationales": []}, "found no rationale"), ({"classification": "POS"}, "found one")],
)
def test_score_says_why_there_is_no_leak_to_tell(tmp_path, changes, found):
    inputs, _, _ = corpus(tmp_path, **changes)
    scored = score(*inputs, ScoreSettings(mask_leak=True))
    assert not scored.leak and "mask_leak" not in scored.as_json()
    assert [note for note in scored.notes if note.startswith("no mask_leak: ") and found in note]


def test_without_labels_there_is_none_either(tmp_path):
    inputs, _, predictions = corpus(tmp_path)
    bare = [{key: value for key, value in one.items() if key != "classification"} for one in predictions]
    lines(inputs.results, bare)
    scored = score(*inputs, ScoreSettings(mask_leak=True))
    assert not scored.leak and any("found no label" in note for note in scored.notes)


def test_spans_that_do_not_fit_are_refused_as_without_it(tmp_path):
    inputs, _, predictions = corpus(tmp_path)
    for one in predictions:
        one["rationales"][0]["hard_rationale_predictions"] = [{"start_token": 3, "end_token": 10_000_000_000}]
    lines(inputs.results, predictions)
    told = []
    for asked in (False, True):
        with refused("span-bounds", 10_000_000_000, file="p.jsonl", line=1, total=24) as caught:
            score(*inputs, ScoreSettings(mask_leak=asked))
        told.append(str(caught.error))
    assert told[0] == told[1]
