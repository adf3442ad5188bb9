"""Conversion at the papers' full sizes, side by side with the least that any conversion has to do.

    least = msgspec on every line of the .jsonl files + pyarrow's write_table of the finished tables

The tables are written in two ways: as pyarrow does by itself (snappy), and with compression="zstd". The aim is at most
4 times that, and a peak of 1 GiB. The corpora are made up: ERASER's numbers (its Tables 1, 2 and 5), not its text;
words are made of syllables and drawn by Zipf's law, so that they compress about as English does.

    python -m benchmarks.conversion [--configs esnli,fever] [--work FOLDER] [--rounds 3]
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eraser_hub.conversion.eraser.configs import CONFIGS

RESULTS = Path(__file__).with_name("results_conversion.md")
HEAD = ("config", "instances", "time / least", "time / least (zstd)", "CPU / least", "CPU / least (zstd)",
        "peak memory", "Parquet / tar.gz", "first row, s", "first row of the raw files, s")  # fmt: skip
SPLITS = ("train", "val", "test")


class Shape(NamedTuple):
    """A corpus in numbers.

    Attributes:
        instances: per split.
        documents: per split; the instances of two documents have documents of their own.
        tokens: mean of a document.
        sentences: of a document.
        evidences: mean of an instance.
        evidence_tokens: mean of an evidence.
        documents_each: documents of an instance.
    """

    instances: tuple[int, int, int]
    documents: tuple[int, int, int]
    tokens: int
    sentences: int
    evidences: float
    evidence_tokens: int
    documents_each: int = 1


SHAPES = {
    "movies": Shape((1600, 200, 199), (1599, 200, 199), 774, 37, 8.6, 8),
    "multirc": Shape((24029, 3214, 4848), (400, 56, 83), 303, 15, 2.3, 18),
    "fever": Shape((97957, 6122, 6111), (2915, 570, 614), 327, 12, 1.5, 24),
    "boolq": Shape((6363, 1491, 2807), (4518, 1092, 1420), 3580, 175, 1.0, 108),
    "evidence_inference": Shape((7958, 972, 959), (1924, 247, 240), 4761, 156, 1.3, 30),
    "cose": Shape((8752, 1086, 1079), (8752, 1086, 1079), 28, 1, 1.0, 6),
    "esnli": Shape((549309, 9823, 9807), (911938, 16328, 16299), 16, 1, 2.2, 2, documents_each=2),
}


def write_corpus(target: Path, config: str) -> None:
    """Write a corpus in the release's form, of the paper's size."""
    random, shape = np.random.default_rng(0), SHAPES[config]
    onsets = [*"bcdfghlmnprstv", "st", "tr", "ch"]
    syllables = np.array([onset + vowel for onset in onsets for vowel in "aeiou"])
    words = np.array(["".join(random.choice(syllables, n)) for n in random.integers(1, 5, 30_000)], dtype=object)
    cumulative = np.cumsum(1 / (np.arange(words.size) + 2.7))
    cumulative /= cumulative[-1]

    def draw(count: int) -> list[str]:
        return words[np.searchsorted(cumulative, random.random(count))].tolist()

    in_one_file = config in ("cose", "esnli")
    (target if in_one_file else target / "docs").mkdir(parents=True)
    with open(target / "docs.jsonl", "w") if in_one_file else contextlib.nullcontext() as file:
        for split, instances, count in zip(SPLITS, shape.instances, shape.documents, strict=True):
            # the last documents: id, tokens, tokens of a sentence
            recent: deque[tuple[str, list[str], int]] = deque(maxlen=40)
            written = 0
            with (target / f"{split}.jsonl").open("w") as annotations:
                for number in range(instances):
                    if shape.documents_each == 2:  # three instances in a row share the premise's image
                        image = (1 + SPLITS.index(split)) * 10**8 + number // 3
                        stem = f"{image}.jpg#{number % 5}r1{'nce'[number % 3]}"
                        identity, fresh = stem, [f"{stem}_hypothesis", f"{stem}_premise"]
                    elif count >= instances - 1:
                        identity = random.bytes(16).hex() if in_one_file else f"negR_{split}_{number}.txt"
                        fresh = [identity]
                    else:
                        identity = f"{split}{number}"
                        is_due = written < count and number * count >= written * instances
                        fresh = [f"{split}_page_{written}"] if is_due else []
                    for docid in fresh:
                        tokens = draw(max(4, int(random.gamma(8, shape.tokens / 8))))
                        size = max(1, len(tokens) // shape.sentences)
                        recent.append((docid, tokens, size))
                        written += 1
                        lines = (" ".join(tokens[start : start + size]) for start in range(0, len(tokens), size))
                        if file is None:
                            (target / "docs" / docid).write_text("\n".join(lines))
                        else:
                            file.write(json.dumps({"docid": docid, "document": "\n".join(lines)}) + "\n")
                    documents = list(recent)[-len(fresh) :] if fresh else [recent[random.integers(len(recent))]]
                    evidences = []
                    for _ in range(max(1, random.poisson(shape.evidences))):
                        docid, tokens, size = documents[random.integers(len(documents))]
                        length = min(len(tokens), max(1, int(random.gamma(4, shape.evidence_tokens / 4))))
                        start = int(random.integers(0, len(tokens) - length + 1))
                        end, last = start + length, (start + length - 1) // size
                        span = {"docid": docid, "start_token": start, "end_token": end}
                        span |= {"start_sentence": start // size, "end_sentence": last + (config != "boolq")}
                        evidences.append(span | {"text": " ".join(tokens[start:end])})
                    grouped = config in ("multirc", "esnli", "cose")
                    query = {"esnli": "", "movies": "What is it ?"}.get(config)
                    record = {
                        "annotation_id": number if config == "boolq" else identity,
                        "classification": str(random.choice(CONFIGS[config].label_names)),
                        "docids": [docid for docid, *_ in documents],
                        "evidences": [evidences] if grouped else [[span] for span in evidences],
                        "query": " ".join(draw(9)) if query is None else query,
                        "query_type": None,
                    }
                    annotations.write(json.dumps(record) + "\n")


def build(raw: Path, built: Path, config: str) -> dict[str, float]:
    """Return seconds, CPU seconds and peak memory (MiB) of a build."""
    import datasets  # noqa: F401 - imports are not what is measured

    import eraser_hub.conversion.eraser.dataset  # noqa: F401
    from eraser_hub.conversion import get_dataset

    clock, cpu = time.perf_counter(), time.process_time()
    get_dataset("eraser").build([config], source=raw, out=built.parent)
    clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
    return {"clock": clock, "cpu": cpu, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def least(raw: Path, built: Path, config: str) -> dict[str, float]:
    """Return seconds, by the clock and of CPU, of parsing the lines and writing the finished tables in two ways."""
    import msgspec
    import pyarrow.parquet as pq

    spent = dict.fromkeys(("clock", "cpu", "clock zstd", "cpu zstd"), 0.0)
    target = built.parent / "least.parquet"

    def parse(path: Path) -> None:
        with path.open("rb") as file:
            for line in file:
                msgspec.json.decode(line)

    def add(suffixes: tuple[str, ...], task: Any, *arguments: Any) -> None:
        clock, cpu = time.perf_counter(), time.process_time()
        task(*arguments)
        for suffix in suffixes:
            spent[f"clock{suffix}"] += time.perf_counter() - clock
            spent[f"cpu{suffix}"] += time.process_time() - cpu

    for path in sorted((raw / config).glob("*.jsonl")):
        add(("", " zstd"), parse, path)
    for path in sorted((built / config).glob("*.parquet")):
        table = pq.read_table(path)
        add(("",), pq.write_table, table, target)
        add((" zstd",), lambda table=table: pq.write_table(table, target, compression="zstd"))
    return spent


def first_row(raw: Path, built: Path, config: str) -> dict[str, float]:
    """Return seconds, after the imports, until the slowest split's first row: of the built folder, of the raw files."""
    import datasets
    import pyarrow.parquet  # noqa: F401 - imports are not what is measured

    from eraser_hub.datasets_scripts.eraser import Eraser

    for name in ("torch", "scipy.io"):  # datasets imports them with the first stream, where they are installed
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    slowest = {"built": 0.0, "raw": 0.0}
    for split in ("train", "validation", "test"):
        for source, load in (
            ("built", lambda: datasets.load_dataset(str(built), config, split=split, streaming=True)),  # noqa: B023
            ("raw", lambda: Eraser(config, data_dir=str(raw)).as_streaming_dataset(split)),  # noqa: B023
        ):
            begin = time.perf_counter()
            next(iter(load()))
            slowest[source] = max(slowest[source], time.perf_counter() - begin)
    return slowest


