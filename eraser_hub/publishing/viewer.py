"""The limits of the Hub's dataset viewer as findings about a built folder, and a preview of the viewer.

The viewer serves Parquet unchanged. It shows up to 100 first rows within a budget of bytes, computes statistics of
columns of some types, and searches text for words of the letters a to z.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import orjson
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from eraser_hub.conversion.checks import Finding, Report, SplitReport
from eraser_hub.records.built import BuiltDataset, open_built, read_rows
from eraser_hub.records.errors import DataError, get_first_line, show

pc: Any = pyarrow.compute  # its functions are made when it is imported, unseen by type checkers

LARGEST_READ = 300_000_000
LARGEST_SPLIT = 5_000_000_000
# first rows: at most so many, at least so many, in so many bytes of JSON; longer cells than the last may be cut
FIRST_ROWS, FEWEST_ROWS, FIRST_BYTES, CELL_BYTES = 100, 10, 200_000, 100
BINS = 10
MOST_STRING_LABELS, STRING_LABEL_SHARE = 1000, 0.2
# a string of so many digits alone looks like a year, or a date without separators
DATE_DIGITS = (4, 8)
KINDS = (
    (pa.types.is_boolean, "bool"),
    (pa.types.is_integer, "int"),
    (pa.types.is_floating, "float"),
    (lambda kind: pa.types.is_list(kind) or pa.types.is_large_list(kind), "list length"),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), "string length"),
)
CELL, ROWS_PRINTED = 60, 3
BATCH_ROWS = 1000
BARS = "▁▂▃▄▅▆▇█"
BIN_BUG = (
    "a fault of the viewer's own: it cannot make bins where the greatest value is the least plus one, and leaves out "
    "the statistics of the whole split; the values are the release's and stay"
)


@dataclass(slots=True)
class Column:
    """The viewer's statistics of one column: values, lengths of lists, or lengths of long strings."""

    name: str
    kind: str
    values: Counter[float] = field(default_factory=Counter)
    missing: int = 0
    distinct: set[str] | None = None
    digits_alone: bool = True

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Return the least and the greatest value."""
        return (min(self.values), max(self.values)) if self.values else None


@dataclass(slots=True)
class ViewerReport:
    """The viewer's limits, split by split, and a preview.

    Attributes:
        report: Violations make the viewer (or ``load_dataset``) fail; quirks are errors of the viewer on valid data;
            notes are data that it leaves out.
        pictures: First rows, a histogram per numeric column and the counts of each ClassLabel, as lines of text.
    """

    report: Report
    pictures: list[str]

    @property
    def problems(self) -> list[DataError]:
        """Return the violations; empty if the viewer shows everything."""
        return self.report.errors

    @property
    def warnings(self) -> list[str]:
        """Return the quirks and notes."""
        return [
            f"{finding.level}: {split.config}/{split.split}: {finding.check}: {finding.why}"
            for split in self.report.splits
            for finding in split.findings
            if finding.level != "violation"
        ]

    @property
    def without_statistics(self) -> list[str]:
        """Return the splits without histograms."""
        return [
            f"{split.config}/{split.split}"
            for split in self.report.splits
            if any(finding.check == "statistics" for finding in split.findings)
        ]

    @property
    def summary(self) -> list[str]:
        """Return a line for each thing that the viewer shows otherwise than one expects, over all splits.

        They are columns that are null in every row, ids that look like dates, and splits without histograms.
        """
        places: dict[tuple[str, str], dict[str, list[str]]] = {}
        splits = Counter(split.config for split in self.report.splits)
        for split in self.report.splits:
            for finding in split.findings:
                columns = finding.examples if finding.check in ("empty columns", "dates") else ()
                for column in map(str, columns):
                    of_column = places.setdefault((finding.check, column), {})
                    of_column.setdefault(split.config, []).append(f"{split.config}/{split.split}")
        words = {"empty columns": "null in every row", "dates": "numbers that the viewer takes for dates"}
        lines = []
        for (check, column), of_column in places.items():
            where = [
                name
                for config, named in of_column.items()
                for name in ([config] if len(named) == splits[config] else named)
            ]
            lines.append(f"{column}: {words[check]} of {', '.join(where)}")
        without = self.without_statistics
        return [*lines, *([f"without histograms in a browser: {', '.join(without)}"] if without else [])]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report."""
        yield from self.pictures
        yield from (f"viewer: {line}" for line in self.warnings)
        if self.without_statistics:
            yield f"viewer: without histograms in a browser: {', '.join(self.without_statistics)}"
        yield from (f"viewer: violation: {error}" for error in self.problems)
        if not self.problems:
            yield "viewer: no violation"


