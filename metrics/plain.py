"""Rationales as people have them, a row a text: 0/1 masks, scores, spans and quotes.

A row is the rationale alone, or {"id", "text" or "tokens", "rationale", "scores", "quotes", "label", "probabilities"},
of which the rationale (or the quotes, or the scores) is required. Forms of a rationale:

    mask       whole numbers 0 and 1 or booleans, one a token
    scores     floats, one a token; higher is more important
    spans      pairs [start, end), or objects with start and end: of characters if the text is a string, of tokens if it
               is a list of tokens; {"start_token", "end_token"} always counts tokens
    quotes     strings of the text: as they stand there, else without regard to case and blanks; the first occurrence.
               Others are left out and counted.

Several documents are counted through, in order, unless the row names its ``docid``. Rows without ids belong together by
their place. Rows {"id", "tokens", "rationale_mask", "label"} of ``human_rationales`` are references, too.
"""

from __future__ import annotations

import re
import warnings
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, NamedTuple

from .errors import DataError, cut
from .rows import ID_FIELDS, describe_unknown_id, find_near, row_id, to_list
from .tokens import (
    Span,
    escape_whitespace,
    find_occurrences,
    find_runs,
    spans_from_mask,
    split_sentences,
)

FORMS = ("rationale", "quotes", "scores")
PLAIN_FIELDS = (*ID_FIELDS, *FORMS, "rationale_mask", "text", "tokens", "docid", "label", "probabilities")
RECORD_FIELDS = frozenset(("rationales", "documents", "evidences", "annotators", "rationale_mask", "outcome"))
SPAN_FIELDS = (("start_token", "end_token"), ("start", "end"), ("start_offset", "end_offset"), ("begin", "end"))
MAX_SCORE = 1e308
UNKNOWN_TOKEN = "_"  # of a text of which only the number of tokens is known


# -- rows -------------------------------------------------------------------------------------------------------------


def is_plain(row: Any) -> bool:
    """Return True for a plain row; misspelt fields make one, too, so that they can be named."""
    if not isinstance(row, Mapping):
        return isinstance(row, (list, tuple)) or getattr(row, "ndim", 0) > 0 or hasattr(row, "to_pylist")
    if not RECORD_FIELDS.isdisjoint(row):
        return False
    names = [name for name in FORMS if row.get(name) is not None] or [n for n in row if find_near(n, FORMS)]
    values = [value[0] if isinstance(value := row[name], list) and value else value for name in names]
    pairs = [{*value} >= {*fields} for value in values if isinstance(value, Mapping) for fields in SPAN_FIELDS]
    return bool(names) and (any(pairs) or not pairs)  # other objects belong to instances


@dataclass(frozen=True)
class PlainText:
    """The documents of one annotation.

    Attributes:
        documents: (docid, tokens of each sentence) of each.
        source: the text as a string, in which spans count characters; None if they count tokens.
        is_known: False if only the number of tokens is known, from a mask.
    """

    documents: list[tuple[str, list[list[str]]]]
    source: str | None = None
    is_known: bool = True

    @cached_property
    def tokens(self) -> list[list[str]]:
        """The tokens of each document."""
        return [list(chain.from_iterable(sentences)) for _, sentences in self.documents]


def read_text(row: Mapping[str, Any], name: str) -> PlainText | None:
    """Return the text of a row with ``documents``, ``tokens`` or ``text``; None if it has none.

    Args:
        row: the row.
        name: its id, which is the name of its document if it does not have a ``docid``.
    """
    documents = to_list(row.get("documents"))
    if not isinstance(documents, list | None):
        raise DataError(f"expected a list of documents, found {cut(documents)}", instance=name, field="documents")
    for at, document in enumerate(documents or ()):
        if not isinstance(document, Mapping) or not isinstance(document.get("text"), str):
            message = f"expected an object with docid and text, found {cut(document)}"
            raise DataError(message, instance=name, field=f"documents[{at}]")
    if documents is not None:
        return PlainText([(str(each.get("docid")), split_sentences(each["text"])) for each in documents])
    docid = str(row.get("docid") or name)
    text = to_list(row.get("tokens") if row.get("tokens") is not None else row.get("text"))
    if isinstance(text, str):
        return PlainText([(docid, split_sentences(text))], text)
    if text is None:
        return None
    if not isinstance(text, list) or not all(isinstance(token, str) for token in text):
        raise DataError(f"expected a string or a list of tokens, found {cut(text)}", field="text")
    tokens = [escape_whitespace(token) or "\u200b" for token in text]
    return PlainText([(docid, [tokens] if tokens else [])])


