"""The records of an ERASER corpus: annotations and documents, decoded and checked, and written as lines.

    NAME/{train,val,test}.jsonl      one annotation a line
    NAME/docs/DOCID                  one document a file            (all but cose, e-SNLI)
    NAME/docs.jsonl                  {"docid", "document"} a line   (cose, e-SNLI)

A document is sentences separated by "\\n", tokens by " ". ``start_token`` is inclusive, ``end_token`` exclusive, over
the document's flattened tokens. A group of evidences is jointly sufficient; groups are alternatives. Values are those
of the file: an integer id stays an integer, and in BoolQ ``end_sentence`` is inclusive here, as the release has it
(dataset rows carry the exclusive end).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec
from msgspec import UNSET, UnsetType

from eraser_hub.metrics.unknown_fields import misspelt, nearly
from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.json_lines import describe, has_half_character, quotes_are, strict_value
from eraser_hub.records.lines import BATCH_BYTES, Lines, batches_of_lines, reading
from eraser_hub.records.rules import Rule

LEAST_INT, MOST_INT = -(2**31), 2**31 - 1


# --------------------------------------------------------------------------------------------------------- the records

_Int32 = Annotated[int, msgspec.Meta(ge=LEAST_INT, le=MOST_INT)]
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
    """One annotated instance; a key that is not there is UNSET, which is not the same as null."""

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
_FAILURES = (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError)
_KEYS = frozenset(Annotation.__struct_fields__)
_EVIDENCE_KEYS = Evidence.__struct_fields__


@dataclass(frozen=True, slots=True)
class Annotations:
    """A run of a split file's annotations.

    Attributes:
        file: where they stand.
        numbers: the 1-based line of each.
        records: the annotations.
        extras: by place in the run, the keys that the format does not know, as they were.
        sizes: the bytes of each line.
    """

    file: Path
    numbers: list[int]
    records: list[Annotation]
    extras: dict[int, dict[str, Any]]
    sizes: list[int]

    def error(self, place: int, message: str, path: str, rule: Rule) -> DataError:
        """The error for a record."""
        identity, line = self.records[place].annotation_id, self.numbers[place]
        return DataError(message, rule=rule, file=self.file, line=line, instance=identity, field=path)

    def evidence_error(self, evidence: int, message: str, key: str, rule: Rule) -> DataError:
        """The error for an evidence, by its place among those of all records."""
        before = 0
        for place, record in enumerate(self.records):
            for number, group in enumerate(record.evidences):
                if evidence < before + len(group):
                    return self.error(place, message, f"evidences[{number}][{evidence - before}].{key}", rule)
                before += len(group)
        raise IndexError(evidence)

    def some(self, places: list[int]) -> Annotations:
        """Those at ``places``, ascending."""
        return Annotations(
            self.file,
            [self.numbers[place] for place in places],
            [self.records[place] for place in places],
            {new: self.extras[old] for new, old in enumerate(places) if old in self.extras},
            [self.sizes[place] for place in places],
        )


def read_annotations(path: Path, batch_bytes: int = BATCH_BYTES) -> Iterator[Annotations]:
    """The annotations of a split file in its order, some at a time.

    Double-encoded files (evidence_inference's test_exhaustive) are understood.

    Raises:
        DataError: at the first line that is no annotation, with file, line and field.
    """
    double: bool | None = None
    with reading(path):
        for batch in batches_of_lines(path, batch_bytes):
            if double is None:
                double = is_double_encoded(batch.lines[0])
            yield decode_annotations(batch, file=path, double=double)


def first_annotation(line: bytes, file: Path) -> Annotation:
    """The record of a file's first line; DataError where it is none."""
    return _checked_annotation(line, file, 1, is_double_encoded(line))[0]


def is_double_encoded(line: bytes) -> bool:
    """Whether the line is a JSON string (that holds the record's JSON) in place of an object."""
    return line.lstrip(b" \t").startswith(b'"')


def decode_annotations(batch: Lines, *, file: Path, double: bool) -> Annotations:
    """A run of lines as annotations; ``double``: each line is a JSON string that contains the record's JSON.

    Raises:
        DataError: at the first line that is not a record, with file, line and field.
    """
    numbers, sizes = list(batch.numbers), list(map(len, batch.raw))
    sizes[-1] += not batch.ends_with_newline
    with suppress(*_FAILURES):
        # where this fails, the strict way below finds the line and says what is wrong with it
        plain = [_STRING.decode(line).encode() for line in batch.raw] if double else batch.raw
        records = list(map(_ANNOTATION.decode, plain))
        if quotes_are(b"\n".join(plain) if double else batch.data, _strings_in(records)):
            return Annotations(file, numbers, records, {}, sizes)
    pairs = zip(batch.lines, numbers, strict=True)
    checked = [_checked_annotation(line, file, number, double) for line, number in pairs]
    extras = {place: extra for place, (_, extra) in enumerate(checked) if extra}
    return Annotations(file, numbers, [record for record, _ in checked], extras, sizes)


def _strings_in(records: list[Annotation]) -> int:
    """How many strings, keys included, the JSON of the records holds when no key stands there twice."""
    count = len(records)
    ids = list(map(type, [record.annotation_id for record in records]))
    docids = [record.docids for record in records]
    lists = [names for names in docids if type(names) is list]
    types = [record.query_type for record in records]
    groups = [len(group) for record in records for group in record.evidences]
    # the keys annotation_id, classification, evidences and query, and the values of two of them
    strings = 6 * count + ids.count(str)
    strings += count - sum([names is UNSET for names in docids]) + sum(map(len, lists))
    absent, null = sum([kind is UNSET for kind in types]), sum([kind is None for kind in types])
    strings += 2 * (count - absent) - null
    return strings + 8 * sum(groups)  # six keys, two of whose values are strings


def decode_documents(batch: Lines, *, file: Path) -> list[DocumentLine]:
    """A run of docs.jsonl's lines; DataError with file and line at the first that is none."""
    with suppress(*_FAILURES):
        documents = list(map(_DOCUMENT.decode, batch.raw))
        if quotes_are(batch.data, 4 * len(documents)):
            return documents
    return [_checked_document(line, file, number) for line, number in zip(batch.lines, batch.numbers, strict=True)]


def read_document_lines(
    path: Path, numbers: dict[str, int], batch_bytes: int = BATCH_BYTES
) -> Iterator[tuple[Lines, list[DocumentLine]]]:
    """The documents of docs.jsonl in its order, some lines at a time.

    Args:
        path: the file.
        numbers: takes up the id of each document, with the number of its line from 0.
        batch_bytes: how many bytes of lines are read at a time.

    Raises:
        DataError: at the first line that is no document, or whose id stands twice.
    """
    with reading(path):
        for batch in batches_of_lines(path, batch_bytes):
            documents = decode_documents(batch, file=path)
            ids = [document.docid for document in documents]
            again = take_up(ids, numbers)
            if again is not None:
                place, before = again
                words = f"{shown(ids[place])} again (first on line {before + 1})"
                message = f"expected each document once, found {words}"
                raise DataError(message, rule="document-twice", file=path, line=batch.numbers[place])
            yield batch, documents


def take_up(ids: Sequence[str], numbers: dict[str, int]) -> tuple[int, int] | None:
    """Number ids on from those in ``numbers``, and put them there; None where each is new.

    Else the place, among them, of the first that was there before, and its number; ``numbers`` is of no use then.
    """
    before = len(numbers)
    numbers.update(zip(ids, range(before, before + len(ids)), strict=True))
    if len(numbers) == before + len(ids):
        return None
    first = {identity: number for number, identity in enumerate(numbers)}  # a dict keeps a key's first place
    return next((at, first[each]) for at, each in enumerate(ids) if first[each] < before + at)


# ----------------------------------------------------------------------------------------------------- the strict way


class _Fields:
    """The fields of one JSON value, checked one by one; errors say where, what was expected, and what was found."""

    def __init__(self, file: Path, line: int, instance: object = None) -> None:
        self.file, self.line, self.instance = file, line, instance

    def refuse(self, message: str, path: str | None, rule: Rule) -> NoReturn:
        raise DataError(message, rule=rule, file=self.file, line=self.line, instance=self.instance, field=path)

    def expect(
        self, condition: bool, expected: str, thing: object, path: str | None = None, rule: Rule = "type"
    ) -> None:
        if not condition:
            self.refuse(f"expected {expected}, found {describe(thing)}", path, rule)

    def member(self, holder: dict[str, Any], key: str, path: str | None = None) -> Any:
        if key not in holder:
            names = "an object with " + (", ".join(shown(name, 30) for name in list(holder)[:8]) or "no keys")
            self.refuse(f"expected the key {key!r}, found {names}", path, "key-missing")
        return holder[key]

    def string(self, thing: object, path: str) -> None:
        self.expect(isinstance(thing, str), "a string", thing, path)
        self.characters(thing, path)

    def characters(self, thing: object, path: str | None = None) -> None:
        if has_half_character(thing):
            self.instance = None  # it may hold half a character itself
            self.refuse("expected characters, found half of a surrogate pair", path, "text")

    def beyond(self, holder: dict[str, Any], keys: tuple[str, ...], path: str | None = None) -> None:
        unknown = [key for key in holder if key not in keys]
        if unknown:
            message = f"expected the keys {', '.join(keys)} alone, found {shown(unknown[0])}"
            self.refuse(message, path, "key-unknown")


def _checked_annotation(line: bytes, file: Path, number: int, double: bool) -> tuple[Annotation, dict[str, Any]]:
    """The record of a line, and its keys beyond the format."""
    value = strict_value(line, file=file, number=number)
    if double:
        plain = _Fields(file, number)
        plain.expect(isinstance(value, str), "a JSON string that contains JSON, as the lines before", value)
        plain.characters(value)
        value = strict_value(value.encode(), file=file, number=number)
    fields = _Fields(file, number, value.get("annotation_id") if isinstance(value, dict) else None)
    fields.expect(isinstance(value, dict), "an object", value)
    _check_identity(fields, fields.member(value, "annotation_id"))
    for key in ("classification", "query"):
        fields.string(fields.member(value, key), key)
    if value.get("query_type") is not None:
        fields.string(value["query_type"], "query_type")
    if value.get("docids") is not None:
        fields.expect(isinstance(value["docids"], list), "a list of document ids or null", value["docids"], "docids")
        for place, docid in enumerate(value["docids"]):
            fields.string(docid, f"docids[{place}]")
    evidences = _checked_groups(fields, fields.member(value, "evidences"))
    extra = {key: thing for key, thing in value.items() if key not in _KEYS}
    for key in extra:
        if suggestion := nearly(key, _KEYS):
            fields.refuse(misspelt(suggestion), shown(key), "key-unknown")
    if extra:
        fields.characters(extra, shown(next(iter(extra))))
    known = {key: thing for key, thing in value.items() if key in _KEYS}
    return Annotation(**{**known, "evidences": evidences}), extra


def _check_identity(fields: _Fields, identity: object) -> None:
    if isinstance(identity, bool) or not isinstance(identity, str | int):
        fields.instance = None
        fields.expect(False, "a string or an integer", identity, "annotation_id")
    if isinstance(identity, int):
        fits = -(2**63) <= identity < 2**63
        fields.expect(fits, "an integer of at most 64 bits", identity, "annotation_id", "range")
    else:
        fields.string(identity, "annotation_id")


def _checked_groups(fields: _Fields, groups: Any) -> list[list[Evidence]]:
    fields.expect(isinstance(groups, list), "a list of evidence groups", groups, "evidences")
    for number, group in enumerate(groups):
        fields.expect(isinstance(group, list), "a list of evidences", group, f"evidences[{number}]")
        for place, evidence in enumerate(group):
            _check_evidence(fields, evidence, f"evidences[{number}][{place}]")
    return [[Evidence(**evidence) for evidence in group] for group in groups]


def _check_evidence(fields: _Fields, evidence: Any, path: str) -> None:
    fields.expect(isinstance(evidence, dict), "an object", evidence, path)
    for key in ("docid", "text"):
        fields.string(fields.member(evidence, key, path), f"{path}.{key}")
    for key in ("start_token", "end_token", "start_sentence", "end_sentence"):
        number = fields.member(evidence, key, path)
        whole = isinstance(number, int) and not isinstance(number, bool)
        fields.expect(whole, "an integer", number, f"{path}.{key}")
        fits = LEAST_INT <= number <= MOST_INT
        fields.expect(fits, "an integer of at most 32 bits", number, f"{path}.{key}", "range")
    fields.beyond(evidence, _EVIDENCE_KEYS, path)


def _checked_document(line: bytes, file: Path, number: int) -> DocumentLine:
    value, fields = strict_value(line, file=file, number=number), _Fields(file, number)
    fields.expect(isinstance(value, dict), "an object", value)
    for key in ("docid", "document"):
        fields.string(fields.member(value, key), key)
    fields.beyond(value, ("docid", "document"))
    return DocumentLine(**value)


# ------------------------------------------------------------------------------------------------------------- writing


def json_line(record: Mapping[str, Any], *, double: bool = False) -> str:
    """A record as the releases write it: ASCII, a blank after colon and comma, no newline."""
    line = json.dumps(record)
    return json.dumps(line) if double else line


def safe_name(docid: str) -> bool:
    """Whether an id can be a file's name inside of docs/ and reaches nothing else."""
    return (
        bool(docid)
        and docid not in (".", "..")
        and "/" not in docid
        and "\0" not in docid
        and len(docid.encode()) < 256
    )
