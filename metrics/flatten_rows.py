"""Predictions and references that come as dicts: taken apart one by one, type-checked on the way, into flat arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import chain
from operator import itemgetter
from typing import Any, Generic, TypeGuard

import numpy as np

from .cells import as_list, as_scalar
from .fields import (
    ANSWERED,
    ERASED,
    HARD_FIELD,
    INSTANCE,
    LABELLED,
    LEAVE_ONE_OUT,
    LIST_FIELDS,
    NUMBER_FIELDS,
    OUTCOME_FIELD,
    SCORE_FIELDS,
    SOFT_FIELDS,
)
from .flat import Predictions, Record, References
from .offences import Offences, cut
from .strangers import Strangers, misspelt, nearly
from .tokens import sentence_sizes

# what scores read of a row
REFERENCE_FIELDS = ("annotation_id", "classification", "documents", "evidences")
# no offset in tokens or sentences comes near it; those of references are kept in 32 bits
FAR = 2**31 - 1
NUMBERS = frozenset((int, float))
_start, _end = itemgetter("start_token"), itemgetter("end_token")


def _ints() -> array[int]:
    return array("q")


def _short() -> array[int]:
    return array("i")


def flat_array(values: array[int] | array[float]) -> np.ndarray:
    """The array's own memory, which nobody appends to any more."""
    return np.frombuffer(values, dtype=values.typecode) if values else np.zeros(0, dtype=values.typecode)


class ScoreTable:
    """Rows of {label: probability}, as flat values and the layout (tuple of labels) of each row."""

    def __init__(self, layouts: dict[tuple[str, ...], int]) -> None:
        self.layouts, self.layout, self.values = layouts, array("i"), array("d")

    def add(self, scores: Mapping[str, float | None] | None, checked: bool = False) -> str | None:
        """Append a row; returns what is wrong with it, if something is.

        Args:
            checked: whoever decoded the scores has checked that they are numbers or None, by label.
        """
        if scores is None:
            self.layout.append(-1)
            return None
        if checked and scores:
            try:  # fromlist appends all or nothing
                self.values.fromlist([*scores.values()])  # type: ignore[list-item]
            except (TypeError, OverflowError):  # a None: below
                pass
            else:
                self.layout.append(self.layouts.setdefault(tuple(scores), len(self.layouts)))
                return None
        if not checked and not isinstance(scores, Mapping):
            self.layout.append(-1)
            return f"expected an object of label: probability, found {cut(scores)}"
        values = scores.values()
        if not values:
            self.layout.append(-1)
            return "expected a probability for each label, found none"
        try:
            # a label that is None there is absent: Arrow's structs name every label in every row
            if any(p is None for p in values):
                scores = {label: p for label, p in scores.items() if p is not None}
                if not scores:
                    self.layout.append(-1)
                    return None
                values = scores.values()
            layout = self.layouts.setdefault(tuple(scores), len(self.layouts))
            if not checked and not all(map(_is_number, values)):
                raise TypeError
            self.values.extend(values)  # type: ignore[arg-type]
        except (TypeError, OverflowError):
            self.layout.append(-1)
            bad = next((p for p in values if not _is_number(p)), scores)
            return f"expected probabilities, found {cut(bad)}"
        self.layout.append(layout)
        return None

    def add_all(self, several: Sequence[dict[str, float | None] | None]) -> bool:
        """Append checked rows, all at once; False, and nothing is appended, where they are not all alike."""
        if not any(several):
            if any(scores is not None for scores in several):
                return False
            self.layout.frombytes(np.full(len(several), -1, dtype=np.intc).tobytes())
            return True
        try:
            layouts = {*map(tuple, several)}  # type: ignore[arg-type]
            if len(layouts) > 1 or () in layouts:
                return False
            # fromlist appends all or nothing
            self.values.fromlist(list(chain.from_iterable(map(dict.values, several))))  # type: ignore[arg-type]
        except TypeError:  # a None
            return False
        number = self.layouts.setdefault(layouts.pop(), len(self.layouts))
        self.layout.frombytes(np.full(len(several), number, dtype=np.intc).tobytes())
        return True

    def matrix(self, labels: dict[str, int]) -> np.ndarray:
        """float64 (rows, labels), NaN where a row does not name a label (a NaN that was given becomes infinite)."""
        layout, values = flat_array(self.layout), flat_array(self.values)
        self.layout, self.values = array("i"), array("d")
        values[np.isnan(values)] = np.inf
        names = {number: name for name, number in self.layouts.items()}
        if (
            layout.size
            and layout[0] >= 0
            and (layout == layout[0]).all()
            and list(names[int(layout[0])]) == list(labels)
        ):
            return values.reshape(layout.size, len(labels))
        out = np.full((layout.size, len(labels)), np.nan)
        sizes = np.array([len(names[k]) for k in range(len(names))] + [0], dtype=np.int64)[layout]
        first = np.cumsum(sizes) - sizes
        for number in np.unique(layout[layout >= 0]).tolist():
            rows = np.flatnonzero(layout == number)
            columns = np.array([labels[label] for label in names[number]], dtype=np.int64)
            out[rows[:, None], columns] = values[first[rows][:, None] + np.arange(columns.size)]
        return out


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


