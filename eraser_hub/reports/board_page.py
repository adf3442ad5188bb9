"""The results board: score files and the papers' printed results on one page, grouped by what is comparable.

Score files may come from anywhere: they are strict JSON with a signature, names that a page can show, and scores in the
range that their metric declares.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
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

from .catalogue import FAMILIES, format_number, metric
from .page import render
from .score_ranges import check_scores

log = logging.getLogger("eraser_hub")
NOTE = (
    "The papers call theirs a results board, not a leaderboard: no single number says which system explains best. "
    "Systems stand in the order of their names until you sort by a column. A table holds scores of the same texts "
    "with the same settings; numbers of different tables are not comparable, and faithfulness compares methods on one "
    "model."
)
FILES = ("index.html", "board.json")
SUFFIX = "scores.json"  # of the score files in a folder
MAX_FILES, MAX_SCORES, MAX_SIGNATURE = 5_000, 1_000, 10_000
# parts of a signature that are facts of the data, or how intervals were drawn; all others are settings of the scores
FACTS = {"data", "config", "split", "n", "version", "answered", "by", "marked_rows", "unmarked_rows"}
FACTS |= {"level", "resamples", "seed", "cluster", "clusters"}
OPERATOR = re.compile(r"\|(erase:[^|]+)")  # how tokens were erased, in the signature of the run


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
        gold: of the split, as of `Scores.gold`.
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
    gold: Mapping[str, Any] = field(default_factory=dict)

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
        families = {family: at for at, family in enumerate(FAMILIES)}
        return sorted(keys, key=lambda key: (families.get(metric(key).family, 9), metric(key).label.lower()))


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
        mine = [group for group in self.groups if any(line.kind == "measured" for line in group.lines)]
        printed, tables = list_printed_keys(), Tables("board")
        for group in self.groups if whole or not mine else mine:
            shown = [key for key in group.keys if whole or key in printed] or group.keys
            heads = {key: key if whole else metric(key).label for key in shown}
            left = ("system", "source") if whole or any(line.kind == "printed" for line in group.lines) else ("system",)
            table = Table(group.name, group.name, left, tuple(heads.values()), notes=list(group.facts))
            for line in group.lines:
                ends = {key: line.intervals.get(key, (None, None)) for key in shown}
                cells = {
                    key: Cell(line.scores.get(key), digits=3, low=low, high=high) for key, (low, high) in ends.items()
                }
                table.add(*(line.system, line.source)[: len(left)], **{heads[key]: cell for key, cell in cells.items()})
                chance = {heads[key]: Cell(line.chance[key], digits=3) for key in shown if key in line.chance}
                if chance and not whole:
                    table.add(*(f"{line.system}, chance", "")[: len(left)], **chance)
            tables.tables.append(table)
        return tables


def list_arguments(scores: str | Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Yield ("" or the name that is given, score file); links in a folder are not followed."""
    for argument in map(os.fspath, [scores] if isinstance(scores, str | os.PathLike) else scores):
        name, equals, path = argument.partition("=")
        if equals and "://" not in name and not os.path.exists(argument):  # an address may hold a =
            yield name, Path(path)
        elif not os.path.isdir(argument):
            yield "", Path(argument)
        else:
            found = [Path(folder, file) for folder, _, files in os.walk(argument) for file in files]
            found = sorted(file for file in found if file.name.endswith(SUFFIX))
            files = [file for file in found if not file.is_symlink()]
            if len(files) < len(found):
                log.warning(f"{argument}: {len(found) - len(files):,} links to score files are not followed")
            if not 1 <= len(files) <= MAX_FILES:
                message = f"expected 1 to {MAX_FILES:,} files that end in {SUFFIX}, found {len(files):,}"
                raise DataError(message, file=argument)
            yield from (("", file) for file in files)


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
        return _make_line(content, path.name, system, dataset)
    except DataError as error:
        raise error.at(file=path) from None


class _Gold(msgspec.Struct):
    marked_rows: int
    unmarked_rows: int
    density: float
    split: str | None = None
    comprehensive: bool | None = None


class _ScoreFile(msgspec.Struct):
    signature: list[str] | str | None = None
    run: str = ""
    system: str = ""
    dataset: str = ""
    config: str = ""
    split: str = ""
    data_digest: str = ""
    gold: _Gold | None = None
    chance: dict[str, float | None] = {}


