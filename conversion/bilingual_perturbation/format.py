"""Read the files of the bilingual perturbation benchmark: public files, gold files, and the two joined by id.

A public file (``senti_en senti_ch similarity_en similarity_ch mrc_en mrc_ch``, JSON lines without extension) holds
texts, tokens and which record perturbs which; a gold file holds labels and rationale sets. The gold has been released
in several spellings, and each is understood::

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

from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.json_lines import has_half_character, strict_object
from eraser_hub.records.lines import batches_of_lines
from eraser_hub.records.rules import Rule

from .configs import PerturbationConfig

Path_ = str | PathLike[str]
RationaleSets = tuple[tuple[tuple[int, ...], ...], ...]


SAMPLE_TYPES = ("ori", "disturb")
GOLD_FIELDS = ("rationale_ids", "rationales", "rationale_q_idx", "rationale_t_idx")
_LABEL_FIELDS = ("sent_label", "label")
_ANSWER_FIELDS = ("answer", "answers", "sent_label")


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a file: its 1-based number, its text as released without the line feed, and its JSON object."""

    line: int
    text: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Example:
    """What a public record, a gold record, or both of one id say; what they do not say is None.

    Attributes:
        id: ids are strings throughout.
        texts: the columns of `TEXT_COLUMNS` that the task has -> text.
        tokens: of each sequence.
        sample_type: ``ori`` or ``disturb``.
        rel_ids: the perturbed records of an original; ``original_id`` is their inverse.
        label: 0 or 1.
        answer: the reading task's, "" for none.
        rationale_ids: [sequence][set][index].
        public, gold: the records.
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


def read_records(path: Path_) -> Iterator[Record]:
    """The JSON objects of a file, a line each; a byte order mark at its start is passed over.

    Raises:
        DataError: broken UTF-8, no JSON, no object, a field twice, NaN, half a surrogate pair, an empty line.
    """
    for lines in batches_of_lines(Path(path)):
        for number, raw in zip(lines.numbers, lines.lines, strict=True):
            line = raw.removeprefix(BOM_UTF8) if number == 1 else raw
            fields = strict_object(line, file=Path(path), number=number)
            if b"\\u" in line and has_half_character(fields):
                raise DataError("expected text, found half a surrogate pair", rule="text", file=path, line=number)
            yield Record(number, line.decode("utf-8"), MappingProxyType(fields))


class _Reader:
    """Typed access to one record; every complaint names the file, the line, the record's id and the field."""

    def __init__(self, record: Record, path: Path_, id_field: str) -> None:
        self.fields, self.path, self.line, self.instance = record.fields, path, record.line, None
        if id_field not in self.fields:
            raise self.wrong(
                f"expected {id_field}, found the fields {shown(', '.join(self.fields))}", None, "key-missing"
            )
        self.instance = self.identifier(self.fields[id_field], id_field)

    def wrong(self, message: str, name: str | None = None, rule: Rule = "type") -> DataError:
        return DataError(message, rule=rule, file=self.path, line=self.line, instance=self.instance, field=name)

    def identifier(self, value: Any, name: str) -> str:
        if type(value) is int or (isinstance(value, str) and value):
            return str(value)
        raise self.wrong(f"expected an id, found {shown(value)}", name)

    def text(self, name: str) -> str:
        if name not in self.fields:
            raise self.wrong("expected a string, found no such field", name, "key-missing")
        value = self.fields[name]
        if not isinstance(value, str):
            raise self.wrong(f"expected a string, found {shown(value)}", name)
        return value

    def strings(self, value: Any, name: str) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise self.wrong(f"expected a list of strings, found {shown(value)}", name)
        for index, item in enumerate(value):
            if not isinstance(item, str):
                raise self.wrong(f"expected a string, found {shown(item)}", f"{name}[{index}]")
        return tuple(value)

    def rel_ids(self) -> tuple[str, ...] | None:
        value = self.fields.get("rel_ids")
        if value is None:
            return None
        if not isinstance(value, list):
            raise self.wrong(f"expected a list of ids, found {shown(value)}", "rel_ids")
        ids = tuple(self.identifier(item, f"rel_ids[{index}]") for index, item in enumerate(value))
        if self.instance in ids:
            message = "expected the ids of perturbed records, found the record's own"
            raise self.wrong(message, f"rel_ids[{ids.index(self.instance)}]", "choice")
        if len(set(ids)) != len(ids):
            raise self.wrong(f"expected each id once, found {shown(list(ids))}", "rel_ids", "id-twice")
        return ids

    def sample_type(self) -> str | None:
        value = self.fields.get("sample_type")
        if value is not None and value not in SAMPLE_TYPES:
            raise self.wrong(f"expected 'ori' or 'disturb', found {shown(value)}", "sample_type", "choice")
        return value

    def label(self, names: Sequence[str]) -> int | None:
        name = next((name for name in _LABEL_FIELDS if self.fields.get(name) is not None), None)
        if name is None:
            return None
        value = self.fields[name]
        if type(value) is int and 0 <= value < len(names):
            return value
        if isinstance(value, str) and value in ("0", "1"):
            return int(value)
        if isinstance(value, str) and value in names:
            return names.index(value)
        raise self.wrong(f"expected 0 ({names[0]}) or 1 ({names[1]}), found {shown(value)}", name, "choice")

    def answer(self) -> str | None:
        """The first answer; "" where the gold says that there is none."""
        for name in _ANSWER_FIELDS:
            value = self.fields.get(name)
            if isinstance(value, str):
                return value
            if name != "sent_label" and value is not None:
                answers = self.strings(value, name)
                return answers[0] if answers else ""
        return None

    def sets(self, name: str, sequences: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Rationale sets per sequence out of one, two or three levels of lists."""
        value = self.fields[name]
        depth = self._depth(value, name)
        if depth == 1:
            value = [[value]] if value else [[]]
        elif depth == 2:
            value = [value]
        if len(value) != sequences:
            raise self.wrong(f"expected {sequences} sequences, found {len(value)}", name, "length")
        return tuple(
            tuple(
                tuple(self._index(index, f"{name}[{k}][{s}][{i}]") for i, index in enumerate(chosen))
                for s, chosen in enumerate(sets)
            )
            for k, sets in enumerate(value)
        )

    def _depth(self, value: Any, name: str) -> int:
        """Levels of lists above the indices; the same on every branch that reaches an index."""
        level, depth = [value], 0
        while any(isinstance(item, list) for item in level):
            if not all(isinstance(item, list) for item in level):
                raise self.wrong(f"expected lists of one depth, found {shown(value)}", name)
            depth += 1
            level = [item for items in level for item in items]
        if not 1 <= depth <= 3:
            raise self.wrong(f"expected a list of indices, or lists of them, found {shown(value)}", name)
        return depth

    def _index(self, value: Any, name: str) -> int:
        if type(value) is int:
            number = value
        elif isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
            number = int(value)
        else:
            raise self.wrong(f"expected the index of a token, found {shown(value)}", name)
        if not 0 <= number < 2**31:
            raise self.wrong(f"expected the index of a token, found {shown(value)}", name, "range")
        return number


def _unique(seen: dict[str, int], reader: _Reader) -> str:
    instance = str(reader.instance)
    if instance in seen:
        raise reader.wrong(f"expected each id once, found it on line {seen[instance]} as well", "id", "id-twice")
    seen[instance] = reader.line
    return instance


def read_public(path: Path_, config: PerturbationConfig) -> Iterator[Example]:
    """The records of a public file.

    Raises:
        DataError: what :func:`read_records` refuses; a field missing or of another type; an id twice; a record whose
            ``rel_ids`` name itself.
    """
    seen: dict[str, int] = {}
    for record in read_records(path):
        reader = _Reader(record, path, "id")
        identifier = _unique(seen, reader)
        sample_type = reader.sample_type()
        if sample_type is None:
            raise reader.wrong("expected 'ori' or 'disturb', found no such field", "sample_type", "key-missing")
        texts = {column: reader.text(name) for column, name in config.texts.items()}
        tokens = []
        for name in config.sequences:
            if name not in record.fields:
                raise reader.wrong("expected a list of strings, found no such field", name, "key-missing")
            tokens.append(reader.strings(record.fields[name], name))
        yield Example(identifier, texts, tuple(tokens), sample_type, reader.rel_ids(), public=record)


def _gold_tokens(reader: _Reader, config: PerturbationConfig) -> tuple[tuple[str, ...], ...] | None:
    if all(name in reader.fields for name in config.sequences):
        return tuple(reader.strings(reader.fields[name], name) for name in config.sequences)
    value = reader.fields.get("sent_token")
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != len(config.sequences):
        raise reader.wrong(f"expected {len(config.sequences)} lists of tokens, found {shown(value)}", "sent_token")
    return tuple(reader.strings(item, f"sent_token[{index}]") for index, item in enumerate(value))


def _gold_texts(reader: _Reader, config: PerturbationConfig) -> dict[str, str]:
    texts = {column: reader.text(name) for column, name in config.texts.items() if name in reader.fields}
    value = reader.fields.get("sent_text")
    if value is None:
        return texts
    if len(config.sequences) == 1:
        texts.setdefault("context", reader.text("sent_text"))
    elif isinstance(value, list):
        for column, text in zip(config.texts, reader.strings(value, "sent_text"), strict=False):
            texts.setdefault(column, text)
    return texts


def read_gold(path: Path_, config: PerturbationConfig) -> Iterator[Example]:
    """The records of a gold file, in any of its released spellings.

    Raises:
        DataError: what :func:`read_records` refuses; no rationales; a label other than 0 and 1; an index that is
            negative or lies outside the tokens (where the record holds them); an id twice; a record that names itself.
    """
    seen: dict[str, int] = {}
    for record in read_records(path):
        reader = _Reader(record, path, "sent_id" if "sent_id" in record.fields else "id")
        identifier = _unique(seen, reader)
        count = len(config.sequences)
        if "rationale_ids" in record.fields:
            name, rationale_ids = "rationale_ids", reader.sets("rationale_ids", count)
        elif "rationales" in record.fields:
            name, rationale_ids = "rationales", reader.sets("rationales", count)
        elif count == 2 and "rationale_q_idx" in record.fields and "rationale_t_idx" in record.fields:
            name = "rationale_q_idx"
            rationale_ids = reader.sets("rationale_q_idx", 1) + reader.sets("rationale_t_idx", 1)
        else:
            message = f"expected rationales ({', '.join(GOLD_FIELDS)}), found none of these fields"
            raise reader.wrong(message, None, "key-missing")
        tokens = _gold_tokens(reader, config)
        if tokens is not None:
            check_inside(rationale_ids, tokens, path, record, identifier, name)
        answer = reader.answer() if config.task == "mrc" else None
        label = None if answer is None else int(bool(answer))
        if config.task != "mrc":
            label = reader.label(config.label_names)
        yield Example(
            identifier,
            _gold_texts(reader, config),
            tokens,
            reader.sample_type(),
            reader.rel_ids(),
            label=label,
            answer=answer,
            rationale_ids=rationale_ids,
            gold=record,
        )


def check_inside(
    rationale_ids: RationaleSets,
    tokens: Sequence[Sequence[str]],
    file: Path_ | None,
    record: Record,
    instance: str,
    field: str,
) -> None:
    """Raise a DataError at the first index that lies outside its sequence's tokens."""
    for sequence, sets in enumerate(rationale_ids):
        for number, chosen in enumerate(sets):
            for index in chosen:
                if index >= (length := len(tokens[sequence])):
                    message = f"expected an index below {length}, the number of tokens, found {index}"
                    place = f"{field}[{sequence}][{number}]"
                    raise DataError(
                        message, rule="span-bounds", file=file, line=record.line, instance=instance, field=place
                    )
