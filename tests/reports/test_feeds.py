"""Feeds of a board: RSS 2.0 and JSON Feed 1.1 of its scored lines, without dates."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from eraser_hub.records.outputs import OutputWriter
from eraser_hub.reports.board import collect_board_lines, write_board
from eraser_hub.reports.board_lines import BoardLine

from ..refusals import refused

HOSTILE = '</title>]]><script>alert(1)</script> & "x" \x00\x1b[31m\ufffe\ud800\u202e'
LINE = BoardLine(
    system="Ours",
    dataset="movies",
    split="validation",
    kind="scored",
    source="scored here",
    detail="eraser_agreement|iou:0.5|n:24|version:3.0.0",
    scores={"auprc": 0.51234, "macro_f1": None, "instances": 24},
    verified=True,
)


def feeds_of(out, lines, **more):
    _, _, rss, feed = write_board(out, lines, **more)
    channel = ElementTree.fromstring(rss.read_bytes()).find("channel")
    assert channel is not None
    return channel, json.loads(feed.read_text(encoding="utf-8"))


def test_both_feeds_have_the_scored_lines_alone(tmp_path):
    lines = collect_board_lines([LINE, replace(LINE, system="Theirs", verified=False)])
    assert any(line.status == "printed" for line in lines)
    channel, feed = feeds_of(tmp_path, lines, title="Movies & more")
    assert feed["version"] == "https://jsonfeed.org/version/1.1" and feed["title"] == "Movies & more"
    titles = ["Ours: movies, validation (verified)", "Theirs: movies, validation (self-reported)"]
    assert [item["title"] for item in feed["items"]] == titles
    assert [item["tags"] for item in feed["items"]] == [["verified"], ["self-reported"]]
    assert "; AUPRC 0.512; eraser_agreement|iou:0.5|" in feed["items"][0]["content_text"]
    assert [one.findtext("title") for one in channel.findall("item")] == titles
    assert [one.findtext("guid") for one in channel.findall("item")] == [item["id"] for item in feed["items"]]
    assert channel.findtext("title") == "Movies & more" and channel.findtext("link") == "index.html"
    assert not channel.findall(".//pubDate") and "date_published" not in feed["items"][0]
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert '<a href="feed.xml">RSS</a>' in page and 'type="application/rss+xml"' in page


def test_keys_are_those_of_the_format(tmp_path):
    """JSON Feed 1.1: other keys begin with an underscore; id and one content are required."""
    _, feed = feeds_of(tmp_path, [LINE])
    assert {key for key in feed if key[0] != "_"} == {"version", "title", "description", "items"}
    assert {key for item in feed["items"] for key in item} == {"id", "title", "content_text", "tags"}


def test_hostile_names_are_text(tmp_path):
    channel, feed = feeds_of(tmp_path, [replace(LINE, system=HOSTILE, detail=HOSTILE)], title=HOSTILE)
    title = channel.findtext("item/title") or ""
    assert title.startswith('</title>]]><script>alert(1)</script> & "x" ') and title == feed["items"][0]["title"]
    assert not set("\x00\x1b\ufffe\ud800\u202e") & set(title)
    assert "<script>" not in (channel.findtext("item/description") or ""), "a reader takes a description for HTML"
    assert b"<script>" not in (tmp_path / "feed.xml").read_bytes()


def test_a_changed_score_is_a_new_item_and_another_star_is_not(tmp_path):
    lines = [
        LINE,
        replace(LINE, better=("auprc",)),
        replace(LINE, scores={"auprc": 0.6}),
        replace(LINE, verified=False),
    ]
    _, feed = feeds_of(tmp_path, lines)
    first, starred, changed, reported = (item["id"] for item in feed["items"])
    assert first == starred and len({first, changed, reported}) == 3


def test_a_board_of_printed_lines_has_empty_feeds(tmp_path):
    channel, feed = feeds_of(tmp_path, collect_board_lines())
    assert feed["items"] == [] and channel.findall("item") == []


@pytest.mark.parametrize("name", ["feed.xml", "feed.json"])
def test_own_feeds_are_replaced_and_others_are_not(tmp_path, name):
    write_board(tmp_path, [LINE])
    write_board(tmp_path, [replace(LINE, system="Other")])
    (tmp_path / name).write_text("mine")
    with refused("file-exists", file=name):
        write_board(tmp_path, [LINE])
    assert "Other" in (tmp_path / "index.html").read_text(encoding="utf-8")
    write_board(tmp_path, [LINE], writer=OutputWriter(force=True))
