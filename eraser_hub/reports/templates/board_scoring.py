"""Score a file of predictions for the Space of a results board; of a private gold nothing but a line's scores leaves.

Whose dataset and metrics: BOARD_DATASET (the dataset's id or folder) and BOARD_METRICS (put before the metrics' names,
e.g. ``my-org/``) of the environment; else the folders beside this one that ``eraser-hub build`` wrote; else those of
the namespace in settings.json, which ``eraser-hub publish`` fills in.

BOARD_GOLD names a private dataset of the same columns, which the token of the Space's secret HF_TOKEN may read.
BOARD_GOLD_SPLITS, by default ``test``, names the splits of which it has the gold: SPLIT or CONFIG.SPLIT, with commas
between them; if BOARD_GOLD is the dataset that is taken anyway, all its splits are private. A file for them is scored
without the gold first, and only errors of that are shown. Scores have three digits, and only so many files are scored
a day: BOARD_DAILY of a system, by default 3, and BOARD_DAILY_ALL of all systems, by default 100. The counts are kept in
a file of the folder BOARD_STATE, or, if it is not set, until the Space starts again.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import threading
import traceback
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

HERE = Path(__file__).parent
BOARD = json.loads((HERE / "board.json").read_text(encoding="utf-8"))
NAMESPACE = json.loads((HERE / "settings.json").read_text(encoding="utf-8"))["namespace"]
METRICS = ("eraser_agreement", "eraser_faithfulness")
MOST_BYTES = 200_000_000
MOST_NAME = 100
DIGITS, PRIVATE_DIGITS = 6, 3
COUNTS = "submissions_of_the_day.json"
ARROWS = {"higher": " ↑", "lower": " ↓", "": ""}
# no slice, which would be the score of a few instances
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,95}")
_LOCK = threading.Lock()
_memory: dict[str, Any] = {}
Table = dict[str, Any]
_T = TypeVar("_T")


class Refused(ValueError):
    """A file that is not scored; its text is for the reader."""


@dataclass(frozen=True)
class Scored:
    """Scores of a file.

    Attributes:
        line: the file's line above the board's lines of the same data.
        scores: key -> value.
        signatures: of the two metrics.
        note: what the reader should know of a private gold; "" if it is public.
    """

    line: Table
    scores: dict[str, Any]
    signatures: Sequence[str]
    note: str = ""


def score_file(path: Path, config: str, split: str, name: str = "") -> Scored:
    """Score a file of predictions on a split, by the modules that score every line of the board.

    Raises:
        Refused: no such config or split, not predictions, what the scorer does not take (in its words), or too many
            files for a private gold.
    """
    config, split, name = config.strip(), split.strip(), name.strip()
    split = "validation" if split == "val" else split  # the releases say val
    for what, value in (("config", config), ("split", split)):
        if not _NAME.fullmatch(value):
            raise Refused(f"Expected the name of a {what}: letters, digits, - and _.")
    predictions = read_predictions(path)
    private = find_private_gold(config, split)
    if private:
        return _score_privately(predictions, private, config, split, name)
    place = find_place("eraser", os.environ.get("BOARD_DATASET"))
    scores, signatures = compute_scores(predictions, load_split(place, config, split), DIGITS)
    return Scored(place_beside(name, config, split, scores, signatures[0]), scores, signatures)


def read_predictions(path: Path) -> list[dict[str, Any]]:
    """Read instances from JSON lines.

    Raises:
        Refused: the file is too large or empty, no UTF-8, or a line of it no JSON object.
    """
    if path.stat().st_size > MOST_BYTES:
        raise Refused(f"The file is larger than {MOST_BYTES // 1_000_000} MB.")
    instances, number = list[dict[str, Any]](), 0
    try:
        # lines end at \n alone: U+2028 and its like may stand inside a string
        for number, line in enumerate(path.read_bytes().decode("utf-8").split("\n"), 1):
            if line.strip():
                instances.append(json.loads(line))
                if not isinstance(instances[-1], dict):
                    raise Refused(f"Line {number}: expected a JSON object, found {type(instances[-1]).__name__}.")
    except UnicodeDecodeError:
        raise Refused("Expected UTF-8 text.") from None
    except Refused:
        raise
    except (ValueError, RecursionError):  # also a number of more digits than Python reads
        raise Refused(f"Line {number}: expected a JSON object.") from None
    if not instances:
        raise Refused("Expected predictions, found an empty file.")
    return instances


def find_place(name: str, chosen: str | None) -> str:
    """Return the place of a dataset or metric: as chosen, else the folder beside this one, else in the namespace.

    Raises:
        Refused: none of the three.
    """
    if chosen is not None:
        return chosen
    if (HERE.parent / name / "README.md").is_file():
        return str(HERE.parent / name)
    if not NAMESPACE:
        raise Refused(
            f"Nothing can be scored here: this Space does not know whose {name} to take. Publish it with `eraser-hub "
            "publish --namespace ORG`, or set the variables BOARD_DATASET=ORG/eraser and BOARD_METRICS=ORG/."
        )
    return f"{NAMESPACE}/{name}"


def load_split(place: str, config: str, split: str) -> Any:
    """Load the rows of a split.

    Raises:
        Refused: an unknown config or split, or no network; its message says which.
    """
    import datasets

    try:
        return datasets.load_dataset(place, config, split=split)
    except Exception as error:
        raise Refused(f"{place}, {config}, {split}: {error}") from None


def compute_scores(predictions: list[dict[str, Any]], references: Any, digits: int) -> tuple[dict[str, Any], list[str]]:
    """Compute the scores of both metrics, rounded, and their signatures.

    Raises:
        Refused: what a metric says of the predictions.
    """
    import evaluate

    before = os.environ.get("BOARD_METRICS")
    scores, signatures = dict[str, Any](), list[str]()
    for metric in METRICS:
        try:
            module = evaluate.load(find_place(metric, None if before is None else f"{before}{metric}"))
            result = module.compute(predictions=predictions, references=references) or {}
        except Refused:
            raise
        except Exception as error:
            raise Refused(f"{metric}: {error}") from error
        signatures.append(result.pop("signature"))
        scores |= {
            key: round(value, digits) if math.isfinite(value) else str(value)
            for key, value in result.items()
            if isinstance(value, (int, float)) and not isinstance(value, bool)
        }
    return scores, signatures


def place_beside(name: str, config: str, split: str, scores: dict[str, Any], signature: str) -> Table:
    """Return the line that a file would be, above the board's lines that were scored on the same data."""
    stated = re.search(r"\|data:([0-9a-f]{12})", signature)
    rows = [
        row
        for row in BOARD["rows"]
        if (row["kind"], row["dataset"], row["split"]) == ("scored", config, split)
        and stated is not None
        and row["data"].startswith(stated[1])
    ]
    columns = [column for column in BOARD["columns"] if column["key"] in scores and not column["part"]]
    own = {"system": f"{name.strip() or 'your system'} (this file)", "status": "not submitted", "scores": scores}
    heads = ["System", *(column["label"] + ARROWS[column["better"]] for column in columns), "Status"]
    data = [
        [row["system"], *(_round(row["scores"].get(column["key"])) for column in columns), row["status"]]
        for row in [own, *rows]
    ]
    return {"headers": heads, "data": data}


