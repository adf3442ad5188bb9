"""Read and write an ERASER corpus: annotations with their evidences, and documents.

    NAME/{train,val,test}.jsonl      one annotation a line
    NAME/docs/DOCID                  one document a file            (all but cose, e-SNLI)
    NAME/docs.jsonl                  {"docid", "document"} a line   (cose, e-SNLI)

A document is sentences separated by "\\n", tokens by " ". ``start_token`` is inclusive, ``end_token`` exclusive, over
the document's flattened tokens. A group of evidences is jointly sufficient; groups are alternatives. Values are those
of the file: an integer id stays an integer, and in BoolQ ``end_sentence`` is inclusive here, as the release has it
(dataset rows carry the exclusive end).

>>> tokens_of("a film to  avoid .\\nreally .")
['a', 'film', 'to', 'avoid', '.', 'really', '.']
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.json_lines import Lines, batches_of_lines, found, has_half_character, quotes_are, strict_object

LEAST_INT, MOST_INT = -(2**31), 2**31 - 1


class Absent(Enum):
    """The value of a key that a record does not have, which is not the same as null."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Evidence:
    """One span of one document; sentence offsets are the release's best guess, -1 where it has none."""

    docid: str
    text: str
    start_token: int
    end_token: int
    start_sentence: int = -1
    end_sentence: int = -1


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotated instance. ``docids`` is a tuple, None for null, or ABSENT; so is ``query_type`` a string or those.

    ``extra`` holds keys beyond the format's, as they were. Compare ids of different files as ``str(annotation_id)``.
    """

    annotation_id: str | int
    query: str
    evidences: tuple[tuple[Evidence, ...], ...]
    classification: str
    query_type: str | Absent | None = ABSENT
    docids: tuple[str, ...] | Absent | None = ABSENT
    extra: Mapping[str, Any] = field(default_factory=dict, compare=True, hash=False)

    def all_evidences(self) -> Iterator[Evidence]:
        """The evidences of all groups, in order."""
        for group in self.evidences:
            yield from group

    def document_ids(self) -> tuple[str, ...]:
        """The documents that belong to the instance: ``docids``, then those of the evidences, each once."""
        named = self.docids if isinstance(self.docids, tuple) else ()
        return tuple(dict.fromkeys((*named, *(evidence.docid for evidence in self.all_evidences()))))


@dataclass(frozen=True, slots=True)
class Document:
    """A document: its text as released."""

    docid: str
    text: str


def tokens_of(text: str) -> list[str]:
    """The document's tokens: the text split on "\\n", each line on U+0020, empty pieces dropped (not ``str.split()``)."""
    return [token for line in text.split("\n") for token in line.split(" ") if token]


def sentences_of(text: str) -> list[list[str]]:
    """The tokens of each sentence; lines without a token are no sentences."""
    lines = ([token for token in line.split(" ") if token] for line in text.split("\n"))
    return [tokens for tokens in lines if tokens]


# ------------------------------------------------------------------------------------------------ the typed fast way