class Flattener(ABC, Generic[Record]):
    """What both sides have in common: a vocabulary of docids and of labels, and growing arrays."""

    side: str

    def __init__(self, offences: Offences) -> None:
        self.offences, self.n = offences, 0
        self.ids: list[str] = []
        self.docs: dict[str, int] = {}
        self.labels: dict[str, int] = {}

    @abstractmethod
    def add(self, row: Mapping[str, Any]) -> None:
        """Append one row."""

    @abstractmethod
    def finish(self) -> Record:
        """All that was added."""

    def say(self, where: str, message: str, rule: str) -> None:
        """Tell an offence of the row that is being added."""
        self.offences.say(self.side, self.n, where, message, rule)

    def _identified(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """The row, its id appended."""
        name = row.get("annotation_id")
        if type(name) is not str:
            name = as_scalar(name)
            if isinstance(name, str) or _is_integer(name):
                name = str(name)
            else:
                self.say("annotation_id", f"expected a string or an integer, found {cut(name)}", "type")
                name = ""
        self.ids.append(name)
        return row

    def _record(self, kind: type[Record], **columns: np.ndarray) -> Record:
        """The arrays of this flattener under the names that ``kind`` has for them, and further columns."""
        for item in fields(kind):
            column = getattr(self, item.name, None)
            if isinstance(column, array):
                columns[item.name] = flat_array(column)
        return kind(ids=self.ids, docids=list(self.docs), labels=list(self.labels), **columns)


class PredictionFlattener(Flattener[Predictions]):
    """Takes ERASER instances one by one; `finish` gives the `flat.Predictions`.

    Args:
        offences: where what is wrong is told; the instance is kept with the field absent.
    """

    side = "prediction"

    def __init__(self, offences: Offences) -> None:
        super().__init__(offences)
        self.layouts: dict[tuple[str, ...], int] = {}
        self.strangers, self.numbered = Strangers(), False
        self.answered = _ints()
        self.instance, self.doc, self.rationales, self.classification = _ints(), _ints(), _ints(), _ints()
        self.hard, self.start, self.end = _ints(), _ints(), _ints()
        self.soft, self.sentence, self.thresholds, self.draws = _ints(), _ints(), _ints(), _ints()
        self.soft_scores, self.sentence_scores = array("d"), array("d")
        self.leave_one_out, self.leave_one_out_scores = _ints(), array("d")
        self.number, self.threshold = array("d"), array("d")
        self.tables = {name: ScoreTable(self.layouts) for name in LABELLED}
        # field of a rationale -> its sizes and its scores
        self.soft_fields = [
            (soft.field, getattr(self, name), getattr(self, f"{name}_scores")) for name, soft in SOFT_FIELDS.items()
        ]

    def add(self, row: Mapping[str, Any]) -> None:
        """Append one instance (unknown fields are counted)."""
        row = self._identified(row)
        self.strangers.look(row, INSTANCE, self._say_misspelt)
        get = row.get
        outcome = get(OUTCOME_FIELD)
        self.answered.append(outcome is None or outcome == ANSWERED)
        if outcome is not None and not isinstance(outcome, str):
            self.say(OUTCOME_FIELD, f"expected a string, found {cut(outcome)}", "type")
        rationales = get("rationales")
        if rationales is None:
            self.rationales.append(-1)
        elif (several := as_list(rationales)) is None:
            self.rationales.append(-1)
            self.say("rationales", f"expected a list, found {cut(rationales)}", "type")
        else:
            before = len(self.doc)
            for position, rationale in enumerate(several):
                self._rationale(rationale, position)
            self.rationales.append(len(self.doc) - before)
        label = get("classification")
        if label is None:
            self.classification.append(-1)
        elif isinstance(label, str):
            self.classification.append(self.labels.setdefault(str(label), len(self.labels)))
        else:
            self.classification.append(-1)
            if not (self.numbered and _is_integer(label)):
                self.say("classification", f"expected a label (a string), found {cut(label)}", "type")
            self.numbered = self.numbered or _is_integer(label)  # told once: then all are
        for table, where in SCORE_FIELDS.items():
            self._scores(table, get(where), where)
        self._numbers(row)
        if (values := get(LEAVE_ONE_OUT)) is None:
            self.leave_one_out.append(-1)
        else:
            self._floats(values, LEAVE_ONE_OUT, self.leave_one_out, self.leave_one_out_scores)
        for name, (where, entry) in LIST_FIELDS.items():
            self._several(where, get(where), entry, getattr(self, name))
        self.n += 1

    def _say_misspelt(self, where: str, message: str) -> None:
        self.say(where, message, "key-unknown")

    def _rationale(self, rationale: object, position: int) -> None:
        where = f"rationales[{position}]"
        if type(rationale) is not dict and not isinstance(rationale, Mapping):
            self.say(where, f"expected an object, found {cut(rationale)}", "type")
            return
        docid = rationale.get("docid")
        if type(docid) is not str:
            if not _is_integer(docid):
                self.say(f"{where}.docid", f"expected a string, found {cut(docid)}", "type")
                return
            docid = str(docid)
        self.instance.append(self.n)
        self.doc.append(self.docs.setdefault(docid, len(self.docs)))
        hard = rationale.get(HARD_FIELD)
        if hard is None:
            self.hard.append(-1)
        else:
            self._spans(hard, f"{where}.{HARD_FIELD}")
        for field, sizes, values in self.soft_fields:
            scores = rationale.get(field)
            if scores is None:
                sizes.append(-1)
            else:
                self._floats(scores, f"{where}.{field}", sizes, values)

    def _spans(self, value: Any, where: str) -> None:
        hard = as_list(value)
        if hard is None:
            self.hard.append(-1)
            self.say(where, f"expected a list of spans, found {cut(value)}", "type")
            return
        size = len(self.start)
        try:
            starts, ends = [*map(_start, hard)], [*map(_end, hard)]
            if not {*map(type, starts), *map(type, ends)} <= {int}:
                for position, value in enumerate([*starts, *ends]):
                    if not _is_integer(value):
                        name = "start_token" if position < len(starts) else "end_token"
                        place = f"{where}[{position % len(starts)}].{name}"
                        self.say(place, f"expected an integer, found {cut(value)}", "type")
                        self.hard.append(0)
                        return
            self.start.extend(starts)
            self.end.extend(ends)
            self.hard.append(len(starts))
        except OverflowError:
            del self.start[size:], self.end[size:]
            self.hard.append(0)
            self.say(where, "expected offsets within the document, found one beyond 64 bits", "range")
        except (TypeError, KeyError, IndexError, AttributeError):
            del self.start[size:], self.end[size:]
            self.hard.append(0)
            self.say(where, f"expected spans with start_token and end_token, found {cut(hard)}", "type")

    def _floats(self, value: Any, where: str, sizes: array[int], values: array[float]) -> None:
        if type(value) is np.ndarray and value.ndim == 1 and value.dtype.kind in "fiu":
            values.frombytes(np.ascontiguousarray(value, dtype=np.float64).tobytes())
            sizes.append(value.size)
            return
        scores = as_list(value)
        if scores is None:
            sizes.append(-1)
            self.say(where, f"expected a list of numbers, found {cut(value)}", "type")
            return
        try:
            if not {*map(type, scores)} <= NUMBERS:
                wrong = next(((k, x) for k, x in enumerate(scores) if not _is_number(x)), None)
                if wrong is not None:
                    self.say(f"{where}[{wrong[0]}]", f"expected a number, found {cut(wrong[1])}", "type")
                    sizes.append(-1)
                    return
            values.fromlist(scores)
            sizes.append(len(scores))
        except OverflowError:
            self.say(where, "expected finite numbers, found one beyond the range of a float", "range")
            sizes.append(-1)

    def _scores(self, table: str, scores: Any, where: str) -> None:
        wrong = self.tables[table].add(scores)
        if wrong is not None:
            self.say(where, wrong, "probabilities")

    def _numbers(self, row: Mapping[str, Any]) -> None:
        for number in NUMBER_FIELDS.values():
            value: Any = row
            for depth, name in enumerate(number.path):
                value = value.get(name)
                if value is None:
                    break
                if depth + 1 < len(number.path) and not isinstance(value, Mapping):
                    self.say(name, f"expected an object, found {cut(value)}", "type")
                    value = None
                    break
            self._number(value, number.field)

    def _number(self, value: Any, where: str) -> None:
        if value is None or not (type(value) is float or _is_number(value)):
            self.number.append(np.nan)
            if value is not None:
                self.say(where, f"expected a number, found {cut(value)}", "type")
            return
        try:
            self.number.append(value)
        except OverflowError:
            self.number.append(np.inf)

    def _several(self, where: str, value: Any, kind: str, sizes: array[int]) -> None:
        entries = None if value is None else as_list(value)
        if entries is None:
            sizes.append(-1)
            if value is not None:
                self.say(where, f"expected a list, found {cut(value)}", "type")
            return
        sizes.append(len(entries))
        tables = [(SCORE_FIELDS[side], self.tables[f"{kind}_{side}"]) for side in ERASED]
        for position, entry in enumerate(entries):
            if type(entry) is not dict and not isinstance(entry, Mapping):
                self.say(f"{where}[{position}]", f"expected an object, found {cut(entry)}", "type")
                entry = {}
            if kind == "threshold":
                threshold = entry.get("threshold")
                if type(threshold) is float or _is_number(threshold):
                    self.threshold.append(threshold)
                else:
                    self.threshold.append(np.nan)
                    self.say(f"{where}[{position}].threshold", f"expected a number, found {cut(threshold)}", "type")
            for key, table in tables:
                wrong = table.add(entry.get(key))
                if wrong is not None:
                    self.say(f"{where}[{position}].{key}", wrong, "probabilities")

    def finish(self) -> Predictions:
        """All that was added."""
        for layout in self.layouts:
            for label in layout:
                if type(label) is not str:
                    self.offences.say(
                        "prediction", 0, "classification_scores", f"label {cut(label)} is no string", "type"
                    )
                self.labels.setdefault(label, len(self.labels))
        numbers = flat_array(self.number).reshape(-1, len(NUMBER_FIELDS))
        tables = {name: table.matrix(self.labels) for name, table in self.tables.items()}
        return self._record(Predictions, numbers=numbers, **tables)


class ReferenceFlattener(Flattener[References]):
    """Takes dataset rows (or annotations) one by one; `finish` gives the `flat.References`.

    Args:
        offences: where what is wrong is told.
        label_names: names of the integers in ``classification`` (ClassLabel).
        needed: the fields that every row must have.
    """

    side = "reference"

    def __init__(
        self,
        offences: Offences,
        label_names: Sequence[str] | None = None,
        needed: Sequence[str] = (),
    ) -> None:
        super().__init__(offences)
        self.label_names, self.needed = label_names, needed
        self.labels = {name: k for k, name in enumerate(label_names or ())}
        self.classification, self.group_instance, self.group, self.doc = _short(), _short(), _short(), _short()
        self.start, self.end, self.start_sentence, self.end_sentence = _short(), _short(), _short(), _short()
        self.document_instance, self.document = _ints(), _ints()
        self.tokens, self.sentences, self.sentence_tokens = _ints(), _ints(), _ints()

    def add(self, row: Mapping[str, Any]) -> None:
        """Append one row (columns beyond those that scores need are left alone)."""
        row = self._identified(row)
        for field in REFERENCE_FIELDS:
            self._look_for(field, row)
        self._label(row.get("classification"))
        for position, document in enumerate(self._list(row.get("documents"), "documents", "documents")):
            self._document(document, position)
        for number, group in enumerate(self._list(row.get("evidences"), "evidences", "evidence groups")):
            self.group_instance.append(self.n)
            for position, evidence in enumerate(self._list(group, f"evidences[{number}]", "evidences", nothing=False)):
                self._evidence(evidence, number, position)
        self.n += 1

    def _look_for(self, field: str, row: Mapping[str, Any]) -> None:
        """Tell where a field is misspelt, or needed and not there."""
        if row.get(field) is not None:
            return
        wrong = [name for name in row if name not in REFERENCE_FIELDS and nearly(name, [field])]
        if wrong:
            self.say(cut(wrong[0])[1:-1], misspelt(field), "key-unknown")
        elif field in self.needed:
            found = cut(row.get(field)) if field in row else "none"
            self.say(field, f"expected it in every row, found {found}", "key-missing")

    def _list(self, value: Any, where: str, what: str, nothing: bool = True) -> list[Any]:
        """A list's items; none where it is null and that may be."""
        items = [] if value is None and nothing else as_list(value)
        if items is None:
            self.say(where, f"expected a list of {what}, found {cut(value)}", "type")
        return items or []

    def _label(self, label: object) -> None:
        if label is None:
            self.classification.append(-1)
        elif isinstance(label, str):
            if self.label_names is not None and label not in self.label_names:
                names = ", ".join(self.label_names)
                self.say("classification", f"expected one of {names}, found {cut(label)}", "label-unknown")
            self.classification.append(self.labels.setdefault(label, len(self.labels)))
        elif isinstance(label, (int, np.integer)) and not isinstance(label, bool):
            if self.label_names is None:  # whoever joins the batches may know the names: `checks.name_labels`
                self.classification.append(
                    -1 if label == -1 else self.labels.setdefault(f"\0{label}", len(self.labels))
                )
            elif label == -1 or not 0 <= label < len(self.label_names):
                if label != -1:  # -1 is a ClassLabel's "no label"
                    names = f"0 to {len(self.label_names) - 1}"
                    self.say("classification", f"expected {names}, found {label}", "label-unknown")
                self.classification.append(-1)
            else:
                self.classification.append(self.labels[self.label_names[int(label)]])
        else:
            self.say("classification", f"expected a label, found {cut(label)}", "type")
            self.classification.append(-1)

    def _document(self, document: object, position: int) -> None:
        where = f"documents[{position}]"
        docid = document.get("docid") if isinstance(document, Mapping) else None
        if not isinstance(document, Mapping) or not isinstance(document.get("text"), str):
            self.say(where, f"expected docid and text, found {cut(document)}", "type")
            return
        if not isinstance(docid, str) and not _is_integer(docid):
            self.say(f"{where}.docid", f"expected a string, found {cut(docid)}", "type")
            return
        self.document_instance.append(self.n)
        self.document.append(self.docs.setdefault(str(docid), len(self.docs)))
        sizes = sentence_sizes(document["text"])
        self.tokens.append(sum(sizes))
        self.sentences.append(len(sizes))
        self.sentence_tokens.extend(sizes)

    def _evidence(self, evidence: Any, number: int, position: int) -> None:
        try:
            docid, start, end = evidence["docid"], evidence["start_token"], evidence["end_token"]
            first, last = evidence.get("start_sentence"), evidence.get("end_sentence")
        except (TypeError, KeyError, AttributeError, IndexError):
            where = f"evidences[{number}][{position}]"
            self.say(where, f"expected docid, start_token and end_token, found {cut(evidence)}", "type")
            return
        if not isinstance(docid, str) and not _is_integer(docid):
            self.say(f"evidences[{number}][{position}].docid", f"expected a string, found {cut(docid)}", "type")
            return
        first, last = -1 if first is None else first, -1 if last is None else last
        values = (start, end, first, last)
        if not (type(start) is type(end) is type(first) is type(last) is int):
            where = f"evidences[{number}][{position}]"
            for name, value in zip(("start_token", "end_token", "start_sentence", "end_sentence"), values, strict=True):
                if not _is_integer(value):
                    self.say(f"{where}.{name}", f"expected an integer, found {cut(value)}", "type")
                    return
        if not (-FAR < start < FAR and -FAR < end < FAR and -FAR < first < FAR and -FAR < last < FAR):
            names = ("start_token", "end_token", "start_sentence", "end_sentence")
            name, value = next(pair for pair in zip(names, values, strict=True) if not -FAR < pair[1] < FAR)
            where = f"evidences[{number}][{position}].{name}"
            self.say(where, f"expected an offset within the document, found {cut(value)}", "range")
            return
        self.doc.append(self.docs.setdefault(docid if type(docid) is str else str(docid), len(self.docs)))
        self.group.append(len(self.group_instance) - 1)
        self.start.append(start)
        self.end.append(end)
        self.start_sentence.append(first)
        self.end_sentence.append(last)

    def finish(self) -> References:
        """All that was added."""
        sizes = flat_array(self.sentences)
        return self._record(References, first_sentence=np.cumsum(sizes) - sizes)
