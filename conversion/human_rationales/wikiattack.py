"""Rationales of personal attacks in Wikipedia comments: a CSV of masks, and separate files of comments.

The release of the rationales (Carton, Mei and Resnick, 2018) is ``wiki_attack_{dev,test}_rationale.csv`` with the
columns ``platform_comment_id,rationale``; a rationale is a JSON list of 0 and 1 in a string, one a token. The comments
are in ``attack_annotated_comments.tsv`` (Wulczyn, Thain and Dixon, 2017: ``rev_id``, ``comment``, ..), and the
judgements of ten workers per comment in ``attack_annotations.tsv`` (``rev_id``, ``attack``, ..).

The masks count the tokens of `tokenize_comment`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from eraser_hub.conversion.readers import read_table
from eraser_hub.records.errors import DataError, show

RATIONALE_COLUMNS = ["platform_comment_id", "rationale"]
ID_COLUMNS = ("rev_id", "platform_comment_id", "comment_id", "id")
TEXT_COLUMNS = ("comment", "text")
ATTACK_SHARE = 0.5  # a comment is an attack if at least half of its annotators say so
_TOKEN = re.compile(r"\w+|[^\w\s]+")


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


def read_masks(path: Path) -> dict[str, tuple[int, list[bool]]]:
    """Return id -> (line, mask) of a rationale CSV, in order.

    Raises:
        DataError: broken UTF-8 or CSV, another header, a missing or an extra field, an empty or repeated id, a mask
            that is no JSON list of 0 and 1; no record.
    """
    masks: dict[str, tuple[int, list[bool]]] = {}
    header, rows = read_table(path)
    if header != RATIONALE_COLUMNS:
        message = f"expected the columns {','.join(RATIONALE_COLUMNS)}, found {show(','.join(header))}"
        raise DataError(message, file=path, line=1)
    for line, row in rows:
        comment_id, text = row.values()
        if not comment_id or comment_id in masks:
            before = f"it on line {masks[comment_id][0]} as well" if comment_id else "none"
            message, field = f"expected an id that no other record has, found {before}", RATIONALE_COLUMNS[0]
            raise DataError(message, file=path, line=line, instance=comment_id or None, field=field)
        try:
            bits = json.loads(text)
        except (ValueError, RecursionError):
            bits = None
        if not isinstance(bits, list) or any(type(bit) is not int or bit not in (0, 1) for bit in bits):
            message = f"expected a JSON list of 0 and 1, found {show(text)}"
            raise DataError(message, file=path, line=line, instance=comment_id, field="rationale")
        masks[comment_id] = line, [bit == 1 for bit in bits]
    if not masks:
        raise DataError("expected a record a line, found the header alone", file=path, line=1)
    return masks


def find_kind(path: Path) -> str | None:
    """Return ``comments`` or ``annotations`` by the columns of a .tsv or .csv file; None for another file."""
    header, _ = _open_table(path)
    if not {*header} & {*ID_COLUMNS}:
        return None
    return "comments" if {*header} & {*TEXT_COLUMNS} else "annotations" if "attack" in header else None


def read_comments(path: Path, wanted: Collection[str]) -> dict[str, str]:
    """Return id -> text of the wanted comments in a file that may have many more (it is streamed).

    Raises:
        DataError: no id or text column, a line with another number of fields, a wanted comment twice, broken UTF-8.
    """
    comments: dict[str, str] = {}
    for line, comment_id, text in _read_values(path, TEXT_COLUMNS, wanted):
        if comment_id in comments:
            raise DataError("expected each id once, found it twice", file=path, line=line, instance=comment_id)
        comments[comment_id] = restore_comment(text)
    return comments


def read_attacks(path: Path, wanted: Collection[str]) -> dict[str, float]:
    """Return the share of workers, 0 to 1, who saw a personal attack in each wanted comment.

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


def _open_table(path: Path) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """Open a comments or annotations file: a .csv, or tabs without quoting.

    The release maps quotes to ` and tabs to TAB_TOKEN, so that a tab always separates.
    """
    return read_table(path) if path.suffix.lower() == ".csv" else read_table(path, "\t", is_quoted=False)


def _read_values(path: Path, columns: tuple[str, ...], wanted: Collection[str]) -> Iterator[tuple[int, str, str]]:
    """Yield (line, id, value in the first existing column of ``columns``) for the wanted ids."""
    header, rows = _open_table(path)
    id_column, value_column = (next(filter(header.__contains__, names), None) for names in (ID_COLUMNS, columns))
    if id_column is None or value_column is None:
        message = f"expected the columns rev_id and {columns[0]}, found {show(header)}"
        raise DataError(message, file=path, line=1)
    for line, row in rows:
        comment_id = row[id_column].removesuffix(".0")
        if comment_id in wanted:
            yield line, comment_id, row[value_column]


def make_attack_rows(
    path: Path,
    masks: Mapping[str, tuple[int, list[bool]]],
    comments: Mapping[str, str] | None,
    attacks: Mapping[str, float] | None,
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the rows of a rationale CSV, and what is missing -> in how many of them.

    Args:
        path: the CSV, for errors.
        masks: what `read_masks` returns.
        comments: id -> text; None where the file is not at hand.
        attacks: id -> share of workers who saw an attack; None where the file is not at hand.

    Raises:
        DataError: a mask whose length differs from its comment's tokens.
    """
    rows = []
    for comment_id, (line, mask) in masks.items():
        text, share = (comments or {}).get(comment_id), (attacks or {}).get(comment_id)
        tokens = None if text is None else tokenize_comment(text)
        if tokens is not None and len(tokens) != len(mask):
            message = f"expected a mask of the {len(tokens)} tokens of its comment, found one of {len(mask)}"
            raise DataError(message, file=path, line=line, instance=comment_id, field="rationale")
        rows.append(
            {
                "id": comment_id,
                "text": text,
                "tokens": tokens,
                "label": None if share is None else int(share >= ATTACK_SHARE),
                "rationale_mask": mask,
                "rationale_scores": [float(bit) for bit in mask],
                "num_tokens": len(mask),
                "rationale_ratio": sum(mask) / len(mask) if mask else 0.0,
                "position": line,
                "attack_share": share,
            }
        )
    return rows, {
        "ids without a comment": 0 if comments is None else len(masks.keys() - comments.keys()),
        "ids without annotations": 0 if attacks is None else len(masks.keys() - attacks.keys()),
    }
