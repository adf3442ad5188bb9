"""What is done to built folders: the card, Parquet, release.json; to model folders; to folders of strangers."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from .cases import Expect, World, mutates
from .values import GONE, VALUES, any_place, nested, replace

ROOT = "hub/eraser"
Change = Callable[[random.Random, bytes], bytes]


def split_of(world: World) -> str:
    """The Parquet file that the verb reads."""
    return f"{ROOT}/movies/{'train' if world.argv[0] == 'train' else 'validation'}-00000-of-00001.parquet"


def spoils(kind: str, name: str, path: str, row: str, *changes: Change, needed_by: str = "") -> None:
    """Register a mutator that changes one file of a copied folder.

    Args:
        path: the file; "split" is the Parquet that the verb reads, a path with a star any file of that folder.
        row: the policy's row; for other verbs than ``needed_by``, if any are named there, it is open.
        changes: the old bytes to the new ones, one at random.
    """

    def mutator(world: World) -> Expect:
        world.copies = True
        file = split_of(world) if path == "split" else path.format(config=world.config)
        change, draw = world.random.choice(changes), random.Random(world.random.random())

        def act(folder: Path) -> None:
            target = folder / file
            if "*" in file:
                target = draw.choice(sorted(one for one in target.parent.rglob("*") if one.is_file()))
            target.write_bytes(change(draw, target.read_bytes()))

        world.acts.append(act)
        needed = row != "anything" and (not needed_by or world.argv[0] in needed_by.split())
        return Expect(row if needed else "anything", words=(Path(file).name,) if needed else ())

    mutates(kind, "", name)(mutator)


def scattered(draw: random.Random, content: bytes) -> bytes:
    """A few bytes changed, gone or new, anywhere."""
    text = bytearray(content or b" ")
    for _ in range(draw.choice((1, 3, 20))):
        at = draw.randrange(len(text))
        text[at : at + draw.choice((0, 1, 1, 1, 40))] = draw.randbytes(draw.choice((0, 1, 1)))
        text = text or bytearray(b" ")
    return bytes(text)


def parquet_of(table: Any) -> bytes:
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def odd_columns(draw: random.Random, content: bytes) -> bytes:
    """A column gone, renamed, doubled, of another type or null, in sound Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(content))
    at = draw.randrange(len(table.column_names))
    name, kind = table.column_names[at], table.schema.field(at).type
    changes: tuple[Callable[[], Any], ...] = (
        lambda: table.drop_columns([name]),
        lambda: table.rename_columns([one + "x" if one == name else one for one in table.column_names]),
        lambda: table.append_column(name, table.column(at)),
        lambda: table.set_column(at, name, pa.array(["x"] * len(table))),
        lambda: table.set_column(at, name, pa.nulls(len(table), kind)),
    )
    return parquet_of(draw.choice(changes)())


