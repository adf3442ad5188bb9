"""The files of a build are compared with the digests that it recorded."""

from __future__ import annotations

import json

from eraser_hub.conversion.card import get_dataset_version
from eraser_hub.conversion.written_files import verify_digests
from eraser_hub.records.files import compute_file_digest
from eraser_hub.version import __version__

from ..refusals import refused


def test_digests_tell_which_file_changed(tmp_path):
    path = tmp_path / "movies" / "test-00000-of-00001.parquet"
    path.parent.mkdir()
    path.write_bytes(b"rows")
    splits = {"test": {"files": {path.name: compute_file_digest(path)}}}
    (tmp_path / "release.json").write_text(json.dumps({"configs": {"movies": {"splits": splits}}}))
    verify_digests(tmp_path)
    (tmp_path / "movies" / "mine.parquet").write_bytes(b"mine")
    with refused("not written by build", file="mine.parquet"):
        verify_digests(tmp_path)
    (tmp_path / "movies" / "mine.parquet").unlink()
    path.write_bytes(b"other rows")
    with refused(file=path):
        verify_digests(tmp_path)
    path.unlink()
    with refused(file=path):
        verify_digests(tmp_path)
    (tmp_path / "release.json").write_text("{}")
    with refused("digests", file="release.json"):
        verify_digests(tmp_path)


def test_configs_of_different_versions_make_one_version():
    def card(*versions: str) -> dict:
        return {"configs": [{"config_name": str(n), "version": version} for n, version in enumerate(versions)]}

    assert get_dataset_version(card("1.0.5", "1.0.5")) == "1.0.5"
    mixed = get_dataset_version(card("1.0.5", "1.0.6"))
    assert mixed.startswith(f"{__version__.rpartition('.')[0]}.") and mixed not in ("1.0.5", "1.0.6")
    assert mixed == get_dataset_version(card("1.0.5", "1.0.6")) != get_dataset_version(card("1.0.6", "1.0.5"))
