"""Broken files and random options: exit status 0, 1 or 2, no traceback, whole outputs, inputs that stay as they are."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eraser_hub import cli

from .inputs import COMMANDS, VERBS, Ended, digests, run, spoil, write_inputs

CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
SPOILT = [(command, name) for command, names in COMMANDS.items() for name in names]
seeds = st.integers(0, 2**32 - 1)


def deterministic(examples: int) -> settings:
    quiet = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    return settings(max_examples=examples, derandomize=True, database=None, deadline=None, suppress_health_check=quiet)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the sound inputs in ``in``, which is the working folder."""
    folder = tmp_path_factory.mktemp("hostile")
    write_inputs(folder / "in")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


def judge(folder: Path, words: list[str], before: dict[str, str], ended: Ended) -> None:
    """Assert what holds of every run, whatever its input."""
    told = f"{words}\n{ended.said[-2000:]}\n{ended.trace}"
    assert ended.status in (0, 1, 2) and "Traceback" not in ended.said, told
    assert ended.status == 0 or ended.said.strip(), told
    assert not CONTROL.search(ended.said) and len(ended.said) < 100_000, told
    after = digests(folder / "in")
    assert {name: after.get(name) for name in before} == before, told
    written = [path for path in (folder / "out").rglob("*") if path.is_file()]
    assert not [path for path in written if path.name.endswith((".tmp", ".partial", ".building"))], told
    assert ended.status != 1 or words[0] in ("check", "build") or not written, told
    for path in written if ended.status == 0 else ():
        if path.suffix == ".json":
            json.loads(path.read_bytes(), parse_constant=pytest.fail)


def play(folder: Path, words: list[str]) -> Ended:
    before = digests(folder / "in")
    shutil.rmtree(folder / "out", ignore_errors=True)
    (folder / "out").mkdir()
    ended = run(words)
    judge(folder, words, before, ended)
    for new in digests(folder / "in").keys() - before.keys():  # what was asked for: `--out in`
        (folder / "in" / new).unlink()
    return ended


@pytest.mark.parametrize("command", COMMANDS)
def test_the_sound_inputs_are_taken(sound: Path, command: str) -> None:
    ended = play(sound, command.split())
    assert ended.status == 0, ended


@pytest.mark.parametrize(("command", "name"), SPOILT, ids=lambda value: value.split()[0])
@given(seed=seeds)
@deterministic(12)
def test_a_broken_file_is_an_error_or_is_scored(sound: Path, command: str, name: str, seed: int) -> None:
    path, draw = sound / "in" / name, random.Random(seed)
    content = path.read_bytes()
    path.write_bytes(spoil(draw, content, name))
    try:
        play(sound, command.split())
    finally:
        path.write_bytes(content)


@pytest.mark.parametrize(("command", "name"), SPOILT, ids=lambda value: value.split()[0])
@pytest.mark.parametrize("way", ["gone", "folder", "empty", "link to itself"])
def test_a_path_that_is_no_such_file(sound: Path, command: str, name: str, way: str) -> None:
    path = sound / "in" / name
    content = path.read_bytes()
    path.unlink()
    try:
        if way == "folder":
            path.mkdir()
        elif way == "empty":
            path.touch()
        elif way != "gone":
            path.symlink_to(path.name)
        ended = play(sound, command.split())
        assert ended.status or (command.split()[0], way) == ("build", "gone"), "a corpus may lack a split"
    finally:
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        path.unlink(missing_ok=True)
        path.write_bytes(content)


def options_of(verb: str) -> list[str]:
    """Return the options of a verb that need no network, no model and no prompt."""
    names = [
        name for argument in cli.app[verb].assemble_argument_collection() if argument.show for name in argument.names
    ]
    return sorted(name for name in names if name.startswith("--"))


VALUES = (
    "",
    "x",
    "0",
    "1",
    "-1",
    "0.5",
    "nan",
    "1e400",
    "9" * 30,
    "in/p.jsonl",
    "in",
    "out",
    "nowhere",
    "a\0b",
    "\x1b[31m",
)


@pytest.mark.parametrize("verb", VERBS)
@given(seed=seeds)
@deterministic(25)
def test_random_options(sound: Path, verb: str, seed: int) -> None:
    draw = random.Random(seed)
    words = draw.choice([command for command in COMMANDS if command.split()[0] == verb]).split()
    names = options_of(verb)
    for _ in range(draw.choice((1, 1, 2, 3))):
        words += [draw.choice(names), *([draw.choice(VALUES)] if draw.random() < 0.8 else [])]
    play(sound, words)