TASKS = {"build": build, "least": least, "first_row": first_row}


def measure(config: str, work: Path, rounds: int) -> list[str]:
    """Return a row of the table: both sides in turn, each in a process of its own, the median of the rounds."""
    raw, archive = work / "raw", work / f"{config}.tar.gz"
    if not archive.is_file():
        write_corpus(raw / config, config)
        with tarfile.open(archive, "w:gz", compresslevel=6) as tar:
            tar.add(raw / config, config)
    found: dict[str, list[dict[str, float]]] = {task: [] for task in TASKS}
    for _ in range(rounds):
        out = Path(tempfile.mkdtemp(dir=work))
        for task in TASKS:  # peak memory is a process's
            command = [sys.executable, "-m", "benchmarks.conversion", "--task", task, raw, out / "eraser", config]
            folder = RESULTS.parent.parent
            done = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True, cwd=folder)
            found[task].append(json.loads(done.stdout.splitlines()[-1]))
        size = sum(path.stat().st_size for path in (out / "eraser").rglob("*.parquet"))
        shutil.rmtree(out)
    pairs = list(zip(found["build"], found["least"], strict=True))
    ratios = [
        statistics.median(ours[kind] / theirs[kind + suffix] for ours, theirs in pairs)
        for kind in ("clock", "cpu")
        for suffix in ("", " zstd")
    ]
    return [
        config,
        f"{sum(SHAPES[config].instances):,}",
        *(f"{ratio:.2f}" for ratio in ratios),
        f"{max(each['peak'] for each in found['build']):.0f} MiB",
        f"{size / archive.stat().st_size:.2f}",
        *(f"{statistics.median(each[key] for each in found['first_row']):.2f}" for key in ("built", "raw")),
    ]


