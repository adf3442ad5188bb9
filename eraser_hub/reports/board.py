"""The public function `board`: a page of score files and of the papers' printed results."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from eraser_hub.records.arguments import PYTHON, Place
from eraser_hub.records.errors import UsageError, show

if TYPE_CHECKING:
    from .board_page import BoardResult

log = logging.getLogger("eraser_hub")


def board(
    scores: str | Sequence[str] = (),
    *,
    out: Place | None = None,
    title: str = "Results board",
    force: bool = False,
    published: Annotated[bool, PYTHON] = True,
) -> BoardResult:
    """Write a page of scored and printed results, grouped by what is comparable.

    A table holds scores of the same annotations with the same settings. No score is first by default.

    Args:
        scores: Score file with a signature, FILE or SYSTEM@DATASET=FILE, or a folder with files SYSTEM.scores.json;
            repeat it for several.
        out: Folder to write index.html and board.json to; by default the tables are printed alone.
        title: Title of the page.
        force: Replace files that no run wrote.
        published: show the papers' printed results, too.

    Returns:
        The groups and the files; ``table()`` has a table for each group.

    Raises:
        DataError: a score file without signature or with a score outside its range; nothing to show.

    Examples:
        >>> from eraser_hub import board
        >>> [file.name for file in board(out="board").files]
        ['index.html', 'board.json']

        $ eraser-hub board --scores report --scores "LIME@movies=scores.json" --out board
        $ eraser-hub board --scores report/ours.scores.json --scores report/theirs.scores.json --format latex
    """
    from eraser_hub.records.files import OutputWriter, to_json_bytes

    from .board_page import BoardResult, group_lines, list_arguments, list_printed_lines, read_score_file, render_board
    from .page import write_files

    named = list_arguments(scores)
    paths = [Path(out) / name for name in ("index.html", "board.json")] if out is not None else []
    writer = OutputWriter(tuple(path for _, path in named), force)
    for path in paths:
        writer.check(path)
    lines = []
    for name, path in named:
        system, _, dataset = name.rpartition("@") if "@" in name else (name, "", "")
        lines.append(read_score_file(path, system=system, dataset=dataset))
    groups = group_lines([*lines, *(list_printed_lines() if published else ())])
    if not groups:
        raise UsageError("nothing to show: expected score files, found none", argument="scores")
    unknown = [line.system for line in lines if not line.data]
    notes = [f"{len(unknown)} score files have no digest of their data: {show(unknown[:5])}"] if unknown else []
    if repeated := [path.name for (_, path), count in named.items() if count > 1]:
        notes.append(f"given twice, shown once: {len(repeated)} of {len(named):,} score files, {show(repeated[:5])}")
    result = BoardResult(groups, paths, notes)
    if paths:
        contents = [render_board(result, title)], to_json_bytes(result.as_json())
        write_files(dict(zip(paths, contents, strict=True)), writer)
    for path in paths:
        log.info(f"wrote {path}")
    return result
