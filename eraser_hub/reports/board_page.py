"""The results board: score files and the papers' printed results on one page, grouped by what is comparable.

Score files may come from anywhere: they are strict JSON with a signature, names that a page can show, and scores in the
range that their metric declares.
"""

from __future__ import annotations

import logging
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from eraser_hub.conversion.readers import describe_value
from eraser_hub.papers import COMPREHENSIVE, PAPERS, find_comprehensive, load_paper, read_released_gold
from eraser_hub.records.errors import DataError, describe_bad_name, show, show_controls
from eraser_hub.records.files import GENERATOR
from eraser_hub.records.places import dataset_split
from eraser_hub.records.readers import read_json_object
from eraser_hub.records.tables import Cell, Table, Tables
from eraser_hub.scoring.result import HEADLINE, INTERVAL, SPREAD, describe_gold

from .catalogue import find_range, format_number, metric
from .page import render

log = logging.getLogger("eraser_hub")
NOTE = (
    "The papers call theirs a results board, not a leaderboard: no single number says which system explains best. "
    "Systems stand in the order of their names until you sort by a column. A table holds scores of the same texts "
    "with the same settings; numbers of different tables are not comparable, and faithfulness compares methods on one "
    "model."
)
SUFFIX = "scores.json"  # of the score files in a folder
MAX_FILES, MAX_SCORES, MAX_SIGNATURE = 5_000, 1_000, 10_000
# parts of a signature that are facts of the data, or how intervals were drawn; all others are settings of the scores
FACTS = {"data", "config", "split", "n", "version", "answered", "by", "marked_rows", "unmarked_rows"}
FACTS |= {"level", "resamples", "seed", "cluster", "clusters"}
OPERATOR = re.compile(r"\|(erase:[^|]+)")  # how tokens were erased, in the signature of the run
LEVEL = re.compile(r"\|level:(\d*\.?\d+(?:e-\d+)?)")
# with lower levels than this the interval of a skewed score may lie beside it
MIN_LEVEL = 0.5
# a score is a sum of many rounded numbers
SLACK = 1e-9


class GoldFacts(msgspec.Struct):
    """What a score file says of the gold, see `Scores.gold`."""

    marked_rows: int
    unmarked_rows: int
    density: float
    split: str | None = None
    comprehensive: bool | None = None


class ScoreFile(msgspec.Struct):
    """The fields of a score file beside its scores."""

    signature: list[str] | str = ""
    run: str = ""
    system: str = ""
    dataset: str = ""
    config: str = ""
    split: str = ""
    data_digest: str = ""
    gold: GoldFacts | None = None
    chance: dict[str, float | None] = {}


@dataclass(frozen=True, slots=True)
class BoardLine:
    """A system on a split, its scores, and where they come from.

    Attributes:
        system, dataset, split: what was scored; ``split`` is "" where it is not known.
        kind: ``measured`` (a score file) or ``printed`` (in a paper).
        source: the file's name, or paper and table.
        detail: the signatures, or the table's title and settings.
        scores: key -> number; None where the scorer gave none (NaN).
        intervals: key -> (low, high).
        spread: key -> standard deviation over runs.
        chance: key -> score of random rationales.
        data: the first digits of the digest of the gold; "" where it is not known.
        settings: metric -> the settings in its signature.
        annotations: the number of annotations; None where it is not known.
        about: what is known of the gold.
    """

    system: str
    dataset: str
    split: str = ""
    kind: str = "measured"
    source: str = ""
    detail: str = ""
    scores: Mapping[str, float | None] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    chance: Mapping[str, float] = field(default_factory=dict)
    data: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    annotations: int | None = None
    about: str = ""

    def small_print(self, key: str) -> str:
        """Return what stands below a score: its interval, its spread over runs, and chance."""
        low, high = map(format_number, self.intervals.get(key, (None, None)))
        parts = [f"[{low}, {high}]"] if key in self.intervals else []
        parts += [f"±{format_number(self.spread[key])}"] if key in self.spread else []
        return "\n".join([*parts, *([f"chance {format_number(self.chance[key])}"] if key in self.chance else [])])


