"""Predictions and references, flattened: dicts in, flat arrays with sizes out, and the bytes they travel in.

An ERASER instance (a model's output for one annotation) or a dataset row is taken apart once, type-checked on the way,
and appended to growing arrays; nothing is kept as a Python object per token or span. Batches are concatenated, with
their vocabularies of docids and labels merged. A field's size is -1 where it is absent (null is absent).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

MOST_KEPT = 10
# no offset in tokens or sentences comes near it
FAR = 2**40
SCORE_FIELDS = {
    "full": "classification_scores",
    "comprehensiveness": "comprehensiveness_classification_scores",
    "sufficiency": "sufficiency_classification_scores",
    "null": "null_classification_scores",
}
ERASED = ("comprehensiveness", "sufficiency")
NUMBERS = frozenset((int, float))
_start, _end = itemgetter("start_token"), itemgetter("end_token")


class Offence(NamedTuple):
    """One thing wrong: in which input ("prediction" or "reference"), at which row, in which field, and what."""

    side: str
    row: int
    field: str
    message: str


class Offences(list):  # of Offence
    """Keeps the first few offences and counts them all."""

    total = 0

    def say(self, side: str, row: int, where: str, message: str) -> None:
        self.total += 1
        if len(self) < MOST_KEPT:
            self.append(Offence(side, int(row), where, message))

    def say_all(self, side: str, rows: np.ndarray, where: str, message: Any) -> None:
        """One offence per row; ``message`` is a text, or a function of the position that gives it."""
        for position in range(min(rows.size, max(MOST_KEPT - len(self), 0))):
            told = message(position) if callable(message) else message
            self.append(Offence(side, int(rows[position]), where, told))
        self.total += int(rows.size)


def found(value: object, limit: int = 60) -> str:
    """The value as an error message shows it, cut."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


@dataclass
class Predictions:
    """n instances with m (instance, document) rationales, flat."""

    ids: list[str]
    instance: np.ndarray  # (m,) the instance of each rationale
    doc: np.ndarray  # (m,) into docids
    docids: list[str]
    rationales: np.ndarray  # (n,) how many rationales; -1: the field is absent
    hard: np.ndarray  # (m,) how many spans; -1: absent
    start: np.ndarray
    end: np.ndarray
    soft: np.ndarray  # (m,) how many token scores; -1: absent
    soft_scores: np.ndarray
    sentence: np.ndarray  # (m,) how many sentence scores; -1: absent
    sentence_scores: np.ndarray
    labels: list[str]
    classification: np.ndarray  # (n,) into labels; -1: absent
    full: np.ndarray  # (n, labels); NaN: the scores do not name the label; a row of NaN: absent
    comprehensiveness: np.ndarray
    sufficiency: np.ndarray
    null: np.ndarray
    tokens_to_flip: np.ndarray  # (n,) NaN: absent
    thresholds: np.ndarray  # (n,) how many thresholded scores; -1: absent
    threshold: np.ndarray
    threshold_comprehensiveness: np.ndarray  # (.., labels)
    threshold_sufficiency: np.ndarray
    draws: np.ndarray  # (n,) how many random rationales; -1: absent
    draw_comprehensiveness: np.ndarray  # (.., labels)
    draw_sufficiency: np.ndarray

    LABELLED = (
        "full",
        "comprehensiveness",
        "sufficiency",
        "null",
        "threshold_comprehensiveness",
        "threshold_sufficiency",
        "draw_comprehensiveness",
        "draw_sufficiency",
    )


@dataclass
class References:
    """n annotations with their documents, evidence groups and evidences, flat."""

    ids: list[str]
    labels: list[str]
    classification: np.ndarray  # (n,) into labels; -1: absent
    docids: list[str]
    document_instance: np.ndarray  # (d,) whose document this is; -1: every annotation's
    document: np.ndarray  # (d,) into docids
    tokens: np.ndarray  # (d,)
    sentences: np.ndarray  # (d,)
    first_sentence: np.ndarray  # (d,) where its sentences stand in sentence_tokens
    sentence_tokens: np.ndarray  # tokens of each sentence, documents one after another
    group_instance: np.ndarray  # (g,) the annotation of each evidence group
    group: np.ndarray  # (e,) the group of each evidence
    doc: np.ndarray  # (e,) into docids
    start: np.ndarray
    end: np.ndarray
    start_sentence: np.ndarray
    end_sentence: np.ndarray


