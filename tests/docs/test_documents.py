"""README.md and docs/ are typed as they stand, each page in a clone of its own, and must print what they say.

- A ```console block is a session: each `$` line is run by bash in the project's folder, and what follows must be
  printed, line by line. `…` on a line of its own stands for any lines, within a line for any text.
- A ```python block runs in the folder `hub`; comments after a `print` give what it prints.
- A block of any kind after a line that is but a path and a colon, as in "`conversion/toy/rows.py`:", is that file's
  content; a ```diff block after such a line changes the file (`@@` stands between places that lie apart).
- A language model's server is `language_model.py` here, in the place of the address that pages name.
- Blocks of other kinds (```text) are shown and not run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tools.site import MADE

from ..asking.scripted_server import ScriptedServer
from ..source_copy import ROOT, copy_source
from .language_model import ENDPOINT, reply

TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
PAGES = (*(ROOT / name for name in TOP), *sorted((ROOT / "docs").glob("*.md")))
BLOCK = re.compile(r"(?:^`([\w./-]+)`:\n\n)?^(````?)(\w+)\n(.*?)^\2$", re.MULTILINE | re.DOTALL)
# GitHub leads these from the README's place to the repository's own pages
WORKFLOW = re.compile(r"\.\./\.\./actions/workflows/([\w-]+\.yml)(?:/badge\.svg)?")
PLACE = re.compile(r"`((?:\w+/)+\w+\.py)(?::(\w+))?`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir()}
# set-up verbs run the tests themselves, or for many minutes: they are what continuous integration is for
NOT_HERE = ("make ", "git clone", "source ", "pip install")


class Block(NamedTuple):
    file: str  # the path that the block's text belongs to, or nothing
    kind: str
    text: str

    @property
    def does_something(self) -> bool:
        return bool(self.file) or self.kind in ("console", "python")


class Step(NamedTuple):
    text: str
    command: list[str]
    said: list[str]
    folder: str


def blocks(page: Path) -> list[Block]:
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [Block(file, kind, text) for file, _, kind, text in found]


def sessions(block: str) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that it is said to print."""
    commands: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif commands and commands[-1][0].endswith("\\") and not commands[-1][1]:
            commands[-1] = (f"{commands[-1][0]}\n{line}", [])
        elif commands:
            commands[-1][1].append(line)
    return commands


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


def changed(text: str, diff: str) -> str:
    """``text`` after the changes of a diff without line numbers; each place must occur exactly once."""
    for place in diff.split("@@\n"):
        lines = place.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if not line.startswith("+"))
        assert text.count(before) == 1, f"{text.count(before)} places are\n{before}"
        text = text.replace(before, "".join(line[1:] for line in lines if not line.startswith("-")))
    return text


def steps(block: Block) -> Iterator[Step]:
    if block.kind == "python":
        yield Step(block.text, [sys.executable, "-c", block.text], said_by(block.text), "hub")
    elif block.kind == "console":
        for command, said in sessions(block.text):
            if not command.startswith(NOT_HERE):
                yield Step(command, ["bash", "-c", command], said, ".")


def fault(step: Step, clone: Path, environment: dict[str, str]) -> str:
    """Type it: nothing if it prints what is said, else what went wrong."""
    done = subprocess.run(
        step.command, cwd=clone / step.folder, env=environment, capture_output=True, text=True, check=False, timeout=900
    )
    # a terminal shows both: notes and warnings first, as the commands write them
    printed = "\n".join(line.rstrip() for line in (done.stderr + done.stdout).splitlines()) + "\n"
    if done.returncode:
        return f"{step.text}\n  exit status {done.returncode}: {printed[-3000:]}"
    if step.said and not as_pattern(step.said).search(printed):
        return f"{step.text}\n  says:\n{chr(10).join(step.said)}\n  printed:\n{printed[-3000:]}"
    return ""


def environment_of(clone: Path) -> dict[str, str]:
    terminal = {"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1", "OMP_NUM_THREADS": "2"}
    hub = {"HF_HOME": str(clone / ".hf"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {
        **os.environ,
        **terminal,
        **hub,
        "PATH": path,
        "PYTHONPATH": str(clone),
        "XDG_CACHE_HOME": str(clone / ".cache"),
    }


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `hub` that `make quickstart` leaves."""
    clone = tmp_path_factory.mktemp("quickstart")
    copy_source(clone)
    done = subprocess.run(
        ["eraser-hub", "quickstart"], cwd=clone, env=environment_of(clone), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return clone / "hub"


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(block.does_something for block in blocks(page))],
    ids=lambda page: page.parent.name.partition("pages_")[2] + page.name,
)
def test_page_as_typed(page: Path, quickstart: Path, tmp_path: Path) -> None:
    copy_source(tmp_path)
    shutil.copytree(quickstart, tmp_path / "hub")
    environment = environment_of(tmp_path)
    faults = []
    with ScriptedServer(reply) as server:
        for block in blocks(page):
            target = tmp_path / block.file
            if block.file and block.kind == "diff":
                target.write_text(changed(target.read_text(encoding="utf-8"), block.text), encoding="utf-8")
            elif block.file:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(block.text, encoding="utf-8")
            else:
                typed = block._replace(text=block.text.replace(ENDPOINT, server.endpoint))
                faults += filter(None, (fault(step, tmp_path, environment) for step in steps(typed)))
    assert not faults, "\n\n".join(faults)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    lost = []
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        workflow = WORKFLOW.fullmatch(path)
        target = ROOT / ".github" / "workflows" / workflow[1] if workflow else page.parent / path if path else page
        if page.parent.name == "docs" and path in MADE:  # by the site, which holds these links to be there
            continue
        if "://" not in link and (not target.exists() or (anchor and anchor not in anchors(target))):
            lost.append(link)
    assert not lost


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_places_in_the_code_are_there(page: Path) -> None:
    """`folder/file.py` and `folder/file.py:name` exist, or the page's own blocks write them."""
    written = {block.file: block.text for block in blocks(page) if block.file}
    lost = []
    for path, name in PLACE.findall(page.read_text(encoding="utf-8")):
        if path.split("/")[0] not in FOLDERS:
            continue
        file = ROOT / path
        text = file.read_text(encoding="utf-8") if file.is_file() else written.get(path)
        if text is None or (name and not re.search(rf"^(?:def|class) {name}\b|^{name}\b.* = ", text, re.MULTILINE)):
            lost.append(f"{path}:{name}")
    assert not lost


def test_a_wrong_line_would_be_found() -> None:
    """The comparison itself: it must be able to fail."""
    assert as_pattern(["a … c", "…", "end"]).search("a b c\nx\ny\nend  \n")
    assert not as_pattern(["a", "end"]).search("a\nx\nend\n")
    assert sessions("$ one \\\n  two\nout\n$ three\n") == [("one \\\n  two", ["out"]), ("three", [])]
    assert said_by("x = 1\n# why\nprint(x)\n# 1\n") == ["1"]
    assert changed("a\nb\nc\nd\n", " a\n+x\n@@\n-c\n+y\n") == "a\nx\nb\ny\nd\n"
    with pytest.raises(AssertionError, match="2 places"):
        changed("a\na\n", " a\n+x\n")
