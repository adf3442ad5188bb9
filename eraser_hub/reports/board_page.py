"""The results board: every system by every metric by every dataset; a reader's click sorts it, no metric does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from eraser_hub.papers import PAPERS, load_paper
from eraser_hub.records.files import GENERATOR, OutputWriter, shorten_digest
from eraser_hub.records.tables import Cell, Table, Tables
from eraser_hub.scoring.result import describe_gold

from .board_groups import group_lines
from .board_lines import BoardLine, average_draws, make_people_lines
from .catalogue import FAMILIES, format_number, format_small_print, is_precision_or_recall, metric
from .page import render, to_json_text, write_files
from .report_tables import get_sort_key

NOTE = (
    "The papers call theirs a results board, not a leaderboard: no single number says which system explains best, and "
    "no metric is privileged here. Lines stand in the order of their names until you sort by a column. "
    "Lines of one group are scores of the same split of the same data; printed figures are a group of their own."
)


BOARD_SCRIPTS = ("report/text.js", "board.js")


def read_published_lines() -> list[BoardLine]:
    """Return the papers' printed results, by paper, table and row."""
    return [
        BoardLine(
            system=result.system,
            dataset=result.dataset,
            split=printed.split,
            kind="published",
            source=f"{printed.short}, Table {result.table}",
            detail=f"{printed.title}, Table {result.table}. {'; '.join(result.notes)}",
            scores=result.scores,
        )
        for printed in map(load_paper, PAPERS)
        for result in printed.results
    ]


def collect_board_lines(scored: Sequence[BoardLine] = (), *, published: bool = True) -> list[BoardLine]:
    """Return all lines of the board in a neutral order: by dataset, system and source, sorted by name.

    Args:
        scored: lines read from score files; draws of one system are averaged.
        published: also the papers' printed results.
    """
    ours = [*average_draws(scored), *make_people_lines(scored)]
    lines = group_lines([*ours, *(read_published_lines() if published else ())])
    return sorted(lines, key=lambda e: (e.group.lower(), e.system.lower(), e.kind, e.source, e.split))


def select_metric_columns(lines: Sequence[BoardLine]) -> list[str]:
    """Return the metric columns: every key that has a number, by family, then by label."""
    keys = {key for line in lines for key, value in line.scores.items() if value is not None}
    # a count (instances, pairs) is no score
    return sorted((key for key in keys if metric(key).family != "other"), key=get_sort_key)


def to_board_json(lines: Sequence[BoardLine]) -> dict[str, Any]:
    """Return the board's data, from which the page is drawn."""
    names = ("system", "dataset", "split", "kind", "status", "source", "data", "instances", "sample", "predictions")
    return {
        "generator": GENERATOR,
        "note": NOTE,
        "columns": [
            {**asdict(metric(key)), "part": is_precision_or_recall(key)} for key in select_metric_columns(lines)
        ],
        "rows": [
            {
                **{name: getattr(line, name) for name in names},
                "group": line.group or line.dataset,
                "detail": " · ".join(
                    [
                        line.detail,
                        *(f"predictions:{shorten_digest(one)}" for one in line.predictions),
                        *([describe_gold(line.gold)] if line.gold else ()),
                        *filter(None, [line.apart, line.sample]),
                    ]
                ),
                "scores": {key: value for key, value in line.scores.items() if value is not None},
                "intervals": {key: list(pair) for key, pair in line.intervals.items()},
                "spread": dict(line.spread),
                "chance": dict(line.chance),
            }
            for line in lines
        ],
    }


def make_board_tables(lines: Sequence[BoardLine], whole: bool = False) -> Tables:
    """Return a table for each dataset with a line for each system, as the papers print them.

    Args:
        lines: as `collect_board_lines` gives them.
        whole: every score, columns named by key; by default the scores that the papers' own tables have, by label.
    """
    printed = {key for line in read_published_lines() for key in line.scores}
    tables = Tables("board")
    for dataset in dict.fromkeys(line.group or line.dataset for line in lines):
        dataset_lines = [line for line in lines if (line.group or line.dataset) == dataset]
        keys = select_metric_columns(dataset_lines)
        shown = keys if whole else [key for key in keys if key in printed] or keys
        names = {key: key if whole else metric(key).label for key in shown}
        left = {
            "split": [line.split for line in dataset_lines],
            "n": [str(line.instances or "") for line in dataset_lines],
            "data": [shorten_digest(line.data) if line.data else "" for line in dataset_lines],
            "source": [line.source for line in dataset_lines],
            "status": [line.status for line in dataset_lines],
        }
        # what is the same in all lines stands in the title
        words = {"n": "n {}".format, "data": "data {}".format}
        common = [
            words.get(name, str)(values[0])
            for name, values in left.items()
            if values[0] and len(set(values)) == 1 and not whole
        ]
        varying = {name: values for name, values in left.items() if len(set(values)) > 1 or whole}
        title = ", ".join([dataset, *common])
        table = Table(dataset, title, ("system", *varying), tuple(names.values()))
        for place, line in enumerate(dataset_lines):
            ends = {key: line.intervals.get(key, (None, None)) for key in shown}
            cells = {
                names[key]: Cell(line.scores.get(key), digits=3, low=low, high=high)
                for key, (low, high) in ends.items()
            }
            table.add(line.system, *(values[place] for values in varying.values()), **cells)
            own = {names[key]: Cell(line.chance[key], digits=3) for key in shown if key in line.chance}
            if own and not whole:
                table.add(f"{line.system}, chance", *("" for _ in varying), **own)
        table.notes += dict.fromkeys(
            words
            for line in dataset_lines
            for words in (describe_gold(line.gold) if line.gold else "", line.apart, line.sample)
            if words
        )
        tables.tables.append(table)
    return tables


BOARD_FILES = ("index.html", "board.json")


def check_board(out: Path, writer: OutputWriter) -> None:
    """Check the places of a board's files, see `OutputWriter.check`."""
    for name in BOARD_FILES:
        writer.check(out / name)


def write_board(
    out: Path, lines: Sequence[BoardLine], *, title: str = "Results board", writer: OutputWriter | None = None
) -> tuple[Path, ...]:
    """Write the files of `make_board_files` into a folder; all of them are new, or all as they were.

    Returns:
        The two files.
    """
    contents = {out / name: content for name, content in make_board_files(lines, title).items()}
    write_files(contents, writer or OutputWriter())
    return tuple(contents)


def make_board_files(lines: Sequence[BoardLine], title: str) -> dict[str, Iterable[str]]:
    """Return ``index.html``, self-contained, and ``board.json``, the same data.

    The page opens on the group with most of the lines scored here, or else with most lines. Its scores stand in the
    order of how many lines have them.

    Args:
        lines: as `collect_board_lines` gives them.
        title: the board's title.
    """
    data = to_board_json(lines)
    counts = dict(sorted(Counter(line.group or line.dataset for line in lines).items()))
    own = Counter(line.group or line.dataset for line in lines if line.kind == "scored")
    page = render(
        "board.html",
        BOARD_SCRIPTS,
        title=title,
        note=NOTE,
        columns=data["columns"],
        families=[family for family in FAMILIES if any(c["family"] == family for c in data["columns"])],
        groups=counts,
        first=max(counts, key=lambda name: (own[name], counts[name]), default=""),
        rows=data["rows"],
        number=format_number,
        small_print=format_small_print,
    )
    return {"index.html": [page], "board.json": to_json_text(data, indent=1)}