def _round(cell: Any) -> Any:
    return round(cell, 4) if isinstance(cell, float) else cell


# -- a private gold ---------------------------------------------------------------------------------------------------


def find_private_gold(config: str, split: str) -> str:
    """Return the private dataset if it has the gold of this split, or is the only dataset; "" otherwise.

    Raises:
        Refused: as `find_place` says.
    """
    gold = os.environ.get("BOARD_GOLD", "").strip()
    named = (one.strip() for one in os.environ.get("BOARD_GOLD_SPLITS", "test").split(","))
    splits = {re.sub(r"(^|\.)val$", r"\1validation", one) for one in named}
    if not gold or splits & {split, f"{config}.{split}"}:
        return gold
    return gold if is_same_place(gold, find_place("eraser", os.environ.get("BOARD_DATASET"))) else ""


def is_same_place(one: str, other: str) -> bool:
    """Return True for two spellings of a dataset: ids in lower or upper case, or paths of a folder."""
    one, other = (place.strip().removeprefix("hf://datasets/").rstrip("/") for place in (one, other))
    return one.casefold() == other.casefold() or os.path.realpath(one) == os.path.realpath(other)


def _hide_errors(act: Callable[[], _T]) -> _T:
    """Return what a function returns; its errors go to the log, which the Space's owner alone sees."""
    try:
        return act()
    except Exception:
        traceback.print_exc(file=sys.stderr)
        raise Refused(
            "Not scored: an error in reading or in scoring the private gold. It is not shown here, because it could "
            "quote the gold. The Space's owner finds it in the log."
        ) from None


