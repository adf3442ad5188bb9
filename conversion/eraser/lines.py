"""A split file decoded once, into columns on the disk (see `eraser_columns`), from which rows are taken in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from eraser_hub.conversion.arrays import distinct, offsets_of, ranges, with_nulls
from eraser_hub.conversion.columns_on_disk import SIZES, ColumnWriter, Strings, put_together, read_numbers
from eraser_hub.conversion.workers import Workers
from eraser_hub.records.errors import DataError
from eraser_hub.records.json_lines import batches_of_lines
from eraser_hub.records.progress import no_cycles

from .columns import TYPE_ABSENT, TYPE_NULL, Columns, columns_of
from .corpus import DocumentFiles, DocumentLines, SplitFile, read_document_lines
from .format import decode_batch

RANGE_BYTES = 16 << 20
Kept = dict[int, dict[str, Any]]


def _read_range(
    file: SplitFile,
    start: int,
    end: int,
    documents: DocumentFiles | DocumentLines,
    label_numbers: dict[str, int],
    into: Path,
    advance: Callable[[int], None] = lambda _: None,
) -> tuple[int, Kept]:
    """Decode a range of a split file's lines into the folder ``into``: (the number of lines, `Columns.kept`)."""
    rows = 0
    kept: Kept = {}
    with reading(file.path, start), ColumnWriter(into) as out:
        for batch in batches_of_lines(file.path, start=start, end=end):
            extras: dict[int, dict[str, Any]] = {}
            ends = batch.ends()
            records = decode_batch(batch, ends, file=file.path, double=file.double, extras=extras)
            columns = columns_of(
                records,
                extras,
                file=file.path,
                first=batch.first,
                label_numbers=label_numbers,
                documents=documents,
            )
            out.strings("ids", columns.ids)
            out.numbers("states", columns.states)
            out.numbers("labels", columns.labels)
            out.strings("queries", columns.queries)
            out.strings("types", columns.types)
            out.numbers("bytes", np.diff(ends, prepend=-1))
            out.numbers("documents", columns.documents.astype(np.int32))
            out.numbers("documents" + SIZES, np.diff(columns.offsets))
            out.numbers("groups", np.diff(columns.groups))
            out.numbers("evidences", np.diff(columns.evidences))
            out.numbers("evidence_documents", columns.evidence_documents.astype(np.int32))
            out.strings("texts", columns.texts)
            out.numbers("spans", columns.spans)
            kept.update({rows + row: keys for row, keys in columns.kept.items()})
            rows += len(records)
            advance(len(batch.data))
    return rows, kept


def read_all_lines(
    file: SplitFile,
    documents: DocumentFiles | DocumentLines,
    label_numbers: dict[str, int],
    folder: Path,
    workers: Workers,
    advance: Callable[[int], None],
) -> SplitLines:
    """Decode a split file into columns below ``folder``.

    Raises:
        DataError: at the first line that is no record, with an unknown label, or with a document that does not exist.
    """
    parts = _parts(file.path, folder / file.split)
    tasks = [(file, start, end, documents, label_numbers, into) for start, end, into in parts]
    read = _run(_read_range, tasks, parts, workers, advance)
    kept: Kept = {}
    before = 0
    for rows, some in read:
        kept.update({before + row: keys for row, keys in some.items()})
        before += rows
    put_together([into for _, _, into in parts], folder / file.split)
    return SplitLines(file.path, folder / file.split, kept)


def _read_documents(
    path: Path, start: int, end: int, into: Path, advance: Callable[[int], None] = lambda _: None
) -> None:
    with reading(path, start):
        read_document_lines(path, start, end, into, advance)


def read_all_documents(path: Path, folder: Path, workers: Workers, advance: Callable[[int], None]) -> DocumentLines:
    """Decode docs.jsonl into columns below ``folder``.

    Raises:
        DataError: at the first line that is no document; an id that stands twice.
    """
    parts = _parts(path, folder / "docs")
    _run(_read_documents, [(path, start, end, into) for start, end, into in parts], parts, workers, advance)
    put_together([into for _, _, into in parts], folder / "docs")
    documents = DocumentLines(path, folder / "docs")
    documents.refuse_repeated()
    return documents


def _parts(path: Path, folder: Path) -> list[tuple[int, int, Path]]:
    """(start, end, folder) of ranges of whole lines."""
    size = path.stat().st_size
    edges = [0]
    with path.open("rb") as file:
        for number in range(1, max(1, round(size / RANGE_BYTES))):
            goal = number * RANGE_BYTES
            if goal <= edges[-1]:
                continue
            file.seek(goal)
            file.readline()
            if edges[-1] < file.tell() < size:
                edges.append(file.tell())
    edges.append(size)
    return [
        (start, end, folder.with_name(f"{folder.name}.{number}")) for number, (start, end) in enumerate(pairwise(edges))
    ]


