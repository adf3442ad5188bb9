"""Export of a built split as tasks of doccano or Label Studio, with a model's rationales as pre-annotations."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

from eraser_hub.metrics.label_tasks import is_regression
from eraser_hub.metrics.token_rows import find_runs
from eraser_hub.metrics.tokens import split_tokens
from eraser_hub.records.built import BuiltDataset, get_label_name
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.outputs import OutputWriter, find_inputs
from eraser_hub.records.predictions import Rationale, instances
from eraser_hub.records.rules import Rule

from .dataset import ExportResult

DOCCANO, LABEL_STUDIO = "doccano", "label-studio"
COLUMNS = ["annotation_id", "query", "classification", "documents", "evidences", "rationale_positions"]
SPAN_LABEL = "RATIONALE"
LABEL_CONFIG = "label-studio.xml"
_WRITERS = {DOCCANO: "jsonl", LABEL_STUDIO: "json"}

Spans = list[tuple[int, int]]


class MarkedText(NamedTuple):
    """One document of an annotation with its spans of characters.

    Attributes:
        data: annotation_id, docid, query and text.
        spans: the marked characters, ascending.
        label: the label; None if there is none.
    """

    data: dict[str, str]
    spans: Spans
    label: str | None


def export_tasks(
    built: BuiltDataset,
    config: str,
    split: str,
    tool: str,
    out: Path,
    *,
    predictions: Path | None = None,
    span_label: str = SPAN_LABEL,
    force: bool = False,
) -> ExportResult:
    """Write ``out/CONFIG-SPLIT.json`` (Label Studio, beside `LABEL_CONFIG`) or ``out/CONFIG-SPLIT.jsonl`` (doccano).

    A task is one document of an annotation: its text has U+0020 between tokens and line ends between sentences, so that
    an import gives the same tokens.

    Args:
        built: the dataset.
        config: the configuration.
        split: the split.
        tool: ``doccano`` or ``label-studio``.
        out: the folder.
        predictions: a predictions file; its hard rationales and labels replace the gold. In Label Studio they are
            predictions, which people correct; in doccano labels.
        span_label: the label of the marks.
        force: replace files that no export wrote.

    Returns:
        the files, and counts of annotations without predictions, or whose alternative rationales become one.

    Raises:
        DataError: the dataset or the predictions are at fault, or a file is there already.
    """
    inputs = find_inputs(built.folder, *([predictions] if predictions else []))
    writer = OutputWriter(inputs, force)
    path = out / f"{config}-{split}.{_WRITERS[tool]}"
    for each in (path, out / LABEL_CONFIG) if tool == LABEL_STUDIO else (path,):
        writer.check(each)
    names = built.label_names(config) or ()
    rows = built.rows(config, split, COLUMNS)
    predicted = None if predictions is None else _read_predictions(predictions, rows, names)
    texts = [text for row in rows for text in _mark_texts(row, names, predicted)]
    files = [path]
    if tool == DOCCANO:
        lines = (json.dumps(_make_doccano_task(text, span_label), ensure_ascii=False) + "\n" for text in texts)
        writer.write(path, "".join(lines).encode())
    else:
        model = None if predictions is None else predictions.stem
        tasks = [_make_label_studio_task(text, span_label, model) for text in texts]
        writer.write(path, (json.dumps(tasks, ensure_ascii=False, indent=1) + "\n").encode())
        writer.write(out / LABEL_CONFIG, _make_label_config(names, span_label).encode())
        files.append(out / LABEL_CONFIG)
    return ExportResult(out, files, list(_describe(rows, texts, predicted)))


def _describe(rows: Sequence[Any], texts: Sequence[MarkedText], predicted: Mapping[str, Any] | None) -> Iterator[str]:
    yield f"tasks: {len(texts):,}, one for each document of {len(rows):,} annotations"
    if predicted is None:
        if several := sum(len(row["evidences"]) > 1 for row in rows):
            yield f"annotations with several groups of evidences, whose marks are one set in the task: {several:,}"
    else:
        lacking = sum(row["annotation_id"] not in predicted for row in rows)
        if lacking:
            yield f"annotations without a prediction, exported without marks: {lacking:,}"
        unmarked = Counter(spans is None for _, spans in predicted.values())[True]
        if unmarked:
            yield f"predictions without hard rationales, exported without marks: {unmarked:,}"


def _read_predictions(
    path: Path, rows: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> dict[str, tuple[str | None, dict[str, Spans] | None]]:
    """Return id -> (label, docid -> spans of tokens); the spans are None if the instance has no hard rationale.

    Raises:
        DataError: an annotation, a document or a label that the split does not have; or a span that no scorer takes.
    """
    documents = {row["annotation_id"]: row["documents"] for row in rows}
    predicted: dict[str, tuple[str | None, dict[str, Spans] | None]] = {}
    for number, instance in instances(path):
        name = str(instance.annotation_id)
        if name not in documents:
            message = f"expected an annotation of the split, found {show(name)}"
            raise DataError(message, rule="id-unknown", file=path, line=number)
        try:
            if name in predicted:
                raise DataError("expected each annotation once", rule="id-twice", instance=name)
            numbers = is_regression(list(instance.classification_scores or ()), names)
            if names and not numbers and instance.classification not in (*names, None):
                message = f"expected one of {', '.join(map(repr, names))}, found {show(instance.classification)}"
                raise DataError(message, rule="label-unknown", instance=name, field="classification")
            texts = {document["docid"]: document["text"] for document in documents[name]}
            predicted[name] = instance.classification, _read_spans(instance.rationales or (), texts, name) or None
        except DataError as error:
            raise error.at(file=path, line=number) from None
    return predicted


def _read_spans(rationales: Sequence[Rationale], texts: Mapping[str, str], name: str) -> dict[str, Spans]:
    """Return docid -> the hard spans of an instance, by the rules of the scorers: equal spans are one."""
    by_document: dict[str, Spans] = {}
    seen: set[str] = set()
    for at, one in enumerate(rationales):
        docid, where = str(one.docid), f"rationales[{at}]"
        if docid in seen or docid not in texts:
            message = (
                f"expected {'each document once' if docid in seen else 'a document of the row'}, found {show(docid)}"
            )
            rule: Rule = "document-twice" if docid in seen else "document-unknown"
            raise DataError(message, rule=rule, instance=name, field=f"{where}.docid")
        seen.add(docid)
        if one.hard_rationale_predictions is None:
            continue
        spans = sorted({(span.start_token, span.end_token) for span in one.hard_rationale_predictions})
        size, where = len(split_tokens(texts[docid])), f"{where}.hard_rationale_predictions"
        for start, end in spans:
            if not 0 <= start < end <= size:
                rule = "span-bounds" if 0 <= start < end else "span-order"
                message = (
                    f"expected 0 <= start_token < end_token <= {size}, the document's tokens, found {[start, end]}"
                )
                raise DataError(message, rule=rule, instance=name, field=where)
        for before, span in pairwise(spans):
            if span[0] < before[1]:
                message = f"expected spans that do not overlap, found {list(before)} and {list(span)}"
                raise DataError(message, rule="span-overlap", instance=name, field=where)
        by_document[docid] = spans
    return by_document


def _mark_texts(
    row: Mapping[str, Any], names: Sequence[str], predicted: Mapping[str, tuple[str | None, Any]] | None
) -> Iterator[MarkedText]:
    """Yield the documents of an annotation with the gold marks, or with the predicted ones."""
    label: str | None = get_label_name(row["classification"], names)
    by_document: list[Spans] = [find_runs(positions) for positions in row["rationale_positions"]]
    if predicted is not None:
        label, spans = predicted.get(row["annotation_id"], (None, None))
        by_document = [(spans or {}).get(document["docid"], []) for document in row["documents"]]
    for document, spans_of_tokens in zip(row["documents"], by_document, strict=True):
        places = [match.span() for match in re.finditer("[^ \n]+", document["text"])]
        data = {"annotation_id": row["annotation_id"], "docid": document["docid"], "query": row["query"]}
        try:
            marked = [(places[start][0], places[end - 1][1]) for start, end in spans_of_tokens]
        except IndexError:
            message = f"expected spans within the document's {len(places)} tokens, found {spans_of_tokens}"
            raise DataError(message, rule="span-bounds", instance=row["annotation_id"]) from None
        yield MarkedText({**data, "text": document["text"]}, marked, label)


def _make_doccano_task(text: MarkedText, span_label: str) -> dict[str, Any]:
    task: dict[str, Any] = {**text.data, "label": [[start, end, span_label] for start, end in text.spans]}
    return task if text.label is None else {**task, "classification": text.label}


def _make_label_studio_task(text: MarkedText, span_label: str, model: str | None) -> dict[str, Any]:
    source = text.data["text"]
    results: list[dict[str, Any]] = [
        {
            "id": f"mark{number}",
            "from_name": "rationale",
            "to_name": "text",
            "type": "labels",
            "value": {"start": start, "end": end, "text": source[start:end], "labels": [span_label]},
        }
        for number, (start, end) in enumerate(text.spans)
    ]
    if text.label is not None:
        choice = {"choices": [text.label]}
        results.append(
            {"id": "label", "from_name": "classification", "to_name": "text", "type": "choices", "value": choice}
        )
    if model is None:
        return {"data": text.data, "annotations": [{"result": results}]}
    return {"data": text.data, "predictions": [{"model_version": model, "result": results}]}


def _make_label_config(names: Sequence[str], span_label: str) -> str:
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in names)
    return f"""<View>
  <Header value="$query"/>
  <Labels name="rationale" toName="text"><Label value={quoteattr(span_label)}/></Labels>
  <Text name="text" value="$text"/>
  <Choices name="classification" toName="text" choice="single">
{choices}
  </Choices>
</View>
"""
