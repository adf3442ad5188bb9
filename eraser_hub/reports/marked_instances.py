"""One instance laid out for the eye: tokens, gold evidence, predicted rationale and soft scores over the same text.

Terminal, notebook and HTML report draw from this one model, so that they cannot disagree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from eraser_hub.conversion.built import get_label_name
from eraser_hub.metrics.plain import is_plain, mask_from_spans, row_id, split_sentences, to_instances
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.predictions import read_plain_rows
from eraser_hub.scoring.gold import choose_gold, list_rows, read_gold
from eraser_hub.scoring.runs import System
from eraser_hub.scoring.scored_split import ScoredSplit

T = TypeVar("T")
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class MarkedDocument:
    """A document's tokens and the marks over them; all spans are [start, end) over the flattened tokens.

    Attributes:
        docid: the document's name.
        sentences: the tokens, sentence by sentence.
        gold: (start, end, group) for each evidence span, the group counted from 0 over the annotation.
        predicted: (start, end) for each predicted span, ordered, identical ones once; None without a hard field.
        soft: one score per token, or None.
        empty_gold: number of gold spans with start == end (real in some releases): there is nothing to mark.
    """

    docid: str
    sentences: tuple[tuple[str, ...], ...]
    gold: tuple[tuple[int, int, int], ...] = ()
    predicted: tuple[tuple[int, int], ...] | None = None
    soft: tuple[float, ...] | None = None
    empty_gold: int = 0

    @property
    def num_tokens(self) -> int:
        """The number of tokens in all sentences."""
        return sum(map(len, self.sentences))

    def groups_at(self) -> list[tuple[int, ...]]:
        """Return the evidence groups that cover each token, ascending."""
        covering: list[list[int]] = [[] for _ in range(self.num_tokens)]
        for start, end, group in self.gold:
            for token in range(start, end):
                if group not in covering[token]:
                    covering[token].append(group)
        return [tuple(sorted(groups)) for groups in covering]

    def predicted_at(self) -> list[bool]:
        """Return for each token True if a predicted span covers it."""
        return list(map(bool, mask_from_spans(self.predicted or (), self.num_tokens)))

    def shades(self, levels: int = 100) -> list[int] | None:
        """Return soft scores as steps 0 .. levels - 1, linear from the document's lowest to its highest score.

        A document whose scores are all equal has no contrast to show: every step is 0.
        """
        if self.soft is None:
            return None
        low, high = min(self.soft, default=0.0), max(self.soft, default=0.0)
        if not high > low:
            return [0] * len(self.soft)
        # divided before subtracting: two huge scores of opposite sign must not overflow
        width = high / 2 - low / 2
        return [min(levels - 1, int((score / 2 - low / 2) / width * levels)) for score in self.soft]


class MarkedQuote(NamedTuple):
    """A language model's quote: its words, how it was found, and where (nothing where it was not)."""

    text: str
    status: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class MarkedInstance:
    """An annotation, and what a model said of it.

    For a pair of the perturbation benchmark the documents are its two sides, with ``titles``; ``tops`` are each side's
    most important tokens and ``ranks`` the rank of its marked tokens. ``label_known`` is False where the gold label is
    missing, or a number without its name.
    """

    annotation_id: str
    query: str
    label: str
    documents: tuple[MarkedDocument, ...]
    predicted_label: str | None = None
    probabilities: Mapping[str, float] = field(default_factory=dict)
    label_known: bool = True
    language: str = ""
    titles: tuple[str, ...] = ()
    tops: tuple[tuple[str, ...], ...] = ()
    ranks: tuple[Mapping[int, int], ...] = ()
    quotes: tuple[MarkedQuote, ...] = ()

    @property
    def right(self) -> bool | None:
        """True if the predicted label is the gold one; None if either is unknown."""
        return None if self.predicted_label is None or not self.label_known else self.predicted_label == self.label


def _span(span: Any, tokens: int, where: str, instance: object, *, may_be_empty: bool) -> tuple[int, int]:
    bounds = []
    for name in ("start_token", "end_token"):
        value = span.get(name) if isinstance(span, Mapping) else None
        if isinstance(value, bool) or not isinstance(value, int):
            message = f"expected an integer, found {show(value)}"
            raise DataError(message, instance=instance, field=f"{where}.{name}")
        bounds.append(value)
    start, end = bounds
    if start < 0 or end > tokens or end < start or (end == start and not may_be_empty):
        message = f"expected a span inside the document's {tokens} tokens, found [{start}, {end})"
        raise DataError(message, instance=instance, field=where)
    return start, end


