"""Faithfulness of a language model's quotes: their presence in the text, and its coverage."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import evaluate

from .errors import DataError, cut
from .module import DEYOUNG2020, RationaleMetric
from .plain import read_text
from .quotes import QUOTE_SCORES, Document, align, measure_quotes
from .rows import ID_FIELDS, find_near, index_rows, join_rows, to_list
from .statistics import Measured


class QuoteFaithfulness(RationaleMetric, evaluate.Metric):  # type: ignore[misc]  # evaluate is untyped
    """Quotes that a language model gives for its answer, compared with the text.

    The share of quotes that is in the text, exactly or nearly, and the share that is invented.

    Args:
        predictions: instances {annotation_id, quotes, outcome}, as `eraser-hub ask` writes them: quotes is a
            list of {text, status, docid, start_token, end_token, similarity}, status one of exact, normalised,
            fuzzy, ambiguous, not_found, empty; outcome other than "answered" (optional) says that there is no
            answer, and so no quote. Quotes may be strings, {id, quotes: [string]}, which are aligned with the text of
            the reference, as `eraser-hub ask` does; a row may be the list alone. Rows without quotes are left out.
        references: optional; rows {annotation_id, documents} of the dataset, or {id, text}, or the text
            alone: documents for coverage. Rows without ids belong together by their place.
        only_predicted: leave out references without an instance; the signature has the number of scored ones.
        per_instance, confidence_level, n_resamples, seed, cluster_by, by: as in all modules of this family.

    Returns:
        in_text, exact, normalised, fuzzy, ambiguous, invented in [0, 1]: shares of the quotes (empty ones left
        out); instances_with_invented in [0, 1]: share of the answered instances with any invented quote;
        quotes_per_instance; quote_length, tokens of a quote in the text; coverage in [0, 1] (NaN without
        references), share of the documents' tokens that quotes cover; answered in [0, 1]; quotes and empty, counts;
        signature. NaN where nothing is there to divide by.

    Raises:
        ValueError: wrong input; it names the instance and the field.

    Examples:
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

    CITATION = DEYOUNG2020
    SCORES = QUOTE_SCORES
    HEADLINE = ("in_text",)

    def measure(
        self, predictions: Sequence[Any] | None, references: Sequence[Any] | None, only_predicted: bool = False
    ) -> Measured:
        """Count per instance its quotes, the tokens that they cover, and its documents' tokens."""
        gold = name_rows(references or (), "text")
        rows = name_rows(predictions or (), "quotes", list(index_rows(gold, "references")) if gold else ())
        if gold:
            pairs = join_rows(rows, gold, only_predicted)
        else:
            pairs = [(name, row, {}) for name, row in index_rows(rows, "predictions").items()]
        for name, row, _ in pairs:
            for field in row:
                if (near := find_near(field, ("quotes", "outcome"))) and near not in row:
                    raise DataError(f"no field of this format: did you mean {near!r}?", instance=name, field=field)
        quoting = [pair for pair in pairs if pair[1].get("quotes") is not None] or pairs
        aligned: dict[str, Mapping[str, Any]] = {}
        sizes: dict[str, dict[str, int]] = {}
        for name, row, reference in quoting:
            source = reference or row
            try:
                text = None if "sample_type" in source else read_text(source, name)  # a pair's tokens are sequences
                names = [docid for docid, _ in text.documents] if text else []
                documents = list(map(Document, names, text.tokens if text else ()))
                aligned[name] = align_row(row, documents)
            except DataError as error:
                error.instance = name
                raise
            if reference:
                sizes[name] = {document.docid: len(document.tokens) for document in documents}
        statistics, counts = measure_quotes(aligned, sizes)
        total, left_out = max(len(pairs), len(gold)), len(pairs) - len(quoting)
        settings = {"coverage": "documents"} if gold else {}
        settings |= {"scored": f"{len(quoting)}/{total}"} if len(quoting) < total else {}
        notes = [f"left out: {left_out:,} of {len(pairs):,} instances (no quotes)"] if left_out else []
        return Measured(statistics, settings, counts, notes)


def name_rows(rows: Sequence[Any], field: str, names: Sequence[str] = ()) -> list[Mapping[str, Any]]:
    """Return rows as objects with an id: one without has the name at its place, or its place.

    Args:
        rows: objects, or the values of their field.
        field: the field of a row that is no object.
        names: ids of the other side.
    """
    objects = [row if isinstance(row, Mapping) else {field: row} for row in rows]
    places = [*names, *map(str, range(len(names), len(objects)))]
    return [
        row if {*ID_FIELDS} & row.keys() else {**row, "id": place} for row, place in zip(objects, places, strict=False)
    ]


def align_row(row: Mapping[str, Any], documents: Sequence[Document]) -> Mapping[str, Any]:
    """Return an instance whose quotes are strings with their places in the documents; others as they are."""
    quotes = to_list(row.get("quotes"))
    quotes = [quotes] if isinstance(quotes, str) else quotes
    if not quotes or not isinstance(quotes, list) or not all(isinstance(quote, str) for quote in quotes):
        return row
    if not documents:
        message = "expected the text that bare quotes are from (`text` or `documents` of the reference)"
        raise DataError(f"{message}, found none beside {cut(quotes)}", field="quotes")
    return {**row, "quotes": [dataclasses.asdict(quote) for quote in align(quotes, documents)]}