def _score_privately(predictions: list[dict[str, Any]], place: str, config: str, split: str, name: str) -> Scored:
    key = normalize_name(name)
    if not key or len(name) > MOST_NAME:
        raise Refused(f"The gold of this split is private: give the system a name, of up to {MOST_NAME} characters.")
    references = _hide_errors(lambda: load_split(place, config, split))
    blank = _hide_errors(lambda: remove_gold(references))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no gold
        try:
            compute_scores(predictions, blank, PRIVATE_DIGITS)  # its errors cannot quote a gold
        except Refused as error:
            why = "The gold of this split is private, so every document counts as one that has evidence: "
            raise Refused(f"{why if 'has evidence' in str(error) else ''}{error}") from None
    left = count_submission(f"{config}.{split}/{key}")
    scores, signatures = _hide_errors(lambda: compute_scores(predictions, references, PRIVATE_DIGITS))
    shown = {column["key"] for column in BOARD["columns"] if not column["part"]}
    scores = {key: value for key, value in scores.items() if key in shown}
    note = (
        f"The gold of this split is private. Today (UTC) {left} more files of this system are scored. The scores have "
        f"{PRIVATE_DIGITS} digits; no scores of single instances are shown."
    )
    return Scored(place_beside(name, config, split, scores, signatures[0]), scores, signatures, note)


def remove_gold(references: Any) -> Any:
    """Return rows with their ids, queries and documents, and with the first label each.

    Each document has an empty span of evidence: the scorer demands of predictions what it could demand for any gold.
    """
    import datasets

    kept = ["annotation_id", "query", "documents", "evidences"]
    features = references.features
    first = dict[str, Any]()
    if isinstance(features.get("classification"), datasets.ClassLabel):
        kept.append("classification")
        first["classification"] = 0
    others = [column for column in references.column_names if column not in kept]
    left = datasets.Features({name: features[name] for name in references.column_names if name in kept})
    bounds = dict.fromkeys(("start_token", "end_token", "start_sentence", "end_sentence"), 0)

    def blank(row: dict[str, Any]) -> dict[str, Any]:
        return {**first, "evidences": [[{"docid": one["docid"], "text": "", **bounds} for one in row["documents"]]]}

    return references.map(blank, remove_columns=others, features=left, keep_in_memory=True)


def normalize_name(name: str) -> str:
    """Return the letters and digits of a system's name, by which names are the same."""
    return "".join(one for one in unicodedata.normalize("NFKC", name).casefold() if one.isalnum())


def count_submission(key: str) -> int:
    """Count a file of a system for today; return how many more are scored today.

    Raises:
        Refused: all of today's are used up.
    """
    most, most_of_all = (int(os.environ.get(n, d)) for n, d in (("BOARD_DAILY", "3"), ("BOARD_DAILY_ALL", "100")))
    today = datetime.now(timezone.utc).date().isoformat()
    with _LOCK:
        folder = os.environ.get("BOARD_STATE", "")
        file = Path(folder) / COUNTS if folder else None
        kept = json.loads(file.read_bytes()) if file is not None and file.is_file() else _memory
        counts = Counter[str](kept["counts"] if kept.get("day") == today else {})
        if counts[key] >= most:
            words = f"{most} files a day of one system are scored where the gold is private. These were scored today"
            raise Refused(f"Not scored: {words} (UTC).")
        if counts.total() >= most_of_all:
            words = f"{most_of_all} files a day are scored where the gold is private. These were scored today"
            raise Refused(f"Not scored: {words} (UTC).")
        counts[key] += 1
        _memory.update(day=today, counts=dict(counts))
        if file is not None:
            beside = file.with_suffix(".new")
            beside.write_text(json.dumps(_memory), encoding="utf-8")
            beside.replace(file)
        return most - counts[key]
