"""What stands in an output's place: inputs, links, pipes, sockets, devices of our own, read-only and full disks.

No output is ever led to a device of the machine: the nodes are made in the case's folder. Nodes and mounts need
root; where they cannot be made these ways are left out (`LEFT_OUT`).
"""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from .cases import COMPUTED, ERROR, Expect, World, mutates


def may_mount() -> bool:
    """Whether this process may mount in a namespace of its own."""
    with tempfile.TemporaryDirectory() as folder, suppress(OSError):
        command = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", folder]
        return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0
    return False


def may_make_nodes() -> bool:
    """Whether this process may make device nodes, and write to them."""
    with tempfile.TemporaryDirectory() as folder, suppress(OSError):
        node(stat.S_IFCHR, NULL)(Path(folder, "null"))
        Path(folder, "null").write_bytes(b"x")
        return True
    return False


THESIS = b"\\documentclass{book} years of work"
SPACE = "64k"
NULL, FULL, NO_DISK = os.makedev(1, 3), os.makedev(1, 7), os.makedev(7, 4000)


@cache
def own_mounts() -> None:
    """Leave the machine's mount namespace, so that mounts end with this process."""
    import ctypes

    new_namespace, private, recursive = 0x00020000, 1 << 18, 1 << 14
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(new_namespace) or libc.mount(b"none", b"/", None, private | recursive, None):
        raise OSError(ctypes.get_errno(), "no mount namespace")


def mount(place: Path, *options: str) -> None:
    """Mount a small tmpfs."""
    own_mounts()
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(place)], check=True)


def listen(path: Path) -> None:
    """Make a socket's node."""
    here = os.getcwd()
    os.chdir(path.parent)  # an address has few bytes
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


def node(kind: int, device: int) -> Callable[[Path], None]:
    return lambda path: os.mknod(path, kind | 0o600, device)


MOUNTS, NODES_TOO = may_mount(), may_make_nodes()
LEFT_OUT = " and ".join(["mounts"] * (not MOUNTS) + ["device nodes"] * (not NODES_TOO))
Make = Callable[[Path], object]
# name -> (what is made in the output's place, the verdict, the verdict with --force)
REFUSED, TAKEN = (ERROR, ERROR), (COMPUTED, COMPUTED)
WAYS: dict[str, tuple[Make, tuple[str, str]]] = {
    "hard link to the input": (lambda path: os.link(path.parent / "p.jsonl", path), REFUSED),
    "link to the input": (lambda path: path.symlink_to("p.jsonl"), REFUSED),
    "a stranger's file": (lambda path: path.write_bytes(THESIS), (ERROR, COMPUTED)),
    "link to a stranger's file": (lambda path: _link(path, THESIS), (ERROR, COMPUTED)),
    "link to nothing": (lambda path: _link(path, None), TAKEN),
    "link to an empty file": (lambda path: _link(path, b""), TAKEN),
    "link to itself": (lambda path: path.symlink_to(path.name), REFUSED),
    "empty file": (Path.touch, TAKEN),
    "pipe": (os.mkfifo, REFUSED),
    "link to a pipe": (lambda path: (os.mkfifo(path.parent / "pipe"), path.symlink_to("pipe")), REFUSED),
    "socket": (listen, REFUSED),
    "folder": (Path.mkdir, REFUSED),
}
NODES: dict[str, tuple[Make, tuple[str, str]]] = {
    "device that takes all": (node(stat.S_IFCHR, NULL), TAKEN),
    "link to a device": (lambda path: (node(stat.S_IFCHR, NULL)(path.parent / "null"), path.symlink_to("null")), TAKEN),
    "device that is full": (node(stat.S_IFCHR, FULL), REFUSED),
    "disk": (node(stat.S_IFBLK, NO_DISK), REFUSED),
}


def _link(path: Path, content: bytes | None) -> None:
    far = path.parent / "far"
    far.mkdir()
    if content is not None:
        (far / "mine").write_bytes(content)
    path.symlink_to("far/mine")


def place_of(world: World) -> str:
    """The file that the command writes: an option's value, the page of a report, the table of a board."""
    out = world.argv[world.argv.index("--out") + 1]
    return f"{out}/{ {'report': 'index.html', 'board': 'board.json'}[world.argv[0]] }" if "." not in out else out


def stands_there(name: str, make: Make, verdicts: tuple[str, str]) -> None:
    """Register a way."""

    def mutator(world: World) -> Expect:
        path, forced, here = place_of(world), world.random.random() < 0.4, world.random.random() < 0.5

        def act(folder: Path) -> None:
            target = folder / path
            target.parent.mkdir(exist_ok=True)
            if target.parent != folder:  # of a page: what is made stands beside the input, the page leads there
                make(folder / "there")
                plain = (folder / "there").is_file() and not (folder / "there").is_symlink()
                (os.link if plain and not here else _lead)(folder / "there", target)
            else:
                make(target)

        world.acts.append(act)
        world.partial = "full" in name  # of several files the whole ones stay
        taken = world.partial or verdicts[forced] == COMPUTED
        world.outputs = (*world.outputs, "far/mine", "there") if taken else ()
        if forced:
            world.argv.append("--force")
        world.notes.append(f"{path}: {name}")
        return Expect("output", words=(Path(path).name,) if verdicts[forced] == ERROR else (), verdict=verdicts[forced])

    mutates("outputs", "", name.replace(" ", "_").replace("'", ""))(mutator)


def _lead(there: Path, target: Path) -> None:
    target.symlink_to(os.path.relpath(there, target.parent))


for _name, (_make, _verdicts) in {**WAYS, **(NODES if NODES_TOO else {})}.items():
    stands_there(_name, _make, _verdicts)


def elsewhere(world: World) -> Path:
    """Lead the outputs into the folder "disk"; return the way from there."""
    at = world.argv.index("--out") + 1
    world.argv[at] = f"disk/{world.argv[at]}"
    world.outputs = tuple(f"disk/{path}" for path in world.outputs)
    return Path("disk")


if MOUNTS or os.geteuid():  # nothing but a mount stops root from writing

    @mutates("outputs", "", "read_only_folder")
    def read_only_folder(world: World) -> Expect:
        place = elsewhere(world)
        world.outputs = ()

        def act(folder: Path) -> None:
            if MOUNTS:
                mount(folder / place, "ro")
                world.mounts.append(folder / place)
            else:
                (folder / place).mkdir(mode=0o500)

        world.acts.append(act)
        return Expect("output", words=("disk",))


if MOUNTS:

    @mutates("outputs", "", "full_tmpfs")
    def full_tmpfs(world: World) -> Expect:
        """A disk with so many bytes left: an output fits, or nothing of it stays."""
        place, left = elsewhere(world), world.random.choice((0, 1, 300, 4096, 9000, 20_000))

        def act(folder: Path) -> None:
            mount(folder / place, f"size={SPACE}")
            world.mounts.append(folder / place)
            (folder / place / "filler").write_bytes(b"x" * (65536 - 4096 * ((left + 4095) // 4096)))

        world.acts.append(act)
        world.partial = True
        return Expect("output", verdict="either")
