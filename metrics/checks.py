"""Checks of predictions and references: one rule per function, over flat arrays.

A rule adds to its `Issues` the side, the rows, the field, and the expected and found values. Checks repair nothing:
scores are computed from the values as they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence, Set
from functools import partial

import numpy as np

from eraser_hub.schema.instance import (
    ERASED,
    HARD_FIELD,
    LIST_FIELDS,
    NUMBER_FIELDS,
    PROBABILITY_SLACK,
    SCORE_FIELDS,
    SOFT_FIELDS,
)

from .flat import SIZES, TABLES, Predictions, References
from .issues import MAX_SHOWN, Issues
from .joining import MatchedChunk
from .unknown_fields import find_similar

ROWS_AT_ONCE = 1 << 16
# tolerance of the bounds of differences of probabilities: the rounding of a sum of thousands is smaller
BOUND_SLACK = 1e-9


def _find_evidence_path(r: References, field: str, evidence: int) -> str:
    """Return the path of an evidence's field, with the index of its group and its own index there."""
    group = int(r.group[evidence])
    number = group - int(np.searchsorted(r.group_instance, r.group_instance[group]))
    return f"evidences[{number}][{evidence - int(np.searchsorted(r.group, group))}].{field}"


def check_rationales(chunk: MatchedChunk, tokens: np.ndarray, issues: Issues) -> None:
    """Check rationales: each in a known document, no document twice in an instance, and sound spans.

    A span has 0 <= start < end, lies within the document, and is disjoint from (or equal to) the others there.

    Args:
        chunk: the matched predictions.
        tokens: the tokens of each rationale's document; -1 if it is unknown.
        issues: the issues to extend.
    """
    p = chunk.p
    report = partial(issues.add_where, "prediction", field=partial(_find_path, p, "docid"), rows=p.instance)
    unknown = (tokens < 0) & (chunk.owner >= 0)
    report(unknown, message=lambda at: f"no document {p.docids[int(p.doc[at])]!r}", rule="document-unknown")
    packed = p.instance * max(len(p.docids), 1) + p.doc
    order = np.argsort(packed, kind="stable")
    repeated = np.sort(order[1:][packed[order][1:] == packed[order][:-1]])
    once = "expected each document once"
    report(repeated, message=lambda at: f"{once}, found {p.docids[int(p.doc[at])]!r} again", rule="document-twice")

    span = np.repeat(np.arange(p.hard.size), np.maximum(p.hard, 0))
    limit = tokens[span]
    add = partial(issues.add_where, "prediction", rows=p.instance[span])

    def shown(at: int) -> str:
        return f"[{p.start[at]}, {p.end[at]})"

    def path(field: str, at: int) -> str:
        return _find_path(p, f"{HARD_FIELD}[{at - np.searchsorted(span, span[at])}].{field}", int(span[at]))

    start_field, most = partial(path, "start_token"), "(the document's tokens), found"
    unsound, expected = (p.start < 0) | (p.end <= p.start), "expected 0 <= start_token < end_token, found"
    add(unsound, start_field, lambda s: f"{expected} {shown(s)}", "span-order")
    past = ~unsound & (limit >= 0) & (p.end > limit)
    add(past, partial(path, "end_token"), lambda s: f"expected at most {limit[s]} {most} {p.end[s]}", "span-bounds")
    sound = np.flatnonzero(~unsound & ~past)
    order = sound[np.lexsort((p.end[sound], p.start[sound], packed[span[sound]]))]
    key, start, end = packed[span[order]], p.start[order], p.end[order]
    same = (key[1:] == key[:-1]) & (start[1:] == start[:-1]) & (end[1:] == end[:-1])
    keep = np.concatenate([np.ones(min(order.size, 1), dtype=bool), ~same])
    order, key, start, end = order[keep], key[keep], start[keep], end[keep]
    overlap = np.flatnonzero((key[1:] == key[:-1]) & (start[1:] < end[:-1]))
    before = dict(zip(order[overlap + 1].tolist(), order[overlap].tolist(), strict=True))
    disjoint = "expected spans that do not overlap, found"
    add(order[overlap + 1], start_field, lambda s: f"{disjoint} {shown(before[s])} and {shown(s)}", "span-overlap")


