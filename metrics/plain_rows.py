"""Rationales as people have them, one row a text: 0/1 masks, scores, spans and quotes, as instances and annotations.

A row is the rationale alone, or an object {"id", "text" or "tokens", "rationale", "scores", "quotes", "label",
"probabilities"}, of which the rationale (or the quotes, or the scores) is required. Forms of a rationale:

    mask       whole numbers 0 and 1 or booleans, one a token
    scores     floats, one a token; higher is more important
    spans      pairs [start, end), or objects with start and end: of characters if the text is a string, of tokens if it
               is a list of tokens; {"start_token", "end_token"} always counts tokens
    quotes     strings of the text, see `quote_alignment`

Rows without ids belong together by their place.
"""

from __future__ import annotations

import re
import warnings
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import isfinite
from typing import Any

from eraser_hub.schema.instance import HARD_FIELD
from eraser_hub.schema.rows import ID_FIELDS, PLAIN_FIELDS

from .cells import Row, as_list, as_number, as_scalar
from .issues import InputError, Issues, cut
from .quote_alignment import Document, align
from .token_rows import escape_whitespace, find_mask_runs
from .tokens import mask, sentence_sizes, split_tokens
from .unknown_fields import describe_misspelling, find_similar

MASK, SCORES, SPANS, QUOTES = "a 0/1 mask", "scores", "spans", "quotes"
RATIONALE = "rationale"
_FORMS = (RATIONALE, "scores", "quotes")
_NO_TEXT = "quotes need their text, found none: expected `text` or `tokens` beside {} in this row or its reference"
_OTHER_RECORDS = frozenset(("rationales", "documents", "evidences", "rationale_mask", "annotators", "annotation_id"))
_PAIRS = (("start_token", "end_token"), ("start", "end"), ("start_offset", "end_offset"), ("begin", "end"))
SOFT_FIELD = "soft_rationale_predictions"
_COLUMNS = {"texts": "text", "ids": "id", "labels": "label"}
_PLACEHOLDER = "_"  # a token of a text that is not known

Span = tuple[int, int]


def spans_from_mask(mask: Iterable[object]) -> list[Span]:
    """Return the runs of marked tokens of a 0/1 mask.

    Args:
        mask: a value for each token, which is marked if the value is true; a list, a numpy array, a tensor or a Series.

    Returns:
        spans [start, end) in tokens, ascending.

    >>> spans_from_mask([0, 1, 1, 0, 1])
    [(1, 3), (4, 5)]
    """
    values = as_list(mask)
    return find_mask_runs(map(as_scalar, mask if values is None else values))


def mask_from_spans(spans: Iterable[Sequence[int]], size: int) -> list[int]:
    """Return the 0/1 mask of spans.

    Args:
        spans: pairs [start, end) in tokens; they may overlap.
        size: the number of tokens.

    Raises:
        ValueError: a span lies outside the tokens, or ends before its start.

    >>> mask_from_spans([(1, 3), (4, 5)], 5)
    [0, 1, 1, 0, 1]
    """
    pairs = [(int(start), int(end)) for start, end in spans]
    for start, end in pairs:
        if not 0 <= start <= end <= size:
            raise InputError(f"expected spans within {size} tokens, found {[start, end]}", "span-bounds", "spans")
    return list(map(int, mask(pairs, size)))