_Int32 = Annotated[int, msgspec.Meta(ge=LEAST_INT, le=MOST_INT)]
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class RawEvidence(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An evidence as msgspec decodes it."""

    docid: str
    text: str
    start_token: _Int32
    end_token: _Int32
    start_sentence: _Int32
    end_sentence: _Int32


class RawAnnotation(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An annotation as msgspec decodes it; a key that is not there is UNSET. ``extra`` is filled by the strict way."""

    annotation_id: str | _Int64
    classification: str
    evidences: list[list[RawEvidence]]
    query: str
    docids: list[str] | UnsetType | None = UNSET
    query_type: str | UnsetType | None = UNSET


class RawDocument(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line of docs.jsonl."""

    docid: str
    document: str


_ANNOTATION = msgspec.json.Decoder(RawAnnotation)
_DOCUMENT = msgspec.json.Decoder(RawDocument)
_STRING = msgspec.json.Decoder(str)
_FAILURES = (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError)
_KEYS = frozenset({"annotation_id", "classification", "evidences", "query", "docids", "query_type"})
_EVIDENCE_KEYS = ("docid", "text", "start_token", "end_token", "start_sentence", "end_sentence")


def is_double_encoded(line: bytes) -> bool:
    """Whether the line is a JSON string (that holds the record's JSON) in place of an object."""
    return line.lstrip(b" \t").startswith(b'"')


def decode_annotations(
    lines: list[bytes],
    *,
    file: Path | str,
    numbers: Sequence[int],
    double: bool,
    extras: dict[int, dict[str, Any]] | None = None,
) -> list[RawAnnotation]:
    """A run of lines as typed records.

    Args:
        lines: without their newlines.
        file: named in errors.
        numbers: the 1-based number of each line.
        double: each line is a JSON string that contains the record's JSON.
        extras: receives, by index into ``lines``, the keys that the format does not know; without it they are an error.

    Raises:
        DataError: at the first line that is not a record, with file, line and field.
    """
    with suppress(*_FAILURES):
        # where this fails, the strict way below finds the line and says what is wrong with it
        plain = [_STRING.decode(line).encode() for line in lines] if double else lines
        records = [_ANNOTATION.decode(line) for line in plain]
        if quotes_are(b"\n".join(plain), _strings_in(records)):
            return records
    return [_strict_annotation(line, file, numbers[index], double, index, extras) for index, line in enumerate(lines)]


def decode_batch(
    batch: Lines, ends: np.ndarray, *, file: Path | str, double: bool, extras: dict[int, dict[str, Any]] | None = None
) -> list[RawAnnotation]:
    """`decode_annotations` of a run of lines as it stands in the file, in one go where each line is an object; ``ends`` is
    where the lines end."""
    if not double and batch.objects(ends):
        with suppress(*_FAILURES):
            records = _ANNOTATION.decode_lines(batch.data)
            if len(records) == len(ends) and quotes_are(batch.data, _strings_in(records)):
                return records
    return decode_annotations(batch.lines, file=file, numbers=batch.numbers, double=double, extras=extras)


def _strings_in(records: list[RawAnnotation]) -> int:
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


def _strict_annotation(
    line: bytes, file: Path | str, number: int, double: bool, index: int, extras: dict[int, dict[str, Any]] | None
) -> RawAnnotation:
    value = strict_object(line, file=file, number=number)
    if double:
        if not isinstance(value, str):
            raise DataError(
                f"expected a JSON string that contains JSON, as the lines before, found {found(value)}",
                file=file, line=number,
            )  # fmt: skip
        if has_half_character(value):
            raise DataError("expected characters, found half of a surrogate pair", file=file, line=number)
        value = strict_object(value.encode(), file=file, number=number)
    return raw_annotation(value, file=file, line=number, extras=extras, index=index)


def raw_annotation(
    value: Any,
    *,
    file: Path | str | None = None,
    line: int | None = None,
    extras: dict[int, dict[str, Any]] | None = None,
    index: int = 0,
) -> RawAnnotation:
    """A JSON value, checked field by field.

    Raises:
        DataError: with the field's path, what was expected there, and what was found.
    """
    instance: Any = value.get("annotation_id") if isinstance(value, dict) else None

    def expect(condition: bool, expected: str, thing: object, path: str | None) -> None:
        if not condition:
            raise DataError(
                f"expected {expected}, found {found(thing)}", file=file, line=line, instance=instance, field=path
            )

    def member(holder: dict[str, Any], key: str, path: str) -> Any:
        if key not in holder:
            raise DataError(
                f"expected the key {key!r}, found {_names(holder)}",
                file=file,
                line=line,
                instance=instance,
                field=path or None,
            )
        return holder[key]

    def string(thing: object, path: str) -> None:
        expect(isinstance(thing, str), "a string", thing, path)
        if has_half_character(thing):
            raise DataError(
                "expected characters, found half of a surrogate pair", file=file, line=line, instance=None, field=path
            )

    if not isinstance(value, dict):
        raise DataError(f"expected an object, found {found(value)}", file=file, line=line)
    identity = member(value, "annotation_id", "")
    if isinstance(identity, bool) or not isinstance(identity, str | int):
        instance = None
        expect(False, "a string or an integer", identity, "annotation_id")
    if isinstance(identity, int):
        expect(-(2**63) <= identity < 2**63, "an integer of at most 64 bits", identity, "annotation_id")
    else:
        string(identity, "annotation_id")
    for key in ("classification", "query"):
        string(member(value, key, ""), key)
    for key in ("query_type",):
        if value.get(key) is not None:
            string(value[key], key)
    if value.get("docids") is not None:
        expect(isinstance(value["docids"], list), "a list of document ids or null", value["docids"], "docids")
        for place, docid in enumerate(value["docids"]):
            string(docid, f"docids[{place}]")
    groups = member(value, "evidences", "")
    expect(isinstance(groups, list), "a list of evidence groups", groups, "evidences")
    raw_groups: list[list[RawEvidence]] = []
    for g, group in enumerate(groups):
        expect(isinstance(group, list), "a list of evidences", group, f"evidences[{g}]")
        raw_group: list[RawEvidence] = []
        for e, evidence in enumerate(group):
            path = f"evidences[{g}][{e}]"
            expect(isinstance(evidence, dict), "an object", evidence, path)
            for key in _EVIDENCE_KEYS[:2]:
                string(member(evidence, key, path), f"{path}.{key}")
            for key in _EVIDENCE_KEYS[2:]:
                number = member(evidence, key, path)
                expect(isinstance(number, int) and not isinstance(number, bool), "an integer", number, f"{path}.{key}")
                expect(LEAST_INT <= number <= MOST_INT, "an integer of at most 32 bits", number, f"{path}.{key}")
            beyond = [key for key in evidence if key not in _EVIDENCE_KEYS]
            if beyond:
                raise DataError(
                    f"expected the keys {', '.join(_EVIDENCE_KEYS)} alone, found {shown(beyond[0])}",
                    file=file, line=line, instance=instance, field=path,
                )  # fmt: skip
            raw_group.append(RawEvidence(*(evidence[key] for key in _EVIDENCE_KEYS)))
        raw_groups.append(raw_group)
    beyond = [key for key in value if key not in _KEYS]
    if beyond:
        if extras is None:
            raise DataError(
                f"expected the keys {', '.join(sorted(_KEYS))} alone, found {shown(beyond[0])}",
                file=file, line=line, instance=instance,
            )  # fmt: skip
        extra = {key: value[key] for key in beyond}
        if has_half_character(extra):
            raise DataError(
                "expected characters, found half of a surrogate pair", file=file, line=line, field=shown(beyond[0])
            )
        extras[index] = extra
    return RawAnnotation(
        annotation_id=identity,
        classification=value["classification"],
        evidences=raw_groups,
        query=value["query"],
        docids=value.get("docids", UNSET),
        query_type=value.get("query_type", UNSET),
    )


def _names(holder: dict[str, Any]) -> str:
    return "an object with " + (", ".join(shown(key, 30) for key in list(holder)[:8]) or "no keys")


# ---------------------------------------------------------------------------------------------------- reading, writing


def annotation_of(raw: RawAnnotation, extra: Mapping[str, Any] | None = None) -> Annotation:
    """The frozen record of a decoded one."""
    docids: tuple[str, ...] | Absent | None
    if raw.docids is UNSET:
        docids = ABSENT
    else:
        docids = None if raw.docids is None else tuple(raw.docids)  # type: ignore[arg-type]
    return Annotation(
        annotation_id=raw.annotation_id,
        query=raw.query,
        evidences=tuple(
            tuple(
                Evidence(e.docid, e.text, e.start_token, e.end_token, e.start_sentence, e.end_sentence) for e in group
            )
            for group in raw.evidences
        ),
        classification=raw.classification,
        query_type=ABSENT if raw.query_type is UNSET else raw.query_type,  # type: ignore[arg-type]
        docids=docids,
        extra=dict(extra or {}),
    )


def read_annotations(path: str | os.PathLike[str]) -> Iterator[Annotation]:
    """The annotations of a split file, in its order, a batch in memory at a time.

    Double-encoded files (evidence_inference's test_exhaustive) are understood.

    Raises:
        DataError: at the first line that is no annotation, with file, line and field.
    """
    path = Path(path)
    double: bool | None = None
    try:
        for batch in batches_of_lines(path):
            if double is None:
                double = is_double_encoded(batch.lines[0])
            extras: dict[int, dict[str, Any]] = {}
            records = decode_batch(batch, batch.ends(), file=path, double=double, extras=extras)
            for index, raw in enumerate(records):
                yield annotation_of(raw, extras.get(index))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=path) from None


def annotation_as_json(annotation: Annotation) -> dict[str, Any]:
    """The record as the release's JSON has it; keys in the release's order (sorted)."""
    record: dict[str, Any] = {
        "annotation_id": annotation.annotation_id,
        "classification": annotation.classification,
        "evidences": [
            [{k: getattr(e, k) for k in sorted(_EVIDENCE_KEYS)} for e in group] for group in annotation.evidences
        ],
        "query": annotation.query,
        **annotation.extra,
    }
    if annotation.docids is not ABSENT:
        record["docids"] = None if annotation.docids is None else list(annotation.docids)  # type: ignore[arg-type]
    if annotation.query_type is not ABSENT:
        record["query_type"] = annotation.query_type
    return dict(sorted(record.items()))


def json_line(record: Mapping[str, Any], *, double: bool = False) -> str:
    """A record as the releases write it: ASCII, a blank after colon and comma, no newline."""
    line = json.dumps(record)
    return json.dumps(line) if double else line


def write_annotations(
    path: str | os.PathLike[str], annotations: Iterable[Annotation], *, double: bool = False, final_newline: bool = True
) -> int:
    """Write a split file; the number of annotations. ``double`` writes each as a JSON string that contains JSON."""
    number = 0
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        for annotation in annotations:
            if number:
                file.write("\n")
            file.write(json_line(annotation_as_json(annotation), double=double))
            number += 1
        if number and final_newline:
            file.write("\n")
    return number


def decode_documents(lines: list[bytes], *, file: Path | str, first: int) -> list[RawDocument]:
    """A run of docs.jsonl's lines; DataError with file and line at the first that is none."""
    with suppress(*_FAILURES):
        documents = [_DOCUMENT.decode(line) for line in lines]
        if quotes_are(b"\n".join(lines), 4 * len(documents)):
            return documents
    documents = []
    for number, line in enumerate(lines, first):
        value = strict_object(line, file=file, number=number)
        if not isinstance(value, dict):
            raise DataError(f"expected an object, found {found(value)}", file=file, line=number)
        for key in ("docid", "document"):
            if key not in value:
                raise DataError(f"expected the key {key!r}, found {_names(value)}", file=file, line=number)
            if not isinstance(value[key], str):
                raise DataError(f"expected a string, found {found(value[key])}", file=file, line=number, field=key)
            if has_half_character(value[key]):
                raise DataError(
                    "expected characters, found half of a surrogate pair", file=file, line=number, field=key
                )
        beyond = [key for key in value if key not in ("docid", "document")]
        if beyond:
            raise DataError(
                f"expected the keys docid, document alone, found {shown(beyond[0])}", file=file, line=number
            )
        documents.append(RawDocument(value["docid"], value["document"]))
    return documents


def decode_document_batch(batch: Lines, ends: np.ndarray, *, file: Path | str) -> list[RawDocument]:
    """`decode_documents` of a run of lines as it stands in the file, in one go where each line is an object."""
    if batch.objects(ends):
        with suppress(*_FAILURES):
            documents = _DOCUMENT.decode_lines(batch.data)
            if len(documents) == len(ends) and quotes_are(batch.data, 4 * len(documents)):
                return documents
    return decode_documents(batch.lines, file=file, first=batch.first)


def document_text(path: Path) -> str:
    """The text of a document's own file; DataError when it is not UTF-8 or cannot be read."""
    return document_bytes(path).decode("utf-8")


def document_bytes(path: Path | str, size: int = 1 << 16) -> bytes:
    """The same as the bytes of the file, which are known to be UTF-8 then; ``size`` is what they probably are."""
    try:
        # by the thousand: three calls of the system a document
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            data = os.read(handle, size + 1)
            while len(data) != size and (more := os.read(handle, 1 << 20)):
                data, size = data + more, -1
        finally:
            os.close(handle)
        if not data.isascii():
            data.decode("utf-8")
        return data
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"expected UTF-8, found the byte 0x{data[error.start]:02x}", file=path, line=line) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=path) from None


