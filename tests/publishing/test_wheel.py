"""The wheel, in empty environments: the oldest dependencies that setup.cfg allows, and the newest there are."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from ..source_copy import ROOT, copy_source

SMOKE = """
import json, os, subprocess, sys
from pathlib import Path
import datasets, evaluate
import eraser_hub, eraser_hub.samples

datasets.disable_progress_bars()
samples = Path(eraser_hub.samples.__path__[0]) / "eraser"
command = [sys.executable, "-m", "eraser_hub"]
subprocess.run([*command, "--version"], check=True)
build = ["build", "eraser", "--source", str(samples), "--config", "movies", "--config", "cose", "--out", ".", "--no-progress"]
subprocess.run([*command, *build], check=True)
subprocess.run([*command, "build", "metrics", "--out", "."], check=True)
movies = datasets.load_dataset("eraser", "movies")
assert movies["train"].features["classification"].names == ["NEG", "POS"], movies["train"].features
row = next(row for row in movies["train"] if row["evidences"])
assert row["evidences"][0][0]["docid"] == row["documents"][0]["docid"]
streamed = next(iter(datasets.load_dataset("eraser", "cose", split="train", streaming=True)))
assert streamed["annotation_id"]
agreement = evaluate.load("eraser_agreement")
perfect = {
    "annotation_id": row["annotation_id"],
    "rationales": [
        {
            "docid": row["documents"][0]["docid"],
            "hard_rationale_predictions": [
                {"start_token": span["start_token"], "end_token": span["end_token"]}
                for group in row["evidences"] for span in group
            ],
        }
    ],
}
scores = agreement.compute(predictions=[perfect], references=[row])
assert scores["exact_micro_f1"] == scores["token_micro_f1"] == 1.0, scores
assert len(list(Path(".").glob("*/app.py"))) == 7
with_table = subprocess.run([*command, "check", "--dataset", "eraser"], check=True, capture_output=True, text=True)
assert "no violation" in with_table.stdout
print("smoke test passed with datasets", datasets.__version__)
"""


def run(command: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "PYTHON"))}
    environment |= {"HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1", **more}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source as it stands; skipped where no package registry can be reached."""
    folder = tmp_path_factory.mktemp("wheel")
    reachable = run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "wheel", "-d", str(folder / "x")], folder
    )
    if reachable.returncode:
        pytest.skip("skipped: no package registry")
    copy_source(folder / "source")  # a build writes into the folder that it is of
    built = run([sys.executable, "-m", "build", "--outdir", str(folder), str(folder / "source")], folder)
    assert built.returncode == 0, built.stderr[-2000:] + built.stdout[-2000:]
    (path,) = folder.glob("*.whl")
    return path


def lower_bounds() -> list[str]:
    """``name==oldest`` for each dependency of setup.cfg."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    found = [
        re.fullmatch(r"([\w.-]+)>=([\d.]+)", line.strip())
        for line in config["options"]["install_requires"].splitlines()
        if line.strip()
    ]
    assert all(found), "each dependency names its oldest version"
    return [f"{match[1]}=={match[2]}" for match in found if match]


@pytest.mark.slow
def test_the_wheel_holds_what_runs(wheel):
    import zipfile

    names = set(zipfile.ZipFile(wheel).namelist())
    for name in (
        "eraser_hub/__main__.py",
        "eraser_hub/py.typed",
        "eraser_hub/metrics/app.py",
        "eraser_hub/metrics/requirements.txt",
        "eraser_hub/metrics/cards/eraser_agreement.md",
        "eraser_hub/conversion/download/sources.json",
        "eraser_hub/datasets_scripts/cards/eraser.md",
    ):
        assert name in names, name
    assert any(name.startswith("eraser_hub/samples/eraser/movies/") for name in names)
    assert not any(name.startswith(("tests/", "eraser_hub/tests/")) or "__pycache__" in name for name in names)


# the interpreters that `make matrix` tries, the oldest first; else the one that runs
PYTHONS = os.environ.get("ERASER_PYTHONS", sys.executable).split()
TRIED = [(PYTHONS[0], "oldest"), *((python, "newest") for python in PYTHONS)]


def smoked(wheel: Path, place: Path, interpreter: str, age: str) -> subprocess.CompletedProcess[str]:
    """The smoke test's process in a new environment; the installation's where that fails."""
    made = run([interpreter, "-m", "venv", "--without-pip", str(place / "environment")], place)
    if made.returncode:
        return made
    python = str(place / "environment" / "bin" / "python")
    wanted = lower_bounds() if age == "oldest" else []
    upgrade = [] if age == "oldest" else ["--upgrade", "--upgrade-strategy", "eager"]
    # this environment's pip serves; what the smoke test does not import need not be compiled
    install = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-compile", *upgrade]
    installed = run([*install, str(wheel), *wanted], place)
    if installed.returncode:
        return installed
    (place / "empty").mkdir()
    return run([python, "-c", SMOKE], place / "empty")


@pytest.fixture(scope="module")
def all_tried(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, str], Future]]:
    """(interpreter, age) -> its smoke test, two under way side by side."""
    with ThreadPoolExecutor(2) as pool:
        there = [(python, age) for python, age in TRIED if shutil.which(python)]
        yield {pair: pool.submit(smoked, wheel, tmp_path_factory.mktemp(pair[1]), *pair) for pair in there}


@pytest.mark.slow
@pytest.mark.parametrize(("interpreter", "age"), TRIED)
def test_the_wheel_works_in_an_empty_environment(all_tried, interpreter, age):
    if (interpreter, age) not in all_tried:
        pytest.skip(f"skipped: no {interpreter} here")
    done = all_tried[interpreter, age].result()
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "smoke test passed" in done.stdout
