"""The README is typed as it stands, in a folder of its own, and what it prints is compared with what it says.

A ```console block is a session: each `$` line is run by bash, and what follows must be printed, line by line. `…` on a
line of its own stands for any lines, within a line for any text. A ```python block runs in the folder `hub`; comments
after a `print` give what it prints.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# set-up verbs run the tests themselves, or for many minutes: they are what continuous integration is for
NOT_HERE = ("make ", "git clone", "source ")

pytestmark = pytest.mark.slow


def blocks() -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))


def sessions(block: str) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that it is said to print."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and found[-1][0].endswith("\\") and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line}", [])
        elif found:
            found[-1][1].append(line)
    return found


def as_pattern(said: list[str]) -> re.Pattern[str]:
    """What may be printed: blanks at line ends do not count, `…` is anything."""
    parts = []
    for line in said:
        if line.strip() == "…":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(re.escape(part) for part in line.rstrip().split("…")) + r"[ \t]*\n")
    return re.compile("".join(parts))


def said_by(source: str) -> list[str]:
    """The comment lines of a python block that follow a `print`."""
    said, printing = [], False
    for line in source.splitlines():
        if line.startswith("# ") and printing:
            said.append(line[2:])
        else:
            printing = "print(" in line
    return said


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder with the files that a newcomer has after `make quickstart`, and the environment to type in."""
    folder = tmp_path_factory.mktemp("newcomer")
    shutil.copytree(ROOT / "samples", folder / "samples")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
        "COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1", "OMP_NUM_THREADS": "2",
    }  # fmt: skip
    done = subprocess.run(
        ["eraser-hub", "quickstart"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder, environment


def test_readme_as_typed(newcomer: tuple[Path, dict[str, str]]) -> None:
    folder, environment = newcomer
    wrong, commands = [], 0
    for kind, block in blocks():
        if kind == "python":
            steps = [([sys.executable, "-c", block], block, said_by(block), folder / "hub")]
        else:
            steps = [
                (["bash", "-c", command], command, said, folder)
                for command, said in sessions(block)
                if not command.startswith(NOT_HERE)
            ]
        for call, text, said, where in steps:
            commands += 1
            done = subprocess.run(
                call, cwd=where, env=environment, capture_output=True, text=True, check=False, timeout=900
            )
            # a terminal shows both: notes and warnings first, as the commands write them
            printed = "\n".join(line.rstrip() for line in (done.stderr + done.stdout).splitlines()) + "\n"
            if done.returncode:
                wrong.append(f"{text}\n  exit status {done.returncode}: {done.stderr[-800:]}")
            elif said and not as_pattern(said).search(printed):
                wrong.append(f"{text}\n  says:\n{chr(10).join(said)}\n  printed:\n{printed[-3000:]}")
    assert commands > 10
    assert not wrong, "\n\n".join(wrong)


def test_a_wrong_line_would_be_found() -> None:
    """The comparison itself: it must be able to fail."""
    assert as_pattern(["a … c", "…", "end"]).search("a b c\nx\ny\nend  \n")
    assert not as_pattern(["a", "end"]).search("a\nx\nend\n")
    assert sessions("$ one \\\n  two\nout\n$ three\n") == [("one \\\n  two", ["out"]), ("three", [])]
    assert said_by("x = 1\n# why\nprint(x)\n# 1\n") == ["1"]
