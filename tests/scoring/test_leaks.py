"""What a mask's shape gives away: planted leaks are told, honest masks are not, words are never seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eraser_hub.scoring.leaks import document_clusters, mask_leak, mask_of, shape_of, told_by_shape

ROUNDING = 2.0**-40


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


def test_shapes_in_closed_form():
    mask = np.array([1, 1, 0, 0, 0, 0, 0, 0, 0, 1], dtype=bool)
    expected = [np.log(4), 0.3, np.log(3), 0.05, (0.05 + 0.15 + 0.95) / 3, 0.95, 2 / 3, 0, 0, 0, 1 / 3]
    np.testing.assert_allclose(shape_of(mask), expected, rtol=0, atol=ROUNDING)
    assert not shape_of(np.zeros(4, dtype=bool)).any() and not shape_of(np.zeros(0, dtype=bool)).any()
    assert shape_of(np.ones(7, dtype=bool))[1] == 1


def test_a_planted_leak_is_told_and_an_honest_mask_is_not():
    leak = mask_leak(*planted(200, True), n_resamples=200)
    assert leak is not None and leak.accuracy == 1 and leak.leaks and leak.chance == 0.5
    honest = mask_leak(*planted(200, False), n_resamples=200)
    assert honest is not None and not honest.leaks
    # of 200 fair throws 4 standard deviations are 0.14
    assert abs(honest.accuracy - 0.5) <= 0.15


def test_the_count_alone_can_leak():
    masks = [np.arange(30) % 30 < (5 if at % 2 else 9) for at in range(60)]
    rolled = [np.roll(mask, 7 * at) for at, mask in enumerate(masks)]
    leak = mask_leak(rolled, ["a" if at % 2 else "b" for at in range(60)], confidence_level=None)
    assert leak is not None and leak.accuracy == 1 and leak.interval is None and not leak.leaks


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
    told = told_by_shape(np.stack(list(map(shape_of, masks))), labels, np.array(clusters))
    by_document = told.reshape(30, 6)
    assert (by_document.all(axis=1) | ~by_document.any(axis=1)).all(), "equal masks of one fold are guessed alike"
    wide = mask_leak(masks, labels, np.array(clusters), n_resamples=300)
    narrow = mask_leak(masks, labels, n_resamples=300)
    assert wide is not None and narrow is not None and wide.interval and narrow.interval
    assert narrow.accuracy > wide.accuracy, "apart, a document's other questions tell its label"


def test_where_there_is_nothing_to_tell():
    masks, labels = planted(10, True)
    assert mask_leak(masks, ["POS"] * 10) is None
    assert mask_leak(masks, labels, np.zeros(10, dtype=np.int64)) is None
    assert mask_leak([], []) is None
    empty = mask_leak([np.zeros(5, dtype=bool)] * 10, labels, confidence_level=None)
    assert empty is not None and empty.accuracy <= 0.5, "masks without a token tell nothing"


@given(st.integers(0, 50), st.integers(2, 4))
def test_names_of_labels_and_order_of_instances_say_nothing(seed, number):
    masks, labels = planted(24, False, seed)
    shapes = np.stack(list(map(shape_of, masks)))
    clusters = np.arange(24) // number
    told = told_by_shape(shapes, labels, clusters)
    order = np.random.default_rng(seed).permutation(24)
    again = told_by_shape(shapes[order], [labels[at] for at in order], clusters[order])
    assert (again == told[order]).all()


def test_masks_and_clusters_of_predictions():
    spans = [{"docid": "b", "hard": [{"start_token": 0, "end_token": 1}]}, {"docid": "c", "hard": None}]
    assert mask_of(spans, {"a": 2, "b": 2, "c": 1}, "hard").tolist() == [False, False, True, False, False]
    groups = document_clusters([["a"], ["b"], ["b", "c"], ["c"], ["d"]])
    assert groups[1] == groups[2] == groups[3] and len({groups[0], groups[1], groups[4]}) == 3
    assert document_clusters([["a"], ["b"]]).tolist() == [0, 1] and document_clusters([]).tolist() == []
    with pytest.raises(KeyError):
        mask_of([{"docid": "a", "hard": [{}]}], {"a": 1}, "hard")
