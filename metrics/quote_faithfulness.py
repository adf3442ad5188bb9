"""Faithfulness of a language model's quotes: their presence in the text, and its coverage."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import evaluate

from eraser_hub.schema.instance import CONSISTENCY_FIELD, INSTANCE, OUTCOME_FIELD, QUOTES_FIELD
from eraser_hub.schema.rows import ANNOTATION, ID_FIELDS, PLAIN_FIELDS

from .batches import Batch, Batches, Measured
from .cells import Row, as_list
from .issues import InputError, Issues
from .quote_alignment import Document, align
from .quotes import SCORES, find_lacking, quote_statistics
from .results import describe_lacking, describe_scored
from .rows import CellReader, RowColumns, check_partners, index_by_id
from .sources import ERASER
from .statistics_builder import make_info
from .tokens import split_tokens


def _count_tokens(reader: CellReader) -> dict[str, int]:
    """Return docid -> number of tokens of a reference's documents."""
    sizes = {}
    for at, document in enumerate(as_list(reader.row.get("documents")) or ()):
        field, known = f"documents[{at}]", isinstance(document, Mapping) and isinstance(document.get("text"), str)
        if reader.expect(known, field, "docid and text", document):
            docid = document.get("docid")
            if reader.expect(isinstance(docid, str | int), f"{field}.docid", "a string", docid):
                sizes[str(docid)] = len(split_tokens(document["text"]))
    return sizes


def _add_documents(row: Row, name: str) -> Row:
    """Return a reference with ``text`` or ``tokens`` as one with documents."""
    # records of pairs have tokens of several sequences
    if row.get("documents") is not None or "sample_type" in row:
        return row
    text = row.get("text") if isinstance(row.get("text"), str) else as_list(row.get("tokens"))
    if text is None:
        return row
    return {**row, "documents": [{"docid": name, "text": text if isinstance(text, str) else " ".join(map(str, text))}]}


def _align_quotes(row: Row, reference: Row | None, name: str, issues: Issues) -> Row:
    """Return an instance whose quotes are strings with the places of the quotes in its reference's documents."""
    quotes = [row[QUOTES_FIELD]] if isinstance(row.get(QUOTES_FIELD), str) else as_list(row.get(QUOTES_FIELD))
    if not quotes or not all(isinstance(quote, str) for quote in quotes):
        return row
    documents = as_list((reference or _add_documents(row, name)).get("documents"))
    if not documents:
        message = "expected the text that bare quotes are from (`text` or `documents` of the reference), found none"
        issues.add_by_id("prediction", name, QUOTES_FIELD, message, "document-missing")
        return row
    shown = [(one.get("docid"), one.get("text")) for one in documents if isinstance(one, Mapping)]
    texts = [Document(str(docid), split_tokens(text)) for docid, text in shown if isinstance(text, str)]
    return {**row, QUOTES_FIELD: [dataclasses.asdict(quote) for quote in align(quotes, texts)]}


def _name_rows(rows: Sequence[Row], names: Sequence[str] = ()) -> list[Row]:
    """Return the rows; one without an id has the name at its place, or its place."""
    by_place = {at: str(at) for at in range(len(rows))} | dict(enumerate(names))
    return [row if row.keys() & set(ID_FIELDS) else {**row, "id": by_place[at]} for at, row in enumerate(rows)]