@dataclass(frozen=True, slots=True)
class BoardGroup:
    """Lines whose scores are comparable: of the same data with the same settings.

    Attributes:
        name: dataset and split, and the data or settings where these alone do not tell groups apart.
        facts: what is known of the data.
        lines: in the order of the systems' names.
    """

    name: str
    facts: list[str]
    lines: list[BoardLine]

    @property
    def keys(self) -> list[str]:
        """The keys that have a number, by family, then by label."""
        keys = {key for line in self.lines for key, value in line.scores.items() if value is not None}
        return sorted(keys, key=lambda key: metric(key).rank)


@dataclass(frozen=True, slots=True)
class BoardResult:
    """A board: its groups, the files that were written, and what to know of the score files."""

    groups: list[BoardGroup]
    files: list[Path]
    notes: list[str]

    @property
    def lines(self) -> list[BoardLine]:
        """The lines of all groups."""
        return [line for group in self.groups for line in group.lines]

    @property
    def signatures(self) -> list[str]:
        """A line for each score file: how it was scored."""
        return [f"{line.system}, {line.dataset}: {line.detail}" for line in self.lines if line.kind == "measured"]

    def as_json(self) -> dict[str, Any]:
        """Return the board's data, as board.json has it."""
        names = ("system", "dataset", "split", "kind", "source", "detail", "data", "annotations")
        rows = []
        for group in self.groups:
            for line in group.lines:
                row = {"group": group.name, **{name: getattr(line, name) for name in names}}
                row["scores"] = {key: value for key, value in line.scores.items() if value is not None}
                rows.append(row | {name: dict(getattr(line, name)) for name in ("intervals", "spread", "chance")})
        keys = dict.fromkeys(key for group in self.groups for key in group.keys)
        columns = [{name: getattr(metric(key), name) for name in ("key", "label", "family", "better")} for key in keys]
        groups = [{"name": group.name, "facts": group.facts} for group in self.groups]
        return {"generator": GENERATOR, "note": NOTE, "columns": columns, "groups": groups, "rows": rows}

    def table(self, whole: bool = False) -> Tables:
        """Return a table for each group that score files are in; without any, for each group.

        The columns are the scores of the papers' own tables. With ``whole`` all groups have every score.
        """
        mine = [group for group in self.groups if group.lines[0].kind == "measured"]
        printed, tables = list_printed_keys(), Tables("board")
        for group in self.groups if whole or not mine else mine:
            shown = [key for key in group.keys if whole or key in printed] or group.keys
            heads = {key: key if whole else metric(key).label for key in shown}
            left = ("system", "source") if whole or group.lines[0].kind == "printed" else ("system",)
            table = Table(group.name, group.name, left, tuple(heads.values()), notes=list(group.facts))
            for line in group.lines:
                cells = {}
                for key in shown:
                    low, high = line.intervals.get(key, (None, None))
                    cells[heads[key]] = Cell(line.scores.get(key), digits=3, low=low, high=high)
                table.add(*(line.system, line.source)[: len(left)], **cells)
                chance = {heads[key]: Cell(line.chance[key], digits=3) for key in shown if key in line.chance}
                if chance and not whole:
                    table.add(*(f"{line.system}, chance", "")[: len(left)], **chance)
            tables.tables.append(table)
        return tables


def list_arguments(scores: str | Sequence[str]) -> Counter[tuple[str, Path]]:
    """Count ("" or the name that is given, score file); links in a folder are not followed."""
    found = Counter[tuple[str, Path]]()
    for argument in map(os.fspath, [scores] if isinstance(scores, str | os.PathLike) else scores):
        name, equals, path = argument.partition("=")
        if equals and "://" not in name and not os.path.exists(argument):  # an address may hold a =
            found[name, Path(path)] += 1
        elif not os.path.isdir(argument):
            found["", Path(argument)] += 1
        else:
            every = sorted(Path(folder, file) for folder, _, files in os.walk(argument) for file in files)
            every = [file for file in every if file.name.endswith(SUFFIX)]
            files = [file for file in every if not file.is_symlink()]
            if len(files) < len(every):
                log.warning(f"{argument}: {len(every) - len(files):,} links to score files are not followed")
            if not 1 <= len(files) <= MAX_FILES:
                message = f"expected 1 to {MAX_FILES:,} files that end in {SUFFIX}, found {len(files):,}"
                raise DataError(message, file=argument)
            found.update(("", file) for file in files)
    return found


# -- score files ------------------------------------------------------------------------------------------------------


