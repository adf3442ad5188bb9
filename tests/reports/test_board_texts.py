"""The texts of a board's page: the same for each system, small, and none unless they are asked for."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import eraser_hub
from eraser_hub.metrics.tokens import split_tokens
from eraser_hub.reports.boards import texts
from eraser_hub.reports.documents import unpack
from eraser_hub.scoring.scored_split import read_split

OF: dict[str, Any] = {"config": "movies", "split": "val", "published": False}


@pytest.fixture(scope="module")
def files(samples):
    folder = samples / "predictions" / "eraser"
    return {"ours": folder / "movies.val.jsonl", "theirs": folder / "movies.val.baseline.jsonl"}


def test_no_text_is_public_unless_asked_for(hub, files, tmp_path):
    result = eraser_hub.board(tmp_path, submission=files, dataset=hub / "eraser", **OF)
    page = (tmp_path / "index.html").read_text("utf-8")
    assert all(line.texts == () for line in result.lines) and 'data-group="movies' in page
    assert 'id="texts"' not in page and "octet-stream" not in page


def test_all_lines_of_a_group_share_the_texts(hub, files, tmp_path):
    result = eraser_hub.board(tmp_path, submission=files, dataset=hub / "eraser", texts=4, **OF)
    ours, theirs = (line.texts for line in result.lines)
    assert [one.annotation_id for one in ours] == [one.annotation_id for one in theirs] and len(ours) == 4
    assert ours != theirs and all(one.documents[0].gold for one in ours)
    page = (tmp_path / "index.html").read_text("utf-8")
    index = json.loads(re.findall(r'id="index-0"[^>]*>(.*?)</script>', page)[0])
    (packed,) = re.findall(r'id="packed-\d+">(.*?)</script>', page)
    data = unpack(packed)
    assert index["systems"] == ["ours", "theirs"] and index["ids"] == [one.annotation_id for one in ours]
    assert len(data["rows"]) == 4 and len(data["docs"]) == 4, "each text is stored once"
    for row, pair in zip(data["rows"], zip(ours, theirs, strict=True), strict=True):
        spans = [[[0, *span] for span in one.documents[0].predicted or ()] for one in pair]
        assert [system["hard"] for system in row["systems"]] == spans
    assert re.findall(r'data-texts="(\d)"', page) == ["0", "1"]
    assert not any("texts" in row for row in json.loads((tmp_path / "board.json").read_text("utf-8"))["rows"])


def test_texts_are_short_and_have_evidence(hub, monkeypatch):
    split = read_split(hub / "eraser", "movies", "val")
    everything = texts.choose_texts(split, 1000)
    assert {str(row["annotation_id"]) for row in everything} == set(split.ids)
    sizes = sorted(sum(len(split_tokens(one["text"])) for one in row["documents"]) for row in everything)
    monkeypatch.setattr(texts, "MOST_TOKENS", sizes[2])
    few = texts.choose_texts(split, 1000)
    assert len(few) == sum(size <= sizes[2] for size in sizes)
    assert texts.choose_texts(split, 2) == few[:2] and texts.choose_texts(split, 0) == []
    split.rows[:] = [row | {"evidences": []} for row in split.rows]
    assert texts.choose_texts(split, 5) == []


def test_pairs_have_no_texts(tmp_path, samples):
    from eraser_hub.conversion import HUB_DATASETS

    HUB_DATASETS["bilingual_perturbation"].build(["senti_en"], out=tmp_path, source=samples / "bilingual_perturbation")
    split = read_split(tmp_path / "bilingual_perturbation", "senti_en", "test")
    assert split.kind == "perturbation" and texts.choose_texts(split, 5) == []
