"""Predictions and gold as flat arrays, and the match of both by id and document.

Predictions (ERASER instances) are read from dicts, in chunks of any size; gold (annotations) from the buffers of an
Arrow table. All checks are made here: the scores' kernels get a `Match`, whose arrays are sound.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .errors import DataError, cut, find_similar, raise_first
from .rows import (
    PROBABILITY_SLACK,
    Row,
    describe_missing_id,
    describe_unknown_id,
    find_fault,
    row_id,
    simplify,
)
from .statistics import find_components
from .tokens import measure_texts

if TYPE_CHECKING:  # a corpus as released is scored without it
    import pyarrow as pa

ERASED = ("comprehensiveness", "sufficiency")
SIDES = {
    "full": "classification_scores",
    "comprehensiveness": "comprehensiveness_classification_scores",
    "sufficiency": "sufficiency_classification_scores",
    "null": "null_classification_scores",
}
SOFT_FIELDS = {"soft": "soft_rationale_predictions", "sentence": "soft_sentence_predictions"}
HARD_FIELD = "hard_rationale_predictions"
# numbers of an instance -> their field, the field within it, the least and the greatest value
NUMBERS = {
    "tokens_to_flip": ("tokens_to_flip", "", 0.0, np.inf),
    "sensitivity_max": ("sensitivity_max", "", 0.0, np.inf),
    "infidelity": ("infidelity", "", 0.0, np.inf),
    "infidelity_normalized": ("infidelity_normalized", "", 0.0, np.inf),
    "soft_comprehensiveness": ("soft_scores", "comprehensiveness", 0.0, 1.0),
    "soft_sufficiency": ("soft_scores", "sufficiency", 0.0, 1.0),
    "comprehensiveness_lower": ("aopc_bounds", "lower", -1.0, 1.0),
    "comprehensiveness_upper": ("aopc_bounds", "upper", -1.0, 1.0),
    "comprehensiveness_bounded": ("aopc_bounds", "comprehensiveness", -1.0, 1.0),
    "sufficiency_lower": ("aopc_bounds", "sufficiency_lower", -1.0, 1.0),
    "sufficiency_upper": ("aopc_bounds", "sufficiency_upper", -1.0, 1.0),
    "sufficiency_bounded": ("aopc_bounds", "sufficiency", -1.0, 1.0),
}
# name of a field in `Matcher.present` -> its path in messages
PATHS = {**SIDES, "hard": f"rationales.{HARD_FIELD}", "thresholds": "thresholded_scores"}
PATHS |= {name: f"rationales.{path}" for name, path in SOFT_FIELDS.items()}
PATHS |= {name: f"{owner}.{inner}".rstrip(".") for name, (owner, inner, _, _) in NUMBERS.items()}
NOTHING = np.zeros(0, np.int64)
BOUND_SLACK, SAME_THRESHOLD = 1e-9, 1e-9
# what a field holds: a type, several, a list of one, an object of fields, or {} for any object; () for anything
_ERASED_FIELDS: dict[str, Any] = {SIDES[side]: {} for side in ERASED}
INSTANCE: dict[str, Any] = {
    "annotation_id": (str, int),
    "rationales": [
        {
            "docid": (str, int),
            HARD_FIELD: [{"start_token": int, "end_token": int}],
            SOFT_FIELDS["soft"]: [float],
            SOFT_FIELDS["sentence"]: [float],
        }
    ],
    "classification": str,
    **{name: {} for name in SIDES.values()},
    "thresholded_scores": [{"threshold": float, **_ERASED_FIELDS}],
    "tokens_to_flip": float,
    "random_rationales": [_ERASED_FIELDS],
    "occluded_scores": [{"occlusion_rate": float, "trial": int, **_ERASED_FIELDS}],
    "aopc_bounds": {inner: float for owner, inner, _, _ in NUMBERS.values() if owner == "aopc_bounds"}
    | {"method": str, "beam": int},
    "soft_scores": {"comprehensiveness": float, "sufficiency": float, "draws": int, "standard_error": float},
    **dict.fromkeys(("sensitivity_max", "infidelity", "infidelity_normalized"), float),
    **dict.fromkeys(("outcome",), str),
    **dict.fromkeys(("quotes", "asked_again", "ranked_tokens", "kd"), ()),
}
GOLD: dict[str, Any] = {
    "annotation_id": (str, int),
    "classification": (str, int),
    "documents": [{"docid": (str, int), "text": str}],
    "evidences": [
        [{"docid": (str, int), "start_token": int, "end_token": int, "start_sentence": int, "end_sentence": int}]
    ],
}


# -- predictions
@dataclass
class Probabilities:
    """Rows of {label: probability}.

    Attributes:
        owner: the instance of each row: int64 (rows,).
        layouts: the labels of a row, in its order -> code.
        codes: the layout of each row: int64 (rows,).
        values: of all rows, flat: float64.
    """

    owner: np.ndarray
    layouts: dict[tuple[str, ...], int]
    codes: np.ndarray
    values: np.ndarray

    @property
    def widths(self) -> np.ndarray:
        """The number of labels of each row: int64 (rows,)."""
        return np.array([len(layout) for layout in self.layouts], np.int64).take(self.codes)

    def to_matrix(self, places: Mapping[str, int]) -> np.ndarray:
        """Return the values in columns by label, float64 (rows, labels); NaN: a label that the row lacks."""
        first = np.cumsum(self.widths) - self.widths
        matrix = np.full((self.codes.size, len(places)), np.nan)
        for layout, code in self.layouts.items():
            rows = np.flatnonzero(self.codes == code)
            columns = np.array([places[label] for label in layout], np.int64)
            matrix[rows[:, None], columns] = self.values[first[rows][:, None] + np.arange(columns.size)]
        return matrix


@dataclass
class Predictions:
    """Flat instances of one chunk: n instances with m rationales (one a document); a size of -1: the field is absent.

    Attributes:
        ids: of the instances.
        lines: the line of each in its file; None: rows in memory.
        outcomes: instance -> why it holds no answer.
        classification: the label of each instance; None: absent.
        rationales: number of rationales of each instance: int64 (n,).
        docids: the document of each rationale.
        hard: number of spans of each rationale, int64 (m,); ``starts`` and ``ends`` of all spans.
        soft: number of token scores of each rationale, int64 (m,), and ``soft_values``; likewise ``sentence``.
        scores: side of `SIDES` -> probabilities; ``threshold_SIDE`` -> those at each threshold.
        thresholds: number of thresholds of each instance, int64 (n,), and ``threshold_values``.
        numbers: name of `NUMBERS` -> float64 (n,), NaN: absent.
        unknown: field that the format does not know -> number of instances (or rationales) that have it.
    """

    ids: list[Any]
    lines: Sequence[int] | None = None
    outcomes: dict[int, str] = field(default_factory=dict)
    classification: list[str | None] = field(default_factory=list)
    rationales: np.ndarray = field(default_factory=lambda: NOTHING)
    docids: list[str] = field(default_factory=list)
    hard: np.ndarray = field(default_factory=lambda: NOTHING)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    soft: np.ndarray = field(default_factory=lambda: NOTHING)
    soft_values: np.ndarray = field(default_factory=lambda: NOTHING)
    sentence: np.ndarray = field(default_factory=lambda: NOTHING)
    sentence_values: np.ndarray = field(default_factory=lambda: NOTHING)
    scores: dict[str, Probabilities] = field(default_factory=dict)
    thresholds: np.ndarray = field(default_factory=lambda: NOTHING)
    threshold_values: np.ndarray = field(default_factory=lambda: NOTHING)
    numbers: dict[str, np.ndarray] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)

    def error(self, row: int, field: str, message: str) -> DataError:
        """Return the error of an instance's field."""
        line = None if self.lines is None else self.lines[row]
        if self.ids[row] is None and line is None:
            field = f"predictions[{row}].{field}".rstrip(".")
        return DataError(message, line=line, instance=self.ids[row], field=field)

    @property
    def instance(self) -> np.ndarray:
        """The instance of each rationale: int64 (m,)."""
        return np.repeat(np.arange(len(self.ids)), np.maximum(self.rationales, 0))


