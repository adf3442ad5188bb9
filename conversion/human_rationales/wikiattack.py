"""Rationales of personal attacks in Wikipedia comments: a CSV of masks, and separate files of comments.

The release of the rationales (Carton, Mei and Resnick, 2018) is ``wiki_attack_{dev,test}_rationale.csv`` with the
columns ``platform_comment_id,rationale``; a rationale is a JSON list of 0 and 1 in a string, one a token. The comments
are in ``attack_annotated_comments.tsv`` (Wulczyn, Thain and Dixon, 2017: ``rev_id``, ``comment``, ..), and the
judgements of ten workers per comment in ``attack_annotations.tsv`` (``rev_id``, ``attack``, ..).

The masks count the tokens of :func:`tokenize_comment`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from eraser_hub.conversion.readers import read_csv_records, read_utf8_lines
from eraser_hub.records.errors import DataError, show

RATIONALE_COLUMNS = ("platform_comment_id", "rationale")
COMMENTS_FILE = "attack_annotated_comments.tsv"
ANNOTATIONS_FILE = "attack_annotations.tsv"
COMMENTS_URL = "https://ndownloader.figshare.com/files/7554634"
ANNOTATIONS_URL = "https://ndownloader.figshare.com/files/7554637"
_ID_COLUMNS = ("rev_id", "platform_comment_id", "comment_id", "id")
_TEXT_COLUMNS = ("comment", "text")
_TOKEN = re.compile(r"\w+|[^\w\s]+")


@dataclass(frozen=True, slots=True)
class AttackRationale:
    """One record of the rationale CSV; ``text`` is its line as released, ``line`` the 1-based number of that line."""

    comment_id: str
    mask: tuple[bool, ...]
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment with line feeds and tabs restored, and the 1-based line of the file that holds it."""

    text: str
    line: int


def restore_comment(released: str) -> str:
    """Return a comment with ``NEWLINE_TOKEN`` and ``TAB_TOKEN`` replaced, and without blanks at its ends.

    >>> restore_comment("NEWLINE_TOKENhello TAB_TOKENthere ")
    'hello \\tthere'
    """
    return released.replace("TAB_TOKEN", "\t").replace("NEWLINE_TOKEN", "\n").strip()


def tokenize_comment(text: str) -> list[str]:
    """Return the tokens of a mask: runs of letters, digits and ``_``, and runs of other signs without blanks.

    >>> tokenize_comment("who's there?!")
    ['who', "'", 's', 'there', '?!']
    """
    return _TOKEN.findall(text)


def _parse_mask(value: str, path: str | PathLike[str], line: int, comment_id: str) -> tuple[bool, ...]:
    def wrong(message: str) -> DataError:
        return DataError(message, file=path, line=line, instance=comment_id, field="rationale")

    try:
        mask = json.loads(value)
    except (ValueError, RecursionError):
        raise wrong(f"expected a JSON list of 0 and 1, found {show(value)}") from None
    if not isinstance(mask, list):
        raise wrong(f"expected a JSON list of 0 and 1, found {show(mask)}")
    for index, bit in enumerate(mask):
        if type(bit) is not int or bit not in (0, 1):
            raise wrong(f"expected 0 or 1 at index {index}, found {show(bit)}")
    return tuple(bit == 1 for bit in mask)


def read_rationales(path: str | PathLike[str]) -> Iterator[AttackRationale]:
    """Yield the records of a rationale CSV, in order.

    Raises:
        DataError: broken UTF-8 or CSV, another header, a missing or an extra field, an empty or repeated id, a mask
            that is no JSON list of 0 and 1.
    """
    columns = ",".join(RATIONALE_COLUMNS)
    seen: dict[str, int] = {}
    header_read = False
    for line, fields, text in read_csv_records(path):
        if not header_read:
            if tuple(fields) != RATIONALE_COLUMNS:
                message = f"expected the columns {columns}, found {show(','.join(fields))}"
                raise DataError(message, file=path, line=line)
            header_read = True
            continue
        if len(fields) != len(RATIONALE_COLUMNS):
            message = f"expected {len(RATIONALE_COLUMNS)} fields, found {len(fields)}"
            raise DataError(message, file=path, line=line)
        comment_id, value = fields
        if not comment_id:
            message = "expected an id, found nothing"
            raise DataError(message, file=path, line=line, field=RATIONALE_COLUMNS[0])
        if comment_id in seen:
            raise _make_repeated_error(comment_id, seen[comment_id], path, line)
        seen[comment_id] = line
        yield AttackRationale(comment_id, _parse_mask(value, path, line, comment_id), line, text)
    if not header_read:
        raise DataError(f"expected the columns {columns}, found an empty file", file=path, line=1)


