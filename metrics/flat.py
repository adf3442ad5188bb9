"""Predictions and references as flat arrays with sizes, without a Python object per token or span.

The size of an absent (or null) field is -1. `concatenate` joins batches and merges their vocabularies of docids and
labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, TypeVar

import numpy as np

from eraser_hub.schema.instance import (
    ANSWERED,
    ERASED,
    HARD_FIELD,
    LABELLED,
    LIST_FIELDS,
    NUMBER_FIELDS,
    OUTCOME_FIELD,
    SCORE_FIELDS,
    SOFT_FIELDS,
)

from .columns import FlatColumns
from .spans import expand_ranges

Item = TypeVar("Item")


@dataclass(eq=False)
class PickedItems(Sequence[Item]):
    """Some items of a sequence, by place.

    Attributes:
        items: the sequence.
        rows: the places of the items in it.
    """

    items: Sequence[Item]
    rows: np.ndarray

    def __len__(self) -> int:
        return self.rows.size

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        return self.items[int(self.rows[at])]


@dataclass(eq=False)
class Words(Sequence[str]):
    """Vocabulary: the keys of {word: number, from 0 in order}, which may grow."""

    numbers: Mapping[str, int]
    _words: tuple[str, ...] = ()  # garbage collection does not walk through a tuple of strings

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        if len(self._words) != len(self.numbers):
            self._words = tuple(self.numbers)
        return self._words[at]


@dataclass
class FlatRecord:
    """Flat record of n instances or annotations.

    Attributes:
        CODED: array of codes -> its vocabulary.
        SHIFTED: array of row numbers -> the field of these rows.
        LABELLED: the matrices with a column per label.
    """

    ids: Sequence[str]
    docids: Sequence[str]
    labels: Sequence[str]
    classification: np.ndarray  # (n,) into labels; -1: absent

    CODED: ClassVar[Mapping[str, str]]
    SHIFTED: ClassVar[Mapping[str, str]]
    LABELLED: ClassVar[Sequence[str]]


@dataclass
class Predictions(FlatRecord):
    """Flat record of n instances with m (instance, document) rationales."""

    instance: np.ndarray  # (m,) the instance of each rationale
    doc: np.ndarray  # (m,) into docids
    answered: np.ndarray  # (n,) 0: no answer, and no other field
    rationales: np.ndarray  # (n,) number of rationales; -1: the field is absent
    hard: np.ndarray  # (m,) number of spans; -1: absent
    start: np.ndarray
    end: np.ndarray
    soft: np.ndarray  # (m,) number of token scores; -1: absent
    soft_scores: np.ndarray
    sentence: np.ndarray  # (m,) number of sentence scores; -1: absent
    sentence_scores: np.ndarray
    full: np.ndarray  # (n, labels); NaN: no such label in the scores; a row of NaN: absent
    comprehensiveness: np.ndarray
    sufficiency: np.ndarray
    null: np.ndarray
    numbers: np.ndarray  # (n, NUMBER_FIELDS) NaN: absent
    thresholds: np.ndarray  # (n,) number of thresholded scores; -1: absent
    threshold: np.ndarray
    threshold_comprehensiveness: np.ndarray  # (.., labels)
    threshold_sufficiency: np.ndarray
    draws: np.ndarray  # (n,) number of random rationales; -1: absent
    draw_comprehensiveness: np.ndarray  # (.., labels)
    draw_sufficiency: np.ndarray

    CODED: ClassVar = {"doc": "docids", "classification": "labels"}
    SHIFTED: ClassVar = {"instance": "ids"}
    LABELLED: ClassVar = LABELLED

    def number(self, name: str) -> np.ndarray:
        """Return a number of `schema.instance.NUMBER_FIELDS` for each instance, float64 (n,); NaN: absent."""
        return self.numbers[:, list(NUMBER_FIELDS).index(name)]


@dataclass
class References(FlatRecord):
    """Flat record of n annotations with their documents, evidence groups and evidences."""

    document_instance: np.ndarray  # (d,) the annotation of the document; -1: all annotations
    document: np.ndarray  # (d,) into docids
    tokens: np.ndarray  # (d,)
    sentences: np.ndarray  # (d,)
    first_sentence: np.ndarray  # (d,) the place of its first sentence in sentence_tokens
    sentence_tokens: np.ndarray  # tokens of each sentence, documents one after another
    group_instance: np.ndarray  # (g,) the annotation of each evidence group
    group: np.ndarray  # (e,) the group of each evidence
    doc: np.ndarray  # (e,) into docids
    start: np.ndarray
    end: np.ndarray
    start_sentence: np.ndarray
    end_sentence: np.ndarray

    CODED: ClassVar = {"classification": "labels", "document": "docids", "doc": "docids"}
    SHIFTED: ClassVar = {
        "document_instance": "ids",
        "group_instance": "ids",
        "group": "group_instance",
        "first_sentence": "sentence_tokens",
    }
    LABELLED: ClassVar = ()

    def take(self, rows: np.ndarray) -> References:
        """Return some annotations with their evidences, numbered by their places in ``rows``, without documents."""
        ends = np.stack([rows, rows + 1]).astype(self.group_instance.dtype)
        group_instance, groups = expand_ranges(*np.searchsorted(self.group_instance, ends))
        ends = np.stack([groups, groups + 1]).astype(self.group.dtype)
        group, evidences = expand_ranges(*np.searchsorted(self.group, ends))
        columns = {name: getattr(self, name)[evidences] for name in EVIDENCE_COLUMNS}
        nothing = np.zeros(0, dtype=np.int64)
        return References(
            ids=PickedItems(self.ids, rows),
            docids=self.docids,
            labels=self.labels,
            classification=self.classification[rows].astype(np.int64),
            group_instance=group_instance,
            group=group,
            # a chunk is small enough for 64 bits; products of its numbers need them
            **{name: column.astype(np.int64) for name, column in columns.items()},
            **dict.fromkeys(DOCUMENT_COLUMNS, nothing),
        )


EVIDENCE_COLUMNS = ("doc", "start", "end", "start_sentence", "end_sentence")
DOCUMENT_COLUMNS = ("document_instance", "document", "tokens", "sentences", "first_sentence", "sentence_tokens")


Record = TypeVar("Record", bound=FlatRecord)


def make_blank(kind: type[Record], ids: Sequence[str]) -> Record:
    """Return instances (answered) or annotations that have ids and nothing else: no labels, other arrays empty."""
    columns: dict[str, Sequence[str] | np.ndarray] = {
        item.name: () if item.type == "Sequence[str]" else np.zeros(0, dtype=np.int64) for item in fields(kind)
    }
    columns |= {"ids": ids, "classification": np.full(len(ids), -1)}
    if "answered" in columns:
        columns["answered"] = np.ones(len(ids), dtype=np.int64)
        columns["numbers"] = np.full((len(ids), len(NUMBER_FIELDS)), np.nan)
    return kind(**columns)  # type: ignore[arg-type]


_HARD = f"rationales.{HARD_FIELD}"
TABLES = SCORE_FIELDS | {
    f"{entry}_{side}": f"{field}.{SCORE_FIELDS[side]}" for field, entry in LIST_FIELDS.values() for side in ERASED
}
SIZES = {"rationales": "rationales", "hard": _HARD}
SIZES |= {name: f"rationales.{soft.field}" for name, soft in SOFT_FIELDS.items()}
SIZES |= {name: several.field for name, several in LIST_FIELDS.items()}
_VALUES = {
    "classification": "classification",
    "doc": "rationales.docid",
    "start": f"{_HARD}.start_token",
    "end": f"{_HARD}.end_token",
    "threshold": f"{LIST_FIELDS['thresholds'].field}.threshold",
    **{f"{name}_scores": f"rationales.{soft.field}" for name, soft in SOFT_FIELDS.items()},
}
_OBJECTS = {number.field.partition(".")[0] for number in NUMBER_FIELDS.values()}
# the fields of an instance that scores of instances read, for `columns`
PREDICTION_PATHS = frozenset(
    ["annotation_id", OUTCOME_FIELD, *TABLES.values(), *SIZES.values(), *_VALUES.values(), *_OBJECTS]
) | {number.field for number in NUMBER_FIELDS.values()}


def to_predictions(columns: FlatColumns) -> Predictions:
    """Return the flat predictions of instances' columns (of `PREDICTION_PATHS`)."""
    answers = [*(word == ANSWERED for word in columns.words[OUTCOME_FIELD]), True]
    names = [columns.words["classification"], *(labels for labels, _ in columns.tables.values())]
    merged, places = _merge_vocabularies(names)
    tables = {
        path: matrix if own == merged else _widen(matrix, codes, len(merged))
        for (path, (own, matrix)), codes in zip(columns.tables.items(), places[1:], strict=True)
    }
    sizes = columns.sizes["rationales"]
    return Predictions(
        ids=columns.ids,
        docids=columns.words["rationales.docid"],
        labels=merged,
        instance=np.repeat(np.arange(len(columns.ids)), np.maximum(sizes, 0)),
        answered=np.array(answers, dtype=np.int64)[columns.values[OUTCOME_FIELD]],
        numbers=np.column_stack([columns.values[number.field] for number in NUMBER_FIELDS.values()]),
        **{name: columns.sizes[path] for name, path in SIZES.items()},
        **{name: columns.values[path] for name, path in _VALUES.items()},
        **{name: tables[path] for name, path in TABLES.items()},
    )


