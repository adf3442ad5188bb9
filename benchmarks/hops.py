"""How many functions of the project a call runs through, from the user's line to the result.

python -m benchmarks.hops            prints a row for each journey: functions, files, the bar, whether it holds
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
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "samples"
# journey -> the most functions, and files, that it should go through
BARS = {"compute": (30, 8), "score": (70, 15), "build": (80, 15), "explain": (60, 12)}
INNER = ("<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<module>")


def functions_of(action: Callable[[], Any], folders: tuple[Path, ...]) -> set[tuple[str, str]]:
    """Return (file, function) of each function below the folders that the action runs through."""
    seen: set[CodeType] = set()

    def look(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            seen.add(frame.f_code)

    sys.setprofile(look)
    try:
        action()
    except SystemExit as stopped:
        if stopped.code:
            raise
    finally:
        sys.setprofile(None)
    found = ((Path(code.co_filename).resolve(), _name(code).replace(".<locals>", "")) for code in seen)
    inside = ((path, name) for path, name in found if any(path.is_relative_to(folder) for folder in folders))
    return {(str(path), name) for path, name in inside if not name.endswith(INNER) and not _is_class_body(name, seen)}


def _name(code: CodeType) -> str:
    return code.co_qualname


def _is_class_body(name: str, seen: set[CodeType]) -> bool:
    return any(_name(code) == name and not code.co_flags & 0x1 for code in seen)  # CO_OPTIMIZED: a function


def verb(*words: str) -> Callable[[], None]:
    """Return a call of the command line."""
    from eraser_hub.cli import main

    def run() -> None:
        sys.argv = ["eraser-hub", *words]
        main()

    return run


def compute(folder: Path) -> tuple[Callable[[], None], tuple[Path, ...]]:
    """Return ``evaluate.load(..).compute`` of a Space, and where its files lie."""
    import evaluate

    from eraser_hub.publishing.spaces import build_metrics

    space = build_metrics(folder, ["eraser_agreement"])[0]
    example = json.loads((space / "example.json").read_text("utf-8"))
    metric = evaluate.load(str(space))
    home = Path(sys.modules[type(metric).__module__].__file__ or "").parent

    def run() -> None:
        metric.compute(predictions=example["predictions"], references=example["references"])

    return run, (home,)


class Counting:
    """p of POS grows with the word good."""

    label_names = ("NEG", "POS")

    def predict_proba(self, token_lists: list[list[str]]) -> list[list[float]]:
        """Return a row for each list of tokens."""
        return [[0.9 - 0.8 * ("good" in tokens), 0.1 + 0.8 * ("good" in tokens)] for tokens in token_lists]


def explain_one() -> None:
    """Explain one text by occlusion."""
    from eraser_hub import explain_texts

    explain_texts(Counting(), ["a good film"], kd=0.3)


def words_of(name: str, folder: Path) -> tuple[str, ...]:
    """Return a verb's words, which write below the folder."""
    data, hub = SAMPLES / "eraser" / "movies", folder / "hub"
    return {
        "build": ("build", "eraser", "--source", str(SAMPLES / "eraser"), "--config", "movies", "--out", str(hub)),
        "score": (
            *("score", "--dataset", str(data), "--split", "val", "--predictions"),
            str(SAMPLES / "predictions" / "eraser" / "movies.val.jsonl"),
        ),
    }[name]


def journey(name: str, folder: Path) -> set[tuple[str, str]]:
    """Return the functions of one journey, which was gone once before, so that all modules are there."""
    if name == "compute":
        return functions_of(*compute(folder))
    folders = tuple(ROOT / each for each in ("eraser_hub", "metrics", "conversion", "datasets_scripts"))
    if name == "explain":
        explain_one()
        return functions_of(explain_one, folders)
    with suppress(SystemExit):
        verb(*words_of(name, folder / "first"))()
    return functions_of(verb(*words_of(name, folder / "second")), folders)


def main() -> None:
    """Print the journeys, or the functions of one."""
    if len(sys.argv) > 1:
        with tempfile.TemporaryDirectory() as folder:
            for path, name in sorted(journey(sys.argv[1], Path(folder))):
                print(f"{Path(path).name}: {name}")
        return
    for name, (most, most_files) in BARS.items():
        command = [sys.executable, "-m", "benchmarks.hops", name]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        lines = [line for line in done.stdout.splitlines() if ".py: " in line]
        files = {line.partition(": ")[0] for line in lines}
        fits = len(lines) <= most and len(files) <= most_files
        print(f"{name:8} {len(lines):4} functions of {len(files):3} files, at most {most} of {most_files}: {fits}")


if __name__ == "__main__":
    main()
