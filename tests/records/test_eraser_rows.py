"""Tokens and mask of a dataset's row, which the package's own names give."""

from __future__ import annotations

import pytest

import eraser_hub

ROW = {
    "annotation_id": "one",
    "documents": [{"docid": "d1", "text": "a fine film\n\nwith  a dull end"}, {"docid": "d2", "text": ""}],
    "evidences": [
        [{"docid": "d1", "start_token": 1, "end_token": 3}, {"docid": "d1", "start_token": 2, "end_token": 4}],
        [{"docid": "d2", "start_token": 0, "end_token": 0}],
    ],
}


def test_tokens_of_each_document():
    assert eraser_hub.tokens(ROW) == [["a", "fine", "film", "with", "a", "dull", "end"], []]


def test_the_mask_covers_what_any_evidence_covers():
    assert eraser_hub.mask(ROW) == [[False, True, True, True, False, False, False], []]


@pytest.mark.parametrize(
    "change", [{"docid": "d3"}, {"end_token": 8}, {"start_token": -1}, {"start_token": 3, "end_token": 2}]
)
def test_a_span_of_no_document_is_refused(change):
    row = {**ROW, "evidences": [[{**ROW["evidences"][0][0], **change}]]}
    with pytest.raises(
        eraser_hub.DataError, match="instance 'one': evidences: expected a span of one of the row's documents"
    ):
        eraser_hub.mask(row)


def test_the_mask_is_the_positions_of_the_built_rows(samples, tmp_path):
    from eraser_hub.conversion import HUB_DATASETS
    from eraser_hub.records.built import open_built

    folder = HUB_DATASETS["eraser"].build(["movies", "esnli"], out=tmp_path, source=samples / "eraser").folder
    for config in ("movies", "esnli"):
        for row in open_built(folder).rows(config, "train"):
            positions = [[place for place, flag in enumerate(flags) if flag] for flags in eraser_hub.mask(row)]
            assert positions == row["rationale_positions"]
            assert sum(map(len, eraser_hub.tokens(row))) == row["num_tokens"]