REFERENCE_FIELDS = ("annotation_id", "classification", "documents", "evidences")
_EVIDENCE = {name: f"evidences.{name}" for name in ("start_token", "end_token", "start_sentence", "end_sentence")}
TEXTS = ("documents.text",)
REFERENCE_PATHS = frozenset([*REFERENCE_FIELDS, *TEXTS, "documents.docid", "evidences.docid", *_EVIDENCE.values()])


def to_references(columns: FlatColumns) -> References:
    """Return the flat references of annotations' columns (of `REFERENCE_PATHS`); numbered labels are "\\0NUMBER"."""
    docids, (document, doc) = _merge_vocabularies([columns.words["documents.docid"], columns.words["evidences.docid"]])
    sizes, groups, texts = columns.sizes["evidences"], columns.sizes["evidences[]"], columns.texts["documents.text"]
    group_instance = np.repeat(np.arange(len(columns.ids), dtype=np.int32), np.maximum(sizes, 0))
    places = {name.replace("_token", ""): columns.values[path] for name, path in _EVIDENCE.items()}
    return References(
        ids=columns.ids,
        docids=docids,
        labels=columns.words["classification"],
        classification=columns.values["classification"],
        document_instance=np.repeat(np.arange(len(columns.ids)), np.maximum(columns.sizes["documents"], 0)),
        document=document[columns.values["documents.docid"]],
        tokens=texts.tokens,
        sentences=texts.sentences,
        first_sentence=np.cumsum(texts.sentences) - texts.sentences,
        sentence_tokens=texts.sentence_tokens,
        group_instance=group_instance,
        group=np.repeat(np.arange(groups.size, dtype=np.int32), np.maximum(groups, 0)),
        doc=doc[columns.values["evidences.docid"]],
        **places,
    )