def _run(
    function: Callable[..., Any],
    tasks: list[tuple[Any, ...]],
    parts: list[tuple[int, int, Path]],
    workers: Workers,
    advance: Callable[[int], None],
) -> list[Any]:
    sizes = [end - start for start, end, _ in parts]

    def here(*task: Any) -> Any:
        return function(*task, advance)

    return workers.run(function, tasks, sizes, here, lambda number: advance(sizes[number]))


@contextmanager
def reading(path: Path, start: int) -> Iterator[None]:
    """Errors of a range that begins at the byte ``start`` tell the line of the whole file."""
    try:
        with no_cycles():
            yield
    except DataError as error:
        if error.line is None or error.file != path:
            raise
        with path.open("rb") as file:
            blocks = iter(lambda: file.read(min(1 << 20, start - file.tell())), b"")
            line = error.line + sum(block.count(b"\n") for block in blocks)
        raise DataError(error.message, file=path, line=line, instance=error.instance, field=error.field) from None
    except OSError as error:
        if error.filename is None or Path(error.filename) != path:
            raise  # what is written, not what is read
        raise DataError(f"cannot be read: {error.strerror}", file=path) from None


class SplitLines:
    """The records of a split file, as columns on the disk.

    Attributes:
        file: the split file.
        states, labels, bytes: of each record; ``bytes`` are those of its line.
        offsets: int64 (records + 1,) into ``documents``, which are numbers of documents.
        kept: as in `Columns`.
    """

    def __init__(self, file: Path, folder: Path, kept: Kept) -> None:
        self.file, self.folder, self.kept = file, folder, kept
        self.states = read_numbers(folder, "states", np.uint8)
        self.labels = read_numbers(folder, "labels", np.int64)
        self.bytes = read_numbers(folder, "bytes", np.int64)
        self.offsets = offsets_of(read_numbers(folder, "documents" + SIZES, np.int64))
        self.documents = read_numbers(folder, "documents", np.int32)
        self.ids = Strings(folder, "ids")
        self._queries, self._types, self._texts = (Strings(folder, name) for name in ("queries", "types", "texts"))
        self._groups = offsets_of(read_numbers(folder, "groups", np.int64))
        self._evidences = offsets_of(read_numbers(folder, "evidences", np.int64))
        self._evidence_documents = read_numbers(folder, "evidence_documents", np.int32)
        self._spans = read_numbers(folder, "spans", np.int32).reshape(-1, 4)

    def __reduce__(self) -> tuple[Any, ...]:
        return _split_lines, (self.file, self.folder, self.kept)

    def __len__(self) -> int:
        return len(self.states)

    def evidence_sums(self) -> tuple[int, int, int]:
        """The number of evidences, of their tokens, and of the documents that they lie in."""
        tokens = int((self._spans[:, 1].astype(np.int64) - self._spans[:, 0]).sum())
        return len(self._spans), tokens, len(distinct(self._evidence_documents))

    def columns(self, rows: np.ndarray) -> Columns:
        """The records of ``rows``, in that order."""
        sizes = self.offsets[rows + 1] - self.offsets[rows]
        in_row = self._groups[rows + 1] - self._groups[rows]
        groups = ranges(self._groups[rows], in_row)
        in_group = self._evidences[groups + 1] - self._evidences[groups]
        evidences = ranges(self._evidences[groups], in_group)
        states = self.states[rows]
        return Columns(
            file=self.file,
            numbers=rows + 1,
            ids=self.ids.take(rows),
            states=states,
            labels=self.labels[rows],
            queries=self._queries.take(rows),
            types=with_nulls(self._types.take(rows), (states & (TYPE_NULL | TYPE_ABSENT)) > 0),
            offsets=offsets_of(sizes),
            documents=self.documents[ranges(self.offsets[rows], sizes)].astype(np.int64),
            groups=offsets_of(in_row),
            evidences=offsets_of(in_group),
            evidence_documents=self._evidence_documents[evidences].astype(np.int64),
            texts=self._texts.take(evidences),
            spans=self._spans[evidences],
            kept={place: self.kept[row] for place, row in enumerate(rows.tolist()) if row in self.kept}
            if self.kept
            else {},
        )


def _split_lines(file: Path, folder: Path, kept: Kept) -> SplitLines:
    """The columns as another process has written them; a worker opens those of a file once."""
    global _last
    if _last is None or (_last.file, _last.folder) != (file, folder):
        _last = SplitLines(file, folder, kept)
    return _last


_last: SplitLines | None = None