def _ints(values: Iterable[int] = ()) -> array:
    return array("q", values)


def _flat(values: array) -> np.ndarray:
    return np.array(values) if values else np.zeros(0, dtype=np.dtype(values.typecode))


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
            return f"expected an object of label: probability, found {found(scores)}"
        values = scores.values()
        if not values:
            self.layout.append(-1)
            return "expected a probability for each label, found none"
        try:
            # a label that is None there is absent: Arrow's structs name every label in every row
            if None in values:
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
            return f"expected probabilities, found {found(bad)}"
        self.layout.append(layout)
        return None

    def add_all(self, several: Sequence[Mapping[str, float | None] | None]) -> bool:
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
            self.values.fromlist([value for scores in several for value in scores.values()])  # type: ignore[union-attr, misc]
        except TypeError:  # a None
            return False
        number = self.layouts.setdefault(layouts.pop(), len(self.layouts))
        self.layout.frombytes(np.full(len(several), number, dtype=np.intc).tobytes())
        return True

    def matrix(self, labels: dict[str, int]) -> np.ndarray:
        """float64 (rows, labels), NaN where a row does not name a label (a NaN that was given becomes infinite)."""
        layout, values = _flat(self.layout), _flat(self.values)
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


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


class PredictionFlattener:
    """Takes ERASER instances one by one; `finish` gives the `Predictions`.

    Args:
        offences: where what is wrong is told; the instance is kept with the field absent.
    """

    instance: array
    doc: array
    rationales: array
    hard: array
    start: array
    end: array
    soft: array
    sentence: array
    classification: array

    def __init__(self, offences: Offences) -> None:
        self.offences, self.n = offences, 0
        self.ids: list[str] = []
        self.docs: dict[str, int] = {}
        self.layouts: dict[tuple[str, ...], int] = {}
        self.labels: dict[str, int] = {}
        for name in ("instance", "doc", "rationales", "hard", "start", "end", "soft", "sentence", "classification"):
            setattr(self, name, _ints())
        self.thresholds, self.draws = _ints(), _ints()
        self.soft_scores, self.sentence_scores = array("d"), array("d")
        self.tokens_to_flip, self.threshold = array("d"), array("d")
        self.tables = {name: ScoreTable(self.layouts) for name in Predictions.LABELLED}

    def say(self, where: str, message: str) -> None:
        self.offences.say("prediction", self.n, where, message)

    def add(self, instance: Mapping[str, Any]) -> None:
        """Append one instance (unknown keys are left alone)."""
        if type(instance) is not dict and not isinstance(instance, Mapping):
            self.say("", f"expected an object, found {found(instance)}")
            instance = {"annotation_id": ""}
        get = instance.get
        name = get("annotation_id")
        if type(name) is not str:
            name = self._id(name)
        self.ids.append(name)
        rationales = get("rationales")
        if rationales is None:
            self.rationales.append(-1)
        elif not isinstance(rationales, (list, tuple, np.ndarray)):
            self.rationales.append(-1)
            self.say("rationales", f"expected a list, found {found(rationales)}")
        else:
            before = len(self.doc)
            for position, rationale in enumerate(rationales):
                self._rationale(rationale, position)
            self.rationales.append(len(self.doc) - before)
        label = get("classification")
        if label is None:
            self.classification.append(-1)
        elif type(label) is str:
            self.classification.append(self.labels.setdefault(label, len(self.labels)))
        else:
            self.classification.append(-1)
            self.say("classification", f"expected a label (a string), found {found(label)}")
        for table, where in SCORE_FIELDS.items():
            self._scores(table, get(where), where)
        self._flip(get("tokens_to_flip"))
        self._several("thresholded_scores", get("thresholded_scores"), "threshold", self.thresholds)
        self._several("random_rationales", get("random_rationales"), "draw", self.draws)
        self.n += 1

    def _id(self, name: object) -> str:
        if isinstance(name, (int, np.integer)) and not isinstance(name, bool):
            return str(name)
        if isinstance(name, np.str_):
            return str(name)
        self.say("annotation_id", f"expected a string or an integer, found {found(name)}")
        return ""

    def _rationale(self, rationale: object, position: int) -> None:
        where = f"rationales[{position}]"
        if type(rationale) is not dict and not isinstance(rationale, Mapping):
            self.say(where, f"expected an object, found {found(rationale)}")
            return
        docid = rationale.get("docid")
        if type(docid) is not str:
            if not isinstance(docid, (int, np.integer)) or isinstance(docid, bool):
                self.say(f"{where}.docid", f"expected a string, found {found(docid)}")
                return
            docid = str(docid)
        self.instance.append(self.n)
        self.doc.append(self.docs.setdefault(docid, len(self.docs)))
        hard = rationale.get("hard_rationale_predictions")
        if hard is None:
            self.hard.append(-1)
        else:
            self._spans(hard, f"{where}.hard_rationale_predictions")
        for key, sizes, values in (
            ("soft_rationale_predictions", self.soft, self.soft_scores),
            ("soft_sentence_predictions", self.sentence, self.sentence_scores),
        ):
            scores = rationale.get(key)
            if scores is None:
                sizes.append(-1)
            else:
                self._floats(scores, f"{where}.{key}", sizes, values)

    def _spans(self, hard: Any, where: str) -> None:
        if not isinstance(hard, (list, tuple, np.ndarray)):
            self.hard.append(-1)
            self.say(where, f"expected a list of spans, found {found(hard)}")
            return
        size = len(self.start)
        try:
            starts, ends = [*map(_start, hard)], [*map(_end, hard)]
            if not {*map(type, starts), *map(type, ends)} <= {int}:
                for position, value in enumerate([*starts, *ends]):
                    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
                        name = "start_token" if position < len(starts) else "end_token"
                        place = f"{where}[{position % len(starts)}].{name}"
                        self.say(place, f"expected an integer, found {found(value)}")
                        self.hard.append(0)
                        return
            self.start.extend(starts)
            self.end.extend(ends)
            self.hard.append(len(starts))
        except OverflowError:
            del self.start[size:], self.end[size:]
            self.hard.append(0)
            self.say(where, "expected offsets within the document, found one beyond 64 bits")
        except (TypeError, KeyError, IndexError, AttributeError):
            del self.start[size:], self.end[size:]
            self.hard.append(0)
            self.say(where, f"expected spans with start_token and end_token, found {found(list(hard))}")

    def _floats(self, scores: Any, where: str, sizes: array, values: array) -> None:
        if isinstance(scores, np.ndarray) and scores.ndim == 1 and scores.dtype.kind in "fiu":
            values.frombytes(np.ascontiguousarray(scores, dtype=np.float64).tobytes())
            sizes.append(scores.size)
            return
        if not isinstance(scores, (list, tuple, np.ndarray)):
            sizes.append(-1)
            self.say(where, f"expected a list of numbers, found {found(scores)}")
            return
        try:
            if not {*map(type, scores)} <= NUMBERS:
                wrong = next(((k, x) for k, x in enumerate(scores) if not _is_number(x)), None)
                if wrong is not None:
                    self.say(f"{where}[{wrong[0]}]", f"expected a number, found {found(wrong[1])}")
                    sizes.append(-1)
                    return
            values.fromlist(scores if isinstance(scores, list) else list(scores))
            sizes.append(len(scores))
        except OverflowError:
            self.say(where, "expected finite numbers, found one beyond the range of a float")
            sizes.append(-1)

    def _scores(self, table: str, scores: Any, where: str) -> None:
        wrong = self.tables[table].add(scores)
        if wrong is not None:
            self.say(where, wrong)

    def _flip(self, tokens: object) -> None:
        if tokens is None:
            self.tokens_to_flip.append(np.nan)
        elif type(tokens) is int or _is_number(tokens):
            try:
                self.tokens_to_flip.append(tokens)  # type: ignore[arg-type]
                return
            except OverflowError:
                self.tokens_to_flip.append(np.inf)
        else:
            self.tokens_to_flip.append(np.nan)
            self.say("tokens_to_flip", f"expected a number, found {found(tokens)}")

    def _several(self, where: str, entries: Any, kind: str, sizes: array) -> None:
        if entries is None:
            sizes.append(-1)
            return
        if not isinstance(entries, (list, tuple, np.ndarray)):
            sizes.append(-1)
            self.say(where, f"expected a list, found {found(entries)}")
            return
        sizes.append(len(entries))
        tables = [(SCORE_FIELDS[side], self.tables[f"{kind}_{side}"]) for side in ERASED]
        for position, entry in enumerate(entries):
            if type(entry) is not dict and not isinstance(entry, Mapping):
                self.say(f"{where}[{position}]", f"expected an object, found {found(entry)}")
                entry = {}
            if kind == "threshold":
                threshold = entry.get("threshold")
                if type(threshold) is not float and not _is_number(threshold):
                    self.say(f"{where}[{position}].threshold", f"expected a number, found {found(threshold)}")
                    threshold = np.nan
                self.threshold.append(threshold)
            for key, table in tables:
                wrong = table.add(entry.get(key))
                if wrong is not None:
                    self.say(f"{where}[{position}].{key}", wrong)

    def finish(self) -> Predictions:
        for layout in self.layouts:
            for label in layout:
                if type(label) is not str:
                    self.offences.say("prediction", 0, "classification_scores", f"label {found(label)} is no string")
                self.labels.setdefault(label, len(self.labels))
        columns = {
            name: _flat(getattr(self, name))
            for name in (
                "instance", "doc", "rationales", "hard", "start", "end", "soft", "soft_scores", "sentence",
                "sentence_scores", "classification", "tokens_to_flip", "thresholds", "threshold", "draws",
            )
        }  # fmt: skip
        matrices = {name: table.matrix(self.labels) for name, table in self.tables.items()}
        return Predictions(ids=self.ids, docids=list(self.docs), labels=list(self.labels), **columns, **matrices)