def instances_from(
    rationales: Any,
    *,
    texts: Iterable[str | Sequence[str]] | None = None,
    ids: Iterable[str | int] | None = None,
    labels: Iterable[str] | None = None,
    probabilities: Iterable[Mapping[str, float]] | None = None,
) -> list[dict[str, Any]]:
    """Return rationales as instances, which every metric and a predictions file take.

    Args:
        rationales: a row for each text: a 0/1 mask, float scores, spans, quotes, or an object (see the module).
        texts: the text of each row, as a string or as tokens; quotes and spans of characters need it.
        ids: the id of each row; by default its place, from "0".
        labels: the predicted label of each row.
        probabilities: {label: probability} of each row.

    Returns:
        instances with one document each, which has the instance's id.

    Raises:
        ValueError: a row has none of these forms, or does not fit its text.

    Examples:
        >>> instance, = instances_from([[0, 1, 1]], ids=["a"])
        >>> instance["rationales"]
        [{'docid': 'a', 'hard_rationale_predictions': [{'start_token': 1, 'end_token': 3}]}]
    """
    rows = find_plain_rows(rationales)
    if rows is None:
        message = "expected rows of masks, scores, spans or quotes, found others"
        raise InputError(message, "type", "rationales")
    more = {"texts": texts, "ids": ids, "labels": labels, "probabilities": probabilities}
    columns = {name: list(values) for name, values in more.items() if values is not None}
    for name, values in columns.items():
        if len(values) != len(rows):
            raise InputError(f"expected one for each of {len(rows)} rows, found {len(values)}", "length", name)
    shaped = [dict(row) if isinstance(row, Mapping) else {RATIONALE: row} for row in rows]
    for name, values in columns.items():
        for row, value in zip(shaped, values, strict=True):
            row[_COLUMNS.get(name, name)] = value
    instances, notes = make_instances(shaped, {}, None)
    for note in describe_notes(notes):
        warnings.warn(note, stacklevel=2)
    return instances


# -- which rows are plain ---------------------------------------------------------------------------------------------


def find_plain_rows(data: Any) -> list[Any] | None:
    """Return data as a list of plain rows; None if it is something else, such as a Dataset of annotations."""
    table = isinstance(data, Mapping) or hasattr(data, "column_names") or (hasattr(data, "to_dict") and data.ndim == 2)
    if table:
        names = list(data) if isinstance(data, Mapping) else getattr(data, "column_names", None) or data
        names = [] if hasattr(names, "with_format") else list(map(str, names))
        if not _is_plain_row(dict.fromkeys(names)):
            return None
        columns = [data[name].to_pylist() if hasattr(data[name], "to_pylist") else list(data[name]) for name in names]
        return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]
    if isinstance(data, (str, bytes)) or not hasattr(data, "__iter__"):
        return None
    to_pylist = getattr(data, "to_pylist", None)
    listed = as_list(data) if to_pylist is None else to_pylist()
    rows = list(data) if listed is None else listed
    if not rows or (isinstance(rows[0], Mapping) and _OTHER_RECORDS & rows[0].keys()):
        return None
    if any(not isinstance(row, Mapping) and as_list(row) is None for row in rows):
        return None
    return rows if not isinstance(rows[0], Mapping) or any(map(_is_plain_row, rows)) else None


def _is_plain_row(row: Any) -> bool:
    if not isinstance(row, Mapping) or _OTHER_RECORDS & row.keys():
        return False
    values = [row[name] for name in row if find_similar(name, _FORMS)]  # misspelt names, too
    return bool(values) and not any(map(_is_record, values))


def _is_record(value: Any) -> bool:
    """Return True for a rationale or a quote of an instance, which are objects with other fields."""
    first = next(iter(as_list(value) or ()), None)
    return isinstance(first, Mapping) and not any(first.keys() >= set(names) for names in _PAIRS)


# -- texts ------------------------------------------------------------------------------------------------------------


@dataclass
class PlainText:
    """The documents of one annotation.

    Attributes:
        documents: (docid, tokens, sizes of its sentences) of each.
        source: the text as a string, in which spans count characters; None if they count tokens.
        is_known: False if only the number of tokens is known, from a mask.
    """

    documents: list[tuple[str, list[str], list[int]]]
    source: str | None = None
    is_known: bool = True

    @property
    def sizes(self) -> list[int]:
        """The number of tokens of each document."""
        return [len(tokens) for _, tokens, _ in self.documents]


