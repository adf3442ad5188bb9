"""Conversion at the papers' full sizes, side by side with the least that any conversion has to do.

    least = msgspec on every line of the .jsonl files + pyarrow's write_table of the finished tables

The tables are written in two ways: as pyarrow does by itself (snappy), and with compression="zstd". Bars: at most 4
times that; peak memory under 1 GiB.

    python -m benchmarks.conversion [--configs esnli,fever] [--work FOLDER] [--rounds 3]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from benchmarks.paper_size_corpora import SHAPES, write_corpus

RESULTS = Path(__file__).resolve().parent / "results_conversion.md"
HEAD = (
    "config",
    "instances",
    "time / least",
    "time / least (zstd)",
    "CPU / least",
    "CPU / least (zstd)",
    "peak memory",
    "Parquet / tar.gz",
    "first row, s",
    "first row of the raw files, s",
)


def least(raw: Path, built: Path, config: str) -> dict[str, float]:
    """Seconds, by the clock and of CPU, of parsing the lines and of writing the finished tables in two ways."""
    import msgspec
    import pyarrow.parquet as pq

    spent = {"parse": 0.0, "plain": 0.0, "zstd": 0.0, "parse_cpu": 0.0, "plain_cpu": 0.0, "zstd_cpu": 0.0}

    def timed(name: str, task) -> None:
        clock, cpu = time.perf_counter(), time.process_time()
        task()
        spent[name] += time.perf_counter() - clock
        spent[f"{name}_cpu"] += time.process_time() - cpu

    def parse(path: Path) -> None:
        with path.open("rb") as file:
            for line in file:
                msgspec.json.decode(line)

    for path in sorted(raw.glob("*.jsonl")):
        timed("parse", lambda path=path: parse(path))
    beside = built.parent / "least.parquet"
    for path in sorted((built / config).glob("*.parquet")):
        table = pq.read_table(path)
        timed("plain", lambda table=table: pq.write_table(table, beside))
        timed("zstd", lambda table=table: pq.write_table(table, beside, compression="zstd"))
    return spent


def build(raw: Path, out: Path, config: str) -> dict[str, float]:
    """Seconds, CPU seconds and peak memory (MiB) of a build."""
    import datasets  # noqa: F401 -- imports are not what is measured

    import eraser_hub.conversion.eraser.dataset  # noqa: F401
    from eraser_hub.conversion import get_dataset

    clock, cpu = time.perf_counter(), time.process_time()
    get_dataset("eraser").build([config], source=raw, out=out)
    seconds, cpu = time.perf_counter() - clock, time.process_time() - cpu
    return {"seconds": seconds, "cpu": cpu, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def first_row(raw: Path, built: Path, config: str) -> dict[str, float]:
    """Seconds, after the imports, until the slowest split's first row: of the built folder, and of the raw files."""
    import importlib

    import datasets
    import pyarrow.parquet  # noqa: F401 - imports are not what is measured

    for name in ("torch", "scipy.io"):  # datasets imports them with the first stream, where they are installed
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    from eraser_hub.datasets_scripts.eraser import Eraser

    of = {"built": 0.0, "raw": 0.0}
    for split in ("train", "validation", "test"):
        begin = time.perf_counter()
        next(iter(datasets.load_dataset(str(built), config, split=split, streaming=True)))
        of["built"] = max(of["built"], time.perf_counter() - begin)
        begin = time.perf_counter()
        next(iter(Eraser(config, data_dir=str(raw)).as_streaming_dataset(split)))
        of["raw"] = max(of["raw"], time.perf_counter() - begin)
    return of


def in_process(task: str, *arguments: str) -> dict[str, float]:
    """A task in a process of its own: peak memory is a process's."""
    command = [sys.executable, "-m", "benchmarks.conversion", "--task", task, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=RESULTS.parent.parent)
    return json.loads(done.stdout.splitlines()[-1])


