"""Sound inputs of the command line, a run of it in this process, and values that no reader expects."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import random
import shutil
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from eraser_hub import cli

from ..conftest import SAMPLES

RAW = "--dataset in/esnli --split val"
BUILT = "--dataset in/hub/eraser --config esnli --split val"
COLUMNS = "--tokens tokens --mask mask --label label --id id"
# a command that succeeds on the sound inputs -> the inputs that it reads; it writes below out/
COMMANDS: dict[str, tuple[str, ...]] = {
    f"score {RAW} --predictions in/p.jsonl --out out/s.json": ("p.jsonl", "esnli/val.jsonl", "esnli/docs.jsonl"),
    f"score {BUILT} --predictions in/p.parquet --out out/s.json": (
        "p.parquet",
        "hub/eraser/README.md",
        "hub/eraser/esnli/validation-00000-of-00001.parquet",
    ),
    f"compare {RAW} --predictions in/p.jsonl --predictions in/q.jsonl --resamples 20": ("p.jsonl", "esnli/val.jsonl"),
    "check --dataset in/hub/eraser": (
        "hub/eraser/README.md",
        "hub/eraser/release.json",
        "hub/eraser/esnli/validation-00000-of-00001.parquet",
    ),
    "stats --dataset in/hub/eraser": ("hub/eraser/README.md", "hub/eraser/esnli/validation-00000-of-00001.parquet"),
    "export --dataset in/hub/eraser --out out/raw": (
        "hub/eraser/release.json",
        "hub/eraser/esnli/validation-00000-of-00001.parquet",
    ),
    "build eraser --source in --config esnli --out out/hub": ("esnli/val.jsonl", "esnli/docs.jsonl"),
    f"import --source in/rows.jsonl {COLUMNS} --name mine --out out": ("rows.jsonl",),
    "import --source in/spans.csv --text text --spans spans --label label --name mine --out out": ("spans.csv",),
}
VERBS = sorted({command.split()[0] for command in COMMANDS})


def write_inputs(folder: Path) -> None:
    """Write a raw corpus, its built form, predictions of two systems and tables to import."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from eraser_hub import build

    shutil.copytree(SAMPLES / "eraser" / "esnli", folder / "esnli")
    rows = [json.loads(line) for line in (SAMPLES / "predictions/eraser/esnli.val.jsonl").read_text().splitlines()]
    write_lines(folder / "p.jsonl", rows)
    pq.write_table(pa.Table.from_pylist(rows), folder / "p.parquet")
    for rationale in (each for row in rows for each in row["rationales"]):
        rationale["soft_rationale_predictions"].reverse()
    write_lines(folder / "q.jsonl", rows)
    reviews = [
        {"id": f"r{k}", "tokens": ["a", word, "film"], "mask": [0, 1, 0], "label": label}
        for k, (word, label) in enumerate((("fine", "POS"), ("dull", "NEG"), ("warm", "POS")))
    ]
    write_lines(folder / "rows.jsonl", reviews)
    spans = [f'"a fine film, and short",2:6,POS,{k}' for k in range(3)]
    (folder / "spans.csv").write_text("\n".join(["text,spans,label,id", *spans, ""]))
    build("eraser", source=folder, config=["esnli"], out=folder / "hub")


def write_lines(path: Path, rows: list[Any]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8", errors="surrogatepass")


class Ended(NamedTuple):
    """A run: its exit status (None: an error that nobody expected), what it said, and that error's traceback."""

    status: int | None
    said: str
    trace: str


def run(words: list[str]) -> Ended:
    """Run the command line as its console script does."""
    out, trace, status = io.StringIO(), "", None
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            cli.main(words)
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Exception:
        trace = traceback.format_exc()
    return Ended(status, out.getvalue(), trace)


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of each file of a folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


# ----------------------------------------------------------------------------------------------- what no reader expects
NESTED: Any = 1
for _ in range(70):
    NESTED = [NESTED]
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 1e308, 10**30, -(2**63), math.nan, math.inf),
    *("", "x", "1", "\0", "\ud800", "\x1b[31mred\x1b[0m", "a" * 5000, "../../etc/passwd", "movies", "d" * 300),
    *([], {}, [[]], [None], {"": None}, {"x": {}}, ["a", 1], NESTED, {"start_token": 2, "end_token": 1}),
)


def places(value: Any, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    """Yield the container and the key of everything below a JSON value; of long lists the first three items."""
    keys = list(value) if isinstance(value, dict) else range(min(3, len(value))) if isinstance(value, list) else ()
    for key in keys if depth < 20 else ():
        yield value, key
        yield from places(value[key], depth + 1)


def spoil_value(draw: random.Random, record: Any) -> None:
    """Put an odd value in a place of a record, or remove, misspell or repeat what is there."""
    container, key = draw.choice(list(places(record)))
    way = draw.randrange(6)
    if way == 0:
        del container[key]
    elif way == 1 and isinstance(container, dict):
        container[key[:-1] or "x"] = container.pop(key)
    elif way == 2 and isinstance(container[key], list):
        container[key] = container[key] * 2
    else:
        container[key] = draw.choice(ODD)


def spoil(draw: random.Random, content: bytes, name: str) -> bytes:
    """Return a file's content spoilt: as JSON where it is that, else as bytes."""
    way = draw.randrange(4)
    if name.endswith((".json", ".jsonl")) and way:
        lines = content.decode().splitlines() if name.endswith("l") else [content.decode()]
        at = draw.randrange(len(lines))
        record = [json.loads(lines[at])]
        for _ in range(draw.choice((1, 1, 2))):
            spoil_value(draw, record)
        lines[at : at + 1] = [json.dumps(one) for one in record]
        return "".join(line + "\n" for line in lines).encode("utf-8", "surrogatepass")
    found = bytearray(content)
    if way == 1:
        return bytes(found[: draw.randrange(len(found))])
    if way == 2:
        at = draw.randrange(len(found))
        return bytes(
            found[:at] + draw.choice((b"\xff\xfe", b"\0", b"\n\n", b"\x1b]0;x\x07", b'"', b"---\n")) + found[at:]
        )
    for _ in range(draw.choice((1, 3, 20))):
        found[draw.randrange(len(found))] = draw.randrange(256)
    return bytes(found)