def read_text(row: Row, docid: str) -> PlainText | None:
    """Return the text of a row with ``tokens``, ``text`` or ``documents``; None if it has none.

    Raises:
        ValueError: the text has another form.
    """
    documents = as_list(row.get("documents"))
    if documents is not None:
        parts = [(str(one["docid"]), str(one["text"])) for one in documents if isinstance(one, Mapping)]
        return PlainText([(name, split_tokens(text), sentence_sizes(text)) for name, text in parts])
    text = row.get("tokens") if row.get("tokens") is not None else row.get("text")
    if text is None:
        return None
    if isinstance(text, str):
        return PlainText([(docid, split_tokens(text), sentence_sizes(text))], text)
    tokens = as_list(text)
    if tokens is None or not all(isinstance(token, str) for token in tokens):
        raise InputError(f"expected a string or a list of tokens, found {cut(text)}", "type", "text")
    shown = [escape_whitespace(token) or "\u200b" for token in tokens]
    return PlainText([(docid, shown, [len(shown)] if shown else [])])


# -- rationales -------------------------------------------------------------------------------------------------------


@dataclass
class PlainRationale:
    """A rationale on the documents of its annotation.

    Attributes:
        spans: the spans of each document; None if the row has none.
        scores: the scores of each document's tokens; None if the row has none.
        size: the number of tokens, of a mask or of scores; None if it is not known.
    """

    spans: list[list[Span]] | None = None
    scores: list[list[float]] | None = None
    size: int | None = None


@dataclass
class _RationaleReader:
    """Reader of rationales, which counts what it changes."""

    gold: bool
    notes: Counter[str] = field(default_factory=Counter)

    def read(self, row: Row, text: PlainText | None) -> PlainRationale:
        """Read the rationale, the quotes and the scores of a row.

        Raises:
            ValueError: a value has another form, or does not fit the text; with its field.
        """
        found = PlainRationale()
        for name in _FORMS:
            value = row.get(name)
            if value is None:
                continue
            kind, items = _find_kind(value, name)
            if kind == SCORES and self.gold:
                if not all(item in (0, 1) for item in items):
                    raise InputError(f"expected 0 or 1 for each token, found {cut(items)}", "choice", name)
                kind = MASK
            if kind == SCORES or (kind == MASK and name == "scores"):
                found.scores, found.size = _split(list(map(float, items)), text, name), len(items)
            elif kind == MASK:
                flags = _split(items, text, name)
                found.spans, found.size = [find_mask_runs(part) for part in flags], len(items)
            elif kind == SPANS:
                found.spans = [_read_spans(items, text, name)]
            elif kind == QUOTES:
                found.spans = self._locate(items, text, name)
            elif found.spans is None and name != "scores":
                found.spans = [[] for _ in (text.documents if text else [None])]
                found.size = found.size if text else 0
        return found

    def _locate(self, quotes: Sequence[str], text: PlainText | None, name: str) -> list[list[Span]]:
        documents = text.documents if text is not None and text.is_known else []
        aligned = align(list(quotes), [Document(str(at), tokens) for at, (_, tokens, _) in enumerate(documents)])
        # numbers as strings are a mask: for a text that is not known, and one of as many tokens
        size = sum(len(tokens) for _, tokens, _ in documents) if documents else len(aligned)
        if len(aligned) == size and all(quote.docid is None and _is_numeral(quote.text) for quote in aligned):
            message = f"expected numbers for a mask or scores (quotes are words), found strings {cut(list(quotes))}"
            raise InputError(message, "type", name)
        if text is None or not text.is_known:
            raise InputError(_NO_TEXT.format(f"`{name}`"), "document-missing", name)
        spans: list[list[Span]] = [[] for _ in text.documents]
        side = "gold" if self.gold else "predicted"
        for quote in aligned:
            if quote.docid is None or quote.start_token is None or quote.end_token is None:
                self.notes[f"{side} quotes that are not in the text, left out"] += 1
            else:
                if quote.status == "ambiguous":
                    self.notes[f"{side} quotes in several places, put where other quotes are near or first"] += 1
                spans[int(quote.docid)].append((quote.start_token, quote.end_token))
        return [find_mask_runs(mask(some, size)) for some, size in zip(spans, text.sizes, strict=True)]