def mark_instance(
    row: Mapping[str, Any], instance: Mapping[str, Any] | None = None, *, label_names: Sequence[str] | None = None
) -> MarkedInstance:
    """Lay a dataset row and a model's output for it over the same tokens.

    Args:
        row: a row of the ``eraser`` dataset (annotation_id, documents, evidences, classification, query).
        instance: the model's output for it in the ERASER results format, or None to show the gold alone.
        label_names: the names of the ClassLabel, where the row holds its number.

    Returns:
        The marked instance; documents in the row's order.

    Raises:
        DataError: an id that differs, a document the row does not have or that comes twice, a span outside its
            document, soft scores of another length or not finite.
    """
    for name in ("annotation_id", "documents", "evidences"):
        if name not in row:
            message = f"expected a row of the dataset with {name!r}, found the columns {sorted(row)}"
            raise DataError(message, field=name)
    identity = str(row["annotation_id"])
    texts = {document["docid"]: tuple(map(tuple, split_sentences(document["text"]))) for document in row["documents"]}
    lengths = {docid: sum(map(len, sentences)) for docid, sentences in texts.items()}
    gold = _gold(row, identity, lengths)
    predicted, soft = _predicted(instance, identity, lengths)
    value = row.get("classification")
    label = get_label_name(value, label_names, instance=identity)
    answer = None if instance is None else instance.get("classification")
    if answer is not None and not isinstance(answer, str):
        message = f"expected a label, found {show(answer)}"
        raise DataError(message, instance=identity, field="classification")
    probabilities = (instance or {}).get("classification_scores") or {}
    return MarkedInstance(
        annotation_id=identity,
        query=str(row.get("query") or ""),
        label=label or "",
        documents=tuple(
            MarkedDocument(
                docid,
                sentences,
                tuple(sorted(span for span in gold[docid] if span[0] < span[1])),
                predicted.get(docid),
                soft.get(docid),
                sum(start == end for start, end, _ in gold[docid]),
            )
            for docid, sentences in texts.items()
        ),
        predicted_label=answer,
        # a table of Arrow gives every label's key to every row, with null where it had none
        probabilities={str(name): float(p) for name, p in probabilities.items() if p is not None},
        quotes=read_marked_quotes(instance),
        label_known=isinstance(value, str) or (label is not None and label_names is not None),
    )


def read_marked_quotes(instance: Mapping[str, Any] | None, side: str = "") -> tuple[MarkedQuote, ...]:
    """Return the quotes of a model's output, in its order; ``side`` names the record of a pair.

    Raises:
        DataError: a quote without text or status.
    """
    marked = []
    for at, quote in enumerate((instance or {}).get("quotes") or ()):
        text, status = (quote.get(name) if isinstance(quote, Mapping) else None for name in ("text", "status"))
        if not isinstance(text, str) or not isinstance(status, str):
            message = f"expected a quote with text and status, found {show(quote)}"
            raise DataError(message, field=f"quotes[{at}]")
        places = [quote.get(name) for name in ("docid", "start_token", "end_token")]
        place = "" if None in places else f"{places[0]} {places[1]}–{places[2]}"
        marked.append(MarkedQuote(text, status, " · ".join(filter(None, (side, place)))))
    return tuple(marked)


def _gold(row: Mapping[str, Any], identity: str, lengths: Mapping[str, int]) -> dict[str, list[tuple[int, int, int]]]:
    """Return (start, end, group) of each evidence by document, empty ones included."""
    gold = {docid: list[tuple[int, int, int]]() for docid in lengths}
    for g, group in enumerate(row["evidences"]):
        for e, evidence in enumerate(group):
            where, docid = f"evidences[{g}][{e}]", evidence["docid"]
            if docid not in lengths:
                message = f"expected a document of the row, found {show(docid)}"
                raise DataError(message, instance=identity, field=where)
            gold[docid].append((*_span(evidence, lengths[docid], where, identity, may_be_empty=True), g))
    return gold


def _predicted(
    instance: Mapping[str, Any] | None, identity: str, lengths: Mapping[str, int]
) -> tuple[dict[str, tuple[tuple[int, int], ...]], dict[str, tuple[float, ...]]]:
    hard: dict[str, tuple[tuple[int, int], ...]] = {}
    soft: dict[str, tuple[float, ...]] = {}
    if instance is None:
        return hard, soft
    if str(instance.get("annotation_id")) != identity:
        message = f"expected the output for {show(identity)}, found {show(instance.get('annotation_id'))}"
        raise DataError(message, instance=identity, field="annotation_id")
    seen: set[str] = set()
    for r, rationale in enumerate(instance.get("rationales") or ()):
        docid = rationale.get("docid")
        if docid not in lengths or docid in seen:
            expected = "each document once" if docid in seen else "a document of the row"
            message, field = f"expected {expected}, found {show(docid)}", f"rationales[{r}].docid"
            raise DataError(message, instance=identity, field=field)
        seen.add(docid)
        spans = rationale.get("hard_rationale_predictions")
        if spans is not None:
            where = f"rationales[{r}].hard_rationale_predictions"
            numbered, tokens = enumerate(spans), lengths[docid]
            chosen = {_span(span, tokens, f"{where}[{i}]", identity, may_be_empty=False) for i, span in numbered}
            hard[docid] = tuple(sorted(chosen))
        scores = rationale.get("soft_rationale_predictions")
        if scores is not None:
            soft[docid] = _soft(scores, lengths[docid], f"rationales[{r}].soft_rationale_predictions", identity)
    return hard, soft