def read_predictions(
    rows: Iterable[Row], lines: Sequence[int] | None = None, parsed: bool = False, known: set[Any] | None = None
) -> Predictions:
    """Return instances as flat arrays.

    Args:
        rows: ERASER instances; null counts as absent.
        lines: the line of each in its file, for errors.
        parsed: the rows come from JSON: they hold no arrays of other libraries, and null is rare.
        known: the layouts of earlier chunks, which are not looked at again; this chunk's are added.

    Raises:
        DataError: at the first row with a field of another type or a misspelt one, or without an id.
    """
    rows = list(rows) if parsed else [simplify(row) for row in rows]
    known = set() if known is None else known
    p = Predictions([row_id(row) for row in rows], lines)  # None is refused below
    suspects: Iterable[int] = range(len(rows))
    failure: Exception | None = None
    try:
        layouts = _flatten_instances(p, rows)
        offsets, labels = set(map(type, p.starts + p.ends)), set(map(type, p.classification))
        if None not in p.ids and offsets <= {int} and labels <= {str, type(None)}:
            suspects = sorted(at for layout, at in layouts.items() if layout not in known)
            known |= layouts.keys()
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        failure = error  # of a value of another type; the first is looked for
    except OverflowError:
        raise DataError("expected numbers of 64 bits, found larger ones", argument="predictions") from None
    for at in suspects:
        if fault := find_fault(rows[at], INSTANCE):
            raise p.error(at, *fault)
    if failure is not None:
        raise DataError(f"expected instances, found what cannot be read: {failure}", argument="predictions")
    return p


def _flatten_instances(p: Predictions, rows: Sequence[Row]) -> dict[tuple[str, ...], int]:
    """Fill the arrays, and return {fields of a row, or of a rationale, in their order: the first row that has them}."""
    layouts = Counter(map(tuple, rows))
    fields = set(chain.from_iterable(layouts))
    lists = [row.get("rationales") for row in rows]
    p.rationales = _measure_lists(lists)
    rationales = list(chain.from_iterable(filter(None, lists)))
    inner = Counter(map(tuple, rationales))
    p.docids = [rationale["docid"] for rationale in rationales]
    p.docids = p.docids if set(map(type, p.docids)) <= {str} else list(map(str, p.docids))
    spans = [rationale.get(HARD_FIELD) for rationale in rationales]
    p.hard = _measure_lists(spans)
    p.starts = [span["start_token"] for several in spans if several for span in several]
    p.ends = [span["end_token"] for several in spans if several for span in several]
    for name, path in SOFT_FIELDS.items():
        scores = [rationale.get(path) for rationale in rationales]
        setattr(p, name, _measure_lists(scores))
        setattr(p, f"{name}_values", _join_numbers(scores))
    p.classification = [row.get("classification") for row in rows]
    for side, path in SIDES.items():
        if path in fields:
            _add_probabilities(p, side, [row.get(path) for row in rows], np.arange(len(rows)))
    entries = [row.get("thresholded_scores") for row in rows] if "thresholded_scores" in fields else [None] * len(rows)
    p.thresholds = _measure_lists(entries)
    thresholded = list(chain.from_iterable(filter(None, entries)))
    values = [entry["threshold"] for entry in thresholded]
    if {*map(type, values)} - {int, float}:
        raise TypeError  # a text would pass as a number
    p.threshold_values = np.array(values, float)
    owner = np.repeat(np.arange(len(rows)), np.maximum(p.thresholds, 0))
    for side in ERASED if thresholded else ():
        _add_probabilities(p, f"threshold_{side}", [entry.get(SIDES[side]) for entry in thresholded], owner)
    for name, (path, within, _, _) in NUMBERS.items():
        if path in fields:
            held = [row.get(path) for row in rows]
            values = [each.get(within) if each is not None else None for each in held] if within else held
            p.numbers[name] = np.array([np.nan if value is None else float(value) for value in values])
    if "outcome" in fields:
        p.outcomes = {at: row["outcome"] for at, row in enumerate(rows) if row.get("outcome") not in (None, "answered")}
    for path, counted, known in (("", layouts, INSTANCE), ("rationales.", inner, INSTANCE["rationales"][0])):
        for layout, count in counted.items():
            p.unknown.update({f"{path}{name}": count for name in layout if name not in known})
    owners = [*range(len(rows)), *p.instance.tolist()]
    each = [*map(tuple, rows), *map(tuple, rationales)]
    return dict(zip(reversed(each), reversed(owners), strict=True))  # of equal keys a dict keeps the last


def _measure_lists(lists: Sequence[Sequence[Any] | None]) -> np.ndarray:
    return np.array([-1 if each is None else len(each) for each in lists], np.int64)


