"""Rows of documents with ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eraser_hub.conversion.importing.corpus import Columns, Imported, write_corpus

from ...refusals import refused
from .corpora import Row, rows_of, source

SPANS = Columns(("docs",), ("why",), "label", tokenized=False, kind="spans", offsets="characters")
MASKS = Columns(("docs",), ("why",), "label", tokenized=False)
DOCS = [{"id": "d2", "text": "a fine film\nwith a plot"}, {"id": "d1", "text": "dull"}]


def run(rows: list[Row], columns: Columns, out: Path, **options: Any) -> Imported:
    return write_corpus({"train": source(rows)}, "mine", columns, out, **options)


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        (SPANS, {"d2": [[2, 6]], "d1": []}),
        (SPANS, [[[2, 6]], []]),
        (SPANS, [[[2, 6]], None]),
        (SPANS, [{"docid": "d2", "start": 2, "end": 6, "text": "fine"}]),
        (MASKS, [[0, 1, 0, 0, 0, 0], [0]]),
        (MASKS, '{"d2": [0, 1, 0, 0, 0, 0]}'),
        (Columns(("docs",), ("why",), "label", False, "quotes"), {"d2": ["fine"]}),
    ],
)
def test_documents_keep_their_ids_and_order(columns: Columns, why: Any, tmp_path: Path) -> None:
    result = run([{"docs": DOCS, "why": why, "label": "x"}], columns, tmp_path)
    (row,) = rows_of(result.folder)
    assert row["documents"] == [{"docid": one["id"], "text": one["text"]} for one in DOCS]
    (group,) = row["evidences"]
    assert [(one["docid"], one["text"], one["start_token"], one["end_token"]) for one in group] == [
        ("d2", "fine", 1, 2)
    ]


def test_rows_share_documents_by_id_and_may_have_another_number_of_them(tmp_path: Path) -> None:
    rows = [{"docs": docs, "why": None, "label": "x"} for docs in (DOCS, DOCS[:1], [{"id": 7, "text": "new"}, *DOCS])]
    result = run(rows, SPANS, tmp_path)
    assert [[one["docid"] for one in row["documents"]] for row in rows_of(result.folder)] == [
        ["d2", "d1"],
        ["d2"],
        ["7", "d2", "d1"],
    ]
    written = (result.folder / "docs.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(written) == 3


@pytest.mark.parametrize(
    ("docs", "why", "mentioned"),
    [
        ([*DOCS, {"id": "d2", "text": "again"}], None, "'d2'"),
        ([{"id": "d2"}], None, "text"),
        (DOCS, {"d3": [[0, 1]]}, "'d3'"),
        (DOCS, [{"docid": "d3", "start": 0, "end": 1}], "'d3'"),
        (DOCS, [[[0, 1]]], "2 documents"),
        ([{"role": "a", "text": "x"}, {"id": "d", "text": "x"}], None, "list of sentences"),
    ],
)
def test_documents_that_do_not_fit(docs: Any, why: Any, mentioned: str, tmp_path: Path) -> None:
    with refused(mentioned, file="rows", line=1):
        run([{"docs": docs, "why": why, "label": "x"}], SPANS, tmp_path)


def test_one_id_with_two_texts_is_refused(tmp_path: Path) -> None:
    rows = [{"docs": [{"id": "d", "text": text}], "why": None, "label": "x"} for text in ("one", "two")]
    with refused("'d'", file="rows", line=2):
        run(rows, SPANS, tmp_path)
    first = {"docs": "the text of a row without ids", "why": None, "label": "x"}
    with refused("'train_1'", file="rows", line=2):
        run([first, {"docs": [{"id": "train_1", "text": "other"}], "why": None, "label": "x"}], SPANS, tmp_path / "b")