def read_score_file(path: Path, *, system: str = "", dataset: str = "") -> BoardLine:
    """Read a score file as a line of the board.

    Args:
        path: JSON that ``score --out``, ``report``, ``reproduce`` or ``bench`` wrote.
        system: name of the system, in place of the file's.
        dataset: name of the dataset, in place of the file's.

    Raises:
        DataError: not JSON (NaN is none), a key twice, no signature, no dataset named, a score that is no number or
            outside its range, an interval beside its score.
    """
    content = read_json_object(path)
    try:
        return make_line(content, path.name, system, dataset)
    except DataError as error:
        raise error.at(file=path) from None


def make_line(content: Mapping[str, Any], file_name: str, system: str, dataset: str) -> BoardLine:
    """Return the line of a score file's content; arguments and errors as of `read_score_file`."""
    try:
        file = msgspec.convert({name: value for name, value in content.items() if value is not None}, ScoreFile)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$.")
        raise DataError(message.lower().replace(", got", ", found"), field=place.rstrip("`")) from None
    listed = [file.signature] if isinstance(file.signature, str) else file.signature
    signatures = [text for text in dict.fromkeys(listed) if text.strip() and text != file.run]
    if not signatures:
        words = "expected a signature, found none: a number without the settings that made it is not shown"
        raise DataError(f"{words}; score the predictions with `eraser-hub score`", field="signature")
    settings, stated = dict[str, str](), dict[str, str]()
    for text in [*signatures, file.run]:
        if show_controls(text) != text or len(text) > MAX_SIGNATURE:
            words = f"expected one printable line of at most {MAX_SIGNATURE:,} characters, found {show(text)}"
            raise DataError(words, field="run" if text == file.run else "signature")
    for text in signatures:
        head, *parts = text.split("|")
        stated |= dict(part.split(":", 1) for part in parts if ":" in part)
        settings[head] = " ".join(part for part in parts if part.partition(":")[0] not in FACTS)
    if operator := OPERATOR.search(file.run):
        settings["run"] = operator[1]
    names = {
        "system": system or file.system or file_name.removesuffix(".json").removesuffix(".scores"),
        "dataset": dataset or file.config or file.dataset,
        "split": dataset_split(stated.get("split", file.split)),
        "data": stated.get("data", file.data_digest)[:12],
    }
    for name, value in names.items():
        if words := describe_bad_name(value):
            raise DataError(f"{words} (SYSTEM@DATASET=FILE gives names)", field=name)
    if not names["dataset"]:
        raise DataError("expected the dataset's name (SYSTEM@DATASET=FILE), found none in the file")
    holds = all(float(level) >= MIN_LEVEL for level in LEVEL.findall("".join(signatures)))
    scores, intervals, spread = read_scores(content, holds)
    if not 1 <= sum(value is not None for value in scores.values()) <= MAX_SCORES:
        raise DataError(f"expected 1 to {MAX_SCORES:,} scores, found {len(scores):,}")
    chance = {key: read_number(value, f"chance.{key}", *find_range(key)) for key, value in file.chance.items()}
    count = stated.get("n", "")
    annotations = int(count) if count.isdecimal() and len(count) < 12 else None
    about = f"{annotations:,} annotations" if annotations else ""
    return BoardLine(
        **names,
        source=file_name,
        detail=" · ".join(filter(None, [*signatures, file.run])),
        scores=scores,
        intervals=intervals,
        spread=spread,
        chance={key: value for key, value in chance.items() if value is not None and key in scores},
        settings=settings,
        annotations=annotations,
        about=describe_gold(msgspec.structs.asdict(file.gold)) if file.gold else about,
    )


def read_scores(
    content: Mapping[str, Any], holds: bool
) -> tuple[dict[str, float | None], dict[str, tuple[float, float]], dict[str, float]]:
    """Return scores, their intervals and their spread over runs, each in its range.

    A key that the catalogue does not know is a score of a user's own if its value is a fraction: counts are whole.

    Args:
        content: scores by key, with KEY_ci and KEY_spread; other values are left out.
        holds: whether an interval holds its score.
    """
    scores: dict[str, float | None] = {}
    for key, value in content.items():
        is_own = isinstance(value, float) and not key.endswith((INTERVAL, SPREAD))
        if is_own or metric(key).family != "other":
            scores[key] = read_number(value, key, *find_range(key))
    intervals: dict[str, tuple[float, float]] = {}
    spread: dict[str, float] = {}
    for key, score in scores.items():
        field, ends = f"{key}{INTERVAL}", content.get(f"{key}{INTERVAL}")
        if ends is not None:
            if not isinstance(ends, list) or len(ends) != 2:
                raise DataError(f"expected an interval [low, high], found {describe_value(ends)}", field=field)
            least, greatest = find_range(key)
            low, high = (read_number(end, f"{field}[{at}]", least, greatest) for at, end in enumerate(ends))
            if low is not None and high is not None:
                middle = score if score is not None and holds else None
                read_number(low, f"{field}[0]", least, high if middle is None else middle)
                read_number(high, f"{field}[1]", low if middle is None else middle, greatest)
                intervals[key] = low, high
        deviation = read_number(content.get(f"{key}{SPREAD}"), f"{key}{SPREAD}", 0.0, math.inf)
        spread |= {} if deviation is None else {key: deviation}
    return scores, intervals, spread