def measure(config: str, work: Path, rounds: int) -> list[str]:
    """A row of the table: both sides in turn, the median of ``rounds``."""
    raw = work / "raw"
    if not (raw / config / "test.jsonl").is_file():
        write_corpus(raw, config)
    archive = work / f"{config}.tar.gz"
    if not archive.is_file():
        with tarfile.open(archive, "w:gz", compresslevel=6) as tar:
            tar.add(raw / config, config)
    builds, lasts, firsts = [], [], []
    for _ in range(rounds):
        out = Path(tempfile.mkdtemp(dir=work))
        builds.append(in_process("build", str(raw), str(out), config))
        lasts.append(in_process("least", str(raw / config), str(out / "eraser"), config))
        firsts.append(in_process("first", str(raw), str(out / "eraser"), config))
        size = sum(p.stat().st_size for p in (out / "eraser").rglob("*.parquet"))
        shutil.rmtree(out)

    def median(values: list[float]) -> float:
        return sorted(values)[len(values) // 2]

    def ratio(own: str, *parts: str) -> str:
        return f"{median([b[own] / sum(x[part] for part in parts) for b, x in zip(builds, lasts, strict=True)]):.2f}"

    return [
        config,
        f"{sum(SHAPES[config].instances):,}",
        ratio("seconds", "parse", "plain"),
        ratio("seconds", "parse", "zstd"),
        ratio("cpu", "parse_cpu", "plain_cpu"),
        ratio("cpu", "parse_cpu", "zstd_cpu"),
        f"{max(b['peak'] for b in builds):.0f} MiB",
        f"{size / archive.stat().st_size:.2f}",
        f"{median([each['built'] for each in firsts]):.2f}",
        f"{median([each['raw'] for each in firsts]):.2f}",
    ]


def write_results(row: list[str], rounds: int, load: float) -> None:
    """Put a config's row into results_conversion.md; those of the others stay as they were."""
    before = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.is_file() else []
    old = [[cell.strip() for cell in line.strip("|").split("|")] for line in before if line.startswith("| ")]
    rows = {each[0]: each for each in old if each[0] in SHAPES and len(each) == len(HEAD)} | {row[0]: row}
    table = [list(HEAD), ["---"] * len(HEAD), *(rows[config] for config in SHAPES if config in rows)]
    lines = "\n".join("| " + " | ".join(each) + " |" for each in table)
    RESULTS.write_text(
        "## Conversion\n\n`python -m benchmarks.conversion`: made-up corpora of the papers' full sizes, each build "
        f"in a process of its own, the median of {rounds}. *least* is msgspec on every line of the .jsonl files plus "
        '`pq.write_table(table)` of the finished tables, or the same with `compression="zstd"`; a build also reads '
        "docs/, counts tokens, makes the derived columns, checks spans, sorts rows by document, writes all documents "
        "once more, and computes the statistics of the card from what it wrote. CPU is user and system time. The first "
        "row is that of the slowest split, after the imports (torch and scipy too, which datasets imports where they "
        "are installed), by `load_dataset(.., streaming=True)` and by `Eraser(..).as_streaming_dataset(..)`, which "
        "reads the split before its first row. The bars: 4 and 1 GiB "
        f"({platform.machine()}, {os.cpu_count()} cores, load average {load:.1f} before the last run began, Python "
        f"{platform.python_version()}).\n\n{lines}\n",
        encoding="utf-8",
    )


def main() -> int:
    """Print the table and write results_conversion.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--configs", default=",".join(SHAPES))
    parser.add_argument("--work", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--task")
    parser.add_argument("arguments", nargs="*")
    asked = parser.parse_args()
    if asked.task == "build":
        raw, out, config = asked.arguments
        print(json.dumps(build(Path(raw), Path(out), config)))
        return 0
    if asked.task == "least":
        raw, built, config = asked.arguments
        print(json.dumps(least(Path(raw), Path(built), config)))
        return 0
    if asked.task == "first":
        raw, built, config = asked.arguments
        print(json.dumps(first_row(Path(raw), Path(built), config)), flush=True)
        # a stream of Parquet that is dropped half-way, whoever wrote it, can abort the interpreter's orderly exit
        os._exit(0)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch:
        work = asked.work or Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        for config in asked.configs.split(","):
            row = measure(config, work, asked.rounds)
            print("  ".join(row), flush=True)
            write_results(row, asked.rounds, load)
    print(RESULTS.read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