def _join_numbers(lists: Sequence[list[float] | None]) -> np.ndarray:
    buffer = array("d")
    for each in lists:
        if each:
            buffer.fromlist(each)
    return np.frombuffer(buffer, np.float64)


def _add_probabilities(
    p: Predictions, side: str, scores: Sequence[Mapping[str, float] | None], owner: np.ndarray
) -> None:
    there = [each for each in scores if each is not None]
    if there:
        kept = owner if len(there) == len(scores) else owner[[each is not None for each in scores]]
        names = list(map(tuple, there))
        layouts = {layout: code for code, layout in enumerate(dict.fromkeys(names))}
        listed = list(chain.from_iterable(each.values() for each in there))
        if bool in set(map(type, listed)):
            raise TypeError("a boolean")  # is a number to Python, and no probability
        values = array("d", listed)
        codes = np.array([layouts[layout] for layout in names], np.int64)
        p.scores[side] = Probabilities(kept, layouts, codes, np.frombuffer(values, np.float64))


def check(
    bad: np.ndarray, source: Predictions | Gold, owner: np.ndarray | None, path: str, template: str, *values: Any
) -> None:
    """Raise the error of the first bad place, with the number of further ones.

    Args:
        bad: bool (places,).
        source: the side that the places belong to.
        owner: the instance or annotation of each place; None: the place itself.
        path: of the field.
        template: the message, with ``{}`` for each of the values.
        *values: a sequence each, with a value a place.
    """
    if bad.any():
        raise_first(
            bad,
            lambda at: source.error(
                at if owner is None else int(owner[at]), path, template.format(*(each[at] for each in values))
            ),
        )


# -- gold
class Spans(NamedTuple):
    """Spans [start, end) of (annotation, document) pairs, which ``key`` numbers; int64 (spans,) each."""

    key: np.ndarray
    start: np.ndarray
    end: np.ndarray


NO_SPANS = Spans(NOTHING, NOTHING, NOTHING)


