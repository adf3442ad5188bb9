"""Public and gold files of the bilingual perturbation benchmark -> records, joined by id -> rows of one schema.

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
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from eraser_hub.conversion.readers import convert_type, read_json_lines
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


def read_records(path: Path, task: Task, is_gold: bool) -> list[dict[str, Any]]:
    """Return the records of a public file, or of a gold file in any of its released forms, by the columns of rows.

    What a record does not say is None: its texts, its ``tokens`` of each sequence, ``sample_type`` and ``rel_ids``. A
    gold record has ``label``, ``answer`` ("" if there is none) and ``rationale_ids`` too; ``position`` is the line.

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
    records: dict[str, dict[str, Any]] = {}
    for line, fields in read_json_lines(path):
        if is_gold and "sent_id" in fields:
            fields["id"] = fields["sent_id"]
        place: dict[str, Any] = {"file": path, "line": line, "instance": fields.get("id")}
        found: Any = convert_type(fields, kind, **place)
        name, rel_ids = str(found.id), None if found.rel_ids is None else [str(rel_id) for rel_id in found.rel_ids]
        if name in records:
            message = f"expected each id once, found it on line {records[name]['position']} as well"
            raise DataError(message, field="id", **place)
        if found.sample_type not in (None, *SAMPLE_TYPES):
            message = f"expected 'ori' or 'disturb', found {show(found.sample_type)}"
            raise DataError(message, field="sample_type", **place)
        if rel_ids and (name in rel_ids or len(set(rel_ids)) != len(rel_ids)):
            message = f"expected the ids of other records, each once, found {show(rel_ids)}"
            raise DataError(message, field="rel_ids", **place)
        tokens: list[Any] | None = [getattr(found, field) for field in task.sequences]
        if tokens and None in tokens:
            tokens = found.sent_token if is_gold and is_pair else None
        texts = {column: getattr(found, field) for column, field in task.texts.items()}
        if is_gold and found.sent_text is not None:
            sentences = [found.sent_text] if isinstance(found.sent_text, str) else found.sent_text
            given = dict(zip(texts if is_pair else ("context",), sentences, strict=False))
            texts = {column: given.get(column) if text is None else text for column, text in texts.items()}
        record = {"id": name, "position": line, **texts, "tokens": tokens, "sample_type": found.sample_type}
        records[name] = record = {**record, "rel_ids": rel_ids}
        if is_gold:
            record |= _read_label(found, task, place)
            record["rationale_ids"] = _read_rationales(found, len(task.sequences), place)
        elif missing := list_missing(record, task):
            raise DataError(f"expected a value, found no {' and no '.join(missing)}", field=missing[0], **place)
    if not records:
        raise DataError("expected a record a line, found an empty file", file=path, line=1)
    return [*records.values()]


def list_missing(record: Mapping[str, Any], task: Task, optional: Sequence[str] = ()) -> list[str]:
    """Return the columns that a row needs and the record does not have."""
    return [name for name in ("tokens", "sample_type", *task.texts) if record[name] is None and name not in optional]


def _read_label(found: Any, task: Task, place: Mapping[str, Any]) -> dict[str, Any]:
    """Return the label, 0 or 1, and the answer; each is None where the record does not say it."""
    if task.name == "mrc":  # the first answer; "" if the gold has an empty one
        given = (value for value in (found.answer, found.answers, found.sent_label) if isinstance(value, str | list))
        value = next(given, None)
        answer = next(iter(value), "") if isinstance(value, list) else value
        return {"label": None if answer is None else int(bool(answer)), "answer": answer}
    field = "label" if found.sent_label is None else "sent_label"
    value, names = getattr(found, field), LABEL_NAMES[task.name]
    if value not in (None, "0", "1") and (type(value) is not int or value not in (0, 1)):
        message = f"expected 0 ({names[0]}) or 1 ({names[1]}), found {show(value)}"
        raise DataError(message, field=field, **place)
    return {"label": None if value is None else int(value), "answer": None}


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


SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("language", pa.string()),
        ("task", pa.string()),
        ("title", pa.string()),
        ("context", pa.string()),
        ("question", pa.string()),
        ("sentence1", pa.string()),
        ("sentence2", pa.string()),
        ("tokens", pa.list_(pa.list_(pa.string()))),
        ("sample_type", pa.string()),
        ("rel_ids", pa.list_(pa.string())),
        ("original_id", pa.string()),
        ("label", pa.int64()),
        ("answer", pa.string()),
        ("rationale_ids", pa.list_(pa.list_(pa.list_(pa.int32())))),
        ("has_gold", pa.bool_()),
        ("num_tokens", pa.int32()),
        ("rationale_ratio", pa.float32()),
        ("position", pa.int32()),
    ]
)