def _soft(scores: Sequence[Any], tokens: int, where: str, identity: str) -> tuple[float, ...]:
    if len(scores) != tokens:
        message = f"expected {tokens} scores, one a token, found {len(scores)}"
        raise DataError(message, instance=identity, field=where)
    for i, score in enumerate(scores):
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            message = f"expected a finite number, found {show(score)}"
            raise DataError(message, instance=identity, field=f"{where}[{i}]")
    return tuple(float(score) for score in scores)


def mark_for_systems(
    systems: Sequence[System],
    answers: Sequence[A],
    shown: Iterable[T],
    mark_one: Callable[[T, A | None], MarkedInstance],
) -> list[list[MarkedInstance]]:
    """Mark every row or pair with each system's answers, or with the gold alone if there is no system.

    Args:
        systems: the systems.
        answers: each system's answers.
        shown: rows, or pairs of rows.
        mark_one: marks one of them with a system's answers, or without any.

    Raises:
        DataError: an answer that does not fit its row, with the system's file.
    """

    def mark(one: T, system: System, answer: A) -> MarkedInstance:
        try:
            return mark_one(one, answer)
        except DataError as error:
            raise error.at(file=system.path) from None

    pairs = list(zip(systems, answers, strict=True))
    return [[mark(one, *pair) for pair in pairs] or [mark_one(one, None)] for one in shown]


def read_answers(source: ScoredSplit, path: Path) -> dict[str, dict[str, Any]]:
    """Return predictions by id: instances, or records of the perturbation benchmark where the source holds pairs.

    Raises:
        DataError: a file that cannot be read or is empty; a prediction without id, or an id twice.
    """
    field, predictions = source.id_field, dict[str, dict[str, Any]]()
    for line, row in read_plain_rows(path):
        identity = row_id(row) or ""
        if not identity or identity in predictions:
            found = f"{show(identity)} again" if identity else "none"
            raise DataError(f"expected an id of its own, found {found}", file=path, line=line, field=field)
        predictions[identity] = row
    if source.kind != "perturbation" and is_plain(next(iter(predictions.values()))):
        instances, _, _ = to_instances(list(predictions.values()), list_rows(source))
        return {row["annotation_id"]: row for row in instances}
    return predictions


def choose_evidences(source: ScoredSplit, form: str) -> tuple[dict[str, list[list[Mapping[str, Any]]]], str]:
    """Return annotation id -> the evidences of a form of the gold, and a note on it; none of the dataset's own.

    Raises:
        DataError: there are no annotators, or their marks do not fit the documents.
    """
    evidences: dict[str, list[list[Mapping[str, Any]]]] = {}
    if form == "evidence":
        return evidences, ""
    gold, notes = choose_gold(read_gold(source), source, form)
    for row, name in enumerate(gold.ids):
        groups: dict[int, list[Mapping[str, Any]]] = {}
        for at in range(gold.offsets[row], gold.offsets[row + 1]):
            span = {"docid": gold.docids[gold.doc[at]], "start_token": int(gold.start[at])}
            groups.setdefault(int(gold.group[at]), []).append({**span, "end_token": int(gold.end[at])})
        evidences[name] = list(groups.values())
    return evidences, "; ".join(notes)


def mark_rows(
    split: ScoredSplit,
    rows: Sequence[Mapping[str, Any]],
    systems: Sequence[System],
    answers: Sequence[Mapping[str, Mapping[str, Any]]],
    gold: str,
) -> tuple[list[list[MarkedInstance]], str]:
    """Mark rows with each system's answers; a row without an answer has the gold alone.

    Args:
        split: the split of the rows.
        rows: the rows.
        systems: the systems, whose first files errors name.
        answers: each system's answers by id.
        gold: the form of the gold.

    Returns:
        The marked rows, and a note on the gold; "" for none.

    Raises:
        DataError: an answer that does not fit its row.
    """
    evidences, note = choose_evidences(split, gold) if rows else ({}, "")

    def mark(row: Mapping[str, Any], own: Mapping[str, Mapping[str, Any]] | None) -> MarkedInstance:
        identity = str(row["annotation_id"])
        chosen = {**row, "evidences": evidences.get(identity, row["evidences"])}
        return mark_instance(chosen, (own or {}).get(identity), label_names=split.labels.names)

    return mark_for_systems(systems, answers, rows, mark), note