def main() -> None:
    """Print a row for each config, and put it into results_conversion.md; the other configs' stay as they were."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--configs", default=",".join(SHAPES))
    parser.add_argument("--work", type=Path, default=None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        raw, built, config = options.arguments
        print(json.dumps(TASKS[options.task](Path(raw), Path(built), config)), flush=True)
        # a stream of Parquet that is dropped half-way, whoever wrote it, can abort the interpreter's orderly exit
        os._exit(0)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch:
        work = options.work or Path(scratch)
        for config in options.configs.split(","):
            row = measure(config, work, options.rounds)
            print("  ".join(row), flush=True)
            before = RESULTS.read_text("utf-8").splitlines() if RESULTS.is_file() else []
            old = [line.strip("| ").split(" | ") for line in before if line.startswith("| ")]
            rows = {cells[0]: cells for cells in old if len(cells) == len(HEAD)} | {config: row}
            table = [HEAD, ["---"] * len(HEAD), *(rows[config] for config in SHAPES if config in rows)]
            lines = "\n".join(f"| {' | '.join(cells)} |" for cells in table)
            RESULTS.write_text(
                "## Conversion\n\n`python -m benchmarks.conversion`: made-up corpora of the papers' full sizes, each "
                f"build in a process of its own, the median of {options.rounds}. *least* is msgspec on every line of "
                "the .jsonl files plus `pq.write_table(table)` of the finished tables, or the same with "
                '`compression="zstd"`. A build also reads docs/, counts tokens, makes the derived columns, checks '
                "spans, sorts rows by document, writes all documents once more, and computes the statistics of the "
                "card from what it wrote. CPU is user and system time. The first row is that of the slowest split, "
                "after the imports (torch and scipy too, which datasets imports where they are installed), by "
                "`load_dataset(.., streaming=True)` and by `Eraser(..).as_streaming_dataset(..)`, which reads the "
                "split before its first row. The aims: 4 and 1 GiB "
                f"({platform.machine()}, {os.cpu_count()} cores, load average {load:.1f} at the start, Python "
                f"{platform.python_version()}).\n\n{lines}\n",
                encoding="utf-8",
            )


if __name__ == "__main__":
    main()