def _make_repeated_error(comment_id: str, before: int, path: str | PathLike[str], line: int) -> DataError:
    message = f"expected each id once, found it on line {before} as well"
    return DataError(message, file=path, line=line, instance=comment_id)


def format_rationale(comment_id: str, mask: Collection[bool]) -> str:
    """Return the line of one record in the form of the release.

    >>> format_rationale("7", [True, False])
    '7,"[1, 0]"'
    """
    return f'{comment_id},"[{", ".join("1" if bit else "0" for bit in mask)}]"'


def _read_table(path: str | PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, fields) of a comments or annotations file: a .csv, or tabs without quoting."""
    if Path(path).suffix.lower() == ".csv":
        yield from ((line, fields) for line, fields, _ in read_csv_records(path))
        return
    for line, text in enumerate(read_utf8_lines(path), 1):
        # the release maps quotes to ` and tabs to TAB_TOKEN, so a tab always separates
        yield line, text.rstrip("\r\n").split("\t")


def _find_column(header: list[str], names: tuple[str, ...]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


def find_kind(path: str | PathLike[str]) -> str | None:
    """Return ``comments`` or ``annotations`` by the columns of a .tsv or .csv file; None for another file."""
    header = next((fields for _, fields in _read_table(path)), [])
    if _find_column(header, _ID_COLUMNS) is None:
        return None
    if _find_column(header, _TEXT_COLUMNS) is not None:
        return "comments"
    return "annotations" if "attack" in header else None


def read_comments(path: str | PathLike[str], wanted: Collection[str]) -> dict[str, Comment]:
    """Read the comments with the wanted ids from a file that may have many more (it is streamed).

    Raises:
        DataError: no id or text column, a line with another number of fields, a wanted comment twice, broken UTF-8.
    """
    comments: dict[str, Comment] = {}
    for line, comment_id, text in _read_values(path, _TEXT_COLUMNS, wanted):
        if comment_id in comments:
            raise _make_repeated_error(comment_id, comments[comment_id].line, path, line)
        comments[comment_id] = Comment(restore_comment(text), line)
    return comments


def read_attacks(path: str | PathLike[str], wanted: Collection[str]) -> dict[str, float]:
    """Read the share of workers, 0 to 1, who saw a personal attack in each wanted comment.

    Raises:
        DataError: no id or attack column, a line with another number of fields, a judgement other than 0 and 1.
    """
    votes: dict[str, list[int]] = {}
    for line, comment_id, judgement in _read_values(path, ("attack",), wanted):
        if judgement not in ("0", "1", "0.0", "1.0"):
            message = f"expected 0 or 1, found {show(judgement)}"
            raise DataError(message, file=path, line=line, instance=comment_id, field="attack")
        votes.setdefault(comment_id, []).append(int(judgement[0]))
    return {comment_id: sum(ballots) / len(ballots) for comment_id, ballots in votes.items()}


def _read_values(
    path: str | PathLike[str], columns: tuple[str, ...], wanted: Collection[str]
) -> Iterator[tuple[int, str, str]]:
    """Yield (line, id, value in the first existing column of ``columns``) for the wanted ids."""
    wanted = frozenset(wanted)
    rows = _read_table(path)
    _, header = next(rows, (1, []))
    id_column, value_column = _find_column(header, _ID_COLUMNS), _find_column(header, columns)
    if id_column is None or value_column is None:
        message = f"expected the columns rev_id and {columns[0]}, found {show(header)}"
        raise DataError(message, file=path, line=1)
    for line, fields in rows:
        if len(fields) != len(header):
            raise DataError(f"expected {len(header)} fields, found {len(fields)}", file=path, line=line)
        comment_id = fields[id_column].removesuffix(".0")
        if comment_id in wanted:
            yield line, comment_id, fields[value_column]
