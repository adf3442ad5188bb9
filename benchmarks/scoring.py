"""``eraser-hub score`` against a plain implementation, at the paper's shapes.

python -m benchmarks.scoring            all shapes, writes benchmarks/results_scoring.md
python -m benchmarks.scoring boolq      one shape, printed only

Each shape is generated (random text, spans, scores), both sides score it alternately in one process, and must agree to
1e-9; of a large shape both score its first PART instances, as the plain side takes minutes for the whole. esnli_train
has hard and soft rationales and class scores (full and erased); esnli_train_aopc has ten class scores per instance more
(five thresholds). Both repeat the texts and scores of their first BODIES instances under new ids. The parse floor is
orjson.loads on every line of the prediction file. Times are CPU seconds, and seconds by the clock. Peak memory is that
of processes of their own, above what they hold before they start.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import numpy as np
import orjson

FOLDER = Path(__file__).resolve().parent
# name: (instances, tokens per document, documents per instance, labels, docs.jsonl)
SHAPES: dict[str, tuple[int, int, int, int, bool]] = {
    "movies": (200, 774, 1, 2, False),
    "cose": (1092, 28, 1, 5, True),
    "multirc": (4848, 303, 1, 2, False),
    "evidence_inference": (959, 4761, 1, 3, False),
    "boolq": (2817, 3580, 1, 2, False),
    "fever": (6111, 327, 1, 2, False),
    "esnli": (9807, 16, 2, 3, True),
    "esnli_train": (549309, 16, 2, 3, True),
    "esnli_train_aopc": (549309, 16, 2, 3, True),
}
WITHOUT_AOPC = {"esnli_train"}
# instances that are drawn; those beyond repeat them under other ids
BODIES = 20000
# instances that the plain side scores at most, and ours beside it
PART = 2000
# seconds from which a side is not repeated
SLOW = 6
THRESHOLDS = (0.1, 0.5)
AOPC = (0.01, 0.05, 0.1, 0.2, 0.5)
WORDS = np.array(["the", "of", "rationale", "a", "model", "evidence", "in", "is", "sentence", "token", ".", "and"])


def generate(folder: Path, name: str) -> None:
    """Write SPLIT test of a corpus of this shape, and predictions.jsonl, into the folder."""
    n, size, per_instance, n_labels, jsonl = SHAPES[name]
    random = np.random.default_rng(0)
    labels = [f"label {k}" for k in range(n_labels)]
    (folder / "docs").mkdir(parents=True)
    with (
        open(folder / "docs.jsonl", "wb") if jsonl else nullcontext() as documents,
        open(folder / "test.jsonl", "wb") as gold,
        open(folder / "predictions.jsonl", "wb") as predictions,
    ):
        for k in range(min(n, BODIES)):
            docids = [f"{k}_premise", f"{k}_hypothesis"] if per_instance == 2 else [f"document {k}"]
            evidences: list[dict[str, object]] = []
            rationales: list[dict[str, object]] = []
            for docid in docids:
                text = " ".join(WORDS[random.integers(0, WORDS.size, size)].tolist()).replace(" . ", " .\n")
                if documents is None:
                    (folder / "docs" / docid).write_text(text, encoding="utf-8")
                else:
                    documents.write(orjson.dumps({"docid": docid, "document": text}) + b"\n")
                soft = random.random(size)
                hard: list[dict[str, int]] = []
                for start in np.unique(random.integers(0, size - 3, 1 + size // 200)).tolist()[::2]:
                    end = min(start + 2 + size // 100, size)
                    soft[start:end] += 0.5
                    evidences.append({"docid": docid, "start_token": start, "end_token": end, "text": ""})
                    evidences[-1] |= {"start_sentence": -1, "end_sentence": -1}
                    if not hard or hard[-1]["end_token"] <= start + 1:
                        hard.append({"start_token": start + 1, "end_token": end})
                rationale = {"docid": docid, "hard_rationale_predictions": hard}
                rationales.append({**rationale, "soft_rationale_predictions": soft.tolist()})
            p = random.dirichlet(np.ones(n_labels), 3 + 2 * len(AOPC))
            scores = [dict(zip(labels, row, strict=True)) for row in p.tolist()]
            erased = ("comprehensiveness_classification_scores", "sufficiency_classification_scores")
            instance = {
                "annotation_id": str(k),
                "rationales": rationales,
                "classification": labels[int(p[0].argmax())],
                "classification_scores": scores[0],
                erased[0]: scores[1],
                erased[1]: scores[2],
                "thresholded_scores": [
                    {"threshold": t, erased[0]: scores[3 + 2 * at], erased[1]: scores[4 + 2 * at]}
                    for at, t in enumerate(AOPC)
                ],
            }
            if name in WITHOUT_AOPC:
                del instance["thresholded_scores"]
            predictions.write(orjson.dumps(instance) + b"\n")
            annotation = {
                "annotation_id": str(k),
                "classification": labels[k % n_labels],
                "docids": docids,
                "evidences": [[evidence] for evidence in evidences],
                "query": "what",
                "query_type": None,
            }
            gold.write(orjson.dumps(annotation) + b"\n")
    if jsonl:
        (folder / "docs").rmdir()
    if n > BODIES:
        repeat(folder, n)


def repeat(folder: Path, n: int) -> None:
    """Extend a corpus with docs.jsonl, two documents an instance, to n instances: the same bodies under new ids."""
    for name, lines_each in (("docs.jsonl", 2), ("test.jsonl", 1), ("predictions.jsonl", 1)):
        with open(folder / name, "r+b") as file:
            bodies = file.readlines()
            for k in range(BODIES, n):
                old, new = b"%d" % (k % BODIES), b"%d" % k
                first = (k % BODIES) * lines_each
                for line in bodies[first : first + lines_each]:
                    renamed = line.replace(b'"%s_' % old, b'"%s_' % new)
                    file.write(renamed.replace(b'"annotation_id":"%s"' % old, b'"annotation_id":"%s"' % new))


def first_part(folder: Path, name: str, count: int = PART) -> Path:
    """A corpus of the first instances beside the whole one; the whole one where it has no more."""
    n, _, per_instance, _, jsonl = SHAPES[name]
    if n <= count:
        return folder
    part = folder.with_name(f"{folder.name} part")
    part.mkdir()
    sizes = {"test.jsonl": count, "predictions.jsonl": count} | ({"docs.jsonl": count * per_instance} if jsonl else {})
    for file_name, lines in sizes.items():
        with open(folder / file_name, "rb") as whole, open(part / file_name, "wb") as cut:
            cut.writelines(islice(whole, lines))
    if not jsonl:
        (part / "docs").symlink_to(folder / "docs")
    return part


def ours(folder: Path) -> dict[str, object]:
    """One scoring, as the command does it."""
    from eraser_hub.scoring.score import score
    from eraser_hub.scoring.scored_split import ScoredSplit
    from eraser_hub.scoring.settings import ScoreSettings

    settings = ScoreSettings(iou_thresholds=THRESHOLDS, totals_only=True)
    return score(ScoredSplit(folder, "test"), folder / "predictions.jsonl", settings).as_json()


def plain(folder: Path) -> dict[str, object]:
    from benchmarks.plain_scorer import score

    return score(folder, "test", folder / "predictions.jsonl", THRESHOLDS)


def floor(folder: Path) -> list[object]:
    """Merely parsing the predictions."""
    with open(folder / "predictions.jsonl", "rb") as file:
        return [orjson.loads(line) for line in file]


SIDES = {"ours": ours, "plain": plain, "floor": floor}


def differences(mine: object, theirs: object, path: str = "") -> list[str]:
    """Where the plain side's numbers are not ours, to 1e-9."""
    if isinstance(theirs, dict):
        return [line for key in theirs for line in differences(mine[key], theirs[key], f"{path}/{key}")]  # type: ignore[index]
    if isinstance(theirs, list):
        return [line for k, x in enumerate(theirs) for line in differences(mine[k], x, f"{path}/{k}")]  # type: ignore[index]
    same = isinstance(mine, (int, float)) and abs(mine - theirs) <= 1e-9  # type: ignore[operator]
    return [] if same else [f"{path}: {mine} {theirs}"]