def choose_text(row: Mapping[str, Any], name: str, reference: PlainText | None) -> PlainText | None:
    """Return the reference's text, else the row's own; spans count in what the row has, if it has a text."""
    own = read_text(row, name)
    if reference is not None and row.get("docid") is not None:
        documents = [document for document in reference.documents if document[0] == str(row["docid"])]
        if not documents:
            raise DataError(f"expected a document of the annotation, found {cut(row['docid'])}", field="docid")
        reference = replace(reference, documents=documents)
    if own is None or reference is None:
        return own or reference
    found, expected = (list(chain.from_iterable(text.tokens)) for text in (own, reference))
    if len(found) != len(expected):
        message = f"expected a text of {len(expected)} tokens, as its reference, found {len(found)}"
        raise DataError(message, field="text")
    if not reference.is_known:
        return own
    for at, (token, other) in enumerate(zip(found, expected, strict=True), 1):
        if token != other:
            message = f"expected the tokens of its reference, {cut(other)}, found {cut(token)}, token {at:,}"
            raise DataError(message, field="text")
    return replace(reference, source=own.source)


# -- rationales -------------------------------------------------------------------------------------------------------


def find_quotes(
    quotes: list[str], text: PlainText | None, field: str, side: str, notes: Counter[str]
) -> list[list[Span]]:
    """Return the spans of quotes in each document; notes count those that are not there or in several places."""
    if text is None or not text.is_known:
        message = f"expected `text` or `tokens` beside quotes, or in the reference, found none beside {cut(quotes)}"
        raise DataError(f"{message} (a mask has numbers)", field=field)
    spans: list[list[Span]] = [[] for _ in text.documents]
    for quote in quotes:
        found: list[tuple[int, Span]] = []
        for normalise in (str, str.casefold):  # as it stands there, else without regard to case
            for at, tokens in enumerate(text.tokens if not found else ()):
                keys = [normalise("".join(token.split())) for token in tokens]
                starts, key = [0, *accumulate(map(len, keys))], normalise("".join(quote.split()))
                found += [(at, span) for span in find_occurrences(key, "".join(keys), starts)]
        if found:
            spans[found[0][0]].append(found[0][1])
        if len(found) != 1:
            where = "in several places, put at the first" if found else "that are not in the text, left out"
            notes[f"{side} quotes {where}"] += 1
    return [find_runs(token for span in some for token in range(*span)) for some in spans]


def read_spans(items: list[Any], text: PlainText | None, field: str) -> list[Span]:
    """Return spans of tokens; those of characters cover the tokens that they touch."""
    if text is not None and len(text.documents) != 1:
        message = f"expected `docid` beside spans, since there are {len(text.documents)} documents, found none"
        raise DataError(message, field=field)
    source = None if text is None else text.source
    places = [match.span() for match in re.finditer("[^ \n]+", source or "")]
    spans = set()
    for at, item in enumerate(items):
        fields = next((pair for pair in SPAN_FIELDS if isinstance(item, Mapping) and {*item} >= {*pair}), None)
        ends = to_list([item[name] for name in fields] if fields else item)
        if not isinstance(ends, list) or [*map(type, ends)] != [int, int]:
            raise DataError(f"expected a span [start, end], found {cut(item)}", field=f"{field}[{at}]")
        (start, end), in_characters = ends, source is not None and fields != SPAN_FIELDS[0]
        size = end if text is None else len(source or "") if in_characters else len(text.tokens[0])
        if not 0 <= start <= end <= size:
            unit = "characters" if in_characters else "tokens"
            message = f"expected 0 <= start <= end <= {size:,} (the text's {unit}), found {cut(ends)}"
            raise DataError(message, field=f"{field}[{at}]")
        if in_characters:
            start = bisect_right([stop for _, stop in places], start)
            end = max(start, bisect_left([begin for begin, _ in places], end))
        spans.add((start, end))
    return sorted((start, end) for start, end in spans if start < end)