def _make_line(content: Mapping[str, Any], file_name: str, system: str, dataset: str) -> BoardLine:
    """Return the line of a score file's content."""
    try:
        file = msgspec.convert({name: value for name, value in content.items() if value is not None}, _ScoreFile)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$.")
        raise DataError(message.lower().replace(", got", ", found"), field=path.rstrip("`")) from None
    listed = [file.signature] if isinstance(file.signature, str) else file.signature or []
    signatures = [text for text in dict.fromkeys(listed) if text.strip() and text != file.run]
    if not signatures:
        words = "expected a signature, found none: a number without the settings that made it is not shown"
        raise DataError(f"{words}; score the predictions with `eraser-hub score`", field="signature")
    settings: dict[str, str] = {}
    stated: dict[str, str] = {}
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
    scores, intervals, spread = _read_scores(content, signatures)
    if not 1 <= sum(value is not None for value in scores.values()) <= MAX_SCORES:
        raise DataError(f"expected 1 to {MAX_SCORES:,} scores, found {len(scores):,}")
    chance, _, _ = _read_scores(file.chance, (), "chance.")
    count = stated.get("n", "")
    return BoardLine(
        **names,
        source=file_name,
        detail=" · ".join(filter(None, [*signatures, file.run])),
        scores=scores,
        intervals=intervals,
        spread=spread,
        chance={key: value for key, value in chance.items() if value is not None and key in scores},
        settings=settings,
        annotations=int(count) if count.isdecimal() and len(count) < 12 else None,
        gold=msgspec.structs.asdict(file.gold) if file.gold else {},
    )


def _read_scores(
    content: Mapping[str, Any], signatures: Sequence[str], place: str = ""
) -> tuple[dict[str, float | None], dict[str, tuple[float, float]], dict[str, float]]:
    """Return scores, their intervals and their spread over runs, each in its range.

    A key that the catalogue does not know is a score of a user's own if its value is a fraction: counts are whole.

    Args:
        content: scores by key, with KEY_ci and KEY_spread; other values are left out.
        signatures: they state the level of the intervals.
        place: what stands before the fields in errors.
    """

    def read(value: Any, key: str) -> float | None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is None or (is_number and abs(value) <= sys.float_info.max):
            return None if value is None else float(value)
        raise DataError(f"expected a number that a float holds, or null, found {describe_value(value)}", field=key)

    scores: dict[str, float | None] = {}
    intervals: dict[str, tuple[float, float]] = {}
    spread: dict[str, float] = {}
    try:
        for key, value in content.items():
            name = key.removesuffix(INTERVAL).removesuffix(SPREAD)
            known = metric(name).family != "other"
            if key == name and (known or isinstance(value, float)):
                scores[key] = read(value, key)
            elif known and key.endswith(INTERVAL) and name in content:
                if not isinstance(value, list) or len(value) != 2:
                    raise DataError(f"expected an interval [low, high], found {describe_value(value)}", field=key)
                low, high = (read(end, key) for end in value)
                if low is not None and high is not None:
                    intervals[name] = (low, high)
            elif known and key.endswith(SPREAD) and (number := read(value, key)) is not None:
                spread[name] = number
        check_scores(scores, intervals, spread, signatures)
    except DataError as error:
        error.field = f"{place}{error.field}"
        raise
    return scores, intervals, spread


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
    found: list[tuple[tuple[str, str, str, str], dict[str, str], list[BoardLine]]] = []
    for line in sorted(lines, key=lambda line: (line.kind, line.system.lower(), line.source)):
        key = (line.kind, line.dataset, line.split, line.data)
        for other, settings, members in found:
            if other == key and all(settings.get(name, value) == value for name, value in line.settings.items()):
                settings.update(line.settings)
                members.append(line)
                break
        else:
            found.append((key, dict(line.settings), [line]))
    released, groups = read_released_gold(), []
    for key, settings, members in found:
        kind, dataset, split, data = key
        words, first = [dataset, split or "split unknown"], members[0]
        if kind == "printed":
            words.append("printed")
            facts = ["figures that papers print", f"gold {COMPREHENSIVE[find_comprehensive(dataset, split)]}"]
        else:
            facts = [describe_gold(first.gold)] if first.gold else []
            facts = facts or ([f"{first.annotations:,} annotations"] if first.annotations else [])
            facts += [f"data {data}"] if data else []
            release = released.get(dataset, {}).get(split)
            if data and release and not release["digest"].startswith(data):
                facts.append(f"not the release's data, which have {release['num_examples']:,} annotations")
        if len({other[3] for other, _, _ in found if other[:3] == key[:3]}) > 1:
            words.append(f"data {data or 'unknown'}")
        alike = [other for same, other, _ in found if same == key]
        differing = [name for name in settings if len({other.get(name) for other in alike}) > 1]
        if len(alike) > 1:
            words.append("; ".join(f"{name} {settings[name]}" for name in differing if settings[name]) or "defaults")
        groups.append(BoardGroup(", ".join(words), facts, members))
    return sorted(groups, key=lambda group: (group.lines[0].kind, group.name.lower()))


def render_board(result: BoardResult, title: str) -> str:
    """Return the page of a board."""
    usual = list_printed_keys() | {key for keys in HEADLINE for key in keys}
    columns = {group.name: [metric(key) for key in group.keys] for group in result.groups}
    values: dict[str, Any] = {"note": NOTE, "groups": result.groups, "columns": columns, "usual": usual}
    return render("board.html", ("table.js", "board.js"), title=title, number=format_number, **values)