def make_viewer_report(folder: Path, configs: Sequence[str] | None = None) -> ViewerReport:
    """Report the limits of the viewer on a built folder.

    Args:
        folder: A built dataset folder.
        configs: The configurations; all by default.

    Raises:
        DataError: The card or a file cannot be read, or an unknown configuration.
    """
    built, folder = open_built(Path(folder)), Path(folder)
    report = Report(f"{folder.resolve().name} in the viewer", folder)
    lines: list[str] = []
    for config in built.chosen(configs):
        for split, paths in built.splits(config).items():
            try:
                split_report, preview = _check_split(built, config, split, paths)
            except (pa.ArrowException, OSError) as error:
                message = f"cannot be read as Parquet ({show(str(error))})"
                raise DataError(message, rule="syntax", file=paths[0]) from None
            report.splits.append(split_report)
            lines += preview
    if whole := list(_find_in_folder(folder)):
        report.splits.append(SplitReport("all", "all", sum(split.rows for split in report.splits), None, whole))
    return ViewerReport(report, lines)


# -- one split --------------------------------------------------------------------------------------------------------


def _check_split(built: BuiltDataset, config: str, split: str, paths: Sequence[Path]) -> tuple[SplitReport, list[str]]:
    """Return the findings of a split and its preview."""
    labels, schema = built.class_labels(config), pq.read_schema(paths[0])
    columns = []
    for name in schema:
        kind = "label" if name.name in labels else next((kind for holds, kind in KINDS if holds(name.type)), None)
        if kind is not None:  # structs have no statistics
            columns.append(Column(name.name, kind, distinct=set() if kind == "string length" else None))
    rows, findings = 0, list(_find_in_files(paths))
    first: list[dict[str, Any]] = []
    for batch in read_rows(paths, rows=BATCH_ROWS):
        if len(first) < FIRST_ROWS:
            first += batch.slice(0, FIRST_ROWS - len(first)).to_pylist()
        rows += batch.num_rows
        for column in columns:
            _count_values(column, batch.column(column.name).combine_chunks())
    for column in columns:
        few = MOST_STRING_LABELS + 1 if column.distinct is None else len(column.distinct)
        if few <= BINS or (few <= MOST_STRING_LABELS and few <= STRING_LABEL_SHARE * rows):
            column.kind = "string label"  # counted by value instead of length
    shown_rows, cut_rows = count_fitting_rows(first, _count_header_bytes(built, config, split, paths))
    findings += _find_in_statistics(columns, schema)
    if empty := [column.name for column in columns if rows and column.missing == rows]:
        findings.append(_make_note("empty columns", f"null in all rows: {', '.join(empty)}", *empty))
    if shown_rows < len(first):
        why = f"{shown_rows} fit; the budget is {FIRST_BYTES // 1000} kB"
        findings.append(_make_note("first rows", why, count=len(first) - shown_rows))
    if cut_rows:
        why = f"{shown_rows} rows are more than that: cells of more than {CELL_BYTES} bytes are cut, from the last row"
        findings.append(_make_note("cut cells", f"{why} up", count=cut_rows))
    findings += _find_in_search(first)
    lines = [f"{config} / {split}: {rows:,} rows"]
    lines.append(f"  first rows: {shown_rows} shown, {cut_rows} of them with cut cells")
    for number, row in enumerate(first[: min(shown_rows, ROWS_PRINTED)]):
        cells = (f"{name}={_format_cell(_get_label(value, labels.get(name)))}" for name, value in row.items())
        lines.append(f"  [{number}] {' · '.join(cells)}")
    lines += [f"  {_draw_column(column, labels)}" for column in columns]
    return SplitReport(config, split, rows, None, findings), lines


