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

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from eraser_hub.conversion.readers import read_json_lines
from eraser_hub.conversion.typed import convert_type
from eraser_hub.records.errors import DataError, show

SAMPLE_TYPES = ("ori", "disturb")
GOLD_FIELDS = ("rationale_ids", "rationales", "rationale_q_idx", "rationale_t_idx")
LABEL_NAMES = {
    "senti": ("negative", "positive"),
    "similarity": ("different", "same"),
    "mrc": ("unanswerable", "answerable"),
}
OPTIONAL_TEXTS = ("title", "question")  # gold files of the reading task have the passage alone
Id = int | Annotated[str, msgspec.Meta(min_length=1)]


@dataclass(frozen=True, slots=True)
class Task:
    """What the files of a configuration hold.

    Attributes:
        name: ``senti``, ``similarity`` or ``mrc``.
        language: ``en`` or ``zh`` (the files say ``ch``).
        texts: column -> field of the public file.
    """

    name: str
    language: str
    texts: Mapping[str, str]

    @property
    def sequences(self) -> tuple[str, ...]:
        """The fields with the tokens, one a sequence."""
        return ("text_q_seg", "text_t_seg") if self.name == "similarity" else ("sent_token",)


_READING = {"title": "title", "context": "context", "question": "question"}
CONFIGS = {
    "senti_en": Task("senti", "en", {"context": "context"}),
    "senti_ch": Task("senti", "zh", {"context": "context"}),
    "similarity_en": Task("similarity", "en", {"sentence1": "sentence1", "sentence2": "sentence2"}),
    "similarity_ch": Task("similarity", "zh", {"sentence1": "query", "sentence2": "title"}),
    "mrc_en": Task("mrc", "en", _READING),
    "mrc_ch": Task("mrc", "zh", _READING),
}


@dataclass(frozen=True, slots=True)
class Record:
    """A line of a public or a gold file; what it does not say is None.

    Attributes:
        id: the id, always as a string.
        line: its 1-based line.
        texts: column -> text, of the task's columns.
        tokens: the tokens of each sequence.
        sample_type: ``ori`` or ``disturb``.
        rel_ids: ids of an original's perturbed records.
        label: 0 or 1.
        answer: answer of the reading task; "" if there is none.
        rationale_ids: [sequence][set][index], of every gold record.
    """

    id: str
    line: int
    texts: Mapping[str, str]
    tokens: list[list[str]] | None
    sample_type: str | None
    rel_ids: list[str] | None
    label: int | None = None
    answer: str | None = None
    rationale_ids: list[list[list[int]]] | None = None

    def list_missing(self, task: Task, optional: Sequence[str] = ()) -> list[str]:
        """Return what a row needs and the record does not say."""
        missing = [name for name in ("tokens", "sample_type") if getattr(self, name) is None]
        return [*missing, *(name for name in task.texts if name not in self.texts and name not in optional)]


def read_records(path: Path, task: Task, is_gold: bool) -> list[Record]:
    """Return the records of a public file, or of a gold file in any of its released forms.

    Raises:
        DataError: see `read_json_lines`; a missing field, or one of another type, a repeated id, a record whose
            ``rel_ids`` name itself; of a gold file, no rationales, a label other than 0 and 1, an index that is none.
    """
    is_pair = task.name == "similarity"
    kinds: dict[str, Any] = {
        **dict.fromkeys(task.texts.values(), str),
        **dict.fromkeys(task.sequences, list[str]),
        "sample_type": str,
        "rel_ids": list[Id],
    }
    if is_gold:
        kinds |= {
            **({"sent_token": list[list[str]]} if is_pair else {}),
            "sent_text": str | list[str] if is_pair else str,
            **dict.fromkeys(("answer", "answers"), str | list[str]),
            **dict.fromkeys(("sent_label", "label", *GOLD_FIELDS), Any),
        }
    kind = msgspec.defstruct("Line", [("id", Id), *((name, kind | None, None) for name, kind in kinds.items())])
    records, seen = [], dict[str, int]()
    for line, fields in read_json_lines(path):
        if is_gold and "sent_id" in fields:
            fields["id"] = fields["sent_id"]
        place: dict[str, Any] = {"file": path, "line": line, "instance": fields.get("id")}
        record = _make_record(convert_type(fields, kind, **place), task, is_gold, place)
        if (first := seen.setdefault(record.id, line)) != line:
            raise DataError(f"expected each id once, found it on line {first} as well", field="id", **place)
        records.append(record)
    if not records:
        raise DataError("expected a record a line, found an empty file", file=path, line=1)
    return records


