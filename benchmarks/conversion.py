"""Conversion at the papers' full sizes, side by side with the least that any conversion has to do.

    least = orjson.loads of every line of the .jsonl files + pyarrow's write_table of the finished tables

Bars: at most 3 times that; peak memory under 1 GiB; Parquet no larger than a .tar.gz of the release's files.

    python -m benchmarks.conversion [--configs esnli,fever] [--work FOLDER] [--num-proc 2]
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from benchmarks.paper_size_corpora import SHAPES, write_corpus

RESULTS = Path(__file__).resolve().parent / "results_conversion.md"


def least(raw: Path, built: Path, config: str) -> dict[str, float]:
    """Seconds of parsing the lines and of writing the finished tables, as this project writes and as pyarrow does."""
    import orjson
    import pyarrow.parquet as pq

    from eraser_hub.conversion.hub_parquet import writer_options

    parse = write = plain = 0.0
    for path in sorted(raw.glob("*.jsonl")):
        begin = time.perf_counter()
        with path.open("rb") as file:
            for line in file:
                orjson.loads(line)
        parse += time.perf_counter() - begin
    for path in sorted((built / config).glob("*.parquet")):
        table = pq.read_table(path)
        beside = built.parent / "least.parquet"
        begin = time.perf_counter()
        pq.write_table(table, beside, **writer_options(table))
        write += time.perf_counter() - begin
        begin = time.perf_counter()
        pq.write_table(table, beside, compression="zstd")
        plain += time.perf_counter() - begin
    return {"parse": parse, "write": write, "plain": plain}


def build(raw: Path, out: Path, config: str, num_proc: int) -> dict[str, float]:
    """Seconds and peak memory of a build, in this process."""
    from eraser_hub.conversion import croissant, eraser_build, fetch  # noqa: F401 - imports are not what is measured
    from eraser_hub.conversion.hub_datasets import HUB_DATASETS

    begin = time.perf_counter()
    HUB_DATASETS["eraser"].build([config], source=raw, out=out, num_proc=num_proc)
    seconds = time.perf_counter() - begin
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {"seconds": seconds, "peak": peak / 1024}


def in_process(task: str, *arguments: str) -> dict[str, float]:
    """A task in a process of its own: peak memory is a process's."""
    command = [sys.executable, "-m", "benchmarks.conversion", "--task", task, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=RESULTS.parent.parent)
    return json.loads(done.stdout.splitlines()[-1])


def measure(config: str, work: Path, num_proc: int, rounds: int) -> list[str]:
    """A row of the table: both sides in turn, the median of ``rounds``."""
    raw = work / "raw"
    if not (raw / config / "test.jsonl").is_file():
        write_corpus(raw, config)
    archive = work / f"{config}.tar.gz"
    if not archive.is_file():
        with tarfile.open(archive, "w:gz", compresslevel=6) as tar:
            tar.add(raw / config, config)
    builds, lasts, many = [], [], []
    for _ in range(rounds):
        out = Path(tempfile.mkdtemp(dir=work))
        builds.append(in_process("build", str(raw), str(out), config, "1"))
        lasts.append(in_process("least", str(raw / config), str(out / "eraser"), config))
        if num_proc > 1:
            again = Path(tempfile.mkdtemp(dir=work))
            many.append(in_process("build", str(raw), str(again), config, str(num_proc)))
    size = sum(p.stat().st_size for p in (out / "eraser").rglob("*.parquet"))

    def median(values: list[float]) -> float:
        return sorted(values)[len(values) // 2]

    own = median([b["seconds"] / (x["parse"] + x["write"]) for b, x in zip(builds, lasts, strict=True)])
    plain = median([b["seconds"] / (x["parse"] + x["plain"]) for b, x in zip(builds, lasts, strict=True)])
    gain = median([b["seconds"] / m["seconds"] for b, m in zip(builds, many, strict=True)]) if many else float("nan")
    return [
        config,
        f"{sum(SHAPES[config].instances):,}",
        f"{own:.2f}",
        f"{plain:.2f}",
        f"{max(b['peak'] for b in builds):.0f} MiB",
        f"{size / archive.stat().st_size:.2f}",
        f"{gain:.2f}" if many else "not taken",
    ]


def main() -> int:
    """Print the table and write results_conversion.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--configs", default=",".join(SHAPES))
    parser.add_argument("--work", type=Path)
    parser.add_argument("--num-proc", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--task")
    parser.add_argument("arguments", nargs="*")
    asked = parser.parse_args()
    if asked.task == "build":
        raw, out, config, num_proc = asked.arguments
        print(json.dumps(build(Path(raw), Path(out), config, int(num_proc))))
        return 0
    if asked.task == "least":
        raw, built, config = asked.arguments
        print(json.dumps(least(Path(raw), Path(built), config)))
        return 0
    head = [
        "config",
        "instances",
        "time / least",
        "time / (orjson + plain zstd)",
        "peak memory",
        "Parquet / tar.gz",
        f"gain of num_proc {asked.num_proc}",
    ]
    rows = [head, ["---"] * len(head)]
    with tempfile.TemporaryDirectory() as scratch:
        work = asked.work or Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        for config in asked.configs.split(","):
            rows.append(measure(config, work, asked.num_proc, asked.rounds))
            print("  ".join(rows[-1]), flush=True)
    # rows of configs that were not measured now stay as they were
    before = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.is_file() else []
    measured = {row[0] for row in rows}
    old = [[cell.strip() for cell in line.strip("|").split("|")] for line in before if line.startswith("| ")]
    rows += [row for row in old if row[0] in SHAPES and row[0] not in measured and len(row) == len(head)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    RESULTS.write_text(
        "## Conversion\n\n`python -m benchmarks.conversion`: made-up corpora of the papers' full sizes. *least* is orjson on every "
        "line of the .jsonl files plus pq.write_table of the finished tables with the same options; the bar is 3, 1 GiB, and 1 "
        f"({platform.machine()}, Python {platform.python_version()}).\n\n{table}\n",
        encoding="utf-8",
    )
    print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
