"""SIGKILL at a random moment or file operation: afterwards the output is the old or the new, and a rerun succeeds."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .archives import Answers, members, packed
from .cases import World
from .endpoints import SOUND, Server
from .judging import incomplete
from .material import SAMPLES
from .networks import AVAILABLE
from .runs import Outcome, run_command, snapshot
from .workers import Verdict

# what a killed run leaves beside its result, to go on with or to be taken away by the next one
ORPHANS = re.compile(r"(^|/)\.[^/]*\.tmp$|^\.training(/|\.lock$)")
# what the rerun takes away
LEFT = re.compile(r"^\..*\.(building|old|lock|exported|incomplete)$|\.partial$")
WRITING = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod")
BUILT = ["--dataset", "hub/eraser", "--config", "movies"]
OLD_BUILD = ["build", "eraser", "--source", "raw", "--config", "esnli", "--out", "out", "--no-progress"]
SMALL = ("bilingual_perturbation", "human_rationales")
PAIRS, TOKENS = (["build", name, "--source", name, "--no-progress"] for name in SMALL)
IMPORTED = ["--name", "mine", "--tokens", "tokens", "--mask", "mask", "--label", "label", "--id", "id"]


@dataclass
class Victim:
    """A command that is killed, what it writes, and what wrote the older result.

    Args:
        argv: the command; again: the rerun, where it is another.
        units: each a file or folder that is old or new as a whole.
        before: the command that makes the older result; () for none.
        once: the command replaces nothing, and refuses to run where it has succeeded.
        probe: a command that must succeed where the result is there and whole, and fail elsewhere.
        serves: a server answers, whose address follows ``--endpoint``.
    """

    verb: str
    argv: list[str]
    units: tuple[str, ...]
    before: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    needs: tuple[str, ...] = ("hub", "p.jsonl", "q.jsonl", "model", "raw")
    once: bool = False
    probe: list[str] = field(default_factory=list)
    serves: bool = False


def victims() -> list[Victim]:
    """Every verb that writes."""
    score = ["score", *BUILT, "--split", "val", "--score-file", "s.json", "--results"]
    explain = ["explain", *BUILT, "--split", "val", "--model", "model", "--out", "e.jsonl", "--quiet", "--seed"]
    train = ["train", *BUILT, "--model", "logistic-regression", "--out", "m", "--seed"]
    report = ["report", *BUILT, "--split", "val", "--out", "r", "--resamples", "10", "--predictions"]
    board = ["board", "--out", "b", "--no-published", *BUILT, "--split", "val", "--submission"]
    build = ["build", "eraser", "--source", "raw", "--config", "movies", "--out", "out", "--no-progress"]
    several = [*build[:6], "--config", "esnli", *build[6:]]
    network = ["train", *BUILT, "--model", "glove-lstm", "--out", "m", "--epochs", "2", "--seed"]
    hyper = [word for one in ("embedding_size=4", "hidden_size=4") for word in ("--set", one)]
    val = [*BUILT, "--split", "val"]
    opened = ["explain", *val, "--model", "m", "--out", "probe.jsonl", "--quiet", "--method", "random"]
    ask = ["ask", *val, "--model", "x", "--out", "a.jsonl", "--cache", "c", "--quiet", "--endpoint", "x"]
    compare = ["compare", *val, "--resamples", "10", "--out", "c.json", "--predictions"]
    highlight = ["highlight", *val, "--out", "h.html", "--predictions"]
    imported = ["import", "--from", "rows.jsonl", *IMPORTED, "--out", "c"]
    raw = SAMPLES / "human_rationales"
    tokens = tuple(sorted(f"x/{path.relative_to(raw)}" for path in raw.rglob("*") if path.is_file()))
    return [
        Victim("build", build, ("out/eraser",), OLD_BUILD),
        Victim("score", [*score, "p.jsonl"], ("s.json",), [*score, "q.jsonl"]),
        Victim("explain", [*explain, "2"], ("e.jsonl",), again=[*explain, "2", "--resume"]),
        Victim("train", [*train, "2"], ("m",), [*train, "1"], probe=opened),
        Victim("train a network", [*network, "2", *hyper], ("m",), probe=opened),
        Victim(
            "train a network over another",
            [*network, "2", *hyper],
            ("m",),
            [*train, "1"],
            again=[*network, "2", *hyper, "--resume"],
            probe=opened,
        ),
        Victim("report", [*report, "ours=p.jsonl"], ("r/index.html", "r/ours.scores.json"), [*report, "ours=q.jsonl"]),
        Victim("board", [*board, "ours=p.jsonl"], ("b/index.html", "b/board.json"), [*board, "ours=q.jsonl"]),
        Victim(
            "explain by two methods",
            [*explain, "2", "--method", "random,occlusion"],
            ("e.random.jsonl", "e.occlusion.jsonl"),
            again=[*explain, "2", "--method", "random,occlusion", "--resume"],
        ),
        Victim("ask", ask, ("a.jsonl",), again=[*ask, "--resume"], serves=True),
        Victim("compare", [*compare, "p.jsonl", "--predictions", "q.jsonl"], ("c.json",)),
        Victim("highlight", [*highlight, "p.jsonl"], ("h.html",), [*highlight, "q.jsonl"]),
        Victim("build two", several, ("out/eraser",), OLD_BUILD),
        Victim("build all pairs", [*PAIRS, "--out", "out"], ("out/bilingual_perturbation",), needs=SMALL[:1]),
        Victim("build all tokens", [*TOKENS, "--out", "out"], ("out/human_rationales",), needs=SMALL[1:]),
        Victim("export", ["export", *BUILT, "--out", "exported"], ("exported/movies",), once=True),
        Victim("export two", ["export", *BUILT[:2], "--out", "x"], ("x/movies", "x/esnli"), once=True),
        Victim("export all tokens", ["export", "--dataset", "hub/human_rationales", "--out", "x"], tokens, once=True),
        Victim("import", imported, ("c/mine",), needs=("rows.jsonl",), once=True),
        Victim("import again", [*imported, "--force"], ("c/mine",), imported, needs=("rows.jsonl",)),
        Victim(
            "download",
            ["build", "eraser", "--config", "esnli", "--out", "out", "--no-progress"],
            ("out/eraser",),
            needs=(),
        ),
    ]


def lay_out(home: Path, victim: Victim, folder: Path) -> None:
    """The inputs, as links into the stock."""
    for name in victim.needs:
        (folder / name).symlink_to(home / name)


def run_in(
    folder: Path, argv: Sequence[str], kill_at: int = 0, kill_after: float = 0.0, count: Path | None = None
) -> int:
    """Run a command in a child, and kill it at the n-th file operation or after so many seconds; its exit status."""
    child = os.fork()
    if not child:
        status = 70
        try:
            os.chdir(folder)
            os.environ["ERASER_HUB_CACHE"] = "cache"
            seen = _watch(folder, kill_at)
            outcome = run_command(argv)
            if count is not None:
                count.write_text(str(seen[0]))
            (folder.parent / f"{folder.name}.err").write_text(outcome.err + outcome.trace, "utf-8", "replace")
            status = 70 if outcome.rc is None else outcome.rc
        finally:
            os._exit(status)
    deadline = time.monotonic() + (kill_after or 120)
    while time.monotonic() < deadline:
        done, code = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(code)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _watch(folder: Path, kill_at: int) -> list[int]:
    """Count the file operations below the folder (relative paths are), and die at the n-th."""
    seen, place = [0], str(folder)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in WRITING and arguments and isinstance(arguments[0], (str, os.PathLike)):
            path = os.fspath(arguments[0])
            if isinstance(path, str) and (path.startswith(place) or not path.startswith("/")):
                seen[0] += 1
                if seen[0] == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return seen


def state(folder: Path, unit: str) -> Any:
    """A digest of the unit, hidden files that a kill orphans left out: None where it is not there."""
    path = folder / unit
    if path.is_dir():
        return {name: digest for name, digest in snapshot(path).items() if not ORPHANS.search(name)}
    return snapshot(path.parent)[path.name] if path.is_file() else None


@dataclass
class Reference:
    """The unit's states before and after an undisturbed run, its length, the files that no two runs write alike."""

    old: dict[str, Any]
    new: dict[str, Any]
    volatile: set[str]
    operations: int
    seconds: float
    folder: Path