def _is_numeral(text: str) -> bool:
    try:
        return float(text) == float(text)
    except ValueError:
        return False


def _find_kind(value: Any, name: str) -> tuple[str | None, list[Any]]:
    """Return the form of a rationale and its items; None for an empty list.

    Raises:
        ValueError: it has none of the forms.
    """
    items = [value] if isinstance(value, str) else as_list(value)
    if items is None:
        raise InputError(f"expected a mask, scores, spans or quotes, found {cut(value)}", "type", name)
    items = [as_scalar(item) for item in items]
    if not items:
        return None, items
    if all(isinstance(item, str) for item in items):
        return QUOTES, items
    if all(isinstance(item, Mapping) or as_list(item) is not None for item in items):
        return SPANS, items
    if all(isinstance(item, int) for item in items):  # booleans, too
        if name == "scores" or all(item in (0, 1) for item in items):
            return MASK, items
        message = f"expected 0 or 1 for each token (scores are floats), found {cut(items)}"
        raise InputError(message, "choice", name)
    if all(as_number(float(item) if isinstance(item, bool) else item) is not None for item in items):
        return SCORES, items
    for at, item in enumerate(items):
        if isinstance(item, float) and not isfinite(item):
            found = "NaN" if item != item else "infinity"
            raise InputError(f"expected finite numbers, found {found}", "range", f"{name}[{at}]")
    message = f"expected a mask, scores, spans or quotes, found {cut(items)}"
    raise InputError(message, "type", name)


def _split(items: list[Any], text: PlainText | None, name: str) -> list[list[Any]]:
    """Return the items of each document's tokens."""
    if text is None:
        return [items]
    if len(items) != sum(text.sizes):
        message = f"expected {sum(text.sizes)} values, one a token, found {len(items)}"
        raise InputError(message, "length", name)
    return [items[start:end] for start, end in pairwise([0, *accumulate(text.sizes)])]


def _read_spans(items: Sequence[Any], text: PlainText | None, name: str) -> list[Span]:
    """Return spans of tokens; those of characters cover the tokens that they touch."""
    if text is not None and len(text.documents) != 1:
        message = f"expected a mask, scores or quotes for {len(text.documents)} documents, found spans"
        raise InputError(message, "unsupported", name)
    spans = []
    for at, item in enumerate(items):
        names = next((pair for pair in _PAIRS if isinstance(item, Mapping) and item.keys() >= set(pair)), None)
        ends = [item[each] for each in names] if names else as_list(item)
        ends = [as_scalar(end) for end in ends or ()]
        place = f"{name}[{at}]"
        if len(ends) != 2 or not all(isinstance(end, int) and not isinstance(end, bool) for end in ends):
            raise InputError(f"expected a span [start, end], found {cut(item)}", "type", place)
        start, end = ends
        of_characters = text is not None and text.source is not None and names != _PAIRS[0]
        unit = "characters" if of_characters else "tokens"
        size = None if text is None else len(text.source or "") if of_characters else text.sizes[0]
        if not 0 <= start <= end or (size is not None and end > size):
            message = f"expected a span within the text's {size if size is not None else ''} {unit}, found {ends}"
            if 0 <= start <= end:
                raise InputError(message, "span-bounds", place)
            raise InputError(message, "span-order", place)
        if of_characters and text is not None and text.source is not None:
            start, end = _find_touched(text.source, start, end)
        if start < end:
            spans.append((start, end))
    return sorted(set(spans))