def _find_path(p: Predictions, field: str, rationale: int) -> str:
    """Return the path of a rationale's field, with the rationale's index in its instance."""
    first = np.searchsorted(p.instance, p.instance[rationale])
    return f"rationales[{rationale - first}].{field}"


def check_scores(p: Predictions, name: str, lengths: np.ndarray, issues: Issues) -> None:
    """Check soft scores: one finite number per token (or sentence) of the document.

    Args:
        p: the predictions.
        name: a key of `schema.instance.SOFT_FIELDS`.
        lengths: the tokens (or sentences) of each rationale's document; -1 if it is unknown.
        issues: the issues to extend.
    """
    sizes, scores, (field, unit, _) = getattr(p, name), getattr(p, f"{name}_scores"), SOFT_FIELDS[name]
    report = partial(issues.add_where, "prediction", field=partial(_find_path, p, field), rows=p.instance)

    def message(at: int) -> str:
        expected = f"expected {lengths[at]} scores (the document's {unit})"
        return f"{expected}, found {sizes[at]} for {p.docids[int(p.doc[at])]!r}"

    report((sizes >= 0) & (lengths >= 0) & (sizes != lengths), message=message, rule="length")
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:  # one issue per rationale
        owner, first = np.unique(_find_owners(sizes, bad), return_index=True)
        names = dict(zip(owner.tolist(), np.isnan(scores[bad[first]]).tolist(), strict=True))
        expected = "expected finite numbers, found"
        report(owner, message=lambda at: f"{expected} {'NaN' if names[at] else 'infinity'}", rule="range")


