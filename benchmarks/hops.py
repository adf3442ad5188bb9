"""How many functions of the project a call runs through, from the user's line to the result.

python -m benchmarks.hops            a row for each journey: functions, files, the most that it should go through
python -m benchmarks.hops score      one journey, and every function that it went through

A function counts once, however often it is called. Comprehensions and lambdas count to the function that holds them;
what runs when a module is imported does not count.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = tuple(ROOT / name for name in ("eraser_hub", "metrics", "conversion", "datasets_scripts"))
# journey -> the most functions, and files, that it should go through
LIMITS = {"compute": (30, 8), "score": (70, 15), "build": (80, 15), "explain": (60, 12)}


class Counting:
    """p of POS grows with the word good."""

    label_names = ("NEG", "POS")

    def predict_proba(self, token_lists: list[list[str]]) -> list[list[float]]:
        """Return a row for each list of tokens."""
        return [[0.9 - 0.8 * ("good" in tokens), 0.1 + 0.8 * ("good" in tokens)] for tokens in token_lists]


def list_functions(action: Callable[[], Any], folders: tuple[Path, ...]) -> set[tuple[str, str]]:
    """Return (file, function) of each function below the folders that the action runs through."""
    seen: set[CodeType] = set()

    def look(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            seen.add(frame.f_code)

    sys.setprofile(look)
    try:
        action()
    except SystemExit as ended:
        if ended.code:
            raise
    finally:
        sys.setprofile(None)
    found = set()
    for code in seen:
        path, name = Path(code.co_filename).resolve(), code.co_qualname.replace(".<locals>", "")
        is_function = code.co_flags & 0x1 and not name.endswith(">")  # CO_OPTIMIZED: no body of a class or module
        if is_function and any(path.is_relative_to(folder) for folder in folders):
            found.add((str(path), name))
    return found


def run_journey(name: str, place: Path) -> set[tuple[str, str]]:
    """Return the functions of one journey, which was gone once before, so that all modules are loaded."""
    if name == "compute":
        import evaluate

        from eraser_hub.publishing.spaces import build_metrics

        space = build_metrics(place, ["eraser_agreement"])[0]
        example = json.loads((space / "example.json").read_text("utf-8"))
        metric = evaluate.load(str(space))
        home = Path(sys.modules[type(metric).__module__].__file__ or "").parent
        rows = {"predictions": example["predictions"], "references": example["references"]}
        return list_functions(lambda: metric.compute(**rows), (home,))
    if name == "explain":
        from eraser_hub import explain_texts

        explain_texts(Counting(), ["a good film"], kd=0.3)
        return list_functions(lambda: explain_texts(Counting(), ["a good film"], kd=0.3), FOLDERS)
    from eraser_hub.cli import main

    samples = ROOT / "samples"
    predictions = samples / "predictions" / "eraser" / "movies.val.jsonl"
    arguments = {
        "build": ["build", "eraser", "--source", samples / "eraser", "--config", "movies", "--out"],
        "score": ["score", "--dataset", samples / "eraser" / "movies", "--split", "val", "--predictions", predictions],
    }[name]
    for turn in ("first", "second"):
        sys.argv = ["eraser-hub", *map(str, arguments), *([str(place / turn)] if name == "build" else [])]
        found = list_functions(main, FOLDERS)
    return found


def main() -> None:
    """Print the journeys, or the functions of one."""
    if len(sys.argv) > 1:
        with tempfile.TemporaryDirectory() as folder:
            for file, name in sorted(run_journey(sys.argv[1], Path(folder))):
                print(f"{Path(file).name}: {name}")
        return
    for name, (most, most_files) in LIMITS.items():
        command = [sys.executable, "-m", "benchmarks.hops", name]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        lines = [line for line in done.stdout.splitlines() if ".py: " in line]
        files = {line.partition(": ")[0] for line in lines}
        fits = len(lines) <= most and len(files) <= most_files
        print(f"{name:8} {len(lines):4} functions of {len(files):3} files, at most {most} of {most_files}: {fits}")


if __name__ == "__main__":
    main()
