"""Exports of annotation tools -> a corpus folder in ERASER's format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from eraser_hub.records.errors import DataError, UsageError

from .corpus import GROUPS, Imported, import_corpus
from .sources import READERS, find_reader
from .task_rows import make_source
from .tasks import TaskReader
from .texts import BLANKS


def import_annotations(
    files: Mapping[str, str | PathLike[str]],
    name: str,
    out: str | PathLike[str],
    *,
    format: str | None = None,
    span_label: Iterable[str] = (),
    label: str | None = None,
    text: Sequence[str] = (),
    query: str | None = None,
    id: str | None = None,
    annotators: str = GROUPS,
    tokenizer: str | None = None,
    force: bool = False,
) -> Imported:
    """Write ``out/NAME`` from the exports of an annotation tool.

    Several people's annotations of one text become one annotation with a group of evidences for each person. Where
    relations join marks of evidence to other marks, each of these is the query of an annotation of its own.

    Args:
        files: split -> export, a file or a folder.
        name: name of the config.
        out: the folder of the corpus folders.
        format: the tool; None looks at the files.
        span_label: labels of the marks that are evidence; not needed if all marks have one label.
        label: the question whose answer is the label, or a column; not needed if there is one candidate.
        text: the column of the text, where the export does not say it.
        query: the column of the query.
        id: the column of the id; by default the tool's id.
        annotators: see `import_corpus`.
        tokenizer: cut the texts anew (see `texts.get_tokenizer`); by default the tool's tokens, if it has tokens, else
            U+0020 separates.
        force: see `import_corpus`.

    Returns:
        the folder, its numbers of rows, labels and notes; the notes name each choice, and count what is left out.

    Raises:
        DataError: a file is at fault, or the files leave a choice open.
    """
    readers = {split: open_tool(Path(file), format, text) for split, file in files.items()}
    sources, columns, notes = make_source(readers, tuple(span_label), label, query, id, tokenizer is not None)
    options: dict[str, Any] = {"annotators": annotators, "tokenizer": tokenizer or BLANKS, "force": force}
    done = import_corpus(sources, name, columns, out, **options)
    return Imported(done.folder, done.rows, done.labels, [*notes, *done.notes])


def open_tool(path: Path, format: str | None = None, text: Sequence[str] = ()) -> TaskReader:
    """Return the reader of an annotation tool's export.

    Raises:
        DataError: no tool's reader recognizes the file or folder.
    """
    if not path.exists():
        raise DataError("cannot be read: no such file or folder", file=path)
    tools = [name for name, kind in READERS.items() if issubclass(kind, TaskReader)]
    kind = find_reader(path, format)
    if not issubclass(kind, TaskReader):
        message = f"expected an export of {', '.join(tools)}; plain rows need `tokens` or `text`"
        raise UsageError(message, file=path)
    return kind(path, text)