def reference(home: Path, victim: Victim, place: Path) -> Reference:
    """Run the victim undisturbed, twice."""
    states = []
    for number in range(2):
        folder = place / f"reference{number}"
        folder.mkdir()
        lay_out(home, victim, folder)
        if victim.before and run_in(folder, victim.before):
            raise RuntimeError(f"{victim.before}: {(place / f'{folder.name}.err').read_text()}")
        if number == 0:
            shutil.copytree(folder, place / "old", symlinks=True)
        start = time.monotonic()
        if run_in(folder, victim.argv, count=place / "count"):
            raise RuntimeError(f"{victim.argv}: {(place / f'{folder.name}.err').read_text()}")
        seconds = time.monotonic() - start
        states.append({unit: state(folder, unit) for unit in victim.units})
    old = {unit: state(place / "old", unit) for unit in victim.units}
    return Reference(old, states[0], _differing(*states), int((place / "count").read_text()), seconds, place / "old")


def _differing(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    names = set()
    for unit, value in one.items():
        if isinstance(value, dict):
            names |= {f"{unit}/{name}" for name in value if value[name] != other[unit].get(name)}
        elif value != other[unit]:
            names.add(unit)
    return names


def is_whole(model: Path) -> bool:
    """Whether a model's folder is one: its facts are there, and no mark says that it was being written."""
    return (model / "model.json").is_file() and not (model / ".training" / "saving").exists()


def leftovers(folder: Path, victim: Victim) -> str:
    """What a rerun that succeeded left of the killed run beside its result; "" for nothing."""
    names = {path.name for unit in victim.units for path in (folder / unit).parent.iterdir()}
    left = sorted(name for name in names if LEFT.search(name))
    return f"{', '.join(left)} was left behind" if left else ""


def neither(folder: Path, unit: str, known: Reference, rerun: bool = False) -> str:
    """Why the unit is neither the old nor the new; "" where it is one of them. After a rerun it has to be the new."""
    now, new = state(folder, unit), known.new[unit]
    old = new if rerun else known.old[unit]
    # a model whose files were being written is marked, and refused by every verb until `train` has run again
    if now in (old, new) or (not rerun and (folder / unit / ".training" / "saving").exists()):
        return ""
    if now is None:
        return f"{unit} is gone"
    if not isinstance(now, dict):
        return (
            (incomplete(folder / unit) and f"{unit} is not whole") if unit in known.volatile else f"{unit} is neither"
        )
    for whole in (old or {}, new):
        kept = {name for name in whole if f"{unit}/{name}" not in known.volatile}
        if set(now) == set(whole) and all(now[name] == whole[name] for name in kept):
            return ""
    strange = [name for name in now if now[name] not in ((old or {}).get(name), new.get(name))]
    missing = sorted(set(new) - set(now))
    return (
        f"{unit}: a mix of old and new" if not strange and not missing else f"{unit}: {(strange + missing)[:3]} neither"
    )


def killed(victim: Victim, known: Reference, number: int, draw: random.Random, place: Path) -> Verdict:
    """One kill, and what was left."""
    folder = place / f"kill{number}"
    shutil.copytree(known.folder, folder, symlinks=True)
    name = f"kill {victim.verb}"
    if draw.random() < 0.6:
        how: dict[str, Any] = {"kill_at": draw.randint(1, max(known.operations, 1))}
    else:
        how = {"kill_after": draw.uniform(0.001, known.seconds)}
    status = run_in(folder, victim.argv, **how)
    fault = "; ".join(filter(None, (neither(folder, unit, known) for unit in victim.units)))
    kind = "half-written" if fault else "success" if status == 0 else "clean error"
    if victim.probe and not fault:
        opened, whole = run_in(folder, victim.probe), is_whole(folder / victim.units[0])
        if opened != (0 if whole else 1):
            kind = "wrong acceptance" if opened == 0 else "wrong refusal"
            fault = f"{victim.units[0]} is {'whole' if whole else 'not whole'}, and the probe ends with {opened}"
    done = victim.once and all(state(folder, unit) == known.new[unit] for unit in victim.units)
    again = 0 if fault else run_in(folder, victim.again or victim.argv)
    if again != 0 and not (done and again == 1):
        words = (place / f"{folder.name}.err").read_text().strip()[-300:]
        kind, fault = "wrong refusal", f"the rerun ends with {again}: {words}"
    elif not fault:
        fault = "; ".join(filter(None, (neither(folder, unit, known, rerun=True) for unit in victim.units)))
        fault = fault or ("" if again else leftovers(folder, victim))
        kind = "half-written" if fault else kind
    shutil.rmtree(folder)
    story = f"$ eraser-hub {' '.join(victim.argv)}   killed at {how}"
    return Verdict(name, number, f"{victim.verb}/kill", "anything", kind, fault, Outcome(rc=status), story)


def kills(home: Path, count: int, seed: int, verbs: Sequence[str] = ()) -> Iterator[Verdict]:
    """So many kills of each verb that writes."""
    for victim in victims():
        if (verbs and victim.verb not in verbs) or not count or ("network" in victim.verb and not AVAILABLE):
            continue
        place = Path(tempfile.mkdtemp(prefix="attack-kills-"))
        kept = os.environ.pop("ERASER_HUB_ARCHIVES", None)
        if victim.verb == "download":
            answers = Answers(200, {}, packed(members("esnli")))
            os.environ["ERASER_HUB_ARCHIVES"] = answers.url
        if victim.serves:
            served = World(random.Random(), reply=lambda: iter([SOUND]))
            for argv in (victim.argv, victim.again):
                argv[argv.index("--endpoint") + 1] = Server(served).endpoint
        try:
            known = reference(home, victim, place)
            for number in range(count):
                yield killed(victim, known, number, random.Random(f"{seed} {victim.verb} {number}"), place)
        finally:
            os.environ.pop("ERASER_HUB_ARCHIVES", None)
            if kept is not None:
                os.environ["ERASER_HUB_ARCHIVES"] = kept
            shutil.rmtree(place, ignore_errors=True)