def read_number(value: Any, field: str, low: float, high: float) -> float | None:
    """Return a number of a score file, or None for null; a `DataError` for one outside its range."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        message = f"expected a number that a float holds, or null, found {describe_value(value)}"
        raise DataError(message, field=field)
    if not low - SLACK <= value <= high + SLACK:
        ends = [f"at least {low:g}"] * math.isfinite(low) + [f"at most {high:g}"] * math.isfinite(high)
        raise DataError(f"expected {' and '.join(ends)}, found {value:g}", field=field)
    return float(value)


# -- printed results and groups ---------------------------------------------------------------------------------------


def list_printed_lines() -> list[BoardLine]:
    """Return the papers' printed results, by paper, table and row."""
    lines = []
    for paper in map(load_paper, PAPERS):
        for result in paper.results:
            detail = f"{paper.title}, Table {result.table}. {'; '.join(result.notes)}"
            source, place = f"{paper.short}, Table {result.table}", (result.system, result.dataset, paper.split)
            lines.append(BoardLine(*place, "printed", source, detail, result.scores))
    return lines


def list_printed_keys() -> set[str]:
    """Return the scores that the papers' tables have."""
    return {key for paper in map(load_paper, PAPERS) for result in paper.results for key in result.scores}


def group_lines(lines: Sequence[BoardLine]) -> list[BoardGroup]:
    """Return the lines in groups of the same split, data and settings; those of score files first, then by name.

    Settings are the same if no metric that two lines have in common was set differently. Data of printed figures have
    no digest, so that these stand apart.
    """
    parts: dict[tuple[str, str, str, str], list[tuple[dict[str, str], list[BoardLine]]]] = {}
    for line in sorted(lines, key=lambda line: (line.kind, line.system.lower(), line.source)):
        alike = parts.setdefault((line.kind, line.dataset, line.split, line.data), [])
        for settings, members in alike:
            if all(settings.get(name, value) == value for name, value in line.settings.items()):
                settings.update(line.settings)
                members.append(line)
                break
        else:
            alike.append((dict(line.settings), [line]))
    released, groups = read_released_gold(), []
    for (kind, dataset, split, data), alike in parts.items():
        words = [dataset, split or "split unknown", *(["printed"] if kind == "printed" else [])]
        if sum(key[:3] == (kind, dataset, split) for key in parts) > 1:
            words.append(f"data {data or 'unknown'}")
        facts = [f"data {data}"] if data else []
        release = released.get(dataset, {}).get(split)
        if data and release and not release["digest"].startswith(data):
            facts.append(f"not the release's data, which have {release['num_examples']:,} annotations")
        if kind == "printed":
            facts = ["figures that papers print", f"gold {COMPREHENSIVE[find_comprehensive(dataset, split)]}"]
        for settings, members in alike:
            differing = [name for name in settings if len({other.get(name) for other, _ in alike}) > 1]
            set_apart = "; ".join(f"{name} {settings[name]}" for name in differing if settings[name]) or "defaults"
            name = ", ".join([*words, *([set_apart] if len(alike) > 1 else [])])
            groups.append(BoardGroup(name, [*filter(None, [members[0].about]), *facts], members))
    return sorted(groups, key=lambda group: (group.lines[0].kind, group.name.lower()))


def render_board(result: BoardResult, title: str) -> str:
    """Return the page of a board."""
    usual = list_printed_keys() | {key for keys in HEADLINE for key in keys}
    values: dict[str, Any] = {"note": NOTE, "groups": result.groups, "metric": metric, "usual": usual}
    return render("board.html", ("table.js", "board.js"), title=title, number=format_number, **values)