class DocumentFolder(Mapping[str, str]):
    """The documents of ``docs/``, read when they are asked for. Ids are looked up among the folder's entries and never
    joined to a path, so an id with "/" or ".." names nothing."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            with os.scandir(self.folder) as entries:
                self._names = {entry.name: None for entry in sorted(entries, key=lambda e: e.name) if entry.is_file()}
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", file=self.folder) from None

    def __getitem__(self, docid: str) -> str:
        if docid not in self._names:
            raise KeyError(docid)
        return document_text(self.folder / docid)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, docid: object) -> bool:
        return docid in self._names


def read_documents(corpus_dir: str | os.PathLike[str]) -> Mapping[str, str]:
    """The documents of a corpus folder, docid -> text: lines of docs.jsonl (all in memory), or files of docs/ (read when
    asked for).

    Raises:
        DataError: when there is neither, a line is no document, or an id stands twice.
    """
    corpus = Path(corpus_dir)
    lines = corpus / "docs.jsonl"
    if not lines.is_file():
        if not (corpus / "docs").is_dir():
            raise DataError("expected a folder docs/ or a file docs.jsonl, found neither", file=corpus)
        return DocumentFolder(corpus / "docs")
    documents: dict[str, str] = {}
    for batch in batches_of_lines(lines):
        for number, raw in enumerate(decode_document_batch(batch, batch.ends(), file=lines), batch.first):
            if raw.docid in documents:
                raise DataError(f"expected each document once, found {shown(raw.docid)} again", file=lines, line=number)
            documents[raw.docid] = raw.document
    return documents


def safe_name(docid: str) -> bool:
    """Whether an id can be a file's name inside of docs/ and reaches nothing else."""
    return (
        bool(docid)
        and docid not in (".", "..")
        and "/" not in docid
        and "\0" not in docid
        and len(docid.encode()) < 256
    )


def write_documents(
    corpus_dir: str | os.PathLike[str], documents: Iterable[Document], *, as_lines: bool, final_newline: bool = True
) -> int:
    """Write documents below ``corpus_dir``: into docs.jsonl, or one file each in docs/; the number written.

    Raises:
        DataError: when an id cannot be a file's name ("/", "..", empty): it is data, and must reach no other path.
    """
    corpus = Path(corpus_dir)
    number = 0
    if as_lines:
        with (corpus / "docs.jsonl").open("w", encoding="utf-8", newline="\n") as file:
            for document in documents:
                if number:
                    file.write("\n")
                file.write(json_line({"docid": document.docid, "document": document.text}))
                number += 1
            if number and final_newline:
                file.write("\n")
        return number
    folder = corpus / "docs"
    folder.mkdir(parents=True, exist_ok=True)
    for document in documents:
        if not safe_name(document.docid):
            raise DataError(
                f"expected a document id that can be a file name, found {shown(document.docid)}", file=folder
            )
        (folder / document.docid).write_bytes(document.text.encode("utf-8"))
        number += 1
    return number
