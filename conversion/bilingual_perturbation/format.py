"""Reader of the bilingual perturbation benchmark's public files and gold files.

A public file (``senti_en senti_ch similarity_en similarity_ch mrc_en mrc_ch``, JSON lines without extension) holds
texts, tokens and the relation of perturbed to original records; a gold file holds labels and rationale sets. The gold
has been released in several forms; all of them are read::

    rationale_ids                    [sequence][set][index], indices as strings         senti, and any task
    rationales                       [set][index] (senti), [index] (mrc), or all three levels
    rationale_q_idx, rationale_t_idx [index] or [set][index], one list a sentence       similarity

Source: Wang et al., "A Fine-grained Interpretability Evaluation Benchmark for Neural NLP" (CoNLL 2022).
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from eraser_hub.conversion.readers import parse_strict_object
from eraser_hub.conversion.typed import convert_type, refuse_half_characters
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.readers import read_line_batches

from .configs import PerturbationConfig

PathType = str | PathLike[str]
RationaleSets = tuple[tuple[tuple[int, ...], ...], ...]


SAMPLE_TYPES = ("ori", "disturb")
GOLD_FIELDS = ("rationale_ids", "rationales", "rationale_q_idx", "rationale_t_idx")
_LABEL_FIELDS = ("sent_label", "label")
_ANSWER_FIELDS = ("answer", "answers", "sent_label")


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a file: its 1-based number, its text as released without the line feed, and its JSON object."""

    file: Path
    line: int
    text: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Example:
    """Content of a public record, a gold record, or both of one id; missing values are None.

    Attributes:
        id: the id, always as a string.
        texts: column -> text, of the task's columns.
        tokens: the tokens of each sequence.
        sample_type: ``ori`` or ``disturb``.
        rel_ids: ids of an original's perturbed records.
        original_id: id of a perturbed record's original.
        label: 0 or 1.
        answer: answer of the reading task; "" if there is none.
        rationale_ids: [sequence][set][index].
        public: the public record.
        gold: the gold record.
    """

    id: str
    texts: Mapping[str, str]
    tokens: tuple[tuple[str, ...], ...] | None
    sample_type: str | None
    rel_ids: tuple[str, ...] | None
    original_id: str | None = None
    label: int | None = None
    answer: str | None = None
    rationale_ids: RationaleSets | None = None
    public: Record | None = None
    gold: Record | None = None


def read_records(path: PathType) -> Iterator[Record]:
    """Yield the JSON object of each line of a file; a byte order mark at its start is skipped.

    Raises:
        DataError: a line is empty, broken UTF-8, no JSON or no object, or has a repeated field, NaN, or half a
            surrogate pair.
    """
    for lines in read_line_batches(Path(path)):
        for number, raw in zip(lines.numbers, lines.lines, strict=True):
            line = raw.removeprefix(BOM_UTF8) if number == 1 else raw
            fields = parse_strict_object(line, file=Path(path), number=number)
            if b"\\u" in line:
                refuse_half_characters(fields, file=path, line=number)
            yield Record(Path(path), number, line.decode("utf-8"), MappingProxyType(fields))


