"""Predictions (ERASER instances) as flat arrays, read from dicts in chunks of any size."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from .errors import DataError
from .rows import Row, find_fault, row_id, simplify

ERASED = ("comprehensiveness", "sufficiency")
SIDES = {
    "full": "classification_scores",
    "comprehensiveness": "comprehensiveness_classification_scores",
    "sufficiency": "sufficiency_classification_scores",
    "null": "null_classification_scores",
}
HARD_FIELD = "hard_rationale_predictions"
SOFT_FIELDS = {"soft": "soft_rationale_predictions", "sentence": "soft_sentence_predictions"}
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
# name of a field in `Predictions.has` -> its path in messages
PATHS = {"rationales": "rationales", "classification": "classification", "hard": f"rationales.{HARD_FIELD}"}
PATHS |= {name: f"rationales.{path}" for name, path in SOFT_FIELDS.items()}
PATHS |= {"thresholds": "thresholded_scores", **SIDES}
PATHS |= {name: f"{owner}.{inner}".rstrip(".") for name, (owner, inner, _, _) in NUMBERS.items()}
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
    "outcome": str,
    **dict.fromkeys(("quotes", "asked_again", "ranked_tokens", "kd"), ()),
}
NOTHING = np.zeros(0, np.int64)


class Lists(NamedTuple):
    """A list of each instance or rationale: its size, int64, -1 where it is absent; and the values of all, flat."""

    size: np.ndarray
    values: np.ndarray


NO_LISTS = Lists(NOTHING, NOTHING)


class Probabilities(NamedTuple):
    """Probabilities of labels: the instance of each row, int64 (rows,), and float64 (rows, labels), NaN: absent."""

    owner: np.ndarray
    table: np.ndarray


@dataclass
class Predictions:
    """Instances of one chunk: n instances with m rationales, one a document.

    Attributes:
        ids: of the instances.
        lines: the line of each in its file; None: rows in memory.
        answered: False for an instance whose ``outcome`` is no answer: bool (n,).
        classification: the label of each instance; None: absent.
        owner: the instance of each rationale: int64 (m,); ``docids``: its document.
        hard: the spans of each rationale, int64 (2, spans): starts and ends.
        soft: the scores of tokens of each rationale; ``sentence``: of sentences.
        thresholds: those of each instance.
        labels: the names that have probabilities, by first appearance.
        scores: side of `SIDES` -> probabilities; ``threshold_SIDE`` -> those at each threshold.
        numbers: name of `NUMBERS` -> float64 (n,), NaN: absent.
        has: field of `PATHS` -> whether each instance, or rationale, has it: bool.
        unknown: field that the format does not know -> number of instances (or rationales) that have it.
    """

    ids: list[Any]
    lines: Sequence[int] | None = None
    answered: np.ndarray = field(default_factory=lambda: NOTHING)
    classification: list[str | None] = field(default_factory=list)
    owner: np.ndarray = field(default_factory=lambda: NOTHING)
    docids: list[str] = field(default_factory=list)
    hard: Lists = NO_LISTS
    soft: Lists = NO_LISTS
    sentence: Lists = NO_LISTS
    thresholds: Lists = NO_LISTS
    labels: list[str] = field(default_factory=list)
    scores: dict[str, Probabilities] = field(default_factory=dict)
    numbers: dict[str, np.ndarray] = field(default_factory=dict)
    has: dict[str, np.ndarray] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)

    def error(self, row: int, field: str, message: str) -> DataError:
        """Return the error of an instance's field."""
        line = None if self.lines is None else self.lines[row]
        if self.ids[row] is None and line is None:
            field = f"predictions[{row}].{field}".rstrip(".")
        return DataError(message, line=line, instance=self.ids[row], field=field)


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
        layouts = _fill(p, rows)
        if None not in p.ids:
            suspects = sorted(at for layout, at in layouts.items() if layout not in known)
            known |= layouts.keys()
    except (TypeError, KeyError, AttributeError, ValueError, OverflowError) as error:
        failure = error  # of a value of another type; the first is looked for
    for at in suspects:
        if fault := find_fault(rows[at], INSTANCE):
            raise p.error(at, *fault)
    if failure is not None:
        raise DataError(f"expected instances, found what cannot be read: {failure}", argument="predictions")
    return p


