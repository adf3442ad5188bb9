"""Records of an ERASER corpus: annotations and documents, decoded, checked, and written as lines.

    NAME/{train,val,test}.jsonl      one annotation a line
    NAME/docs/DOCID                  one document a file            (all but cose, e-SNLI)
    NAME/docs.jsonl                  {"docid", "document"} a line   (cose, e-SNLI)

A document has sentences separated by "\\n", tokens by " ". ``start_token`` is inclusive, ``end_token`` exclusive, over
the document's flattened tokens. A group of evidences is jointly sufficient; groups are alternatives. Values are those
of the file: an integer id stays an integer, and in BoolQ ``end_sentence`` is inclusive here, as the release has it
(dataset rows carry the exclusive end).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from eraser_hub.conversion.readers import convert_type, parse_json
from eraser_hub.metrics.errors import find_similar
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.readers import BATCH_BYTES, JSON_ERRORS, LineBatch, read_line_batches

MAX_INT = 2**31 - 1


# --------------------------------------------------------------------------------------------------------- the records

_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=MAX_INT)]
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Evidence(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One span of one document; sentence offsets are the release's best guess, -1 where it has none."""

    docid: str
    text: str
    start_token: _Int32
    end_token: _Int32
    start_sentence: _Int32
    end_sentence: _Int32


