"""The package of docs/add-a-reader.md, installed: its format is read like the others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ...docs.test_documents import ROOT, blocks

REVIEWS = "POS\ta *warm* and *funny* film\nNEG\t*dull* from the first scene\n"
USE = """
import sys
from pathlib import Path
from eraser_hub import DataError, import_corpus
from eraser_hub.conversion.importing.sources import READERS

assert "starred" in READERS
columns = {"tokens": "words", "mask": "marked", "label": "label"}
result = import_corpus("reviews.starred", "reviews", out="corpora", **columns)
print(result.rows, result.labels)
Path("bad.starred").write_text("no tab")
try:
    import_corpus("bad.starred", "bad", out="corpora", **columns)
except DataError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the reviews, and the package in ``site``."""
    folder = tmp_path_factory.mktemp("plug_in")
    for block in blocks(ROOT / "docs" / "add-a-reader.md"):
        if block.file:
            (folder / block.file).parent.mkdir(exist_ok=True)
            (folder / block.file).write_text(block.text, encoding="utf-8")
    (folder / "reviews.starred").write_text(REVIEWS, encoding="utf-8")
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--target", "site")
    command = [sys.executable, "-m", "pip", "install", "-q", *offline, "./starred-reader"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def run(folder: Path, *words: str) -> str:
    path = os.pathsep.join((str(folder / "site"), str(ROOT)))
    command, environment = [sys.executable, *words], {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_files_are_imported_and_its_errors_name_the_line(installed: Path) -> None:
    assert run(installed, "-c", USE).splitlines() == [
        "{'train': 2} ['NEG', 'POS']",
        "bad.starred:1: expected a label and a tab, found none",
    ]


def test_the_command_of_the_page(installed: Path) -> None:
    page = (ROOT / "docs" / "add-a-reader.md").read_text(encoding="utf-8")
    command, said = page[page.index("$ eraser-hub import") :].splitlines()[:2]
    words = command.replace("--out corpora", "--out typed").split()[2:]
    assert run(installed, "-m", "eraser_hub", *words) == said.replace("corpora/", "typed/") + "\n"
