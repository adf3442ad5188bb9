"""Chunks and index of the documents, and the page around them."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.records.files import OutputWriter
from eraser_hub.reports.documents import CHUNK_TOKENS, index_documents, pack, to_embedded_json, unpack
from eraser_hub.reports.marked_instances import MarkedDocument, MarkedInstance, mark_instance
from eraser_hub.reports.page import ReportContent, write_files, write_report
from eraser_hub.reports.report_tables import Block, Section, ShownCell, ShownRow

from ..refusals import refused

pytestmark = pytest.mark.unit

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=80, derandomize=True, deadline=None)
@given(json_values)
def test_embedded_json_closes_no_script_and_loses_nothing(value):
    text = to_embedded_json(value)
    assert "<" not in text and "\u2028" not in text
    assert json.loads(text) == value
    text.encode("utf-8")
    assert to_embedded_json({"a": [float("nan"), float("inf")]}) == '{"a":[null,null]}'


@settings(max_examples=40, derandomize=True, deadline=None)
@given(json_values)
def test_packing_is_lossless_and_deterministic(value):
    packed = pack(value)
    assert unpack(packed) == value and packed == pack(value)
    assert re.fullmatch(r"[A-Za-z0-9+/=]*", packed)


def test_browse(row, instance):
    one = mark_instance(row, instance, label_names=("NEG", "POS"))
    browsed = index_documents([[one], [one]], ["s"], ("NEG", "POS"))
    assert browsed.ids == ["one", "one"] and browsed.gold == [1, 1] and browsed.predicted == [[1, 1]]
    (chunk,) = map(unpack, browsed.packed)
    assert len(chunk["docs"]) == 2, "a document that two annotations share is stored once"
    assert chunk["rows"][0]["gold"] == [[0, 1, 3, 0], [0, 2, 4, 1], [1, 0, 1, 1]]
    assert chunk["rows"][0]["systems"][0]["hard"] == [[0, 2, 5]]
    assert chunk["rows"][0]["systems"][0]["soft"][0] == "00102030405060708099"
    assert chunk["rows"][0]["empty"] == 1


def test_quotes_stand_with_their_status_and_place(row, instance):
    place = {"docid": "d1", "start_token": 1, "end_token": 3, "similarity": 1.0}
    said = {
        **instance,
        "quotes": [{"text": "fine film", "status": "exact", **place}, {"text": "a <b>gem", "status": "not_found"}],
    }
    (chunk,) = map(unpack, index_documents([[mark_instance(row, said, label_names=("NEG", "POS"))]], ["s"]).packed)
    assert chunk["rows"][0]["systems"][0]["quotes"] == [["fine film", "exact", "d1 1–3"], ["a <b>gem", "not_found", ""]]
    for quote in ("fine film", {"text": "fine film"}, {"text": 3, "status": "exact"}):
        with refused(repr(quote), field="quotes[0]"):
            mark_instance(row, {**instance, "quotes": [quote]}, label_names=("NEG", "POS"))


def test_chunks_are_bounded():
    long = MarkedInstance("i", "", "l", (MarkedDocument("d", (("w",) * (CHUNK_TOKENS // 2 + 1),)),))
    many = [
        [MarkedInstance(f"i{k}", "", "l", (MarkedDocument(f"d{k}", long.documents[0].sentences),))] for k in range(7)
    ]
    browsed = index_documents(many, [])
    assert browsed.chunks == [0, 2, 4, 6] and len(browsed.packed) == 4


def page_of(tmp_path, marked, systems, sections=(), **more):
    path = tmp_path / "index.html"
    write_report(
        path, ReportContent("t", "s", list(sections), index_documents(marked, systems), [{} for _ in systems], **more)
    )
    return path.read_text(encoding="utf-8")


def test_hostile_text_stays_text(tmp_path, row, instance):
    hostile = "</script><script>alert(1)</script><!--"
    row["documents"][1] = {"docid": hostile, "text": hostile + " \ud800"}
    row["evidences"][1][1].update(docid=hostile, start_token=0, end_token=1)
    instance["rationales"] = []
    row["annotation_id"] = instance["annotation_id"] = row["query"] = hostile
    instance["classification"] = hostile
    section = Section(
        "a",
        hostile,
        [Block((hostile, hostile), (ShownRow(hostile, (ShownCell(hostile),)),), hostile)],
        [],
        [hostile],
        [hostile],
    )
    text = page_of(tmp_path, [[mark_instance(row, instance, label_names=("A", "B"))]], [hostile], [section])
    assert text.count("<script>") == 1 and "alert(1)</script>" not in text
    assert "<!--" not in text
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert "default-src 'none'" in policy and "script-src 'sha256-" in policy


def test_a_page_is_whole_or_not_there(tmp_path):
    def pieces():
        yield "half"
        raise KeyboardInterrupt

    (tmp_path / "p.html").write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write_files({tmp_path / "p.html": pieces()}, OutputWriter(force=True))
    assert [p.name for p in tmp_path.iterdir()] == ["p.html"] and (tmp_path / "p.html").read_text() == "old"


def test_a_full_disk_names_the_files_that_are_new(tmp_path, monkeypatch):
    replace = os.replace

    def fill(source, target):
        if Path(target).name == "a":
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", fill)
    with pytest.raises(OSError, match=f"No space left on device; written before: {tmp_path / 'b'}: '{tmp_path / 'a'}'"):
        write_files({tmp_path / "a": ["new"], tmp_path / "b": ["new"]}, OutputWriter())
    assert [path.name for path in tmp_path.iterdir()] == ["b"] and (tmp_path / "b").read_text() == "new"


def test_a_folder_of_a_files_name_leaves_the_other_file_as_it_was(tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "b").mkdir()
    with refused("folder", file=tmp_path / "b"):
        write_files({tmp_path / "a": ["new"], tmp_path / "b": ["new"]}, OutputWriter(force=True))
    assert (tmp_path / "a").read_text() == "old"