def read_numbers(items: list[Any], text: PlainText | None, field: str, is_gold: bool) -> tuple[bool, list[list[Any]]]:
    """Return whether numbers are scores, and those of each document: a mask, or scores as floats."""
    bad = next((at for at, item in enumerate(items) if not -MAX_SCORE < item < MAX_SCORE), None)  # NaN, too
    if bad is not None:
        raise DataError(f"expected finite numbers, found {cut(items[bad])}", field=f"{field}[{bad}]")
    sizes = [len(items)] if text is None else list(map(len, text.tokens))
    if sum(sizes) != len(items):
        raise DataError(f"expected {sum(sizes)} values, one a token, found {len(items)}", field=field)
    values = [items[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]
    if not is_gold and (field == "scores" or float in map(type, items)):
        return True, [[float(item) for item in part] for part in values]
    if not all(item in (0, 1) for item in items):
        hint = "" if is_gold else " (scores are floats)"
        raise DataError(f"expected 0 or 1 for each token{hint}, found {cut(items)}", field=field)
    return False, values


class PlainRow(NamedTuple):
    """A row, read.

    Attributes:
        name: its id.
        cells: the row, with the fields of the format.
        text: its documents; None if not even their size is known.
        spans: the spans of each document; None if the row has none.
        scores: the scores of each document's tokens; None if the row has none.
    """

    name: str
    cells: Mapping[str, Any]
    text: PlainText | None
    spans: list[list[Span]] | None
    scores: list[list[float]] | None

    def shape(self, **fields: Any) -> dict[str, Any]:
        """Return the further cells of the row, with its id, its label and these fields."""
        others = {key: value for key, value in self.cells.items() if key not in PLAIN_FIELDS}
        label = {} if self.cells.get("label") is None else {"classification": self.cells["label"]}
        return {**others, "annotation_id": self.name, **fields, **label}


def read_row(row: Any, name: str, reference: PlainText | None, side: str, notes: Counter[str]) -> PlainRow:
    """Read the rationale, the quotes and the scores of a plain row.

    Args:
        row: the row.
        name: its id.
        reference: the text of its reference, if it is known.
        side: "gold" or "predicted".
        notes: counts what is left out; extended.

    Raises:
        DataError: a value has another form, or does not fit the text.
    """
    cells = row if isinstance(row, Mapping) else {"rationale": row}
    spans: list[list[Span]] | None = None
    scores: list[list[float]] | None = None
    known = FORMS if side == "gold" else PLAIN_FIELDS  # gold may have any further columns
    try:
        for field in cells.keys() - {*PLAIN_FIELDS}:
            if (near := find_near(field, known)) and near not in cells:
                raise DataError(f"no field of this format: did you mean {near!r}?", field=str(field))
        text = choose_text(cells, name, reference)
        for field in [field for field in (*FORMS, "rationale_mask") if cells.get(field) is not None]:
            items = to_list(cells[field])
            items = [items] if isinstance(items, str) else items
            kinds = {*map(type, items)} if isinstance(items, list) else {None}
            if not items and field != "scores":
                spans = spans or [[] for _ in (text.documents if text else (None,))]
            elif kinds == {str}:
                spans = find_quotes(items, text, field, side, notes)
            elif items and kinds <= {list, dict}:
                spans = [read_spans(items, text, field)]
            elif kinds <= {int, bool, float}:
                is_soft, values = read_numbers(items, text, field, side == "gold")
                spans, scores = (spans, values) if is_soft else ([spans_from_mask(part) for part in values], scores)
                text = text or PlainText([(name, [[UNKNOWN_TOKEN] * len(items)])], is_known=False)
            else:
                raise DataError(f"expected a mask, scores, spans or quotes, found {cut(items)}", field=field)
        if spans is None and (scores is None or side == "gold"):
            raise DataError("expected a rationale, found none", field="rationale")
    except DataError as error:
        error.instance = name
        raise
    return PlainRow(name, cells, text, spans, scores)


# -- instances and annotations ----------------------------------------------------------------------------------------


def make_annotation(row: Any, name: str, notes: Counter[str]) -> tuple[dict[str, Any], PlainText]:
    """Return a plain reference, or a row of ``human_rationales``, as a dataset's row of one group; and its text."""
    plain = read_row(row, name, None, "gold", notes)
    if plain.text is None and any(plain.spans or ()):
        raise DataError("spans need the text: `text` or `tokens` in this row", instance=name, field="rationale")
    text = plain.text or PlainText([(name, [])], is_known=False)
    documents, evidences = [], []
    for (docid, sentences), tokens, spans in zip(text.documents, text.tokens, plain.spans or (), strict=True):
        starts = [0, *accumulate(map(len, sentences))]
        documents.append({"docid": docid, "text": "\n".join(map(" ".join, sentences))})
        for start, end in spans:
            evidence = {"docid": docid, "text": " ".join(tokens[start:end]), "start_token": start, "end_token": end}
            evidence["start_sentence"] = bisect_right(starts, start) - 1
            evidence["end_sentence"] = bisect_left(starts, end)
            evidences.append(evidence)
    return plain.shape(documents=documents, evidences=[evidences] if evidences else []), text


def make_instance(row: Any, name: str, reference: PlainText | None, notes: Counter[str]) -> dict[str, Any]:
    """Return a plain prediction as an instance; see `read_row`."""
    plain = read_row(row, name, reference, "predicted", notes)
    documents = plain.text.documents if plain.text else [(str(plain.cells.get("docid") or name), [])]
    rationales: list[dict[str, Any]] = [{"docid": docid} for docid, _ in documents]
    for at, rationale in enumerate(rationales):
        if plain.spans is not None:
            spans = [{"start_token": start, "end_token": end} for start, end in plain.spans[at]]
            rationale["hard_rationale_predictions"] = spans
        if plain.scores is not None:
            rationale["soft_rationale_predictions"] = plain.scores[at]
    probabilities = plain.cells.get("probabilities")
    more = {} if probabilities is None else {"classification_scores": probabilities}
    return plain.shape(rationales=rationales, **more)


def to_instances(
    predictions: Sequence[Any], references: Sequence[Any] | None = None
) -> tuple[list[Any], list[Any] | None, list[str]]:
    """Convert plain rows to instances and dataset rows; rows that are these already stay as they are.

    Args:
        predictions: instances, or plain rows.
        references: rows of ``eraser`` or of ``human_rationales``, or plain rows; None: there are none.

    Returns:
        the instances, the dataset rows (None without references), and a line for each kind of thing that was left out.

    Raises:
        DataError: the first row at fault, with its id and field.
    """
    notes: Counter[str] = Counter()
    texts: dict[str, PlainText | None] = {}
    rows, instances = [], []
    needs_texts = any(map(is_plain, predictions))
    for place, row in enumerate(references or ()):
        name = row_id(row) or str(place)
        if is_plain(row) or (isinstance(row, Mapping) and "rationale_mask" in row and "evidences" not in row):
            row, texts[name] = make_annotation(row, name, notes)
        elif needs_texts and isinstance(row, Mapping):
            texts[name] = read_text(row, name)
        rows.append(row)
    ids = [row_id(row) for row in predictions if is_plain(row)]
    if unknown := [name for name in ids if texts and name is not None and name not in texts]:
        raise describe_unknown_id(unknown[0], len(unknown), len(ids), list(texts), "annotations")
    names = [str(place) for place in range(len(predictions))] if references is None else list(texts)
    for place, row in enumerate(predictions):
        if is_plain(row):
            if row_id(row) is None and place >= len(names):
                message = f"expected a prediction for each of {len(names)} references, found more, and no ids"
                raise DataError(message, field="predictions")
            name = row_id(row) or names[place]
            row = make_instance(row, name, texts.get(name), notes)
        instances.append(row)
    lines = [f"{what}: {count:,}" for what, count in notes.items()]
    return instances, None if references is None else rows, lines


def instances_from(
    rationales: Any,
    *,
    texts: Iterable[str | Sequence[str]] | None = None,
    ids: Iterable[str | int] | None = None,
    labels: Iterable[str] | None = None,
    probabilities: Iterable[Mapping[str, float]] | None = None,
    gold: Iterable[Mapping[str, Any]] | None = None,
) -> list[dict[str, Any]]:
    """Return rationales as instances, which every metric and a predictions file take.

    Args:
        rationales: a row for each text: a 0/1 mask, float scores, spans, quotes, or an object (see the module).
        texts: the text of each row, as a string or as tokens; quotes and spans of characters need it.
        ids: the id of each row; by default its place, from "0".
        labels: the predicted label of each row.
        probabilities: {label: probability} of each row.
        gold: rows of the dataset that they answer, whose texts count; found by id, or by place where there are none.

    Returns:
        instances; without ``gold`` with one document each, which has the instance's id.

    Raises:
        DataError: a row has none of these forms, or does not fit its text.

    Examples:
        >>> instance, = instances_from([[0, 1, 1]], ids=["a"])
        >>> instance["rationales"]
        [{'docid': 'a', 'hard_rationale_predictions': [{'start_token': 1, 'end_token': 3}]}]
    """
    rows = list(to_list(rationales))
    if not rows or not all(map(is_plain, rows)):
        raise DataError("expected rows of masks, scores, spans or quotes, found others", argument="rationales")
    rows = [dict(row) if isinstance(row, Mapping) else {"rationale": row} for row in rows]
    columns = (("texts", "text", texts), ("ids", "id", ids), ("labels", "label", labels))
    for argument, field, values in (*columns, ("probabilities", "probabilities", probabilities)):
        cells = [] if values is None else list(values)
        if values is not None and len(cells) != len(rows):
            raise DataError(f"expected one for each of {len(rows)} rows, found {len(cells)}", argument=argument)
        for row, cell in zip(rows, cells, strict=False):
            row[field] = cell
    instances, _, notes = to_instances(rows, None if gold is None else list(gold))
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return instances