def _fill(p: Predictions, rows: Sequence[Row]) -> dict[tuple[str, ...], int]:
    """Fill the arrays, and return {fields of a row, or of a rationale, in their order: the first row that has them}."""
    n, instances = len(rows), np.arange(len(rows))
    names = list(map(tuple, rows))
    layouts = Counter(names)
    fields = set(chain.from_iterable(layouts))

    def column(path: str) -> list[Any]:
        return [row.get(path) for row in rows] if path in fields else [None] * n

    p.answered = np.ones(n, dtype=bool)
    p.answered[[at for at, outcome in enumerate(column("outcome")) if outcome not in (None, "answered")]] = False
    p.classification = column("classification")
    several = column("rationales")
    sizes, rationales = _count(several), list(chain.from_iterable(filter(None, several)))
    p.owner, inner = np.repeat(instances, np.maximum(sizes, 0)), list(map(tuple, rationales))
    p.docids = [rationale["docid"] for rationale in rationales]
    p.docids = p.docids if set(map(type, p.docids)) <= {str} else list(map(str, p.docids))
    lists = [rationale.get(HARD_FIELD) for rationale in rationales]
    spans = list(chain.from_iterable(filter(None, lists)))
    ends = [[span[end] for span in spans] for end in ("start_token", "end_token")]
    p.hard = Lists(_count(lists), np.array(ends, np.int64).reshape(2, -1))
    p.soft, p.sentence = (
        _join_numbers([rationale.get(path) for rationale in rationales]) for path in SOFT_FIELDS.values()
    )
    entries = column("thresholded_scores")
    thresholded = list(chain.from_iterable(filter(None, entries)))
    thresholds = [entry["threshold"] for entry in thresholded]
    p.thresholds = Lists(_count(entries), np.array(thresholds, float))
    kinds: list[tuple[set[type], set[type]]] = [
        ({*map(type, chain(*ends))}, {int}),
        ({*map(type, p.classification)}, {str, type(None)}),
        ({*map(type, thresholds)}, {int, float}),
    ]
    if any(found - wanted for found, wanted in kinds):
        raise TypeError  # numpy would read a text as a number
    held = {side: (column(path), instances) for side, path in SIDES.items() if path in fields}
    owner = np.repeat(instances, np.maximum(p.thresholds.size, 0))
    for side in ERASED if thresholded else ():
        held[f"threshold_{side}"] = [entry.get(SIDES[side]) for entry in thresholded], owner
    _add_probabilities(p, held)
    for name, (path, within, _, _) in NUMBERS.items():
        if path in fields:
            values = [None if x is None else x.get(within) for x in column(path)] if within else column(path)
            p.numbers[name] = np.array([np.nan if value is None else float(value) for value in values])
    p.has = {"rationales": sizes >= 0, "classification": np.array([x is not None for x in p.classification], bool)}
    p.has |= {name: getattr(p, name).size >= 0 for name in ("hard", *SOFT_FIELDS, "thresholds")}
    nowhere = np.zeros(n, dtype=bool)
    p.has |= {
        side: np.bincount(p.scores[side].owner, minlength=n) > 0 if side in p.scores else nowhere for side in SIDES
    }
    p.has |= {name: ~np.isnan(p.numbers[name]) if name in p.numbers else nowhere for name in NUMBERS}
    for prefix, counted, known in (("", layouts, INSTANCE), ("rationales.", Counter(inner), INSTANCE["rationales"][0])):
        for layout, count in counted.items():
            p.unknown.update({f"{prefix}{name}": count for name in layout if name not in known})
    found, row = [*names, *inner], [*range(n), *p.owner.tolist()]
    return dict(zip(reversed(found), reversed(row), strict=True))  # of equal keys a dict keeps the last: the first row


def _count(lists: Sequence[Sequence[Any] | None]) -> np.ndarray:
    return np.array([-1 if each is None else len(each) for each in lists], np.int64)


def _join_numbers(lists: Sequence[list[float] | None]) -> Lists:
    buffer = array("d")
    for each in lists:
        if each:
            buffer.fromlist(each)
    return Lists(_count(lists), np.frombuffer(buffer, np.float64))


def _add_probabilities(
    p: Predictions, held: Mapping[str, tuple[Sequence[dict[str, float] | None], np.ndarray]]
) -> None:
    """Add the probabilities of each side, of objects {label: probability} or None, and the instance of each."""
    sides = {}
    for side, (scores, owner) in held.items():
        there = [each for each in scores if each is not None]
        if there:
            owner = owner if len(there) == len(scores) else owner[[each is not None for each in scores]]
            sides[side] = there, owner, list(map(tuple, there))
    layouts = [dict.fromkeys(names) for _, _, names in sides.values()]
    p.labels = list(dict.fromkeys(chain.from_iterable(chain.from_iterable(layouts))))
    places = {label: column for column, label in enumerate(p.labels)}
    for (side, (there, owner, names)), layouts_of_side in zip(sides.items(), layouts, strict=True):
        listed: list[float] = list(chain.from_iterable(map(dict.values, there)))
        values = np.frombuffer(array("d", listed))
        if bool in set(map(type, listed)) or np.isnan(values).any():
            raise TypeError  # to Python a boolean is a number; NaN marks what is absent
        table, codes = np.full((len(there), len(places)), np.nan), {each: at for at, each in enumerate(layouts_of_side)}
        layout = np.fromiter(map(codes.__getitem__, names), np.int64, len(names))
        width = np.fromiter(map(len, codes), np.int64)[layout]
        first = np.cumsum(width) - width
        for labels, code in codes.items():
            rows, columns = np.flatnonzero(layout == code), [places[label] for label in labels]
            table[rows[:, None], columns] = values[first[rows][:, None] + np.arange(len(columns))]
        p.scores[side] = Probabilities(owner, table)