def _merge_vocabularies(vocabularies: Sequence[Sequence[str]]) -> tuple[list[str], list[np.ndarray]]:
    """Return the union of vocabularies, and for each its codes in the union; code -1 stays -1."""
    codes: dict[str, int] = {}
    maps = [np.array([*(codes.setdefault(word, len(codes)) for word in words), -1]) for words in vocabularies]
    return list(codes), maps


def concatenate(parts: Sequence[Record]) -> Record:
    """Join records (at least one), in order."""
    if len(parts) == 1:
        return parts[0]
    kind = type(parts[0])
    vocabularies = {
        name: _merge_vocabularies([getattr(part, name) for part in parts])
        for name in {*kind.CODED.values(), *(["labels"] if kind.LABELLED else [])}
    }
    values: dict[str, Sequence[str] | np.ndarray] = {}
    for item in fields(kind):
        name = item.name
        columns = [getattr(part, name) for part in parts]
        if name in vocabularies:
            values[name] = vocabularies[name][0]
            continue
        if not isinstance(columns[0], np.ndarray):
            values[name] = [word for column in columns for word in column]
            continue
        if name in kind.CODED:
            maps = vocabularies[kind.CODED[name]][1]
            columns = [codes[column] for codes, column in zip(maps, columns, strict=True)]
        elif name in kind.SHIFTED:
            before = np.cumsum([0, *(len(getattr(part, kind.SHIFTED[name])) for part in parts[:-1])])
            columns = [
                np.where(column < 0, column, column + shift) for column, shift in zip(columns, before, strict=True)
            ]
        elif name in kind.LABELLED:
            words, maps = vocabularies["labels"]
            columns = [_widen(column, codes, len(words)) for column, codes in zip(columns, maps, strict=True)]
        values[name] = np.concatenate(columns)
    return kind(**values)  # type: ignore[arg-type]


def _widen(matrix: np.ndarray, codes: np.ndarray, width: int) -> np.ndarray:
    """Return the matrix with each column at its code of `_merge_vocabularies`, and NaN elsewhere."""
    out = np.full((matrix.shape[0], width), np.nan)
    out[:, codes[:-1]] = matrix
    return out