def cpu_seconds() -> float:
    """What this process and those that it waited for have used so far, to the microsecond."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def timed(side: str, folder: Path) -> tuple[float, float, object]:
    """CPU seconds, those of helping processes counted in (other work on the machine does not count), and seconds by the
    clock."""
    begin, clock = cpu_seconds(), time.perf_counter()
    result = SIDES[side](folder)
    return cpu_seconds() - begin, time.perf_counter() - clock, result


def _peak() -> int:
    """Bytes that this process held at its peak (the kernel's own count, which a parent process does not raise)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def memory(side: str, folder: Path) -> tuple[int, int]:
    """Peak memory of one side in a process of its own: above what it held before, and in all."""
    command = [sys.executable, "-m", "benchmarks.scoring", "--memory", side, str(folder)]
    done = subprocess.run(command, cwd=FOLDER.parent, capture_output=True, text=True, check=True)
    above, whole = done.stdout.split()[-2:]
    return int(above), int(whole)


def measure(name: str, folder: Path) -> dict[str, float]:
    """One row of the table."""
    generate(folder, name)
    part = first_part(folder, name)
    row: dict[str, float] = {"megabytes": (folder / "predictions.jsonl").stat().st_size / 1e6}
    row["part"] = min(SHAPES[name][0], PART)
    times: dict[str, list[float]] = {side: [] for side in (*SIDES, "part")}
    for _turn in range(3):
        mine: object = None
        for side in ("part", "plain", "ours", "floor"):
            own = {"part": "ours"}.get(side, side)
            # a slow side is not repeated
            if max(times[side], default=0) > SLOW or (side == "part" and part == folder):
                continue
            seconds, clock, result = timed(own, folder if side in ("ours", "floor") else part)
            times[side].append(seconds)
            if side == "ours":
                row["clock"] = min(row.get("clock", clock), clock)
            if side == "part" or (side == "ours" and part == folder):
                mine = result
            if side == "plain":
                theirs = result
            del result
        if mine is not None:
            wrong = differences(mine, theirs)
            if wrong:
                raise SystemExit(f"{name}: the sides disagree\n" + "\n".join(wrong[:10]))
    row |= {f"{side}_time" if side == "part" else side: min(values) for side, values in times.items() if values}
    for side in ("ours", "floor"):
        row[f"memory_{side}"], row[f"whole_{side}"] = (size / 2**20 for size in memory(side, folder))
    row["ratio"] = row["plain"] / row.get("part_time", row["ours"])
    return row


def table(rows: dict[str, dict[str, float]]) -> str:
    lines = [
        "## Scoring",
        "",
        f"`python -m benchmarks.scoring`, {os.cpu_count()} cores, CPU seconds. Ratio: time of the plain "
        f"implementation over ours, both on the first {PART:,} instances at most (column part); they give the same "
        "numbers to 1e-9. What holds against ERASER's own scorer `python -m benchmarks.reference` prints. Ours: the "
        "whole shape (clock: by the clock; files over 256 MiB are shared by two processes). Floor: our time over "
        "that of `orjson.loads` on every line of the predictions, both on the whole. Memory: our peak above what the "
        "process held before, its share of what the parsed predictions take (process: the whole process at its peak; "
        "where two share a file, each of them). esnli_train has hard and soft rationales and full and erased class "
        "scores; esnli_train_aopc has those at five thresholds besides.",
        "",
        "| shape | instances | MB | ours (s) | clock (s) | floor | peak (MiB) | share of parsed | process (MiB) | part "
        "| plain (s) | ratio |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    ratios = []
    for name, row in rows.items():
        ratios.append(row["ratio"])
        share = row["memory_ours"] / row["memory_floor"]
        lines.append(
            f"| {name} | {SHAPES[name][0]} | {row['megabytes']:.0f} | {row['ours']:.2f} | {row['clock']:.2f} "
            f"| {row['ours'] / row['floor']:.2f} | {row['memory_ours']:.0f} | {share:.2f} | {row['whole_ours']:.0f} "
            f"| {row['part']:.0f} | {row['plain']:.2f} | {row['ratio']:.0f} |"
        )
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        lines += ["", f"Geometric mean of the ratios: {mean:.0f}; lowest: {min(ratios):.0f}."]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--memory"]:
        side, folder = arguments[1], Path(arguments[2])
        import eraser_hub.scoring.score

        before = _peak()
        result = SIDES[side](folder)
        print(max(_peak() - before, 1), _peak())
        del result, eraser_hub
        return 0
    names = arguments or list(SHAPES)
    unknown = [name for name in names if name not in SHAPES]
    if unknown:
        print(f"expected shapes ({', '.join(SHAPES)}), found {', '.join(unknown)}", file=sys.stderr)
        return 2
    rows: dict[str, dict[str, float]] = {}
    for name in names:
        with tempfile.TemporaryDirectory() as place:
            rows[name] = measure(name, Path(place) / "corpus")
            if not arguments:
                (FOLDER / "results_scoring.md").write_text(table(rows), encoding="utf-8")
            print(name, json.dumps({key: round(value, 3) for key, value in rows[name].items()}), flush=True)
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
