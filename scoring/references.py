"""What predictions are scored against: annotations as flat arrays, and their documents."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import orjson

from eraser_hub.metrics.clusters import Clusters
from eraser_hub.metrics.flat import References, Words, concatenate
from eraser_hub.metrics.flatten_rows import ReferenceFlattener
from eraser_hub.metrics.joining import Documents, by_documents, says_sentences
from eraser_hub.metrics.offences import Offences, Rows, cut
from eraser_hub.records.errors import DataError, DataErrors
from eraser_hub.records.json_lines import not_json
from eraser_hub.records.lines import Lines, batches_of_lines, check_utf8, reading

from .documents import CorpusDocuments
from .settings import Inputs

# bytes of lines that are decoded at a time: their objects fit into a processor's cache
BLOCK = 1 << 17
COLUMNS = ("annotation_id", "classification", "documents", "evidences")


@dataclass(frozen=True)
class Gold:
    """The annotations that predictions are scored against.

    Attributes:
        references: flat.
        documents: theirs.
        path: the file that they stand in, by which errors are told.
        lines: the line (or row) of each in it.
        label_names: the labels there are; None: those that the annotations have.
        columns: the values of the columns that were asked for, of each annotation.
        note: see `labels.LabelNames`.
    """

    references: References
    documents: Documents
    path: Path
    lines: Sequence[int]
    label_names: tuple[str, ...] | None
    columns: dict[str, list[object]] = field(default_factory=dict)
    note: str = ""

    def __call__(self, name: str, predicted: bool = False) -> list[object]:
        """The values of a column that was asked for."""
        return self.columns[name]

    def clusters(self) -> Clusters:
        """Annotations that share a document."""
        return by_documents(self.references)


def read_gold(inputs: Inputs, columns: Sequence[str] = ()) -> Gold:
    """Read annotations, of a corpus folder or of a built dataset.

    Args:
        columns: those to break scores down by, or to cluster by.

    Raises:
        DataError: a file cannot be read, or something in it is not as it should be; at most ten offences.
    """
    return _of_corpus(inputs, columns) if inputs.dataset is None else _of_dataset(inputs, columns)


def raise_offences(offences: Offences, files: dict[str, Path]) -> None:
    """Raise the offences, if there are any.

    Args:
        files: side -> the file that its rows stand in, which offences call by their lines.
    """
    if not offences.total:
        return
    errors = [
        DataError(
            offence.message,
            file=files[offence.side],
            line=None if offence.row < 0 else offence.row,
            instance=offence.id or None,
            field=offence.field or None,
        )
        for offence in offences
    ]
    if offences.total == 1:
        raise errors[0]
    raise DataErrors(errors, offences.total)


# ------------------------------------------------------------------------------------------------------------- a corpus
def _of_corpus(inputs: Inputs, columns: Sequence[str]) -> Gold:
    labels, path = inputs.labels(), inputs.annotation_file
    offences = Offences()
    flattener = ReferenceFlattener(offences, labels.names, documents=False)
    lines, values = array("q"), {name: list[object]() for name in columns}
    offences.sides = {"reference": Rows(lines, flattener.ids)}
    with reading(path):
        for batch in batches_of_lines(path, BLOCK):
            if not columns and _added(batch, flattener):
                lines.extend(batch.numbers)
                continue
            for number, row in _rows(batch, path):
                lines.append(number)
                flattener.add(row)
                for name in columns:
                    values[name].append(_value(row, name, path, number))
    if not lines:
        raise DataError("expected at least one annotation, found none", file=path)
    references = flattener.finish()
    references.docids = Words(flattener.docs)
    references.ids = tuple(flattener.ids)  # which no garbage collection walks through again and again
    documents = CorpusDocuments(inputs.corpus, flattener.docs, says_sentences(references))
    raise_offences(offences, {"reference": path})
    return Gold(references, documents, path, lines, labels.names, values, labels.note)


class _Evidence(msgspec.Struct, gc=False):
    docid: str
    start_token: int
    end_token: int
    start_sentence: int | None = None
    end_sentence: int | None = None


class _Annotation(msgspec.Struct, gc=False):
    annotation_id: str
    evidences: list[list[_Evidence]] | None = None
    classification: str | None = None


_decode = msgspec.json.Decoder(_Annotation).decode


def _added(batch: Lines, flattener: ReferenceFlattener) -> bool:
    """Append lines that are all as most are; False, and nothing is appended, where one is not."""
    try:
        annotations = [_decode(line) for line in batch.raw]
        check_utf8(batch.raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return flattener.add_columns(annotations, attrgetter)


def _rows(batch: Lines, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The annotations of some lines, each with its line; a line may be encoded twice."""
    for number, line in zip(batch.numbers, batch.raw, strict=True):
        if not line.strip():
            continue
        try:
            row = orjson.loads(line)
            if isinstance(row, str):
                row = orjson.loads(row)
        except ValueError as error:
            raise DataError(not_json(error, line), file=path, line=number) from None
        if not isinstance(row, dict):
            raise DataError(f"expected an object, found {cut(row)}", file=path, line=number)
        yield number, row


def _value(row: dict[str, Any], name: str, path: Path, line: int) -> object:
    """A row's value of a column to break scores down by, or to cluster by."""
    if name not in row:
        message = f"expected the field {name!r} (to break scores down by, or to cluster by), found none"
        raise DataError(message, file=path, line=line)
    if isinstance(row[name], (list, dict)):
        raise DataError(f"expected a single value, found {cut(row[name])}", file=path, line=line, field=name)
    return row[name]


# ------------------------------------------------------------------------------------------------------ a built dataset
def _of_dataset(inputs: Inputs, columns: Sequence[str]) -> Gold:
    # the Arrow libraries are slow to import: only where they are needed
    from eraser_hub.metrics.flatten_arrow import references_from_arrow
    from eraser_hub.records.built import batches

    labels, files = inputs.labels(), inputs.built.files(inputs.built_config, inputs.split)
    offences, parts = Offences(), list[References]()
    values: dict[str, list[object]] = {name: [] for name in columns}
    first = 1
    for table in batches(files, [*dict.fromkeys((*COLUMNS, *columns))]):
        part = references_from_arrow(table, labels.names)
        if part is None:
            own = Offences()
            flattener = ReferenceFlattener(own, labels.names)
            own.sides = {"reference": Rows(range(first, first + table.num_rows), flattener.ids)}
            for row in table.to_pylist():
                flattener.add(row)
            offences.take(own)
            part = flattener.finish()
        parts.append(part)
        for name, own in values.items():
            own += [_value(row, name, files[0], first + at) for at, row in enumerate(table.select([name]).to_pylist())]
        first += table.num_rows
    references = concatenate(parts) if parts else ReferenceFlattener(offences, labels.names).finish()
    if "classification" in values:
        names = [*references.labels, None]
        values["classification"] = [names[code] for code in references.classification.tolist()]
    raise_offences(offences, {"reference": files[0]})
    return Gold(references, Documents(references), files[0], range(1, first), labels.names, values, labels.note)