def _make_record(found: Any, task: Task, is_gold: bool, place: Mapping[str, Any]) -> Record:
    if found.sample_type not in (None, *SAMPLE_TYPES):
        message = f"expected 'ori' or 'disturb', found {show(found.sample_type)}"
        raise DataError(message, field="sample_type", **place)
    rel_ids = None if found.rel_ids is None else [str(rel_id) for rel_id in found.rel_ids]
    if rel_ids and (str(found.id) in rel_ids or len(set(rel_ids)) != len(rel_ids)):
        message = f"expected the ids of other records, each once, found {show(rel_ids)}"
        raise DataError(message, field="rel_ids", **place)
    tokens: list[Any] | None = [getattr(found, name) for name in task.sequences]
    if tokens and None in tokens:
        tokens = found.sent_token if is_gold and task.name == "similarity" else None
    texts = {column: text for column, name in task.texts.items() if (text := getattr(found, name)) is not None}
    if is_gold and found.sent_text is not None:
        sentences = [found.sent_text] if isinstance(found.sent_text, str) else found.sent_text
        columns = task.texts if task.name == "similarity" else ("context",)
        texts = dict(zip(columns, sentences, strict=False)) | texts
    record = Record(str(found.id), place["line"], texts, tokens, found.sample_type, rel_ids)
    if not is_gold:
        if missing := record.list_missing(task):
            raise DataError(f"expected a value, found no {' and no '.join(missing)}", field=missing[0], **place)
        return record
    answer = _choose_answer(found) if task.name == "mrc" else None
    label = None if answer is None else int(bool(answer))
    if task.name != "mrc":
        label = _read_label(found, LABEL_NAMES[task.name], place)
    rationales = _read_rationales(found, len(task.sequences), place)
    return replace(record, label=label, answer=answer, rationale_ids=rationales)


def _read_label(found: Any, names: Sequence[str], place: Mapping[str, Any]) -> int | None:
    """Return the label, 0 or 1, which may be given as a string; None if it is absent."""
    value = found.label if found.sent_label is None else found.sent_label
    if value in (None, "0", "1") or (type(value) is int and value in (0, 1)):
        return None if value is None else int(value)
    message = f"expected 0 ({names[0]}) or 1 ({names[1]}), found {show(value)}"
    raise DataError(message, field="label" if found.sent_label is None else "sent_label", **place)


def _choose_answer(found: Any) -> str | None:
    """Return the first answer; "" if the gold has an empty one; None without the field."""
    for value in (found.answer, found.answers, found.sent_label):
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return value[0] if value else ""
    return None


def _read_rationales(found: Any, sequences: int, place: Mapping[str, Any]) -> list[list[list[int]]]:
    """Return the rationale sets of each sequence, from one, two or three levels of lists."""
    names = [name for name in GOLD_FIELDS[:2] if getattr(found, name) is not None][:1]
    if not names and sequences == 2 and None not in (found.rationale_q_idx, found.rationale_t_idx):
        names = list(GOLD_FIELDS[2:])
    if not names:
        raise DataError(f"expected rationales ({', '.join(GOLD_FIELDS)}), found none of these fields", **place)
    result = []
    for name in names:
        value = getattr(found, name)
        depth = _measure_depth(value)
        if depth == 1:
            value = [[value]] if value else [[]]
        elif depth == 2:
            value = [value]
        for sets in convert_type(value, list[list[list[int | str]]], name, **place):
            for index in (index for chosen in sets for index in chosen):
                if not re.fullmatch("[0-9]{1,9}", str(index)):
                    raise DataError(f"expected the index of a token, found {show(index)}", field=name, **place)
            result.append([[int(index) for index in chosen] for chosen in sets])
    if len(result) != sequences:
        raise DataError(f"expected {sequences} sequences, found {len(result)}", field=names[0], **place)
    return result


def _measure_depth(value: Any) -> int:
    return 1 + max(map(_measure_depth, value), default=0) if isinstance(value, list) else 0