def count_fitting_rows(rows: Sequence[Mapping[str, Any]], header_bytes: int) -> tuple[int, int]:
    """Return how many first rows the viewer shows, and how many of them with cut cells.

    The viewer adds rows, as compact JSON, while they and the header are below the budget. It always shows the first
    ten: if they are too large, it cuts the cells of the last one, then of the one before it, and so on.

    Args:
        rows: The first rows, at most `FIRST_ROWS`.
        header_bytes: Size of the JSON around them.
    """
    budget, total = FIRST_BYTES - header_bytes, 2
    for number, row in enumerate(rows):
        total += len(_to_json(number, row)) + 1
        if total >= budget and number >= FEWEST_ROWS:
            return number, 0
        if total >= budget and number == min(len(rows), FEWEST_ROWS) - 1:
            return number + 1, _count_cut_rows(rows[: number + 1], total - 1, budget)
    return len(rows), 0


def _count_cut_rows(rows: Sequence[Mapping[str, Any]], total: int, budget: int) -> int:
    """Return how many of the last rows are cut until all are below the budget."""
    cut = 0
    for number in reversed(range(len(rows))):
        if total < budget:
            break
        cells, names = dict(rows[number]), []
        for name, cell in rows[number].items():
            text = orjson.dumps(cell)
            if len(text) > CELL_BYTES:
                cells[name] = text[:CELL_BYTES].decode("utf-8", errors="ignore")
                names.append(name)
        total += len(_to_json(number, cells, names)) - len(_to_json(number, rows[number]))
        cut += bool(names)
    return cut


def _to_json(number: int, row: Mapping[str, Any], cut: Sequence[str] = ()) -> bytes:
    return orjson.dumps({"row_idx": number, "row": dict(row), "truncated_cells": list(cut)})


def _count_header_bytes(built: BuiltDataset, config: str, split: str, paths: Sequence[Path]) -> int:
    """Return the size of the viewer's answer without its rows: the columns with the types of `datasets`."""
    from datasets import Features

    declared = built.info(config).get("features")
    try:
        features = (
            Features._from_yaml_list(declared) if declared else Features.from_arrow_schema(pq.read_schema(paths[0]))
        )
    except Exception as error:  # datasets raises what it runs into, and could not load the split either
        message = f"datasets cannot read the features of {config}: {get_first_line(error)}"
        raise DataError(message, rule="type", file=built.folder / "README.md", field="dataset_info") from None
    kinds = cast("dict[str, Any]", features.to_dict())
    described = [{"feature_idx": at, "name": name, "type": kind} for at, (name, kind) in enumerate(kinds.items())]
    header = {"dataset": f"org/{built.place.dataset}", "config": config, "split": split, "features": described}
    return len(orjson.dumps(header | {"rows": [], "truncated": False}))


def _count_values(column: Column, values: pa.Array) -> None:
    if column.distinct is not None:
        if len(column.distinct) <= MOST_STRING_LABELS:
            column.distinct.update(value for value in pc.unique(values).to_pylist() if value is not None)
        dated = pc.match_substring_regex(values.drop_null(), rf"^[0-9]{{{DATE_DIGITS[0]},{DATE_DIGITS[1]}}}$")
        column.digits_alone = column.digits_alone and pc.all(dated).as_py() is not False
        values = pc.utf8_length(values)
    elif column.kind == "list length":
        values = pc.list_value_length(values)
    column.missing += values.null_count
    for entry in pc.value_counts(values.drop_null()).to_pylist():
        column.values[entry["values"]] += entry["counts"]


# -- the rules --------------------------------------------------------------------------------------------------------


def _make_note(check: str, why: str, *examples: str, count: int | None = None) -> Finding:
    return Finding(check, "note", len(examples) if count is None else count, examples, why=why)


def _find_in_folder(folder: Path) -> Iterator[Finding]:
    script = folder / f"{folder.resolve().name}.py"
    if script.exists():
        why = f"{script.name}: load_dataset refuses a folder with a loading script"
        yield Finding("script", "violation", 1, (why,))
    defaults = [entry.get("config_name") for entry in open_built(folder).card["configs"] if entry.get("default")]
    if len(defaults) != 1:
        yield Finding("default config", "violation", 1, (f"expected one, found {len(defaults)}",))