class _Reader:
    """Typed access to one record; every error names the file, the line, the record's id and the field."""

    def __init__(self, record: Record, id_field: str, seen: dict[str, int]) -> None:
        self.fields, self.path, self.line = record.fields, record.file, record.line
        self.id = ""
        if id_field not in self.fields:
            names = show(", ".join(self.fields))
            raise self.fail(f"expected {id_field}, found the fields {names}", None)
        self.id = self.parse_id(self.fields[id_field], id_field)
        if self.id in seen:
            raise self.fail(f"expected each id once, found it on line {seen[self.id]} as well", "id")
        seen[self.id] = self.line

    def fail(self, message: str, name: str | None = None) -> DataError:
        """Return an error about the field ``name`` of the record."""
        return DataError(message, file=self.path, line=self.line, instance=self.id or None, field=name)

    def parse_id(self, value: Any, name: str) -> str:
        """Return an id, given as a string or an integer, as a string."""
        if type(value) is int or (isinstance(value, str) and value):
            return str(value)
        raise self.fail(f"expected an id, found {show(value)}", name)

    def read(self, name: str, kind: Any) -> Any:
        """Return the field ``name`` as a value of type ``kind``."""
        if name not in self.fields:
            raise self.fail("expected a value, found no such field", name)
        return convert_type(self.fields[name], kind, name, file=self.path, line=self.line, instance=self.id)

    def parse_rel_ids(self) -> tuple[str, ...] | None:
        """Return the ids of the perturbed records; None if the field is absent."""
        if self.fields.get("rel_ids") is None:
            return None
        ids = tuple(
            self.parse_id(item, f"rel_ids[{index}]") for index, item in enumerate(self.read("rel_ids", list[Any]))
        )
        if self.id in ids:
            message = "expected the ids of perturbed records, found the record's own"
            raise self.fail(message, f"rel_ids[{ids.index(self.id)}]")
        if len(set(ids)) != len(ids):
            raise self.fail(f"expected each id once, found {show(list(ids))}", "rel_ids")
        return ids

    def parse_sample_type(self, required: bool = False) -> str | None:
        """Return ``ori`` or ``disturb``; None if the field is absent and not required."""
        value = self.fields.get("sample_type")
        if required and value is None:
            raise self.fail("expected 'ori' or 'disturb', found no such field", "sample_type")
        if value is not None and value not in SAMPLE_TYPES:
            raise self.fail(f"expected 'ori' or 'disturb', found {show(value)}", "sample_type")
        return value

    def parse_label(self, names: Sequence[str]) -> int | None:
        """Return the label, given as a number or a name, as 0 or 1; None if it is absent."""
        name = next((name for name in _LABEL_FIELDS if self.fields.get(name) is not None), None)
        if name is None:
            return None
        value = self.fields[name]
        if (type(value) is int and 0 <= value < len(names)) or value in ("0", "1"):
            return int(value)
        if isinstance(value, str) and value in names:
            return names.index(value)
        raise self.fail(f"expected 0 ({names[0]}) or 1 ({names[1]}), found {show(value)}", name)

    def parse_answer(self) -> str | None:
        """Return the first answer; "" if the gold has an empty one; None without the field."""
        for name in _ANSWER_FIELDS:
            value = self.fields.get(name)
            if isinstance(value, str):
                return value
            if name != "sent_label" and value is not None:
                return next(iter(self.read(name, list[str])), "")
        return None

    def parse_sets(self, name: str, sequences: int) -> RationaleSets:
        """Return the rationale sets per sequence, from one, two or three levels of lists."""
        value = self.fields[name]
        depth = self._compute_depth(value, name)
        if depth == 1:
            value = [[value]] if value else [[]]
        elif depth == 2:
            value = [value]
        if len(value) != sequences:
            raise self.fail(f"expected {sequences} sequences, found {len(value)}", name)
        return tuple(
            tuple(
                tuple(self._parse_index(index, f"{name}[{k}][{s}][{i}]") for i, index in enumerate(chosen))
                for s, chosen in enumerate(sets)
            )
            for k, sets in enumerate(value)
        )

    def _compute_depth(self, value: Any, name: str) -> int:
        """Return the number of list levels above the indices, which must be equal on every branch."""
        level, depth = [value], 0
        while any(isinstance(item, list) for item in level):
            if not all(isinstance(item, list) for item in level):
                raise self.fail(f"expected lists of one depth, found {show(value)}", name)
            depth += 1
            level = [item for items in level for item in items]
        if not 1 <= depth <= 3:
            raise self.fail(f"expected a list of indices, or lists of them, found {show(value)}", name)
        return depth

    def _parse_index(self, value: Any, name: str) -> int:
        digits = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10
        if (digits or type(value) is int) and 0 <= int(value) < 2**31:
            return int(value)
        raise self.fail(f"expected the index of a token, found {show(value)}", name)