class Annotation(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One annotated instance; an absent key is UNSET, which differs from null."""

    annotation_id: str | _Int64
    classification: str
    evidences: list[list[Evidence]]
    query: str
    docids: list[str] | UnsetType | None = UNSET
    query_type: str | UnsetType | None = UNSET


class DocumentLine(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line of docs.jsonl."""

    docid: str
    document: str


_ANNOTATION = msgspec.json.Decoder(Annotation)
_DOCUMENT = msgspec.json.Decoder(DocumentLine)
_STRING = msgspec.json.Decoder(str)
_KEYS = frozenset(Annotation.__struct_fields__)


@dataclass(frozen=True, slots=True)
class Annotations:
    """A run of a split file's annotations.

    Attributes:
        file: the split file.
        numbers: the 1-based line of each record.
        records: the annotations.
        extras: index in the run -> unknown keys of the record, with their values.
        sizes: bytes of each line.
        double: whether a line is a JSON string that holds the record's JSON.
    """

    file: Path
    numbers: list[int]
    records: list[Annotation]
    extras: dict[int, dict[str, Any]]
    sizes: list[int]
    double: bool

    def make_error(self, place: int, message: str, path: str) -> DataError:
        """Return the error for a record, by its index."""
        identity, line = self.records[place].annotation_id, self.numbers[place]
        return DataError(message, file=self.file, line=line, instance=identity, field=path)

    def locate_error(self, evidence: int, message: str, key: str) -> DataError:
        """Return the error for an evidence, by its index among the evidences of all records."""
        before = 0
        for place, record in enumerate(self.records):
            for number, group in enumerate(record.evidences):
                if evidence < before + len(group):
                    return self.make_error(place, message, f"evidences[{number}][{evidence - before}].{key}")
                before += len(group)
        raise IndexError(evidence)


def read_annotations(path: Path, batch_bytes: int = BATCH_BYTES) -> Iterator[Annotations]:
    """Yield the annotations of a split file in its order, one run of lines at a time.

    The file may be double-encoded (evidence_inference's test_exhaustive).

    Raises:
        DataError: at the first line that is no annotation, with file, line and field.
    """
    double: bool | None = None
    for batch in read_line_batches(path, batch_bytes):
        if double is None:
            double = is_double_encoded(batch.raw[0])
        numbers, sizes = list(batch.numbers), list(map(len, batch.raw))
        sizes[-1] += not batch.data.endswith(b"\n")
        extras: dict[int, dict[str, Any]] = {}
        try:
            plain = map(_STRING.decode, batch.raw) if double else batch.raw
            records = list(map(_ANNOTATION.decode, plain))
        except JSON_ERRORS:  # a fault, or a key beyond the format: line by line
            pairs = zip(batch.lines, numbers, strict=True)
            checked = [_checked_annotation(line, path, number, double) for line, number in pairs]
            records = [record for record, _ in checked]
            extras = {place: extra for place, (_, extra) in enumerate(checked) if extra}
        yield Annotations(path, numbers, records, extras, sizes, double)


def read_first_annotation(line: bytes, file: Path) -> Annotation:
    """Return the record of a file's first line; raise a DataError if it is no annotation."""
    return _checked_annotation(line, file, 1, is_double_encoded(line))[0]


def is_double_encoded(line: bytes) -> bool:
    """Return True if the line is a JSON string that contains the record's JSON."""
    return line.lstrip(b" \t").startswith(b'"')


def read_document_lines(
    path: Path, numbers: dict[str, int], batch_bytes: int = BATCH_BYTES
) -> Iterator[tuple[LineBatch, list[DocumentLine]]]:
    """Yield the documents of docs.jsonl in its order, one run of lines at a time.

    Args:
        path: the file.
        numbers: receives id -> index of the line from 0, of each document.
        batch_bytes: bytes of lines to read at a time.

    Raises:
        DataError: at the first line that is no document, or repeats an id.
    """
    for batch in read_line_batches(path, batch_bytes):
        try:
            documents = list(map(_DOCUMENT.decode, batch.raw))
        except JSON_ERRORS:
            lines = zip(batch.lines, batch.numbers, strict=True)
            values = ((parse_json(line, file=path, number=number), number) for line, number in lines)
            documents = [convert_type(value, DocumentLine, file=path, line=number) for value, number in values]
        ids = [document.docid for document in documents]
        if (repeat := number_ids(ids, numbers)) is not None:
            place, before = repeat
            message = f"expected each document once, found {show(ids[place])} again (first on line {before + 1})"
            raise DataError(message, file=path, line=batch.numbers[place])
        yield batch, documents


def number_ids(ids: Sequence[str], numbers: dict[str, int]) -> tuple[int, int] | None:
    """Add ids to ``numbers`` with consecutive numbers.

    Returns:
        None if each id is new; else the index of the first repeated id and its earlier number (``numbers`` is then
        invalid).
    """
    before = len(numbers)
    numbers.update(zip(ids, range(before, before + len(ids)), strict=True))
    if len(numbers) == before + len(ids):
        return None
    first = {identity: number for number, identity in enumerate(numbers)}  # a dict keeps a key's first place
    return next((at, first[each]) for at, each in enumerate(ids) if first[each] < before + at)


# -------------------------------------------------------------------------------------------------- the strict decoder


def _checked_annotation(line: bytes, file: Path, number: int, double: bool) -> tuple[Annotation, dict[str, Any]]:
    """Return the record of a line, and its unknown keys."""
    value = parse_json(line, file=file, number=number)
    if double:
        value = parse_json(convert_type(value, str, file=file, line=number).encode(), file=file, number=number)
    keys = value if isinstance(value, dict) else {}
    identity = keys.get("annotation_id")
    instance = identity if type(identity) in (str, int) else None
    extra = {key: item for key, item in keys.items() if key not in _KEYS}
    for key in extra:
        if suggestion := find_similar(key, _KEYS):
            message = f"no field of this format: did you mean {suggestion!r}?"
            raise DataError(message, file=file, line=number, instance=instance, field=show(key))
    known = {key: item for key, item in value.items() if key in _KEYS} if extra else value
    return convert_type(known, Annotation, file=file, line=number, instance=instance), extra


# ------------------------------------------------------------------------------------------------------------- writing


def to_json_line(record: Mapping[str, Any], *, double: bool = False) -> str:
    """Return a record in the form of the releases: ASCII, a blank after colon and comma, no newline."""
    line = json.dumps(record)
    return json.dumps(line) if double else line