def _find_in_files(paths: Sequence[Path]) -> Iterator[Finding]:
    large, unindexed = [], 0
    for path in paths:
        metadata = pq.read_metadata(path)
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            indexed = all(group.column(at).has_offset_index for at in range(group.num_columns))
            unindexed += not indexed
            if group.total_byte_size > LARGEST_READ and not indexed:
                large.append(f"{path.name}, row group {number}: {group.total_byte_size:,} bytes and no page index")
    if large:
        yield Finding("row groups", "violation", len(large), tuple(large[:5]), why="the viewer reads at most 300 MB")
    elif unindexed:
        yield _make_note("page index", "row groups without one are read whole", count=unindexed)
    size = sum(path.stat().st_size for path in paths)
    if size > LARGEST_SPLIT:
        yield _make_note("size", f"{size:,} bytes: search and statistics end at 5 GB", count=1)


def _find_in_statistics(columns: Sequence[Column], schema: pa.Schema) -> Iterator[Finding]:
    for column in columns:
        bounds = column.bounds
        if column.kind in ("int", "list length", "string length") and bounds and bounds[1] == bounds[0] + 1:
            # no violation: the values are the data's own, and none is changed for the viewer's sake
            example = f"{column.name}: {column.kind} from {bounds[0]:g} to {bounds[1]:g}"
            yield Finding("statistics", "quirk", 1, (example,), why=f"{example}; {BIN_BUG}")
        if column.digits_alone and column.kind == "string length":
            numbers = f"every value is a number of {DATE_DIGITS[0]} to {DATE_DIGITS[1]} digits"
            why = f"{column.name}: {numbers}, which the viewer takes for a date"
            yield Finding("dates", "quirk", 1, (column.name,), why=why)
    counted = {column.name for column in columns}
    without = [name for name in schema.names if name not in counted]
    if without:
        yield _make_note("no statistics", "structs: " + ", ".join(without), *without)


def _find_in_search(rows: Sequence[dict[str, Any]]) -> Iterator[Finding]:
    """Yield a finding if text holds other letters than a to z: the search splits there and finds no other script."""
    text = " ".join(piece for row in rows for piece in _iterate_strings(row))
    letters = sum(character.isalpha() for character in text)
    latin = len(re.findall(r"[A-Za-z]", text))
    if letters and latin < letters / 2:
        why = f"{latin / letters:.0%} of the letters in the first rows are a to z, which is all that the search knows"
        yield _make_note("search", why, count=len(rows))


def _iterate_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _iterate_strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _iterate_strings(part)


# -- the picture ------------------------------------------------------------------------------------------------------


def _get_label(value: Any, names: Sequence[str] | None) -> Any:
    return names[value] if names and isinstance(value, int) and 0 <= value < len(names) else value


def _format_cell(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= CELL else f"{text[: CELL - 1]}…"


def _draw_column(column: Column, labels: Mapping[str, Sequence[str]]) -> str:
    missing = f", {column.missing:,} null" if column.missing else ""
    if not column.values:
        return f"{column.name}: empty{missing}"
    if column.kind in ("label", "bool"):
        names = labels[column.name] if column.kind == "label" else ("false", "true")
        named = [
            f"{names[int(value)] if 0 <= value < len(names) else 'no label'} {column.values[value]:,}"
            for value in (sorted(column.values) if column.kind == "label" else (1, 0))
        ]
        return f"{column.name}: {', '.join(named)}{missing}"
    if column.kind == "string label":
        return f"{column.name}: {len(column.distinct or ())} values{missing}"
    low, high = column.bounds or (0, 0)
    counts = compute_histogram(column.values, whole=column.kind != "float")
    most = max(counts)
    bars = "".join(" " if not count else BARS[min(7, count * 8 // (most + 1))] for count in counts)
    return f"{column.name} ({column.kind}): {low:g} {bars} {high:g}{missing}"


def compute_histogram(values: Counter[float], whole: bool) -> list[int]:
    """Return counts in up to ten bins of equal width; bins of whole numbers have whole widths, as in the viewer."""
    low, high = min(values), max(values)
    width = max(1, math.ceil((high - low + 1) / BINS)) if whole else (high - low) / BINS or 1.0
    bins = math.ceil((high - low + 1) / width) if whole else BINS if high > low else 1
    counts = [0] * bins
    for value, count in values.items():
        counts[min(int((value - low) / width), bins - 1)] += count
    return counts