def _find_touched(source: str, start: int, end: int) -> Span:
    """Return the tokens that the characters [start, end) touch."""
    places = [match.span() for match in re.finditer("[^ \n]+", source)]
    first = bisect_right([stop for _, stop in places], start)
    return first, max(first, bisect_left([begin for begin, _ in places], end))


# -- rows of the records ----------------------------------------------------------------------------------------------


def get_id(row: Any) -> str | None:
    """Return the id of a row; None if it has none."""
    value = as_scalar(next((row[name] for name in ID_FIELDS if row.get(name) is not None), None)) if row else None
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else None


def make_annotations(
    rows: Sequence[Any], first: int = 0
) -> tuple[list[dict[str, Any]], dict[str, PlainText], Counter[str]]:
    """Return plain references as annotations, the text of each by id, and notes for `describe_notes`.

    Args:
        rows: the rows.
        first: the place of the first row, which is its id if it has none.

    Raises:
        ValueError: the first ten rows at fault, with their fields.
    """
    reader, issues = _RationaleReader(gold=True), Issues()
    annotations: list[dict[str, Any]] = []
    texts: dict[str, PlainText] = {}
    for at, row in enumerate(rows, first):
        cells = row if isinstance(row, Mapping) else {RATIONALE: row}
        name = get_id(cells) or str(at)
        try:
            text = read_text(cells, name)
            found = reader.read(cells, text)
            if found.spans is None:
                near = next((name for name in cells if name not in PLAIN_FIELDS and find_similar(name, _FORMS)), None)
                hint = "" if near is None else f" (is {cut(near)} meant?)"
                raise InputError(f"expected the gold rationale, found none{hint}", "key-missing", RATIONALE)
            if text is None and found.size is None:
                message = "spans need the text: `text` or `tokens` in this row"
                raise InputError(message, "document-missing", RATIONALE)
        except InputError as error:
            _add_issue(issues, "reference", name, error)
            continue
        if text is None:
            size = found.size or 0
            text = PlainText([(name, [_PLACEHOLDER] * size, [size] if size else [])], is_known=False)
        texts[name] = text
        annotations.append(_make_annotation(cells, name, text, found.spans))
    issues.raise_if_any()
    return annotations, texts, reader.notes


def _make_annotation(cells: Row, name: str, text: PlainText, spans: Sequence[Sequence[Span]]) -> dict[str, Any]:
    group, documents = [], []
    for (docid, tokens, sentences), some in zip(text.documents, spans, strict=True):
        starts = [0, *accumulate(sentences)]
        lines = [" ".join(tokens[start:end]) for start, end in pairwise(starts)]
        documents.append({"docid": docid, "text": "\n".join(lines)})
        for start, end in some:
            place = {"docid": docid, "text": " ".join(tokens[start:end]), "start_token": start, "end_token": end}
            sentence = {"start_sentence": bisect_right(starts, start) - 1, "end_sentence": bisect_left(starts, end)}
            group.append({**place, **sentence})
    row: dict[str, Any] = {key: value for key, value in cells.items() if key not in PLAIN_FIELDS}
    row |= {"annotation_id": name, "documents": documents, "evidences": [group] if group else []}
    return row if cells.get("label") is None else {**row, "classification": cells["label"]}


