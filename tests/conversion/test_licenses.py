"""Licence files that come with a corpus: carried over, named on the card, and written back."""

from __future__ import annotations

import shutil

import pytest

from eraser_hub.conversion import HUB_DATASETS

from ..refusals import refused

ERASER = HUB_DATASETS["eraser"]
MIT = """MIT License

Copyright (c) 2019 A, B

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files, to deal in the Software without restriction.
"""
SHARED = (
    b"<html><p>Under the Creative&nbsp;Commons <b>Attribution-ShareAlike</b> License\n"
    b"(version&nbsp;3.0).</p></html>\xff"
)


@pytest.fixture
def source(samples, tmp_path):
    folder = tmp_path / "corpora"
    for name in ("evidence_inference", "fever", "movies"):
        shutil.copytree(samples / "eraser" / name, folder / name)
    (folder / "evidence_inference" / "LICENSE").write_text(MIT)
    (folder / "fever" / "license.html").write_bytes(SHARED)
    return folder


def test_licences_are_carried_over_named_and_written_back(source, tmp_path):
    ERASER.build(None, out=tmp_path / "hub", source=source)
    folder = tmp_path / "hub" / "eraser"
    assert (folder / "licenses" / "evidence_inference.LICENSE").read_text() == MIT
    assert (folder / "licenses" / "fever.license.html").read_bytes() == SHARED
    card = (folder / "README.md").read_text()
    assert "[LICENSE](licenses/evidence_inference.LICENSE)" in card
    assert "[license.html](licenses/fever.license.html)" in card
    ERASER.export(folder, ["fever", "evidence_inference"], out=tmp_path / "out")
    assert (tmp_path / "out" / "fever" / "license.html").read_bytes() == SHARED
    assert (tmp_path / "out" / "evidence_inference" / "LICENSE").read_text() == MIT
    assert not ERASER.check(folder).errors


def test_a_build_of_one_config_keeps_the_others_licences_and_drops_old_ones(source, tmp_path):
    ERASER.build(None, out=tmp_path, source=source)
    (source / "evidence_inference" / "LICENSE").unlink()
    ERASER.build(["evidence_inference"], out=tmp_path, source=source)
    assert [path.name for path in (tmp_path / "eraser" / "licenses").iterdir()] == ["fever.license.html"]
    card = (tmp_path / "eraser" / "README.md").read_text()
    assert "fever.license.html" in card and "evidence_inference.LICENSE" not in card


def test_folders_links_and_large_files_of_that_name_are_skipped(source, tmp_path):
    (source / "movies" / "LICENSE").mkdir()
    (source / "movies" / "NOTICE").symlink_to(tmp_path / "nowhere")
    (source / "movies" / "COPYING").write_bytes(b"x" * 1_000_001)
    result = ERASER.build(["movies"], out=tmp_path, source=source)
    assert sum("skipped" in note for note in result.notes) >= 3
    assert not (tmp_path / "eraser" / "licenses").exists()


def test_a_name_in_release_json_that_leads_elsewhere_is_refused(source, tmp_path):
    ERASER.build(["fever"], out=tmp_path, source=source)
    release = tmp_path / "eraser" / "release.json"
    release.write_text(release.read_text().replace('"license.html"', '"../../../etc/passwd"'))
    with refused("'../../../etc/passwd'", file=release):
        ERASER.export(tmp_path / "eraser", ["fever"], out=tmp_path / "out")
