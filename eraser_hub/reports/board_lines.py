"""A line of the results board: a system on a dataset, its scores, and where they come from."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import stdev
from typing import Any

import msgspec

from eraser_hub.conversion.readers import describe_value, read_strict_object
from eraser_hub.records.errors import DataError, describe_bad_name, show, show_controls
from eraser_hub.records.files import shorten_digest
from eraser_hub.records.places import dataset_split
from eraser_hub.scoring.result import SPREAD, HumanPerformance, average_chance

from .catalogue import metric
from .score_ranges import check_scores

_SEED = re.compile(r"\bseed:[^|]*")
MAX_SIGNATURE = 10_000
_INSTANCES = re.compile(r"\|n:(\d{1,12})\b")


@dataclass(frozen=True, slots=True)
class BoardLine:
    """One line of the board.

    Attributes:
        system, dataset, split: what was scored; ``split`` is empty where a paper does not say it.
        kind: ``"published"`` (printed in a paper) or ``"scored"`` (a score file's, with its signature).
        source: the short name of where the numbers come from.
        detail: the whole of it: table and settings of the paper, or signature and file.
        scores: key -> number; None where the scorer gave none (NaN).
        intervals: key -> (low, high).
        spread: of several runs or draws, key -> standard deviation over them.
        people: human performance on the same data, if the score file has it.
        notes: how the line was made, if of several score files.
        data: the digest of the data, in full; "" if the score file has none.
        predictions: the digest of each file of predictions, in full.
        gold: the gold rationales of the split, see `Scores.gold`; empty where unknown.
        chance: scores of random rationales by key, where known.
        apart: why the line stands in another table than other lines of the dataset; "" where it does not.
        group: the name of the lines that it may be compared with, see `board_groups`; "" for those of the dataset.
        sample: how the data differ from the release's split; "" if they do not, or if that is not known.
    """

    system: str
    dataset: str
    split: str
    kind: str
    source: str
    detail: str
    scores: Mapping[str, float | None]
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    people: HumanPerformance | None = None
    notes: tuple[str, ...] = ()
    data: str = ""
    predictions: tuple[str, ...] = ()
    gold: Mapping[str, Any] = field(default_factory=dict)
    chance: Mapping[str, float] = field(default_factory=dict)
    apart: str = ""
    group: str = ""
    sample: str = ""

    @property
    def status(self) -> str:
        """``self-reported`` (a score file's) or ``printed`` (in a paper)."""
        return "printed" if self.kind == "published" else "self-reported"

    @property
    def instances(self) -> int | None:
        """The number of annotations that were scored, as the signature states it; None if it does not."""
        stated = _INSTANCES.search(self.detail)
        return int(stated[1]) if stated else None


PEOPLE = "people"


class _People(msgspec.Struct):
    scores: dict[str, float]
    annotators: int
    spread: dict[str, float] = {}


def read_score_file(path: Path, *, system: str = "", dataset: str = "") -> BoardLine:
    """Read a score file as a line of the board.

    Args:
        path: JSON that ``eraser-hub score --out`` or ``eraser-hub report`` wrote.
        system: name of the system, in place of the file's.
        dataset: name of the dataset, in place of the file's.

    Raises:
        DataError: not JSON (NaN is none), a key twice, no signature, no dataset named, a score that is no number or
            outside its range, or an interval without its score.
    """
    return make_board_line(read_strict_object(path), file=path, system=system, dataset=dataset)


def parse_score_argument(argument: str) -> BoardLine:
    """Read ``FILE``, ``SYSTEM=FILE`` or ``SYSTEM@DATASET=FILE`` as a line of the board, see `read_score_file`."""
    name, equals, path = argument.partition("=")
    if not equals or "://" in name or os.path.exists(argument):  # an address may hold a =
        return read_score_file(Path(argument))
    system, _, dataset = name.rpartition("@") if "@" in name else (name, "", "")
    return read_score_file(Path(path), system=system, dataset=dataset)


def make_board_line(content: Mapping[str, Any], *, file: Path, system: str = "", dataset: str = "") -> BoardLine:
    """Make a line of the board of a score file's content; arguments and errors as in `read_score_file`."""
    signatures = get_signatures(content)
    if not signatures:
        words = "expected a signature, found none: a number without the settings that made it is not shown"
        message = f"{words}; score the predictions with `eraser-hub score`"
        raise DataError(message, file=file, field="signature")
    names = {name: _read_text(content, name, file) for name in ("system", "dataset", "config", "split", "data_digest")}
    stem = file.name.removesuffix(".json").removesuffix(".scores")
    system = _choose_name(file, ("", system), ("system", names["system"]), ("", stem))
    dataset = _choose_name(file, ("", dataset), *((name, names[name]) for name in ("config", "dataset")))
    for name in ("split", "data_digest"):
        _choose_name(file, (name, names[name]))
    _check_signatures(content, names, file)
    if not dataset:
        message = "expected the dataset's name (SYSTEM@DATASET=FILE), found none in the file"
        raise DataError(message, file=file)
    try:
        scores, intervals, spread = _numbers(content.items())
        _refuse_immense(content)
        check_scores(scores, intervals, spread, signatures)
    except DataError as error:
        raise error.at(file=file) from None
    if not any(value is not None for value in scores.values()):
        raise DataError("expected scores, found none", file=file)
    predictions = content.get("predictions_sha256")
    return BoardLine(
        system=system,
        dataset=dataset,
        split=dataset_split(names["split"]),
        kind="scored",
        source="a score file",
        detail=" · ".join(signatures),
        scores=scores,
        intervals=intervals,
        spread=spread,
        people=_read_people(content, file),
        data=names["data_digest"],
        gold=_read_gold(content, file),
        chance=_read_chance(content, scores, signatures, file),
        predictions=tuple(one for one in predictions if isinstance(one, str)) if isinstance(predictions, list) else (),
    )


def _read_gold(content: Mapping[str, Any], file: Path) -> Mapping[str, Any]:
    """Return the gold of a score file; nothing for a file without it."""
    gold = content.get("gold") or {}
    counts = ("marked_rows", "unmarked_rows")
    if not isinstance(gold, Mapping) or (gold and not {*counts, "density", "split"} <= gold.keys()):
        raise DataError(f"expected the gold of a split, found {describe_value(gold)}", file=file, field="gold")
    for name in (*counts, "density") if gold else ():
        value = _number(gold[name], f"gold.{name}", file)
        if value is not None and not 0 <= value <= (1 if name == "density" else math.inf):
            words = f"expected a count, or a share for the density, found {value:g}"
            raise DataError(words, file=file, field=f"gold.{name}")
    return gold


def _read_chance(
    content: Mapping[str, Any], scores: Mapping[str, object], signatures: Sequence[str], file: Path
) -> dict[str, float]:
    """Return chance of the scores of a score file."""
    values = content.get("chance") or {}
    if not isinstance(values, Mapping):
        message = f"expected chance by score, found {describe_value(values)}"
        raise DataError(message, file=file, field="chance")
    numbers = {key: _number(value, f"chance.{key}", file) for key, value in values.items() if key in scores}
    found = {key: value for key, value in numbers.items() if value is not None}
    try:
        check_scores(found, {}, {}, signatures)
    except DataError as error:
        raise DataError(error.message, file=file, field=f"chance.{error.field}") from None
    return found


def _read_people(content: Mapping[str, Any], file: Path) -> HumanPerformance | None:
    """Return the block ``people`` of a score file, if it has one.

    Raises:
        DataError: it has another form, or a score outside its range.
    """
    if content.get("people") is None:
        return None
    try:
        people = msgspec.convert(content["people"], _People)
        check_scores(people.scores, {}, people.spread, ())
    except msgspec.ValidationError as error:
        raise DataError(str(error), file=file, field="people") from None
    except DataError as error:
        raise DataError(error.message, file=file, field=f"people.scores.{error.field}") from None
    return HumanPerformance(people.scores, people.spread, people.annotators)


def make_people_lines(lines: Sequence[BoardLine]) -> list[BoardLine]:
    """Return a line with human performance for each dataset and split of which score files have it."""
    made: dict[tuple[str, str, str], BoardLine] = {}
    for line in lines:
        if line.people is not None and line.people.scores:
            more: dict[str, Any] = {"intervals": {}, "notes": (), "predictions": ()}
            more |= {"scores": line.people.scores, "spread": line.people.spread}
            people = replace(line, system=PEOPLE, detail=line.people.describe(), people=None, **more)
            made.setdefault((line.dataset, line.split, line.data), people)
    return list(made.values())


def describe_data(lines: Sequence[BoardLine]) -> list[str]:
    """Return notes on scored lines of which the data are not known, or differ within a dataset and split."""
    known: dict[tuple[str, str], dict[str, str]] = {}
    for line in lines:
        if line.kind == "scored" and line.data:
            known.setdefault((line.dataset, line.split), {}).setdefault(line.data, line.system)
    notes = []
    for (dataset, split), systems in known.items():
        if len(systems) > 1:
            found = ", ".join(f"{shorten_digest(data)} ({system})" for data, system in systems.items())
            notes.append(f"{dataset} {split}: scores of different data stand in groups of their own: {found}")
    without = [line.system for line in lines if line.kind == "scored" and not line.data]
    if without:
        notes.append(f"{len(without)} score files have no digest of their data: {', '.join(map(show, without[:5]))}")
    return notes


def _read_text(content: Mapping[str, Any], field: str, file: Path) -> str:
    value = content.get(field)
    if value is not None and not isinstance(value, str):
        raise DataError(f"expected a name, found {describe_value(value)}", file=file, field=field)
    return value or ""


def _choose_name(file: Path, *names: tuple[str, str]) -> str:
    """Return the first name that is not empty, of pairs of a field ("": none) and its value.

    Raises:
        DataError: no table can show it; names after it are not shown, and not checked.
    """
    field, name = next((one for one in names if one[1]), ("", ""))
    if words := describe_bad_name(name):
        hint = " (SYSTEM@DATASET=FILE gives names)" if len(names) > 1 else ""
        raise DataError(words + hint, file=file, field=field or None)
    return name


def _check_signatures(content: Mapping[str, Any], names: Mapping[str, str], file: Path) -> None:
    """Refuse signatures that are no line, and those of another split or other data than the file names."""
    split, data = names["split"], names["data_digest"]
    for key in ("signature", "run"):
        for signature in "; ".join(_list_texts(content.get(key))).split("; "):
            if show_controls(signature) != signature or len(signature) > MAX_SIGNATURE:
                words = f"expected one printable line of at most {MAX_SIGNATURE:,} characters, found {show(signature)}"
                raise DataError(words, file=file, field=key)
            stated = dict(part.split(":", 1) for part in signature.split("|")[1:] if ":" in part and key != "run")
            claimed_split, claimed_data = stated.get("split", split), stated.get("data", data)
            if split and dataset_split(claimed_split) != dataset_split(split):
                field, expected, found = "split", show(claimed_split), show(split)
            elif data and not data.startswith(claimed_data):
                field, expected, found = "data_digest", shorten_digest(claimed_data), shorten_digest(data)
            else:
                continue
            words = f"expected {expected}, which its signature names, found {found}"
            raise DataError(words, file=file, field=field)


def _numbers(
    flat: Iterable[tuple[str, Any]],
) -> tuple[dict[str, float | None], dict[str, tuple[float, float]], dict[str, float]]:
    """Return scores, their intervals and their spread over runs.

    A key that the catalogue does not know counts if its value is a number.
    """
    scores: dict[str, float | None] = {}
    intervals: dict[str, tuple[float, float]] = {}
    spread: dict[str, float] = {}
    for key, value in flat:
        known = metric(key.removesuffix("_ci").removesuffix(SPREAD)).family != "other"
        if known and key.endswith(SPREAD):
            number = _number(value, key)
            if number is not None:
                spread[key.removesuffix(SPREAD)] = number
        elif known and key.endswith("_ci"):
            if not isinstance(value, list) or len(value) != 2:
                raise DataError(f"expected an interval [low, high], found {describe_value(value)}", field=key)
            low, high = _number(value[0], key), _number(value[1], key)
            if low is not None and high is not None:
                intervals[key.removesuffix("_ci")] = (low, high)
        elif known or value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            scores[key] = _number(value, key)
    return scores, {key: pair for key, pair in intervals.items() if key in scores}, spread


def _refuse_immense(value: Any) -> None:
    """Refuse an integer that no float holds, anywhere in a score file: a viewer of it would meet it."""
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _refuse_immense(inner)
    if isinstance(value, int):
        _number(int(value), "")


def _number(value: Any, field: str, file: Path | None = None) -> float | None:
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and abs(value) <= sys.float_info.max:
        return float(value)
    message = f"expected a number that a float holds, or null, found {describe_value(value)}"
    raise DataError(message, file=file, field=field)


def get_signatures(content: Mapping[str, Any]) -> list[str]:
    """Return the signatures in a score file: one string, a list of them, or one per metric."""
    signatures = _list_texts(content.get("signature"))
    # behind them what the run that wrote the predictions says of itself
    return signatures and [*signatures, *_list_texts(content.get("run"))]


def _list_texts(value: Any) -> list[str]:
    """Return the texts in a value, in a list, or in a mapping's values, but for blank ones."""
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else [value]
    return [part for part in parts if isinstance(part, str) and part.strip()]


def average_draws(lines: Sequence[BoardLine]) -> list[BoardLine]:
    """Score files of one system on one split whose settings differ in the seed alone, as one line: mean and spread.

    Raises:
        DataError: two files of one system whose settings differ in more than the seed.
    """
    groups: dict[tuple[str, str, str, str], list[BoardLine]] = {}
    for line in lines:
        groups.setdefault((line.system, line.dataset, line.split, line.data), []).append(line)
    return [group[0] if len(group) == 1 else _average(group) for group in groups.values()]


def _average(lines: Sequence[BoardLine]) -> BoardLine:
    """Return several lines of one system on one split as one line."""
    first, count = lines[0], len(lines)
    if len({_SEED.sub("seed:*", line.detail) for line in lines}) > 1:
        message = (
            f"expected score files of one system to differ in the seed alone, found {count} of {show(first.system)} on "
            f"{first.dataset} {first.split} with different signatures: give each a name of its own"
        )
        raise DataError(message)
    keys = [key for key in first.scores if all(key in line.scores for line in lines)]
    known = {key: [value for line in lines if (value := line.scores[key]) is not None] for key in keys}
    whole = {key: values for key, values in known.items() if len(values) == count}
    return replace(
        first,
        source=f"{first.source}, mean of {count} draws",
        detail=f"mean of {count} score files. {_SEED.sub('seed:*', first.detail)}",
        predictions=tuple(digest for line in lines for digest in line.predictions),
        scores={**dict.fromkeys(keys), **{key: math.fsum(values) / count for key, values in whole.items()}},
        chance=average_chance([line.chance for line in lines]),
        intervals={},
        spread={key: stdev(values) for key, values in whole.items()},
        notes=(*dict.fromkeys(note for line in lines for note in line.notes), f"the mean of {count} score files"),
    )
