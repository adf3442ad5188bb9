"""A command or a call, run in this process: what it said, wrote and raised."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .cases import World
from .material import write_files

CASE_SECONDS = 10.0


class Hang(BaseException):
    """The alarm of a case."""


@dataclass
class Outcome:
    """What a command or call did: exit status (1 for a clean error), what it said, a traceback, its scores."""

    rc: int | None = None
    out: str = ""
    err: str = ""
    trace: str = ""
    hang: bool = False
    scores: Any = None
    before: str = ""


@contextmanager
def captured(outcome: Outcome) -> Iterator[None]:
    """stdout and stderr, of Python and of C, into the outcome."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        streams, kept = (sys.stdout, sys.stderr), [os.dup(1), os.dup(2)]
        for stream, file, fd in zip(streams, (out, err), (1, 2), strict=True):
            stream.flush()
            os.dup2(file.fileno(), fd)
        replaced = [os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace", closefd=False) for fd in (1, 2)]
        sys.stdout, sys.stderr = replaced
        try:
            yield
        finally:
            for stream, fd, origin in zip(replaced, kept, (1, 2), strict=True):
                with suppress(ValueError):
                    stream.flush()
                os.dup2(fd, origin)
                os.close(fd)
            sys.stdout, sys.stderr = streams
            for file in (out, err):
                file.seek(0)
            outcome.out, outcome.err = (file.read().decode("utf-8", "replace") for file in (out, err))


@cache
def keep_command() -> None:
    """Typer builds its command anew for each call of the app: once for each number of verbs is enough."""
    import typer.main

    build, kept = typer.main.get_command, {}

    def get_command(app: Any) -> Any:
        key = id(app), len(app.registered_commands), len(app.registered_groups)
        kept[key] = kept.get(key) or build(app)
        return kept[key]

    typer.main.get_command = get_command


def run_command(argv: Sequence[str]) -> Outcome:
    """The command line in this process, as the console script runs it."""
    from eraser_hub.__main__ import main

    keep_command()

    def run(outcome: Outcome) -> None:
        try:
            main()
            outcome.rc = 0
        except SystemExit as error:
            outcome.rc = error.code if isinstance(error.code, int) else int(error.code is not None)

    sys.argv = ["eraser-hub", *argv]
    return guarded(run, "default")


def run_call(world: World) -> Outcome:
    """A module's compute: ValueError is the clean error, warnings are what it says."""
    compute = world.call
    assert compute is not None

    def run(outcome: Outcome) -> None:
        try:
            outcome.scores = compute(predictions=world.predictions, references=world.references, **world.settings)
            outcome.rc, shown = 0, repr(outcome.scores)
            print(shown)
        except world.clean as error:
            # a UnicodeDecodeError or a LinAlgError is a ValueError that nobody wrote for a user
            ours = type(error).__module__.split(".")[0] in ("eraser_hub", "evaluate_modules")
            if type(error) not in world.clean and not ours:
                raise
            outcome.rc = 1
            print(error, file=sys.stderr)

    return guarded(run, "always")


def _show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
    print(warnings.formatwarning(message, category, filename, lineno), end="", file=sys.stderr)


def guarded(run: Callable[[Outcome], None], show_warnings: Any) -> Outcome:
    """Run with everything captured: what is raised besides is a traceback, or the alarm."""
    outcome = Outcome()
    with captured(outcome), warnings.catch_warnings():
        warnings.simplefilter(show_warnings)
        warnings.showwarning = _show  # on stderr also where a test's run collects warnings
        try:
            run(outcome)
        except Hang:
            outcome.hang = True
        except BaseException:
            outcome.trace = traceback.format_exc()
    return outcome


def _alarm(*_: Any) -> None:
    raise Hang


def timed(act: Callable[[], Outcome]) -> Outcome:
    """Act under the case's alarm."""
    signal.signal(signal.SIGALRM, _alarm)
    signal.setitimer(signal.ITIMER_REAL, CASE_SECONDS)
    try:
        return act()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def quick_tables(quick: bool) -> Iterator[None]:
    """Tables of rich as bare cells: to draw them takes half of a small command's time, so a fifth of the cases do."""
    from rich.segment import Segment
    from rich.table import Table

    drawing = Table.__rich_console__

    def bare(self: Table, console: Any, options: Any) -> Iterator[Segment]:
        for column in self.columns:
            yield Segment(f"{column.header} {' '.join(map(str, column.cells))}\n")

    Table.__rich_console__ = bare if quick else drawing  # type: ignore[method-assign]
    try:
        yield
    finally:
        Table.__rich_console__ = drawing  # type: ignore[method-assign]


# -------------------------------------------------------------------------------------------------------------- folders
def snapshot(folder: Path) -> dict[str, str]:
    """Every file below the folder and a digest, or its kind; links are not followed."""
    digests = {}
    for place, folders, names in os.walk(folder):
        for name in [*names, *(one for one in folders if os.path.islink(os.path.join(place, one)))]:
            path = Path(place, name)
            plain = path.is_file() and not path.is_symlink()
            said = hashlib.sha1(path.read_bytes()).hexdigest() if plain else _kind(path)
            digests[os.path.relpath(path, folder)] = f"link {os.readlink(path)}" if path.is_symlink() else said
    return digests


def _kind(path: Path) -> str:
    return f"no file: {stat.filemode(path.lstat().st_mode)[0]}"


def prepare(world: World, folder: Path) -> dict[str, str]:
    """Write the case's files; returns their snapshot."""
    for path, source in world.links.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not world.copies:
            target.symlink_to(source)
        else:
            shutil.copytree(source, target, symlinks=True)
    write_files(folder, world.files)
    for act in world.acts:
        act(folder)
    return snapshot(folder)


@contextmanager
def folder_of(world: World) -> Iterator[tuple[Path, dict[str, str]]]:
    """(a new folder with the case's files, their snapshot), entered with the case's environment, and removed."""
    folder = Path(tempfile.mkdtemp(prefix="attack-"))
    here, environment = os.getcwd(), dict(os.environ)
    try:
        before = prepare(world, folder)
        os.chdir(folder)
        os.environ.update(world.environment)
        yield folder, before
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(environment)
        for place in world.mounts:
            subprocess.run(["umount", str(place)], check=True)
        shutil.rmtree(folder, ignore_errors=True)


def run_in_folder(world: World, check: Callable[[Path, dict[str, str], Outcome], str]) -> tuple[Outcome, str]:
    """(what the command did, what `check` says of its folder)."""
    with folder_of(world) as (folder, before), quick_tables(world.random.random() < 0.8):
        outcome = timed(lambda: run_command(world.argv))
        if world.then and not outcome.hang and not outcome.trace:
            if world.between is not None:
                world.between()
            first = f"the first command ended with {outcome.rc}: {outcome.err.strip()[-300:]}"
            outcome = timed(lambda: run_command(world.then))
            outcome.before = first
        for path in world.outputs:  # a score file, for the cases that compare scores
            if outcome.rc == 0 and path.endswith(".json") and (folder / path).is_file():
                with suppress(ValueError):
                    outcome.scores = json.loads((folder / path).read_bytes())
        return outcome, "" if outcome.hang else check(folder, before, outcome)