def make_instances(
    rows: Sequence[Any], texts: Mapping[str, PlainText | None], places: Sequence[str] | None, first: int = 0
) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Return plain predictions as instances, and notes for `describe_notes`.

    Args:
        rows: the rows.
        texts: id -> the text of its reference, if it is known.
        places: the ids of all references in order, for rows without an id; None: a row's place is its id.
        first: the place of the first row.

    Raises:
        ValueError: the first ten rows at fault, with their fields.
    """
    reader, issues = _RationaleReader(gold=False), Issues()
    instances: list[dict[str, Any]] = []
    parts: list[str] = []
    for at, row in enumerate(rows, first):
        cells = row if isinstance(row, Mapping) else {RATIONALE: row}
        name = get_id(cells)
        if name is None:
            if places is not None and at >= len(places):
                message = f"expected a prediction for each of {len(places)} references, found more, and no ids"
                raise InputError(message, "length", "predictions")
            name = str(at) if places is None else places[at]
        try:
            _check_names(cells)
            text = _find_text(cells, name, texts.get(name))
            found = reader.read(cells, text)
            if found.spans is None and found.scores is None:
                raise InputError("expected a rationale, found none", "key-missing", RATIONALE)
            parts = parts or _list_parts(cells, found)
            if (own := _list_parts(cells, found)) != parts:
                message = f"expected {' and '.join(parts)}, as in the rows before, found {' and '.join(own)}"
                raise InputError(message, "key-missing")
        except InputError as error:
            _add_issue(issues, "prediction", name, error)
            continue
        docids = [docid for docid, _, _ in text.documents] if text else [name]
        instances.append(_make_instance(cells, name, docids, found))
    issues.raise_if_any()
    return instances, reader.notes


def _check_names(cells: Row) -> None:
    """Raise a ValueError for a field whose name is nearly that of a known one."""
    for name in cells:
        near = None if name in PLAIN_FIELDS else find_similar(name, PLAIN_FIELDS)
        if near and near not in cells:
            raise InputError(describe_misspelling(near), "key-unknown", str(name))


def _list_parts(cells: Row, found: PlainRationale) -> list[str]:
    """Return the parts of a prediction, which all rows must have alike."""
    parts = {
        "a rationale (mask, spans or quotes)": found.spans,
        "scores": found.scores,
        "a label": cells.get("label"),
        "probabilities": cells.get("probabilities"),
    }
    return [name for name, value in parts.items() if value is not None]


def _find_text(cells: Row, name: str, reference: PlainText | None) -> PlainText | None:
    """Return the reference's text, else the row's own; spans count in what the row has, if it has a text.

    Raises:
        ValueError: the two have different tokens.
    """
    own = read_text(cells, name)
    if own is None or reference is None:
        return own or reference
    if sum(own.sizes) != sum(reference.sizes):
        message = f"expected a text of {sum(reference.sizes)} tokens, as its reference, found {sum(own.sizes)}"
        raise InputError(message, "length", "text")
    if not reference.is_known:
        return own
    tokens = ([token for _, part, _ in text.documents for token in part] for text in (own, reference))
    for at, (found, expected) in enumerate(zip(*tokens, strict=True), 1):
        if found != expected:
            message = (
                f"expected the tokens of its reference, found {cut(found)} in place of {cut(expected)}, token {at}"
            )
            raise InputError(message, "constant", "text")
    return PlainText(reference.documents, own.source)


def _make_instance(cells: Row, name: str, docids: Sequence[str], found: PlainRationale) -> dict[str, Any]:
    rationales = []
    for at, docid in enumerate(docids):
        one: dict[str, Any] = {"docid": docid}
        if found.spans is not None:
            one[HARD_FIELD] = [{"start_token": start, "end_token": end} for start, end in found.spans[at]]
        if found.scores is not None:
            one[SOFT_FIELD] = found.scores[at]
        rationales.append(one)
    instance: dict[str, Any] = {key: value for key, value in cells.items() if key not in PLAIN_FIELDS}
    instance |= {"annotation_id": name, "rationales": rationales}
    more = {"classification": cells.get("label"), "classification_scores": cells.get("probabilities")}
    return {**instance, **{key: value for key, value in more.items() if value is not None}}


def _add_issue(issues: Issues, side: str, name: str, error: InputError) -> None:
    for issue in error.errors:
        issues.add_by_id(side, name, issue.field, issue.message, issue.rule)


def describe_notes(notes: Counter[str]) -> list[str]:
    """Return a line for each kind of change of the input, with its count."""
    return [f"{words}: {count:,}" for words, count in notes.items()]