def expand_ranges(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (range, number) for each number of the ranges [low, high), in their order: int64 (numbers,) each."""
    size = np.maximum(high - low, 0)
    owner = np.repeat(np.arange(size.size), size)
    return owner, np.arange(owner.size) - np.repeat(np.cumsum(size) - size - low, size)


class Documents:
    """Lengths of an annotation's own documents, else of the one document of that name.

    Args:
        docids: the names of documents.
        owner: the annotation of each own document: int (documents,).
        name: its name, as a place in docids: int (documents,).
        sizes: tokens, sentences, and tokens of each sentence, see `plain.measure_texts`.
    """

    def __init__(self, docids: Sequence[str], owner: np.ndarray, name: np.ndarray, sizes: Any) -> None:
        self.numbers = {docid: number for number, docid in enumerate(docids)}
        self.tokens, self.sentences = sizes.tokens, sizes.sentences
        first = np.cumsum(self.sentences) - self.sentences
        self.places = first, np.append(0, np.cumsum(sizes.sentence_tokens, dtype=np.int64))
        self.width = max(len(self.numbers), 1)
        packed = owner * self.width + name
        self.order = np.argsort(packed, kind="stable")
        self.packed = packed[self.order]
        # by name alone: only where all documents of that name have one length
        by_name = np.lexsort((self.tokens, name))
        names, start, size = np.unique(name[by_name], return_index=True, return_counts=True)
        rows = by_name[start]
        same = self.tokens[rows] == self.tokens[by_name[start + size - 1]]
        self.any_row = np.full(self.width + 1, -1, dtype=np.int64)
        self.any_row[names[same]] = rows[same]

    @property
    def sentence_places(self) -> tuple[np.ndarray, np.ndarray]:
        """The place of each document's first sentence; and the tokens before each sentence of all documents."""
        return self.places

    def number(self, docids: Sequence[str]) -> np.ndarray:
        """Return the number of each document, int64; -1 for an unknown one."""
        return np.array([self.numbers.get(docid, -1) for docid in docids], dtype=np.int64)

    def find(self, annotation: np.ndarray, doc: np.ndarray) -> np.ndarray:
        """Return the place of each (annotation, document) in ``tokens`` and ``sentences``; -1 if there is none."""
        places: np.ndarray = self.any_row[doc]
        if self.packed.size:
            wanted = annotation * self.width + doc
            at = np.minimum(np.searchsorted(self.packed, wanted), self.packed.size - 1)
            own = (self.packed[at] == wanted) & (annotation >= 0) & (doc >= 0)
            places[own] = self.order[at[own]]
        return places

    def lengths(self, annotation: np.ndarray, doc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (tokens, sentences) of each (annotation, document), int64; -1 if there is no such document."""
        places = self.find(annotation, doc)
        if not self.tokens.size:
            return places, places
        return tuple(np.where(places < 0, -1, sizes[places]) for sizes in (self.tokens, self.sentences))  # type: ignore[return-value]

    def sentence_spans(
        self, annotation: np.ndarray, doc: np.ndarray, start: np.ndarray, end: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sentences [first, last) of which each span [start, end) of tokens covers at least one token."""
        first_sentence, reached = self.sentence_places
        first = first_sentence[self.find(annotation, doc)] if first_sentence.size else np.zeros_like(doc)
        before = reached[first]
        low = np.searchsorted(reached, before + start, side="right") - 1 - first
        high = np.searchsorted(reached, before + end, side="left") - first
        return low, np.where(end > start, high, low)


@dataclass
class Gold:
    """Annotations as flat arrays.

    Attributes:
        ids: of the n annotations.
        labels: names of labels.
        label: int (n,) into labels; -1: none.
        docids: names of documents.
        offsets: int64 (n + 1,): the evidences of annotation i are [offsets[i], offsets[i + 1]).
        group: the evidence group of each evidence, numbered over all annotations: int (evidences,).
        doc: the document of each evidence, into docids.
        start, end: its tokens; first, last: its sentences, -1 where they are not known.
        documents: lengths of documents.
        listed: (annotation, document) of each document that an annotation has beside its evidence, for clusters.
        named: the valid labels are known, and are ``labels``.
        lines: the line of each annotation in its file, for errors; ``file``: this file.
    """

    ids: Sequence[str]
    labels: list[str]
    label: np.ndarray
    docids: Sequence[str]
    offsets: np.ndarray
    group: np.ndarray
    doc: np.ndarray
    start: np.ndarray
    end: np.ndarray
    first: np.ndarray
    last: np.ndarray
    documents: Any
    listed: tuple[np.ndarray, np.ndarray]
    named: bool = False
    lines: Sequence[int] | None = None
    file: Any = None

    @cached_property
    def index(self) -> dict[str, int]:
        """The row of each id."""
        return {name: row for row, name in enumerate(self.ids)}

    @property
    def owner(self) -> np.ndarray:
        """The annotation of each evidence: int64 (evidences,)."""
        return np.repeat(np.arange(len(self.ids)), np.diff(self.offsets))

    def error(self, row: int, field: str, message: str) -> DataError:
        """Return the error of an annotation's field."""
        line = None if self.lines is None else self.lines[row]
        return DataError(message, file=self.file, line=line, instance=self.ids[row], field=field)

    def digest(self) -> str:
        """Return the SHA-256 over ids, label names and gold spans, in the order of the ids, whatever their source."""
        labels = [*self.labels, None]
        spans = np.stack([self.owner, self.doc, self.start, self.end], axis=1).reshape(-1, 4).astype(np.int64)
        return digest(self.ids, [labels[code] for code in self.label.tolist()], self.docids, spans)

    def clusters(self) -> np.ndarray | None:
        """Return the cluster of each annotation, those that share documents, also through others: int64 (n,)."""
        owner = np.concatenate([self.listed[0], self.owner])
        return find_components(owner, np.concatenate([self.listed[1], self.doc]), len(self.ids))

    def check(self) -> None:
        """Raise a `DataError` at the first evidence in an unknown document, reversed, or past the document's end."""
        owner = self.owner
        tokens, sentences = self.documents.lengths(owner, self.doc)
        known = (self.first >= 0) & (self.last >= 0)
        reversed_, outside = (
            (self.start < 0) | (self.end < self.start),
            (self.last < self.first) | (self.last > sentences),
        )
        names = [self.docids[doc] for doc in self.doc[tokens < 0][:1]]
        check(tokens < 0, self, owner, "evidences.docid", f"no document {cut(names[0])}" if names else "")
        order = "expected 0 <= start_token <= end_token, found [{}, {})"
        check(reversed_, self, owner, "evidences.start_token", order, self.start, self.end)
        past = "expected at most {} (the document's tokens), found {}"
        check(self.end > tokens, self, owner, "evidences.end_token", past, tokens, self.end)
        order = "expected sentences of the document's {}, found [{}, {})"
        check(known & outside, self, owner, "evidences.end_sentence", order, sentences, self.first, self.last)


def digest(ids: Sequence[str], labels: Sequence[str | None], docids: Sequence[str], spans: np.ndarray) -> str:
    """Return the SHA-256 of ids, names of labels and gold spans, in the order of the ids.

    Args:
        ids: of the annotations.
        labels: the name of each annotation's label; None: none.
        docids: the names of documents.
        spans: int64 (spans, 4): annotation, place of the document's name, start, end.
    """
    order = np.argsort(np.array(ids, dtype=object), kind="stable")
    used, document = np.unique(spans[:, 1], return_inverse=True)
    names = [docids[place] for place in used.tolist()]
    by_name = np.argsort(np.array(names, dtype=object), kind="stable")
    columns = np.empty(spans.shape, "<i8")
    columns[:, 0], columns[:, 1] = np.argsort(order)[spans[:, 0]], np.argsort(by_name)[document]
    columns[:, 2:] = spans[:, 2:]
    hashed = hashlib.sha256()
    for before, words, places in ((b"[[", ids, order), (b"],[", labels, order), (b"],[", names, by_name)):
        hashed.update(before)
        for start in range(0, len(places), 1 << 14):  # the text of a large corpus is never in memory as a whole
            block = [words[place] for place in places[start : start + (1 << 14)].tolist()]
            text = json.dumps(block, ensure_ascii=False, separators=(",", ":"))[1:-1]
            hashed.update((f",{text}" if start else text).encode("utf-8", "surrogatepass"))
    hashed.update(b"]]")
    hashed.update(columns[np.lexsort(columns.T[::-1])].tobytes())
    return hashed.hexdigest()


def read_gold(data: Any, label_names: Sequence[str] | None = None, required: Sequence[str] = ()) -> Gold:
    """Return annotations as flat arrays, checked.

    Args:
        data: an Arrow table, or rows: annotation_id, classification, documents, evidences.
        label_names: the labels; names of numbers in ``classification``.
        required: columns that must be there.

    Raises:
        DataError: a field of another type, an id twice, an evidence outside its document, a label without a name.
    """
    import pyarrow as pa

    names = list(label_names or ())
    table = data if isinstance(data, pa.Table) else _make_table(data)
    if not table.num_rows:
        raise DataError("expected at least one row, found none", argument="references")
    for name in required:
        if name not in table.column_names or pa.types.is_null(table.column(name).type):
            raise DataError("expected this column in the references, found none", field=name)
    n = table.num_rows
    ids = _get_column(table, "annotation_id", pa.string(), n).to_pylist()
    twice = [name for name, count in Counter(ids).items() if count > 1] if len(set(ids)) < n else []
    if twice:
        more = f" (and {len(twice) - 1:,} more)" if len(twice) > 1 else ""
        raise DataError(f"expected each id once, found it again{more}", instance=twice[0], field="annotation_id")
    texts = _get_column(
        table, "documents", pa.list_(pa.struct([("docid", pa.string()), ("text", pa.large_string())])), n
    )
    spans = [(name, pa.int64()) for name in ("start_token", "end_token", "start_sentence", "end_sentence")]
    evidence = pa.struct([("docid", pa.string()), *spans])
    groups = _get_column(table, "evidences", pa.list_(pa.list_(evidence)), n)
    owner, documents = _flatten(texts)
    group_owner, members = _flatten(groups)
    group, evidences = _flatten(members)
    coded = pa.concat_arrays([documents.field("docid"), evidences.field("docid")]).dictionary_encode()
    docids, place = coded.dictionary.to_pylist(), read_integers(coded.indices, -1)
    document, doc = place[: len(documents)], place[len(documents) :]
    repeated = np.unique(owner * (len(docids) + 1) + document, return_index=True)[1]
    if repeated.size < owner.size:
        at = int(np.setdiff1d(np.arange(owner.size), repeated)[0])
        message = f"expected each document once, found {docids[document[at]]!r} again"
        raise DataError(message, instance=ids[owner[at]], field="documents")
    start, end, first, last = (read_integers(evidences.field(name), -1) for name, _ in spans)
    counts = np.bincount(group_owner, weights=np.bincount(group, minlength=len(members)), minlength=n)
    labels, label = _read_labels(table, names, ids)
    gold = Gold(
        ids,
        labels,
        label,
        docids,
        np.append(0, np.cumsum(counts)).astype(np.int64),
        group,
        doc,
        start,
        end,
        first,
        last,
        Documents(docids, owner, document, _measure(documents.field("text"))),
        (owner, document),
        named=bool(names),
    )
    gold.check()
    return gold


def _make_table(rows: Sequence[Row]) -> pa.Table:
    import pyarrow as pa

    columns: dict[str, list[Any]] = {name: [] for name in GOLD}
    for number, row in enumerate(rows):
        row = simplify(row)
        name = row_id(row)
        if fault := find_fault({**row, "annotation_id": name} if isinstance(row, Mapping) else row, GOLD):
            field = fault[0] if name else f"references[{number}].{fault[0]}".rstrip(".")
            raise DataError(fault[1], instance=name, field=field)
        columns["annotation_id"].append(row_id(row))
        columns["classification"].append(row.get("classification"))
        documents, groups = row.get("documents") or (), row.get("evidences") or ()
        columns["documents"].append([{"docid": str(each["docid"]), "text": each["text"]} for each in documents])
        fields = tuple(GOLD["evidences"][0][0])[1:]
        columns["evidences"].append(
            [
                [{"docid": str(each["docid"]), **{name: each.get(name) for name in fields}} for each in group]
                for group in groups
            ]
        )
    kinds = set(map(type, columns["classification"])) - {type(None)}
    if kinds == {int, str}:
        columns["classification"] = [None if each is None else str(each) for each in columns["classification"]]
    missing = [name for name in ("documents", "evidences") if not any(name in row for row in rows)]
    return pa.table({name: column for name, column in columns.items() if name not in missing})


def _get_column(table: pa.Table, name: str, kind: pa.DataType, n: int) -> pa.Array:
    """Return a column in one piece and of this type; nulls where the table lacks it, or fields of it."""
    import pyarrow as pa

    if name not in table.column_names:
        return pa.nulls(n, kind)
    try:
        column = table.column(name).cast(kind).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise DataError(f"expected {kind}, found {table.column(name).type}", field=name) from error
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column


def read_integers(values: pa.Array, missing: int) -> np.ndarray:
    """Return int64, ``missing`` for null; out of the buffers, since Arrow's `to_numpy` loads pandas."""
    import pyarrow as pa

    values = values.cast(pa.int64())
    validity, data = values.buffers()
    numbers = np.frombuffer(data, np.int64)[values.offset :][: len(values)]
    if not values.null_count:
        return numbers
    bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
    return np.where(bits[values.offset :][: len(values)], numbers, missing)


def _flatten(lists: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Return (list, item) of all items of lists: int64 (items,), and the items; a null list has none."""
    sizes = read_integers(lists.value_lengths(), 0)
    return np.repeat(np.arange(len(lists)), sizes), lists.flatten()


def _read_labels(table: pa.Table, names: list[str], ids: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Return the labels, and the label of each row: int64 (n,), -1 where it has none."""
    import pyarrow as pa

    if "classification" not in table.column_names or pa.types.is_null(table.column("classification").type):
        return names, np.full(len(ids), -1)
    column, path = table.column("classification").combine_chunks(), "classification"
    if pa.types.is_integer(column.type):
        codes = read_integers(column, -1)
        expected = f"a number from 0 to {len(names) - 1}" if names else "labels (numbers need `label_names`)"
        bad = (codes < -1) | (codes >= len(names))
        raise_first(bad, lambda at: DataError(f"expected {expected}, found {codes[at]}", instance=ids[at], field=path))
        return names, codes
    coded = column.cast(pa.string()).dictionary_encode()
    found = coded.dictionary.to_pylist()
    labels = names or found
    places = {label: code for code, label in enumerate(labels)}
    place = read_integers(coded.indices, -1)
    codes = np.array([*(places.get(label, -2) for label in found), -1])[place]
    raise_first(
        codes == -2,
        lambda at: DataError(describe_label(found[place[at]], labels), instance=ids[at], field=path),
    )
    return labels, codes


def describe_label(label: str, labels: Sequence[str]) -> str:
    """Return the message for a label that is none of the labels, with the one that it may stand for."""
    lower = {name.lower(): name for name in labels}
    near = lower.get(find_similar(label.lower(), lower) or "")
    return f"expected one of {', '.join(labels)}, found {cut(label)}" + (f": did you mean {near!r}?" if near else "")


def _measure(texts: pa.Array) -> Any:
    """Return the sizes of texts, see `plain.measure_texts`, from their buffers."""
    if texts.null_count:
        raise DataError("expected a text in every document, found none", field="documents.text")
    offsets = np.frombuffer(texts.buffers()[1] or b"\0" * 8, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    content = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    return measure_texts(content[offsets[0] : offsets[-1]] if len(texts) else content[:0], np.diff(offsets))


# -- match
class Ranked(NamedTuple):
    """Soft scores of m documents: keys, int64 (m,), offsets, int64 (m + 1,), and values, float64 (offsets[-1],)."""

    key: np.ndarray
    offsets: np.ndarray
    values: np.ndarray


@dataclass
class Match:
    """A chunk of n predictions with the gold of their annotations; all of it is checked.

    A key numbers an (instance, document) pair that gold or prediction names, from 0. Arrays of instances are (n,).

    Attributes:
        ids: of the instances.
        rows: the annotation of each.
        answered: False for an instance whose ``outcome`` is no answer: it has no spans, scores of 0, and no label.
        owner: the instance of each key; ``tokens``, ``sentences``: the lengths of its document.
        evidence: the key has gold evidence: bool (keys,).
        truth: gold spans, empty ones included; ``group``: the evidence group of each; ``group_owner``: the instance of
            each group; ``truth_sentences``: the sentences of each span, -1 where they are not known.
        predicted: distinct spans, disjoint, by key and start; None: instances have no such field.
        predicted_sentences: the sentences that each predicted span touches.
        soft: scores of tokens; ``sentence_soft``: of sentences; None: instances have no such field.
        labels: names; ``gold_label`` and ``label`` (the predicted one) are codes into them, -1: none.
        probabilities: side of `SIDES` -> float64 (n, labels); NaN where an instance does not score a label.
        thresholds: shares of tokens, ascending: float64 (T,).
        threshold_probabilities: side -> float64 (n, T, labels).
        numbers: name of `NUMBERS` -> float64 (n,); NaN for an instance without answer.
    """

    ids: Sequence[str]
    rows: np.ndarray
    answered: np.ndarray
    owner: np.ndarray = field(default_factory=lambda: NOTHING)
    tokens: np.ndarray = field(default_factory=lambda: NOTHING)
    sentences: np.ndarray = field(default_factory=lambda: NOTHING)
    evidence: np.ndarray = field(default_factory=lambda: NOTHING)
    truth: Spans = NO_SPANS
    group: np.ndarray = field(default_factory=lambda: NOTHING)
    group_owner: np.ndarray = field(default_factory=lambda: NOTHING)
    truth_sentences: Spans = NO_SPANS
    predicted: Spans | None = None
    predicted_sentences: Spans = NO_SPANS
    soft: Ranked | None = None
    sentence_soft: Ranked | None = None
    labels: list[str] = field(default_factory=list)
    gold_label: np.ndarray = field(default_factory=lambda: NOTHING)
    label: np.ndarray = field(default_factory=lambda: NOTHING)
    probabilities: dict[str, np.ndarray] = field(default_factory=dict)
    thresholds: np.ndarray = field(default_factory=lambda: NOTHING)
    threshold_probabilities: dict[str, np.ndarray] = field(default_factory=dict)
    numbers: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """The number of instances."""
        return len(self.ids)


class Matcher:
    """Matches chunks of predictions with gold, and checks them.

    Args:
        gold: the annotations; None: predictions are taken as they are (their rationales are not read).
        only_predicted: annotations without a prediction are left out, in place of an error.
        label_names: the valid labels, without gold.
        thresholds: those that every instance must have; None: those of the first.

    Attributes:
        present: field -> whether instances have it: each is in all of them or in none.
        unknown: field that the format does not know -> number of instances.
        answered, total: number of instances that hold an answer, and of all.
    """

    def __init__(
        self,
        gold: Gold | None,
        only_predicted: bool = False,
        label_names: Sequence[str] | None = None,
        thresholds: Sequence[float] | None = None,
    ) -> None:
        self.gold, self.only_predicted = gold, only_predicted
        self.named = gold.named if gold is not None else label_names is not None
        self.labels = list(label_names or ()) if gold is None else list(gold.labels)
        self.thresholds = None if thresholds is None else np.unique(np.asarray(thresholds, float))
        self.index: dict[str, int] = {} if gold is None else gold.index
        self.seen = np.zeros(len(self.index), dtype=bool)
        self.present: dict[str, bool] = {}
        self.unknown: Counter[str] = Counter()
        self.answered = self.total = 0

    @property
    def used(self) -> set[str]:
        """The fields that the instances have: hard, soft, sentence, classification, sides, thresholds, numbers."""
        return {name for name, there in self.present.items() if there}

    def add(self, p: Predictions) -> Match:
        """Return a chunk with its gold.

        Raises:
            DataError: at the first instance of the first kind of fault.
        """
        n = len(p.ids)
        answered = np.ones(n, dtype=bool)
        answered[list(p.outcomes)] = False
        self.unknown.update(p.unknown)
        self.total, self.answered = self.total + n, self.answered + int(answered.sum())
        rows = self._find_rows(p)
        self._check_presence(p, answered)
        match = self._match_documents(p, rows, answered)
        self._add_labels(p, match)
        self._add_numbers(p, match)
        return match

    def _find_rows(self, p: Predictions) -> np.ndarray:
        if self.gold is None:
            for name in p.ids:
                self.index.setdefault(name, len(self.index))
            self.seen = np.append(self.seen, np.zeros(len(self.index) - self.seen.size, dtype=bool))
        rows = np.array([self.index.get(name, -1) for name in p.ids], dtype=np.int64)
        if rows.size and (rows < 0).all() and self.total == rows.size:  # no id of the first chunk is known
            error = describe_unknown_id(p.ids[0], rows.size, rows.size, list(self.index), "annotations")
            raise p.error(0, "annotation_id", error.message)
        check(rows < 0, p, None, "annotation_id", "no annotation has this id")
        again = np.ones(rows.size, dtype=bool)
        again[np.unique(rows, return_index=True)[1]] = False
        check(self.seen[rows] | again, p, None, "annotation_id", "expected each id once, found it again")
        self.seen[rows] = True
        return rows

    def _check_presence(self, p: Predictions, answered: np.ndarray) -> None:
        every, owner = np.arange(len(p.ids)), p.instance
        labelled = np.array([label is not None for label in p.classification], dtype=bool)
        silent = "expected neither label nor rationales, because it is no answer"
        check(~answered & (labelled | (p.rationales > 0)), p, None, "outcome", silent)
        there = {"rationales": (p.rationales >= 0, every), "classification": (labelled, every)}
        there |= {name: (getattr(p, name) >= 0, owner) for name in ("hard", *SOFT_FIELDS)}
        there["thresholds"] = p.thresholds >= 0, every
        held = {side: np.isin(every, scores.owner) for side, scores in p.scores.items() if side in SIDES}
        held |= {name: ~np.isnan(values) for name, values in p.numbers.items()}
        for name in {**held, **dict.fromkeys({*SIDES, *NUMBERS} & self.present.keys())}:
            there[name] = held.get(name, every < 0), every
        for name, (has, owners) in there.items():
            has, owners = has[answered[owners]], owners[answered[owners]]
            if has.size:
                first = self.present.setdefault(name, bool(has[0]))
                words = "it here too, as in the instances before, found none" if first else "none, as before, found one"
                check(has != first, p, owners, PATHS.get(name, name), f"expected {words} (in all or in none)")
        for name, needed in {**dict.fromkeys((*ERASED, "thresholds"), "full"), "full": "classification"}.items():
            if name in self.used and needed not in self.used:
                raise p.error(0, PATHS.get(needed, needed), f"expected it beside {PATHS[name]}, found none")

    def _match_documents(self, p: Predictions, rows: np.ndarray, answered: np.ndarray) -> Match:
        gold, path = self.gold, "rationales.docid"
        if gold is None or not gold.documents.numbers:
            return Match(p.ids, rows, answered)
        owner, at = expand_ranges(gold.offsets[rows], gold.offsets[rows + 1])
        rationale_doc = gold.documents.number(p.docids)
        check(rationale_doc < 0, p, p.instance, path, "no document {!r}", p.docids)
        width = len(gold.documents.numbers)
        packed = np.concatenate([owner * width + gold.doc[at], p.instance * width + rationale_doc])
        keys, number = np.unique(packed, return_inverse=True)
        truth_key, rationale_key = number[: at.size], number[at.size :]
        key_owner, doc = np.divmod(keys, width)
        annotation = rows[key_owner]
        tokens, sentences = gold.documents.lengths(annotation, doc)
        check(tokens[rationale_key] < 0, p, p.instance, path, "no document {!r}", p.docids)
        again = np.ones(rationale_key.size, dtype=bool)
        again[np.unique(rationale_key, return_index=True)[1]] = False
        check(again, p, p.instance, path, "expected each document once, found {!r} again", p.docids)
        match = Match(p.ids, rows, answered, key_owner, tokens, sentences)
        match.evidence = np.isin(np.arange(keys.size), truth_key)
        match.truth = Spans(truth_key, gold.start[at].astype(np.int64), gold.end[at].astype(np.int64))
        match.truth_sentences = Spans(truth_key, gold.first[at].astype(np.int64), gold.last[at].astype(np.int64))
        groups, match.group = np.unique(gold.group[at], return_inverse=True)
        match.group_owner = np.zeros(groups.size, np.int64)
        match.group_owner[match.group] = owner
        if self.present.get("hard", True):
            key, start, end = match.predicted = _read_spans(p, rationale_key, tokens)
            touched = gold.documents.sentence_spans(annotation[key], doc[key], start, end)
            match.predicted_sentences = Spans(key, *touched)
        if self.present.get("soft", not answered.all()):  # of chunks without any answer it is not known yet
            match.soft = _read_ranked(p, "soft", rationale_key, tokens, match)
        if "sentence" in self.used:
            match.sentence_soft = _read_ranked(p, "sentence", rationale_key, sentences, match)
        return match

    def _add_labels(self, p: Predictions, match: Match) -> None:
        """Add labels and probabilities.

        The labels are those that are named; else those of the gold and of the first instance's scores.
        """
        if not self.named:
            layouts = list(p.scores["full"].layouts) if "full" in p.scores else []
            free = filter(None, p.classification) if self.gold is None else ()
            first = chain.from_iterable(layouts if self.gold is None else layouts[:1])
            self.labels[:] = dict.fromkeys([*self.labels, *first, *free])
            self.named = self.gold is not None
        places = {label: code for code, label in enumerate(self.labels)}
        match.labels = self.labels
        match.gold_label = np.full(match.n, -1) if self.gold is None else self.gold.label[match.rows].astype(np.int64)
        match.label = np.array([places.get(label or "", -1) for label in p.classification], np.int64)
        if "classification" in self.used and self.labels:
            strange = match.answered & (match.label < 0)
            meant = [describe_label(str(p.classification[at]), self.labels) for at in np.flatnonzero(strange)[:1]]
            check(strange, p, None, "classification", "{}", meant * match.n)
        for side, scores in p.scores.items():
            path = SIDES.get(side) or f"thresholded_scores.{SIDES[side.removeprefix('threshold_')]}"
            owner = scores.owner
            for layout, code in scores.layouts.items():
                if stranger := next((label for label in layout if label not in places), None):
                    message = describe_label(stranger, self.labels)
                    check(scores.codes == code, p, owner, path, "{}", [message] * owner.size)
            lost = np.isnan(scores.values)
            check(lost, p, np.repeat(owner, scores.widths), path, "expected probabilities, found nan")
            matrix = scores.to_matrix(places)
            self._check_probabilities(p, match, path, owner, matrix)
            if side in SIDES:
                match.probabilities[side] = np.full((match.n, len(places)), np.nan)
                match.probabilities[side][owner] = matrix
            else:
                self._add_thresholds(p, match, side.removeprefix("threshold_"), matrix)

    def _check_probabilities(
        self, p: Predictions, match: Match, path: str, owner: np.ndarray, matrix: np.ndarray
    ) -> None:
        named, label = ~np.isnan(matrix), match.label[owner]
        lacks = (label >= 0) & ~named[np.arange(owner.size), label]
        names = [p.classification[row] for row in owner[lacks]] and [p.classification[row] for row in owner]
        check(lacks, p, owner, path, "expected a probability of {!r}, found none", names)
        if "full" in match.probabilities:
            other = (named != ~np.isnan(match.probabilities["full"][owner])).any(axis=1)
            check(other, p, owner, path, f"expected the labels of {SIDES['full']}, found others")
        with np.errstate(invalid="ignore"):
            unsound = (named & ~((matrix >= 0) & np.isfinite(matrix))).any(axis=1)
            total = np.where(named, matrix, 0.0).sum(axis=1)
        check(np.asarray(unsound), p, owner, path, "expected probabilities, found {}", matrix)
        off = np.abs(total - 1) > PROBABILITY_SLACK
        check(off, p, owner, path, "expected probabilities that sum to 1, found a sum of {:g}", total)

    def _add_thresholds(self, p: Predictions, match: Match, side: str, matrix: np.ndarray) -> None:
        sizes, values = np.maximum(p.thresholds, 0), p.threshold_values
        path, rows = "thresholded_scores", np.flatnonzero(match.answered)
        if self.thresholds is None:
            first = int(sizes[: rows[0]].sum())
            self.thresholds = np.unique(values[first : first + sizes[rows[0]]])
        wanted = match.thresholds = self.thresholds
        expected = f"expected the thresholds {', '.join(f'{x:g}' for x in wanted)}, each once, found "
        check(np.asarray(sizes[rows] != wanted.size), p, rows, f"{path}.threshold", expected + "{}", sizes[rows])
        table = values.reshape(rows.size, wanted.size)
        order = np.argsort(table, axis=1, kind="stable")
        bad = (np.abs(np.take_along_axis(table, order, axis=1) - wanted) > SAME_THRESHOLD).any(axis=1)
        check(np.asarray(bad), p, rows, f"{path}.threshold", expected + "{}", table)
        if len(matrix) < values.size:
            there = np.bincount(p.scores[f"threshold_{side}"].owner, minlength=match.n)[rows] == wanted.size
            deviates = int(rows[np.argmax(there != there[0])])
            message = "expected it at every threshold of every instance or nowhere, found it at some"
            raise p.error(deviates, f"{path}.{SIDES[side]}", message)
        cube = np.full((match.n, wanted.size, matrix.shape[1]), np.nan)
        cube[rows] = np.take_along_axis(matrix.reshape(rows.size, wanted.size, -1), order[:, :, None], axis=1)
        match.threshold_probabilities[side] = cube

    def _add_numbers(self, p: Predictions, match: Match) -> None:
        for name, column in p.numbers.items():
            low, high = NUMBERS[name][2:]
            bad = match.answered & ~((column >= low - BOUND_SLACK) & (column <= high + BOUND_SLACK) & (column < np.inf))
            bad &= name in self.used
            check(bad, p, None, PATHS[name], f"expected a number from {low:g} to {high:g}, found {{}}", column)
            if name in self.used:
                match.numbers[name] = np.where(match.answered, column, np.nan)
        for side in ERASED:
            lower, upper = (match.numbers.get(f"{side}_{end}", NOTHING) for end in ("lower", "upper"))
            if lower.size and upper.size:
                check(lower > upper, p, None, "aopc_bounds", "expected lower <= upper, found {} and {}", lower, upper)

    def finish(self) -> np.ndarray | None:
        """Return the rows of the annotations that are scored, ascending; None if all are.

        Raises:
            DataError: no instance; an annotation without one, unless only predicted ones are scored.
        """
        if not self.total:
            raise DataError("expected at least one instance, found none", field="predictions")
        missing = np.flatnonzero(~self.seen)
        if not missing.size:
            return None
        if not self.only_predicted and self.gold is not None:
            raise describe_missing_id(self.gold.ids[int(missing[0])], missing.size, self.seen.size)
        return np.flatnonzero(self.seen)

    def facts(self) -> dict[str, object]:
        """Return what the signature says of missing instances and answers."""
        scored, facts = int(self.seen.sum()), dict[str, object]()
        if scored < self.seen.size:
            facts["scored"] = f"{scored}/{self.seen.size}"
        if self.answered < self.total:
            facts["answered"] = f"{self.answered}/{self.total}"
        return facts

    def notes(self) -> list[str]:
        """Return a line on fields that the format does not know, if there are any."""
        if not self.unknown:
            return []
        listed = ", ".join(f"{cut(name)[1:-1]} (in {count:,})" for name, count in sorted(self.unknown.items())[:10])
        more = f" and {len(self.unknown) - 10} more" if len(self.unknown) > 10 else ""
        return [f"not scored, because the format has no such field: {listed}{more}"]


def _read_spans(p: Predictions, rationale_key: np.ndarray, tokens: np.ndarray) -> Spans:
    """Return the distinct predicted spans by key and start, checked.

    Args:
        p: the predictions.
        rationale_key: the key of each rationale.
        tokens: the tokens of each key's document.
    """
    rationale = np.repeat(np.arange(rationale_key.size), np.maximum(p.hard, 0))
    owner, path = p.instance[rationale], f"rationales.{HARD_FIELD}"
    try:
        start, end = np.array(p.starts, np.int64), np.array(p.ends, np.int64)
    except OverflowError:
        at = next(at for at, pair in enumerate(zip(p.starts, p.ends, strict=True)) if max(map(abs, pair)) >= 1 << 63)
        found = f"expected offsets within the document, found [{p.starts[at]}, {p.ends[at]})"
        raise p.error(int(owner[at]), path, found) from None
    key = rationale_key[rationale]
    order = "expected 0 <= start_token < end_token, found [{}, {})"
    check((start < 0) | (end <= start), p, owner, f"{path}.start_token", order, start, end)
    past = "expected at most {} (the document's tokens), found {}"
    check(end > tokens[key], p, owner, f"{path}.end_token", past, tokens[key], end)
    by_start = np.lexsort((end, start, key))
    key, start, end, owner = key[by_start], start[by_start], end[by_start], owner[by_start]
    same_key = key[1:] == key[:-1]
    fresh = np.append(True, ~(same_key & (start[1:] == start[:-1]) & (end[1:] == end[:-1])))[: key.size]
    key, start, end, owner = key[fresh], start[fresh], end[fresh], owner[fresh]
    overlap = np.flatnonzero((key[1:] == key[:-1]) & (start[1:] < end[:-1]))
    shown = [start[overlap], end[overlap], start[overlap + 1], end[overlap + 1]]
    apart = "expected spans that do not overlap, found [{}, {}) and [{}, {})"
    check(overlap >= 0, p, owner[overlap + 1], path, apart, *shown)
    return Spans(key, start, end)


def _read_ranked(p: Predictions, name: str, rationale_key: np.ndarray, lengths: np.ndarray, match: Match) -> Ranked:
    """Return soft scores: finite, one for each token (or sentence) of the document, in every document with evidence.

    An instance without answer has scores of 0 in its documents with evidence.

    Args:
        p: the predictions.
        name: "soft" or "sentence".
        rationale_key: the key of each rationale.
        lengths: the tokens (or sentences) of each key's document.
        match: the keys.
    """
    sizes, values = getattr(p, name), getattr(p, f"{name}_values")
    unit, path, wanted = "tokens" if name == "soft" else "sentences", PATHS[name], lengths[rationale_key]
    expected = f"expected {{}} scores (the document's {unit}), found {{}} for {{!r}}"
    check((sizes >= 0) & (sizes != wanted), p, p.instance, path, expected, wanted, sizes, p.docids)
    owner = np.repeat(p.instance, np.maximum(sizes, 0))
    check(~np.isfinite(values), p, owner, path, "expected finite numbers, found {}", values)
    answered = match.answered[match.owner]
    lacking = match.evidence & answered & ~np.isin(np.arange(lengths.size), rationale_key[sizes >= 0])
    message = f"expected scores in every document with evidence, found none in one of {{}} {unit}"
    check(lacking, p, match.owner, path, message, lengths)
    silent = np.flatnonzero(match.evidence & ~answered)
    key = np.concatenate([rationale_key[sizes >= 0], silent])
    offsets = np.append(0, np.cumsum(np.concatenate([sizes[sizes >= 0], lengths[silent]])))
    return Ranked(key, offsets, np.concatenate([values, np.zeros(int(lengths[silent].sum()))]))
