"""Types the blocks of a page: `python -m tests.docs.pages docs/data.md` writes what they print now into the page.

- A ```console block is a session. bash runs each `$` line in the project's folder. Lines below it are all that it
  prints; a command without such lines has to end well, and what it prints is not shown.
- A ```python block runs in the same folder. Comments right below a statement that prints are all that it prints.
- A block of any kind below a line that is but a path and a colon, as in "`conversion/toy/rows.py`:", is that file's
  content; a ```diff block there changes the file (`@@` stands between places that lie apart).
- A language model's server is `language_model.py` here, in the place of the address that pages name.
- Blocks of other kinds (```text) are shown and not run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..asking.scripted_server import ScriptedServer
from ..source_copy import copy_source
from .language_model import ENDPOINT, reply

BLOCK = re.compile(r"(?:^`([\w./-]+)`:\n\n)?^(````?)(\w+)\n(.*?)^\2$", re.MULTILINE | re.DOTALL)
# set-up verbs run the tests themselves, or for many minutes: they are what continuous integration is for
NOT_HERE = ("make ", "git clone", "source ", "pip install")
SETTINGS = (
    *("COLUMNS=120", "NO_COLOR=1", "TERM=dumb", "PYTHONUTF8=1", "PYTHONUNBUFFERED=1", "OMP_NUM_THREADS=2"),
    *("HF_HUB_OFFLINE=1", "HF_DATASETS_DISABLE_PROGRESS_BARS=1"),
)
# runs a block and prints, for each statement, its last line and what it printed
STATEMENTS = """
import ast, contextlib, io, json, sys
scope, said = {"__name__": "__main__"}, []
for node in ast.parse(sys.argv[1]).body:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module([node], []), "<page>", "exec"), scope)
    said.append((node.end_lineno, printed.getvalue()))
print(json.dumps(said))
"""


def type_page(page: str, clone: Path) -> str:
    """Return the text of a page with what its blocks print in `clone`."""
    parts, end = [], 0
    with ScriptedServer(reply) as server:
        for block in BLOCK.finditer(page):
            file, _, kind, text = block.groups()
            target = clone / (file or ".")
            if file:
                target.parent.mkdir(parents=True, exist_ok=True)
                changed = change(target.read_text("utf-8"), text) if kind == "diff" else text
                target.write_text(changed, encoding="utf-8")
            elif kind == "console":
                text = type_session(text, clone, server.endpoint)
            elif kind == "python":
                text = type_python(text, clone, server.endpoint)
            parts += [page[end : block.start(4)], text]
            end = block.end(4)
    return "".join([*parts, page[end:]])


def type_session(session: str, clone: Path, endpoint: str) -> str:
    """Return a console block with what its commands print; those that show nothing have to succeed."""
    shown = []
    for match in re.finditer(r"^\$ ((?:.*\\\n)*.*\n)((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
        command, said = match.groups()
        if said and not command.startswith(NOT_HERE):
            said = run(["bash", "-c", command.replace(ENDPOINT, endpoint)], clone, fails=True)
        elif not command.startswith(NOT_HERE):
            run(["bash", "-c", command.replace(ENDPOINT, endpoint)], clone)
        shown.append(f"$ {command}{said}")
    return "".join(shown)


def type_python(source: str, clone: Path, endpoint: str) -> str:
    """Return a block of Python with what its statements print, as comments below them."""
    said = run([sys.executable, "-c", STATEMENTS, source.replace(ENDPOINT, endpoint)], clone)
    lines = source.splitlines()
    for number, printed in reversed(json.loads(said.splitlines()[-1])):
        end = number
        while printed and end < len(lines) and lines[end].startswith("#"):
            end += 1
        lines[number:end] = [f"# {line}".rstrip() for line in printed.splitlines()]
    return "\n".join(lines) + "\n"


def run(command: list[str], folder: Path, fails: bool = False) -> str:
    """Return what a command prints, notes and results as a terminal shows them."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment_of(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=900,
    )
    wrong = (done.returncode and not fails) or "Traceback (most recent call last)" in done.stdout
    assert not wrong, f"{command[-1]}\n  exit status {done.returncode}: {done.stdout[-3000:]}"
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def environment_of(clone: Path) -> Mapping[str, str]:
    """Return a reader's environment: a terminal of 120 columns, no network, no cache of this machine."""
    return {
        **os.environ,
        **dict(setting.split("=") for setting in SETTINGS),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(clone),
        "HF_HOME": str(clone / ".hf"),
        "XDG_CACHE_HOME": str(clone / ".cache"),
    }


def change(text: str, diff: str) -> str:
    """Return `text` after the changes of a diff without line numbers; each place must occur exactly once."""
    for place in diff.split("@@\n"):
        lines = place.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if not line.startswith("+"))
        assert text.count(before) == 1, f"{text.count(before)} places are\n{before}"
        text = text.replace(before, "".join(line[1:] for line in lines if not line.startswith("-")))
    return text


def make_clone(clone: Path, hub: Path | None = None) -> Path:
    """Fill an empty folder with the sources, and with a `hub` as `make quickstart` leaves it, or with its copy."""
    copy_source(clone)
    if hub is None:
        run(["eraser-hub", "quickstart"], clone)
    else:
        shutil.copytree(hub, clone / "hub")
    return clone


def main(*pages: str) -> None:
    """Write what the pages' blocks print into the pages."""
    with tempfile.TemporaryDirectory() as folder:
        hub = make_clone(Path(folder) / "first") / "hub"
        for number, page in enumerate(map(Path, pages)):
            clone = make_clone(Path(folder) / str(number), hub)
            page.write_text(type_page(page.read_text("utf-8"), clone), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