def odd_cells(draw: random.Random, content: bytes) -> bytes:
    """Hostile cells of the right types: spans past the end, ids twice, unknown documents, odd texts, nulls."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(content))
    rows = table.to_pylist()
    for _ in range(3):
        container, key = any_place(draw, rows)
        odd = {str: ("", "x", "\x1b[31m", "a" * 3000, "\x00"), int: (-1, -5, 10**6, 2**31 - 1), list: ([],)}
        container[key] = draw.choice((*odd.get(type(container[key]), ()), None))
    try:
        return parquet_of(pa.Table.from_pylist(rows, table.schema))
    except (pa.ArrowException, TypeError, AttributeError, OverflowError):
        return content


def half(draw: random.Random, content: bytes) -> bytes:
    return content[: len(content) // 2]


def one_of(*contents: bytes) -> Change:
    return lambda draw, _: draw.choice(contents)


def odd_release(draw: random.Random, content: bytes) -> bytes:
    """One hostile value, or a hole, somewhere inside."""
    release = json.loads(content)
    replace(draw, *any_place(draw, release), [*VALUES, GONE])
    return json.dumps(release).encode()


ALIASES = b"a: &a [x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nconfigs: *c"
MOVIES = b"configs:\n- config_name: movies\n"
YAML = (
    *(b"configs: 3", b"configs: [3]", b"[1", b"- x", b"null", b"\x00", b"configs:\n- config_name: 3", b"[" * 3000),
    *(MOVIES + b"  data_files: x", MOVIES + b"  data_files:\n  - split: validation\n    path: ../../*"),
    *(b"dataset_info: x\n" + MOVIES, ALIASES, b"!!python/object/apply:os.system ['true']"),
)
CARDS = (b"", b"\xff\xfe\x00", b"---\n", b"no card", *(b"---\n" + text + b"\n---\n" for text in YAML))
LOGIN = b"<html>login</html>"
CARD, RELEASE = f"{ROOT}/README.md", f"{ROOT}/release.json"


def swapped(*pairs: tuple[bytes, bytes], count: int = 1) -> Change:
    """The first of each old piece becomes the new one."""

    def change(draw: random.Random, content: bytes) -> bytes:
        for old, new in pairs:
            content = content.replace(old, new, count)
        return content

    return change


spoil = partial(spoils, "folders")
spoil("cut_split", "split", "damaged folder", half, one_of(b"", LOGIN, b"PAR1PAR1"), lambda draw, old: old[4:])
spoil("bytes_of_a_split", "split", "anything", scattered)
spoil("columns_of_a_split", "split", "anything", odd_columns)
spoil("cells_of_a_split", "split", "anything", odd_cells)
spoil("card_of_anything", CARD, "anything", one_of(*CARDS), half, scattered)
spoil("card_in_broken_utf8", CARD, "anything", swapped((b"configs", b"\xffconfigs")))
LABELS = (
    swapped((b"NEG", b"")),
    swapped((b"'1':", b"'7':"), (b'"1":', b'"7":')),
    swapped((b"POS", b"NEG"), count=-1),
    swapped((b"dataset_info", b"dataset_inf")),
)
spoil("labels_of_the_card", CARD, "anything", *LABELS)
NO_RELEASES = (half, one_of(*b'|[]|"x"|3|null|{}|\xff'.split(b"|")), lambda draw, old: json.dumps(nested(600)).encode())
spoil("no_release", RELEASE, "damaged folder", *NO_RELEASES, needed_by="export")
spoil("odd_release", RELEASE, "anything", odd_release)
DOCUMENTS = f"{ROOT}/documents/movies.parquet"
spoil("no_documents", DOCUMENTS, "damaged folder", half, one_of(b"", LOGIN), needed_by="export")
BROKEN = (half, one_of(b"", b"\xff" * 50), scattered)
spoils("other folders", "spoilt_other_folder", "hub/{config}/*", "anything", *BROKEN)
spoils("models", "spoilt_model", "model/*", "anything", half, scattered, one_of(b"", b"{}", b"[" * 900))
spoils("raw bytes", "any_raw_bytes", "{config}/*", "anything", scattered)
CUT = (half, one_of(b"", b"[" * 3000), lambda draw, old: b"\xff" + old, swapped((b":", b":[[1e400,")))
spoils("raw bytes", "cut_raw_file", "{config}/*", "anything", *CUT)


@mutates("folders")
def split_that_is_no_file(world: World) -> Expect:
    file, way, world.copies = split_of(world), world.random.randrange(4), True

    def act(folder: Path) -> None:
        target = folder / file
        target.unlink()
        (os.mkfifo, Path.mkdir, lambda path: path.symlink_to(path.name), bool)[way](target)

    world.acts.append(act)
    return Expect("damaged folder")


@mutates("folders")
def folder_gone(world: World) -> Expect:
    way, world.copies = world.random.randrange(4), True

    def act(folder: Path) -> None:
        if way < 2:
            (folder / ROOT / ("README.md", "release.json")[way]).unlink()
            return
        shutil.rmtree(folder / ROOT / ("movies" if way == 2 else "."))
        if way == 3:
            (folder / ROOT).write_text("x")

    world.acts.append(act)
    return Expect("anything")


@mutates("folders")
def strangers_in_the_folder(world: World) -> Expect:
    world.copies = True
    names = ("thesis.txt", "movies/notes.txt", ".hidden", "movies/extra-00000-of-00001.parquet", "a\x1b[31m.md")
    world.files[f"{ROOT}/{world.random.choice(names)}"] = b"mine"
    return Expect("anything")


@mutates("models")
def no_model(world: World) -> Expect:
    del world.links["model"]
    return Expect("wrong type", words=("model",))


@mutates("strangers' folders")
def thesis(world: World) -> Expect:
    """A folder that no build wrote, in the place of the output: it is refused, and stays."""
    output = world.outputs[0]
    world.files[f"{output}/thesis.txt"] = b"years of work"
    world.keeps = (f"{output}/thesis.txt",)
    return Expect("data lost", words=(Path(output).name,))


@mutates("strangers' folders")
def onto_its_source(world: World) -> Expect:
    """`--out` is the folder that holds the source."""
    name = world.argv[1]
    if name not in world.links:
        return Expect("same meaning")
    world.argv[world.argv.index("--out") + 1], world.copies = ".", True
    world.outputs, world.keeps = (name, f".{name}"), (name,)
    return Expect("data lost")