class QuoteFaithfulness(Batches, evaluate.Metric):  # type: ignore[misc]  # evaluate is untyped
    """Quotes that a language model gives for its answer, compared with the text.

    The share of quotes that is in the text, exactly or nearly, and the share that is invented.

    Args:
        predictions: instances {annotation_id, quotes, outcome}, as `eraser-hub ask` writes them: quotes is a
            list of {text, status, docid, start_token, end_token, similarity}, status one of exact, normalised,
            fuzzy, ambiguous, not_found, empty; outcome other than "answered" (optional) says that there is no
            answer, and so no quote. Optional: classification with asked_again, a list of {kind,
            classification, outcome}, kind one of redacted, removed, random, alone: what was answered to the changed
            question; classification is null where there was no answer. Quotes may be strings, {id, quotes: [string]},
            which are aligned with the text of the reference, as `eraser-hub ask` does; a row may be the list alone.
            Rows without quotes are left out.
        references: optional; rows {annotation_id, documents} of the dataset, or {id, text}, or the text
            alone: documents for coverage. Rows without ids belong together by their place.
        only_predicted: leave out references without an instance; the signature has the number of scored ones.
        per_instance, confidence_level, n_resamples, seed, cluster_by, by, label_names: as in all
            modules of this family.

    Returns:
        in_text, exact, normalised, fuzzy, ambiguous, invented in [0, 1]: shares of the quotes (empty ones left
        out); instances_with_invented in [0, 1]: share of the answered instances with any invented quote;
        quotes_per_instance; quote_length, tokens of a quote in the text; coverage in [0, 1] (NaN without
        references), share of the documents' tokens that quotes cover; answered in [0, 1]; of the answered
        instances that were asked again, in [0, 1]: label_flip_redacted, label_flip_removed, label_flip_random,
        the share whose label changes (no answer is a change) without the quotes, or without random spans of
        their lengths; label_kept_alone, whose label is the same with the quotes
        alone (NaN where none was asked). quotes and empty, counts; signature. NaN where nothing is there to divide by.

    Raises:
        ValueError: wrong input; it names the instance and the field.

    Example:
        >>> import evaluate
        >>> metric = evaluate.load("quote_faithfulness")
        >>> place = {"docid": "d", "start_token": 0, "end_token": 2, "similarity": 1.0}
        >>> result = metric.compute(predictions=[
        ...     {"annotation_id": "a", "quotes": [{"text": "a fine", "status": "exact", **place},
        ...                                       {"text": "a masterpiece", "status": "not_found"}]},
        ...     {"annotation_id": "b", "quotes": [], "outcome": "refusal"}])
        >>> result["in_text"], result["invented"], result["answered"]
        (0.5, 0.5, 0.5)
    """

    SOURCE = ERASER._replace(codebase="")
    INPUTS = (
        (INSTANCE, ("annotation_id", QUOTES_FIELD, OUTCOME_FIELD, "classification", CONSISTENCY_FIELD)),
        (ANNOTATION, ("annotation_id", "documents")),
    )
    FURTHER_FIELDS = PLAIN_FIELDS
    HIGHER_IS_BETTER, RANGES = make_info(SCORES)

    def _keep(self, data: Any, side: str) -> Batch:
        """Keep one side of a batch; quotes and texts need no object around them."""
        rows = [
            {QUOTES_FIELD if side == "prediction" else "text" if isinstance(row, str) else "tokens": row}
            if isinstance(row, str) or ((items := as_list(row)) is not None and all(isinstance(i, str) for i in items))
            else row
            for row in as_list(data) or ()
        ]
        return super()._keep(rows or data, side)

    def _measure(
        self, predictions: Sequence[Row] | None, references: Sequence[Row] | None, only_predicted: bool = False
    ) -> Measured:
        """Count per instance its quotes, the tokens that they cover, and its documents' tokens."""
        if not predictions:
            raise InputError("expected predictions with quotes, found none", "empty")
        issues = Issues()
        gold = index_by_id(_name_rows(references or ()), "reference", issues)
        rows = index_by_id(_name_rows(predictions, list(gold)), "prediction", issues)
        gold = {name: _add_documents(row, name) for name, row in gold.items()}
        issues.raise_if_any()
        if gold:
            check_partners(rows, gold, issues, only_predicted)
        rows = {name: _align_quotes(row, gold.get(name), name, issues) for name, row in rows.items()}
        n = len(rows)
        rows = {name: row for name, row in rows.items() if row.get(QUOTES_FIELD) is not None} or rows
        sizes = {name: _count_tokens(CellReader(row, name, issues, "reference")) for name, row in gold.items()}
        statistics, counts = quote_statistics(rows, sizes, issues)
        issues.raise_if_any()
        settings: dict[str, object] = {"coverage": "documents"} if gold else {}
        return Measured(
            statistics,
            RowColumns([[gold.get(name), row] for name, row in rows.items()]),
            settings | describe_scored(len(rows), max(n, len(gold))),
            counts,
            [
                *([f"left out: {n - len(rows):,} of {n:,} instances (no {QUOTES_FIELD})"] if len(rows) < n else ()),
                *describe_lacking(find_lacking(rows.values())),
            ],
        )
