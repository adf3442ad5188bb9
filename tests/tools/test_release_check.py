"""The version stands in several files, and a release needs its date in two: each one that disagrees is named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from eraser_hub.version import __version__
from tools.release_check import PLACES, ROOT, disagreements

pytestmark = pytest.mark.unit

TAG = f"v{__version__}"


@pytest.fixture
def dated(tmp_path: Path) -> Path:
    """The files that name the version, ready for a release."""
    for name in PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    citation, changelog = tmp_path / "CITATION.cff", tmp_path / "CHANGELOG.md"
    lines = [line for line in citation.read_text("utf-8").splitlines() if not line.startswith("date-released:")]
    citation.write_text("\n".join([*lines, "date-released: 2026-12-01", ""]), "utf-8")
    _, _, rest = changelog.read_text("utf-8").partition(f"## {__version__} ")
    changelog.write_text(f"# Changelog\n\n## {__version__} (2026-12-01)" + rest[rest.index("\n") :], "utf-8")
    return tmp_path


def test_the_files_agree() -> None:
    assert disagreements() == []


def test_a_dated_release_passes(dated: Path) -> None:
    assert disagreements(dated, TAG) == disagreements(dated) == []


@pytest.mark.parametrize("name", [name for name in PLACES if name != "eraser_hub/version.py"])
def test_a_file_of_another_version_is_named(dated: Path, name: str) -> None:
    text = (dated / name).read_text("utf-8")
    (dated / name).write_text(text.replace(__version__, "0.0.9", 1), "utf-8")
    (found,) = disagreements(dated, TAG)
    assert found.startswith(f"{name}: ") and __version__ in found and "0.0.9" in found


def test_a_tag_of_another_version_is_named(dated: Path) -> None:
    (found,) = disagreements(dated, "v0.0.9")
    assert found.startswith("eraser_hub/version.py: ") and "0.0.9" in found
    assert len(disagreements(dated, __version__)) == 1, "a tag begins with v"


def test_a_tag_wants_a_date(dated: Path) -> None:
    changelog = dated / "CHANGELOG.md"
    changelog.write_text(changelog.read_text("utf-8").replace("(2026-12-01)", "(unreleased)", 1), "utf-8")
    assert [line.partition(":")[0] for line in disagreements(dated, TAG)] == ["CHANGELOG.md"]
    assert [line.partition(":")[0] for line in disagreements(dated)] == ["CITATION.cff"], (
        "a date of what is not released"
    )


def test_both_dates_are_one(dated: Path) -> None:
    citation = dated / "CITATION.cff"
    citation.write_text(citation.read_text("utf-8").replace("2026-12-01", "2026-12-02"), "utf-8")
    (found,) = disagreements(dated, TAG)
    assert found.startswith("CITATION.cff: ") and "2026-12-01" in found and "2026-12-02" in found
