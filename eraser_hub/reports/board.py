"""The public function `board`."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from eraser_hub.records.arguments import PYTHON, Place
from eraser_hub.records.errors import UsageError

if TYPE_CHECKING:
    from eraser_hub.records.tables import Tables

    from .board_lines import BoardLine

log = logging.getLogger("eraser_hub")


@dataclass(frozen=True, slots=True)
class BoardResult:
    """A board.

    Attributes:
        lines: a system on a dataset each.
        files: what was written.
        notes: what to know of the score files.
    """

    lines: list[BoardLine]
    files: list[Path]
    notes: list[str]

    @property
    def signatures(self) -> list[str]:
        """A line for each system that was scored: how."""
        scored = [line for line in self.lines if line.kind == "scored"]
        return [f"{line.system}, {line.dataset}: {line.detail}" for line in scored]

    def as_json(self) -> dict[str, Any]:
        """Return the board's data, as board.json has it."""
        from .board_page import to_board_json

        return to_board_json(self.lines)

    def table(self, whole: bool = False) -> Tables:
        """Return a table for each group of lines that score files are in; without any, for each group.

        The columns are the scores of the papers' own tables. With ``whole`` all groups have every score.
        """
        from .board_page import make_board_tables

        groups = {line.group or line.dataset for line in self.lines if line.kind == "scored"}
        shown = [line for line in self.lines if whole or not groups or (line.group or line.dataset) in groups]
        return make_board_tables(shown, whole=whole)


def board(
    scores: str | Sequence[str] | Mapping[str, Any] = (),
    *,
    out: Place | None = None,
    title: str = "Results board",
    force: bool = False,
    published: Annotated[bool, PYTHON] = True,
) -> BoardResult:
    """Write a page of every system by every score on every dataset.

    Lines come from score files with a signature (self-reported) and from the papers' tables (printed). No score is
    first by default; lines of one group are scores of the same split of the same data.

    Args:
        scores: Score file with a signature, FILE or SYSTEM@DATASET=FILE; repeat it for several. Draws are averaged.
        out: Folder to write index.html and board.json to; by default the tables are printed alone.
        title: Title of the page.
        force: Replace files that no run wrote.
        published: show the papers' printed results, too.

    Returns:
        The lines and the files; ``table()`` has a table for each dataset.

    Raises:
        DataError: a score file without signature, nothing to show.

    Examples:
        >>> from eraser_hub import board
        >>> [file.name for file in board(out="board").files]
        ['index.html', 'board.json']

        $ eraser-hub board --scores report/ours.scores.json --scores "LIME@movies=scores.json" --out board
        $ eraser-hub board --scores report/ours.scores.json --scores report/theirs.scores.json --format latex
    """
    from eraser_hub.records.files import OutputWriter
    from eraser_hub.records.predictions import find_inputs

    from .board_lines import describe_data, parse_score_argument
    from .board_page import check_board, collect_board_lines, write_board

    arguments = list_score_files(scores)
    writer = OutputWriter(find_inputs(arguments), force)
    if out is not None:
        check_board(Path(out), writer)
    lines = list(map(parse_score_argument, arguments))
    about_data = describe_data(lines)
    lines = collect_board_lines(lines, published=published)
    if not lines:
        raise UsageError("nothing to show: expected score files, found none", argument="scores")
    notes = [*(f"{line.system}: {note}" for line in lines for note in line.notes), *about_data]
    files = [] if out is None else list(write_board(Path(out), lines, title=title, writer=writer))
    for file in files:
        log.info(f"wrote {file}")
    return BoardResult(lines, files, notes)


def list_score_files(scores: str | Sequence[str] | Mapping[str, Any]) -> list[str]:
    """Return the files of one or several arguments, ``NAME=FILE`` for each file of a mapping.

    >>> list_score_files({"LIME@movies": ["1.json", "2.json"]}), list_score_files("a.json")
    (['LIME@movies=1.json', 'LIME@movies=2.json'], ['a.json'])
    """
    if isinstance(scores, Mapping):
        return [f"{name}={file}" for name, files in scores.items() for file in list_score_files(files)]
    return [os.fspath(file) for file in ([scores] if isinstance(scores, str | os.PathLike) else scores)]