def _find_owners(sizes: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the owner of each of some flat values; ``sizes`` holds the number of values of each owner, -1 for none."""
    return np.searchsorted(np.cumsum(np.maximum(sizes, 0)), places, side="right")


def check_probabilities(p: Predictions, matrix: np.ndarray, rows: np.ndarray, field: str, issues: Issues) -> None:
    """Check rows of {label: p}: p is in [0, 1], sums to 1 (within 1e-3) and includes the predicted label.

    A row has the same labels as the instance's ``classification_scores``, if there are any.

    Args:
        p: the predictions.
        matrix: the probabilities, float64 (rows, labels).
        rows: the instance of each row of the matrix.
        field: the path of the field, for messages.
        issues: the issues to extend.
    """
    if rows.size > ROWS_AT_ONCE:
        for begin in range(0, rows.size, ROWS_AT_ONCE):
            block = slice(begin, begin + ROWS_AT_ONCE)
            check_probabilities(p, matrix[block], rows[block], field, issues)
        return
    named = ~np.isnan(matrix)
    present = named.any(axis=1)
    if not present.any():
        return
    report = partial(issues.add_where, "prediction", field=field, rows=rows)
    label = p.classification[rows]
    lacks = present & (label >= 0)
    lacks[lacks] = ~named[np.flatnonzero(lacks), label[lacks]]
    expected = "expected a probability for"
    report(lacks, message=lambda at: f"{expected} {p.labels[int(label[at])]!r}, found none", rule="score-missing")
    whole = ~np.isnan(p.full[rows])
    other = present & ~lacks & whole.any(axis=1) & (named != whole).any(axis=1)
    report(other, message="expected the labels of classification_scores, found others", rule="constant")
    values = np.where(named, matrix, 0.0)
    with np.errstate(invalid="ignore"):
        unsound = np.asarray(present & ((values < 0) | ~np.isfinite(values)).any(axis=1))
        total = values.sum(axis=1)
        off = present & ~unsound & (np.abs(total - 1) > PROBABILITY_SLACK)

    def listed(at: int) -> str:
        shown = (f"{value:g}" if np.isfinite(value) else "NaN or infinity" for value in values[at][named[at]][:10])
        return f"expected probabilities, found {', '.join(shown)}"

    report(unsound, message=listed, rule="probabilities")
    summed = "expected probabilities of all labels that sum to 1, found a sum of"
    report(off, message=lambda at: f"{summed} {total[at]:g}", rule="probabilities")


def check_numbers(p: Predictions, issues: Issues) -> None:
    """Check that numbers of instances are finite and in their ranges, and that AOPC bounds are in order."""
    rules = []
    with np.errstate(invalid="ignore"):
        for name, number in NUMBER_FIELDS.items():
            value = p.number(name)
            bad = (value < number.low - BOUND_SLACK) | (value > number.high + BOUND_SLACK) | np.isinf(value)
            span = f"from {number.low:g} to {number.high:g}" if np.isfinite(number.high) else f"from {number.low:g} on"
            rules.append((bad, number.field, "of tokens" if name == "tokens_to_flip" else span, value))
        for side in ERASED:
            upper, field = p.number(f"{side}_upper"), NUMBER_FIELDS[f"{side}_upper"].field
            rules.append((p.number(f"{side}_lower") > upper, field, "that is not below the lower bound", upper))
    for bad, field, expected, value in rules:
        places = np.flatnonzero(bad)
        messages = {at: f"expected a number {expected}, found {value[at]}" for at in places[:MAX_SHOWN].tolist()}
        issues.add_where("prediction", places, field, messages.__getitem__, "range")


# name of an array -> its field in messages; other arrays have the field's name
FIELDS = SIZES | TABLES | {name: number.field for name, number in NUMBER_FIELDS.items()}


# name of an array -> the one that the predictions need beside it
NEEDS = {**dict.fromkeys((*ERASED, *LIST_FIELDS), "full"), "full": "classification"}


@dataclasses.dataclass
class OptionalFields:
    """Checks that each optional field is present in all instances or in none, across chunks.

    Attributes:
        issues: the issues to extend, with the first instance that deviates from those before it.
        present: name -> True if the first instance has the field: "hard", "classification", fields of
            `flat.Predictions` and of `schema.instance.NUMBER_FIELDS`.
        used: the names of the present fields.
        broken: the names of the fields that have an issue.
    """

    issues: Issues
    present: dict[str, bool] = dataclasses.field(default_factory=dict)
    used: set[str] = dataclasses.field(default_factory=set)
    broken: set[str] = dataclasses.field(default_factory=set)

    def check(self, p: Predictions) -> None:
        """Check a chunk; instances without answer have no fields."""
        rows, answered = np.arange(len(p.ids)), p.answered.astype(bool)
        report = partial(self.issues.add_where, "prediction")
        if not answered.all():
            why = "because the outcome is no answer"
            report((p.classification >= 0) & ~answered, "classification", f"expected null, {why}", "constant")
            for name in ("rationales", *LIST_FIELDS):
                bad, path = (getattr(p, name) > 0) & ~answered, FIELDS.get(name, name)
                report(bad, path, f"expected none, {why}", "constant")
        there: dict[str, tuple[np.ndarray, np.ndarray]] = {"rationales": (p.rationales >= 0, rows)}
        there |= {name: (getattr(p, name) >= 0, p.instance) for name in ("hard", *SOFT_FIELDS)}
        there |= {name: (~np.isnan(p.numbers[:, number]), rows) for number, name in enumerate(NUMBER_FIELDS)}
        there |= {name: (getattr(p, name) >= 0, rows) for name in ("classification", *LIST_FIELDS)}
        there |= {name: (~np.all(np.isnan(m), axis=1), owner) for name, m, owner, _ in _iterate_probabilities(p)}
        for name, (present, owner) in there.items():
            if not answered.all():
                present, owner = present[answered[owner]], owner[answered[owner]]
            if not present.size:
                continue
            first = self.present.setdefault(name, bool(present[0]))
            if first:
                self.used.add(name)
            other = np.flatnonzero(present != first)
            if other.size and name not in self.broken:
                self.broken.add(name)
                expected, got = ("it here too", "none") if first else ("none", "one here")
                message = f"expected {expected}, as in the instances before (present in all or in none), found {got}"
                report(owner[other[:1]], FIELDS.get(name, name), message, "key-missing")


def _iterate_probabilities(p: Predictions) -> Iterator[tuple[str, np.ndarray, np.ndarray, str]]:
    """Yield (name, matrix, the instance of each row, field) of all probabilities, those in lists last."""
    rows = np.arange(len(p.ids))
    for name, field in SCORE_FIELDS.items():
        yield name, getattr(p, name), rows, field
    for several, (_, entry) in LIST_FIELDS.items():
        owner = np.repeat(rows, np.maximum(getattr(p, several), 0))
        for side in ERASED:
            name = f"{entry}_{side}"
            yield name, getattr(p, name), owner, FIELDS[name]


def check_own_documents(r: References, issues: Issues) -> None:
    """Check that no annotation has a document twice."""
    own = np.flatnonzero(r.document_instance >= 0)
    own = own[np.lexsort((r.document[own], r.document_instance[own]))]
    repeated = own[1:][(np.diff(r.document_instance[own]) == 0) & (np.diff(r.document[own]) == 0)]

    def message(at: int) -> str:
        return f"expected each document once, found {r.docids[r.document[at]]!r} again"

    issues.add_where("reference", repeated, "documents", message, "document-twice", r.document_instance)


def check_documents(chunk: MatchedChunk, used: Set[str], issues: Issues) -> None:
    """Check gold spans, predicted spans and their documents, and that every document with evidence has soft scores.

    A gold span lies in a known document and within it, with start <= end; empty ones are valid.
    """
    r = chunk.r
    rows = r.group_instance[r.group] if r.group.size else np.zeros(0, dtype=np.int64)
    tokens, sentences = chunk.documents.lengths(chunk.rows[rows], r.doc)
    unknown = tokens < 0
    reversed_ = ~unknown & ((r.start < 0) | (r.end < r.start))
    past = ~unknown & ~reversed_ & (r.end > tokens)
    order, most = "expected 0 <= start_token <= end_token, found", "(the document's tokens), found"
    rules: list[tuple[np.ndarray, str, Callable[[int], str], str]] = [
        (unknown, "docid", lambda e: f"no document {r.docids[int(r.doc[e])]!r}", "document-unknown"),
        (reversed_, "start_token", lambda e: f"{order} [{r.start[e]}, {r.end[e]})", "span-order"),
        (past, "end_token", lambda e: f"expected at most {tokens[e]} {most} {r.end[e]}", "span-bounds"),
    ]
    if used & {"sentence", "hard"}:
        first, last = r.start_sentence, r.end_sentence
        known = ~unknown & (first >= 0) & (last >= 0)
        orders, limit = "expected start_sentence <= end_sentence, found", "(the document's sentences), found"
        rules += [
            (known & (last < first), "start_sentence", lambda e: f"{orders} [{first[e]}, {last[e]})", "span-order"),
            (
                known & (last > sentences),
                "end_sentence",
                lambda e: f"expected at most {sentences[e]} {limit} {last[e]}",
                "span-bounds",
            ),
        ]
    for bad, field, describe, rule in rules:
        issues.add_where("reference", bad, partial(_find_evidence_path, r, field), describe, rule, rows)
    check_rationales(chunk, chunk.lengths[0], issues)
    message = "expected scores for document {!r}, which has evidence; found none"
    for name in (name for name in SOFT_FIELDS if name in used):
        wanted, present = np.unique(chunk.evidence), getattr(chunk.p, name) >= 0
        owner, doc = np.divmod(wanted[~np.isin(wanted, chunk.rationale[present])], chunk.width)
        messages = [message.format(r.docids[number]) for number in doc[:MAX_SHOWN]]
        places, rows = np.arange(doc.size), chunk.row[owner]
        issues.add_where("prediction", places, FIELDS[name], messages.__getitem__, "score-missing", rows)


class LabelChecker:
    """Checks labels, probabilities, numbers of instances and random rationales, across chunks.

    Args:
        r: the references, or None.
        label_names: the labels, if the corpus or the caller names them. If not, a predicted label must be one of the
            references' or one that every instance scores; without references any label is valid.
        labels: the issues of labels to extend.
        probabilities: the issues of probabilities to extend.
    """

    def __init__(
        self, r: References | None, label_names: Sequence[str] | None, labels: Issues, probabilities: Issues
    ) -> None:
        self.names = None if label_names is None else list(label_names)
        present: list[int] = [] if r is None else np.unique(r.classification[r.classification >= 0]).tolist()
        self.gold = [] if r is None else [r.labels[code] for code in present]
        self.labels, self.probabilities = labels, probabilities
        self.scored: dict[str, None] | None = None  # the labels that all instances so far score
        self.unknown_labels: dict[str, Issues] = {}  # of predicted labels beyond the references'
        self.draws: int | None = None

    def check(self, p: Predictions, used: Set[str]) -> None:
        """Check a chunk."""
        if self.names is None:
            self._record_labels(p)
        elif "classification" in used:
            names = ", ".join(self.names)
            unknown = np.array([*(label not in self.names for label in p.labels), False])
            self.labels.add_where(
                "prediction",
                unknown[p.classification],
                "classification",
                lambda at: _describe_unknown(p.labels[int(p.classification[at])], self.names or ()),
                "label-unknown",
            )
            columns = np.flatnonzero(unknown[:-1])
            for name, field in SCORE_FIELDS.items() if columns.size else ():
                named = ~np.isnan(getattr(p, name)[:, columns]).all(axis=1)
                others = f"expected scores for {names}, found other labels"
                self.labels.add_where("prediction", named, field, others, "label-unknown")
        for _, matrix, owner, field in _iterate_probabilities(p):
            check_probabilities(p, matrix, owner, field, self.probabilities)
        check_numbers(p, self.probabilities)
        if "draws" in used:
            if self.draws is None:
                self.draws = max(int(p.draws[int(p.answered.argmax())]), 1)
            bad, expected = (p.draws != self.draws) & (p.answered == 1), f"expected {self.draws} draws, found"
            field = LIST_FIELDS["draws"].field
            self.probabilities.add_where("prediction", bad, field, lambda at: f"{expected} {p.draws[at]}", "length")

    def _record_labels(self, p: Predictions) -> None:
        """Record the labels that all instances score, and the rows that predict a label beyond the references'."""
        everywhere: list[int] = np.flatnonzero(~np.any(np.isnan(p.full[p.answered == 1]), axis=0)).tolist()
        scored = dict.fromkeys(p.labels[code] for code in everywhere)
        self.scored = scored if self.scored is None else {label: None for label in self.scored if label in scored}
        for code, label in enumerate(p.labels):
            rows = np.flatnonzero(p.classification == code)
            if self.gold and label not in self.gold and rows.size:
                issues = self.unknown_labels.setdefault(label, Issues(self.labels.sides))
                issues.add_where("prediction", rows, "classification", "", "label-unknown")

    def finish(self) -> list[str]:
        """Return the labels: the named ones, or else the references' and those that every instance scores."""
        if self.names is not None:
            return self.names
        known = list(dict.fromkeys([*self.gold, *(self.scored or ())]))
        unknown_labels = {label: issues for label, issues in self.unknown_labels.items() if label not in known}
        unknown = [(issue.row, label, issue) for label, issues in unknown_labels.items() for issue in issues]
        for _, label, issue in sorted(unknown):
            self.labels.add_issue(issue._replace(message=_describe_unknown(label, known)))
        self.labels.total += sum(issues.total - len(issues) for issues in unknown_labels.values())
        return known


def _describe_unknown(label: str, names: Sequence[str]) -> str:
    """Return the message for a label that is none of the names, with the name that it may stand for."""
    near = find_similar(label, names) or find_similar(label, [name.lower() for name in names])
    meant = next((name for name in names if near and name.lower() == near.lower()), None)
    return f"expected one of {', '.join(names)}, found {label!r}" + (f": did you mean {meant!r}?" if meant else "")


def name_labels(r: References, label_names: Sequence[str] | None, issues: Issues) -> None:
    """Replace label numbers by names (changes ``r.labels``); labels beyond ``label_names`` are issues."""
    report = partial(issues.add_where, "reference", field="classification")
    if label_names is None:
        numbered = np.array([*(label.startswith("\0") for label in r.labels), False])[r.classification]
        if numbered.any():
            number = r.labels[r.classification[numbered.argmax()]][1:]
            message = f"expected labels, found numbers ({number}) in {numbered.sum()} rows: pass label_names=[..]"
            report(np.flatnonzero(numbered)[:1], message=message, rule="label-unknown")
        return
    names = list(label_names)
    merged = [*names, *(label for label in r.labels if not label.startswith("\0") and label not in names)]
    places = {label: code for code, label in enumerate(merged)}
    moved = []
    for code, label in enumerate(r.labels):
        message = f"expected one of {', '.join(names)}, found {label!r}"
        place = places.get(label, -1)
        if label.startswith("\0"):
            message = f"expected a label number from 0 to {len(names) - 1}, found {int(label[1:])}"
            place = int(label[1:]) if 0 <= int(label[1:]) < len(names) else -1
        if not 0 <= place < len(names):
            report(r.classification == code, message=message, rule="label-unknown")
        moved.append(place)
    r.classification = np.array([*moved, -1], dtype=np.int64)[r.classification]
    r.labels = merged