def join(
    public: Sequence[dict[str, Any]], gold: Sequence[dict[str, Any]], task: Task, files: Mapping[str, Path]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Join public and gold records by id, in the order of the public file, then of the remaining gold records.

    Args:
        public: the records of the public file; none where there is no such file.
        gold: the same of the gold file.
        task: what they hold.
        files: ``public`` and ``gold`` -> their files.

    Returns:
        the records, and notes. Where ``rel_ids`` differ those of the gold are taken, and a note says so.

    Raises:
        DataError: tokens of the same id differ (the rationale would mark other tokens), an index lies outside the
            tokens, or a gold record without a public one lacks tokens, text or sample type.
    """
    golds = {record["id"]: record for record in gold}
    joined, other_tokens, other_rel_ids, notes = [], [], [], []
    for record in public:
        match = golds.pop(record["id"], None)
        if match is None:
            joined.append(record)
        elif match["tokens"] not in (None, record["tokens"]):
            other_tokens.append((record, match))
        else:
            row = {**match, **record, "sample_type": match["sample_type"] or record["sample_type"]}
            _check_indices(row, files["gold"], match["position"])
            if match["rel_ids"] is not None and match["rel_ids"] != record["rel_ids"]:
                words = f"{' '.join(record['rel_ids'] or ['none'])} -> {' '.join(match['rel_ids'])}"
                other_rel_ids.append(f"{record['id']}: {words}")
                row["rel_ids"] = match["rel_ids"]
            joined.append(row)
    if other_tokens:
        record, match = other_tokens[0]
        more = f" (and {len(other_tokens) - 1} more)" if other_tokens[1:] else ""
        message = (
            f"expected the tokens of {files['public']}:{record['position']}, which has the same id, "
            f"{show(record['tokens'])}, found {show(match['tokens'])}; if the files number their records differently, "
            "build the gold file alone"
        )
        raise DataError(message + more, file=files["gold"], line=match["position"], instance=match["id"])
    for match in golds.values():
        if missing := list_missing(match, task, OPTIONAL_TEXTS):
            message = f"expected a public record of the same id, or the gold's own {' and '.join(missing)}"
            raise DataError(message, file=files["gold"], line=match["position"], instance=match["id"])
        _check_indices(match, files["gold"], match["position"])
    if other_rel_ids:
        some = ", ".join(other_rel_ids[:10]) + (", .." if other_rel_ids[10:] else "")
        notes.append(f"rel_ids of public and gold file differ in {len(other_rel_ids)} records; the gold's win ({some})")
    if golds and public:
        notes.append(f"{len(golds)} gold records without a public one, appended in the gold's order")
    return [*joined, *golds.values()], notes


def _check_indices(record: Mapping[str, Any], file: Path, line: int) -> None:
    place: dict[str, Any] = {"file": file, "line": line, "instance": record["id"]}
    if len(record["tokens"]) != len(record["rationale_ids"]):
        message = f"expected {len(record['rationale_ids'])} lists of tokens, found {len(record['tokens'])}"
        raise DataError(message, field="sent_token", **place)
    for sets, sequence in zip(record["rationale_ids"], record["tokens"], strict=True):
        for index in (index for chosen in sets for index in chosen):
            if index >= len(sequence):
                message = f"expected an index below {len(sequence)}, the number of tokens, found {index}"
                raise DataError(message, field="rationales", **place)


def make_rows(records: Sequence[Mapping[str, Any]], task: Task) -> list[dict[str, Any]]:
    """Return the rows of joined records; ``original_id`` is the first original that names a record."""
    originals: dict[str, str] = {}
    for record in records:
        for rel_id in record["rel_ids"] or ():
            originals.setdefault(rel_id, record["id"])
    rows = []
    for record in records:
        num_tokens, gold = sum(map(len, record["tokens"])), record.get("rationale_ids")
        marked = sum(len(set().union(*sets)) for sets in gold or ())
        derived = {
            "language": task.language,
            "task": task.name,
            "original_id": originals.get(record["id"]),
            "has_gold": gold is not None,
            "num_tokens": num_tokens,
            "rationale_ratio": None if gold is None or not num_tokens else marked / num_tokens,
        }
        rows.append({**record, **derived})
    return rows