def read_public(path: PathType, config: PerturbationConfig) -> Iterator[Example]:
    """Yield the records of a public file.

    Raises:
        DataError: see :func:`read_records`; also a missing field, another type, a repeated id, or a record whose
            ``rel_ids`` name itself.
    """
    seen: dict[str, int] = {}
    for record in read_records(path):
        reader = _Reader(record, "id", seen)
        sample_type = reader.parse_sample_type(required=True)
        texts = {column: reader.read(name, str) for column, name in config.texts.items()}
        tokens = tuple(tuple(reader.read(name, list[str])) for name in config.sequences)
        yield Example(reader.id, texts, tokens, sample_type, reader.parse_rel_ids(), public=record)


def read_gold(path: PathType, config: PerturbationConfig) -> Iterator[Example]:
    """Yield the records of a gold file in any of its released forms.

    Raises:
        DataError: see :func:`read_records`; also missing rationales, a label other than 0 and 1, an index that is
            negative or outside the record's tokens (if it has them), a repeated id, or a record that names itself.
    """
    seen: dict[str, int] = {}
    for record in read_records(path):
        reader = _Reader(record, "sent_id" if "sent_id" in record.fields else "id", seen)
        count = len(config.sequences)
        name = next((name for name in ("rationale_ids", "rationales") if name in record.fields), "")
        if name:
            rationale_ids = reader.parse_sets(name, count)
        elif count == 2 and "rationale_q_idx" in record.fields and "rationale_t_idx" in record.fields:
            name = "rationale_q_idx"
            rationale_ids = reader.parse_sets("rationale_q_idx", 1) + reader.parse_sets("rationale_t_idx", 1)
        else:
            message = f"expected rationales ({', '.join(GOLD_FIELDS)}), found none of these fields"
            raise reader.fail(message, None)
        tokens = None
        if all(sequence in reader.fields for sequence in config.sequences):
            tokens = tuple(tuple(reader.read(sequence, list[str])) for sequence in config.sequences)
        elif reader.fields.get("sent_token") is not None:
            tokens = tuple(map(tuple, reader.read("sent_token", list[list[str]])))
            if len(tokens) != count:
                found = show(reader.fields["sent_token"])
                raise reader.fail(f"expected {count} lists of tokens, found {found}", "sent_token")
        if tokens is not None:
            check_inside(rationale_ids, tokens, record, reader.id, name)
        texts = {column: reader.read(field, str) for column, field in config.texts.items() if field in reader.fields}
        if count == 1 and reader.fields.get("sent_text") is not None:
            texts.setdefault("context", reader.read("sent_text", str))
        elif isinstance(reader.fields.get("sent_text"), list):
            texts = dict(zip(config.texts, reader.read("sent_text", list[str]), strict=False)) | texts
        answer = reader.parse_answer() if config.task == "mrc" else None
        label = None if answer is None else int(bool(answer))
        if config.task != "mrc":
            label = reader.parse_label(config.label_names)
        kind, rel_ids = reader.parse_sample_type(), reader.parse_rel_ids()
        yield Example(reader.id, texts, tokens, kind, rel_ids, None, label, answer, rationale_ids, gold=record)


def check_inside(
    rationale_ids: RationaleSets, tokens: Sequence[Sequence[str]], record: Record, instance: str, field: str
) -> None:
    """Raise a DataError at the first index that lies outside its sequence's tokens."""
    for sequence, sets in enumerate(rationale_ids):
        length = len(tokens[sequence])
        for number, chosen in enumerate(sets):
            if outside := [index for index in chosen if index >= length]:
                message = f"expected an index below {length}, the number of tokens, found {outside[0]}"
                where, line = f"{field}[{sequence}][{number}]", record.line
                raise DataError(message, file=record.file, line=line, instance=instance, field=where)