def _several(value: Any) -> Any:
    """A list's items, none of null; not by truth, which an array (a row out of pandas) does not have."""
    return () if value is None else value


def sentence_sizes(text: str) -> list[int]:
    """Tokens of each sentence of a document: sentences end at "\\n", tokens at "\\n" or U+0020; empty pieces are none.

    >>> sentence_sizes("one two .\\n\\nthree  four")
    [3, 2]
    """
    if "  " not in text and " \n" not in text and "\n " not in text and text[:1] != " " and text[-1:] != " ":
        return [line.count(" ") + 1 for line in text.split("\n") if line]
    sizes = [sum(1 for piece in line.split(" ") if piece) for line in text.split("\n")]
    return [size for size in sizes if size]


class ReferenceFlattener:
    """Takes dataset rows (or annotations) one by one; `finish` gives the `References`.

    Args:
        offences: where what is wrong is told.
        label_names: names of the integers in ``classification`` (ClassLabel).
        documents: whether rows bring their documents.
    """

    classification: array
    document_instance: array
    document: array
    tokens: array
    sentences: array
    sentence_tokens: array
    group_instance: array
    group: array
    doc: array
    start: array
    end: array
    start_sentence: array
    end_sentence: array

    def __init__(self, offences: Offences, label_names: Sequence[str] | None = None, documents: bool = True) -> None:
        self.offences, self.label_names, self.with_documents, self.n = offences, label_names, documents, 0
        self.ids: list[str] = []
        self.docs: dict[str, int] = {}
        self.labels: dict[str, int] = {name: k for k, name in enumerate(label_names or ())}
        for name in (
            "classification", "document_instance", "document", "tokens", "sentences", "sentence_tokens",
            "group_instance", "group", "doc", "start", "end", "start_sentence", "end_sentence",
        ):  # fmt: skip
            setattr(self, name, _ints())

    def say(self, where: str, message: str) -> None:
        self.offences.say("reference", self.n, where, message)

    def add(self, row: Mapping[str, Any]) -> None:
        """Append one row (columns beyond those that scores need are left alone)."""
        if type(row) is not dict and not isinstance(row, Mapping):
            self.say("", f"expected an object, found {found(row)}")
            row = {"annotation_id": ""}
        name = row.get("annotation_id")
        if type(name) is not str:
            if isinstance(name, (int, np.integer)) and not isinstance(name, bool):
                name = str(name)
            else:
                self.say("annotation_id", f"expected a string or an integer, found {found(name)}")
                name = ""
        self.ids.append(name)
        self._label(row.get("classification"))
        if self.with_documents:
            for position, document in enumerate(_several(row.get("documents"))):
                self._document(document, position)
        for number, evidences in enumerate(_several(row.get("evidences"))):
            self.group_instance.append(self.n)
            for position, evidence in enumerate(evidences):
                self._evidence(evidence, number, position)
        self.n += 1

    def _label(self, label: object) -> None:
        if label is None:
            self.classification.append(-1)
        elif isinstance(label, str):
            if self.label_names is not None and label not in self.label_names:
                self.say("classification", f"expected one of {', '.join(self.label_names)}, found {found(label)}")
            self.classification.append(self.labels.setdefault(label, len(self.labels)))
        elif isinstance(label, (int, np.integer)) and not isinstance(label, bool):
            if self.label_names is None:  # whoever joins the batches may know the names: `input_policy.name_labels`
                self.classification.append(
                    -1 if label == -1 else self.labels.setdefault(f"\0{label}", len(self.labels))
                )
            elif label == -1 or not 0 <= label < len(self.label_names):
                if label != -1:  # -1 is a ClassLabel's "no label"
                    names = f"0 to {len(self.label_names) - 1}"
                    self.say("classification", f"expected {names}, found {label}")
                self.classification.append(-1)
            else:
                self.classification.append(self.labels[self.label_names[int(label)]])
        else:
            self.say("classification", f"expected a label, found {found(label)}")
            self.classification.append(-1)

    def _document(self, document: object, position: int) -> None:
        where = f"documents[{position}]"
        if not isinstance(document, Mapping) or not isinstance(document.get("text"), str):
            self.say(where, f"expected docid and text, found {found(document)}")
            return
        self.document_instance.append(self.n)
        self.document.append(self.docs.setdefault(str(document.get("docid")), len(self.docs)))
        sizes = sentence_sizes(document["text"])
        self.tokens.append(sum(sizes))
        self.sentences.append(len(sizes))
        self.sentence_tokens.extend(sizes)

    def _evidence(self, evidence: Any, number: int, position: int) -> None:
        try:
            docid, start, end = evidence["docid"], evidence["start_token"], evidence["end_token"]
            first, last = evidence.get("start_sentence"), evidence.get("end_sentence")
        except (TypeError, KeyError, AttributeError):
            where = f"evidences[{number}][{position}]"
            self.say(where, f"expected docid, start_token and end_token, found {found(evidence)}")
            return
        first, last = -1 if first is None else first, -1 if last is None else last
        values = (start, end, first, last)
        if not (type(start) is type(end) is type(first) is type(last) is int):
            where = f"evidences[{number}][{position}]"
            for name, value in zip(("start_token", "end_token", "start_sentence", "end_sentence"), values, strict=True):
                if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
                    self.say(f"{where}.{name}", f"expected an integer, found {found(value)}")
                    return
        if not (-FAR < start < FAR and -FAR < end < FAR and -FAR < first < FAR and -FAR < last < FAR):
            self.say(f"evidences[{number}][{position}]", f"expected offsets within the document, found {found(values)}")
            return
        self.doc.append(self.docs.setdefault(docid if type(docid) is str else str(docid), len(self.docs)))
        self.group.append(len(self.group_instance) - 1)
        self.start.append(start)
        self.end.append(end)
        self.start_sentence.append(first)
        self.end_sentence.append(last)

    def finish(self) -> References:
        columns = {
            name: _flat(getattr(self, name))
            for name in (
                "classification", "document_instance", "document", "tokens", "sentences", "sentence_tokens",
                "group_instance", "group", "doc", "start", "end", "start_sentence", "end_sentence",
            )
        }  # fmt: skip
        columns["first_sentence"] = np.cumsum(columns["sentences"]) - columns["sentences"]
        return References(ids=self.ids, labels=list(self.labels), docids=list(self.docs), **columns)
